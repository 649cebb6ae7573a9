"""What the tools of `%%agent --notebook` take: the list of 500 variables, and a look at ten million rows.

.venv/bin/python -m benchmarks.notebook [--rounds 5]

CPU of one call, the median of the rounds, beside what it is held to; and the most memory that Python and NumPy allocate
in one, which tells whether a column of 80 MB was copied. What Polars allocates is not seen.
"""

import argparse
import statistics
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl

from adk_nb.notebook.extensions.notebook_tools.look import look
from adk_nb.notebook.extensions.notebook_tools.values import listed

ROWS = 10_000_000
VARIABLES = 500
COLUMN_MB = ROWS * 8 / 1e6


def variables() -> dict[str, Any]:
    made = ([1, 2], "a text", {"a": 1}, 1.5, pd.DataFrame({"a": [1]}), np.zeros(3))
    return {f"value_{n}": made[n % len(made)] for n in range(VARIABLES)}


def frame() -> pd.DataFrame:
    numbers = np.random.default_rng(1)
    columns = {"id": np.arange(ROWS), "amount": numbers.random(ROWS), "rate": numbers.random(ROWS)}
    kinds = pd.Categorical.from_codes(numbers.integers(0, 3, ROWS), ["x", "y", "z"])
    return pd.DataFrame({**columns, "kind": kinds})


def measured(work: Callable[[], Any], rounds: int) -> tuple[float, float]:
    """CPU milliseconds of a call, and the MB that Python and NumPy allocate in one at most."""
    work()
    seconds = list[float]()
    for _ in range(rounds):
        began = time.process_time()
        work()
        seconds.append(time.process_time() - began)
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return statistics.median(seconds) * 1_000, peak / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    many, large = variables(), frame()
    array = np.random.default_rng(2).random(ROWS)
    polars = pl.DataFrame({"id": np.arange(ROWS), "amount": array, "kind": ["x", "y"] * (ROWS // 2)})
    rows: list[tuple[str, Callable[[], Any], float]] = [
        (f"list_variables, {VARIABLES} variables", lambda: listed(many), 50),
        ("look_at, pandas, 10^7 rows", lambda: look({"x": large}, "x"), 200),
        ("look_at, polars, 10^7 rows", lambda: look({"x": polars}, "x"), 200),
        ("look_at, numpy, 10^7 numbers", lambda: look({"x": array}, "x"), 200),
    ]
    for title, work, target in rows:
        milliseconds, allocated = measured(work, rounds)
        note = "" if milliseconds <= target and allocated < COLUMN_MB / 8 else "   MISSED"
        print(f"{title:38}{milliseconds:8.1f} ms (<= {target:g}){allocated:8.1f} MB at most{note}")


if __name__ == "__main__":
    main()
