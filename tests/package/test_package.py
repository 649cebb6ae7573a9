"""What is handed out: the wheel carries everything the package needs."""

import json
import os
import re
import zipfile
from pathlib import Path

import pytest
from hatchling import build

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "adk_nb"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder, before = tmp_path_factory.mktemp("wheel"), Path.cwd()
    os.chdir(ROOT)  # a build backend is called in the project's folder (PEP 517)
    try:
        return zipfile.ZipFile(folder / build.build_wheel(str(folder)))
    finally:
        os.chdir(before)


def test_the_wheel_carries_every_source_stub_script_and_sheet(wheel: zipfile.ZipFile):
    ours = {str(path.relative_to(ROOT)) for path in PACKAGE.rglob("*") if path.is_file() and path.suffix != ".pyc"}

    packed = {name for name in wheel.namelist() if name.startswith("adk_nb/")}

    assert ours <= packed
    assert "adk_nb/py.typed" in packed
    assert {
        f"adk_nb/notebook/view/static/{name}"
        for name in ("view.js", "view.css", "loader.js", "served.js", "served.css")
    } <= packed


def test_the_wheel_lays_the_extension_of_jupyterlab_where_a_lab_finds_it(wheel: zipfile.ZipFile):
    shared = next(name for name in wheel.namelist() if name.endswith("labextensions/adk-nb/package.json"))

    assert re.fullmatch(r"adk_nb-[\w.]+\.data/data/share/jupyter/labextensions/adk-nb/package\.json", shared)
    load = json.loads(wheel.read(shared))["jupyterlab"]["_build"]["load"]
    assert b'_JUPYTERLAB["adk-nb"]' in wheel.read(shared.replace("package.json", load))


def test_the_wheel_carries_its_licence_and_nothing_beside_the_package(wheel: zipfile.ZipFile):
    names = wheel.namelist()

    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    assert {name.split("/")[0].split("-")[0] for name in names} == {"adk_nb"}
