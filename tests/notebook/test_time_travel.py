"""Rewind, ask again and fork, as a chat and as magics do it."""

import re
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from adk_nb import Chat, LlmAgent
from adk_nb.errors import InputError, PendingError
from adk_nb.models import ScriptedLlm, call
from adk_nb.sessions import InMemorySessionService
from adk_nb.tools import FunctionTool, ToolContext
from adk_nb.tools.request_input_tool import request_input
from tests.notebook.conftest import Shell
from tests.notebook.test_sessions_in_a_file import CLERK, KEPT, PAY_AT_ONCE, cut
from tests.support.polling import SECONDS
from tests.support.talk import content_summaries

PAID: list[int] = []


def pay(amount: int, tool_context: ToolContext) -> str:
    """Pays."""
    PAID.append(amount)
    tool_context.state["paid"] = amount
    return "paid"


def chat(*answers: Any, tools: list[Any] | None = None) -> tuple[Chat, ScriptedLlm]:
    model = ScriptedLlm(*answers)
    return Chat(LlmAgent(name="clerk", model=model, tools=tools or [])), model


def heard(model: ScriptedLlm) -> list[str]:
    """The words of the last request."""
    return [words for _, words in content_summaries(model.requests[-1].contents)]


def test_turns_are_undone_from_the_last_and_what_is_undone_is_not_heard():
    talk, model = chat("1", "2", "3", "4")
    for text in ("a", "b", "c"):
        talk.ask(text)

    told = talk.rewind(2)

    head, *turns = str(told).splitlines()
    assert head.startswith("undone: 2 turns") and "'main', 4 events" in head
    assert turns == ["    you > b", "    you > c"]
    assert [(turn.question, turn.undone) for turn in talk.turns] == [("a", False), ("b", True), ("c", True)]
    talk.ask("d")
    assert heard(model) == ["a", "1", "d"]


def test_nothing_is_undone_under_a_turn_of_another_chat():
    begun, may_end = Event(), Event()

    def wait() -> str:
        begun.set()
        return str(may_end.wait(SECONDS))

    service = InMemorySessionService()
    talk = Chat(LlmAgent(name="a", model=ScriptedLlm("1", call("wait"), "2"), tools=[wait]), session_service=service)
    other = Chat(LlmAgent(name="b", model=ScriptedLlm("never")), session_service=service)
    talk.ask("a")
    turn = talk.start("b")
    assert begun.wait(SECONDS)

    with pytest.raises(InputError, match=r"'main'.* another chat"):
        other.rewind()
    may_end.set()

    assert turn.result().text == "2"
    assert [one.question for one in other.rewind().turns] == ["b"]


def test_a_dry_run_says_what_would_be_undone_and_does_nothing():
    talk, _ = chat(call("pay", amount=5), "done", call("pay", amount=7), "done", tools=[pay])
    talk.ask("five")
    talk.ask("seven")
    before = talk.events

    told = str(talk.rewind(dry_run=True)).splitlines()

    assert told[0].startswith("would be undone: ") and "1 turn of" in told[0]
    assert told[1:3] == ["    you > seven", "state: paid 7 → 5"]
    assert told[3].startswith("not undone: ") and told[3].endswith(" pay() outside the session")
    assert talk.events == before and talk.state["paid"] == 7
    assert "paid is deleted" in str(talk.rewind(2))
    assert dict(talk.state) == {}


def test_going_back_names_no_call_that_was_rejected_or_still_waits(shell: Shell):
    shell.names["model"] = ScriptedLlm(call("pay", to="Anna"), call("note", text="x"), "Noted.", call("pay", to="Ben"))
    shell.cell("%%tool --confirm\ndef pay(to: str) -> str:\n    'Pays.'\n    return 'paid'")
    shell.cell("%%tool\ndef note(text: str) -> str:\n    'Notes.'\n    return 'noted'")
    shell.cell("%%agent payer -m model -t pay,note\nPay.")
    shell.cell("%chat payer Anna")
    shell.cell("%confirm --no")
    shell.cell("%chat payer Ben")

    told = str(shell.cell("%rewind 2"))

    assert "not undone: effects of note() outside the session" in told and "pay()" not in told


def test_going_back_again_counts_only_the_turns_that_are_left():
    talk, model = chat(*"12345")
    talk.ask("a")
    talk.ask("b")
    talk.rewind()
    talk.ask("c")

    assert [turn.question for turn in talk.rewind(2).turns] == ["a", "c"]
    with pytest.raises(InputError, match=r"'main' .*%trace"):
        talk.rewind()
    talk.ask("d")
    assert heard(model) == ["d"]
    with pytest.raises(InputError, match=r"'b' .*'main' .*undone"):
        talk.rewind(talk.turns[1].events[0])


def test_an_approval_in_what_is_undone_is_closed_and_the_call_is_not_made():
    PAID.clear()
    tool = FunctionTool(pay, require_confirmation=True)
    talk, model = chat(call("pay", amount=5), "hello", call("pay", amount=6), "done", "x", tools=[tool])
    asked = talk.ask("Pay")
    assert asked.interrupts

    assert "closed: 1 " in str(talk.rewind())

    assert talk.interrupts == []
    with pytest.raises(InputError):
        asked.approve()
    talk.ask("Hi")
    assert (heard(model), PAID) == (["Hi"], [])
    talk.ask("Pay")
    talk.approve()
    assert [turn.question for turn in talk.rewind().turns] == ["Pay"]  # with what came of the approval
    assert PAID == [6] and dict(talk.state) == {}


def test_a_question_whose_answer_is_undone_is_open_again():
    talk, model = chat(
        call("adk_request_input", message="Where to?"), "Rome it is", "Oslo it is", tools=[request_input]
    )
    talk.ask("Plan")
    assert talk.ask("Rome").text == "Rome it is"

    talk.rewind()

    assert talk.ask("Oslo").text == "Oslo it is"
    assert "Rome" not in str(heard(model))


def test_asking_again_says_the_same_words_with_all_that_went_with_them():
    talk, model = chat("1", "2", "3", "4")
    talk.ask("a")
    talk.ask("look", attach=b"%PDF-1.4 x")
    first = model.requests[-1].contents[-1]
    talk.ask("c")

    reply = talk.rerun(talk.turns[1].events[-1])

    assert (reply.text, reply.question) == ("4", "look")
    assert model.requests[-1].contents[-1] == first
    assert [turn.question for turn in talk.turns if not turn.undone] == ["a", "look"]


def test_asking_again_in_a_fork_keeps_the_original():
    talk, model = chat("1", "2", "3", "4")
    talk.ask("a")
    talk.ask("b")
    before = talk.events

    other = talk.fork()
    assert other.rerun().text == "3"

    assert other.session_id == "main-2"
    assert talk.events == before
    part = talk.fork("short", at=before[1])
    part.ask("c")
    assert heard(model) == ["a", "1", "c"]
    with pytest.raises(InputError, match=r"'short'.* chat\.fork"):
        talk.fork("short")
    with pytest.raises(InputError, match="no event 'x'"):
        talk.fork("none", at="x")
    with pytest.raises(InputError, match="session 'main'"):
        chat()[0].fork()


def test_what_was_said_by_an_undone_agent_leads_nobody_anywhere():
    """Whom a conversation was handed over to has it no more once that is undone."""
    expert = LlmAgent(name="expert", description="knows", model=ScriptedLlm("expert here", "still me"))
    model = ScriptedLlm(call("transfer_to_agent", agent_name="expert"), "root here")
    talk = Chat(LlmAgent(name="desk", model=model, sub_agents=[expert]))
    assert talk.ask("Hi").answered_by == "expert"

    talk.rewind()

    assert talk.ask("Hi again").answered_by == "desk"


# ---- magics


def defined(shell: Shell, *answers: Any) -> ScriptedLlm:
    shell.names["model"] = model = ScriptedLlm(*answers)
    shell.cell("%%agent planner -m model\nPlan a trip.")
    return model


def test_the_magic_undoes_turns_and_asks_again(shell: Shell):
    model = defined(shell, "1", "2", "3", "4", "5")
    shell.cell("%chat planner By train")
    shell.cell("%chat planner By plane")

    assert ": 1 turn " in str(shell.cell("%rewind --dry-run"))
    assert shell.cell("%rewind 1 --rerun").text == "3"
    assert heard(model) == ["By train", "1", "By plane"]

    trace = str(shell.cell("%trace"))
    assert re.findall(r"^(\d+) .* undone$", trace, re.MULTILINE) == ["3", "4"]
    assert re.search(r"^5  you +\S", trace, re.MULTILINE)
    shell.cell("%rewind --at 2")  # the answer to the first
    shell.cell("%chat planner On foot")
    assert heard(model) == ["On foot"]


def test_the_magic_forks_the_session_and_goes_on_in_the_copy(shell: Shell):
    model = defined(shell, "1", "2", "3", "4")
    shell.cell("%chat planner By train")
    shell.cell("%chat planner By plane")

    said = str(shell.cell("%session fork on_foot --at 2"))

    assert said.startswith("session 'on_foot' ") and "of 'main'" in said and ": 2 events" in said
    shell.cell("%chat On foot")
    assert heard(model) == ["By train", "1", "On foot"]
    shell.cell("%session use main")
    shell.cell("%chat By ship")
    assert heard(model) == ["By train", "1", "By plane", "2", "By ship"]
    assert "session 'main-2' " in str(shell.cell("%session fork"))


REFUSED = [
    ("%rewind 5", "has one turn to undo, and not 5; write 1 for the last turn, 2 for the last two; see %trace"),
    ("%rewind 0", "has one turn to undo, and not 0; write 1 for the last turn"),
    ("%rewind -1", "; type %rewind 1"),
    (
        "%rewind nowhere",
        "no turn has an event or a run called 'nowhere' in session 'main'; write how many turns are undone, such as 1",
    ),
    ("%trace nowhere", "called 'nowhere' in session 'main'; write -1 for the last turn, -2, or a whole id"),
    ("%rewind --at 9", "there is no event 9 in session 'main'; there are 2"),
    ("%rewind 1 --at 1", "N and --at exclude each other"),
    ("%rewind --rerun --dry-run", "--dry-run and --rerun exclude each other"),
    ("%rewind 1 2", "unexpected '2'"),
    ("%rewind --dryrun", "did you mean --dry-run?"),
    ("%session fork main", "there is a session 'main' already; give the copy another name"),
    ("%session fork x --at 9", "there is no event 9"),
    ("%session fork -s none", "no session named 'none'"),
    ("%session copy", "type: %session fork"),
    ("%session new x --at 2", "%session new has no --at; use it with %session fork"),
]


def test_lines_that_cannot_be_are_refused_in_one_sentence_and_change_nothing(shell: Shell):
    defined(shell, "1")
    shell.cell("%chat planner By train")
    before = str(shell.cell("%trace"))

    for line, why in REFUSED:
        said = shell.fails(line)
        assert why in said and "\n" not in said, line

    assert str(shell.cell("%trace")) == before
    assert shell.complete("%rewind --d") == ["%rewind --dry-run"]
    assert shell.complete("%session fo") == ["%session fork"]
    assert shell.complete("%trace --diff ") == ["%trace --diff -1"]


def test_a_run_that_was_cut_and_is_undone_is_not_offered_any_more(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(shell.ip, "starting_dir", str(tmp_path))
    cut(tmp_path)
    shell.names["paid"] = []
    shell.names["model"] = model = ScriptedLlm("Hello.")
    shell.cell(KEPT)
    assert "interrupted" in shell.printed
    shell.cell(PAY_AT_ONCE)
    shell.cell(CLERK)

    assert "you > Pay 5" in str(shell.cell("%rewind"))

    assert "cut" not in str(shell.cell("%session"))
    assert "session 'main'" in shell.fails("%session resume")
    assert shell.cell("%chat clerk Hi").text == "Hello."
    assert heard(model) == ["Hi"]
    assert shell.names["paid"] == []


def test_an_open_approval_is_no_reason_not_to_go_back(shell: Shell):
    shell.names["paid"] = []
    shell.names["model"] = ScriptedLlm(call("pay", amount=5), "Hello.")
    shell.cell(PAY_AT_ONCE.replace("%%tool", "%%tool --confirm"))
    shell.cell(CLERK)
    shell.cell("%chat clerk Pay")
    assert PendingError.__name__ in shell.fails("%chat clerk Hi")

    shell.cell("%rewind")

    assert "no approval" in str(shell.cell("%confirm"))
    assert shell.cell("%chat clerk Hi").text == "Hello."


def test_a_turn_that_broke_off_says_how_it_is_taken_back_or_asked_again(shell: Shell):
    shell.names["model"] = ScriptedLlm(ValueError("the line is dead"), "Fine.")
    shell.cell("%%agent planner -m model\nPlan.")

    failed = shell.broke_off("%chat planner Go")
    error, hint = str(failed).splitlines()
    assert error.startswith("planner > error: ValueError: ")
    assert "%rewind " in hint and "%rewind --rerun" in hint
    assert shell.cell("%rewind --rerun").text == "Fine."
    assert [said.parts[0].text for said in shell.names["model"].requests[-1].contents] == ["Go"]


def test_in_another_session_and_in_python_it_says_what_goes_there(shell: Shell):
    shell.names["model"] = ScriptedLlm(ValueError("the line is dead"), ValueError("and again"))
    shell.cell("%%agent planner -m model\nPlan.")
    in_session = shell.broke_off("%chat -s 'my trip' planner Go")
    assert "%rewind -s 'my trip' " in str(in_session)

    chat = Chat(LlmAgent(name="planner", model=shell.names["model"]), show="off")
    hint = str(chat.ask("Go"))
    assert "chat.rewind()" in hint and "chat.rerun()" in hint
    chat.rewind()
    assert all(turn.undone for turn in chat.turns)
