"""A session and the agent that answers in it: its events, state and artifacts, its file, and its interrupted runs."""

import os
import threading
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from copy import copy
from typing import Any, TypedDict, Unpack, cast

from adk_nb import types
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.tree import version_of
from adk_nb.apps.app import App
from adk_nb.artifacts.base_artifact_service import BaseArtifactService
from adk_nb.artifacts.in_memory_artifact_service import InMemoryArtifactService
from adk_nb.auth.credential_service.base_credential_service import BaseCredentialService
from adk_nb.concurrency.time_slices import run_in_slices
from adk_nb.errors import AlreadyExistsError, ConfigurationError, InputError, PendingError, SessionBusyError
from adk_nb.events.event import Event
from adk_nb.memory.base_memory_service import BaseMemoryService
from adk_nb.memory.in_memory_memory_service import InMemoryMemoryService
from adk_nb.notebook.chat import interrupted_runs, past_turns
from adk_nb.notebook.chat.interrupts import open_message
from adk_nb.notebook.chat.past_turns import Rewound
from adk_nb.plugins.plugin_manager import PluginManager
from adk_nb.runners import Runner, current_session
from adk_nb.runtime.history import History
from adk_nb.runtime.interrupts import APPROVALS
from adk_nb.runtime.rewind import fork
from adk_nb.runtime.run_config import RunConfig
from adk_nb.sessions import session_file
from adk_nb.sessions.base_session_service import BaseSessionService, refuse_control, strip_id
from adk_nb.sessions.in_memory_session_service import InMemorySessionService
from adk_nb.sessions.journal import Journal, Run
from adk_nb.sessions.session import Session

_answering: set["Conversation"] = set()
"""Conversations in which an agent is answering: a service without a journal does not know."""
_SLICE_ABOVE = 100
"""New events; more than this many are read in slices, so that the event loop keeps running."""


class Services(TypedDict, total=False):
    """The services that store a conversation; as the arguments of `Chat`."""

    app_name: str | None
    session_service: BaseSessionService | None
    artifact_service: BaseArtifactService | None
    memory_service: BaseMemoryService | None
    credential_service: BaseCredentialService | None


class Conversation:
    """The session of a `Chat`: its history, state and artifacts. Displays nothing.

    Args: as those of `Chat`.
    """

    def __init__(
        self,
        agent: BaseAgent | App | Runner,
        *,
        session_id: str,
        user_id: str,
        **services: Unpack[Services],
    ) -> None:
        if not isinstance(agent, BaseAgent | App | Runner):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigurationError(f"Chat takes an agent, got {agent!r:.60}; write Chat(Agent(name=...))")
        if not session_id.strip():
            raise InputError("a session needs a name; write Chat(agent, session='main')")
        refuse_control(user_id=user_id, session=strip_id(session_id))
        self.session_id = session_id
        self.user_id = user_id
        self.runner = _checked_runner(agent, services) if isinstance(agent, Runner) else _runner_of(agent, services)
        """Holds the services. Other chats may use the same runner, so it is never changed."""
        self._owns_runner = not isinstance(agent, Runner)
        self.service = self.runner.session_service
        self.agent = cast(BaseAgent, self.runner.agent)
        """The agent that answers."""
        self.plugins = PluginManager(self.runner.plugin_manager.plugins)
        """The runner's plugins, and the conversation's own."""
        self.sticky = self.runner.sticky_agents
        """As `Runner.sticky_agents`."""
        self._history = History()
        self._reading = threading.RLock()

    def run(
        self,
        agent: BaseAgent,
        message: types.Content | None,
        config: RunConfig,
        invocation_id: str | None = None,
        state_delta: Mapping[str, Any] | None = None,
    ) -> AsyncGenerator[Event, None]:
        """Let `agent` answer a message, or resume a run. Yields as `Runner.run_async`, the message first."""
        # A copy works in the sessions and queues of the original.
        runner = copy(self.runner)
        runner.agent, runner.plugin_manager, runner.sticky_agents = agent, self.plugins, self.sticky
        runner.auto_create_session = True
        if runner.app is None:
            runner.resumability_config = (
                interrupted_runs.resumability(agent) if isinstance(self.service, Journal) else None
            )
        return runner.run_async(
            user_id=self.user_id,
            session_id=self.session_id,
            new_message=message,
            invocation_id=invocation_id,
            state_delta=dict(state_delta or {}),
            run_config=config,
            yield_user_message=True,
        )

    async def loaded(self) -> Session | None:
        """The stored session, read-only. None: it has no events yet."""
        session = await current_session(self.runner, self.user_id, self.session_id)
        if session and len(session.events) - self._history.event_count > _SLICE_ABOVE:
            history = History()  # a new one until it is complete: other threads may use the old one meanwhile
            await run_in_slices(history.steps(session.events))
            with self._reading:
                self._history = history
        return session

    @asynccontextmanager
    async def newest_history(self) -> AsyncGenerator[History]:
        """The read model of the stored session."""
        session = await self.loaded()
        with self.history(session.events if session else ()) as history:
            yield history

    @contextmanager
    def history(self, events: Sequence[Event] | None = None) -> Generator[History]:
        """The read model of the session, for one thread at a time.

        Args:
            events: All events of the session; only those since the last call are read. None: as of the last call.
        """
        with self._reading:
            yield self._history if events is None else self._history.update(events)

    async def artifact(self, name: str, version: int | None = None) -> types.Part | None:
        """An artifact of the session or its user: that version, else the newest. None: there is none."""
        service, key = self.runner.artifact_service, self._session_key(self.session_id)
        return await service.load_artifact(**key, filename=name, version=version) if service else None

    async def append(self, event: Event) -> None:
        """Append an event outside of any run; the session is created if needed."""
        key = self._session_key(self.session_id)
        session = await self.service.get_session(**key) or await self.service.create_session(**key)
        await self.service.append_event(session, event)

    async def save(self, file: str | os.PathLike[str], *, replace: bool) -> None:
        """As `Chat.save`."""
        if (session := await self.loaded()) is None:
            raise InputError(f"session {self.session_id!r} has no messages yet; there is nothing to save")
        session_file.write(session, file, replace=replace)

    async def load(self, file: str | os.PathLike[str], name: str | None) -> None:
        """As `Chat.load`."""
        loaded = session_file.read(file)
        name = session_file.check_name(name or loaded.name)
        try:
            await loaded.put(self.service, **self._session_key(name))
        except AlreadyExistsError as error:
            raise InputError(f"{error}; write chat.load(..., name='another')") from error
        self.session_id = name

    @contextmanager
    def answering(self) -> Generator[None]:
        """Within this, an agent answers in the session; `rewind` of any chat refuses meanwhile."""
        _answering.add(self)
        try:
            yield
        finally:
            _answering.discard(self)

    async def rewind(self, to: int | str, *, dry_run: bool) -> Rewound:
        """As `Chat.rewind`."""
        if not dry_run and any(map(self._is_same_session, _answering)):
            raise InputError(f"session {self.session_id!r} is still answering in another chat; wait for it, or stop it")
        key = self._session_key(self.session_id)
        session = await self.service.get_session(**key) or Session(id=self.session_id)
        return await past_turns.rewind(session, self.service, self.runner.artifact_service, to, dry_run=dry_run)

    async def fork(self, name: str | None, at: str | None) -> str:
        """As `Chat.fork`; returns the name of the copy."""
        if (session := await self.loaded()) is None:
            raise InputError(f"session {self.session_id!r} has no messages yet; there is nothing to copy")
        listed = await self.service.list_sessions(app_name=self.runner.app_name, user_id=self.user_id)
        name = name or past_turns.unused_name(self.session_id, {other.id for other in listed.sessions})
        await fork(session, self.service, self.runner.artifact_service, session_id=name, up_to_event_id=at)
        return name

    def in_session(self, session_id: str) -> "Conversation":
        """The same agent, in another session of the user."""
        copy = Conversation(self.runner, session_id=session_id, user_id=self.user_id)
        copy.agent, copy.sticky = self.agent, self.sticky
        return copy

    async def last_interrupted_run(self, *, edited: bool = True, magic: str = "") -> tuple[Run, Session]:
        """The run of the session that was interrupted last.

        Args:
            edited: Accept a run whose agent or tools were edited since.
            magic: The `%confirm` line of the session; empty for a chat that only Python code reaches.

        Raises:
            InputError: No run was interrupted.
            SessionBusyError: No run was interrupted, and one is under way.
            PendingError: The agent or a tool was edited since, and `edited` is False.
        """
        session = await self.loaded()
        runs = await interrupted_runs.interrupted_runs(self.service, session)
        if session is None or not runs:
            if run := await interrupted_runs.active_run(self.service, session):
                raise SessionBusyError(self.session_id, run.owner, run.started)
            with self.history(session.events if session else ()) as history:
                approvals = history.interrupts(kinds=APPROVALS)
            left = open_message(approvals, magic) if approvals else "there is nothing to resume"
            raise InputError(f"no run of session {self.session_id!r} was interrupted; {left}")
        if not edited and runs[-1].version not in ("", version_of(self.agent)):
            raise PendingError(interrupted_runs.edited_notice(self.agent.name, magic))
        return runs[-1], session

    async def close(self) -> None:
        """Close the toolsets and plugins of an agent or app; a runner's stay open."""
        if self._owns_runner:
            await self.runner.close()

    async def drop(self) -> None:
        """As `Chat.drop`."""
        run, session = await self.last_interrupted_run()
        await interrupted_runs.drop(self.service, session, run)

    async def refuse_interrupted_run(self, magic: str) -> None:
        """Refuse a new message while an interrupted run is open. `magic`: as for `last_interrupted_run`.

        Raises:
            PendingError: One is open.
        """
        session = await self.loaded()
        runs = await interrupted_runs.interrupted_runs(self.service, session)
        if session is None or not runs:
            return
        with self.history(session.events) as history:
            approvals = history.interrupts(kinds=APPROVALS)
        if not approvals:
            raise PendingError(interrupted_runs.interrupted_notice(runs[-1], session, magic))

    def _is_same_session(self, other: "Conversation") -> bool:
        keys = self._session_key(self.session_id), other._session_key(other.session_id)
        return self.service is other.service and keys[0] == keys[1]

    def _session_key(self, session_id: str) -> dict[str, Any]:
        return {"app_name": self.runner.app_name, "user_id": self.user_id, "session_id": session_id}


def _runner_of(agent: BaseAgent | App, services: Services) -> Runner:
    app = agent if isinstance(agent, App) else None
    return Runner(
        app=app,
        app_name=services.get("app_name") or (app.name if app else "notebook"),
        agent=None if app else cast(BaseAgent, agent),
        session_service=services.get("session_service") or InMemorySessionService(),
        artifact_service=services.get("artifact_service") or InMemoryArtifactService(),
        memory_service=services.get("memory_service") or InMemoryMemoryService(),
        credential_service=services.get("credential_service"),
        auto_create_session=True,
        serialize_sessions=False,  # a person is told at once that another kernel works on the session
    )


def _checked_runner(runner: Runner, services: Services) -> Runner:
    if names := sorted(name for name, value in services.items() if value is not None):
        raise ConfigurationError(f"Chat takes {', '.join(names)} from its runner; give them to Runner(...)")
    return runner
