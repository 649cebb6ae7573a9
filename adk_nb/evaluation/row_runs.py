"""One row of a batch: its session, its resumption, and the record of its end."""

import hashlib
import json
import logging
from collections.abc import Callable, Collection, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Literal

from adk_nb import clock, types
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.errors import AdkNbError, InputError, SessionBusyError, StateKeyError
from adk_nb.evaluation.case_run import CaseRun, cost_of, invocations_of, unpriced_model
from adk_nb.evaluation.cases import Case
from adk_nb.evaluation.stubs import StubbedCase, stubbed_case
from adk_nb.evaluation.waiting_calls import call_key
from adk_nb.events.event import Event
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.models.llm_response import Attempt, on_wait
from adk_nb.runners import Runner, current_session
from adk_nb.runtime.history import open_interrupts
from adk_nb.runtime.interrupts import Interrupt, answer, decisions_for_all
from adk_nb.runtime.open_calls import CUT_SHORT
from adk_nb.runtime.run_config import RunConfig
from adk_nb.sessions.base_session_service import BaseSessionService
from adk_nb.sessions.journal import Effect, Journal
from adk_nb.sessions.session import Session

logger = logging.getLogger(__name__)

RECORD = "adk_nb_row"
"""Key in the custom_metadata of the event that ends a row: its status, seconds and error."""
USER = "user"

Job = tuple[Case, int]
"""A case and its repeat: 0, 1, ..."""
_STATE_HINT = "; each run begins with an empty state, or with the initial_state of its case"
Status = Literal["done", "error", "pending", "not run"]
"""`pending`: an approval or another interrupt is open. `not run`: the budget was reached, or the batch was stopped."""
Confirm = Literal["ask", "yes", "no"] | Collection[str]
"""Approvals are left open, given or refused; a list of tools: given for these, left open for others."""


@dataclass(kw_only=True, slots=True)
class Row:
    """One run of a case."""

    case: Case
    repeat: int
    """0, 1, ..."""
    session_id: str
    status: Status
    error: str = ""
    seconds: float = 0.0
    cost_usd: float | None = None
    """None: unknown."""
    paid_usd: float | None = 0.0
    """What its model calls cost now, with those that its session does not have, as of an answer that broke off."""
    is_reused: bool = False
    """True: it was done before, and nothing was asked again."""
    events: Sequence[Event] = ()
    """The session's events; the consumer drops them when it has scored them."""
    state: dict[str, Any] | None = None
    interrupts: Sequence[Interrupt] = ()
    """Open interrupts of a pending row."""


@dataclass(kw_only=True, slots=True)
class RowRunner:
    """Runs rows, each in a session of its own."""

    runner: Runner
    agent: BaseAgent
    confirm: Confirm
    run_config: RunConfig
    on_attempt: Callable[[Attempt], None]
    """Called with each failed attempt of a model call."""
    needs_cost: bool
    """Raise InputError for a row whose cost is unknown."""
    version: str
    """Hash of all that the agent reaches. Of the beginning: a redefinition while a batch runs must not split it."""
    stubs: Collection[str] = ()
    """Names of tools that are answered in their place."""

    def session_id(self, case: Case, repeat: int = 0) -> str:
        """Id of a row's session."""
        # The same row has the same id in every process, so a rerun finds what is done.
        identity = f"{self.version}|{case.fingerprint}|{repeat}"
        if self.stubs:
            results = {name: case.stubs.get(name) for name in sorted(self.stubs)}
            identity += f"|{json.dumps(results, sort_keys=True, default=repr)}"
        return f"row-{hashlib.blake2b(identity.encode(), digest_size=10).hexdigest()}"

    async def load(self, case: Case, repeat: int = 0) -> Session | None:
        """The session of a row. None: it did not run."""
        return await self._service.get_session(**self._key(self.session_id(case, repeat)))

    async def run_of(self, row: Row) -> CaseRun:
        """The run of a row, for metrics; its events are read from the store where they are missing."""
        # Rows of a cluster come without events.
        if not row.events and row.status != "not run":
            session = await self.load(row.case, row.repeat)
            row.events, row.state = (session.events, dict(session.state)) if session else ([], {})
        return CaseRun(row.case, row.events, row.state or {}, seconds=row.seconds, error=row.error)

    async def forget(self, case: Case, repeat: int = 0) -> None:
        """Delete the session of a row, so that it runs again from its beginning."""
        await self._service.delete_session(**self._key(self.session_id(case, repeat)))

    async def run(self, case: Case, repeat: int, *, is_retry: bool) -> Row:
        """Run a row, or resume it; one that is done is only read.

        Args:
            case: Its case.
            repeat: Its repeat.
            is_retry: Run it again if it ended with an error.
        """
        key = self._key(self.session_id(case, repeat))
        session = await self._service.get_session(**key)
        row = row_of_session(session, case, repeat) if session else None
        if row and (row.status == "done" or (row.status == "error" and not is_retry)):
            return row
        if row and row.status == "pending":
            return await self._work(case, repeat) if self._answers(row.interrupts) else row
        if session is None or not session.events:
            if session is None:
                await self._service.create_session(**key, state=dict(case.state))
            return await self._work(case, repeat, is_new=True)
        return await self._resume(session, case, repeat)

    async def answer(self, case: Case, repeat: int, *, decision: ToolConfirmation, keys: Collection[str]) -> Row:
        """Answer those of a row's open approvals that have one of these keys, and resume it."""
        session = await self.load(case, repeat)
        row = row_of_session(session, case, repeat) if session else None
        if row is None:
            return await self.run(case, repeat, is_retry=False)
        approvals = [approval for approval in row.interrupts if approval.is_approval and call_key(approval) in keys]
        if not approvals:
            return row
        parts = [answer(approval, decision) for approval in approvals]
        return await self._work(case, repeat, types.Content(role="user", parts=parts))

    async def _resume(self, session: Session, case: Case, repeat: int) -> Row:
        """Resume a row that was interrupted: with a journal in its last invocation, else from its beginning."""
        runs = [event.invocation_id for event in session.events if event.invocation_id]
        answered = [result for event in session.events for result in event.get_function_responses()]
        was_stopped_in_a_call = any(result.response == CUT_SHORT for result in answered)
        # The journal returns the results of calls that were made, so none is repeated.
        if isinstance(self._service, Journal) and runs and not was_stopped_in_a_call:
            return await self._work(case, repeat, resumed_id=runs[-1])
        # The last turn came to an answer: only the next message, or the record of the row's end, is missing.
        last = next((event for event in reversed(session.events) if event.author != "user"), None)
        if last is not None and last.is_final_response() and not last.error_code:
            return await self._work(case, repeat)
        # An interrupted turn may have taken effect: begin anew only if no tool of it may take effect twice.
        effects = _effects(self.agent)
        called = [call.name or "" for event in session.events for call in event.get_function_calls()]
        if tool := next((name for name in called if effects.get(name, "once") == "once"), None):
            row = Row(case=case, repeat=repeat, session_id=session.id, status="error", is_reused=True)
            row.events, row.state = session.events, dict(session.state)
            row.error = (
                f"the run was stopped after {tool} was called: it may have taken effect, so it is not called again. "
                "Give it the effect 'pure' or 'idempotent' if that is harmless; rerun(failed=True) begins anew"
            )
            return row
        await self.forget(case, repeat)
        await self._service.create_session(**self._key(session.id), state=dict(case.state))
        return await self._work(case, repeat, is_new=True)

    async def _work(
        self,
        case: Case,
        repeat: int,
        message: types.Content | None = None,
        *,
        resumed_id: str | None = None,
        is_new: bool = False,
    ) -> Row:
        """Send a row's messages, and answer approvals as `confirm` says, to its end or to an open interrupt.

        Args:
            case: Its case.
            repeat: Its repeat.
            message: Answers to its open interrupts.
            resumed_id: The invocation to resume.
            is_new: Its session has no event.
        """
        session_id, started = self.session_id(case, repeat), clock.ticks()
        # A context variable: rows run at once in one loop.
        token = on_wait.set(self.on_attempt)
        stub_token = stubbed_case.set(StubbedCase(case=case))
        error = ""
        try:
            if message or resumed_id:
                await self._turn(session_id, message, resumed_id)
            # A resumed row has sent some of its messages already.
            contents = list(case.contents())
            if not is_new:
                of_user = [
                    event.content for event in (await self._session(session_id)).events if event.author == "user"
                ]
                sent = [of for of in of_user if of and not any(part.function_response for part in of.parts or ())]
                contents = contents[len(sent) :]
            is_open = False
            for content in contents:
                # An open approval is answered before the next message, or ends the row here.
                if not is_new and (is_open := await self._settle(session_id)):
                    break
                is_new = False
                await self._turn(session_id, content)
            if not is_open:
                await self._settle(session_id)
        # Another process runs this row, so there is no result to record.
        except SessionBusyError:
            raise
        except Exception as failure:
            logger.info("case %r, repeat %d", case.id, repeat, exc_info=True)
            error = f"{type(failure).__name__}: {failure}{_STATE_HINT if isinstance(failure, StateKeyError) else ''}"
        finally:
            on_wait.reset(token)
            stubbed_case.reset(stub_token)
        return await self._finish(session_id, case, repeat, error, clock.ticks() - started)

    async def _settle(self, session_id: str) -> bool:
        """Answer open approvals as `confirm` says; True: an interrupt is left open, or the run failed."""
        while True:
            events = (await self._session(session_id)).events
            interrupts = _open_interrupts(events)
            answers = self._answers(interrupts)
            if not answers:
                return bool(interrupts) or _error_of(events) != ""
            await self._turn(session_id, types.Content(role="user", parts=answers))

    def _answers(self, interrupts: Sequence[Interrupt]) -> list[types.Part]:
        """The answers that `confirm` gives; whether to repeat a call that may have taken effect is left to a person."""
        approvals = [interrupt for interrupt in interrupts if interrupt.is_approval and not interrupt.in_doubt]
        if self.confirm == "ask":
            return []
        if isinstance(self.confirm, str):
            confirmed, by = self.confirm == "yes", f"confirm={self.confirm!r}"
        else:
            confirmed, by = True, "confirm=[...]"
            approvals = [approval for approval in approvals if approval.call.name in self.confirm]
        decisions = decisions_for_all(approvals, confirmed=confirmed, by=by)
        return [answer(approval, decisions[approval.id]) for approval in approvals]

    async def _turn(self, session_id: str, message: types.Content | None, resumed_id: str | None = None) -> None:
        events = self.runner.run_async(
            user_id=USER,
            session_id=session_id,
            new_message=message,
            invocation_id=resumed_id,
            run_config=self.run_config,
        )
        async with aclosing(events):
            async for _ in events:
                pass

    async def _session(self, session_id: str) -> Session:
        """The session as its last run left it, to be read only."""
        session = await current_session(self.runner, USER, session_id)
        if session is None:
            raise InputError(f"session {session_id!r} of a row was deleted while it ran; run it again")
        return session

    async def _finish(self, session_id: str, case: Case, repeat: int, error: str, seconds: float) -> Row:
        session = await self._session(session_id)
        # A copy: the record that is appended below is no event of the run.
        events = list(session.events)
        interrupts = _open_interrupts(events)
        error = error or _error_of(events)
        status: Status = "error" if error else "pending" if interrupts else "done"
        row = Row(case=case, repeat=repeat, session_id=session_id, status=status, error=error, seconds=seconds)
        row.cost_usd = self._cost(events)
        record = {"status": status, "seconds": round(seconds, 6), "error": error, "cost_usd": row.cost_usd}
        # Last: to every process, a row that has its record has ended.
        await self._service.append_event(session, Event(author=USER, custom_metadata={RECORD: record}))
        row.events, row.state, row.interrupts = events, dict(session.state), interrupts
        return row

    def _cost(self, events: Sequence[Event]) -> float | None:
        try:
            cost = cost_of(events)
        except AdkNbError:
            return None
        if cost is None and self.needs_cost:
            raise InputError(
                f"no price is known for model {unpriced_model(events)!r}, so no budget can be kept; leave it out"
            )
        return cost

    def _key(self, session_id: str) -> dict[str, Any]:
        return {"app_name": self.runner.app_name, "user_id": USER, "session_id": session_id}

    @property
    def _service(self) -> BaseSessionService:
        return self.runner.session_service


async def load_run(service: BaseSessionService, app_name: str, session_id: str) -> CaseRun | None:
    """The run of a row, by the id of its session. None: there is no such session."""
    session = await service.get_session(app_name=app_name, user_id=USER, session_id=session_id)
    if session is None:
        return None
    messages = tuple(turn.user_content for turn in invocations_of(session.events))
    return CaseRun(Case(id=session_id, messages=messages), session.events, session.state, seconds=0.0)


def row_of_session(session: Session, case: Case, repeat: int) -> Row | None:
    """The row of a session that has its record. None: it has none, since the row was interrupted."""
    record: dict[str, Any] | None = None
    if session.events:
        record = (session.events[-1].custom_metadata or {}).get(RECORD)
    if record is None:
        return None
    row = Row(case=case, repeat=repeat, session_id=session.id, status=record["status"], error=record["error"])
    row.seconds, row.cost_usd, row.is_reused = record["seconds"], record["cost_usd"], True
    row.events, row.state = session.events, dict(session.state)
    row.interrupts = _open_interrupts(session.events) if row.status == "pending" else ()
    return row


def waiting_calls(row: Row) -> list[Interrupt]:
    """The open approvals of a row; of one that comes from a cluster once it has its events."""
    return [one for one in row.interrupts or _open_interrupts(row.events) if one.is_approval]


def _open_interrupts(events: Sequence[Event]) -> Sequence[Interrupt]:
    return open_interrupts(events) if any(event.long_running_tool_ids for event in events) else ()


def _error_of(events: Sequence[Event]) -> str:
    """The error that ended the last run; empty if it did not fail."""
    for event in reversed(events):
        if event.author == "user":
            continue
        return f"{event.error_code}: {event.error_message or ''}".rstrip(": ") if event.error_code else ""
    return ""


def _effects(agent: BaseAgent) -> dict[str, Effect]:
    """Name -> effect of the tools of an agent and of those below it."""
    effects: dict[str, Effect] = {}
    for below in agent.sub_agents:
        effects |= _effects(below)
    if isinstance(agent, LlmAgent):
        effects |= {tool.name: tool.effect for tool in agent.tools_now()}
    return effects
