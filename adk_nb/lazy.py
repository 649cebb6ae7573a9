"""Import late: optional packages with a way to install them, and names of a package that load on first use."""

import ast
import importlib
import importlib.util
import re
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from adk_nb.errors import CloudServiceError, MissingExtraError
from adk_nb.google_adk import instead_of

_NOT_IN_A_BROWSER = (
    "dbos", "distributed", "duckdb", "jupyter_client", "keyring", "litellm", "nest_asyncio2", "nltk", "psycopg",
    "pyarrow", "xllamacpp",
)  # fmt: skip
"""What needs processes, sockets, or code that is not built for browsers."""
_PACKAGE = "adk-nb"
_OURS = re.compile(r"adk[-_]nb\[([\w.-]+)\]")
_EXTRA = re.compile(r"""extra\s*==\s*['"]([\w.-]+)['"]""")


def require(module: str, *, package: str) -> ModuleType:
    """Import an optional package, or raise MissingExtraError with the command that installs it.

    Args:
        module: As it is imported.
        package: As pip takes it, or an extra of this package: `adk-nb[db]`.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        if sys.platform != "emscripten":
            raise _missing(module, package) from error
        return _require_in_page(module, package)


def require_installed(module: str, *, package: str) -> None:
    """As `require`, without importing it: for what another process will import."""
    if importlib.util.find_spec(module) is None:
        require(module, package=package)


def is_at_hand(module: str) -> bool:
    """Whether `require` finds a module: it is installed, or the site whose page this is has it."""
    if importlib.util.find_spec(module) is not None:
        return True
    if sys.platform != "emscripten":
        return False
    page: Any = importlib.import_module("pyodide_js")
    return _is_site(page) and hasattr(page.lockfile.packages, module)


def _is_site(page: Any) -> bool:
    """Whether the page's Python was built with this package."""
    return hasattr(page.lockfile.packages, "adk-nb")


def _missing(module: str, package: str) -> MissingExtraError:
    return MissingExtraError(f"{module.partition('.')[0]!r} is not installed; type: {install_line(package)}")


def _require_in_page(module: str, package: str) -> ModuleType:
    """Load an optional package into the page's Python, or say why it cannot be there.

    A site whose Python was built with this package has versions that fit, which are loaded when they are needed; what
    it lacks comes from nowhere else. Source: https://pyodide.org/en/stable/usage/api/js-api.html
    #pyodide.loadPackagesFromImports.
    """
    page: Any = importlib.import_module("pyodide_js")
    ffi: Any = importlib.import_module("pyodide.ffi")
    is_site = _is_site(page)
    if is_site and ffi.can_run_sync():
        ffi.run_sync(page.loadPackagesFromImports(f"import {module}"))
    elif is_at_hand(module):
        raise MissingExtraError(f"{module!r} is not loaded yet; type: {install_line(package)}")
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        if name in _NOT_IN_A_BROWSER:
            reason = f"{name!r} cannot be installed in a browser"
        elif is_site:
            reason = f"this site has no {name!r}"
        else:
            raise _missing(module, package) from error
        raise MissingExtraError(f"{reason}; on your machine, type: {install_line(package)}") from error


@cache
def extras() -> dict[str, list[str]]:
    """Each extra and its requirements, markers included, as this package was installed with them.

    An extra that brings another one has that one's requirements. Empty where this package runs without having been
    installed.
    """
    found: dict[str, list[str]] = {}
    # Imported here: it takes longer than all the rest of `import adk_nb`.
    metadata: Any = importlib.import_module("importlib.metadata")
    try:
        lines: list[str] = metadata.requires(_PACKAGE) or []
    except metadata.PackageNotFoundError:
        return {}
    for line in lines:
        if extra := _EXTRA.search(line):
            found.setdefault(extra[1], []).append(line)

    def needs(extra: str) -> list[str]:
        inner = [(line, _OURS.match(line)) for line in found.get(extra, ())]
        return [one for line, ours in inner for one in (needs(ours[1]) if ours else [line])]

    return {extra: list(dict.fromkeys(needs(extra))) for extra in found}


def install_line(package: str) -> str:
    """The line to type that installs a package.

    For an extra of this package it names what the extra needs, not the package itself: that works however this one was
    installed, from a clone, from a wheel or from an index, and leaves the running one as it is.

    Args:
        package: One or more, as pip takes them, or an extra of this package: `adk-nb[db]`.
    """
    if not (ours := _OURS.fullmatch(package)):
        return f"%pip install {package}"
    if not (needed := [line.partition(";")[0].strip() for line in extras().get(ours[1], ())]):
        return f"""pip install -e ".[{ours[1]}]" in a clone of adk_nb"""
    # Double quotes mean the same to every shell; the single ones are letters to that of Windows.
    return " ".join(["%pip install", *(f'"{one}"' if re.search(r"[^\w.-]", one) else one for one in needed)])


def late(table: Mapping[str, str]) -> Callable[[str], Any]:
    """A function that loads a name on first use. `table`: name -> the module that defines it."""
    return lambda name: getattr(importlib.import_module(table[name]), name)


def face(package: str, cloud: Mapping[str, str] | None = None) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package whose names load on first use (PEP 562).

    Its names are those that the stub beside it imports, for checkers and editors: each is loaded from where the stub
    imports it from. The first use of a name reads the stub.

    Args:
        package: The package's own `__name__`.
        cloud: ADK's name of a Google Cloud client -> the replacement.
    """

    @cache
    def sources() -> dict[str, str]:
        """Public name -> the module, or the package of the module, that the stub imports it from; sorted."""
        spec: Any = sys.modules[package].__spec__
        stub = ast.parse(spec.loader.get_data(str(Path(spec.origin).with_suffix(".pyi"))))
        imports = [node for node in stub.body if isinstance(node, ast.ImportFrom) and node.module]
        names = {alias.name: str(node.module) for node in imports for alias in node.names}
        return {name: names[name] for name in sorted(names) if names[name].startswith("adk_nb")}

    def load(name: str) -> Any:
        if name == "__all__":  # `from package import *` asks for it here
            return list(sources())
        # Python looks here for a package's attributes of its own, such as `__path__`, which no stub has.
        if name.startswith("__"):
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if cloud and name in cloud:
            raise CloudServiceError(f"{name} is a client of Google Cloud, which adk_nb lacks; use {cloud[name]}")
        if (source := sources().get(name)) is None:
            raise instead_of(f"{package}.{name}") or AttributeError(f"module {package!r} has no attribute {name!r}")
        if source == package or not hasattr(module := importlib.import_module(source), name):
            return importlib.import_module(f"{source}.{name}")
        return getattr(module, name)

    return load, lambda: list(sources())
