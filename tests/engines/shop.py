"""A shop for tests: worker processes that share a database, and someone who is no worker."""

import asyncio
import multiprocessing
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from adk_nb import clock
from adk_nb.engines import DbosEngine, Outcome
from adk_nb.sessions import DatabaseSessionService, Session
from tests.engines.shop_worker import engine_of, work
from tests.sessions.postgres import Postgres
from tests.support.polling import SECONDS

SESSION_KEY: dict[str, Any] = {"user_id": "u", "session_id": "s"}


class Worker:
    """A process, and the doors to it."""

    def __init__(self, context: Any, does: Any, url: str, app: str, waits: tuple[str, ...], lease: float) -> None:
        self._tells, tells = context.Pipe()
        goes, self._goes = context.Pipe(duplex=False)
        self._process = context.Process(target=does, args=(url, app, tells, goes, waits, lease))
        self._process.start()
        tells.close()

    def heard(self) -> Any:
        assert self._tells.poll(SECONDS), "the worker says nothing"
        return self._tells.recv()

    def all_heard(self) -> list[Any]:
        """What it has told so far, and nobody heard yet."""
        messages: list[Any] = []
        with suppress(EOFError):
            while self._tells.poll():
                messages.append(self._tells.recv())
        return messages

    def let_go(self) -> None:
        self._goes.send("go")

    def leave(self) -> None:
        """Returns as soon as it is about to."""
        self._tells.send("leave")
        assert self.heard()[0] == "leaving"

    def ended(self) -> int:
        self._process.join(SECONDS)
        return self._process.exitcode

    def kill(self) -> None:
        self._process.kill()
        self._process.join(SECONDS)


class Shop:
    """Worker processes that share a database, and someone who is no worker."""

    def __init__(self, postgres: Postgres) -> None:
        self.postgres = postgres
        self.app = f"shop-{clock.new_id()}"
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(["pytest", "tests.engines.shop_worker_ready"])
        self.workers: list[Worker] = []

    def process(self, does: Any, waits: tuple[str, ...] = (), lease: float = 1.0) -> Worker:
        worker = Worker(self.context, does, self.postgres.url(), self.app, waits, lease)
        self.workers.append(worker)
        return worker

    def worker(self, *waits: str, lease: float = 1.0) -> Worker:
        """A process; its tools in `waits` wait until they may go on. `lease`: as in `work`."""
        process = self.process(work, waits, lease)
        assert process.heard()[0] == "working"
        return process

    def do(self, use: Callable[[DbosEngine], Any]) -> Any:
        """What `use` gives, with an engine that does not work."""

        async def run() -> Any:
            engine = engine_of(self.postgres.url(), self.app)
            try:
                return await asyncio.wait_for(use(engine), SECONDS)
            finally:
                await engine.close()

        return asyncio.run(run())

    def start(self, message: Any, **kwargs: Any) -> str:
        return self.do(lambda engine: engine.start(**SESSION_KEY | kwargs, new_message=message))

    def ended(self, run_id: str) -> Outcome:
        return self.do(lambda engine: engine.wait(run_id))

    def session(self, session_id: str = "s", *, at_work: bool = False) -> Session:
        """`at_work`: a run may be at work in it."""

        async def read() -> Any:
            service = DatabaseSessionService(self.postgres.url())
            session = await service.get_session(app_name=self.app, user_id="u", session_id=session_id)
            remaining_session = session and await service.unfinished(session)
            await service.close()
            assert at_work or remaining_session == []
            return session

        return asyncio.run(read())

    def row(self, run_id: str) -> dict[str, Any]:
        """What DBOS has of a run."""
        names = ("status", "executor_id", "application_version", "serialization", "recovery_attempts")
        sql = self.postgres.sql(f"SELECT {', '.join(names)} FROM dbos.workflow_status WHERE workflow_uuid = '{run_id}'")
        return dict(zip(names, sql[0], strict=True))
