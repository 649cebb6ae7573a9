"""In a Pyodide that knows nothing of this package, micropip installs it with what it needs, from a wheel's address."""

import hashlib
import json
import shutil
import threading
from collections.abc import Iterator
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest
from conftest import Files
from selenium.webdriver import Chrome

from adk_nb.notebook.view.writers.elements import ISOLATED
from tests.support.hostile_texts import PAYLOADS, assert_isolated

PARTS = Path(__file__).parents[2] / "build" / "lite_parts"
PAGE = """<!doctype html><title>Pyodide</title>
<script type="module">
import { loadPyodide } from "./pyodide/pyodide.mjs";
window.python = await loadPyodide({ packages: ["micropip"] });
</script>"""
INSTALL = """
import micropip
micropip.set_index_urls("SITE/simple/{package_name}/")
# Pyodide's own distribution has these, and its files are not on npm.
for name, version in (("cryptography", "47.0.0"), ("requests", "2.33.1"), ("jupyterlab-widgets", "3.0.17")):
    micropip.add_mock_package(name, version)
await micropip.install(["SITE/simple/adk-nb/WHEEL", "certifi"])
"""
ASK = """
from adk_nb import Agent, Chat

def count_letter(word: str, letter: str) -> int:
    'Count how often a letter occurs in a word.'
    return word.count(letter)

Chat(Agent(name="speller", tools=[count_letter]), show="off").ask("How often is the letter r in strawberry?").text
"""
POSTGRES = """
from adk_nb.errors import MissingExtraError
from adk_nb.sessions import DatabaseSessionService

try:
    DatabaseSessionService("postgresql://ada@127.0.0.1/sessions")
    message = "it is there"
except MissingExtraError as error:
    message = str(error)
message
"""
FOREIGN = """
import json
from importlib.util import find_spec
from adk_nb.notebook.view.writers.html import isolated_page
json.dumps([find_spec("lxml") is None, *map(isolated_page, json.loads(PAGES))])
"""
LONG = ("<b>" * 400 + "</i>" * 100_000, "<a b='" * 30_000, "<!--" * 50_000, "<a " * 50_000, "<![CDATA[" * 50_000)
"""Pages that a parser might take minutes for: its page would stand still."""

HARMLESS = "<table><tr><td onclick='run()'>42<script>run()</script></td></tr></table>"

pytestmark = pytest.mark.lite


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[str]:
    """The address of a page with Pyodide alone, and of an index of wheels."""
    assert PARTS.is_dir(), "there are no parts of a site; type: make lite"
    shutil.copytree(PARTS / "node_modules" / "pyodide", tmp_path / "pyodide")
    wheels = [*(PARTS / "wheels").glob("*.whl"), *(PARTS / "own").glob("*.whl"), *(PARTS / "kernel").glob("*.whl")]
    for wheel in wheels:
        name = wheel.name.split("-")[0].replace("_", "-").lower()
        folder = tmp_path / "simple" / name
        folder.mkdir(parents=True)
        shutil.copy(wheel, folder)
        (folder / "index.html").write_text(f'<!doctype html><a href="{wheel.name}">{wheel.name}</a>')
    lock = json.loads((tmp_path / "pyodide" / "pyodide-lock.json").read_text())
    lock["packages"] = {name: own_entry(name, wheels, tmp_path / "pyodide") for name in ("micropip", "packaging")}
    lock["packages"]["micropip"]["depends"] = ["packaging"]
    (tmp_path / "pyodide" / "pyodide-lock.json").write_text(json.dumps(lock))
    (tmp_path / "index.html").write_text(PAGE)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Files, directory=str(tmp_path))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def own_entry(name: str, wheels: list[Path], folder: Path) -> dict[str, object]:
    wheel = next(wheel for wheel in wheels if wheel.name.startswith(f"{name}-"))
    shutil.copy(wheel, folder)
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    texts = {"name": name, "version": wheel.name.split("-")[1], "file_name": wheel.name, "sha256": digest}
    return texts | {"install_dir": "site", "package_type": "package", "imports": [name], "depends": []}


def run(browser: Chrome, source: str) -> str:
    """What `source` evaluates to, in the page's Python."""
    script = """
        const done = arguments[1];
        const wait = async () => {
            while (!window.python) await new Promise((next) => setTimeout(next, 100));
            return window.python.runPythonAsync(arguments[0]);
        };
        wait().then((value) => done(String(value)), (error) => done(`failed: ${error}`));"""
    return browser.execute_async_script(script, source)


def test_micropip_installs_it_and_names_what_cannot_be_there(plain: str, browser: Chrome):
    browser.get(plain)

    installed = run(browser, INSTALL.replace("SITE", plain).replace("WHEEL", next((PARTS / "own").glob("*.whl")).name))
    assert installed == "undefined", installed

    assert "gives 3" in run(browser, ASK)
    foreign = json.dumps(json.dumps([HARMLESS, *PAYLOADS, "".join(PAYLOADS), *LONG]))
    is_stand_in, first, *pages = json.loads(run(browser, FOREIGN.replace("PAGES", foreign)))
    assert is_stand_in and "<table><tr><td>42</td></tr></table>" in first
    for written in pages:
        assert_isolated({"srcdoc": written, "title": "", **ISOLATED})
    message = run(browser, POSTGRES)
    assert "'psycopg" in message, message
    assert 'type: %pip install "psycopg[binary]>=3.2"' in message
    assert "browser" in message
