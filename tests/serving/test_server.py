"""The server itself: its port, its end, and the thread of sync tools."""

import socket
import subprocess
import sys
import threading
from typing import Any

import httpx2
import pytest

from adk_nb import tool
from adk_nb.agents import Agent
from adk_nb.errors import InputError
from adk_nb.models import ScriptedLlm, call
from adk_nb.serving import Server, create_app
from adk_nb.serving.server import PORT, bound_socket
from tests.serving.conftest import TOKEN, texts


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
        return create_app(Agent(name="clerk", model=ScriptedLlm()), token=TOKEN, url=url)

    first = Server(create, bound_socket(0))
    first.start()
    assert first.is_running and httpx2.get(f"{first.url}/list-apps").status_code == 401
    first.stop()
    first.stop()
    assert not first.is_running
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(first.url)
    second = Server(create, bound_socket(first.port))
    second.start()
    try:
        assert second.port == first.port and httpx2.get(f"{second.url}/list-apps").status_code == 401
    finally:
        second.stop()


def test_the_end_of_the_process_frees_the_port():
    program = f"""
from adk_nb.agents import Agent
from adk_nb.models import ScriptedLlm
from adk_nb.serving import Server, create_app
from adk_nb.serving.server import bound_socket
agent = Agent(name="clerk", model=ScriptedLlm())
server = Server(lambda url: create_app(agent, token={TOKEN!r}, url=url), bound_socket(0))
server.start()
print(server.port)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    bound_socket(int(done.stdout)).close()


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
