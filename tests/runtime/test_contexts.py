"""What contexts tell callbacks and tools of their run."""

import ast
import asyncio
import inspect
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from adk_nb.agents import CallbackContext, Context, InvocationContext, LlmAgent, RunConfig
from adk_nb.agents.readonly_context import ReadonlyContext
from adk_nb.errors import ConfigurationError
from adk_nb.events import EventActions, RequestInput
from adk_nb.events.event_actions import UiWidget
from adk_nb.models import ScriptedLlm, call
from adk_nb.sessions import InMemorySessionService
from adk_nb.tools import AgentTool, ToolContext
from adk_nb.workflow import Workflow, node
from tests.support.talk import Talk

CONTEXT = (
    "actions add_events_to_memory add_memory add_session_to_memory agent_name attempt attempt_count auth_credential "
    "branch custom_metadata delete_memory function_call_id get_artifact_version get_auth_response get_credential "
    "get_invocation_context idempotency_key interrupt_ids invocation_id is_aborted isolation_scope list_artifacts "
    "load_artifact load_credential node node_path render_ui_widget request_confirmation request_credential "
    "resume_inputs route run_config run_id run_node save_artifact save_credential search_memory session "
    "state tool_confirmation user_content user_id"
)


def public_names(value: Any) -> list[str]:
    return [name for name in dir(value) if not name.startswith("_")]


def documented_names(owner: type) -> Iterator[str]:
    """Methods, properties and attributes with a docstring below them."""
    for scope in ast.walk(ast.parse(inspect.getsource(owner))):
        if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(scope):
            yield scope.name
        if isinstance(scope, ast.ClassDef | ast.FunctionDef):
            for statement, below in pairwise(scope.body):
                is_docstring = isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
                if is_docstring and isinstance(statement, ast.Assign | ast.AnnAssign):
                    yield ast.unparse(statement).split(":")[0].split(" ")[0].removeprefix("self.")


def context(**fields: Any) -> InvocationContext:
    service = InMemorySessionService()
    session = service.create_session(app_name="app", user_id="u", session_id="s")
    agent = LlmAgent(name="guide", model=ScriptedLlm())
    return InvocationContext(agent=agent, session=session, session_service=service, **fields)


def test_a_context_without_an_agent_has_a_name_for_it_too():
    invocation = replace(context(), agent=None)  # pyright: ignore[reportArgumentType]

    assert ReadonlyContext(invocation).agent_name == ToolContext(invocation).agent_name == "unknown"
    assert ReadonlyContext(context()).agent_name == "guide"


def test_a_node_is_told_which_node_it_is_and_what_it_has_asked():
    seen: list[Any] = []

    @node(rerun_on_resume=True)
    async def ask(ctx: Context) -> Any:
        seen.append((ctx.node, ctx.interrupt_ids))
        if not ctx.resume_inputs:
            yield RequestInput(interrupt_id="q", message="Which?")
            seen.append((ctx.node, ctx.interrupt_ids))

    talk = Talk(Workflow(name="graph", edges=[("START", ask)]))
    talk.say()
    assert [(which.name, asked) for which, asked in seen] == [("ask", set()), ("ask", {"q"})]
    assert Context(context()).node is None and Context(context()).interrupt_ids == set()


def test_widgets_are_on_the_event_that_follows_and_of_all_calls_of_a_step():
    def show(name: str, tool_context: ToolContext) -> str:
        """Shows."""
        tool_context.render_ui_widget(UiWidget(id=name, provider="mcp", payload={"n": 1}))
        with pytest.raises(ConfigurationError, match=name):
            tool_context.render_ui_widget(UiWidget(id=name, provider="mcp"))
        return "shown"

    def before(callback_context: CallbackContext) -> None:
        callback_context.render_ui_widget(UiWidget(id="first", provider="mcp"))

    model = ScriptedLlm([call("show", name="a"), call("show", name="b")], "done")
    talk = Talk(LlmAgent(name="guide", model=model, tools=[show], before_agent_callback=before))
    talk.say()
    events = talk.stored().events
    assert [[widget.id for widget in event.actions.render_ui_widgets or ()] for event in events] == [
        [],
        ["first"],
        [],
        ["a", "b"],
        [],
    ]


def test_contexts_of_tools_callbacks_and_nodes_show_only_names_for_their_users():
    seen: dict[str, list[str]] = {}

    def tool(tool_context: ToolContext) -> str:
        seen["tool"] = public_names(tool_context)
        return "done"

    def before_agent(callback_context: CallbackContext) -> None:
        seen["callback"] = public_names(callback_context)

    def node(ctx: Context) -> None:
        seen["node"] = public_names(ctx)

    agent = LlmAgent(
        name="guide", model=ScriptedLlm(call("tool"), "done"), tools=[tool], before_agent_callback=before_agent
    )
    Talk(agent).say()
    Talk(Workflow(name="graph", edges=[("START", node)])).say()

    assert seen == dict.fromkeys(("tool", "callback", "node"), CONTEXT.split())


def test_every_public_name_of_a_context_has_a_docstring():
    documented = {name for owner in (ReadonlyContext, Context) for name in documented_names(owner)}

    assert [name for name in CONTEXT.split() if name not in documented] == []


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
