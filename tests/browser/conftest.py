"""The fixtures of the browser tests; what they give is told in lab.py."""

from collections.abc import Iterator

import pytest
from lab import Lab
from lab_server import LabServer, chromium
from selenium.webdriver import Chrome


@pytest.fixture(scope="session")
def lab_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabServer]:
    with LabServer(tmp_path_factory.mktemp("lab")).running() as server:
        yield server


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with chromium(tmp_path_factory.mktemp("chromium")) as driver:
        yield driver


@pytest.fixture
def lab(lab_server: LabServer, browser: Chrome, request: pytest.FixtureRequest) -> Iterator[Lab]:
    folder = lab_server.root / request.node.name.replace("[", "-").replace("]", "")
    folder.mkdir()
    lab = Lab(lab_server, browser, folder)
    yield lab
    lab.close()
