"""Compaction: when to summarize older events of a conversation, and which."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import inf
from typing import Protocol, runtime_checkable

from pydantic_core import to_json

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.events.event_actions import EventActions, EventCompaction
from adk_nb.flow.budget import add_cost, counts_cost, is_over_budget, paying_run
from adk_nb.flow.history.contents import contents_for
from adk_nb.flow.history.current_events import current_events, exchanges, time_range
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.runtime.rewind import newest_first
from adk_nb.sessions.session import Session
from adk_nb.tools.media import with_references

logger = logging.getLogger(__name__)

_CHARACTERS_PER_TOKEN = 4
_REFUSED = "compaction refused"
"""Key in a session's views: characters of the last summary that was too long to use."""


@runtime_checkable
class Summarizer(Protocol):
    """A summarizer of events. See `apps.LlmEventSummarizer`."""

    async def maybe_summarize_events(self, *, events: list[Event]) -> Event | None:
        """Summarize events, oldest first. None: no summary."""
        ...


@dataclass(frozen=True, kw_only=True)
class Compaction:
    """Makes summaries when they are due; a summary is an event of the session.

    Source of the rules: google-adk 2.13, `events_compaction_config`.
    """

    summarizer: Callable[[], Summarizer]
    """Called when a summary is due."""
    interval: int | None = None
    """Number of new invocations after which they are summarized. None: never."""
    overlap: int = 0
    """Number of earlier invocations that the next summary includes again."""
    threshold: int | None = None
    """Prompt tokens from which on all but the newest events are summarized. None: never."""
    retention: int = 0
    """Number of newest events that `threshold` leaves as they are."""

    async def before_model(self, ctx: InvocationContext, agent: str) -> None:
        """Summarize if the agent's last prompt was too long. The message to be answered stays as it is."""
        if self._is_too_long(ctx, agent, agent):
            await self._shorten(ctx, max(self.retention, 1))

    async def after_run(self, ctx: InvocationContext) -> None:
        """Summarize if the run's last prompt was too long, or else if there are enough new invocations."""
        if self._is_too_long(ctx, ctx.agent.name, None) and await self._shorten(ctx, self.retention):
            return
        if self.interval is None:
            return
        waiting, new = _waiting_events(ctx), list[Event]()
        for event in reversed(current_events(ctx.session).events):
            if event.isolation_scope == ctx.isolation_scope and id(event) not in waiting:
                if event.actions.compaction:
                    break
                new.append(event)
        new.reverse()
        if len({event.invocation_id for event in new if event.invocation_id}) >= self.interval:
            # Besides, the events before in the first invocation and in `overlap` invocations before it.
            first, earlier = new[0], newest_first(ctx.session.events, len(ctx.session.events))
            while next(earlier, first) is not first:
                pass
            overlapping, invocations = list[Event](), {first.invocation_id}
            for event in earlier:
                if event.isolation_scope == first.isolation_scope and not event.actions.compaction:
                    if event.invocation_id not in invocations and len(invocations) > self.overlap:
                        break
                    invocations.add(event.invocation_id)
                    overlapping.append(event)
            events = [*(event for event in reversed(overlapping) if id(event) not in waiting), *new]
            await self._compact(ctx, events[: _safe_cut(events, len(events), _newest_invocation(ctx.session))])

    def _is_too_long(self, ctx: InvocationContext, agent: str, author: str | None) -> bool:
        return self.threshold is not None and _prompt_tokens(ctx, agent, author) >= self.threshold

    async def _shorten(self, ctx: InvocationContext, retention: int) -> bool:
        events = [event for event in current_events(ctx.session).events if event.isolation_scope == ctx.isolation_scope]
        raw_indexes = [index for index, event in enumerate(events) if not event.actions.compaction]
        if len(raw_indexes) <= retention:
            return False
        cut = _safe_cut(events, raw_indexes[-retention] if retention else len(events), _newest_invocation(ctx.session))
        waiting = _waiting_events(ctx)
        older = [event for event in events[:cut] if id(event) not in waiting]
        # Summaries at the end stay: summarized again by themselves, they would only lose detail.
        while older and older[-1].actions.compaction:
            older.pop()
        return await self._compact(ctx, older)

    async def _compact(self, ctx: InvocationContext, events: list[Event]) -> bool:
        """Replace `events` by a summary, if that makes the conversation shorter. Returns True if it did.

        Before the model is paid for it, the summary's length is estimated by that of the last one.
        """
        if not events:
            return False
        session = ctx.session
        summaries = (
            event.actions.compaction.compacted_content
            for event in reversed(current_events(session).events)
            if event.actions.compaction and event.isolation_scope == ctx.isolation_scope
        )
        likely_size = max(count_characters(next(summaries, None)), session.views.get(_REFUSED, 0))
        covered_range = EventCompaction(
            start_timestamp=time_range(events[0])[0],
            end_timestamp=time_range(events[-1])[1],
            compacted_content=types.Content(),
        )
        if _saved_characters(ctx, covered_range) <= likely_size:
            return False
        # The summary is paid for by the run, too.
        if is_over_budget(ctx):
            return False
        summary = await self._summarize(ctx, events)
        if summary and counts_cost(ctx):
            add_cost(ctx, summary)
        compaction = summary and summary.actions.compaction
        if not (summary and compaction):
            return False
        if _saved_characters(ctx, compaction) <= (size := count_characters(compaction.compacted_content)):
            session.views[_REFUSED] = size
            logger.info("a summary of %d events was longer than they are, and is not used", len(events))
            return False
        session.views.pop(_REFUSED, None)
        if not summary.invocation_id:
            summary.invocation_id = ctx.invocation_id
        summary.isolation_scope = ctx.isolation_scope
        await ctx.session_service.append_event(session, summary)
        return True

    async def _summarize(self, ctx: InvocationContext, events: list[Event]) -> Event | None:
        """Ask the summarizer. None, after a warning, if it fails: the conversation continues in full."""
        token = paying_run.set(ctx)
        try:
            summary = await self.summarizer().maybe_summarize_events(
                events=[_summary_as_message(event) for event in events]
            )
        except Exception as error:
            logger.warning(
                "the conversation continues in full, as its summary failed: %s: %s", type(error).__name__, error
            )
            return None
        finally:
            paying_run.reset(token)
        if summary is not None and not (isinstance(summary, Event) and summary.actions.compaction):  # pyright: ignore[reportUnnecessaryIsInstance]
            logger.warning(
                "the conversation continues in full: a summarizer returns None or an Event with actions.compaction, "
                "and this one returned %.80r",
                summary,
            )
            return None
        return summary


def count_characters(content: types.Content | None) -> int:
    """Characters of a content's text, and of the names and JSON of its calls and responses."""
    count = 0
    for part in (content and content.parts) or ():
        count += len(part.text or "")
        if call := part.function_call:
            count += len(call.name or "") + len(to_json(call.args or {}))
        if response := part.function_response:
            count += len(response.name or "") + len(to_json(with_references(response).response or {}))
    return count


def _prompt_tokens(ctx: InvocationContext, agent: str, author: str | None) -> int:
    """Tokens of the newest prompt; an estimate if the model reported none, or a summary was made since.

    Args:
        ctx: The run.
        agent: The agent of the prompt.
        author: The author of the events to read. None: any.
    """
    for event in reversed(ctx.session.events):
        if event.actions.compaction or event.actions.rewind_before_invocation_id:
            break
        used = event.usage_metadata if event.isolation_scope == ctx.isolation_scope else None
        if used and used.prompt_token_count is not None and author in (None, event.author):
            return used.prompt_token_count
    contents = contents_for(ctx.session, agent, ctx.branch, ctx.isolation_scope)
    return sum(count_characters(content) for content in contents) // _CHARACTERS_PER_TOKEN


def _waiting_events(ctx: InvocationContext) -> set[int]:
    """id() of each event that no summary replaces: it has a call that waits, or a response beside it."""
    return {
        id(event)
        for exchange in exchanges(current_events(ctx.session).events)
        if exchange.waiting
        for event in (exchange.call, *exchange.responses)
    }


def _newest_invocation(session: Session) -> str:
    events = reversed(session.events)
    return next((event.invocation_id for event in events if event.invocation_id and not event.actions.compaction), "")


def _safe_cut(events: Sequence[Event], limit: int, running_invocation: str) -> int:
    """The number of first events, up to `limit`, that a summary can replace.

    Never separates a call from its responses, nor events with the same timestamp.
    """
    indexes = {id(event): index for index, event in enumerate(events)}
    # First and last index of events that stay together.
    spans: list[tuple[int, float]] = []
    for exchange in exchanges(events):
        first = indexes[id(exchange.call)]
        # The running invocation can still answer the call. A summary goes around calls that wait for a later run.
        if exchange.unanswered - exchange.waiting and exchange.call.invocation_id == running_invocation:
            spans.append((first, inf))
        elif exchange.responses and not exchange.waiting:
            spans.append((first, indexes[id(exchange.responses[-1])]))
    # Neighbours that a time range cannot separate.
    ends = list(accumulate((time_range(event)[1] for event in events), max))
    starts = list(accumulate((time_range(event)[0] for event in reversed(events)), min))[::-1]
    spans += [(index - 1, index) for index in range(1, len(events)) if ends[index - 1] >= starts[index]]
    cut = limit
    # Latest span first: a cut that moves back may fall into an earlier span, never into a later one.
    for first, last in sorted(spans, reverse=True):
        if first < cut <= last:
            cut = first
    return cut


def _saved_characters(ctx: InvocationContext, compaction: EventCompaction) -> int:
    replaced = current_events(ctx.session).replaced_by(compaction, ctx.isolation_scope)
    return sum(count_characters(_summary_as_message(event).content) for event in replaced)


def _summary_as_message(event: Event) -> Event:
    """The event itself; a summary as a message of the model at the start of its range."""
    if not (compaction := event.actions.compaction):
        return event
    return Event(
        author="model",
        content=compaction.compacted_content,
        timestamp=compaction.start_timestamp,
        invocation_id=event.invocation_id,
        actions=EventActions(),
    )
