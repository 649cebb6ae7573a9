"""What a magic hands back, which shows itself at the end of a cell: text, tables, JSON, and the reply of a turn."""

import json
import shutil
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from IPython.core.getipython import get_ipython
from IPython.display import display  # pyright: ignore[reportUnknownVariableType]

from adk_nb.errors import TurnFailedError
from adk_nb.notebook.error_hints import first_clause
from adk_nb.notebook.place import Note
from adk_nb.notebook.reply import Reply
from adk_nb.notebook.view import render, writers
from adk_nb.notebook.view.document import Block
from adk_nb.notebook.view.plain_text import one_line

_AS_TEXT = (
    ' style="font-family: var(--jp-code-font-family, monospace); font-size: var(--jp-code-font-size, 13px); '
    'line-height: var(--jp-code-line-height, 1.3); padding-left: 6px; white-space: pre-wrap"'
)
"""As a page shows plain text."""
_MARK = ' style="border-left: 3px solid #d29922; padding-left: 0.5em"'
_ERROR_LENGTH = 500
"""Characters of an error that its cell fails with; the reply has all of them."""


class Output:
    """Something to look at: a mime type -> text, `text/plain` always among them."""

    def __init__(self, bundle: Mapping[str, str]) -> None:
        self._bundle = dict(bundle)

    @property
    def forms(self) -> dict[str, str]:
        """A mime type -> one form."""
        return self._bundle

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return self._bundle

    def below(self, *lines: str) -> "Output":
        """The same, with lines of text of this package's own under it."""
        ends = {"text/plain": "\n{}", "text/markdown": "\n\n{}", "text/html": "<p>{}</p>"}
        safe = {kind: [escape(line) for line in lines] if kind == "text/html" else lines for kind in ends}
        more = {kind: "".join(map(end.format, safe[kind])) for kind, end in ends.items()}
        return Output({kind: form + more.get(kind, "") for kind, form in self._bundle.items()})

    def __str__(self) -> str:
        return self._bundle["text/plain"]

    __repr__ = __str__


def text(*lines: str) -> Output:
    """Lines of plain text; empty ones are left out."""
    lines = tuple(filter(None, lines))
    plain = {"text/plain": "\n".join(lines)}
    if not any(isinstance(line, Note) for line in lines):
        return Output(plain)
    rows = "".join(f"<div{_MARK * isinstance(line, Note)}>{escape(line)}</div>" for line in lines)
    return Output({**plain, "text/html": f"<div{_AS_TEXT}>{rows}</div>"})


def of_blocks(blocks: Sequence[Block]) -> Output:
    """Blocks as text and html."""
    return Output({"text/plain": writers.text.write(blocks), "text/html": writers.html.write(blocks)})


def as_json(value: Any) -> Output:
    """`value` as JSON text."""
    return text(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def short(value: Any) -> str:
    """`value` as JSON on one line."""
    return json.dumps(value, ensure_ascii=False, default=str)


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], optional: Sequence[str] = ()) -> Output:
    """Rows under their headers, as wide as there is room. `optional`: columns left out if nothing is in them."""
    kept = [at for at, header in enumerate(headers) if header not in optional or any(row[at] for row in rows)]
    rows = [[row[at] for at in kept] for row in rows]
    return Output(render.table([headers[at] for at in kept], rows, width=page_width()))


def whole_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> Output:
    """The same, of which nothing is cut: where there is no room, the last column stands below the one before it."""
    forms, width = render.table(headers, rows), page_width()
    if width is not None and any(len(line) > width for line in forms["text/plain"].splitlines()):
        below = [pair for *row, last in rows for pair in (row, ["", f"-> {last}"] if last else None) if pair]
        forms["text/plain"] = render.table(headers[:-1], below)["text/plain"]
    return Output(forms)


def page_width() -> int | None:
    """Characters of a terminal's line; None in a kernel: what it saves is the same on every machine."""
    kinds = [kind.__name__ for kind in type(get_ipython()).__mro__]
    return shutil.get_terminal_size().columns if "TerminalInteractiveShell" in kinds else None


def result_of(output: Any, *, silent: bool, raises: bool) -> Any:
    """The result of a cell.

    Args:
        output: What a magic handed back; a turn is a Reply.
        silent: The cell shows nothing.
        raises: A turn that ended with an error fails the cell, which shows it all the same.

    Raises:
        TurnFailedError: It did; so Run All and CI stop there.
    """
    if raises and isinstance(output, Reply) and output.status == "error":
        if not silent:
            display(output)
        why = one_line(output.error or "the run failed", _ERROR_LENGTH)
        if not silent:  # all of it stands above
            kind, colon, message = why.partition(": ")
            why = kind + colon + first_clause(message)
        raise TurnFailedError(f"the turn of {output.agent!r} failed: {why}")
    return None if silent else output
