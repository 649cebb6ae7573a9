"""An answer with an `output_schema`: its value in Python, and how a cell shows it."""

from datetime import date
from typing import Any

import pytest
from pydantic import BaseModel

from adk_nb import Agent, Chat, Workflow
from adk_nb.agents import SequentialAgent
from adk_nb.models import ScriptedLlm
from adk_nb.notebook.chat.reply import view_of_reply
from adk_nb.notebook.view.reply_view import answer_for_view
from adk_nb.workflow import START
from tests.support.late import late


class City(BaseModel):
    name: str
    people: int | None
    founded: date | None = None


class Trip(BaseModel):
    title: str
    cities: list[City]


OSLO, ROME = '{"name": "Oslo", "people": 700000}', '{"name": "Rome", "people": null, "founded": "0001-04-21"}'


def ask(schema: Any, answer: str) -> Any:
    return Chat(Agent(name="guide", model=ScriptedLlm(answer), output_schema=schema)).ask("go")


def html(reply: Any) -> str:
    return view_of_reply(reply).saved_forms()["text/html"]


def test_the_output_is_of_the_type_of_the_schema():
    assert ask(City, OSLO).output == City(name="Oslo", people=700000)
    assert ask(City, f"```json\n{ROME}\n```").output == City(name="Rome", people=None, founded=date(1, 4, 21))
    assert ask(list[City], f"[{OSLO}]").output == [City(name="Oslo", people=700000)]
    assert ask(int, "42").output == 42


def test_there_is_no_output_without_a_schema_or_if_the_answer_does_not_fit():
    plain = Chat(Agent(name="guide", model=ScriptedLlm('{"name": "Oslo"}'))).ask("go")

    assert plain.output is None
    assert ask(City, '{"name": "Oslo"}').output is None


def test_the_output_of_a_member_of_a_team_is_typed_and_that_of_a_function_is_json():
    guide = Agent(name="guide", model=ScriptedLlm(OSLO, OSLO), output_schema=City)

    def double(node_input: dict[str, Any]) -> dict[str, Any]:
        return {**node_input, "people": 2 * node_input["people"]}

    flow = Workflow(name="flow", edges=[(START, guide.clone(), double)])

    assert Chat(SequentialAgent(name="team", sub_agents=[guide])).ask("go").output == City(name="Oslo", people=700000)
    assert Chat(flow).ask("go").output == {"name": "Oslo", "people": 1400000}


def test_a_list_of_models_is_a_data_frame_in_one_line():
    reply = ask(list[City], f"[{OSLO}, {ROME}]")

    frame = late("pandas").DataFrame([row.model_dump() for row in reply.output])

    assert list(frame.columns) == ["name", "people", "founded"] and list(frame["name"]) == ["Oslo", "Rome"]


def test_a_list_of_models_is_shown_as_a_table():
    reply = ask(list[City], f"[{OSLO}, {ROME}]")
    table = html(reply).partition("<details>")[0]

    assert table.count("<tr>") == 3 and "<th" in table and "{" not in table
    assert "| name | people | founded |" in view_of_reply(reply).saved_forms()["text/markdown"]


def test_a_model_is_shown_as_fields_and_values():
    table = html(ask(City, OSLO)).partition("<details>")[0]

    assert table.count("<tr>") == 3 and "700000" in table and "{" not in table


def test_values_in_values_are_shown_as_a_tree():
    reply = ask(Trip, f'{{"title": "North", "cities": [{OSLO}]}}')
    tree = html(reply).partition("<details>")[0]

    assert tree.count("<ul>") == 3
    assert "title:</strong> North" in tree
    assert "{" not in tree
    lines = view_of_reply(reply).saved_forms()["text/markdown"].splitlines()
    assert lines[:4] == ["- **title:** North", "- **cities:**", "  -", "    - **name:** Oslo"]


def test_what_a_model_writes_into_its_fields_is_text():
    reply = ask(list[City], '[{"name": "<script>alert(1)</script>|![x](http://a/b.png)", "people": 1}]')

    assert "<script" not in html(reply)
    markdown = view_of_reply(reply).saved_forms()["text/markdown"]
    assert "<script" not in markdown
    assert "![x]" not in markdown


def test_the_live_view_ends_with_the_table():
    assert "<table>" in answer_for_view(view_of_reply(ask(City, OSLO)))["html"]

    assert "<table>" in answer_for_view(view_of_reply(ask(City, OSLO)))["html"]


@pytest.mark.parametrize("answer", ["[]", "{}", "[1, 2]"])
def test_what_has_no_fields_stays_text(answer: str):
    schema: Any = dict[str, int] if answer == "{}" else list[int]

    assert answer in html(ask(schema, answer)) and ask(schema, answer).output in ([], {}, [1, 2])


def test_replies_in_a_list_are_a_line_each():
    replies = [ask(City, OSLO), Chat(Agent(name="guide", model=ScriptedLlm("word " * 500))).ask("go")]

    assert len(repr(replies)) < 400 and "guide" in repr(replies) and "Oslo" in repr(replies)
