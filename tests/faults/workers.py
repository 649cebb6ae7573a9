"""Processes that work at a desk until they are killed. A server makes them, which has imported what they need."""

import asyncio
import itertools
import multiprocessing
import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from adk_nb.errors import AlreadyExistsError, SessionBusyError, StaleSessionError
from adk_nb.events.event import Event
from adk_nb.runtime import session_lease
from adk_nb.sessions.base_session_service import GetSessionConfig
from adk_nb.sessions.database_session_service import DatabaseSessionService
from adk_nb.sessions.sql import journal
from adk_nb.sessions.sqlite_session_service import SqliteSessionService
from tests.faults.clerk import Desk, Points, line


def forkserver() -> Any:
    """Makes processes, each in some milliseconds."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["pytest", "tests.faults.clerk_ready"])
    return context


def finish_one(folder: Path, fatal: int) -> None:
    """Do what is left of one run; at the point of that number, which is noted, the process dies."""

    def die() -> None:
        line(folder / "point", points.where)
        os.kill(os.getpid(), signal.SIGKILL)

    async def run() -> None:
        desk = Desk(folder, points)
        await desk.finish("s")
        await desk.service.close()

    points = Points(fatal, die)
    points.in_the_store(kills=True)
    asyncio.run(run())


class Slow(Points):
    """The tools take their time, so that they are often cut."""

    def at(self, name: str) -> None:
        if name.endswith("()"):
            time.sleep(0.004)  # a tool that blocks is what the killer has to meet


def finish_all(folder: Path, lease: float, sees: bool) -> None:
    """Do one run after the other, in sessions 0, 1, ..., beside others that do the same, and have to be waited for.

    It ends when `folder/enough` is there, and what was begun by then is done. The process is ready once it has made
    `folder/<its id>`.

    Args:
        folder: Of the file.
        lease: Seconds that a session is held without renewing.
        sees: As in `Desk`.
    """
    journal.LEASE_SECONDS = session_lease.LEASE_SECONDS = lease

    async def run() -> None:
        desk = Desk(folder, Slow(), sees=sees)
        await desk.service.flush()
        (folder / str(os.getpid())).touch()
        number = next(n for n in itertools.count() if not (folder / f"ended-{n}").exists())
        while (folder / f"begun-{number}").exists() or not (folder / "enough").exists():
            (folder / f"begun-{number}").touch()
            try:
                await desk.finish(str(number))
            except (SessionBusyError, StaleSessionError, AlreadyExistsError):
                await asyncio.sleep(0.005)  # the other has it, or has taken it over
                continue
            (folder / f"ended-{number}").touch()
            number += 1
        await desk.service.close()

    asyncio.run(run())


def append_many(store: Path | str, name: str, count: int, shared: int) -> None:
    """Append to a session of one's own, and `shared` events among them to one that all write to.

    Args:
        store: A file, or the URL of a database.
        name: Of the session, and of what is written.
        count: Of all events.
        shared: Of those that go where the others write too.
    """

    async def run() -> None:
        service = DatabaseSessionService(store) if isinstance(store, str) else SqliteSessionService(store)
        session_key = {"app_name": "app", "user_id": "u"}
        own_session = await service.create_session(**session_key, session_id=name)
        with suppress(AlreadyExistsError):
            await service.create_session(**session_key, session_id="shared")
        for number in range(count - shared):
            await service.append_event(own_session, Event(author=name, message=str(number)))
            if number % ((count - shared) // shared) == 0:
                await append_shared(service, Event(author=name, message=name))
        await service.close()

    async def append_shared(service: Any, event: Event) -> None:
        while True:
            session = await service.get_session(
                app_name="app", user_id="u", session_id="shared", config=GetSessionConfig(num_recent_events=0)
            )
            with suppress(StaleSessionError):
                await service.append_event(session, event)
                return

    asyncio.run(run())
