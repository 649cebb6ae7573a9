"""Runs an agent for the A2A server: a context is a session, a task is a run, an interrupt is a task that waits."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Any
from weakref import WeakValueDictionary

from adk_nb import types
from adk_nb.a2a.message_parts import data_of, from_a2a_parts, text_of
from adk_nb.a2a.protocol import TYPE as DATA_TYPE
from adk_nb.a2a.protocol import WAITING, metadata_of, state_name
from adk_nb.a2a.task_updates import TaskUpdates
from adk_nb.errors import InputError
from adk_nb.events.event import Event
from adk_nb.runners import Runner, current_session
from adk_nb.runtime.history import history_of
from adk_nb.runtime.interrupts import ALL, Interrupt, answer, opened_by
from adk_nb.runtime.run_config import RunConfig, StreamingMode
from adk_nb.sessions.session import Session
from adk_nb.tools import input_answer

logger = logging.getLogger(__name__)

_METADATA = "a2a_metadata"
"""Key of the events' custom metadata. Source: google-adk 2.13."""


class Executor:
    """The agent behind an A2A server, as a2a-sdk calls it.

    Args:
        runner: Returns the runner of the next message.
    """

    def __init__(self, runner: Callable[[], Runner]) -> None:
        self._runner = runner
        self._runs: dict[str, _TaskRun] = {}
        """Task id -> its run."""
        self._turns: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
        """User and session -> the lock that its run holds."""

    async def execute(self, context: Any, queue: Any) -> None:
        """Answer a message; returns when the task has ended, or waits for the client."""
        user = context.call_context.user
        # Source of the name: google-adk 2.13. The name of a user who is not authenticated could be anybody's.
        user_id = user.user_name if user.is_authenticated else f"A2A_USER_{context.context_id}"
        key = user_id, context.context_id
        # Held by this local: the dictionary is weak, and forgets contexts without a run.
        turn = self._turns.get(key) or asyncio.Lock()
        self._turns[key] = turn
        updates = TaskUpdates(queue, context.task_id, context.context_id)
        run = self._runs[context.task_id] = _TaskRun(self._runner, context, updates, user_id)
        try:
            if context.current_task is None:
                await updates.submitted(context.message)
            async with turn:  # one run at a time in a context, first come first served
                await run.run()
        finally:
            run.ended.set()
            del self._runs[context.task_id]

    async def cancel(self, context: Any, queue: Any) -> None:
        """Stop the run of a task, or end a task that waits."""
        run = self._runs.get(context.task_id)
        if run and run.is_running:
            run.stop.set()
            # A2A: the answer to a cancellation is the task in its last state.
            await run.ended.wait()
        else:
            await TaskUpdates(queue, context.task_id, context.context_id).state("CANCELED")


class _TaskRun:
    """The run that answers one message of a task."""

    def __init__(self, runner: Callable[[], Runner], context: Any, updates: TaskUpdates, user_id: str) -> None:
        self.stop = asyncio.Event()
        """Set it to stop the run."""
        self.ended = asyncio.Event()
        self.is_running = False
        """True while the agent works; False while it waits for its turn."""
        self._runner_of = runner
        self._context = context
        self._updates = updates
        self._user_id = user_id
        self._failure: str | None = ""
        """Message of the last event, if it is an error."""
        self._has_begun = False
        """True once an event was stored."""
        self._published: list[str] = []
        """Ids of the interrupts that the client knows the task to wait for now."""

    async def run(self) -> None:
        """Answer the message."""
        runner = self._runner_of()  # an agent that was redefined meanwhile answers from the next message on
        try:
            await self._updates.state("WORKING")
            session = await self._session(runner)
            open_ = self._open_interrupts(session)
            message = self._message(open_)
            await self._stream(runner, message)
            open_ = self._open_interrupts(await self._session(runner))
            if self.stop.is_set():
                await self._updates.state("CANCELED")
            elif self._failure:
                await self._updates.failed(self._failure)
            elif not open_:
                await self._updates.state("COMPLETED")
            elif [interrupt.id for interrupt in open_] != self._published:
                await self._updates.waiting(open_)
        except InputError as error:
            # The message is refused; a task that waited for an answer still waits.
            still_waits = self._was_waiting and not self._has_begun
            open_ = self._open_interrupts(await self._session(runner)) if still_waits else []
            await (self._updates.waiting(open_, str(error)) if open_ else self._updates.failed(str(error)))
        except Exception as error:
            logger.warning("A2A task %s failed: %s: %s", self._context.task_id, type(error).__name__, error)
            await self._updates.failed(self._failure or str(error) or type(error).__name__)

    async def _stream(self, runner: Runner, message: types.Content) -> None:
        """Run the agent, and publish its events."""
        self._failure, self.is_running = "", True
        session = await self._session(runner)
        config = RunConfig(
            streaming_mode=StreamingMode.SSE, custom_metadata={_METADATA: {"task_id": self._context.task_id}}
        )
        events = runner.run_async(
            user_id=self._user_id,
            session_id=session.id,
            new_message=message,
            run_config=config,
            abort_signal=self.stop,
        )
        try:
            async with aclosing(events):
                async for event in events:
                    self._has_begun = True
                    # The error of the run is that of the last event, since an agent may answer after a failed one; an
                    # error inside a called agent (`isolation_scope`) is its tool's result.
                    if not (event.partial or event.isolation_scope):
                        self._failure = (event.error_message or event.error_code) if event.error_code else ""
                    await self._note_waiting(event, runner)
                    await self._updates.event(event)
                    await self._updates.files(event, runner, session)
        finally:
            self.is_running = False

    async def _note_waiting(self, event: Event, runner: Runner) -> None:
        """Publish that the run waits, or works again: the runner of a notebook waits in the run, for its cards."""
        asked = [interrupt for interrupt in opened_by(event) if interrupt.is_approval or interrupt.kind == "credential"]
        if asked:
            await self._updates.waiting(asked)
            self._published = [interrupt.id for interrupt in asked]
        elif self._published and not event.partial:
            open_ids = {interrupt.id for interrupt in self._open_interrupts(await self._session(runner))}
            # The waiting call and others of its step have events before it is answered.
            if open_ids.isdisjoint(self._published):
                await self._updates.state("WORKING")
                self._published = []

    @property
    def _was_waiting(self) -> bool:
        task = self._context.current_task
        return task is not None and state_name(task.status) in WAITING

    async def _session(self, runner: Runner) -> Session:
        """The session of the context."""
        user_id, session_id = self._user_id, self._context.context_id
        return await current_session(runner, user_id, session_id) or await runner.session_service.create_session(
            app_name=runner.app_name, user_id=user_id, session_id=session_id
        )

    def _open_interrupts(self, session: Session) -> list[Interrupt]:
        history = history_of(session)
        return history.interrupts(kinds=ALL, since=history.last_text_index)

    def _message(self, open_: Sequence[Interrupt]) -> types.Content:
        """The message to the agent: a new one, or the answer to what the task waits for.

        Raises:
            InputError: It answers nothing that is open.
        """
        sent = self._context.message.parts
        ours = from_a2a_parts(sent)
        responses = [part for part in ours if part.function_response]
        if responses:
            return types.Content(role="user", parts=responses)
        if not (self._was_waiting and open_):
            return types.Content(role="user", parts=ours)
        question = next((interrupt for interrupt in open_ if interrupt.is_text), None)
        if question is None:
            names = ", ".join(name for interrupt in open_ for name in interrupt.names)
            raise InputError(f"{names} cannot be answered with text: send the function response, or cancel the task")
        if question.kind == "task":
            return types.Content(role="user", parts=ours)
        data = [part for part in sent if part.WhichOneof("content") == "data" and DATA_TYPE not in metadata_of(part)]
        value = data_of(data[0]) if data else input_answer.parse(question, text_of(sent))
        return types.Content(role="user", parts=[answer(question, value)])
