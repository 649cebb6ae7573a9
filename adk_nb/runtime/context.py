"""What callbacks and tools are handed: the session's state to read and write, and nothing of the machinery."""

import threading
import unicodedata
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from types import MappingProxyType
from typing import Any

from adk_nb import types
from adk_nb.artifacts.base_artifact_service import ArtifactVersion, BaseArtifactService
from adk_nb.auth.auth_credential import AuthCredential
from adk_nb.auth.auth_tool import AuthConfig
from adk_nb.auth.credential_service.base_credential_service import BaseCredentialService
from adk_nb.errors import ConfigurationError
from adk_nb.events.event import Event
from adk_nb.events.event_actions import EventActions, no_actions
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from adk_nb.memory.memory_entry import MemoryEntry
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.runtime.run_config import RunConfig
from adk_nb.sessions.journal import Attempt, Intent
from adk_nb.sessions.session import Session
from adk_nb.sessions.state import State


class ReadonlyContext:
    """The part of a context that instruction providers get: everything to read, nothing to change."""

    def __init__(self, invocation_context: InvocationContext) -> None:
        self._invocation = invocation_context

    @property
    def _invocation_context(self) -> InvocationContext:
        """Under the name by which code for google-adk reads it."""
        return self._invocation

    @property
    def agent_name(self) -> str:
        return self._invocation.agent.name

    @property
    def invocation_id(self) -> str:
        return self._invocation.invocation_id

    @property
    def user_id(self) -> str:
        return self._invocation.session.user_id

    @property
    def user_content(self) -> types.Content | None:
        """The message that started this invocation, or what the agent was called with as a tool."""
        return self._invocation.delegated or self._invocation.user_content

    @property
    def session(self) -> Session:
        return self._invocation.session

    @property
    def run_config(self) -> RunConfig:
        return self._invocation.run_config

    @property
    def state(self) -> Mapping[str, Any]:
        return MappingProxyType(self._invocation.session.state)

    def get_credential(self, key: str) -> AuthCredential | None:
        """What tools of this invocation have been let in with under that `credential_key`, if any."""
        return self._invocation.credential_by_key.get(key)

    @property
    def is_aborted(self) -> bool:
        """True: the run is asked to stop. A long tool may look at it, from any thread."""
        return self._invocation.is_aborted

    @property
    def custom_metadata(self) -> Mapping[str, Any]:
        """`RunConfig.custom_metadata`, with the changes that callbacks and tools of this run made to it."""
        return MappingProxyType(self._invocation.custom_metadata)

    async def load_artifact(self, filename: str, version: int | None = None) -> types.Part | None:
        """One version of a file, the newest if none is named; None if it is not there.

        Raises:
            ConfigurationError: The runner has no artifact service.
            InputError: The name cannot be one.
            StorageError: The service failed.
        """
        return await self._artifacts().load_artifact(**self._session_key, filename=filename, version=version)

    async def list_artifacts(self) -> list[str]:
        """The names of the session's files and, with `user:` before them, of the user's; sorted."""
        return await self._artifacts().list_artifact_keys(**self._session_key)

    async def get_artifact_version(self, filename: str, version: int | None = None) -> ArtifactVersion | None:
        """What is known of one version of a file, the newest if none is named; None if it is not there."""
        return await self._artifacts().get_artifact_version(**self._session_key, filename=filename, version=version)

    async def search_memory(self, query: str) -> SearchMemoryResponse:
        """What the user's memories in this app say to `query`, the best first.

        Raises:
            ConfigurationError: The runner has no memory service.
            StorageError: The service failed.
        """
        return await self._memory().search_memory(**self._user_key, query=query)

    def _credentials(self) -> BaseCredentialService:
        if service := self._invocation.credential_service:
            return service
        raise ConfigurationError(
            "this runner keeps no credentials; write Runner(credential_service=InMemoryCredentialService(), ...)"
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
            "this runner keeps no artifacts; write Runner(artifact_service=InMemoryArtifactService(), ...)"
        )

    def _memory(self) -> BaseMemoryService:
        if service := self._invocation.memory_service:
            return service
        raise ConfigurationError(
            "this runner keeps no memories; write Runner(memory_service=InMemoryMemoryService(), ...)"
        )


class Context(ReadonlyContext):
    """Handed to callbacks (`CallbackContext`), tools (`ToolContext`) and nodes of graphs: one class, three names."""

    node_path: str = ""
    """In a graph: which run of which node this is, as `graph@1/node@2`."""
    run_id: str = ""
    """In a graph: the last step of `node_path`."""
    attempt_count: int = 1
    """In a graph: 1 at first, and one more each time that the node is run again after an error."""
    resume_inputs: Mapping[str, Any] = MappingProxyType({})
    """In a graph: what was answered to this node's questions, by their `interrupt_id`."""
    auth_credential: AuthCredential | None = None
    """What a tool is let in with. Its secrets are taken out of the result."""
    long_running: bool = False
    """Set it in a tool: what the tool returns is not the outcome, and the run ends until that is sent."""
    waits_inside: bool = False
    """Set it in a tool: something that it does waits for an answer, and it is called again when that is there."""
    attempt: int = 1
    """In a tool: 1 at first. More: it was called for this call before, and may have taken effect then."""
    repeated: int = 0
    """In a tool: the number of this attempt if an interrupted one before it may have taken effect; else 0."""
    failed_at: str | None = None
    """Where in a notebook's cells the tool raised, as `In[7] line 4`. None: it did not, or not in a cell."""
    shown: list[dict[str, Any]] | None = None
    """What a person is shown of the tool's result; see `tools.previews`."""
    nested_usage: list[dict[str, Any]] | None = None
    """Tokens of the models that a tool asked apart from the session, as `events.usage` writes them."""
    speaks: bool = False
    """Set it in a tool beside `actions.skip_summarization`: its result is also said in words, as the answer."""
    finished: bool = False
    """Set it in a tool: the work of its agent is done; what came of it is `output`."""
    output: Any = None
    """What the event with the tool's result has as `output`: JSON."""
    is_abandoned: bool = False
    """In a tool: its function goes on in a thread although the call has ended."""
    _key: str = ""
    _state: State | None = None

    def __init__(
        self,
        invocation_context: InvocationContext,
        event_actions: EventActions | None = None,
        *,
        function_call_id: str | None = None,
        tool_confirmation: ToolConfirmation | None = None,
        taken_up: bool = False,
    ) -> None:
        super().__init__(invocation_context)
        self.actions = event_actions or no_actions()
        """What the event that follows will do; a tool's land on the event with its result."""
        self.function_call_id = function_call_id
        """The call that this tool answers; None in callbacks of agents and models."""
        self.tool_confirmation = tool_confirmation
        """What a human decided of this call. None: nobody was asked yet."""
        self.taken_up = taken_up
        """True: this call is made again, since something inside it was answered."""

    @property
    def state(self) -> State:
        """The session's state. A write is seen at once by what runs later, and kept with the event that follows."""
        if self._state is None:
            of = self._invocation
            self._state = State(
                of.session.state, self.actions.state_delta, of.state_schema, only_json=of.keeps_only_json
            )
        return self._state

    def settle(self) -> None:
        """Let the event that follows carry what was changed in the state in place, too; raises as `State.settle`."""
        if self._state is not None:
            self._state.settle()

    def close(self, function: str, keeper: int | None = None) -> None:
        """Drop what `function` still writes to the state, as `State.close` does."""
        self.state.close(function, keeper)

    def abandon(self, function: str, outcome: Future[Any]) -> None:
        """Take note that `function` goes on in another thread although its call has ended."""
        self.is_abandoned = True
        self.close(f"{function}()", threading.get_ident())
        self._invocation.shared.abandoned.append((f"{function}()", outcome))

    @property
    def custom_metadata(self) -> dict[str, Any]:
        """A copy of `RunConfig.custom_metadata` that the run's callbacks and tools share, and may change."""
        return self._invocation.custom_metadata

    @property
    def branch(self) -> str | None:
        """The branch of the agent: agents on sister branches do not see each other's events."""
        return self._invocation.branch

    @property
    def isolation_scope(self) -> str | None:
        """The scope of the events that the agent sees. None: the events without a scope."""
        return self._invocation.isolation_scope

    @property
    def idempotency_key(self) -> str:
        """In a tool: the same at every attempt of this call, another for each other call. 32 hexadecimal digits."""
        of = self._invocation
        return (
            self._key
            or Intent(run_id=of.invocation_id, branch=of.branch or "", call_id=self.function_call_id or "").key
        )

    def note_attempt(self, attempt: Attempt) -> None:
        """This is that attempt of the call."""
        self.attempt, self._key = attempt.number, attempt.intent.key

    def get_invocation_context(self) -> InvocationContext:
        """The invocation itself; set its `end_invocation` to stop before the next step."""
        return self._invocation

    @property
    def route(self) -> bool | int | str | list[bool | int | str] | None:
        """In a graph: which of the node's ways to go; set it. A list goes several."""
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
        """Run another node, or what can be made into one, from within a node of a graph.

        When something in it waits for an answer, so does the node that calls this. It then runs again from its first
        line, and what has ended before gives what it gave then, without a second run: it is known by its name and the
        order of the calls, or by `run_id`. An error of it is told at once, and raised here as it is.

        Args:
            node: What it stands for, as in the edges of a Workflow.
            node_input: What it gets.
            use_as_output: Its output is that of the node that calls this, and told once, on that one's branch.
            run_id: What this run is known by in the place of a number; a second run under it is the first one.
            use_sub_branch: Its agents do not see what happens beside them.
            override_branch: It runs on this one, and not on that of the node that calls this.
            override_isolation_scope: Its agents see the events of this scope, and theirs are in it. None: each run is
                alone. An agent with a task keeps its own.
            raise_on_wait: A node with `wait_for_output` that ends without one ends this node as well.

        Returns:
            Its output; None if it had none.

        Raises:
            ConfigurationError: Called outside a graph; `run_id` is a number, or a path; or two nodes are to give the
                output.

        Source: google-adk 2.13, `Context.run_node`.
        """
        raise ConfigurationError("run_node belongs to the nodes of a Workflow; here is none")

    def request_confirmation(self, *, hint: str | None = None, payload: Any = None) -> None:
        """Ask a human before going on: the run pauses after this step, and the tool is called again with the answer.

        Args:
            hint: What the person is asked. None: whether the call may run.
            payload: JSON to be filled in beside yes or no.

        Raises:
            ConfigurationError: Called outside a tool.
        """
        if not self.function_call_id:
            raise ConfigurationError("request_confirmation belongs to a tool call; a callback has none to confirm")
        asked = ToolConfirmation(hint=hint or "", payload=payload)
        self.actions.requested_tool_confirmations[self.function_call_id] = asked

    def request_credential(self, auth_config: AuthConfig) -> None:
        """Have a person let this tool in: the run pauses after this step, and the tool is called again once they have.

        A tool with an `auth_config` needs no call of this: it is called only when it can be let in.

        Raises:
            ConfigurationError: Called outside a tool.
        """
        if not self.function_call_id:
            raise ConfigurationError("request_credential belongs to a tool call; a callback has none that could wait")
        self.actions.requested_auth_configs[self.function_call_id] = auth_config

    def get_auth_response(self, auth_config: AuthConfig) -> AuthCredential | None:
        """What came of `request_credential`, ready to be used. None: nobody has answered, or not in this invocation."""
        self.auth_credential = self.get_credential(auth_config.credential_key) or self.auth_credential
        return self.get_credential(auth_config.credential_key)

    async def load_credential(self, auth_config: AuthConfig) -> AuthCredential | None:
        """The user's credential that is kept under `auth_config.credential_key`, as it was saved; it may be expired.

        Raises:
            ConfigurationError: The runner has no credential service.
            StorageError: The service failed.
        """
        return await self._credentials().load_credential(auth_config, self)

    async def save_credential(self, auth_config: AuthConfig) -> None:
        """Keep `auth_config.exchanged_auth_credential`, or forget what is kept if that is None. Raises as above."""
        await self._credentials().save_credential(auth_config, self)

    async def save_artifact(
        self, filename: str, artifact: types.Part, custom_metadata: dict[str, Any] | None = None
    ) -> int:
        """Keep `artifact` as the newest version of a file of this session, or of the user if it begins with `user:`.

        The event that follows tells of it in `actions.artifact_delta`.

        Returns:
            The version; the first is 0.

        Raises:
            ConfigurationError: The runner has no artifact service.
            InputError: The name cannot be one, or `artifact` is neither text nor inline_data nor file_data.
            StorageError: The service failed; nothing was kept.
        """
        service = self._artifacts()
        version = await service.save_artifact(
            **self._session_key, filename=filename, artifact=artifact, custom_metadata=custom_metadata
        )
        self.actions.artifact_delta[unicodedata.normalize("NFC", filename)] = version
        return version

    async def add_session_to_memory(self) -> None:
        """Keep what was said in this session so far; call it after every turn. Raises as `search_memory`."""
        memory, invocation = self._memory(), self._invocation
        if invocation.shared.whole:  # its session has the id of another one, which it is not to take the place of
            session = self.session
            await memory.add_events_to_memory(
                app_name=session.app_name,
                user_id=session.user_id,
                session_id=invocation.invocation_id,
                events=session.events,
            )
        else:
            await memory.add_session_to_memory(self.session)

    async def add_events_to_memory(
        self, *, events: Sequence[Event], custom_metadata: Mapping[str, Any] | None = None
    ) -> None:
        """Keep what was said in `events`, beside what is kept; `custom_metadata` is JSON. Raises as `search_memory`."""
        await self._memory().add_events_to_memory(
            **self._user_key, session_id=self.session.id, events=events, custom_metadata=custom_metadata
        )

    async def add_memory(
        self, *, memories: Sequence[MemoryEntry], custom_metadata: Mapping[str, Any] | None = None
    ) -> None:
        """Keep `memories` as they are; one with the id of a kept one takes its place. Raises as `search_memory`."""
        await self._memory().add_memory(**self._user_key, memories=memories, custom_metadata=custom_metadata)

    async def delete_memory(self, memory_id: str) -> None:
        """Forget one memory, by the `id` that a search told. No error if there is none. Raises as `search_memory`."""
        await self._memory().delete_memory(**self._user_key, memory_id=memory_id)


ToolContext = CallbackContext = Context
