"""Runs that outlive their worker: real processes are killed, and another goes on; nothing happens twice."""

import asyncio
import pickle
import sys
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.messages import mentions

from adk_nb import parts, types
from adk_nb.agents import LlmAgent, SequentialAgent
from adk_nb.apps import App, ResumabilityConfig
from adk_nb.engines import DbosEngine, Outcome
from adk_nb.engines.dbos_worker import VERSION
from adk_nb.errors import ConfigurationError, InputError, MissingExtraError, NotFoundError, StorageError
from adk_nb.events import ToolConfirmation
from adk_nb.events.requests import CREDENTIAL_REQUEST
from adk_nb.models import ScriptedLlm
from adk_nb.runners import InMemoryRunner, Runner
from adk_nb.runtime import approvals, interrupts
from adk_nb.runtime.history import open_interrupts
from adk_nb.runtime.interrupts import APPROVALS, Interrupt
from adk_nb.sessions import DatabaseSessionService, Session
from tests.engines.shop import SESSION_KEY, Shop
from tests.engines.shop_worker import FINAL_TEXT, block, engine_of, tell_log
from tests.sessions.postgres import Postgres
from tests.support.polling import eventually

LOCKS = (
    "SELECT pid FROM pg_locks JOIN pg_stat_activity USING (pid) "
    "WHERE locktype = 'advisory' AND granted AND application_name = 'adk-nb'"
)


@pytest.fixture
def shop(postgres: Postgres) -> Iterator[Shop]:
    shop = Shop(postgres)
    yield shop
    for worker in shop.workers:
        worker.kill()


def told(session: Session) -> list[str]:
    """What was said and done, in order."""
    log: list[str] = []
    for event in session.events:
        log += [f"{call.name}?" for call in event.get_function_calls() if call.name != approvals.REQUEST]
        log += [f"{response.name}: {response.response}" for response in event.get_function_responses()]
        log += [event.text] if event.text else []
    return log


def answer_to(interrupt: Interrupt, *, confirmed: bool = True) -> types.Content:
    return types.Content(role="user", parts=[interrupts.answer(interrupt, ToolConfirmation(confirmed=confirmed))])


@pytest.mark.slow
@pytest.mark.postgres
def test_a_run_whose_worker_is_killed_in_a_tool_is_finished_by_another(shop: Shop):
    first = shop.worker("stamp")
    run_id = shop.start("look stamp")
    assert first.heard()[0] == "look"
    name, key, attempt = first.heard()
    assert (name, attempt) == ("stamp", 1)

    first.kill()
    other_worker = shop.worker()

    assert other_worker.heard() == ("stamp", key, 2)  # marked; and what came to its end is not done again
    outcome = shop.ended(run_id)
    session = shop.session()
    assert outcome == Outcome(status="done", invocation_id=session.events[0].invocation_id)
    assert told(session) == [
        "look stamp",
        "look?",
        "look: {'result': 'look is done'}",
        "stamp?",
        "stamp: {'result': 'stamp is done'}",
        FINAL_TEXT,
    ]
    assert other_worker.all_heard() == []


@pytest.mark.long
@pytest.mark.postgres
def test_what_may_have_happened_in_a_dead_worker_is_asked_about_and_not_done_by_another(shop: Shop):
    first = shop.worker("look")
    run_id = shop.start("look")
    assert first.heard()[0] == "look"

    first.kill()
    other_worker = shop.worker()

    assert shop.ended(run_id).status == "done"
    [interrupt] = open_interrupts(shop.session().events, APPROVALS)
    assert "taken effect" in interrupt.prompt
    assert shop.ended(shop.start(answer_to(interrupt, confirmed=False))).status == "done"
    assert told(shop.session())[-1] == FINAL_TEXT and other_worker.all_heard() == []


@pytest.mark.slow
@pytest.mark.postgres
def test_an_approval_that_waits_outlives_its_worker_and_counts_once(shop: Shop):
    first = shop.worker()
    assert shop.ended(shop.start("pay")).status == "done"
    [interrupt] = open_interrupts(shop.session().events, APPROVALS)

    first.kill()
    assert first.all_heard() == []
    other_worker = shop.worker()
    answers = [shop.start(answer_to(interrupt)) for _ in range(2)]

    assert other_worker.heard()[0] == "pay"
    outcomes = [shop.ended(answer) for answer in answers]
    assert [outcome.status for outcome in outcomes] == ["done", "failed"]
    assert mentions(outcomes[1].error, f"approval {interrupt.id!r} … answered already")
    assert (
        told(shop.session())[-2:] == ["pay: {'result': 'pay is done'}", FINAL_TEXT] and other_worker.all_heard() == []
    )


@pytest.mark.long
@pytest.mark.postgres
def test_an_approved_call_whose_worker_is_killed_in_it_is_asked_about_again(shop: Shop):
    first = shop.worker("pay")
    assert shop.ended(shop.start("pay")).status == "done"
    [interrupt] = open_interrupts(shop.session().events, APPROVALS)
    run_id = shop.start(answer_to(interrupt))
    assert first.heard()[0] == "pay"

    first.kill()
    other_worker = shop.worker()

    assert shop.ended(run_id).status == "done"
    [repeated_interrupt] = open_interrupts(shop.session().events, APPROVALS)
    assert repeated_interrupt.id != interrupt.id and "taken effect" in repeated_interrupt.prompt
    assert other_worker.all_heard() == []


@pytest.mark.postgres
@pytest.mark.long
def test_many_runs_of_two_workers_of_which_one_is_killed_come_to_their_ends_once(shop: Shop):
    places = [f"s{number}" for number in range(12)]

    async def start(engine: DbosEngine) -> Any:
        return await asyncio.gather(
            *(engine.start(user_id="u", session_id=place, new_message="look stamp") for place in places)
        )

    first = shop.worker("stamp")
    runs = shop.do(start)
    responses = [first.heard()]
    other_worker = shop.worker()
    responses += [first.heard(), *first.all_heard()]
    first.kill()
    responses += first.all_heard()

    assert {shop.ended(run).status for run in runs} == {"done"}
    rows = [shop.row(run) for run in runs]
    assert {(row["application_version"], row["serialization"]) for row in rows} == {(VERSION, "adk_nb_json")}
    assert all(row["executor_id"].startswith("process ") for row in rows)
    responses += other_worker.all_heard()
    for place in places:
        session = shop.session(place)
        interrupts = open_interrupts(session.events, APPROVALS)  # whether the dead worker had looked
        assert (told(session)[-1] == FINAL_TEXT) is not bool(interrupts)
    assert max(Counter((name, key, attempt) for name, key, attempt in responses).values()) == 1
    assert max(Counter(key for name, key, _ in responses if name == "look").values()) == 1


@pytest.mark.long
@pytest.mark.postgres
def test_who_is_taken_for_dead_and_is_not_keeps_its_run(shop: Shop):
    first = shop.worker("stamp", lease=15.0)
    run_id = shop.start("stamp")
    assert first.heard()[0] == "stamp"

    shop.worker("stamp", lease=15.0)
    # What DBOS does for an executor that is said to be dead.
    shop.postgres.sql(
        "UPDATE dbos.workflow_status SET status = 'ENQUEUED', owner_xid = NULL, started_at_epoch_ms = NULL "
        f"WHERE workflow_uuid = '{run_id}'"
    )
    eventually(lambda: shop.row(run_id)["recovery_attempts"] == 2)
    first.let_go()

    assert shop.ended(run_id).status == "done"
    assert told(shop.session())[-2:] == ["stamp: {'result': 'stamp is done'}", FINAL_TEXT]
    assert [worker.all_heard() for worker in shop.workers] == [[], []]


@pytest.mark.long
@pytest.mark.postgres
def test_a_worker_that_lost_its_lock_takes_it_again(shop: Shop):
    first = shop.worker("stamp")
    earlier_eventually = eventually(lambda: len(sql := shop.postgres.sql(LOCKS)) == 1 and sql[0][0])

    shop.postgres.sql(f"SELECT pg_terminate_backend({earlier_eventually})")

    assert eventually(lambda: [pid for (pid,) in shop.postgres.sql(LOCKS) if pid != earlier_eventually])
    run_id = shop.start("stamp")
    assert first.heard()[0] == "stamp"
    first.kill()
    assert eventually(lambda: not shop.postgres.sql(LOCKS))
    assert shop.worker().heard()[::2] == ("stamp", 2)
    assert shop.ended(run_id).status == "done"


@pytest.mark.long
@pytest.mark.postgres
def test_a_run_outlives_a_restart_of_the_database(shop: Shop):
    worker = shop.worker("stamp")
    run_id = shop.start("stamp")
    assert worker.heard()[::2] == ("stamp", 1)

    shop.postgres.stop()
    try:
        worker.let_go()
        with pytest.raises(StorageError, match="database of DBOS"):
            shop.start("look")
    finally:
        shop.postgres.start()

    assert worker.heard()[::2] == ("stamp", 2)  # nobody could note that it was done
    worker.let_go()
    assert shop.ended(run_id).status == "done"
    assert told(shop.session())[-1] == FINAL_TEXT


@pytest.mark.slow
@pytest.mark.postgres
def test_a_worker_that_leaves_finishes_what_it_is_at(shop: Shop):
    worker = shop.worker("stamp")
    run_id = shop.start("stamp")
    assert worker.heard()[0] == "stamp"

    worker.leave()
    worker.let_go()

    assert worker.ended() == 0
    assert shop.row(run_id)["status"] == "SUCCESS" and told(shop.session())[-1] == FINAL_TEXT
    assert shop.postgres.sql(LOCKS) == []


@pytest.mark.long
@pytest.mark.postgres
def test_a_run_is_cancelled_from_another_process(shop: Shop):
    worker = shop.worker("stamp")
    run_id = shop.start("stamp")
    assert worker.heard()[0] == "stamp"

    shop.do(lambda engine: engine.cancel(run_id))

    assert shop.ended(run_id) == Outcome(status="cancelled")
    last = eventually(lambda: [event for event in shop.session(at_work=True).events if event.error_code])[-1]
    assert last.error_code == "INVOCATION_ABORTED"


@pytest.mark.slow
@pytest.mark.postgres
def test_a_run_that_fails_is_one_line_in_the_log_and_one_that_was_cancelled_is_none(shop: Shop):
    worker = shop.process(tell_log, ("stamp",))
    assert worker.heard()[0] == "working"
    cancelled = shop.start("stamp")
    assert worker.heard()[0] == "stamp"
    shop.do(lambda engine: engine.cancel(cancelled))
    eventually(lambda: any(event.error_code for event in shop.session(at_work=True).events))

    part = parts.result("nope", approvals.REQUEST, {"confirmed": True})
    failed = shop.start(types.Content(role="user", parts=[part]), session_id="other")

    assert shop.ended(failed).status == "failed"
    (_, first), (_, second) = worker.heard(), worker.heard()
    assert f"{cancelled} outcome was not recorded" in first and "\n" not in first
    assert second.startswith(f"{failed} Exception encountered") and "\n" not in second
    assert "InputError: approval 'nope' is not open" in second
    worker.leave()


@pytest.mark.long
@pytest.mark.postgres
def test_an_event_loop_that_is_blocked_stops_no_run_and_a_process_has_one_worker(shop: Shop):
    process = shop.process(block)

    assert process.heard() == "look"
    assert process.heard() == "this process uses DBOS already; start the worker in a process of its own"
    assert process.heard() == "stamp"
    assert process.heard() == "look"  # the same cell once more


class Gadget:
    """Whose pickle, when it is read, makes a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self._path,)


@pytest.mark.slow
@pytest.mark.postgres
def test_a_row_that_claims_to_be_a_pickle_is_refused_and_runs_no_code(shop: Shop, tmp_path: Path):
    path = tmp_path / "made"
    gadget = pickle.dumps(Gadget(path))
    pickle.loads(gadget)
    assert path.exists()  # it would
    path.unlink()

    def poison(run_id: str, table: str, column: str) -> None:
        text = f"WHERE workflow_uuid = '{run_id}'"
        shop.postgres.sql(
            f"UPDATE dbos.{table} SET {column} = '{b64encode(gadget).decode()}' {text}",
            f"UPDATE dbos.workflow_status SET serialization = 'py_pickle' {text}",
        )
        assert shop.postgres.sql(f"SELECT {column} FROM dbos.{table} {text}") == [(b64encode(gadget).decode(),)]

    process = shop.start("look")
    poison(process, "workflow_input", "inputs")
    worker = shop.worker()
    assert shop.ended(process).status == "failed" and shop.row(process)["status"] == "ERROR"
    steps = shop.start("look")
    assert worker.heard()[0] == "look" and shop.ended(steps).status == "done"
    poison(steps, "workflow_output", "output")
    failed = shop.start(types.Content(role="user"), session_id="other")
    assert shop.ended(failed).status == "failed"
    poison(failed, "workflow_output", "error")

    assert shop.ended(steps) == Outcome(status="failed", error="its row in the database cannot be read")
    assert shop.ended(failed).status == "failed"
    assert not path.exists() and worker.all_heard() == []


@pytest.mark.slow
@pytest.mark.postgres
def test_what_is_said_comes_as_it_was_said_and_an_id_given_twice_is_one_run(shop: Shop):
    odd = "\x00 \\u0000 é \u202e </script>'; DROP TABLE events; -- \N{FACE WITH TEARS OF JOY}"
    blob = types.Part(inline_data=types.Blob(mime_type="image/png", data=b"\x89PNG\xff\x00"))
    message = types.Content(role="user", parts=[blob, types.Part(text=odd), types.Part(text="look")])

    async def start(engine: DbosEngine) -> list[str]:
        values: dict[str, Any] = {
            **SESSION_KEY,
            "new_message": message,
            "state_delta": {"é": [1, None]},
            "run_id": "mine",
        }
        return [await engine.start(**values) for _ in range(2)]

    assert shop.do(start) == ["mine", "mine"]
    worker = shop.worker()
    assert shop.ended("mine").status == "done"
    session = shop.session()
    first = session.events[0]
    assert first.content and first.content.parts == message.parts
    assert session.state["é"] == [1, None] and len([event for event in session.events if event.author == "user"]) == 1
    assert len(worker.all_heard()) == 1


@pytest.mark.slow
@pytest.mark.postgres
def test_an_id_that_another_request_has_used_is_refused_and_the_first_run_is_as_it_was(shop: Shop):
    first: dict[str, Any] = {**SESSION_KEY, "new_message": "look", "state_delta": {"a": 1, "b": 2}, "run_id": "order-1"}
    others: list[tuple[dict[str, Any], str]] = [
        ({"user_id": "eve"}, "user_id"),
        ({"session_id": "other"}, "session_id"),
        ({"new_message": "look stamp"}, "message"),
        ({"state_delta": {"a": True, "b": 2}}, "state_delta"),
        ({"state_delta": None}, "state_delta"),
        ({"user_id": "eve", "new_message": "stamp"}, "user_id, message"),
    ]

    def check_others() -> None:
        for changed, names in others:
            with pytest.raises(InputError, match=f"'order-1' is that of another request, with another {names};"):
                shop.do(lambda engine, changed=changed: engine.start(**first | changed))

    assert shop.do(lambda engine: engine.start(**first)) == "order-1"
    check_others()  # while it waits
    worker = shop.worker()
    assert shop.ended("order-1").status == "done"
    check_others()  # and when it is done
    content = types.Content(role="user", parts=[types.Part(text="look")])
    equal: dict[str, Any] = first | {"new_message": content, "state_delta": {"b": 2, "a": 1}}
    assert shop.do(lambda engine: engine.start(**equal)) == "order-1"

    assert [name for name, *_ in worker.all_heard()] == ["look"]
    assert told(shop.session()) == ["look", "look?", "look: {'result': 'look is done'}", FINAL_TEXT]
    other_app = Shop(shop.postgres)
    with pytest.raises(InputError, match="with another app;"):
        other_app.do(lambda engine: engine.start(**first))


@pytest.mark.postgres
def test_what_cannot_be_kept_is_refused_before_it_is_started(shop: Shop):
    secret = types.FunctionResponse(id="c", name=CREDENTIAL_REQUEST, response={"password": "hunter2"})
    wrong: dict[str, Any] = {
        "contains a credential": [types.Part(function_response=secret)],
        "JSON.*surrogates": "half a character: \ud800",
    }
    for key, message in wrong.items():
        with pytest.raises(InputError, match=key):
            shop.start(message)
    nowhere = shop.postgres.url().replace("/postgres?", "/nodb?")
    with pytest.raises(StorageError, match='database "nodb" does not exist'):
        asyncio.run(engine_of(nowhere, shop.app).wait("none"))
    assert shop.postgres.sql("SELECT true FROM pg_database WHERE datname = 'nodb'") == []
    ids: list[tuple[str, Any]] = [("user_id", ""), ("session_id", " "), ("run_id", ""), ("run_id", 5)]
    for name, wrong_id in ids:
        with pytest.raises(InputError, match=f"the {name} of a run.*got {wrong_id!r}"):
            shop.start("look", **{name: wrong_id})
    with pytest.raises(NotFoundError, match="no run named 'none'; start it first"):
        shop.ended("none")
    with pytest.raises(NotFoundError, match="no run named 'none'; start it first"):
        shop.do(lambda engine: engine.cancel("none"))


def test_an_engine_is_refused_where_no_worker_could_go_on():
    url = "postgresql://u:p@h/d"
    service = DatabaseSessionService(url)
    clerk = LlmAgent(name="clerk", model=ScriptedLlm())
    series = SequentialAgent(name="series", sub_agents=[clerk])

    with pytest.raises(ConfigurationError, match="InMemorySessionService"):
        DbosEngine(InMemoryRunner(clerk), url)
    with pytest.raises(ConfigurationError, match=r"'series'.*is_resumable=True"):
        DbosEngine(Runner(app_name="app", agent=series, session_service=service), url)
    marked = App(name="app", root_agent=series, resumability_config=ResumabilityConfig(is_resumable=True))
    runner = Runner(app=marked, session_service=service)
    DbosEngine(runner, url)
    value: Any = clerk
    with pytest.raises(ConfigurationError, match=r"a Runner, got .*; write DbosEngine\(Runner"):
        DbosEngine(value, url)
    value = {"max_llm_calls": 1}
    with pytest.raises(ConfigurationError, match="RunConfig"):
        DbosEngine(runner, url, run_config=value)
    for wrong in ("sqlite:///nb.db", "nonsense", "postgresql://h"):
        with pytest.raises(InputError, match=r"PostgreSQL.*; write postgresql://"):
            DbosEngine(runner, wrong)


def test_what_to_type_is_told_where_dbos_is_not_installed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "dbos", None)
    runner = InMemoryRunner(LlmAgent(name="clerk", model=ScriptedLlm()))

    with pytest.raises(MissingExtraError, match=r"'dbos'.*type: %pip install \"dbos<"):
        DbosEngine(runner, "postgresql://u:p@h/d")
