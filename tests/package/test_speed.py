"""What a turn, a tool round and a streamed piece cost, in figures that the load of the machine does not move."""

import asyncio
import gc
import tracemalloc

import pytest

from benchmarks.calls import calls
from benchmarks.script import Script
from benchmarks.workloads import PEERS


def test_a_turn_costs_the_same_after_10_turns_and_after_1000():
    early, late = calls("adk_nb", "w2", 10), calls("adk_nb", "w2", 1000)

    assert max(early, late) <= 700
    assert late == pytest.approx(early, rel=0.10)


def test_a_tool_round_costs_the_same_early_and_late_in_a_turn():
    each = {rounds: calls("adk_nb", "w3", rounds) for rounds in (10, 50, 90)}
    turn = {rounds: rounds * cost for rounds, cost in each.items()}
    early, late = (turn[50] - turn[10]) / 40, (turn[90] - turn[50]) / 40  # without what a turn costs by itself

    assert max(each.values()) <= 700
    assert late == pytest.approx(early, rel=0.02)


def test_a_streamed_piece_costs_few_calls():
    assert calls("adk_nb", "w5", 1000) <= 80


def test_a_streamed_piece_leaves_nothing_behind():
    async def stream(pieces: int) -> int:
        chat = await PEERS["adk_nb"](Script(chunks=pieces)).chat()
        gc.collect()
        tracemalloc.start()
        try:
            assert await chat.turn("go") == (pieces, "word " * pieces)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    with asyncio.Runner() as runner:
        runner.run(stream(10))
        short, long = runner.run(stream(100)), runner.run(stream(5_000))

    # The answer itself is 25 kB, and is held a few times over; 4,900 retained pieces would be megabytes.
    assert long - short < 250_000
