"""A worker process that tests start, hear of and kill: a shop whose tools say where they are, and wait to be let go."""

import asyncio
import logging
import os
from collections.abc import AsyncGenerator
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from adk_nb import types
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.engines import dbos_engine, dbos_worker
from adk_nb.engines.dbos_engine import DbosEngine
from adk_nb.errors import ConfigurationError
from adk_nb.models.base_llm import BaseLlm
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.runners import Runner
from adk_nb.runtime import session_lease
from adk_nb.runtime.context import ToolContext
from adk_nb.sessions.database_session_service import DatabaseSessionService
from adk_nb.sessions.sql import journal
from adk_nb.tools.function_tool import FunctionTool

FINAL_TEXT = "all is done"
_doors: list[Connection] = []
"""This process's: to say what a tool does, and to hear that it may go on. Tools are the same in every process."""
_waits: list[str] = []


class Clerk(BaseLlm):
    """Calls the tools that the user named, one after the other, then says that all is done."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        parts = [part for content in llm_request.contents for part in content.parts or ()]
        request = [part.text.split() for part in parts if part.text and part.text != FINAL_TEXT][-1]
        names = {part.function_response.name for part in parts if part.function_response}
        remaining_names = [name for name in request if name not in names]
        part = (
            types.Part(function_call=types.FunctionCall(name=remaining_names[0], args={}))
            if remaining_names
            else types.Part(text=FINAL_TEXT)
        )
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


def shop() -> LlmAgent:
    def does(name: str, effect: Any, **options: Any) -> FunctionTool:
        def work(tool_context: ToolContext) -> str:
            _doors[0].send((name, tool_context.idempotency_key, tool_context.attempt))
            if name in _waits:
                _doors[1].recv()
            return f"{name} is done"

        return FunctionTool(work, name=name, description=name, effect=effect, **options)

    tools = [does("look", "once"), does("stamp", "idempotent"), does("pay", "once", require_confirmation=True)]
    return LlmAgent(name="clerk", model=Clerk(model="clerk"), tools=tools)


def engine_of(url: str, app: str) -> DbosEngine:
    service = DatabaseSessionService(url)
    return DbosEngine(Runner(app_name=app, agent=shop(), session_service=service, auto_create_session=True), url)


def work(url: str, app: str, tells: Connection, goes: Connection, waits: tuple[str, ...], lease: float) -> None:
    """Be a worker until `tells` hears something. What a tool does is told there; one in `waits` waits for `goes`.

    `lease`: seconds for which the session of a dead worker is held.
    """
    session_lease.LEASE_SECONDS = journal.LEASE_SECONDS = lease
    dbos_worker.LOOK_SECONDS = dbos_engine.POLL_SECONDS = 0.1
    _doors[:] = tells, goes
    _waits[:] = waits

    async def run() -> None:
        async with engine_of(url, app):
            tells.send(("working", os.getpid()))
            await asyncio.to_thread(tells.recv)
            tells.send(("leaving", os.getpid()))

    asyncio.run(run())


def tell_log(url: str, app: str, tells: Connection, *rest: Any) -> None:
    """Work, and tell what DBOS logs meanwhile."""

    class Telling(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            tells.send(("logged", self.format(record)))

    logging.getLogger("dbos").addHandler(Telling())
    work(url, app, tells, *rest)


def block(url: str, app: str, tells: Connection, *_: object) -> None:
    """Work, with an event loop that does nothing else than to wait for what a tool tells."""
    hears, text = Pipe(duplex=False)
    _doors[:] = text, text

    async def run() -> None:
        engine = engine_of(url, app)
        async with engine:
            await engine.start(user_id="u", session_id="s", new_message="look")
            tells.send(hears.recv()[0] if hears.poll(20) else "a blocked loop stops all runs")
            try:
                async with engine_of(url, app):
                    tells.send("two workers in one process")
            except ConfigurationError as error:
                tells.send(str(error))
            await engine.start(user_id="u", session_id="other", new_message="stamp")
            tells.send(hears.recv()[0] if hears.poll(20) else "the first worker is gone")
        async with engine:
            await engine.start(user_id="u", session_id="third", new_message="look")
            tells.send(hears.recv()[0] if hears.poll(20) else "a process works only once")

    asyncio.run(run())
