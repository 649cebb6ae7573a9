"""The steps that repo2docker takes with binder/, as far as they go without Docker."""

import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[2]
REPO2DOCKER = ROOT / ".venv-binder" / "bin" / "jupyter-repo2docker"

pytestmark = pytest.mark.binder


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is committed, as mybinder.org gets it."""
    folder = tmp_path_factory.mktemp("binder") / "repository"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(folder)], check=True)
    return folder


@pytest.fixture(scope="module")
def steps(repository: Path) -> list[str]:
    """The commands of the image that are made from this repository's files, in order, as its user runs them."""
    command = [str(REPO2DOCKER), "--no-build", "--debug", str(repository)]
    output = subprocess.run(command, capture_output=True, text=True, check=True)
    runs = re.findall(r"^RUN (.+)$", output.stdout + output.stderr, re.MULTILINE)
    return [run for run in runs if "binder/" in run]


def test_it_is_built_as_is_meant_and_its_tutorials_run_there(repository: Path, steps: list[str], tmp_path: Path):
    assert [step.partition(" ")[0].rpartition("/")[2] for step in steps] == ["pip", "chmod", "postBuild"]
    text = (repository / "binder" / "runtime.txt").read_text().strip().removeprefix("python-")
    assert text == "{}.{}".format(*sys.version_info[:2]), "run this with the Python that the image has"
    image = tmp_path / "image"
    venv.create(image, with_pip=True)
    environment = {**os.environ, "KERNEL_PYTHON_PREFIX": str(image), "PATH": f"{image / 'bin'}:{os.environ['PATH']}"}
    environment |= {"HOME": str(tmp_path), "JUPYTER_PREFER_ENV_PATH": "1"}

    for step in steps:
        ran = subprocess.run(["sh", "-c", step], cwd=repository, env=environment, capture_output=True, text=True)
        assert ran.returncode == 0, f"{step}\n{ran.stdout[-3000:]}{ran.stderr[-3000:]}"

    for name in ("00_start_here", "02_state_and_instructions"):
        path = repository / "notebooks" / f"{name}.ipynb"
        execute = [str(image / "bin" / "jupyter"), "execute", "--inplace", str(path)]
        ran = subprocess.run(execute, cwd=path.parent, env=environment, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr[-3000:]
        assert shown(path) == shown(ROOT / "notebooks" / path.name)


def shown(path: Path) -> list[str]:
    cells = nbformat.read(path, as_version=4).cells
    outputs = [output for cell in cells if cell.cell_type == "code" for output in cell.outputs]
    return [str(output.get("text") or output.get("data", {}).get("text/plain")) for output in outputs]
