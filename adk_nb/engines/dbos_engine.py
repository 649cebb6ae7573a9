"""Distributed runs: any worker can execute a run, and another worker resumes it if the first one dies."""

import asyncio
import hashlib
import json
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeVar
from urllib.parse import quote

from pydantic_core import PydanticSerializationError

from adk_nb import clock
from adk_nb.engines.dbos_worker import (
    APP,
    PACKAGE,
    VERSION,
    WORKFLOW,
    JsonSerializer,
    Worker,
    refuse_pickles,
    unreachable_error,
)
from adk_nb.engines.keyed_runs import KeyedRuns
from adk_nb.errors import ConfigurationError, InputError, NotFoundError
from adk_nb.events.event import as_content
from adk_nb.events.requests import CREDENTIAL_REQUEST
from adk_nb.lazy import require
from adk_nb.redaction import remember
from adk_nb.runners import Message, Runner
from adk_nb.runtime.first_event import check_run_config
from adk_nb.runtime.run_config import RunConfig
from adk_nb.sessions.journal import Journal
from adk_nb.wire import json_problem, plain_json

RUNS_AT_ONCE = 32
"""Limit per worker."""
POLL_SECONDS = 0.25
"""Interval of a worker's polling."""
_PAUSE_SECONDS = 0.2

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The outcome of a run."""

    status: Literal["done", "failed", "cancelled"]
    """`done` includes runs that ended with an open interrupt; its answer is sent as a message of its own."""
    invocation_id: str | None = None
    """Invocation id of its events in the session; None unless `done`."""
    error: str | None = None
    """The error message."""


class DbosEngine:
    """Executes runs of a runner in worker processes that share a PostgreSQL database, which stores the runs until their
    end.

    Any process may `start` a run, `wait` for it and `cancel` it; `async with engine:` makes this process a worker. Runs
    of one session are executed one by one. A worker holds an advisory lock of the server, which is released when its
    process ends; then another worker resumes its runs from the journal of the session service. Completed calls are not
    repeated, and for an interrupted call of a tool with effect `once` the user is asked. A run that raised an interrupt
    has ended: no worker is blocked, and any worker can process the answer. A session is free at most 15 seconds after
    its worker died. A suspended process is not dead: its runs wait until it continues or is killed.

    Messages and outcomes are stored as JSON in the schema `dbos` of the database; rows marked as pickles are refused.
    Only workers and callers need write access to the schema.
    """

    def __init__(self, runner: Runner, db_url: str, *, run_config: RunConfig | None = None) -> None:
        """Connections are opened on first use.

        Args:
            runner: The runner, with equal agents in each worker. Its services remain the caller's.
            db_url: `postgresql://user:password@host/database`, the database of the sessions or another. Connect to the
                server itself, or through a proxy with a connection per client: locks are bound to connections.
            run_config: Settings of all runs.

        Raises:
            MissingExtraError: DBOS is not installed.
            InputError: `db_url` is not a PostgreSQL URL.
            ConfigurationError: `runner` is not a Runner, its session service has no journal, or its agents cannot be
                resumed; or `run_config` is invalid.
        """
        self._dbos: Any = require("dbos", package=PACKAGE)
        self._url = _normalized_url(db_url)
        if not isinstance(runner, Runner):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigurationError(
                f"DbosEngine needs a Runner, got {runner!r:.60}; "
                "write DbosEngine(Runner(app_name=..., agent=..., session_service=...), db_url)"
            )
        if not isinstance(runner.session_service, Journal):
            raise ConfigurationError(
                f"{type(runner.session_service).__name__} has no journal from which another worker could resume; "
                "use DatabaseSessionService('postgresql://...')"
            )
        resumable = runner.app is not None and runner.app.is_resumable
        if not resumable and _runs_others(runner.agent):
            raise ConfigurationError(
                f"no worker could resume a run of {runner.agent.name!r}: its app stores no checkpoints; "
                "write App(resumability_config=ResumabilityConfig(is_resumable=True), ...)"
            )
        run_config = run_config or RunConfig()
        check_run_config(run_config, None)
        self._queue = f"{APP} {runner.app_name}"
        self._worker: Worker | None = None
        self._client: Any = None
        self._lock = threading.Lock()
        self._runs = KeyedRuns(runner, run_config)
        refuse_pickles()

    async def start(
        self,
        *,
        user_id: str,
        session_id: str,
        new_message: Message,
        state_delta: dict[str, Any] | None = None,
        run_id: str | None = None,
    ) -> str:
        """Enqueue a run; returns its id. The run is stored when this returns.

        Args:
            user_id: The user of the session.
            session_id: The session.
            new_message: As in `Runner.run_async`; may answer an interrupt.
            state_delta: State written together with the message.
            run_id: Idempotency key: starting the same id with an equal request twice is one run.

        Raises:
            InputError: An id is invalid or is that of another request, or the message is not JSON or contains a
                credential, which this database must not store.
            StorageError: The database could not be reached.
        """
        run_id = clock.new_id() if run_id is None else run_id
        _check_ids(user_id=user_id, session_id=session_id, run_id=run_id)
        message = as_content(new_message)
        for part in message.parts or ():
            if part.function_response and part.function_response.name == CREDENTIAL_REQUEST:
                raise InputError(
                    "this message contains a credential, which the database of runs must not store; send it through "
                    "the runner itself: runner.run_async(new_message=...)"
                )
        try:
            message_json = message.model_dump_json(exclude_none=True)
        except PydanticSerializationError as error:
            raise InputError(f"a message is stored as JSON, which cannot hold this: {error!s:.200}") from error
        request = {
            "user_id": user_id,
            "session_id": session_id,
            "message": message_json,
            "state_delta": plain_json(state_delta, "state_delta of a run"),
        }
        # A partition per session: DBOS executes one run of a partition at a time.
        partition_key = hashlib.blake2b(json.dumps([user_id, session_id]).encode(), digest_size=16).hexdigest()
        options = {
            "workflow_name": WORKFLOW,
            "queue_name": self._queue,
            "queue_partition_key": partition_key,
            "workflow_id": run_id,
            "app_version": VERSION,
            "workflow_id_reuse_policy": "reject",
        }
        in_use = self._dbos.error.DBOSWorkflowIDInUseError

        def enqueue(client: Any) -> Any:
            """None, or the run that has this id already."""
            while True:
                try:
                    client.enqueue(options, request)
                    return None
                except in_use:
                    if rows := client.list_workflows(workflow_ids=[run_id], load_output=False):
                        return rows[0]

        if earlier := await self._query(enqueue):
            match earlier.input:
                case {"args": [{"message": str()} as stored, *_]}:
                    differing = [name for name in request if _comparable(stored, name) != _comparable(request, name)]
                case _:  # the row was altered
                    differing = [*request]
            if earlier.queue_name != self._queue:
                differing.insert(0, "app")
            if differing:
                raise InputError(
                    f"run_id {run_id!r:.80} is that of another request, with another {', '.join(differing)}; nothing "
                    f"was started for user {user_id!r:.80} in session {session_id!r:.80}. Write an unused run_id, or "
                    "none; to repeat a request, send it unchanged"
                )
        return run_id

    async def wait(self, run_id: str) -> Outcome:
        """Wait for the end of a run. Cancelling the wait does not cancel the run.

        Raises:
            NotFoundError: There is no such run.
            StorageError: The database could not be reached.
        """
        while True:
            if outcome := _outcome(await self._row(run_id)):  # polling: the worker is another process
                return outcome
            await asyncio.sleep(_PAUSE_SECONDS)

    async def cancel(self, run_id: str) -> None:
        """Stop a run on any worker within seconds, like `abort_signal`. An ended run is ignored.

        Raises:
            NotFoundError: There is no such run.
            StorageError: The database could not be reached.
        """
        await self._row(run_id)
        await self._query(lambda client: client.cancel_workflow(run_id))

    async def close(self) -> None:
        """Close the connections; idempotent. A worker ends with its `async with`."""
        with self._lock:
            client, self._client = self._client, None
        if client:
            await asyncio.to_thread(client.destroy)

    async def __aenter__(self) -> Self:
        """Become a worker, the only one in this process.

        Raises:
            ConfigurationError: This process already uses DBOS.
            StorageError: The database could not be reached.
        """
        await self._query(lambda _: None)  # creates missing tables
        worker = Worker(self._url, self._queue, self._runs)
        await asyncio.to_thread(worker.launch)
        self._worker = worker
        return self

    async def __aexit__(self, *_: object) -> None:
        """Accept no more runs, and wait for running ones, at most LEAVE_SECONDS. Longer ones are interrupted: their
        open calls are closed, and another worker resumes them.
        """
        worker, self._worker = self._worker, None
        if worker:
            await asyncio.to_thread(worker.leave)
        await self.close()

    async def _row(self, run_id: str) -> Any:
        _check_ids(run_id=run_id)
        rows = await self._query(lambda client: client.list_workflows(workflow_ids=[run_id], load_input=False))
        if not rows:
            raise NotFoundError("run", run_id, hint="start it first")
        return rows[0]

    async def _query(self, work: Callable[[Any], T]) -> T:
        def query() -> T:
            """Open the client on first use."""
            with self._lock:
                if self._client is None:
                    self._client = self._open()
                client = self._client
            return work(client)

        try:
            return await asyncio.to_thread(query)
        except (self._dbos.error.DBOSException, require("sqlalchemy.exc", package=PACKAGE).SQLAlchemyError) as error:
            raise unreachable_error(error) from None

    def _open(self) -> Any:
        probe = require("sqlalchemy", package=PACKAGE).create_engine(self._url)
        try:
            probe.connect().close()  # fail for a missing database, which DBOS would create, even for a misspelt name
        finally:
            probe.dispose()
        # In every process, worker or not: a client writes to tables that must exist.
        self._dbos.DBOS.migrate(self._url)
        client = self._dbos.DBOSClient(
            system_database_url=self._url,
            serializer=JsonSerializer(),
            application_name=APP,
            retry_connection_errors=False,
        )
        client.register_queue(
            self._queue, worker_concurrency=RUNS_AT_ONCE, partition_concurrency=1, polling_interval_sec=POLL_SECONDS
        )
        return client


def _check_ids(**ids: Any) -> None:
    for name, value in ids.items():
        if not isinstance(value, str) or not value.strip() or json_problem(value):
            raise InputError(f"the {name} of a run must be non-empty text, got {value!r:.80}")


def _comparable(request: Any, name: str) -> str:
    """A field as text that is the same for the same JSON."""
    value = request.get(name)
    if name == "message":
        with suppress(ValueError):  # the row was altered
            value = json.loads(value)
    return json.dumps(value, sort_keys=True)


def _normalized_url(url: str) -> str:
    """`url` with the driver that DBOS installs."""
    sqlalchemy: Any = require("sqlalchemy", package=PACKAGE)
    try:
        parsed = sqlalchemy.make_url(url)
    except sqlalchemy.exc.ArgumentError:
        parsed = None
    if parsed is None or not parsed.drivername.startswith("postgres") or not parsed.database:
        raise InputError("workers share a PostgreSQL database; write postgresql://user:password@host/database")
    remember(parsed.password, quote(parsed.password or ""))
    return str(parsed.set(drivername="postgresql+psycopg").render_as_string(hide_password=False))


def _outcome(row: Any) -> Outcome | None:
    match row.status, row.output:
        case "SUCCESS", {"invocation_id": str(invocation_id)}:
            return Outcome(status="done", invocation_id=invocation_id)
        # A success without an id in its output: the row was altered.
        case "SUCCESS" | "ERROR", _:
            return Outcome(status="failed", error=str(row.error or "its row in the database cannot be read"))
        case "MAX_RECOVERY_ATTEMPTS_EXCEEDED", _:
            return Outcome(status="failed", error="every worker that resumed it died")
        case "CANCELLED", _:
            return Outcome(status="cancelled")
        case _:
            return None


def _runs_others(agent: Any) -> bool:
    return agent.runs_others or any(map(_runs_others, agent.sub_agents))
