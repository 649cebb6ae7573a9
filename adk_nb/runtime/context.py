"""The context of callbacks, tools and nodes: state, artifacts, memory, credentials and actions."""

import threading
import unicodedata
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from adk_nb import types
from adk_nb.artifacts.base_artifact_service import ArtifactVersion, BaseArtifactService
from adk_nb.auth.auth_credential import AuthCredential
from adk_nb.auth.auth_tool import AuthConfig
from adk_nb.auth.credential_service.base_credential_service import BaseCredentialService
from adk_nb.errors import ConfigurationError
from adk_nb.events.event import Event
from adk_nb.events.event_actions import EventActions, UiWidget, no_actions
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from adk_nb.memory.memory_entry import MemoryEntry
from adk_nb.runtime.invocation_context import InvocationContext, RunnableAgent
from adk_nb.runtime.run_config import RunConfig
from adk_nb.sessions.journal import Attempt, Intent
from adk_nb.sessions.session import Session
from adk_nb.sessions.state import State


class ReadonlyContext:
    """A read-only context, passed to instruction providers."""

    def __init__(self, invocation_context: InvocationContext) -> None:
        self._invocation = invocation_context

    @property
    def _invocation_context(self) -> InvocationContext:
        """The invocation context, under the private name that users of google-adk read."""
        return self._invocation

    @property
    def agent_name(self) -> str:
        """Name of the agent that runs; `unknown` where none does."""
        agent: RunnableAgent | None = self._invocation.agent  # a test may make a context without one
        return agent.name if agent else "unknown"

    @property
    def invocation_id(self) -> str:
        """Id of the invocation: one user message and all work on it."""
        return self._invocation.invocation_id

    @property
    def user_id(self) -> str:
        """The user whose session it is."""
        return self._invocation.session.user_id

    @property
    def user_content(self) -> types.Content | None:
        """The message that started this invocation, or the input of an agent that was called as a tool."""
        return self._invocation.delegated_input or self._invocation.user_content

    @property
    def session(self) -> Session:
        """The session; read it, and write through `state`."""
        return self._invocation.session

    @property
    def run_config(self) -> RunConfig:
        """Settings of this run."""
        return self._invocation.run_config

    @property
    def state(self) -> Mapping[str, Any]:
        """The session's state, read-only."""
        return MappingProxyType(self._invocation.session.state)

    def get_credential(self, key: str) -> AuthCredential | None:
        """The credential that this invocation's tools use under a `credential_key`. None: none yet."""
        return self._invocation.credential_by_key.get(key)

    @property
    def is_aborted(self) -> bool:
        """True once the run is to stop; a long tool may poll it from any thread."""
        return self._invocation.is_aborted

    @property
    def custom_metadata(self) -> Mapping[str, Any]:
        """`RunConfig.custom_metadata`, with the changes that callbacks and tools of this run made to it."""
        return MappingProxyType(self._invocation.custom_metadata)

    async def load_artifact(self, filename: str, version: int | None = None) -> types.Part | None:
        """Load one version of a file, by default the newest; None if it does not exist.

        Raises:
            ConfigurationError: The runner has no artifact service.
            InputError: The name is not valid.
            StorageError: The service failed.
        """
        return await self._artifacts().load_artifact(**self._session_key, filename=filename, version=version)

    async def list_artifacts(self) -> list[str]:
        """Names of the session's files, and of the user's with the prefix `user:`; sorted."""
        return await self._artifacts().list_artifact_keys(**self._session_key)

    async def get_artifact_version(self, filename: str, version: int | None = None) -> ArtifactVersion | None:
        """Metadata of one version of a file, by default the newest; None if it does not exist."""
        return await self._artifacts().get_artifact_version(**self._session_key, filename=filename, version=version)

    async def search_memory(self, query: str) -> SearchMemoryResponse:
        """Search the user's memories in this app; best match first.

        Raises:
            ConfigurationError: The runner has no memory service.
            StorageError: The service failed.
        """
        return await self._memory().search_memory(**self._user_key, query=query)

    def _credentials(self) -> BaseCredentialService:
        if service := self._invocation.credential_service:
            return service
        raise ConfigurationError(
            "this runner has no credential service; write Runner(credential_service=InMemoryCredentialService(), ...)"
        )

    @property
    def _user_key(self) -> dict[str, str]:
        return {"app_name": self.session.app_name, "user_id": self.session.user_id}

    @property
    def _session_key(self) -> dict[str, str]:
        return {**self._user_key, "session_id": self.session.id}

    def _artifacts(self) -> BaseArtifactService:
        if service := self._invocation.artifact_service:
            return service
        raise ConfigurationError(
            "this runner has no artifact service; write Runner(artifact_service=InMemoryArtifactService(), ...)"
        )

    def _memory(self) -> BaseMemoryService:
        if service := self._invocation.memory_service:
            return service
        raise ConfigurationError(
            "this runner has no memory service; write Runner(memory_service=InMemoryMemoryService(), ...)"
        )


@dataclass(slots=True, kw_only=True)
class CallState:
    """The runtime's record of one tool call or node attempt; `call_state(context)` returns it."""

    state: State | None = None
    """The context's state. None: not used yet."""
    is_resumed: bool = False
    """The call runs again because an interrupt inside it was answered."""
    attempt: Attempt | None = None
    """The journal's attempt. None: the call is not in the journal."""
    attempt_in_doubt: int = 0
    """Number of this attempt if an interrupted attempt may have taken effect; else 0."""
    is_called: bool = False
    """The tool was called: no callback answered in its place, and nothing stood against it."""
    ran_with: str | None = None
    """See `calls.RAN_WITH`."""
    same_call: dict[str, Any] | None = None
    """See `calls.SAME_CALL`."""
    is_long_running: bool = False
    """The result is not final, and the run ends until the final result is sent."""
    has_nested_interrupt: bool = False
    """An interrupt is open inside the tool's work; the tool is called again after the answer."""
    is_abandoned: bool = False
    """The tool's function still runs in a thread although the call has ended."""
    is_spoken: bool = False
    """With `actions.skip_summarization`: the result is also the text of the answer, for the user."""
    task_output: tuple[Any] | None = None
    """The JSON result of the agent's task, which this call completes. None: the call completes no task."""
    display: list[dict[str, Any]] | None = None
    """The result as the notebook shows it; see `tools.tables`."""
    nested_usage: list[dict[str, Any]] | None = None
    """Token usage of models that the tool called outside the session, as `events.usage` writes it."""
    failed_at: str | None = None
    """Line of a notebook cell in which the tool raised, as `In[7] line 4`. None: it did not raise in a cell."""


class Context(ReadonlyContext):
    """The context of callbacks (`CallbackContext`), tools (`ToolContext`) and graph nodes: one class, three names."""

    node_path: str = ""
    """In a graph: path of this run of the node, as `graph@1/node@2`."""
    run_id: str = ""
    """In a graph: the last step of `node_path`."""
    attempt_count: int = 1
    """In a graph: number of this attempt, from 1; the node runs again after an error."""
    resume_inputs: Mapping[str, Any] = MappingProxyType({})
    """In a graph: answers to this node's questions, by `interrupt_id`."""
    auth_credential: AuthCredential | None = None
    """Credential of a tool. Its secrets are removed from the result."""

    def __init__(
        self,
        invocation_context: InvocationContext,
        event_actions: EventActions | None = None,
        *,
        function_call_id: str | None = None,
        tool_confirmation: ToolConfirmation | None = None,
    ) -> None:
        super().__init__(invocation_context)
        self._call = CallState()
        self.actions = event_actions or no_actions()
        """Actions of the next event; a tool's go to the event with its result."""
        self.function_call_id = function_call_id
        """Id of the tool call; None in callbacks of agents and models."""
        self.tool_confirmation = tool_confirmation
        """The decision on this call. None: no approval was requested yet."""

    @property
    def state(self) -> State:
        """The session's state. Later code of the run sees a write at once; the next event stores it."""
        # Created on first use: most contexts never touch the state.
        if self._call.state is None:
            invocation = self._invocation
            self._call.state = State(
                invocation.session.state,
                self.actions.state_delta,
                invocation.state_schema,
                only_json=invocation.keeps_only_json,
            )
        return self._call.state

    @property
    def custom_metadata(self) -> dict[str, Any]:
        """A copy of `RunConfig.custom_metadata` that the run's callbacks and tools share, and may change."""
        return self._invocation.custom_metadata

    @property
    def branch(self) -> str | None:
        """The branch of the agent: agents on sibling branches do not see each other's events."""
        return self._invocation.branch

    @property
    def isolation_scope(self) -> str | None:
        """The scope of the events that the agent sees. None: the events without a scope."""
        return self._invocation.isolation_scope

    @property
    def attempt(self) -> int:
        """In a tool: number of this attempt, from 1; an earlier attempt may have taken effect."""
        return self._call.attempt.number if self._call.attempt else 1

    @property
    def idempotency_key(self) -> str:
        """In a tool: 32 hexadecimal digits, the same at every attempt of this call and different for other calls."""
        if self._call.attempt:
            return self._call.attempt.intent.key
        invocation = self._invocation
        return Intent(
            run_id=invocation.invocation_id, branch=invocation.branch or "", call_id=self.function_call_id or ""
        ).key

    def get_invocation_context(self) -> InvocationContext:
        """The invocation context; set its `end_invocation` to stop before the next step."""
        return self._invocation

    @property
    def route(self) -> bool | int | str | list[bool | int | str] | None:
        """In a graph: the route to take after the node; set it. A list takes several."""
        return self.actions.route

    @route.setter
    def route(self, value: bool | int | str | list[bool | int | str] | None) -> None:
        self.actions.route = value

    async def run_node(
        self,
        node: Any,
        node_input: Any = None,
        *,
        use_as_output: bool = False,
        run_id: str | None = None,
        use_sub_branch: bool = False,
        override_branch: str | None = None,
        override_isolation_scope: str | None = None,
        raise_on_wait: bool = False,
    ) -> Any:
        """Run another node from within a node of a graph.

        When the inner node waits for an answer, the calling node waits too. After the answer the calling node runs
        again from its first line; inner runs that have ended return their stored output and are not repeated. An inner
        run is identified by its name and the order of the calls, or by `run_id`. Its error is stored as an event and
        raised here.

        Args:
            node: A node, or anything the edges of a Workflow take.
            node_input: Its input.
            use_as_output: Its output is the output of the calling node, in one event on that node's branch.
            run_id: Identifies this run instead of a number; a second run with the same id returns the first output.
            use_sub_branch: Its agents do not see events of parallel nodes.
            override_branch: Run on this branch instead of the calling node's.
            override_isolation_scope: Its agents read and write the events of this scope. None: a scope of its own. An
                agent with a task keeps its scope.
            raise_on_wait: A node with `wait_for_output` that ends without output ends this node as well.

        Returns:
            Its output; None if it had none.

        Raises:
            ConfigurationError: Called outside a graph; `run_id` is a number or a path; or two nodes have
                `use_as_output`.

        Source: google-adk 2.13, `Context.run_node`.
        """
        raise ConfigurationError("run_node works only in a node of a Workflow; call it in a function node")

    @property
    def node(self) -> Any:
        """In a node of a graph: that node. None: elsewhere."""
        return None

    @property
    def interrupt_ids(self) -> set[str]:
        """In a node of a graph: ids of its open interrupts so far; a copy. Source: google-adk 2.13."""
        return set()

    def render_ui_widget(self, ui_widget: UiWidget) -> None:
        """Add a widget for a user interface to show beside the next event. Source: google-adk 2.13.

        Raises:
            ConfigurationError: The event has a widget of that id already.
        """
        widgets = self.actions.render_ui_widgets or []
        if any(widget.id == ui_widget.id for widget in widgets):
            raise ConfigurationError(f"a widget of the id {ui_widget.id!r} is already shown here; give it another id")
        self.actions.render_ui_widgets = [*widgets, ui_widget]

    def request_confirmation(self, *, hint: str | None = None, payload: Any = None) -> None:
        """Request approval: the run pauses after this step, and the tool is called again with the decision.

        Args:
            hint: The question. None: whether the call may run.
            payload: JSON that the approver may edit.

        Raises:
            ConfigurationError: Called outside a tool.
        """
        if not self.function_call_id:
            raise ConfigurationError(
                "request_confirmation works only in a tool call, and a callback is none; call it in the tool"
            )
        requested = ToolConfirmation(hint=hint or "", payload=payload)
        self.actions.requested_tool_confirmations[self.function_call_id] = requested

    def request_credential(self, auth_config: AuthConfig) -> None:
        """Request a credential: the run pauses after this step, and the tool is called again with the credential.

        A tool with an `auth_config` does not need this: it is called only with a credential.

        Raises:
            ConfigurationError: Called outside a tool.
        """
        if not self.function_call_id:
            raise ConfigurationError(
                "request_credential works only in a tool call, and a callback is none; call it in the tool"
            )
        self.actions.requested_auth_configs[self.function_call_id] = auth_config

    def get_auth_response(self, auth_config: AuthConfig) -> AuthCredential | None:
        """The credential that answered `request_credential`, ready to use. None: not answered in this invocation."""
        credential = self.get_credential(auth_config.credential_key)
        # Noted, so that its secrets are removed from the tool's result.
        self.auth_credential = credential or self.auth_credential
        return credential

    async def load_credential(self, auth_config: AuthConfig) -> AuthCredential | None:
        """Load the user's stored credential of `auth_config.credential_key`; it may have expired.

        Raises:
            ConfigurationError: The runner has no credential service.
            StorageError: The service failed.
        """
        return await self._credentials().load_credential(auth_config, self)

    async def save_credential(self, auth_config: AuthConfig) -> None:
        """Store `auth_config.exchanged_auth_credential`; None deletes it. Raises as `load_credential`."""
        await self._credentials().save_credential(auth_config, self)

    async def save_artifact(
        self, filename: str, artifact: types.Part, custom_metadata: dict[str, Any] | None = None
    ) -> int:
        """Store `artifact` as the newest version of a file of this session, or of the user if it begins with `user:`.

        The next event has it in `actions.artifact_delta`.

        Returns:
            The version; the first is 0.

        Raises:
            ConfigurationError: The runner has no artifact service.
            InputError: The name is not valid, or `artifact` is not text, inline_data or file_data.
            StorageError: The service failed; nothing was stored.
        """
        service = self._artifacts()
        version = await service.save_artifact(
            **self._session_key, filename=filename, artifact=artifact, custom_metadata=custom_metadata
        )
        # The name as the service stores it; macOS and browsers may send decomposed accents.
        self.actions.artifact_delta[unicodedata.normalize("NFC", filename)] = version
        return version

    async def add_session_to_memory(self) -> None:
        """Store the conversation so far as memory; call it after every turn. Raises as `search_memory`."""
        memory, invocation = self._memory(), self._invocation
        session = self.session
        if invocation.shared.root:  # a nested run: its session copy has the caller's id, which must not be replaced
            session = session.model_copy(update={"id": invocation.invocation_id})
        await memory.add_session_to_memory(session)

    async def add_events_to_memory(
        self, *, events: Sequence[Event], custom_metadata: Mapping[str, Any] | None = None
    ) -> None:
        """Add events to the stored memory; `custom_metadata` is JSON. Raises as `search_memory`."""
        await self._memory().add_events_to_memory(
            **self._user_key, session_id=self.session.id, events=events, custom_metadata=custom_metadata
        )

    async def add_memory(
        self, *, memories: Sequence[MemoryEntry], custom_metadata: Mapping[str, Any] | None = None
    ) -> None:
        """Store memories; an entry with an existing id replaces it. Raises as `search_memory`."""
        await self._memory().add_memory(**self._user_key, memories=memories, custom_metadata=custom_metadata)

    async def delete_memory(self, memory_id: str) -> None:
        """Delete a memory by its `id`; no error if there is none. Raises as `search_memory`."""
        await self._memory().delete_memory(**self._user_key, memory_id=memory_id)


ToolContext = CallbackContext = Context


def call_state(context: Context) -> CallState:
    """The runtime's record of the call that `context` belongs to."""
    return context._call  # pyright: ignore[reportPrivateUsage]


def settle_state(context: Context) -> None:
    """Add values that were changed in place to the state delta; raises as `State.settle`."""
    if (state := call_state(context).state) is not None:
        state.settle()


def has_unstored(context: Context) -> bool:
    """True if it has changes of the state, artifacts, widgets or a route that no event carries yet."""
    settle_state(context)
    actions = context.actions
    return bool(actions.state_delta or actions.artifact_delta or actions.render_ui_widgets or actions.route is not None)


def abandon(context: Context, function: str, outcome: Future[Any]) -> None:
    """Record that `function` still runs in another thread although its call has ended."""
    call_state(context).is_abandoned = True
    # Only the abandoned thread is shut out: callbacks on this one may still write.
    context.state.close(f"{function}()", threading.get_ident())
    context.get_invocation_context().shared.abandoned_functions.append((f"{function}()", outcome))


def start_next_event(context: Context) -> None:
    """Give the next event its own actions and state delta; the current ones belong to the event just made."""
    context.actions, call_state(context).state = no_actions(), None
