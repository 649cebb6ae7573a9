"""A graph in a resumable app: killed after any of its events it comes to the same end, and runs little twice."""

import asyncio
from collections import Counter
from contextlib import aclosing
from typing import Any

import pytest
from pydantic import BaseModel

from adk_nb import Context
from adk_nb.agents import LlmAgent, SequentialAgent
from adk_nb.apps import App
from adk_nb.events import Event, RequestInput
from adk_nb.models import BaseLlm, LlmRequest, LlmResponse
from adk_nb.runners import InMemoryRunner, Runner
from adk_nb.sessions import InMemorySessionService
from adk_nb.workflow import START, JoinNode, Workflow, node
from tests.agents.waiting import RESUMABLE, LeftTalk, open_calls, outcome
from tests.support.talk import Talk
from tests.workflow.steps import answer, asked, walked

ran: Counter[str] = Counter()


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


def does(name: str) -> Any:
    def work(node_input: Any) -> str:
        ran[name] += 1
        return name

    return node(work, name=name)


class Says(BaseLlm):
    """Says the name of the model."""

    async def generate_content_async(self, llm_request: LlmRequest, stream: bool = False) -> Any:
        ran[self.model] += 1
        yield LlmResponse(content={"role": "model", "parts": [{"text": self.model}]})


def says(name: str) -> Any:
    return LlmAgent(name=name, model=Says(model=name))


def row() -> Workflow:
    return Workflow(name="wf", edges=[(START, does("a"), says("b"), does("c"))])


def fork() -> Workflow:
    return Workflow(
        name="wf", edges=[(START, does("a"), (does("b"), says("c"), does("d")), JoinNode(name="j"), does("e"))]
    )


def nested() -> Workflow:
    inner = Workflow(name="inner", edges=[(START, does("a"), does("b"))])
    return Workflow(name="wf", edges=[(START, inner, does("c"))])


def circle() -> Workflow:
    def again(node_input: str, ctx: Context, passes: int = 0) -> Event:
        return Event(output="x", state={"passes": passes + 1}, route="again" if passes < 2 else "out")

    head, tail = does("head"), node(again, name="tail")
    return Workflow(name="wf", edges=[(START, head, tail, {"again": head, "out": does("end")})])


def workers() -> Workflow:
    def items() -> list[str]:
        ran["items"] += 1
        return ["1", "2", "3"]

    return Workflow(name="wf", edges=[(START, items, node(says("w"), parallel_worker=True), does("end"))])


def team() -> Workflow:
    return Workflow(
        name="wf", edges=[(START, SequentialAgent(name="row", sub_agents=[says("x"), says("y")]), does("end"))]
    )


def outputs(events: list[Event]) -> list[tuple[str, Any]]:
    """What each node came to, and each agent said, once; a graph may tell again what it came to."""
    told = {
        (event.node_info.path, event.author): event.text if event.output is None else event.output
        for event in events
        if (event.output is not None or event.text) and event.node_info.path not in ("wf@1", "wf@1/inner@1")
    }
    return sorted((f"{path} {who}", repr(what)) for (path, who), what in told.items() if who != "user")


@pytest.mark.parametrize("make", [row, fork, nested, circle, workers, team])
def test_killed_after_any_event_it_comes_to_the_same_end(make: Any) -> None:
    async def run() -> None:
        service = InMemorySessionService()
        app = App(name="app", root_agent=make(), resumability_config=RESUMABLE)
        runner = Runner(app=app, session_service=service)
        where: dict[str, Any] = {"app_name": "app", "user_id": "u"}
        await service.create_session(**where, session_id="whole")
        first = runner.run_async(user_id="u", session_id="whole", new_message="go", yield_user_message=True)
        whole = [event async for event in first]
        once = ran.copy()
        for at in range(1, len(whole)):
            ran.clear()
            session = await service.create_session(**where, session_id=f"killed{at}")
            for event in whole[:at]:
                await service.append_event(session, event.model_copy(deep=True))
            rest = runner.run_async(user_id="u", session_id=session.id, invocation_id=whole[0].invocation_id)
            events = [*whole[:at], *[event async for event in rest]]
            assert outputs(events) == outputs(whole), f"killed after {at}: {walked(whole[:at])}"
            assert all(ran[name] <= count for name, count in once.items())
            assert ran.total() < once.total() or not outputs(whole[:at])
            again = runner.run_async(user_id="u", session_id=session.id, invocation_id=whole[0].invocation_id)
            assert [event async for event in again] == []

    asyncio.run(run())


class Order(BaseModel):
    count: int
    gift: bool = False
    note: str = ""


@pytest.mark.parametrize(
    ("schema", "answer", "value"),
    [
        (int, {"result": "7"}, 7),
        (float, {"result": "1.5"}, 1.5),
        (bool, {"result": "true"}, True),
        (bool, {"result": "no"}, False),
        (str, {"result": "7"}, "7"),
        (None, {"result": "7"}, "7"),
        (int | None, {"result": "7"}, 7),
        (list[int], {"result": "[1, 2]"}, [1, 2]),
        (Order, {"count": "7", "gift": "true", "note": "7"}, {"count": 7, "gift": True, "note": "7"}),
        (Order, {"result": '{"count": "7"}'}, {"count": 7}),
        ({"type": ["integer", "null"]}, {"result": "7"}, 7),
        ({"type": ["string", "null"]}, {"result": "7"}, "7"),
    ],
)
def test_an_answer_in_text_is_read_as_the_question_asks_for_it(schema: Any, answer: dict[str, Any], value: Any) -> None:
    def ask() -> Any:
        yield RequestInput(interrupt_id="i1", message="?", response_schema=schema)

    def use(node_input: Any) -> Any:
        return {"got": node_input}

    talk = LeftTalk(Workflow(name="wf", edges=[(START, ask, use)]))
    [asked] = open_calls(talk.say("go"))

    events = talk.say(outcome(asked, answer))

    assert [event.output for event in events if event.output][-1] == {"got": value}


def test_what_a_node_is_at_is_marked() -> None:
    def ask() -> Any:
        yield RequestInput(interrupt_id="i1", message="?")

    events = LeftTalk(Workflow(name="wf", edges=[(START, does("a"), ask)])).say("go")
    marks = [event.actions.agent_state for event in events if event.actions.agent_state]
    assert [mark["nodes"] for mark in marks] == [
        {"a": {"status": 2, "interrupts": []}},
        {"a": {"status": 3, "interrupts": []}, "ask": {"status": 2, "interrupts": []}},
        {"ask": {"status": 4, "interrupts": ["i1"]}},
    ]


def test_after_an_error_it_goes_on_at_the_node_that_failed() -> None:
    fails = [True]

    def flaky(node_input: str) -> str:
        if fails.pop() if fails else False:
            raise OSError("down")
        return "up"

    talk = LeftTalk(Workflow(name="wf", edges=[(START, does("a"), flaky, does("b"))]))
    assert walked(talk.say("go"))[-1] == "wf/flaky: failed OSError"
    events = talk.go_on()
    assert [line for line in walked(events) if "gives" in line] == ["wf/flaky: gives 'up'", "wf/b: gives 'b' for wf"]
    assert ran == {"a": 1, "b": 1}


def test_an_answer_lets_what_failed_beside_it_go_on() -> None:
    fails = [True]

    def ask() -> Any:
        yield RequestInput(interrupt_id="i1", message="?")

    async def flaky(ctx: Context) -> str:
        await asyncio.sleep(0.01)
        if fails.pop() if fails else False:
            raise OSError("down")
        return "up"

    talk = LeftTalk(Workflow(name="wf", edges=[(START, (ask, flaky), JoinNode(name="j"))]))
    talk.say("go")
    assert isinstance(talk.error, OSError)
    events = talk.say(answer("i1", "yes"))
    assert {"ask": "yes", "flaky": "up"} in [event.output for event in events] and talk.error is None


def test_so_does_one_to_what_was_asked_a_moment_before_the_run_was_cut() -> None:
    """The question is stored, and not yet that its node waits."""

    def ask() -> Any:
        yield RequestInput(interrupt_id="i1", message="?")

    graph = Workflow(name="wf", edges=[(START, (ask, does("b")), JoinNode(name="j"), does("c"))])

    async def run() -> list[Event]:
        app = App(name="app", root_agent=graph, resumability_config=RESUMABLE)
        runner, where = InMemoryRunner(app=app, auto_create_session=True), {"user_id": "u", "session_id": "s"}
        async with aclosing(runner.run_async(**where, new_message="go")) as events:
            async for event in events:
                if asked([event]):
                    break
        return [event async for event in runner.run_async(**where, new_message=answer("i1", "yes"))]

    events = asyncio.run(run())
    assert {"ask": "yes", "b": "b"} in [event.output for event in events] and ran["c"] == 1


def test_a_graph_in_an_app_that_is_not_resumable_marks_nothing() -> None:
    events = Talk(row()).say("go")
    assert not any(event.actions.agent_state or event.actions.end_of_agent for event in events)
