"""Answers as markup in a real page: formulas that the page draws, and words that are rendered while they stream."""

import pytest
from chats import SETUP
from lab import Lab, Page
from test_saved_chat import without_its_kernel

pytestmark = [pytest.mark.browser, pytest.mark.browser_all]

FORMULAS = r"""
answer = r'''The root $x = \frac{-b}{2a}$ and \(e^{i\pi} = -1\):

$$
\int_0^1 x^2\,dx = \frac13
$$

It costs $5 and $10. $\href{javascript:alert(1)}{x}$'''
maths = Agent(name="maths", model=ScriptedLlm(answer))
"""
DRAWN = (
    """return [...document.querySelectorAll(arguments[0] + " mjx-container")].filter((one) => one.offsetWidth).length"""
)


def drawn(page: Page, css: str) -> None:
    """Wait until the page has drawn the three formulas, and see that nothing else became one."""
    page.until(lambda: page.js(DRAWN, css) >= 3, "the formulas")
    assert page.js(DRAWN, css) == 3
    assert "It costs $5 and $10." in page.wait(css).text
    assert page.js("return document.querySelectorAll(arguments[0] + ' a').length", css) == 0
    assert page.alerts() == []


def test_formulas_are_drawn_folded_in_the_log_and_in_the_saved_notebook(lab: Lab):
    page = lab.open(lab.write("maths.ipynb", SETUP, FORMULAS, "%chat maths Tell me."))
    page.js("for (const cell of panel.content.widgets) cell.inputHidden = true;")
    for cell in range(3):
        page.run_cell(cell)

    drawn(page, ".adknb-answered")
    page.screenshot("formulas")
    page.click(".adknb-fold")
    drawn(page, ".adknb-log")
    page.screenshot("formulas-log")

    [saved] = [output for output in page.saved().cells[2].outputs if "text/markdown" in output.get("data", {})]
    assert r"$x = \frac{-b}{2a}$ and $e^{i\pi} = -1$" in saved.data["text/markdown"]
    assert "$$\\int_0^1 x^2\\,dx = \\frac13$$" in saved.data["text/markdown"]
    without_its_kernel(page)
    drawn(page, ".jp-OutputArea-output section")
    page.screenshot("formulas-saved")


PIECES = r"""
from adk_nb import types
from adk_nb.models import BaseLlm, LlmResponse

class Slow(BaseLlm):
    'Streams a piece whenever there is a go.'
    async def generate_content_async(self, llm_request, stream=False):
        said = ""
        for number, piece in enumerate(pieces):
            said += piece
            yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=piece)]), partial=True)
            while not pathlib.Path(f"go{number}").exists():
                await asyncio.sleep(0.02)
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=said)]))

pieces = ["# Title\n\nIt is **bo", "ld** and $x_1 = ", "2$.\n\n| a | b", " |\n|---|---|\n| 1 | 2 |\n\nEnd."]
slow = Agent(name="slow", model=Slow(model="slow"))
"""
WATCH = """
    window.seen = [];
    const log = document.querySelector(".adknb-log");
    new MutationObserver(() => requestAnimationFrame(() => window.seen.push(log.innerText)))
        .observe(log, {childList: true, subtree: true, characterData: true});
    const first = log.querySelector(".adknb-growing h4");
    window.first = first;
"""


def test_streaming_words_are_rendered_as_they_come_and_what_is_complete_stays(lab: Lab):
    page = lab.open(lab.write("stream.ipynb", SETUP, PIECES, "%chat slow Tell me."))
    page.js("for (const cell of panel.content.widgets) cell.inputHidden = true;")
    page.theme("JupyterLab Dark")
    page.run_cell(0)
    page.run_cell(1)
    page.run_cell(2, wait=False)

    page.wait(".adknb-growing strong", "bo")
    assert page.wait(".adknb-growing h4", "Title")
    page.js(WATCH)
    (lab.folder / "go0").touch()
    page.wait(".adknb-growing strong", "bold")
    assert "$" not in page.wait(".adknb-growing").text
    (lab.folder / "go1").touch()
    page.until(lambda: page.js(DRAWN, ".adknb-growing") == 1, "the formula")
    page.wait(".adknb-growing th", "b")
    page.screenshot("streaming")
    assert page.js("return window.first.isConnected"), "what was complete was drawn again"
    (lab.folder / "go2").touch()
    page.wait(".adknb-growing p", "End.")
    assert [cell.text for cell in page.all(".adknb-growing td")] == ["1", "2"]
    (lab.folder / "go3").touch()
    page.until(lambda: not page.running(2))

    page.wait(".adknb-answered table")
    log = page.js("return window.seen")
    assert len(log) >= 4
    assert not [item for item in log if "**" in item or "|" in item or "# " in item]
    assert not page.all(".adknb-log .adknb-caret")


ROOM = """
    const list = document.querySelector(".jp-RenderedHTML ol"), style = getComputedStyle(list);
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = style.font;
    return [parseFloat(style.paddingLeft), pen.measureText("1050. ").width];
"""


def test_the_number_that_a_line_of_the_saved_notebook_begins_with_is_not_cut_off(lab: Lab):
    counting = 'counter = Agent(name="counter", model=ScriptedLlm("1050. That is the count."))'
    page = lab.open(lab.write("numbers.ipynb", SETUP, counting, "%chat --static counter Count."))
    for cell in range(3):
        page.run_cell(cell)

    page.wait(".jp-RenderedHTML ol", "That is the count.")
    package, claimed = page.js(ROOM)
    assert package > claimed
