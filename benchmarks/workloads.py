"""The workloads, each timed alike for every peer. A workload gives figures by name: `cpu_us` is process time."""

import asyncio
import gc
import os
import resource
import statistics
import time
import tracemalloc
from collections.abc import Awaitable, Callable
from functools import partial

from benchmarks import answers, evaluations, stored, teams
from benchmarks.adk_shaped import AdkShaped
from benchmarks.floor import Floor
from benchmarks.script import Peer, Script

Figures = dict[str, float]

PEERS: dict[str, Callable[[Script], Peer]] = {
    "floor": Floor,
    "google-adk": partial(AdkShaped, "google.adk"),
    "adk_nb": partial(AdkShaped, "adk_nb", max_iterations=None),  # google-adk has no such limit
}


async def turn(peer: str, n: int) -> Figures:
    """One more turn in a session that holds n turns."""
    chat = await PEERS[peer](Script()).chat(n)
    for _ in range(3):
        await _say(chat.turn, "done.")
    return await _timed(lambda: _say(chat.turn, "done."), most=40)


async def tool_round(peer: str, n: int) -> Figures:
    """One of the n rounds of a turn in which the model calls a tool n times, one call a round."""
    agent = PEERS[peer](Script(tool="add", rounds=n))
    chats = [await agent.chat() for _ in range(9)]
    await _say(chats.pop().turn, "done.")
    return _each(await _timed(lambda: _say(chats.pop().turn, "done."), most=8), n)


async def parallel_async(peer: str, n: int) -> Figures:
    """A turn with n calls at once of a tool that awaits 20 ms."""
    return await _parallel(peer, n, "doze")


async def parallel_sync(peer: str, n: int) -> Figures:
    """A turn with n calls at once of a tool that blocks its thread for 20 ms."""
    return await _parallel(peer, n, "block")


async def _parallel(peer: str, n: int, tool: str) -> Figures:
    agent = PEERS[peer](Script(tool=tool, parallel=n))
    chats = [await agent.chat() for _ in range(6)]
    await _say(chats.pop().turn, "done.")
    return await _timed(lambda: _say(chats.pop().turn, "done."), most=5)


async def chunk(peer: str, n: int) -> Figures:
    """One of the n pieces of a streamed answer; and by how much the peak memory grew over the answer."""
    warm = await PEERS[peer](Script(chunks=20)).chat()
    await warm.turn("go")
    agent, text = PEERS[peer](Script(chunks=n)), "word " * n
    chats = [await agent.chat() for _ in range(4)]
    earlier_peak_bytes = _peak_bytes()
    assert await chats.pop().turn("go") == (n, text)
    grown = _peak_bytes() - earlier_peak_bytes
    figures = _each(await _timed(lambda: _say(chats.pop().turn, text, pieces=n), most=3), n)
    return figures | {"grown_mb": grown / 1e6}


async def sessions(peer: str, n: int) -> Figures:
    """n sessions side by side, one turn with one tool call in each."""
    agent = PEERS[peer](Script(tool="add", parallel=1))
    await _say((await agent.chat()).turn, "done.")
    chats = [await agent.chat() for _ in range(n)]
    gc.collect()
    earlier_resident_bytes, cpu = _resident_bytes(), time.process_time()
    await asyncio.gather(*(_say(chat.turn, "done.") for chat in chats))
    cpu = time.process_time() - cpu
    return {"cpu_us": cpu / n * 1e6, "kb_per_session": (_peak_bytes() - earlier_resident_bytes) / n / 1e3}


async def answer(peer: str, n: int) -> Figures:
    """The answer to an approval in a session of n events."""
    approvals = await answers.waiting({"google-adk": "google.adk"}.get(peer, peer), n)
    first, *other_approvals = approvals  # all are kept to the end: to free a long session takes longer than an answer
    await first()
    remaining_other_approvals = iter(other_approvals)
    return await _timed(lambda: next(remaining_other_approvals)(), most=len(other_approvals))


async def memory(peer: str, n: int) -> Figures:
    """Bytes that each of n events takes, and the peak during the next turn, per event."""
    agent = PEERS[peer](Script())
    await _say((await agent.chat()).turn, "done.")
    gc.collect()
    earlier_resident_bytes = _resident_bytes()
    chat = await agent.chat(n // 2)
    gc.collect()
    resident = (_resident_bytes() - earlier_resident_bytes) / n
    await _say(chat.turn, "done.")
    return {"bytes": resident, "peak_of_resident": (_peak_bytes() - earlier_resident_bytes) / n / resident}


async def team(kind: str, peer: str, n: int) -> Figures:
    """One agent, or node, of n in a turn; and how long they took to make, and how far the memory grew meanwhile."""
    await teams.built(peer, kind, 10).turn()
    earlier_peak_bytes = _peak_bytes()
    built = teams.built(peer, kind, n)
    start = time.process_time()
    await built.turn()
    first = time.process_time() - start
    grown = _peak_bytes() - earlier_peak_bytes
    figures = _each(await _timed(built.turn, most=9), n) if first < 5 else {"cpu_us": first / n * 1e6}
    return figures | {"built_ms": built.built * 1e3, "grown_kb": grown / n / 1e3}


async def graph_memory(peer: str, n: int) -> Figures:
    """kB for each of n nodes: the peak of a turn, what is there after it, and what the graph itself keeps of it."""
    await teams.built(peer, "functions", 10).turn()
    built = teams.built(peer, "functions", n)
    tracemalloc.start()
    previous, _ = tracemalloc.get_traced_memory()
    session = await built.turn()
    _, peak = tracemalloc.get_traced_memory()
    gc.collect()
    stored, _ = tracemalloc.get_traced_memory()
    await built.forget(session)
    gc.collect()
    remaining, _ = tracemalloc.get_traced_memory()
    figures = {"peak_kb": peak, "kept_kb": stored, "left_kb": remaining}
    return {name: (figure - previous) / n / 1e3 for name, figure in figures.items()}


WORKLOADS: dict[str, Callable[[str, int], Awaitable[Figures]]] = {
    "w2": turn,
    "w3": tool_round,
    "w4": parallel_async,
    "w4s": parallel_sync,
    "w5": chunk,
    "w6": sessions,
    "w7p": partial(team, "parallel"),
    "w7l": partial(team, "loop"),
    "w7s": partial(team, "sequence"),
    "w7g": partial(team, "graph"),
    "w7f": partial(team, "functions"),
    "w7m": graph_memory,
    "w8n": partial(stored.append, "normal"),
    "w8f": partial(stored.append, "full"),
    "w8m": partial(stored.together, "full"),
    "w8l": stored.load,
    "w9": memory,
    "w10": answer,
    "eval": evaluations.evaluation,
}


async def _say(say: Callable[[str], Awaitable[tuple[int, str]]], text: str, pieces: int = 0) -> None:
    """One turn, which must end in the words the script says: a peer that does less is not faster."""
    events = await say("hello there")
    assert events == (pieces, text), events


async def _timed(once: Callable[[], Awaitable[object]], *, most: int, seconds: float = 2.0) -> Figures:
    """Medians over up to `most` calls, at least two, ending early after `seconds`."""
    gc.collect()
    wall: list[float] = []
    cpu: list[float] = []
    end = time.perf_counter() + seconds
    while len(wall) < most and (len(wall) < 2 or time.perf_counter() < end):
        wall_start, cpu_start = time.perf_counter(), time.process_time()
        await once()
        cpu.append(time.process_time() - cpu_start)
        wall.append(time.perf_counter() - wall_start)
    return {"cpu_us": statistics.median(cpu) * 1e6, "wall_ms": statistics.median(wall) * 1e3}


def _each(figures: Figures, n: int) -> Figures:
    return {name: value / n for name, value in figures.items()}


def _resident_bytes() -> int:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
