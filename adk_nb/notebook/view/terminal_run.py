"""A run in a terminal: answers as they stream, each call with its result, and at the end the rest of the reply."""

import sys
from typing import Any

from IPython.core.getipython import get_ipython

from adk_nb.errors import UserError
from adk_nb.events.event import Event
from adk_nb.notebook.view.event_table import row_text
from adk_nb.notebook.view.plain_text import one_line
from adk_nb.notebook.view.reply_view import ReplyView
from adk_nb.notebook.view.rows import RunRows
from adk_nb.notebook.view.run_view import Clicks, RunView
from adk_nb.notebook.view.view_state import ViewState
from adk_nb.runtime.history import history_of
from adk_nb.sessions.session import Session


def in_a_terminal() -> bool:
    """Whether this is IPython's shell in a terminal."""
    return hasattr(get_ipython(), "mainloop")


class TerminalRun(RunView):
    """Print a run while it goes on."""

    is_live = True

    def __init__(self, agent: str, question: str | None, notice: str | None) -> None:
        super().__init__(agent, question, notice)
        self._cell = _cell_number()
        self._rows = RunRows(live=False)
        self._view = ViewState()
        self._streaming_row = ""
        """Id of the row whose text is printed as it comes; empty: none."""
        self._answer = ""
        """The answer that the cursor stands behind; empty: the cursor is at the beginning of a line."""
        self._printed: set[str] = set()
        self._waiting_lines: list[tuple[str, str]] = []
        """Who and what, to be printed when the answer that streams has ended."""
        self._error = ""
        self._ends_with_exception = self._is_shown = False

    def begin(self, session: Session | None, clicks: Clicks) -> None:
        super().begin(session, clicks)
        self._rows = RunRows(live=False, history=history_of(session) if session else ())

    def event(self, event: Event) -> None:
        super().event(event)
        if self.is_background:  # the prompt for the next cell is there already
            return
        for op in self._rows.feed(event):
            self._view.apply(op)
            if op["op"] == "text":
                self._print_piece(op["id"], op["s"])
            elif op["op"] in ("append", "patch"):
                self._print_row(op["row"]["id"] if op["op"] == "append" else op["id"])
        if not event.partial and not event.is_final_response():
            self._end_line()

    def _print_piece(self, key: str, text: str) -> None:
        row = self._view.rows[key]
        if row["kind"] != "text" or self._streaming_row not in ("", key) or not row["text"].strip():
            return
        if not self._streaming_row:
            self._begin_line()
            self._streaming_row, text = key, row["text"].lstrip()
            sys.stdout.write(f"{row['author']} > ")
        self._answer += text
        sys.stdout.write(text)
        sys.stdout.flush()

    def _print_row(self, key: str) -> None:
        row = self._view.rows[key]
        is_open = row["streaming"] or (row["kind"] == "call" and row["result"] is None)
        if is_open or row["kind"] in ("user", "question") or key in self._printed:  # the reply says what is asked
            return
        self._printed.add(key)
        if key == self._streaming_row:
            self._end_answer()
        elif row["kind"] == "text":
            self._print_line(f"{row['author']} > ", row["text"].strip())
        elif row["kind"] == "error":
            self._error = f"{row['author']}: {row_text(row)}"
        else:
            self._print_line(f"{row['author']}: {row_text(row)}")

    def _print_line(self, line: str, answer: str = "") -> None:
        """Print a line; behind an answer the line stays open, since more of the reply may follow."""
        if self._streaming_row:
            self._waiting_lines.append((line, answer))
            return
        self._begin_line()
        sys.stdout.write(line + (answer or "\n"))
        self._answer = answer

    def _end_answer(self) -> None:
        self._streaming_row, lines, self._waiting_lines = "", self._waiting_lines, []
        for line, answer in lines:
            self._print_line(line, answer)

    def _end_line(self) -> None:
        """Go to the beginning of a line, unless an answer streams."""
        if self._streaming_row:
            return
        if self._answer:
            sys.stdout.write("\n")
        self._answer = ""

    def _begin_line(self) -> None:
        self._end_line()
        if self._error:
            sys.stdout.write(f"{self._error}\n")
        self._error = ""

    def blocks(self) -> None:
        self._end_line()

    def agent_begins(self, name: str, branch: str | None, path: str) -> None:
        self._end_line()

    def waits(self, model: str, error: str, seconds: float) -> None:
        busy = f"{one_line(model, 100)} is busy, {one_line(error, 100)}"
        self._print_line(f"{busy}; the next attempt is in {seconds:.0f} s")

    def failed(self, wrong: BaseException) -> None:
        self._ends_with_exception = isinstance(wrong, UserError)

    def end(self, reply: ReplyView) -> None:
        if self.is_background:
            return
        self._is_shown = True
        self._end_answer()
        if reply.status == "error":
            self._error = ""  # the reply, or the exception, tells it
        if self._ends_with_exception:
            self._end_line()
            return
        whole, answered = str(reply), f"{reply.heading} > {self._answer.strip()}"
        if self._answer and whole.startswith(answered):
            sys.stdout.write(whole.removeprefix(answered) + "\n")
            self._answer = ""
        else:
            self._begin_line()
            sys.stdout.write(f"{whole}\n")

    def shows_the_reply(self) -> bool:
        return self._is_shown and self._cell == _cell_number()


def _cell_number() -> int:
    shell: Any = get_ipython()
    return len(shell.history_manager.input_hist_parsed)
