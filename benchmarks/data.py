"""A query over ten million rows through `DataToolset`, beside DuckDB's own time for it in this process.

make bench BENCH=data
make bench BENCH="data --rows 1000000 --rounds 9"
"""

import argparse
import statistics
import time
from collections.abc import Callable

import duckdb
import numpy as np
import pandas as pd

from adk_nb import sync
from adk_nb.agents import LlmAgent
from adk_nb.models import ScriptedLlm, call
from adk_nb.runners import InMemoryRunner
from adk_nb.tools import DataToolset

SQL = "select kind, count(*) as n, sum(price) as total, avg(price) as mean from sales group by kind order by kind"


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    """Print the medians, and the first query after a change, which copies the frame."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    number = np.arange(arguments.rows)
    frame = pd.DataFrame({"kind": number % 1_000, "price": (number * 7_919 % 10_007) / 100.0, "id": number})
    engine = duckdb.connect(config={"threads": "2"})
    engine.register("sales", frame)
    toolset = DataToolset({"sales": frame}, seconds=120)

    def ask() -> None:
        model = ScriptedLlm(call("query", sql=SQL), "done")
        events = sync.run(
            InMemoryRunner(LlmAgent(name="analyst", model=model, tools=[toolset])).run_debug("look", quiet=True)
        )
        [answer] = [response.response or {} for event in events for response in event.get_function_responses()]
        assert answer["row_count"] == 1_000, answer

    def talk() -> None:
        model = ScriptedLlm("done")
        sync.run(InMemoryRunner(LlmAgent(name="analyst", model=model)).run_debug("look", quiet=True))

    first = seconds(ask)
    own, ours, turn = list[float](), list[float](), list[float]()
    for _ in range(arguments.rounds):  # in turn, so that all see the same machine
        own.append(seconds(lambda: engine.execute(SQL).fetchall()))
        ours.append(seconds(ask))
        turn.append(seconds(talk))
    frame.loc[0, "price"] = 1.0
    changed = seconds(ask)
    sync.run(toolset.close())
    alone, through, empty = map(statistics.median, (own, ours, turn))
    print(f"{arguments.rows:,} rows, medians of {arguments.rounds}")
    print(f"DuckDB alone            {alone * 1000:8.1f} ms")
    print(f"a turn with the query   {through * 1000:8.1f} ms   {through / alone:.2f} times; target 1.10")
    print(f"a turn without tools    {empty * 1000:8.1f} ms")
    print(f"the first query         {first * 1000:8.1f} ms")
    print(f"the first after a change{changed * 1000:8.1f} ms   {(changed - through) * 1000:.0f} ms more; target 1,000")


if __name__ == "__main__":
    main()
