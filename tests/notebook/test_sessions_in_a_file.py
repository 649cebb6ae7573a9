"""%config AdkNb.sessions and %session: a notebook's conversations outlive its kernel, and go from file to file."""

import asyncio
import json
import os
import platform
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from adk_nb import Chat, LlmAgent, clock, sync, types
from adk_nb.agents.tree import version_of
from adk_nb.auth import APIKey, APIKeyIn, AuthConfig
from adk_nb.errors import InputError, PendingError, SessionBusyError
from adk_nb.events.event import Event
from adk_nb.models.scripted_llm import ScriptedLlm, call
from adk_nb.runtime.approvals import IN_DOUBT
from adk_nb.sessions import session_file
from adk_nb.sessions.journal import LEASE_SECONDS
from adk_nb.sessions.sql import sqlite_file
from adk_nb.sessions.sqlite_session_service import SqliteSessionService
from adk_nb.tools import FunctionTool, LongRunningFunctionTool
from adk_nb.tools.request_input_tool import request_input
from tests.notebook.conftest import Shell
from tests.runtime.ledger import Ledger, stored
from tests.runtime.ledger import cut as cut_at_work

KEPT = '%config AdkNb.sessions = "sqlite:///nb.db"'
PAY = '''%%tool --confirm
def pay(amount: int) -> str:
    """Pay."""
    paid.append(amount)
    return "paid"
'''
OTHER_PAY = PAY.replace('return "paid"', 'return "paid in full"')
CLERK = "%%agent clerk -m model -t pay\nPay what is due."


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Shell]:
    """A shell with the magics, whose notebook lies in `tmp_path`."""
    monkeypatch.chdir(tmp_path)
    bare: Shell = request.getfixturevalue("bare")
    bare.cell("%load_ext adk_nb")
    yield bare


def another_kernel(shell: Shell, *answers: Any) -> ScriptedLlm:
    """Forget all that a kernel forgets when it dies; its model from now on."""
    shell.cell("%unload_ext adk_nb")
    shell.ip.adk_nb = None
    shell.ip.config.pop("AdkNb", None)
    shell.ip.reset(new_session=False)
    shell.cell("%load_ext adk_nb")
    return scripted(shell, *answers)


def scripted(shell: Shell, *answers: Any) -> ScriptedLlm:
    model = ScriptedLlm(*answers)
    shell.names.update(model=model, paid=[])
    return model


def told(model: ScriptedLlm) -> list[str]:
    """All words of the last request."""
    return [part.text for content in model.requests[-1].contents for part in content.parts or () if part.text]


def test_a_chat_of_a_later_kernel_goes_on_with_the_same_file(shell: Shell, tmp_path: Path) -> None:
    scripted(shell, "Hello Ada.")
    shell.cell(KEPT)
    shell.cell(PAY)
    shell.cell(CLERK)
    shell.cell("%chat clerk I am Ada.")
    shell.cell("%state budget=400")

    model = another_kernel(shell, "You are Ada.")
    shell.cell(KEPT)

    assert shell.printed == "session 'main' continues: 3 events\n"
    shell.cell(PAY)
    shell.cell(CLERK)
    assert shell.cell("%chat clerk Who am I?").text == "You are Ada."
    assert told(model) == ["I am Ada.", "Hello Ada.", "Who am I?"]
    assert shell.cell("%state budget") == 400
    assert (tmp_path / "nb.db").is_file()


def test_who_was_spoken_to_before_is_drawn_and_not_guessed_for_a_line_without_a_name(shell: Shell) -> None:
    scripted(shell, "One.")
    shell.cell(KEPT)
    texts = ["%%agent clerk -m model\nA.", "%%agent guide -m model\nB."]
    for cell in texts:
        shell.cell(cell)
    shell.cell("%chat guide Hi")

    another_kernel(shell, "Two.")
    shell.cell(KEPT)
    for cell in texts:
        shell.cell(cell)

    assert str(shell.cell("%agents --graph")).startswith("guide")
    assert "clerk, guide" in shell.fails("%chat And now?")


def test_the_file_lies_beside_the_notebook_wherever_its_cells_have_gone(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    shell.names["os"] = os
    shell.cell("os.chdir('deep')")

    shell.cell(KEPT)
    assert (
        shell.printed
        == f"sessions are kept in {tmp_path / 'nb.db'}, beside the notebook; cells run in another folder\n"
    )
    shell.cell("%state a=1")

    assert (tmp_path / "nb.db").is_file()
    assert not (tmp_path / "deep" / "nb.db").exists()


WRONG_ADDRESSES = {
    "nb.db": "sqlite:///nb.db",
    "sqlite:nb.db": "sqlite:///nb.db",
    "sqlite://nb.db": "sqlite:///nb.db",
    "sqlite3:///nb.db": "sqlite:///nb.db",
    "sqlite:///": "sqlite:///nb.db",
    "sqlite:///:memory:": "sqlite:///nb.db",
    "postgresql://": "sqlite:///nb.db",
    "mysql://ada:sekret@db/nb": "sqlite:///nb.db",
    "postgresql:ada:sekret@db/nb": "sqlite:///nb.db",
    "postgresql://ada:se@kret@db/nb": "sqlite:///nb.db",
    "memory": "sqlite:///memory",
}


def test_a_wrong_address_is_refused_in_one_line_with_what_to_write(
    shell: Shell, caplog: pytest.LogCaptureFixture
) -> None:
    for typed, wrong_address in WRONG_ADDRESSES.items():
        caplog.clear()
        shell.run(f"%config AdkNb.sessions = {typed!r}")

        assert len(caplog.records) == 1, typed
        assert f'write "{wrong_address}" for a file beside the notebook, "postgresql://host/database"' in caplog.text, (
            typed
        )
        assert 'or "" for memory' in caplog.text
        assert "kret" not in caplog.text + shell.printed
        assert shell.cell("%config AdkNb.sessions") == ""


def another_program(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE mine (x)")
    db.close()


def newer(path: Path) -> None:
    sync.run(SqliteSessionService(path).flush())
    with sqlite3.connect(path) as db:
        db.execute("UPDATE adk_internal_metadata SET value = '99' WHERE key = 'schema_version'")
    db.close()


UNUSABLE: list[tuple[str, Callable[[Path], Any], str]] = [
    ("nb.db", another_program, "database of another program, with the tables: mine"),
    ("nb.db", lambda path: path.write_text("words " * 1_000), "is damaged: file is not a database"),
    ("nb.db", newer, "has schema version 99, and this adk_nb reads version 4; install the newer adk_nb"),
    ("nb.db", Path.mkdir, "is a folder; name a file in it, as sqlite:///nb.db/nb.db"),
    ("nowhere/nb.db", lambda path: None, "there is no folder"),
    ("nb.db?durability=full", lambda path: None, "sessions in a file take no settings, and '?durability=full' cannot"),
    ("nb.db", os.mkfifo, "is not a file; give another path"),
    ("nb.db", lambda path: path.symlink_to("missing/nb.db"), "unable to open database file"),
]


@pytest.mark.parametrize(("name", "make", "text"), UNUSABLE)
def test_what_no_session_can_be_kept_in_is_refused_in_one_line_and_they_stay_where_they_are(
    shell: Shell, caplog: pytest.LogCaptureFixture, tmp_path: Path, name: str, make: Callable[[Path], Any], text: str
) -> None:
    make(tmp_path / name)
    shell.cell('%config AdkNb.sessions = "sqlite:///old.db"')
    shell.cell("%state a=1")

    shell.run(f'%config AdkNb.sessions = "sqlite:///{name}"')

    assert [text in record.getMessage() for record in caplog.records] == [True]
    assert "\n" not in caplog.records[0].getMessage()
    assert shell.cell("%config AdkNb.sessions") == "sqlite:///old.db"
    assert shell.cell("%state a") == 1


def test_a_file_that_may_only_be_read_is_refused_before_anything_is_to_be_written(
    shell: Shell, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.cell(KEPT)
    shell.cell('%config AdkNb.sessions = ""')
    shell.cell("%state a=1")
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)  # root may write to everything

    shell.run(KEPT)

    assert "is read-only" in caplog.text
    assert shell.cell("%config AdkNb.sessions") == ""
    assert shell.cell("%state a") == 1


def test_a_file_that_is_kept_locked_is_refused_after_a_while(
    shell: Shell, caplog: pytest.LogCaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_file, "LOCKED_SECONDS", 0.1)
    db = sqlite3.connect(tmp_path / "nb.db", isolation_level=None)
    db.execute("BEGIN EXCLUSIVE")
    shell.cell("%state a=1")

    shell.run(KEPT)

    assert "was locked" in caplog.text
    assert shell.cell("%config AdkNb.sessions") == ""
    assert shell.cell("%state a") == 1
    db.execute("ROLLBACK")
    db.close()
    shell.cell(KEPT)
    assert shell.cell("%state a") == 1


def test_what_was_said_in_memory_moves_into_the_file_and_writes_over_nothing(shell: Shell) -> None:
    scripted(shell, "One.", "Two.")
    shell.cell(KEPT)
    shell.cell(PAY)
    shell.cell(CLERK)
    shell.cell("%chat clerk In the file")
    model = another_kernel(shell, "Three.", "Four.")
    shell.cell(PAY)
    shell.cell(CLERK)
    shell.cell("%chat clerk In memory")
    shell.cell("%state note=1 user:name=Ada")
    earlier_store = shell.ip.adk_nb.sessions.find()

    shell.cell(KEPT)

    assert shell.printed.splitlines() == [
        "session 'main' (3 events) is now kept there as 'main-2'; another 'main' was there already",
        "session 'main' continues: 2 events",
    ]
    moved = shell.ip.adk_nb.sessions.find("main-2")
    assert (moved.events, moved.state) == (earlier_store.events, earlier_store.state)
    shell.cell("%chat clerk Who?")
    assert told(model) == ["In the file", "One.", "Who?"]
    shell.cell(KEPT)
    assert shell.printed == ""


def test_in_memory_again_is_where_the_notebook_began(shell: Shell) -> None:
    shell.cell(KEPT)
    shell.cell("%state a=1")
    shell.cell('%config AdkNb.sessions = ""')
    assert "nb.db keeps" in shell.printed.strip()
    assert "is empty" in str(shell.cell("%state"))
    shell.cell(KEPT)
    assert shell.cell("%state a") == 1


def test_a_file_that_is_taken_away_under_a_notebook_is_missed(shell: Shell, tmp_path: Path) -> None:
    scripted(shell, "One.", "Two.")
    shell.cell(KEPT)
    shell.cell("%%agent clerk -m model\nA.")
    shell.cell("%chat clerk Hi")
    (tmp_path / "nb.db").unlink()

    assert "moved, deleted" in shell.fails("%chat clerk Hi again")

    shell.cell('%config AdkNb.sessions = ""')
    shell.cell(KEPT)
    assert shell.cell("%chat clerk I begin anew").text == "Two."
    assert another_kernel(shell).requests == []
    shell.cell(KEPT)
    assert shell.printed == "session 'main' continues: 2 events\n"


def test_a_reloaded_extension_keeps_the_file(shell: Shell) -> None:
    shell.cell(KEPT)
    shell.cell("%state a=1")

    shell.cell("%reload_ext adk_nb")
    assert shell.cell("%config AdkNb.sessions") == "sqlite:///nb.db"
    shell.cell("%unload_ext adk_nb")
    shell.cell("%load_ext adk_nb")

    assert shell.cell("%config AdkNb.sessions") == "sqlite:///nb.db"
    assert shell.cell("%state a") == 1


# ---- an approval that outlives its kernel


def asked(shell: Shell, *answers: Any, cells: tuple[str, ...] = (PAY, CLERK), author: str = "clerk") -> None:
    """A notebook in a file, whose agent waits for an approval."""
    scripted(shell, call("pay", amount=5), *answers)
    shell.cell(KEPT)
    for cell in cells:
        shell.cell(cell)
    assert shell.cell(f"%chat {author} Pay 5").status == "pending"


def test_an_approval_of_an_earlier_kernel_is_answered_once(shell: Shell) -> None:
    asked(shell)

    another_kernel(shell, "Done.")
    shell.cell(KEPT)
    assert "1 approval is open, see %confirm" in shell.printed
    shell.cell(PAY)
    shell.cell(CLERK)
    assert "pay" in str(shell.cell("%confirm"))
    assert "1 approval is open (pay)" in shell.fails("%chat clerk And?")

    assert shell.cell("%confirm --yes").text == "Done."

    assert shell.names["paid"] == [5]
    assert str(shell.cell("%confirm --yes")) == "pay(amount=5) was already approved by %confirm"
    another_kernel(shell)
    shell.cell(KEPT)
    assert str(shell.cell("%confirm --yes")) == "pay(amount=5) was already approved by %confirm"


def test_a_tool_that_was_edited_meanwhile_does_not_run_on_the_old_yes(shell: Shell) -> None:
    asked(shell)

    another_kernel(shell, "I see.")
    shell.cell(KEPT)
    shell.cell(OTHER_PAY)
    shell.cell(CLERK)

    assert "again with %confirm --reask" in str(shell.cell("%confirm"))
    assert "pay was redefined" in shell.fails("%confirm --yes")
    assert shell.cell("%confirm --no").text == "I see."
    assert shell.names["paid"] == []


def test_an_agent_that_was_edited_meanwhile_goes_on_and_that_is_said(shell: Shell) -> None:
    asked(shell)

    another_kernel(shell, "Done.")
    shell.cell(KEPT)
    shell.cell(PAY)
    shell.cell(CLERK + " Be brief.")

    edited = "clerk was edited since this was requested; it continues with its new definition"
    assert edited in str(shell.cell("%confirm"))
    assert shell.cell("%confirm --yes").text == "Done."
    assert edited in shell.printed
    assert shell.names["paid"] == [5]


def test_what_a_member_of_a_team_asked_goes_on_in_the_team(shell: Shell) -> None:
    team = (PAY, CLERK, "%%agent thanks -m model\nSay thanks.", "%%agent both --kind sequential\nclerk -> thanks")
    asked(shell, cells=team, author="both")

    another_kernel(shell, "Paid it.", "Thanks!")
    shell.cell(KEPT)
    for cell in team:
        shell.cell(cell)

    assert shell.cell("%confirm --yes").text == "Thanks!"
    assert shell.names["paid"] == [5]


def test_a_cell_that_is_missing_is_named(shell: Shell) -> None:
    asked(shell)

    another_kernel(shell)
    shell.cell(KEPT)

    assert "; define it again" in shell.fails("%confirm --yes")
    shell.cell(CLERK)
    assert "pay" in str(shell.cell("%confirm"))
    assert "no tool named 'pay'" in shell.fails("%confirm --yes")


# ---- %session


def test_sessions_are_listed_begun_and_taken_again(shell: Shell) -> None:
    scripted(shell, "One.", "Two.", "Three.")
    shell.cell("%%agent guide -m model\nHi.")
    shell.cell("%chat guide Hi")
    assert "session 'trip'" in str(shell.cell("%session new trip"))
    shell.cell("%chat guide Oslo?")

    lines = str(shell.cell("%session")).splitlines()
    assert [line.split() for line in lines if "events" not in line and "-" not in line] == [
        ["trip", "guide", "current", "2"],
        ["main", "guide", "2"],
    ]
    assert "session 'main'" in str(shell.cell("%session use main"))
    assert len(shell.cell("%chat guide Again").chat.events) == 4
    assert str(shell.cell("%session new")).startswith("session 'main-2' is")


def test_a_saved_session_is_loaded_in_another_kernel_equal(shell: Shell, tmp_path: Path) -> None:
    asked(shell, "Done.")
    shell.cell("%confirm --no")
    shell.cell('%state note={"deep": [1, null]} user:name="Ada é"')
    earlier_store = shell.ip.adk_nb.sessions.find()
    count = len(earlier_store.events)
    assert str(shell.cell("%session save trip.json")) == f"session 'main' ({count} events) is saved in trip.json"
    repeated_text = f"session 'main' ({count} events) is saved in trip.json, replacing the session that was saved there"
    assert str(shell.cell("%session save trip.json")) == repeated_text

    another_kernel(shell, "Done.")
    shell.cell("%session load trip.json --as trip")

    later_store = shell.ip.adk_nb.sessions.find()
    remaining_events = [event for event in earlier_store.events if not names_of(event) & {"adk_request_confirmation"}]
    assert [event.id for event in later_store.events] == [event.id for event in remaining_events]
    assert later_store.state == earlier_store.state
    assert "Ada é" in (tmp_path / "trip.json").read_text("utf-8")


def names_of(event: Event) -> set[str | None]:
    return {item.name for item in [*event.get_function_calls(), *event.get_function_responses()]}


def test_an_approval_that_was_open_in_a_file_is_asked_for_again(shell: Shell) -> None:
    asked(shell)
    assert "not saved" in str(shell.cell("%session save trip.json"))

    another_kernel(shell, call("pay", amount=5), "Done.")
    shell.cell(PAY)
    shell.cell(CLERK)
    assert "1 open approval" in str(shell.cell("%session load trip.json"))

    assert "no approval" in shell.fails("%confirm --yes")
    assert shell.cell("%chat clerk Pay it now").status == "pending"
    assert shell.names["paid"] == []
    assert shell.cell("%confirm --yes").text == "Done."
    assert shell.names["paid"] == [5]


def test_another_conversation_of_the_same_name_is_not_written_over(shell: Shell, tmp_path: Path) -> None:
    scripted(shell, "One.", "Two.")
    shell.cell("%%agent guide -m model\nHi.")
    shell.cell("%chat guide Hi")
    shell.cell("%session save conv.json")
    earlier_data = (tmp_path / "conv.json").read_bytes()

    another_kernel(shell, "Other.")
    shell.cell("%%agent guide -m model\nHi.")
    shell.cell("%chat guide Hello")

    assert "session 'main'" in shell.fails("%session save conv.json")
    assert (tmp_path / "conv.json").read_bytes() == earlier_data
    assert "replacing" in str(shell.cell("%session save conv.json --replace"))


def test_loading_never_writes_over_what_is_there(shell: Shell) -> None:
    shell.cell("%state a=1 user:name=Ada app:n=1")
    shell.cell("%session save one.json")
    shell.cell("%state a=2 user:name=Bo")

    message = shell.fails("%session load one.json")
    assert "session 'main' already; add --as main-2 for another" in message
    loaded = str(shell.cell("%session load one.json --as old"))

    assert "user:name" in loaded
    assert shell.cell("%state a") == 1
    assert shell.cell("%state user:name") == "Bo"
    shell.cell("%session use main")
    assert shell.cell("%state a") == 2


def test_a_folder_that_is_not_there_is_named_where_something_is_to_be_saved_in_it(shell: Shell) -> None:
    shell.cell("%state a=1")
    assert shell.fails("%session save sub/a.json").endswith("sub; make it, or give another path")


def test_saving_writes_over_no_other_file(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "notes.json").write_text('{"mine": 1}')
    shell.cell("%state a=1")

    refused = shell.fails("%session save notes.json")
    assert "'notes.json' exists" in refused and "session 'main'" in refused
    assert "%session save notes.json --replace" in refused
    assert (tmp_path / "notes.json").read_text() == '{"mine": 1}'
    shell.cell("%session save notes.json --replace")
    assert json.loads((tmp_path / "notes.json").read_text())["name"] == "main"
    assert "cannot be written" in shell.fails("%session save nowhere/notes.json")
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".notes")]


WRONG_LINES = [
    ("%session sav x.json", "type: %session save x.json"),
    ("%session switch main", "type: %session use main"),
    ("%session ls", "type: %session list"),
    ("%session frobnicate", "use list, use, new, fork, save, load, resume or drop, see %session?"),
    ("%session main", "type: %session use main"),
    ("%session use", "%session use needs a name; there is main"),
    (
        "%session use mian",
        "no session named 'mian'; did you mean 'main'? start a new one with: %session new",
    ),
    ('%session new ""', "a session cannot be named ''"),
    ('%session use "a b"', "start a new one with: %session new 'a b'"),
    ("%session new main", "type: %session use main"),
    ("%session new '  '", "a session cannot be named '  '"),
    ("%session save", "type %session save main.json"),
    ("%session save x.json -s other", "no session named 'other'"),
    ("%session load", "type %session load FILE.json"),
    ("%session load none.json", "there is no file 'none.json'"),
    ("%session list main", "type %session use main"),
    ("%session use main --as x", "%session use has no --as; use it with %session load"),
    ("%session --sav x", "%session has no option --sav"),
    ("%session use a b", "unexpected 'b'"),
]


def test_every_wrong_line_is_answered_by_what_to_type(shell: Shell) -> None:
    shell.cell("%state a=1")

    for line, text in WRONG_LINES:
        assert text in shell.fails(line), line
    assert shell.cell("%state a") == 1


def test_an_empty_session_cannot_be_saved(shell: Shell, tmp_path: Path) -> None:
    assert "session 'main'" in shell.fails("%session save x.json")
    assert not (tmp_path / "x.json").exists()


def test_help_and_completion_know_the_words_the_sessions_and_the_files(shell: Shell, tmp_path: Path) -> None:
    shell.cell("%state a=1")
    shell.cell("%session save trip.json")

    assert shell.complete("%session lo") == ["%session load"]
    assert shell.complete("%session use m") == ["%session use main"]
    assert shell.complete("%session load t") == ["%session load trip.json"]
    assert shell.complete("%session save x.json -s ") == ["%session save x.json -s main"]
    assert shell.complete("%session load t.json --a") == ["%session load t.json --as", "%session load t.json --at"]
    shell.cell("%session?")
    assert "%session save trip.json" in shell.printed
    assert "In Python:" in shell.printed


# ---- a run that was cut

PAY_AT_ONCE = PAY.replace(" --confirm", "")


def cut(tmp_path: Path, version: str = "") -> SqliteSessionService:
    """A file as a kernel leaves it that died before it had made a call that its model wants."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    service = SqliteSessionService(tmp_path / "nb.db")

    async def leave() -> None:
        session_key = {"app_name": "notebook", "user_id": "user", "session_id": "main"}
        session = await service.get_session(**session_key) or await service.create_session(**session_key)
        await service.claim(session, "run-1", owner=f"process {ended.pid} on {platform.node()}", version=version)
        part = types.Part(function_call=types.FunctionCall(id="call-1", name="pay", args={"amount": 5}))
        text = {"invocation_id": "run-1", "custom_metadata": {"spoken_to": "clerk", "defined_as": "other"}}
        await service.append_event(session, Event(author="user", message="Pay 5", **text))
        asks = types.Content(role="model", parts=[part])
        await service.append_event(session, Event(author="clerk", content=asks, **text))

    sync.run(leave())
    return service


def test_a_run_that_was_cut_is_told_when_its_session_is_used_and_goes_on(shell: Shell, tmp_path: Path) -> None:
    cut(tmp_path)
    model = scripted(shell, "Paid.", "Yes?")
    shell.cell(KEPT)
    assert (
        shell.printed
        == "session 'main' continues: 2 events, a run was interrupted: %session resume, or %session drop\n"
    )
    assert "a run was interrupted: %session resume, or %session drop" in str(shell.cell("%trace"))
    assert "no agent named 'clerk'; to resume" in shell.fails("%session resume")
    shell.cell(PAY_AT_ONCE)
    shell.cell(CLERK)
    assert "answers 'Pay 5' in session 'main' was interrupted" in shell.fails("%chat clerk Hello")

    assert "%session resume --edited, or give" in shell.fails("%session resume")

    assert shell.cell("%session resume --edited").text == "Paid."

    assert shell.names["paid"] == [5]
    assert shell.cell("%chat clerk Hello").text == "Yes?"
    assert told(model) == ["Pay 5", "Paid.", "Hello"]
    assert "session 'main' was interrupted" in shell.fails("%session resume")


def test_nobody_talks_over_a_run_of_another_kernel_that_was_cut_since(shell: Shell, tmp_path: Path) -> None:
    scripted(shell, "Hello.", "Paid.", "Yes?")
    shell.cell(KEPT)
    shell.cell(PAY_AT_ONCE)
    shell.cell(CLERK)
    assert shell.cell("%chat clerk Hello").text == "Hello."

    cut(tmp_path)

    assert "the run that answers 'Pay 5' in session 'main' was interrupted" in shell.fails("%chat clerk Go on")
    assert shell.cell("%session resume --edited").text == "Paid."
    assert shell.cell("%chat clerk Go on").text == "Yes?"


def test_a_tool_that_was_edited_since_a_run_was_cut_is_a_choice_too(tmp_path: Path) -> None:
    def agent(tool: Any) -> LlmAgent:
        return LlmAgent(name="clerk", model=ScriptedLlm("Paid."), tools=[tool])

    def pay(amount: int) -> str:
        """Pay."""
        return "paid"

    def edited(amount: int) -> str:
        """Pay."""
        return "paid in full"

    edited.__name__ = "pay"
    service = cut(tmp_path, version=version_of(agent(pay)))
    chat = Chat(agent(edited), session_service=service)
    with pytest.raises(PendingError, match=r"chat.resume\(edited=True\)"):
        chat.resume()

    interrupts = chat.resume(edited=True).interrupts
    assert [interrupt.prompt for interrupt in interrupts] == [
        "agents or tools were edited after pay() was called. Call it now?"
    ]
    assert chat.approve().text == "Paid."


def test_an_unedited_run_resumes_without_a_notice(tmp_path: Path) -> None:
    def pay(amount: int) -> str:
        """Pay."""
        return "paid"

    agent = LlmAgent(name="clerk", model=ScriptedLlm("Paid."), tools=[pay])
    chat = Chat(agent, session_service=cut(tmp_path, version=version_of(agent)))

    assert chat.resume().text == "Paid."


def test_an_interrupted_run_may_be_dropped(shell: Shell, tmp_path: Path) -> None:
    cut(tmp_path)
    model = scripted(shell, "I see.")
    shell.cell(KEPT)
    shell.cell(PAY_AT_ONCE)
    shell.cell(CLERK)

    assert "%session drop -s x" in shell.fails("%session drop x")
    shell.cell("%session drop")
    shell.cell("%chat clerk What now?")

    results = [part.function_response for content in model.requests[-1].contents for part in content.parts or ()]
    assert [result.response for result in results if result] == [{"error": "the run was cut before this call was made"}]
    assert shell.names["paid"] == []
    assert "session 'main' was interrupted; there is nothing to drop" in shell.fails("%session drop")


def test_of_a_run_that_is_left_as_it_is_what_is_known_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(clock, "ticks", lambda: now[0])
    asyncio.run(cut_at_work(Ledger(tmp_path / "nb.db"), now))
    service = SqliteSessionService(tmp_path / "nb.db")
    agent = LlmAgent(name="clerk", model=ScriptedLlm("I see."))
    Chat(agent, session_service=service, app_name="app", user_id="u", session="s").drop()

    session = sync.run(stored(service))
    lines = {
        response.name: response.response for event in session.events for response in event.get_function_responses()
    }
    doubt = {"error": IN_DOUBT}
    assert lines == {"look": doubt, "put": doubt, "pay": doubt, "send": {"result": "stamped"}}
    assert session.state == {"sent": "stamped"} and sync.run(service.unfinished(session)) == []
    sync.run(service.close())


def test_an_approval_that_is_looked_for_where_a_run_was_cut_is_answered_by_what_goes_on(
    shell: Shell, tmp_path: Path
) -> None:
    cut(tmp_path)
    shell.cell(KEPT)
    text = "no approval is open in session 'main'; a run was interrupted: %session resume, or %session drop"

    assert text in str(shell.cell("%confirm"))
    assert shell.fails("%confirm --yes").endswith(text)

    shell.cell("%session new other")
    assert "interrupted: %session resume -s main, or %session drop -s" in shell.fails("%confirm -s main --all --no")
    assert shell.fails("%confirm --yes").endswith("%trace")


def test_a_call_in_doubt_is_made_again_by_its_number_alone(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(clock, "ticks", lambda: now[0])
    scripted(shell, call("pay", amount=5), "Done.")
    shell.cell(KEPT)
    shell.names["service"] = shell.ip.adk_nb.sessions.service
    dying = '    if len(paid) == 1:\n        await service.close()\n    return "paid"'
    shell.cell(PAY.replace("def", "async def").replace('    return "paid"', dying))
    shell.cell(CLERK)
    shell.cell("%chat clerk Pay.")
    shell.fails("%confirm --yes")  # what comes after the payment is as if the process were gone
    assert shell.names["paid"] == [5]

    now[0] += LEASE_SECONDS + 1
    shell.cell('%config AdkNb.sessions = ""')
    shell.cell(KEPT)
    shell.cell("%confirm --yes")
    assert "%confirm 1 --yes" in str(shell.cell("%confirm"))
    shell.names["chat"] = shell.ip.adk_nb.chat("clerk", None)
    for unread in ("%confirm --yes", "%confirm yes", "%confirm --yes --all", "%confirm pay --yes", "%confirm pay yes"):
        assert "1 (pay, in doubt)" in shell.fails(unread)
    for unread in ("answer(True)", "answer(True, 'pay')", "answer(True, chat.interrupts)", "approve()"):
        assert "1 (pay, in doubt)" in shell.fails(f"chat.{unread}")
    assert shell.names["paid"] == [5]

    shell.cell("%confirm 1 --yes")
    assert shell.names["paid"] == [5, 5]


def test_the_owner_of_a_session_is_named(shell: Shell, tmp_path: Path) -> None:
    service = cut(tmp_path)

    async def work() -> None:
        session = await service.get_session(app_name="notebook", user_id="user", session_id="main")
        assert session
        await service.claim(session, "run-1", owner="process 7 on saturn")

    sync.run(work())
    shell.cell(KEPT)

    assert shell.printed == "session 'main' continues: 2 events, a run is active: process 7 on saturn\n"
    assert "active: process 7 on saturn" in str(shell.cell("%session"))
    for line in ("%session resume", "%session drop"):
        assert "session 'main' was interrupted" in shell.fails(line)
    chat = Chat(LlmAgent(name="clerk", model=ScriptedLlm()), session_service=service)
    with pytest.raises(SessionBusyError, match=r"process 7 on saturn since .*, or stop it"):
        chat.resume()


def test_a_waiting_run_does_not_count_as_interrupted(tmp_path: Path) -> None:
    def pay(amount: int) -> str:
        """Pay."""
        return "paid"

    clerk = LlmAgent(
        name="clerk", model=ScriptedLlm(call("pay", amount=5)), tools=[FunctionTool(pay, require_confirmation=True)]
    )
    chat = Chat(clerk, session_service=SqliteSessionService(tmp_path / "nb.db"))
    chat.ask("Pay 5")

    with pytest.raises(
        InputError, match=r"was interrupted; 1 approval is open \(pay\); answer with chat.approve\(\) or"
    ):
        chat.resume()


def test_a_fresh_session_needs_no_word_on_the_old_one(shell: Shell, tmp_path: Path) -> None:
    cut(tmp_path)
    scripted(shell, "Hello.")
    shell.cell(KEPT)
    shell.cell("%%agent guide -m model\nHi.")

    assert shell.cell("%chat --new guide Hi").text == "Hello."


def test_in_python_a_run_goes_on_with_the_chat_of_its_session(tmp_path: Path) -> None:
    paid: list[int] = []

    def pay(amount: int) -> str:
        """Pay."""
        paid.append(amount)
        return "paid"

    agent = LlmAgent(name="clerk", model=ScriptedLlm("Paid."), tools=[pay])
    chat = Chat(agent, session_service=cut(tmp_path))
    with pytest.raises(PendingError, match=r"chat.resume\(\), or give.*up with chat.drop"):
        chat.ask("Hello")

    assert chat.resume().text == "Paid."

    assert paid == [5]
    with pytest.raises(InputError, match=r"session 'main' was interrupted; there is nothing to .*drop"):
        chat.drop()


# ---- a file of a stranger's


def saved(tmp_path: Path, **changed: Any) -> str:
    event = Event(author="user", message="Hi").model_dump(mode="json", by_alias=True, exclude_defaults=True)
    whole = {"format": "adk_nb session", "version": 1, "name": "main", "state": {}, "events": [event]} | changed
    (tmp_path / "s.json").write_text(json.dumps(whole))
    return str(tmp_path / "s.json")


HI = {"author": "user", "id": "1"}


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"version": 2}, "is of version 2, and this adk_nb reads up to 1; install the newer adk_nb that wrote it"),
    ({"version": True}, "it has no version"),
    ({"format": "pickle"}, "is not a saved session"),
    ({"lease": {}}, "lease: "),
    ({"name": 7}, "name: "),
    ({"name": "a\x1b[2J"}, "a session cannot be named"),
    ({"name": "x" * 101}, "a session cannot be named"),
    ({"state": []}, "state: "),
    ({"state": {"a": "\ud800"}}, "half a character"),
    ({"events": [{"author": 1}]}, "event 1: author"),
    ({"events": [HI, HI]}, "event 2 has no id, or the id of another"),
    ({"events": [HI | {"partial": True}]}, "event 1 is a partial event"),
    ({"events": ["x"]}, "events.0: "),
]
NO_JSON = ["", "{", "[" * 100_000, '{"a": 1e999}', "\udcff", '{"format": "adk_nb session", "version": 1', "null", "7"]


def test_a_file_that_cannot_be_is_refused_whole(shell: Shell, tmp_path: Path) -> None:
    for changed, message in REFUSED:
        assert message in shell.fails(f"%session load {saved(tmp_path, **changed)}"), changed
    for text in NO_JSON:
        (tmp_path / "s.json").write_bytes(text.encode("utf-8", "surrogateescape"))
        assert shell.fails("%session load s.json").startswith("InputError: 's.json' is not "), text[:40]
    assert shell.ip.adk_nb.sessions.names == []


def test_a_file_that_is_too_large_is_not_read(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_file, "MAX_BYTES", 100)
    assert "0 MB" in shell.fails(f"%session load {saved(tmp_path, name='x' * 90)}")


def test_the_python_twins_do_the_same(tmp_path: Path) -> None:
    model = ScriptedLlm("Hello Ada.", "You are Ada.")
    agent = LlmAgent(name="guide", model=model)
    first = Chat(agent, session="trip")
    with pytest.raises(InputError, match="no messages"):
        first.save(tmp_path / "trip.json")
    first.ask("I am Ada.")
    first.save(tmp_path / "trip.json")

    second = Chat(agent)
    second.load(tmp_path / "trip.json")

    assert second.session_id == "trip"
    with pytest.raises(InputError, match="session 'trip' already"):
        second.load(tmp_path / "trip.json")
    assert second.events == first.events
    assert second.ask("Who am I?").text == "You are Ada."
    assert told(model)[0] == "I am Ada."


class Counting(SqliteSessionService):
    """Notes which sessions are read."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.reads: list[str] = []

    async def get_session(self, **kwargs: Any) -> Any:
        self.reads.append(kwargs["session_id"])
        return await super().get_session(**kwargs)


def test_a_turn_reads_nothing_back_that_the_last_one_has_left(tmp_path: Path) -> None:
    service = Counting(tmp_path / "nb.db")
    chat = Chat(LlmAgent(name="guide", model=ScriptedLlm("One.", "Two.", "Three.")), session_service=service)
    chat.ask("First")
    service.reads.clear()

    chat.ask("Second")
    own_events = chat.events
    chat.ask("Third")

    assert service.reads == []
    assert [event.text for event in own_events] == ["First", "One.", "Second", "Two."]
    other_chat = Chat(
        LlmAgent(name="guide", model=ScriptedLlm("Four.")), session_service=SqliteSessionService(tmp_path / "nb.db")
    )
    other_chat.ask("Elsewhere")
    assert chat.events[-1].text == "Four."


def test_a_line_and_the_list_of_sessions_read_each_session_once(shell: Shell, tmp_path: Path) -> None:
    shell.names["model"] = ScriptedLlm("One.", "Two.", "Three.", "Four.")
    shell.cell("%%agent lone -m model\nSpeak.")
    shell.cell("%%agent poet -m model\nSpeak.")
    shell.cell("%%agent team --kind sequential\npoet")
    shell.ip.adk_nb.sessions.service = service = Counting(tmp_path / "nb.db")
    for line in ("%chat lone Hi", "%chat team Hi", "%chat poet Hi"):
        shell.cell(line)

    service.reads.clear()
    shell.cell("%chat poet And now?")
    assert len(service.reads) == len(set(service.reads)), "where a member speaks is looked up once"
    service.reads.clear()
    assert "team" in str(shell.cell("%session")) and sorted(service.reads) == ["main", "team"]


def test_what_is_done_to_a_chats_state_as_it_was_read_does_not_reach_the_session(tmp_path: Path) -> None:
    service = SqliteSessionService(tmp_path / "nb.db")
    chat = Chat(LlmAgent(name="guide", model=ScriptedLlm("One.")), session_service=service)
    chat.state["notes"] = ["a"]
    chat.ask("First")

    chat.state["notes"].append("b")

    assert chat.state["notes"] == ["a"]


def test_an_outcome_a_login_and_a_question_that_were_waited_for_are_given_in_a_later_kernel(tmp_path: Path) -> None:
    texts: list[str] = []

    def order(item: str) -> str:
        """Order."""
        texts.append(f"order {item}")
        return "ordered"

    def mail(folder: str) -> str:
        """Look."""
        texts.append(f"mail {folder}")
        return "one mail"

    key = AuthConfig(auth_scheme=APIKey(in_=APIKeyIn.header, name="X-Key"))
    tools = [LongRunningFunctionTool(order), FunctionTool(mail, auth_config=key), request_input]

    def later(session: str, *answers: Any) -> Chat:
        agent = LlmAgent(name="clerk", model=ScriptedLlm(*answers), tools=list(tools))
        return Chat(agent, session=session, session_service=SqliteSessionService(tmp_path / "nb.db"))

    later("tea", call("order", item="tea")).ask("Tea, please")
    later("mail", call("mail", folder="in")).ask("Mail?")
    later("asks", call("adk_request_input", message="Which order?")).ask("Send it back")

    assert later("tea", "It came.").answer("delivered").text == "It came."
    assert later("mail", "One.").answer("a-persons-key").text == "One."
    assert later("asks", "A1 then.").ask("A1").text == "A1 then."
    assert texts == ["order tea", "mail in"]
    with pytest.raises(InputError, match="no interrupt"):
        later("mail", "Two.").answer("a-persons-key")
