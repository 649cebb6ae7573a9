"""What a process of its own does with a file of sessions. Imports little: each such process imports it anew."""

import asyncio
import sys
from multiprocessing.connection import Connection
from pathlib import Path

from adk_nb.errors import StaleSessionError
from adk_nb.events.event import Event
from adk_nb.events.event_actions import EventActions
from adk_nb.sessions.base_session_service import GetSessionConfig
from adk_nb.sessions.journal import this_process
from adk_nb.sessions.sqlite_session_service import SqliteSessionService


async def append(service: SqliteSessionService, name: str, count: int) -> None:
    """`count` events into a session of its own, and as many into one that others write to."""
    session_key = {"app_name": "app", "user_id": "u"}
    own_session = await service.create_session(**session_key, session_id=name)
    for number in range(count):
        await service.append_event(own_session, Event(author=name, message=str(number)))
        event = Event(author=name, message=f"{name}{number}", actions=EventActions(state_delta={"app:last": name}))
        while True:
            head = GetSessionConfig(num_recent_events=0)
            shared = await service.get_session(**session_key, session_id="shared", config=head)
            assert shared
            try:
                await service.append_event(shared, event)
                break
            except StaleSessionError:
                pass


def append_in_a_process(path: Path, name: str, count: int) -> None:
    """`append`, from a process that has no event loop yet."""

    async def run() -> None:
        service = SqliteSessionService(path)
        await append(service, name, count)
        await service.close()

    asyncio.run(run())


def append_until_killed(path: Path, durability: str) -> None:
    """Append to five sessions at once, and print the session and number of each event once it is stored."""

    async def write(service: SqliteSessionService, name: str) -> None:
        session = await service.create_session(app_name="app", user_id="u", session_id=name)
        for number in range(1_000_000):
            state = EventActions(state_delta={"n": number})
            await service.append_event(session, Event(author=name, message=str(number), actions=state))
            sys.stdout.write(f"{name} {number}\n")
            sys.stdout.flush()

    async def run() -> None:
        service = SqliteSessionService(path, durability)  # pyright: ignore[reportArgumentType]
        await asyncio.gather(*(write(service, name) for name in "abcde"))

    asyncio.run(run())


def claim_and_append(path: Path, pipe: Connection) -> None:
    """Take a session, and write to it when told to; says what came of it."""

    async def run() -> None:
        service = SqliteSessionService(path)
        session = await service.create_session(app_name="app", user_id="u", session_id="s")
        await service.claim(session, "run", owner=this_process())
        await service.append_event(session, Event(author="user", message="theirs"))
        pipe.send("claimed")
        pipe.recv()
        try:
            await service.append_event(session, Event(author="user", message="late"))
            pipe.send("stored")
        except StaleSessionError as error:
            pipe.send(type(error).__name__)
        await service.close()

    asyncio.run(run())


if __name__ == "__main__":
    append_until_killed(Path(sys.argv[1]), sys.argv[2])
