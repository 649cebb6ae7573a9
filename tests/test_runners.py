"""The front door: what a message finds, what a run leaves behind, and what it never does."""

import asyncio
import gc
import json
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adk_nb import types
from adk_nb.agents import BaseAgent, InvocationContext, LlmAgent, RunConfig
from adk_nb.errors import ConfigurationError, InputError, SessionNotFoundError
from adk_nb.events import Event, ToolConfirmation
from adk_nb.models import BaseLlm, LlmRequest, LlmResponse, ScriptedLlm, call
from adk_nb.runners import InMemoryRunner, Runner
from adk_nb.runtime.approvals import answer, pending
from adk_nb.sessions import BaseSessionService, InMemorySessionService
from adk_nb.tools import FunctionTool, ToolContext
from tests.talk import Talk, sent, told

WHERE = {"user_id": "u", "session_id": "s"}
SECONDS = 5


def look() -> str:
    """Looks."""
    return "seen"


def boom() -> str:
    """Fails."""
    raise ValueError("bad")


def guide(*answers: Any, **fields: Any) -> LlmAgent:
    return LlmAgent(name="guide", model=ScriptedLlm(*answers), **fields)


def requests(agent: LlmAgent) -> list[list[tuple[str, str]]]:
    assert isinstance(agent.model, ScriptedLlm)
    return [sent(request.contents) for request in agent.model.requests]


def authors(talk: Talk) -> list[str]:
    return [event.author for event in talk.stored().events]


# Finding the session


def test_a_runner_needs_the_name_of_its_app():
    with pytest.raises(ConfigurationError, match="app_name='my_app'"):
        Runner(app_name="", agent=guide(), session_service=InMemorySessionService())


def test_a_missing_session_is_told_with_the_way_to_make_it():
    talk = Talk(guide())

    assert talk.say(session_id="x") == []
    assert isinstance(talk.error, SessionNotFoundError)
    assert str(talk.error) == (
        "no session named 'x'; there is: s; "
        "make it with session_service.create_session(app_name='app', user_id='u', ...)"
    )


def test_the_session_of_another_user_is_told_with_its_owner():
    talk = Talk(guide())

    talk.say(user_id="v")

    assert "belongs to user_id='u', and this run says user_id='v'" in str(talk.error).replace(
        "says 'v'", "says user_id='v'"
    )


def test_a_missing_session_is_made_where_that_is_wanted():
    runner = InMemoryRunner(guide("hello", "again"), auto_create_session=True)

    for _ in range(2):
        list(runner.run(user_id="u", session_id="new", new_message="hi"))

    stored = runner.session_service.get_session(app_name="InMemoryRunner", user_id="u", session_id="new")
    assert len(stored.events) == 4


class Elsewhere(BaseSessionService):
    """A service written with coroutines, as for google-adk; it cannot tell whether a copy is current."""

    def __init__(self) -> None:
        self.inner = InMemorySessionService()

    async def create_session(self, **said: Any) -> Any:
        return await self.inner.create_session(**said)

    async def get_session(self, **said: Any) -> Any:
        return await self.inner.get_session(**said)

    async def list_sessions(self, **said: Any) -> Any:
        return await self.inner.list_sessions(**said)

    async def delete_session(self, **said: Any) -> None:
        await self.inner.delete_session(**said)

    async def append_event(self, session: Any, event: Event) -> Event:
        await asyncio.sleep(0)
        return await self.inner.append_event(session, event)


def test_a_service_of_coroutines_serves_as_well():
    agent = guide(call("look"), "seen it", "again", tools=[look])
    service = Elsewhere()
    runner = Runner(app_name="app", agent=agent, session_service=service, auto_create_session=True)

    events = [*runner.run(**WHERE, new_message="hi"), *runner.run(**WHERE, new_message="more")]

    assert [what for _, what in told(events)] == [
        "calls look({})",
        "answers {'result': 'seen'}",
        "seen it .",
        "again .",
    ]
    assert len(requests(agent)[-1]) == 5
    with pytest.raises(SessionNotFoundError):
        list(Runner(app_name="app", agent=agent, session_service=Elsewhere()).run(**WHERE, new_message="hi"))


# The message


def test_a_message_may_be_words_parts_a_content_or_nothing():
    agent = guide(*"abcd")
    talk = Talk(agent)

    for message in ("words", [types.Part(text="part")], types.Content(parts=[types.Part(text="content")]), None):
        talk.say(message)

    assert [one for one in requests(agent)[-1] if one[0] == "user"] == [
        ("user", "words"),
        ("user", "part"),
        ("user", "content"),
    ]
    assert authors(talk) == ["user", "guide"] * 4


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ([call("look")], "a user's message cannot call functions"),
        (
            [
                types.Part(text="hi"),
                types.Part(function_response=types.FunctionResponse(id="1", name="f", response={})),
            ],
            "function responses or words, not both",
        ),
        (
            [types.Part(function_response=types.FunctionResponse(id="1", name="f", response={}))],
            "the function response '1' answers no call of session 's'",
        ),
        (5, "a message is text, a types.Content or a list of types.Part, and not 5"),
    ],
)
def test_a_message_that_cannot_be_is_refused_and_nothing_is_stored(parts: Any, said: str):
    talk = Talk(guide("hello"))

    assert talk.say(parts) == []
    assert isinstance(talk.error, InputError) and said in str(talk.error)
    assert talk.stored().events == []


def test_state_given_with_the_message_is_written_with_it():
    talk = Talk(guide("hello", instruction="For {name}."))

    talk.say("hi", state_delta={"name": "Ann", "user:seen": True})

    assert talk.stored().events[0].actions.state_delta == {"name": "Ann", "user:seen": True}
    assert talk.stored().state == {"name": "Ann", "user:seen": True}


def test_state_that_is_not_json_is_refused_with_the_message_and_nothing_is_stored():
    talk = Talk(guide("hello"))

    assert talk.say("hi", state_delta={"who": object()}) == []
    assert isinstance(talk.error, ConfigurationError) and "state['who'] cannot hold a object" in str(talk.error)
    assert talk.stored().events == []


def test_the_users_event_comes_first_where_it_is_wanted_and_is_history_by_then():
    talk = Talk(guide("hello"))
    stored: list[int] = []

    async def watch() -> list[Event]:
        events: list[Event] = []
        async for event in talk.runner.run_async(**WHERE, new_message="hi", yield_user_message=True):
            events.append(event)
            session = await talk.service.get_session(app_name="app", **WHERE)
            stored.append(len(session.events))
        return events

    events = asyncio.run(watch())

    assert told(events) == [("user", "hi ."), ("guide", "hello .")]
    assert stored == [1, 2]
    assert events[0].invocation_id == events[1].invocation_id != ""


# A run that is not walked to its end


def test_a_run_that_nobody_walks_through_does_nothing():
    talk = Talk(guide("hello"))

    async def leave() -> None:
        run = talk.runner.run_async(**WHERE, new_message="hi")
        del run

    asyncio.run(leave())
    talk.runner.run(**WHERE, new_message="hi")
    gc.collect()

    assert talk.stored().events == []


def test_a_reader_that_has_seen_enough_leaves_no_trace_of_stopping():
    agent = guide("hello", "again")
    talk = Talk(agent)

    for turn in ("hi", "more"):
        for event in talk.runner.run(**WHERE, new_message=turn):
            if event.is_final_response():
                break

    assert authors(talk) == ["user", "guide"] * 2
    assert requests(agent)[1] == [("user", "hi"), ("model", "hello"), ("user", "more")]


def test_a_reader_that_stops_at_a_call_leaves_it_answered():
    agent = guide(call("look"), "again", tools=[look])
    talk = Talk(agent)

    async def stop_at_the_call() -> None:
        async with aclosing(talk.runner.run_async(**WHERE, new_message="hi")) as events:
            async for _ in events:
                break

    asyncio.run(stop_at_the_call())

    assert authors(talk) == ["user", "guide", "guide"]
    sealed = talk.stored().events[-1]
    assert sealed.error_code == "INVOCATION_ABORTED"
    assert [one.name for one in sealed.get_function_responses()] == ["look"]
    talk.say("more")
    assert [role for role, _ in requests(agent)[-1]] == ["user", "model", "user", "user"]


def test_a_break_without_closing_is_sealed_too_and_the_next_turn_does_not_mind():
    agent = guide(call("look"), "again", "and again", tools=[look])
    talk = Talk(agent)

    async def break_and_go_on() -> None:
        async for _ in talk.runner.run_async(**WHERE, new_message="hi"):
            break
        await talk.asay("more")  # the loop had no chance to close the first run yet
        for _ in range(20):
            await asyncio.sleep(0)
        await talk.asay("and more")

    asyncio.run(break_and_go_on())

    assert [event.error_code for event in talk.stored().events].count("INVOCATION_ABORTED") == 1
    assert requests(agent)[1][0] == ("user", "hi") and requests(agent)[1][-1] == ("user", "more")
    last = [what for _, what in requests(agent)[2]]
    assert last[1].startswith("calls look") and last[2].startswith("answers {'error': 'the run ended")
    assert last[3:] == ["more", "again", "and more"]


class Waits(BaseLlm):
    """A model that says so when it is asked, and then waits to be cancelled."""

    model: str = "waits"
    asked: threading.Event

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self.asked.set()
        await asyncio.Event().wait()
        yield LlmResponse()


async def cancelled_when(started: threading.Event, run: Any) -> None:
    task = asyncio.ensure_future(run)
    await asyncio.wait_for(asyncio.to_thread(started.wait, SECONDS), SECONDS)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, SECONDS)


def test_a_cancelled_run_is_sealed():
    started = threading.Event()
    talk = Talk(LlmAgent(name="guide", model=Waits(asked=started)))

    asyncio.run(cancelled_when(started, talk.asay("hi")))

    [_, sealed] = talk.stored().events
    assert (sealed.author, sealed.error_code, sealed.content) == ("guide", "INVOCATION_ABORTED", None)
    assert sealed.invocation_id == talk.stored().events[0].invocation_id


def test_a_run_cancelled_in_its_tools_answers_every_call_and_the_next_request_is_well_paired():
    started = threading.Event()

    async def wait(tool_context: ToolContext) -> str:
        """Waits."""
        tool_context.state["half"] = "done"
        started.set()
        await asyncio.Event().wait()
        return "never"

    agent = guide([call("look"), call("wait")], "again", tools=[look, wait])
    talk = Talk(agent)

    asyncio.run(cancelled_when(started, talk.asay("hi")))
    talk.say("more")

    sealed = talk.stored().events[2]
    assert [one.name for one in sealed.get_function_responses()] == ["look", "wait"]
    assert all("may or may not have taken effect" in str(one.response) for one in sealed.get_function_responses())
    assert [role for role, _ in requests(agent)[-1]] == ["user", "model", "user", "user"]
    assert talk.stored().state == {}


def test_a_stopped_run_and_a_failed_one_leave_no_state_behind():
    seen: list[dict[str, Any]] = []
    started = threading.Event()

    async def write_and(end: str, tool_context: ToolContext) -> str:
        """Writes, and does not come to an end."""
        tool_context.state["uncommitted"] = end
        tool_context.state["temp:scrap"] = end
        if end == "fail":
            raise ValueError("bad")
        started.set()
        await asyncio.Event().wait()
        return "never"

    def remember(callback_context: Any) -> None:
        seen.append(callback_context.state.to_dict())

    agent = guide(
        call("write_and", end="fail"), call("write_and", end="wait"), "fine", tools=[write_and],
        tool_errors="raise", before_agent_callback=remember,
    )  # fmt: skip
    talk = Talk(agent, state={"kept": 1})

    talk.say("fail")
    assert isinstance(talk.error, ValueError)
    asyncio.run(cancelled_when(started, talk.asay("wait")))
    talk.say("fine")

    assert seen == [{"kept": 1}] * 3
    assert talk.stored().state == {"kept": 1}


def test_a_run_that_is_stopped_after_its_session_was_deleted_stops_quietly():
    started = threading.Event()
    talk = Talk(LlmAgent(name="guide", model=Waits(asked=started)))

    async def delete_and_stop() -> None:
        task = asyncio.ensure_future(talk.asay("hi"))
        await asyncio.wait_for(asyncio.to_thread(started.wait, SECONDS), SECONDS)
        await _delete(talk)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, SECONDS)

    asyncio.run(delete_and_stop())


def test_a_run_that_takes_too_long_may_be_timed_out():
    talk = Talk(LlmAgent(name="guide", model=Waits(asked=threading.Event())))

    async def limited() -> None:
        async with asyncio.timeout(0.05):
            await talk.asay("hi")

    with pytest.raises(TimeoutError):
        asyncio.run(limited())
    assert talk.stored().events[-1].error_code == "INVOCATION_ABORTED"


def approve(events: list[Event]) -> list[types.Part]:
    [asked] = [
        one for event in events for one in event.get_function_calls() if one.id in (event.long_running_tool_ids or ())
    ]
    return [answer(asked.id or "", ToolConfirmation(confirmed=True))]


def test_a_reader_that_stops_at_the_question_may_still_say_yes():
    ran: list[int] = []

    def delete() -> str:
        """Deletes."""
        ran.append(1)
        return "deleted"

    agent = guide(call("delete"), "done", tools=[FunctionTool(delete, require_confirmation=True)])
    talk = Talk(agent)
    events: list[Event] = []
    for event in talk.runner.run(**WHERE, new_message="go"):
        events.append(event)
        if event.is_final_response():
            break

    assert ran == []
    assert [what for _, what in told(talk.say(approve(events)))] == ["answers {'result': 'deleted'}", "done ."]
    assert ran == [1]
    assert [role for role, _ in requests(agent)[-1]] == ["user", "model", "user"]


def test_a_run_stopped_while_an_approved_tool_runs_leaves_nothing_to_approve():
    started = threading.Event()

    async def delete() -> str:
        """Deletes."""
        started.set()
        await asyncio.Event().wait()
        return "never"

    agent = guide(call("delete"), "what now?", tools=[FunctionTool(delete, require_confirmation=True)])
    talk = Talk(agent)
    asked = talk.say("go")
    assert len(pending(talk.stored().events)) == 1

    asyncio.run(cancelled_when(started, talk.asay(approve(asked))))

    assert pending(talk.stored().events) == []
    sealed = talk.stored().events[-1]
    assert [one.name for one in sealed.get_function_responses()] == ["delete"]
    talk.say("hm")
    assert "may or may not have taken effect" in requests(agent)[-1][2][1]


def test_an_approved_tool_that_ends_the_run_with_its_error_leaves_nothing_to_approve():
    agent = guide(call("boom"), "what now?", tools=[FunctionTool(boom, require_confirmation=True)], tool_errors="raise")
    talk = Talk(agent)

    failed = talk.say(approve(talk.say("go")))

    assert [event.error_code for event in failed] == ["ValueError"]
    assert pending(talk.stored().events) == []
    assert told(talk.say("hm")) == [("guide", "what now? .")]


# Errors


def test_what_a_model_raises_is_an_event_and_then_raised():
    talk = Talk(guide(RuntimeError("the line is dead"), "back again"))

    events = talk.say("hi")

    assert told(events) == [("guide", "failed RuntimeError .")]
    assert events[0].error_message == "the line is dead"
    assert isinstance(talk.error, RuntimeError)
    assert talk.stored().events[-1] is events[0]
    assert told(talk.say("still there?")) == [("guide", "back again .")]


def test_a_missing_key_of_the_instruction_is_an_event_and_then_raised():
    talk = Talk(guide("never", "hello Ann", instruction="For {name}."))

    events = talk.say("hi")

    assert told(events) == [("guide", "failed KeyError .")]
    assert str(talk.error) == events[0].error_message
    assert str(talk.error).startswith("Context variable not found: `name` in agent 'guide'; ")
    assert told(talk.say("hi", state_delta={"name": "Ann"})) == [("guide", "never .")]


def test_what_goes_wrong_in_the_reader_is_not_the_runs_error():
    talk = Talk(guide("hello"))

    async def read() -> None:
        async with aclosing(talk.runner.run_async(**WHERE, new_message="hi")) as events:
            async for _ in events:
                raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        asyncio.run(read())
    assert authors(talk) == ["user", "guide"]


# Sessions that are kept for the next turn


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
        list(runner.run(**WHERE, new_message=str(turn)))

    assert [len(request) for request in requests(agent)] == [1, 3, 5, 7]
    assert len(talk.stored().events) == 8


def test_a_deleted_session_is_not_remembered():
    agent = guide("a", "b")
    talk = Talk(agent)
    talk.say("secret")

    asyncio.run(_delete(talk))
    talk.say("hi")
    assert isinstance(talk.error, SessionNotFoundError)
    talk.open("s")
    talk.say("new")

    assert requests(agent)[-1] == [("user", "new")]


async def _delete(talk: Talk) -> None:
    await talk.service.delete_session(app_name="app", **WHERE)


def test_temp_keys_reach_through_one_run_and_no_further():
    def note(tool_context: ToolContext) -> str:
        """Notes."""
        tool_context.state["temp:live"] = talk
        return "noted"

    seen: list[Any] = []
    agent = guide(
        call("note"), "done", "next", tools=[note],
        before_model_callback=lambda callback_context, llm_request: seen.append("temp:live" in callback_context.state),
    )  # fmt: skip
    talk = Talk(agent)

    events = talk.say()
    talk.say()

    assert seen == [False, True, False]
    assert talk.stored().state == {}
    assert all(event.actions.state_delta == {} for event in events)


def test_what_is_written_past_the_state_does_not_outlive_the_run():
    def sneak(tool_context: ToolContext) -> str:
        """Writes where it should not."""
        tool_context.session.state["sneaked"] = 1
        tool_context.session.state["items"].append(2)
        return "ok"

    seen: list[Any] = []
    agent = guide(
        call("sneak"), "done", "next", tools=[sneak],
        before_agent_callback=lambda callback_context: seen.append(callback_context.state.to_dict()),
    )  # fmt: skip
    talk = Talk(agent, state={"items": [1]})

    talk.say()
    talk.say()

    assert seen[1] == {"items": [1]}
    assert talk.stored().state == {"items": [1]}


def test_a_list_that_a_tool_goes_on_changing_does_not_change_history():
    mine: list[int] = []

    def add(tool_context: ToolContext) -> dict[str, Any]:
        """Adds."""
        mine.append(len(mine))
        tool_context.state["items"] = mine
        return {"items": mine}

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

    assert [what for _, what in told(talk.say())[1::2]] == [
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

    ids = [one.id for event in events for one in event.get_function_calls()]
    assert len(ids) == len(set(ids)) == 6 and all((one or "").startswith("adk-") for one in ids)
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


@settings(max_examples=60, deadline=None)
@given(TURNS)
def test_a_turn_finds_what_the_store_has_whatever_happened_before(
    turns: list[tuple[str, bool, list[str], str]],
):
    found: list[dict[str, Any]] = []

    def write(writes: list[str], then: str, tool_context: ToolContext) -> str:
        """Writes."""
        for one in writes:
            WRITES[one](tool_context.state)
        if then == "fails":
            raise ValueError("bad")
        return "ok"

    def look_around(callback_context: Any) -> None:
        found.append(json.loads(json.dumps(callback_context.state.to_dict())))

    answers = [
        part
        for _, _, writes, then in turns
        for part in [call("write", writes=writes, then=then), *(["done"] if then == "goes on" else [])]
    ]
    agent = guide(*answers, tools=[write], tool_errors="raise", before_agent_callback=look_around)
    talk = Talk(agent)
    talk.open("t")
    runners = talk.runner, Runner(app_name="app", agent=agent, session_service=talk.service)

    for session_id, second, _, then in turns:
        before = talk.stored(session_id)
        run = runners[second].run(user_id="u", session_id=session_id, new_message="go")
        with suppress(ValueError):
            for event in run:
                if then == "is left" and event.get_function_responses():
                    break
        run.close()
        assert found[-1] == before.state
        asked = agent.model.requests[-1] if isinstance(agent.model, ScriptedLlm) else None
        assert asked and len(talk.stored(session_id).events) > len(before.events)


# Several runs at once


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

    assert [what for _, what in told(first)][1:] == ["answers {'result': 's'} => {'met': 's'}", "bye ."]
    assert [what for _, what in told(second)][1:] == ["answers {'result': 't'} => {'met': 't'}", "bye ."]
    assert (talk.stored("s").state, talk.stored("t").state) == ({"met": "s"}, {"met": "t"})


def test_a_run_inside_the_loop_over_another_one_of_the_same_session():
    """As google-adk does it: the outer run goes on with its own copy; the store holds both in the order of writing."""

    agent = guide(call("look"), "inner", "outer", "later", tools=[look])
    talk = Talk(agent)

    async def nested() -> list[Event]:
        events: list[Event] = []
        async for event in talk.runner.run_async(**WHERE, new_message="go"):
            events.append(event)
            if event.get_function_responses():
                events += await talk.asay("and now?")
        return events

    events = asyncio.run(nested())
    talk.say("later")

    assert [what for _, what in told(events)] == ["calls look({})", "answers {'result': 'seen'}", "inner .", "outer ."]
    assert authors(talk) == ["user", "guide", "guide", "user", "guide", "guide", "user", "guide"]
    assert requests(agent)[1][-1] == ("user", "and now?")
    assert requests(agent)[2][-1] == ("user", "answers {'result': 'seen'}")
    assert [what for _, what in requests(agent)[3]] == [
        "go", "calls look({})", "answers {'result': 'seen'}", "and now?", "inner", "outer", "later",
    ]  # fmt: skip


def test_a_run_inside_another_one_writes_state_that_neither_loses():
    model = ScriptedLlm(call("count", key="n"), call("count", key="n"), "inner", "outer", "last")
    talk = Talk(counter(model=model))

    async def nested() -> None:
        inner = False
        async for event in talk.runner.run_async(**WHERE, new_message="go"):
            if event.get_function_responses() and not inner:
                inner = True
                await talk.asay("inner")

    asyncio.run(nested())
    assert talk.stored().state == {"n": 2}
    talk.say("last")
    assert talk.runner.session_service.get_session(app_name="app", **WHERE).state == {"n": 2}


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


# Agents in code


class Says(BaseAgent):
    """Says what it is given."""

    events: list[Event]

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        for event in self.events:
            yield event


def test_an_agent_in_code_needs_no_model_and_its_events_get_the_runs_id():
    said = [Event(author="coder", message="one", state={"k": 1}), Event(author="coder", message="piece", partial=True)]
    talk = Talk(Says(name="coder", events=said))

    events = talk.say()

    assert told(events) == [("coder", "one => {'k': 1} ."), ("coder", "piece...")]
    assert {event.invocation_id for event in events} == {talk.stored().events[0].invocation_id}
    assert talk.stored().state == {"k": 1}
    assert authors(talk) == ["user", "coder"]


def test_an_agent_in_code_that_says_nothing_of_what_it_does_is_told_so():
    talk = Talk(BaseAgent(name="idle"))

    talk.say()

    assert isinstance(talk.error, NotImplementedError) and "override _run_async_impl" in str(talk.error)


# From sync code


def test_run_works_inside_a_running_loop():
    talk = Talk(guide("hello"))

    async def cell() -> list[Event]:
        return list(talk.runner.run(**WHERE, new_message="hi"))

    assert told(asyncio.run(cell())) == [("guide", "hello .")]


def test_sync_tools_run_in_the_callers_thread():
    threads: list[threading.Thread] = []

    def where() -> str:
        """Where am I?"""
        threads.append(threading.current_thread())
        return "here"

    talk = Talk(guide(call("where"), "done", tools=[where]))
    list(talk.runner.run(**WHERE, new_message="hi"))

    assert threads == [threading.current_thread()]


def test_an_error_reaches_sync_code_after_its_event():
    talk = Talk(guide(RuntimeError("dead")))
    events: list[Event] = []

    with pytest.raises(RuntimeError, match="dead"):
        for event in talk.runner.run(**WHERE, new_message="hi", run_config=RunConfig()):
            events.append(event)  # noqa: PERF402  # kept up to the error

    assert told(events) == [("guide", "failed RuntimeError .")]
