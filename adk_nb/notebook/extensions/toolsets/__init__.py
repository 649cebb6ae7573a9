"""`%tool --openapi` and `%tool --mcp`: the operations of a web service, or the tools of a server."""

from adk_nb.notebook.registry import Extension

extension = Extension(name="toolsets", options={"tool": f"{__name__}.options:OPTIONS"})
