"""Whether a release can be made of the last commit: `make release-check`. What it built lies in `dist`.

python -m tests.package.release_check    in an environment with `build` and `twine`
"""
# pyright: basic

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
DIST = ROOT / "dist"
STATIC = "adk_nb/notebook/view/static"
NEEDED = [
    *(f"{STATIC}/{name}" for name in ("view.js", "view.css", "loader.js", "served.js", "served.css")),
    "adk_nb/py.typed",
]
LAB = "data/share/jupyter/labextensions/adk-nb/package.json"
CELLS = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for source in [*json.loads(sys.argv[1]), "%confirm yes"]:
    print(f"[{source.splitlines()[0]}]", flush=True)
    shell.run_cell(source, store_history=True).raise_error()
paid = [one.response for event in shell.user_ns["_run"].chat.events for one in event.get_function_responses()]
assert any("paid 250 euros to Anna" in str(one) for one in paid), paid
import adk_nb; print(adk_nb.__file__)
"""


def main() -> None:
    """Build from a clean clone, look inside, install and run; ends with 1 and the reason at the first fault."""
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "clone"
        run("git", "clone", "-q", ROOT, clone)
        print("commit", run("git", "-C", clone, "log", "-1", "--format=%h %s").strip())
        shutil.rmtree(DIST, ignore_errors=True)
        python = Path(sys.executable)
        run(python, "-m", "build", "--outdir", DIST, clone)  # the sdist, and the wheel of that sdist
        [sdist], [wheel] = DIST.glob("*.tar.gz"), DIST.glob("*.whl")
        run(python, "-m", "build", "--wheel", "--outdir", Path(folder) / "direct", clone)
        [direct] = (Path(folder) / "direct").glob("*.whl")
        check_contents(wheel, direct, clone)
        run(python, "-m", "twine", "check", "--strict", sdist, wheel)
        print("metadata passes twine check --strict")
        if re.search(r"^vsix:", (clone / "Makefile").read_text(), re.MULTILINE):
            run("make", "vsix", cwd=clone)
            for made in clone.rglob("*.vsix"):
                shutil.copy(made, DIST)
        check_run(wheel, Path(folder), clone)
        for path in sorted(DIST.iterdir()):
            print(f"{path.stat().st_size / 1e6:6.2f} MB  dist/{path.name}")


def check_contents(wheel: Path, direct: Path, clone: Path) -> None:
    """The wheel of the sdist is that of the clone, and carries the front end, the stubs and the version."""
    held = digests(wheel)
    differs = sorted(name for name, _ in digests(direct).items() ^ held.items())
    expect(not differs, f"the sdist builds another wheel than the clone: {differs}")
    tracked = run("git", "-C", clone, "ls-files", "adk_nb").split()
    missing = [name for name in [*tracked, *NEEDED] if name not in held]
    expect(not missing, f"{wheel.name} lacks {missing}")
    expect(any(name.endswith(LAB) for name in held), f"{wheel.name} lacks the extension of JupyterLab")
    version = re.search(r'__version__ = "(.*)"', (clone / "adk_nb" / "__init__.py").read_text())
    expect(version and f"-{version[1]}-" in wheel.name, f"{wheel.name} is not of the version in adk_nb/__init__.py")
    expect(
        f"## [{version[1]}] - 2" in (clone / "CHANGELOG.md").read_text(), f"CHANGELOG.md has no date for {version[1]}"
    )
    stubs = sum(name.endswith(".pyi") for name in held)
    print(
        f"{wheel.name}: {len(held)} files, {stubs} stubs, the view and the extension of JupyterLab; the sdist builds it"
    )


def check_run(wheel: Path, folder: Path, clone: Path) -> None:
    """In an empty environment with the wheel alone, the README's cells pay after a yes, and a newcomer's chat works."""
    venv.create(folder / "empty", with_pip=True)
    python = folder / "empty" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", wheel)
    run(python, "-m", "pip", "check", "--disable-pip-version-check")
    section = (clone / "README.md").read_text(encoding="utf-8").partition("## Four cells")[2].partition("\n## ")[0]
    cells = re.findall(r"^```\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    expect(len(cells) == 4, f"README.md has {len(cells)} blocks under 'Four cells'")
    shown = run(python, "-c", CELLS, json.dumps(cells), cwd=folder)
    expect(str(folder / "empty") in shown, f"another adk_nb was imported: {shown[-300:]}")
    smoke = run(python, "-m", "IPython", clone / "tests" / "package" / "smoke.ipy", cwd=folder)
    expect("It works." in smoke, smoke[-2000:])
    size = sum(
        path.stat().st_size for path in (folder / "empty").rglob("*") if path.is_file() and not path.is_symlink()
    )
    print(f"README's four cells and a chat run in an empty environment ({size / 1e6:.0f} MB with all that it needs)")


def digests(wheel: Path) -> dict[str, str]:
    """Each file of a wheel, and a digest of its content."""
    with zipfile.ZipFile(wheel) as held:
        return {name: hashlib.sha256(held.read(name)).hexdigest() for name in held.namelist()}


def run(*command: object, cwd: Path | None = None) -> str:
    """What a command prints; this program ends if it fails."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, cwd=cwd)
    expect(
        done.returncode == 0, f"{' '.join(map(str, command[:6]))} failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    )
    return done.stdout


def expect(is_so: object, otherwise: str) -> None:
    """End this program with what is wrong."""
    if not is_so:
        raise SystemExit(f"no release: {otherwise}")


if __name__ == "__main__":
    main()
