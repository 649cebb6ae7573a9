"""Runs for many machines: any worker may do one, and another goes on with it if that one dies."""

import asyncio
import hashlib
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeVar
from urllib.parse import quote

from pydantic_core import PydanticSerializationError

from adk_nb import clock, types
from adk_nb.engines.dbos_worker import (
    APP,
    PACKAGE,
    VERSION,
    WORKFLOW,
    JsonSerializer,
    Worker,
    not_reached,
    refuse_pickles,
)
from adk_nb.engines.keyed_runs import KeyedRuns
from adk_nb.errors import ConfigurationError, InputError, NotFoundError
from adk_nb.events.event import as_content
from adk_nb.events.requests import CREDENTIAL_REQUEST
from adk_nb.lazy import require
from adk_nb.redaction import remember
from adk_nb.runners import Message, Runner
from adk_nb.runtime.run_config import RunConfig
from adk_nb.runtime.validation import check_run_config
from adk_nb.sessions.journal import Journal
from adk_nb.wire import not_json, plain_json

RUNS_AT_ONCE = 32
"""Of one worker."""
POLL_SECONDS = 0.25
"""Between two looks of a worker for something to do."""
_PAUSE_SECONDS = 0.2

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a run ended."""

    status: Literal["done", "failed", "cancelled"]
    """`done` as well: it asked something. The answer is a message like any other."""
    invocation_id: str | None = None
    """Under which its events are in the session; None if it is not `done`."""
    error: str | None = None
    """What was raised, in words."""


class DbosEngine:
    """Runs of a runner, done by worker processes that share a PostgreSQL, and kept in it until they are done.

    Anyone may `start` a run, `wait` for it and `cancel` it; `async with engine:` makes this process a worker meanwhile.
    The runs of one session are done one after the other. A worker holds a lock of the server, which ends with its
    process: then another worker goes on with its runs, from what the journal of the session service has of them. So
    no call that came to its end is made again, and a tool whose `effect` is `once`, and which may have run, is asked
    about. Waiting for an answer is no work: the run is over, nobody holds it, and any worker does what the answer says.
    A session is free at the latest 15 seconds after its worker died. A process that stands still is not dead: its runs
    wait until it goes on, or is killed.

    Messages and outcomes are JSON, in the schema `dbos` of the database; a row that claims to be a pickle is refused.
    Nobody else needs to write there: who may only read the sessions should have no right to it.
    """

    def __init__(self, runner: Runner, db_url: str, *, run_config: RunConfig | None = None) -> None:
        """Nothing is opened before it is needed.

        Args:
            runner: What runs; in every worker the same agents. Its services stay the caller's.
            db_url: `postgresql://user:password@host/database`, of the sessions or another. The server itself, or a
                proxy that gives each client a connection of its own: locks end with connections.
            run_config: How all runs are to be done.

        Raises:
            MissingExtraError: DBOS is not installed.
            InputError: `db_url` is not one of PostgreSQL.
            ConfigurationError: The runner is none, its session service has no journal, or its agents cannot go on where
                they were; or `run_config` is none.
        """
        self._dbos: Any = require("dbos", package=PACKAGE)
        self._url = _checked(db_url)
        _check(runner)
        run_config = run_config or RunConfig()
        check_run_config(run_config, None)
        self._queue = f"{APP} {runner.app_name}"
        self._worker: Worker | None = None
        self._opened: Any = None
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
        """Have a message answered by some worker; the run's id. It is kept when this returns.

        Args:
            user_id: Whose session it is.
            session_id: The session.
            new_message: As in `Runner.run_async`; also an answer to what a run asked.
            state_delta: Written to the state together with the message.
            run_id: Given twice, it is one run: for callers who do not know whether they were heard.

        Raises:
            InputError: An id is none, or the message is not JSON, or holds a credential, which this database is not to
                keep.
            StorageError: The database could not be reached.
        """
        run_id = clock.new_id() if run_id is None else run_id
        _check_ids(user_id=user_id, session_id=session_id, run_id=run_id)
        said = {
            "user_id": user_id,
            "session_id": session_id,
            "message": _written(as_content(new_message)),
            "state_delta": plain_json(state_delta, "state_delta of a run"),
        }
        lane = hashlib.blake2b(json.dumps([user_id, session_id]).encode(), digest_size=16).hexdigest()
        options = {
            "workflow_name": WORKFLOW,
            "queue_name": self._queue,
            "queue_partition_key": lane,
            "workflow_id": run_id,
            "app_version": VERSION,
        }
        await self._ask(lambda client: client.enqueue(options, said))
        return run_id

    async def wait(self, run_id: str) -> Outcome:
        """How a run ended, once it did. Who is cancelled while he waits does not cancel the run.

        Raises:
            NotFoundError: No such run was started.
            StorageError: The database could not be reached.
        """
        while True:
            if outcome := _outcome(await self._row(run_id)):
                return outcome
            await asyncio.sleep(_PAUSE_SECONDS)

    async def cancel(self, run_id: str) -> None:
        """Stop a run, wherever it is, as `abort_signal` does: within seconds. Nothing happens if it has ended.

        Raises:
            NotFoundError: No such run was started.
            StorageError: The database could not be reached.
        """
        await self._row(run_id)
        await self._ask(lambda client: client.cancel_workflow(run_id))

    async def close(self) -> None:
        """Let the connections go; again is no error. A worker ends with its `async with`."""
        with self._lock:
            opened, self._opened = self._opened, None
        if opened:
            await asyncio.to_thread(opened.destroy)

    async def __aenter__(self) -> Self:
        """Be a worker. One in a process.

        Raises:
            ConfigurationError: This process uses DBOS already.
            StorageError: The database could not be reached.
        """
        await self._ask(lambda _: None)  # what is not there yet is made
        worker = Worker(self._url, self._queue, self._runs)
        await asyncio.to_thread(worker.launch)
        self._worker = worker
        return self

    async def __aexit__(self, *_: object) -> None:
        """Take no more runs, and wait for the ends of those that are under way. What takes longer than LEAVE_SECONDS is
        cut: calls that are open are answered with that, and another worker goes on.
        """
        worker, self._worker = self._worker, None
        if worker:
            await asyncio.to_thread(worker.leave)
        await self.close()

    async def _row(self, run_id: str) -> Any:
        _check_ids(run_id=run_id)
        found = await self._ask(lambda client: client.list_workflows(workflow_ids=[run_id], load_input=False))
        if not found:
            raise NotFoundError("run", run_id, hint="start it first")
        return found[0]

    async def _ask(self, work: Callable[[Any], T]) -> T:
        def ask() -> T:
            with self._lock:
                if self._opened is None:
                    self._opened = self._open()
                client = self._opened
            return work(client)

        try:
            return await asyncio.to_thread(ask)
        except (self._dbos.error.DBOSException, require("sqlalchemy.exc", package=PACKAGE).SQLAlchemyError) as error:
            raise not_reached(error) from None

    def _open(self) -> Any:
        probe = require("sqlalchemy", package=PACKAGE).create_engine(self._url)
        try:
            probe.connect().close()  # DBOS would make a database that is not there, also of a misspelt name
        finally:
            probe.dispose()
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
    for what, one in ids.items():
        if not isinstance(one, str) or not one.strip() or not_json(one):
            raise InputError(f"the {what} of a run is a text that is not empty, and not {one!r:.80}")


def _written(message: types.Content) -> str:
    for part in message.parts or ():
        if part.function_response and part.function_response.name == CREDENTIAL_REQUEST:
            raise InputError(
                "this message holds a credential, which a database of runs is not to keep; hand it to the runner "
                "itself: runner.run_async(new_message=...)"
            )
    try:
        return message.model_dump_json(exclude_none=True)
    except PydanticSerializationError as error:
        raise InputError(f"a message is kept as JSON, which cannot hold this: {error!s:.200}") from error


def _outcome(row: Any) -> Outcome | None:
    match row.status, row.output:
        case "SUCCESS", {"invocation_id": str(invocation_id)}:
            return Outcome(status="done", invocation_id=invocation_id)
        case "SUCCESS" | "ERROR", _:
            return Outcome(status="failed", error=str(row.error or "its row in the database cannot be read"))
        case "MAX_RECOVERY_ATTEMPTS_EXCEEDED", _:
            return Outcome(status="failed", error="each worker that went on with it died")
        case "CANCELLED", _:
            return Outcome(status="cancelled")
        case _:
            return None


def _checked(url: str) -> str:
    """`url`, with the driver that DBOS brings."""
    sqlalchemy: Any = require("sqlalchemy", package=PACKAGE)
    try:
        parsed = sqlalchemy.make_url(url)
    except sqlalchemy.exc.ArgumentError:
        parsed = None
    if parsed is None or not parsed.drivername.startswith("postgres") or not parsed.database:
        raise InputError("workers share a PostgreSQL; write postgresql://user:password@host/database")
    remember(parsed.password, quote(parsed.password or ""))
    return str(parsed.set(drivername="postgresql+psycopg").render_as_string(hide_password=False))


def _check(runner: Any) -> None:
    if not isinstance(runner, Runner):
        raise ConfigurationError(
            f"an engine takes a runner, and {runner!r:.60} is none; "
            "write DbosEngine(Runner(app_name=..., agent=..., session_service=...), db_url)"
        )
    if not isinstance(runner.session_service, Journal):
        raise ConfigurationError(
            f"{type(runner.session_service).__name__} has no journal, from which another worker could go on; "
            "use DatabaseSessionService('postgresql://...')"
        )
    resumable = runner.app is not None and runner.app.is_resumable
    if not resumable and _runs_others(runner.agent):
        raise ConfigurationError(
            f"no worker could go on with a run of {runner.agent.name!r}: it keeps no marks of where its agents stand; "
            "write App(resumability_config=ResumabilityConfig(is_resumable=True), ...)"
        )


def _runs_others(agent: Any) -> bool:
    return agent.runs_others or any(map(_runs_others, agent.sub_agents))
