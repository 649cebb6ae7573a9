"""A workflow that runs here: its turns, what came of each, what it waits for, and the answers to that."""

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from adk_nb import clock, types
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.course import exits
from adk_nb.apps.app import App
from adk_nb.errors import InputError, NotFoundError, PendingError
from adk_nb.events.event import Event
from adk_nb.graph_compose.agents import id_of
from adk_nb.graph_compose.counting import CYCLES, turns_of
from adk_nb.models.http_messages import ASK_A_PERSON, CHAT
from adk_nb.models.signals import WAIT_FOR_USER_INPUT
from adk_nb.runners import InMemoryRunner
from adk_nb.runtime.history import history_of
from adk_nb.runtime.interrupts import Interrupt
from adk_nb.sessions.session import Session

_USER = "user"


@dataclass(frozen=True, kw_only=True)
class WorkflowResult:
    """What came of a turn."""

    workflow_id: str
    final_response_text: str
    """The last words of the agents in this turn; empty if there were none."""
    session_state: dict[str, Any] = field(repr=False)
    error_details: dict[str, Any] | None = None
    """`error_code`, `error_message` and the id of the `agent`. None: nothing failed."""
    internal_exit_flow: bool = False
    """The root agent, or an agent right under it, says that its task is complete."""
    internal_wait_for_user_input: bool = False
    """The user has the word."""
    is_waiting_for_confirmation: bool = False
    """A person is asked for an approval."""
    orchestration_cycle_count: int = 0
    """How often services have answered, in all turns."""
    terminated_by_global_limit: bool = False
    """It would go on, and has no turn left of its maxOrchestrationCycles."""

    @property
    def exit_flow(self) -> bool:
        """`internal_exit_flow`."""
        return self.internal_exit_flow

    @property
    def wait_for_user_input(self) -> bool:
        """`internal_wait_for_user_input`."""
        return self.internal_wait_for_user_input


class WorkflowHandle:
    """One conversation with a workflow. Its session lives in memory, in `runner`."""

    def __init__(self, app: App, max_cycles: int | None) -> None:
        self.workflow_id = clock.new_id()
        """Id of the session, too."""
        self.runner = InMemoryRunner(app=app)
        self._root: BaseAgent = app.root_agent
        self._max_cycles = max_cycles
        self._turns: list[WorkflowResult] = []
        self._ended = False

    async def begin(self, prompt: str, state: dict[str, Any]) -> WorkflowResult:
        """The first turn."""
        await self.runner.session_service.create_session(
            app_name=self.runner.app_name, user_id=_USER, session_id=self.workflow_id, state=state
        )
        return await self._turn(prompt)

    async def receive_message(self, text: str) -> WorkflowResult:
        """The user says something.

        Raises:
            PendingError: A person has to answer something else first.
            InputError: The conversation is over.
        """
        asked = history_of(await self.session()).interrupts()
        for one in asked:
            if _is_chat(one):
                return await self._turn([_answer(one, {"result": text})])
        if asked:
            raise PendingError(
                f"{asked[0].prompt!r:.200} is open; type: await handle.confirm_action({asked[0].id!r}, True)"
            )
        return await self._turn(text)

    async def confirm_action(self, request_id: str, confirmed: bool, payload: Any = None) -> WorkflowResult:
        """What a person decides of a request; `payload` is JSON that the service is told with it.

        Raises:
            NotFoundError: No such request is open.
            InputError: The conversation is over.
        """
        asked = {one.id: one for one in history_of(await self.session()).interrupts() if not _is_chat(one)}
        if request_id not in asked:
            raise NotFoundError("open request", request_id, asked)
        return await self._turn([_answer(asked[request_id], {"confirmed": confirmed, "payload": payload})])

    async def end_conversation(self) -> None:
        """Nothing more is said."""
        self._ended = True
        await self.runner.close()

    def get_latest_orchestration_result(self) -> WorkflowResult | None:
        """What came of the last turn. None: there was none."""
        return self._turns[-1] if self._turns else None

    async def get_session_events(self) -> list[Event]:
        """All of them, oldest first."""
        return list((await self.session()).events)

    async def get_pending_confirmation_details(self) -> dict[str, dict[str, Any]]:
        """What waits for a person, by id: `request_id`, `action`, `details` and `requested_at`."""
        return {
            one.id: {
                "request_id": one.id,
                "action": one.prompt,
                "details": (one.call.args or {}).get("payload"),
                "requested_at": one.asked_at,
            }
            for one in history_of(await self.session()).interrupts()
            if not _is_chat(one)
        }

    async def is_waiting_for_confirmation(self) -> bool:
        """True if a person is asked for an approval."""
        return bool(await self.get_pending_confirmation_details())

    async def get_latest_invocation_trace(self) -> list[Event]:
        """The events of the last turn, oldest first."""
        events = (await self.session()).events
        last = events[-1].invocation_id if events else ""
        return [event for event in events if event.invocation_id == last]

    async def state(self) -> dict[str, Any]:
        """All that can be asked, under Graph Compose's names."""
        waiting = await self.get_pending_confirmation_details()
        return {
            "latestOrchestrationResult": self.get_latest_orchestration_result(),
            "conversationHistory": await self.get_session_events(),
            "pendingConfirmations": waiting,
            "isWaitingForConfirmation": bool(waiting),
            "latestInvocationTrace": await self.get_latest_invocation_trace(),
            "isStopped": self._over() is not None,
            "conversationEndRequested": self._ended,
        }

    async def session(self) -> Session:
        """As its service has it."""
        found = await self.runner.session_service.get_session(
            app_name=self.runner.app_name, user_id=_USER, session_id=self.workflow_id
        )
        assert found is not None
        return found

    def _over(self) -> str | None:
        """Why nothing more can be said."""
        if self._ended:
            return "end_conversation() was called"
        last = self.get_latest_orchestration_result()
        if last and last.terminated_by_global_limit:
            return f"it has had its {self._max_cycles} turns; raise with_max_cycles(...)"
        return None

    async def _turn(self, message: str | list[types.Part]) -> WorkflowResult:
        if why := self._over():
            raise InputError(f"this workflow is over: {why}; start it again with graph.start()")
        events: list[Event] = []
        run = self.runner.run_async(user_id=_USER, session_id=self.workflow_id, new_message=message)
        try:
            async with aclosing(run):
                async for event in run:
                    events.append(event)  # noqa: PERF401  # a list of what came before an error
        except Exception:  # told by the last event, or else not this workflow's
            if not (events and events[-1].error_code):
                raise
        self._turns.append(self._result(await self.session(), events))
        return self._turns[-1]

    def _result(self, session: Session, events: Sequence[Event]) -> WorkflowResult:
        waits = history_of(session).interrupts()
        failed = next((event for event in reversed(events) if event.error_code), None)
        exited = any(exits(event, one) for event in events for one in self._speakers())
        open_end = not (self._root.runs_others or exited or failed)
        chat = any(_is_chat(one) for one in waits) or any(_says_wait(event) for event in events)
        confirm = any(not _is_chat(one) for one in waits)
        goes_on = not failed and (chat or confirm or open_end)
        limited = goes_on and self._max_cycles is not None and turns_of(session) >= self._max_cycles
        return WorkflowResult(
            workflow_id=self.workflow_id,
            final_response_text=next((event.text for event in reversed(events) if event.is_answer()), ""),
            session_state=dict(session.state),
            error_details=failed and self._details(failed),
            internal_exit_flow=exited and not confirm,
            internal_wait_for_user_input=goes_on and not limited and not confirm,
            is_waiting_for_confirmation=confirm and not limited,
            orchestration_cycle_count=session.state.get(CYCLES, 0),
            terminated_by_global_limit=limited,
        )

    def _details(self, event: Event) -> dict[str, Any]:
        agent = self._root.find_agent(event.author)
        who = id_of(agent) if agent else event.author
        return {"error_code": event.error_code, "error_message": event.error_message, "agent": who}

    def _speakers(self) -> list[BaseAgent]:
        return list(self._root.sub_agents) if self._root.runs_others else [self._root]


def _is_chat(asked: Interrupt) -> bool:
    return bool((asked.call.args or {}).get(CHAT))


def _says_wait(event: Event) -> bool:
    return (event.custom_metadata or {}).get(WAIT_FOR_USER_INPUT) is True


def _answer(asked: Interrupt, response: dict[str, Any]) -> types.Part:
    return types.Part(
        function_response=types.FunctionResponse(id=asked.id, name=asked.call.name or ASK_A_PERSON, response=response)
    )
