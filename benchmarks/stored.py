"""W8: sessions in a SQLite file. One shape for google-adk and adk_nb, and the bare sqlite3 module as the floor."""
# pyright: basic
# The package is imported by name, so nothing of it is known to the type checker.

import asyncio
import json
import os
import sqlite3
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

Figures = dict[str, float]
PAGE = 50
_BUILD = Path(__file__).parent.parent / "build"
WHERE = {"app_name": "bench", "user_id": "u", "session_id": "s"}
WORDS = "words that a user or a model says in a turn of an ordinary conversation, " * 2


async def append(durability: str, peer: str, n: int) -> Figures:
    """One of n events that are appended one after the other to one session, each awaited."""
    async with _stored(peer, durability) as store:
        await (await store.writer(1, 20))()
        write = await store.writer(1, n)
        wall, cpu = time.perf_counter(), time.process_time()
        await write()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        return {"per_s": n / wall, "wall_us": wall / n * 1e6, "cpu_us": cpu / n * 1e6}


async def together(durability: str, peer: str, n: int) -> Figures:
    """One of n events that are appended by 50 sessions side by side."""
    async with _stored(peer, durability) as store:
        write = await store.writer(50, n // 50)
        wall, cpu = time.perf_counter(), time.process_time()
        await write()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        return {"per_s": n / wall, "wall_us": wall / n * 1e6, "cpu_us": cpu / n * 1e6}


async def load(peer: str, n: int) -> Figures:
    """A session of n events: opened; its last page read; all of it read, and each event looked at."""
    async with _stored(peer, "normal") as store:
        await store.fill(n)
        opened = await _timed(store.reopen_and_get)
        page = await _timed(lambda: store.look(PAGE))
        whole = await _timed(lambda: store.look(n), most=3 if n <= 10_000 else 1)
        return {
            "open_ms": opened["wall_ms"],
            "page_ms": page["wall_ms"],
            "page_cpu_us": page["cpu_us"],
            "whole_ms": whole["wall_ms"],
            "whole_cpu_us": whole["cpu_us"],
        }


async def _timed(once: Callable[[], Awaitable[None]], *, most: int = 7) -> Figures:
    wall: list[float] = []
    cpu: list[float] = []
    for _ in range(most):
        earlier_start, spent = time.perf_counter(), time.process_time()
        await once()
        wall.append(time.perf_counter() - earlier_start)
        cpu.append(time.process_time() - spent)
    return {"wall_ms": statistics.median(wall) * 1e3, "cpu_us": statistics.median(cpu) * 1e6}


@asynccontextmanager
async def _stored(peer: str, durability: str) -> AsyncIterator["_Bare | _Service"]:
    with tempfile.TemporaryDirectory(dir=_BUILD) as folder:  # a disk, where /tmp may be memory
        path = os.path.join(folder, "bench.db")
        store = _Bare(path, durability) if peer == "floor" else _Service(peer, path, durability)
        await store.create()
        yield store
        await store.close()


class _Service:
    """A SqliteSessionService of `package`."""

    def __init__(self, peer: str, path: str, durability: str):
        package = "google.adk" if peer == "google-adk" else peer
        self.sessions: Any = import_module(f"{package}.sessions.sqlite_session_service")
        self.event: Any = import_module(f"{package}.events").Event
        self.config: Any = import_module(f"{package}.sessions.base_session_service").GetSessionConfig
        self.types: Any = import_module("google.genai.types" if peer == "google-adk" else f"{package}.types")
        self.options = {} if peer == "google-adk" else {"durability": durability}
        self.path = path
        self.service = self.sessions.SqliteSessionService(path, **self.options)

    async def create(self) -> None:
        self.session = await self.service.create_session(**WHERE)

    def events(self, count: int) -> list[Any]:
        """`count` events as a turn makes them, made before the clock runs."""
        events: list[Any] = []
        for number in range(count):
            role = "model" if number % 2 else "user"
            content = self.types.Content(role=role, parts=[self.types.Part(text=f"{number} {WORDS}")])
            events.append(self.event(author=role, invocation_id=f"e-{number // 2}", content=content))
        return events

    async def writer(self, sessions: int, number: int) -> Callable[[], Awaitable[None]]:
        """What appends `each` events to each of so many new sessions, all side by side."""
        session_key = WHERE | {"session_id": None}
        built = [(await self.service.create_session(**session_key), self.events(number)) for _ in range(sessions)]

        async def write(session: Any, events: list[Any]) -> None:
            for event in events:
                await self.service.append_event(session, event)
            assert len(session.events) == number

        async def write_all() -> None:
            await asyncio.gather(*(write(session, events) for session, events in built))

        return write_all

    async def fill(self, count: int) -> None:
        """`count` events at once, past what is measured."""
        if "durability" in self.options:
            events = self.events(count)
            await asyncio.gather(*(self.service.append_event(self.session, event) for event in events))
            self.session = None  # neither peer holds the session while the other's is read
            return
        rows = [
            (event.id, *WHERE.values(), event.invocation_id, event.timestamp + number, text)
            for number, event in enumerate(self.events(count))
            if (text := event.model_dump_json(exclude_none=True))
        ]
        with sqlite3.connect(self.path) as db:
            columns = "id, app_name, user_id, session_id, invocation_id, timestamp, event_data"
            db.executemany(f"INSERT INTO events ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        db.close()

    async def reopen_and_get(self) -> None:
        """What a process that has just begun does."""
        service = self.sessions.SqliteSessionService(self.path, **self.options)
        session = await service.get_session(**WHERE)
        assert session.events[-1].author
        if hasattr(service, "close"):
            await service.close()

    async def look(self, count: int) -> None:
        session = await self.service.get_session(**WHERE, config=self.config(num_recent_events=count))
        assert all(event.content.parts for event in session.events) and len(session.events) == count

    async def close(self) -> None:
        if hasattr(self.service, "close"):
            await self.service.close()


class _Bare:
    """One row an event, one transaction an append, on one connection and no thread: what the machine allows."""

    def __init__(self, path: str, durability: str):
        self.made = 0
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute(f"PRAGMA synchronous = {durability}")

    async def create(self) -> None:
        self.db.execute("CREATE TABLE events (session INTEGER, seq INTEGER, data TEXT, PRIMARY KEY (session, seq))")

    async def writer(self, sessions: int, number: int) -> Callable[[], Awaitable[None]]:
        first = self.made
        self.made += number

        async def write() -> None:
            for number in range(first, self.made):
                self.db.execute("BEGIN")
                rows = [(session, number, _line(number)) for session in range(sessions)]
                self.db.executemany("INSERT INTO events VALUES (?, ?, ?)", rows)
                self.db.execute("COMMIT")

        return write

    async def fill(self, count: int) -> None:
        self.db.executemany("INSERT INTO events VALUES (0, ?, ?)", ((n, _line(n)) for n in range(count)))

    async def reopen_and_get(self) -> None:
        await self.look(1)

    async def look(self, count: int) -> None:
        rows = self.db.execute("SELECT data FROM events WHERE session = 0 ORDER BY seq DESC LIMIT ?", [count])
        assert all(json.loads(text)["content"] for (text,) in rows)

    async def close(self) -> None:
        self.db.close()


def _line(number: int) -> str:
    return json.dumps({"author": "user", "content": {"parts": [{"text": f"{number} {WORDS}"}]}})
