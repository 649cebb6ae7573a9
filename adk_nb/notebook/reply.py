"""What one turn of a conversation came to."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from pydantic import ValidationError
from pydantic_core import to_json

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.errors import InputError
from adk_nb.events.event import Event
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.notebook.view import run_panels
from adk_nb.notebook.view.call_shown import Schema, Schemas
from adk_nb.notebook.view.event_words import who_said
from adk_nb.notebook.view.interrupt_text import Verdict
from adk_nb.notebook.view.page import with_view
from adk_nb.notebook.view.panel import PanelRun
from adk_nb.notebook.view.plain_text import json_text, shortened
from adk_nb.notebook.view.reply_document import reply_document
from adk_nb.notebook.view.spending import Cost, Usage, cost_of, usage_of
from adk_nb.notebook.view.writers import as_text, bundle
from adk_nb.runtime.branches import calls_to
from adk_nb.runtime.interrupts import Interrupt
from adk_nb.runtime.trace import Trace
from adk_nb.sessions.state import State
from adk_nb.tools.finish_task_tool import NAME as FINISH_TASK
from adk_nb.tools.shape import Shape

Status = Literal["done", "pending", "cancelled", "error"]


class Goes(Protocol):
    """What is needed of a chat to go on from a reply."""

    @property
    def approve(self) -> "Callable[..., Reply]": ...
    @property
    def reject(self) -> "Callable[..., Reply]": ...
    @property
    def decide(self) -> "Callable[..., Reply]": ...
    @property
    def answer(self) -> "Callable[..., Reply]": ...
    @property
    def submit_credential(self) -> "Callable[..., Reply]": ...

    def redefined(self, waiting: Sequence[Interrupt], /) -> Collection[str]:
        """Ids of the approvals whose tools were redefined since they were asked for."""
        ...


@dataclass(frozen=True, kw_only=True, repr=False)
class Reply:
    """The answer of an agent, with all that led to it. Shows itself at the end of a cell."""

    question: str | None
    """What was asked. None: this turn went on from an approval."""
    agent: str
    events: list[Event] = field(repr=False)
    """Of this turn, oldest first, the user's included."""
    history: list[Event] = field(default_factory=list[Event], repr=False)
    """The session before this turn, where the turn answers an approval and goes on with a call made there."""
    text: str
    """The words of the answer, of a stopped turn as far as they had streamed; empty if there is none yet, or the turn
    failed: see `error`."""
    answered_by: str = ""
    """Who of a team gave it, `agent` itself included; empty if there is none yet."""
    status: Status
    interrupts: list[Interrupt] = field(default_factory=list[Interrupt])
    """What is open in the session after it, by number: answer with `%confirm`, `chat.answer()` or `chat.approve()`."""
    elsewhere: Mapping[str, Verdict] = field(default_factory=dict[str, Verdict], repr=False)
    """How what waited was answered in other cells since, by its id."""
    schemas: Schemas = field(default_factory=dict[str, Schema | None], repr=False, compare=False)
    """The parameters of the tools of `pending`, by approval id."""
    magic: str = field(default="", repr=False)
    """The `%confirm` that answers `interrupts`; empty: only Python has the chat."""
    redefined: Collection[str] = field(default=(), repr=False)
    """Ids of the approvals whose tools were redefined since."""
    chat: "Goes | None" = field(default=None, repr=False, compare=False)
    """The chat that this is a turn of. None: of none that goes on."""
    team: BaseAgent | None = field(default=None, repr=False, compare=False)
    """Whose work this is, as it was then: shown as a picture. None: of no picture."""
    trace: Trace = field(default_factory=Trace, repr=False, compare=False)
    """What models and tools were asked, as it was sent and when; `view.panels` shows it."""
    error: str | None = None
    """Why the turn failed. None: it did not."""
    take_back_with: str = ""
    """What to type so that agents forget what was asked in a turn that broke off; empty if none did."""
    notice: str | None = None
    """What every view says of a model that is not what it seems."""
    plain: bool = field(default=False, repr=False, compare=False)
    """It shows itself in plain text alone."""
    live: Callable[[], str] = field(default=str, repr=False, compare=False)
    """The widget that shows it on the page; empty: none does."""
    is_shown: Callable[[], bool] = field(default=bool, repr=False, compare=False)
    """Whether the cell that is run now shows it already, where its turn ran."""

    def __repr__(self) -> str:
        answer = f"error={self.error!r:.80}" if self.error else f"text={shortened(self.text, 60)!r}"
        return f"Reply(agent={self.agent!r}, status={self.status!r}, {answer})"

    @property
    def pending(self) -> list[Interrupt]:
        """The approvals among `interrupts`."""
        return [interrupt for interrupt in self.interrupts if interrupt.kind == "approval"]

    @property
    def output(self) -> Any:
        """The structured answer, of the type that `output_schema` names: a model, a list of models. None: it has none.

        Plain JSON where no agent of the turn has an `output_schema` that it fits any more.
        """
        events = [
            event for event in self.events if event.output is not None and (event.text or _as_text(event)) == self.text
        ]
        return _typed(events[-1], self.team) if events and self.text else None

    @property
    def state_delta(self) -> dict[str, Any]:
        """What this turn wrote to the session's state, `temp:` keys left out."""
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
        """What the turn's model calls cost.

        Raises:
            MissingExtraError: The table of prices is not installed.
        """
        return cost_of(self.events)

    def approve(self, id: str | int | None = None, **given: Any) -> "Reply":
        """Let a waiting call run, as `Chat.approve`."""
        return self._goes_on().approve(id, **given)

    def reject(self, id: str | int | None = None, reason: str | None = None) -> "Reply":
        """Refuse a waiting call, as `Chat.reject`."""
        return self._goes_on().reject(id, reason)

    def decide(self, decisions: dict[str, ToolConfirmation], **how: Any) -> "Reply":
        """Answer several approvals at once, as `Chat.decide`."""
        return self._goes_on().decide(decisions, **how)

    def after(self, before: "Reply") -> "Reply":
        """This reply and `before`, which is the same turn as far as its last pause, as one."""
        events = [*before.events, *self.events]
        kept = {"question": before.question, "history": before.history, "elsewhere": before.elsewhere}
        return replace(self, events=events, **kept)

    def answered_elsewhere(self, verdicts: Mapping[str, Verdict]) -> "Reply":
        """This reply, after some of what it waits for was answered in another cell."""
        return replace(
            self,
            interrupts=[interrupt for interrupt in self.interrupts if interrupt.id not in verdicts],
            elsewhere={**self.elsewhere, **verdicts},
        )

    def answer(self, value: Any, which: Any = None, **more: Any) -> "Reply":
        """Answer an open interrupt, as `Chat.answer`."""
        return self._goes_on().answer(value, which, **more)

    def submit_credential(self, *given: Any, **which: Any) -> "Reply":
        """Let a tool in that waits for it, as `Chat.submit_credential`."""
        return self._goes_on().submit_credential(*given, **which)

    def _goes_on(self) -> "Goes":
        if self.chat is None:
            raise InputError("this reply is of no chat that goes on; ask again")
        return self.chat

    def _ipython_display_(self) -> None:
        """Show nothing in the cell whose turn has left it there.

        Raises:
            NotImplementedError: It is shown as all other values are, by IPython.
        """
        if not self.is_shown():
            raise NotImplementedError

    def in_words(self) -> dict[str, str]:
        """What a page with no kernel shows, by media type."""
        run = PanelRun(agent=self.team, history=self.history, status=self.status, trace=self.trace)
        for event in self.events:
            run.feed(event)
        return bundle(reply_document(self._as_it_is_now(), history=self.history, panels=run_panels.saved(run)))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        if self.plain:
            return {"text/plain": str(self)}
        return with_view(self.in_words(), self.live())

    def __str__(self) -> str:
        return as_text(reply_document(self._as_it_is_now(), history=self.history))

    def _as_it_is_now(self) -> "Reply":
        """A tool that waits may have been redefined since: then something else is to be typed."""
        if not self.pending or self.chat is None:
            return self
        return replace(self, redefined=self.chat.redefined(self.pending))


def outcome(events: Sequence[Event], status: Status, error: str | None) -> tuple[Status, str | None]:
    """How a turn with `events` ended, and why: a run that came to its end well may have ended with a failure."""
    last = events[-1] if events else None
    if status == "done" and last and last.error_code and last.author != "user":
        return "error", f"{last.error_code}: {last.error_message or ''}".rstrip(": ")
    return status, error


def answer_in(events: Sequence[Event]) -> tuple[str, str]:
    """The words of the last answer in `events`, with what its agent's callback added, and who gave it; both empty if
    there is none, as where the run waits for something.
    """
    said: list[Event] = []
    goes_on = False
    asking: dict[str, Event] = {}
    """Scope -> the last words of an agent that was called, and has not given the call its result: those are for the
    user, as an agent's that talks its task over."""
    for event in _without_asides(events):
        for response in event.get_function_responses():
            asking.pop(response.id or "", None)
        if calls_to(event.branch, event.node_info.path):
            if event.is_answer() and not event.error_code:
                asking[event.isolation_scope or ""] = event
            continue  # what was done for a call is no answer to the user
        if _is_outcome(event):
            said, goes_on = [event], False
        elif event.author != "user" and event.is_answer():
            beside = goes_on and said[-1].author == event.author and not _is_of_a_model(event)
            said = [*said, event] if beside else [event]
            goes_on = True
        elif event.content:
            goes_on = False
    answer = _not_before_a_pause(said, events) or list(asking.values())
    return "\n\n".join(event.text or _as_text(event) for event in answer), who_said(answer[-1]) if answer else ""


def streamed_text(streaming: Iterable[Sequence[Event]]) -> tuple[str, str] | None:
    """The text of answers that were stopped while they streamed, and the author of the last; None if none had begun.

    Args:
        streaming: The partial events of each answer.
    """
    texts = [
        (text, who_said(pieces[-1]))
        for pieces in streaming
        if (text := "".join(piece.text for piece in pieces if not calls_to(piece.branch, piece.node_info.path)))
    ]
    return ("\n\n".join(text for text, _ in texts), texts[-1][1]) if texts else None


def _not_before_a_pause(said: list[Event], events: Iterable[Event]) -> list[Event]:
    """Where the run waits, what others said meanwhile is no answer; what was said with the question stands above it."""
    waits: dict[str, Event] = {}
    for event in events:
        for response in event.get_function_responses():
            waits.pop(response.id or "", None)
        waits |= dict.fromkeys(event.long_running_tool_ids or (), event)
    if not waits:
        return said
    return [one for one in said if one.text and any(_said_together(one, event) for event in waits.values())]


def _said_together(one: Event, other: Event) -> bool:
    return (one.author, one.node_info.path) == (other.author, other.node_info.path)


def _without_asides(events: Iterable[Event]) -> Iterator[Event]:
    """All but what is said in a graph after its output."""
    answered = ""
    for event in events:
        graph = event.node_info.path.partition("/")[0]
        if _is_output_of(graph, event):
            answered = graph
        elif graph and graph == answered:
            continue
        yield event


def _is_output_of(graph: str, event: Event) -> bool:
    return graph != "" and graph in (event.node_info.output_for or ())


def _is_of_a_model(event: Event) -> bool:
    """True for what a model has answered, and not a callback: an answer of its own, as in each pass of a loop."""
    return bool(event.finish_reason or event.turn_complete or event.model_version)


def _is_outcome(event: Event) -> bool:
    """True for what came of it without words: given by a node of the run's own graph, by that graph itself after an
    answer, by a node further within whose output it is, or handed back by an agent that talked a task over with the
    user alone.
    """
    path = event.node_info.path
    if event.output is None or event.text:
        return False
    if path.count("/") > 1:
        return _is_output_of(path.partition("/")[0], event)
    return path != "" or _hands_back(event)


def _hands_back(event: Event) -> bool:
    return any(response.name == FINISH_TASK for response in event.get_function_responses())


def _typed(event: Event, team: BaseAgent | None) -> Any:
    agent = team.find_agent(event.author) if team else None
    schema = getattr(agent, "output_schema", None)
    if schema is None:
        return event.output
    for text in (
        event.text,
        to_json(event.output).decode(),
    ):  # the text has fields of None, which the output leaves out
        with suppress(ValidationError):
            return Shape(schema).parse(text)
    return event.output


def _as_text(event: Event) -> str:
    value = event.output
    if _hands_back(event) and value.keys() == {"result"}:  # the one argument of a task that has no output schema
        value = value["result"]
    return value if isinstance(value, str) else json_text(value)
