"""The server itself: its port, its end, its connections, what it logs, and the thread of sync tools."""

import socket
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any, cast

import httpx2
import pytest
from starlette.responses import StreamingResponse

from adk_nb import sync, tool
from adk_nb.a2a import gate
from adk_nb.agents import Agent
from adk_nb.errors import InputError
from adk_nb.models import ScriptedLlm, call
from adk_nb.serving import server as server_module
from adk_nb.serving.http_bodies import sse_response
from adk_nb.serving.server import PORT, bound_socket
from tests.serving.conftest import TOKEN, Served, texts
from tests.support.late import late

serving = late("adk_nb.serving")


def test_a_port_that_is_taken_is_refused_with_a_free_one():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=rf"port {port} is taken; name another, as --port \d+") as refused:
            bound_socket(port)
    free = int(str(refused.value).partition("--port ")[2].partition(",")[0])
    bound_socket(free).close()


def test_without_a_port_the_first_free_one_is_taken():
    with bound_socket(None) as first, bound_socket(None) as second:
        ports = [one.getsockname()[1] for one in (first, second)]
    assert PORT <= ports[0] < ports[1]


def test_an_end_frees_the_port_and_a_second_server_takes_it():
    def create(url: str) -> Any:
        return serving.create_app(Agent(name="clerk", model=ScriptedLlm()), token=TOKEN, url=url)

    first = serving.Server(create, bound_socket(0))
    first.start()
    assert first.is_running and httpx2.get(f"{first.url}/list-apps").status_code == 401
    first.stop()
    first.stop()
    assert not first.is_running
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(first.url)
    second = serving.Server(create, bound_socket(first.port))
    second.start()
    try:
        assert second.port == first.port and httpx2.get(f"{second.url}/list-apps").status_code == 401
    finally:
        second.stop()


def test_the_end_of_the_process_frees_the_port():
    program = f"""
from adk_nb.agents import Agent
from adk_nb.models import ScriptedLlm
from adk_nb.serving import Server, access, create_app
from adk_nb.serving import server as server_module
from adk_nb.serving.server import bound_socket
agent = Agent(name="clerk", model=ScriptedLlm())
server = Server(lambda url: create_app(agent, token={TOKEN!r}, url=url), bound_socket(0))
server.start()
print(server.port)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    bound_socket(int(done.stdout)).close()


def connected(served: Served, sent: bytes = b"") -> socket.socket:
    client = socket.create_connection(("127.0.0.1", served.server.port), timeout=240)
    client.sendall(sent)
    return client


def is_closed(client: socket.socket) -> bool:
    """True once the server has closed the connection; fails after a minute."""
    with client, suppress(ConnectionResetError):
        while client.recv(4096):
            pass
    return True


HEAD = f"POST /run HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 20\r\n".encode()
HALVES = [
    b"",
    b"GET /list-apps HT",
    HEAD,
    b"GET /list-apps HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET /li",  # a second one, after the answer to the first
    b"POST /run HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 20\r\n\r\n{",  # it is refused, and goes on
]


def test_a_request_whose_headers_do_not_come_is_not_waited_for(serve, monkeypatch: pytest.MonkeyPatch):
    served = serve(Agent(name="clerk", model=ScriptedLlm()))
    slow = connected(served, HEAD + b"Expect: 100-continue\r\n\r\n")
    assert slow.recv(4096).startswith(b"HTTP/1.1 100")
    slow.sendall(b"{")
    monkeypatch.setattr(server_module, "_HEADER_SECONDS", 0.2)
    halves = [connected(served, half) for half in HALVES]
    assert all(is_closed(half) for half in halves)
    slow.sendall(b" " * 18 + b"}")
    assert slow.recv(4096).startswith(b"HTTP/1.1 422"), "a request that is under way has its time"
    slow.close()
    monkeypatch.undo()
    assert served.client.get("/list-apps").json() == ["clerk"]


def test_a_body_that_does_not_begin_is_not_waited_for(serve, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gate, "BODY_SECONDS", 0.2)
    served = serve(Agent(name="clerk", model=ScriptedLlm()))
    json_type = b"Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
    for path in (b"/run", b"/run_sse", b"/ag-ui", b"/a2a/clerk/"):
        with connected(served, HEAD.replace(b"/run", path) + json_type + b"\r\n") as client:
            assert client.recv(4096).startswith(b"HTTP/1.1 408"), path


def test_a_crowd_of_connections_leaves_the_process_its_files(serve, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(server_module, "_MAX_CONNECTIONS", 5)
    monkeypatch.setattr(server_module, "_HEADER_SECONDS", 600)
    served = serve(Agent(name="clerk", model=ScriptedLlm()))
    first = [connected(served, b"GET /list-apps HT") for _ in range(5)]
    crowd = [connected(served) for _ in range(40)]
    assert all(is_closed(client) for client in crowd)
    for client in first:
        client.sendall(f"TP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())
        assert client.recv(4096).startswith(b"HTTP/1.1 200"), "those that were there first are served"
    for client in first:
        client.shutdown(socket.SHUT_WR)
        assert is_closed(client)
    assert served.client.get("/list-apps").json() == ["clerk"]


def test_what_clients_do_wrong_is_not_written_into_the_notebook():
    half = HEAD + b"\r\n{"
    program = f"""
import socket
import httpx2
from adk_nb.agents import Agent
from adk_nb.models import ScriptedLlm
from adk_nb.serving import Server, access, create_app
from adk_nb.serving import server as server_module
agent = Agent(name="clerk", model=ScriptedLlm())
server = Server(lambda url: create_app(agent, token={TOKEN!r}, url=url), 0)
server.start()
for sent in [b"nonsense\\r\\n\\r\\n", {half!r}]:
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(sent)
        client.shutdown(socket.SHUT_WR)
        client.recv(4096)
headers = {{"Authorization": "Bearer {TOKEN}", "A2A-Version": "1.0"}}
for body in [3, {{}}, {{"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {{"message": {TOKEN!r}}}}}]:
    answer = httpx2.post(server.url + "/a2a/clerk/", json=body, headers=headers)
    assert "error" in answer.json()
server.stop()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "")


def test_sync_tools_run_in_workers_so_that_a_waiting_cell_cannot_hold_them_up(serve):
    threads: list[str] = []

    @tool
    def look() -> str:
        """Look."""
        threads.append(threading.current_thread().name)
        return "seen"

    served = serve(Agent(name="clerk", model=ScriptedLlm(call("look"), "Seen."), tools=[look]))
    served.session()
    assert texts(served.run("Look").json()) == ["Seen."]
    assert threads[0].startswith("adk-nb-worker")


def test_an_empty_server_sent_event_sends_nothing_wherever_it_stands():
    async def texts() -> AsyncGenerator[str]:
        for text in ("", "a", "", "b"):
            yield text

    async def sent() -> list[Any]:
        response = cast(StreamingResponse, await sse_response(texts()))
        return [chunk async for chunk in response.body_iterator]

    assert sync.run(sent()) == ["data: a\n\n", "data: b\n\n"]
