"""What one turn has that its chat has not: things attached, more tools, another model."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict, get_args

from adk_nb import types
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.errors import InputError
from adk_nb.models.base_llm import BaseLlm
from adk_nb.models.registry import LLMRegistry
from adk_nb.notebook import attachments, settings
from adk_nb.notebook.settings import Confirm
from adk_nb.notebook.view.display import Mode, Show, checked_mode
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.base_toolset import BaseToolset

LentTool = Callable[..., Any] | BaseTool | BaseToolset


@dataclass(frozen=True, kw_only=True)
class TurnOptions:
    """The agent itself stays as it is."""

    parts: Sequence[types.Part] = ()
    """What goes with the words."""
    tools: Sequence[LentTool] = ()
    model: str | BaseLlm | None = None
    show: Mode | None = None
    """None: as the chat."""
    max_cost: float | None = None
    """US dollars. None: as `settings` has it."""
    confirm: Confirm = "ask"
    """Approvals of the turn are left open, given, or refused."""
    confirm_by: str = ""
    """Where `confirm` was set, for the log of an approval."""

    def on(self, agent: BaseAgent) -> BaseAgent:
        """`agent` as it is in this turn: itself, or a copy that has the model and the tools.

        Raises:
            InputError: It has neither of its own.
        """
        if self.model is None and not self.tools:
            return agent
        if not isinstance(agent, LlmAgent):
            given = "model" if self.model is not None else "tools"
            raise InputError(
                f"{agent.name!r} is a team and takes no {given}; ask one of its agents, or give each "
                f"the {given} where it is defined"
            )
        changed: dict[str, Any] = {} if self.model is None else {"model": self.model}
        if self.tools:
            agent.tools_now()  # those that it has by name are looked up
            own = [one for one in agent.tools if not any(one is lent for lent in self.tools)]
            changed["tools"] = [*own, *self.tools]
        return agent.clone(changed)


@dataclass(kw_only=True)
class RelayedRequest:
    """A request from outside of the notebook; the fields are arguments of `Runner.run_async`."""

    message: types.Content | None = None
    invocation_id: str | None = None
    state_delta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    sender: str = "client"
    """The caller, in the words of a reader."""
    has_begun: bool = False
    """False: it waits for the turns before it."""


def notice_of(agent: BaseAgent) -> str | None:
    """The notice on a model of the agent or its team that is a stand-in or a recording; None: there is none."""
    if isinstance(agent, LlmAgent):
        return agent.canonical_model.notice
    return next((notice for member in agent.members if (notice := notice_of(member))), None)


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
) -> TurnOptions:
    """A turn with these options.

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
        parts=() if attach is None else attachments.all_of(attach),
        tools=tuple(tools),
        model=model,
        show=mode,
        max_cost=max_cost,
        confirm=confirm,
        confirm_by=confirm_by or f"chat.ask(confirm={confirm!r})",
    )
