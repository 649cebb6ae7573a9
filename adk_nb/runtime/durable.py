"""The seam between the calls of tools and the journal: each is noted before it is made, and after it with its result.

What was noted of a run that was cut decides what may happen again. The model never hears of it.
"""

import logging
from collections.abc import Awaitable, Iterable, Sequence
from datetime import datetime
from typing import Any, Protocol

from adk_nb import types
from adk_nb.errors import StaleSessionError, StorageError
from adk_nb.events.event import Event
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.runtime.context import Context
from adk_nb.runtime.history import history_of
from adk_nb.runtime.interrupts import use_key
from adk_nb.runtime.invocation_context import Decided, InvocationContext
from adk_nb.sessions.journal import Attempt, Effect, Intent
from adk_nb.wire import not_json

logger = logging.getLogger(__name__)


class Durable(Protocol):
    """Where effects are noted. The lease of a session in a journal is one."""

    def attempts(self, run_id: str, /) -> Awaitable[Sequence[Attempt]]: ...

    def begin(self, intent: Intent, consumes: Sequence[str] = (), /) -> Awaitable[Attempt | None]: ...

    def finish(self, attempt: Attempt, outcome: Any = None, /) -> Awaitable[None]: ...


class Step:
    """One call of a tool, from the moment at which it may be made to that at which its result is known."""

    def __init__(self, durable: Durable, intent: Intent, last: Attempt | None, *, is_edited: bool) -> None:
        """`last`: how it was begun before, if it was. `is_edited`: its agent or tool were, since it was asked for."""
        self._durable = durable
        self._is_edited = is_edited
        self._last = last
        self.intent = intent
        self.attempt: Attempt | None = None
        """Set once it is begun."""
        self.failed: Exception | None = None
        """Why it could not be noted: then the call is not made, and the run ends."""

    @property
    def in_doubt(self) -> bool:
        """True: it was begun, and nobody knows whether it came to its end."""
        return self._last is not None and self._last.outcome is None

    @property
    def begun(self) -> int:
        """How often it was begun by runs before this one."""
        return self._last.number if self._last else 0

    def recorded(self, *, answered: bool) -> Any:
        """What it came to, in a run that was cut before it could tell. None: it is to be called, as is one that asked
        something while it ran, if this run has what was `answered`.
        """
        known = self._last.outcome if self._last else None
        return None if known and known["asks"] and answered else known

    def doubt(self, own: ToolConfirmation | None) -> ToolConfirmation | None:
        """What a person is asked before the call may be made: what the tool itself asks (`own`), and what the journal
        has them know. None: nothing.
        """
        if self.in_doubt and self.intent.effect == "once" and self._last:
            began = datetime.fromtimestamp(self._last.started).astimezone().isoformat(" ", "seconds")
            words = f"{self.intent.name}() was begun at {began}, and its run was cut: it may already have happened"
        elif self._is_edited:
            words = f"agents or tools were edited since {self.intent.name}() was called"
        else:
            return own
        hint = f"{words}. {own.hint}" if own and own.hint else f"{words}. Call it now?"
        return ToolConfirmation(hint=hint, payload=own.payload if own else None)

    async def begin(self, decided: Decided | None, context: Context) -> bool:
        """Note that the call is made now, and with it that the approval is used up. False: that was used before."""
        consumes = [use_key(decided.request, "approval")] if decided and decided.request else []
        try:
            attempt = await self._durable.begin(self.intent, consumes)
            if attempt is None and self.in_doubt and self.intent.effect != "once":
                attempt = await self._durable.begin(self.intent)  # it was approved, and is the same call
        except (StaleSessionError, StorageError) as error:
            self.failed = error
            raise
        if attempt is None:
            return False
        self.attempt = attempt
        context.note_attempt(attempt)
        context.repeated = attempt.number if self.in_doubt else 0
        return True

    async def finish(self, outcome: dict[str, Any]) -> None:
        """Note what came of it; JSON."""
        if self.attempt and not not_json(outcome):
            await self._durable.finish(self.attempt, outcome)

    @property
    def event_id(self) -> str | None:
        """Of the event with the result: the same whoever tells it. None: it was not begun."""
        attempt = self.attempt or self._last
        return self.intent.event_id(f"result {attempt.number}") if attempt else None


def step_of(ctx: InvocationContext, call: types.FunctionCall, name: str, effect: Effect) -> Step | None:
    """The step that a call is. None: its session has no journal."""
    durable: Durable | None = ctx.session.lease
    if durable is None:
        return None
    intent, begun = _intent(ctx, call, name, effect), ctx.shared.begun
    return Step(durable, intent, begun.get(intent.key), is_edited=ctx.shared.is_edited and intent.key in begun)


async def recall(ctx: InvocationContext, calls: Iterable[types.FunctionCall]) -> None:
    """Read in the journal what was begun of `calls`, which are older than this run, or than its going on."""
    durable: Durable | None = ctx.session.lease
    if durable is None:
        return
    intents = [one for one in (_intent(ctx, call) for call in calls) if one.key not in ctx.shared.begun]
    ctx.shared.begun |= dict.fromkeys(one.key for one in intents)
    for run_id in {one.run_id for one in intents}:
        ctx.shared.begun |= {one.intent.key: one for one in await durable.attempts(run_id)}


def _intent(ctx: InvocationContext, call: types.FunctionCall, name: str = "", effect: Effect = "once") -> Intent:
    """Of the run that made the call: it may be another that answers it. Some services number the calls of each answer
    anew, so the event is named as well.
    """
    made = _made_in(ctx, call)
    return Intent(
        run_id=made.invocation_id if made else ctx.invocation_id,
        branch=ctx.branch or "",
        call_id=f"{call.id}@{made.id}" if made else call.id or "",
        name=name,
        effect=effect,
    )


def _made_in(ctx: InvocationContext, call: types.FunctionCall) -> Event | None:
    """The event that made `call`; of several calls under its id, the newest with its arguments, or else the newest."""
    made = history_of(ctx.session).calls.all(call.id)
    same = next((record for record in reversed(made) if record.call.args == call.args), None)
    newest = same or (made[-1] if made else None)
    return newest.event if newest else None
