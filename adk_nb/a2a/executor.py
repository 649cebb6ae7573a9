"""Runs an agent for the A2A server: a context is a session, a task is a run, an interrupt is a task that waits."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Any, Protocol
from weakref import WeakValueDictionary

from adk_nb import types
from adk_nb.a2a.message_parts import data_of, from_a2a_parts, text_of
from adk_nb.a2a.protocol import TYPE as DATA_TYPE
from adk_nb.a2a.protocol import WAITING, metadata_of, state_name
from adk_nb.a2a.task_updates import TaskUpdates
from adk_nb.errors import AdkNbError, InputError
from adk_nb.events.requests import APPROVAL_REQUEST
from adk_nb.runners import Runner
from adk_nb.runtime.history import history_of
from adk_nb.runtime.interrupts import ALL, Interrupt, answer
from adk_nb.runtime.run_config import RunConfig, StreamingMode
from adk_nb.sessions.session import Session
from adk_nb.tools import input_answer

logger = logging.getLogger(__name__)

_METADATA = "a2a_metadata"
"""Key of the events' custom metadata. Source: google-adk 2.13."""


class Approver(Protocol):
    """Whoever answers approvals where the agent runs, as a notebook does by its cards."""

    async def __call__(
        self, interrupts: Sequence[Interrupt], *, runner: Runner, user_id: str, session_id: str
    ) -> types.Content | None:
        """The message that answers one or more of the interrupts. None: nobody answers, and the task goes on waiting.

        The task waits for the return of this; it is cancelled with the task.
        """
        ...


class Executor:
    """The agent behind an A2A server, as a2a-sdk calls it.

    Args:
        runner: Returns the runner of the next message.
        approver: Answers approvals. None: the client does.
    """

    def __init__(self, runner: Callable[[], Runner], approver: Approver | None) -> None:
        self._runner = runner
        self._approver = approver
        self._runs: dict[str, _TaskRun] = {}
        """Task id -> its run."""
        self._turns: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
        """User and session -> the lock that its run holds."""

    async def execute(self, context: Any, queue: Any) -> None:
        """Answer a message; returns when the task has ended, or waits for the client."""
        user = context.call_context.user
        # Source of the name: google-adk 2.13. A name that nobody has checked is none.
        user_id = user.user_name if user.is_authenticated else f"A2A_USER_{context.context_id}"
        key = user_id, context.context_id
        turn = self._turns.get(key) or asyncio.Lock()
        self._turns[key] = turn
        updates = TaskUpdates(queue, context.task_id, context.context_id)
        run = self._runs[context.task_id] = _TaskRun(self._runner, self._approver, context, updates, user_id)
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
            await run.ended.wait()
        else:
            await TaskUpdates(queue, context.task_id, context.context_id).state("CANCELED")


class _TaskRun:
    """The work on one message of a task."""

    def __init__(
        self, runner: Callable[[], Runner], approver: Approver | None, context: Any, updates: TaskUpdates, user_id: str
    ) -> None:
        self.stop = asyncio.Event()
        """Set it to stop the run."""
        self.ended = asyncio.Event()
        self.is_running = False
        """True while the agent works; False while it waits for its turn or an approver."""
        self._runner_of = runner
        self._approver = approver
        self._context = context
        self._updates = updates
        self._user_id = user_id
        self._failure = ""
        """Message of the last event with an error."""
        self._has_begun = False
        """True once an event was stored."""

    async def run(self) -> None:
        """Answer the message."""
        runner = self._runner_of()  # an agent that was redefined meanwhile answers from the next message on
        try:
            await self._updates.state("WORKING")
            session = await self._session(runner)
            open_ = self._open_interrupts(session)
            message = self._message(open_)
            await self._follow(runner, message)
        except InputError as error:
            await self._refuse(runner, error)
        except Exception as error:
            if not isinstance(error, AdkNbError):
                logger.warning("task %s failed", self._context.task_id, exc_info=True)
            await self._updates.failed(self._failure or str(error) or type(error).__name__)

    async def _follow(self, runner: Runner, message: types.Content | None) -> None:
        while message is not None:
            await self._stream(runner, message)
            if self.stop.is_set():
                await self._updates.state("CANCELED")
                return
            open_ = self._open_interrupts(await self._session(runner))
            if not open_:
                await (self._updates.failed(self._failure) if self._failure else self._updates.state("COMPLETED"))
                return
            await self._updates.waiting(open_)
            message = await self._decision(runner, open_)
            if message is not None:
                await self._updates.state("WORKING")

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
                    if event.error_code:
                        self._failure = event.error_message or event.error_code
                    await self._updates.event(event)
                    await self._updates.files(event, runner, session)
        finally:
            self.is_running = False

    async def _decision(self, runner: Runner, open_: Sequence[Interrupt]) -> types.Content | None:
        """The approver's answer. None: the client answers."""
        approvals = [interrupt for interrupt in open_ if interrupt.is_approval]
        if not (self._approver and approvals):
            return None
        session = await self._session(runner)
        return await self._approver(approvals, runner=runner, user_id=self._user_id, session_id=session.id)

    async def _refuse(self, runner: Runner, error: InputError) -> None:
        """Tell the client that its message does not do; a task that waited goes on waiting."""
        open_ = self._open_interrupts(await self._session(runner)) if self._was_waiting and not self._has_begun else []
        await (self._updates.waiting(open_, str(error)) if open_ else self._updates.failed(str(error)))

    @property
    def _was_waiting(self) -> bool:
        task = self._context.current_task
        return task is not None and state_name(task.status) in WAITING

    async def _session(self, runner: Runner) -> Session:
        """The session of the context."""
        user_id, session_id = self._user_id, self._context.context_id
        return await runner.look_at(user_id, session_id) or await runner.session_service.create_session(
            app_name=runner.app_name, user_id=user_id, session_id=session_id
        )

    def _open_interrupts(self, session: Session) -> list[Interrupt]:
        history = history_of(session)
        return history.interrupts(kinds=ALL, since=history.last_text_at)

    def _message(self, open_: Sequence[Interrupt]) -> types.Content:
        """The message to the agent: a new one, or the answer to what the task waits for.

        Raises:
            InputError: It answers nothing that is open.
        """
        sent = self._context.message.parts
        ours = from_a2a_parts(sent)
        responses = [part for part in ours if part.function_response]
        if responses:
            self._refuse_approvals(responses, open_)
            return types.Content(role="user", parts=responses)
        if not (self._was_waiting and open_):
            return types.Content(role="user", parts=ours)
        question = next((interrupt for interrupt in open_ if interrupt.is_text), None)
        if question is None:
            names = ", ".join(name for interrupt in open_ for name in interrupt.names)
            raise InputError(f"{names} is not answered in words: send the function response, or cancel the task")
        if question.kind == "task":
            return types.Content(role="user", parts=ours)
        data = [part for part in sent if part.WhichOneof("content") == "data" and DATA_TYPE not in metadata_of(part)]
        value = data_of(data[0]) if data else input_answer.parse(question, text_of(sent))
        return types.Content(role="user", parts=[answer(question, value)])

    def _refuse_approvals(self, responses: Sequence[types.Part], open_: Sequence[Interrupt]) -> None:
        ids = {key for interrupt in open_ if interrupt.is_approval for key in interrupt.answer_ids or (interrupt.id,)}
        answered = [part.function_response for part in responses if part.function_response]
        if self._approver and any(one.name == APPROVAL_REQUEST or one.id in ids for one in answered):
            raise InputError("an approval is given where the agent runs, not by a client")
