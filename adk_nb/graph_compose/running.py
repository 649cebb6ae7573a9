"""Run a workflow: its turns and their results, its requests to the user and their answers."""

from collections.abc import Collection, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from adk_nb import clock, types
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.child_run import exits
from adk_nb.apps.app import App
from adk_nb.errors import InputError, NotFoundError, PendingError
from adk_nb.events.event import Event
from adk_nb.events.requests import REQUESTS
from adk_nb.graph_compose.agents import workflow_id
from adk_nb.models.http_messages import ASK_A_PERSON, CHAT
from adk_nb.models.llm_response import WAIT_FOR_USER_INPUT
from adk_nb.plugins.base_plugin import BasePlugin
from adk_nb.runners import InMemoryRunner
from adk_nb.runtime.history import history_of
from adk_nb.runtime.interrupts import Interrupt
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.sessions.session import Session

_USER = "user"
MESSAGE_COUNT, CYCLE_COUNT = "_user_message_count", "orchestration_cycle_count"
"""State keys of Graph Compose."""


@dataclass(frozen=True, kw_only=True)
class WorkflowResult:
    """The result of a turn."""

    workflow_id: str
    final_response_text: str
    """The last text of the agents in this turn, or ""."""
    session_state: dict[str, Any] = field(repr=False)
    error_details: dict[str, Any] | None = None
    """`error_code`, `error_message` and the id of the `agent`. None: no error."""
    internal_exit_flow: bool = False
    """The root agent, or a direct sub-agent, has completed its task."""
    internal_wait_for_user_input: bool = False
    """The workflow waits for the user's message."""
    is_waiting_for_confirmation: bool = False
    """An approval request is open."""
    orchestration_cycle_count: int = 0
    """Answers of services, in all turns."""
    terminated_by_global_limit: bool = False
    """The workflow is not complete, but has used all turns of its maxOrchestrationCycles."""

    @property
    def exit_flow(self) -> bool:
        """`internal_exit_flow`."""
        return self.internal_exit_flow

    @property
    def wait_for_user_input(self) -> bool:
        """`internal_wait_for_user_input`."""
        return self.internal_wait_for_user_input


class WorkflowHandle:
    """One conversation with a workflow. Its session is in the memory of `runner`."""

    def __init__(self, app: App, max_cycles: int | None) -> None:
        self.workflow_id = clock.new_id()
        """Also the id of the session."""
        self.runner = InMemoryRunner(app=app)
        self._root: BaseAgent = app.root_agent
        self._max_cycles = max_cycles
        self._turns: list[WorkflowResult] = []
        self._ended = False

    async def begin(self, prompt: str, state: dict[str, Any]) -> WorkflowResult:
        """Run the first turn."""
        await self.runner.session_service.create_session(
            app_name=self.runner.app_name, user_id=_USER, session_id=self.workflow_id, state=state
        )
        return await self._turn(prompt)

    async def receive_message(self, text: str) -> WorkflowResult:
        """Send a message of the user.

        Raises:
            PendingError: An approval request is open.
            InputError: The conversation has ended.
        """
        interrupts = history_of(await self.session()).interrupts()
        for interrupt in interrupts:
            if _is_chat(interrupt):
                return await self._turn([_response_part(interrupt, {"result": text})])
        if interrupts:
            raise PendingError(
                f"the request {interrupts[0].prompt!r:.200} is open; "
                f"type: await handle.confirm_action({interrupts[0].id!r}, True)"
            )
        return await self._turn(text)

    async def confirm_action(self, request_id: str, confirmed: bool, payload: Any = None) -> WorkflowResult:
        """Approve or reject a request; `payload` is JSON that is sent to the service.

        Raises:
            NotFoundError: No such request is open.
            InputError: The conversation has ended.
        """
        interrupts = {
            interrupt.id: interrupt
            for interrupt in history_of(await self.session()).interrupts()
            if not _is_chat(interrupt)
        }
        if request_id not in interrupts:
            raise NotFoundError("open request", request_id, interrupts)
        return await self._turn([_response_part(interrupts[request_id], {"confirmed": confirmed, "payload": payload})])

    async def end_conversation(self) -> None:
        """End the conversation and close the runner."""
        self._ended = True
        # The session stays in memory for queries.
        await self.runner.close()

    def get_latest_orchestration_result(self) -> WorkflowResult | None:
        """The result of the last turn. None: there was none."""
        return self._turns[-1] if self._turns else None

    async def get_session_events(self) -> list[Event]:
        """All events of the session, oldest first."""
        return list((await self.session()).events)

    async def get_pending_confirmation_details(self) -> dict[str, dict[str, Any]]:
        """The open approval requests by id: `request_id`, `action`, `details` and `requested_at`."""
        return {
            interrupt.id: {
                "request_id": interrupt.id,
                "action": interrupt.prompt,
                "details": (interrupt.call.args or {}).get("payload"),
                "requested_at": interrupt.asked_at,
            }
            for interrupt in history_of(await self.session()).interrupts()
            if not _is_chat(interrupt)
        }

    async def is_waiting_for_confirmation(self) -> bool:
        """True if an approval request is open."""
        return bool(await self.get_pending_confirmation_details())

    async def get_latest_invocation_trace(self) -> list[Event]:
        """The events of the last turn, oldest first."""
        events = (await self.session()).events
        last = events[-1].invocation_id if events else ""
        return [event for event in events if event.invocation_id == last]

    async def state(self) -> dict[str, Any]:
        """All queries at once, under Graph Compose's names."""
        confirmations = await self.get_pending_confirmation_details()
        return {
            "latestOrchestrationResult": self.get_latest_orchestration_result(),
            "conversationHistory": await self.get_session_events(),
            "pendingConfirmations": confirmations,
            "isWaitingForConfirmation": bool(confirmations),
            "latestInvocationTrace": await self.get_latest_invocation_trace(),
            "isStopped": self._end_reason() is not None,
            "conversationEndRequested": self._ended,
        }

    async def session(self) -> Session:
        """The session, as stored."""
        session = await self.runner.session_service.get_session(
            app_name=self.runner.app_name, user_id=_USER, session_id=self.workflow_id
        )
        assert session is not None
        return session

    def _end_reason(self) -> str | None:
        """The reason why no more messages are accepted. None: they are."""
        if self._ended:
            return "end_conversation() was called"
        last = self.get_latest_orchestration_result()
        if last and last.terminated_by_global_limit:
            return f"all of its {self._max_cycles} turns are used; raise with_max_cycles(...)"
        return None

    async def _turn(self, message: str | list[types.Part]) -> WorkflowResult:
        if reason := self._end_reason():
            raise InputError(f"this conversation has ended: {reason}; start another with graph.start()")
        events: list[Event] = []
        run = self.runner.run_async(user_id=_USER, session_id=self.workflow_id, new_message=message)
        try:
            async with aclosing(run):
                async for event in run:
                    events.append(event)  # noqa: PERF401  # keep the events before an error
        except Exception:  # an error of the workflow is in its last event
            if not (events and events[-1].error_code):
                raise
        self._turns.append(self._result(await self.session(), events))
        return self._turns[-1]

    def _result(self, session: Session, events: Sequence[Event]) -> WorkflowResult:
        interrupts = history_of(session).interrupts()
        error_event = next((event for event in reversed(events) if event.error_code), None)
        top_agents = self._root.sub_agents if self._root.runs_others else [self._root]
        exit_flow = any(exits(event, agent) for event in events for agent in top_agents)
        # A single agent that has not ended its task waits for the next message.
        is_open_ended = not (self._root.runs_others or exit_flow or error_event)
        is_chat_open = any(_is_chat(interrupt) for interrupt in interrupts) or any(
            (event.custom_metadata or {}).get(WAIT_FOR_USER_INPUT) is True for event in events
        )
        is_approval_open = any(not _is_chat(interrupt) for interrupt in interrupts)
        is_open = not error_event and (is_chat_open or is_approval_open or is_open_ended)
        is_limit_reached = is_open and self._max_cycles is not None and count_turns(session) >= self._max_cycles
        error_details: dict[str, Any] | None = None
        if error_event:
            agent = self._root.find_agent(error_event.author)
            error_details = {
                "error_code": error_event.error_code,
                "error_message": error_event.error_message,
                "agent": workflow_id(agent) if agent else error_event.author,
            }
        return WorkflowResult(
            workflow_id=self.workflow_id,
            final_response_text=next((event.text for event in reversed(events) if event.is_answer()), ""),
            session_state=dict(session.state),
            error_details=error_details,
            internal_exit_flow=exit_flow and not is_approval_open,
            internal_wait_for_user_input=is_open and not is_limit_reached and not is_approval_open,
            is_waiting_for_confirmation=is_approval_open and not is_limit_reached,
            orchestration_cycle_count=session.state.get(CYCLE_COUNT, 0),
            terminated_by_global_limit=is_limit_reached,
        )


def _is_chat(interrupt: Interrupt) -> bool:
    return bool((interrupt.call.args or {}).get(CHAT))


def _response_part(interrupt: Interrupt, response: dict[str, Any]) -> types.Part:
    return types.Part(
        function_response=types.FunctionResponse(
            id=interrupt.id, name=interrupt.call.name or ASK_A_PERSON, response=response
        )
    )


def count_turns(session: Session) -> int:
    """Turns so far: messages of the user, and answers to requests."""
    # A turn may have several events of the user; its invocation is one.
    return len({event.invocation_id for event in history_of(session).events if event.author == "user"})


class WorkflowPlugin(BasePlugin):
    """Counts messages and cycles; ends a run over the limit before it begins."""

    def __init__(self, agents: Collection[str], max_cycles: int | None) -> None:
        """`agents`: names of the LLM agents, whose answers are cycles."""
        super().__init__("graph_compose")
        self._agents = agents
        self._max_cycles = max_cycles

    async def before_run_callback(self, *, invocation_context: InvocationContext) -> types.Content | None:
        max_cycles = self._max_cycles
        if (
            max_cycles is None
            or _is_nested_run(invocation_context)
            or count_turns(invocation_context.session) <= max_cycles
        ):
            return None
        text = f"This workflow ended after {max_cycles} turns, its maxOrchestrationCycles."
        return types.Content(role="model", parts=[types.Part(text=text)])

    async def on_event_callback(self, *, invocation_context: InvocationContext, event: Event) -> Event | None:
        if event.partial or _is_nested_run(invocation_context):
            return None
        session, counts = invocation_context.session, dict[str, int]()
        # Counted with the first event of a turn, which follows the user's.
        if session.events and session.events[-1].author == "user":
            messages = sum(1 for user_event in history_of(session).events if user_event.author == "user")
            counts[MESSAGE_COUNT] = messages
        if event.author in self._agents and _is_model_event(event):
            # From the last count of this plugin: tools and agents may overwrite the state key.
            counted = (
                earlier.actions.state_delta[CYCLE_COUNT]
                for earlier in history_of(session).newest()
                if earlier.author in self._agents
                and _is_model_event(earlier)
                and CYCLE_COUNT in earlier.actions.state_delta
            )
            counts[CYCLE_COUNT] = next(counted, 0) + 1
        if not counts:
            return None
        actions = event.actions.model_copy(update={"state_delta": event.actions.state_delta | counts})
        return event.model_copy(update={"actions": actions})


def _is_nested_run(ctx: InvocationContext) -> bool:
    """True for the run of an agent that is called as a tool."""
    return ctx.shared.root is not None


def _is_model_event(event: Event) -> bool:
    """True for an answer of a service or model."""
    if event.content is None or event.content.role != "model" or event.get_function_responses():
        return False
    return all(call.name not in REQUESTS for call in event.get_function_calls())
