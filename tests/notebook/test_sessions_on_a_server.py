"""%config AdkNb.sessions = "postgresql://...": the same conversations on a server, and a password that nobody sees."""

import sys
from typing import Any

import pytest

from adk_nb.models.scripted_llm import ScriptedLlm
from tests.notebook.conftest import Shell
from tests.sessions.conftest import postgres, running_postgres  # noqa: F401  the server, as a fixture
from tests.sessions.postgres import Postgres

PASSWORD = "se:k/ret"


def seen(shell: Shell, caplog: pytest.LogCaptureFixture) -> str:
    return shell.printed + caplog.text + "".join(map(repr, shell.results))


@pytest.mark.slow
@pytest.mark.postgres
def test_a_chat_goes_on_in_a_later_kernel_and_the_password_is_not_shown(
    shell: Shell,
    postgres: Postgres,  # noqa: F811
    caplog: pytest.LogCaptureFixture,
) -> None:
    shell.names.update(
        model=ScriptedLlm("Hello Ada."), address=postgres.url().replace("tester@", f"tester:{PASSWORD}@")
    )
    shell.cell("%config AdkNb.sessions = address")
    shell.cell("%%agent guide -m model\nHi.")
    shell.cell("%chat guide I am Ada.")
    shown = shell.cell("%config AdkNb.sessions")
    assert shown == postgres.url().replace("tester@", "tester:***@")
    shell.cell("%config AdkNb")
    assert PASSWORD not in seen(shell, caplog)

    shell.cell("%reload_ext adk_nb")
    assert shell.cell("%config AdkNb.sessions") == shown
    assert len(shell.ip.adk_nb.sessions.events()) == 2

    shell.cell('%config AdkNb.sessions = ""')
    shell.cell("%config AdkNb.sessions = address")
    assert shell.printed == "session 'main' continues: 2 events\n"
    model = ScriptedLlm("You are Ada.")
    shell.names["model"] = model
    shell.cell("%%agent guide -m model\nHi.")
    assert shell.cell("%chat guide Who am I?").text == "You are Ada."
    assert len(model.requests[-1].contents) == 3


WRONG = {
    "postgresql://ada:{}@127.0.0.1:1/db": "see that it runs and that the URL is right",
    "postgresql+oracle://ada:{}@127.0.0.1/db": "write postgresql://user:password@host/database",
    "postgresql://ada@127.0.0.1:1/db?password={}": "see that it runs and that the URL is right",
}


@pytest.mark.parametrize("address", WRONG)
def test_a_server_that_cannot_be_used_is_told_in_one_line_and_the_sessions_stay(
    shell: Shell, caplog: pytest.LogCaptureFixture, address: str
) -> None:
    shell.cell("%state a=1")

    shell.run(f"%config AdkNb.sessions = {address.format(PASSWORD)!r}")

    assert [WRONG[address] in record.getMessage() for record in caplog.records] == [True]
    assert "\n" not in caplog.records[0].getMessage()
    assert PASSWORD not in seen(shell, caplog)
    assert shell.cell("%config AdkNb.sessions") == ""
    assert shell.cell("%state a") == 1


def test_a_missing_extra_is_told_with_what_installs_it(
    shell: Shell, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing: Any = None
    monkeypatch.setitem(sys.modules, "psycopg", missing)
    shell.cell("%state a=1")

    shell.run(f'%config AdkNb.sessions = "postgresql://ada:{PASSWORD}@host/db"')

    assert "'psycopg'" in caplog.text and 'type: %pip install "psycopg[binary]>=' in caplog.text
    assert PASSWORD not in seen(shell, caplog)
    assert shell.cell("%state a") == 1
