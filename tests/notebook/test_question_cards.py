"""Questions to the user as rows and cards, and no internal call in what a reader sees."""

from collections.abc import Iterator
from typing import Any

import pytest
from turns import event_forms, reply_forms

from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.events import RequestInput
from adk_nb.models.scripted_llm import ScriptedLlm, call
from adk_nb.notebook.chat.chat import Chat
from adk_nb.notebook.chat.reply import view_of_reply
from adk_nb.notebook.view.cards import answer_of
from adk_nb.notebook.view.document import document
from adk_nb.notebook.view.drawing import tree_of
from adk_nb.notebook.view.interrupt_text import Verdict
from adk_nb.notebook.view.panels.waterfall import bars
from adk_nb.notebook.view.rows import RunRows, rows_of
from adk_nb.notebook.view.view_state import ViewState
from adk_nb.notebook.view.writers import as_text
from adk_nb.tools.get_user_choice_tool import get_user_choice
from adk_nb.tools.request_input_tool import request_input
from adk_nb.workflow import START, Workflow, node

INTERNAL = ("adk_request_input", "adk_request_confirmation", "transfer_to_agent")


def clerk(*answers: Any) -> Chat:
    tools = [request_input, get_user_choice]
    return Chat(LlmAgent(name="clerk", model=ScriptedLlm(*answers), tools=tools), show="off")


def card_of(chat: Chat, magic: str = "%confirm") -> dict[str, Any]:
    """The one open card of a view that is opened now, as a page gets it."""
    view = ViewState()
    for op in RunRows(history=chat.events, magic=magic).opening():
        view.apply(op)
    [card] = view.snapshot(1)["cards"]
    return card


def test_a_question_is_a_card_with_the_schema_of_its_answer():
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    chat = clerk(call("adk_request_input", message="How\nmany?", response_schema=schema))
    chat.ask("go")

    card = card_of(chat)

    assert (card["kind"], card["state"], card["agent"], card["tool"]) == ("input", "asked", "clerk", "")
    assert (card["hint"], card["answer_schema"], card["how"]) == ("How\nmany?", schema, "%chat ...")
    assert card["arguments"] == []


def test_the_options_of_a_choice_are_the_schema_of_its_card():
    chat = clerk(call("get_user_choice", options=["tea", "coffee"], prompt="What?"))
    chat.ask("go")

    assert card_of(chat)["answer_schema"] == {"enum": ["tea", "coffee"]}


def test_a_schema_that_is_too_large_for_a_page_leaves_a_field_for_text():
    schema = {"type": "string", "description": "long " * 10_000}
    chat = clerk(call("adk_request_input", message="What?", response_schema=schema))
    chat.ask("go")

    assert card_of(chat)["answer_schema"] == {}


def test_a_node_that_waits_for_approval_is_a_card_with_a_yes_and_a_no():
    def pay(node_input: str) -> str:
        return f"paid {node_input}"

    gated = node(pay, require_confirmation=True, rerun_on_resume=True)
    chat = Chat(Workflow(name="desk", edges=[(START, gated)]), show="off")
    chat.ask("7")

    card = card_of(chat)

    fields = card["answer_schema"]["properties"]
    assert (fields["confirmed"]["type"], fields["reason"]["type"], "args" in fields) == ("boolean", "string", False)
    assert (card["tool"], [one["name"] for one in card["arguments"]]) == ("pay", ["node_input"])
    assert card["how"].split(" or ") == ["%confirm --yes", "%confirm --no"]
    done = chat.approve()
    assert 'approved pay(node_input="7")' in str(done)


def test_a_node_that_waits_for_approval_takes_a_no_with_a_reason():
    gated = node(lambda node_input: "paid", name="pay", require_confirmation=True, rerun_on_resume=True)
    chat = Chat(Workflow(name="desk", edges=[(START, gated)]), show="off")
    chat.ask("7")

    done = chat.answer({"confirmed": False, "reason": "too much"})

    assert chat.interrupts == []
    assert "too much" in str(done)


@pytest.mark.parametrize(
    "message",
    [
        {"decision": "approve", "value": 1},
        {"decision": "answer"},
        {"decision": "let_in", "given": "x"},
    ],
)
def test_only_an_answer_answers_a_question(message: dict[str, Any]):
    chat = clerk(call("adk_request_input", message="?"))
    chat.ask("go")
    card = card_of(chat)

    assert answer_of(card, {"id": card["id"], **message}) is None
    [answer, fields] = answer_of(card, {"id": card["id"], "decision": "answer", "value": None}) or ({}, {})
    assert (answer["value"], fields["state"]) == (None, "sent")


def test_the_answer_closes_the_card_in_every_view_and_is_kept_in_the_log():
    chat = clerk(call("adk_request_input", message="Which order?"), "A1 then.")
    before = chat.ask("refund it").events
    here = RunRows()
    for event in before:
        here.feed(event)
    elsewhere = RunRows(history=before)

    done = chat.answer("A1")

    for rows in (here, elsewhere):
        [card] = [op["card"] for event in done.events for op in rows.feed(event) if op["op"] == "card"]
        assert (card["state"], card["note"]) == ("answered", "A1")
        [decided] = rows.decisions
    assert as_text(document(*decided.blocks)).endswith('answered "Which order?": A1')
    assert [(row["author"], row["text"]) for row in rows_of(chat.events)] == [
        ("user", "refund it"),
        ("clerk", "asks: Which order?"),
        ("user", "A1"),
        ("clerk", "A1 then."),
    ]


def test_an_answer_in_another_cell_leaves_question_and_answer_in_this_one():
    chat = clerk(call("adk_request_input", message="Which order?"), "A1 then.")
    asks = chat.ask("refund it")
    [question] = asks.interrupts
    rows = RunRows(history=asks.events)

    settled = view_of_reply(asks).answered_elsewhere({question.id: Verdict("answered", "A1", "in [8]")})
    [card] = [op["card"] for op in rows.answered_elsewhere(question.id, settled.elsewhere[question.id])]

    assert card["note"] == "in [8]: A1"
    assert settled.interrupts == []
    agent, decided = str(settled).splitlines()
    assert agent.startswith("clerk > (waited")
    assert decided.endswith('answered "Which order?" in [8]: A1')


def team(*calls: Any) -> Chat:
    tickets = LlmAgent(name="tickets", model=ScriptedLlm("42 euros."), description="Prices.")
    desk = LlmAgent(name="desk", model=ScriptedLlm(*calls), sub_agents=[tickets])
    return Chat(desk, show="off")


def test_a_transfer_is_one_row():
    reply = team(call("transfer_to_agent", agent_name="tickets")).ask("What do tickets cost?")

    told = [(row["author"], row["kind"], row["text"]) for row in rows_of(reply.events)]
    assert told == [
        ("user", "user", "What do tickets cost?"),
        ("desk", "marker", "→ transfer to tickets"),
        ("tickets", "text", "42 euros."),
    ]
    assert "tool call" not in str(reply)


def test_a_transfer_that_fails_is_a_failed_call():
    reply = team(call("transfer_to_agent", agent_name="nobody"), "I do it.").ask("What do tickets cost?")

    [failed] = [row for row in rows_of(reply.events) if row["kind"] == "call"]
    assert (failed["tool"], failed["ok"]) == ("transfer_to_agent", False)


def test_a_tool_of_the_user_that_returns_nothing_keeps_its_row():
    def note(text: str) -> None:
        """Notes something."""

    chat = Chat(LlmAgent(name="clerk", model=ScriptedLlm(call("note", text="x"), "ok"), tools=[note]), show="off")

    assert [row["tool"] for row in rows_of(chat.ask("go").events) if row["kind"] == "call"] == ["note"]


def graph_that_asks() -> Chat:
    def budget(node_input: str) -> Iterator[RequestInput]:
        yield RequestInput(message="How much?", response_schema=int)

    return Chat(Workflow(name="repair", edges=[(START, budget)]), show="off")


@pytest.mark.parametrize(
    "chat",
    [
        lambda: clerk(call("adk_request_input", message="How much?"), "ok"),
        graph_that_asks,
        lambda: team(call("transfer_to_agent", agent_name="tickets")),
    ],
)
def test_no_internal_call_is_in_a_log_a_reply_or_a_waterfall(chat: Any):
    talk: Chat = chat()
    first = talk.ask("go")
    replies = [first, talk.ask("250")] if first.interrupts else [first]

    shown = [event_forms(talk.events), *(reply_forms(one, history=view_of_reply(one).history) for one in replies)]
    works = [*bars(talk.events), *(bar for one in replies for bar in bars(one.events, one.trace))]

    assert [name for name in INTERNAL if name in str(shown)] == []
    assert [bar["name"] for bar in works if bar["name"] in INTERNAL] == []


def test_a_waterfall_shows_how_long_a_question_waited():
    talk = clerk(call("adk_request_input", message="How much?"), "ok")
    talk.ask("go")
    talk.ask("250")

    assert [bar["name"] for bar in bars(talk.events) if bar["kind"] == "person"] == ["waiting for you"]


def test_the_tool_that_asks_is_drawn_by_the_name_that_is_imported():
    agent = LlmAgent(name="clerk", model=ScriptedLlm("hi"), tools=[request_input])

    assert "tools: request_input" in tree_of(agent)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "boolean"}, "yes or no"),
        ({"type": "string", "enum": ["Red", "Blue"]}, "one of Red, Blue"),
        ({"type": "object", "properties": {"n": {}, "name": {}}}, "JSON with n, name"),
    ],
)
def test_text_says_what_fits(schema: dict[str, Any], expected: str):
    asks = clerk(call("adk_request_input", message="?", response_schema=schema)).ask("go")

    assert f"Answer ({expected}) with chat.ask('...')" in str(asks)
    assert f"Answer ({expected}) with" in reply_forms(asks)["text/markdown"]
