"""Rows on a Dask cluster: chunks of rows as tasks, each row committed by its worker to a shared session store."""

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from adk_nb import sync
from adk_nb.errors import InputError
from adk_nb.evaluation.batch import Batch
from adk_nb.evaluation.cases import Case
from adk_nb.evaluation.row_runs import Job, Row
from adk_nb.lazy import require
from adk_nb.sessions.database_session_service import DatabaseSessionService

CHUNK = 50
"""Rows a task: a lost worker costs at most the row it was in, since done rows are found in the store."""
_TIMEOUT = "5s"


async def run_on_cluster(
    batch: Batch, cases: Iterable[Case], *, repeats: int = 1, total: int | None = None, is_retry: bool = False
) -> AsyncGenerator[Row, None]:
    """As `Batch.run`, on the workers of `batch.scheduler`; rows come without events.

    Raises:
        InputError: The session store is not a database that workers reach, or no scheduler answers.
        MissingExtraError: Dask is not installed.
    """
    service = batch.session_service
    if not isinstance(service, DatabaseSessionService):
        raise InputError(
            f"the workers of a cluster share a database, not a {type(service).__name__}; type %config AdkNb.sessions = "
            "'postgresql://...', in a script give session_service=DatabaseSessionService('postgresql://...')"
        )
    distributed = require("distributed", package="adk-nb[dask]")
    try:
        client = await distributed.Client(batch.scheduler, asynchronous=True, timeout=_TIMEOUT)
    except (OSError, TimeoutError) as error:
        raise InputError(f"no Dask scheduler answers at {batch.scheduler!r}: {error}") from error
    spec = _spec(batch, service)

    async def run_chunk(chunk: Sequence[Job]) -> list[Row]:
        # Not pure: Dask would take two equal chunks for one.
        return await client.submit(_run_chunk, spec, chunk, is_retry, pure=False, retries=3)

    async with client:
        # For each thread of the cluster a chunk that runs and one that waits.
        at_once = 2 * max(1, sum((await client.nthreads()).values()))
        jobs = batch.begin(cases, repeats, total)
        async with aclosing(batch.run_chunks(jobs, run_chunk, size=CHUNK, at_once=at_once)) as rows:
            async for row in rows:
                yield row


def _spec(batch: Batch, service: DatabaseSessionService) -> dict[str, Any]:
    """The arguments from which a worker makes the same batch."""
    return {
        "agent": batch.app or batch.agent,
        "stubs": batch.stubs,
        "session_service": service,
        "app_name": batch.runner.app_name,
        "max_concurrency": batch.max_concurrency,
        "confirm": batch.rows.confirm,
        "run_config": batch.rows.run_config,
    }


def _run_chunk(spec: dict[str, Any], chunk: Sequence[Job], is_retry: bool) -> list[Row]:
    """Run some rows on a worker, which imports this function by its name."""

    async def rows() -> list[Row]:
        batch = Batch(**spec)
        try:
            return [
                # The events stay in the store: only the result travels.
                replace(row, events=(), state=None, interrupts=())
                async for row in batch.run_rows(iter(chunk), is_retry=is_retry)
            ]
        finally:
            await batch.close()
            # A worker has its own copy of the service, with connections of its own.
            await spec["session_service"].close()

    return sync.run(rows())
