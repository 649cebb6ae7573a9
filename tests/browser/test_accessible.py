"""The live view for those who cannot see it or have no mouse: axe-core on panels and cards, keys, announcements."""

import json
from typing import Any

import pytest
from axe import violations
from chats import SETUP
from hand_made import CARD, ops, story
from hand_made import SETUP as VIEW
from hands import OUTSIDE
from lab import Lab, Page
from selenium.webdriver import ActionChains, Keys

pytestmark = pytest.mark.browser

NESTED = {
    "type": "object",
    "properties": {
        "to": {"type": "object", "properties": {"city": {"type": "string"}, "zip": {"type": "integer"}}},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "description": "what it is for"},
    },
}
CARDS = [
    {**CARD, "id": "deep", "schema": NESTED, "args": {"to": {"city": "Oslo", "zip": 150}, "note": "late"}},
    {"id": "in", "kind": "credential", "agent": "a", "tool": "mail", "needs": "a key", "how": "_run.submit()"}
    | {"fields": [{"label": "key", "hint": "it is kept nowhere", "secret": True}], "link": "https://example.org/"},
    {"id": "e", "kind": "error", "agent": "a", "title": "KeyError: 'budget'", "where": "In[1] line 2"}
    | {"traceback": "Traceback:\n  In[1] line 2", "ways": ["retry", "drop"]},
    {"id": "w", "kind": "wait", "title": "gemini-2.5-flash is busy", "hint": "HTTP 429", "seconds": 300},
    {**CARD, "id": "was", "state": "edited", "note": "amount 250 → 100"},
]
LANES = [{"id": text, "name": text, "label": text, "state": now} for text, now in (("a", "now"), ("b", "failed"))]
FAILURE = {
    "tool": "get_weather",
    "arguments": [{"name": "city", "text": '"Osl"'}],
    "where": "In[1] line 3",
    "sent": "{}",
    "traceback": "T",
}


def everything() -> list[dict[str, Any]]:
    """A run with every kind of row and card, and two that work at once."""
    return [
        *story(),
        {"op": "patch", "id": "r5", "ok": False, "failure": FAILURE},
        *({"op": "lane", "lane": lane} for lane in LANES),
        *({"op": "card", "card": card} for card in CARDS),
    ]


def opened(page: Page) -> None:
    """Open what can be opened on the cards."""
    for element in page.all(".adknb-card[data-card='deep'] .adknb-edit, .adknb-card[data-card='c1'] .adknb-reject"):
        element.click()
    page.button("Show traceback").click()


@pytest.mark.browser_all
def test_every_card_and_row_is_accessible_in_both_themes(lab: Lab):
    page = lab.open(lab.write("view.ipynb", VIEW, ops(*everything())))
    for cell in (0, 1):
        page.run_cell(cell)
    page.wait(".adknb-card[data-card='w']")
    opened(page)

    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        page.theme(theme)
        page.screenshot(f"cards-{theme.split()[1].lower()}")
        assert violations(page) == [], theme


TALKER = """
from adk_nb import types

@tool
async def split(bill: float, people: int, tool_context) -> float:
    'Splits a bill.'
    table = types.Part.from_bytes(data=b"who,owes\\nAda,3\\n", mime_type="text/csv")
    await tool_context.save_artifact("bill.csv", table)
    return bill / people

model = ScriptedLlm(call("split", bill=9.0, people=0), "I could **not** split it.", RuntimeError("the service is down"))
waiter = Agent(name="waiter", description="Brings bills.", model=ScriptedLlm())
talker = Agent(name="talker", model=model, tools=[split], output_key="said", sub_agents=[waiter])
"""


@pytest.mark.browser_all
def test_every_panel_and_the_chat_box_are_accessible_in_both_themes(lab: Lab):
    page = lab.open(lab.write("panels.ipynb", SETUP, TALKER, "%chat talker Split 9.", "%chat talker"))
    for cell in range(4):
        page.run_cell(cell)
    page.wait(".adknb-say").send_keys("And now?", Keys.ENTER)
    page.wait(".adknb-card[data-kind='error']", "the service is down")
    page.wait(".adknb-fold", "Details").click()

    tabs = {tab.text: tab for tab in page.all(".adknb-root")[0].find_elements("css selector", ".adknb-tab") if tab.text}
    assert list(tabs) == ["Events", "Waterfall", "State", "Graph", "Prompt", "Artifacts"]
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        page.theme(theme)
        for name, tab in tabs.items():
            tab.click()
            page.until(lambda tab=tab: tab.get_attribute("aria-selected") == "true", name)
            assert violations(page) == [], f"{name}, {theme}"
        page.screenshot(f"panels-{theme.split()[1].lower()}")
    assert page.complaints() == []


def focused(page: Page) -> str:
    return page.js("const at = document.activeElement; return at.getAttribute('aria-label') || at.textContent.trim()")


def test_keys_lead_through_the_view_and_sentences_are_announced(lab: Lab):
    text = {"op": "append", "row": {"id": "s", "author": "weather", "kind": "text"}}
    pieces = ["Paris is", " warm. It", " is 21", " degrees there."]
    cell = ops({"op": "status", "status": "running", "text": ""}, text)
    output = "import time\n" + "\n".join(
        f"view.push({{'op': 'text', 'id': 's', 's': {piece!r}}}); view.flush()" for piece in pieces
    )
    page = lab.open(lab.write("view.ipynb", VIEW, cell, output, ops(*story()), "print(json.dumps(answers))"))
    announced = "return [...document.querySelectorAll('.adknb-hidden[aria-live] > *')].map((one) => one.textContent)"
    for number in (0, 1, 2):
        page.run_cell(number)
    page.until(lambda: page.js(announced) == ["weather: Paris is warm."], "the first sentence alone")

    page.run_cell(3)
    page.wait(".adknb-card")
    message = page.js(announced)
    assert message[:1] == ["weather: Paris is warm."]
    assert "weather calls get_weather" in message
    assert 'get_weather is done: {"temp_c": 21}' in message
    assert any(
        item.startswith("planner asks to call refund")
        for item in [
            page.js("return document.querySelector('.adknb-hidden[role=status]').textContent.trim().replace('⚠ ', '')")
        ]
    )
    assert page.js(OUTSIDE), "the card stole the focus"

    keys = ActionChains(page.browser)
    page.click(".adknb-row[data-id='r2'] .adknb-author")
    keys.send_keys("/").perform()
    assert focused(page) == "Filter the events"
    keys.send_keys("osl").perform()
    page.until(lambda: len([row for row in page.all(".adknb-row") if row.is_displayed()]) < 6, "fewer rows")
    keys.send_keys(Keys.ESCAPE).perform()
    page.click(".adknb-row[data-id='r2'] .adknb-author")
    keys.send_keys("s").perform()
    assert focused(page) == "State"
    keys.send_keys(Keys.ESCAPE).perform()
    assert page.js(OUTSIDE)
    assert json.loads((page.run_cell(4), page.text(4))[1]) == []
