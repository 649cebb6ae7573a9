"""The engine: run an agent over many cases, a session a row, resumable and within a budget."""

import asyncio
import inspect
import re
import sys
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Iterable, Iterator, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, TypedDict, TypeVar, Unpack, get_type_hints

from adk_nb import clock
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.agents.tree import agents_below
from adk_nb.apps.app import App
from adk_nb.artifacts.in_memory_artifact_service import InMemoryArtifactService
from adk_nb.errors import AdkNbError, InputError
from adk_nb.evaluation.cases import Case
from adk_nb.evaluation.fingerprint import agent_fingerprint
from adk_nb.evaluation.progress import Progress
from adk_nb.evaluation.rate import Rate
from adk_nb.evaluation.row_runs import Confirm, Job, Row, RowRunner
from adk_nb.evaluation.stubs import StubPlugin, check_stubs
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.events.usage import load_prices
from adk_nb.flow.budget import Spending
from adk_nb.models.http_address import is_loopback
from adk_nb.models.llm_response import Attempt
from adk_nb.plugins.base_plugin import BasePlugin
from adk_nb.runners import Runner
from adk_nb.runtime.run_config import ResumabilityConfig, RunConfig
from adk_nb.sessions.base_session_service import BaseSessionService
from adk_nb.sessions.in_memory_session_service import InMemorySessionService
from adk_nb.sessions.journal import Journal
from adk_nb.wire import copy_model

ChunkWork = Callable[[Sequence[Job]], Coroutine[Any, Any, list[Row]]]
ChunkTasks = dict[asyncio.Task[list[Row]], int]
"""Task -> its number of rows."""
_REFUSED = re.compile("HTTP 429|HTTP 408|.*Timeout.*")
"""Errors of an attempt after which fewer rows run at once."""
_TIMED_OUT = re.compile("did not answer (in time|within)|nothing more came in time|HTTP 408")
"""The end of a row whose model did not answer in time."""
_MAX_REFUSALS = 8
"""Most reruns of a row whose model calls were refused, or timed out, after all retries."""
_POLL_SECONDS = 0.05


Function = TypeVar("Function", bound=Callable[..., Any])
_DEFAULTS: dict[str, Any] = {"max_concurrency": 32, "confirm": "ask", "stubs": ()}


class BatchOptions(TypedDict, total=False):
    """Options of everything that runs an agent over many rows; each may be left out."""

    session_service: BaseSessionService | None
    """Keeps the rows. With a journal, a batch resumes after the death of its process, and tools with the effect `once`
    are not called again. None: this process's memory."""
    app_name: str | None
    """The app of the sessions. None: the app's name, or `evaluation`."""
    max_concurrency: int
    """Most rows at once, 32 by default; how many it is, is found from the services' refusals and timeouts. It begins
    with 8, or 2 where a model's server is on this machine."""
    budget_usd: float | None
    """US dollars that the batch may cost, judges and all else included; at the budget no further row starts."""
    confirm_above_usd: float | None
    """If more US dollars than these are projected after five rows, no further row starts, and `progress.is_paused`; the
    next run goes on."""
    confirm: Confirm
    """Approvals in the rows: left open ("ask", the default), given ("yes"), refused ("no"), or given for listed
    tools."""
    stubs: Collection[str]
    """Names of tools that do not run: their calls are answered from the case (its column `stubs`, or the results in its
    expected turns), else with "(stubbed)"."""
    run_config: RunConfig | None
    """The configuration of every run."""
    on_progress: Callable[[Progress], None] | None
    """Called at most once a second, and at the end."""
    scheduler: str | None
    """Address of a Dask scheduler, `tcp://...`, whose workers run the rows; it needs a session service that they
    reach."""


def lists_options(function: Function) -> Function:
    """Name each of `BatchOptions` in the signature of a function that takes them all, for help() and Tab."""
    signature = inspect.signature(function)
    *own, _ = signature.parameters.values()
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=_DEFAULTS.get(name), annotation=annotation)
        for name, annotation in get_type_hints(BatchOptions).items()
    ]
    function.__dict__["__signature__"] = signature.replace(parameters=[*own, *options])
    return function


class Batch:
    """Runs an agent over cases.

    Each row is a session of its own, whose id is derived from the agent, the case and the repeat. A row that is done
    is in its session, and is not run again until the agent, one of its tools, or what the case asks changes.

    Args:
        agent: An agent, or an app with an agent and plugins.
        **options: As `BatchOptions` documents them.

    Raises:
        InputError: `budget_usd` or `max_concurrency` is not positive.
        MissingExtraError: There is a budget, and the table of prices is not installed.
    """

    def __init__(self, agent: BaseAgent | App, **options: Unpack[BatchOptions]) -> None:
        if unknown := options.keys() - BatchOptions.__annotations__.keys():
            known = ", ".join(BatchOptions.__annotations__)
            raise TypeError(f"there is no option {', '.join(sorted(unknown))}; there is: {known}")
        budget_usd, confirm = options.get("budget_usd"), options.get("confirm", _DEFAULTS["confirm"])
        max_concurrency = options.get("max_concurrency", _DEFAULTS["max_concurrency"])
        if budget_usd is not None and not budget_usd > 0:
            raise InputError(f"a budget is more than 0 US dollars, got {budget_usd}; leave it out for no limit")
        if max_concurrency < 1:
            raise InputError(f"max_concurrency is 1 or more, got {max_concurrency}")
        if isinstance(confirm, str) and confirm not in ("ask", "yes", "no"):
            raise InputError(f"confirm is 'ask', 'yes', 'no' or a list of tools, got {confirm!r}")
        if budget_usd is not None:
            load_prices()
        self.session_service = options.get("session_service") or InMemorySessionService()
        self.agent = agent.root_agent if isinstance(agent, App) else agent
        self.app = agent if isinstance(agent, App) else None
        self.stubs = tuple(options.get("stubs", ()))
        check_stubs(self.agent, self.stubs)
        self.runner = _runner(agent, options.get("app_name"), self.session_service, self.stubs)
        self.max_concurrency = max_concurrency
        self.budget_usd = budget_usd
        self.confirm_above_usd = options.get("confirm_above_usd")
        self.progress = Progress(total=None)
        self.scheduler = options.get("scheduler")
        self.rows = RowRunner(
            runner=self.runner,
            agent=self.agent,
            confirm=confirm,
            version=agent_fingerprint(agent),
            stubs=self.stubs,
            run_config=options.get("run_config") or RunConfig(),
            on_attempt=self._note_attempt,
            needs_cost=budget_usd is not None,
        )
        self._on_progress = options.get("on_progress")
        self._reported_at = 0.0
        self._rate = Rate(max_concurrency, is_server_here=_has_server_here(self.agent))
        self._working = 0
        """Rows that run, without those that wait to run again."""
        self._is_stopped = False
        self._paid_rows = 0
        """Rows that cost something."""

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
        rows = self.run_rows(self.begin(cases, repeats, total), is_retry=is_retry)
        async with aclosing(rows):
            async for row in rows:
                yield row

    def begin(self, cases: Iterable[Case], repeats: int, total: int | None) -> Iterator[Job]:
        """Set the progress to its start; returns the rows. Arguments as of `run`."""
        count = total if total is not None else len(cases) if isinstance(cases, Sequence) else None
        self.progress = Progress(total=None if count is None else count * repeats)
        self._is_stopped, self._paid_rows = False, 0
        return ((case, repeat) for case in cases for repeat in range(repeats))

    def run_rows(self, remaining: Iterator[Job], *, is_retry: bool = False) -> AsyncGenerator[Row, None]:
        """As `run`, of single repeats."""
        return self.run_jobs(remaining, partial(self._row, is_retry=is_retry))

    async def answer(
        self, rows: Sequence[Job], decision: ToolConfirmation, keys: Collection[str]
    ) -> AsyncGenerator[Row, None]:
        """Answer open approvals of rows, resume these rows, and yield each as it ends.

        Args:
            rows: Cases and repeats.
            decision: The answer.
            keys: Of the approvals, see `call_key`. Others stay open, also those that a row has asked for since.
        """
        self.progress, self._is_stopped, self._paid_rows = Progress(total=len(rows)), False, 0
        answered = self.run_jobs(iter(rows), partial(self.rows.answer, decision=decision, keys=keys))
        async with aclosing(answered):
            async for row in answered:
                yield row

    def run_jobs(
        self, remaining: Iterator[Job], work: Callable[[Case, int], Coroutine[Any, Any, Row]]
    ) -> AsyncGenerator[Row, None]:
        """Do `work` for each row, as many at once as the services let."""

        async def work_chunk(chunk: Sequence[Job]) -> list[Row]:
            rows: list[Row] = []
            for job in chunk:
                with Spending() as spent:
                    row = await work(*job)
                row.paid_usd = self._known(spent)
                rows.append(row)
            return rows

        return self.run_chunks(remaining, work_chunk, size=1)

    async def run_chunks(
        self,
        remaining: Iterator[Job],
        work: ChunkWork,
        *,
        size: int,
        at_once: int | None = None,
    ) -> AsyncGenerator[Row, None]:
        """Do `work` for chunks of rows, within the budget.

        Args:
            remaining: The rows, read as they are needed: a long table is never in memory.
            work: Runs the rows of a chunk.
            size: Most rows of a chunk.
            at_once: Most chunks at once. None: as many as the services let.
        """
        started, running = clock.ticks(), ChunkTasks()
        try:
            while self._start(remaining, work, running, size, at_once) or running:
                self._report(started, sum(running.values()))
                if not running:
                    await asyncio.sleep(min(1.0, self._rate.wait_seconds))
                    continue
                # A second at most, for the progress and for rows that a service has held back.
                done, _ = await asyncio.wait(running, timeout=1.0, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    del running[task]
                    for row in task.result():
                        self._count(row)
                        yield row
            # Stopped, or out of budget: every row gets a result.
            for case, repeat in remaining:
                row = Row(case=case, repeat=repeat, session_id=self.rows.session_id(case, repeat), status="not run")
                self._count(row)
                yield row
        finally:
            # Rows that run now when the reader leaves have no record, and run again the next time.
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            self._report(started, 0, is_last=True)

    def _start(
        self, remaining: Iterator[Job], work: ChunkWork, running: ChunkTasks, size: int, at_once: int | None
    ) -> bool:
        """Start as many chunks as may run; False: none is left, or the batch is stopped or out of budget."""
        while not self._is_stopped and (count := min(size, self._affordable(sum(running.values())))) > 0:
            if len(running) >= (at_once or self._rate.limit):
                return True
            chunk = list(islice(remaining, count))
            if not chunk:
                return False
            running[asyncio.create_task(work(chunk))] = len(chunk)
        return False

    async def close(self) -> None:
        """Close the plugins of the app; agents stay as they are."""
        await self.runner.plugin_manager.close()

    async def _row(self, case: Case, repeat: int, *, is_retry: bool) -> Row:
        refusals = 0
        while True:
            while refusals and self._working >= self._rate.limit:  # noqa: ASYNC110 - it waits for the clock, too
                await asyncio.sleep(max(_POLL_SECONDS, self._rate.wait_seconds))
            at_once = self._rate.at_once
            self._working += 1
            try:
                row = await self.rows.run(case, repeat, is_retry=is_retry or refusals > 0)
            finally:
                self._working -= 1
            # The retries of the model's client are used up: the row waits for its turn, with half as many beside it.
            # A row that was alone and timed out would do so again.
            has_failed = row.status == "error" and not row.is_reused
            is_refused = has_failed and ("HTTP 429" in row.error or "RESOURCE_EXHAUSTED" in row.error)
            is_timed_out = has_failed and at_once > 1 and _TIMED_OUT.search(row.error) is not None
            if not (is_refused or is_timed_out) or refusals >= _MAX_REFUSALS:
                return row
            refusals += 1
            self._rate.refuse(1.0)

    # ---- rate and progress

    def _note_attempt(self, attempt: Attempt) -> None:
        if _REFUSED.fullmatch(attempt.error):
            self._rate.refuse(attempt.waited)

    def _affordable(self, running: int) -> int:
        """Number of further rows that the budget allows beside `running` ones."""
        if self.budget_usd is None:
            return sys.maxsize
        spent = self.progress.cost_usd or 0.0
        # One at a time until one has cost something: of a row that failed or was free, nothing is known of the others.
        if not spent:
            return 1 - running
        return int((self.budget_usd - spent) / (spent / max(1, self._paid_rows))) - running

    def count_scoring(self, row: Row, spent: Spending) -> None:
        """Add what the scoring of a row cost, which was counted before."""
        cost, before = self._known(spent), self.progress.cost_usd
        if cost and not (row.cost_usd or row.paid_usd):
            self._paid_rows += 1
        self.progress = replace(self.progress, cost_usd=None if cost is None or before is None else before + cost)

    def _known(self, spent: Spending) -> float | None:
        """The cost. Raises InputError if there is a budget and it is unknown."""
        if spent.cost_usd is None and self.budget_usd is not None:
            raise InputError(
                f"no price is known for model {spent.unpriced_model!r}, so no budget can be kept; leave it out"
            )
        return spent.cost_usd

    def _count(self, row: Row) -> None:
        """Add a row to the progress."""
        progress = self.progress
        name = {"done": "done", "error": "failed", "pending": "pending", "not run": "not_run"}[row.status]
        changes: dict[str, Any] = {name: getattr(progress, name) + 1}
        if row.is_reused:
            changes["reused"] = progress.reused + 1
        elif row.status != "not run":
            # One unknown cost makes the sum unknown.
            unknown = None in (row.cost_usd, row.paid_usd, progress.cost_usd)
            cost = max(row.cost_usd or 0.0, row.paid_usd or 0.0)
            changes["cost_usd"] = None if unknown else (progress.cost_usd or 0.0) + cost
            self._paid_rows += cost > 0
            if row.status == "done":
                self._rate.succeed()
        self.progress = replace(progress, **changes)
        limit, projected = self.confirm_above_usd, self.progress.projected_usd
        if limit is not None and projected is not None and projected > limit:
            self.confirm_above_usd, self._is_stopped = None, True  # asked once: the next run goes on
            self.progress = replace(self.progress, is_paused=True)

    def _report(self, started: float, running: int, *, is_last: bool = False) -> None:
        now = clock.ticks()
        self.progress = replace(
            self.progress,
            running=running,
            at_once=self._rate.at_once,
            seconds=now - started,
            waiting_seconds=self._rate.wait_seconds,
        )
        if self._on_progress and (is_last or now - self._reported_at >= 1.0):
            self._reported_at = now
            self._on_progress(self.progress)


def _runner(
    agent: BaseAgent | App, app_name: str | None, service: BaseSessionService, stubs: Collection[str]
) -> Runner:
    services: dict[str, Any] = {"session_service": service, "artifact_service": InMemoryArtifactService()}
    # A row whose session is in use is done by another process: it must not be done again after that.
    services["serialize_sessions"] = False
    plugins: list[BasePlugin] = [StubPlugin(stubs)] if stubs else []
    if isinstance(agent, App):
        agent = copy_model(agent, plugins=[*plugins, *agent.plugins]) if plugins else agent
        return Runner(app=agent, app_name=app_name, **services)
    # Checkpoints add an event for each step, so there are none unless the journal needs them.
    is_resumable = isinstance(service, Journal) and not _has_models_only(agent)
    app = App(
        name=app_name or "evaluation",
        root_agent=agent,
        plugins=plugins,
        resumability_config=ResumabilityConfig(is_resumable=True) if is_resumable else None,
    )
    return Runner(app=app, **services)


def _has_models_only(agent: BaseAgent) -> bool:
    """True: the journal alone resumes its runs; other agents need checkpoints."""
    return isinstance(agent, LlmAgent) and all(map(_has_models_only, agent.members))


def _has_server_here(agent: BaseAgent) -> bool:
    """True: a model of the agents is answered by this machine."""
    for below in agents_below(agent):
        with suppress(AdkNbError):  # no model is set: its turn says so
            model: Any = below.canonical_model if isinstance(below, LlmAgent) else None
            for one in (model, *getattr(model, "models", ())):
                address = one.address() if hasattr(one, "address") else getattr(one, "url", None)
                if isinstance(address, str) and is_loopback(address):
                    return True
    return False
