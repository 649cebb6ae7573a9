"""A message to a remote agent: answers to its question, or the parts of the session that it has not seen."""

from collections.abc import Iterator, Sequence
from typing import Any

from adk_nb import clock, parts, types
from adk_nb.a2a.message_parts import data_part, to_a2a_part
from adk_nb.a2a.protocol import a2a_types
from adk_nb.a2a.remote_questions import (
    CONTEXT_ID,
    EarlierQuestion,
    answer_parts,
    answered_calls,
    closing_parts,
    last_event,
)
from adk_nb.errors import InputError
from adk_nb.events.event import Event, as_content
from adk_nb.flow.history.contents import quote_parts
from adk_nb.runtime.branches import calls_to
from adk_nb.runtime.history import history_of
from adk_nb.runtime.interrupts import Interrupt
from adk_nb.runtime.invocation_context import InvocationContext


class RemoteTurn:
    """A message to the remote agent, and the question of that agent which it answers, if it does."""

    def __init__(self, agent: str, ctx: InvocationContext) -> None:
        self._agent = agent
        self._ctx = ctx
        history = history_of(ctx.session)
        # The event with the question that the user's message answers, else the last one of this agent.
        records = [history.calls.newest(key) for key in ctx.calls_answered]
        asking = next((record.event for record in records if record and record.event.author == agent), None)
        event = asking or last_event(agent, history, ctx.branch)
        metadata = (event.custom_metadata if event else None) or {}
        self._context_id = str(metadata.get(CONTEXT_ID, ""))
        self.earlier = EarlierQuestion.read(metadata)
        """The question that this message answers."""

    def new_event(self, **fields: Any) -> Event:
        """An event of the agent."""
        return Event(author=self._agent, branch=self._ctx.branch, invocation_id=self._ctx.invocation_id, **fields)

    def closing_events(self) -> Iterator[Event]:
        """The event that closes the interrupts which the message answers and its own event leaves open."""
        open_ = [interrupt for interrupt in self._open_interrupts() if interrupt.id in self.earlier.calls]
        answered = [response.id or "" for response in self._answers()]
        closing = list(answered_calls(open_, answered)) if answered else closing_parts(open_, self._text())
        if closing:
            yield self.new_event(content=parts.content("user", closing))

    def message(self) -> Any:
        """The message to send.

        Raises:
            InputError: There is nothing to send.
        """
        a2a = a2a_types()
        ctx, node = self._ctx, self._ctx.node
        if answers := self._answers():
            sent = answer_parts(answers, self.earlier.calls)
        elif ctx.delegated_input:  # called as a tool
            sent = _sent(ctx.delegated_input.parts or ())
        elif node and node.input is not None and node.input is not ctx.user_content:
            is_content = isinstance(node.input, str | types.Content | types.Part)
            sent = _sent(as_content(node.input).parts or ()) if is_content else [data_part(node.input)]
        else:
            unseen = unseen_parts(self._agent, ctx)
            sent = _sent(unseen or (ctx.user_content and ctx.user_content.parts) or ())
        if not sent:
            raise InputError(f"there is nothing to send to remote agent {self._agent!r}; send it a message")
        return a2a.Message(
            message_id=clock.new_id(),
            role=a2a.Role.ROLE_USER,
            parts=sent,
            context_id=self._context_id,
            task_id=self.earlier.task_id,
        )

    def _answers(self) -> list[types.FunctionResponse]:
        return [response for response in self._ctx.responses if response.id in self.earlier.calls]

    def _open_interrupts(self) -> list[Interrupt]:
        return history_of(self._ctx.session).interrupts() if self.earlier.calls else []

    def _text(self) -> str:
        content = self._ctx.user_content
        return "".join(part.text or "" for part in (content and content.parts) or ())


def _sent(ours: Sequence[types.Part]) -> list[Any]:
    return [part for part in map(to_a2a_part, ours) if part is not None]


def unseen_parts(agent: str, ctx: InvocationContext) -> list[types.Part]:
    """The texts and files since the last event of a remote agent; those of other agents are quoted."""
    unseen: list[types.Part] = []
    for event in history_of(ctx.session).newest():
        if event.author == agent and event.branch == ctx.branch and event.custom_metadata:
            break
        if not _is_visible(event, ctx):
            continue
        # Calls and results are inner work.
        said = [part for part in event.parts if (part.text or part.inline_data or part.file_data) and not part.thought]
        if said and event.author != "user":
            quote = quote_parts(event.author, said)
            said = (quote and quote.parts) or []
        unseen[:0] = said
    return unseen


def _is_visible(event: Event, ctx: InvocationContext) -> bool:
    if event.isolation_scope != ctx.isolation_scope:
        return False
    if not event.branch or not ctx.branch:
        return not calls_to(event.branch)
    return f"{ctx.branch}.".startswith(f"{event.branch}.")
