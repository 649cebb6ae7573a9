"""The panels of a live view in a real page: looked at, typed into, gone back from; light, dark and narrow."""

import json
from pathlib import Path

import pytest
from hands import OUTSIDE
from lab import Lab, Page
from selenium.webdriver import ActionChains, Keys

pytestmark = pytest.mark.browser

CONTRAST = Path(__file__).with_name("contrast.js").read_text()
SETUP = """
%load_ext adk_nb
from adk_nb import types
from adk_nb.agents import Agent
from adk_nb.models import ScriptedLlm, call

def get_weather(city: str, tool_context) -> dict:
    '''The weather of a city.'''
    tool_context.state["last_city"] = city
    return {"temp_c": 9, "sky": "clear"}

async def keep(tool_context) -> str:
    '''Save a forecast.'''
    table = types.Part.from_bytes(data=b"city,today\\nOslo,9\\n", mime_type="text/csv")
    await tool_context.save_artifact("forecast.csv", table)
    return "saved"

asked = [call("transfer_to_agent", agent_name="weather")]
told = [[call("get_weather", city="Oslo"), call("keep")], ["It is ", "**9** degrees."], "Colder."]
weather = Agent(name="weather", model=ScriptedLlm(*told), tools=[get_weather, keep],
    instruction="Answer {user:name}, who has {budget} euros.")
planner = Agent(name="planner", model=ScriptedLlm(*asked, *asked), sub_agents=[weather])
"""
OWN = """
from adk_nb.panels import Panel, register
register(Panel(name="words", title="Words",
    data=lambda run, id: [f"{event.author}: {len(event.text.split())} {id}" for event in run.events if event.text],
    module='''export default {
        render(root, data, view) {
            const line = (textContent) => Object.assign(document.createElement("p"), { textContent });
            root.replaceChildren(...data.map(line));
            view.need("more").then((lines) => (root.title = lines[0]));
        },
    };'''))
"""
STATE = '%state budget=400 user:name="Ada"'
NOW = "%state --json"


def over(lab: Lab) -> Page:
    """A page with a run that is over; the cell after it shows the state, the last one the sessions."""
    page = lab.open(lab.write("panels.ipynb", SETUP + OWN, STATE, "%chat planner Is it warm in Oslo?", NOW, "%session"))
    for cell in range(3):
        page.run_cell(cell)
    page.js("for (const cell of [0, 1, 2]) panel.content.widgets[cell].inputHidden = true;")
    page.wait(".adknb-summary", "It is 9 degrees.")
    return page


def unfold(page: Page) -> None:
    page.click(".adknb-fold")
    page.wait(".adknb-tab", "Events")


def tab(page: Page, label: str) -> None:
    page.click(".adknb-tab", label)


def tabs(page: Page) -> list[str]:
    return [element.text for element in page.all(".adknb-tab") if element.is_displayed()]


def test_every_panel_is_told_what_it_shows_when_it_is_opened(lab: Lab):
    page = over(lab)
    assert tabs(page) == []
    unfold(page)
    assert tabs(page) == ["Events", "Waterfall", "State", "Graph", "Prompt", "Artifacts", "Words"]

    tab(page, "Waterfall")
    page.until(
        lambda: len(page.all(".adknb-bars [data-kind=tool]")) == 2, "a bar for each call, and none for a transfer"
    )
    received = page.js(
        "return [...document.querySelectorAll('.adknb-root [aria-live]')].map((one) => one.textContent).join()"
    )
    assert "transfer_to_agent" not in received and "transfer to weather" in received
    page.click(".adknb-twin-table summary")
    page.wait(".adknb-twin-table td", "get_weather")
    tab(page, "Graph")
    page.wait(".adknb-graph .adknb-picture rect[data-mark=was]")
    tab(page, "Prompt")
    page.wait(".adknb-same", "as in model call 2: system instruction, tools, the first")
    page.js(
        "const which = document.querySelector('.adknb-prompt-head select');"
        "which.value = '1'; which.dispatchEvent(new Event('change'));"
    )
    page.wait(".adknb-put", "400")
    page.wait(".adknb-put", "Ada")
    page.wait(".adknb-source", "{user:name}")
    tab(page, "Artifacts")
    page.wait(".adknb-artifact td", "Oslo")
    tab(page, "Words")
    page.wait(".adknb-words p", "weather: 4")
    page.until(lambda: page.all("[title='user: 5 more']"), "what the panel needed by an id")
    tab(page, "Events")
    page.wait(".adknb-row")

    page.click(".adknb-row .adknb-what", "get_weather")
    page.wait(".adknb-detail .adknb-branch summary", "event 2")
    page.type(".adknb-filter", "keep()")
    page.wait(".adknb-found", "1 of")
    assert [row.text for row in page.all(".adknb-row .adknb-author") if row.is_displayed()] == ["weather"]
    page.type(".adknb-filter", Keys.BACKSPACE)

    page.wait(".adknb-tab").send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    page.wait(".adknb-tab[aria-selected=true]", "State")
    assert page.js("return document.activeElement.textContent") == "State"
    ActionChains(page.browser).send_keys(Keys.ESCAPE).perform()
    assert page.js(OUTSIDE)


@pytest.mark.browser_all
def test_the_state_is_edited_where_it_stands_and_a_value_that_cannot_be_is_refused_there(lab: Lab):
    page = over(lab)
    unfold(page)
    tab(page, "State")

    page.click("[aria-label='Edit budget']")
    page.type(".adknb-key-form .adknb-input", "[1, ")
    page.click(".adknb-key-form .adknb-go")
    page.wait(".adknb-key-form .adknb-problem", "begins like JSON, but is not valid")
    page.type(".adknb-key-form .adknb-input", "[1, 2]")
    ActionChains(page.browser).send_keys(Keys.ENTER).perform()
    page.wait(".adknb-key-row[data-mark='~'] .adknb-value", "[1, 2]")
    page.button("Add a key").click()
    page.type("[aria-label^='Key']", "user:city")
    page.type("[aria-label^='Value']", "Bergen")
    page.click(".adknb-key-form .adknb-go")
    page.wait(".adknb-key-row .adknb-value", '"Bergen"')
    page.click("[aria-label='Delete last_city']")
    page.until(lambda: not page.all("[aria-label='Delete last_city']"), "the end of the key")

    page.run_cell(3)
    assert json.loads(page.text(3)) == {"budget": [1, 2], "user:name": "Ada", "user:city": "Bergen"}


@pytest.mark.browser_all
def test_a_run_is_asked_again_from_an_event_in_a_copy_and_no_view_is_in_the_file(lab: Lab):
    page = over(lab)
    unfold(page)
    page.click(".adknb-row .adknb-what", "Is it warm in Oslo?")

    page.button("Rerun from here").click()

    page.until(
        lambda: len([element for element in page.all(".adknb-summary") if "Colder." in element.text]) == 1, "the answer"
    )
    page.wait(".adknb-notice", "asked again in session 'main-2', a copy")
    page.run_cell(4)
    assert "main-2" in page.text(4)
    stored_data = [sorted(output.data) for output in page.saved().cells[2].outputs]
    assert stored_data.count(["text/html", "text/markdown", "text/plain"]) == 2
    assert not [forms for forms in stored_data if any("widget" in form for form in forms)]


@pytest.mark.browser_all
@pytest.mark.parametrize(("theme", "width"), [("Light", 1280), ("Dark", 1280), ("Light", 640), ("Dark", 640)])
def test_every_panel_is_readable(lab: Lab, theme: str, width: int):
    page = over(lab)
    page.theme(f"JupyterLab {theme}")
    page.resize(width, 900)
    log: list[str] = []
    unfold(page)
    for label in tabs(page):
        tab(page, label)
        page.wait(".adknb-tab[aria-selected=true]", label)
        page.screenshot(f"panel-{label.lower()}-{theme.lower()}-{width}")
        log += page.js(CONTRAST)
        wide = "const root = document.querySelector('.adknb-root'); return root.scrollWidth - root.clientWidth"
        assert page.js(wide) == 0
    small = """return [...document.querySelectorAll('.adknb-root button, .adknb-root input, .adknb-root select')]
        .filter((one) => one.offsetParent && (one.offsetHeight < 24 || one.offsetWidth < 24))
        .map((one) => one.outerHTML)"""
    assert log == [] and page.js(small) == []
