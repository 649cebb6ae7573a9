"""A session and the agent that answers in it: its events, state, artifacts and interrupted runs."""

import json
import re
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypedDict, Unpack, cast
from weakref import WeakKeyDictionary

from adk_nb import sync, types
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.agents.tree import version_of
from adk_nb.apps.app import App
from adk_nb.artifacts.base_artifact_service import BaseArtifactService
from adk_nb.artifacts.in_memory_artifact_service import InMemoryArtifactService
from adk_nb.auth.credential_service.base_credential_service import BaseCredentialService
from adk_nb.concurrency.generators import run_in_slices
from adk_nb.errors import ConfigurationError, InputError, PendingError, SessionBusyError
from adk_nb.events.event import Event
from adk_nb.events.event_actions import DELETED, EventActions
from adk_nb.memory.base_memory_service import BaseMemoryService
from adk_nb.memory.in_memory_memory_service import InMemoryMemoryService
from adk_nb.notebook.chat import past
from adk_nb.notebook.chat.interrupts import open_message
from adk_nb.notebook.chat.past import Rewound
from adk_nb.notebook.chat.reply import Reply
from adk_nb.notebook.view.answers import Status
from adk_nb.notebook.view.plain_text import one_line
from adk_nb.notebook.view.run_view import RunView
from adk_nb.plugins.plugin_manager import PluginManager
from adk_nb.runners import Runner, current_session
from adk_nb.runtime.history import History, history_of
from adk_nb.runtime.interrupts import APPROVALS, Interrupt
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.runtime.live_request_queue import LiveRequestQueue
from adk_nb.runtime.open_calls import close_interrupted_run
from adk_nb.runtime.rewind import fork
from adk_nb.runtime.run_config import ResumabilityConfig, RunConfig
from adk_nb.sessions.base_session_service import BaseSessionService, refuse_control, strip_id
from adk_nb.sessions.in_memory_session_service import InMemorySessionService
from adk_nb.sessions.journal import Journal, Run, this_process
from adk_nb.sessions.session import Session
from adk_nb.sessions.state import detached

_answering: set["Conversation"] = set()
"""Conversations in which an agent is answering: a service without a journal does not know."""
_KEY = re.compile(r"(?:(?:app|user):)?[^\W\d]\w*")
_RESUMABLE = ResumabilityConfig(is_resumable=True)
_MAX_MESSAGE = 60
"""Characters of the message that a run answers."""
_SLICE_ABOVE = 100
"""New events; more than this many are read in slices, so that the event loop keeps running."""


class Services(TypedDict, total=False):
    """The services that store a conversation; as the arguments of `Chat`."""

    app_name: str | None
    session_service: BaseSessionService | None
    artifact_service: BaseArtifactService | None
    memory_service: BaseMemoryService | None
    credential_service: BaseCredentialService | None


class Versions(Protocol):
    """Keeps tools as they were before they were redefined."""

    def label(self, interrupt: Interrupt, /) -> str:
        """The version that an approval was requested for, as `v2`; empty if it is not known any more."""
        ...

    def as_asked(self, approvals: Sequence[Interrupt], /) -> AbstractContextManager[None]:
        """Within this, the tools of the calls have their earlier version until each call has its result.

        Each approval must have a `label`.
        """
        ...

    def answered(self, call_id: str, /) -> None:
        """Note that a call has its result."""
        ...


def _no_runner(_: Interrupt) -> None:
    return None


@dataclass(frozen=True, kw_only=True)
class InNotebook:
    """What a notebook knows of a chat that its magics reach; the defaults are for a chat that only Python has."""

    magic: Callable[[], str] = str
    """Returns the `%confirm` that reaches this session; empty: only Python has the chat."""
    metadata: Callable[[], dict[str, Any]] = dict
    """Returns the metadata of the events of a turn that begins."""
    versions: Versions | None = None
    newest: Callable[[], Any] = lambda: None
    """Returns the agent as it is defined now. Anything else than an agent: it is the one of the conversation."""
    views: dict[str, tuple[RunView, ...]] = field(default_factory=dict[str, tuple[RunView, ...]])
    """Id of an interrupt -> the views that have its card; one for all chats of the session."""
    runner_of: Callable[[Interrupt], Any] = _no_runner
    """Returns the `TurnRunner` of the chat of this session that takes the answer. None: it is this one."""
    on_reply: Callable[[Reply], None] | None = None
    """Called with the reply of each turn, also of one that a click on a card resumed."""


class Conversation:
    """The session of a `Chat` and the agent that answers in it, as turns and cards use them. Displays nothing.

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
        self.runner = _runner_of(agent, services)
        """Holds the services. Other chats may use the same runner, so it is never changed."""
        self.owns_runner = not isinstance(agent, Runner)
        """True: the runner was made for this conversation."""
        self.service = self.runner.session_service
        self.agent = cast(BaseAgent, self.runner.agent)
        """The agent that answers."""
        self.plugins = PluginManager(self.runner.plugin_manager.plugins)
        """The runner's plugins, and the conversation's own."""
        self.sticky = self.runner.sticky_agents
        """As `Runner.sticky_agents`."""
        self.notebook = InNotebook()
        self._history = History()
        self._reading = threading.RLock()

    def run(
        self,
        agent: BaseAgent,
        message: types.Content | None,
        config: RunConfig,
        invocation_id: str | None = None,
        state_delta: Mapping[str, Any] | None = None,
        live_requests: LiveRequestQueue | None = None,
    ) -> AsyncGenerator[Event, None]:
        """Let `agent` answer a message, or resume a run. Yields as `Runner.run_async`, the message first.

        With `live_requests` it is a live conversation, as `Runner.run_live`.
        """
        # A copy works in the sessions and queues of the original.
        runner = copy(self.runner)
        runner.agent, runner.plugin_manager, runner.sticky_agents = agent, self.plugins, self.sticky
        runner.auto_create_session = True
        if runner.app is None:
            runner.resumability_config = resumability(agent) if isinstance(self.service, Journal) else None
        of_session: dict[str, Any] = {"user_id": self.user_id, "session_id": self.session_id, "run_config": config}
        # The methods of the class: those of a subclass may take other arguments.
        if live_requests:
            return Runner.run_live(runner, **of_session, live_request_queue=live_requests, yield_user_message=True)
        return Runner.run_async(
            runner,
            **of_session,
            new_message=message,
            invocation_id=invocation_id,
            state_delta=dict(state_delta or {}),
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

    def open_after(self, events: Sequence[Event]) -> list[Interrupt]:
        """The interrupts that are open after these events of the session."""
        with self.history(events) as history:
            return history.interrupts()

    async def artifact(self, name: str, version: int | None = None) -> types.Part | None:
        """An artifact of the session or its user: that version, else the newest. None: there is none."""
        service = self.runner.artifact_service
        return await service.load_artifact(**self.key, filename=name, version=version) if service else None

    async def append(self, delta: dict[str, Any]) -> Event:
        """Append a change of the state, as an event of the user outside of any run; returns it.

        The session is created if needed.
        """
        event = Event(author="user", actions=EventActions(state_delta=delta))
        session = await self.service.get_session(**self.key) or await self.service.create_session(**self.key)
        await self.service.append_event(session, event)
        return event

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
        same = [chat for chat in _answering if chat.service is self.service and chat.key == self.key]
        if not dry_run and same:
            raise InputError(f"session {self.session_id!r} is still answering in another chat; wait for it, or stop it")
        session = await self.service.get_session(**self.key) or Session(id=self.session_id)
        return await past.rewind(session, self.service, self.runner.artifact_service, to, dry_run=dry_run)

    async def fork(self, name: str | None, at: str | None) -> str:
        """As `Chat.fork`; returns the name of the copy."""
        if (session := await self.loaded()) is None:
            raise InputError(f"session {self.session_id!r} has no messages yet; there is nothing to copy")
        name = name or past.unused_name(self.session_id, await self.session_ids())
        await fork(session, self.service, self.runner.artifact_service, session_id=name, up_to_event_id=at)
        return name

    async def session_ids(self) -> list[str]:
        """Those of all sessions of the user, the newest first."""
        listed = await self.service.list_sessions(app_name=self.runner.app_name, user_id=self.user_id)
        return [other.id for other in sorted(listed.sessions, key=lambda other: -other.last_update_time)]

    def in_session(self, session_id: str) -> "Conversation":
        """The same agent, in another session of the user."""
        other = Conversation(self.runner, session_id=session_id, user_id=self.user_id)
        other.agent, other.sticky = self.agent, self.sticky
        other.notebook = replace(self.notebook, magic=str, views={}, runner_of=_no_runner)
        return other

    async def last_interrupted_run(self, *, edited: bool = True) -> tuple[Run, Session]:
        """The run of the session that was interrupted last.

        Args:
            edited: Accept a run whose agent or tools were edited since.

        Raises:
            InputError: No run was interrupted.
            SessionBusyError: No run was interrupted, and one is under way.
            PendingError: The agent or a tool was edited since, and `edited` is False.
        """
        session, magic = await self.loaded(), self.notebook.magic()
        runs = await interrupted_runs(self.service, session)
        if session is None or not runs:
            if run := await active_run(self.service, session):
                raise SessionBusyError(self.session_id, run.owner, run.started)
            with self.history(session.events if session else ()) as history:
                approvals = history.interrupts(kinds=APPROVALS)
            left = open_message(approvals, magic) if approvals else "there is nothing to resume or to drop"
            raise InputError(f"no run of session {self.session_id!r} was interrupted; {left}")
        if not edited and runs[-1].version not in ("", version_of(self.agent)):
            raise PendingError(edited_notice(self.agent.name, magic))
        return runs[-1], session

    async def refuse_interrupted_run(self) -> None:
        """Refuse a new message while an interrupted run is open.

        Raises:
            PendingError: One is open.
        """
        session = await self.loaded()
        runs = await interrupted_runs(self.service, session)
        if session is None or not runs:
            return
        with self.history(session.events) as history:
            approvals = history.interrupts(kinds=APPROVALS)
        if not approvals:
            raise PendingError(interrupted_notice(runs[-1], session, self.notebook.magic()))

    @property
    def key(self) -> dict[str, Any]:
        """The arguments of the services for the session."""
        return self.key_of(self.session_id)

    def key_of(self, session_id: str) -> dict[str, Any]:
        """As `key`, for another session of the user."""
        return {"app_name": self.runner.app_name, "user_id": self.user_id, "session_id": session_id}


def _runner_of(agent: BaseAgent | App | Runner, services: Services) -> Runner:
    if isinstance(agent, Runner):
        if names := sorted(name for name, value in services.items() if value is not None):
            raise ConfigurationError(f"Chat takes {', '.join(names)} from its runner; give them to Runner(...)")
        return agent
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


# ---- the state


class ChatState(MutableMapping[str, Any]):
    """A session's state as it stands now; a write is an event, so that it is in the history like any other."""

    def __init__(self, conversation: Callable[[], Conversation]) -> None:
        self._conversation = conversation

    def __getitem__(self, key: str) -> Any:
        return self.to_dict()[key]

    def __setitem__(self, key: str, value: Any) -> None:
        sync.run(self._conversation().append({key: value}))

    def __delitem__(self, key: str) -> None:
        if key not in self:
            raise KeyError(key)
        self[key] = dict(DELETED)

    def __iter__(self) -> Iterator[str]:
        return iter(self.to_dict())

    def __len__(self) -> int:
        return len(self.to_dict())

    def __repr__(self) -> str:
        return repr(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """All keys with their values, in a dict of the caller's own."""
        session = sync.run(self._conversation().loaded())
        return {key: detached(value) for key, value in session.state.items()} if session else {}


def check_key(key: str, where: str = "the state") -> None:
    """Raise an InputError, which begins with `where`, if the user may not write that key."""
    if key.startswith("temp:"):
        raise InputError(f"{where}: {key!r} would last for one turn only; leave temp: out")
    if not _KEY.fullmatch(key):
        raise InputError(f"{where}: {key!r} cannot be a key; write name=value, user:name=value or app:name=value")


def typed_change(key: str, text: str | None) -> dict[str, Any]:
    """The change of one key, for an event.

    Args:
        key: Checked as by `check_key`.
        text: The value as JSON, or else as text. None: the key is deleted.

    Raises:
        InputError: The key cannot be one, or the text begins like JSON and is not valid.
    """
    if text is None:
        return {key: dict(DELETED)}
    check_key(key)
    try:
        return {key: json.loads(text, parse_constant=lambda word: word)}
    except (ValueError, RecursionError) as error:
        if text.lstrip()[:1] in ("{", "[", '"'):
            raise InputError(f"the value of {key!r} begins like JSON, but is not valid JSON: {error}") from error
        return {key: text}


# ---- interrupted runs


async def interrupted_runs(service: BaseSessionService, session: Session | None) -> list[Run]:
    """The runs of a session that did not end and that no process works on, oldest first."""
    if session is None or not isinstance(service, Journal):
        return []
    dead = [run for run in await service.unfinished(session) if not run.is_alive]
    return [run for run in dead if history_of(session).first_index(run.id) is not None]


async def active_run(service: BaseSessionService, session: Session | None) -> Run | None:
    """The run of a session that this process or another one works on. None: there is none."""
    if session is None or not isinstance(service, Journal):
        return None
    return next((run for run in await service.unfinished(session) if run.is_alive), None)


async def drop(service: BaseSessionService, session: Session, run: Run) -> None:
    """Close an interrupted run without resuming it; open calls get the results that are known.

    Raises:
        SessionBusyError: Another run works on the session.
    """
    if not isinstance(service, Journal):
        return
    lease = await service.claim(session, run.id, owner=this_process())
    outcome = None
    try:
        nobody = BaseAgent(name="nobody")
        at = InvocationContext(agent=nobody, session=session, session_service=service)
        await close_interrupted_run(at, run.id)
        outcome = "cancelled"
    finally:
        await lease.release(outcome)


def resumability(agent: BaseAgent) -> ResumabilityConfig | None:
    """The setting that lets workflow agents write checkpoints; None for LLM agents alone, which resume without."""
    has_workflow = not isinstance(agent, LlmAgent) or any(resumability(member) for member in agent.members)
    return _RESUMABLE if has_workflow else None


def interrupted_notice(run: Run, session: Session, magic: str) -> str:
    """A notice of an interrupted run, with what to type to resume it or to give it up."""
    first = history_of(session).run(run.id)[0]
    answers = f" that answers {one_line(first.text, _MAX_MESSAGE)!r}" if first.author == "user" and first.text else ""
    resume, drop = resume_commands(magic)
    return (
        f"the run{answers} in session {session.id!r} was interrupted; resume it with {resume}, or give it up with "
        f"{drop}"
    )


def short_interrupted_notice(magic: str) -> str:
    """The notice for places that name the session already."""
    resume, drop = resume_commands(magic)
    return f"a run was interrupted: {resume}, or {drop}"


def edited_notice(agent: str, magic: str) -> str:
    """The notice that an agent or a tool changed since a run was interrupted, with the choices."""
    resume, drop = resume_commands(magic)
    resume_edited = f"{resume} --edited" if magic else "chat.resume(edited=True)"
    return (
        f"{agent} or a tool of it was edited since this run was interrupted; resume it as it is now with "
        f"{resume_edited}, or give it up with {drop}"
    )


def resume_commands(magic: str) -> tuple[str, str]:
    """The lines to type to resume a run and to drop it.

    Args:
        magic: The `%confirm` line of the session, whose options name it; empty for a chat that only Python code
            reaches.
    """
    if not magic:
        return "chat.resume()", "chat.drop()"
    options = magic.removeprefix("%confirm")
    return f"%session resume{options}", f"%session drop{options}"


class Follower(Protocol):
    """Is told of the turns of a session, on the event loop of all runs."""

    @property
    def view(self) -> object:
        """Its own view; it is not told of turns that are shown there."""
        ...

    @property
    def cell(self) -> str:
        """The id of its cell; empty if it is unknown. The cell, run again, has another follower."""
        ...

    def turn_begins(self, place: str, session: Session | None, stop: Callable[[], None]) -> None:
        """A turn begins. `place`: of its view; `session`: before it; `stop`: stops it."""
        ...

    def turn_event(self, event: Event) -> None:
        """An event of it, partial or complete."""
        ...

    def turn_ends(self, status: Status, error: str | None) -> None:
        """It has ended, or pauses."""
        ...

    def turns_undone(self, session: Session | None) -> None:
        """Turns were undone; `session`: as it is now."""
        ...


_followers: WeakKeyDictionary[Any, dict[tuple[str, ...], list[Follower]]] = WeakKeyDictionary()
"""By the service of the sessions, then by app, user and session: whichever cell, box or click begins a turn."""


def followers_of(conversation: Conversation, view: object) -> list[Follower]:
    """The followers of a session, without that of `view`."""
    known = _followers.get(conversation.service, {}).get(tuple(conversation.key.values()), [])
    return [follower for follower in known if follower.view is not view]


async def tell_undone(service: BaseSessionService, key: Mapping[str, Any]) -> None:
    """Tell the followers of a session that turns of it were undone. `key`: the arguments of the service."""
    if known := list(_followers.get(service, {}).get(tuple(key.values()), ())):
        session = await service.get_session(**key)
        for follower in known:
            follower.turns_undone(session)


def follow(conversation: Conversation, follower: Follower) -> None:
    """Tell the follower of the turns of this session from now on, and of no other one."""
    earlier = [one for known in _followers.values() for each in known.values() for one in each]
    for other in earlier:
        if other is follower or (follower.cell and other.cell == follower.cell):
            unfollow(other)
    _followers.setdefault(conversation.service, {}).setdefault(tuple(conversation.key.values()), []).append(follower)


def unfollow(follower: Follower) -> None:
    """Tell the follower of nothing any more."""
    for sessions in _followers.values():
        for known in sessions.values():
            if follower in known:
                known.remove(follower)
