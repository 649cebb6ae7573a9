"""What a cell that ends in a runner, an app or a service shows of it: a line, and no secret."""

from pathlib import Path

import pytest

from adk_nb import Agent, App, InMemoryRunner, Runner
from adk_nb.agents import SequentialAgent
from adk_nb.artifacts import FileArtifactService, InMemoryArtifactService
from adk_nb.auth.credential_service import FileCredentialService, InMemoryCredentialService
from adk_nb.memory import InMemoryMemoryService, SqliteMemoryService
from adk_nb.plugins import LoggingPlugin
from adk_nb.sessions import DatabaseSessionService, InMemorySessionService, SqliteSessionService


def waiter() -> Agent:
    return Agent(name="waiter", model="offline", instruction="You wait at tables. " * 50)


def test_a_runner_is_shown_by_its_app_its_agent_and_its_sessions():
    service = InMemorySessionService()

    runners = InMemoryRunner(waiter()), Runner(app_name="shop", agent=waiter(), session_service=service)

    assert [repr(runner) for runner in runners] == [
        "InMemoryRunner(app_name='InMemoryRunner', agent='waiter', session_service=InMemorySessionService())",
        "Runner(app_name='shop', agent='waiter', session_service=InMemorySessionService())",
    ]


def test_an_app_is_shown_by_its_name_its_agent_and_its_plugins():
    assert repr(App(name="shop", root_agent=waiter())) == "App(name='shop', root_agent='waiter')"
    app = App(name="shop", root_agent=waiter(), plugins=[LoggingPlugin()])
    assert str(app) == "App(name='shop', root_agent='waiter', plugins=['logging_plugin'])"


def test_a_team_is_shown_by_its_members():
    assert repr(SequentialAgent(name="team", sub_agents=[waiter()])) == (
        "SequentialAgent(name='team', sub_agents=['waiter'])"
    )


@pytest.mark.parametrize(
    "kind", [InMemorySessionService, InMemoryArtifactService, InMemoryMemoryService, InMemoryCredentialService]
)
def test_a_service_in_memory_is_shown_by_its_kind(kind: type):
    assert repr(kind()) == f"{kind.__name__}()"


@pytest.mark.parametrize(
    "kind", [SqliteSessionService, FileArtifactService, SqliteMemoryService, FileCredentialService]
)
def test_a_service_on_disk_is_shown_by_its_place(kind: type, tmp_path: Path):
    place = tmp_path / "kept"

    assert repr(kind(place)) == f"{kind.__name__}({str(place)!r})"


def test_a_service_on_a_server_is_shown_without_its_password():
    shown = repr(DatabaseSessionService("postgresql://ann:hunter2secret@db.example/shop"))

    assert "ann" in shown and "db.example/shop" in shown and "hunter2secret" not in shown


def test_a_database_service_on_a_file_is_shown_by_its_file(tmp_path: Path):
    assert str(tmp_path / "nb.db") in repr(DatabaseSessionService(f"sqlite:///{tmp_path}/nb.db"))
