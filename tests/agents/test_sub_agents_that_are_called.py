"""Sub-agents of a single turn: their parent calls them as tools, in its own session."""

import asyncio
import sys
from itertools import groupby, pairwise
from typing import Any

import pytest
from pydantic import BaseModel

from adk_nb import sync, types
from adk_nb.agents import LlmAgent, ParallelAgent, RunConfig
from adk_nb.agents.callback_context import CallbackContext
from adk_nb.agents.live_request_queue import LiveRequestQueue
from adk_nb.agents.run_config import StreamingMode
from adk_nb.events import Event
from adk_nb.models import ScriptedLlm, call
from adk_nb.runners import InMemoryRunner
from adk_nb.tools import BaseTool, FunctionTool, ToolContext
from tests.support.polling import SECONDS
from tests.support.talk import Talk, look, requests, summaries


def agent(name: str, *answers: Any, **fields: Any) -> LlmAgent:
    return LlmAgent(name=name, model=ScriptedLlm(*answers), **fields)


def single(name: str, *answers: Any, **fields: Any) -> LlmAgent:
    return agent(name, *answers, mode="single_turn", **fields)


def declared(one: LlmAgent, tool: str, turn: int = 0) -> dict[str, Any] | None:
    """The properties of the arguments of a tool, as its model was told in a turn. None: it was not."""
    assert isinstance(one.model, ScriptedLlm)
    result = one.model.requests[turn].tools_dict.get(tool)
    schema = result and result.declaration and result.declaration.parameters_json_schema
    return schema["properties"] if schema else None


def refund(order: str) -> str:
    """Refunds an order."""
    return f"refunded {order}"


GATED = FunctionTool(refund, require_confirmation=True)


def asked(events: list[Event]) -> list[types.FunctionCall]:
    return [call for event in events for call in event.get_function_calls() if call.name == "adk_request_confirmation"]


def yes(*requests: types.FunctionCall) -> types.Content:
    parts = [
        types.FunctionResponse(id=request.id, name=request.name, response={"confirmed": True}) for request in requests
    ]
    return types.Content(role="user", parts=[types.Part(function_response=part) for part in parts])


class Order(BaseModel):
    id: int


class Price(BaseModel):
    euros: int


def test_it_is_declared_with_its_description_and_its_input_schema():
    plain, typed = single("plain", description="Translates."), single("typed", input_schema=Order)
    root = agent("root", "hi", sub_agents=[plain, typed])

    Talk(root).say()

    assert declared(root, "plain") == {"request": {"type": "string"}}
    assert (declared(root, "typed") or {})["id"]["type"] == "integer"
    assert isinstance(root.model, ScriptedLlm)
    assert root.model.requests[0].tools_dict["plain"].description == "Translates."


def test_a_wrong_call_goes_back_to_the_parent():
    child = single("child", "done", input_schema=Order)
    root = agent("root", call("child", id="x"), call("child", id=3), "all done", sub_agents=[child])

    events = Talk(root).say()

    assert "wrong arguments" in summaries(events)[1][1]
    assert requests(child) == [[("user", '{"id": 3}')]]


def test_its_answer_is_json_where_it_has_an_output_schema():
    child = single("child", '{"euros": 3}', output_schema=Price)

    events = Talk(agent("root", call("child", request="price"), "three", sub_agents=[child])).say()

    assert summaries(events)[2] == ("root", "answers {'euros': 3}")


def test_its_answer_in_several_parts_is_one_text():
    parts = [types.Part(text="El mar "), types.Part(text="es azul.")]

    events = Talk(agent("root", call("child", request="x"), "done", sub_agents=[single("child", parts)])).say()

    assert summaries(events)[2] == ("root", "answers {'result': 'El mar es azul.'}")


def test_it_begins_anew_at_each_call():
    child = single("child", "one", "two")
    root = agent("root", call("child", request="A"), call("child", request="B"), "done", sub_agents=[child])

    Talk(root).say()

    assert requests(child) == [[("user", "A")], [("user", "B")]]


def test_with_all_contents_it_sees_what_earlier_calls_came_to_and_nothing_of_how():
    child = single("child", call("look"), "one", "two", include_contents="default", tools=[look])
    root = agent("root", call("child", request="A"), call("child", request="B"), "done", sub_agents=[child])

    Talk(root).say("go")

    first, repeated_request, second = requests(child)
    assert repeated_request[: len(first)] == first
    assert repeated_request[len(first) :] == [("model", "calls look({})"), ("user", "answers {'result': 'seen'}")]
    text = "\n".join(text for _, text in second)
    assert [text for _, text in second if not text.count("\n")] == ["go", "B"]
    assert "called tool `child`" in text and """{"result":"one"}""" in text and "look" not in text


@pytest.mark.parametrize("contents", ["default", "none"])
def test_a_late_call_takes_no_more_work_than_an_early_one(contents: Any):
    work, starts = 0, list[int]()

    def count(frame: object, event: str, arg: object) -> None:
        nonlocal work
        work += event == "call"

    child = single("child", *["ok"] * 80, include_contents=contents)
    child.before_agent_callback = lambda callback_context: starts.append(work)
    root = agent(
        "root", *[call("child", request=f"x{n}") for n in range(80)], "done", sub_agents=[child], max_iterations=100
    )

    async def run() -> list[Event]:
        runner = InMemoryRunner(root, app_name="app")
        await runner.session_service.create_session(app_name="app", user_id="u", session_id="s")
        sys.setprofile(count)
        try:
            return [event async for event in runner.run_async(user_id="u", session_id="s", new_message="hi")]
        finally:
            sys.setprofile(None)

    assert len(asyncio.run(run())) == 80 * 3 + 1
    afters = [later - earlier for earlier, later in pairwise(starts)]
    assert sum(afters[-10:]) < 1.3 * sum(afters[10:20])


def test_what_it_asks_of_a_person_is_asked_in_the_parents_conversation():
    child = single("child", call("refund", order="A1"), "Refunded.", tools=[GATED], include_contents="default")
    root = agent("root", call("child", request="Refund A1"), "All done.", sub_agents=[child])
    talk = Talk(root)

    first = talk.say("refund A1")
    later_events = talk.say(yes(*asked(first)))

    assert first[-1].is_final_response()
    assert summaries(later_events) == [
        ("child", "answers {'result': 'refunded A1'}"),
        ("child", "Refunded. ."),
        ("root", "answers {'result': 'Refunded.'}"),
        ("root", "All done. ."),
    ]
    earlier_request, later_request = requests(child)
    assert later_request == [
        *earlier_request,
        ("model", "calls refund({'order': 'A1'})"),
        ("user", "answers {'result': 'refunded A1'}"),
    ]


@pytest.mark.parametrize("order", [1, -1])
def test_of_two_runs_that_answer_two_of_them_at_once_one_goes_on_with_the_parent(order: int):
    async def meet(order: str) -> str:
        """Lets the other begin, if it would."""
        for _ in range(20):
            await asyncio.sleep(0)
        return f"met {order}"

    async def scene() -> list[list[Event]]:
        requests_ = asked(await talk.asay())
        return await asyncio.gather(*(talk.asay(yes(item)) for item in requests_[::order]))

    gated = FunctionTool(meet, require_confirmation=True)
    sub_agent = single("one", call("meet", order="A1"), "one met", tools=[gated])
    second_agent = single("two", call("meet", order="B2"), "two met", tools=[gated])
    calls = [call("one", request="x"), call("two", request="y")]
    root = agent("root", calls, "done", "again", sub_agents=[sub_agent, second_agent])
    talk = Talk(root)

    first, second = sync.run(scene())

    from_root = [[event for event in events if event.author == "root"] for events in (first, second)]
    assert [summaries(events).count(("root", "done .")) for events in from_root] == [0, 1]
    assert requests(root)[1][-1] == ("user", "answers {'result': 'one met'}; answers {'result': 'two met'}")
    assert len(requests(root)) == 2
    ids = [event.invocation_id for event in talk.stored().events]
    assert [key for key, _ in groupby(ids)] == list(dict.fromkeys(ids))  # one turn after the other


def test_several_called_at_once_see_what_led_there_and_not_each_other():
    names = ("one", "two", "three")
    children = [single(name, name, include_contents="default") for name in names]
    root = agent("root", [call(name, request=name.upper()) for name in names], "done", sub_agents=children)

    Talk(root).say("go")

    for name, child in zip(names, children, strict=True):
        [request] = requests(child)
        assert [request[0], request[-1]] == [("user", "go"), ("user", name.upper())]
        assert len(request) == 3


def test_one_under_another_sees_what_its_parent_sees():
    inner = single("inner", "deep", include_contents="default")
    outer = single("outer", call("inner", request="I"), "out", include_contents="default", sub_agents=[inner])
    root = agent("root", call("outer", request="O"), "done", sub_agents=[outer])

    events = Talk(root).say("go")

    key, deeper = (event.get_function_calls()[0].id for event in events[:2])
    assert [event.branch for event in events] == [
        None, f"outer@{key}", f"outer@{key}.inner@{deeper}", f"outer@{key}", f"outer@{key}", None, None,
    ]  # fmt: skip
    [request] = requests(inner)
    assert [request[number] for number in (0, 2, 4)] == [("user", "go"), ("user", "O"), ("user", "I")]
    assert "[root] called tool `outer`" in request[1][1] and "[outer] called tool `inner`" in request[3][1]


def test_one_that_sees_nothing_shows_nothing_to_those_under_it():
    inner = single("inner", "deep", include_contents="default")
    outer = single("outer", call("inner", request="I"), "out", sub_agents=[inner])

    Talk(agent("root", call("outer", request="O"), "done", sub_agents=[outer])).say("secret")

    [request] = requests(inner)
    assert [request[0], request[-1]] == [("user", "O"), ("user", "I")]
    assert "secret" not in str(request)


def test_what_the_parent_writes_it_reads_and_the_other_way_round():
    def note(tool_context: ToolContext) -> str:
        """Notes."""
        tool_context.state["noted"] = "blue"
        return "noted"

    child = single("child", "ok", instruction="The color is {noted}.", output_key="child_said")
    root = agent("root", call("note"), call("child", request="x"), "{child_said}", tools=[note], sub_agents=[child])
    talk = Talk(root)

    talk.say()

    assert isinstance(child.model, ScriptedLlm)
    assert child.model.requests[0].config.system_instruction == "The color is blue."
    assert talk.stored().state == {"noted": "blue", "child_said": "ok"}


def test_callbacks_stand_around_the_call_and_around_its_work():
    texts: list[str] = []

    def before_tool(tool: BaseTool, args: dict[str, Any], tool_context: ToolContext) -> None:
        texts.append(f"before {tool.name}")

    def after_tool(tool: BaseTool, args: dict[str, Any], tool_context: ToolContext, tool_response: Any) -> None:
        texts.append(f"after {tool.name}: {tool_response}")

    def before(callback_context: CallbackContext) -> None:
        texts.append(f"begins {callback_context.agent_name}")

    def after(callback_context: CallbackContext) -> None:
        texts.append(f"ends {callback_context.agent_name}")

    child = single("child", "ok", before_agent_callback=before, after_agent_callback=after)
    root = agent("root", call("child", request="x"), "done", sub_agents=[child])
    root.before_tool_callback, root.after_tool_callback = before_tool, after_tool

    Talk(root).say()

    assert texts == ["before child", "begins child", "ends child", "after child: ok"]


def test_an_error_of_one_leaves_the_others_their_answers():
    children = [single("good", "fine"), single("bad", RuntimeError("boom"))]
    root = agent("root", [call("good", request="x"), call("bad", request="x")], "done", sub_agents=children)

    events = Talk(root).say()

    assert summaries(events)[-2:] == [
        ("root", "answers {'result': 'fine'}; answers {'error': 'RuntimeError: boom'}"),
        ("root", "done ."),
    ]


def test_nobody_hands_over_to_it_by_a_tool_of_their_own():
    def over(tool_context: ToolContext) -> str:
        """Hands over."""
        tool_context.actions.transfer_to_agent = "child"
        return "over"

    events = Talk(agent("root", call("over"), "I answer.", tools=[over], sub_agents=[single("child")])).say()

    assert "cannot transfer to 'child'" in summaries(events)[1][1]
    assert summaries(events)[-1] == ("root", "I answer. .")


def test_one_among_agents_that_chat_is_called_and_the_others_take_over():
    root = agent(
        "root", call("transfer_to_agent", agent_name="chats"), sub_agents=[agent("chats", "hi"), single("one")]
    )

    assert summaries(Talk(root).say())[-1] == ("chats", "hi .")
    assert declared(root, "one") is not None
    assert (declared(root, "transfer_to_agent") or {})["agent_name"]["enum"] == ["chats"]


def test_what_the_user_says_next_is_for_the_parent():
    root = agent("root", call("one", request="x"), "done", "again", sub_agents=[single("one", "1")])
    talk = Talk(root)

    talk.say()

    assert summaries(talk.say()) == [("root", "again .")]


def test_a_parent_that_has_taken_over_calls_its_own():
    b = agent("b", call("one", request="x"), "b done", "b again", sub_agents=[single("one", "1")])
    talk = Talk(agent("root", call("transfer_to_agent", agent_name="b"), sub_agents=[b]))

    events = talk.say()

    assert [author for author, _ in summaries(events)] == ["root", "root", "b", "one", "b", "b"]
    assert summaries(talk.say()) == [("b", "b again .")]


def test_in_a_parallel_agent_it_works_on_a_branch_of_the_branch():
    agents: list[Any] = [
        agent(f"p{n}", call(f"c{n}", request="x"), "done", sub_agents=[single(f"c{n}", "ok")]) for n in (1, 2)
    ]

    events = Talk(ParallelAgent(name="par", sub_agents=agents)).say()

    branches = {event.author: event.branch or "" for event in events}
    assert branches["p1"] == "par.p1" and branches["c1"].startswith("par.p1.c1@")
    assert branches["p2"] == "par.p2" and branches["c2"].startswith("par.p2.c2@")


def test_pieces_of_its_answer_stream():
    root = agent("root", call("child", request="x"), "done", sub_agents=[single("child", "Oslo and more")])

    events = Talk(root).say(config=RunConfig(streaming_mode=StreamingMode.SSE))

    assert any(event.partial and event.author == "child" and event.branch for event in events)


def test_one_that_is_added_or_taken_away_later_counts_at_once():
    root = agent("root", "one", "two", "three", sub_agents=[])
    talk, child = Talk(root), single("child")
    talk.say()

    root.sub_agents.append(child)
    talk.say()
    root.sub_agents.clear()
    talk.say()

    assert [declared(root, "child", turn) is not None for turn in range(3)] == [False, True, False]


def test_a_tool_of_the_same_name_is_warned_of():
    def child() -> str:
        """A tool."""
        return "tool"

    with pytest.warns(UserWarning, match=r"'root'.*sub-agent named 'child'"):
        root = agent("root", call("child", request="x"), "done", tools=[child], sub_agents=[single("child", "agent")])

    assert summaries(Talk(root).say())[2] == ("root", "answers {'result': 'agent'}")


def test_in_a_live_conversation_it_works_apart():
    child = single("child", "Oslo.", include_contents="default")
    talk = Talk(agent("root", call("child", request="Which city?"), "It is Oslo.", sub_agents=[child]))

    async def converse() -> list[Event]:
        queue = LiveRequestQueue()
        queue.send_content(types.Content(role="user", parts=[types.Part(text="hi")]))
        turn_events: list[Event] = []
        async with asyncio.timeout(SECONDS):
            async for event in talk.runner.run_live(user_id="u", session_id="s", live_request_queue=queue):
                turn_events.append(event)
                if event.turn_complete:
                    queue.close()
        return turn_events

    events = asyncio.run(converse())

    assert [response.response for event in events for response in event.get_function_responses()] == [
        {"result": "Oslo."}
    ]
    assert requests(child) == [[("user", "Which city?")]]
