"""One VS Code with the extension, and one Chromium that reaches this machine only."""

from collections.abc import Iterator

import pytest
from code_server import CodeServer
from lab_server import chromium
from selenium.webdriver import Chrome

from tests.front_end import vsix_build


@pytest.fixture(scope="session")
def code_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CodeServer]:
    home = tmp_path_factory.mktemp("vscode")
    server = CodeServer(home)
    server.install(vsix_build.build(home))
    with server.running():
        yield server


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    here_only = ("--no-proxy-server", "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1")
    with chromium(tmp_path_factory.mktemp("chromium"), *here_only) as driver:
        driver.set_window_size(1200, 1250)
        yield driver
