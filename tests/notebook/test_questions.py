"""Questions, outcomes and what called agents ask, as a person in a notebook meets them."""

from collections.abc import Iterator
from typing import Any

import pytest
from turns import reply_forms

from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.agents.parallel_agent import ParallelAgent
from adk_nb.agents.sequential_agent import SequentialAgent
from adk_nb.errors import InputError, PendingError
from adk_nb.events import Event, RequestInput
from adk_nb.models.scripted_llm import ScriptedLlm, call
from adk_nb.notebook.chat.chat import Chat
from adk_nb.notebook.chat.reply import Reply, view_of_reply
from adk_nb.notebook.view.rows import RunRows, rows_of
from adk_nb.runtime.run_config import RunConfig, StreamingMode
from adk_nb.tools.agent_tool import AgentTool
from adk_nb.tools.function_tool import FunctionTool
from adk_nb.tools.get_user_choice_tool import get_user_choice
from adk_nb.tools.long_running_tool import LongRunningFunctionTool
from adk_nb.tools.request_input_tool import request_input
from adk_nb.workflow import START, Workflow, node
from tests.notebook.conftest import Shell
from tests.support.talk import Talk


def chat(*answers: Any, tools: list[Any], name: str = "clerk") -> Chat:
    return Chat(LlmAgent(name=name, model=ScriptedLlm(*answers), tools=tools), show="off")


def lines(reply: Reply) -> list[str]:
    return str(reply).splitlines()


def test_a_question_is_shown_and_the_next_words_answer_it():
    talk = chat(call("adk_request_input", message="Which *order*?"), "A1 then.", tools=[request_input])

    asks = talk.ask("refund it")
    reply = talk.ask("A1")

    assert (asks.status, asks.text, [interrupt.prompt for interrupt in asks.interrupts]) == (
        "pending",
        "",
        ["Which *order*?"],
    )
    assert lines(asks) == [
        "clerk > (waiting for you)",
        "clerk asks: Which *order*?",
        "    Answer with chat.ask('...')",
    ]
    forms = reply_forms(asks)
    assert "**clerk asks: Which &#42;order&#42;?**" in forms["text/markdown"]
    assert "<strong>clerk asks: Which *order*?</strong>" in forms["text/html"]
    assert (reply.status, reply.text, reply.interrupts) == ("done", "A1 then.", [])
    assert rows_of(asks.events)[1]["text"] == "asks: Which *order*?"
    stored_forms = reply_forms(reply, history=view_of_reply(reply).history)
    assert "| you | A1 |" in stored_forms["text/markdown"]
    assert '✓ You answered "Which *order*?": A1' in stored_forms["text/plain"]


@pytest.mark.parametrize(("typed", "chosen"), [("Coffee", "coffee"), ("2", "coffee"), ("juice", "juice"), ("9", "9")])
def test_a_choice_is_made_by_its_words_or_its_number(typed: str, chosen: str):
    talk = chat(
        call("get_user_choice", options=["tea", "coffee"], prompt="What may it be?"), "Coming.", tools=[get_user_choice]
    )

    asks = talk.ask("a drink")
    talk.ask(typed)

    assert lines(asks)[1:] == [
        "clerk asks: What may it be?",
        "    1  tea",
        "    2  coffee",
        "    Choose one, by its words or its number, with chat.ask('...')",
    ]
    assert talk.events[-2].get_function_responses()[0].response == {"result": chosen}


@pytest.mark.parametrize(
    ("schema", "typed", "value"),
    [
        ({"type": "boolean"}, "yes", True),
        ({"type": "integer"}, "42", 42),
        ({"type": "string"}, "42", "42"),
        ({"type": "array", "items": {"type": "string"}}, '["a", "b"]', ["a", "b"]),
        ({"anyOf": [{"type": "null"}, {"type": "integer"}]}, "7", 7),
    ],
)
def test_words_are_read_as_what_was_asked_for(schema: dict[str, Any], typed: str, value: Any):
    talk = chat(call("adk_request_input", message="?", response_schema=schema), "ok", tools=[request_input])
    talk.ask("go")

    talk.ask(typed)

    assert talk.events[-2].get_function_responses()[0].response == {"result": value}


def test_words_that_are_no_answer_leave_the_question_open():
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    talk = chat(call("adk_request_input", message="How many?", response_schema=schema), "ok", tools=[request_input])
    talk.ask("go")

    with pytest.raises(InputError, match=r"answer 'How many\?': 'three' is not of type 'object'"):
        talk.ask("three")
    assert talk.ask('{"n": 3}').text == "ok"
    assert talk.events[-2].get_function_responses()[0].response == {"n": 3}


def order(item: str) -> None:
    """Orders something."""


def test_an_outcome_is_sent_from_a_cell():
    talk = chat(call("order", item="tea"), "It came.", tools=[LongRunningFunctionTool(order)])

    first = talk.ask("order tea")

    assert first.status == "pending"
    assert lines(first) == [
        "clerk > (waiting for an outcome)  [1 tool call]",
        'waiting for the outcome of order(item="tea")',
        "    Send it with chat.answer(...)",
    ]
    events = first.answer({"status": "here"})
    assert (events.status, events.text) == ("done", "It came.")
    with pytest.raises(InputError, match="no interrupt"):
        talk.answer("again")


def test_what_takes_long_is_no_question_that_words_would_answer():
    talk = chat(call("order", item="tea"), "Hello.", "It came.", tools=[LongRunningFunctionTool(order)])
    talk.ask("order tea")

    reply = talk.ask("hi?")

    assert (reply.status, reply.text) == ("done", "Hello.")
    assert talk.answer("here").text == "It came."


def test_several_questions_are_answered_the_oldest_first_or_by_their_number():
    calls = [call("adk_request_input", message=text) for text in ("one?", "two?")]
    talk = chat(calls, "both?", "both", tools=[request_input])
    talk.ask("go")

    talk.answer("2nd", 2)
    assert [interrupt.prompt for interrupt in talk.ask("1st").interrupts] == []

    responses = [response.response for event in talk.events for response in event.get_function_responses()]
    assert responses == [{"result": "2nd"}, {"result": "1st"}]
    with pytest.raises(InputError, match="no interrupt"):
        talk.answer("x", 3)


def test_a_chat_line_answers_who_asked_whoever_was_spoken_to_last(shell: Shell):
    shell.names["asks"] = ScriptedLlm(call("adk_request_input", message="Which order?"), "A1 then.")
    shell.names["other"] = ScriptedLlm("Hello.")
    shell.names["request_input"] = request_input
    shell.cell("%%agent clerk -m asks -t request_input\nHelp.")
    shell.cell("%%agent greeter -m other\nGreet.")

    asks = shell.cell("%chat clerk refund it")
    listed = str(shell.cell("%confirm"))
    shell.cell("%chat greeter hi")

    assert lines(asks)[-1] == listed.splitlines()[-1] == "    Answer with %chat ..."
    assert shell.cell("%chat A1").text == "A1 then."


def refund(order: str) -> str:
    """Refunds an order."""
    return f"refunded {order}"


def calling(*child: Any, root: tuple[Any, ...] = ("All done.",)) -> LlmAgent:
    tools = [FunctionTool(refund, require_confirmation=True), request_input]
    expert = LlmAgent(name="expert", model=ScriptedLlm(*child), tools=tools)
    text = (call("expert", request="Refund A1"), *root)
    return LlmAgent(name="guide", model=ScriptedLlm(*text), tools=[AgentTool(expert, stream_events=True)])


def test_what_a_called_agent_asks_is_approved_in_the_chat_with_its_caller():
    talk = Chat(calling(call("refund", order="A1"), "Refunded."), show="off")

    first = talk.ask("refund")
    with pytest.raises(PendingError, match=r"1 approval is open \(refund\)"):
        talk.ask("well?")
    reply = talk.approve(order="A2")

    assert (first.status, [interrupt.agent for interrupt in first.interrupts]) == ("pending", ["expert"])
    assert (reply.status, reply.text) == ("done", "All done.")
    assert reply.events[1].get_function_responses()[0].response == {
        "result": "refunded A2",
        "note": "a person changed the arguments before approving them, to {'order': 'A2'}",
    }


def test_a_called_agent_is_refused_in_the_chat_with_its_caller():
    talk = Chat(calling(call("refund", order="A1"), "Refused."), show="off")
    talk.ask("refund")

    assert talk.reject(reason="no").text == "All done."
    assert talk.interrupts == []


def test_what_a_called_agent_says_before_it_waits_is_not_the_answer():
    talk = Chat(calling(["I look.", call("refund", order="A1")], "Refunded."), show="off")

    assert talk.ask("refund").text == ""


def test_a_question_of_a_called_agent_is_answered_by_the_next_words():
    talk = Chat(calling(call("adk_request_input", message="Which?"), "A1 then."), show="off")

    asks = talk.ask("refund")

    assert lines(asks)[1] == "expert asks: Which?"
    assert talk.ask("A1").text == "All done."


def test_an_approval_of_an_agent_that_is_not_there_as_it_was_can_be_refused():
    root = calling(call("refund", order="A1"), root=("I could not.",))
    talk = Chat(root, show="off")
    talk.ask("refund")
    root.tools = []

    with pytest.raises(InputError, match=r"agent 'expert', .* refuse .*reject"):
        talk.approve()
    assert talk.reject().text == "I could not."
    assert talk.interrupts == []


def test_confirm_answers_what_a_called_agent_asks(shell: Shell):
    expert = calling(call("refund", order="A1"), "Refunded.").tools[0]
    shell.names["model"] = ScriptedLlm(call("expert", request="x"), "All done.")
    shell.names["expert_tool"] = expert
    shell.cell("%%agent guide -m model -t expert_tool\nHelp.")

    shell.cell("%chat guide refund")
    assert shell.cell("%confirm --yes").text == "All done."


def test_the_log_says_whose_call_an_agent_works_for():
    deep = LlmAgent(name="deep", model=ScriptedLlm("deep down"))
    middle = LlmAgent(name="middle", model=ScriptedLlm(call("deep", request="b"), "half way"))
    middle.tools = [AgentTool(deep, stream_events=True)]
    root = LlmAgent(name="guide", model=ScriptedLlm(call("middle", request="a"), "done"))
    root.tools = [AgentTool(middle, stream_events=True)]

    reply = Chat(root, show="off").ask("go")

    assert [(row["author"], row["text"] or row["tool"]) for row in rows_of(reply.events)] == [
        ("user", "go"),
        ("guide", "middle"),
        ("↳ middle", "deep"),
        ("↳ ↳ deep", "deep down"),
        ("↳ middle", "half way"),
        ("guide", "done"),
    ]
    assert '<td style="text-align: left">↳\u00a0↳\u00a0deep</td>' in reply_forms(reply)["text/html"]


def test_the_pieces_of_a_called_agents_answer_are_its_own_row():
    child = LlmAgent(name="expert", model=ScriptedLlm("Oslo it is"))
    root = LlmAgent(name="guide", model=ScriptedLlm(call("expert", request="a"), "done"))
    root.tools = [AgentTool(child, stream_events=True)]
    rows = RunRows()

    ops = [
        op for event in Talk(root).say(config=RunConfig(streaming_mode=StreamingMode.SSE)) for op in rows.feed(event)
    ]

    authors = [op["row"]["author"] for op in ops if op["op"] == "append" and op["row"].get("streaming")]
    assert "↳ expert" in authors


def test_a_question_of_a_graph_is_told_without_its_id(shell: Shell):
    def budget(node_input: str) -> Iterator[RequestInput]:
        yield RequestInput(message=f"{node_input}: how much?", response_schema=int)

    shell.names["budget"] = budget
    shell.cell("%%workflow repair\nSTART -> budget")

    shell.cell("%chat repair lamps")
    forms = reply_forms(reply := shell.cell("%chat 250"), history=view_of_reply(reply).history)

    assert '✓ You answered "lamps: how much?": 250' in forms["text/plain"]
    trace = str(shell.cell("%trace"))
    assert "asks: lamps: how much?" in trace
    for view in (*forms.values(), trace):
        assert "adk_request_input" not in view


def test_a_graph_that_asks_has_no_answer_yet_and_calls_no_tool():
    def look(node_input: str) -> str:
        return "3 lamps were looked at"

    def budget(node_input: str) -> Iterator[RequestInput]:
        yield RequestInput(message="How much?", response_schema=int)

    def order(node_input: int) -> str:
        return f"ordered for {node_input}"

    talk = Chat(Workflow(name="repair", edges=[(START, look, budget, order)]), show="off")

    asks = talk.ask("Harbour Street")
    reply = talk.ask("250")

    assert (asks.status, asks.text, asks.answered_by) == ("pending", "", "")
    assert lines(asks) == [
        "repair > (waiting for you)",
        "repair asks: How much?",
        "    Answer (a whole number) with chat.ask('...')",
    ]
    assert lines(reply) == ["repair · order > ordered for 250", '✓ You answered "How much?": 250']


def test_what_a_node_says_before_it_asks_is_shown_above_the_question():
    def draft(node_input: str) -> Iterator[Event | RequestInput]:
        yield Event(message="Dear citizens, ...")
        yield RequestInput(message="Is it good?")

    asks = Chat(Workflow(name="notices", edges=[(START, draft)]), show="off").ask("go")

    assert lines(asks)[:2] == ["notices · draft > Dear citizens, ...", "notices asks: Is it good?"]


@pytest.mark.parametrize("kind", [SequentialAgent, ParallelAgent])
def test_what_one_member_said_is_no_answer_while_another_waits(kind: Any):
    def pay(euros: int) -> str:
        """Pays."""
        return f"{euros} paid"

    says = LlmAgent(name="says", model=ScriptedLlm("A draft."))
    asks = LlmAgent(name="asks", model=ScriptedLlm(call("pay", euros=5), "Paid."))
    asks.tools = [FunctionTool(pay, require_confirmation=True)]
    talk = Chat(kind(name="team", sub_agents=[says, asks]), show="off")

    waits = talk.ask("go")
    reply = waits.approve()

    assert lines(waits)[0] == "team > (waiting for you)  [1 tool call]"
    assert (reply.text, reply.answered_by) == ("Paid.", "asks")


def gated() -> Workflow:
    def pay(node_input: str) -> str:
        return f"paid {node_input}"

    return Workflow(name="desk", edges=[(START, node(pay, require_confirmation=True, rerun_on_resume=True))])


@pytest.mark.parametrize(("typed", "value"), [("--yes", "paid 7"), ("--no --reason dear", "dear")])
def test_whether_a_node_may_run_is_answered_like_any_approval(shell: Shell, typed: str, value: str) -> None:
    shell.names["desk"] = gated()

    text = str(shell.cell("%chat -s bill desk 7"))
    assert "Answer with %confirm -s bill --yes or %confirm -s bill --no" in text
    assert text.splitlines()[-2:] == str(shell.cell("%confirm -s bill")).splitlines()
    assert "cannot be changed" in shell.fails("%confirm -s bill --yes --edit node_input=8")
    assert value in shell.cell(f"%confirm -s bill {typed}").text
    assert "no approval" in shell.fails("%confirm -s bill --yes")


def test_whether_a_node_may_run_is_answered_in_python_like_any_approval() -> None:
    chat = Chat(gated(), show="off")

    assert "Answer with chat.approve() or chat.reject()" in str(chat.ask("7"))
    assert chat.approve().text == "paid 7"
    assert "dear" in chat.ask("7").reject(reason="dear").text
    with pytest.raises(InputError, match="no approval"):
        chat.approve()


def test_what_a_graph_shows_with_its_question_is_shown():
    def check(node_input: str) -> Iterator[RequestInput]:
        yield RequestInput(message="Is it good?", payload={"draft": node_input})

    asks = Chat(Workflow(name="notices", edges=[(START, check)]), show="off").ask("Dear <b>citizens</b>")

    assert lines(asks)[1] == 'notices asks: Is it good? · payload: {"draft": "Dear <b>citizens</b>"}'
    assert "<b>" not in reply_forms(asks)["text/html"]


def test_the_answer_to_a_question_after_which_nothing_follows_is_the_answer_of_the_graph() -> None:
    def name(node_input: str) -> Any:
        yield RequestInput(message="Your name?")

    chat = Chat(Workflow(name="desk", edges=[(START, name)]), show="off")
    chat.ask("hello")

    assert chat.ask("Ada").text == "Ada"
