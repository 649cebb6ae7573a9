"""The context of an invocation, from the user's message to the last event."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from pydantic import BaseModel

from adk_nb import clock, types
from adk_nb.artifacts.base_artifact_service import BaseArtifactService
from adk_nb.auth.auth_credential import AuthCredential
from adk_nb.auth.credential_service.base_credential_service import BaseCredentialService
from adk_nb.errors import LlmCallsLimitExceededError
from adk_nb.events.event import Event
from adk_nb.events.event_actions import EventActions
from adk_nb.events.requests import REQUESTS
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.memory.base_memory_service import BaseMemoryService
from adk_nb.models.cache_metadata import ContextCacheConfig
from adk_nb.runtime.cancellation import Stop
from adk_nb.runtime.live_request_queue import LiveRequestQueue, Streams
from adk_nb.runtime.run_config import ResumabilityConfig, RunConfig
from adk_nb.sessions.base_session_service import BaseSessionService
from adk_nb.sessions.journal import Attempt
from adk_nb.sessions.session import Session
from adk_nb.sessions.state import State

GROUNDING = "temp:_adk_grounding_metadata"
"""State key that passes grounding metadata of an agent tool to its caller. Source: google-adk 2.13."""


class RunnableAgent(Protocol):
    """The members of an agent that the runtime uses. A Protocol: the runtime does not import agents."""

    runs_others: ClassVar[bool]
    """True: it decides when its sub-agents run, so an answer to one of them starts this agent."""

    repeats: ClassVar[bool]
    """True: it runs its sub-agents again and again."""

    @property
    def name(self) -> str:
        """Author of its events."""
        ...

    @property
    def parent_agent(self) -> "RunnableAgent | None":
        """None for the root."""
        ...

    @property
    def root_agent(self) -> "RunnableAgent":
        """The top of its tree; itself without a parent."""
        ...

    @property
    def sub_agents(self) -> Sequence["RunnableAgent"]:
        """Direct children."""
        ...

    @property
    def members(self) -> Sequence["RunnableAgent"]:
        """The agents that work for it: sub-agents, or the agents in a graph."""
        ...

    @property
    def called_agents(self) -> Sequence["RunnableAgent"]:
        """The agents that it calls as tools in its own session."""
        ...

    @property
    def is_task(self) -> bool:
        """True: it is called as a tool, talks with the user, and hands back a result."""
        ...

    @property
    def is_llm(self) -> bool:
        """True: it has a model, and its final response ends its work."""
        ...

    @property
    def may_hand_back(self) -> bool:
        """True: it may transfer the conversation to its parent."""
        ...

    def find_agent(self, name: str, /) -> "RunnableAgent | None":
        """Itself or an agent under it."""
        ...

    def input_mismatch(self, message: types.Content, /) -> str | None:
        """The mismatch of a message with its `input_schema`, as text. None: it matches."""
        ...

    def run_async(self, parent_context: "InvocationContext", /) -> AsyncGenerator[Event, None]:
        """Run the agent once."""
        ...

    def run_live(self, parent_context: "InvocationContext", /) -> AsyncGenerator[Event, None]:
        """Run the agent in a live conversation."""
        ...


class HookRegistry(Protocol):
    """The members of a plugin manager that the runtime uses."""

    def hooks(self, name: str, /) -> Sequence[Callable[..., Any]]:
        """The hooks of one name, such as `before_run`, in order."""
        ...


class NoPlugins:
    """The plugin manager of a context made without a runner."""

    plugins: Sequence[Any] = ()

    def get_plugin(self, plugin_name: str) -> None:
        """None: there are no plugins."""

    def hooks(self, name: str, /) -> Sequence[Callable[..., Any]]:
        """No hooks."""
        return ()


class Compactor(Protocol):
    """Compacts the history of a session."""

    async def before_model(self, ctx: "InvocationContext", agent: str, /) -> None:
        """Compact before a model call of `agent`, if the history is too long."""
        ...

    async def after_run(self, ctx: "InvocationContext", /) -> None:
        """Compact after a run, as the app's config says."""
        ...


class AgentCheckpoints(Protocol):
    """Progress of the agents in a resumed invocation; see `runtime.checkpoints.Checkpoints`."""

    def state_of(self, agent: Any, branch: str | None, /) -> dict[str, Any] | None:
        """The last checkpoint of an agent."""
        ...

    def unfinished_agent(self, agent: Any, branch: str | None, /) -> Any:
        """The agent to resume; None if finished."""
        ...

    def events_of(self, agent: Any, branch: str | None, /) -> Iterator[Event]:
        """The events of an agent's current step."""
        ...


@dataclass(frozen=True, kw_only=True)
class Decision:
    """An approver's decision on a call."""

    confirmation: ToolConfirmation
    ran: bool
    """True: the tool asked while it ran, and has a result. False: the call waited before it ran."""
    tool_fingerprint: str | None
    """Fingerprint of the tool that was asked about; None if unknown."""
    request_id: str = ""
    """Id of the approval request."""
    earlier_call: str = ""
    """Id of the equal call that the approver was told has run already in this turn; empty if of none."""
    result: tuple[types.Part, EventActions] | None = None
    """The result of the call from a run that a rewind has undone: the call does not run again. None: no such result."""


def new_invocation_id() -> str:
    """`e-` and a fresh id, as ADK spells it."""
    return f"e-{clock.new_id()}"


class HasState(Protocol):
    """The context of a function that may still run after its run has ended."""

    @property
    def state(self) -> State:
        """The state to close when the run has ended."""
        ...


def _no_entries() -> dict[Any, Any]:
    """A new dict; `dict[str, Any]()` is ten times slower, and a run makes nine: 2 % of a turn."""
    return {}


def _no_ids() -> set[str]:
    return set()


@dataclass(kw_only=True)
class TurnWork:
    """What a run and the runs of its agent tools know of each other, so that none repeats a call of another."""

    sessions: list[Session] = field(default_factory=list[Session])
    """Sessions of the runs of agent tools, and of their callers."""
    begun: dict[tuple[int, str], Any] = field(default_factory=dict[tuple[int, str], Any])
    """The tools of calls that are at their gate or past it, by the identity of the session object and the call id."""


@dataclass(kw_only=True)
class InvocationShared:
    """Mutable data shared by all agents of one invocation."""

    llm_calls: int = 0
    askers: set[tuple[str, str | None]] = field(default_factory=set[tuple[str, str | None]])
    """Name and branch of each agent that has asked a model."""
    cost_usd: float | None = None
    """Known cost of the model calls, US dollars. None: not tracked, as `RunConfig.max_cost_usd` is not set."""
    transfers: int = 0
    """Number of transfers to another agent."""
    end_invocation: bool = False
    stop: Stop = field(default_factory=Stop)
    last_failure: "tuple[Exception, InvocationContext] | None" = None
    """The last error that an agent raised, and the agent's context."""
    reported_error: Exception | None = None
    """The last error that has an event."""
    call_ids: set[str] = field(default_factory=_no_ids)
    """Ids of calls that models made in this run."""
    resumed_call_ids: set[str] = field(default_factory=_no_ids)
    """Ids of calls that run again because the user's message answers an interrupt inside them."""
    results: dict[str, tuple[types.Part, EventActions]] = field(default_factory=_no_entries)
    """Call id -> result and actions, set before the event with the result is stored."""
    earlier_attempts: dict[str, Attempt | None] = field(default_factory=_no_entries)
    """Key of a call from an earlier run -> its last attempt in the journal, if any."""
    running_functions: "dict[HasState, str]" = field(default_factory=_no_entries)
    """Context -> name of the function that runs with it."""
    abandoned_functions: list[tuple[str, Future[Any]]] = field(default_factory=lambda: [])
    """Functions that still run in a thread after their call ended: name and future outcome."""
    callback_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while a plain callback runs in its thread: those of one run follow one another."""
    is_abandoned: bool = False
    """True: the run has ended, but its agent has not."""
    is_edited: bool = False
    """True: the agents or tools were edited since the run that this one resumes."""
    is_continued: bool = False
    """True: it goes on with a run that was interrupted, without a new message: its decisions were given earlier."""
    custom_metadata: dict[str, Any] | None = None
    turn: TurnWork = field(default_factory=TurnWork)
    """Shared with the runs of agent tools, which have sessions of their own."""
    root: "InvocationShared | None" = None
    """Shared data of the outermost run, in the run of an agent tool. None: this is the outermost run."""

    @property
    def outermost(self) -> "InvocationShared":
        """The shared data at which limits are counted: those of the outermost run."""
        return self.root or self


@dataclass(frozen=True, kw_only=True)
class CurrentNode:
    """The graph node whose run an agent works for."""

    path: str
    """`graph@1/node@2`."""
    agent: RunnableAgent | None
    """The node's agent, if it runs one."""
    input: Any
    output_for: list[str]
    """Paths of the enclosing graphs whose output is also this node's output."""
    isolation_scope: str | None = None
    """Isolation scope of everything the node runs. None: each agent has its own."""


class _EndInvocation:
    """Descriptor of a field that all contexts of a run share."""

    def __get__(self, ctx: "InvocationContext | None", owner: type[Any]) -> bool:
        # `ctx` is None while the dataclass reads the field's default, False, from the class.
        return ctx is not None and ctx.shared.end_invocation

    def __set__(self, ctx: "InvocationContext", value: bool) -> None:
        ctx.shared.end_invocation = value


@dataclass(kw_only=True)
class InvocationContext:
    """The context of one user message and all work on it.

    Made by a runner, or by a test: `InvocationContext(agent=agent, session=session, session_service=service)`.
    """

    agent: RunnableAgent
    session: Session
    session_service: BaseSessionService
    artifact_service: BaseArtifactService | None = None
    memory_service: BaseMemoryService | None = None
    credential_service: BaseCredentialService | None = None
    plugin_manager: HookRegistry = field(default_factory=NoPlugins)
    compaction: Compactor | None = None
    """Applies `events_compaction_config`; made by the runner."""
    events_compaction_config: Any = None
    """Of the app."""
    context_cache_config: ContextCacheConfig | None = None
    run_config: RunConfig = field(default_factory=RunConfig)
    user_content: types.Content | None = None
    """The user's message."""
    invocation_id: str = field(default_factory=new_invocation_id)
    resumability_config: ResumabilityConfig | None = None
    checkpoints: AgentCheckpoints | None = None
    """Progress of this agent and its sub-agents in a resumed run. None: they start from the beginning."""
    branch: str | None = None
    node: "CurrentNode | None" = None
    """In a graph: the node that this agent works for."""
    state_schema: type[BaseModel] | None = None
    """Schema of the agent's state writes. None: any."""
    isolation_scope: str | None = None
    """The agent sees only events of this scope; None: events without a scope."""
    delegated_input: types.Content | None = None
    """Input of an agent that was called as a tool in its caller's session; the first content it sees."""
    caller: "InvocationContext | None" = None
    """Context of the calling agent, if this one sees its history, before `delegated_input`."""
    caller_event_count: int = 0
    """Number of events of the caller's history to see, with the event of the call."""
    task_call_id: str | None = None
    """Id of the call that gave a task, if the user's message is for the agent with that task."""
    resumed_calls: Sequence[types.FunctionCall] = ()
    """The agent's calls to resume, since the user's message answers an interrupt inside them. The same objects as in
    its events: they are compared by identity, so that no other call with the same id is resumed."""
    decisions: dict[str, Decision] = field(default_factory=_no_entries)
    """Call id -> the decision in the user's message."""
    credential_answers: dict[str, Any] = field(default_factory=_no_entries)
    """Credential request id -> the answer. Kept only here: the stored message has no secrets."""
    credential_problems: dict[str, str] = field(default_factory=_no_entries)
    """Credential key -> why its answer gave no credential."""
    credential_by_key: dict[str, AuthCredential] = field(default_factory=_no_entries)
    """Credential key -> the credential that this invocation's tools use."""
    abort_signal: asyncio.Event | None = None
    """Set it to stop the run."""
    shared: InvocationShared = field(default_factory=InvocationShared)
    # After `shared`: __init__ sets fields in this order, and the descriptor stores the value in `shared`.
    end_invocation: _EndInvocation = _EndInvocation()
    """True: stop before the next step of any agent."""
    live_request_queue: LiveRequestQueue | None = None
    """The user's input in a live conversation. None: not a live conversation."""
    yields_input: bool = False
    """The user's messages in a live conversation are among its events."""
    is_live_turn: bool = False
    """In a live conversation: other agents follow after this one calls `task_completed`."""
    live_session_resumption_handle: str | None = None
    """Handle with which the service resumes a live conversation after its connection is lost."""
    streams: Streams | None = None
    """The tools of a live conversation that stream results after their call was answered."""
    emit: Callable[[Event], Awaitable[None]] | None = None
    """Emits an event while tools run; returns when the reader has taken it. None: no running tool emits events (see
    `BaseTool.reports_progress`)."""

    @property
    def app_name(self) -> str:
        """The app whose session it is."""
        return self.session.app_name

    @property
    def user_id(self) -> str:
        """The user whose session it is."""
        return self.session.user_id

    @property
    def is_resumable(self) -> bool:
        """True: agents store checkpoints, so that the run can be resumed."""
        return self.resumability_config is not None and self.resumability_config.is_resumable

    @property
    def is_aborted(self) -> bool:
        """True once the run is to stop; may be polled from any thread."""
        # The run of an agent tool has a stop of its own, and ends with its caller's, too.
        stops = [shared.stop for shared in (self.shared, self.shared.root) if shared]
        return any(stop.reason for stop in stops) or (self.abort_signal is not None and self.abort_signal.is_set())

    @property
    def custom_metadata(self) -> dict[str, Any]:
        """A copy of `RunConfig.custom_metadata` that the run's callbacks and tools share, and may change."""
        if self.shared.custom_metadata is None:
            self.shared.custom_metadata = dict(self.run_config.custom_metadata or {})
        return self.shared.custom_metadata

    @property
    def keeps_only_json(self) -> bool:
        """True if the session's store refuses state that is not JSON."""
        return getattr(self.session_service, "keeps_only_json", False)

    @property
    def llm_calls(self) -> int:
        """Number of model calls so far, of all agents."""
        return self.shared.outermost.llm_calls

    @property
    def requests_answered(self) -> set[str]:
        """Ids of the approval and credential requests, or of their calls, that the user's message answers."""
        return {response.id or "" for response in self.responses if response.name in REQUESTS}

    @property
    def calls_answered(self) -> list[str]:
        """Ids of all calls and requests that the user's message answers, or of the task that it continues."""
        if self.task_call_id:
            return [self.task_call_id]
        return [response.id or "" for response in self.responses]

    @property
    def responses(self) -> list[types.FunctionResponse]:
        """The function responses in the user's message."""
        parts = (self.user_content and self.user_content.parts) or []
        return [part.function_response for part in parts if part.function_response]

    def note_failure(self, error: Exception) -> None:
        """Record that this agent raised `error`; of nested agents, the innermost is recorded."""
        # An exception passes each enclosing agent on its way up, the innermost first.
        if self.shared.last_failure is None or self.shared.last_failure[0] is not error:
            self.shared.last_failure = (error, self)

    def count_llm_call(self) -> None:
        """Count one more model call.

        Raises:
            LlmCallsLimitExceededError: More than `RunConfig.max_llm_calls`.
        """
        shared = self.shared.outermost
        # Runs of agent tools count on the outermost run: the limit is one for all of them.
        shared.llm_calls = count = shared.llm_calls + 1
        shared.askers.add((self.agent.name, self.branch))
        limit = self.run_config.max_llm_calls
        if limit < count and self.run_config.frees_first_llm_calls:
            count -= len(shared.askers) - 1
        if 0 < limit < count:
            raise LlmCallsLimitExceededError(
                f"Max number of llm calls limit of `{limit}` exceeded: agent {self.agent.name!r} asked its model more "
                "often in one invocation; raise RunConfig.max_llm_calls, or look for a tool that never satisfies it"
            )
