"""The engine: run an agent over many cases, a session a row, resumable and within a budget."""

import asyncio
import hashlib
import logging
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Literal

from adk_nb import clock, types
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.apps.app import App
from adk_nb.artifacts.in_memory_artifact_service import InMemoryArtifactService
from adk_nb.errors import AdkNbError, InputError, SessionBusyError
from adk_nb.evaluation.case_run import cost_of, unpriced_model
from adk_nb.evaluation.cases import Case
from adk_nb.evaluation.fingerprint import agent_fingerprint
from adk_nb.evaluation.rate import Rate
from adk_nb.events.event import Event
from adk_nb.models import prices
from adk_nb.models.llm_response import Attempt, on_wait
from adk_nb.runners import Runner
from adk_nb.runtime.history import open_interrupts
from adk_nb.runtime.interrupts import Interrupt, answer
from adk_nb.runtime.run_config import ResumabilityConfig, RunConfig
from adk_nb.sessions.base_session_service import BaseSessionService
from adk_nb.sessions.in_memory_session_service import InMemorySessionService
from adk_nb.sessions.journal import Journal
from adk_nb.sessions.session import Session

logger = logging.getLogger(__name__)

RECORD = "adk_nb_row"
"""Key in the custom_metadata of the event that ends a row: its status, seconds and error."""
USER = "user"
PROJECTED_AFTER = 5
"""Rows after which cost and time of the rest are projected."""
_REFUSED = "HTTP 429"
_MAX_REFUSALS = 8
"""Times that a row is run again after its model's service refused it for good."""

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
    is_reused: bool = False
    """True: it was done before, and nothing was asked again."""
    events: Sequence[Event] = ()
    """The session's events; the consumer drops them when it has scored them."""
    state: dict[str, Any] | None = None
    interrupts: Sequence[Interrupt] = ()
    """Open interrupts of a pending row."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Counts, cost and time of a batch."""

    total: int | None
    """Rows. None: not known in advance."""
    done: int = 0
    """Rows with an answer, the reused included."""
    reused: int = 0
    running: int = 0
    failed: int = 0
    pending: int = 0
    not_run: int = 0
    cost_usd: float | None = 0.0
    """Spent by this batch now. None: unknown."""
    seconds: float = 0.0
    """Since the start."""
    waiting_seconds: float = 0.0
    """Until the next row starts, as a service asked."""
    is_paused: bool = False
    """More than `confirm_above_usd` is projected, so no further row starts."""

    @property
    def finished(self) -> int:
        """Rows that ended in any way."""
        return self.done + self.failed + self.pending

    @property
    def is_over(self) -> bool:
        """No row runs, and none will."""
        return self.total is not None and self.finished + self.not_run >= self.total

    @property
    def remaining_seconds(self) -> float | None:
        """Projected seconds of the rows that are left. None: too early to say."""
        worked = self.finished - self.reused
        if self.total is None or worked < PROJECTED_AFTER:
            return None
        return self.seconds / worked * (self.total - self.finished - self.not_run)

    @property
    def projected_usd(self) -> float | None:
        """Projected cost of the whole batch. None: too early to say, or unknown."""
        worked = self.finished - self.reused
        if self.total is None or self.cost_usd is None or worked < PROJECTED_AFTER:
            return None
        return self.cost_usd / worked * (self.total - self.reused)


class Batch:
    """Runs an agent over cases.

    Each row is a session of its own, whose id is derived from the agent, the case and the repeat. A row that is done
    is in its session, and is not run again until the agent, one of its tools, or what the case asks changes.

    Args:
        agent: An agent, or an app with an agent and plugins.
        session_service: Keeps the rows. With a journal, a batch resumes after the death of its process, and tools
            with the effect `once` are not called again. None: this process's memory.
        app_name: The app of the sessions. None: the app's name, or `evaluation`.
        max_concurrency: Most rows at once; the rate itself is found from the services' refusals.
        budget_usd: US dollars that the batch may cost; at the budget no further row starts.
        confirm_above_usd: If more US dollars than these are projected after five rows, no further row starts, and
            `progress.is_paused`; the next `run` goes on. Not on a cluster.
        confirm: Approvals in the rows.
        run_config: Of every run.
        on_progress: Called at most once a second, and at the end.
        scheduler: Address of a Dask scheduler, whose workers run the rows.

    Raises:
        InputError: `budget_usd` or `max_concurrency` is not positive.
        MissingExtraError: There is a budget, and the table of prices is not installed.
    """

    def __init__(
        self,
        agent: BaseAgent | App,
        *,
        session_service: BaseSessionService | None = None,
        app_name: str | None = None,
        max_concurrency: int = 32,
        budget_usd: float | None = None,
        confirm_above_usd: float | None = None,
        confirm: Confirm = "ask",
        run_config: RunConfig | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        scheduler: str | None = None,
    ) -> None:
        if budget_usd is not None and not budget_usd > 0:
            raise InputError(f"a budget is more than 0 US dollars, got {budget_usd}; leave it out for no limit")
        if max_concurrency < 1:
            raise InputError(f"max_concurrency is 1 or more, got {max_concurrency}")
        if isinstance(confirm, str) and confirm not in ("ask", "yes", "no"):
            raise InputError(f"confirm is 'ask', 'yes', 'no' or a list of tools, got {confirm!r}")
        if budget_usd is not None:
            prices.load()
        self.session_service = session_service or InMemorySessionService()
        self.agent = agent.root_agent if isinstance(agent, App) else agent
        self.is_app = isinstance(agent, App)
        self.runner = _runner(agent, app_name, self.session_service)
        self.max_concurrency = max_concurrency
        self.budget_usd = budget_usd
        self.confirm_above_usd = confirm_above_usd
        self.progress = Progress(total=None)
        self.scheduler = scheduler
        self.version = agent_fingerprint(self.agent)
        self.confirm: Confirm = confirm
        self.run_config = run_config or RunConfig()
        self._on_progress = on_progress
        self._reported_at = 0.0
        self._rate = Rate(max_concurrency)
        self._is_stopped = False

    def session_id(self, case: Case, repeat: int = 0) -> str:
        """Id of a row's session."""
        identity = f"{self.version}|{case.fingerprint}|{repeat}"
        return f"row-{hashlib.blake2b(identity.encode(), digest_size=10).hexdigest()}"

    def stop(self) -> None:
        """Start no further row; those that run come to their end."""
        self._is_stopped = True

    async def run(
        self, cases: Iterable[Case], *, repeats: int = 1, total: int | None = None, is_retry: bool = False
    ) -> AsyncGenerator[Row, None]:
        """Yield each row as it ends, in the order of ending.

        Args:
            cases: Read one at a time, so that a long table need not be in memory.
            repeats: Runs of each case.
            total: Number of cases, for the projection. None: `len(cases)` if it has one.
            is_retry: Rows that ended with an error before run again, too.

        Raises:
            InputError: There is a budget, and the price of a model is not known.
        """
        count = total if total is not None else len(cases) if isinstance(cases, Sequence) else None
        self.progress, self._is_stopped = Progress(total=None if count is None else count * repeats), False
        rows = self.run_rows(((case, repeat) for case in cases for repeat in range(repeats)), is_retry=is_retry)
        async with aclosing(rows):
            async for row in rows:
                yield row

    async def run_rows(
        self, remaining: Iterator[tuple[Case, int]], *, is_retry: bool = False
    ) -> AsyncGenerator[Row, None]:
        """As `run`, of single repeats."""
        started, running = clock.ticks(), set[asyncio.Task[Row]]()
        try:
            # Rows are started as they are needed: a long table is never in memory.
            while self._start_rows(remaining, running, is_retry) or running:
                if running:
                    # A second at most, for the progress and for rows that a service has held back.
                    done, running = await asyncio.wait(running, timeout=1.0, return_when=asyncio.FIRST_COMPLETED)
                else:
                    done = set[asyncio.Task[Row]]()
                    await asyncio.sleep(min(1.0, self._rate.wait_seconds))
                for task in done:
                    row = task.result()
                    self.count(row)
                    self._pause_if_dear()
                    yield row
                self._report(started, len(running))
            # Stopped, or out of budget: every row gets a result.
            for case, repeat in remaining:
                row = Row(case=case, repeat=repeat, session_id=self.session_id(case, repeat), status="not run")
                self.count(row)
                yield row
        finally:
            # The reader left: a row without its record runs again the next time.
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            self._report(started, 0, is_last=True)

    async def answer(self, case: Case, repeat: int, *, is_approved: bool, tool: str | None = None) -> None:
        """Approve or reject the open approvals of a row, and let it run on. `tool`: only calls of this tool."""
        session = await self.load(case, repeat)
        interrupts = _open_interrupts(session.events) if session else ()
        approvals = [
            interrupt for interrupt in interrupts if interrupt.is_approval and tool in (None, interrupt.call.name)
        ]
        if approvals:
            parts = [answer(approval, is_approved) for approval in approvals]
            await self._work(case, repeat, types.Content(role="user", parts=parts))

    async def load(self, case: Case, repeat: int = 0) -> Session | None:
        """The session of a row. None: it did not run."""
        return await self.session_service.get_session(**self._key(self.session_id(case, repeat)))

    async def forget(self, case: Case, repeat: int = 0) -> None:
        """Delete the session of a row, so that it runs again from its beginning."""
        await self.session_service.delete_session(**self._key(self.session_id(case, repeat)))

    async def close(self) -> None:
        """Close the plugins of the app; agents stay as they are."""
        await self.runner.plugin_manager.close()

    # ---- one row

    def _start_rows(
        self, remaining: Iterator[tuple[Case, int]], running: set[asyncio.Task[Row]], is_retry: bool
    ) -> bool:
        """Start as many rows as may run; False: no further row starts."""
        while not self._is_stopped and self._has_budget(len(running)):
            if len(running) >= self._rate.limit:
                return True
            item = next(remaining, None)
            if item is None:
                return False
            running.add(asyncio.create_task(self._row(*item, is_retry=is_retry)))
        return False

    def _pause_if_dear(self) -> None:
        limit, projected = self.confirm_above_usd, self.progress.projected_usd
        if limit is not None and projected is not None and projected > limit:
            self.confirm_above_usd, self._is_stopped = None, True  # asked once: the next run goes on
            self.progress = replace(self.progress, is_paused=True)

    def _has_budget(self, running: int) -> bool:
        if self.budget_usd is None:
            return True
        spent, worked = self.progress.cost_usd or 0.0, self.progress.finished - self.progress.reused
        expected = spent / worked if worked else 0.0
        # The first row runs alone: only it tells what a row costs.
        return spent + expected * (running + 1) <= self.budget_usd and not (worked == 0 and running)

    async def _row(self, case: Case, repeat: int, *, is_retry: bool) -> Row:
        row = await self._attempt(case, repeat, is_retry=is_retry)
        refusals = 0
        # The model's own retries are used up: the row waits with all others, then runs again.
        while _is_refused(row) and refusals < _MAX_REFUSALS:
            refusals += 1
            self._rate.refuse(1.0)
            await asyncio.sleep(self._rate.wait_seconds)
            row = await self._attempt(case, repeat, is_retry=True)
        return row

    async def _attempt(self, case: Case, repeat: int, *, is_retry: bool) -> Row:
        key = self._key(self.session_id(case, repeat))
        session = await self.session_service.get_session(**key)
        row = row_of_session(session, case, repeat) if session else None
        if row and (row.status == "done" or (row.status == "error" and not is_retry)):
            return row
        if row and row.status == "pending":
            return await self._work(case, repeat) if self._answers(row.interrupts) else row
        if session is None or not session.events:
            if session is None:
                await self.session_service.create_session(**key, state=dict(case.state))
            return await self._work(case, repeat, is_new=True)
        return await self._resume(session, case, repeat)

    async def _resume(self, session: Session, case: Case, repeat: int) -> Row:
        """Let a row run on that did not end: with a journal in its last invocation, else from its beginning."""
        runs = [event.invocation_id for event in session.events if event.invocation_id]
        # Calls that were made are not repeated.
        if isinstance(self.session_service, Journal) and runs:
            return await self._work(case, repeat, resumed_id=runs[-1])
        # Only the record of its end, or its next message, is missing.
        if _is_whole(session.events):
            return await self._work(case, repeat)
        # Without a journal nobody knows what a cut turn has done: begin anew.
        await self.session_service.delete_session(**self._key(session.id))
        await self.session_service.create_session(**self._key(session.id), state=dict(case.state))
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
        """Run a row to its end, or to an open interrupt.

        Args:
            case: Its case.
            repeat: Its repeat.
            message: Answers to its open interrupts.
            resumed_id: The invocation to resume.
            is_new: Its session has no event.
        """
        session_id, started = self.session_id(case, repeat), clock.ticks()
        token = on_wait.set(self._note_attempt)
        error = ""
        try:
            if message or resumed_id:
                await self._turn(session_id, message, resumed_id)
            await self._converse(session_id, case, is_new=is_new)
        # Another process runs this row: that is no result of it.
        except SessionBusyError:
            raise
        except Exception as failure:
            logger.info("case %r, repeat %d", case.id, repeat, exc_info=True)
            error = f"{type(failure).__name__}: {failure}"
        finally:
            on_wait.reset(token)
        return await self._finish(session_id, case, repeat, error, clock.ticks() - started)

    async def _converse(self, session_id: str, case: Case, *, is_new: bool) -> None:
        """Send the messages that were not sent yet, and answer approvals as `confirm` says."""
        contents = list(case.contents())
        # A resumed row has sent some of its messages already.
        for content in contents if is_new else contents[await self._sent(session_id) :]:
            # An open approval is answered before the next message, or ends the row here.
            if not is_new and await self._settle(session_id):
                return
            is_new = False
            await self._turn(session_id, content)
        await self._settle(session_id)

    async def _sent(self, session_id: str) -> int:
        return _sent_messages((await self._session(session_id)).events)

    async def _settle(self, session_id: str) -> bool:
        """Answer open approvals; True: something is left open, or the run failed."""
        while True:
            events = (await self._session(session_id)).events
            interrupts = _open_interrupts(events)
            answers = self._answers(interrupts)
            if not answers:
                return bool(interrupts) or _error_of(events) != ""
            await self._turn(session_id, types.Content(role="user", parts=answers))

    def _answers(self, interrupts: Sequence[Interrupt]) -> list[types.Part]:
        """The answers that `confirm` gives."""
        approvals = [interrupt for interrupt in interrupts if interrupt.is_approval]
        if self.confirm == "ask":
            return []
        if isinstance(self.confirm, str):
            return [answer(approval, self.confirm == "yes") for approval in approvals]
        return [answer(approval, True) for approval in approvals if approval.call.name in self.confirm]

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
        session = await self.runner.look_at(USER, session_id)
        if session is None:
            raise InputError(f"session {session_id!r} of a row was deleted while it ran; run it again")
        return session

    async def _finish(self, session_id: str, case: Case, repeat: int, error: str, seconds: float) -> Row:
        session = await self._session(session_id)
        events = list(session.events)
        interrupts = _open_interrupts(events)
        error = error or _error_of(events)
        status: Status = "error" if error else "pending" if interrupts else "done"
        row = Row(case=case, repeat=repeat, session_id=session_id, status=status, error=error, seconds=seconds)
        row.cost_usd = self._cost(events)
        record = {"status": status, "seconds": round(seconds, 6), "error": error, "cost_usd": row.cost_usd}
        # The record is stored last: a row with it is done, whatever process asks.
        await self.session_service.append_event(session, Event(author=USER, custom_metadata={RECORD: record}))
        row.events, row.state, row.interrupts = events, dict(session.state), interrupts
        return row

    def _cost(self, events: Sequence[Event]) -> float | None:
        try:
            cost = cost_of(events)
        except AdkNbError:
            return None
        if cost is None and self.budget_usd is not None:
            raise InputError(
                f"no price is known for model {unpriced_model(events)!r}, so the budget of ${self.budget_usd:g} cannot "
                "be kept; leave the budget out"
            )
        return cost

    def _key(self, session_id: str) -> dict[str, Any]:
        return {"app_name": self.runner.app_name, "user_id": USER, "session_id": session_id}

    # ---- rate and progress

    def _note_attempt(self, attempt: Attempt) -> None:
        if attempt.error == _REFUSED:
            self._rate.refuse(attempt.waited)

    def count(self, row: Row) -> None:
        """Add a row to the progress."""
        progress = self.progress
        name = {"done": "done", "error": "failed", "pending": "pending", "not run": "not_run"}[row.status]
        changes: dict[str, Any] = {name: getattr(progress, name) + 1}
        if row.is_reused:
            changes["reused"] = progress.reused + 1
        elif row.status != "not run":
            # One unknown cost makes the sum unknown.
            unknown = row.cost_usd is None or progress.cost_usd is None
            changes["cost_usd"] = None if unknown else (progress.cost_usd or 0.0) + (row.cost_usd or 0.0)
            if row.status == "done":
                self._rate.succeed()
        self.progress = replace(progress, **changes)

    def _report(self, started: float, running: int, *, is_last: bool = False) -> None:
        now = clock.ticks()
        self.progress = replace(
            self.progress, running=running, seconds=now - started, waiting_seconds=self._rate.wait_seconds
        )
        if self._on_progress and (is_last or now - self._reported_at >= 1.0):
            self._reported_at = now
            self._on_progress(self.progress)


def row_of_session(session: Session, case: Case, repeat: int) -> Row | None:
    """The row that a session keeps. None: it did not end."""
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


def _runner(agent: BaseAgent | App, app_name: str | None, service: BaseSessionService) -> Runner:
    artifacts = InMemoryArtifactService()
    if isinstance(agent, App):
        return Runner(app=agent, app_name=app_name, session_service=service, artifact_service=artifacts)
    # Checkpoints cost an event for each step, so only where the journal needs them.
    is_resumable = isinstance(service, Journal) and not _has_models_only(agent)
    app = App(
        name=app_name or "evaluation",
        root_agent=agent,
        resumability_config=ResumabilityConfig(is_resumable=True) if is_resumable else None,
    )
    return Runner(app=app, session_service=service, artifact_service=artifacts)


def _has_models_only(agent: BaseAgent) -> bool:
    """True: the journal alone resumes its runs; other agents need checkpoints."""
    return isinstance(agent, LlmAgent) and all(map(_has_models_only, agent.members))


def _open_interrupts(events: Sequence[Event]) -> Sequence[Interrupt]:
    return open_interrupts(events) if any(event.long_running_tool_ids for event in events) else ()


def _sent_messages(events: Sequence[Event]) -> int:
    """Number of the user's messages in a session, without answers to interrupts."""
    contents = [event.content for event in events if event.author == "user" and event.content]
    return sum(1 for content in contents if not any(part.function_response for part in content.parts or ()))


def _is_whole(events: Sequence[Event]) -> bool:
    """True if the last run came to an answer."""
    last = next((event for event in reversed(events) if event.author != "user"), None)
    return last is not None and last.is_final_response() and not last.error_code


def _error_of(events: Sequence[Event]) -> str:
    """The error that ended the last run; empty if it did not fail."""
    for event in reversed(events):
        if event.author == "user":
            continue
        return f"{event.error_code}: {event.error_message or ''}".rstrip(": ") if event.error_code else ""
    return ""


def _is_refused(row: Row) -> bool:
    return (
        row.status == "error" and not row.is_reused and ("HTTP 429" in row.error or "RESOURCE_EXHAUSTED" in row.error)
    )
