"""The cell that began a run, and its output with a live view: the view on the page, text in the file."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Literal, cast
from weakref import WeakValueDictionary

from IPython.core.getipython import get_ipython
from IPython.display import display  # pyright: ignore[reportUnknownVariableType]

from adk_nb.notebook.view.document import Text, document
from adk_nb.notebook.view.interrupt_text import Decision, Verdict
from adk_nb.notebook.view.reply_view import Notices, ReplyView, decision_blocks
from adk_nb.notebook.view.widget import STUB, views_stay, with_view
from adk_nb.notebook.view.writers import bundle

_header_of_context: ContextVar[Any] = ContextVar("header_of_context", default=None)

_on_another_page: WeakValueDictionary[str, Any] = WeakValueDictionary()
"""Id of the message that ran a cell -> its last view on a page that does not get its outputs, as after a reload."""


class OriginCell:
    """The cell that runs now, or in whose context this code runs, as after a click."""

    def __init__(self) -> None:
        self._publisher: Any = getattr(get_ipython(), "display_pub", None)
        # The context first: after a click, the publisher has the header of the click's message.
        self._header: dict[str, Any] = (
            _header_of_context.get() or getattr(self._publisher, "parent_header", None) or dict[str, Any]()
        )
        self._message = str(self._header.get("msg_id", ""))
        self.page = str(self._header.get("session", ""))
        """The page that ran it, by the session id in its messages; empty if unknown."""

    @property
    def is_run_now(self) -> bool:
        """True if this thread runs the cell now."""
        now = cast(dict[str, Any], getattr(self._publisher, "parent_header", None) or {})
        return now.get("msg_id", "") == self._message

    @property
    def view_on_another_page(self) -> Any:
        """The cell's last view on a page that does not get its outputs. None: there is none."""
        return _on_another_page.get(self._message)

    @view_on_another_page.setter
    def view_on_another_page(self, view: Any) -> None:
        _on_another_page[self._message] = view

    def adopt_context(self) -> None:
        """Send later outputs of this context, as after a click, to the cell."""
        _header_of_context.set(self._header)

    @contextmanager
    def displays_here(self) -> Generator[None]:
        """Within this, send all displays of this thread to the cell.

        Without it, ipykernel 6 sends them to the cell of the last message, such as the click that resumed the run, and
        ipykernel 7 to the cell of the context. Source: `ZMQDisplayPublisher.publish`; its hooks are thread-local.
        """
        if not self._header or not hasattr(self._publisher, "register_hook"):
            yield
            return

        def to_the_cell(message: dict[str, Any]) -> dict[str, Any]:
            return {**message, "parent_header": self._header}

        self._publisher.register_hook(to_the_cell)
        try:
            yield
        finally:
            self._publisher.unregister_hook(to_the_cell)


class CellOutput:
    """The output of a cell for one turn: a live view while the turn runs, then its reply."""

    def __init__(self, model_id: str, own_cell: OriginCell) -> None:
        self._model_id = model_id
        self._own_cell = own_cell
        self._output: Any = None
        """The display handle while the view has the output."""
        self._text_output: Any = None
        """A second output with the open interrupts as text, for front ends that save views without their text."""
        self._turn: ReplyView | None = None
        """The turn, as far as this view has shown it."""
        self.turn: ReplyView | None = None
        """The turn while it is paused here."""
        self.file_text: dict[str, str] = {}
        """The text to save before the first pause, by media type."""
        self.note = ""
        """A line for the file below what was answered."""
        self.closed_reason = ""
        """The reason why nothing is open any more."""
        self._decisions: Sequence[Decision] = ()
        """Answers that were given in other cells."""
        self._pause_forms: dict[str, str] | None = None
        """The saved forms of the turn at its pause. None: a click has answered an interrupt since."""
        self.displayed: tuple[Any, Any] = STUB, {}
        """Data and metadata of the output, as last displayed."""

    @property
    def is_open(self) -> bool:
        """True while the view has the output."""
        return self._output is not None

    @property
    def shows_reply(self) -> bool:
        """True if the turn is shown here and this cell runs now, so that its result is not shown twice."""
        return self._turn is not None and self._own_cell.is_run_now

    def open(self) -> None:
        """Display the view."""
        self.displayed = with_view((views_stay() and self.file_text) or STUB, self._model_id, "run")
        data, metadata = self.displayed
        with self._own_cell.displays_here():
            # By id: a display is updated in the cell that made it, whichever cell runs then.
            self._output = display(data, metadata=metadata, raw=True, display_id=True)
        if self.file_text and not views_stay():
            self._show_beside(self.file_text)

    def add_reply(self, reply: ReplyView) -> ReplyView:
        """Append the latest part of the turn; returns the whole turn."""
        if not self._output:
            return reply
        self._turn = reply.appended_to(self._turn) if self._turn else reply
        return self._turn

    def show(self, whole: ReplyView, phase: Literal["run", "page"]) -> None:
        """Show a turn that is paused (phase `run`) or over (phase `page`)."""
        if not self._output:
            return
        self.turn = whole if phase == "run" else None
        self._pause_forms = whole.saved_forms() if self.turn and views_stay() else None
        if self.turn:
            self._show_pause(whole)
            return
        stays = views_stay() and whole.status != "pending"  # a card of it is in another view
        self._update(with_view(whole.saved_forms(), self._model_id if stays else "", phase))
        self._show_beside(STUB)
        self._output = None

    def _show_pause(self, turn: ReplyView) -> None:
        text = self._pause_forms or turn.saved_forms()
        if views_stay():
            self._update(with_view(text, self._model_id, "run"))
        else:
            self._show_beside(text)

    def _show_beside(self, text: dict[str, str]) -> None:
        if self._text_output:
            self._text_output.update(text, raw=True)
        elif text is not STUB:
            with self._own_cell.displays_here():
                self._text_output = display(text, raw=True, display_id=True)

    def answered(self, verdicts: Mapping[str, Verdict], decisions: Sequence[Decision]) -> None:
        """Take in answers from another cell, by interrupt id. `decisions`: all so far."""
        self._decisions = decisions
        if any(verdict.is_click for verdict in verdicts.values()):
            self._pause_forms = None
        if not self.turn:
            return
        self._turn = self.turn = self.turn.answered_elsewhere(verdicts)
        if self.turn.interrupts:
            self._show_pause(self.turn)

    def close(self) -> None:
        """Replace the view by text: a page without a kernel shows a saved widget as an error."""
        if self._output:
            self._update(self._final_text())
            self._show_beside(STUB)
            self._output = None

    def _final_text(self) -> Any:
        turn = self.turn
        if turn and self._pause_forms and turn.elsewhere:
            # nbval compares a cell before it runs the cell with the answer: the file keeps the text of the pause
            return with_view(self._pause_forms, self._model_id, "page")
        if turn:
            notices = Notices(self.closed_reason) if self.closed_reason and not turn.elsewhere else turn.notices
            outcomes = [interrupt for interrupt in turn.interrupts if interrupt.kind == "long_running"]
            return replace(turn, interrupts=outcomes, notices=notices).saved_forms()
        blocks = decision_blocks(self._decisions)
        blocks = blocks or [Text(self.closed_reason, small=True)] * bool(self.closed_reason)
        if not self.note:
            return bundle(document(*blocks)) if blocks else STUB
        text = bundle(document(*blocks, Text(self.note, small=True)))
        return with_view(text, self._model_id if views_stay() else "", "page")  # its card can still send the message

    def _update(self, output: Any) -> None:
        self.displayed = output if isinstance(output, tuple) else (output, {})
        data, metadata = self.displayed
        self._output.update(data, metadata=metadata, raw=True)
