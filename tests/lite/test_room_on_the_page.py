"""What the page keeps small: the memory that notebooks take which nobody runs, and what surrounds a narrow one."""

import pytest
from lite_page import BOOT, LitePage

pytestmark = pytest.mark.lite

COUNTED = """
    window.begun = 0;
    new BroadcastChannel("adk-nb-loading").addEventListener("message", ({ data }) => {
        window.begun += data.text === "Loading Python …";
    });
"""
"""Every page counts the Pythons that begin."""


def test_a_python_begins_for_the_notebook_in_sight_and_for_one_that_is_run(page: LitePage):
    script = page.browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": COUNTED})
    try:
        page.open("00_start_here.ipynb")
        page.run_cell(1, timeout=BOOT)
        for name in ("02_state_and_instructions.ipynb", "01_first_agent.ipynb"):
            page.js("await app.commands.execute('docmanager:open', {path: arguments[0]})", name)
        assert page.js("return window.begun") == 1
        page.path = page.path.with_name("01_first_agent.ipynb")
        page.ready()

        code = page.js("return panel.content.widgets.findIndex((cell) => cell.model.type === 'code')")
        page.run_cell(code, timeout=BOOT)

        assert page.js("return window.begun") == 2
        page.browser.refresh()
        page.ready()
        page.run_cell(code, timeout=BOOT)
        assert page.js("return [...app.shell.widgets('main')].length") == 3
        assert page.js("return window.begun") == 1
    finally:
        page.browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)


def test_a_closed_notebook_gives_its_python_back(page: LitePage):
    page.open("00_start_here.ipynb")
    page.run_cell(1, timeout=BOOT)

    page.js("panel.context.model.dirty = false; panel.close()")

    count = "return [...app.serviceManager.kernels.running()].length"
    page.until(lambda: page.js(count) == 0, "the end of its kernel")


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_a_notebook_has_the_width_of_a_narrow_page(page: LitePage, theme: str):
    try:
        page.resize(390, 800)
        page.open("00_start_here.ipynb")
        width = "return panel?.node.getBoundingClientRect().width ?? 0"
        page.until(lambda: page.js(width) > 360, "a notebook as wide as the page", BOOT)
        page.theme(theme)
        page.screenshot(f"lite-narrow-{theme[11:].lower()}")

        page.resize(1280, 800)

        page.until(lambda: 900 < page.js(width) < 1100, "the files beside a wide notebook")
        page.screenshot(f"lite-wide-{theme[11:].lower()}")
    finally:
        page.theme("JupyterLab Light")
        page.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
