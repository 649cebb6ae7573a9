"""A served agent: a real uvicorn on a free port of this machine, and clients of it."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from adk_nb.agents import Agent
from adk_nb.serving.server import bound_socket
from tests.support.late import late

serving = late("adk_nb.serving")

TOKEN = "a-token-of-the-tests-0123456789"


@dataclass
class Served:
    """Where an agent is served, and a client that has its token."""

    server: Any
    client: httpx2.Client

    @property
    def url(self) -> str:
        return self.server.url

    def session(self, name: str = "s", user: str = "user", **state: Any) -> None:
        answer = self.client.post(f"/apps/clerk/users/{user}/sessions", json={"sessionId": name, "state": state})
        assert answer.status_code == 200, answer.text

    def events(self, name: str = "s", user: str = "user") -> list[dict[str, Any]]:
        return self.client.get(f"/apps/clerk/users/{user}/sessions/{name}").json()["events"]

    def run(self, text: str | None = None, session: str = "s", **more: Any) -> httpx2.Response:
        return self.client.post("/run", json=body(text, session, **more))

    def stream(self, text: str | None = None, session: str = "s", **more: Any) -> list[dict[str, Any]]:
        with self.client.stream("POST", "/run_sse", json=body(text, session, **more)) as answer:
            assert answer.status_code == 200, answer.read()
            return [json.loads(line.removeprefix("data: ")) for line in answer.iter_lines() if line]


def body(text: str | None, session: str = "s", parts: list[Any] | None = None, **more: Any) -> dict[str, Any]:
    """The body of a run with a text, or with other parts."""
    message = {"role": "user", "parts": parts or [{"text": text}]} if parts or text is not None else None
    return {"appName": "clerk", "userId": "user", "sessionId": session, "newMessage": message, **more}


def texts(events: list[dict[str, Any]]) -> list[str]:
    """The texts of whole events, in order."""
    whole = [event for event in events if not event.get("partial")]
    return [part["text"] for event in whole for part in event.get("content", {}).get("parts", []) if "text" in part]


def requests_in(events: list[dict[str, Any]]) -> list[str]:
    """Ids of the approval requests in events."""
    calls = [part.get("functionCall", {}) for event in events for part in event.get("content", {}).get("parts", [])]
    return [call["id"] for call in calls if call.get("name") == "adk_request_confirmation"]


def approval(key: str, confirmed: bool = True) -> list[dict[str, Any]]:
    """The parts that answer an approval request."""
    response = {"id": key, "name": "adk_request_confirmation", "response": {"confirmed": confirmed}}
    return [{"functionResponse": response}]


@pytest.fixture
def serve() -> Iterator[Callable[..., Served]]:
    """Serves an agent until the end of the test."""
    with ExitStack() as stack:

        def started(agent: Agent, **options: Any) -> Served:
            server = serving.Server(
                lambda url: serving.create_app(agent, token=TOKEN, url=url, **options), bound_socket(0)
            )
            server.start()
            stack.callback(server.stop)
            headers = {"Authorization": f"Bearer {TOKEN}"}
            client = stack.enter_context(httpx2.Client(base_url=server.url, headers=headers, timeout=60))
            return Served(server, client)

        yield started
