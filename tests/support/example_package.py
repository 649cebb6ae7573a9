"""The package of `tests/package/adk_nb_words`, as pip installs it, in a folder of its own."""

import ensurepip
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "package" / "adk_nb_words"


def install(folder: Path) -> Path:
    """Install it into a new folder, without network, with the environment's own hatchling; returns the folder."""
    source, target = folder / "source", folder / "site"
    shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("__pycache__"))
    bundled = Path(ensurepip.__file__).parent.glob("_bundled/pip-*.whl")  # an environment may come without pip
    pip = ["-m", "pip"] if importlib.util.find_spec("pip") else [str(next(bundled) / "pip")]
    options = ["--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "--quiet"]
    command = [sys.executable, *pip, "install", *options, "--target", str(target), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target
