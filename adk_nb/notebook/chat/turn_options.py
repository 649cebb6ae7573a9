"""The options of one turn: attachments, more tools, another model, limits."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict, get_args

from adk_nb import types
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.errors import InputError
from adk_nb.events.event import Event
from adk_nb.models.base_llm import BaseLlm
from adk_nb.models.registry import LLMRegistry
from adk_nb.notebook import settings
from adk_nb.notebook.chat.attachments import parts_of_attachment
from adk_nb.notebook.settings import Confirm
from adk_nb.notebook.view.display import Mode, Show, checked_mode
from adk_nb.runtime.history import Turn
from adk_nb.runtime.live_request_queue import LiveRequestQueue
from adk_nb.runtime.run_config import RunConfig
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.base_toolset import BaseToolset

LentTool = Callable[..., Any] | BaseTool | BaseToolset
_TURNS = 5
"""Turns after which tools that were never called are remarked on."""


@dataclass(frozen=True, kw_only=True)
class TurnOptions:
    """Options that hold for one turn; the agent and the chat stay as they are."""

    parts: Sequence[types.Part] = ()
    """The attachments."""
    tools: Sequence[LentTool] = ()
    model: str | BaseLlm | None = None
    show: Mode | None = None
    """None: as the chat's."""
    max_cost: float | None = None
    """US dollars. None: as `settings` has it."""
    confirm: Confirm = "ask"
    confirm_by: str = ""
    """The line that set `confirm`, for the log of an approval."""
    addressed: str = ""
    """Who gets the message and why, if it names nobody."""

    def on(self, agent: BaseAgent) -> BaseAgent:
        """The agent of this turn: `agent` itself, or a copy with the model and the tools.

        Raises:
            InputError: `agent` is a team, which has no model and no tools.
        """
        if self.model is None and not self.tools:
            return agent
        if not isinstance(agent, LlmAgent):
            noun = "model" if self.model is not None else "tools"
            raise InputError(
                f"{agent.name!r} is a team and takes no {noun}; ask one of its agents, or give each "
                f"the {noun} where it is defined"
            )
        changed: dict[str, Any] = {} if self.model is None else {"model": self.model}
        if self.tools:
            agent.tools_now()  # the agent of a cell fills `tools` by name
            own = [tool for tool in agent.tools if not any(tool is lent for lent in self.tools)]
            changed["tools"] = [*own, *self.tools]
        return agent.clone(changed)


@dataclass(kw_only=True)
class RelayedRequest:
    """A request from outside of the notebook; the first fields are arguments of `Runner.run_async`."""

    message: types.Content | None = None
    invocation_id: str | None = None
    state_delta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    sender: str = "client"
    """The caller, in the words of a reader."""
    on_event: Callable[[Event], None] = lambda event: None
    """Gets each event of the turn."""
    streams: bool = False
    """The caller wants partial events, so the model streams."""
    live_requests: LiveRequestQueue | None = None
    """The input of a live conversation, which this turn is. None: it is none."""
    run_config: RunConfig = field(default_factory=RunConfig)
    """More settings, of a live conversation."""
    has_begun: bool = False
    """False: it waits for earlier turns to end."""


def notice_of(agent: BaseAgent) -> str | None:
    """The notice of an agent's model, in a team of the first with one, that it is a stand-in or a recording."""
    if isinstance(agent, LlmAgent):
        return agent.canonical_model.notice
    return next((notice for member in agent.members if (notice := notice_of(member))), None)


def unused_tools_note(agent: BaseAgent, turns: Sequence[Turn]) -> str:
    """Once, at its fifth turn: that a model on an open server has never called a tool; else empty."""
    for member in (agent, *agent.members):
        if not isinstance(member, LlmAgent) or not member.tools:
            continue
        own = [[event for event in turn.events if event.author == member.name] for turn in turns if not turn.undone]
        own = [events for events in own if events]
        has_called = any(event.get_function_calls() for events in own for event in events)
        if len(own) != _TURNS or has_called or any(events[-1].error_code for events in own):
            continue
        if (model := member.canonical_model).is_open_server:
            return (
                f"{member.name!r} has not called any of its tools in {_TURNS} turns: model {model.model!r} may not "
                "know of them, or not be able to call them; %trace --why shows what it was sent"
            )
    return ""


class AskOptions(TypedDict, total=False):
    """The options of one turn; `Chat.ask` documents each."""

    attach: Any
    tools: Sequence[LentTool]
    model: str | BaseLlm | None
    show: Show | None
    max_cost: float | None
    confirm: Confirm | None


def turn_options(
    *,
    attach: Any = None,
    tools: Sequence[LentTool] = (),
    model: str | BaseLlm | None = None,
    show: Show | None = None,
    max_cost: float | None = None,
    confirm: Confirm | None = None,
    confirm_by: str = "",
    addressed: str = "",
) -> TurnOptions:
    """Check the options of a turn; None takes the value of `settings` or of the chat.

    Raises:
        InputError: Something cannot be attached, `show` or `confirm` is unknown, or `max_cost` is no limit.
        ModelNotFoundError: There is no such model.
    """
    if confirm is None:
        confirm, confirm_by = settings.now.confirm, "%config AdkNb.confirm"
    if confirm not in get_args(Confirm):
        raise InputError(f"confirm must be 'ask', 'yes' or 'no', got {confirm!r}")
    if isinstance(model, str):
        LLMRegistry.resolve(model)
    if max_cost is not None and not 0 < max_cost < math.inf:
        raise InputError(f"max_cost must be a positive number of US dollars, or None for no limit, got {max_cost!r}")
    mode = None if show is None else checked_mode(show)
    return TurnOptions(
        parts=() if attach is None else parts_of_attachment(attach),
        tools=tuple(tools),
        model=model,
        show=mode,
        max_cost=max_cost,
        confirm=confirm,
        confirm_by=confirm_by or f"chat.ask(confirm={confirm!r})",
        addressed=addressed,
    )
