"""The packages that serving needs."""

from adk_nb.lazy import require


def check_extra() -> None:
    """Check that they are installed.

    Raises:
        MissingExtraError: One is not.
    """
    for module in ("starlette", "uvicorn", "ag_ui", "mcp", "a2a"):
        require(module, package="adk-nb[serve]")
