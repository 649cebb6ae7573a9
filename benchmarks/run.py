"""Run the workloads for every peer and print the ratios beside the targets.

make bench                      everything
make bench BENCH="w1 w2"        some workloads
make bench BENCH="w2 --rounds 5"
make bench BENCH="serve --requests 500"    chat, data, front_end, notebook, serve, telemetry, turns, wire: own programs
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks import cold

ROOT = Path(__file__).parent.parent
PYTHONS = {
    "floor": ROOT / ".venv/bin/python",
    "google-adk": ROOT / ".venv-adk/bin/python",
    "adk_nb": ROOT / ".venv/bin/python",
}
SIZES = {
    "w2": [10, 1000, 3000],
    "w3": [10, 50],
    "w4": [100],
    "w4s": [100],
    "w5": [1000, 10000],
    "w6": [1000],
    "w7p": [100],
    "w7g": [100],
    "w7l": [100],
    "w7s": [10],
    "w7f": [1000],
    "w7m": [100, 1000, 3000],
    "w8n": [1000],
    "w8f": [500],
    "w8m": [1000],
    "w8l": [10000, 100000],
    "w9": [4000],
    "w10": [2000, 50000],
    "eval": [1000, 10000],
}
NO_FLOOR = ("w7p", "w7g", "w7l", "w7s", "w7f", "w7m", "w10", "eval")
"""A loop over events has no teams, no approvals and no cases."""
TOO_LONG = (("w7m", 3000, "google-adk"),)
"""What takes minutes, and says nothing that smaller sizes do not."""
NO_ADK = (("w8m", 1000), ("w8l", 100000), ("w10", 50000), ("eval", 10000))
"""Where google-adk's sessions in SQLite end with `database is locked`, and where one reading takes ten seconds."""
PROGRAMS = ("chat", "data", "front_end", "notebook", "serve", "telemetry", "turns", "wire")
"""Measured by a program of their own, with arguments of its own."""
KEPT = ROOT / "build/bench/results.jsonl"

Figures = dict[str, float]
Results = dict[tuple[str, int, str], list[Figures | None]]
"""(workload, size, peer) -> one entry a round; None where the peer failed."""


@dataclass(frozen=True)
class Row:
    """A line of the table. A target is a ratio to google-adk (`times`), or a bound on adk_nb's own figure."""

    title: str
    work: str
    n: int
    figure: str
    unit: str
    times: float | None = None
    at_most: float | None = None
    to: int | None = None
    """The bound is on adk_nb's figure divided by its own at this size."""
    beside: str | None = None
    """The workload of google-adk's that this is compared with, where it is another one."""


ROWS = [
    Row("W2 turn, 10 turns before it", "w2", 10, "cpu_us", "CPU us", times=10),
    Row("W2 turn, 1,000 turns before it", "w2", 1000, "cpu_us", "CPU us", times=100),
    Row("W2 turn, 3,000 turns before it", "w2", 3000, "cpu_us", "CPU us", times=200),
    Row("W2 turn at 1,000 / turn at 10", "w2", 1000, "cpu_us", "ratio", at_most=2, to=10),
    Row("W3 tool round, 10 rounds", "w3", 10, "cpu_us", "CPU us", times=10),
    Row("W3 tool round, 50 rounds", "w3", 50, "cpu_us", "CPU us", times=20),
    Row("W3 round of 50 / round of 10", "w3", 50, "cpu_us", "ratio", at_most=1.25, to=10),
    Row("W4 100 async tools of 20 ms", "w4", 100, "wall_ms", "wall ms", at_most=40),
    Row("W4 100 async tools of 20 ms", "w4", 100, "cpu_us", "CPU us", times=4),
    Row("W4 100 blocking tools of 20 ms", "w4s", 100, "wall_ms", "wall ms", times=20),
    Row("W5 piece of a stream of 1,000", "w5", 1000, "cpu_us", "CPU us", times=10),
    Row("W5 piece of a stream of 10,000", "w5", 10000, "cpu_us", "CPU us", times=10),
    Row("W5 piece of 10,000 / piece of 1,000", "w5", 10000, "cpu_us", "ratio", at_most=1.25, to=1000),
    Row("W5 peak memory growth, 10,000 pieces", "w5", 10000, "grown_mb", "MB", at_most=1),
    Row("W6 turn, 1,000 sessions at once", "w6", 1000, "cpu_us", "CPU us", times=15),
    Row("W6 memory of a running session", "w6", 1000, "kb_per_session", "kB", at_most=40),
    Row("W7 agent, 100 at once", "w7p", 100, "cpu_us", "CPU us", times=10),
    Row("W7 agent, 100 at once; its Workflow", "w7p", 100, "cpu_us", "CPU us", times=20, beside="w7g"),
    Row("W7 agent, 100 at once in a graph", "w7g", 100, "cpu_us", "CPU us", times=20),
    Row("W7 pass of a loop of 100", "w7l", 100, "cpu_us", "CPU us", times=10),
    Row("W7 agent, 10 in a row", "w7s", 10, "cpu_us", "CPU us", times=10),
    Row("W7 node of a graph of 1,000", "w7f", 1000, "cpu_us", "CPU us", times=20),
    Row("W7 a graph of 1,000 is built", "w7f", 1000, "built_ms", "CPU ms", at_most=1000),
    Row("W7 memory growth, node of 1,000", "w7f", 1000, "grown_kb", "kB", at_most=20),
    Row("W7 peak memory, node of 100", "w7m", 100, "peak_kb", "kB", at_most=20),
    Row("W7 peak memory, node of 1,000", "w7m", 1000, "peak_kb", "kB", at_most=20),
    Row("W7 peak memory, node of 3,000", "w7m", 3000, "peak_kb", "kB", at_most=20),
    Row("W7 peak, node of 3,000 / of 100", "w7m", 3000, "peak_kb", "ratio", at_most=1.25, to=100),
    Row("W7 memory after the turn, of 3,000", "w7m", 3000, "kept_kb", "kB", at_most=5),
    Row("W7 left in the graph itself, 3,000", "w7m", 3000, "left_kb", "kB", at_most=0.2),
    Row("W8 append, normal", "w8n", 1000, "wall_us", "wall us", times=10),
    Row("W8 append, normal", "w8n", 1000, "cpu_us", "CPU us", times=5),
    Row("W8 append, full", "w8f", 500, "wall_us", "wall us", times=2),
    Row("W8 append, full, 50 sessions at once", "w8m", 1000, "wall_us", "wall us", at_most=1000),
    Row("W8 a session of 10,000 is opened", "w8l", 10000, "open_ms", "wall ms", times=2),
    Row("W8 all of 10,000 are looked at", "w8l", 10000, "whole_ms", "wall ms", times=2),
    Row("W8 last 50 of 10,000", "w8l", 10000, "page_ms", "wall ms", at_most=10),
    Row("W8 a session of 100,000 is opened", "w8l", 100000, "open_ms", "wall ms", at_most=1000),
    Row("W10 answer at 2,000 events", "w10", 2000, "cpu_us", "CPU us", times=10),
    Row("W10 answer at 50,000 / at 2,000", "w10", 50000, "cpu_us", "ratio", at_most=1.5, to=2000),
    Row("EVAL row of 1,000", "eval", 1000, "wall_us", "wall us", times=2),
    Row("EVAL row / the same in pydantic-evals", "eval", 1000, "of_pydantic_evals", "ratio", at_most=1),
    Row("EVAL row of 10,000 / a plain turn", "eval", 10000, "of_turn", "ratio", at_most=1.5),
    Row("EVAL memory growth, 10,000 rows", "eval", 10000, "grown_mb", "MB", at_most=20),
    Row("W9 memory of an event", "w9", 4000, "bytes", "bytes", at_most=3500),
    Row("W9 peak in the next turn / at rest", "w9", 4000, "peak_of_resident", "ratio", at_most=1.2),
]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", metavar="w1 ... eval", help="default: all")
    parser.add_argument("--rounds", type=int, default=3)
    if sys.argv[1:2] and sys.argv[1] in PROGRAMS:
        return subprocess.call([sys.executable, "-m", f"benchmarks.{sys.argv[1]}", *sys.argv[2:]], cwd=ROOT)
    arguments = parser.parse_args()
    chosen = arguments.workloads or ["w1", *SIZES]
    for unknown in set(chosen) - {"w1", *SIZES}:
        parser.error(f"no workload {unknown!r}; there are {', '.join(['w1', *SIZES, *PROGRAMS])}")
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    results = measure(chosen, arguments.rounds)
    print(f"{arguments.rounds} rounds in {time.monotonic() - started:.0f} s, load {os.getloadavg()[0]:.1f}; {KEPT}\n")
    if "w1" in chosen:
        tell_cold(results)
    tell(results)
    return int(any(figures is None for rounds in results.values() for figures in rounds))


def measure(chosen: list[str], rounds: int) -> Results:
    """Peers side by side within a cell and rounds outermost, so that what else the machine does falls on all alike."""
    results: Results = defaultdict(list)
    with KEPT.open("w") as stored_file:
        if "w1" in chosen:
            for name, case in cold.CASES.items():  # once for nothing: the first run compiles the modules
                _cold(name, case)
        for turn in range(rounds):
            for work, n, peer, figures in _cells(chosen):
                results[work, n, peer].append(figures)
                stored_file.write(
                    json.dumps({"round": turn, "work": work, "n": n, "peer": peer, "figures": figures}) + "\n"
                )
    return results


def _cells(chosen: list[str]) -> Iterator[tuple[str, int, str, Figures | None]]:
    if "w1" in chosen:
        for name, case in cold.CASES.items():
            yield "w1", 1, name, _cold(name, case)
    for work, sizes in SIZES.items():
        if work in chosen:
            for n in sizes:
                for peer in PYTHONS:
                    if (peer == "floor" and work in NO_FLOOR) or (peer == "google-adk" and (work, n) in NO_ADK):
                        continue
                    yield work, n, peer, {} if (work, n, peer) in TOO_LONG else _cell(peer, work, n)


def _cold(name: str, case: cold.Cold) -> Figures | None:
    try:
        return cold.run(str(PYTHONS[case.peer]), case.code)
    except RuntimeError as error:
        print(f"w1 {name}: {error}", file=sys.stderr)
        return None


def _cell(peer: str, work: str, n: int) -> Figures | None:
    command = [PYTHONS[peer], "-m", "benchmarks.cell", peer, work, str(n)]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    if output.returncode:
        print(f"{work} {n} {peer}: {(output.stderr.strip().splitlines() or ['failed'])[-1]}", file=sys.stderr)
        return None
    return json.loads(output.stdout.splitlines()[-1])


def median(results: Results, work: str, n: int, peer: str, figure: str) -> float | None:
    values = [figures[figure] for figures in results[work, n, peer] if figures and figure in figures]
    return statistics.median(values) if values else None


def ratio(results: Results, figure: str, above: tuple[str, int, str], below: tuple[str, int, str]) -> float | None:
    """The median over the rounds of the ratios within a round."""
    if not (results[above] and results[below]):
        return None
    pairs = zip(results[above], results[below], strict=True)
    values = [a[figure] / b[figure] for a, b in pairs if a and b and figure in a and b.get(figure)]
    return statistics.median(values) if values else None


def tell(results: Results) -> None:
    rows = [row for row in ROWS if (row.work, row.n, "adk_nb") in results]
    if not rows:
        return
    _line("workload", "unit", "floor", "google-adk", "adk_nb", "adk/adk_nb", "target", "")
    for row in rows:
        ours, foreign = (row.work, row.n, "adk_nb"), (row.beside or row.work, row.n, "google-adk")
        if row.to:
            shares = {p: ratio(results, row.figure, (row.work, row.n, p), (row.work, row.to, p)) for p in PYTHONS}
            times = None
        else:
            shares = {p: median(results, row.work, row.n, p, row.figure) for p in PYTHONS}
            shares["google-adk"] = median(results, *foreign, row.figure)
            times = ratio(results, row.figure, foreign, ours)
        target = f">= {row.times:g}x" if row.times else f"<= {row.at_most:g}"
        met = _met(times, at_least=row.times) if row.times else _met(shares["adk_nb"], at_most=row.at_most)
        _line(row.title, row.unit, *map(_number, shares.values()), _number(times, "x"), target, met)


def tell_cold(results: Results) -> None:
    _line("W1 a fresh process", "", "CPU s", "RSS MB", "", "ratio", "target", "")
    for name, case in cold.CASES.items():
        key, share, target, met = ("w1", 1, name), None, "", ""
        cpu = median(results, *key, "cpu_s")
        if name == "adk_nb":
            share, target = ratio(results, "cpu_s", key, ("w1", 1, "types")), "<= 1.15x"
            met = _met(share, at_most=1.15)
        if name == "google-adk":
            share = ratio(results, "cpu_s", key, ("w1", 1, "types"))
        if case.above and cpu is not None:
            cpu -= median(results, "w1", 1, case.above, "cpu_s") or 0
            target, met = "<= 0.25", _met(cpu, at_most=0.25)
        text = f"{name} (above {case.above})" if case.above else name
        _line(
            f"   {text}",
            "",
            _number(cpu),
            _number(median(results, *key, "rss_mb")),
            "",
            _number(share, "x"),
            target,
            met,
        )
    print()


def _met(value: float | None, *, at_least: float | None = None, at_most: float | None = None) -> str:
    if value is None:
        return "not measured"
    stored = (at_least is None or value >= at_least) and (at_most is None or value <= at_most)
    return "met" if stored else "MISSED"


def _number(value: float | None, unit: str = "") -> str:
    if value is None:
        return "-"
    return (f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}") + unit


def _line(title: str, unit: str, *rest: str) -> None:
    print(f"{title:38} {unit:8}" + "".join(f"{token:>13}" for token in rest))


if __name__ == "__main__":
    sys.exit(main())
