"""Compaction: when a summary is made of a conversation's older events, and of which."""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import inf
from typing import Protocol, runtime_checkable

from pydantic_core import to_json

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.events.event_actions import EventActions, EventCompaction
from adk_nb.events.requests import REQUESTS
from adk_nb.flow.budget import counting, is_used_up, pay
from adk_nb.flow.history.compacted import reach, standing
from adk_nb.flow.history.contents import contents_for
from adk_nb.runtime.approvals import is_approval_placeholder
from adk_nb.runtime.credentials import is_credential_placeholder
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.runtime.rewind import newest_first
from adk_nb.sessions.session import Session
from adk_nb.tools.content_blocks import with_references

logger = logging.getLogger(__name__)

_CHARACTERS_PER_TOKEN = 4
_REFUSED = "compaction refused"
"""Among a session's views: characters of the last summary that was too long to be of use."""


@runtime_checkable
class Summarizes(Protocol):
    """What compaction needs of a summariser."""

    async def maybe_summarize_events(self, *, events: list[Event]) -> Event | None: ...


@dataclass(frozen=True, kw_only=True)
class Compaction:
    """Makes summaries when they are due. Holds no conversation; a summary is an event of the session.

    Source of the rules: google-adk 2.13, `events_compaction_config`.
    """

    summarizer: Callable[[], Summarizes]
    """Asked for when a summary is due."""
    interval: int | None = None
    """New invocations after which they are summed up. None: never."""
    overlap: int = 0
    """Invocations before the new ones that are summed up once more."""
    threshold: int | None = None
    """Tokens of a prompt from which on all but the newest events are summed up. None: never."""
    retention: int = 0
    """How many of the newest events stay as they are then."""

    async def before_model(self, ctx: InvocationContext, agent: str) -> None:
        """Sum up if the agent's last prompt was too long. What the model is to answer stays as it is."""
        if self._too_long(ctx, agent, agent):
            await self._shorten(ctx, max(self.retention, 1))

    async def after_run(self, ctx: InvocationContext) -> None:
        """Sum up if the run's last prompt was too long, or else if there are enough new invocations."""
        if self._too_long(ctx, ctx.agent.name, None) and await self._shorten(ctx, self.retention):
            return
        if self.interval is not None and len(_invocations(new := _new(ctx))) >= self.interval:
            events = [*_before(new[0], ctx.session.events, self.overlap), *new]
            await self._compact(ctx, events[: _cut(events, len(events), _newest(ctx.session))])

    def _too_long(self, ctx: InvocationContext, agent: str, author: str | None) -> bool:
        return self.threshold is not None and _prompt_tokens(ctx, agent, author) >= self.threshold

    async def _shorten(self, ctx: InvocationContext, retention: int) -> bool:
        events = [event for event in standing(ctx.session).events if event.isolation_scope == ctx.isolation_scope]
        raw = [at for at, event in enumerate(events) if not event.actions.compaction]
        if len(raw) <= retention:
            return False
        cut = _cut(events, raw[-retention] if retention else len(events), _newest(ctx.session))
        while cut and events[cut - 1].actions.compaction:
            cut -= 1
        return await self._compact(ctx, events[:cut])

    async def _compact(self, ctx: InvocationContext, events: list[Event]) -> bool:
        """Put a summary in the place of `events`, if that makes the conversation shorter.

        What the summary will be like is not known before it is paid for: it is taken to be as long as the last one.
        """
        if not events:
            return False
        session = ctx.session
        where = EventCompaction(
            start_timestamp=reach(events[0])[0], end_timestamp=reach(events[-1])[1], compacted_content=types.Content()
        )
        if _saved(ctx, where) <= max(_last_summary(ctx), session.views.get(_REFUSED, 0)):
            return False
        if is_used_up(ctx):
            return False
        summary = await self._summary(ctx, events)
        if summary and ctx.run_config.max_cost_usd is not None:
            pay(ctx, summary)
        told = summary and summary.actions.compaction
        if not (summary and told):
            return False
        if _saved(ctx, told) <= (size := characters(told.compacted_content)):
            session.views[_REFUSED] = size
            logger.info("a summary of %d events was longer than they are, and is not used", len(events))
            return False
        session.views.pop(_REFUSED, None)
        if not summary.invocation_id:
            summary.invocation_id = ctx.invocation_id
        summary.isolation_scope = ctx.isolation_scope
        await ctx.session_service.append_event(session, summary)
        return True

    async def _summary(self, ctx: InvocationContext, events: list[Event]) -> Event | None:
        """The summary; None, after a warning, if there is none: a conversation can always go on whole."""
        counts = counting.set(ctx)
        try:
            summary = await self.summarizer().maybe_summarize_events(events=[_as_said(event) for event in events])
        except Exception as error:
            logger.warning("the conversation goes on whole, its summary failed: %s: %s", type(error).__name__, error)
            return None
        finally:
            counting.reset(counts)
        if summary is not None and not (isinstance(summary, Event) and summary.actions.compaction):  # pyright: ignore[reportUnnecessaryIsInstance]
            logger.warning(
                "the conversation goes on whole: a summariser returns None or an Event with actions.compaction, "
                "and this one returned %.80r",
                summary,
            )
            return None
        return summary


def characters(content: types.Content | None) -> int:
    """How long the words of a content are, and the names and JSON of its calls and responses."""
    count = 0
    for part in (content and content.parts) or ():
        count += len(part.text or "")
        if call := part.function_call:
            count += len(call.name or "") + len(to_json(call.args or {}))
        if response := part.function_response:
            count += len(response.name or "") + len(to_json(with_references(response).response or {}))
    return count


def _prompt_tokens(ctx: InvocationContext, agent: str, author: str | None) -> int:
    """How long the newest prompt was, or is, if the model does not say or it was summed up since.

    Args:
        ctx: The run.
        agent: Whose prompt it is.
        author: Whose events are looked at. None: everyone's.
    """
    for event in reversed(ctx.session.events):
        if event.actions.compaction or event.actions.rewind_before_invocation_id:
            break
        used = event.usage_metadata if event.isolation_scope == ctx.isolation_scope else None
        if used and used.prompt_token_count is not None and author in (None, event.author):
            return used.prompt_token_count
    contents = contents_for(ctx.session, agent, ctx.branch, ctx.isolation_scope)
    return sum(characters(content) for content in contents) // _CHARACTERS_PER_TOKEN


def _new(ctx: InvocationContext) -> list[Event]:
    """The events after the last summary, oldest first."""
    new: list[Event] = []
    for event in reversed(standing(ctx.session).events):
        if event.isolation_scope == ctx.isolation_scope:
            if event.actions.compaction:
                break
            new.append(event)
    return new[::-1]


def _invocations(events: Iterable[Event]) -> set[str]:
    return {event.invocation_id for event in events if event.invocation_id}


def _before(first: Event, events: Sequence[Event], overlap: int) -> list[Event]:
    """What came before `first` in its own invocation, and in `overlap` invocations before; summaries left out."""
    before: list[Event] = []
    invocations = {first.invocation_id}
    earlier = newest_first(events, len(events))
    while next(earlier, first) is not first:
        pass
    for event in earlier:
        if event.isolation_scope == first.isolation_scope and not event.actions.compaction:
            if event.invocation_id not in invocations and len(invocations) > overlap:
                break
            invocations.add(event.invocation_id)
            before.append(event)
    return before[::-1]


def _newest(session: Session) -> str:
    events = reversed(session.events)
    return next((event.invocation_id for event in events if event.invocation_id and not event.actions.compaction), "")


def _cut(events: Sequence[Event], at_most: int, running: str) -> int:
    """How many of the first `at_most` events a summary can stand for.

    Nothing may be parted that belongs together: a call and its responses, now or later; events that no time parts.
    """
    cut = at_most
    for first, last in sorted([*_pairs(events, running), *_same_time(events)], reverse=True):
        if first < cut <= last:
            cut = first
    return cut


def _pairs(events: Sequence[Event], running: str) -> list[tuple[int, float]]:
    """Where each call is and its last response; without end for one that can still be answered."""
    pairs: list[tuple[int, float]] = []
    newest: dict[str, int] = {}
    """Call id -> index in `pairs`."""
    for at, event in enumerate(events):
        for response in event.get_function_responses():
            if (pair := newest.get(response.id or "")) is not None:
                pairs[pair] = (pairs[pair][0], inf if _waits(event, response) else at)
        for call in event.get_function_calls():
            if call.id and call.name not in REQUESTS:
                newest[call.id] = len(pairs)
                waits = event.invocation_id == running or call.id in (event.long_running_tool_ids or ())
                pairs.append((at, inf if waits else at))
    return pairs


def _waits(event: Event, response: types.FunctionResponse) -> bool:
    return is_approval_placeholder(event, response) or is_credential_placeholder(event, response)


def _same_time(events: Sequence[Event]) -> list[tuple[int, float]]:
    """Neighbours that a range of time would not part."""
    ends = list(accumulate((reach(event)[1] for event in events), max))
    starts = list(accumulate((reach(event)[0] for event in reversed(events)), min))[::-1]
    return [(at - 1, at) for at in range(1, len(events)) if ends[at - 1] >= starts[at]]


def _saved(ctx: InvocationContext, compaction: EventCompaction) -> int:
    gone = standing(ctx.session).replaced_by(compaction, ctx.isolation_scope)
    return sum(characters(_as_said(event).content) for event in gone)


def _last_summary(ctx: InvocationContext) -> int:
    """Characters of the newest summary; 0 if there is none."""
    for event in reversed(standing(ctx.session).events):
        if event.actions.compaction and event.isolation_scope == ctx.isolation_scope:
            return characters(event.actions.compaction.compacted_content)
    return 0


def _as_said(event: Event) -> Event:
    """The event itself, or a summary as if the model had said it when its range began."""
    if not (told := event.actions.compaction):
        return event
    return Event(
        author="model",
        content=told.compacted_content,
        timestamp=told.start_timestamp,
        invocation_id=event.invocation_id,
        actions=EventActions(),
    )
