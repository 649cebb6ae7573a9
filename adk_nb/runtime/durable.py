"""Durable tool calls: write each call to the journal before it runs, and its outcome after it.

After an interruption the journal decides which calls may run again. The model never sees it.
"""

import logging
from collections.abc import Awaitable, Iterable, Sequence
from datetime import datetime
from typing import Any, Protocol

from adk_nb import types
from adk_nb.errors import StaleSessionError, StorageError
from adk_nb.events.event import Event
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.runtime.context import Context, call_state
from adk_nb.runtime.history import history_of
from adk_nb.runtime.interrupts import use_key
from adk_nb.runtime.invocation_context import Decision, InvocationContext
from adk_nb.sessions.journal import Attempt, Effect, Intent
from adk_nb.wire import copy_model, json_problem

logger = logging.getLogger(__name__)


class CallJournal(Protocol):
    """The journal of a session's tool calls; a session's `Lease` implements it."""

    def attempts(self, run_id: str, /) -> Awaitable[Sequence[Attempt]]:
        """The newest attempt of each call of a run."""
        ...

    def begin(self, intent: Intent, consumes: Sequence[str] = (), /) -> Awaitable[Attempt | None]:
        """Record that a call starts now, and consume the once-keys. None: a key was consumed before."""
        ...

    def finish(self, attempt: Attempt, outcome: Any = None, /) -> Awaitable[None]:
        """Record the outcome of an attempt; JSON."""
        ...


class DurableCall:
    """One tool call in the journal."""

    def __init__(self, journal: CallJournal, intent: Intent, last: Attempt | None, *, is_edited: bool) -> None:
        """`last`: the previous attempt, if any. `is_edited`: its agent or tool changed since the model called it."""
        self._journal = journal
        self._is_edited = is_edited
        self._last = last
        self.intent = intent
        self.attempt: Attempt | None = None
        """Set by `begin`."""
        self.error: Exception | None = None
        """The storage error that stopped the call before it ran; the run ends with it."""

    @property
    def in_doubt(self) -> bool:
        """True: an earlier attempt started and has no outcome, so the call may have taken effect."""
        return self._last is not None and self._last.outcome is None

    @property
    def previous_attempts(self) -> int:
        """Number of attempts in earlier runs."""
        return self._last.number if self._last else 0

    def recorded_outcome(self, *, has_answers: bool) -> Any:
        """The outcome from an interrupted run. None: call the tool.

        A tool that asked something while it ran is called again if the run `has_answers` for it.
        """
        outcome = self._last.outcome if self._last else None
        return None if outcome and outcome["asks"] and has_answers else outcome

    def confirmation_needed(self, requested: ToolConfirmation | None) -> ToolConfirmation | None:
        """The approval to ask for before the call: the tool's own (`requested`), with a warning from the journal.

        None: no approval is needed.
        """
        may_have_run = self.in_doubt and self.intent.effect == "once"
        if may_have_run and self._last:
            started = datetime.fromtimestamp(self._last.started).astimezone().isoformat(" ", "seconds")
            reason = (
                f"{self.intent.name}() started at {started} in a run that was interrupted: it may have taken effect"
            )
        elif self._is_edited:
            reason = f"agents or tools were edited after {self.intent.name}() was called"
        else:
            return requested
        hint = f"{reason}. {requested.hint}" if requested and requested.hint else f"{reason}. Call it now?"
        asked = requested or ToolConfirmation()
        return copy_model(asked, hint=hint, in_doubt=may_have_run or None, for_turn=None)

    async def begin(self, decision: Decision | None, context: Context) -> bool:
        """Record the start of the call and consume its approval at once. False: the approval was consumed before."""
        consumes = [use_key(decision.request_id, "approval")] if decision and decision.request_id else []
        try:
            attempt = await self._journal.begin(self.intent, consumes)
            if attempt is None and self.in_doubt and self.intent.effect != "once":
                attempt = await self._journal.begin(
                    self.intent
                )  # an earlier attempt of this same call consumed the approval
        except (StaleSessionError, StorageError) as error:
            self.error = error
            raise
        if attempt is None:
            return False
        self.attempt = attempt
        state = call_state(context)
        state.attempt, state.attempt_in_doubt = attempt, attempt.number if self.in_doubt else 0
        return True

    async def finish(self, outcome: dict[str, Any]) -> None:
        """Record the outcome; skipped if it is not JSON."""
        if self.attempt and not json_problem(outcome):
            await self._journal.finish(self.attempt, outcome)

    @property
    def event_id(self) -> str | None:
        """Id of the event with the result, the same in every run that writes it. None: the call was not started."""
        attempt = self.attempt or self._last
        return self.intent.event_id(f"result {attempt.number}") if attempt else None


def durable_call(ctx: InvocationContext, call: types.FunctionCall, name: str, effect: Effect) -> DurableCall | None:
    """The journal entry of a call. None: its session has no journal."""
    journal: CallJournal | None = ctx.session.lease
    if journal is None:
        return None
    intent, attempts = _intent(ctx, call, name, effect), ctx.shared.earlier_attempts
    return DurableCall(
        journal, intent, attempts.get(intent.key), is_edited=ctx.shared.is_edited and intent.key in attempts
    )


async def load_attempts(ctx: InvocationContext, calls: Iterable[types.FunctionCall]) -> None:
    """Load the journal's attempts of `calls`, which an earlier run made."""
    journal: CallJournal | None = ctx.session.lease
    if journal is None:
        return
    intents = [
        intent for intent in (_intent(ctx, call) for call in calls) if intent.key not in ctx.shared.earlier_attempts
    ]
    # Also calls without an attempt: the key marks a call as looked up.
    ctx.shared.earlier_attempts |= dict.fromkeys(intent.key for intent in intents)
    for run_id in {intent.run_id for intent in intents}:
        ctx.shared.earlier_attempts |= {attempt.intent.key: attempt for attempt in await journal.attempts(run_id)}


def has_begun(ctx: InvocationContext, call_id: str | None, event: Event) -> bool:
    """True if an interrupted run started the call that `event` made, according to the attempts loaded so far."""
    key = f"{call_id}@{event.id}"
    return any(attempt and attempt.intent.call_id == key for attempt in ctx.shared.earlier_attempts.values())


def _intent(ctx: InvocationContext, call: types.FunctionCall, name: str = "", effect: Effect = "once") -> Intent:
    """The intent of a call, in the run that made it.

    Some model services number the calls of each response from 1, so the call id includes the id of its event.
    """
    # Of several calls with that id, the newest with these arguments, or else the newest.
    records = history_of(ctx.session).calls.all(call.id)
    same = next((record for record in reversed(records) if record.call.args == call.args), None)
    newest = same or (records[-1] if records else None)
    event = newest.event if newest else None
    return Intent(
        run_id=event.invocation_id if event else ctx.invocation_id,
        branch=ctx.branch or "",
        call_id=f"{call.id}@{event.id}" if event else call.id or "",
        name=name,
        effect=effect,
    )
