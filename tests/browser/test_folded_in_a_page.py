"""A folded run in a real page: what failed in it, and what each member of a team said last."""

import pytest
from axe import violations
from chats import SETUP
from lab import Lab, Page

pytestmark = [pytest.mark.browser, pytest.mark.browser_all]

FAILING = """
@tool
def read(path: str) -> str:
    'Reads a file.'
    raise OSError(f"no such file: {path}")

reader = Agent(name="reader", model=ScriptedLlm(call("read", path="a.txt"), "I could **not** read it."), tools=[read])
"""
TEAM = """
from adk_nb.agents import SequentialAgent
from adk_nb.workflow import Workflow

def says(name, text):
    return Agent(name=name, model=ScriptedLlm(text, text))

def publish(node_input: str) -> str:
    return f"Published: {node_input}"

draft, critic = says("draft", "A *first* draft. " * 40), says("critic", "Too long, <b>cut</b> it.")
team = SequentialAgent(name="team", sub_agents=[draft, critic, says("editor", "The **final** text.")])
flow = Workflow(name="flow", edges=[("START", says("writer", "A text."), publish)])
"""


def looked_at(page: Page, name: str) -> None:
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        page.theme(theme)
        page.screenshot(f"{name}-{theme.split()[1].lower()}")
        assert violations(page) == [], theme
    page.resize(640, 900)
    page.screenshot(f"{name}-640")


def opened(lab: Lab, *cells: str) -> Page:
    page = lab.open(lab.write("folded.ipynb", SETUP, *cells))
    page.js("for (const cell of panel.content.widgets) cell.inputHidden = true;")
    for cell in range(len(cells) + 1):
        page.run_cell(cell)
    return page


def test_a_failed_tool_is_seen_while_the_run_is_folded(lab: Lab):
    page = opened(lab, FAILING, "%chat reader Read it.")

    page.wait(".adknb-answered", "I could not read it.")
    assert page.wait(".adknb-status").text == "✓ done, 1 tool failed"
    assert page.wait(".adknb-status", "done")
    looked_at(page, "tool-failed")


def test_a_folded_team_shows_the_last_words_of_each_member_and_a_workflow_its_output(lab: Lab):
    page = opened(lab, TEAM, "%chat team Write.", "%chat flow Write.")
    page.until(lambda: len(page.all(".adknb-answered")) == 2, "both answers")

    texts = [
        [part.text for part in element.find_elements("css selector", ".adknb-author, .adknb-text")]
        for element in page.all(".adknb-member")
    ]
    assert [name for name, _ in texts] == ["draft", "critic", "writer"]
    assert texts[0][1].startswith("A first draft. A first") and texts[0][1].endswith("…")
    assert texts[1][1] == "Too long, <b>cut</b> it."
    answers = [element.text for element in page.all(".adknb-answered")]
    assert "The final text." in answers[0] and "Published: A text." in answers[1]
    color = "return getComputedStyle(arguments[0]).color"
    dimmed, plain = (page.js(color, page.wait(css)) for css in (".adknb-member .adknb-text", ".adknb-answered p"))
    assert dimmed != plain
    looked_at(page, "team-folded")
