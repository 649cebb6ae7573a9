"""The card of code that an agent wants to run in the notebook's kernel."""

import pytest
from chats import SETUP
from lab import Lab

pytestmark = pytest.mark.browser

FIRST = """
months = [*days]
rates = {kind: [round(n / days[month], 1) for n, month in zip(counts, months)] for kind, counts in sold.items()}
rates  # by the day
""".strip()
WHY = "To compare the months by the day, as March had fewer open days"
SECOND = """
import matplotlib.pyplot as plt
figure, axes = plt.subplots(figsize=(4, 2))
axes.bar(months, rates['bread'])
None
""".strip()
DATA = "days = {'January': 26, 'March': 17}\nsold = {'bread': [2340, 1530]}"


def agent() -> str:
    calls = f"call('run_code', code={FIRST!r}, why={WHY!r}), call('run_code', code={SECOND!r}, why='To draw it')"
    return f"model = ScriptedLlm({calls}, 'Here it is.', call('run_code', code='x = 1', why='Again'), 'Done.')"


def test_code_is_shown_in_colours_and_one_click_allows_the_turn(lab: Lab):
    cells = (
        SETUP,
        DATA,
        agent(),
        "%%agent analyst -m model --notebook\nHelp.",
        "%chat analyst Why?",
        "%chat analyst More?",
    )
    page = lab.open(lab.write("code.ipynb", *cells))
    for cell in range(5):
        page.run_cell(cell)
    page.wait(".adknb-card")
    page.scroll_to(".adknb-card")

    shown = page.js("return document.querySelector('.adknb-card .adknb-source').textContent")
    assert shown == FIRST
    assert page.js("return document.querySelectorAll('.adknb-card .adknb-source [class*=code-]').length") > 3
    buttons = page.js("return [...document.querySelectorAll('.adknb-card button')].map((each) => each.textContent)")
    assert buttons == ["Run", "Edit…", "Reject…", "Run, and allow the rest of this turn"]
    page.screenshot("code-card")
    page.button("Edit…").click()
    page.screenshot("code-card-edit")
    page.button("Back").click()
    page.theme("JupyterLab Dark")
    page.screenshot("code-card-dark")
    page.resize(390, 844)
    page.scroll_to(".adknb-card")
    page.screenshot("code-card-narrow")
    page.resize(1200, 900)
    page.theme("JupyterLab Light")

    page.button("Run, and allow the rest of this turn").click()
    page.until(lambda: "Here it is." in page.text(4), "the reply")

    assert "for the rest of this turn" in page.text(4)
    assert "runs unasked" in page.text(4)
    page.scroll_to(".jp-Cell:nth-child(5)")
    page.screenshot("code-ran")
    page.run_cell(5)
    page.until(lambda: "Run" in page.text(5), "a card of the next turn")
    assert page.complaints() == []
