"""A click on a card, `%confirm`, `chat.approve()` and a function response do the same; the log says which it was."""

from collections.abc import Callable
from typing import Any

import comm
import pytest

from adk_nb import clock, types
from adk_nb.models.scripted_llm import ScriptedLlm, call
from adk_nb.notebook.view import display
from adk_nb.runners import Runner
from adk_nb.runtime.approvals import REQUEST
from adk_nb.runtime.history import open_interrupts
from adk_nb.runtime.interrupts import APPROVALS
from tests.notebook.conftest import Shell
from tests.notebook.test_widget import Wire
from tests.support.talk import content_summaries

PAY = '''%%tool --confirm
def pay(amount: int, to: str = "Ada") -> str:
    """Pay."""
    paid.append((amount, to))
    return "paid"
'''
YES: dict[str, Any] = {"confirmed": True}
EDITED: dict[str, Any] = {"confirmed": True, "args": {"amount": 1}}
NO: dict[str, Any] = {"confirmed": False, "reason": "too much"}


def by_click(shell: Shell, wires: list[Wire], decided: dict[str, Any]) -> None:
    [asked] = shell.names["_run"].interrupts
    decision = "approve" if decided["confirmed"] else "reject"
    said = {"args": decided.get("args"), "reason": decided.get("reason")}
    page = next(wire for wire in wires if wire.batches)
    page.says(kind="answer", id=asked.id, decision=decision, **said)
    page.says(kind="answer", id=asked.id, decision=decision, **said)  # a second click
    page.wait_for(lambda wire: any(op.get("status") == "done" for batch in wire.batches for op in batch["ops"]))


def by_magic(shell: Shell, wires: list[Wire], decided: dict[str, Any]) -> None:
    line = "%confirm --yes" if decided["confirmed"] else f"%confirm --no --reason '{decided['reason']}'"
    shell.cell(line + "".join(f" --edit {key}={value}" for key, value in decided.get("args", {}).items()))


def by_python(shell: Shell, wires: list[Wire], decided: dict[str, Any]) -> None:
    chat = shell.ip.adk_nb.chat("clerk", None)
    chat.approve(**decided.get("args", {})) if decided["confirmed"] else chat.reject(reason=decided["reason"])


def by_response(shell: Shell, wires: list[Wire], decided: dict[str, Any]) -> None:
    notebook = shell.ip.adk_nb
    [asked] = open_interrupts(notebook.sessions.events(), APPROVALS)
    said = types.FunctionResponse(id=asked.id, name=REQUEST, response=decided)
    runner = Runner(app_name="notebook", agent=notebook.agent("clerk"), session_service=notebook.sessions.service)
    list(runner.run(user_id="user", session_id="main", new_message=[types.Part(function_response=said)]))


def plain(value: Any) -> Any:
    """Without ids, and without the way."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items() if key not in ("id", "by")}
    return [plain(one) for one in value] if isinstance(value, list) else value


DOORS = {"click": by_click, "%confirm": by_magic, "chat": by_python, "response": by_response}


def through(door: str, decided: dict[str, Any], shell: Shell, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What comes of a call that is decided through a door."""
    wires: list[Wire] = []

    def connect(*args: Any, **keys: Any) -> Wire:
        wires.append(Wire(*args, **keys))
        return wires[-1]

    monkeypatch.setattr(comm, "create_comm", connect)
    monkeypatch.setattr(display, "in_a_kernel", lambda: True)
    monkeypatch.setenv("ADK_NB_DISPLAY", "widget")
    model = ScriptedLlm(call("pay", amount=250), "Done.")
    shell.names.update(paid=[], model=model)
    shell.cell(PAY)
    shell.cell("%%agent clerk -m model -t pay\nPay.")
    shell.cell("%chat clerk Pay 250")
    answer: Callable[[Shell, list[Wire], dict[str, Any]], None] = DOORS[door]
    answer(shell, wires, decided)
    events = shell.ip.adk_nb.sessions.events()
    [said] = [one for event in events for one in event.get_function_responses() if one.name == REQUEST]
    return {
        "paid": shell.names["paid"],
        "told": [content_summaries(request.contents) for request in model.requests],
        "stored": [plain([event.author, event.content.model_dump(exclude_none=True)]) for event in events],
        "by": (said.response or {}).get("by"),
        "rows": str(shell.cell("%trace")),
        "open": open_interrupts(events, APPROVALS),
    }


@pytest.mark.parametrize(
    ("decided", "paid"),
    [(YES, [(250, "Ada")]), (EDITED, [(1, "Ada")]), (NO, [])],
    ids=["yes", "edited", "no"],
)
@pytest.mark.parametrize(
    ("door", "by", "shown"),
    [
        ("click", "a click", "a click"),
        ("%confirm", "%confirm", "%confirm"),
        ("chat", "chat.approve()", "chat.approve()"),
        ("response", None, "a function response"),
    ],
    ids=list(DOORS),
)
def test_every_door_does_the_same_and_says_which_it_was(
    door: str,
    by: str | None,
    shown: str,
    decided: dict[str, Any],
    paid: list[Any],
    shell: Shell,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    came = through(door, decided, shell, monkeypatch)
    if not decided["confirmed"] and by == "chat.approve()":
        by = shown = "chat.reject()"

    answered = {key: one for key, one in decided.items() if one is not None}
    result: dict[str, Any] = {"result": "paid"}
    if "args" in decided:
        result["note"] = "a person changed the arguments before approving them, to {'amount': 1}"
        if door != "response":
            answered["args"] = {"amount": 1}
    if not decided["confirmed"]:
        result = {"error": "this call was rejected; it did not run; the reason given: too much"}
    assert (came["paid"], came["by"], came["open"]) == (paid, by, [])
    assert came["told"] == [
        [("user", "Pay 250")],
        [("user", "Pay 250"), ("model", "calls pay({'amount': 250})"), ("user", f"answers {result}")],
    ]
    assert came["stored"][4:] == [
        ["user", {"role": "user", "parts": [{"function_response": {"name": REQUEST, "response": answered}}]}],
        ["clerk", {"role": "user", "parts": [{"function_response": {"name": "pay", "response": result}}]}],
        ["clerk", {"role": "model", "parts": [{"text": "Done."}]}],
    ]
    assert f"pay by {shown}" in came["rows"]


@pytest.mark.parametrize(
    ("lines", "by"),
    [
        (["%chat --yes clerk Pay"], "%chat --yes"),
        (["%%chat --yes clerk\nPay"], "%%chat --yes"),
        (["%config AdkNb.confirm = 'yes'", "%chat clerk Pay"], "%config AdkNb.confirm"),
        (["%config AdkNb.confirm = 'no'", "%chat --yes clerk Pay"], "%chat --yes"),
        (["_ = adk.ask('Pay', confirm='yes')"], "chat.ask(confirm='yes')"),
        (["%chat --no clerk Pay"], "%chat --no"),
        (["%config AdkNb.confirm = 'no'", "%chat clerk Pay"], "%config AdkNb.confirm"),
        (["%config AdkNb.confirm = 'no'", "_ = adk.ask('Pay')"], "%config AdkNb.confirm"),
        (["%config AdkNb.confirm = 'yes'", "_ = adk.ask('Pay', confirm='ask')"], None),
        (["_ = adk.ask('Pay', confirm='no')"], "chat.ask(confirm='no')"),
        (["%config AdkNb.confirm = 'yes'", "%chat --ask clerk Pay"], None),
        (["%chat clerk Pay"], None),
        (["_ = adk.ask('Pay')"], None),
    ],
)
def test_a_policy_answers_through_the_same_record_and_the_log_says_which(
    shell: Shell, lines: list[str], by: str | None
) -> None:
    shell.names.update(paid=[], model=ScriptedLlm(call("pay", amount=1), call("pay", amount=2), "Done."))
    shell.cell(PAY)
    shell.cell("%%agent clerk -m model -t pay\nPay.")
    shell.names["adk"] = shell.ip.adk_nb.chat("clerk", None)
    for line in lines:
        shell.cell(line)

    events = shell.ip.adk_nb.sessions.events()
    given = [one for event in events for one in event.get_function_responses() if one.name == REQUEST]
    session = shell.ip.adk_nb.sessions.find()
    if by is None:
        assert (given, shell.names["paid"], len(open_interrupts(events, APPROVALS))) == ([], [], 1)
        return
    yes = by.endswith(("yes", "yes')")) or "yes" in "".join(lines)
    assert [one.response for one in given] == [{"confirmed": yes, "by": by}] * 2
    assert shell.names["paid"] == ([(1, "Ada"), (2, "Ada")] if yes else [])
    service = shell.ip.adk_nb.sessions.service
    assert not any(service.consume(session, f"approval:{one.id}") for one in given)  # each is used
    assert str(shell.cell("%trace")).count(f"pay by {by}") == 2


def test_a_late_yes_says_what_to_type_and_a_no_still_counts(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.names.update(paid=[], model=ScriptedLlm(call("pay", amount=1), "As you wish."))
    shell.cell(PAY)
    shell.cell("%%agent clerk -m model -t pay\nPay.")
    shell.cell("%chat clerk Pay")
    later = clock.now() + 8 * 86_400
    monkeypatch.setattr(clock, "now", lambda: later)

    said = shell.fails("%confirm --yes")
    assert said.startswith("InputError: ")
    assert "pay has expired after 7 days" in said
    assert "%confirm --no" in said
    assert shell.cell("%confirm --no").text == "As you wish." and shell.names["paid"] == []


def test_a_policy_that_is_none_is_refused_before_anything_is_said(shell: Shell) -> None:
    model = ScriptedLlm("Hello.")
    shell.names["model"] = model
    shell.cell("%%agent clerk -m model\nPay.")
    shell.names["adk"] = shell.ip.adk_nb.chat("clerk", None)

    line = "adk.ask('Pay', confirm='maybe')"
    said = shell.fails(line)
    assert said.startswith("InputError: confirm ") and "'maybe'" in said
    assert "'ask', 'yes'" in said and "'no'" in said
    assert model.requests == [] and shell.ip.adk_nb.sessions.events() == []


def test_an_answer_in_a_session_where_nothing_waits_is_told_the_session_that_does(shell: Shell) -> None:
    shell.names["paid"] = []
    shell.names["script"] = ScriptedLlm(call("pay", amount=250), "Done.")
    shell.cell(PAY)
    shell.cell("%%agent clerk -m script -t pay\nPay.")
    shell.cell("%chat -s 'my second' clerk Pay.")

    for line in ("%confirm --yes", "%confirm"):
        said = shell.fails(line) if "--" in line else str(shell.cell(line))
        assert "session 'main'" in said
        assert "session 'my second' waits: type %confirm -s 'my second'" in said
    shell.cell("%confirm -s 'my second' --yes")

    assert shell.names["paid"] == [(250, "Ada")]
    assert "my second" not in shell.fails("%confirm --yes")
