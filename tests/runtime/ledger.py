"""Runs on a session in a file, and one that loses its file in its midst: what is left of it is as after a kill."""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, closing
from pathlib import Path
from typing import Any

from adk_nb import types
from adk_nb.agents import BaseAgent, LlmAgent
from adk_nb.events import Event, ToolConfirmation
from adk_nb.models import ScriptedLlm, call
from adk_nb.runners import Runner
from adk_nb.runtime import interrupts
from adk_nb.runtime.history import open_interrupts
from adk_nb.runtime.interrupts import APPROVALS
from adk_nb.sessions import BaseSessionService, Session, SqliteSessionService
from adk_nb.sessions.journal import LEASE_SECONDS
from adk_nb.tools import FunctionTool, ToolContext, tool

SESSION_KEY: dict[str, Any] = {"user_id": "u", "session_id": "s"}


def clerk(*answers: Any, **fields: Any) -> LlmAgent:
    return LlmAgent(name="clerk", model=ScriptedLlm(*answers), **fields)


def runner_of(agent: BaseAgent, service: BaseSessionService, **options: Any) -> Runner:
    return Runner(app_name="app", agent=agent, session_service=service, auto_create_session=True, **options)


def talk(runner: Runner, said: Any = "go", **more: Any) -> AsyncGenerator[Event, None]:
    return runner.run_async(**SESSION_KEY, new_message=said, **more)


async def events_of(events: AsyncGenerator[Event, None]) -> list[Event]:
    async with aclosing(events):
        return [event async for event in events]


async def stored(service: BaseSessionService) -> Session:
    session = await service.get_session(app_name="app", **SESSION_KEY)
    assert session
    return session


def rows(path: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute(query).fetchall()


def using(path: Path, use: Callable[[SqliteSessionService], Awaitable[None]]) -> None:
    async def run() -> None:
        service = SqliteSessionService(path)
        try:
            await use(service)
        finally:
            await service.close()

    asyncio.run(run())


def texts(events: list[Event]) -> list[str]:
    return [event.text for event in events if event.text]


class Ledger:
    """Tools that note what they did, and one that loses the file in its midst."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.done: list[tuple[str, int, str]] = []
        self.service: SqliteSessionService | None = None

    def tools(self, *, stamp: str = "stamped") -> list[FunctionTool]:
        @tool(effect="pure")
        async def look(tool_context: ToolContext) -> str:
            """Looks."""
            return await self._does("look", tool_context)

        @tool(effect="idempotent")
        async def put(tool_context: ToolContext) -> str:
            """Puts."""
            return await self._does("put", tool_context)

        @tool
        async def pay(tool_context: ToolContext) -> str:
            """Pays."""
            return await self._does("pay", tool_context)

        @tool
        async def send(tool_context: ToolContext) -> str:
            """Sends."""
            tool_context.state["sent"] = stamp
            self.done.append(("send", tool_context.attempt, tool_context.idempotency_key))
            return stamp

        return [look, put, pay, send]

    async def _does(self, name: str, context: ToolContext) -> str:
        self.done.append((name, context.attempt, context.idempotency_key))
        if self.service:
            ended = "SELECT 1 FROM intents WHERE name = 'send' AND finished IS NOT NULL"
            while len(self.done) < 4 or not rows(self.path, ended):  # noqa: ASYNC110  # the file tells nobody
                await asyncio.sleep(0)
            await self.service.close()  # what comes now is as if the process were gone
        return f"{name} is done"


CALLS = [call("look"), call("put"), call("pay"), call("send")]


async def cut(ledger: Ledger, ticks: list[float]) -> str:
    """A run that loses its file while three of its four tools are at work. The id of the run."""
    service = ledger.service = SqliteSessionService(ledger.path)
    ended = await asyncio.gather(
        events_of(talk(runner_of(clerk(CALLS, tools=ledger.tools()), service))), return_exceptions=True
    )
    assert isinstance(ended[0], Exception)
    ledger.service = None
    ticks[0] += LEASE_SECONDS + 1
    (run_id,) = (run_id for (run_id,) in rows(ledger.path, "SELECT run_id FROM runs WHERE outcome IS NULL"))
    return run_id


def confirmed(events: list[Event], *, yes: bool) -> types.Content:
    (asked,) = open_interrupts(events, APPROVALS)
    return types.Content(role="user", parts=[interrupts.answer(asked, ToolConfirmation(confirmed=yes))])
