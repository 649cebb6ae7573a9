"""A run that was cut, by the end of its process: what comes of it when something else is said, and when it goes on."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from adk_nb import types
from adk_nb.agents import LlmAgent
from adk_nb.errors import InputError, StorageError
from adk_nb.events import Event, ToolConfirmation
from adk_nb.models import ScriptedLlm, call
from adk_nb.runtime import approvals, interrupts
from adk_nb.runtime.approvals import IN_DOUBT, NOT_MADE
from adk_nb.runtime.history import open_interrupts
from adk_nb.runtime.interrupts import APPROVALS
from adk_nb.sessions import Session, SqliteSessionService
from adk_nb.sessions.journal import LEASE_SECONDS
from adk_nb.tools import AgentTool, FunctionTool, ToolContext, exit_loop, load_memory, tool, transfer_to_agent
from tests.runtime.ledger import (
    SESSION_KEY,
    Ledger,
    confirmed,
    cut,
    events_of,
    rows,
    runner_of,
    stored,
    talk,
    texts,
    using,
)
from tests.support.role_rules import check_roles


class Till:
    """A tool that closes the service once, in its midst."""

    def __init__(self, service: SqliteSessionService) -> None:
        self.service: SqliteSessionService | None = service
        self.paid = 0

    def tool(self, version: int = 1) -> FunctionTool:
        async def pay() -> str:
            """Pays."""
            self.paid += 1
            if self.service:
                service, self.service = self.service, None
                await service.close()
            return f"paid {version}"

        return FunctionTool(pay, require_confirmation=True)


def agent(*answers: Any, name: str = "clerk", **fields: Any) -> tuple[LlmAgent, ScriptedLlm]:
    model = ScriptedLlm(*answers)
    return LlmAgent(name=name, model=model, **fields), model


def closes(service: SqliteSessionService) -> Any:
    """A callback that closes the service."""

    async def close(**_: Any) -> None:
        await service.close()

    return close


async def die(agent: LlmAgent, service: SqliteSessionService, ticks: list[float], said: Any = "go") -> str:
    """A run in which something closes the service: what comes after is as after a kill. The id of the run."""
    seen: list[Event] = []
    with pytest.raises(StorageError, match="this session service is closed"):
        async for event in talk(runner_of(agent, service), said):
            seen.append(event)  # noqa: PERF401  # what came before the error
    ticks[0] += LEASE_SECONDS + 1
    return seen[0].invocation_id if seen else ""


def results(session: Session) -> dict[str, list[Any]]:
    """What calls were answered, by the names of the tools; placeholders left out."""
    found: dict[str, list[Any]] = {}
    for event in session.events:
        for one in event.get_function_responses():
            if one.name != approvals.REQUEST and one.response not in approvals.PLACEHOLDERS:
                found.setdefault(one.name or "", []).append(one.response)
    return found


def check_closed(session: Session) -> None:
    calls = {one.id for event in session.events for one in event.get_function_calls() if one.name != approvals.REQUEST}
    assert calls == calls & {one.id for event in session.events for one in event.get_function_responses()}


# -- new words


def test_new_words_close_what_a_run_that_was_cut_left_open(tmp_path: Path, ticks: list[float]):
    ledger = Ledger(tmp_path / "nb.db")

    async def use(service: SqliteSessionService) -> None:
        run_id = await cut(ledger, ticks)
        ledger.done.clear()
        clerk, model = agent("I see", "Yes?", "late", tools=[*ledger.tools()])
        runner = runner_of(clerk, service)
        assert texts(await events_of(talk(runner, "what is it?"))) == ["I see"]

        check_roles(model.requests[0].contents)
        session = await stored(service)
        check_closed(session)
        doubt = [{"error": IN_DOUBT}]
        assert results(session) == {"look": doubt, "put": doubt, "pay": doubt, "send": [{"result": "stamped"}]}
        assert session.state == {"sent": "stamped"} and texts(session.events) == ["go", "what is it?", "I see"]
        assert await service.unfinished(session) == []
        marked = rows(ledger.path, "SELECT name, attempt FROM intents WHERE finished IS NULL ORDER BY name")
        assert marked == [("look", 1), ("pay", 1), ("put", 1)]

        await events_of(talk(runner, "and now?"))
        await events_of(runner.run_async(**SESSION_KEY, invocation_id=run_id))
        assert ledger.done == [] and results(await stored(service)) == results(session)

    using(ledger.path, use)


def test_so_do_words_that_come_after_a_message_which_was_refused(tmp_path: Path, ticks: list[float]):
    async def use(service: SqliteSessionService) -> None:
        await cut(Ledger(tmp_path / "nb.db"), ticks)
        clerk, _ = agent("I see", tools=[*Ledger(tmp_path / "nb.db").tools()])
        runner = runner_of(clerk, service)
        nobody = types.FunctionResponse(id="none", name="pay", response={})
        with pytest.raises(InputError, match="answers no call"):
            await events_of(talk(runner, types.Content(role="user", parts=[types.Part(function_response=nobody)])))
        assert len(await service.unfinished(await stored(service))) == 1
        await events_of(talk(runner, "what is it?"))
        check_closed(await stored(service))
        assert await service.unfinished(await stored(service)) == []

    using(tmp_path / "nb.db", use)


def test_a_call_that_was_not_made_yet_is_told_as_that(tmp_path: Path, ticks: list[float]):
    async def use(service: SqliteSessionService) -> None:
        first = SqliteSessionService(tmp_path / "nb.db")
        clerk, _ = agent(call("send"), tools=[send := Ledger(tmp_path / "nb.db").tools()[3]])
        clerk.before_tool_callback = closes(first)
        await die(clerk, first, ticks)

        clerk, model = agent("I see", tools=[send])
        await events_of(talk(runner_of(clerk, service), "what is it?"))
        check_roles(model.requests[0].contents)
        assert results(await stored(service)) == {"send": [{"error": NOT_MADE}]}

    using(tmp_path / "nb.db", use)


def test_so_are_calls_of_agents_that_were_called_as_tools(tmp_path: Path, ticks: list[float]):
    async def use(service: SqliteSessionService) -> None:
        first = SqliteSessionService(tmp_path / "nb.db")

        async def pay() -> None:
            """Pays."""
            await first.close()

        def team(*answers: Any) -> tuple[LlmAgent, ScriptedLlm]:
            inner, _ = agent(call("pay"), name="inner", tools=[pay])
            return agent(*answers, tools=[AgentTool(agent=inner, stream_events=True)])

        outer, _ = team(call("inner", request="pay"))
        await die(outer, first, ticks)
        outer, model = team("I see")
        await events_of(talk(runner_of(outer, service), "what is it?"))
        check_roles(model.requests[0].contents)
        session = await stored(service)
        check_closed(session)
        assert results(session) == {"inner": [{"error": IN_DOUBT}], "pay": [{"error": IN_DOUBT}]}

    using(tmp_path / "nb.db", use)


async def approved_and_cut(path: Path, ticks: list[float]) -> Till:
    """A run that pays, which a person had approved, and is cut at that."""
    first = SqliteSessionService(path)
    till = Till(first)
    clerk, _ = agent(call("pay"), tools=[till.tool()])
    await events_of(talk(runner_of(clerk, first)))
    await die(clerk, first, ticks, confirmed((await stored(first)).events, yes=True))
    return till


def test_what_a_person_had_let_run_still_waits_for_their_word(tmp_path: Path, ticks: list[float]):
    async def use(service: SqliteSessionService) -> None:
        till = await approved_and_cut(tmp_path / "nb.db", ticks)
        clerk, model = agent("I see", "done", tools=[till.tool()])
        runner = runner_of(clerk, service)
        assert texts(await events_of(talk(runner, "what is it?"))) == ["I see"]
        check_roles(model.requests[0].contents)

        await events_of(talk(runner, confirmed((await stored(service)).events, yes=True)))  # to what was asked first
        (asked,) = open_interrupts((await stored(service)).events, APPROVALS)
        assert till.paid == 1 and "taken effect" in asked.prompt
        await events_of(talk(runner, confirmed((await stored(service)).events, yes=True)))
        assert till.paid == 2 and results(await stored(service)) == {"pay": [{"result": "paid 1"}]}

    using(tmp_path / "nb.db", use)


def test_who_answers_the_same_again_takes_the_place_of_a_run_that_was_cut(tmp_path: Path, ticks: list[float]):
    async def use(service: SqliteSessionService) -> None:
        till = await approved_and_cut(tmp_path / "nb.db", ticks)
        clerk, model = agent("done", tools=[till.tool()])
        runner = runner_of(clerk, service)
        assert [run.is_alive for run in await service.unfinished(await stored(service))] == [False]

        for _ in range(2):  # what was asked first, and what is asked since nobody knows whether it was paid
            await events_of(talk(runner, confirmed((await stored(service)).events, yes=True)))

        assert till.paid == 2 and len(model.requests) == 1
        assert await service.unfinished(await stored(service)) == []

    using(tmp_path / "nb.db", use)


def test_of_a_call_in_doubt_whose_tool_was_redefined_nobody_says_that_it_did_not_run(
    tmp_path: Path, ticks: list[float]
):
    async def use(service: SqliteSessionService) -> None:
        till = await approved_and_cut(tmp_path / "nb.db", ticks)
        runner = runner_of(agent("done", tools=[till.tool(version=2)])[0], service)
        await events_of(talk(runner, confirmed((await stored(service)).events, yes=True)))
        (told,) = results(await stored(service))["pay"]
        assert till.paid == 1 and told["error"].startswith(f"{IN_DOUBT}; it was not repeated")

    using(tmp_path / "nb.db", use)


# -- going on


@pytest.mark.parametrize(
    ("tool", "args"), [(exit_loop, {}), (load_memory, {"query": "it"}), (transfer_to_agent, {"agent_name": "other"})]
)
def test_nobody_is_asked_about_tools_of_ours_that_do_nothing_outside_their_run(
    tmp_path: Path, ticks: list[float], tool: Any, args: dict[str, Any]
):
    async def use(service: SqliteSessionService) -> None:
        first, name = SqliteSessionService(tmp_path / "nb.db"), getattr(tool, "name", None) or tool.__name__
        clerk, _ = agent(call(name, **args), tools=[tool], sub_agents=[agent("hello", name="other")[0]])
        clerk.after_tool_callback = closes(first)
        run_id = await die(clerk, first, ticks)

        clerk, _ = agent("done", tools=[tool], sub_agents=[agent("hello", name="other")[0]])
        await events_of(runner_of(clerk, service).run_async(**SESSION_KEY, invocation_id=run_id))
        session = await stored(service)
        assert open_interrupts(session.events, APPROVALS) == [] and len(results(session)[name]) == 1
        assert rows(tmp_path / "nb.db", "SELECT attempt, finished IS NULL FROM intents") == [(1, 1), (2, 0)]

    using(tmp_path / "nb.db", use)


class Deaf(SqliteSessionService):
    """Stores each event, and fails to say so of one: its caller does not know whether it is stored."""

    def __init__(self, path: Path, deaf_at: int) -> None:
        super().__init__(path)
        self.appended = 0
        self._deaf_at = deaf_at

    async def append_event(self, session: Session, event: Event) -> Event:
        event = await super().append_event(session, event)
        self.appended += 1
        if self.appended == self._deaf_at:
            raise StorageError("the connection was lost")
        return event


def test_no_event_is_stored_twice_whichever_of_them_nobody_knew_of(tmp_path: Path):
    """Events have fresh ids, and need no others: a run that goes on reads first what is stored, holds the session
    alone, and makes only what is not there. Results, which are told from the journal, have the same ids each time.
    """

    async def run(deaf_at: int) -> tuple[int, list[Any]]:
        service = Deaf(tmp_path / f"{deaf_at}.db", deaf_at)
        done: list[str] = []

        def look(tool_context: ToolContext) -> str:
            """Looks."""
            done.append(f"look {tool_context.attempt}")
            return "seen"

        def pay() -> str:
            """Pays."""
            done.append("pay")
            return "paid"

        clerk, _ = agent([call("look"), call("pay")], "all done", tools=[tool(effect="pure")(look), pay])
        runner = runner_of(clerk, service)
        said: dict[str, Any] = {"new_message": "go"}
        while True:
            try:
                await events_of(runner.run_async(**SESSION_KEY, **said))
                break
            except StorageError:
                (left,) = await service.unfinished(await stored(service))
                said = {"invocation_id": left.id}
        session = await stored(service)
        await service.close()
        ids = [event.id for event in session.events]
        assert len(set(ids)) == len(ids)
        told = [event for event in session.events if not event.error_code]
        return service.appended, [*sorted(done), *((one.author, one.text, len(one.parts)) for one in told)]

    appended, undisturbed = asyncio.run(run(0))
    assert appended == 4 and undisturbed[:2] == ["look 1", "pay"]
    for deaf_at in range(1, appended + 1):
        assert asyncio.run(run(deaf_at))[1] == undisturbed


# -- equal calls


@pytest.mark.parametrize("yes", [True, False])
def test_a_call_equal_to_one_in_doubt_is_not_made_unasked(tmp_path: Path, ticks: list[float], yes: bool):
    made: list[int] = []

    def clerk(service: SqliteSessionService | None, *answers: Any) -> LlmAgent:
        async def pay() -> str:
            """Pays."""
            made.append(1)
            if service:
                await service.close()
            return "paid"

        return agent(*answers, tools=[FunctionTool(pay, effect="once")])[0]

    async def cut_short(service: SqliteSessionService) -> None:
        await die(clerk(service, [call("pay"), call("pay")]), service, ticks)

    async def use(service: SqliteSessionService) -> None:
        (run,) = await service.unfinished(await stored(service))
        runner = runner_of(clerk(None, "done", "done"), service)
        await events_of(runner.run_async(**SESSION_KEY, invocation_id=run.id))
        assert made == [1]
        doubt, again = open_interrupts((await stored(service)).events, APPROVALS)
        assert doubt.in_doubt and again.earlier == {"call": doubt.call.id, "result": None}
        await events_of(talk(runner, interrupts.answer(again, ToolConfirmation(confirmed=yes))))
        assert made == [1] * (2 if yes else 1)

    using(tmp_path / "nb.db", cut_short)
    using(tmp_path / "nb.db", use)
