"""google-adk's command line on agents of this package: in a terminal, and in a cell where google-adk is missing."""

import json
import os
import socket
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn

from tests.command_line.conftest import Ran, free_port
from tests.support.polling import eventually

Cli = Callable[..., Ran]
SHOP = '''from google.adk.agents import Agent


def price(item: str) -> str:
    """The price of an item."""
    return f"{item} costs 3 euros"


root_agent = Agent(name="shop", model="offline", tools=[price])
'''
PAYS = '''from google.adk.agents import Agent
from google.adk.tools import FunctionTool


def pay(to: str, amount: float) -> str:
    """Pay a person an amount in euros."""
    return f"paid {amount:g} euros to {to}"


root_agent = Agent(name="clerk", model="offline", tools=[FunctionTool(pay, require_confirmation=True)])
'''
ASKED = 'What is the price of item "tea"?'
CASES = {
    "eval_set_id": "prices",
    "eval_cases": [
        {
            "eval_id": name,
            "conversation": [
                {
                    "user_content": {"role": "user", "parts": [{"text": ASKED}]},
                    "intermediate_data": {"tool_uses": [{"name": "price", "args": {"item": item}}]},
                }
            ],
            "session_input": {"app_name": "shop", "user_id": "u"},
        }
        for name, item in (("right", "tea"), ("wrong", "coffee"))
    ],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").write_text("from . import agent\n")
    (tmp_path / "shop" / "agent.py").write_text(SHOP)
    (tmp_path / "shop" / "prices.evalset.json").write_text(json.dumps(CASES))
    (tmp_path / "shop" / "calls.json").write_text(json.dumps({"criteria": {"tool_trajectory_avg_score": 1.0}}))
    return tmp_path / "shop"


def test_a_created_agent_runs_and_its_key_is_for_its_owner_alone(adk_nb: Cli):
    created = adk_nb("adk", "create", "sample-agent", "--model", "offline", "--api_key", "a-key-of-the-course-1")
    assert created.code == 0 and "a-key-of-the-course-1" not in created.out
    secret = Path("sample-agent/.env")
    assert "GOOGLE_API_KEY=a-key-of-the-course-1\n" in secret.read_text()
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600 and ".env" in Path("sample-agent/.gitignore").read_text()
    assert "from google.adk.agents import Agent" in Path("sample-agent/agent.py").read_text()
    ran = adk_nb("adk", "run", "sample-agent", "Hello")
    assert ran.code == 0 and ran.out.startswith("[root_agent]: ")
    again = adk_nb("adk", "create", "sample-agent")
    assert again.code == 2 and "is there already" in again.err
    keyless = adk_nb("adk", "create", "written", "--type", "config", "--model", "offline", "--api_key")
    assert keyless.code == 0 and Path("written/.env").read_text() == ""
    assert adk_nb("adk", "run", "written", "Hello").code == 0


def test_run_asks_once_talks_until_exit_and_replays(adk_nb: Cli, folder: Path):
    assert adk_nb("adk", "run", "shop", ASKED).out == "[shop]: Tea costs 3 euros.\n"
    talked = adk_nb("adk", "run", "shop", typed=f"{ASKED}\nexit\nnot read\n")
    assert talked.out == "Running agent shop, type exit to exit.\n[user]: [shop]: Tea costs 3 euros.\n[user]: "
    Path("replay.json").write_text(json.dumps({"state": {"who": "Ada"}, "queries": [ASKED, ASKED]}))
    replayed = adk_nb("adk", "run", "--replay", "replay.json", "shop")
    assert replayed.out.count("[shop]: Tea costs 3 euros.") == 2 and replayed.out.count("[user]: ") == 2
    events = [json.loads(line) for line in adk_nb("adk", "run", "--jsonl", "shop", ASKED).out.splitlines()]
    assert events[-1]["author"] == "shop"


def test_no_text_that_is_piped_in_approves_a_call(adk_nb: Cli, tmp_path: Path):
    (tmp_path / "clerk.py").write_text(PAYS)
    ran = adk_nb("adk", "run", "clerk.py", 'Pay 250 euros to "Anna"', typed="y\n")
    assert ran.code == 3 and "(waits for an answer)" in ran.err and "Paid" not in ran.out


def test_a_session_goes_on_in_a_database(adk_nb: Cli, folder: Path):
    kept = ("--session_service_uri", "sqlite:///kept.db", "--session_id", "ada")
    adk_nb("adk", "run", *kept, "shop", ASKED)
    events = adk_nb("run", "shop", "Hello", "--sessions", "sqlite:///kept.db", "--session", "ada", "--json")
    assert events.code == 0 and events.json["session"] == "ada"
    with sqlite3.connect("kept.db") as db:
        stored = "\n".join(db.iterdump())
    assert "What is the price" in stored and "Hello" in stored and stored.count('INSERT INTO "sessions"') == 1


def test_eval_prints_google_adks_summary_and_fails_by_it(adk_nb: Cli, folder: Path):
    options = ("--config_file_path=shop/calls.json", "--print_detailed_results")
    ran = adk_nb("adk", "eval", "shop", "shop/prices.evalset.json", *options)
    assert ran.code == 1 and "prices:\n  Tests passed: 1\n  Tests failed: 1\n" in ran.out
    assert "right: passed" in ran.out and "wrong: failed" in ran.out
    chosen = adk_nb("adk", "eval", "shop", "shop/prices.evalset.json:right", *options)
    assert chosen.code == 0 and "Tests passed: 1\n  Tests failed: 0\n" in chosen.out
    unknown = adk_nb("adk", "eval", "shop", "shop/prices.evalset.json:none", *options)
    assert unknown.code == 2 and "has no case 'none'" in unknown.err


def test_what_is_wrong_is_a_line(adk_nb: Cli, folder: Path):
    Path("wide.json").write_bytes("{}".encode("utf-16"))
    for arguments, problem in {
        ("run", "none", "hi"): "there is no file 'none'",
        ("run", "shop", "hi", "--state", "[1]"): "--state must be a JSON object",
        ("eval", "shop", "none.evalset.json"): "none.evalset.json",
        ("deploy", "cloud_run"): "adk deploy needs google-adk itself",
        ("web", "none"): "there is no folder",
        ("web", "--host", "0.0.0.0"): "can be reached from other machines",
        ("frob",): "invalid choice",
        ("create", "x" * 300): "File name too long",
        ("run", "shop", "hi", "--replay", "wide.json"): "wide.json is no text in UTF-8",
        ("web", "--port", "99999"): "99999 is no port",
        ("web", "--log_level", "frob"): "invalid choice: 'FROB'",
    }.items():
        ran = adk_nb("adk", *arguments)
        assert (ran.code, ran.out) == (2, ""), arguments
        assert problem in ran.err and ran.err.count("\n") == 1, ran.err


def test_in_a_notebook_that_nobody_watches_web_tells_what_it_would_serve_and_ends(
    adk_nb: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("ADK_NB_IN_A_CELL", "unwatched")
    port = str(free_port())
    ran = adk_nb("adk", "web", "--port", port, "--url_prefix", "/proxy", "--log_level", "DEBUG")
    assert ran.code == 0 and f"shop: at http://127.0.0.1:{port}" in ran.err and "nobody is there" in ran.err


def test_a_server_that_does_not_start_is_a_failure(adk_nb: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch):
    def run(*args: Any, **settings: Any) -> None:
        raise SystemExit(3)  # as uvicorn ends where it cannot begin

    monkeypatch.setattr(uvicorn, "run", run)
    assert adk_nb("adk", "web", "--port", str(free_port())).code == 1


def test_an_address_of_ipv6_is_one_of_this_machine_too(adk_nb: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch):
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        pytest.skip("this machine has no IPv6")
    monkeypatch.setenv("ADK_NB_IN_A_CELL", "unwatched")
    ran = adk_nb("adk", "web", "--host", "::1", "--port", "0")
    assert ran.code == 0 and "shop: at http://[::1]:" in ran.err and "[::1]:0," not in ran.err


@contextmanager
def served(*arguments: str, **environment: str) -> Iterator[tuple[httpx2.Client, Path]]:
    port = free_port()
    log = Path("server.log").absolute()
    command = [sys.executable, "-m", "adk_nb", "adk", *arguments, "--port", str(port)]
    with (
        log.open("wb") as errors,
        subprocess.Popen(command, stderr=errors, env={**os.environ, **environment}) as server,
    ):

        def is_ready() -> bool:
            assert server.poll() is None, log.read_text()
            try:
                return client.get("/livez").status_code == 200
            except httpx2.TransportError:
                return False

        try:
            with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as client:
                eventually(is_ready, seconds=120, pause=0.2)
                yield client, log
        finally:
            server.terminate()
            server.wait(60)


@pytest.mark.slow
def test_the_agents_of_a_folder_are_served_each_under_its_name(folder: Path):
    for name, text in (("second", SHOP.replace("3 euros", "4 euros")), ("broken", "1 / 0\n")):
        (folder.parent / name).mkdir()
        (folder.parent / name / "agent.py").write_text(text)
        (folder.parent / name / "__init__.py").write_text("from . import agent\n")

    with served("api_server", str(folder.parent)) as (client, log):
        told = log.read_text()
        assert "broken is not served: agent.py, line 1: ZeroDivisionError" in told
        file = Path(told.split("the token that callers send is in ")[1].split(",")[0])
        token = file.read_text()
        assert token not in told and stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        assert client.get("/list-apps").status_code == 401
        client.headers["Authorization"] = f"Bearer {token}"
        assert client.get("/list-apps").json() == ["second", "shop"]

        def asked(name: str) -> Any:
            client.post(f"/apps/{name}/users/u/sessions", json={"sessionId": "s"})
            message = {"role": "user", "parts": [{"text": ASKED}]}
            return client.post("/run", json={"appName": name, "userId": "u", "sessionId": "s", "newMessage": message})

        assert "costs 3 euros" in asked("shop").text and "costs 4 euros" in asked("second").text
        assert asked("third").status_code == 404
        assert client.post("/run", content=b"no json").status_code == 422
        assert client.get("/a2a/second/.well-known/agent-card.json").status_code == 200
        assert "costs 3" in client.get("/apps/shop/users/u/sessions/s").text
    assert not file.exists()
