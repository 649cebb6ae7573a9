"""The list of the site's packages, which Pyodide loads from: pyodide-lock.json."""

import email.parser
import hashlib
import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from email.message import Message
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

ENVIRONMENT = {"sys_platform": "emscripten", "platform_system": "Emscripten", "os_name": "posix"} | {
    "platform_machine": "wasm32",
    "python_version": "3.14",
    "python_full_version": "3.14.2",
    "implementation_name": "cpython",
    "platform_python_implementation": "CPython",
}
KERNEL = ("micropip", "piplite", "ipykernel", "comm", "pyodide-kernel", "jedi", "ipython")
"""What JupyterLite's kernel would install one by one if it were not loaded with Python."""
ALSO = {"google-genai": ["certifi"]}
"""What a package imports and does not require: it trusts another one to bring it."""
BESIDE = ("jsonschema", "pyyaml")
"""What the tutorials use beside the package: they check arguments and read skills."""
UNUSED = {
    "cryptography": "google-auth signs with it as a service account, which no page is",
    "requests": "google-auth fetches tokens with it",
    "jupyterlab-widgets": "the site has its JavaScript; the Python part lists files",
    "pexpect": "a terminal's",
    "psutil": "a process's",
}
"""Requirements that are left out, each with why it is not missed."""


def write(path: Path, wheels: Sequence[Path]) -> tuple[dict[str, Path], list[str]]:
    """Write the lock of `wheels`, which lie beside it.

    Returns:
        The packages to load with Python and their wheels: the kernel and ours, with what they require. And those of
        them that Pyodide itself has to load, as they are compiled, with what these require.

    Raises:
        SystemExit: A requirement of a wheel is not met by the others.
    """
    metadata = {canonicalize_name(_metadata(wheel)["Name"]): (wheel, _metadata(wheel)) for wheel in wheels}
    versions = {name: message["Version"] for name, (_, message) in metadata.items()}
    requirements = {name: _requirements(message) for name, (_, message) in metadata.items()}
    wrong = [
        f"{name} needs {requirement}; {versions.get(canonicalize_name(requirement.name), 'nothing')} is in the list"
        for name, needed in requirements.items()
        for requirement in needed
        if not requirement.specifier.contains(versions.get(canonicalize_name(requirement.name), ""), prereleases=True)
    ]
    if wrong:
        raise SystemExit("lite/requirements.txt does not fit: " + "; ".join(wrong))
    lock = json.loads(path.read_text(encoding="utf-8"))
    lock["packages"] = {
        name: _entry(name, wheel, versions[name], requirements[name]) for name, (wheel, _) in metadata.items()
    }
    path.write_text(json.dumps(lock), encoding="utf-8")
    loaded = {
        name: metadata[canonicalize_name(name)][0]
        for name in _with_dependencies([*KERNEL, "adk-nb", *BESIDE], lock["packages"])
    }
    apart = [name for name, wheel in loaded.items() if not wheel.stem.endswith("none-any")]
    return loaded, _with_dependencies(apart, lock["packages"])


def _with_dependencies(names: Sequence[str], packages: Mapping[str, Mapping[str, list[str]]]) -> list[str]:
    found: dict[str, None] = {}
    queue = list(names)
    while queue:
        name = queue.pop(0)
        if name not in found:
            found[name] = None
            queue += packages[name]["depends"]
    return list(found)


def _metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return email.parser.Parser().parsestr(archive.read(name).decode("utf-8"), headersonly=True)


def _requirements(metadata: Message) -> list[Requirement]:
    requirements = map(Requirement, metadata.get_all("Requires-Dist") or [])
    return [
        requirement
        for requirement in requirements
        if canonicalize_name(requirement.name) not in UNUSED
        and (requirement.marker is None or requirement.marker.evaluate(ENVIRONMENT | {"extra": ""}))
    ]


def _entry(
    name: NormalizedName, wheel: Path, version: str, requirements: Iterable[Requirement]
) -> Mapping[str, object]:
    return {
        "name": name,
        "version": version,
        "file_name": wheel.name,
        "install_dir": "site",
        "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest(),
        "package_type": "package",
        "imports": _imports(wheel),
        "depends": [canonicalize_name(requirement.name) for requirement in requirements] + ALSO.get(name, []),
        "unvendored_tests": False,
    }


def _imports(wheel: Path) -> list[str]:
    """The names of its modules at the top."""
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.partition("/")[0] for name in archive.namelist() if name.endswith(".py")}
    return sorted(top.removesuffix(".py") for top in tops if top.removesuffix(".py").isidentifier())
