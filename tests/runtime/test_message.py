"""What a user's message may carry, which agent it is for, and where its files go."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import pytest

from adk_nb import sync, types
from adk_nb.agents import BaseAgent, InvocationContext, LlmAgent, RunConfig
from adk_nb.errors import ConfigurationError, InputError
from adk_nb.events import Event
from adk_nb.models import ScriptedLlm, call
from adk_nb.plugins import BasePlugin
from adk_nb.runners import Runner
from adk_nb.tools import LongRunningFunctionTool
from tests.support.talk import SESSION_KEY, Talk, authors, guide, look, requests, summaries


def file(order: str) -> None:
    """Files an order; the answer comes later."""


def response(event: Event, **result: Any) -> types.Part:
    [call] = event.get_function_calls()
    return types.Part(function_response=types.FunctionResponse(id=call.id, name=call.name, response=result))


class Passes(LlmAgent):
    """An agent that may hand the word back."""

    disallow_transfer_to_parent: bool = False


class Desk(Passes):
    """Passes what begins with another agent's name on to that agent, and answers the rest itself."""

    def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        text = ctx.user_content.parts[0].text if ctx.user_content and ctx.user_content.parts else ""
        other_agent = next((agent for agent in self.sub_agents if (text or "").startswith(agent.name)), None)
        return other_agent.run_async(ctx) if other_agent else super()._run_async_impl(ctx)


def desk(*other_args: BaseAgent, **fields: Any) -> Talk:
    answers = [f"desk {place}" for place in range(9)]
    return Talk(Desk(name="desk", model=ScriptedLlm(*answers), sub_agents=list(other_args), **fields))


def billing(*answers: Any, **fields: Any) -> Passes:
    return Passes(name="billing", model=ScriptedLlm(*answers), **fields)


def test_the_agent_that_spoke_last_hears_the_next_message():
    talk = desk(billing("bill", "paid", "again"))

    texts = [talk.say(text)[-1].text for text in ("hello", "billing please", "what of it?", "and now?")]

    assert texts == ["desk 0", "bill", "paid", "again"]


@pytest.mark.parametrize("stored", ["the speaker", "the one above it"])
def test_a_conversation_that_cannot_come_back_begins_at_the_root_again(stored: str):
    speaker = billing("bill", disallow_transfer_to_parent=stored == "the speaker")
    talk = desk(speaker, disallow_transfer_to_parent=stored == "the one above it")

    texts = [talk.say(text)[-1].text for text in ("billing please", "what of it?")]

    assert texts == ["bill", "desk 0"]


def test_an_agent_without_a_model_keeps_the_word_for_itself():
    talk = desk(Plain(name="plain"))

    assert [talk.say(text)[-1].text for text in ("plain please", "what of it?")] == ["plain", "desk 0"]


def test_a_removed_agent_is_not_called():
    talk = desk(billing("bill"))
    talk.say("billing please")

    runner = Runner(app_name="app", agent=guide("hello"), session_service=talk.service)

    assert [event.text for event in runner.run(**SESSION_KEY, new_message="hi")] == ["hello"]


def test_what_was_undone_does_not_count_for_who_spoke_last():
    talk = desk(billing("bill"))
    undone = talk.say("billing please")[0].invocation_id
    sync.run(talk.runner.rewind_async(**SESSION_KEY, rewind_before_invocation_id=undone))

    assert talk.say("what of it?")[-1].text == "desk 0"


def test_a_late_result_goes_to_the_agent_that_asked_for_it():
    talk = desk(
        billing(call("file", order="a"), "filed", "done", tools=[LongRunningFunctionTool(file)]),
        Passes(name="other", model=ScriptedLlm("other")),
    )
    [asked_event, *_] = talk.say("billing please")
    talk.say("other please")

    events = talk.say([response(asked_event, ticket=7)])

    assert {event.author for event in events} == {"billing"}


def test_results_of_calls_of_different_runs_are_sent_one_after_the_other():
    tools = [LongRunningFunctionTool(file)]
    talk = Talk(guide(call("file", order="a"), call("file", order="b"), "3", "4", tools=tools))
    [first, *_], [second, *_] = talk.say("a"), talk.say("b")
    stored = len(talk.stored().events)

    assert talk.say([response(first, ticket=1), response(second, ticket=2)]) == []

    assert isinstance(talk.error, InputError) and "different runs" in str(talk.error)
    assert len(talk.stored().events) == stored
    assert talk.say([response(first, ticket=1)])[-1].is_final_response()
    assert talk.say([response(second, ticket=2)])[-1].is_final_response()


class Plain(BaseAgent):
    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        yield Event(author=self.name, message="plain")


@pytest.mark.parametrize("empty", [None, [], types.Content(parts=[])])
def test_only_an_agent_with_a_model_goes_on_without_a_message(empty: Any):
    talk = Talk(Plain(name="plain"))

    assert talk.say(empty) == []
    assert isinstance(talk.error, InputError) and "agent 'plain' needs a message" in str(talk.error)
    assert talk.stored().events == []
    assert summaries(Talk(guide("going on")).say(empty)) == [("guide", "going on .")]


PICTURE = types.Part(inline_data=types.Blob(data=b"png", mime_type="image/png", display_name="cat.png"))


def test_files_in_a_message_can_be_kept_as_artifacts_and_named_in_their_place():
    agent = guide("nice", "nice")
    talk = Talk(agent)
    message = types.Content(role="user", parts=[types.Part(text="look"), PICTURE])

    talk.say(message, config=RunConfig(save_input_blobs_as_artifacts=True))

    event = talk.stored().events[0]
    name = f"artifact_{event.invocation_id}_1"
    assert [part.text for part in event.parts] == ["look", f"Uploaded file: {name}. It is kept as an artifact."]
    assert event.actions.artifact_delta == {name: 0}
    stored_artifact = sync.run(talk.runner.artifact_service.load_artifact(app_name="app", filename=name, **SESSION_KEY))
    assert stored_artifact and stored_artifact.inline_data and stored_artifact.inline_data.data == b"png"
    assert message.parts == [types.Part(text="look"), PICTURE]
    assert requests(agent)[0] == [("user", f"look; Uploaded file: {name}. It is kept as an artifact.")]

    talk.say(message)
    assert talk.stored().events[2].parts[1] == PICTURE


def test_files_or_state_that_cannot_be_kept_are_refused_before_anything_is_stored():
    talk = Talk(guide("nice"))
    service, talk.runner.artifact_service = talk.runner.artifact_service, None

    assert talk.say([PICTURE], config=RunConfig(save_input_blobs_as_artifacts=True)) == []
    assert isinstance(talk.error, ConfigurationError) and "artifact service" in str(talk.error)
    assert talk.stored().events == []
    talk.runner.artifact_service = service

    talk.say([PICTURE], config=RunConfig(save_input_blobs_as_artifacts=True), state_delta={"bad": "\ud800"})
    assert "'bad'" in str(talk.error)
    assert sync.run(service.list_artifact_keys(app_name="app", **SESSION_KEY)) == []
    assert talk.say("words alone", config=RunConfig(save_input_blobs_as_artifacts=True))[-1].text == "nice"


def test_what_a_plugin_makes_of_a_message_is_checked_too():
    class Calls(BasePlugin):
        async def on_user_message_callback(self, *, invocation_context: Any, user_message: Any) -> types.Content:
            return types.Content(role="user", parts=[call("look")])

    talk = Talk(guide("hello"), plugins=[Calls("calls")])

    talk.say("hi")

    assert "cannot call functions" in str(talk.error)
    assert talk.stored().events == []


def test_a_run_may_begin_while_another_of_the_session_waits_for_its_reader():
    agent = guide(call("look"), "inner", "outer", "last", tools=[look])
    talk = Talk(agent)

    async def nested() -> list[str]:
        log: list[str] = []
        async with aclosing(talk.runner.run_async(**SESSION_KEY, new_message="first")) as events:
            async for event in events:
                if event.get_function_calls():
                    log += [run_event.text for run_event in await talk.asay("second")]
                log += [event.text] if event.text else []
        return log

    assert asyncio.run(nested()) == ["inner", "outer"]

    assert authors(talk) == ["user", "guide", "user", "guide", "guide", "guide"]
    inner, outer = requests(agent)[1], requests(agent)[2]
    assert [text for _, text in inner] == ["first", "second"]
    assert [text for _, text in outer] == ["first", "calls look({})", "answers {'result': 'seen'}"]
    assert summaries(talk.say("third")) == [("guide", "last .")]
    assert [text for _, text in requests(agent)[3]][-1] == "third"
