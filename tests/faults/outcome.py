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
    counts = Counts(dict.fromkeys(FAULTS, 0))
    sessions = asyncio.run(_read(folder))
    rows, text_lines = lines(folder / "seen"), lines(folder / "done")
    stored = {(name, event.id) for name, (session, _) in sessions.items() for event in session.events}
    counts["acknowledged events lost"] = len({(name, id_) for name, id_ in rows} - stored)
    for session, remaining in sessions.values():
        counts["runs that did not end"] += len(remaining) + len(open_interrupts(session.events, APPROVALS))
        counts["runs that did not end"] += [event.text for event in session.events].count(DONE) != 1
        responses = [
            response
            for event in session.events
            for response in event.get_function_responses()
            if response.name in TOOLS
        ]
        counts["double results"] += _more_than_one(
            response.id for response in responses if response.response not in approvals.PLACEHOLDERS
        )
        counts["calls made anew"] += _more_than_one(
            call.name for event in session.events for call in event.get_function_calls() if call.name in TOOLS
        )
    counts["gaps"] = _gaps(folder)
    counts["unmarked repeats"] = _more_than_one((key, attempt) for _, _, key, attempt in text_lines)
    counts["effects that may happen once and happened twice"] = _more_than_one(
        (name, tool) for name, tool, *_ in text_lines if TOOLS[tool] == "once"
    )
    return counts


def check(folder: Path, message: str, *, failed: bool = False) -> Counts:
    """`count`, which has to be none; with what was done, and how much of it was marked as done before.

    Args:
        folder: Of the file.
        told: What was done to it.
        failed: A run ended with an error, and not with its process: the model may ask anew for what was not begun.
    """
    number = count(folder)
    if failed:
        del number["calls made anew"]
    assert not any(number.values()), f"{message}: {number}"
    rows = lines(folder / "done")
    number["events acknowledged"] = len(lines(folder / "seen"))
    number["calls made"] = len(rows)
    number["marked repeats"] = sum(attempt > 1 for *_, attempt in rows)
    return number


def _more_than_one(items: Iterable[Any]) -> int:
    return sum(n - 1 for n in Counter(items).values())


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
    matches: dict[str, Any] = {}
    for stored_session in (await service.list_sessions(app_name="app")).sessions:
        session = await service.get_session(app_name="app", user_id="u", session_id=stored_session.id)
        if session is None:
            raise AdkNbError(f"session {stored_session.id} is gone")
        matches[stored_session.id] = session, await service.unfinished(session)
    await service.close()
    return matches
