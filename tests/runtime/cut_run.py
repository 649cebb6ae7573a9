"""A run of three tools and an approval, in processes that are killed at one of its points after the other."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any

from adk_nb import types
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.errors import InvocationNotFoundError
from adk_nb.events.event import Event
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.models.base_llm import BaseLlm
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.runners import Runner
from adk_nb.runtime import approvals
from adk_nb.runtime.context import ToolContext
from adk_nb.sessions.sqlite_journal import SqliteLease
from adk_nb.sessions.sqlite_session_service import SqliteSessionService
from adk_nb.tools.function_tool import FunctionTool

WHERE: dict[str, Any] = {"app_name": "app", "user_id": "u", "session_id": "s"}
DONE = "all is done"
_MOST_TURNS = 12


class Points:
    """Counts the points that a run comes by, and kills its process at one."""

    def __init__(self, fatal: int) -> None:
        self.passed = 0
        self._fatal = fatal

    def at(self) -> None:
        self.passed += 1
        if self.passed == self._fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, method: Callable[..., Any]) -> Callable[..., Any]:
        async def called(*args: Any, **kwargs: Any) -> Any:
            self.at()
            result = await method(*args, **kwargs)
            self.at()
            return result

        return called


class Clerk(BaseLlm):
    """Looks and stamps, then pays, then says that all is done: by what the history says, and not by a count."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        parts = [part for content in llm_request.contents for part in content.parts or ()]
        answered = {part.function_response.name for part in parts if part.function_response}
        calls = [name for name in ("look", "stamp") if name not in answered]
        calls = calls or ["pay"] * ("pay" not in answered)
        said = [types.Part(function_call=types.FunctionCall(name=name, args={})) for name in calls]
        content = types.Content(role="model", parts=said or [types.Part(text=DONE)])
        yield LlmResponse(content=content)


def line(path: Path, said: Any) -> None:
    """Write a line that outlives the process."""
    out = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(out, json.dumps(said).encode() + b"\n")
    os.close(out)


def lines(path: Path) -> list[Any]:
    return [json.loads(one) for one in path.read_text().splitlines()] if path.exists() else []


def clerk(folder: Path, points: Points) -> LlmAgent:
    """The agent; what its tools do is in `folder/done`."""

    def does(name: str, effect: Any, **options: Any) -> FunctionTool:
        async def work(tool_context: ToolContext) -> str:
            points.at()
            line(folder / "done", [name, tool_context.idempotency_key, tool_context.attempt])
            points.at()
            return f"{name} is done"

        return FunctionTool(work, name=name, description=name, effect=effect, **options)

    tools = [does("look", "pure"), does("stamp", "once"), does("pay", "once", require_confirmation=True)]
    return LlmAgent(name="clerk", model=Clerk(model="clerk"), tools=tools)


def work(folder: Path, fatal: int) -> None:
    """Do what is left of the run, and note in `folder` what was seen; at point `fatal` the process dies."""
    asyncio.run(_work(folder, Points(fatal)))


async def _work(folder: Path, points: Points) -> None:
    for name in ("begin", "finish", "release"):
        setattr(SqliteLease, name, points.around(getattr(SqliteLease, name)))
    service = SqliteSessionService(folder / "nb.db")
    service.append_event = points.around(service.append_event)
    service.claim = points.around(service.claim)
    runner = Runner(app_name="app", agent=clerk(folder, points), session_service=service, auto_create_session=True)
    for _ in range(_MOST_TURNS):
        given = await _next(service, folder)
        if given is None:
            break
        with suppress(InvocationNotFoundError):  # it was cut before it had written a word: the next turn is another
            async with aclosing(runner.run_async(user_id="u", session_id="s", **given)) as events:
                async for event in events:
                    line(folder / "seen", event.id)
                    points.at()
    await service.close()
    line(folder / "passed", points.passed)


async def _next(service: SqliteSessionService, folder: Path) -> dict[str, Any] | None:
    """What the user does: go on with what was cut, answer what is asked, or begin. None: it is finished."""
    session = await service.get_session(**WHERE)
    if session is None:
        return {"new_message": "go"}
    if left := await service.unfinished(session):
        return {"invocation_id": left[-1].id}
    if asked := approvals.pending(session.events):
        return {"new_message": types.Content(role="user", parts=[_answer(asked[0], folder)])}
    return None if _is_done(session.events) else {"new_message": "go"}


def _answer(asked: approvals.Pending, folder: Path) -> types.Part:
    """Yes; but no to what is asked again, and has happened, as this person can see."""
    line(folder / "asked", [asked.call.name, asked.hint])
    happened = any(name == asked.call.name for name, *_ in lines(folder / "done"))
    return approvals.answer(asked.id, ToolConfirmation(confirmed=not happened))


def _is_done(events: list[Event]) -> bool:
    return any(event.text == DONE for event in events)
