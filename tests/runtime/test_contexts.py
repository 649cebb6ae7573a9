"""What contexts tell callbacks and tools of their run."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from adk_nb.agents import CallbackContext, InvocationContext, LlmAgent, RunConfig
from adk_nb.agents.readonly_context import ReadonlyContext
from adk_nb.events import EventActions
from adk_nb.models import ScriptedLlm, call
from adk_nb.sessions import InMemorySessionService
from adk_nb.tools import AgentTool, ToolContext
from tests.support.talk import Talk


def context(**fields: Any) -> InvocationContext:
    service = InMemorySessionService()
    session = service.create_session(app_name="app", user_id="u", session_id="s")
    agent = LlmAgent(name="guide", model=ScriptedLlm())
    return InvocationContext(agent=agent, session=session, session_service=service, **fields)


def test_a_tool_sees_that_its_run_is_asked_to_stop():
    signal, seen = asyncio.Event(), list[bool]()

    def work(tool_context: ToolContext) -> str:
        seen.append(tool_context.is_aborted)
        signal.set()
        seen.append(tool_context.is_aborted)
        return "worked"

    Talk(LlmAgent(name="guide", model=ScriptedLlm(call("work"), "done"), tools=[work])).say(abort_signal=signal)

    assert seen == [False, True]


def test_a_called_agent_sees_that_the_run_of_its_caller_is_asked_to_stop():
    seen: list[bool] = []

    def stop(callback_context: CallbackContext) -> None:
        seen.append(callback_context.is_aborted)
        talk.runner.cancel(caller[0])
        seen.append(callback_context.is_aborted)

    caller: list[str] = []
    expert = LlmAgent(name="expert", model=ScriptedLlm("never"), before_agent_callback=stop)
    guide = LlmAgent(
        name="guide",
        model=ScriptedLlm(call("expert", request="go"), "done"),
        tools=[AgentTool(agent=expert)],
        before_agent_callback=lambda callback_context: caller.append(callback_context.invocation_id),
    )
    talk = Talk(guide)
    talk.say()

    assert seen == [False, True]


def test_metadata_of_a_run_is_shared_by_its_tools_and_read_only_in_instructions():
    seen: list[dict[str, Any]] = []

    def instruction(ctx: ReadonlyContext) -> str:
        seen.append(dict(ctx.custom_metadata))
        with pytest.raises(TypeError):
            ctx.custom_metadata["trace"] = "other"
        return "Guide."

    def work(tool_context: ToolContext) -> str:
        tool_context.custom_metadata["worked"] = True
        return "worked"

    config = RunConfig(custom_metadata={"trace": "t1"})
    agent = LlmAgent(name="guide", model=ScriptedLlm(call("work"), "done"), tools=[work], instruction=instruction)
    Talk(agent).say(config=config)

    assert seen == [{"trace": "t1"}, {"trace": "t1", "worked": True}]
    assert config.custom_metadata == {"trace": "t1"}


def test_a_context_takes_google_adks_keywords():
    actions = EventActions()
    tool_context = ToolContext(invocation_context=context(branch="a.b"), event_actions=actions, function_call_id="c")
    tool_context.state["seen"] = True

    assert actions.state_delta == {"seen": True}
    assert (tool_context.branch, tool_context.isolation_scope) == ("a.b", None)
    with pytest.raises(AttributeError):
        setattr(tool_context, "_invocation_context", context())  # noqa: B010 - the field is read-only


def test_the_end_of_an_invocation_is_shared_by_all_of_its_contexts():
    first = context()
    second = replace(first, branch="other")
    second.end_invocation = True

    assert first.end_invocation and context(end_invocation=True).end_invocation and not context().end_invocation


def test_a_context_without_a_runner_has_no_plugins():
    made = context()

    assert (list(made.plugin_manager.hooks("before_run")), made.is_resumable) == ([], False)
