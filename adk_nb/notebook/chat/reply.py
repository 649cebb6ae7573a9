"""The result of a turn of a chat."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from pydantic import ValidationError
from pydantic_core import to_json

from adk_nb.errors import InputError
from adk_nb.events.event import Event
from adk_nb.notebook.view.answers import Status, text_of
from adk_nb.notebook.view.plain_text import shortened
from adk_nb.notebook.view.reply_view import ReplyView
from adk_nb.notebook.view.spending import Cost, Usage, cost_of, usage_of
from adk_nb.runtime.interrupts import Interrupt
from adk_nb.runtime.trace import Trace
from adk_nb.sessions.state import State
from adk_nb.tools.shape import Shape


class Answerable(Protocol):
    """A chat in which the interrupts of a reply can be answered."""

    @property
    def approve(self) -> "Callable[..., Reply]": ...
    @property
    def reject(self) -> "Callable[..., Reply]": ...
    @property
    def answer(self) -> "Callable[..., Reply]": ...


class Reply:
    """The answer of an agent, with the events that led to it. Shows itself at the end of a cell."""

    question: str | None
    """The user's text. None: the turn resumed from an interrupt."""
    agent: str
    """Name of the agent that was asked."""
    events: list[Event]
    """Of this turn, oldest first, the user's included."""
    text: str
    """The text of the answer; of a stopped turn, the part that was streamed. Empty: none yet, or see `error`."""
    answered_by: str
    """Name of the agent that gave the answer, `agent` itself included; empty if there is none yet."""
    status: Status
    """`done`, `pending` (an interrupt is open), `cancelled` or `error`."""
    error: str | None
    """Why the turn failed. None: it did not."""
    interrupts: list[Interrupt]
    """Open in the session after the turn, by number: answer with `%confirm`, `answer`, `approve` or `reject`."""
    trace: Trace
    """Model requests and tool calls as they were sent, with times."""
    chat: Answerable | None
    """The chat in which the reply can be answered. None: there is none."""

    def __init__(self, view: ReplyView, chat: Answerable | None = None) -> None:
        self.question, self.agent, self.events, self.text = view.question, view.agent, view.events, view.text
        self.answered_by, self.status, self.error = view.answered_by, view.status, view.error
        self.interrupts, self.trace, self.chat = view.interrupts, view.trace, chat
        self._view = view
        """The reply as a cell shows it, with notices and hints."""

    def __repr__(self) -> str:
        answer = f"error={self.error!r:.80}" if self.error else f"text={shortened(self.text, 60)!r}"
        return f"Reply(agent={self.agent!r}, status={self.status!r}, {answer})"

    def __str__(self) -> str:
        return str(self._view)

    @property
    def output(self) -> Any:
        """The structured answer in the type of the agent's `output_schema`, such as a model or a list of models.

        Plain JSON if it does not fit that schema any more. None: the answer is not structured.
        """
        events = [event for event in self.events if event.output is not None and text_of(event) == self.text]
        if not events or not self.text:
            return None
        event, team = events[-1], self._view.team
        schema = getattr(team.find_agent(event.author) if team else None, "output_schema", None)
        # The text first: it has fields that are None, which the output leaves out.
        for text in (event.text, to_json(event.output).decode()) if schema is not None else ():
            with suppress(ValidationError):
                return Shape(schema).parse(text)
        return event.output

    @property
    def state_delta(self) -> dict[str, Any]:
        """State keys that this turn wrote, without those of prefix `temp:`."""
        written: dict[str, Any] = {}
        for event in self.events:
            written |= event.actions.state_delta
        return {key: value for key, value in written.items() if not key.startswith(State.TEMP_PREFIX)}

    @property
    def usage(self) -> Usage:
        """The turn's tokens."""
        return usage_of(self.events)

    @property
    def cost(self) -> Cost:
        """The cost of the turn's model calls.

        Raises:
            MissingExtraError: The table of prices is not installed.
        """
        return cost_of(self.events)

    def answer(self, *args: Any, **options: Any) -> "Reply":
        """Answer an open interrupt, as `Chat.answer`."""
        return self._answerable().answer(*args, **options)

    def approve(self, id: str | int | None = None, **options: Any) -> "Reply":
        """Let a pending call run, as `Chat.approve`."""
        return self._answerable().approve(id, **options)

    def reject(self, id: str | int | None = None, reason: str | None = None) -> "Reply":
        """Refuse a pending call, as `Chat.reject`."""
        return self._answerable().reject(id, reason)

    def _answerable(self) -> Answerable:
        if self.chat is None:
            raise InputError("the chat of this reply cannot continue; ask again")
        return self.chat

    def _ipython_display_(self) -> None:
        """Display nothing if the cell shows the turn already.

        Raises:
            NotImplementedError: IPython takes it as a request for the ordinary display.
        """
        if not self._view.is_displayed():
            raise NotImplementedError

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        return self._view.mimebundle()


def view_of_reply(reply: Reply) -> ReplyView:
    """The view of a reply, for magics and chat boxes."""
    return reply._view  # pyright: ignore[reportPrivateUsage]
