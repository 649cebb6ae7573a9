"""What a function of a graph is given, and what becomes of what it returns."""

import asyncio
import functools
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from adk_nb import Context, types
from adk_nb.errors import ConfigurationError, NodeTimeoutError, WorkflowDataError
from adk_nb.events import Event
from adk_nb.tools import FunctionTool, ToolContext
from adk_nb.workflow import END, START, FunctionNode, RetryConfig, Workflow, node
from tests.support.each import each
from tests.support.polling import SECONDS
from tests.support.talk import Talk
from tests.workflow.steps import step, walked


class V(BaseModel):
    v: int


@dataclass
class D:
    v: int


def run(*nodes: Any, message: str = "q", state: dict[str, Any] | None = None) -> Any:
    """The output of nodes in a row; the error that they end with is raised."""
    talk = Talk(Workflow(name="wf", edges=[(START, *nodes)]), state=state)
    events = talk.say(message)
    if talk.error:
        raise talk.error
    return next((event.output for event in reversed(events) if event.output is not None), None)


def gives(value: Any) -> Any:
    def giving() -> Any:
        return value

    return giving


@each(
    "given, kind, got",
    [
        ("3", int, 3),
        ({"v": 3}, V, V(v=3)),
        (V(v=3), V, V(v=3)),
        ({"v": 3}, D, D(v=3)),
        ([{"v": 1}], list[V], [V(v=1)]),
        (None, int | None, None),
        ([1, 2], tuple[int, ...], (1, 2)),
        (3, Any, 3),
    ],
)
def test_the_input_is_made_into_what_the_annotation_says(given: Any, kind: Any, got: Any) -> None:
    seen: list[Any] = []

    def takes(node_input: Any) -> None:
        seen.append(node_input)

    takes.__annotations__["node_input"] = kind
    run(gives(given), takes)
    assert seen == [got]


def test_the_users_message_is_its_words_or_the_json_they_are() -> None:
    def text(node_input: str) -> str:
        return node_input

    def value(node_input: V) -> int:
        return node_input.v

    def whole(node_input: types.Content) -> str:
        return node_input.role or ""

    assert run(text, message="hello") == "hello"
    assert run(value, message='{"v": 4}') == 4
    assert run(whole) == "user"
    with pytest.raises(WorkflowDataError, match="'value'"):
        run(value, message="four")


def test_other_parameters_are_of_the_state_or_have_a_default() -> None:
    def takes(node_input: str, city: Annotated[str, "where"], size: int = 3, *rest: Any, **more: Any) -> str:
        return f"{node_input} {city} {size} {rest} {more}"

    assert run(takes, state={"city": "Rome"}) == "q Rome 3 () {}"
    assert run(takes, state={"city": "Rome", "size": "4"}) == "q Rome 4 () {}"
    with pytest.raises(WorkflowDataError, match="'city'"):
        run(takes)


def test_parameters_can_be_keys_of_the_input() -> None:
    def takes(v: int, ctx: Context, w: int = 2) -> str:
        return f"{v} {w} {ctx.node_path}"

    bound = node(takes, parameter_binding="node_input")
    assert isinstance(bound, FunctionNode)
    assert run(gives({"v": "1"}), bound, state={"v": 9}) == "1 2 wf@1/takes@1"
    with pytest.raises(WorkflowDataError, match="'v' in the input"):
        run(gives(3), bound)


@pytest.mark.parametrize("kind", [Context, ToolContext])
def test_the_context_goes_by_its_annotation_or_its_name(kind: Any) -> None:
    def annotated(where: Any) -> str:
        return f"{where.node_path} {where.run_id} {where.attempt_count}"

    annotated.__annotations__["where"] = kind
    assert run(annotated) == "wf@1/annotated@1 annotated@1 1"

    def named(ctx) -> str:
        return ctx.node_path

    assert run(named) == "wf@1/named@1"


def test_every_kind_of_function_gives_its_output() -> None:
    async def awaited() -> str:
        await asyncio.sleep(0)
        return "awaited"

    def items() -> Iterator[Any]:
        yield Event(message="news")
        yield "items"

    async def aitems() -> AsyncIterator[Any]:
        yield None
        yield "aitems"

    class Callable:
        def __call__(self) -> str:
            return "called"

    def later() -> Any:
        return awaited()

    assert [run(one) for one in (awaited, items, aitems, Callable(), later)] == [
        "awaited",
        "items",
        "aitems",
        "called",
        "awaited",
    ]
    assert run(node(lambda: "threaded", name="x", thread=True)) == "threaded"


def test_two_outputs_of_one_run_are_an_error() -> None:
    def two() -> Iterator[int]:
        yield 1
        yield 2

    with pytest.raises(WorkflowDataError, match=r"'two' .* second output"):
        run(two)


def test_an_output_that_is_no_json_is_an_error_that_names_the_node() -> None:
    with pytest.raises(WorkflowDataError, match="'giving': its output"):
        run(gives(object()))


def test_falsy_outputs_are_outputs() -> None:
    def told(node_input: Any) -> str:
        return repr(node_input)

    assert [run(gives(value), told) for value in (0, "", [], False)] == ["0", "''", "[]", "False"]


def test_an_event_does_all_it_says() -> None:
    def says() -> Event:
        return Event(message="hello", output={"v": 1}, state={"k": 1}, route="on")

    def on(node_input: V, k: int) -> int:
        return node_input.v + k

    talk = Talk(Workflow(name="wf", edges=[(START, says, {"on": on})]))
    assert walked(talk.say("q")) == [
        "wf/says: gives {'v': 1} => {'k': 1} -> on",
        "wf/on: gives 2 for wf",
    ]


def test_state_that_is_written_without_output_is_kept() -> None:
    def writes(ctx: Context) -> None:
        ctx.state["k"] = 1

    def reads(k: int) -> int:
        return k

    talk = Talk(Workflow(name="wf", edges=[(START, writes, reads)]))
    assert walked(talk.say("q")) == ["wf/writes: => {'k': 1}", "wf/reads: gives 1 for wf"]
    assert talk.stored().state == {"k": 1}


def test_state_that_is_changed_in_place_is_kept() -> None:
    def first(ctx: Context) -> str:
        ctx.state["items"] = [1]
        return "on"

    def silent(ctx: Context) -> None:
        ctx.state["items"].append(2)

    def last(ctx: Context) -> str:
        ctx.state["items"].append(3)
        return "done"

    talk = Talk(Workflow(name="wf", edges=[(START, first, silent, last)]))
    talk.say("q")
    assert talk.stored().state == {"items": [1, 2, 3]}


def test_a_route_that_is_chosen_after_the_output_is_taken() -> None:
    def choose(ctx: Context) -> Iterator[Any]:
        yield "q"
        ctx.route = "on"

    def on(node_input: str) -> str:
        return f"{node_input} on"

    assert run(choose, {"on": on}) == "q on"


def test_schemas_of_a_node_hold() -> None:
    def double(node_input: Any) -> Any:
        return node_input.v * 2

    assert run(gives({"v": "2"}), node(double, input_schema=V, output_schema=int)) == 4
    with pytest.raises(WorkflowDataError, match="'double': its output does not fit"):
        run(gives({"v": "2"}), node(double, input_schema=V, output_schema=V))
    with pytest.raises(WorkflowDataError, match="'double': its input does not fit"):
        run(gives(3), node(double, input_schema=V))


def test_a_node_that_waits_for_an_output_leads_on_only_with_one() -> None:
    ran: list[int] = []

    def after() -> None:
        ran.append(1)

    run(node(gives(None), wait_for_output=True), after)
    assert ran == []
    run(gives(None), after)
    assert ran == [1]


def test_a_node_that_takes_too_long_is_tried_again() -> None:
    async def slow(ctx: Context) -> int:
        if ctx.attempt_count < 2:
            await asyncio.Event().wait()
        return ctx.attempt_count

    retry = RetryConfig(initial_delay=0, jitter=0, exceptions=[NodeTimeoutError])
    assert run(node(slow, timeout=0.01, retry_config=retry)) == 2


@pytest.mark.parametrize("kind", ["function", "generator", "tool"])
def test_a_late_sync_node_is_left_to_end_by_itself_and_what_it_still_does_is_lost(kind: str) -> None:
    began, free, done = threading.Event(), threading.Event(), threading.Event()

    def late(ctx: Context) -> str:
        began.set()
        free.wait(2 * SECONDS)
        ctx.state["late"] = True
        done.set()
        return "late"

    def late_items(ctx: Context) -> Iterator[str]:
        yield late(ctx)

    def late_tool(tool_context: Context) -> str:
        return late(tool_context)

    slow = {"function": late, "generator": late_items, "tool": FunctionTool(late_tool)}[kind]

    def cut(timeout: float) -> tuple[Talk, list[Event]]:
        talk = Talk(Workflow(name="wf", edges=[(START, gives({}), node(slow, name="slow", timeout=timeout))]))
        return talk, talk.say("q")  # comes back although the function still waits

    tries = (cut(timeout) for timeout in (0.1, 1, SECONDS))  # a thread starts late on a busy machine
    talk, events = next(tried for tried in tries if began.is_set())

    assert not done.is_set()
    assert isinstance(talk.error, NodeTimeoutError)
    assert walked(events)[-1] == "wf/slow: failed NodeTimeoutError"
    free.set()
    assert done.wait(SECONDS)
    assert "late" not in talk.stored().state


def test_a_quick_sync_node_with_a_timeout_has_its_output() -> None:
    def where(node_input: str) -> str:
        return threading.current_thread().name

    def where_items(node_input: str) -> Iterator[str]:
        yield threading.current_thread().name

    for one in (where, where_items, FunctionTool(where)):
        assert run(node(one, timeout=SECONDS)).startswith("adk-nb-worker")
        assert not run(node(one)).startswith("adk-nb-worker")


def test_a_timeout_of_the_nodes_own_is_its_own() -> None:
    async def asks() -> None:
        raise TimeoutError("the service did not answer")

    with pytest.raises(TimeoutError, match="the service did not answer"):
        run(node(asks, timeout=5))


def test_waits_grow_up_to_the_longest_one() -> None:
    retry = RetryConfig(initial_delay=1, backoff_factor=2, max_delay=3, jitter=0)
    assert [retry.delay_after(OSError(), attempt) for attempt in (1, 2, 3, 4)] == [1, 2, 3, 3]
    assert 1 <= (RetryConfig().delay_after(OSError(), 1) or 0) <= 2


def test_the_last_attempts_error_ends_the_run() -> None:
    def bad() -> None:
        raise OSError("down")

    retry = RetryConfig(max_attempts=2, initial_delay=0, jitter=0, exceptions=[OSError])
    talk = Talk(Workflow(name="wf", edges=[(START, node(bad, retry_config=retry))]))
    assert walked(talk.say("q")) == ["wf/bad: failed OSError", "wf/bad: failed OSError"]


def test_an_error_ends_what_runs_beside_it() -> None:
    ended: list[str] = []

    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("slow")

    def bad() -> None:
        raise OSError("down")

    with pytest.raises(OSError, match="down"):
        run((slow, bad))
    assert ended == ["slow"]


def test_no_more_nodes_run_at_a_time_than_may() -> None:
    running, most = [0], [0]

    def worker(name: str) -> Any:
        async def works() -> None:
            running[0] += 1
            most[0] = max(most[0], running[0])
            await asyncio.sleep(0)
            running[0] -= 1

        return node(works, name=name)

    Talk(Workflow(name="wf", edges=[(START, tuple(worker(f"n{at}") for at in range(8)))], max_concurrency=2)).say("q")
    assert most == [2]


def test_a_circle_without_end_is_ended() -> None:
    def again(ctx: Context) -> None:
        ctx.route = "again"

    talk = Talk(Workflow(name="wf", edges=[(START, again, {"again": again})], max_steps=20))
    talk.say("q")
    assert "max_steps" in str(talk.error)


def test_a_graph_of_any_size_and_a_list_of_any_length_end_by_themselves() -> None:
    def numbers(node_input: str) -> list[int]:
        return list(range(1_100))

    @node(parallel_worker=True)
    def double(node_input: int) -> int:
        return 2 * node_input

    def pass_on(node_input: list[int]) -> int:
        return sum(node_input)

    chain = [node(pass_on if at == 0 else lambda node_input: node_input + 1, name=f"n{at}") for at in range(1_100)]
    talk = Talk(Workflow(name="wf", edges=[(START, numbers, double, *chain)]))

    assert talk.say("q")[-1].output == 2 * sum(range(1_100)) + 1_099


def test_a_node_that_runs_another_without_end_is_ended() -> None:
    def inner() -> None: ...

    async def loop(ctx: Context) -> None:
        while True:
            await ctx.run_node(inner)

    talk = Talk(Workflow(name="wf", edges=[(START, node(loop, rerun_on_resume=True))], max_steps=20))
    talk.say("q")
    assert "max_steps" in str(talk.error)


def test_an_agent_gets_a_value_as_json() -> None:
    agent = step("x", "X")
    run(gives({"v": 1}), agent)
    assert agent.model.requests[0].contents[0].parts[0].text == '{"v":1}'


def test_several_outputs_are_one_where_that_is_wanted() -> None:
    inner = Workflow(name="inner", edges=[(START, (node(gives(1), name="x"), node(gives(2), name="y")))])
    talk = Talk(Workflow(name="wf", edges=[(START, inner)]))
    talk.say("q")
    assert "allow_multiple_outputs" in str(talk.error)
    inner = inner.clone(update={"allow_multiple_outputs": True})

    def told(node_input: Any) -> str:
        return repr(node_input)

    assert run(inner, told) == "{'x': 1, 'y': 2}"


def price(city: str, days: int = 2) -> str:
    """Price of a trip."""
    return f"{city} for {days} days"


def test_a_node_takes_its_name_and_its_description_from_the_function():
    made = FunctionNode(func=price)

    assert (made.name, made.description) == ("price", "Price of a trip.")
    assert FunctionNode(func=price, name="other").name == "other"
    assert FunctionNode(func=functools.partial(price, days=3)).name == "price"


def test_a_lambda_needs_a_name():
    with pytest.raises(ConfigurationError, match="name="):
        FunctionNode(func=lambda node_input: node_input)


def test_records_in_the_signature_are_the_schemas_and_given_ones_come_first():
    class W(BaseModel):
        v: int
        w: int = 2

    def keep(node_input: V) -> V:
        return node_input

    def items(node_input: V) -> Iterator[W]:
        yield W(v=node_input.v)

    def talks(node_input: types.Content) -> Event:
        return Event(content=node_input)

    assert (FunctionNode(func=keep).input_schema, FunctionNode(func=keep).output_schema) == (V, V)
    assert FunctionNode(func=items).output_schema is W
    assert FunctionNode(func=keep, output_schema=W).output_schema is W
    assert FunctionNode(func=talks).output_schema is None
    assert run(gives({"v": 1}), items) == {"v": 1, "w": 2}


def test_what_does_not_fit_the_declared_result_is_an_error():
    def wrong(node_input: str) -> V:
        return {"v": "no number"}

    with pytest.raises(WorkflowDataError, match="'wrong': its output does not fit"):
        run(wrong)


def test_a_json_schema_of_the_input_is_for_readers():
    bound = FunctionNode(func=price, parameter_binding="node_input")

    assert bound.input_schema["properties"]["city"] == {"type": "string"} and bound.input_schema["required"] == ["city"]
    assert run(gives({"city": "Oslo", "else": 1}), bound) == "Oslo for 2 days"


def chosen() -> Event:
    return Event(output={"v": "3"}, route="done")


@pytest.mark.parametrize(
    "edges",
    [
        [(START, gives({"v": "3"}))],
        [(START, gives("q"), node(gives({"v": "3"}), name="last"))],
        [(START, chosen, {"done": END})],
        [(START, Workflow(name="inner", edges=[(START, gives({"v": "3"}))]))],
    ],
    ids=["one", "two", "route", "inner"],
)
def test_the_output_of_a_workflow_is_made_into_its_schema(edges: list[Any]) -> None:
    talk = Talk(Workflow(name="wf", edges=edges, output_schema=V))

    events = talk.say("q")

    assert talk.error is None
    assert [event.output for event in events if event.output is not None][-1] == {"v": 3}


@pytest.mark.parametrize("edges", [[(START, gives("no"))], [(START, chosen, {"done": END})]], ids=["text", "route"])
def test_an_output_that_does_not_fit_the_schema_of_the_workflow_is_an_error(edges: list[Any]) -> None:
    class Other(BaseModel):
        other: int

    talk = Talk(Workflow(name="wf", edges=edges, output_schema=Other))

    talk.say("q")

    assert isinstance(talk.error, WorkflowDataError) and "'wf'" in str(talk.error)


def test_outputs_by_name_are_checked_together() -> None:
    many = Workflow(
        name="wf",
        edges=[(START, (node(gives(1), name="a"), node(gives(2), name="b")))],
        allow_multiple_outputs=True,
        output_schema=dict[str, int],
    )
    talk = Talk(many)

    assert talk.say("q")[-1].output == {"a": 1, "b": 2}
