"""A DBOS worker process: safe settings, recovery of dead workers' runs, and cancellation.

Source: DBOS 3.4, https://docs.dbos.dev/python/reference/configuration. Its defaults differ: one executor id for all
processes, pickles, a version derived from source code (which changes with the text of a cell), and recovery by the
vendor's service.
"""

import hashlib
import json
import logging
import threading
from typing import Any

from adk_nb import clock
from adk_nb.engines.keyed_runs import KeyedRuns
from adk_nb.errors import ConfigurationError, StorageError
from adk_nb.lazy import require
from adk_nb.redaction import hidden
from adk_nb.sessions.journal import this_process
from adk_nb.sessions.sql.schema import POSTGRES

logger = logging.getLogger(__name__)
_dbos_logger = logging.getLogger("dbos")

PACKAGE = "adk-nb[dbos]"
APP = "adk-nb"
WORKFLOW = "adk_nb.run"
VERSION = f"journal-{len(POSTGRES)}"
"""Workers execute only runs of their own version, which changes only with the journal's tables."""
LEAVE_SECONDS = 30
"""Maximum wait of a leaving worker for its runs."""
CHECK_SECONDS = 1.0
"""Interval of checks for dead workers and cancelled runs."""
_MAX_ATTEMPTS = 10
"""Limit of workers that may die from the same run."""
_KEEPALIVE = {"keepalives_idle": 5, "keepalives_interval": 5, "keepalives_count": 3}
"""TCP keepalive (seconds, seconds, count): the server releases the lock of a machine that lost its connection."""


class JsonSerializer:
    """Serializes DBOS's data as JSON, which is read as plain data whoever wrote it."""

    def name(self) -> str:
        """Marker of rows in this format."""
        return "adk_nb_json"

    def serialize(self, data: Any) -> str:
        """ASCII JSON, which any text column can store; an error becomes its message."""
        return json.dumps(data, default=_error_text)

    def deserialize(self, text: str) -> Any:
        """Parse JSON."""
        return json.loads(text)


def _error_text(error: Any) -> str:
    return hidden(f"{type(error).__name__}: {error}")


def refuse_pickles() -> None:
    """Disable unpickling by DBOS in this process: each row selects its own serializer."""

    def refuse(_: str) -> Any:
        raise StorageError(
            "a row of DBOS is marked as a pickle and was not read; find what else writes to the database"
        )

    require("dbos._serialization", package=PACKAGE).DBOSDefaultSerializer.deserialize = refuse


def _shorten_record(record: logging.LogRecord) -> bool:
    """Log filter: errors in one line, as in a run's outcome; cancellations are dropped."""
    if error := record.exc_info and record.exc_info[1]:
        run = getattr(record, "operationUUID", "")
        record.msg, record.args = " ".join(f"{run} {record.getMessage()} {_error_text(error)}".split()), ()
        record.exc_info = None
    return not isinstance(error, require("dbos", package=PACKAGE).error.DBOSAwaitedWorkflowCancelledError)


class Worker:
    """Executes runs from `launch` to `leave`. Both block and must be called in a thread without an event loop: DBOS
    would use the caller's loop for its work.
    """

    def __init__(self, url: str, queue: str, runs: KeyedRuns) -> None:
        self.id = f"{this_process()} {clock.new_id()}"
        self._queue = queue
        self._runs = runs
        self._url = url
        self._dbos: Any = require("dbos", package=PACKAGE).DBOS
        self._locks = _Locks(url)
        self._stop = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="adk-nb-dbos", daemon=True)

    def launch(self) -> None:
        """Start to accept runs.

        Raises:
            ConfigurationError: This process already uses DBOS.
            StorageError: The database could not be reached.
        """
        config = {
            "name": APP,
            "system_database_url": self._url,
            "executor_id": self.id,
            "application_version": VERSION,
            "serializer": JsonSerializer(),
            "log_level": "WARNING",
        }

        # DBOS sets attributes on the function, so each worker needs its own.
        async def run(request: dict[str, Any]) -> dict[str, Any]:
            """Execute a run, or resume it."""
            return {"invocation_id": await self._runs.run(self._dbos.workflow_id, request)}

        try:
            self._locks.acquire_own(self.id)
            self._dbos(config=config)
            _dbos_logger.addFilter(_shorten_record)
            # DBOS has one object per process, and ignores the settings of a second.
            if self._dbos.executor_id != self.id:
                raise ConfigurationError("this process uses DBOS already; start the worker in a process of its own")
            self._dbos.workflow(name=WORKFLOW, max_recovery_attempts=_MAX_ATTEMPTS)(run)
            self._dbos.listen_queues([self._queue])
            self._dbos.launch()
        except BaseException:
            self._end(0)
            raise
        self._watcher.start()

    def leave(self) -> None:
        """Accept no more runs, wait for running ones, and release the rest to other workers."""
        self._stop.set()
        # First: the watcher uses the connection that `_end` closes.
        self._watcher.join()
        self._end(LEAVE_SECONDS if self._runs.running() else 0)

    def _end(self, seconds: int) -> None:
        # Only if DBOS was started by this worker.
        if self._dbos.executor_id == self.id:
            self._dbos.destroy(destroy_registry=True, workflow_completion_timeout_sec=seconds)
            _dbos_logger.removeFilter(_shorten_record)
        self._locks.close()

    def _watch(self) -> None:
        """Resume the runs of dead workers, and stop cancelled ones."""
        failures = (StorageError, self._locks.errors, require("dbos", package=PACKAGE).error.DBOSException)
        without_data = {"load_input": False, "load_output": False}
        while not self._stop.wait(CHECK_SECONDS):
            try:
                self._locks.acquire_own(self.id)
                pending = self._dbos.list_workflows(
                    status="PENDING", queue_name=self._queue, app_version=VERSION, **without_data
                )
                for worker_id in {workflow.executor_id or "" for workflow in pending} - {self.id}:
                    # Held during the recovery, so that no other worker takes over the same runs.
                    if self._locks.try_acquire(worker_id):
                        logger.warning("worker %r is dead: another worker resumes its runs", worker_id)
                        try:
                            self._dbos._recover_pending_workflows([worker_id])
                        finally:
                            self._locks.release(worker_id)
                if run_ids := self._runs.running():
                    for workflow in self._dbos.list_workflows(workflow_ids=run_ids, status="CANCELLED", **without_data):
                        self._runs.stop(workflow.workflow_id)
            except failures as error:
                logger.warning("worker %r could not check other workers: %s", self.id, unreachable_error(error))


class _Locks:
    """PostgreSQL advisory locks, one per worker: the server releases those of an ended process."""

    def __init__(self, url: str) -> None:
        sqlalchemy: Any = require("sqlalchemy", package=PACKAGE)
        self._text = sqlalchemy.text
        self.errors = sqlalchemy.exc.SQLAlchemyError
        # libpq's keepalives detect a lost server, the server's own (as options) a lost client.
        server_side = " ".join(f"-c tcp_{name}={value}" for name, value in _KEEPALIVE.items())
        self._engine: Any = sqlalchemy.create_engine(
            url,
            isolation_level="AUTOCOMMIT",  # session-level locks need no transaction
            connect_args={**_KEEPALIVE, "options": server_side, "application_name": APP},
        )
        self._db: Any = None
        self._is_locked = False
        """True: this connection holds the worker's own lock."""

    def acquire_own(self, worker: str) -> None:
        """Acquire this worker's lock, again after a lost connection.

        Raises:
            StorageError: Another process holds it.
        """
        # A query on the connection that holds the lock shows that both are still there.
        if self._is_locked:
            self._query("SELECT true")
            return
        self._is_locked = self.try_acquire(worker)
        if not self._is_locked:
            raise StorageError(
                "another process holds this worker's lock: this worker lost its connection, and counts as dead"
            )

    def try_acquire(self, worker: str) -> bool:
        """Try to acquire a lock; True on success."""
        return self._query("SELECT pg_try_advisory_lock(:key)", key=_key(worker))

    def release(self, worker: str) -> None:
        """Release a lock."""
        self._query("SELECT pg_advisory_unlock(:key)", key=_key(worker))

    def close(self) -> None:
        """Close the connection, which releases all locks."""
        if self._db is not None:
            self._db.close()
        self._engine.dispose()

    def _query(self, query: str, **parameters: Any) -> bool:
        try:
            if self._db is None:
                self._db = self._engine.connect()
            return bool(self._db.execute(self._text(query), parameters).scalar())
        except self.errors as error:
            if self._db is not None:
                self._db.invalidate()
                self._db.close()
            self._db, self._is_locked = None, False
            raise unreachable_error(error) from None


def unreachable_error(error: Any) -> StorageError:
    """A StorageError without the driver's text, which may contain the password."""
    if isinstance(error, StorageError):
        return error
    message = " ".join(hidden(str(getattr(error, "orig", None) or error)).split())
    return StorageError(f"the database of DBOS could not be read or written: {message:.400}; see that it runs")


def _key(worker: str) -> int:
    return int.from_bytes(hashlib.blake2b(worker.encode(), digest_size=8).digest(), "big", signed=True)
