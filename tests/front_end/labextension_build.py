"""The extension of JupyterLab as the wheel has it: `python -m tests.front_end.labextension_build`.

Its modules become one script, a container of module federation, which takes CodeMirror and the rest from the lab. The
name of the script has its hash, so that a browser asks for a new one.
"""

import hashlib
import json
import shutil
import tempfile
from pathlib import Path

import adk_nb
from tests.front_end import view_build

NAME = "adk-nb"
FOLDER = view_build.ROOT / "editors" / "jupyterlab"
BUILT = FOLDER / "labextension"
SHARED = (
    "@codemirror/language",
    "@codemirror/state",
    "@codemirror/view",
    "@jupyterlab/codemirror",
    "@jupyterlab/notebook",
    "@jupyterlab/services",
    "@lezer/common",
    "@lezer/highlight",
)
"""Modules of the lab that the extension imports."""
FORM = ("--bundle", "--format=cjs", "--target=es2022", "--minify", "--line-limit=120", "--charset=utf8")


def build(folder: Path) -> None:
    """Make the files of the extension in `folder`, and nothing else be in it."""
    shutil.rmtree(folder, ignore_errors=True)
    script = _script()
    load = f"static/{NAME}.{hashlib.sha256(script).hexdigest()[:16]}.js"
    (folder / "static").mkdir(parents=True)
    (folder / load).write_bytes(script)
    package = {
        "name": NAME,
        "version": adk_nb.__version__,
        "description": "Highlights the cells of adk_nb, and lets its agents read and write cells.",
        "license": "Apache-2.0",
        "jupyterlab": {"extension": True, "_build": {"load": load, "extension": "./extension"}},
    }
    install = {
        "packageManager": "python",
        "packageName": NAME,
        "uninstallInstructions": f"pip uninstall {NAME}, or to keep the rest: jupyter labextension disable {NAME}",
    }
    for name, content in (("package.json", package), ("install.json", install)):
        (folder / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _script() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "extension.js"
        external = [f"--external:{name}" for name in SHARED]
        done = view_build.run(
            "esbuild", "src/extension.js", *FORM, *external, "--log-level=warning", f"--outfile={output}", cwd=FOLDER
        )
        if done.returncode:
            raise SystemExit(done.stderr)
        body = output.read_text(encoding="utf-8")
    container = (FOLDER / "src" / "container.js").read_text(encoding="utf-8")
    for place, text in (
        ("/* the lab's modules */", ", ".join(map(json.dumps, SHARED))),
        ("/* the extension */\n    return [require, module];", body.strip()),
    ):
        if place not in container:
            raise SystemExit(f"container.js has no place for {place}")
        container = container.replace(place, text)
    return container.encode()


def files(folder: Path) -> dict[str, bytes]:
    """Return the files below `folder`, by their path."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


if __name__ == "__main__":
    build(BUILT)
