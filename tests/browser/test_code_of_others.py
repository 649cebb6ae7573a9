"""Code of others in a real page: `run_debug` shows the view of `%chat`; a structured answer is a table."""

import pytest
from lab import Lab

pytestmark = [pytest.mark.browser, pytest.mark.browser_all]

COURSE = """
%load_ext adk_nb
%config AdkNb.google_adk = True
from google.adk.agents import Agent
from google.adk.runners import InMemoryRunner
from google.adk.tools import FunctionTool
from pydantic import BaseModel
from adk_nb.models import ScriptedLlm, call

def set_table(seats: int) -> dict:
    'Sets a table.'
    return {"seats": seats}

class City(BaseModel):
    name: str
    people: int

class Trip(BaseModel):
    title: str
    cities: list[City]

table = '[{"name": "Oslo", "people": 700000}, {"name": "Rome", "people": 2800000}]'
tree = '{"title": "North", "cities": [{"name": "Oslo", "people": 700000}]}'
waiter = Agent(name="waiter", model=ScriptedLlm(call("set_table", seats=4), "The table is **set**."),
               tools=[FunctionTool(func=set_table)])
guide = Agent(name="guide", model=ScriptedLlm(table), output_schema=list[City])
planner = Agent(name="planner", model=ScriptedLlm(tree), output_schema=Trip)
runner = InMemoryRunner(agent=waiter)
"""


def test_run_debug_shows_the_view_and_a_structured_answer_is_a_table(lab: Lab):
    page = lab.open(
        lab.write(
            "others.ipynb",
            COURSE,
            "events = await runner.run_debug('Set a table for four')",
            "%chat guide Which cities?",
            "%chat planner Plan a trip",
        )
    )
    page.run_all()

    page.wait("strong", "set")
    page.wait(".jp-OutputArea td", "Rome")
    page.wait(".jp-OutputArea li", "Oslo")
    page.scroll_to(".jp-OutputArea li")
    for theme in ("light", "dark"):
        page.theme(f"JupyterLab {theme.title()}")
        page.screenshot(f"others-{theme}")
    page.resize(640, 900)
    page.screenshot("others-640")

    page.save()
    *_, debug, cities, trip = [cell.outputs for cell in page.saved().cells]
    assert any("The table is" in str(output.get("data")) for output in debug)
    assert any("| name | people |" in str(output.get("data")) for output in cities)
    assert any("- **title:** North" in str(output.get("data")) for output in trip)
