"""What spans cost: CPU of a turn without them, with them, and with their content; and the same of google-adk.

.venv/bin/python -m benchmarks.telemetry [--baseline OTHER_CHECKOUT] [--rounds 5]

Each cell is a process of its own and rounds are outermost, as in `run.py`. The exporter takes the spans and does
nothing: what a network costs is another matter. `--baseline` is a checkout without telemetry, beside which `off` is
measured. The last row is wall time: in a turn with a single tool of 20 ms, faster than any model's service answers.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.script import Script
from benchmarks.workloads import PEERS

ROOT = Path(__file__).parents[1]
WORK = {"a turn": Script, "a turn with 10 tools": lambda: Script(tool="add", rounds=10)}
PIECES = 1_000
TURNS = 200


def tracer_provider() -> Any:
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - `off` must not import it
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult  # noqa: PLC0415

    class Nowhere(SpanExporter):
        def export(self, spans: Sequence[Any]) -> SpanExportResult:
            return SpanExportResult.SUCCESS

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(Nowhere()))
    return provider


def begin(peer: str, mode: str) -> None:
    if mode == "off":
        return
    provider = tracer_provider()
    if peer == "google-adk":
        from opentelemetry import trace  # noqa: PLC0415

        os.environ["ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS"] = "true" if mode == "content" else "false"
        trace.set_tracer_provider(provider)
        return
    from adk_nb import telemetry  # noqa: PLC0415 - a baseline has none

    telemetry.instrument(tracer_provider=provider, content=mode == "content")


async def cell(peer: str, mode: str) -> dict[str, float]:
    """CPU microseconds by work."""
    begin(peer, mode)
    figures: dict[str, float] = {}
    for name, script in WORK.items():
        agent = PEERS[peer](script())
        turns = TURNS if "tools" not in name else TURNS // 5
        chats = [await agent.chat() for _ in range(turns)]
        for chat in chats[: turns // 4]:
            await chat.turn("hello there")
        cpu = [await timed(chat) for chat in chats[turns // 4 :]]
        figures[name] = typical(cpu)
    agent = PEERS[peer](Script(chunks=PIECES))
    chats = [await agent.chat() for _ in range(6)]
    await chats[0].turn("go")
    figures["a streamed piece"] = typical([await timed(chat) for chat in chats[1:]]) / PIECES
    agent = PEERS[peer](Script(tool="doze", rounds=1))
    wall = [await wall_time(await agent.chat()) for _ in range(40)]
    figures["a turn of 20 ms, wall"] = typical(wall[10:])
    return figures


async def wall_time(chat: Any) -> float:
    start = time.perf_counter()
    await chat.turn("hello there")
    return (time.perf_counter() - start) * 1e6


def typical(values: list[float]) -> float:
    """The tenth part from below: what the work costs where the machine's other work disturbs it least."""
    return sorted(values)[len(values) // 10]


async def timed(chat: Any) -> float:
    start = time.process_time()
    await chat.turn("hello there")
    return (time.process_time() - start) * 1e6


def run(python: Path, root: Path, peer: str, mode: str) -> dict[str, float]:
    command = [str(python), str(Path(__file__).resolve()), "--cell", peer, mode]
    output = subprocess.run(
        command, cwd=root, env={**os.environ, "PYTHONPATH": str(root)}, capture_output=True, text=True
    )
    if output.returncode:
        sys.exit(f"{peer} {mode}: {output.stderr[-2000:]}")
    return json.loads(output.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cell", nargs=2)
    parser.add_argument("--baseline", type=Path)
    parser.add_argument("--adk", type=Path, default=ROOT / ".venv-adk", help="an environment with google-adk")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    if arguments.cell:
        print(json.dumps(asyncio.run(cell(*arguments.cell))), flush=True)
        os._exit(0)
    ours, adk = ROOT / ".venv/bin/python", arguments.adk / "bin/python"
    cells = [(ours, ROOT, "adk_nb", mode) for mode in ("off", "on", "content")]
    if arguments.baseline:
        cells.insert(0, (ours, arguments.baseline.resolve(), "adk_nb", "off"))
    if adk.exists():
        cells += [(adk, ROOT, "google-adk", mode) for mode in ("off", "on")]
    rounds = [[run(*cell) for cell in cells] for _ in range(arguments.rounds)]
    for index, (_, root, peer, mode) in enumerate(cells):
        first = next(i for i, cell in enumerate(cells) if cell[2] == peer)
        print(f"\n{peer}, {'no telemetry' if root != ROOT else mode}")
        for name in rounds[0][index]:
            value = statistics.median(figures[index][name] for figures in rounds)
            ratio = statistics.median(figures[index][name] / figures[first][name] for figures in rounds)
            print(f"  {name:22}{value:10.1f} us{(ratio - 1) * 100:+10.1f} %")


if __name__ == "__main__":
    main()
