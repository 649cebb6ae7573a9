"""`AgentTool`: an agent that another agent calls as a tool."""

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
from adk_nb.events.usage import usages_to_json
from adk_nb.runtime.branches import calls_to, for_call
from adk_nb.runtime.context import ToolContext, call_state
from adk_nb.runtime.first_event import first_event, last_speaker
from adk_nb.runtime.history import history_of
from adk_nb.runtime.invocation_context import (
    GROUNDING,
    InvocationContext,
    InvocationShared,
    NoPlugins,
    RunnableAgent,
    TurnWork,
    new_invocation_id,
)
from adk_nb.runtime.invoke import invoke
from adk_nb.runtime.open_calls import awaited_branches, is_paused, new_failure_events, outermost, recipient
from adk_nb.runtime.run_config import StreamingMode
from adk_nb.sessions.in_memory_session_service import InMemorySessionService
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.shape import Shape, error_text

_REQUEST_SCHEMA = {"type": "object", "properties": {"request": {"type": "string"}}, "required": ["request"]}
_RUNTIME_KEYS = "_adk"
"""Prefix of the runtime's own state keys. Source: google-adk 2.13."""
_CACHE_SECONDS = 300
"""Maximum lifetime of a context cache that one call of the agent creates. Source: google-adk 2.13."""
MAX_NESTED_CALLS = 50
"""Limit of calls within calls in one session: an agent that keeps calling itself gets an error."""


class CallableAgent(RunnableAgent, Protocol):
    """The members that AgentTool reads of an agent."""

    @property
    def description(self) -> str:
        """Description for the calling model."""
        ...


class _Request(BaseModel):
    request: str


class AgentTool(BaseTool):
    """Lets a model call an agent like a function: with a `request`, or with the arguments of its `input_schema`.

    The agent runs in a session of its own, of which only the answer is kept: its last text, or with `output_schema` the
    JSON value. It starts with a copy of the caller's state without `temp:` keys. Its state writes and files are added
    to the caller's session together with the result; memory is shared with the caller. Its model calls count towards
    the caller's `RunConfig.max_llm_calls`, and it stops when the caller stops. It does not stream, and its interrupts
    cannot be answered: if it raises one, the result is an error that says so.

    With `stream_events=True` it runs in the caller's session, on the branch `name@call id`: its events are part of the
    caller's run and are stored; state, files and limits are the caller's. It sees nothing of the caller's conversation
    but the arguments, and the caller's model sees only the answer. Its interrupts pause the caller's run too; their
    answers resume the agent, and its result resumes the caller. In a live conversation it always runs in a session of
    its own.
    """

    separator = "\n"
    """Separator between the text parts of its last message. Source: google-adk 2.13."""

    def __init__(
        self,
        agent: CallableAgent,
        skip_summarization: bool = False,
        *,
        include_plugins: bool = True,
        stream_events: bool = False,
        propagate_grounding_metadata: bool = False,
    ) -> None:
        """Take name and description from `agent`.

        Args:
            agent: The agent to call.
            skip_summarization: The agent's answer ends the caller's turn, as it is.
            include_plugins: Run the caller's plugins for the agent too.
            stream_events: Run in the caller's session; see above.
            propagate_grounding_metadata: Attach the agent's grounding metadata to the caller's answers.
        """
        if not hasattr(agent, "find_agent"):
            raise ConfigurationError(f"AgentTool takes an agent, got {agent!r:.80}; write AgentTool(agent=my_agent)")
        super().__init__(name=agent.name, description=agent.description)
        self.agent = agent
        self.skip_summarization = skip_summarization
        self.include_plugins = include_plugins
        self.propagate_grounding_metadata = propagate_grounding_metadata
        self.reports_progress = self.resumable = self.stream_events = stream_events

    def _get_declaration(self) -> types.FunctionDeclaration | None:
        shape = _input_shape(self.agent)
        return types.FunctionDeclaration(
            name=self.name,
            description=self.description,
            parameters_json_schema=shape.parameters if shape else _REQUEST_SCHEMA,
        )

    def check(self, args: dict[str, Any]) -> str | None:
        """Validate `args` against the agent's input schema."""
        try:
            self._message(args)
            return None
        except (ValidationError, ConfigurationError) as error:
            message = error_text(error)
            return f"{self.name}() was not called: wrong arguments: {message}. Call it again with arguments that fit."

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """Run the agent and return its answer, or an error for the model."""
        if message := self.check(args):
            return {"error": message}
        caller = tool_context.get_invocation_context()
        if caller.emit and self.stream_events and not caller.live_request_queue:
            if len(calls_to(caller.branch)) >= MAX_NESTED_CALLS:
                return {
                    "error": f"{self.name}() was not called: {MAX_NESTED_CALLS} agents wait for each other; answer it"
                }
            return await self._run_in_session(caller, args, tool_context)
        ctx = self._isolated_context(caller)
        root = ctx.shared.outermost
        first = await first_event(ctx, self._message(args), {}, message_is_optional=False)
        usage = list[dict[str, Any]]()
        call_state(tool_context).nested_usage = usage
        state = tool_context.state
        async with aclosing(invoke(ctx, first)) as events:
            async for event in events:
                # Stored with the caller's result: the events of an isolated session are not kept.
                usage += usages_to_json(event)
                for key, value in event.actions.state_delta.items():
                    if value == DELETED:
                        state.pop(key, None)
                    else:
                        state[key] = value
                tool_context.actions.artifact_delta.update(event.actions.artifact_delta)
                if root.stop.reason:
                    break
        own_events = ctx.session.events[1:]  # without the input message
        names: dict[str | None, str | None] = {}
        open_ids = set[str]()
        for event in own_events:
            names |= {call.id: call.name for call in event.get_function_calls()}
            open_ids -= {response.id or "" for response in event.get_function_responses()}
            open_ids |= event.long_running_tool_ids or set()
        if open_ids:
            tools = sorted({names.get(key) or "a tool" for key in open_ids})
            reason = _REQUEST_KINDS.get(tools[0]) or f"the outcome of {', '.join(tools)}"
            streams = self.stream_events
            remedy = "in a live conversation all do" if streams else f"write AgentTool({self.name}, stream_events=True)"
            return {
                "error": f"agent {self.name!r} stopped to wait for {reason}, and nobody can answer an agent that works "
                f"apart from its caller; {remedy}"
            }
        return self._result(own_events, tool_context)

    def _result(self, events: Sequence[Event], tool_context: ToolContext) -> Any:
        if message := failure_message(events):
            return {"error": message}
        if self.skip_summarization:
            tool_context.actions.skip_summarization = call_state(tool_context).is_spoken = True
        metadata = [event.grounding_metadata for event in events if event.grounding_metadata]
        if self.propagate_grounding_metadata and metadata:
            tool_context.state[GROUNDING] = metadata[-1]
        return _answer(events, self.separator)

    async def _run_in_session(self, caller: InvocationContext, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """Run the agent in the caller's session: from the start, or resumed from where it paused."""
        state, key, has_events = call_state(tool_context), tool_context.function_call_id or "", False
        ctx = self._nested_context(caller, key, self._message(args), resumed=state.is_resumed)
        try:
            async with aclosing(_run_agent(ctx, resumed=state.is_resumed)) as events:
                async for event in events:
                    has_events = has_events or not event.partial
                    await self._emit(caller, event)
                    if caller.shared.stop.reason:
                        break
        except Exception as error:
            for failure in new_failure_events(ctx, error):
                await self._emit(caller, failure)
            caller.shared.last_failure = caller.shared.reported_error = None  # the caller handles the error
            raise
        history = history_of(ctx.session)
        record = history.calls.newest(key)
        since = record.event_index if record else 0
        events_since = history.events[since:]
        if self._is_waiting(ctx, events_since, since) or (state.is_resumed and not has_events):
            state.has_nested_interrupt = True
            return None
        return self._result([event for event in events_since if event.isolation_scope == key], tool_context)

    def _is_waiting(self, ctx: InvocationContext, events_since: Sequence[Event], since: int) -> bool:
        """True if the call must be made again, once open interrupts inside it have their answers.

        Args:
            ctx: Context of the agent.
            events_since: Events since the call, oldest first.
            since: Index of the first of these events.
        """
        history = history_of(ctx.session)
        if awaited_branches(ctx.agent, history, ctx.branch, since=since):
            return True
        return self.agent.runs_others and is_paused(ctx.agent, history, ctx.branch, may_interrupt=True, since=since)

    async def _emit(self, caller: InvocationContext, event: Event) -> None:
        if caller.emit:
            await caller.emit(event)

    @property
    def _takes_text(self) -> bool:
        return _input_shape(self.agent) is None

    def _message(self, args: dict[str, Any]) -> str:
        """The agent's input: the request text, or the JSON of the validated `args`.

        Raises:
            ValidationError: `args` do not match the input schema.
            ConfigurationError: They contain a value without JSON form.
        """
        shape = _input_shape(self.agent)
        if shape is None:
            return _Request.model_validate(args).request
        value = shape.read_arguments(args)
        if not shape.wrapper:
            # Shape.read drops None from models; the agent gets the nulls that the caller passed.
            value = {key: None for key, value in args.items() if value is None} | value
        return to_json(value).decode()

    def _nested_context(
        self, caller: InvocationContext, call_id: str, message: str, *, resumed: bool
    ) -> InvocationContext:
        """Context of the agent in the caller's session, limited to the agent's own branch and scope."""
        branch = for_call(caller.branch, self.agent.name, call_id)
        delegated = as_content(message)
        agent: RunnableAgent = self.agent
        if resumed:
            # The sub-agent that raised the interrupt or spoke last, or the outermost agent that runs it.
            history = history_of(caller.session)
            if caller.task_call_id == call_id:
                resumed_agent = last_speaker(agent, history, branch)
            else:
                resumed_agent = agent.find_agent(recipient(history, caller.calls_answered, branch)) or agent
            agent = outermost(resumed_agent, under=agent.parent_agent)
        return replace(
            caller,
            agent=agent,
            plugin_manager=caller.plugin_manager if self.include_plugins else NoPlugins(),
            compaction=None,  # only the caller's run compacts the session
            events_compaction_config=None,
            run_config=caller.run_config.model_copy(update={"model_input_context": None}),
            user_content=caller.user_content if resumed else delegated,
            delegated_input=delegated,
            caller=None,
            task_call_id=caller.task_call_id if resumed and caller.task_call_id != call_id else None,
            branch=branch,
            isolation_scope=call_id,
            decisions={},
            emit=None,
        )

    def _isolated_context(self, caller: InvocationContext) -> InvocationContext:
        """Context of the agent in a session of its own, sharing limits and services with the caller."""
        caller_session, cache = caller.session, caller.context_cache_config
        service = InMemorySessionService()
        # `dict(...)` first: a sync tool in a worker thread may write to the state meanwhile.
        state = {key: value for key, value in dict(caller_session.state).items() if not key.startswith(_RUNTIME_KEYS)}
        # A live conversation has many turns.
        turn = TurnWork() if caller.live_request_queue else caller.shared.turn
        # The same session id, so that files are saved to the caller's session.
        session = service.create_session(
            app_name=caller_session.app_name, user_id=caller_session.user_id, session_id=caller_session.id, state=state
        )
        known_sessions = [id(known) for known in turn.sessions]
        turn.sessions += [each for each in (caller_session, session) if id(each) not in known_sessions]
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
            # Without the settings that concern the caller alone.
            run_config=caller.run_config.model_copy(
                update={
                    "streaming_mode": StreamingMode.NONE,
                    "support_cfc": False,
                    "timeout": None,
                    "model_input_context": None,
                }
            ),
            invocation_id=new_invocation_id(),
            branch=None,
            isolation_scope=None,
            delegated_input=None,
            caller=None,
            task_call_id=None,
            decisions={},
            abort_signal=None,  # whoever aborts the caller cancels this call with it
            resumability_config=None,
            end_invocation=False,
            checkpoints=None,
            # Stop flags of its own, but limits are counted at the root.
            shared=InvocationShared(root=caller.shared.outermost, turn=turn),
            live_request_queue=None,
            live_session_resumption_handle=None,
            streams=None,
        )


def _input_shape(agent: Any) -> Shape | None:
    """The agent's input schema; for a workflow agent, that of its first sub-agent."""
    if hasattr(agent, "input_schema"):
        return agent.input_shape
    return _input_shape(agent.sub_agents[0]) if getattr(agent, "sub_agents", None) else None


def _run_agent(ctx: InvocationContext, *, resumed: bool) -> AsyncGenerator[Event, None]:
    """Run the agent, or the unfinished part of it if the run is being resumed."""
    agent = ctx.agent if resumed or not ctx.checkpoints else ctx.checkpoints.unfinished_agent(ctx.agent, ctx.branch)
    return agent.run_async(ctx) if agent else _nothing()


async def _nothing() -> AsyncGenerator[Event, None]:
    return
    yield  # makes the function a generator


_REQUEST_KINDS = {APPROVAL_REQUEST: "an approval", CREDENTIAL_REQUEST: "a credential", INPUT_REQUEST: "an answer"}


def failure_message(events: Sequence[Event]) -> str | None:
    """The error that the last of `events` ended with. None: there is an answer, possibly empty."""
    last = _last_answer(events)
    return (last.error_message or last.error_code) if last and not last.text else None


def _last_answer(events: Sequence[Event]) -> Event | None:
    return next(
        (event for event in reversed(events) if event.content or event.error_code or event.output is not None), None
    )


def _answer(events: Sequence[Event], separator: str) -> Any:
    last = _last_answer(events)
    if last is None:
        return ""
    if last.output is not None:
        return last.output
    answer = separator.join(text for part in last.parts if not part.thought and (text := _part_text(part)))
    if not answer and (responses := last.get_function_responses()):
        return responses[-1].response  # a tool result that ended the turn
    return answer


def _part_text(part: types.Part) -> str | None:
    result = part.code_execution_result
    return part.text or (result and result.output and result.output.rstrip("\n"))
