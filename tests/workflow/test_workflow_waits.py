"""Graphs that stop to wait for a person, or for work done elsewhere, and go on once that is there."""

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel

from adk_nb import Context, types
from adk_nb.agents import BaseAgent, LlmAgent, LoopAgent, ParallelAgent, SequentialAgent
from adk_nb.errors import InputError, WorkflowConfigurationError
from adk_nb.events import Event, RequestInput
from adk_nb.models import ScriptedLlm, call
from adk_nb.runtime.history import open_interrupts
from adk_nb.tools import AgentTool, FunctionTool, LongRunningFunctionTool
from adk_nb.workflow import START, BaseNode, JoinNode, RetryConfig, Workflow, node
from tests.support.talk import Talk, requests
from tests.workflow.steps import APPROVES, answer, answers, asked, step, walked


def wf(*edges: Any, **fields: Any) -> Workflow:
    return Workflow(**{"name": "wf", "edges": list(edges), **fields})


def s(node_input: Any) -> Any:
    return node_input.parts[0].text if isinstance(node_input, types.Content) else node_input


def ask1(node_input: Any) -> Any:
    yield RequestInput(interrupt_id="i1", message="1?")


def ask2(node_input: Any) -> Any:
    yield RequestInput(interrupt_id="i2", message="2?")


def b(node_input: Any) -> str:
    return f"b:{node_input}"


def last(events: list[Event]) -> Any:
    return next(event.output for event in reversed(events) if event.output is not None)


def pays(*script: Any, name: str = "pa") -> LlmAgent:
    def pay(n: int) -> str:
        """Pays."""
        return f"paid {n}"

    return step(name, call("pay", n=1), *script, tools=[FunctionTool(pay, require_confirmation=True)])


def test_a_question_within_a_workflow_within_a_workflow() -> None:
    innermost = Workflow(name="innermost", edges=[(START, ask1, s)])
    inner = Workflow(name="inner", edges=[(START, innermost, b)])
    talk = Talk(wf((START, s, inner, b)))
    assert walked(talk.say("q"))[1:] == [
        "wf/inner/innermost/ask1: asks 1?",
        "wf/inner/innermost: waits",
        "wf/inner: waits",
        "wf: waits",
    ]
    assert walked(talk.say(answer("i1", "one"))) == [
        "wf/inner/innermost/s: gives 'one' for wf/inner/innermost",
        "wf/inner/b: gives 'b:one' for wf/inner",
        "wf/b: gives 'b:b:one' for wf",
    ]


def test_nodes_run_by_a_node_wait_side_by_side() -> None:
    ran: list[str] = []

    async def both(ctx: Context) -> Any:
        ran.append("both")
        return await asyncio.gather(ctx.run_node(ask1, "x"), ctx.run_node(ask2, "y"))

    talk = Talk(wf((START, both, b)))
    assert sorted(asked(talk.say("q"))) == ["i1", "i2"]
    assert walked(talk.say(answer("i2", "two"))) == ["wf: waits"]
    assert walked(talk.say(answer("i1", "one"))) == [
        "wf/both: gives ['one', 'two']",
        "wf/b: gives \"b:['one', 'two']\" for wf",
    ]


def test_nodes_run_in_a_task_group_wait_too() -> None:
    async def both(ctx: Context) -> Any:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(ctx.run_node(one, "x")) for one in (ask1, ask2)]
        return [task.result() for task in tasks]

    talk = Talk(wf((START, both)))
    assert sorted(asked(talk.say("q"))) == ["i1", "i2"] and talk.error is None
    assert walked(talk.say(answers({"i1": "one", "i2": "two"}))) == ["wf/both: gives ['one', 'two'] for wf"]


def test_items_of_a_list_wait_each_for_itself() -> None:
    def gen() -> list[int]:
        return [1, 2, 3]

    def check(node_input: int) -> Any:
        if node_input == 2:
            yield node_input
        else:
            yield RequestInput(interrupt_id=f"n{node_input}", message=f"{node_input}?")

    talk = Talk(wf((START, gen, node(check, parallel_worker=True), b)))
    assert sorted(asked(talk.say("q"))) == ["n1", "n3"]
    assert walked(talk.say(answer("n3", "three"))) == ["wf: waits"]
    assert last(talk.say(answer("n1", "one"))) == "b:['one', 2, 'three']"


def test_an_agent_that_waits_for_a_yes_goes_on_with_it() -> None:
    agent = pays("paid it")
    talk = Talk(wf((START, s, agent, b)))
    (key,) = asked(talk.say("q"))
    assert last(talk.say(answer(key, {"confirmed": True}, APPROVES))) == "b:paid it"
    assert requests(agent)[1] == [
        ("user", "q"),
        ("model", "calls pay({'n': 1})"),
        ("user", "answers {'result': 'paid 1'}"),
    ]


def test_an_agent_run_by_a_node_waits_for_a_yes() -> None:
    agent = pays("paid it")

    async def orch(ctx: Context) -> Any:
        return await ctx.run_node(agent, "pay it")

    talk = Talk(wf((START, orch, b)))
    (key,) = asked(talk.say("q"))
    assert last(talk.say(answer(key, {"confirmed": True}, APPROVES))) == "b:paid it"


def test_agents_that_work_on_items_wait_for_a_yes_each() -> None:
    def gen() -> list[int]:
        return [1, 2]

    agent = pays(call("pay", n=2), "first", "second")
    talk = Talk(wf((START, gen, node(agent, parallel_worker=True), b)))
    keys = asked(talk.say("q"))
    assert len(keys) == 2
    talk.say(answer(keys[0], {"confirmed": True}, APPROVES))
    assert last(talk.say(answer(keys[1], {"confirmed": True}, APPROVES))) == "b:['first', 'second']"


def test_an_agent_that_waits_for_work_done_elsewhere() -> None:
    def order(what: str) -> dict[str, str]:
        """Orders."""
        return {"status": "pending"}

    agent = step(
        "buyer", call("order", what="tea"), "it is on its way", "tea came", tools=[LongRunningFunctionTool(order)]
    )
    talk = Talk(wf((START, s, agent, b)))
    events = talk.say("q")
    (key,) = asked(events)
    assert walked(events)[-1] == "wf: waits"
    assert last(talk.say(answer(key, {"status": "there"}, "order"))) == "b:tea came"


def test_agents_in_a_row_wait_within_a_node() -> None:
    row = SequentialAgent(name="row", sub_agents=[step("x", "X"), pays("paid"), step("y", "Y")])
    talk = Talk(wf((START, s, row, b)))
    (key,) = asked(talk.say("q"))
    assert walked(talk.say(answer(key, {"confirmed": True}, APPROVES)))[-2:] == [
        "wf/row: says Y",
        "wf/b: gives 'b:Y' for wf",
    ]


def test_what_does_not_wait_comes_to_its_end_first() -> None:
    talk = Talk(wf((START, s, (ask1, b), JoinNode(name="j"))))
    assert walked(talk.say("q")) == [
        "wf/s: gives 'q'",
        "wf/ask1: asks 1? on ask1",
        "wf/b: gives 'b:q' on b",
        "wf: waits",
    ]
    assert walked(talk.say(answer("i1", "one"))) == ["wf/j: gives {'ask1': 'one', 'b': 'b:q'} for wf"]


def test_a_node_that_asks_twice_gets_both_answers() -> None:
    @node(rerun_on_resume=True)
    def twice(ctx: Context) -> Any:
        missing = [key for key in ("k1", "k2") if key not in ctx.resume_inputs]
        yield from (RequestInput(interrupt_id=key, message=key) for key in missing)
        if not missing:
            yield dict(ctx.resume_inputs)

    talk = Talk(wf((START, twice)))
    assert asked(talk.say("q")) == ["k1", "k2"]
    assert asked(talk.say(answer("k1", 1))) == ["k2"]
    assert last(talk.say(answer("k2", 2))) == {"k1": 1, "k2": 2}


def test_a_circle_asks_again_at_each_pass() -> None:
    def draft(ctx: Context) -> str:
        ctx.state["n"] = ctx.state.get("n", 0) + 1
        return f"draft {ctx.state['n']}"

    def review(node_input: str) -> Any:
        yield RequestInput(message=f"is {node_input} good?")

    def decide(node_input: str) -> Event:
        return Event(output=node_input, route=node_input)

    talk = Talk(wf((START, draft, review, decide, {"no": draft, "yes": b})))
    (first,) = asked(talk.say("q"))
    (second,) = asked(talk.say(answer(first, "no")))
    assert first != second
    assert walked(talk.say(answer(second, "yes"))) == [
        "wf/decide@2: gives 'yes' -> yes",
        "wf/b: gives 'b:yes' for wf",
    ]


def test_the_users_message_is_there_after_a_pause() -> None:
    got: list[Any] = []

    @node(rerun_on_resume=True)
    def asks(ctx: Context, node_input: types.Content) -> Any:
        got.append(node_input)
        if not ctx.resume_inputs:
            yield RequestInput(interrupt_id="i1", message="?")

    talk = Talk(wf((START, asks)))
    talk.say("q")
    talk.say(answer("i1", "x"))
    assert got[0] == got[1]


def test_a_question_asked_again_takes_the_newest_answer() -> None:
    talk = Talk(wf((START, s, ask1, b)))
    talk.say("first")
    talk.say("second")
    assert walked(talk.say(answer("i1", "x"))) == ["wf/b: gives 'b:x' for wf"]
    assert walked(talk.say("third"))[:1] == ["wf/s: gives 'third'"]


def test_an_answer_goes_on_from_where_it_was_asked_after_a_rewind() -> None:
    talk = Talk(wf((START, s, ask1, b)))
    talk.say("q")
    talk.say(answer("i1", "no"))
    invocation = talk.stored().events[-1].invocation_id

    asyncio.run(talk.runner.rewind_async(user_id="u", session_id="s", rewind_before_invocation_id=invocation))
    assert walked(talk.say(answer("i1", "yes"))) == ["wf/b: gives 'b:yes' for wf"]


def test_a_question_is_open_again_after_an_error_behind_it_and_those_beside_it_too() -> None:
    fails = [True]

    def flaky(node_input: str) -> str:
        if fails:
            fails.pop()
            raise OSError("down")
        return f"up {node_input}"

    talk = Talk(wf((START, (ask1, ask2)), (ask1, flaky), ((flaky, ask2), JoinNode(name="j"))))
    talk.say("q")
    talk.say(answer("i1", "one"))
    assert isinstance(talk.error, OSError)
    assert walked(talk.say(answer("i2", "two"))) == ["wf: waits"]
    assert last(talk.say(answer("i1", "one again"))) == {"flaky": "up one again", "ask2": "two"}


def test_an_answer_that_comes_again_is_none(caplog: pytest.LogCaptureFixture) -> None:
    talk = Talk(wf((START, ask1, s, ask2, b)))
    talk.say("q")
    assert walked(talk.say(answer("i1", "x"))) == ["wf/s: gives 'x'", "wf/ask2: asks 2?", "wf: waits"]
    assert talk.say(answer("i1", "y")) == [] and "['i1'] any more" in caplog.text
    assert last(talk.say(answer("i2", "z"))) == "b:z"
    assert talk.say(answer("i2", "again")) == [] and talk.say(answer("i1", "again")) == []


def test_what_a_graph_asked_before_it_began_anew_is_not_open_any_more() -> None:
    talk = Talk(wf((START, s, pays(call("pay", n=1), "paid it"))))
    [old] = asked(talk.say("q"))
    [new] = asked(talk.say("again"))

    assert [interrupt.id for interrupt in open_interrupts(talk.stored().events)] == [new]
    talk.say(answer(old, {"confirmed": True}, APPROVES))
    assert isinstance(talk.error, InputError) and old in str(talk.error)
    assert talk.say(answer(new, {"confirmed": True}, APPROVES))[-1].text == "paid it"


def test_what_is_open_beside_a_task_of_a_graph_stays_open_while_the_user_talks_with_it() -> None:
    tea = step("tea", "Which?", call("finish_task", result="green"), mode="task")
    talk = Talk(wf((START, (tea, ask1), JoinNode(name="j"))))
    assert asked(talk.say("q")) == ["i1"]
    talk.say("green")
    assert [interrupt.id for interrupt in open_interrupts(talk.stored().events)] == ["i1"]
    assert last(talk.say(answer("i1", "one"))) == {"tea": {"result": "green"}, "ask1": "one"}


def test_a_retry_is_over_when_the_node_asks() -> None:
    tried: list[int] = []

    def flaky(ctx: Context) -> Any:
        tried.append(ctx.attempt_count)
        if len(tried) < 2:
            raise ValueError("no")
        yield RequestInput(interrupt_id="i1", message="?")

    talk = Talk(wf((START, node(flaky, retry_config=RetryConfig(initial_delay=0, jitter=0)), b)))
    assert asked(talk.say("q")) == ["i1"] and tried == [1, 2]
    assert last(talk.say(answer("i1", "x"))) == "b:x"


def test_a_node_that_is_gone_is_named() -> None:
    talk = Talk(wf((START, s, ask1, b)))
    talk.say("q")
    other = Talk(wf((START, s, b)))
    other.runner.session_service = talk.service
    talk.runner.agent = other.runner.agent  # as after a cell was edited
    talk.say(answer("i1", "x"))
    assert isinstance(talk.error, WorkflowConfigurationError) and "'ask1'" in str(talk.error)


class Order(BaseModel):
    item: str
    amount: int


def test_an_answer_is_made_into_what_the_next_node_takes() -> None:
    def asks(node_input: Any) -> Any:
        yield RequestInput(interrupt_id="i1", message="order?", response_schema=Order)

    def total(node_input: Order) -> int:
        return node_input.amount * 2

    talk = Talk(wf((START, asks, total)))
    talk.say("q")
    assert talk.say(answer("i1", {"item": "tea"})) == [] and "amount" in str(talk.error)
    assert last(talk.say(answer("i1", {"item": "tea", "amount": 2}))) == 4


class Doubling(BaseNode):
    """A node in code that asks."""

    async def _run_impl(self, *, ctx: Context, node_input: Any) -> Any:
        if "n" in ctx.resume_inputs:
            yield ctx.resume_inputs["n"] * 2
        else:
            yield RequestInput(interrupt_id="n", message="n?", response_schema=int)


def test_a_node_written_as_a_class_asks() -> None:
    talk = Talk(wf((START, Doubling(name="doubling", rerun_on_resume=True), b)))
    talk.say("q")
    assert last(talk.say(answer("n", 4))) == "b:8"


def test_words_answer_the_only_question_where_that_is_wanted() -> None:
    talk = Talk(wf((START, s, ask1, b), text_answers_input=True))
    talk.say("q")
    assert last(talk.say("yes please")) == "b:yes please"
    assert walked(talk.say("again"))[0] == "wf/s: gives 'again'"


def test_words_do_not_answer_what_is_no_text_or_is_one_of_two() -> None:
    def number(node_input: Any) -> Any:
        yield RequestInput(interrupt_id="n", message="n?", response_schema=int)

    for first in (number, (ask1, ask2)):
        talk = Talk(wf((START, s, first), text_answers_input=True))
        talk.say("q")
        assert walked(talk.say("anew"))[0] == "wf/s: gives 'anew'"


# -- under other agents


@pytest.mark.parametrize("kind", [SequentialAgent, ParallelAgent, LoopAgent])
def test_a_workflow_waits_under_agents_that_run_others(kind: Any) -> None:
    graph, after = wf((START, s, ask1, b)), step("after", "done", "done again")
    more = {"max_iterations": 1} if kind is LoopAgent else {}
    talk = Talk(kind(name="top", sub_agents=[graph, after], **more))
    events = talk.say("q")
    assert asked(events) == ["i1"]
    said = [event.text for event in events if event.author == "after"]
    assert said == (["done"] if kind is ParallelAgent else [])
    events = talk.say(answer("i1", "one"))
    assert last(events) == "b:one" and talk.error is None
    assert [event.text for event in events if event.author == "after"] == ([] if kind is ParallelAgent else ["done"])


def test_an_agent_in_a_workflow_under_a_row_waits_for_a_yes() -> None:
    inner = Workflow(name="inner", edges=[(START, pays("paid"), b)])
    talk = Talk(SequentialAgent(name="top", sub_agents=[wf((START, s, inner)), step("after", "done")]))
    (key,) = asked(talk.say("q"))
    events = talk.say(answer(key, {"confirmed": True}, APPROVES))
    assert last(events) == "b:paid" and events[-1].text == "done"


def root(*script: Any, **fields: Any) -> LlmAgent:
    return LlmAgent(name="root", model=ScriptedLlm(*script), **fields)


def test_a_conversation_is_handed_over_to_a_workflow() -> None:
    teller = step("teller", "a story")
    top = root(call("transfer_to_agent", agent_name="wf"), "you are welcome", sub_agents=[wf((START, s, ask1, teller))])
    talk = Talk(top)
    assert asked(talk.say("q")) == ["i1"]
    assert walked(talk.say(answer("i1", "one"))) == ["wf/teller: says a story for wf"]
    assert talk.say("thanks")[-1].text == "you are welcome"
    assert "[teller] said" in requests(top)[1][-2][1] and "a story" in requests(top)[1][-2][1]


def called(graph: BaseAgent, **fields: Any) -> tuple[LlmAgent, Talk]:
    top = root(call("wf", request="tea"), "so be it", tools=[AgentTool(graph, stream_events=True)], **fields)
    return top, Talk(top)


def test_a_workflow_called_as_a_tool_waits_and_answers() -> None:
    top, talk = called(wf((START, s, ask1, b)))
    assert asked(talk.say("q"))[-1] == "i1"
    events = talk.say(answer("i1", "one"))
    assert events[-1].text == "so be it"
    assert requests(top)[1][-1] == ("user", "answers {'result': 'b:one'}")


def test_an_agent_in_a_workflow_called_as_a_tool_waits_for_a_yes() -> None:
    top, talk = called(wf((START, s, pays("paid it"))))
    key = asked(talk.say("q"))[-1]
    assert talk.say(answer(key, {"confirmed": True}, APPROVES))[-1].text == "so be it"
    assert requests(top)[1][-1] == ("user", "answers {'result': 'paid it'}")


def test_a_workflow_is_a_tool() -> None:
    teller = step("teller", "a story")
    top = root(call("wf", request="tea"), "so be it", tools=[wf((START, s, teller), description="Tells.")])
    assert Talk(top).say("q")[-1].text == "so be it"
    assert requests(top)[1][-1] == ("user", "answers {'result': 'a story'}")
    assert requests(teller) == [[("user", "tea")]]


def test_a_workflow_that_is_a_tool_takes_arguments() -> None:
    def double(node_input: Order) -> int:
        return node_input.amount * 2

    graph = wf((START, double), input_schema=Order)
    top = root(call("wf", item="tea", amount=2), "so be it", tools=[graph])
    assert Talk(top).say("q")[-1].text == "so be it"
    assert requests(top)[1][-1] == ("user", "answers {'result': 4}")
    talk = Talk(wf((START, double), input_schema=Order))
    assert last(talk.say('{"item": "tea", "amount": 3}')) == 6
    assert talk.say("tea") == [] and "input_schema" in str(talk.error)


# -- tasks


def clerk(*script: Any) -> LlmAgent:
    return step("clerk", *script, mode="task")


def done(said: str) -> Any:
    return call("finish_task", result=said)


def told(node_input: dict[str, str]) -> str:
    return f"told {node_input['result']}"


def test_a_task_in_a_graph_takes_as_many_words_as_it_needs() -> None:
    agent = clerk("which?", "what size?", done("ordered"))
    talk = Talk(wf((START, s, agent, told)))
    assert walked(talk.say("order"))[-2:] == ["wf/clerk: says which?", "wf: waits"]
    assert walked(talk.say("tea")) == ["wf/clerk: says what size?", "wf: waits"]
    assert last(talk.say("large")) == "told ordered"
    assert requests(agent)[2] == [
        ("user", "order"),
        ("model", "which?"),
        ("user", "tea"),
        ("model", "what size?"),
        ("user", "large"),
    ]
    assert walked(talk.say("again"))[0] == "wf/s: gives 'again'"


def test_a_task_in_a_workflow_within_a_workflow() -> None:
    inner = Workflow(name="inner", edges=[(START, clerk("which?", done("ordered")), told)])
    talk = Talk(wf((START, s, inner, b)))
    talk.say("order")
    assert last(talk.say("tea")) == "b:told ordered"


def test_a_task_in_a_workflow_that_was_handed_the_conversation() -> None:
    graph = wf((START, clerk("which?", done("ordered")), told))
    top = root(call("transfer_to_agent", agent_name="wf"), "welcome", sub_agents=[graph])
    talk = Talk(top)
    talk.say("order")
    assert last(talk.say("tea")) == "told ordered"
    assert talk.say("thanks")[-1].text == "welcome"


def test_a_task_in_a_workflow_in_a_row_takes_its_words_before_what_comes_after() -> None:
    agent = clerk("which?", "what size?", done("ordered"))
    after = step("after", "done")
    talk = Talk(SequentialAgent(name="top", sub_agents=[wf((START, s, agent, told)), after]))
    assert walked(talk.say("order"))[-2:] == ["wf/clerk: says which?", "wf: waits"]
    assert walked(talk.say("tea")) == ["wf/clerk: says what size?", "wf: waits"]
    events = talk.say("large")
    assert last(events) == "told ordered" and events[-1].text == "done"
    assert requests(agent)[2] == [
        ("user", "order"),
        ("model", "which?"),
        ("user", "tea"),
        ("model", "what size?"),
        ("user", "large"),
    ]


def test_a_task_given_by_an_agent_in_a_row_that_is_a_node_takes_its_words() -> None:
    helper = clerk("which?", done("ordered"))
    boss = step("boss", call("clerk", request="order it"), "all is ordered", sub_agents=[helper])
    row = SequentialAgent(name="row", sub_agents=[boss, step("after", "row is done")])
    talk = Talk(wf((START, s, row, b)))
    assert [event.text for event in talk.say("q") if event.text] == ["which?"]
    events = talk.say("tea")
    assert last(events) == "b:row is done" and talk.error is None
    assert [event.text for event in events if event.author == "boss" and event.text] == ["all is ordered"]
    assert requests(helper)[1][-1] == ("user", "tea")


def test_an_answer_comes_before_a_task_is_done() -> None:
    talk = Talk(wf((START, s, (clerk("which?", done("ordered")), ask1), JoinNode(name="j"))))
    assert asked(talk.say("order")) == ["i1"]
    assert walked(talk.say(answer("i1", "one"))) == ["wf: waits"]
    assert last(talk.say("tea")) == {"clerk": {"result": "ordered"}, "ask1": "one"}


# -- at once, under others


def test_questions_of_nodes_that_run_at_once_are_answered_under_a_row() -> None:
    graph = wf((START, s, (ask1, ask2), JoinNode(name="j"), b))
    talk = Talk(SequentialAgent(name="top", sub_agents=[step("first", "1", "2"), graph, step("after", "done")]))
    assert asked(talk.say("q")) == ["i1", "i2"]
    assert walked(talk.say(answer("i2", "two"))) == ["wf: waits"]
    events = talk.say(answer("i1", "one"))
    assert last(events) == "b:{'ask1': 'one', 'ask2': 'two'}" and events[-1].text == "done"


def test_agents_that_run_at_once_wait_for_a_yes_each_and_see_their_own() -> None:
    one, two = pays("paid one", name="one"), pays("paid two", name="two")
    talk = Talk(wf((START, s, (one, two), JoinNode(name="j"))))
    first, second = asked(talk.say("q"))
    talk.say(answer(first, {"confirmed": True}, APPROVES))
    assert last(talk.say(answer(second, {"confirmed": True}, APPROVES))) == {"one": "paid one", "two": "paid two"}
    for agent in (one, two):
        assert [role for role, _ in requests(agent)[1]] == ["user", "model", "user"]


def test_what_was_asked_later_is_answered_together_with_what_is_open_from_before() -> None:
    join = JoinNode(name="j")

    def ask3(node_input: Any) -> Any:
        yield RequestInput(interrupt_id="i3", message="3?")

    talk = Talk(wf((START, (ask1, ask2)), (ask1, ask3, join), (ask2, join)))
    talk.say("q")
    assert asked(talk.say(answer("i1", "one"))) == ["i3"]

    assert last(talk.say(answers({"i2": "two", "i3": "three"}))) == {"ask3": "three", "ask2": "two"}
    assert talk.error is None


def test_in_a_team_too_what_was_asked_later_is_answered_together_with_what_is_open_from_before() -> None:
    talk = Talk(
        ParallelAgent(name="par", sub_agents=[pays(call("pay", n=2), "a done", name="pa"), pays("b done", name="pb")])
    )
    first, other = asked(talk.say("q"))
    [second] = asked(talk.say(answer(first, {"confirmed": True}, APPROVES)))

    said = [event.text for event in talk.say(answers({key: {"confirmed": True} for key in (other, second)}, APPROVES))]
    assert talk.error is None
    assert sorted(filter(None, said)) == ["a done", "b done"]
