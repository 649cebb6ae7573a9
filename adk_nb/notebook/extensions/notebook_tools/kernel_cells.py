"""Cells where no page answers: read from the kernel's history; a new one, and a change, are shown to the user."""

import difflib
import re
from collections.abc import Mapping
from typing import Any, cast

from IPython.core.getipython import get_ipython
from IPython.display import display  # pyright: ignore[reportUnknownVariableType]

from adk_nb.errors import InputError
from adk_nb.notebook.extensions.notebook_tools.values import MOST_ROWS, Json, cut, fitted, plain
from adk_nb.notebook.magics.output import Output
from adk_nb.notebook.view.document import Code, Span, Text
from adk_nb.redaction import hidden

_SOURCE = 1_500
"""Characters of the source of a cell."""
_OUTPUT = 500
"""Characters of its output."""
NUMBERS = re.compile(r"\s*\d+(?:\s*-\s*\d+)?(?:\s*,\s*\d+(?:\s*-\s*\d+)?)*\s*")
"""Numbers of cells, as `numbers_in` takes them."""


class KernelCells:
    """The cells that this kernel has run."""

    async def read(self, wanted: str) -> Json:
        """Cells by number, as `3` or `2-5, 8`, or those that have all the words; empty: the newest.

        A cell that was run again is listed as it ran last.
        """
        sources = _sources()
        if NUMBERS.fullmatch(wanted):
            numbers = [number for number in numbers_in(wanted) if number in sources]
        else:
            words = wanted.lower().split()
            # What is hidden is not found either.
            texts = {number: hidden(source).lower() for number, source in sources.items()}
            numbers = [number for number, text in texts.items() if all(word in text for word in words)]
        if not numbers:
            last = max(sources, default=0)
            return {"cells": [], "note": f"none of the cells that ran has that; the last one is {last}"}
        chosen = numbers[-MOST_ROWS:]
        cells = [  # the newest first: what is too much is cut at the end
            {"number": number, "source": cut(sources[number], _SOURCE), **_outcome(number)}
            for number in reversed(chosen)
        ]
        more = {"left_out": len(numbers) - len(chosen)} if len(numbers) > len(chosen) else {}
        return fitted({"cells": cells, **more, "note": "as this kernel ran them; the page may have other ones"})

    async def insert(self, source: str) -> Json:
        """Show a new cell in the output, to be copied."""
        display(Output(Text("A cell to copy:"), Code(Span(source, exact=True))))
        return {"shown": "the user sees the cell and may copy it; no page of this notebook takes new cells"}

    async def propose(self, number: int, source: str) -> Json:
        """Show what another text for a cell would change.

        Raises:
            InputError: There is no such cell.
        """
        sources = _sources()
        if number not in sources:
            raise InputError(f"no cell with the number {number} has run; the last one is {max(sources, default=0)}")
        lines = difflib.unified_diff(sources[number].splitlines(), source.splitlines(), lineterm="", n=3)
        difference = "\n".join([*lines][2:])
        if not difference:
            return {"unchanged": f"cell {number} has that text already"}
        display(Output(Text(f"A change of cell {number}:"), Code(Span(difference, exact=True))))
        return {"shown": "the user sees the difference; no page of this notebook takes changes, so nothing is changed"}


def numbers_in(text: str) -> list[int]:
    """`2-4, 8` as numbers, in order; of each range at most a thousand."""
    numbers: dict[int, None] = {}
    for part in text.split(","):
        first, _, last = part.partition("-")
        start = int(first)
        numbers |= dict.fromkeys(range(start, min(int(last or start), start + 999) + 1))
    return [*numbers]


def _sources() -> dict[int, str]:
    """The cells of this kernel by number; without the one that runs now."""
    shell: Any = get_ipython()
    sources: list[str] = list(shell.history_manager.input_hist_raw) if shell else []
    return {number: source for number, source in enumerate(sources) if number and source.strip()}


def _outcome(number: int) -> Json:
    shell: Any = get_ipython()
    outcome: Json = {}
    values = cast(Mapping[int, Any], shell.user_ns.get("Out") or {})
    if number in values:
        outcome["result"] = plain(values[number], most=_OUTPUT)
    outputs = getattr(shell.history_manager, "outputs", {}).get(number, ())
    bundles = [one.bundle for one in outputs if one.output_type != "execute_result"]
    texts = [text for bundle in bundles if (text := bundle.get("stream") or bundle.get("text/plain"))]
    if texts:
        outcome["output"] = cut("".join(map(_joined, texts)), _OUTPUT)
    failed = getattr(shell.history_manager, "exceptions", {}).get(number)
    if failed:
        outcome["error"] = cut(f"{failed.get('ename')}: {failed.get('evalue')}", _OUTPUT)
    return outcome


def _joined(text: Any) -> str:
    return "".join(map(str, cast(list[Any], text))) if isinstance(text, list) else str(text)
