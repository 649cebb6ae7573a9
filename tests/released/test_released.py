"""What a released version stored is read by this one, and means the same: `tests/released/make.py` wrote it."""

import asyncio
import shutil
import subprocess
from pathlib import Path
from typing import Any

import nbformat
import pytest

from adk_nb import Chat, LlmAgent, tool
from adk_nb.errors import InputError
from adk_nb.models import ScriptedLlm
from adk_nb.sessions import DatabaseSessionService, Session, SqliteSessionService
from tests.notebook.conftest import Shell, bare
from tests.released import make
from tests.sessions.conftest import postgres, running_postgres
from tests.sessions.postgres import Postgres

__all__ = ["bare", "postgres", "running_postgres"]
HERE = Path(__file__).parent
RELEASES = sorted(path.name for path in HERE.iterdir() if path.is_dir() and path.name[0].isdigit())


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of what a version wrote."""
    return Path(shutil.copytree(HERE / request.param, tmp_path / "released"))


@pytest.fixture
def shell(release: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Shell:
    """A notebook beside the copy, with that version's definitions and a model that is not asked yet."""
    monkeypatch.chdir(release)
    bare: Shell = request.getfixturevalue("bare")  # which remembers the folder that it starts in
    bare.names.update(model=ScriptedLlm("Anna has it."))
    for source in (make.CELLS[0], make.TOOL, make.CELLS[3], make.SPELL, make.SPELLER):
        bare.cell(source)
    return bare


def said(session: Session | Chat) -> list[str]:
    return [event.text for event in session.events if event.text]


def test_a_session_in_sqlite_goes_on_where_it_stopped(shell: Shell):
    stored = sqlite_session(Path("nb.db"))

    assert said(stored) == ["I am Ada.", "Hello Ada.", "Pay 5 euros to Bo", "Bo has it.", "Pay 250 euros to Anna"]
    assert stored.state["budget"] == 400 and stored.state["user:name"] == "Ada é"
    assert 'pay(to="Anna", amount=250.0)' in str(shell.cell("%confirm"))
    shell.cell("%confirm yes")
    paid = sqlite_session(Path("nb.db"))
    results = [one.response for event in paid.events for one in event.get_function_responses() if one.name == "pay"]
    assert [*results[0].values()] == ["paid 5 euros to Bo"] and [*results[-1].values()] == ["paid 250 euros to Anna"]
    assert said(paid)[-1] == "Anna has it."


def sqlite_session(path: Path) -> Session:
    """The session `main` of a notebook's file."""

    async def load() -> Session:
        service = SqliteSessionService(path)
        try:
            [app] = {one.app_name for one in (await service.list_sessions(app_name="notebook")).sessions}
            session = await service.get_session(app_name=app, user_id="user", session_id="main")
            assert session
            return session
        finally:
            await service.close()

    return asyncio.run(load())


def test_the_list_of_sessions_has_all_of_them(shell: Shell):
    listed = str(shell.cell("%session"))

    assert "main" in listed and "counted" in listed, listed


def test_a_session_file_is_loaded_with_its_state(shell: Shell):
    shell.cell("%session load trip.json --as trip")

    session = shell.ip.adk_nb.sessions.find()
    assert said(session) == ["I am Ada.", "Hello Ada.", "Pay 5 euros to Bo", "Bo has it."]
    assert session.state["budget"] == 400 and session.state["user:name"] == "Ada é"


def test_a_cassette_answers_without_a_model(shell: Shell):
    shell.cell("%session new again")
    shell.cell("%replay --file cassettes/notebook.jsonl")

    assert "letter p in word apple gives 2" in shell.cell(f"%chat speller {make.ASKED}").text
    assert "no recording in cassettes/notebook.jsonl" in shell.fails(
        "%chat speller How often is the letter e in the word kernel?"
    )


def test_an_evaluation_is_known_and_asks_nobody_again(shell: Shell):
    evaluation = shell.cell(make.EVAL)

    assert {row.case.id: row.outcome for row in evaluation.rows} == {"berry": "passed", "plain": "failed"}
    assert evaluation.score == 0.5 and evaluation.progress.reused == 2
    assert "gives 3" in shell.cell("%eval open berry").text


def test_a_saved_notebook_still_shows_what_was_said(release: Path):
    book: Any = nbformat.read(release / "book.ipynb", as_version=4)
    shown = {
        cell.source: "".join(output.get("data", {}).get("text/html", "") for output in cell.outputs)
        for cell in book.cells
    }

    nbformat.validate(book)
    assert "Hello Ada." in shown["%chat clerk I am Ada."]
    assert "Anna" in shown["%chat clerk Pay 250 euros to Anna"]
    assert "strawberry" in shown[make.EVAL] and "<script" not in "".join(shown.values())


def test_a_payment_in_doubt_is_asked_about_and_not_repeated(release: Path):
    paid: list[str] = []

    @tool(effect="once")
    def pay(to: str, amount: float) -> str:
        """Pay a person an amount in euros."""
        paid.append(to)
        return f"paid {amount:g} euros to {to}"

    clerk = LlmAgent(name="clerk", model=ScriptedLlm("Anna has it."), tools=[pay])
    chat = Chat(clerk, session="main", session_service=SqliteSessionService(release / "killed.db"), show="off")
    [doubt] = chat.resume(edited=True).interrupts

    assert paid == [] and (doubt.call.name, doubt.call.args) == ("pay", {"to": "Anna", "amount": 250.0})
    assert chat.answer(True, doubt).text == "Anna has it." and paid == ["Anna"]
    chat.close()


@pytest.mark.postgres
@pytest.mark.slow
def test_a_session_in_postgresql_has_its_events_states_and_open_approval(release: Path, postgres: Postgres):
    load = ["psql", "-q", "-v", "ON_ERROR_STOP=1", "-h", postgres.folder, "-U", "tester", "-d", "postgres"]
    subprocess.run([*load, "-f", release / "postgres.sql"], check=True, capture_output=True)

    async def read() -> Session | None:
        service = DatabaseSessionService(postgres.url())
        try:
            return await service.get_session(app_name="bank", user_id="ada", session_id="s")
        finally:
            await service.close()

    session = asyncio.run(read())
    assert session
    assert said(session) == ["I am Ada.", "Hello Ada.", "Pay 250 euros to Anna"]
    assert session.state == {"budget": 400, "user:name": "Ada é", "app:rate": 1.5}
    asked = [call for event in session.events for call in event.get_function_calls()]
    assert [call.name for call in asked] == ["pay", "adk_request_confirmation"]
    assert asked[0].args == {"to": "Anna", "amount": 250.0}


def test_a_file_of_a_later_version_is_refused_with_a_word_about_it(release: Path):
    path = release / "trip.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"version": 1', '"version": 2'), encoding="utf-8")
    chat = Chat(LlmAgent(name="clerk", model=ScriptedLlm()), show="off")

    with pytest.raises(InputError, match="version"):
        chat.load(path)
