"""What google-adk 2.13 did with these graphs, event by event; where adk_nb differs the test says so."""

import asyncio
from contextlib import aclosing
from typing import Any

import pytest
from pydantic import BaseModel

from adk_nb import Context, types
from adk_nb.agents import SequentialAgent
from adk_nb.errors import ConfigurationError, WorkflowConfigurationError, WorkflowDataError
from adk_nb.events import Event, RequestInput
from adk_nb.models import call
from adk_nb.tools import FunctionTool
from adk_nb.workflow import DEFAULT_ROUTE, START, JoinNode, NodeTimeoutError, RetryConfig, Workflow, node
from tests.support.talk import SESSION_KEY, Talk, requests
from tests.workflow.steps import answer, asked, step, walked


def talk(*edges: Any, **fields: Any) -> Talk:
    return Talk(Workflow(name="wf", edges=list(edges), **fields))


def s(node_input: str) -> str:
    return node_input


def a(node_input: Any) -> str:
    return f"a:{node_input}"


def b(node_input: Any) -> str:
    return f"b:{node_input}"


def p1(node_input: str) -> str:
    return f"p1{node_input}"


def p2(node_input: str) -> str:
    return f"p2{node_input}"


def fin(node_input: Any) -> Any:
    return node_input


class V(BaseModel):
    v: str


def test_functions_one_after_the_other() -> None:  # W1
    def up(node_input: str) -> str:
        return node_input.upper()

    def ex(node_input: str, ctx: Context) -> V:
        ctx.state["seen"] = node_input
        return V(v=f"{node_input}!")

    def last(node_input: V, seen: str) -> str:
        return node_input.v + seen

    run = talk((START, up, ex, last))
    assert walked(run.say("hello")) == [
        "wf/up: gives 'HELLO'",
        "wf/ex: gives {'v': 'HELLO!'} => {'seen': 'HELLO'}",
        "wf/last: gives 'HELLO!HELLO' for wf",
    ]
    assert run.stored().state == {"seen": "HELLO"}


def test_a_route_and_news() -> None:  # W2; DEVIATES: news has the role model, spec 25.4
    def router(node_input: str) -> Event:
        return Event(output=node_input, route="a" if "a" in node_input else "b")

    def shout(node_input: str) -> Any:
        yield Event(message="hi from B")
        yield f"B:{node_input}"

    run = talk(("START", router, {"a": a, "b": shout}))
    assert walked(run.say("xa")) == ["wf/router: gives 'xa' -> a", "wf/a: gives 'a:xa' for wf"]
    events = run.say("zz")
    assert walked(events) == [
        "wf/router: gives 'zz' -> b",
        "wf/shout: says hi from B",
        "wf/shout: gives 'B:zz' for wf",
    ]
    assert events[1].content and events[1].content.role == "model"


def test_a_join_waits_for_all_and_has_them_in_the_order_of_the_edges() -> None:  # W3; DEVIATES: the order, 25.5
    assert walked(talk((START, s, (p1, p2), JoinNode(name="j"), fin)).say("q")) == [
        "wf/s: gives 'q'",
        "wf/p1: gives 'p1q' on p1",
        "wf/p2: gives 'p2q' on p2",
        "wf/j: gives {'p1': 'p1q', 'p2': 'p2q'}",
        "wf/fin: gives {'p1': 'p1q', 'p2': 'p2q'} for wf",
    ]


def test_two_last_nodes_with_an_output_are_an_error() -> None:  # W3b
    run = talk((START, s, (p1, p2)))
    assert walked(run.say("q"))[1:] == [
        "wf/p1: gives 'p1q' on p1 for wf",
        "wf/p2: gives 'p2q' on p2 for wf",
        "wf: failed WorkflowConfigurationError",
    ]
    assert isinstance(run.error, WorkflowConfigurationError)


def test_a_list_is_worked_on_item_by_item() -> None:  # W4
    def gen() -> list[int]:
        return [1, 2, 3]

    def sq(node_input: int) -> int:
        return node_input**2

    run = talk((START, gen, node(sq, parallel_worker=True, max_parallel_workers=2)))
    assert walked(run.say("q")) == [
        "wf/gen: gives [1, 2, 3]",
        "wf/sq/sq: gives 1 on sq",
        "wf/sq/sq@2: gives 4 on sq@2",
        "wf/sq/sq@3: gives 9 on sq@3",
        "wf/sq: gives [1, 4, 9] for wf",
    ]


def test_failing_attempts_are_told_and_the_last_one_counts() -> None:  # W5
    tried: list[int] = []

    def flaky(ctx: Context) -> int:
        tried.append(ctx.attempt_count)
        if ctx.attempt_count < 3:
            raise ValueError("fl")
        return ctx.attempt_count

    run = talk((START, node(flaky, retry_config=RetryConfig(initial_delay=0, jitter=0))))
    assert walked(run.say("q")) == [
        "wf/flaky: failed ValueError",
        "wf/flaky: failed ValueError",
        "wf/flaky: gives 3 for wf",
    ]
    assert tried == [1, 2, 3] and run.error is None


def test_a_node_that_takes_too_long_is_ended() -> None:  # W5
    async def slow() -> None:
        await asyncio.Event().wait()

    run = talk((START, node(slow, timeout=0.01)))
    assert walked(run.say("q")) == ["wf/slow: failed NodeTimeoutError"]
    assert isinstance(run.error, NodeTimeoutError)
    assert "'slow'" in str(run.error) and "0.01 seconds" in str(run.error)


def ask(node_input: Any) -> Any:
    yield RequestInput(interrupt_id="q1", message="approve?", payload={"z": 1})


@node(rerun_on_resume=True)
def ask_again(ctx: Context) -> Any:
    if "q2" in ctx.resume_inputs:
        yield ctx.resume_inputs["q2"]
    else:
        yield RequestInput(interrupt_id="q2", message="ok?", response_schema={"type": "string"})


def after(node_input: Any) -> dict[str, Any]:
    return {"answer": node_input}


def test_an_answer_is_the_output_of_the_node_that_asked() -> None:  # W6; DEVIATES: the event that tells where it stands
    run = talk((START, s, ask, after))
    events = run.say("q")
    assert walked(events) == ["wf/s: gives 'q'", "wf/ask: asks approve?", "wf: waits"]
    (question,) = events[1].get_function_calls()
    assert question.args == {"interruptId": "q1", "payload": {"z": 1}, "message": "approve?", "response_schema": None}
    assert walked(run.say(answer("q1", "yes"))) == ["wf/after: gives {'answer': 'yes'} for wf"]


def test_a_node_that_asked_can_run_again_with_the_answer() -> None:  # W6b
    run = talk((START, s, ask_again, after))
    assert walked(run.say("q"))[1:] == ["wf/ask_again: asks ok?", "wf: waits"]
    assert walked(run.say(answer("q2", "yes"))) == [
        "wf/ask_again: gives 'yes'",
        "wf/after: gives {'answer': 'yes'} for wf",
    ]


def test_words_instead_of_an_answer_begin_anew() -> None:  # W6c
    run = talk((START, s, ask_again, after))
    run.say("q")
    assert walked(run.say("yes")) == ["wf/s: gives 'yes'", "wf/ask_again: asks ok?", "wf: waits"]


def test_agents_see_only_what_the_one_before_said() -> None:  # W7
    writer = step("writer", "story about cats", instruction="write")
    editor = step("editor", "edited", instruction="edit", output_key="ed")
    run = talk((START, writer, editor))
    events = run.say("cats")
    assert walked(events) == [
        "wf/writer: says story about cats",
        "wf/editor: says edited => {'ed': 'edited'} for wf",
    ]
    assert [event.author for event in events] == ["writer", "editor"]
    assert all(event.node_info.message_as_output for event in events)
    assert [requests(writer), requests(editor)] == [[[("user", "cats")]], [[("user", "story about cats")]]]
    assert editor.model.requests[0].config.system_instruction == "edit"


def test_a_circle_counts_its_passes() -> None:  # W8
    def draft(ctx: Context) -> int:
        ctx.state["n"] = ctx.state.get("n", 0) + 1
        return ctx.state["n"]

    def review(node_input: int, ctx: Context) -> int:
        ctx.route = "ok" if node_input >= 3 else "again"
        return node_input

    assert walked(talk((START, draft, review, {"again": draft, "ok": fin})).say("q")) == [
        "wf/draft: gives 1 => {'n': 1}",
        "wf/review: gives 1 -> again",
        "wf/draft@2: gives 2 => {'n': 2}",
        "wf/review@2: gives 2 -> again",
        "wf/draft@3: gives 3 => {'n': 3}",
        "wf/review@3: gives 3 -> ok",
        "wf/fin: gives 3 for wf",
    ]


@pytest.mark.parametrize(
    ("edges", "told"),
    [
        ([(s, p1)], "no edge .* 'START'"),
        ([(START, s, p1, s)], "s -> p1 -> s never ends"),
        ([(START, s), (START, s)], "START -> s is there twice"),
    ],
)
def test_a_graph_that_cannot_run_is_refused(edges: Any, told: str) -> None:  # W9
    with pytest.raises(WorkflowConfigurationError, match=told):
        Workflow(name="wf", edges=edges)


def test_a_node_runs_others() -> None:  # W10
    async def orch(node_input: Any, ctx: Context) -> Any:
        return await ctx.run_node(p1, await ctx.run_node(s, node_input))

    assert walked(talk((START, orch)).say("q")) == [
        "wf/orch/s: gives 'q'",
        "wf/orch/p1: gives 'p1q'",
        "wf/orch: gives 'p1q' for wf",
    ]


def test_an_error_ends_the_run_and_is_told_at_its_node() -> None:  # W11
    def bad() -> None:
        raise KeyError("zip")

    run = talk((START, bad))
    assert walked(run.say("q")) == ["wf/bad: failed KeyError"]
    assert isinstance(run.error, KeyError)


def test_a_parameter_without_a_value_is_named() -> None:  # W12
    def needs(foo: Any) -> Any:
        return foo

    run = talk((START, needs))
    assert walked(run.say("q")) == ["wf/needs: failed WorkflowDataError"]
    assert isinstance(run.error, WorkflowDataError) and "'foo'" in str(run.error)


def test_a_node_without_output_says_nothing_and_the_next_one_runs() -> None:  # W13
    def nothing() -> None:
        pass

    assert walked(talk((START, nothing)).say("q")) == []
    assert walked(talk((START, nothing, b)).say("q")) == ["wf/b: gives 'b:None' for wf"]


def test_a_workflow_within_a_workflow() -> None:  # G1
    inner = Workflow(name="inner", edges=[(START, a, b)])
    events = talk((START, s, inner)).say("q")
    assert walked(events) == [
        "wf/s: gives 'q'",
        "wf/inner/a: gives 'a:q'",
        "wf/inner/b: gives 'b:a:q' for wf/inner, wf",
    ]
    assert [event.author for event in events] == ["wf", "inner", "inner"]


def chose(route: Any) -> Any:
    def choosing(node_input: str) -> Event:
        return Event(output=node_input, route=route)

    return choosing


def test_the_default_route_and_several_routes() -> None:  # G2; DEVIATES: the order of the join
    assert walked(talk((START, chose("zzz"), {"x": a, DEFAULT_ROUTE: b})).say("q"))[1:] == ["wf/b: gives 'b:q' for wf"]
    assert walked(talk((START, chose(["x", "y"]), {"x": a, "y": b}, JoinNode(name="j"))).say("q")) == [
        "wf/choosing: gives 'q' -> ['x', 'y']",
        "wf/a: gives 'a:q' on a",
        "wf/b: gives 'b:q' on b",
        "wf/j: gives {'a': 'a:q', 'b': 'b:q'} for wf",
    ]


def test_a_route_nobody_waits_for_ends_the_way_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:  # G2b
    assert walked(talk((START, chose("none"), {"x": a})).say("q")) == ["wf/choosing: gives 'q' -> none"]
    assert "'none'" in caplog.text and "'choosing'" in caplog.text


def test_no_route_at_all_is_told_with_what_to_write(caplog: pytest.LogCaptureFixture) -> None:
    assert len(walked(talk((START, s), (s, {"x": b})).say("q"))) == 1
    assert "node 's' chose" in caplog.text
    assert all(way in caplog.text for way in ("Event(output=..., route=...)", "DEFAULT_ROUTE", "s -[*]-> END"))


def test_a_join_that_waits_for_who_never_comes_is_told(caplog: pytest.LogCaptureFixture) -> None:
    join = JoinNode(name="j")
    run = talk((START, chose("x"), {"x": a, "y": b}, join, fin))
    assert walked(run.say("q")) == ["wf/choosing: gives 'q' -> x", "wf/a: gives 'a:q'"]
    assert "join 'j' waited" in caplog.text


@pytest.mark.parametrize(("route", "taken"), [(True, "a"), (1, "b")])
def test_a_route_can_be_a_bool_or_a_number(route: Any, taken: str) -> None:  # G2b
    edges = [(START, (start := chose(route)), {"x": fin, 1: b}), (start, {"y": fin})]
    if route is True:
        edges = [(START, start, {True: a, "x": b})]
    assert walked(talk(*edges).say("q"))[1:] == [f"wf/{taken}: gives '{taken}:q' for wf"]


def test_an_agent_that_chats_stands_right_after_the_start() -> None:  # G3
    c = step("c", "chat1", "chat2", mode="chat")
    run = talk((START, c))
    assert walked(run.say("q")) == ["wf/c: says chat1"]
    assert walked(run.say("r")) == ["wf/c: says chat2"]
    assert requests(c) == [[("user", "q")], [("user", "q"), ("model", "chat1"), ("user", "r")]]


def test_nothing_follows_on_an_agent_that_chats_while_it_gives_no_output() -> None:  # G3
    c = step("c", "chat1", "chat2", mode="chat")
    run = talk((START, c, b))
    assert walked(run.say("q")) == ["wf/c: says chat1"]
    assert walked(run.say("r")) == ["wf/c: says chat2"]


def test_an_agent_that_chats_stands_nowhere_else() -> None:  # G3b
    with pytest.raises(WorkflowConfigurationError, match=r"'c'.*chat"):
        Workflow(name="wf", edges=[(START, s, step("c", "x", mode="chat"))])


def test_an_agent_with_a_task_talks_until_it_is_done() -> None:  # G4; DEVIATES: the first words stay, 25.7
    t = step("t", "which?", call("finish_task", result="done!"), mode="task")
    run = talk((START, t, b))
    assert walked(run.say("q"))[0] == "wf/t: says which?"
    assert walked(run.say("ans"))[-1] == "wf/b: gives \"b:{'result': 'done!'}\" for wf"
    assert requests(t)[1] == [("user", "q"), ("model", "which?"), ("user", "ans")]


class O(BaseModel):  # noqa: E742
    x: int


def use(node_input: O) -> str:
    return f"O:{node_input!r}"


def test_an_agent_with_an_output_schema_gives_a_value() -> None:  # G5; DEVIATES: text and output on one event
    answers = step("l", '{"x": 3}', output_schema=O)
    events = talk((START, answers, use)).say("q")
    assert walked(events) == ["wf/l: gives {'x': 3}", "wf/use: gives 'O:O(x=3)' for wf"]
    assert not events[0].node_info.message_as_output


def test_an_agent_with_tools_and_an_output_schema_gives_a_value() -> None:  # G5
    def w() -> dict[str, int]:
        """Looks."""
        return {"k": 1}

    answers = step("l", call("w"), call("set_model_response", x=3), output_schema=O, tools=[w])
    run = talk((START, answers, use))
    events = run.say("q")
    assert walked(events) == [
        "wf/l: says calls w({})",
        "wf/l: says answers {'k': 1}",
        "wf/l: says calls set_model_response({'x': 3})",
        "wf/l: says answers {'x': 3}",
        "wf/l: gives {'x': 3}",
        "wf/use: gives 'O:O(x=3)' for wf",
    ]
    assert events[4].text and not events[4].node_info.message_as_output


def ask1() -> Any:
    yield RequestInput(interrupt_id="i1", message="1?")


def ask2() -> Any:
    yield RequestInput(interrupt_id="i2", message="2?")


def test_two_questions_at_once_are_answered_one_after_the_other() -> None:  # G6; DEVIATES: the order of the join
    run = talk((START, s, (ask1, ask2), JoinNode(name="j"), a))
    assert walked(run.say("q")) == [
        "wf/s: gives 'q'",
        "wf/ask1: asks 1? on ask1",
        "wf/ask2: asks 2? on ask2",
        "wf: waits",
    ]
    assert walked(run.say(answer("i1", "one"))) == ["wf: waits"]
    assert walked(run.say(answer("i2", "two"))) == [
        "wf/j: gives {'ask1': 'one', 'ask2': 'two'}",
        "wf/a: gives \"a:{'ask1': 'one', 'ask2': 'two'}\" for wf",
    ]


def test_what_a_node_ran_before_the_question_is_not_run_again() -> None:  # G7
    ran: list[int] = []

    def once() -> str:
        ran.append(1)
        return "step1"

    async def orch(ctx: Context) -> str:
        return f"{await ctx.run_node(once)}|{await ctx.run_node(ask1)}"

    run = talk((START, node(orch, rerun_on_resume=True)))
    assert walked(run.say("q")) == ["wf/orch/once: gives 'step1'", "wf/orch/ask1: asks 1?", "wf: waits"]
    assert walked(run.say(answer("i1", "one"))) == ["wf/orch: gives 'step1|one' for wf"]
    assert ran == [1]


def test_the_items_beside_one_that_failed_come_to_their_end() -> None:  # G8
    def gen() -> list[int]:
        return [1, 0, 2]

    def inv(node_input: int) -> float:
        return 1 / node_input

    run = talk((START, gen, node(inv, parallel_worker=True)))
    assert walked(run.say("q"))[1:] == [
        "wf/inv/inv: gives 1.0 on inv",
        "wf/inv/inv@2: failed ZeroDivisionError on inv@2",
        "wf/inv/inv@3: gives 0.5 on inv@3",
    ]
    assert isinstance(run.error, ZeroDivisionError)


def test_an_agent_works_on_each_item_alone() -> None:  # G8
    def gen() -> list[int]:
        return [1, 0]

    lw = step("lw", "o:1", "o:0")
    run = talk((START, gen, node(lw, parallel_worker=True)))
    assert walked(run.say("q"))[1:] == [
        "wf/lw/lw: says o:1 on lw",
        "wf/lw/lw@2: says o:0 on lw@2",
        "wf/lw: gives ['o:1', 'o:0'] for wf",
    ]
    assert requests(lw) == [[("user", "1")], [("user", "0")]]


def test_a_tool_takes_what_comes_as_its_only_argument() -> None:  # G9
    def tl(text: str) -> dict[str, str]:
        """Says what it got."""
        return {"got": text}

    assert walked(talk((START, s, FunctionTool(tl))).say("q"))[1:] == ["wf/tl: gives {'got': 'q'} for wf"]


def test_an_input_that_does_not_fit_ends_the_run() -> None:  # G10; DEVIATES: a WorkflowDataError that names the node
    def typed(node_input: int) -> int:
        return node_input

    run = talk((START, s, typed))
    assert walked(run.say("q"))[1:] == ["wf/typed: failed WorkflowDataError"]
    assert "'typed'" in str(run.error) and "node_input" in str(run.error)


def test_agents_in_a_row_give_what_the_last_one_said() -> None:  # G12; DEVIATES: None there, 25.9
    row = SequentialAgent(name="sq", sub_agents=[step("x", "X"), step("y", "Y")])
    assert walked(talk((START, row, b)).say("q")) == [
        "wf/sq: says X",
        "wf/sq: says Y",
        "wf/b: gives 'b:Y' for wf",
    ]


@pytest.mark.parametrize("place", ["sub_agents", "tools"])
def test_a_workflow_belongs_to_an_agent(place: str) -> None:  # G11; DEVIATES: refused there, 25.9
    graph = Workflow(name="wf", description="Says it back.", edges=[(START, s, a)])
    calls = call("transfer_to_agent", agent_name="wf") if place == "sub_agents" else call("wf", request="tea")
    top = step("top", calls, "so be it", **{place: [graph]})
    events = Talk(top).say("q")
    if place == "sub_agents":
        assert walked(events)[-2:] == ["wf/s: gives 'q'", "wf/a: gives 'a:q' for wf"]
    else:
        assert requests(top)[1][-1] == ("user", "answers {'result': 'a:tea'}") and events[-1].text == "so be it"


def test_a_run_begun_while_another_of_its_session_is_read_goes_its_own_way() -> None:  # H8, of a graph
    run = talk((START, s, ask1, b))

    async def nested() -> tuple[list[Event], list[Event]]:
        outer: list[Event] = []
        inner: list[Event] = []
        turn = run.runner.run_async(**SESSION_KEY, new_message="q")
        async with aclosing(turn) as events:
            async for event in events:
                outer.append(event)
                if asked([event]):
                    inner = await run.asay(answer("i1", "early"))
        return outer, inner

    outer, inner = asyncio.run(nested())
    assert walked(outer) == ["wf/s: gives 'q'", "wf/ask1: asks 1?", "wf: waits"]
    assert inner == []  # where the graph stands is known once all that can run has run
    assert walked(run.say(answer("i1", "late"))) == ["wf/b: gives 'b:late' for wf"]


def test_a_node_asks_before_it_runs() -> None:  # G13; DEVIATES: the id of the question is what 25.9 says
    done: list[str] = []

    def danger(node_input: str) -> str:
        done.append(node_input)
        return f"did {node_input}"

    run = talk((START, s, node(danger, require_confirmation=True)))
    events = run.say("q")
    (question,) = events[1].get_function_calls()
    assert question.id == "wf_tool_confirmation:wf@1/danger@1" and done == []
    assert question.args and question.args["payload"] == {"tool_name": "danger", "args": {"node_input": "q"}}
    assert "call danger()." in question.args["message"]
    assert walked(run.say(answer(question.id, {"confirmed": True}))) == ["wf/danger: gives 'did q' for wf"]
    assert done == ["q"]


def test_a_content_is_said_and_is_no_output() -> None:  # G14
    def multi(ctx: Context) -> Any:
        ctx.state["z"] = 1
        yield Event(message="working")
        yield types.Content(role="model", parts=[types.Part(text="content out")])

    run = talk((START, multi, b))
    assert walked(run.say("q")) == [
        "wf/multi: says working => {'z': 1}",
        "wf/multi: says content out",
        "wf/b: gives 'b:None' for wf",
    ]


def test_a_node_that_two_lead_to_runs_for_each() -> None:  # G15
    def one(node_input: str) -> str:
        return node_input

    run = talk((START, (a, b), one))
    events = run.say("q")
    assert [line.split(":")[0] for line in walked(events)] == ["wf/a", "wf/b", "wf/one", "wf/one@2"]
    assert [event.branch for event in events] == ["a@1", "b@1", "a@1", "b@1"]
    assert events[-1].node_info.output_for == ["wf@1/one@2", "wf@1"] and run.error is None


def test_an_error_that_is_not_listed_is_not_tried_again() -> None:  # G16
    tried: list[int] = []

    def fl() -> None:
        tried.append(1)
        raise ValueError("x")

    run = talk((START, node(fl, retry_config=RetryConfig(exceptions=["KeyError", OSError]))))
    assert walked(run.say("q")) == ["wf/fl: failed ValueError"] and tried == [1]


def test_a_node_ends_where_it_asks() -> None:  # H1; DEVIATES: what stands behind the question does not run, 25.9
    went_on: list[int] = []

    def careless() -> Any:
        yield RequestInput(interrupt_id="i1", message="ok?")
        went_on.append(1)
        yield "approved myself"

    run = talk((START, careless, b))
    assert walked(run.say("q")) == ["wf/careless: asks ok?", "wf: waits"]
    assert walked(run.say(answer("i1", "no"))) == ["wf/b: gives 'b:no' for wf"] and went_on == []


def test_an_output_beside_an_open_question_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:  # H1, of 25.9
    @node(rerun_on_resume=True)
    def hasty(ctx: Context) -> Any:
        if "i1" not in ctx.resume_inputs:
            yield RequestInput(interrupt_id="i1", message="ok?")
        yield "approved"

    run = talk((START, hasty, b))
    assert walked(run.say("q")) == ["wf/hasty: asks ok?", "wf/hasty: gives 'approved'", "wf: waits"]
    assert "'hasty'" in caplog.text and "'i1'" in caplog.text
    assert walked(run.say(answer("i1", "no"))) == ["wf/hasty: gives 'approved'", "wf/b: gives 'b:approved' for wf"]


def test_an_answer_of_several_keys_is_whole() -> None:  # H2
    @node(rerun_on_resume=True)
    def twice(ctx: Context, node_input: str) -> Any:
        if "i1" in ctx.resume_inputs:
            yield f"got {ctx.resume_inputs['i1']} in={node_input}"
        else:
            yield RequestInput(interrupt_id="i1", message="ok?")

    run = talk((START, twice))
    run.say("q")
    assert walked(run.say(answer("i1", {"a": 1, "b": 2}))) == ["wf/twice: gives \"got {'a': 1, 'b': 2} in=q\" for wf"]


def test_an_answer_that_does_not_fit_is_refused_and_the_question_stays_open() -> None:  # H3; DEVIATES as 25.9 says
    def number() -> Any:
        yield RequestInput(interrupt_id="i1", message="n?", response_schema=int)

    run = talk((START, number, b))
    run.say("q")
    before = len(run.stored().events)
    assert run.say(answer("i1", "abc")) == []
    assert isinstance(run.error, ValueError) and '"integer"' in str(run.error)
    assert len(run.stored().events) == before
    assert walked(run.say(answer("i1", 5))) == ["wf/b: gives 'b:5' for wf"]


def test_a_node_option_that_is_none_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigurationError, match="did you mean 'timeout'"):
        node(s, tiemout=3)
    with pytest.raises(ConfigurationError, match="did you mean 'timeout'"):
        node(node(s), tiemout=3)


def test_questions_are_those_of_the_last_run(  # the newest of two that wait under one id counts
) -> None:
    run = talk((START, s, ask1, b))
    run.say("first")
    run.say("second")
    assert asked(run.stored().events) == ["i1", "i1"]
    assert walked(run.say(answer("i1", "x"))) == ["wf/b: gives 'b:x' for wf"]
