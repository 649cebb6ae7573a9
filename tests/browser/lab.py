"""A real JupyterLab in headless Chromium, for tests that look and click.

Take the fixture `lab` and mark the test `browser`. It gives each test a folder of its own on one shared server:

    @pytest.mark.browser
    def test_the_answer_is_shown(lab: Lab):
        page = lab.open(lab.write("demo.ipynb", "print('hello')", "6 * 7"))   # one code cell per string
        page.run_all()                                   # waits; fails with the traceback if a cell raises
        assert page.text(1) == "42"                      # what stands in the output of a cell
        page.screenshot("demo")                          # build/screenshots/demo.png

- `lab.copy(path)` puts a copy of a notebook from the repository into the folder; `lab.folder` is that folder, and the
  kernels' working directory: a file that appears there is a gate that a cell can wait for.
- `lab.open(path, fresh=True)` loads a new page instead of using that of the last test again.
- `page.run_cell(i, wait=False)` starts a cell and comes back; `page.running(i)` tells whether it is still at work.
- `page.wait(css, text)` waits for an element one can see, `page.gone(css)` for its end, `page.until(what)` for whatever
  you can put in a function. All waits are bounded (`TIMEOUT` seconds) and none is a sleep.
- `page.click(css, text)` and `page.type(css, words)` act like a reader; `page.js(script, *args)` asks the page.
- `page.rows()`, `page.button(label)` and `page.state()` read the live view.
- `page.theme("JupyterLab Dark")`, `page.resize(500, 900)`, `page.reload()`, `page.saved()` (the notebook as saved now).
- `page.alerts()` are the words of every alert, confirm and prompt that any script on the page called: keep it empty.

Nothing of this machine leaks in: the server has a temporary home, configuration and token, and no API key. The browser
speaks to this machine only.
"""

import re
import secrets
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import nbformat
from lab_server import LabServer
from selenium.common.exceptions import (
    ElementClickInterceptedException,
    NoSuchElementException,
    StaleElementReferenceException,
    TimeoutException,
    WebDriverException,
)
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from tests.support.polling import patience

REPOSITORY = Path(__file__).parents[2]
SCREENSHOTS = REPOSITORY / "build" / "screenshots"
TIMEOUT = 30.0
"""Seconds that any one wait may take, on a machine that does nothing else."""
QUIET = 10
"""Seconds after which a kernel that says nothing may have left the page's first words unread."""

_IS_STEADY = """
    arguments[0].scrollIntoView({block: "nearest"});
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    return !arguments[0].closest(".adknb-card, .adknb-approve-all")?.querySelector(".adknb-buttons:disabled");
"""
_ASYNC = """
    const done = arguments[arguments.length - 1];
    const app = window.jupyterapp, panel = app && app.shell.currentWidget;
    (async function () { BODY }).apply(null, arguments).then(
        (value) => done({value}), (error) => done({error: String((error && error.stack) || error)}));
"""
# The command itself ends with the first cell that fails, and the cells behind it go on.
_RUN = """
    window.ran = false;
    const app = window.jupyterapp, book = app.shell.currentWidget.content, cells = book.widgets;
    // Here, and not before: what ended last may take the focus, and a command runs the active cell.
    if (arguments[1].length === 1) { book.deselectAll(); book.activeCellIndex = arguments[1][0]; }
    const ended = () => Promise.allSettled(arguments[1].map((index) => cells[index].outputArea?.future?.done));
    app.commands.execute(arguments[0]).then(ended, ended).finally(() => { window.ran = true; });
"""
# ipykernel 7.0 to 7.3 can leave a page's first words unread until another page connects, as people's next one does:
# https://github.com/ipython/ipykernel/issues/1554
_SECOND_PAGE = """
    const { id, name, serverSettings } = panel.sessionContext.session.kernel;
    if (name !== "ipykernel-7.3") return;
    const { wsUrl, token } = serverSettings;
    const other = new WebSocket(`${wsUrl}api/kernels/${id}/channels?token=${token}`);
    await new Promise((heard) => { other.onopen = heard; });
    other.close();
"""
# A page draws plain text some frames after the kernel's word for the end of the cell.
_DRAWN = """
    const { outputArea } = panel.content.widgets[arguments[0]];
    return !outputArea || outputArea.model.toJSON().every((output, place) => {
        const data = output.data || { "text/plain": output.text };
        const [words, ...forms] = Object.entries(data).map(([_, text]) => [text].flat().join(""));
        const node = outputArea.widgets[place]?.node.querySelector(".jp-OutputArea-output");
        return forms.length || !("text/plain" in data) || !words.trim() || (node && node.innerText.trim());
    });
"""
_EMPTY = """
    const app = window.jupyterapp;
    if (!app || document.querySelector(".jp-Dialog")) return false;
    for (const widget of [...app.shell.widgets("main")]) widget.dispose();
    window.alerts = [];
    return true;
"""
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_NO_ELEMENT = (NoSuchElementException, StaleElementReferenceException)
T = TypeVar("T")


class Lab:
    """What a test is handed: a folder of its own, and pages that show the notebooks in it."""

    def __init__(self, server: LabServer, browser: Chrome, folder: Path) -> None:
        self.server, self.browser, self.folder = server, browser, folder

    def write(self, name: str, *cells: str, kernel: str = "") -> Path:
        """A new notebook of code cells. `kernel`: the version of another ipykernel, of `build/kernels`."""
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in cells])
        spec = {
            "name": f"ipykernel-{kernel}" if kernel else "python3",
            "display_name": "Python 3",
            "language": "python",
        }
        notebook.metadata["kernelspec"] = spec
        path = self.folder / name
        nbformat.write(notebook, path)
        return path

    def copy(self, source: Path | str) -> Path:
        """A copy of a notebook of the repository (a path from its root), in the folder of this test."""
        return Path(shutil.copy(REPOSITORY / source, self.folder))

    def open(self, path: Path, *, fresh: bool = False) -> "Page":
        """Show a notebook alone on the page, with a new kernel that is ready.

        The page of the last test is used again, emptied; `fresh` loads a new one, which takes seconds.
        """
        self.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        inside, page = path.relative_to(self.server.root), Page(self, path)
        if fresh or not self._emptied():
            query = f"token={self.server.token}&reset"
            self.browser.get(f"{self.server.url}/doc/workspaces/{secrets.token_hex(4)}/tree/{inside}?{query}")
        else:
            page.theme("JupyterLab Light")
            page.js("await app.commands.execute('docmanager:open', {path: arguments[0]})", str(inside))
        page.ready()
        page.complaints()  # of the page before
        return page

    def close(self) -> None:
        """Close what is open, unsaved, and end the kernels."""
        self._emptied()
        self.server.end_kernels()

    def _emptied(self) -> bool:
        """Whether a lab is on the page, now without documents."""
        return self.browser.execute_script(_EMPTY)


class Page:
    """One notebook in JupyterLab. Cells are counted from 0."""

    def __init__(self, lab: Lab, path: Path) -> None:
        self.lab, self.path, self.browser = lab, path, lab.browser

    # -- waiting

    def until(self, condition: Callable[[], T], reason: str = "", timeout: float = TIMEOUT) -> T:
        """Call `what` until it is true or `timeout` seconds are over, more on a busy machine; its last answer."""
        timeout = patience(timeout)
        pending_wait = WebDriverWait(self.browser, timeout, poll_frequency=0.05, ignored_exceptions=_NO_ELEMENT)
        try:
            return pending_wait.until(lambda _: condition())  # type: ignore[return-value]
        except TimeoutException:
            self.screenshot("timeout")
            raise AssertionError(
                f"waited {timeout:.0f} s in vain for {reason or condition}; see {SCREENSHOTS}/timeout.png"
            ) from None

    def wait(self, css: str, text: str | None = None, timeout: float = TIMEOUT) -> WebElement:
        """The first element that one can see and whose text contains `text`."""

        def visible_element() -> WebElement | None:
            elements = (item for item in self.all(css) if item.is_displayed() and (text is None or text in item.text))
            return next(elements, None)

        element = self.until(visible_element, f"{css} {text or ''}", timeout)
        assert element is not None
        return element

    def gone(self, css: str, timeout: float = TIMEOUT) -> None:
        self.until(lambda: not any(element.is_displayed() for element in self.all(css)), f"the end of {css}", timeout)

    # -- asking

    def all(self, css: str) -> list[WebElement]:
        return self.browser.find_elements(By.CSS_SELECTOR, css)

    def js(self, script: str, *args: Any) -> Any:
        """What `script`, the body of an async function, returns; `panel` is the open notebook, `app` the lab."""
        outcome = self.browser.execute_async_script(_ASYNC.replace("BODY", script), *args)
        assert "error" not in outcome, outcome["error"]
        return outcome.get("value")

    def alerts(self) -> list[str]:
        return self.browser.execute_script("return window.alerts")

    def complaints(self) -> list[str]:
        """What scripts wrote to the console as errors since the notebook was opened, or this was last asked."""
        return [entry["message"] for entry in self.browser.get_log("browser") if entry["level"] == "SEVERE"]

    # -- acting

    def click(self, css: str, text: str | None = None) -> WebElement:
        """Click what `wait` finds, once it has come to rest."""

        def clicked() -> WebElement | None:
            element = self.wait(css, text)
            in_card = "return arguments[0].closest('.adknb-card') !== null"  # asked in frames without scripts, too
            if self.browser.execute_script(in_card, element) and not self.js(_IS_STEADY, element):
                return None
            try:
                element.click()
            except (ElementClickInterceptedException, StaleElementReferenceException):
                return None
            return element

        element = self.until(clicked, f"a click on {css}")
        assert element is not None
        return element

    def type(self, css: str, text: str) -> None:
        """Replace what stands in an input."""
        self.wait(css).send_keys(Keys.CONTROL, "a", Keys.NULL, text)

    def ready(self) -> None:
        """Wait until the notebook is shown and its kernel answers."""
        script = """
            const kernel = panel && panel.sessionContext && panel.sessionContext.session
                && panel.sessionContext.session.kernel;
            return Boolean(kernel && kernel.status !== "unknown" && kernel.status !== "starting"
                && panel.content.widgets.length && panel.context.isReady);"""

        unread_after = time.monotonic() + QUIET

        def up() -> bool:
            try:
                if time.monotonic() > unread_after:
                    self.js(_SECOND_PAGE)
                return bool(self.js(script))
            except (WebDriverException, AssertionError):  # the page is still being replaced
                return False

        self.until(up, "the notebook and its kernel")

    def run_all(self, *, wait: bool = True, allow_errors: bool = False, timeout: float = TIMEOUT) -> None:
        """Run every cell; `wait=False` comes back at once, `timeout` bounds the whole run."""
        cells = range(self.js("return panel.content.widgets.length"))
        self._run("notebook:run-all-cells", cells, wait, allow_errors, timeout)

    def run_cell(self, index: int, *, wait: bool = True, allow_errors: bool = False, timeout: float = TIMEOUT) -> None:
        """Run one cell, as `run_all` does."""
        self._run("notebook:run-cell", [index], wait, allow_errors, timeout)
        if wait:
            self.until(lambda: self.js(_DRAWN, index), "the words that the cell shows")

    def _run(self, command: str, cells: Sequence[int], wait: bool, allow_errors: bool, timeout: float) -> None:
        self.browser.execute_script(_RUN, command, list(cells))
        if not wait:
            return
        self.until(lambda: self.js("return window.ran"), "the end of the cells", timeout)
        self.until(lambda: self.js("return panel.sessionContext.session.kernel.status") == "idle", "an idle kernel")
        errors = [output for index in cells for output in self.outputs(index) if output["output_type"] == "error"]
        assert allow_errors or not errors, _ANSI.sub("", "\n".join(errors[0]["traceback"]))

    def running(self, index: int) -> bool:
        """Whether a cell is being executed, or is queued."""
        return "*" in self.js(
            "const prompt = panel.content.widgets[arguments[0]].node.querySelector('.jp-InputPrompt');"
            "return prompt ? prompt.textContent : ''",
            index,
        )

    def outputs(self, index: int) -> list[dict[str, Any]]:
        """The outputs of a cell as they would be saved."""
        return self.js(
            "const out = panel.content.widgets[arguments[0]].model.outputs; return out ? out.toJSON() : []", index
        )

    def text(self, index: int) -> str:
        """What one reads in the output area of a cell."""
        script = """const cell = panel.content.widgets[arguments[0]].node;
            return [...cell.querySelectorAll('.jp-OutputArea-output')].map((one) => one.innerText).join('\\n')"""
        return self.js(script, index).strip()

    def save(self) -> None:
        self.js("await app.commands.execute('docmanager:save'); await panel.context.ready;")

    def saved(self) -> Any:
        """Save, and read the notebook back from its file."""
        self.save()
        return nbformat.read(self.path, as_version=4)

    def reload(self) -> None:
        """Save and load the page again; the kernel lives on."""
        self.save()
        self.browser.refresh()
        self.ready()
        self.js(_SECOND_PAGE)

    # -- looking

    def theme(self, name: str) -> None:
        """For instance `JupyterLab Dark`; `JupyterLab Light` is there at the start."""
        self.js("await app.commands.execute('apputils:change-theme', {theme: arguments[0]})", name)
        self.until(lambda: self.js("return document.body.dataset.jpThemeName") == name, name)
        self.gone("#jupyterlab-splash")

    def scroll_to(self, css: str) -> None:
        """Bring the first element one can see to the middle of the page."""
        self.js("arguments[0].scrollIntoView({block: 'center'})", self.wait(css))

    def resize(self, width: int, height: int) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.until(lambda: self.js("return innerWidth") == width, f"a width of {width}")

    def screenshot(self, name: str) -> Path:
        """Write what one sees to `build/screenshots/NAME.png`."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        path = SCREENSHOTS / f"{name}.png"
        path.write_bytes(self.browser.get_screenshot_as_png())
        return path

    # -- the live view

    def rows(self) -> list[tuple[str, str]]:
        """Author and words of each event row on the page, in order."""
        script = """return [...document.querySelectorAll('.adknb-row')].map(
            (row) => ['.adknb-author', '.adknb-what'].map((part) => row.querySelector(part).innerText.trim()))"""
        return [(author, text) for author, text in self.js(script)]

    def talk(self) -> list[tuple[str, str]]:
        """Who says what in a chat box, in order; `you` for messages, the name as it stands above the bubble else."""
        script = """
            let who = "";
            const said = [...document.querySelectorAll('.adknb-talk-mine, .adknb-talk-part')];
            return said.filter((node) => !node.closest('[hidden]')).map((node) => {
                const mine = node.matches('.adknb-talk-mine, [data-kind="mine"]');
                const name = node.querySelector('.adknb-talk-head:not([hidden]) b')?.textContent;
                if (!mine && name) who = name;
                const text = node.querySelector('.adknb-talk-text') ?? node;
                const drawn = text.checkVisibility({contentVisibilityAuto: true}); // what is out of sight is not
                return [mine ? name ?? 'you' : who, (drawn ? text.innerText : text.textContent).trim()];
            });"""
        return [(who, text) for who, text in self.js(script)]

    def state(self) -> list[str]:
        """The lines of the state pane, such as `~ calls 1 → 2`."""
        script = """return [...document.querySelectorAll('.adknb-state .adknb-entry')].map((entry) =>
            [entry.dataset.mark, ...['.adknb-key', '.adknb-value'].map((part) => entry.querySelector(part).innerText)]
                .filter(Boolean).join(' '))"""
        return self.js(script)

    def button(self, label: str) -> WebElement:
        """The button of the live view that says exactly `label`, in sight and not off for a moment."""
        return self.steady(
            lambda: next((element for element in self.all(".adknb-button") if element.text == label), None), label
        )

    def steady(self, find: Callable[[], WebElement | None], label: str) -> WebElement:
        """A button in sight, and on: a card that has just come or moved, also by scrolling, has them off a while."""

        def found() -> WebElement | None:
            element = find()
            return element if element and self.js(_IS_STEADY, element) else None

        element = self.until(found, f"a button {label} that is on")
        assert element is not None
        return element

    def cards_are_on(self) -> None:
        """Wait until no card has its buttons off because it came or moved."""
        script = """
            await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
            return document.querySelector(".adknb-buttons:disabled") === null;
        """
        self.until(lambda: self.js(script), "the cards to be on")
