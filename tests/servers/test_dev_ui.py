"""Google's own dev UI, the browser files of google-adk that `make servers` has installed, on a served agent."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from programs import FOLDER
from selenium.common.exceptions import StaleElementReferenceException, TimeoutException
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from adk_nb import tool
from adk_nb.agents import Agent
from adk_nb.models import ScriptedLlm, call
from adk_nb.notebook.cells.notebook import Notebook
from adk_nb.notebook.extensions.serving.served_runs import NotebookRunner
from tests.browser.lab_server import chromium
from tests.serving.conftest import TOKEN, Served, serve

__all__ = ["serve"]
pytestmark = pytest.mark.servers
PACKAGE = FOLDER.parent / "dev_ui"
SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"


@tool(confirm=True)
def pay(to: str, amount: float) -> str:
    """Pay a person."""
    return f"paid {amount:g} to {to}"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with chromium(tmp_path_factory.mktemp("chromium")) as driver:
        driver.set_window_size(1400, 900)
        yield driver


@pytest.fixture(autouse=True)
def _the_page_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert PACKAGE.is_dir(), "type: make servers"
    monkeypatch.syspath_prepend(str(PACKAGE))


class DevUi:
    """The page, as a person uses it."""

    def __init__(self, browser: Chrome, served: Served) -> None:
        self.browser = browser
        browser.get(f"{served.url}/?token={TOKEN}")
        self.until("textarea")

    def until(self, css: str, text: str = "") -> None:
        def seen(_: object) -> bool:
            return any(text in one.text for one in self.browser.find_elements(By.CSS_SELECTOR, css))

        try:
            waiting = WebDriverWait(self.browser, 60, 0.05, [StaleElementReferenceException])
            waiting.until(seen)
        except TimeoutException:
            self.picture("dev-ui-timeout")
            raise AssertionError(f"no {css} with {text!r}:\n{self.text()}") from None

    def say(self, text: str) -> None:
        field = self.browser.find_element(By.CSS_SELECTOR, "textarea")
        field.send_keys(Keys.CONTROL, "a", Keys.NULL, text, Keys.ENTER)

    def confirm(self) -> None:
        self.until("button", "Submit")
        self.browser.find_element(By.CSS_SELECTOR, "input[type=checkbox], mat-checkbox input").click()
        next(one for one in self.browser.find_elements(By.CSS_SELECTOR, "button") if one.text == "Submit").click()

    def text(self) -> str:
        return self.browser.find_element(By.TAG_NAME, "body").text

    def picture(self, name: str) -> None:
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.browser.save_screenshot(str(SCREENSHOTS / f"{name}.png"))


def clerk() -> Agent:
    model = ScriptedLlm("Good day. How can I help?", call("pay", to="Anna", amount=250), "Anna has her **250 euros**.")
    return Agent(name="clerk", description="Pays what is agreed.", model=model, tools=[pay])


def test_a_conversation_with_an_approval(serve, browser: Chrome):
    page = DevUi(browser, serve(clerk()))
    assert TOKEN not in browser.current_url and "app=clerk" in browser.current_url
    page.say("Hello")
    page.until("body", "Good day. How can I help?")
    page.say("Pay 250 to Anna")
    page.until("body", "adk_request_confirmation")
    page.picture("dev-ui-asks")
    page.confirm()
    page.until("body", "Anna has her 250 euros.")
    page.picture("dev-ui-done")
    next(one for one in browser.find_elements(By.CSS_SELECTOR, "button") if one.text == "Traces").click()
    page.until("body", "Total latency")
    page.picture("dev-ui-traces")


def test_an_approval_stays_in_the_notebook(serve, browser: Chrome):
    notebook = Notebook({"clerk": clerk()})
    served = serve(NotebookRunner(notebook, "clerk", shows_runs=False), name="clerk")
    page = DevUi(browser, served)
    page.say("Hello")
    page.until("body", "Good day. How can I help?")
    page.say("Pay 250 to Anna")
    page.confirm()
    page.until("body", "is answered in the notebook")
    page.picture("dev-ui-refused")
    (session,) = served.client.get("/apps/clerk/users/user/sessions").json()
    (name,) = notebook.sessions.names
    assert name == f"@clerk/{session['id']}"
    assert notebook.chat("clerk", name).approve().text == "Anna has her **250 euros**."
    browser.refresh()
    page.until("body", "Anna has her 250 euros.")
    page.picture("dev-ui-approved-in-the-notebook")
