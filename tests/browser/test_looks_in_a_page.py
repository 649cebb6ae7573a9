"""What stands beside the chat, in a real page: parts that are copied, graphs beside answers, and what a file keeps."""

import pytest
from axe import violations
from chats import SETUP
from lab import Lab

pytestmark = pytest.mark.browser

ASKED = """
def look(city: str) -> str:
    '''Looks at the sky.'''
    return {"Oslo": "sunny"}[city]

budget = 400
told = ScriptedLlm(call("look", city="Oslo"), "Go to Oslo.", call("look", city="Rome"), "I cannot see it.")
planner = Agent(name="planner", model=told, tools=[look], instruction="Plan within {budget} euros.")
"""
COPIED = """
    const copied = [];
    navigator.clipboard.writeText = async (text) => void copied.push(text);
    for (const button of document.querySelectorAll(".adknb-part-copy")) {
        button.closest("details").open = true;
        button.click();
    }
    await new Promise((done) => setTimeout(done));
    return copied;
"""
WIDGETS = "@jupyter-widgets/jupyterlab-manager:saveWidgetState"


def test_each_part_of_a_request_is_folded_with_its_size_and_copied_as_it_was_sent(lab: Lab):
    page = lab.open(lab.write("why.ipynb", SETUP, ASKED, "%state budget=400", "%chat planner Where?", "%trace --why"))
    page.run_all()
    page.wait(".adknb-page-of-parts summary", "system instruction")

    copied = page.js(COPIED)

    assert copied[0].startswith("Plan within 400 euros.")
    assert copied[1] == "{budget}\t400"
    assert "user: Where?" in copied
    assert violations(page) == []
    saved = page.saved().cells[4].outputs[0].data
    assert sorted(saved) == ["text/html", "text/markdown", "text/plain"]
    assert "Plan within" in saved["text/html"] and "Copy" not in saved["text/html"]


def test_a_run_with_a_failed_call_says_so_in_one_line_and_names_the_call(lab: Lab):
    asked = ("%state budget=1", "%chat planner Oslo?", "%chat planner Rome?")
    page = lab.open(lab.write("failed.ipynb", SETUP, ASKED, *asked))
    page.run_all()
    page.wait(".adknb-status", "done, 1 tool failed")

    assert [status.text for status in page.all(".adknb-status")] == ["✓ done", "✓ done, 1 tool failed"]
    assert page.wait(".adknb-failed-calls li").text.startswith('✗ look(city="Rome") → KeyError: ')
    assert violations(page) == []


def test_the_graph_of_a_workflow_stands_left_of_its_answer_and_above_it_where_there_is_little_room(lab: Lab):
    agents = "\n".join(f"{name} = Agent(name='{name}', model=ScriptedLlm('{name} ok'))" for name in ("draft", "review"))
    cells = (SETUP, agents, "%%workflow flow\nSTART -> draft -> review -> END", "%chat flow Write.")
    page = lab.open(lab.write("flow.ipynb", *cells))
    page.run_all()
    page.wait(".adknb-summary", "review ok")
    place = """return ['.adknb-over .adknb-picture', '.adknb-over .adknb-summary'].map((css) => {
        const { left, right, top, bottom } = document.querySelector(css).getBoundingClientRect();
        return { left, right, top, bottom };
    });"""

    graph, answer = page.js(place)
    assert graph["right"] <= answer["left"] and page.all(".adknb-over rect[data-mark=was]")
    page.resize(500, 900)
    page.until(lambda: page.js(place)[0]["bottom"] <= page.js(place)[1]["top"], "the graph above the answer")


def test_a_file_with_ten_turns_and_the_state_of_widgets_has_at_most_30_kb(lab: Lab):
    agent = "clerk = Agent(name='clerk', model=ScriptedLlm(*(f'It is **{n}**.' for n in range(10))))"
    slider = "import ipywidgets; ipywidgets.IntSlider(value=7)"
    turns = [f"%chat clerk What is it, now that we ask for the {n}. time?" for n in range(10)]
    page = lab.open(lab.write("ten.ipynb", SETUP, agent, *turns, slider))
    page.run_all()
    page.js("await app.commands.execute(arguments[0])", WIDGETS)
    try:
        saved = page.saved()
    finally:
        page.js("await app.commands.execute(arguments[0])", WIDGETS)

    models = saved.metadata.widgets["application/vnd.jupyter.widget-state+json"]["state"].values()
    assert sorted(model["model_name"] for model in models) == ["IntSliderModel", "LayoutModel", "SliderStyleModel"]
    assert page.path.stat().st_size <= 30_000
