"""A turn's result as its cell shows it: the answer, and all that stands around it in each form."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.events.event import Event
from adk_nb.notebook.view import panels
from adk_nb.notebook.view.call_shown import Schema, Schemas
from adk_nb.notebook.view.interrupt_text import Verdict
from adk_nb.notebook.view.notices import Notices
from adk_nb.notebook.view.page import with_view
from adk_nb.notebook.view.panel import PanelRun
from adk_nb.notebook.view.reply_document import reply_document
from adk_nb.notebook.view.writers import as_text, bundle
from adk_nb.runtime.interrupts import Interrupt
from adk_nb.runtime.trace import Trace

Status = Literal["done", "pending", "cancelled", "error"]
Redefined = Callable[[Sequence[Interrupt]], Collection[str]]
"""Returns the ids of those approvals whose tools were redefined since they were asked for."""


@dataclass(frozen=True, kw_only=True, repr=False)
class ReplyView:
    """The result of a turn, and what its forms say of it."""

    question: str | None
    """The user's text. None: the turn resumed from an interrupt."""
    shows_question: bool = False
    """Its cell says the question already."""
    agent: str
    events: list[Event]
    """Of this turn, oldest first, the user's included."""
    history: list[Event] = field(default_factory=list[Event])
    """The session before this turn, where the turn resumes a call made there."""
    text: str
    """The text of the answer, of a stopped turn as far as it had streamed."""
    answered_by: str = ""
    """The agent of a team that gave the answer; empty if there is none yet."""
    status: Status
    interrupts: list[Interrupt] = field(default_factory=list[Interrupt])
    """Open in the session after the turn, by number."""
    elsewhere: Mapping[str, Verdict] = field(default_factory=dict[str, Verdict])
    """Interrupt id -> how it was answered in another cell since."""
    schemas: Schemas = field(default_factory=dict[str, Schema | None])
    """Approval id -> JSON schema of the tool's arguments."""
    magic: str = ""
    """The `%confirm` that answers `interrupts`; empty: only Python has the chat."""
    redefined: Collection[str] = ()
    """Ids of the approvals whose tools were redefined since."""
    redefined_now: Redefined | None = None
    """Looks that up again whenever the reply is rendered."""
    team: BaseAgent | None = None
    """The agent tree at the time of the turn, for its picture. None: no picture."""
    trace: Trace = field(default_factory=Trace)
    error: str | None = None
    take_back_with: str = ""
    """What to type so that agents forget the message of a failed turn; empty if none failed."""
    notices: Notices = field(default_factory=Notices)
    plain: bool = False
    """Shown as plain text alone."""
    live: Callable[[], str] = str
    """Returns the id of the widget that shows it on the page; empty: none does."""
    is_shown: Callable[[], bool] = bool
    """Whether the cell that runs now shows it already."""

    @property
    def notice(self) -> str | None:
        """All notices, in one line."""
        return str(self.notices) or None

    @property
    def pending(self) -> list[Interrupt]:
        """The approvals among `interrupts`."""
        return [interrupt for interrupt in self.interrupts if interrupt.kind == "approval"]

    def after(self, before: "ReplyView") -> "ReplyView":
        """This part of a turn and `before`, the part up to its last pause, as one."""
        return replace(
            self,
            events=[*before.events, *self.events],
            question=before.question,
            shows_question=before.shows_question,
            history=before.history,
            elsewhere=before.elsewhere,
        )

    def answered_elsewhere(self, verdicts: Mapping[str, Verdict]) -> "ReplyView":
        """The same turn after interrupts of it were answered in another cell."""
        left = [interrupt for interrupt in self.interrupts if interrupt.id not in verdicts]
        return replace(self, interrupts=left, elsewhere={**self.elsewhere, **verdicts})

    def in_words(self) -> dict[str, str]:
        """All forms that a page without a kernel can show, by media type."""
        run = PanelRun(agent=self.team, history=self.history, status=self.status, trace=self.trace, events=self.events)
        return bundle(reply_document(self._refreshed(), history=self.history, panels=panels.saved(run), typed=False))

    def mimebundle(self) -> Any:
        """What IPython displays: the forms, and the live view where one still shows the turn."""
        return {"text/plain": str(self)} if self.plain else with_view(self.in_words(), self.live())

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        return self.mimebundle()

    def __str__(self) -> str:
        return as_text(reply_document(self._refreshed(), history=self.history))

    def _refreshed(self) -> "ReplyView":
        if not self.pending or self.redefined_now is None:
            return self
        return replace(self, redefined=self.redefined_now(self.pending))
