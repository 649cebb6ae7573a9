"""Agents that stop to wait for someone, each in its way, and what goes on then."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from adk_nb import types
from adk_nb.agents import BaseAgent, LlmAgent
from adk_nb.apps import App, ResumabilityConfig
from adk_nb.auth import APIKey, AuthConfig
from adk_nb.events import Event
from adk_nb.models import ScriptedLlm, call
from adk_nb.plugins import BasePlugin
from adk_nb.runners import InMemoryRunner
from adk_nb.runtime import interrupts
from adk_nb.runtime.history import open_interrupts
from adk_nb.runtime.interrupts import CREDENTIALS
from adk_nb.tools import (
    AgentTool,
    FunctionTool,
    LongRunningFunctionTool,
    ToolContext,
    get_user_choice,
    request_input,
)
from tests.support.talk import Talk, summaries

RESUMABLE = ResumabilityConfig(is_resumable=True)


class LeftTalk(Talk):
    """A talk with an app that is resumable, so that a run which was left in its middle goes on by its id."""

    def __init__(
        self, agent: BaseAgent, state: dict[str, Any] | None = None, plugins: Sequence[BasePlugin] = ()
    ) -> None:
        app = App(name="app", root_agent=agent, plugins=list(plugins), resumability_config=RESUMABLE)
        self.error = None
        self.begin(InMemoryRunner(app=app))
        self.open("s", state)

    def begin(self, runner: InMemoryRunner) -> None:
        """Run with `runner` from now on."""
        self.runner, self.service = runner, runner.session_service

    def go_on(self, message: Any = None, **kwargs: Any) -> list[Event]:
        """The rest of the first run of the session."""
        return self.say(message, invocation_id=self.stored().events[0].invocation_id, **kwargs)


def agent(name: str, *answers: Any, **fields: Any) -> LlmAgent:
    return LlmAgent(name=name, model=ScriptedLlm(*answers), **fields)


def open_calls(events: Sequence[Event]) -> list[types.FunctionCall]:
    return [
        call
        for event in events
        for call in event.get_function_calls()
        if call.id in (event.long_running_tool_ids or ())
    ]


def outcome(asked: types.FunctionCall, answer: dict[str, Any]) -> types.Content:
    response = types.FunctionResponse(id=asked.id, name=asked.name, response=answer)
    return types.Content(role="user", parts=[types.Part(function_response=response)])


def words(events: Sequence[Event]) -> list[tuple[str, str]]:
    return [(event.author, event.text) for event in events if event.text]


def marks(events: Sequence[Event]) -> list[tuple[str, str]]:
    """Who and what, an event each, the marks of where agents stand among them."""
    return [(event.author, _mark(event) or summaries([event])[0][1].removesuffix(" .")) for event in events]


def _mark(event: Event) -> str:
    if event.actions.end_of_agent:
        return "ends"
    state = event.actions.agent_state
    return "" if state is None else " ".join(["is at", *(str(value) for value in state.values())])


# -- the ways to wait


def pay(n: int) -> str:
    """Pays."""
    return f"paid {n}"


def mail(folder: str) -> str:
    """Reads mail."""
    return f"mail of {folder}"


def order(tool_context: ToolContext) -> Any:
    """Orders, if someone says yes while it runs."""
    if tool_context.tool_confirmation is None:
        tool_context.request_confirmation(hint="really?")
        return {"status": "asked"}
    return {"ordered": tool_context.tool_confirmation.confirmed}


def ask() -> None:
    """Asks someone."""


def begin() -> dict[str, str]:
    """Begins what takes time."""
    return {"status": "pending"}


def _waiting(name: str, first: Any, tool: Any, *earlier_args: str, **fields: Any) -> LlmAgent:
    return agent(name, first, *earlier_args, *(f"{name}{n}" for n in range(1, 5)), tools=[tool], **fields)


def pays(name: str) -> LlmAgent:
    return _waiting(name, call("pay", n=1), FunctionTool(pay, require_confirmation=True))


def _reads(name: str) -> LlmAgent:
    key = AuthConfig(auth_scheme=APIKey.model_validate({"in": "header", "name": "X-Key"}))
    return _waiting(name, call("mail", folder="in"), FunctionTool(mail, auth_config=key))


def _calls(name: str) -> LlmAgent:
    return _waiting(name, call("clerk", request="pay"), AgentTool(pays("clerk"), stream_events=True))


def _gives_a_task(name: str) -> LlmAgent:
    clerk = agent("clerk", "which day?", call("finish_task", result="done"), mode="task")
    return agent(name, call("clerk", request="book"), *(f"{name}{n}" for n in range(1, 5)), sub_agents=[clerk])


def _with(response: dict[str, Any]) -> Callable[[Sequence[Event]], Any]:
    def answer(events: Sequence[Event]) -> types.Content:
        [call] = open_calls(events)
        return outcome(call, response)

    return answer


def _with_key(events: Sequence[Event]) -> list[types.Part]:
    [interrupt] = open_interrupts(events, CREDENTIALS)
    return [interrupts.answer(interrupt, {"apiKey": "k"})]


@dataclass(frozen=True)
class Kind:
    """A way to wait: an agent that waits the first time it works, and answers with its name and a number after."""

    make: Callable[[str], LlmAgent]
    answer: Callable[[Sequence[Event]], Any]
    """The message that it waits for, made of the events of the run."""


KINDS = {
    "a yes": Kind(pays, _with({"confirmed": True})),
    "a no": Kind(pays, _with({"confirmed": False})),
    "a yes while it runs": Kind(lambda name: _waiting(name, call("order"), order), _with({"confirmed": True})),
    "an outcome": Kind(lambda name: _waiting(name, call("ask"), LongRunningFunctionTool(ask)), _with({"r": 1})),
    "an outcome after news": Kind(
        lambda name: _waiting(name, call("begin"), LongRunningFunctionTool(begin), "I wait"), _with({"r": 1})
    ),
    "an outcome after a pause": Kind(
        lambda name: _waiting(name, call("begin"), LongRunningFunctionTool(begin, pause=True)), _with({"r": 1})
    ),
    "words to a question": Kind(
        lambda name: _waiting(name, call("adk_request_input", message="Who?"), request_input), _with({"result": "Bo"})
    ),
    "a choice": Kind(
        lambda name: _waiting(name, call("get_user_choice", options=["a", "b"]), get_user_choice),
        _with({"result": "a"}),
    ),
    "a credential": Kind(_reads, _with_key),
    "a yes in a called agent": Kind(_calls, _with({"confirmed": True})),
    "words to a task": Kind(_gives_a_task, lambda events: "on Monday"),
}
