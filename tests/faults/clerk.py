"""A run of four tools and an approval, which comes by named points; whoever finds it half done does the rest."""

import fcntl
import json
import os
import re
import sqlite3
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
from adk_nb.runtime import interrupts
from adk_nb.runtime.context import Context, ToolContext
from adk_nb.runtime.history import open_interrupts
from adk_nb.runtime.interrupts import APPROVALS, Interrupt
from adk_nb.sessions.database_session_service import DatabaseSessionService
from adk_nb.sessions.session import Session
from adk_nb.sessions.sql import sqlite_file
from adk_nb.sessions.sql.sqlite_file import SessionFile
from adk_nb.sessions.sqlite_session_service import SqliteSessionService
from adk_nb.tools.function_tool import FunctionTool
from tests.support.role_rules import check_as_sent

DONE = "all is done"
TOOLS = {"look": "pure", "send": "idempotent", "stamp": "once", "pay": "once"}
"""And what it means to call each again. The last one asks for approval."""
_MOST_TURNS = 30
_TABLE = re.compile(r"\b(?:FROM|INTO|UPDATE|TABLE) (\w+)")


class Points:
    """The places that a run comes by, in order; at one of them something is done."""

    def __init__(self, number: int = 0, do: Callable[[], None] = lambda: None) -> None:
        self.names: list[str] = []
        self.counts = True
        """False: who comes by now is not of the run."""
        self._number = number
        self._do = do

    @property
    def where(self) -> str:
        """The name of the one at which something is done; empty if it has not come yet."""
        return self.names[self._number - 1] if 0 < self._number <= len(self.names) else ""

    def at(self, name: str) -> None:
        """Here is one. What is done may raise."""
        if not self.counts:
            return
        self.names.append(name)
        if len(self.names) == self._number:
            self._do()

    def in_the_store(self, *, kills: bool = False) -> None:
        """From now on each statement that SQLite is given in this process is a place, and each commit two if one
        `kills`: after it nothing else can go wrong before it is told.
        """
        position = self.at

        def noted(opens: Callable[[SessionFile], sqlite3.Connection]) -> Any:
            return lambda file: Statements(opens(file), position, kills)

        SessionFile.open = noted(SessionFile.open)


class Statements:
    """A connection whose statements are told of."""

    def __init__(self, db: sqlite3.Connection, at: Callable[[str], None], kills: bool) -> None:
        self._db = db
        self._at = at
        self._kills = kills

    @property
    def in_transaction(self) -> bool:
        return self._db.in_transaction

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        verb, table = statement.split()[0], _TABLE.search(statement)
        if verb != "ROLLBACK":
            self._at(f"before {verb} {table[1]}" if table else f"before {verb}")
        result = self._db.execute(statement, *values)
        if self._kills and verb == "COMMIT":
            self._at("after COMMIT")
        return result

    def executemany(self, statement: str, values: list[Any]) -> None:
        for value in values:
            self.execute(statement, value)

    def close(self) -> None:
        self._db.close()


class Clerk(BaseLlm):
    """Looks, sends and stamps, then pays, then says that all is done: by what the history says, not by a count."""

    at: Any = None

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        check_as_sent(llm_request.contents)  # whatever was done before, every service takes the next question
        self.at("before the model")
        parts = [part for content in llm_request.contents for part in content.parts or ()]
        names = {part.function_response.name for part in parts if part.function_response}
        *first, last = TOOLS
        calls = [name for name in first if name not in names]
        calls = calls or [last] * (last not in names)
        content_parts = [types.Part(function_call=types.FunctionCall(name=name, args={})) for name in calls]
        yield LlmResponse(content=types.Content(role="model", parts=content_parts or [types.Part(text=DONE)]))
        self.at("after the model")


def line(path: Path, message: Any) -> None:
    """Write a line that outlives the process."""
    out = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(out, json.dumps(message).encode() + b"\n")
    os.close(out)


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def open_store(folder: Path, **options: Any) -> SqliteSessionService | DatabaseSessionService:
    """The sessions of a folder: in its file, or in the database whose URL is in it."""
    url = folder / "url"
    return (
        DatabaseSessionService(url.read_text()) if url.exists() else SqliteSessionService(folder / "nb.db", **options)
    )


class Desk:
    """Where a process does the runs of one store, session by session."""

    def __init__(self, folder: Path, points: Points, *, sees: bool = True, **options: Any) -> None:
        """What was done is noted in files in `folder`, as it is done.

        Args:
            folder: Of the file of sessions.
            points: That its runs come by.
            sees: The person who is asked knows what has happened. Else they say no to what may have.
            options: Of the session service.
        """
        self.service = open_store(folder, **options)
        self.held: Session | None = None
        """What the last run worked on."""
        self._folder = folder
        self._points = points
        self._sees = sees
        agent = LlmAgent(
            name="clerk",
            model=Clerk(model="clerk", at=points.at),
            tools=self._tools(),
            before_agent_callback=self._hold,
        )
        self._runner = Runner(app_name="app", agent=agent, session_service=self.service, auto_create_session=True)

    async def finish(self, name: str) -> None:
        """Do what is left of the run in the session of that name.

        Raises:
            Exception: What a turn ended with; call again to go on.
        """
        for _ in range(_MOST_TURNS):
            with (self._folder / "user").open("w") as user, suppress(InvocationNotFoundError):  # cut before any word
                fcntl.flock(user, fcntl.LOCK_EX)  # one person, who says nothing twice
                value = await self._next(name)
                if value is None:
                    return
                async with aclosing(self._runner.run_async(user_id="u", session_id=name, **value)) as events:
                    async for event in events:
                        fcntl.flock(user, fcntl.LOCK_UN)
                        line(self._folder / "seen", [name, event.id])
                        self._points.at("an event is seen")
        raise AssertionError(f"session {name} comes to no end")

    def _hold(self, callback_context: Context) -> None:
        self.held = callback_context.session

    def _tools(self) -> list[FunctionTool]:
        def does(name: str, effect: Any) -> FunctionTool:
            async def work(tool_context: ToolContext) -> str:
                self._points.at(f"before {name}()")
                text = [tool_context.session.id, name, tool_context.idempotency_key, tool_context.attempt]
                line(self._folder / "done", text)
                self._points.at(f"after {name}()")
                return f"{name} is done"

            return FunctionTool(work, name=name, description=name, effect=effect, require_confirmation=name == "pay")

        return [does(name, effect) for name, effect in TOOLS.items()]

    async def _next(self, name: str) -> dict[str, Any] | None:
        """What the user does: go on with what was cut, answer what is asked, or begin. None: it is finished."""
        session_key = {"app_name": "app", "user_id": "u", "session_id": name}
        session = await self.service.get_session(**session_key)
        if session is None:
            return {"new_message": "go"}
        if remaining_runs := await self.service.unfinished(session):
            return {"invocation_id": remaining_runs[-1].id}
        session = await self.service.get_session(**session_key) or session  # as it is since nobody works on it
        if interrupts := open_interrupts(session.events, APPROVALS):
            return {
                "new_message": types.Content(
                    role="user", parts=[self._answer(name, interrupt) for interrupt in interrupts]
                )
            }
        return None if is_done(session.events) else {"new_message": "go"}

    def _answer(self, name: str, asked: Interrupt) -> types.Part:
        line(self._folder / "asked", [name, asked.call.name, asked.prompt])
        if self._sees:
            happened = any(line[:2] == [name, asked.call.name] for line in lines(self._folder / "done"))
        else:
            happened = "may have taken effect" in (asked.prompt or "")
        return interrupts.answer(asked, ToolConfirmation(confirmed=not happened))


def is_done(events: list[Event]) -> bool:
    return any(event.text == DONE for event in events)


def impatient(seconds: float) -> None:
    """This process waits no longer than that for a file that is locked."""
    sqlite_file.LOCKED_SECONDS = seconds
