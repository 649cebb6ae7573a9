"""Runs that outlive their worker: real processes are killed, and another goes on; nothing happens twice."""

import asyncio
import multiprocessing
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from adk_nb import clock, types
from adk_nb.engines import DbosEngine, Outcome
from adk_nb.events import ToolConfirmation
from adk_nb.runtime import approvals
from adk_nb.sessions import DatabaseSessionService, Session
from tests.engines.shop_worker import DONE, engine_of, work
from tests.sessions.postgres import Postgres

SECONDS = 20
WHERE: dict[str, Any] = {"user_id": "u", "session_id": "s"}


class Worker:
    """A process, and the doors to it."""

    def __init__(self, context: Any, url: str, app: str, waits: tuple[str, ...]) -> None:
        self._tells, tells = context.Pipe()
        goes, self._goes = context.Pipe(duplex=False)
        self._process = context.Process(target=work, args=(url, app, tells, goes, waits))
        self._process.start()
        tells.close()

    def heard(self) -> Any:
        assert self._tells.poll(SECONDS), "the worker says nothing"
        return self._tells.recv()

    def is_silent(self) -> bool:
        return not self._tells.poll()

    def let_go(self) -> None:
        self._goes.send("go")

    def leave(self) -> None:
        self._tells.send("leave")
        self._process.join(SECONDS)
        assert self._process.exitcode == 0

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

    def worker(self, *waits: str) -> "Worker":
        """A process; its tools in `waits` wait until they may go on."""
        made = Worker(self.context, self.postgres.url(), self.app, waits)
        self.workers.append(made)
        assert made.heard()[0] == "working"
        return made

    def do(self, use: Callable[[DbosEngine], Any]) -> Any:
        """What `use` gives, with an engine that does not work."""

        async def run() -> Any:
            engine = engine_of(self.postgres.url(), self.app)
            try:
                return await asyncio.wait_for(use(engine), SECONDS)
            finally:
                await engine.close()

        return asyncio.run(run())

    def start(self, message: Any, **where: Any) -> str:
        return self.do(lambda engine: engine.start(**WHERE | where, new_message=message))

    def ended(self, run_id: str) -> Outcome:
        return self.do(lambda engine: engine.wait(run_id))

    def session(self, session_id: str = "s") -> Session:
        async def read() -> Any:
            service = DatabaseSessionService(self.postgres.url())
            session = await service.get_session(app_name=self.app, user_id="u", session_id=session_id)
            left = session and await service.unfinished(session)
            await service.close()
            assert left == []
            return session

        return asyncio.run(read())

    def row(self, run_id: str) -> dict[str, Any]:
        names = ("status", "executor_id", "application_version", "serialization")
        found = self.postgres.sql(
            f"SELECT {', '.join(names)} FROM dbos.workflow_status WHERE workflow_uuid = '{run_id}'"
        )
        return dict(zip(names, found[0], strict=True))


def told(session: Session) -> list[str]:
    """What was said and done, in order."""
    said: list[str] = []
    for event in session.events:
        said += [f"{call.name}?" for call in event.get_function_calls() if call.name != approvals.REQUEST]
        said += [f"{one.name}: {one.response}" for one in event.get_function_responses()]
        said += [event.text] if event.text else []
    return said


@pytest.fixture
def shop(postgres: Postgres) -> Iterator[Shop]:
    made = Shop(postgres)
    yield made
    for worker in made.workers:
        worker.kill()


@pytest.mark.postgres
def test_a_run_whose_worker_is_killed_in_a_tool_is_finished_by_another(shop: Shop):
    first = shop.worker("stamp")
    run_id = shop.start("look stamp")
    assert first.heard()[0] == "look"
    name, key, attempt = first.heard()
    assert (name, attempt) == ("stamp", 1)

    first.kill()
    other = shop.worker()

    assert other.heard() == ("stamp", key, 2)  # marked; and what came to its end is not done again
    outcome = shop.ended(run_id)
    session = shop.session()
    assert outcome == Outcome(status="done", invocation_id=session.events[0].invocation_id)
    assert told(session) == [
        "look stamp",
        "look?",
        "look: {'result': 'look is done'}",
        "stamp?",
        "stamp: {'result': 'stamp is done'}",
        DONE,
    ]
    assert other.is_silent()


@pytest.mark.postgres
def test_what_may_have_happened_in_a_dead_worker_is_asked_about_and_not_done_by_another(shop: Shop):
    first = shop.worker("look")
    run_id = shop.start("look")
    assert first.heard()[0] == "look"

    first.kill()
    other = shop.worker()

    assert shop.ended(run_id).status == "done"
    [asked] = approvals.pending(shop.session().events)
    assert "may already have happened" in asked.hint and other.is_silent()
    run_id = shop.start(answer_to(asked, confirmed=False))
    assert shop.ended(run_id).status == "done"
    assert told(shop.session())[-1] == DONE and other.is_silent()


def answer_to(asked: approvals.Pending, *, confirmed: bool = True) -> types.Content:
    return types.Content(role="user", parts=[approvals.answer(asked.id, ToolConfirmation(confirmed=confirmed))])


@pytest.mark.postgres
def test_an_approval_that_waits_outlives_its_worker_and_counts_once(shop: Shop):
    first = shop.worker()
    assert shop.ended(shop.start("pay")).status == "done"
    [asked] = approvals.pending(shop.session().events)

    first.kill()
    other = shop.worker()
    answers = [shop.start(answer_to(asked)) for _ in range(2)]

    assert other.heard()[0] == "pay"
    outcomes = [shop.ended(one) for one in answers]
    assert [one.status for one in outcomes] == ["done", "failed"]
    assert f"approval {asked.id!r} is not open; it was answered already" in str(outcomes[1].error)
    assert told(shop.session())[-2:] == ["pay: {'result': 'pay is done'}", DONE] and other.is_silent()
