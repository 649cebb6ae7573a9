"""An agent as a tool of another one: it works apart, and what it answers is the result."""

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Protocol

from pydantic import BaseModel, ValidationError
from pydantic_core import to_json

from adk_nb import types
from adk_nb.errors import ConfigurationError
from adk_nb.events.event import Event
from adk_nb.events.event_actions import DELETED
from adk_nb.runtime.context import ToolContext
from adk_nb.runtime.first_event import first_event
from adk_nb.runtime.hooks import Hook
from adk_nb.runtime.invocation_context import APPROVAL_REQUEST, InvocationContext, Runs, Shared, new_invocation_id
from adk_nb.runtime.invoke import invoke
from adk_nb.runtime.run_config import RunConfig, StreamingMode
from adk_nb.sessions.in_memory_session_service import InMemorySessionService
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.shape import Shape, in_words

_REQUEST = {"type": "object", "properties": {"request": {"type": "string"}}, "required": ["request"]}
_RUNTIME_KEYS = "_adk"
"""State keys that begin so are the runtime's own. Source: google-adk 2.13."""
_CACHE_SECONDS = 300
"""The longest that a service keeps a cache for one call of the agent. Source: google-adk 2.13."""


class Called(Runs, Protocol):
    """What is read of the agent."""

    @property
    def description(self) -> str: ...


class _Request(BaseModel):
    request: str


class _NoPlugins:
    def hooks(self, name: str, /) -> Sequence[Hook]:
        return ()


class AgentTool(BaseTool):
    """Lets a model call an agent as it calls a function: with a `request`, or with what its `input_schema` asks for.

    The agent works in a session of its own, of which only the answer is kept: its last words, or with `output_schema`
    their JSON value. It starts with the caller's state, `temp:` keys apart. What it writes to the state, and the files
    it saves, are the caller's together with the result; memory is the caller's too. Its model calls count towards the
    caller's `RunConfig.max_llm_calls`, and it is stopped when the caller is. It does not stream, and nobody can answer
    it: if it stops to wait for something, the result is an error that says so.
    """

    def __init__(self, agent: Called, skip_summarization: bool = False, *, include_plugins: bool = True) -> None:
        """Name and description are those of `agent`.

        Args:
            agent: The agent that is called.
            skip_summarization: What it answers ends the turn of the caller, in the same words.
            include_plugins: The caller's plugins also stand around what it does.
        """
        if not hasattr(agent, "find_agent"):
            raise ConfigurationError(
                f"AgentTool takes an agent, and not {agent!r:.80}; write AgentTool(agent=my_agent)"
            )
        super().__init__(name=agent.name, description=agent.description)
        self.agent = agent
        self.skip_summarization = skip_summarization
        self.include_plugins = include_plugins

    def _get_declaration(self) -> types.FunctionDeclaration | None:
        shape = _input_shape(self.agent)
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=shape.parameters if shape else _REQUEST
        )

    def check(self, args: dict[str, Any]) -> str | None:
        try:
            _message(self.agent, args)
            return None
        except (ValidationError, ConfigurationError) as error:
            wrong = in_words(error)
            return f"{self.name}() was not called: wrong arguments: {wrong}. Call it again with arguments that fit."

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        if wrong := self.check(args):
            return {"error": wrong}
        ctx = self._apart(tool_context.get_invocation_context())
        whole = ctx.shared.whole or ctx.shared
        first = await first_event(ctx, _message(self.agent, args), {}, may_be_silent=False)
        async with aclosing(invoke(ctx, first)) as events:
            async for event in events:
                _take_over(event, tool_context)
                if whole.stop.why:
                    break
        said = ctx.session.events[1:]
        if wrong := _wrong(self.name, said):
            return {"error": wrong}
        if self.skip_summarization:
            tool_context.actions.skip_summarization = tool_context.speaks = True
        return _answer(said)

    def _apart(self, caller: InvocationContext) -> InvocationContext:
        """An invocation of the agent alone, that is a part of the caller's."""
        ours, cache = caller.session, caller.context_cache_config
        service = InMemorySessionService()
        state = {key: value for key, value in ours.state.items() if not key.startswith(_RUNTIME_KEYS)}
        # The same id, in a service of its own: files are saved to the caller's session.
        session = service.create_session(app_name=ours.app_name, user_id=ours.user_id, session_id=ours.id, state=state)
        return replace(
            caller,
            agent=self.agent,
            session=session,
            session_service=service,
            plugins=caller.plugins if self.include_plugins else _NoPlugins(),
            compaction=None,
            context_cache_config=cache
            and cache.model_copy(update={"ttl_seconds": min(cache.ttl_seconds, _CACHE_SECONDS)}),
            run_config=_settings(caller.run_config),
            invocation_id=new_invocation_id(),
            branch=None,
            isolation_scope=None,
            answered={},
            abort_signal=None,  # who stops the caller cancels what it does, and that is this
            shared=Shared(whole=caller.shared.whole or caller.shared),
            live_request_queue=None,
            live_session_resumption_handle=None,
            streams=None,
        )


def _settings(caller: RunConfig) -> RunConfig:
    """The caller's, without what makes sense for the caller alone."""
    return caller.model_copy(
        update={
            "streaming_mode": StreamingMode.NONE,
            "support_cfc": False,
            "timeout": None,
            "model_input_context": None,
        }
    )


def _input_shape(agent: Any) -> Shape | None:
    """Of an agent that asks no model itself: that of the first one under it."""
    if hasattr(agent, "input_shape"):
        return agent.input_shape
    return _input_shape(agent.sub_agents[0]) if getattr(agent, "sub_agents", None) else None


def _message(agent: Called, args: dict[str, Any]) -> str:
    """What the agent is told: the request, or JSON with all that its schema makes of `args`.

    Raises:
        ValidationError: `args` do not fit.
        ConfigurationError: They hold what is no JSON.
    """
    shape = _input_shape(agent)
    if shape is None:
        return _Request.model_validate(args).request
    value = shape.read_arguments(args)
    if not shape.wrapper:
        value = {key: None for key, one in args.items() if one is None} | value
    return to_json(value).decode()


def _take_over(event: Event, tool_context: ToolContext) -> None:
    """What the agent wrote is the caller's, and goes out with the result."""
    state = tool_context.state
    for key, value in event.actions.state_delta.items():
        if value == DELETED:
            state.pop(key, None)
        else:
            state[key] = value
    tool_context.actions.artifact_delta.update(event.actions.artifact_delta)


def _wrong(name: str, said: Sequence[Event]) -> str | None:
    """Why `said` comes to no answer. None: it does, if only to an empty one."""
    called: dict[str | None, str | None] = {}
    waiting = set[str]()
    for event in said:
        called |= {call.id: call.name for call in event.get_function_calls()}
        waiting -= {response.id or "" for response in event.get_function_responses()}
        waiting |= event.long_running_tool_ids or set()
    if waiting:
        tools = sorted({called.get(key) or "a tool" for key in waiting})
        what = "an approval" if APPROVAL_REQUEST in tools else f"the outcome of {', '.join(tools)}"
        return (
            f"agent {name!r} stopped to wait for {what}, and nobody can answer an agent that was called as a tool; "
            "put it into sub_agents, or give it tools that need no waiting"
        )
    last = _last(said)
    return (last.error_message or last.error_code) if last and not last.text else None


def _last(said: Sequence[Event]) -> Event | None:
    return next((one for one in reversed(said) if one.content or one.error_code or one.output is not None), None)


def _answer(said: Sequence[Event]) -> Any:
    last = _last(said)
    if last is None:
        return ""
    if last.output is not None:
        return last.output
    words = "\n".join(text for part in last.parts if not part.thought and (text := _words(part)))
    if not words and (responses := last.get_function_responses()):
        return responses[-1].response  # a tool's result that was to stand as it is
    return words


def _words(part: types.Part) -> str | None:
    result = part.code_execution_result
    return part.text or (result and result.output and result.output.rstrip("\n"))
