"""What a folded turn shows of its question and its answer in a real page."""

import pytest
from lab import Lab

pytestmark = [pytest.mark.browser, pytest.mark.browser_all]

SETUP = """
%load_ext adk_nb
from adk_nb.agents import Agent
from adk_nb.models import ScriptedLlm
open("plan.csv", "w").write("city,days\\nOslo,3\\n")
model = ScriptedLlm("105.", "105. Oslo\\n106. Rome")
counter = Agent(name="counter", model=model)
"""
PAYING = (
    """
%%tool --confirm
def pay(amount: int) -> str:
    'Pay.'
    return f"paid {amount}"
""",
    "%%agent clerk -m offline -t pay\nPay.",
    "%chat clerk pay 3",
    "%confirm --yes",
)
NOTICES = """
    const views = [...document.querySelectorAll(".adknb-view:has(.adknb-notice-chip)")].slice(0, 2);
    const texts = (view) => [...view.querySelectorAll(".adknb-notice:not([hidden])")].map((node) => node.textContent);
    return views.map(texts);
"""
COUNT = "%chat counter --attach plan.csv How many days?"
ROOM = """
    const list = document.querySelector(".adknb-answered ol");
    const ruler = document.createElement("canvas").getContext("2d");
    ruler.font = getComputedStyle(list).font;
    return parseFloat(getComputedStyle(list).paddingLeft) - ruler.measureText("2030.").width;
"""
"""What is left beside the widest number that a list usually begins with, in pixels."""


def test_the_files_of_a_question_are_named_and_a_number_is_an_answer(lab: Lab):
    cells = ["%%agent guide -m offline\nHelp.", "%chat guide Hi", "%chat guide Ho", *PAYING]
    page = lab.open(lab.write("folded.ipynb", SETUP, COUNT, "%chat counter And then?", *cells))
    page.run_all()
    page.wait(".adknb-answered", "Paid 3.")

    chips = [chip.text for chip in page.all(".adknb-notice-chip")]
    assert chips == ["Offline stand-in"] * 4
    assert page.js(NOTICES) == [["Offline stand-in: picks tools by keywords. No language model."], []]
    page.all(".adknb-notice-chip")[1].click()
    assert [len(lines) for lines in page.js(NOTICES)] == [1, 1]
    text = page.wait(".adknb-asked", "How many days?").text
    assert "[attached: plan.csv]" in text and "bytes" not in text
    assert [answer.text.split() for answer in page.all(".adknb-answered")][:2] == [["105."], ["Oslo", "Rome"]]
    assert [title.text for title in page.all(".adknb-title")][:2] == ["counter", "counter"]
    page.screenshot("folded-light")
    assert page.js(ROOM) >= 2
    page.resize(640, 900)
    page.screenshot("folded-640")
    page.theme("JupyterLab Dark")
    page.screenshot("folded-dark")
    saved = page.saved().cells[1].outputs[-1].data
    assert "<p>105.</p>" in saved["text/html"] and saved["text/markdown"].startswith("105&#46;")
    asking = page.saved().cells[8].outputs[-1].data["text/html"]
    assert "<blockquote " in asking and "pay(amount=3)" in asking and "--yes" not in asking


MISSING = """
%load_ext adk_nb
from adk_nb.agents import Agent
from adk_nb.models import ScriptedLlm
%tool docs --mcp http://127.0.0.1:9/mcp
reader = Agent(name="reader", model=ScriptedLlm("I cannot look."), tools=[docs])
"""


def test_a_server_that_is_not_there_is_one_row_of_the_folded_turn(lab: Lab):
    page = lab.open(lab.write("missing.ipynb", MISSING, "%chat reader Look it up"))
    page.run_all()

    page.wait(".adknb-answered", "I cannot look.")
    assert "tools of McpToolset" in page.wait(".adknb-notice").text
    page.screenshot("missing-light")
    page.resize(640, 900)
    page.screenshot("missing-640")
    page.theme("JupyterLab Dark")
    page.screenshot("missing-dark")
    assert [output["output_type"] for output in page.outputs(1)].count("stream") == 0
    assert page.saved().cells[1].outputs[-1].data["text/markdown"].count("without the tools") == 1


NOTED = """
%load_ext adk_nb
from adk_nb.agents import Agent
from adk_nb.models import LlmResponse, ScriptedLlm
from google.genai import types
content = types.Content(role="model", parts=[types.Part(text="I would pay.")])
noted = LlmResponse(content=content, custom_metadata={"model_note": "no tool was called"})
payer = Agent(name="payer", model=ScriptedLlm(noted))
"""


def test_a_remark_on_an_answer_stands_on_the_page(lab: Lab):
    page = lab.open(lab.write("noted.ipynb", NOTED, "%chat payer Pay"))
    page.run_cell(0)
    page.run_cell(1)

    page.wait(".adknb-answered", "I would pay.")
    page.wait(".adknb-notice", "no tool was called")
