"""Going back in a conversation: what is undone is neither seen nor answered, and state and files are as before."""

from typing import Any

import pytest

from adk_nb import parts, sync, types
from adk_nb.agents import LlmAgent, RunConfig, SequentialAgent
from adk_nb.errors import InputError, InvocationNotFoundError, SessionNotFoundError
from adk_nb.models import ScriptedLlm, call
from adk_nb.runtime.history import open_interrupts
from adk_nb.runtime.interrupts import APPROVALS
from adk_nb.tools import FunctionTool, ToolContext
from tests.support.talk import SESSION_KEY, Talk, guide, requests


def rewind(talk: Talk, invocation_id: str, **more: Any) -> None:
    sync.run(talk.runner.rewind_async(**SESSION_KEY, rewind_before_invocation_id=invocation_id, **more))


def counting(*answers: Any, **fields: Any) -> LlmAgent:
    """Counts its turns in `n`."""

    def count(callback_context: Any) -> None:
        callback_context.state["n"] = callback_context.state.get("n", 0) + 1

    return guide(*answers, before_agent_callback=count, **fields)


def heard(agent: LlmAgent) -> list[str]:
    """The words of the last request."""
    return [words for _, words in requests(agent)[-1]]


def artifact(talk: Talk, filename: str, version: int | None = None) -> str | None:
    service = talk.runner.artifact_service
    assert service is not None
    where = {"app_name": "app", **SESSION_KEY}
    part = sync.run(service.load_artifact(**where, filename=filename, version=version))
    return part and part.text


def test_what_is_undone_is_not_sent_and_state_is_as_before():
    agent = counting("one", "two", "three")
    talk = Talk(agent)
    talk.say("m1")
    second = talk.say("m2")[0].invocation_id

    rewind(talk, second)

    mark = talk.stored().events[-1]
    assert (mark.author, mark.content, mark.actions.rewind_before_invocation_id) == ("user", None, second)
    assert mark.actions.state_delta == {"n": 1}
    assert mark.invocation_id not in ("", second)
    assert talk.stored().state == {"n": 1}
    assert len(talk.stored().events) == 7  # history is added to, never cut

    talk.say("m3")

    assert heard(agent) == ["m1", "one", "m3"]
    assert talk.stored().state == {"n": 2}


def test_the_whole_conversation_can_be_undone():
    agent = counting("one", "two", "three")
    talk = Talk(agent, {"given": 1})
    first = talk.say("m1")[0].invocation_id
    talk.say("m2")

    rewind(talk, first)
    assert talk.stored().state == {"given": 1}

    talk.say("m3")
    assert heard(agent) == ["m3"]


def test_going_back_again_goes_by_what_was_there_then():
    agent = counting("1", "2", "3", "4", "5")
    talk = Talk(agent)
    runs = [talk.say(message)[0].invocation_id for message in ("a", "b")]
    rewind(talk, runs[1])
    runs.append(talk.say("c")[0].invocation_id)

    rewind(talk, runs[2])
    talk.say("d")
    assert heard(agent) == ["a", "1", "d"]

    rewind(talk, runs[0])
    assert talk.stored().state == {}
    talk.say("e")
    assert heard(agent) == ["e"]


def test_going_back_to_before_an_undoing_undoes_it():
    agent = counting("1", "2", "3", "4")
    talk = Talk(agent)
    runs = [talk.say(message)[0].invocation_id for message in ("a", "b")]
    rewind(talk, runs[1])
    mark = talk.stored().events[-1].invocation_id
    talk.say("c")

    rewind(talk, mark)

    assert talk.stored().state == {"n": 2}
    talk.say("d")
    assert heard(agent) == ["a", "1", "b", "2", "d"]


def test_keys_of_the_user_and_the_app_stay():
    def write(tool_context: ToolContext) -> str:
        """Writes."""
        tool_context.state.update({"user:u": 1, "app:a": 1, "own": 1, "temp:t": 1})
        return "ok"

    talk = Talk(guide(call("write"), "done", tools=[write]), {"own": 0, "user:u": 0})

    rewind(talk, talk.say()[0].invocation_id)

    assert talk.stored().state == {"own": 0, "user:u": 1, "app:a": 1}


def test_a_key_that_was_deleted_is_there_again():
    def write(tool_context: ToolContext) -> str:
        """Writes."""
        tool_context.state["list"] = [1]
        return "ok"

    def drop(tool_context: ToolContext) -> str:
        """Drops."""
        del tool_context.state["list"]
        return "ok"

    talk = Talk(guide(call("write"), "1", call("drop"), "2", tools=[write, drop]))
    talk.say()
    second = talk.say()[0].invocation_id
    assert talk.stored().state == {}

    rewind(talk, second)

    assert talk.stored().state == {"list": [1]}


def test_files_are_as_before_and_all_versions_are_kept():
    async def save(tool_context: ToolContext, name: str, text: str) -> str:
        """Saves."""
        await tool_context.save_artifact(name, types.Part(text=text))
        return "ok"

    def saving(text: str, *names: str) -> list[types.Part]:
        return [call("save", name=name, text=text) for name in names]

    agent = guide(saving("old", "a"), "1", saving("new", "a", "b", "user:c"), "2", tools=[save])
    talk = Talk(agent)
    talk.say()
    second = talk.say()[0].invocation_id

    rewind(talk, second)

    assert (artifact(talk, "a"), artifact(talk, "b"), artifact(talk, "user:c")) == ("old", None, "new")
    assert (artifact(talk, "a", 1), artifact(talk, "b", 0)) == ("new", "new")
    assert talk.stored().events[-1].actions.artifact_delta == {"a": 2, "b": 1}

    rewind(talk, talk.stored().events[-1].invocation_id)

    assert (artifact(talk, "a"), artifact(talk, "b")) == ("new", "new")


def test_an_approval_that_was_asked_for_is_not_open_any_more():
    def pay() -> str:
        """Pays."""
        return "paid"

    agent = LlmAgent(
        name="guide",
        model=ScriptedLlm(call("pay"), "hello"),
        tools=[FunctionTool(pay, require_confirmation=True)],
    )
    talk = Talk(agent)
    run = talk.say("pay")[0].invocation_id
    [asked] = open_interrupts(talk.stored().events, APPROVALS)

    rewind(talk, run)

    assert open_interrupts(talk.stored().events, APPROVALS) == []
    answer = types.FunctionResponse(id=asked.id, name="adk_request_confirmation", response={"confirmed": True})
    talk.say([types.Part(function_response=answer)])
    assert isinstance(talk.error, InputError)
    assert "is not open" in str(talk.error)
    assert [event.text for event in talk.say("hi")] == ["hello"]


def test_an_undone_call_takes_no_answer_from_outside():
    def wait() -> None:
        """Waits."""

    tool = FunctionTool(wait)
    tool.is_long_running = True
    talk = Talk(guide(call("wait"), "hello", tools=[tool]))
    events = talk.say()
    [asked] = events[0].get_function_calls()
    rewind(talk, events[0].invocation_id)

    answer = types.FunctionResponse(id=asked.id, name="wait", response={"ok": 1})
    talk.say([types.Part(function_response=answer)])

    assert "session 's'" in str(talk.error)


def test_what_is_unknown_is_named_and_nothing_is_written():
    talk = Talk(guide("one"))
    run = talk.say()[0].invocation_id
    before = len(talk.stored().events)

    with pytest.raises(InvocationNotFoundError, match=f"'e-x'.*{run}"):
        rewind(talk, "e-x")
    with pytest.raises(SessionNotFoundError):
        sync.run(talk.runner.rewind_async(user_id="u", session_id="none", rewind_before_invocation_id=run))

    assert len(talk.stored().events) == before


def test_the_undoing_event_carries_what_the_run_config_says():
    talk = Talk(guide("one"))

    rewind(talk, talk.say()[0].invocation_id, run_config=RunConfig(custom_metadata={"by": "me"}))

    assert talk.stored().events[-1].custom_metadata == {"by": "me"}


def test_an_agent_that_comes_after_an_answer_gets_the_words_that_count():
    heard_by_second: list[str] = []

    def note(callback_context: Any) -> None:
        content = callback_context.user_content
        heard_by_second.append(content.parts[0].text if content else "")

    first = guide(call("pay"), "what else?", "paid", tools=[FunctionTool(pay, require_confirmation=True)])
    second = LlmAgent(name="second", model=ScriptedLlm("noted", "noted", "noted"), before_agent_callback=note)
    talk = Talk(SequentialAgent(name="line", sub_agents=[first, second]))
    talk.say("pay the bill")
    [asked] = open_interrupts(talk.stored().events, APPROVALS)
    undone = talk.say("and one more thing")[0].invocation_id
    rewind(talk, undone)

    talk.say([parts.result(asked.id, "adk_request_confirmation", {"confirmed": True})])

    assert heard_by_second[1:] == ["pay the bill"]


def pay() -> str:
    """Pay."""
    return "paid"
