"""Calls per turn, tool round, piece and agent of a team, by cProfile: figures that do not move with the machine's load.

python -m benchmarks.calls [adk_nb] [--top 20]
"""

import argparse
import asyncio
import cProfile
import gc
import logging
from collections.abc import Awaitable, Callable
from types import CodeType

from benchmarks import teams
from benchmarks.script import Script
from benchmarks.workloads import PEERS

CASES = [("w2", 10), ("w2", 1000), ("w3", 10), ("w3", 50), ("w5", 1000)]
TEAMS = {
    "w7p": ("parallel", 100),
    "w7g": ("graph", 100),
    "w7l": ("loop", 100),
    "w7s": ("sequence", 10),
    "w7f": ("functions", 1000),
}
CASES += [(work, n) for work, (_, n) in TEAMS.items()]


def calls(peer: str, work: str, n: int) -> float:
    """Calls, of Python and of C functions, per turn at n turns (w2), round (w3), piece (w5), agent (w7) of n."""
    with asyncio.Runner() as runner:
        profile, operations = runner.run(_profile(peer, work, n))
    return _total(profile) / operations


def _total(profile: cProfile.Profile) -> int:
    return sum(entry.callcount for entry in profile.getstats())


async def _profile(peer: str, work: str, n: int) -> tuple[cProfile.Profile, int]:
    if work in TEAMS:
        team = teams.built(peer, TEAMS[work][0], n)
        await team.turn()
        return await _profiled(team.turn, 1), n
    script = {"w2": Script(), "w3": Script(tool="add", rounds=n), "w5": Script(chunks=n)}[work]
    agent, turns = PEERS[peer](script), 10 if work == "w2" else 1
    warm, chat = await agent.chat(), await agent.chat(n if work == "w2" else 0)
    for item in (warm, chat) if work == "w2" else (warm,):
        await item.turn("hello there")
    profile = await _profiled(lambda: chat.turn("hello there"), turns)
    return profile, turns if work == "w2" else n


async def _profiled(turn: Callable[[], Awaitable[object]], turns: int) -> cProfile.Profile:
    profile = cProfile.Profile()
    gc.collect()
    gc.disable()  # a collection would run finalizers, which count as calls
    try:
        profile.enable()
        for _ in range(turns):
            await turn()
    finally:
        profile.disable()
        gc.enable()
    return profile


def main() -> None:
    logging.disable(logging.WARNING)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", nargs="?", default="adk_nb", choices=PEERS)
    parser.add_argument("--top", type=int, default=0, help="and so many of the functions called most")
    arguments = parser.parse_args()
    for work, n in CASES:
        with asyncio.Runner() as runner:
            profile, operations = runner.run(_profile(arguments.peer, work, n))
        print(f"{arguments.peer:12}{work:4}{n:6}{_total(profile) / operations:12,.0f} calls", flush=True)
        for entry in sorted(profile.getstats(), key=lambda entry: -entry.callcount)[: arguments.top]:
            print(f"{entry.callcount / operations:34.1f}  {_name(entry.code)}")


def _name(code: CodeType | str) -> str:
    """A C function is told by its name alone."""
    if isinstance(code, str):
        return code
    return f"{'/'.join(code.co_filename.split('/')[-2:])}:{code.co_firstlineno} {code.co_qualname}"


if __name__ == "__main__":
    main()
