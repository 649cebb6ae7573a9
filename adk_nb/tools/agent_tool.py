"""An agent as a tool of another one: it works apart, and what it answers is the result."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Protocol

from pydantic import BaseModel, ValidationError
from pydantic_core import to_json

from adk_nb import types
from adk_nb.errors import ConfigurationError
from adk_nb.events.event import Event, as_content
from adk_nb.events.event_actions import DELETED
from adk_nb.events.requests import APPROVAL_REQUEST, CREDENTIAL_REQUEST, INPUT_REQUEST
from adk_nb.events.usage import as_json
from adk_nb.runtime.branches import calls_to, for_call
from adk_nb.runtime.context import ToolContext
from adk_nb.runtime.first_event import first_event
from adk_nb.runtime.history import history_of
from adk_nb.runtime.invocation_context import GROUNDING, InvocationContext, NoPlugins, Runs, Shared, new_invocation_id
from adk_nb.runtime.invoke import invoke
from adk_nb.runtime.message import last_speaker
from adk_nb.runtime.nested_calls import outermost, pauses, recipient, waiting
from adk_nb.runtime.open_calls import new_failure_events
from adk_nb.runtime.run_config import RunConfig, StreamingMode
from adk_nb.sessions.in_memory_session_service import InMemorySessionService
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.shape import Shape, in_words

_REQUEST = {"type": "object", "properties": {"request": {"type": "string"}}, "required": ["request"]}
_RUNTIME_KEYS = "_adk"
"""State keys that begin so are the runtime's own. Source: google-adk 2.13."""
_CACHE_SECONDS = 300
"""The longest that a service keeps a cache for one call of the agent. Source: google-adk 2.13."""
MOST_NESTED = 50
"""Calls one within the other, in one session. An agent that calls itself is told to answer."""


class Called(Runs, Protocol):
    """What is read of the agent."""

    @property
    def description(self) -> str: ...


class _Request(BaseModel):
    request: str


class AgentTool(BaseTool):
    """Lets a model call an agent as it calls a function: with a `request`, or with what its `input_schema` asks for.

    The agent works in a session of its own, of which only the answer is kept: its last words, or with `output_schema`
    their JSON value. It starts with the caller's state, `temp:` keys apart. What it writes to the state, and the files
    it saves, are the caller's together with the result; memory is the caller's too. Its model calls count towards the
    caller's `RunConfig.max_llm_calls`, and it is stopped when the caller is. It does not stream, and nobody can answer
    it: if it stops to wait for something, the result is an error that says so.

    With `stream_events=True` it works in the caller's session, on the branch `name@id of the call`: its events come out
    of the caller's run as they happen and are kept, and state, files and limits are the caller's own. It sees nothing
    of the caller's conversation but what it was called with, and the caller's model nothing of its work but the answer.
    If it stops to wait for a person or an outcome, so does the caller's run; what is answered reaches it where it
    stands, and with its answer the caller goes on. In a live conversation it works apart all the same.
    """

    between = "\n"
    """What stands between the texts of its last words. Source: google-adk 2.13."""

    def __init__(
        self,
        agent: Called,
        skip_summarization: bool = False,
        *,
        include_plugins: bool = True,
        stream_events: bool = False,
        propagate_grounding_metadata: bool = False,
    ) -> None:
        """Name and description are those of `agent`.

        Args:
            agent: The agent that is called.
            skip_summarization: What it answers ends the turn of the caller, in the same words.
            include_plugins: The caller's plugins also stand around what it does.
            stream_events: What it does is seen, and what it asks can be answered; see above.
            propagate_grounding_metadata: The caller's answers are shown with what it looked up.
        """
        if not hasattr(agent, "find_agent"):
            raise ConfigurationError(
                f"AgentTool takes an agent, and not {agent!r:.80}; write AgentTool(agent=my_agent)"
            )
        super().__init__(name=agent.name, description=agent.description)
        self.agent = agent
        self.skip_summarization = skip_summarization
        self.include_plugins = include_plugins
        self.propagate_grounding_metadata = propagate_grounding_metadata
        self.tells = self.takes_up = self.stream_events = stream_events

    def _get_declaration(self) -> types.FunctionDeclaration | None:
        shape = _input_shape(self.agent)
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=shape.parameters if shape else _REQUEST
        )

    def check(self, args: dict[str, Any]) -> str | None:
        try:
            self._message(args)
            return None
        except (ValidationError, ConfigurationError) as error:
            wrong = in_words(error)
            return f"{self.name}() was not called: wrong arguments: {wrong}. Call it again with arguments that fit."

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        if wrong := self.check(args):
            return {"error": wrong}
        caller = tool_context.get_invocation_context()
        if caller.tell and self.stream_events and not caller.live_request_queue:
            if len(calls_to(caller.branch)) >= MOST_NESTED:
                return {"error": f"{self.name}() was not called: {MOST_NESTED} agents wait for each other; answer it"}
            return await self._beside(caller, args, tool_context)
        return await self._on_its_own(caller, args, tool_context)

    async def _on_its_own(self, caller: InvocationContext, args: dict[str, Any], tool_context: ToolContext) -> Any:
        ctx = self._apart(caller)
        whole = ctx.shared.whole or ctx.shared
        first = await first_event(ctx, self._message(args), {}, may_be_silent=False)
        spent = list[dict[str, Any]]()
        tool_context.nested_usage = spent
        async with aclosing(invoke(ctx, first)) as events:
            async for event in events:
                spent += as_json(event)
                _take_over(event, tool_context)
                if whole.stop.why:
                    break
        said = ctx.session.events[1:]
        if waits := _waits(said):
            told = f"agent {self.name!r} stopped to wait for {waits}, and nobody can answer an agent that works apart"
            remedy = (
                "in a live conversation all do"
                if self.stream_events
                else f"write AgentTool({self.name}, stream_events=True)"
            )
            return {"error": f"{told} from its caller; {remedy}"}
        return self._result(said, tool_context)

    def _result(self, said: Sequence[Event], tool_context: ToolContext) -> Any:
        if told := wrong(said):
            return {"error": told}
        if self.skip_summarization:
            tool_context.actions.skip_summarization = tool_context.speaks = True
        found = [event.grounding_metadata for event in said if event.grounding_metadata]
        if self.propagate_grounding_metadata and found:
            tool_context.state[GROUNDING] = found[-1]
        return _answer(said, self.between)

    async def _beside(self, caller: InvocationContext, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """Let the agent work in the caller's session, from the beginning or on from where it waited."""
        key, goes_on = tool_context.function_call_id or "", False
        ctx = self._within(caller, key, self._message(args), taken_up=tool_context.taken_up)
        try:
            async with aclosing(_work(ctx, taken_up=tool_context.taken_up)) as events:
                async for event in events:
                    goes_on = goes_on or not event.partial
                    await self._told(caller, event)
                    if caller.shared.stop.why:
                        break
        except Exception as error:
            for failed in new_failure_events(ctx, error):
                await self._told(caller, failed)
            caller.shared.failed = caller.shared.told = None  # what becomes of it is the caller's now
            raise
        since, so_far = _since(key, ctx)
        if self._waits(ctx, so_far, since) or (tool_context.taken_up and not goes_on):
            tool_context.waits_inside = True
            return None
        return self._result([event for event in so_far if event.isolation_scope == key], tool_context)

    def _waits(self, ctx: InvocationContext, so_far: Sequence[Event], since: int) -> bool:
        """True if it is to be called again, when what waits inside has its answer.

        Args:
            ctx: Of the agent.
            so_far: What has happened since the call was made, oldest first.
            since: Index of the first of these events.
        """
        history = history_of(ctx.session)
        if waiting(ctx.agent, history, ctx.branch, since=since):
            return True
        return self.agent.runs_others and pauses(ctx.agent, history, ctx.branch, asked=True, since=since)

    async def _told(self, caller: InvocationContext, event: Event) -> None:
        if caller.tell:
            await caller.tell(event)

    @property
    def _takes_words(self) -> bool:
        return _input_shape(self.agent) is None

    def _message(self, args: dict[str, Any]) -> str:
        """What the agent is told: the request, or JSON with all that its schema makes of `args`.

        Raises:
            ValidationError: `args` do not fit.
            ConfigurationError: They hold what is no JSON.
        """
        shape = _input_shape(self.agent)
        if shape is None:
            return _Request.model_validate(args).request
        value = shape.read_arguments(args)
        if not shape.wrapper:
            value = {key: None for key, one in args.items() if one is None} | value
        return to_json(value).decode()

    def _within(self, caller: InvocationContext, call_id: str, message: str, *, taken_up: bool) -> InvocationContext:
        """An invocation of the agent in the caller's session; of what it was asked and does there it sees no more."""
        branch = for_call(caller.branch, self.agent.name, call_id)
        delegated = as_content(message)
        agent: Runs = self.agent
        if taken_up:  # by the one of its agents that asked or has the word, or what decides when that works
            history = history_of(caller.session)
            if caller.task == call_id:
                asker = last_speaker(agent, history, branch)
            else:
                asker = agent.find_agent(recipient(history, caller.calls_answered, branch)) or agent
            agent = outermost(asker, under=agent.parent_agent)
        return replace(
            caller,
            agent=agent,
            plugin_manager=caller.plugin_manager if self.include_plugins else NoPlugins(),
            compaction=None,
            events_compaction_config=None,
            run_config=caller.run_config.model_copy(update={"model_input_context": None}),
            user_content=caller.user_content if taken_up else delegated,
            delegated=delegated,
            caller=None,
            task=caller.task if taken_up and caller.task != call_id else None,
            branch=branch,
            isolation_scope=call_id,
            answered={},
            tell=None,
        )

    def _apart(self, caller: InvocationContext) -> InvocationContext:
        """An invocation of the agent alone, that is a part of the caller's."""
        ours, cache = caller.session, caller.context_cache_config
        service = InMemorySessionService()
        # A copy first: a sync tool in a thread may write beside this call.
        state = {key: value for key, value in dict(ours.state).items() if not key.startswith(_RUNTIME_KEYS)}
        # The same id, in a service of its own: files are saved to the caller's session.
        session = service.create_session(app_name=ours.app_name, user_id=ours.user_id, session_id=ours.id, state=state)
        return replace(
            caller,
            agent=self.agent,
            session=session,
            session_service=service,
            plugin_manager=caller.plugin_manager if self.include_plugins else NoPlugins(),
            compaction=None,
            events_compaction_config=None,
            context_cache_config=cache
            and cache.model_copy(update={"ttl_seconds": min(cache.ttl_seconds, _CACHE_SECONDS)}),
            run_config=_settings(caller.run_config),
            invocation_id=new_invocation_id(),
            branch=None,
            isolation_scope=None,
            delegated=None,
            caller=None,
            task=None,
            answered={},
            abort_signal=None,  # who stops the caller cancels what it does, and that is this
            resumability_config=None,
            end_invocation=False,
            checkpoints=None,
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


def _take_over(event: Event, tool_context: ToolContext) -> None:
    """What the agent wrote is the caller's, and goes out with the result."""
    state = tool_context.state
    for key, value in event.actions.state_delta.items():
        if value == DELETED:
            state.pop(key, None)
        else:
            state[key] = value
    tool_context.actions.artifact_delta.update(event.actions.artifact_delta)


def _work(ctx: InvocationContext, *, taken_up: bool) -> AsyncGenerator[Event, None]:
    """What the agent does; of a run that goes on, what is left of that."""
    left = ctx.agent if taken_up or not ctx.checkpoints else ctx.checkpoints.unfinished_agent(ctx.agent, ctx.branch)
    return left.run_async(ctx) if left else _nothing()


async def _nothing() -> AsyncGenerator[Event, None]:
    return
    yield


def _since(call_id: str, ctx: InvocationContext) -> tuple[int, list[Event]]:
    """Index of the event that made the call, and all that has happened since, oldest first."""
    history = history_of(ctx.session)
    record = history.calls.newest(call_id)
    since = record.at if record else 0
    return since, history.events[since:]


def _waits(said: Sequence[Event]) -> str | None:
    """What the agent waits for that nobody can answer. None: nothing."""
    called: dict[str | None, str | None] = {}
    open_now = set[str]()
    for event in said:
        called |= {call.id: call.name for call in event.get_function_calls()}
        open_now -= {response.id or "" for response in event.get_function_responses()}
        open_now |= event.long_running_tool_ids or set()
    if not open_now:
        return None
    tools = sorted({called.get(key) or "a tool" for key in open_now})
    return _ASKS.get(tools[0]) or f"the outcome of {', '.join(tools)}"


_ASKS = {APPROVAL_REQUEST: "an approval", CREDENTIAL_REQUEST: "a credential", INPUT_REQUEST: "an answer"}


def wrong(said: Sequence[Event]) -> str | None:
    """Why `said` comes to no answer. None: it does, if only to an empty one."""
    last = _last(said)
    return (last.error_message or last.error_code) if last and not last.text else None


def _last(said: Sequence[Event]) -> Event | None:
    return next((one for one in reversed(said) if one.content or one.error_code or one.output is not None), None)


def _answer(said: Sequence[Event], between: str) -> Any:
    last = _last(said)
    if last is None:
        return ""
    if last.output is not None:
        return last.output
    words = between.join(text for part in last.parts if not part.thought and (text := _words(part)))
    if not words and (responses := last.get_function_responses()):
        return responses[-1].response  # a tool's result that was to stand as it is
    return words


def _words(part: types.Part) -> str | None:
    result = part.code_execution_result
    return part.text or (result and result.output and result.output.rstrip("\n"))
