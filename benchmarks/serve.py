"""What a served turn costs beside google-adk's `adk api_server`: requests a second, their time, CPU of the server.

.venv/bin/python -m benchmarks.serve [--clients 1 16 64] [--requests 300] [--events 10 2000] [peer ...]

A server of each runtime on loopback, in a process of its own, with a model that calls one tool and then answers.
A client has a session and sends `POST /run`, one request after the other, on a connection that it keeps. With
`--events`, one client goes on with a session that has so many events already. Clients and server share the machine.
"""
# pyright: basic
# The runtimes are imported by name, in environments of their own.

import argparse
import asyncio
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PYTHONS = {"adk_nb": ROOT / ".venv/bin/python", "google-adk": ROOT / ".venv-adk/bin/python"}
TOKEN = "a-token-for-loopback"


async def add(x: int) -> str:
    """Adds one."""
    return str(x + 1)


def agent_of(package: str) -> Any:
    """An agent of `package` that calls `add` once in each turn."""
    types: Any = import_module("google.genai.types")
    models: Any = import_module(f"{package}.models")
    call = types.Part(function_call=types.FunctionCall(name="add", args={"x": 1}))

    class Calling(models.BaseLlm):
        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
            ends = any(part.function_response for part in llm_request.contents[-1].parts)
            part = types.Part(text="done.") if ends else call
            yield models.LlmResponse(content=types.Content(role="model", parts=[part.model_copy(deep=True)]))

    return import_module(f"{package}.agents").LlmAgent(name="bench", model=Calling(model="calling"), tools=[add])


def serve(peer: str, port: int) -> None:
    """Serve the agent until the process is ended."""
    if peer == "adk_nb":
        app: Any = import_module("adk_nb.serving").create_app(agent_of("adk_nb"), token=TOKEN)
    else:
        agent = agent_of("google.adk")

        class Loader(import_module("google.adk.cli.utils.base_agent_loader").BaseAgentLoader):
            def load_agent(self, agent_name: str) -> Any:
                return agent

            def list_agents(self) -> list[str]:
                return ["bench"]

        app = import_module("google.adk.cli.fast_api").get_fast_api_app(
            agents_dir=tempfile.mkdtemp(), agent_loader=Loader(), session_service_uri="memory://", web=False
        )
    import_module("uvicorn").run(app, host="127.0.0.1", port=port, log_level="error", access_log=False)


class Client:
    """A connection that is kept, and the requests of one session."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def open(self, session: str, events: int = 0) -> None:
        """Connect, and create the session with so many events."""
        self.session = session
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, limit=2**26)
        said = [(author, {"role": role, "parts": [{"text": "hello there"}]}) for author, role in AUTHORS]
        past = [
            {"author": author, "invocationId": f"i{at // 2}", "content": content}
            for at, (author, content) in enumerate(said * (events // 2))
        ]
        body: dict[str, Any] = {"sessionId": session, "events": past} if past else {"sessionId": session}
        await self.post("/apps/bench/users/u/sessions", body)

    async def post(self, path: str, body: Any) -> bytes:
        """The body of the answer."""
        data = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{self.port}\r\nauthorization: Bearer {TOKEN}\r\n"
        head += f"content-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
        self.writer.write(head.encode() + data)
        status, *headers = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
        length = next(int(header.split(":")[1]) for header in headers if header.startswith("content-length:"))
        answer = await self.reader.readexactly(length)
        if " 200 " not in f"{status} ":
            raise RuntimeError(f"{path}: {status}: {answer[:300]!r}")
        return answer

    async def turn(self) -> float:
        """Seconds of one turn."""
        message = {"role": "user", "parts": [{"text": "hello there"}]}
        body = {"appName": "bench", "userId": "u", "sessionId": self.session, "newMessage": message}
        begin = time.perf_counter()
        answer = await self.post("/run", body)
        assert b"done." in answer, answer
        return time.perf_counter() - begin


AUTHORS = (("user", "user"), ("bench", "model"))


def cpu_seconds(pid: int) -> float:
    """User and system time of a process."""
    times = import_module("psutil").Process(pid).cpu_times()
    return times.user + times.system


async def row(label: str, peer: str, server: int, clients: list[Client], requests: int) -> None:
    """Let the clients send `requests` turns in all; print one line."""
    await asyncio.gather(*(client.turn() for client in clients))
    left = iter(range(requests))

    async def send(client: Client) -> list[float]:
        return [await client.turn() for _ in left]

    cpu, begin = cpu_seconds(server), time.perf_counter()
    seconds = sorted(chain.from_iterable(await asyncio.gather(*map(send, clients))))
    wall, cpu = time.perf_counter() - begin, cpu_seconds(server) - cpu
    p99 = seconds[min(len(seconds) - 1, int(len(seconds) * 0.99))]
    print(
        f"{label:<24}{peer:<12}{requests / wall:>9,.0f} requests/s{statistics.median(seconds) * 1e3:>9,.1f} ms median"
        f"{p99 * 1e3:>9,.1f} ms p99{cpu / requests * 1e3:>9,.2f} ms CPU",
        flush=True,
    )


async def rows(peer: str, server: int, port: int, args: argparse.Namespace) -> None:
    """All rows of a peer, each with sessions of its own."""
    for events, number in [*((events, 1) for events in args.events), *((0, count) for count in args.clients)]:
        clients = [Client(port) for _ in range(number)]
        await asyncio.gather(*(each.open(f"s{events}-{number}-{at}", events) for at, each in enumerate(clients)))
        label = f"{events:,} events before it" if events else f"{number} client{'s' * (number > 1)}"
        await row(label, peer, server, clients, min(args.requests, 20) if events else args.requests)


def measure(peer: str, args: argparse.Namespace) -> None:
    """Start the server of a peer, measure it, and end it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [PYTHONS[peer], "-m", "benchmarks.serve", "--serve", peer, "--port", str(port)]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL) as server:
        try:
            while server.poll() is None:
                try:
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                except ConnectionRefusedError:
                    time.sleep(0.05)
            asyncio.run(rows(peer, server.pid, port, args))
        finally:
            server.terminate()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peers", nargs="*", default=list(PYTHONS), help="adk_nb, google-adk")
    parser.add_argument("--clients", nargs="*", type=int, default=[1, 16, 64])
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument("--events", nargs="*", type=int, default=[10, 2_000])
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        serve(args.serve, args.port)
        return
    for peer in args.peers:
        if not PYTHONS[peer].exists():
            sys.exit(f"{PYTHONS[peer]} does not exist: make bench makes it")
        measure(peer, args)


if __name__ == "__main__":
    main()
