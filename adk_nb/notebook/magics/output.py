"""The host that a magic runs in, and its outputs: text, tables, JSON, and the reply of a turn."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from IPython.core.getipython import get_ipython
from IPython.display import display  # pyright: ignore[reportUnknownVariableType]

from adk_nb.errors import TurnFailedError
from adk_nb.notebook.cells.notebook import Notebook
from adk_nb.notebook.chat.error_hints import first_clause
from adk_nb.notebook.chat.reply import Reply
from adk_nb.notebook.view.document import Block, Document, Form, Frame, Lines, Table, Text, plain, rich
from adk_nb.notebook.view.plain_text import one_line, with_escapes
from adk_nb.notebook.view.writers import as_text, bundle

_ERROR_LENGTH = 500
"""Characters of the error that a cell fails with; the reply has the full message."""
_ALL_FORMS: tuple[Form, ...] = ("text/plain", "text/markdown", "text/html")


class Host(Protocol):
    """The shell that a magic was typed into, its settings, and the definitions of its notebook."""

    shell: Any
    settings: Any
    """`AdkNb`; traitlets' values are untyped."""

    @property
    def notebook(self) -> Notebook:
        """Definitions and sessions of this notebook."""
        ...

    @property
    def cell_number(self) -> int:
        """The n of `In[n]` of the running cell."""
        ...

    @property
    def cell_sources(self) -> list[str]:
        """Sources of the cells run so far, in order; the first is empty, as no cell has the number 0."""
        ...


@dataclass(frozen=True)
class Finding:
    """A row of `%doctor`."""

    topic: str
    status: str
    advice: str = ""
    """Text to type, or an action; empty: nothing to do."""
    is_problem: bool = False


class Output:
    """Blocks that a cell displays when they are its last expression."""

    def __init__(self, *blocks: Block, forms: Sequence[Form] = _ALL_FORMS) -> None:
        """`forms`: the media types to display, of those that the blocks can be written in."""
        self.document = Document(blocks)
        self._forms = forms

    @property
    def forms(self) -> dict[str, str]:
        """Contents by media type."""
        return {form: content for form, content in bundle(self.document).items() if form in self._forms}

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return self.forms

    def below(self, *lines: str) -> "Output":
        """Return a copy with lines of text under it."""
        return Output(*self.document.blocks, *map(Text, lines), forms=self._forms)

    def __str__(self) -> str:
        return as_text(self.document)

    __repr__ = __str__


def text(*lines: str) -> Output:
    """Return lines of plain text; empty ones are left out."""
    block = Lines(tuple(filter(None, lines)))
    return Output(block, forms=("text/plain", "text/html") if block.has_notes else ("text/plain",))


def as_json(value: Any) -> Output:
    """Return `value` as indented JSON, with escapes for invisible characters."""
    return text(with_escapes(json.dumps(value, indent=2, ensure_ascii=False, default=str)))


def short(value: Any) -> str:
    """Return `value` as JSON on one line."""
    return json.dumps(value, ensure_ascii=False, default=str)


def table(title: str, headers: Sequence[str], rows: Sequence[Sequence[str]], optional: Sequence[str] = ()) -> Output:
    """Return a framed table, cut to the width of the page. `optional`: headers of columns to leave out if empty."""
    columns = [n for n, header in enumerate(headers) if header not in optional or any(row[n] for row in rows)]
    cut = Table([headers[n] for n in columns], [[row[n] for n in columns] for row in rows], page_width())
    return Output(Frame(title, (cut,)))


def whole_table(title: str, headers: Sequence[str], rows: Sequence[Sequence[str]], chips: Sequence[str] = ()) -> Output:
    """Return a framed table that is never cut: on a narrow page the last column moves under the others."""
    whole, width = Output(Frame(title, (Table(headers, rows),), chips)), page_width()
    if width is None or all(len(line) <= width for line in str(whole).splitlines()):
        return whole
    below = [pair for *row, last in rows for pair in (row, ["", f"-> {last}"] if last else None) if pair]
    return Output(plain(Table(headers[:-1], below)), rich(*whole.document.blocks))


def page_width() -> int | None:
    """Return the width of a terminal in characters; None in a kernel, whose outputs are the same on every machine."""
    kinds = [kind.__name__ for kind in type(get_ipython()).__mro__]
    return shutil.get_terminal_size().columns if "TerminalInteractiveShell" in kinds else None


def result_of(output: Any, *, silent: bool, raises: bool) -> Any:
    """Return the result of a cell: the output of its magic, or None if the cell is silent.

    Args:
        output: The output of a magic; of a turn its Reply.
        silent: The cell displays nothing.
        raises: Fail the cell if the turn ended with an error; the reply is displayed nevertheless.

    Raises:
        TurnFailedError: The turn ended with an error, and `raises`; so Run All and CI stop there.
    """
    if raises and isinstance(output, Reply) and output.status == "error":
        message = one_line(output.error or "the run failed", _ERROR_LENGTH)
        if not silent:
            display(output)
            kind, colon, rest = message.partition(": ")
            message = kind + colon + first_clause(rest)  # the reply above has the full message
        raise TurnFailedError(f"the turn of {output.agent!r} failed: {message}")
    return None if silent else output
