"""The base class of agents: a name, callbacks around its work, and a method that yields events."""

import importlib
import inspect
import keyword
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, ClassVar, Self, cast

from pydantic import BaseModel, ConfigDict, Field, InstanceOf, PrivateAttr, ValidationError

from adk_nb import parts, types
from adk_nb.errors import ConfigurationError
from adk_nb.events.event import Event, as_content
from adk_nb.locations import warn
from adk_nb.runtime import observer
from adk_nb.runtime.checkpoints import ended
from adk_nb.runtime.context import CallbackContext, has_unstored
from adk_nb.runtime.history import history_of
from adk_nb.runtime.hooks import Hook, Hooks, as_list, first_result, notify
from adk_nb.runtime.invocation_context import InvocationContext, RunnableAgent
from adk_nb.runtime.open_calls import is_paused, without_answers
from adk_nb.runtime.run_config import RetryConfig
from adk_nb.sessions.state import check_schema
from adk_nb.tools.shape import Shape, error_text
from adk_nb.wire import fast_private_attributes, field_errors, replace_fields, unknown_field

BeforeAgentCallback = AfterAgentCallback = Hooks
"""ADK's names for the types of these fields."""
_Work = Callable[[InvocationContext], AsyncGenerator[Event, None]]


@fast_private_attributes
class BaseAgent(BaseModel):
    """An agent. Subclass it and override `_run_async_impl` to write one in code."""

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid", defer_build=True)

    name: str
    """A Python identifier, not `user`: events carry it as their author."""
    description: str = ""
    """Its task in one sentence, for other agents."""
    sub_agents: list[InstanceOf["BaseAgent"]] = Field(default_factory=list["BaseAgent"])
    """The agents under it. An agent has one parent; `clone()` makes a copy for another."""
    state_schema: type[BaseModel] | None = None
    """The state keys that it may write, with their types; also for agents under it without a schema. A key with a `:`
    is free. None: the parent's."""
    before_agent_callback: Hooks = None
    """`(callback_context) -> Content | None`: a content is the answer, and the agent does not run."""
    after_agent_callback: Hooks = None
    """`(callback_context) -> Content | None`: a content is a second answer, after the agent's own."""

    retry_config: RetryConfig | None = None
    """As a node of a graph: retries after an error. None: its first error ends the run."""
    timeout: float | None = Field(default=None, gt=0)
    """As a node of a graph: seconds for one attempt. None: no limit."""
    rerun_on_resume: bool | None = None
    """As a node of a graph: it runs again after an answer. None: it continues where it asked."""
    wait_for_output: bool | None = None
    """As a node of a graph: the nodes after it run only if it has an output. None: True for a task or a chat."""

    team_kind: ClassVar[str] = ""
    """How it runs the agents under it: `sequential`, `parallel`, `loop` or `workflow`. Empty: it is no team."""
    runs_others: ClassVar[bool] = False
    """True: it decides when the agents under it run, so an answer to one of them starts this agent."""
    repeats: ClassVar[bool] = False
    """True: it runs the agents under it again and again."""
    is_tool: ClassVar[bool] = False
    """True: it can be in an agent's `tools` as it is; any other agent needs an AgentTool there."""
    _parent: "BaseAgent | None" = PrivateAttr(default=None)

    def __eq__(self, other: object) -> bool:
        return self is other  # two agents with equal fields have different places in a tree

    def __repr__(self) -> str:
        members = f", sub_agents={[agent.name for agent in self.sub_agents]}" if self.sub_agents else ""
        return f"{type(self).__name__}(name={self.name!r}{members})"

    __str__ = __repr__

    def __hash__(self) -> int:
        return id(self)

    def __init__(self, **fields: Any) -> None:
        for field in ("sub_agents", "tools"):
            # pydantic would take an agent for a list of its fields.
            if isinstance(sub_agent := fields.get(field), BaseAgent):
                raise ConfigurationError(
                    f"agent {fields.get('name')!r}: write sub_agents=[{sub_agent.name}], in brackets"
                )
        try:
            super().__init__(**fields)
        except ValidationError as error:
            # pydantic wraps the errors of `model_post_init`.
            causes = [details.get("ctx", {}).get("error") for details in error.errors(include_url=False)]
            cause = next((cause for cause in causes if isinstance(cause, ConfigurationError)), None)
            subject = f"agent {fields['name']!r}" if "name" in fields else "an agent without a name"
            problems = field_errors(error, type(self).model_fields, self._unknown_field)
            raise cause or ConfigurationError(f"{subject}: {problems}") from error

    def model_post_init(self, context: Any, /) -> None:
        _check_name(self.name)
        self._adopt_all()

    def __setattr__(self, name: str, value: Any) -> None:
        previous: Sequence[BaseAgent] = self.__dict__.get(name, ()) if name == "sub_agents" else ()
        super().__setattr__(name, value)
        if name != "sub_agents":
            return
        try:
            self._adopt_all()
        # All or nothing: the tree stays as it was.
        except ConfigurationError:
            super().__setattr__(name, previous)
            raise
        for agent in previous:
            if agent not in self.sub_agents:
                agent._parent = None

    @classmethod
    def from_config(cls, config: Any, config_abs_path: str) -> Any:
        """An agent of this class, as a YAML file describes it; `config_agent_utils.from_config` reads files.

        Args:
            config: The file's keys: a mapping, or a pydantic model.
            config_abs_path: Path of the file, for the paths in it.
        """
        # Late: that module knows graphs, which are a floor above agents.
        return importlib.import_module("adk_nb.yaml_agents").build(cls, config, config_abs_path)

    @property
    def parent_agent(self) -> "BaseAgent | None":
        """The agent that has this one among its `sub_agents`."""
        return self._parent

    @property
    def members(self) -> "Sequence[BaseAgent]":
        """The agents that work for it."""
        return self.sub_agents

    @property
    def called_agents(self) -> Sequence[RunnableAgent]:
        """The agents that it calls as tools in its own session."""
        return ()

    @property
    def is_task(self) -> bool:
        """True: it is called as a tool, talks with the user, and hands back a result."""
        return False

    @property
    def is_llm(self) -> bool:
        """True for an agent with a model: its final response ends its work."""
        return False

    @property
    def may_hand_back(self) -> bool:
        """True: it may transfer the conversation to its parent."""
        return False

    @property
    def root_agent(self) -> "BaseAgent":
        """The topmost agent of its tree."""
        agent = self
        while parent := agent._parent:
            agent = parent
        return agent

    def find_agent(self, name: str, /) -> "BaseAgent | None":
        """This agent, or the first of that name under it, depth first."""
        return self if self.name == name else self.find_sub_agent(name)

    def find_sub_agent(self, name: str, /) -> "BaseAgent | None":
        """The first agent of that name under this one, depth first."""
        return next((match for child in self.sub_agents if (match := child.find_agent(name))), None)

    def clone(self, update: Mapping[str, Any] | None = None) -> Self:
        """A copy without a parent, with copies of the agents under it; all other values are shared.

        Callbacks that are methods of this agent become the copy's own methods.

        Args:
            update: Fields of the copy that differ. `sub_agents` become the copy's, whatever parent they had.

        Raises:
            ConfigurationError: A field is unknown or invalid.
        """
        changed = dict(update or {})
        if "parent_agent" in changed:
            raise ConfigurationError("clone() takes no parent_agent; pass the copy in the parent's sub_agents")
        if unknown := [name for name in changed if name not in type(self).model_fields]:
            raise ConfigurationError(f"clone() of agent {self.name!r}: {self._unknown_field(unknown[0])}")
        copy = self.model_copy(update=changed)
        for name in type(self).model_fields.keys() - changed.keys():
            vars(copy)[name] = _rebound(getattr(self, name), self, copy)  # not in `model_fields_set`
        vars(copy)["sub_agents"] = list(changed.get("sub_agents", [member.clone() for member in self.sub_agents]))
        for member in (copy, *copy.sub_agents):
            member._parent = None
        # As for a new agent: checks, and the adoption of the copied sub-agents.
        copy.model_post_init(None)
        return copy

    def hooks(self, name: str, /) -> Sequence[Hook]:
        """The callbacks of the field `<name>_callback`, in order."""
        callbacks = self.__dict__[f"{name}_callback"]
        return as_list(callbacks) if callbacks else ()

    def run_async(self, parent_context: InvocationContext, /) -> AsyncGenerator[Event, None]:
        """Do the work of one activation, between the before and after hooks.

        Yields:
            Events as they happen. The caller appends each to the session before it asks for the next.
        """
        return self._observed(parent_context, self._run(parent_context, self._run_async_impl))

    def run_live(self, parent_context: InvocationContext, /) -> AsyncGenerator[Event, None]:
        """`run_async` as a live conversation, in which the user may speak at any time."""
        return self._observed(parent_context, self._run(parent_context, self._run_live_impl))

    def _observed(self, ctx: InvocationContext, events: AsyncGenerator[Event, None]) -> AsyncGenerator[Event, None]:
        return observer.registered.agent(self, ctx, events) if observer.registered else events

    async def _run(self, parent_context: InvocationContext, work: _Work) -> AsyncGenerator[Event, None]:
        ctx, schema = parent_context, self.state_schema or parent_context.state_schema
        # The root's context is the run's own: no copy is needed.
        if ctx.agent is not self or ctx.state_schema is not schema:
            ctx = replace_fields(ctx, agent=self, state_schema=schema)
        try:
            event = await self._hook_event(ctx, hooks) if (hooks := self._hooks_for(ctx, "before_agent")) else None
            for first_event in self._hook_events(ctx, event) if event else ():
                yield first_event
            if (event and event.content is not None) or ctx.end_invocation:
                return
            successor: BaseAgent | None = None
            events = work(ctx)
            if ctx.is_resumable and not ctx.live_request_queue:
                events = _with_end(ctx, events)
            try:  # as `aclosing`, at a quarter of its cost: every agent passes here
                async for event in events:
                    successor = self._checked(ctx, event) or successor
                    yield event
            finally:
                await events.aclose()
            # After this agent has ended: the target runs in its place, in the same invocation, not inside it.
            if successor:
                ctx.shared.transfers += 1
                events = (
                    successor.run_live(ctx) if ctx.live_request_queue else successor.run_async(without_answers(ctx))
                )
                async with aclosing(events):
                    async for event in events:
                        yield event
            event = await self._hook_event(ctx, hooks) if (hooks := self._hooks_for(ctx, "after_agent")) else None
            if event:
                yield event
        except Exception as error:
            ctx.note_failure(error)
            await notify(ctx.plugin_manager.hooks("on_agent_error"), callback_context=CallbackContext(ctx), error=error)
            raise

    def _checked(self, ctx: InvocationContext, event: Event) -> "BaseAgent | None":
        """Check the state delta of an event and set its isolation scope; return the agent that it transfers to."""
        if ctx.isolation_scope and event.isolation_scope is None:
            event.isolation_scope = ctx.isolation_scope
        if event.author != self.name:
            return None
        if ctx.state_schema:
            check_schema(ctx.state_schema, event.actions.state_delta)
        name = event.actions.transfer_to_agent
        return self.root_agent.find_agent(name) if name and name != self.name else None

    def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        """The work itself. Override it with an async generator of events."""
        raise NotImplementedError(
            f"{type(self).__name__} does nothing; override _run_async_impl with an async generator of events"
        )

    def _run_live_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        """The work of a live conversation. Override it with an async generator of events."""
        raise NotImplementedError(
            f"{type(self).__name__} has no live conversations; run it with run_async, or override _run_live_impl"
        )

    @property
    def input_shape(self) -> Shape | None:
        """The parser of a message to it. None: it takes any message."""
        return None

    def input_mismatch(self, message: types.Content, /) -> str | None:
        """The mismatch of a message with its input schema, as text. None: it fits."""
        shape, message_parts = self.input_shape, message.parts or ()
        if shape is None or any(part.function_response for part in message_parts):
            return None
        try:
            shape.read(parts.text_of(message_parts))
            return None
        except (ValidationError, ConfigurationError) as error:
            return error_text(error)

    def _hook_events(self, ctx: InvocationContext, event: Event) -> Iterable[Event]:
        """The events of a callback's answer, in place of the agent's own."""
        return [event]

    def _hooks_for(self, ctx: InvocationContext, name: str) -> Sequence[Hook]:
        """The hooks of a name, plugins first; none once the invocation ends."""
        return () if ctx.end_invocation else (*ctx.plugin_manager.hooks(name), *self.hooks(name))

    async def _hook_event(self, ctx: InvocationContext, hooks: Sequence[Hook]) -> Event | None:
        """The event with the hooks' answer and their state delta; None without either."""
        context = CallbackContext(ctx)
        answer = await first_result(hooks, callback_context=context)
        content = None if answer is None else as_content(answer, role="model")
        # Looked at with an answer, too: it notes what was changed in place.
        if not has_unstored(context) and content is None:
            return None
        return Event(
            author=self.name,
            invocation_id=ctx.invocation_id,
            branch=ctx.branch,
            isolation_scope=ctx.isolation_scope,
            content=content,
            actions=context.actions,
        )

    def _adopt_all(self) -> None:
        for agent in self.sub_agents:
            if sum(member is agent for member in self.sub_agents) > 1:
                raise ConfigurationError(
                    f"agent {agent.name!r} is twice in the sub_agents of {self.name!r}; "
                    f"pass {agent.name}.clone(update={{'name': ...}}) for one of them"
                )
            if (parent := agent._parent) not in (None, self) and parent.name != self.name:
                raise ConfigurationError(
                    f"agent {agent.name!r} cannot be under {self.name!r}: it is under {parent.name!r} already; "
                    f"pass {agent.name}.clone() to one of them"
                )
        for agent in self.sub_agents:
            if (parent := agent._parent) not in (None, self):
                # A cell was run again: the earlier parent of this name gets a copy, and works as before.
                copy = agent.clone()
                copy._parent = parent
                parent.sub_agents[:] = [copy if member is agent else member for member in parent.sub_agents]
            agent._parent = self
        seen = {self.name}
        for agent in self.sub_agents:
            names = _names_in(agent)
            if duplicates := sorted(seen & names):
                listing = ", ".join(map(repr, duplicates))
                warn(f"two agents under {self.name!r} are named {listing}; find_agent and transfers take the first")
            seen |= names

    def _unknown_field(self, field: str) -> str:
        return unknown_field(field, type(self).model_fields)


def _names_in(tree: BaseAgent) -> set[str]:
    return {tree.name}.union(*map(_names_in, tree.sub_agents))


def _rebound(value: Any, old: BaseAgent, new: BaseAgent) -> Any:
    """A field's value for the copy `new`: a list is copied, and a method of `old` becomes one of `new`."""
    if isinstance(value, list):
        return [
            _rebound(current, old, new) if inspect.ismethod(current) else current for current in cast(list[Any], value)
        ]
    if inspect.ismethod(value) and value.__self__ is old:
        return value.__func__.__get__(new)
    return value


async def _with_end(ctx: InvocationContext, events: AsyncGenerator[Event, None]) -> AsyncGenerator[Event, None]:
    """The events of an agent in a resumable app, with an end mark unless it is paused."""
    # A new run without long-running calls cannot be paused: that saves the search.
    may_interrupt = bool(ctx.checkpoints or ctx.calls_answered)
    async with aclosing(events):
        async for event in events:
            may_interrupt = may_interrupt or bool(event.long_running_tool_ids or event.actions.agent_state)
            yield event
    if not is_paused(ctx.agent, history_of(ctx.session), ctx.branch, may_interrupt=may_interrupt):
        yield ended(ctx, ctx.agent.name)


def short_repr(value: Any) -> str:
    """`value` for an error message: on one line, at most 80 characters."""
    return f"{' '.join(repr(value).split()):.80}"


def _check_name(name: str) -> None:
    if name == "user":
        raise ConfigurationError("an agent cannot be named 'user': that is the author of the user's own messages")
    if not name.isidentifier():
        better = re.sub(r"\W+", "_", name).strip("_") or "agent"
        better = f"agent_{better}" if not better.isidentifier() or keyword.iskeyword(better) else better
        raise ConfigurationError(f"an agent's name must be a Python identifier, got {name!r}; try {better!r}")
