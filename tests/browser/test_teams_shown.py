"""Teams and workflows in a real page: they draw themselves, and a run lights up in the drawing."""

import pytest
from chats import WAIT_FOR
from lab import Lab, Page

pytestmark = [pytest.mark.browser, pytest.mark.browser_all]

SETUP = (
    WAIT_FOR
    + """
%load_ext adk_nb
import asyncio
from adk_nb import types
from adk_nb.models import BaseLlm, LlmResponse

class Says(BaseLlm):
    'Streams its answers, one a turn, each as soon as there is a file of that name.'
    answers: list[str]
    asked: int = 0
    async def generate_content_async(self, llm_request, stream=False):
        said = self.answers[self.asked % len(self.answers)]
        self.asked += 1
        part = types.Part(text=said[:1])
        yield LlmResponse(content=types.Content(role="model", parts=[part]), partial=True)
        while self.model != "free" and not pathlib.Path(f"{self.model}-{self.asked}").exists():
            await asyncio.sleep(0.02)
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=said)]))

def says(name, *answers):
    return Says(model=name, answers=list(answers))

say_draft, say_review = says("draft", "A first draft.", "A second draft."), says("review", "revise", "ok")
say_weather, say_news = says("weather", "Sunny in Oslo."), says("news", "Nothing new today.")
say_editor = says("editor", "All of it in one text.")
"""
)
AGENTS = [f"%%agent {name} -m say_{name}\nBe {name}." for name in ("draft", "review", "weather", "news", "editor")]
TEAM = [
    "%%agent refine --kind loop --max-iterations 2\ndraft -> review",
    "%%agent ask_all --kind parallel\nweather, news",
    "%%agent pipeline --kind sequential\nrefine -> ask_all -> editor",
]
WORKFLOW = """%%workflow flow
START -> draft -> review
review -[revise]-> draft
review -[ok]-> (weather, news) -> editor -> END"""
MARKS = """return Object.fromEntries([...document.querySelectorAll('.adknb-picture rect')]
  .map((one) => [one.dataset.key.slice(2), one.dataset.mark ?? '']).filter(([, mark]) => mark))"""


def let(lab: Lab, *names: str) -> None:
    for name in names:
        (lab.folder / name).touch()


def marked(page: Page, **marks: str) -> None:
    page.until(lambda: page.js(MARKS) == marks, f"{marks}, but there is {page.js(MARKS)}")


def looked_at(page: Page, css: str, name: str) -> None:
    page.scroll_to(css)
    page.screenshot(f"{name}-light")
    page.theme("JupyterLab Dark")
    page.scroll_to(css)
    page.screenshot(f"{name}-dark")
    page.theme("JupyterLab Light")
    page.resize(420, 800)
    page.scroll_to(css)
    page.screenshot(f"{name}-narrow")
    page.resize(1200, 900)


def test_a_team_and_a_workflow_draw_themselves(lab: Lab):
    page = lab.open(lab.write("teams.ipynb", SETUP, *AGENTS, *TEAM, WORKFLOW, "weather"))

    page.run_all()

    assert len(page.all(".jp-OutputArea-output svg[role=img]")) == 4
    assert "pipeline (sequential)" in page.js("return document.body.textContent")
    looked_at(page, "svg[aria-label^=pipeline]", "team")
    looked_at(page, "svg[aria-label^=flow]", "workflow")
    assert page.alerts() == []
    assert page.complaints() == []


def test_the_path_of_a_run_lights_up_while_it_runs(lab: Lab):
    page = lab.open(lab.write("lit.ipynb", SETUP, *AGENTS, WORKFLOW, "%chat flow Write of Oslo."))
    for index in range(7):
        page.run_cell(index)

    page.run_cell(7, wait=False)

    marked(page, START="was", draft="now")
    let(lab, "draft-1")
    marked(page, START="was", draft="was", review="now")
    let(lab, "review-1", "draft-2")
    marked(page, START="was", draft="was", review="now")
    let(lab, "review-2")
    marked(page, START="was", draft="was", review="was", weather="now", news="now")
    looked_at(page, ".adknb-picture", "running")
    let(lab, "weather-1")
    marked(page, START="was", draft="was", review="was", weather="was", news="now")
    let(lab, "news-1")
    page.wait(".adknb-picture [data-mark=now]")
    let(lab, "editor-1")
    page.until(lambda: not page.running(7), "the end")
    assert "All of it in one text." in page.text(7)


def test_agents_that_work_at_once_have_rows_that_say_so(lab: Lab):
    page = lab.open(lab.write("rows.ipynb", SETUP, *AGENTS, *TEAM, "%chat pipeline Write of Oslo."))
    for index in range(9):
        page.run_cell(index)

    page.run_cell(9, wait=False)
    let(lab, "draft-1", "review-1", "draft-2", "review-2")
    page.wait("rect[data-key='n:news'][data-mark=now]")

    looked_at(page, ".adknb-picture", "running-team")
    let(lab, "weather-1", "news-1", "editor-1")
    page.until(lambda: not page.running(9), "the end")


APPROVALS = """
from adk_nb.models import ScriptedLlm
from adk_nb.models.scripted_llm import call
from adk_nb.tools import tool

@tool(confirm=True)
def publish(text: str) -> str:
    'Publishes.'
    return 'published'

say_asks = ScriptedLlm(call("publish", text="<img src=x onerror=alert(1)>"), "Published it.")
"""
LANES = """return [...document.querySelectorAll('.adknb-lane')].map((lane) => [lane.dataset.mark,
  ...['.adknb-stands', '.adknb-author', '.adknb-words'].map((part) => lane.querySelector(part).innerText.trim())])"""


def test_those_that_work_at_once_have_a_line_each_and_a_pause_says_who_waits(lab: Lab):
    cells = [SETUP + APPROVALS, *AGENTS[2:], "%%agent asks -m say_asks -t publish\nAsk first."]
    team = "%%agent ask_all --kind parallel\nweather, asks, news"
    flow = "%%workflow flow\nSTART -> ask_all -> editor"
    page = lab.open(lab.write("lanes.ipynb", *cells, team, flow, "%chat flow Go."))
    for index in range(7):
        page.run_cell(index)

    page.run_cell(7, wait=False)
    let(lab, "news-1")
    stands = [["● working", "weather"], ["⚠ waiting for you", "asks"], ["✓ done", "news"]]
    page.until(lambda: [lane[1:3] for lane in page.js(LANES)] == stands, "one that works, one that waits, one done")
    assert [lane[3] for lane in page.js(LANES)][::2] == ["S", "Nothing new today."]
    marks = page.js(MARKS)
    let(lab, "weather-1")
    page.until(lambda: not page.running(7), "the pause")

    assert marks == {"START": "was", "ask_all": "now", "weather": "now", "asks": "waits", "news": "was"}
    assert page.js(MARKS) == marks | {"ask_all": "waits", "weather": "was"}
    assert ": ask_all, asks" in page.wait(".adknb-picture").get_attribute("aria-label")
    assert "<img src=x onerror=alert(1)>" in page.js(LANES)[1][3]
    let(lab, "editor-1")
    page.click(".adknb-button", "Approve")
    page.until(lambda: "All of it in one text." in page.text(7), "the end")
    assert page.alerts() == []
