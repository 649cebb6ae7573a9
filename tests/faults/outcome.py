"""What has to be true of a store of sessions after whatever was done to the processes that wrote it."""

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg

from adk_nb.errors import AdkNbError
from adk_nb.runtime import approvals
from adk_nb.runtime.history import open_interrupts
from adk_nb.runtime.interrupts import APPROVALS
from tests.faults.clerk import DONE, TOOLS, lines, open_store


class Counts(Counter[str]):
    """What a campaign found, by its name."""

    def __str__(self) -> str:
        return ", ".join(f"{count} {name}" for name, count in self.items())


FAULTS = (
    "acknowledged events lost",
    "gaps",
    "unmarked repeats",
    "effects that may happen once and happened twice",
    "double results",
    "calls made anew",
    "runs that did not end",
)


def count(folder: Path) -> Counts:
    """What is wrong with the store of `folder`, and with what was done for it: a number for each of FAULTS."""
    found = Counts(dict.fromkeys(FAULTS, 0))
    sessions = asyncio.run(_read(folder))
    seen, done = lines(folder / "seen"), lines(folder / "done")
    stored = {(name, event.id) for name, (session, _) in sessions.items() for event in session.events}
    found["acknowledged events lost"] = len({(name, id_) for name, id_ in seen} - stored)
    for session, left in sessions.values():
        found["runs that did not end"] += len(left) + len(open_interrupts(session.events, APPROVALS))
        found["runs that did not end"] += [event.text for event in session.events].count(DONE) != 1
        said = [one for event in session.events for one in event.get_function_responses() if one.name in TOOLS]
        found["double results"] += _more_than_one(one.id for one in said if one.response not in approvals.PLACEHOLDERS)
        found["calls made anew"] += _more_than_one(
            call.name for event in session.events for call in event.get_function_calls() if call.name in TOOLS
        )
    found["gaps"] = _gaps(folder)
    found["unmarked repeats"] = _more_than_one((key, attempt) for _, _, key, attempt in done)
    found["effects that may happen once and happened twice"] = _more_than_one(
        (name, tool) for name, tool, *_ in done if TOOLS[tool] == "once"
    )
    return found


def check(folder: Path, told: str, *, failed: bool = False) -> Counts:
    """`count`, which has to be none; with what was done, and how much of it was marked as done before.

    Args:
        folder: Of the file.
        told: What was done to it.
        failed: A run ended with an error, and not with its process: the model may ask anew for what was not begun.
    """
    found = count(folder)
    if failed:
        del found["calls made anew"]
    assert not any(found.values()), f"{told}: {found}"
    done = lines(folder / "done")
    found["events acknowledged"] = len(lines(folder / "seen"))
    found["calls made"] = len(done)
    found["marked repeats"] = sum(attempt > 1 for *_, attempt in done)
    return found


def _more_than_one(things: Iterable[Any]) -> int:
    return sum(n - 1 for n in Counter(things).values())


def _gaps(folder: Path) -> int:
    url = folder / "url"
    with closing(psycopg.connect(url.read_text()) if url.exists() else sqlite3.connect(folder / "nb.db")) as db:
        if url.exists():
            numbers = "SELECT session_id, seq FROM events ORDER BY seq"
        else:
            assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            numbers = "SELECT s.id, e.seq FROM events e JOIN sessions s ON s.number = e.session ORDER BY e.seq"
        seqs: dict[str, list[int]] = {}
        for name, seq in db.execute(numbers).fetchall():
            seqs.setdefault(name, []).append(seq)
        heads = dict(db.execute("SELECT id, seq FROM sessions").fetchall())
    return sum(seqs.get(name, []) != list(range(1, head + 1)) for name, head in heads.items())


async def _read(folder: Path) -> dict[str, Any]:
    service = open_store(folder)
    found: dict[str, Any] = {}
    for one in (await service.list_sessions(app_name="app")).sessions:
        session = await service.get_session(app_name="app", user_id="u", session_id=one.id)
        if session is None:
            raise AdkNbError(f"session {one.id} is gone")
        found[one.id] = session, await service.unfinished(session)
    await service.close()
    return found
