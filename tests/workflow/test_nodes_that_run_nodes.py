"""What a node can ask of a node that it runs: its output, its branch, its events, and what happens when it waits."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from adk_nb import Context
from adk_nb.errors import WorkflowConfigurationError, WorkflowDataError
from adk_nb.events import Event, RequestInput
from adk_nb.models import call
from adk_nb.workflow import START, BaseNode, RetryConfig, Workflow, node
from tests.support.talk import Talk, requests
from tests.workflow.steps import answer, step, walked


def talk(*nodes: Any, **fields: Any) -> Talk:
    return Talk(Workflow(name="wf", edges=[(START, *nodes)], **fields))


def s(node_input: str) -> str:
    return f"s:{node_input}"


def after(node_input: Any) -> str:
    return f"after {node_input}"


def ask() -> Any:
    yield RequestInput(interrupt_id="i1", message="?")


async def leaves(ctx: Context, node_input: str) -> Any:
    await ctx.run_node(s, node_input, use_as_output=True, use_sub_branch=True)


def test_a_node_can_leave_its_output_to_one_that_it_runs() -> None:
    events = talk(leaves, after).say("q")  # google-adk 2.13 hands None on here, though the event says whose it is
    assert walked(events) == ["wf/leaves/s: gives 's:q' for wf/leaves", "wf/after: gives 'after s:q' for wf"]
    assert events[0].node_info.output_for == ["wf@1/leaves@1/s@1", "wf@1/leaves@1"] and events[0].branch is None


def test_an_output_is_left_through_several_and_is_the_workflows_too() -> None:
    async def outer(ctx: Context, node_input: str) -> Any:
        return await ctx.run_node(leaves, node_input, use_as_output=True, use_sub_branch=True)

    (event,) = talk(outer).say("q")
    paths = ["wf@1/outer@1/leaves@1/s@1", "wf@1/outer@1/leaves@1", "wf@1/outer@1", "wf@1"]
    assert event.output == "s:q" and event.node_info.output_for == paths and event.branch is None


def test_an_agent_can_give_the_output_and_what_it_does_for_it_stays_apart() -> None:
    def look() -> str:
        """Looks."""
        return "seen"

    helper = step("helper", call("look"), "found", tools=[look])

    async def lead(ctx: Context, node_input: str) -> Any:
        await ctx.run_node(helper, node_input, use_as_output=True, use_sub_branch=True)

    events = talk(lead, after).say("q")
    assert [event.branch for event in events] == ["helper@1", "helper@1", None, None]
    assert walked(events)[-1] == "wf/after: gives 'after found' for wf"
    assert events[2].node_info.message_as_output and events[2].isolation_scope is None


def test_an_output_beside_the_one_that_was_left_does_not_count(caplog: pytest.LogCaptureFixture) -> None:
    async def lead(ctx: Context, node_input: str) -> str:
        await ctx.run_node(s, node_input, use_as_output=True)
        return "own"

    assert walked(talk(lead, after).say("q"))[-1] == "wf/after: gives 'after s:q' for wf"
    assert "'lead'" in caplog.text and "s@1" in caplog.text


def test_an_output_is_left_once() -> None:
    async def lead(ctx: Context, node_input: str) -> Any:
        await ctx.run_node(s, node_input, use_as_output=True)
        await ctx.run_node(s, node_input, use_as_output=True)

    run = talk(lead)
    run.say("q")
    assert isinstance(run.error, WorkflowConfigurationError) and "s@2" in str(run.error)


def test_an_output_of_its_own_cannot_be_followed_by_one_that_is_left() -> None:
    async def lead(ctx: Context, node_input: str) -> AsyncGenerator[Any, None]:
        yield "mine"
        await ctx.run_node(s, node_input, use_as_output=True)

    run = talk(lead)
    run.say("q")
    assert isinstance(run.error, WorkflowDataError)


def test_an_answer_is_the_output_that_was_left_to_who_asked() -> None:
    async def lead(ctx: Context) -> Any:
        await ctx.run_node(ask, use_as_output=True)

    run = talk(lead, after)
    run.say("q")
    assert walked(run.say(answer("i1", "yes"))) == ["wf/after: gives 'after yes' for wf"]


def test_what_was_left_before_a_pause_is_the_output_after_it() -> None:
    async def lead(ctx: Context, node_input: str) -> Any:
        await ctx.run_node(s, node_input, use_as_output=True)
        await ctx.run_node(ask)

    run = talk(lead, after)
    assert walked(run.say("q")) == ["wf/lead/s: gives 's:q' for wf/lead", "wf/lead/ask: asks ?", "wf: waits"]
    assert walked(run.say(answer("i1", "yes"))) == ["wf/after: gives 'after s:q' for wf"]


@pytest.mark.parametrize("run_id", ["5", "", "a/b", "a@1", "a.b"])
def test_a_run_id_is_a_name(run_id: str) -> None:
    async def lead(ctx: Context, node_input: str) -> Any:
        await ctx.run_node(s, node_input, run_id=run_id)

    run = talk(lead)
    run.say("q")
    assert isinstance(run.error, WorkflowConfigurationError) and "run_id" in str(run.error)


@pytest.mark.parametrize("at_once", [True, False])
def test_a_second_run_under_one_id_is_the_first(at_once: bool) -> None:
    ran: list[str] = []

    def one(node_input: str) -> str:
        ran.append(node_input)
        return node_input

    async def lead(ctx: Context, node_input: str) -> list[str]:
        runs = [ctx.run_node(one, node_input + end, run_id="x") for end in "ab"]
        return list(await asyncio.gather(*runs)) if at_once else [await run for run in runs]

    assert walked(talk(lead).say("q")) == ["wf/lead/one@x: gives 'qa'", "wf/lead: gives ['qa', 'qa'] for wf"]
    assert ran == ["qa"]


def test_runs_keep_what_they_came_to_by_their_ids_even_if_the_order_changes() -> None:
    ran: list[str] = []

    def one(node_input: str) -> str:
        ran.append(node_input)
        return node_input

    async def lead(ctx: Context) -> str:
        names = ["a", "b"] if not ctx.resume_inputs else ["b", "a"]
        first, second = [await ctx.run_node(one, name, run_id=name) for name in names]
        return f"{first}{second}{await ctx.run_node(ask)}"

    run = talk(node(lead, rerun_on_resume=True))
    run.say("q")
    run.say(answer("i1", "!"))
    assert ran == ["a", "b"]


def test_a_branch_and_a_scope_can_be_given() -> None:
    async def lead(ctx: Context, node_input: str) -> Any:
        return await ctx.run_node(s, node_input, run_id="x", override_branch="bb", override_isolation_scope="ii")

    events = talk(lead).say("q")
    assert [(event.branch, event.isolation_scope) for event in events] == [("bb", "ii"), (None, None)]
    assert events[0].node_info.path == "wf@1/lead@1/s@x"


def test_agents_of_one_scope_see_each_other() -> None:
    first = step("first", "one")
    second = step("second", "two", include_contents="default")
    apart = step("apart", "three", include_contents="default")

    async def lead(ctx: Context) -> Any:
        await ctx.run_node(first, "1", override_isolation_scope="ours")
        await ctx.run_node(second, "2", override_isolation_scope="ours")
        await ctx.run_node(apart, "3")

    talk(lead).say("q")
    told = [words for one in (second, apart) for _, words in requests(one)[0]]
    assert any("one" in words for words in told[: len(requests(second)[0])])
    assert not any("two" in words for words in told[len(requests(second)[0]) :])


class Idle(BaseNode):
    """Ends without an output."""

    async def _run_impl(self, *, ctx: Context, node_input: Any) -> AsyncGenerator[Any, None]:
        for nothing in ():
            yield nothing


@pytest.mark.parametrize("raises", [True, False])
def test_a_node_can_end_with_one_that_waits_for_its_output(raises: bool) -> None:
    went_on: list[Any] = []

    async def lead(ctx: Context) -> Any:
        went_on.append(await ctx.run_node(Idle(name="idle", wait_for_output=True), raise_on_wait=raises))

    assert walked(talk(lead, after).say("q")) == ["wf/after: gives 'after None' for wf"]
    assert went_on == ([] if raises else [None])


def test_an_error_is_told_once_where_it_was_even_if_it_is_caught() -> None:
    def bad() -> None:
        raise KeyError("zip")

    async def brave(ctx: Context) -> str:
        try:
            return await ctx.run_node(bad)
        except KeyError:
            return "well"

    async def lead(ctx: Context) -> Any:
        return await ctx.run_node(bad)

    assert walked(talk(brave).say("q")) == ["wf/brave/bad: failed KeyError", "wf/brave: gives 'well' for wf"]
    run = talk(lead)
    assert walked(run.say("q")) == ["wf/lead/bad: failed KeyError"] and isinstance(run.error, KeyError)
    assert [event.error_code for event in run.stored().events if event.error_code] == ["KeyError"]


def test_each_attempt_gives_an_output_of_its_own() -> None:
    tried: list[int] = []

    def twice() -> Any:
        tried.append(1)
        yield len(tried)
        if len(tried) < 2:
            raise OSError("again")

    retry = RetryConfig(initial_delay=0, jitter=0)
    assert walked(talk(node(twice, retry_config=retry), after).say("q")) == [
        "wf/twice: gives 1",
        "wf/twice: failed OSError",
        "wf/twice: gives 2",
        "wf/after: gives 'after 2' for wf",
    ]


def test_a_workflow_can_give_the_output_of_the_node_that_runs_it() -> None:
    inner = Workflow(name="inner", edges=[(START, s)])

    async def lead(ctx: Context, node_input: str) -> Any:
        await ctx.run_node(inner, node_input, use_as_output=True)

    events = talk(lead, after).say("q")
    assert events[0].node_info.output_for == ["wf@1/lead@1/inner@1/s@1", "wf@1/lead@1/inner@1", "wf@1/lead@1"]
    assert walked(events)[-1] == "wf/after: gives 'after s:q' for wf"


def test_an_event_of_its_own_says_no_second_output() -> None:
    async def lead(ctx: Context, node_input: str) -> AsyncGenerator[Any, None]:
        await ctx.run_node(s, node_input, use_as_output=True)
        ctx.state["k"] = 1
        ctx.route = "x"
        yield Event(message="news")

    run = Talk(Workflow(name="wf", edges=[(START, node(lead), {"x": after})]))
    assert walked(run.say("q")) == [
        "wf/lead/s: gives 's:q' for wf/lead",
        "wf/lead: says news => {'k': 1} -> x",
        "wf/after: gives 'after s:q' for wf",
    ]
