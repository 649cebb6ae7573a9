"""One process's part in DBOS: settings that keep its runs and its database safe, and a look for workers that died.

Source: DBOS 3.4, https://docs.dbos.dev/python/reference/configuration. What it does by default and this does not: one
executor id for all processes, pickles, a version that changes with the text of a cell, and dead workers left to a
service of its maker.
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

PACKAGE = "'adk-nb[dbos]'"
APP = "adk-nb"
WORKFLOW = "adk_nb.run"
VERSION = f"journal-{len(POSTGRES)}"
"""Workers take runs of their own version only: it changes with what the journal's tables are, and nothing else."""
LEAVE_SECONDS = 30
"""How long a worker that leaves waits for the ends of its runs."""
LOOK_SECONDS = 1.0
"""Between two looks for workers that died, and for runs that were cancelled."""
_ATTEMPTS = 10
"""How many workers a run may take with it."""
_KEEPALIVE = {"keepalives_idle": 5, "keepalives_interval": 5, "keepalives_count": 3}
"""Seconds, and how often: the server frees the lock of a machine that fell silent, and its worker hears of it."""


class JsonSerializer:
    """What DBOS keeps, as JSON: whoever wrote it, it is read as data."""

    def name(self) -> str:
        """How rows of this kind are marked."""
        return "adk_nb_json"

    def serialize(self, data: Any) -> str:
        """JSON of ASCII alone, which any column of text holds; of an error, its words."""
        return json.dumps(data, default=_words)

    def deserialize(self, text: str) -> Any:
        """JSON values."""
        return json.loads(text)


def _words(error: Any) -> str:
    return hidden(f"{type(error).__name__}: {error}")


def refuse_pickles() -> None:
    """Let DBOS read no pickle in this process: a row says itself how it is to be read, whatever the serializer is."""
    require("dbos._serialization", package=PACKAGE).DBOSDefaultSerializer.deserialize = _refuse


def _refuse(_: str) -> Any:
    raise StorageError("a row of DBOS claims to be a pickle, and was not read; see who else writes to the database")


def _in_one_line(record: logging.LogRecord) -> bool:
    """Let DBOS tell of an error in words, as a run's outcome does; that a run was cancelled is none."""
    if error := record.exc_info and record.exc_info[1]:
        run = getattr(record, "operationUUID", "")
        record.msg, record.args = " ".join(f"{run} {record.getMessage()} {_words(error)}".split()), ()
        record.exc_info = None
    return not isinstance(error, require("dbos", package=PACKAGE).error.DBOSAwaitedWorkflowCancelledError)


class Worker:
    """Does runs, from `launch` until `leave`. Both block, and belong into a thread without an event loop: DBOS would
    let its work run on the caller's.
    """

    def __init__(self, url: str, queue: str, runs: KeyedRuns) -> None:
        self.id = f"{this_process()} {clock.new_id()}"
        self._queue = queue
        self._runs = runs
        self._url = url
        self._dbos: Any = require("dbos", package=PACKAGE).DBOS
        self._locks = _Locks(url)
        self._stop = threading.Event()
        self._watching = threading.Thread(target=self._watch, name="adk-nb-dbos", daemon=True)

    def launch(self) -> None:
        """Begin to take runs.

        Raises:
            ConfigurationError: This process uses DBOS already.
            StorageError: The database could not be reached.
        """
        try:
            self._locks.hold(self.id)
            self._launch()
        except BaseException:
            self._end(0)
            raise
        self._watching.start()

    def _launch(self) -> None:
        config = {
            "name": APP,
            "system_database_url": self._url,
            "executor_id": self.id,
            "application_version": VERSION,
            "serializer": JsonSerializer(),
            "log_level": "WARNING",
        }
        self._dbos(config=config)
        _dbos_logger.addFilter(_in_one_line)
        if self._dbos.executor_id != self.id:
            raise ConfigurationError("this process uses DBOS already; start the worker in a process of its own")

        async def run(said: dict[str, Any]) -> dict[str, Any]:  # DBOS notes on the function what it is
            return {"invocation_id": await self._runs.run(self._dbos.workflow_id, said)}

        self._dbos.workflow(name=WORKFLOW, max_recovery_attempts=_ATTEMPTS)(run)
        self._dbos.listen_queues([self._queue])
        self._dbos.launch()

    def leave(self) -> None:
        """Take no more, wait for the ends of what runs here, and let others have what did not end."""
        self._stop.set()
        self._watching.join()
        self._end(LEAVE_SECONDS if self._runs.running() else 0)

    def _end(self, seconds: int) -> None:
        if self._dbos.executor_id == self.id:
            self._dbos.destroy(destroy_registry=True, workflow_completion_timeout_sec=seconds)
            _dbos_logger.removeFilter(_in_one_line)
        self._locks.close()

    def _watch(self) -> None:
        failures = (StorageError, self._locks.errors, require("dbos", package=PACKAGE).error.DBOSException)
        while not self._stop.wait(LOOK_SECONDS):
            try:
                self._locks.hold(self.id)
                self._take_over()
                self._stop_cancelled()
            except failures as error:
                logger.warning("worker %r could not look after others: %s", self.id, not_reached(error))

    def _take_over(self) -> None:
        pending = self._dbos.list_workflows(
            status="PENDING", queue_name=self._queue, app_version=VERSION, load_input=False, load_output=False
        )
        for other in {one.executor_id or "" for one in pending} - {self.id}:
            if self._locks.take(other):
                logger.warning("worker %r is dead: its runs go on elsewhere", other)
                try:
                    self._dbos._recover_pending_workflows([other])
                finally:
                    self._locks.free(other)

    def _stop_cancelled(self) -> None:
        if mine := self._runs.running():
            cancelled = self._dbos.list_workflows(
                workflow_ids=mine, status="CANCELLED", load_input=False, load_output=False
            )
            for one in cancelled:
                self._runs.stop(one.workflow_id)


class _Locks:
    """PostgreSQL's advisory locks, each named after a worker: the server frees those of a process that ended."""

    def __init__(self, url: str) -> None:
        sqlalchemy: Any = require("sqlalchemy", package=PACKAGE)
        self._text = sqlalchemy.text
        self.errors = sqlalchemy.exc.SQLAlchemyError
        server_side = " ".join(f"-c tcp_{name}={value}" for name, value in _KEEPALIVE.items())
        self._engine: Any = sqlalchemy.create_engine(
            url,
            isolation_level="AUTOCOMMIT",
            connect_args={**_KEEPALIVE, "options": server_side, "application_name": APP},
        )
        self._db: Any = None
        self._is_held = False
        """This worker's own, on this connection."""

    def hold(self, worker: str) -> None:
        """Hold this worker's lock; take it again if the connection was lost.

        Raises:
            StorageError: It cannot be had now.
        """
        if self._is_held:
            self._ask("SELECT true")
            return
        self._is_held = self.take(worker)
        if not self._is_held:
            raise StorageError("another holds this worker's lock; its connection was lost, and is taken for dead")

    def take(self, worker: str) -> bool:
        """True if the lock was free, and is held now."""
        return self._ask("SELECT pg_try_advisory_lock(:key)", key=_key(worker))

    def free(self, worker: str) -> None:
        """Let go of it."""
        self._ask("SELECT pg_advisory_unlock(:key)", key=_key(worker))

    def close(self) -> None:
        """Let go of all."""
        if self._db is not None:
            self._db.close()
        self._engine.dispose()

    def _ask(self, query: str, **given: Any) -> bool:
        try:
            if self._db is None:
                self._db = self._engine.connect()
            return bool(self._db.execute(self._text(query), given).scalar())
        except self.errors as error:
            if self._db is not None:
                self._db.invalidate()
                self._db.close()
            self._db, self._is_held = None, False
            raise not_reached(error) from None


def not_reached(error: Any) -> StorageError:
    """`error`, in our words: what the driver says may hold the password."""
    if isinstance(error, StorageError):
        return error
    said = " ".join(hidden(str(getattr(error, "orig", None) or error)).split())
    return StorageError(f"the database of DBOS could not be read or written: {said:.400}; see that it runs")


def _key(worker: str) -> int:
    return int.from_bytes(hashlib.blake2b(worker.encode(), digest_size=8).digest(), "big", signed=True)
