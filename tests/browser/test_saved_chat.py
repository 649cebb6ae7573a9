"""What is left of a conversation: after a reload, after the kernel, and of words that want to be more than words."""

import json

import pytest
from chats import ASK, NOTES, PAYING, SETUP, hostile_cells
from lab import Lab, Page

from tests.support.hostile_texts import assert_harmless, assert_nothing_unseen
from tests.support.late import late

nbconvert = late("nbconvert")

pytestmark = pytest.mark.browser


def run(page: Page, *cells: int) -> None:
    for cell in cells:
        page.run_cell(cell)


def without_its_kernel(page: Page) -> None:
    """Save, restart the kernel, and load the page again."""
    page.save()
    page.js("await panel.sessionContext.session.kernel.restart()")
    page.reload()


def test_replies_are_read_after_a_reload_without_their_kernel(lab: Lab):
    talker = "talker = Agent(name='talker', model=ScriptedLlm('It is **this**.'))"
    page = lab.open(lab.write("chat.ipynb", SETUP, talker, "%chat talker What is it?", PAYING, ASK))
    run(page, 0, 1, 2, 3, 4)
    page.wait(".adknb-card")

    without_its_kernel(page)

    page.until(lambda: page.text(2).startswith("It is this."), "the saved reply")
    assert "widget" not in page.text(2)
    assert page.js("return panel.content.widgets[2].node.querySelectorAll('strong').length") == 1
    page.until(lambda: "Asks for approval:" in page.text(4), "the saved reply that waits")
    assert 'refund(order="A17", amount=250.0)' in page.text(4)
    saved = [output.data for output in page.saved().cells[2].outputs]
    assert [sorted(data) for data in saved] == [["text/html", "text/markdown", "text/plain"]]


@pytest.mark.browser_all
def test_a_card_still_works_after_a_reload(lab: Lab):
    page = lab.open(lab.write("chat.ipynb", SETUP, PAYING, ASK, NOTES))
    run(page, 0, 1, 2)
    page.wait(".adknb-card")

    page.reload()

    page.button("Approve").click()
    page.wait(".adknb-card", "approved")
    page.until(lambda: ("payer", "All settled.") in page.rows(), "the reply")
    run(page, 3)
    assert json.loads(page.text(3))[0] == [["A17", 250.0]]


DEAD = """
    const dead = ["SCRIPT", "IMG", "IFRAME", "OBJECT", "EMBED", "FORM", "BASE", "META"];
    return [...root.querySelectorAll("*")].filter((node) => dead.includes(node.tagName)
        || [...node.attributes].some((one) => /^on/i.test(one.name) || /^\\s*javascript:/i.test(one.value)))
        .map((node) => node.outerHTML)
"""
IN_OUTPUTS = f"""
    const outputs = [...document.querySelectorAll(".jp-OutputArea-output")];
    return outputs.flatMap((root) => {{ {DEAD} }});
"""


def assert_nothing_acts(page: Page) -> None:
    page.js("for (const one of document.querySelectorAll('details')) one.open = true;")
    page.js(
        "for (const link of document.querySelectorAll('.jp-OutputArea-output a')) { link.target = ''; link.click(); }"
    )
    assert page.js(IN_OUTPUTS) == []
    assert page.alerts() == []


@pytest.mark.browser_all
def test_hostile_words_stay_words_live_saved_and_exported(lab: Lab):
    page = lab.open(lab.write("hostile.ipynb", SETUP, *hostile_cells()))
    last = len(hostile_cells())
    raiser = next(index for index, hostile_cell in enumerate(hostile_cells(), 1) if "raiser\n" in hostile_cell)
    run(page, *range(raiser))
    page.run_cell(raiser, allow_errors=True)
    run(page, *range(raiser + 1, last + 1))
    page.wait(".adknb-card")
    for button in (".adknb-fold", ".adknb-row .adknb-more[aria-expanded]"):
        for element in page.all(button):
            if element.is_displayed():
                element.click()
    page.button("Edit…").click()
    page.wait(".adknb-form")
    page.screenshot("chat-hostile")
    assert_nothing_acts(page)
    assert "<img src=x onerror=alert(1)>" in page.text(last)
    page.button("Back").click()
    page.button("Approve").click()
    page.until(lambda: page.text(last).count("1 tool call") == 2, "the reply, and that its call failed")
    assert_nothing_acts(page)
    page.all(".adknb-fold")[-1].click()
    page.until(lambda: "ValueError" in page.text(last), "the row of the call that failed")

    notebook = page.saved()
    payload = [output.data for cell in notebook.cells for output in cell.outputs if "data" in output]
    for data in payload:
        assert_harmless(data.get("text/html", ""))
        assert_nothing_unseen(data["text/plain"])
    [failed] = [output for cell in notebook.cells for output in cell.outputs if output.output_type == "error"]
    assert_nothing_unseen(failed.evalue + "".join(failed.traceback))
    assert sum("alert(1)" in data.get("text/html", "") for data in payload) >= 7
    without_its_kernel(page)
    page.until(lambda: page.text(last).count("1 tool call") == 1, "the saved turn")
    assert_nothing_acts(page)

    for cell in notebook.cells:
        cell.source = ""  # what the author of a notebook writes is his own affair
    exported, _ = nbconvert.HTMLExporter(mathjax_url="", require_js_url="").from_notebook_node(notebook)
    path = lab.folder / "hostile.html"
    path.write_text(exported)
    lab.browser.get(path.as_uri())
    assert lab.browser.execute_script("return document.body.innerText.includes('<img src=x onerror=alert(1)>')")
    assert lab.browser.execute_script(IN_OUTPUTS) == []
    assert lab.browser.execute_script("return window.alerts") == []
