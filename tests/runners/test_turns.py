"""What a turn finds of the turns before it, of other sessions, and of runs at the same time."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from adk_nb import sync, types
from adk_nb.agents import LlmAgent
from adk_nb.errors import SessionNotFoundError
from adk_nb.events import Event
from adk_nb.models import BaseLlm, LlmRequest, LlmResponse, ScriptedLlm, call
from adk_nb.runners import Runner
from adk_nb.tools import ToolContext
from tests.support.polling import SECONDS
from tests.support.talk import SESSION_KEY, Talk, authors, guide, look, requests, summaries
from tests.support.transcripts import result_line


def counter(**fields: Any) -> LlmAgent:
    def count(key: str, tool_context: ToolContext) -> int:
        """Counts."""
        tool_context.state[key] = tool_context.state.get(key, 0) + 1
        return tool_context.state[key]

    return LlmAgent(name="counter", tools=[count], **fields)


def test_state_changed_by_another_session_is_seen_in_the_next_turn():
    model = ScriptedLlm(
        call("count", key="user:n"), "1", call("count", key="user:n"), "2", call("count", key="user:n"), "3"
    )
    talk = Talk(counter(model=model))
    talk.open("other")

    talk.say()
    talk.say(session_id="other")
    talk.say()

    assert talk.stored().state == talk.stored("other").state == {"user:n": 3}


def test_two_runners_on_one_service_see_each_others_turns():
    agent = guide(*"abcd")
    talk = Talk(agent)
    second = Runner(app_name="app", agent=agent, session_service=talk.service)

    for turn, runner in enumerate((talk.runner, second, talk.runner, second)):
        list(runner.run(**SESSION_KEY, new_message=str(turn)))

    assert [len(request) for request in requests(agent)] == [1, 3, 5, 7]
    assert len(talk.stored().events) == 8


def test_a_deleted_session_is_not_remembered():
    agent = guide("a", "b")
    talk = Talk(agent)
    talk.say("secret")

    async def forget() -> None:
        await talk.service.delete_session(app_name="app", **SESSION_KEY)

    sync.run(forget())
    talk.say("hi")
    assert isinstance(talk.error, SessionNotFoundError)
    talk.open("s")
    talk.say("new")

    assert requests(agent)[-1] == [("user", "new")]


def test_temp_keys_reach_through_one_run_and_no_further():
    def note(tool_context: ToolContext) -> str:
        """Notes."""
        tool_context.state["temp:live"] = talk
        return "noted"

    log: list[Any] = []
    agent = guide(
        call("note"), "done", "next", tools=[note],
        before_model_callback=lambda callback_context, llm_request: log.append("temp:live" in callback_context.state),
    )  # fmt: skip
    talk = Talk(agent)

    events = talk.say()
    talk.say()

    assert log == [False, True, False]
    assert talk.stored().state == {}
    assert all(event.actions.state_delta == {} for event in events)


def test_what_is_written_past_the_state_does_not_outlive_the_run():
    def sneak(tool_context: ToolContext) -> str:
        """Writes where it should not."""
        tool_context.session.state["sneaked"] = 1
        tool_context.session.state["items"].append(2)
        return "ok"

    data: list[Any] = []
    agent = guide(
        call("sneak"), "done", "next", tools=[sneak],
        before_agent_callback=lambda callback_context: data.append(callback_context.state.to_dict()),
    )  # fmt: skip
    talk = Talk(agent, state={"items": [1]})

    talk.say()
    talk.say()

    assert data[1] == {"items": [1]}
    assert talk.stored().state == {"items": [1]}


def test_a_list_that_a_tool_goes_on_changing_does_not_change_history():
    own_counts: list[int] = []

    def add(tool_context: ToolContext) -> dict[str, Any]:
        """Adds."""
        own_counts.append(len(own_counts))
        tool_context.state["items"] = own_counts
        return {"items": own_counts}

    talk = Talk(guide(call("add"), call("add"), "done", tools=[add]))

    events = talk.say()

    answers = [event for event in events if event.get_function_responses()]
    assert [event.actions.state_delta for event in answers] == [{"items": [0]}, {"items": [0, 1]}]
    assert [event.get_function_responses()[0].response for event in answers] == [{"items": [0]}, {"items": [0, 1]}]


def test_a_list_changed_in_place_is_written():
    def add(tool_context: ToolContext) -> int:
        """Adds."""
        tool_context.state["items"].append(len(tool_context.state["items"]))
        return len(tool_context.state["items"])

    talk = Talk(guide(call("add"), call("add"), "done", tools=[add]), state={"items": []})

    assert [text for _, text in summaries(talk.say())[1::2]] == [
        "answers {'result': 1} => {'items': [0]}",
        "answers {'result': 2} => {'items': [0, 1]}",
    ]
    assert talk.stored().state == {"items": [0, 1]}


def test_a_content_that_a_model_says_again_is_not_shared_between_events():
    class SaysTheSame(BaseLlm):
        model: str = "same"
        says: list[LlmResponse]

        async def generate_content_async(
            self, llm_request: LlmRequest, stream: bool = False
        ) -> AsyncGenerator[LlmResponse, None]:
            yield self.says[0]

    same = LlmResponse(content=types.Content(role="model", parts=[call("look"), call("look")]))
    talk = Talk(LlmAgent(name="guide", model=SaysTheSame(says=[same]), tools=[look], max_iterations=3))

    events = talk.say()

    ids = [call.id for event in events for call in event.get_function_calls()]
    assert len(ids) == len(set(ids)) == 6 and all((id or "").startswith("adk-") for id in ids)
    assert same.get_function_calls()[0].id is None


WRITES: dict[str, Callable[[Any], Any]] = {
    "set": lambda state: state.update(own=len(state)),
    "append": lambda state: state.setdefault("items", []) or state["items"].append(1),
    "grow": lambda state: state["items"].append(2) if "items" in state else None,
    "delete": lambda state: state.pop("own", None),
    "user": lambda state: state.update({"user:n": state.get("user:n", 0) + 1}),
    "app": lambda state: state.update({"app:n": state.get("app:n", 0) + 1}),
    "temp": lambda state: state.update({"temp:live": object()}),
}
TURNS = st.lists(
    st.tuples(
        st.sampled_from(["s", "t"]),  # session
        st.booleans(),  # which runner
        st.lists(st.sampled_from(list(WRITES)), max_size=3),
        st.sampled_from(["goes on", "goes on", "fails", "is left"]),
    ),
    max_size=8,
)


@given(TURNS)
def test_a_turn_finds_what_the_store_has_whatever_happened_before(
    turns: list[tuple[str, bool, list[str], str]],
):
    payloads: list[dict[str, Any]] = []

    def write(writes: list[str], then: str, tool_context: ToolContext) -> str:
        """Writes."""
        for item in writes:
            WRITES[item](tool_context.state)
        if then == "fails":
            raise ValueError("bad")
        return "ok"

    def look_around(callback_context: Any) -> None:
        payloads.append(json.loads(json.dumps(callback_context.state.to_dict())))

    answers = [
        part
        for _, _, writes, follow_up in turns
        for part in [call("write", writes=writes, then=follow_up), *(["done"] if follow_up == "goes on" else [])]
    ]
    agent = guide(*answers, tools=[write], tool_errors="raise", before_agent_callback=look_around)
    talk = Talk(agent)
    talk.open("t")
    runners = talk.runner, Runner(app_name="app", agent=agent, session_service=talk.service)

    for session_id, second, _, follow_up in turns:
        earlier_session = talk.stored(session_id)
        run = runners[second].run(user_id="u", session_id=session_id, new_message="go")
        with suppress(ValueError):
            for event in run:
                if follow_up == "is left" and event.get_function_responses():
                    break
        run.close()
        assert payloads[-1] == earlier_session.state
        request = agent.model.requests[-1] if isinstance(agent.model, ScriptedLlm) else None
        assert request and len(talk.stored(session_id).events) > len(earlier_session.events)


def test_one_agent_serves_two_sessions_at_once():
    gate = asyncio.Barrier(2)

    async def meet(tool_context: ToolContext) -> str:
        """Waits for the other session."""
        await asyncio.wait_for(gate.wait(), SECONDS)
        tool_context.state["met"] = tool_context.session.id
        return tool_context.session.id

    talk = Talk(guide(call("meet"), call("meet"), "bye", "bye", tools=[meet]))
    talk.open("t")

    async def both() -> list[list[Event]]:
        return list(await asyncio.gather(talk.asay("hi"), talk.asay("hi", session_id="t")))

    first, second = asyncio.run(both())

    assert [text for _, text in summaries(first)][1:] == [f"{result_line(result='s')} => {{'met': 's'}}", "bye ."]
    assert [text for _, text in summaries(second)][1:] == [f"{result_line(result='t')} => {{'met': 't'}}", "bye ."]
    assert (talk.stored("s").state, talk.stored("t").state) == ({"met": "s"}, {"met": "t"})


def test_a_run_inside_the_loop_over_another_one_of_the_same_session():
    """As google-adk does it: the outer run goes on with its own copy; the store holds both in the order of writing."""

    agent = guide(call("look"), "inner", "outer", "later", tools=[look])
    talk = Talk(agent)

    async def nested() -> list[Event]:
        events: list[Event] = []
        async for event in talk.runner.run_async(**SESSION_KEY, new_message="go"):
            events.append(event)
            if event.get_function_responses():
                events += await talk.asay("and now?")
        return events

    events = asyncio.run(nested())
    talk.say("later")

    assert [text for _, text in summaries(events)] == [
        "calls look({})",
        "answers {'result': 'seen'}",
        "inner .",
        "outer .",
    ]
    assert authors(talk) == ["user", "guide", "guide", "user", "guide", "guide", "user", "guide"]
    assert requests(agent)[1][-1] == ("user", "and now?")
    assert requests(agent)[2][-1] == ("user", "answers {'result': 'seen'}")
    assert [text for _, text in requests(agent)[3]] == [
        "go", "calls look({})", "answers {'result': 'seen'}", "and now?", "inner", "outer", "later",
    ]  # fmt: skip


def test_a_run_inside_another_one_writes_state_that_neither_loses():
    model = ScriptedLlm(call("count", key="n"), call("count", key="n"), "inner", "outer", "last")
    talk = Talk(counter(model=model))

    async def nested() -> None:
        inner = False
        async for event in talk.runner.run_async(**SESSION_KEY, new_message="go"):
            if event.get_function_responses() and not inner:
                inner = True
                await talk.asay("inner")

    asyncio.run(nested())
    assert talk.stored().state == {"n": 2}
    talk.say("last")
    assert talk.runner.session_service.get_session(app_name="app", **SESSION_KEY).state == {"n": 2}


def test_runs_of_one_session_at_once_lose_no_event():
    async def echo() -> str:
        """Lets others go on."""
        await asyncio.sleep(0)
        return "ok"

    talk = Talk(guide(*[call("echo")] * 8, *["done"] * 8, tools=[echo], max_iterations=None))

    async def many() -> None:
        await asyncio.gather(*(talk.asay(str(number)) for number in range(8)))

    asyncio.run(many())

    stored = talk.stored().events
    assert len(stored) == 8 + 16 + 8
    assert len({event.id for event in stored}) == len(stored)
