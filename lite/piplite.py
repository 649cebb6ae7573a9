"""What `%pip install` does on the site, in the place of JupyterLite's own: it loads what the site has, and no more.

micropip is imported by the first `%pip`, not by every kernel. Source of the names: JupyterLite's piplite.
"""

import importlib
from collections.abc import Iterator, Sequence
from importlib import metadata
from typing import Any

from adk_nb.errors import UserError


async def install(requirements: str | Sequence[str], **options: Any) -> None:
    """Load what is required and not there yet, with extras; print what is there now.

    Args:
        requirements: Names as of packages, with versions and extras, or addresses of wheels.
        options: Those of `micropip.install`.

    Raises:
        UserError: The site lacks a package, or has another version.
    """
    page: Any = importlib.import_module("pyodide_js")
    await page.loadPackage(["micropip", "packaging"])
    micropip: Any = importlib.import_module("micropip")
    asked = [requirements] if isinstance(requirements, str) else list(requirements)
    wheels = [text for text in asked if "://" in text or text.endswith(".whl")]
    needed = [each for text in asked if text not in wheels for each in _with_extras(_requirement(text))]
    site = page.lockfile.packages.to_py()
    absent = [each for each in needed if _name(each) not in site and not _is_installed(each)]
    if absent:
        names = ", ".join(str(each) for each in absent)
        raise UserError(
            f"this site has no {names}, and %pip takes from it alone; to fetch from PyPI, type: import micropip; "
            f"await micropip.install({[str(each) for each in absent]!r})"
        )
    for each in needed:
        version = metadata.version(each.name) if _is_installed(each) else site[_name(each)]["version"]
        if not each.specifier.contains(version, prereleases=True):
            raise UserError(f"this site has {each.name} {version}, not {each}; type: %pip install {each.name}")
    await micropip.install([*(each.name for each in needed if not _is_installed(each)), *wheels], **options)
    there = [f"{each.name} {metadata.version(each.name)}" for each in needed] + wheels
    print("Here now:", ", ".join(dict.fromkeys(there)))  # noqa: T201  # as pip does


def _requirement(text: str) -> Any:
    module: Any = importlib.import_module("packaging.requirements")
    try:
        return module.Requirement(text)
    except module.InvalidRequirement as error:
        raise UserError(f"{text!r} is no name of a package: {str(error).splitlines()[0]}") from error


def _with_extras(requirement: Any) -> Iterator[Any]:
    """The requirement, and those of its extras, of a package that is there: micropip leaves these out."""
    yield requirement
    if not (requirement.extras and _is_installed(requirement)):
        return
    for each in map(_requirement, metadata.requires(requirement.name) or []):
        is_plain = not each.marker or each.marker.evaluate({"extra": ""})
        if not is_plain and any(each.marker.evaluate({"extra": extra}) for extra in requirement.extras):
            yield from _with_extras(each)


def _is_installed(requirement: Any) -> bool:
    return next(iter(metadata.distributions(name=requirement.name)), None) is not None


def _name(requirement: Any) -> str:
    return importlib.import_module("packaging.utils").canonicalize_name(requirement.name)
