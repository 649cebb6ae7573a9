"""`adk-nb serve` in processes of its own: what clients get, what operators see, and how it ends."""

import json
import os
import pty
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.command_line.conftest import Ran, free_port
from tests.command_line.test_run import CLERK, LOAD, PAY
from tests.models.live_server import certificate_folder, client_tls
from tests.sessions.conftest import postgres as postgres
from tests.sessions.conftest import running_postgres as running_postgres
from tests.sessions.postgres import Postgres
from tests.support.polling import eventually

Cli = Callable[..., Ran]
Write = Callable[..., str]
TOKEN = "a-token-of-the-tests-0123456789"
BUYER = 'Pay 5 euros to "Bo"'


class Serving:
    """A server process, and a client of it."""

    def __init__(self, log: Path, port: int, process: subprocess.Popen[bytes], client: httpx2.Client) -> None:
        self.port, self.process, self.client, self._log = port, process, client, log

    @property
    def log(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._log.read_text().splitlines() if line.startswith("{")]

    def ask(self, text: str, session: str = "s") -> httpx2.Response:
        self.client.post("/apps/clerk/users/user/sessions", json={"sessionId": session})
        message = {"role": "user", "parts": [{"text": text}]}
        body = {"appName": "clerk", "userId": "user", "sessionId": session, "newMessage": message}
        return self.client.post("/run", json=body)

    def answer(self, text: str, session: str = "s") -> str:
        events = self.ask(text, session).json()
        return events[-1]["content"]["parts"][0]["text"]

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


@contextmanager
def serving(*arguments: str, scheme: str = "http", verify: Any = True, **environment: str) -> Iterator[Serving]:
    port = free_port()
    log = Path("server.log").absolute()
    command = [sys.executable, "-m", "adk_nb", "serve", *arguments, "--port", str(port)]
    variables = {**os.environ, "ADK_NB_TOKEN": TOKEN, **environment}
    with log.open("wb") as errors, subprocess.Popen(command, stderr=errors, env=variables) as process:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        client = httpx2.Client(
            base_url=f"{scheme}://127.0.0.1:{port}", headers=headers, timeout=60, verify=verify, trust_env=False
        )

        def is_ready() -> bool:
            assert process.poll() is None, log.read_text()
            try:
                return client.get("/livez").status_code == 200
            except httpx2.TransportError:
                return False

        try:
            with client:
                eventually(is_ready, seconds=120, pause=0.2)
                yield Serving(log, port, process, client)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cells = [LOAD, PAY, CLERK]
    written = [{"cell_type": "code", "metadata": {}, "source": source, "outputs": []} for source in cells]
    path = tmp_path_factory.mktemp("shop") / "shop.ipynb"
    path.write_text(json.dumps({"cells": written, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    return path


@pytest.mark.slow
def test_a_notebook_is_served_with_probes_logs_and_a_graceful_end(shop: Path):
    with serving(str(shop), "clerk") as server:
        with httpx2.Client(base_url=server.client.base_url, trust_env=False) as stranger:
            assert stranger.get("/readyz").json() == {"status": "ok"}
            assert stranger.get("/list-apps").status_code == 401
            assert stranger.get("/list-apps?token=wrong").status_code == 401
        assert server.client.get("/list-apps").json() == ["clerk"]
        assert server.answer(BUYER) == "Paid 5 euros to Bo."
        assert server.client.get("/a2a/clerk/.well-known/agent-card.json").status_code == 200
        server.client.get(f"/list-apps?token={TOKEN}")
        assert server.client.get("/no%0Apath").status_code == 404
        live = f"ws://127.0.0.1:{server.port}/run_live?app_name=clerk&user_id=private-ada&session_id=none"
        with (
            connect(live, additional_headers={"Authorization": f"Bearer {TOKEN}"}, proxy=None) as talk,
            suppress(ConnectionClosed),
        ):
            talk.recv()
        assert server.stop() == 0
        requests = [line for line in server.log if line["logger"] == "adk_nb.serving.requests"]
        assert {"method", "path", "status", "ms", "client"} <= requests[0].keys()
        answered = [(line["path"], line["status"]) for line in requests]
        assert {("/run", 200), ("/no%0Apath", 404), ("/run_live", 101)} <= {*answered}
        assert "private-ada" not in json.dumps(server.log)
        assert "Application shutdown complete." in [line["message"] for line in server.log]
        assert TOKEN not in json.dumps(server.log)


@pytest.mark.slow
def test_the_processes_of_a_tool_do_not_get_the_token(shop: Path):
    cells = json.loads(shop.read_text())
    tool = (
        '%%tool\ndef variables(word: str) -> str:\n    """List variables with a word in their name."""\n'
        "    import subprocess\n    names = subprocess.run('env', capture_output=True, text=True).stdout\n"
        "    return f'{names.count(word)} found'"
    )
    for source in (tool, "%%agent clerk -t variables\nLook."):
        cells["cells"].append({"cell_type": "code", "metadata": {}, "source": source, "outputs": []})
    Path("look.ipynb").write_text(json.dumps(cells))
    with serving("look.ipynb", "clerk") as server:
        assert "0 found" in server.answer('List variables with the word "ADK_NB_TOKEN="')
        assert "0 found" not in server.answer('List variables with the word "PATH="', "t")


@pytest.mark.slow
def test_a_session_outlives_the_server_that_it_was_begun_on(shop: Path):
    kept = ("--sessions", "sqlite:///kept.db")
    with serving(str(shop), "clerk", *kept) as server:
        server.answer(BUYER)
        server.stop()
    with serving(str(shop), "clerk", *kept) as server:
        session = server.client.get("/apps/clerk/users/user/sessions/s").json()
        assert "Paid 5 euros to Bo." in json.dumps(session["events"])


@pytest.mark.slow
def test_workers_share_the_sessions_of_a_database(shop: Path, postgres: Postgres):
    with serving(str(shop), "clerk", "--workers", "2", "--sessions", postgres.url()) as server:

        def both(number: int) -> str:
            return server.answer(BUYER, f"s{number}")

        with ThreadPoolExecutor(8) as pool:
            assert {*pool.map(both, range(16))} == {"Paid 5 euros to Bo."}
        names = {one["id"] for one in server.client.get("/apps/clerk/users/user/sessions").json()}
        assert names == {f"s{number}" for number in range(16)}

        def workers() -> set[int]:
            return {line["process"] for line in server.log if line["message"] == "Application startup complete."}

        eventually(lambda: len(workers()) == 2, seconds=120, pause=0.2)
        assert server.stop() == 0


@pytest.mark.slow
def test_a_server_whose_database_is_gone_is_alive_and_not_ready(shop: Path, postgres: Postgres):
    with serving(str(shop), "clerk", "--sessions", postgres.url()) as server:
        assert server.client.get("/readyz").status_code == 200
        postgres.stop()
        try:
            assert server.client.get("/readyz").status_code == 503
            assert server.client.get("/livez").status_code == 200
        finally:
            postgres.start()
        eventually(lambda: server.client.get("/readyz").status_code == 200)


@pytest.mark.slow
def test_behind_a_proxy_it_answers_to_its_name_and_believes_the_proxy(shop: Path):
    with serving(str(shop), "clerk", "--behind-proxy", "--name", "shop.example") as server:
        forwarded = {"Host": "shop.example", "X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.7"}
        assert server.client.get("/list-apps", headers=forwarded).json() == ["clerk"]
        assert server.client.get("/list-apps", headers={"Host": "other.example"}).status_code == 403
        page = {**forwarded, "Origin": "https://shop.example"}
        assert server.client.get("/list-apps", headers=page).status_code == 200
        assert server.client.get("/list-apps", headers={**page, "Origin": "https://evil.example"}).status_code == 403
        card = server.client.get("/a2a/clerk/.well-known/agent-card.json", headers=forwarded).json()
        assert "https://shop.example/a2a/clerk/" in json.dumps(card)
        assert "203.0.113.7" in [line.get("client") for line in server.log]


@pytest.mark.slow
def test_it_speaks_tls_itself(shop: Path):
    for file in certificate_folder().iterdir():
        Path(file.name).write_bytes(file.read_bytes())
    files = ("--tls-cert", "cert.pem", "--tls-key", "key.pem")
    with serving(str(shop), "clerk", *files, scheme="https", verify=client_tls()) as server:
        assert server.client.get("/list-apps").json() == ["clerk"]


def test_what_cannot_be_served_safely_or_at_all_is_told_in_a_line(
    adk_nb: Cli, notebook: Write, monkeypatch: pytest.MonkeyPatch
):
    shop = notebook(LOAD, PAY, CLERK)
    Path("junk.pem").write_text("no certificate")
    monkeypatch.delenv("ADK_NB_TOKEN", raising=False)
    assert "set ADK_NB_TOKEN" in adk_nb("serve", shop, "-q").err
    monkeypatch.setenv("ADK_NB_TOKEN", "short")
    assert "has 5 characters, and needs 16" in adk_nb("serve", shop, "-q").err
    monkeypatch.setenv("ADK_NB_TOKEN", TOKEN)
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        for arguments, problem in {
            ("clerk", "--port", port): f"port {port} is taken",
            ("clerk", "--host", "0.0.0.0"): "add --tls-cert and --tls-key, or --behind-proxy",
            ("clerk", "--host", "0.0.0.0", "--behind-proxy"): "needs --name",
            ("clerk", "--host", "203.0.113.7", "--behind-proxy", "--name", "x.example"): "is no address of this",
            ("clerk", "--workers", "2"): "2 workers need sessions in a file or a database",
            ("clerk", "--tls-cert", "junk.pem", "--tls-key", "junk.pem"): "--tls-cert and --tls-key cannot be used",
            ("clerk", "--tls-cert", "none.pem"): "--tls-cert and --tls-key go together",
            ("clerk", "--sessions", "postgresql://ada:geheim@127.0.0.1:1/shop"): "could not be read or written",
            ("clrek",): "did you mean 'clerk'?",
            ("clerk", "--port", "99999"): "is no port",
        }.items():
            ran = adk_nb("serve", shop, *arguments, "-q")
            assert (ran.code, ran.out) == (2, ""), arguments
            assert problem in ran.err and ran.err.count("\n") == 1, ran.err
            assert "geheim" not in ran.err and TOKEN not in ran.err
    monkeypatch.delenv("ADK_NB_TOKEN")
    ran = adk_nb("serve", shop, "--host", "0.0.0.0", "--behind-proxy", "--name", "x.example", "-q")
    assert ran.code == 2 and "needs a token; set ADK_NB_TOKEN" in ran.err


@pytest.mark.slow
def test_the_password_of_the_database_is_not_shown_on_a_terminal(shop: Path, postgres: Postgres):
    address = postgres.url().replace("tester@", "tester:geheim-of-the-shop-42@")
    screen, terminal = pty.openpty()
    command = [sys.executable, "-m", "adk_nb", "serve", str(shop), "clerk", "--sessions", address]
    with subprocess.Popen(command, stderr=terminal, env={**os.environ, "ADK_NB_TOKEN": TOKEN}) as process:
        os.close(terminal)
        shown = b""
        while b"may also approve calls" not in shown and (part := os.read(screen, 4096)):
            shown += part
        process.kill()
    os.close(screen)
    assert b"sessions are kept in postgresql" in shown and b"geheim" not in shown
