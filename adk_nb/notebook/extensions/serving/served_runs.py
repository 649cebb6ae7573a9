"""Runs that clients of a server ask for, in the notebook's chats: with its cards, its views and the newest agents."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator
from contextlib import aclosing
from copy import copy
from typing import Any

from adk_nb import sync, types
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.errors import TurnFailedError, UserError
from adk_nb.events.event import Event
from adk_nb.events.requests import APPROVAL_REQUEST, CREDENTIAL_REQUEST
from adk_nb.notebook.cells.notebook import Notebook
from adk_nb.notebook.cells.session_store import APP, client_app, label, session_name
from adk_nb.notebook.chat.chat import turn_runner
from adk_nb.notebook.chat.chat_box import ChatBox
from adk_nb.notebook.chat.interrupts import refuse_decisions
from adk_nb.notebook.chat.past import typed_text
from adk_nb.notebook.chat.turn import TurnRunner
from adk_nb.notebook.chat.turn_options import RelayedRequest, notice_of
from adk_nb.notebook.view.run_view import RunView
from adk_nb.runners import DEBUG_USER, Runner
from adk_nb.runtime.first_event import Message, RunRequest
from adk_nb.runtime.history import SENT_BY
from adk_nb.runtime.trace import Traces
from adk_nb.sessions.base_session_service import BaseSessionService
from adk_nb.sessions.session import Session

_HEIGHT = 260
"""Pixels of the log of a served session."""
_REQUESTS = {APPROVAL_REQUEST: "an approval request", CREDENTIAL_REQUEST: "a credential request"}
MAX_BOXES = 8
"""Sessions that are shown at once; the one that was used first makes room, unless a card in it is open."""


class NotebookRunner(Runner):
    """A runner for servers: each run is a turn of the notebook's chat with the agent as it is defined then.

    Args:
        notebook: The definitions and the sessions.
        name: The agent, app or runner, by the name in the notebook.
        shows_runs: Show each session in the output of the cell whose context this is.
        shares_sessions: Clients have the notebook's sessions. False: they have their own, with state, files and
            memories of their own.
    """

    def __init__(self, notebook: Notebook, name: str, *, shows_runs: bool, shares_sessions: bool = False) -> None:
        self._notebook = notebook
        self._name = name
        value = notebook.variables.get(name)
        self._source = value if isinstance(value, Runner) else None
        """A runner in a variable: the sessions are its own."""
        sessions = self._source or notebook.sessions
        memory = sessions.memory_service if isinstance(sessions, Runner) else sessions.memory
        artifacts = sessions.artifact_service if isinstance(sessions, Runner) else sessions.artifacts
        super().__init__(
            app_name=self._source.app_name if self._source else APP if shares_sessions else client_app(name),
            agent=notebook.agent(name),
            session_service=self.session_service,
            artifact_service=artifacts,
            memory_service=memory,
            auto_create_session=True,
        )
        self._boxes: OrderedDict[str, tuple[ChatBox, TurnRunner]] = OrderedDict()
        """Session -> the box that shows it, and its turns; the one that was used last at the end."""
        if self._source is None and not shares_sessions:
            notebook.sessions.served.add(name)
        self.traces = Traces(beside=notebook.traces)
        """Of the served agent's turns in sessions that clients have used, and of no other turns."""
        self._shows_runs = shows_runs
        self._waits = False
        self._opening = asyncio.Lock()

    def waiting(self) -> "NotebookRunner":
        """The same, whose runs wait for the answers to approvals and credential requests, and go on with them.

        For protocols in which a task outlives a pause.
        """
        runner = copy(self)
        runner._waits = True
        return runner

    @property
    def agent(self) -> BaseAgent:
        """The agent as it is now.

        Raises:
            AgentNotFoundError: It is not there any more.
        """
        return self._notebook.agent(self._name)

    @agent.setter
    def agent(self, value: Any) -> None:
        """Ignore the agent that the base class got."""

    @property
    def session_service(self) -> BaseSessionService:
        """The sessions, wherever the notebook keeps them now."""
        return self._source.session_service if self._source else self._notebook.sessions.service

    @session_service.setter
    def session_service(self, value: Any) -> None:
        """Ignore the service that the base class got."""

    async def _current_session(self, user_id: str, session_id: str) -> Session | None:
        return await self.session_service.get_session(app_name=self.app_name, user_id=user_id, session_id=session_id)

    async def _start_run(self, request: RunRequest) -> AsyncGenerator[Event, None]:
        """Run a turn of the chat, after those before it; approvals and credentials stay in the notebook."""
        config = request.run_config
        relayed = RelayedRequest(
            message=_content(request.message),
            invocation_id=request.resumed_id,
            state_delta=request.state_delta,
            streams=config.streams,
            live_requests=request.live_request_queue,
            run_config=config,
            sender="A2A client" if self._waits else (config.custom_metadata or {}).get(SENT_BY, "client"),
        )
        name, runner = await self._turns(request.user_id, request.session_id)
        runner.traces = self.traces
        is_first, is_live = True, request.live_request_queue is not None
        turn = self._events(runner, name, relayed, request.abort_signal)
        async with aclosing(turn) as events:
            async for event in events:
                is_typed = event.author == "user" and not (is_live and event.input_transcription)
                is_message, is_first = is_typed and (is_first or is_live), False
                if (config.streams or not event.partial) and (request.yield_user_message or not is_message):
                    yield event

    async def _turns(self, user_id: str, session_id: str) -> tuple[str, TurnRunner]:
        """The session's name in the notebook, and its turns."""
        if self._source:
            name = label(user_id, session_id, DEBUG_USER)
        else:
            name = session_name(app_name=self.app_name, user_id=user_id, session_id=session_id)
        # In a worker: to look something up may wait for the loop.
        chat = await sync.blocking(lambda: self._notebook.chat(self._name, name), thread=True)
        return name, turn_runner(chat)

    async def refuse_answer(self, user_id: str, session_id: str, message: types.Content) -> None:
        """Refuse a message of a live conversation that answers what is decided in the notebook.

        Raises:
            InputError: The request is not open.
            PendingError: It is an approval or a credential request.
        """
        _, runner = await self._turns(user_id, session_id)
        responses = [part.function_response for part in message.parts or () if part.function_response]
        async with runner.conversation.newest_history() as history:
            refuse_decisions(responses, history, runner.conversation.notebook.magic())

    async def _events(
        self, runner: TurnRunner, name: str, request: RelayedRequest, abort: asyncio.Event | None
    ) -> AsyncGenerator[Event, None]:
        feed: asyncio.Queue[Event | None] = asyncio.Queue()
        later: asyncio.Queue[Event | None] = asyncio.Queue()
        if self._waits:
            runner.listeners.add(later.put_nowait)
        request.on_event = feed.put_nowait
        turn = asyncio.create_task(self._turn(runner, name, request, feed))
        stopping = asyncio.create_task(_stop(abort, runner, request, turn)) if abort else None
        own_ids: set[str] = set()
        try:
            while (event := await feed.get()) is not None:
                own_ids.add(event.id)
                yield event
            await turn
            async for event in _until_answered(runner, later, abort) if self._waits else _none():
                if event.id not in own_ids and event.author != "user":
                    yield event
        finally:
            runner.listeners.discard(later.put_nowait)
            if stopping:
                stopping.cancel()
            if not turn.done():
                _end(runner, request, turn)
                await asyncio.wait([turn])

    async def _turn(
        self, runner: TurnRunner, name: str, request: RelayedRequest, feed: asyncio.Queue[Event | None]
    ) -> None:
        question, conversation = _question(request.message), runner.conversation

        async def relay(view: RunView) -> None:
            reply = await runner.relay(request, view)
            if reply.status == "error":
                raise TurnFailedError(reply.error or "the run failed")

        try:
            box = await self._box(runner, name) if self._shows_runs else None
            if box is None:
                await relay(RunView(conversation.agent.name, question or None, None))
            else:
                async with box.one_at_a_time:
                    box.shown.set_agent(conversation.agent, notice_of(conversation.agent))
                    box.shown.set_question(question)
                    try:
                        await relay(box.shown)
                    except UserError as error:
                        box.shown.question_refused(str(error), request.sender)
                        raise
        finally:
            feed.put_nowait(None)

    async def _box(self, runner: TurnRunner, name: str) -> ChatBox:
        """The box of a session, which is opened in the cell of the server."""
        async with self._opening:
            box, owner = self._boxes.pop(name, (None, None))
            if box is None or owner is not runner:
                self._make_room()
                box = ChatBox(runner, f"{name}, over HTTP", height=_HEIGHT)
                await box.show()
            self._boxes[name] = box, runner
            return box

    def _make_room(self) -> None:
        for name, (box, runner) in list(self._boxes.items()):
            if len(self._boxes) < MAX_BOXES:
                return
            if not (box.one_at_a_time.locked() or runner.desk.asks_in(box.shown)):
                del self._boxes[name]
                box.remove()


async def _until_answered(
    runner: TurnRunner, later: asyncio.Queue[Event | None], abort: asyncio.Event | None
) -> AsyncGenerator[Event, None]:
    """The events of turns, while an approval or a credential request is open that is answered in the notebook."""
    aborted = asyncio.create_task(abort.wait()) if abort else None
    try:
        while await runner.is_waiting():
            event = asyncio.create_task(later.get())
            await asyncio.wait([event, aborted] if aborted else [event], return_when=asyncio.FIRST_COMPLETED)
            if not event.done():
                event.cancel()
                return
            if (answered := event.result()) is not None:
                yield answered
        while not later.empty():
            if (answered := later.get_nowait()) is not None:
                yield answered
    finally:
        if aborted:
            aborted.cancel()


async def _none() -> AsyncGenerator[Event, None]:
    return
    yield


async def _stop(abort: asyncio.Event, runner: TurnRunner, request: RelayedRequest, turn: asyncio.Task[None]) -> None:
    await abort.wait()
    _end(runner, request, turn)


def _end(runner: TurnRunner, request: RelayedRequest, turn: asyncio.Task[None]) -> None:
    """Stop a turn as its button would; one that waits for others does not begin."""
    if request.has_begun:
        runner.stop()
    else:
        turn.cancel()


def _question(message: types.Content | None) -> str:
    """A message in the words of a reader; empty if it only resumes a run."""
    if message is None:
        return ""
    response = next((part.function_response for part in message.parts or () if part.function_response), None)
    return typed_text(message) or (f"answers {_REQUESTS.get(response.name or '', 'a question')}" if response else "")


def _content(message: Message | None) -> types.Content | None:
    if isinstance(message, str):
        return types.Content(role="user", parts=[types.Part(text=message)])
    if isinstance(message, list):
        return types.Content(role="user", parts=message)
    return message
