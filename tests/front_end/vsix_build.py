"""The extension of VS Code as the one file that it installs: `python -m tests.front_end.vsix_build`, or `make vsix`."""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import adk_nb
from tests.front_end import view_build

FOLDER = view_build.ROOT / "editors" / "vscode"
BUILD = view_build.ROOT / "build"
INSTALLED = BUILD / "vsce"
"""vsce, from npm, as the extension's package.json pins it."""
VSCE = INSTALLED / "node_modules" / "@vscode" / "vsce" / "vsce"
OPTIONS = ("--no-dependencies", "--allow-missing-repository", "--no-update-package-json", "--no-git-tag-version")
DATE = "315532800"
"""Of every file in the archive, so that the same sources make the same bytes: 1980, where the time of zip begins."""


def build(folder: Path) -> Path:
    """Make `adk-nb-VERSION.vsix` in `folder`."""
    install()
    target = folder / f"adk-nb-{adk_nb.__version__}.vsix"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as staged:
        shutil.copytree(FOLDER, staged, dirs_exist_ok=True)
        shutil.copy(view_build.ROOT / "LICENSE", staged)
        command = [view_build.NODE / "node", VSCE, "package", adk_nb.__version__, *OPTIONS, "--out", target.resolve()]
        done = subprocess.run(
            command, cwd=staged, env=os.environ | {"SOURCE_DATE_EPOCH": DATE}, capture_output=True, text=True
        )
    if done.returncode:
        raise SystemExit(f"vsce made no {target.name}:\n{done.stdout}{done.stderr}")
    return target


def install() -> None:
    """Install vsce, unless it is there."""
    tools = {"private": True, "dependencies": json.loads((FOLDER / "package.json").read_bytes())["devDependencies"]}
    stamp, wanted = INSTALLED / "stamp", json.dumps(tools)
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return
    INSTALLED.mkdir(parents=True, exist_ok=True)
    (INSTALLED / "package.json").write_text(wanted, encoding="utf-8")
    # Its scripts would build and fetch what signs and publishes.
    view_build.npm("install", "--ignore-scripts", "--no-package-lock", folder=INSTALLED)
    stamp.write_text(wanted, encoding="utf-8")


if __name__ == "__main__":
    print(build(BUILD).relative_to(view_build.ROOT))  # noqa: T201
