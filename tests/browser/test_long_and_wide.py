"""Answers that are wider or longer than their place: nothing is cut off, in the view and in the saved notebook."""

import pytest
from axe import violations
from chats import SETUP
from lab import Lab, Page
from test_saved_chat import without_its_kernel

pytestmark = pytest.mark.browser

ANSWERS = """
head = " | ".join(f"column {number}" for number in range(30))
row = " | ".join(f"value {number}" for number in range(30))
table = f"| {head} |\\n|{'---|' * 30}\\n| {row} |"
wide = Agent(name="wide", model=ScriptedLlm("a" * 400 + f"\\n\\n{table}\\n\\n    " + "b" * 400))
verses = "\\n\\n".join(f"Verse {number}: " + "and so it goes on, " * 20 for number in range(40))
long = Agent(name="long", model=ScriptedLlm(verses + "\\n\\nThe end."))
short = Agent(name="short", model=ScriptedLlm("Yes."))
"""
HIDDEN = """
    const hidden = [], box = arguments[0].getBoundingClientRect();
    for (const one of arguments[0].querySelectorAll("p, td, pre")) {
        const scroller = one.closest(".adknb-wide, pre");
        const seen = (scroller ?? one).getBoundingClientRect();
        const overflows = one.scrollWidth > one.clientWidth;
        const scrolls = one.matches("pre") ? getComputedStyle(one).overflowX === "auto" : scroller;
        if ((overflows && !scrolls) || seen.right > box.right + 1) hidden.push(one.textContent.slice(0, 20));
    }
    return hidden;
"""
"""What of an element's content neither is within its box nor can be scrolled to."""


def opened(lab: Lab, agent: str) -> Page:
    page = lab.open(lab.write("answers.ipynb", SETUP, ANSWERS, f"%chat {agent} Tell me."))
    page.js("for (const cell of panel.content.widgets) cell.inputHidden = true;")
    for cell in range(3):
        page.run_cell(cell)
    page.wait(".adknb-answered")
    return page


@pytest.mark.browser_all
@pytest.mark.parametrize("width", [1200, 640])
def test_wide_content_is_broken_or_scrolled_and_never_cut_off(lab: Lab, width: int):
    page = opened(lab, "wide")
    page.resize(width, 900)

    assert page.js(HIDDEN, page.wait(".adknb-answered")) == []
    assert page.js(SCROLLS, page.wait(".adknb-answered .adknb-wide")) == "column 29"
    page.screenshot(f"wide-{width}")
    page.click(".adknb-fold")
    assert page.js(HIDDEN, page.wait(".adknb-log")) == []
    assert page.js(SCROLLS, page.wait(".adknb-row .adknb-wide")) == "column 29"


SCROLLS = """
    const scroller = arguments[0];
    scroller.scrollLeft = 1e6;
    const edge = scroller.getBoundingClientRect().right;
    const heads = [...scroller.querySelectorAll("th")];
    return heads.findLast((one) => one.getBoundingClientRect().right <= edge + 1).textContent;
"""
"""The last column that one sees after scrolling all the way."""


def height(page: Page, css: str) -> float:
    return page.js("return arguments[0].offsetHeight", page.wait(css))


def test_a_long_answer_folds_at_a_height_until_all_is_asked_for(lab: Lab):
    page = opened(lab, "long")
    page.resize(1200, 900)

    element = page.wait(".adknb-show-all", "Show all")
    assert height(page, ".adknb-answered") < 500
    page.screenshot("long-folded")
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        page.theme(theme)
        assert violations(page) == [], theme

    element.click()
    page.until(lambda: height(page, ".adknb-answered") > 1500, "the whole answer")
    assert page.wait(".adknb-answered p", "The end.").is_displayed()
    page.click(".adknb-show-all", "Show less")
    page.until(lambda: height(page, ".adknb-answered") < 500, "the folded answer")


@pytest.mark.browser_all
def test_a_short_answer_has_nothing_to_unfold(lab: Lab):
    page = opened(lab, "short")

    assert not [element for element in page.all(".adknb-show-all") if element.is_displayed()]


@pytest.mark.browser_all
def test_the_saved_answer_is_not_cut_off_either(lab: Lab):
    page = opened(lab, "wide")

    without_its_kernel(page)

    page.wait(".jp-OutputArea-output table")
    last = "const cell = [...document.querySelectorAll('section > table td')].at(-1);"
    page.js(f"{last} cell.scrollIntoView({{inline: 'end', block: 'center'}})")
    page.screenshot("wide-saved")
    text = "const {x, y} = cell.getBoundingClientRect(); return document.elementFromPoint(x + 5, y + 5) === cell"
    assert page.js(f"{last} {text}")
