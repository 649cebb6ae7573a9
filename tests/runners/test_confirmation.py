"""A call that needs a person's word: it waits, it runs once when approved, and nobody but a person can approve it."""

import datetime
import functools
import json
from typing import Any

import pytest
from support.messages import mentions

from adk_nb.agents import LlmAgent
from adk_nb.errors import ConfigurationError, InputError
from adk_nb.events import Event, ToolConfirmation
from adk_nb.models.scripted_llm import ScriptedLlm, call
from adk_nb.runtime.approvals import REJECTED
from adk_nb.runtime.history import open_interrupts
from adk_nb.runtime.interrupts import APPROVALS
from adk_nb.tools import BaseTool, FunctionTool, ToolContext
from tests.support.each import each
from tests.support.shop import REQUEST, answer, delete_call, open_approvals, part_of, results, shop_talk
from tests.support.talk import Talk, content_summaries, summaries
from tests.support.transcripts import call_line, result_line


def test_a_call_waits_for_approval_and_then_runs():
    talk, shop = shop_talk(delete_call(), "after resume")

    first = talk.say("del")

    request = first[1].get_function_calls()[0]
    assert [event.author for event in first] == ["a1"] * 3
    assert request.name == REQUEST and first[1].long_running_tool_ids == {request.id}
    original = first[0].get_function_calls()[0]
    assert request.args["originalFunctionCall"] == {"id": original.id, "name": "dele", "args": {"p": "/x"}}
    assert (
        request.args["toolConfirmation"]["confirmed"] is False and "dele()" in request.args["toolConfirmation"]["hint"]
    )
    assert [event.is_final_response() for event in first] == [False, True, True]
    assert list(results(first)[0]) == ["error"] and first[2].actions.skip_summarization
    assert list(first[2].actions.requested_tool_confirmations) == [original.id]
    assert shop.deleted == []

    second = answer(talk)

    assert summaries(second) == [("a1", "answers {'deleted': '/x'}"), ("a1", "after resume .")]
    assert second[0].get_function_responses()[0].id == original.id
    assert shop.deleted == ["/x"] and open_approvals(talk) == []
    assert content_summaries(talk.runner.agent.model.requests[-1].contents) == [
        ("user", "del"),
        ("model", call_line("dele", p="/x")),
        ("user", "answers {'deleted': '/x'}"),
    ]


def test_a_rejected_call_does_not_run_and_the_model_is_told():
    talk, shop = shop_talk(delete_call(), "as you wish")
    talk.say("del")

    events = answer(talk, {"confirmed": False})

    assert shop.deleted == [] and "rejected" in results(events)[0]["error"]
    assert events[-1].text == "as you wish"


def test_the_reason_of_a_rejection_is_reported():
    talk, _ = shop_talk(delete_call(), "as you wish")
    talk.say("del")

    events = answer(talk, {"confirmed": False, "reason": "too early", "args": {"p": "/y"}})

    [result] = results(events)
    assert result["error"].startswith(REJECTED) and result["error"].endswith("too early")


def test_edited_arguments_are_what_runs_and_the_model_is_told():
    talk, shop = shop_talk(delete_call(), "done")
    talk.say("del")

    events = answer(talk, {"confirmed": True, "args": {"p": "/y"}})

    assert shop.deleted == ["/y"]
    [response] = results(events)
    assert response["deleted"] == "/y" and "{'p': '/y'}" in response["note"]


def test_edited_arguments_that_do_not_fit_run_nothing():
    talk, shop = shop_talk(delete_call(), "done")
    talk.say("del")

    events = answer(talk, {"confirmed": True, "args": {"q": 1}})

    assert shop.deleted == [] and "mandatory parameters p" in results(events)[0]["error"]
    assert open_approvals(talk) == []


def test_a_tool_may_ask_while_it_runs_beside_one_that_needs_no_word():
    talk, shop = shop_talk([call("pay", amt=1), call("plain")], "thanks")

    first = talk.say("pay")

    assert results(first) == [{"status": "need approval"}, {"plain": 1}]
    assert [bool(event.long_running_tool_ids) for event in first] == [False, False, True]
    [approval] = open_approvals(talk)
    assert (approval.prompt, approval.payload, approval.call.args) == ("how many?", {"n": 0}, {"amt": 1})
    assert not first[1].actions.skip_summarization

    second = answer(talk, {"confirmed": True, "payload": {"n": 3}})

    assert summaries(second) == [("a1", result_line(ok=True, pl={"n": 3})), ("a1", "thanks .")]
    assert shop.paid == [1]
    assert content_summaries(talk.runner.agent.model.requests[-1].contents)[-1] == (
        "user",
        "; ".join([result_line(ok=True, pl={"n": 3}), result_line(plain=1)]),
    )


def test_a_tool_that_asks_while_it_runs_decides_itself_what_a_rejection_means():
    talk, shop = shop_talk(call("pay", amt=1), "hm")
    talk.say("pay")

    assert results(answer(talk, {"confirmed": False})) == [{"ok": False, "pl": None}]
    assert shop.paid == []


def test_a_tool_may_ask_again_and_only_the_newest_request_is_open():
    tool_confirmations: list[Any] = []

    def pay(tool_context: ToolContext) -> str:
        tool_confirmations.append(tool_context.tool_confirmation)
        if len(tool_confirmations) < 3:
            tool_context.request_confirmation(hint=f"question {len(tool_confirmations)}")
            return "waits"
        return "paid"

    talk = Talk(LlmAgent(name="a1", model=ScriptedLlm(call("pay"), "done"), tools=[pay]))
    talk.say("pay")
    [first] = open_approvals(talk)
    repeated_events = answer(talk)
    [second] = open_approvals(talk)

    assert (first.prompt, second.prompt) == ("question 1", "question 2") and first.id != second.id
    assert repeated_events[-1].long_running_tool_ids == {second.id}
    talk.say([part_of(first.id, {"confirmed": True})])
    assert isinstance(talk.error, InputError) and len(tool_confirmations) == 2
    assert summaries(answer(talk)) == [("a1", "answers {'result': 'paid'}"), ("a1", "done .")]
    assert len(tool_confirmations) == 3


def test_words_instead_of_an_answer_are_a_normal_turn_and_the_call_still_waits():
    talk, shop = shop_talk(delete_call(), "ok never mind", "deleted after all")
    talk.say("del")

    assert summaries(talk.say("never mind")) == [("a1", "ok never mind .")]
    assert "approval" in content_summaries(talk.runner.agent.model.requests[-1].contents)[2][1]
    assert len(open_approvals(talk)) == 1
    answer(talk)
    assert shop.deleted == ["/x"]


def test_a_callable_decides_by_the_arguments_which_calls_wait():
    talk, shop = shop_talk(delete_call("/tmp"), delete_call("/etc"), confirm=lambda p: p == "/etc")
    events = talk.say("del")

    assert shop.deleted == ["/tmp"]
    assert [approval.call.args for approval in open_approvals(talk)] == [{"p": "/etc"}]
    assert events[-1].is_final_response()


def test_the_callable_may_be_async_and_may_take_the_context():
    texts: list[str] = []

    async def asks(p: str, tool_context: ToolContext) -> bool:
        texts.append(f"{tool_context.agent_name} {p}")
        return True

    talk, shop = shop_talk(delete_call(), confirm=asks)
    talk.say("del")

    assert texts == ["a1 /x"] and shop.deleted == [] and len(open_approvals(talk)) == 1


def test_the_callable_names_the_arguments_that_it_wants():
    ran: list[int] = []

    def pay(account: str, amount: int, note: str = "") -> None:
        ran.append(amount)

    tools = [FunctionTool(pay, require_confirmation=lambda amount: amount > 100)]
    model = ScriptedLlm(call("pay", account="a", amount=5), call("pay", account="a", amount=500))
    talk = Talk(LlmAgent(name="a1", model=model, tools=tools))
    talk.say("pay")

    assert ran == [5] and [approval.call.args["amount"] for approval in open_approvals(talk)] == [500]


@pytest.mark.parametrize("waits", [False, True])
def test_where_a_callable_raises_a_person_is_asked_as_where_an_expression_does(
    waits: bool, caplog: pytest.LogCaptureFixture
):
    def asks(p: str) -> bool:
        raise ValueError("cannot tell")

    async def asks_later(p: str) -> bool:
        raise ValueError("cannot tell")

    talk, shop = shop_talk(delete_call(), "deleted", confirm=asks_later if waits else asks)
    talk.say("del")

    assert shop.deleted == [] and len(open_approvals(talk)) == 1
    assert "ValueError: cannot tell" in caplog.text
    assert answer(talk)[-1].text == "deleted" and shop.deleted == ["/x"]


@pytest.mark.parametrize("confirm", [True, lambda p: True])
def test_nobody_is_asked_about_arguments_that_do_not_fit(confirm: Any):
    talk, _ = shop_talk(call("dele", q=1), "sorry", confirm=confirm)

    assert "mandatory parameters p" in results(talk.say("del"))[0]["error"]
    assert open_approvals(talk) == []


def test_of_several_some_may_be_answered_first():
    talk, shop = shop_talk([delete_call("/x"), delete_call("/y"), call("plain")], "after first", "after second")
    first = talk.say("del")
    first_approval, second_approval = open_approvals(talk)

    assert [first_approval.call.args, second_approval.call.args] == [{"p": "/x"}, {"p": "/y"}]
    assert len(first[2].get_function_calls()) == 2 and results(first)[2] == {"plain": 1}

    assert summaries(talk.say([part_of(second_approval.id, {"confirmed": True})])) == [
        ("a1", "answers {'deleted': '/y'}"),
        ("a1", "after first ."),
    ]
    assert shop.deleted == ["/y"] and [remaining_approval.id for remaining_approval in open_approvals(talk)] == [
        first_approval.id
    ]
    assert summaries(talk.say([part_of(first_approval.id, {"confirmed": False})]))[-1] == ("a1", "after second .")
    assert shop.deleted == ["/y"] and open_approvals(talk) == []


def test_several_may_be_answered_at_once_and_are_told_in_one_event():
    talk, shop = shop_talk([delete_call("/x"), delete_call("/y")], "done")
    talk.say("del")

    assert summaries(answer(talk)) == [
        ("a1", "; ".join([result_line(deleted="/x"), result_line(deleted="/y")])),
        ("a1", "done ."),
    ]
    assert sorted(shop.deleted) == ["/x", "/y"]


@each(
    "response, runs",
    [
        ({"confirmed": True}, True),
        ({"confirmed": True, "payload": {"a": 1}, "hint": "x"}, True),
        ({"response": '{"confirmed": true}'}, True),
        ({"response": {"confirmed": True}}, True),
        ({"toolConfirmation": {"confirmed": True}}, True),
        ({"result": True}, True),
        ({"result": {"confirmed": True}}, True),
        ({"confirmed": False}, False),
        ({"result": False}, False),
        ({"response": '{"confirmed": false}'}, False),
        ({"confirmed": "true"}, False),
        ({"confirmed": 1}, False),
        ({"confirmed": None}, False),
        ({"confirmed": [True]}, False),
        ({"result": "yes"}, False),
        ({"response": "{" * 100_000}, False),
        ({"response": "[" * 100_000}, False),
        ({"confirmed": True, "args": "everything"}, False),
        ({"confirmed": True, "hint": 3}, False),
        ({}, False),
        ({"status": "ok"}, False),
    ],
)
def test_the_shapes_of_an_answer(response: dict[str, Any], runs: bool):
    talk, shop = shop_talk(delete_call(), "done")
    talk.say("del")
    [approval] = open_approvals(talk)

    events = talk.say([part_of(approval.id, response)])

    assert talk.error is None and events[-1].text == "done"
    assert shop.deleted == (["/x"] if runs else [])
    assert open_approvals(talk) == []


def test_an_answer_may_name_the_call_instead_of_the_request():
    talk, shop = shop_talk(delete_call(), "done")
    talk.say("del")
    [approval] = open_approvals(talk)
    talk.say([part_of(approval.call.id, {"confirmed": True})])

    assert shop.deleted == ["/x"]


def test_of_two_answers_in_one_message_the_first_holds():
    talk, shop = shop_talk(delete_call(), "done")
    talk.say("del")
    [approval] = open_approvals(talk)
    talk.say([part_of(approval.id, {"confirmed": False}), part_of(approval.call.id, {"confirmed": True})])

    assert shop.deleted == []


def test_the_tool_reads_what_was_decided():
    tool_confirmations: list[ToolConfirmation | None] = []

    def dele(p: str, tool_context: ToolContext) -> None:
        tool_confirmations.append(tool_context.tool_confirmation)

    tools = [FunctionTool(dele, require_confirmation=True)]
    talk = Talk(LlmAgent(name="a1", model=ScriptedLlm(delete_call(), "done"), tools=tools))
    talk.say("del")
    answer(talk, {"confirmed": True, "payload": {"n": 3}})

    assert [
        (tool_confirmation.confirmed, tool_confirmation.payload)
        for tool_confirmation in tool_confirmations
        if tool_confirmation
    ] == [(True, {"n": 3})]


def test_the_request_shows_the_arguments_that_a_callback_made_and_those_run():
    def run_before(tool: BaseTool, args: dict[str, Any], tool_context: ToolContext) -> None:
        args["p"] = args["p"].lower()

    talk, shop = shop_talk(delete_call("/X"), "done", before_tool_callback=run_before)
    talk.say("del")

    assert [approval.call.args for approval in open_approvals(talk)] == [{"p": "/x"}]
    answer(talk)
    assert shop.deleted == ["/x"]


def test_a_callback_that_answers_for_the_tool_needs_no_approval():
    def run_before(tool: BaseTool, args: dict[str, Any], tool_context: ToolContext) -> dict[str, Any]:
        return {"cached": True}

    talk, shop = shop_talk(delete_call(), "done", before_tool_callback=run_before)

    assert results(talk.say("del")) == [{"cached": True}]
    assert open_approvals(talk) == [] and shop.deleted == []


def test_callbacks_after_the_tool_see_an_approved_call():
    def after(tool: BaseTool, args: dict[str, Any], tool_context: ToolContext, tool_response: Any) -> Any:
        return {"after": tool_response}

    talk, _ = shop_talk(delete_call(), "done", after_tool_callback=after)
    first = talk.say("del")

    assert "after" not in results(first)[0]
    assert results(answer(talk)) == [{"after": {"deleted": "/x"}}]


def test_an_approved_tool_that_raises_tells_the_model():
    def dele(p: str) -> None:
        raise OSError("disk full")

    tools = [FunctionTool(dele, require_confirmation=True)]
    talk = Talk(LlmAgent(name="a1", model=ScriptedLlm(delete_call(), "sorry"), tools=tools))
    talk.say("del")

    assert results(answer(talk)) == [{"error": "OSError: disk full"}]
    assert open_approvals(talk) == []


def test_an_approved_tool_may_end_the_turn():
    def dele(p: str, tool_context: ToolContext) -> dict[str, bool]:
        tool_context.actions.skip_summarization = True
        return {"ok": True}

    tools = [FunctionTool(dele, require_confirmation=True)]
    talk = Talk(LlmAgent(name="a1", model=ScriptedLlm(delete_call()), tools=tools))
    talk.say("del")

    assert summaries(answer(talk)) == [("a1", "answers {'ok': True} .")]
    assert talk.error is None


def test_a_request_outside_a_tool_is_refused():
    def run_before(callback_context: ToolContext) -> None:
        callback_context.request_confirmation(hint="?")

    talk, _ = shop_talk("hi", before_agent_callback=run_before)
    talk.say()

    assert isinstance(talk.error, ConfigurationError)


def test_interrupts_survive_json():
    talk, _ = shop_talk(delete_call("/caf\u00e9"), "done")
    talk.say("del")
    repeated_events = [
        Event.model_validate_json(event.model_dump_json(by_alias=True)) for event in talk.stored().events
    ]

    assert open_interrupts(repeated_events, APPROVALS) == open_approvals(talk)
    assert json.loads(repeated_events[2].model_dump_json(by_alias=True))["longRunningToolIds"] == [
        open_approvals(talk)[0].id
    ]


def paying(**kwargs: Any) -> tuple[FunctionTool, list[Any]]:
    paid: list[Any] = []

    def pay(to: str, amount: float = 500, when: datetime.date | None = None, tags: list[str] | None = None) -> str:
        """Pay."""
        paid.append(amount)
        return "paid"

    return FunctionTool(pay, **kwargs), paid


@each(
    "condition, args, asks",
    [
        ("amount > 100", {"amount": 50}, False),
        ("amount > 100", {"amount": 150}, True),
        ("amount > 100", {"amount": "150"}, True),
        ("amount > 100", {"amount": "50"}, False),
        ("amount > 100", {}, True),
        ("amount > 1000", {}, False),
        ('to == "Mallory"', {"to": "Mallory"}, True),
        ('to == "Mallory"', {}, False),
        ('to.lower() not in ("ada", "bob")', {"to": "ADA"}, False),
        ("when is not None", {}, False),
        ("when is not None", {"when": "2026-01-01"}, True),
        ('when.startswith("2026")', {"when": "2026-01-01"}, True),
        ('tags and "risky" in tags', {"tags": ["risky"]}, True),
        ('tags and "risky" in tags', {"tags": []}, False),
        ("len(tags) > 3", {}, True),
        ("amount / (amount - 50) > 2", {"amount": 50}, True),
        ("to > 100", {}, True),
        ("always", {}, True),
        ("never", {}, False),
    ],
)
def test_an_expression_on_the_arguments_decides_which_calls_wait_and_one_without_an_answer_asks(
    condition: str, args: dict[str, Any], asks: bool
):
    pay, paid = paying(require_confirmation=condition)
    model = ScriptedLlm(call("pay", **({"to": "Ada"} | args)), "done")
    talk = Talk(LlmAgent(name="a1", model=model, tools=[pay]))
    talk.say("pay")

    assert (len(open_approvals(talk)), len(paid)) == ((1, 0) if asks else (0, 1))


def test_why_a_person_is_asked_where_the_expression_has_no_answer_is_logged(caplog: pytest.LogCaptureFixture):
    pay, paid = paying(require_confirmation="len(tags) > 3")
    talk = Talk(LlmAgent(name="a1", model=ScriptedLlm(call("pay", to="Ada"), "done"), tools=[pay]))
    talk.say("pay")

    assert paid == [] and "'len(tags) > 3'" in caplog.text and "None" in caplog.text


def test_wrong_arguments_go_back_before_an_expression_is_asked():
    pay, _ = paying(require_confirmation="amount > 100")
    model = ScriptedLlm(call("pay", to="Ada", amount="much"), "sorry")
    talk = Talk(LlmAgent(name="a1", model=model, tools=[pay]))

    assert "wrong arguments" in results(talk.say("pay"))[0]["error"] and open_approvals(talk) == []


@each(
    "condition, text",
    [
        ("amuont > 1", "tool 'pay': the expression 'amuont > 1' cannot be used: there is no 'amuont'; did you mean"),
        ("tool_context", "there is no 'tool_context'; there is: amount, tags, to, when"),
        ("amount >", "invalid syntax … as in Python"),
        ("", "as in Python"),
        (7, "tool 'pay': … True (always), False (never), … got 7;"),
        (["amount > 1"], "got ['amount > 1']; write text like 'amount > 100'"),
        (lambda amuont: amuont > 1, "tool 'pay': its condition needs 'amuont'"),
        (lambda limit, tool_context: True, "its condition needs 'limit'"),
        (lambda *, euros: True, "its condition needs 'euros' … there is: amount"),
    ],
)
def test_a_condition_that_cannot_be_is_refused_when_the_tool_is_made(condition: Any, text: str):
    with pytest.raises(ConfigurationError) as refused:
        paying(require_confirmation=condition)

    assert mentions(refused.value, text) and "\n" not in str(refused.value)


def test_a_tool_of_any_arguments_asks_where_one_that_its_expression_names_is_missing():
    ran: list[Any] = []

    def send(**kwargs: Any) -> None:
        """Send."""
        ran.append(kwargs)

    send_three = functools.partial(send, count=3)
    tools = [FunctionTool(send_three, name="send", require_confirmation="count > 5")]
    model = ScriptedLlm(call("send", size=1), call("send", count=1), call("send", count=9))
    talk = Talk(LlmAgent(name="a1", model=model, tools=tools))
    talk.say("send")

    assert ran == [] and len(open_approvals(talk)) == 1  # what its author filled in is not what the model says it is
