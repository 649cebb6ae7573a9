"""What one invocation carries from the user's message to the last event."""

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
from adk_nb.models.context_cache_config import ContextCacheConfig
from adk_nb.runtime.hooks import Hook
from adk_nb.runtime.live_request_queue import LiveRequestQueue, Streams
from adk_nb.runtime.resumability_config import ResumabilityConfig
from adk_nb.runtime.run_config import RunConfig
from adk_nb.runtime.stopping import Stop
from adk_nb.sessions.base_session_service import BaseSessionService
from adk_nb.sessions.journal import Attempt
from adk_nb.sessions.session import Session

GROUNDING = "temp:_adk_grounding_metadata"
"""State key of what a called agent looked up, which its caller's answers are shown with. Source: google-adk 2.13."""


class Runs(Protocol):
    """What an invocation needs of an agent. Stated here so that the runtime imports no agents."""

    runs_others: ClassVar[bool]
    """True: it decides when the agents under it work, so an answer to one of them comes to it first."""

    @property
    def name(self) -> str: ...

    @property
    def parent_agent(self) -> "Runs | None": ...

    @property
    def root_agent(self) -> "Runs": ...

    @property
    def sub_agents(self) -> Sequence["Runs"]: ...

    @property
    def members(self) -> Sequence["Runs"]:
        """The agents that work for it."""
        ...

    @property
    def called_agents(self) -> Sequence["Runs"]:
        """The agents that it calls as tools in its own session."""
        ...

    @property
    def is_task(self) -> bool:
        """True: it is called as a tool, talks with the user, and hands back a result."""
        ...

    @property
    def is_llm(self) -> bool:
        """True: its last words are the end of its work."""
        ...

    @property
    def may_hand_back(self) -> bool:
        """True: it may transfer the conversation to its parent."""
        ...

    def find_agent(self, name: str, /) -> "Runs | None": ...

    def unfit(self, message: types.Content, /) -> str | None: ...

    def run_async(self, parent_context: "InvocationContext", /) -> AsyncGenerator[Event, None]: ...

    def run_live(self, parent_context: "InvocationContext", /) -> AsyncGenerator[Event, None]: ...


class Hooked(Protocol):
    """What an invocation needs of the plugins: the hooks that go by a name, in order."""

    def hooks(self, name: str, /) -> Sequence[Hook]: ...


class NoPlugins:
    """The plugin manager of a context that no runner made."""

    plugins: Sequence[Any] = ()

    def get_plugin(self, plugin_name: str) -> None:
        """None: there are no plugins."""

    def hooks(self, name: str, /) -> Sequence[Hook]:
        """No hooks."""
        return ()


class Compacts(Protocol):
    """What an invocation needs of what keeps its conversation short."""

    async def before_model(self, ctx: "InvocationContext", agent: str, /) -> None: ...

    async def after_run(self, ctx: "InvocationContext", /) -> None: ...


class AgentCheckpoints(Protocol):
    """What an invocation that is resumed needs to know of its agents: how far each was."""

    def state_of(self, agent: Any, branch: str | None, /) -> dict[str, Any] | None: ...

    def unfinished_agent(self, agent: Any, branch: str | None, /) -> Any: ...

    def events_of(self, agent: Any, branch: str | None, /) -> Iterator[Event]: ...


@dataclass(frozen=True, kw_only=True)
class Decided:
    """What a person decided of a call, and of what they decided it."""

    confirmation: ToolConfirmation
    ran: bool
    """The tool asked while it ran, and gave a result; False: the call was held back before it ran."""
    tool: str | None
    """What the tool was when it was asked about; None if that is not known."""
    request: str = ""
    """Id of the request that was answered."""
    result: tuple[types.Part, EventActions] | None = None
    """The result of the call, made in a run that a rewind has undone: it is not made again. None: there is none."""


def new_invocation_id() -> str:
    """`e-` and a fresh id, as ADK spells it."""
    return f"e-{clock.new_id()}"


class Closable(Protocol):
    """A context whose function may go on after its run."""

    def close(self, function: str, /) -> None: ...


def _no_entries() -> dict[Any, Any]:
    """A new dict; `dict[str, Any]()` takes ten times as long, and a run makes nine: 2 % of a turn."""
    return {}


def _no_ids() -> set[str]:
    return set()


@dataclass(kw_only=True)
class Shared:
    """What all agents of one invocation share, whichever of them has the word."""

    llm_calls: int = 0
    cost_usd: float | None = None
    """What the answers have cost, as far as it is known. None: `RunConfig.max_cost_usd` does not ask."""
    transfers: int = 0
    """How often the conversation was handed over to another agent."""
    end_invocation: bool = False
    stop: Stop = field(default_factory=Stop)
    failed: "tuple[Exception, InvocationContext] | None" = None
    """The last error that left an agent, and where it came from."""
    told: Exception | None = None
    """The last error of which an event has told."""
    call_ids: set[str] = field(default_factory=_no_ids)
    """Ids of the calls that models made in this run."""
    taken_up: set[str] = field(default_factory=_no_ids)
    """Ids of calls that are made once more, since the user's message answers something inside them."""
    results: dict[str, tuple[types.Part, EventActions]] = field(default_factory=_no_entries)
    """What calls of this run came to, by their ids, and what their tools did; there before an event tells it."""
    begun: dict[str, Attempt | None] = field(default_factory=_no_entries)
    """What is in the journal of calls that are older than this run, by their keys: the last attempt of each, if any."""
    at_work: "dict[Closable, str]" = field(default_factory=_no_entries)
    """Contexts of the functions under way, with the names of these."""
    abandoned: list[tuple[str, Future[Any]]] = field(default_factory=lambda: [])
    """Functions that were left to end in their threads, with their outcomes to come."""
    is_abandoned: bool = False
    """The run has ended before its agent did."""
    is_edited: bool = False
    """This run goes on with what other agents or tools had begun: they were edited since."""
    custom_metadata: dict[str, Any] | None = None
    whole: "Shared | None" = None
    """What the whole invocation shares, of which this run is a part: that of an agent which was called as a tool. None:
    it is the whole."""


@dataclass(frozen=True, kw_only=True)
class AtNode:
    """A run of a node of a graph."""

    path: str
    """`graph@1/node@2`."""
    agent: Runs | None
    """What the node runs, if it runs an agent."""
    input: Any
    output_for: list[str]
    """Paths of the graphs whose output its output is, too."""
    isolation_scope: str | None = None
    """That of all that it runs. None: each agent has one of its own."""


class _EndInvocation:
    """Field whose value all contexts of a run share."""

    def __get__(self, ctx: "InvocationContext | None", owner: type[Any]) -> bool:
        return ctx is not None and ctx.shared.end_invocation

    def __set__(self, ctx: "InvocationContext", value: bool) -> None:
        ctx.shared.end_invocation = value


@dataclass(kw_only=True)
class InvocationContext:
    """One user message and all that is done to answer it.

    A runner makes it. A test of an agent may: `InvocationContext(agent=agent, session=session,
    session_service=service)`.
    """

    agent: Runs
    session: Session
    session_service: BaseSessionService
    artifact_service: BaseArtifactService | None = None
    memory_service: BaseMemoryService | None = None
    credential_service: BaseCredentialService | None = None
    plugin_manager: Hooked = field(default_factory=NoPlugins)
    compaction: Compacts | None = None
    """What shortens the conversation, as `events_compaction_config` says. A runner makes it."""
    events_compaction_config: Any = None
    """The app's."""
    context_cache_config: ContextCacheConfig | None = None
    run_config: RunConfig = field(default_factory=RunConfig)
    user_content: types.Content | None = None
    """The message that started this."""
    invocation_id: str = field(default_factory=new_invocation_id)
    resumability_config: ResumabilityConfig | None = None
    checkpoints: AgentCheckpoints | None = None
    """How far this agent, and those under it, were, if they are resumed. None: they begin."""
    branch: str | None = None
    node: "AtNode | None" = None
    """In a graph: the run of a node that this works for."""
    state_schema: type[BaseModel] | None = None
    """What the agent may write to the state. None: anything."""
    isolation_scope: str | None = None
    """The agent sees the events of the same scope, None the unscoped ones."""
    delegated: types.Content | None = None
    """What the agent was called with as a tool, in the session of its caller: said before all it sees of that."""
    caller: "InvocationContext | None" = None
    """Who called it, if it sees what led to the call: then that is told before `delegated`."""
    events_before: int = 0
    """How many events of the session those are, the call among them."""
    task: str | None = None
    """The id of the call that gave a task to an agent, if the user's words are meant for that agent."""
    taken_up: Sequence[types.FunctionCall] = ()
    """The agent's own calls inside which the user's message answers something: the very objects of its events, for no
    other call is let through with them."""
    answered: dict[str, Decided] = field(default_factory=_no_entries)
    """Function call id -> what a human decided of it in the message that started this."""
    credential_answers: dict[str, Any] = field(default_factory=_no_entries)
    """Request id -> what a human answered to a request for a credential. Here alone: the message has no secrets."""
    credential_problems: dict[str, str] = field(default_factory=_no_entries)
    """Credential key -> why nothing came of an answer."""
    credential_by_key: dict[str, AuthCredential] = field(default_factory=_no_entries)
    """Credential key -> what tools of this invocation have been let in with."""
    abort_signal: asyncio.Event | None = None
    """Set by whoever wants the run stopped; what runs long may look at it."""
    shared: Shared = field(default_factory=Shared)
    end_invocation: _EndInvocation = _EndInvocation()
    """True: stop before the next step, whichever agent's it is."""
    live_request_queue: LiveRequestQueue | None = None
    """What the user says in a live conversation. None: this is none."""
    in_turn: bool = False
    """In a live conversation: others take their turns after this agent, once it says that its part is done."""
    live_session_resumption_handle: str | None = None
    """With this the live conversation goes on after its connection is lost."""
    streams: Streams | None = None
    """The tools of a live conversation that go on after their call was answered."""
    tell: Callable[[Event], Awaitable[None]] | None = None
    """Hands an event to whoever reads the run, while tools run; comes back when it is taken. None: nobody takes it, as
    when no tool `reports_progress`."""

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
        """True: agents mark their checkpoints in the session, so that the run can be resumed."""
        return self.resumability_config is not None and self.resumability_config.is_resumable

    @property
    def is_aborted(self) -> bool:
        """True: the run is asked to stop. Long work may look at it, from any thread."""
        stops = [shared.stop for shared in (self.shared, self.shared.whole) if shared]
        return any(stop.why for stop in stops) or (self.abort_signal is not None and self.abort_signal.is_set())

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
        """How often models were asked so far, all agents together."""
        return (self.shared.whole or self.shared).llm_calls

    @property
    def answers_requests(self) -> bool:
        """True if the message that started this answers requests for approval or for a credential."""
        return bool(self.requests_answered)

    @property
    def requests_answered(self) -> set[str]:
        """Ids that the message that started this answers: of such requests, or of the calls themselves."""
        return {response.id or "" for response in self.responses if response.name in REQUESTS}

    @property
    def calls_answered(self) -> list[str]:
        """Ids of all calls and requests that the message that started this answers, or goes on with."""
        if self.task:
            return [self.task]
        parts = (self.user_content and self.user_content.parts) or ()
        return [part.function_response.id or "" for part in parts if part.function_response]

    @property
    def responses(self) -> list[types.FunctionResponse]:
        """What the message that started this answers to calls and requests."""
        parts = (self.user_content and self.user_content.parts) or []
        return [part.function_response for part in parts if part.function_response]

    def note_failure(self, error: Exception) -> None:
        """Remember that `error` left this agent; of agents that called each other, the innermost is remembered."""
        if self.shared.failed is None or self.shared.failed[0] is not error:
            self.shared.failed = (error, self)

    def count_llm_call(self) -> None:
        """Count one more model call.

        Raises:
            LlmCallsLimitExceededError: That is one more than RunConfig allows.
        """
        counted = self.shared.whole or self.shared
        counted.llm_calls = asked = counted.llm_calls + 1
        limit = self.run_config.max_llm_calls
        if 0 < limit < asked:
            raise LlmCallsLimitExceededError(
                f"Max number of llm calls limit of `{limit}` exceeded: agent {self.agent.name!r} asked its model more "
                "often in one invocation; raise RunConfig.max_llm_calls, or look for a tool that never satisfies it"
            )
