"""Cells in the editor of JupyterLab and Notebook 7: what is highlighted as what, and what the kernel knows of it."""

import re

import pytest
from lab import Lab, Page
from selenium.webdriver import ActionChains
from selenium.webdriver.common.keys import Keys

AGENT = (
    "%%agent clerk -m offline -t pay --modle fast\n"
    "You pay with care and **not** twice, or ask {user:name?} within {budget}.\n"
    "Prices: {{prices}}, {{nothing}}, and {unclosed"
)
MATTER = "%%agent reader\n---\nmodel: offline\n---\nRead it and say if it is in order."
WORKFLOW = "%%workflow desk\n# in order\nSTART -> clerk -[ok, *]-> reader\nclerk => END"
TABLE = '%%eval clerk --repeats 3\n| message | calls |\n| --- | --- |\n| Is it in or not? | pay(to="Anna") |'
TOOL = '%%tool --confirm "amount > 100"\ndef pay(to: str, amount: float) -> str:\n    "Pay."\n    return to'
LINES = "prices = [1, 2]\nif prices:\n    %chat clerk Is {{prices}} in order, and not for me?\nprint(prices)"
KINDS = (AGENT, MATTER, WORKFLOW, TABLE, TOOL, LINES)
PYTHON_KEYWORDS = re.compile(r"\b(?:with|and|not|or|in|if|is|for)\b")


def styles(page: Page, cell: int) -> dict[str, str]:
    """The texts of a cell's editor that have a look of their own -> colour and weight."""
    script = """
        const line = panel.content.widgets[arguments[0]].node.querySelector('.cm-line');
        const plain = getComputedStyle(line);
        return [...panel.content.widgets[arguments[0]].node.querySelectorAll('.cm-line span')].filter(
            (span) => !span.firstElementChild
        ).map((span) => [span.innerText, getComputedStyle(span)]).filter(
            ([_, look]) => look.color !== plain.color || look.fontWeight !== plain.fontWeight
        ).map(([text, look]) => [text, `${look.color} ${look.fontWeight}`]);"""
    return dict(page.js(script, cell))


def classes(page: Page, cell: int) -> dict[str, str]:
    """The marked texts of a cell -> their classes."""
    script = """return [...panel.content.widgets[arguments[0]].node.querySelectorAll('[class*=adknb-]')].map(
        (mark) => [mark.innerText, mark.className])"""
    return dict(page.js(script, cell))


def language(page: Page, cell: int) -> str:
    script = "return panel.content.widgets[arguments[0]].node.querySelector('.cm-content').dataset.language || ''"
    return page.js(script, cell)


def highlighted(page: Page, cell: int) -> None:
    """Wait until the languages of a cell are loaded."""
    page.until(lambda: language(page, cell) == "adk-nb" and styles(page, cell), f"the colours of cell {cell}")


def keywords(page: Page, cell: int) -> list[str]:
    """The English words of a cell that are bold."""
    return [text for text, look in styles(page, cell).items() if PYTHON_KEYWORDS.search(text) and "700" in look]


@pytest.mark.browser_all
@pytest.mark.browser
def test_each_kind_of_cell_is_highlighted_as_what_it_is_in_both_themes(lab: Lab):
    page = lab.open(lab.write("kinds.ipynb", *KINDS), fresh=True)
    for cell in range(len(KINDS)):
        highlighted(page, cell)
    page.until(lambda: "not" in styles(page, 0), "the markdown of the instruction")
    page.until(lambda: keywords(page, 4) == [] and "def" in styles(page, 4), "the Python of the tool")

    for theme in ("JupyterLab Light", "JupyterLab Dark"):
        page.theme(theme)
        agent, matter, workflow, table, tool, lines = (styles(page, cell) for cell in range(len(KINDS)))
        assert [keywords(page, cell) for cell in range(len(KINDS))] == [["not"], [], [], [], [], ["if"]]  # **not**
        assert {"%%agent", "-t", "{budget}", "{{prices}}"} <= agent.keys() and "fast" not in agent
        assert agent["{budget}"] != agent["{{prices}}"]
        assert {"model", "---"} <= matter.keys() and not {"offline", "Read"} & matter.keys()
        assert {"# in order", "START", "ok, *"} <= workflow.keys() and "clerk" not in workflow
        assert {"message", "---"} <= table.keys() and "Is it in or not?" not in table
        assert {"def", '"amount > 100"', "--confirm"} <= tool.keys()
        assert {"%chat", "{{prices}}", "print"} <= lines.keys()
        page.screenshot(f"highlighting-{theme.split()[1].lower()}")
    page.theme("JupyterLab Light")
    assert [classes(page, 0)["--modle"], classes(page, 2)["=>"]] == ["adknb-mark-wrong", "adknb-mark-wrong"]
    assert not any("unknown" in look for cell in range(len(KINDS)) for look in classes(page, cell).values())
    assert page.complaints() == []


@pytest.mark.browser
def test_a_cell_changes_with_its_first_line_and_back(lab: Lab):
    page = lab.open(lab.write("typed.ipynb", "", "x = 1"))
    page.js("panel.content.activeCellIndex = 0; panel.content.mode = 'edit'; panel.content.activeCell.editor.focus()")

    def type_keys(*keys: str) -> None:
        ActionChains(page.browser).send_keys(*keys).perform()

    type_keys("%%agent clerk", Keys.ENTER, "Pay with care", Keys.ENTER, "and: ", Keys.ENTER, "not {twice} in")
    highlighted(page, 0)
    assert keywords(page, 0) == []
    source = page.js("return panel.content.widgets[0].model.sharedModel.getSource()")
    assert source.splitlines()[-1] == "not {twice} in", "prose is not indented after a colon"

    page.js("""panel.content.widgets[0].model.sharedModel.undoManager.stopCapturing();
        panel.content.widgets[0].editor.editor.dispatch({ changes: { from: 2, to: 7, insert: 'tool' } });""")
    page.until(lambda: {"with", "and", "not"} <= {*keywords(page, 0)}, "keywords of Python")
    assert classes(page, 0) == {}

    ActionChains(page.browser).key_down(Keys.CONTROL).send_keys("z").key_up(Keys.CONTROL).perform()
    page.until(lambda: keywords(page, 0) == [] and "{twice}" in classes(page, 0), "prose again")

    page.js("panel.content.widgets[0].editor.editor.dispatch({ changes: { from: 0, to: 2 } })")
    page.until(lambda: language(page, 0) == "python" and "with" in keywords(page, 0), "the lab's own Python")
    assert page.complaints() == []


@pytest.mark.browser_all
@pytest.mark.browser
def test_the_look_of_a_live_view_does_not_reach_the_marks_of_a_cell(lab: Lab):
    agent = "%%agent clerk -m offline\nYou pay within {budget}."
    page = lab.open(lab.write("beside.ipynb", "%load_ext adk_nb", agent, "%chat clerk Hi"))
    page.run_all()
    page.wait(".adknb-root")
    highlighted(page, 1)
    marks = "return [...document.querySelectorAll('.cm-line [class*=adknb-]')].map((mark) => getComputedStyle(mark).%s)"
    assert set(page.js(marks % "padding")) == {"0px"} and set(page.js(marks % "overflow")) == {"visible"}


@pytest.mark.browser_all
@pytest.mark.browser
def test_names_that_the_kernel_does_not_have_are_underlined_and_no_others(lab: Lab):
    instruction = "%%agent clerk -m offline -t pay\nYou pay {{prices}} within {budget}."
    page = lab.open(lab.write("names.ipynb", "%load_ext adk_nb", instruction, TOOL, "prices = [1]", "x = 5"))
    page.js("""window.requests = 0;
        panel.sessionContext.session.kernel.anyMessage.connect((_, { msg, direction }) => {
            if (direction === 'send' && msg.content.silent) window.requests += 1; });
        window.insert = (cell, text) => {
            const { editor } = panel.content.widgets[cell].editor;
            for (const sign of text)
                editor.dispatch({ changes: { from: editor.state.doc.length, insert: sign } }); };""")

    def unknown() -> set[str]:
        return {text for text, look in classes(page, 1).items() if "adknb-mark-unknown" in look}

    page.run_cell(0)
    page.run_cell(3)
    page.run_cell(1)
    page.until(lambda: unknown() == {"pay", "{budget}"}, "what is not defined")
    page.run_cell(2)
    page.until(lambda: unknown() == {"{budget}"}, "a tool that is known")

    previous = page.js("return window.requests")
    page.js("window.insert(1, ' Or {{nothing}}, {user:id?}, {{prices}} and {new_key}'); window.insert(4, ' + 1');")
    page.until(lambda: unknown() == {"{budget}", "{{nothing}}", "{new_key}"}, "what is new and not defined")
    page.screenshot("highlighting-unknown")
    assert 1 <= page.js("return window.requests") - previous <= 2, "fifty keys are no fifty requests"
    page.run_cell(4)
    counts = page.js("return panel.content.widgets.map((cell) => cell.model.executionCount)")
    assert counts == [1, 3, 4, 2, 5], "a request is no execution"

    page.js("""panel.content.activeCellIndex = 1; panel.content.mode = 'edit'; panel.content.activeCell.editor.focus();
        const { editor } = panel.content.activeCell.editor;
        editor.dispatch({ selection: { anchor: editor.state.doc.length } });""")
    ActionChains(page.browser).send_keys(" {{pri", Keys.TAB).perform()
    page.wait(".jp-Completer-match", "prices")
    ActionChains(page.browser).send_keys(Keys.ESCAPE).perform()
    assert page.complaints() == []


@pytest.mark.browser_all
@pytest.mark.browser
def test_a_kernel_without_the_magics_has_no_errors_and_marks_nothing(lab: Lab):
    page = lab.open(lab.write("bare.ipynb", AGENT, "x = 5"))
    highlighted(page, 0)

    page.run_cell(1)
    page.until(lambda: page.js("return panel.content.widgets[1].model.executionCount") == 1, "a number")

    loaded = page.js("""const names = { loaded: "'adk_nb' in __import__('sys').modules" };
        const request = { code: '', silent: true, user_expressions: names };
        const { content } = await panel.sessionContext.session.kernel.requestExecute(request).done;
        return content.user_expressions.loaded.data['text/plain'];""")
    assert loaded == "False"
    assert not any("unknown" in look for look in classes(page, 0).values())
    assert page.text(1) == "" and page.complaints() == []


@pytest.mark.browser_all
def test_two_views_of_a_notebook_change_together(lab: Lab):
    page = lab.open(lab.write("twice.ipynb", TOOL, "x = 1"), fresh=True)
    highlighted(page, 0)
    page.js("await app.commands.execute('docmanager:clone')")
    languages = """return [...document.querySelectorAll('.jp-Notebook')].map((notebook) =>
        [...notebook.querySelectorAll('.cm-content')].map((editor) => editor.dataset.language || ''))"""
    page.until(lambda: page.js(languages) == [["adk-nb", "python"]] * 2, "a second view")

    page.js("panel.content.widgets[1].editor.editor.dispatch({ changes: { from: 0, insert: '%%agent a\\nif ' } })")
    page.until(lambda: page.js(languages) == [["adk-nb", "adk-nb"]] * 2, "prose in both")
    page.js("panel.content.widgets[0].editor.editor.dispatch({ changes: { from: 0, to: 2 } })")

    page.until(lambda: page.js(languages) == [["python", "adk-nb"]] * 2, "Python in both")
    page.resize(1600, 700)
    page.screenshot("highlighting-two-views")
    assert page.complaints() == []


@pytest.mark.browser_all
def test_notebook_7_shows_what_jupyterlab_shows(lab: Lab):
    def rendered() -> list[dict[str, str]]:
        for cell in range(len(KINDS)):
            highlighted(page, cell)
        page.until(lambda: "def" in styles(page, 4) and "model" in styles(page, 1), "the languages")
        return [styles(page, cell) for cell in range(len(KINDS))]

    path = lab.write("both.ipynb", *KINDS)
    page = lab.open(path)
    in_lab = rendered()

    lab.browser.get(f"{lab.server.url}/notebooks/{path.relative_to(lab.server.root)}?token={lab.server.token}")
    page = Page(lab, path)
    page.ready()
    assert rendered() == in_lab
    page.screenshot("highlighting-notebook7-light")
    page.theme("JupyterLab Dark")
    dark = rendered()
    page.screenshot("highlighting-notebook7-dark")
    page.theme("JupyterLab Light")

    assert [cell.keys() for cell in dark] == [cell.keys() for cell in in_lab] and dark != in_lab
    assert not any("adk-nb" in complaint for complaint in page.complaints())
    lab.browser.get("about:blank")
