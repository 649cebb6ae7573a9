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
from adk_nb.notebook.view.notices import Notices
from adk_nb.notebook.view.page import views_stay, with_view
from adk_nb.notebook.view.reply_view import ReplyView, decision_blocks
from adk_nb.notebook.view.widget import STUB
from adk_nb.notebook.view.writers import bundle

_header_of_context: ContextVar[Any] = ContextVar("header_of_context", default=None)

_on_another_page: WeakValueDictionary[str, Any] = WeakValueDictionary()
"""Id of the message that ran a cell -> the last view in it that a page has shown which gets none of its outputs."""


class OwnCell:
    """The cell that runs now, or whose context this is."""

    def __init__(self) -> None:
        self._publisher: Any = getattr(get_ipython(), "display_pub", None)
        self._header: dict[str, Any] = (
            _header_of_context.get() or getattr(self._publisher, "parent_header", None) or dict[str, Any]()
        )
        self._message = str(self._header.get("msg_id", ""))
        self.page = str(self._header.get("session", ""))
        """The page that ran it, by the name of its connection; empty if unknown."""

    @property
    def is_run_now(self) -> bool:
        """True if this thread runs the cell now."""
        now = cast(dict[str, Any], getattr(self._publisher, "parent_header", None) or {})
        return now.get("msg_id", "") == self._message

    @property
    def view_on_another_page(self) -> Any:
        """The last view of the cell on a page that gets none of its outputs; None: there is none."""
        return _on_another_page.get(self._message)

    @view_on_another_page.setter
    def view_on_another_page(self, view: Any) -> None:
        _on_another_page[self._message] = view

    def is_of_this_context(self) -> None:
        """Make later work of this context, as after a click, part of the cell."""
        _header_of_context.set(self._header)

    @contextmanager
    def gets_what_is_displayed(self) -> Generator[None]:
        """Send all that this thread displays inside to the cell.

        ipykernel 6 sends it to the cell of the last message, as the click that resumed the run; 7 to the cell of the
        context. Source: `ZMQDisplayPublisher.publish`, whose hooks are the thread's own.
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
    """One output of a cell: the view of a turn while it runs, and then its reply."""

    def __init__(self, model_id: str, own_cell: OwnCell) -> None:
        self._model_id = model_id
        self._own_cell = own_cell
        self._output: Any = None
        """The display handle while the view has the output."""
        self._text_output: Any = None
        """A second output with the open interrupts as text, where no output may have both."""
        self._turn: ReplyView | None = None
        """The turn, as far as this view has shown it."""
        self.turn: ReplyView | None = None
        """The turn that is paused here, or was answered in another cell."""
        self.file_text: dict[str, str] = {}
        """First text for the file, by media type."""
        self.why_not = ""
        """The reason why nothing is open any more."""
        self._decisions: Sequence[Decision] = ()
        """On interrupts that were answered in another cell."""
        self._question: dict[str, str] | None = None
        """The turn as it was at its pause; None: a click has answered something since."""
        self.stands: tuple[Any, Any] = STUB, {}
        """Data and metadata of the output, as last displayed."""

    @property
    def is_open(self) -> bool:
        """True while the view has the output."""
        return self._output is not None

    @property
    def shows_the_reply(self) -> bool:
        """True if the turn is shown here and this cell runs now: its result is not shown a second time."""
        return self._turn is not None and self._own_cell.is_run_now

    def open(self) -> None:
        """Display the view."""
        self.stands = with_view((views_stay() and self.file_text) or STUB, self._model_id, "run")
        data, metadata = self.stands
        with self._own_cell.gets_what_is_displayed():
            self._output = display(data, metadata=metadata, raw=True, display_id=True)
        if self.file_text and not views_stay():
            self._show_beside(self.file_text)

    def whole(self, reply: ReplyView) -> ReplyView:
        """The turn of `reply`, its latest part."""
        if not self._output:
            return reply
        self._turn = reply.after(self._turn) if self._turn else reply
        return self._turn

    def show(self, whole: ReplyView, of: Literal["run", "page"]) -> None:
        """Show a turn here that is paused (`run`) or over (`page`)."""
        if not self._output:
            return
        self.turn = whole if of == "run" else None
        self._question = whole.in_words() if self.turn and views_stay() else None
        if self.turn:
            self._show_pause(whole)
            return
        stays = views_stay() and whole.status != "pending"  # a card of it is in another view
        self._update(with_view(whole.in_words(), self._model_id if stays else "", of))
        self._show_beside(STUB)
        self._output = None

    def _show_pause(self, turn: ReplyView) -> None:
        text = self._question or turn.in_words()
        if views_stay():
            self._update(with_view(text, self._model_id, "run"))
        else:
            self._show_beside(text)

    def _show_beside(self, text: dict[str, str]) -> None:
        if self._text_output:
            self._text_output.update(text, raw=True)
        elif text is not STUB:
            with self._own_cell.gets_what_is_displayed():
                self._text_output = display(text, raw=True, display_id=True)

    def answered(self, verdicts: Mapping[str, Verdict], decisions: Sequence[Decision]) -> None:
        """Take in answers from another cell, by interrupt id. `decisions`: all so far."""
        self._decisions = decisions
        if any(verdict.is_click for verdict in verdicts.values()):
            self._question = None
        if not self.turn:
            return
        self._turn = self.turn = self.turn.answered_elsewhere(verdicts)
        if self.turn.interrupts:
            self._show_pause(self.turn)

    def close(self) -> None:
        """Leave only text: a page without a kernel shows a widget of a saved output as an error."""
        if self._output:
            self._update(self._final_text())
            self._show_beside(STUB)
            self._output = None

    def _final_text(self) -> Any:
        turn = self.turn
        if turn and self._question and turn.elsewhere:
            # nbval compares a cell before it runs the cell with the answer: the file keeps the text of the pause
            return with_view(self._question, self._model_id, "page")
        if turn:
            notices = Notices(self.why_not) if self.why_not and not turn.elsewhere else turn.notices
            outcomes = [interrupt for interrupt in turn.interrupts if interrupt.kind == "long_running"]
            return replace(turn, interrupts=outcomes, notices=notices).in_words()
        if self._decisions:
            return bundle(document(*decision_blocks(self._decisions)))
        return bundle(document(Text(self.why_not, small=True))) if self.why_not else STUB

    def _update(self, shown: Any) -> None:
        self.stands = shown if isinstance(shown, tuple) else (shown, {})
        data, metadata = self.stands
        self._output.update(data, metadata=metadata, raw=True)
