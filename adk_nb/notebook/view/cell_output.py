"""The cell that began a run, and the output in it where a live view stands: on the page the view, in the file text."""

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
from adk_nb.notebook.view.reply_document import decision_blocks
from adk_nb.notebook.view.reply_view import ReplyView
from adk_nb.notebook.view.widget import STUB
from adk_nb.notebook.view.writers import bundle

_header_of_context: ContextVar[Any] = ContextVar("header_of_context", default=None)

_on_another_page: WeakValueDictionary[str, Any] = WeakValueDictionary()
"""The last view that such a page has shown in a cell, by the message that had the cell run."""


class OwnCell:
    """The cell that is run now, or whose context this is."""

    def __init__(self) -> None:
        self._publisher: Any = getattr(get_ipython(), "display_pub", None)
        self._header: Any = _header_of_context.get() or getattr(self._publisher, "parent_header", None)

    @property
    def page(self) -> str:
        """The page that had it run, by the name of its connection; empty if unknown."""
        return self._named("session")

    @property
    def is_run_now(self) -> bool:
        """Whether what runs now, on this thread, is this cell."""
        now = cast(dict[str, Any], getattr(self._publisher, "parent_header", None) or {})
        return now.get("msg_id", "") == self._named("msg_id")

    @property
    def view_on_another_page(self) -> Any:
        """The last view in it that a page which does not hear of its outputs has shown; None: there is none."""
        return _on_another_page.get(self._named("msg_id"))

    @view_on_another_page.setter
    def view_on_another_page(self, view: Any) -> None:
        _on_another_page[self._named("msg_id")] = view

    def _named(self, name: str) -> str:
        header = cast(dict[str, Any], self._header or {})
        return str(header.get(name, ""))

    def is_of_this_context(self) -> None:
        """What is begun here later, as after a click, belongs to it too."""
        _header_of_context.set(self._header)

    @contextmanager
    def gets_what_is_displayed(self) -> Generator[None]:
        """Of what this thread displays inside.

        ipykernel 6 gives it to whatever message came last, as the click that let the run go on; 7 to the cell of the
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
        self._words: Any = None
        """What waits, in words beside the view, where no output may have both."""
        self._told: ReplyView | None = None
        """The turn, as far as this view has shown it."""
        self._asks: ReplyView | None = None
        """What the file says while it waits."""
        self.file_text: dict[str, str] = {}
        """What the file has for the view from the start, by media type."""
        self.why_not = ""
        """Why nothing waits any more."""
        self._decisions: Sequence[Decision] = ()
        """Of what waited, and was answered in another cell."""
        self._question: dict[str, str] | None = None
        """The turn as it stood when it paused; None: something of it was answered by a click since."""
        self.stands: tuple[Any, Any] = STUB, {}
        """What the output was last told to show, and its metadata."""

    @property
    def is_open(self) -> bool:
        """Whether the view has it."""
        return self._output is not None

    @property
    def turn(self) -> ReplyView | None:
        """The turn that waits here, or was answered in another cell."""
        return self._asks

    @property
    def shows_the_reply(self) -> bool:
        """Whether the turn is shown here, in the cell that is run now: its result is not shown a second time."""
        return self._told is not None and self._own_cell.is_run_now

    def open(self) -> None:
        """Display the view."""
        self.stands = with_view((views_stay() and self.file_text) or STUB, self._model_id, "run")
        data, metadata = self.stands
        with self._own_cell.gets_what_is_displayed():
            self._output = display(data, metadata=metadata, raw=True, display_id=True)
        if self.file_text and not views_stay():
            self._show_beside(self.file_text)

    def whole(self, reply: ReplyView) -> ReplyView:
        """`reply`, with what of its turn was shown before; it is the latest part."""
        if not self._output:
            return reply
        self._told = reply.after(self._told) if self._told else reply
        return self._told

    def show(self, whole: ReplyView, of: Literal["run", "page"]) -> None:
        """Show a turn here, in which something waits (`run`), or which is over (`page`)."""
        if not self._output:
            return
        self._asks = whole if of == "run" else None
        self._question = whole.in_words() if self._asks and views_stay() else None
        if self._asks:
            self._show_waiting(whole)
            return
        stays = views_stay() and whole.status != "pending"  # a card of it is in another view
        self._update(with_view(whole.in_words(), self._model_id if stays else "", of))
        self._show_beside(STUB)
        self._output = None

    def _show_waiting(self, turn: ReplyView) -> None:
        words = self._question or turn.in_words()
        if views_stay():
            self._update(with_view(words, self._model_id, "run"))
        else:
            self._show_beside(words)

    def _show_beside(self, words: dict[str, str]) -> None:
        if self._words:
            self._words.update(words, raw=True)
        elif words is not STUB:
            with self._own_cell.gets_what_is_displayed():
                self._words = display(words, raw=True, display_id=True)

    def answered(self, verdicts: Mapping[str, Verdict], decisions: Sequence[Decision]) -> None:
        """What waited under these ids was answered in another cell. `decisions`: all so far."""
        self._decisions = decisions
        if any(verdict.is_click for verdict in verdicts.values()):
            self._question = None
        if not self._asks:
            return
        self._told = self._asks = self._asks.answered_elsewhere(verdicts)
        if self._asks.interrupts:
            self._show_waiting(self._asks)

    def close(self) -> None:
        """Leave only what a page without a kernel can show; the widget in the saved output would be an error there."""
        if self._output:
            self._update(self._left())
            self._show_beside(STUB)
            self._output = None

    def _left(self) -> Any:
        if self._asks and self._question and self._asks.elsewhere:
            # nbval compares a cell before the cell that answers it is run: the file has what was asked, as then
            return with_view(self._question, self._model_id, "page")
        if self._asks:
            notices = Notices(self.why_not) if self.why_not and not self._asks.elsewhere else self._asks.notices
            outcomes = [interrupt for interrupt in self._asks.interrupts if interrupt.kind == "long_running"]
            return replace(self._asks, interrupts=outcomes, notices=notices).in_words()
        if self._decisions:
            return bundle(document(*decision_blocks(self._decisions)))
        if not self.why_not:
            return STUB
        return bundle(document(Text(self.why_not, small=True)))

    def _update(self, shown: Any) -> None:
        self.stands = shown if isinstance(shown, tuple) else (shown, {})
        data, metadata = self.stands
        self._output.update(data, metadata=metadata, raw=True)
