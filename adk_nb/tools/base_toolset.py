"""Several tools that come from one place, and may be others at another time."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

from adk_nb.auth.auth_tool import AuthConfig
from adk_nb.errors import ConfigurationError, UserError, closest
from adk_nb.models.llm_request import LlmRequest
from adk_nb.runtime.approvals import RESERVED
from adk_nb.runtime.context import ReadonlyContext, ToolContext
from adk_nb.tools.base_tool import BaseTool

logger = logging.getLogger(__name__)

on_left_out: ContextVar[Callable[[str], None] | None] = ContextVar("adk_nb_on_left_out", default=None)
"""Is called, in a run that somebody watches, with a sentence on each toolset that an agent goes on without."""

ToolPredicate = Callable[[BaseTool, ReadonlyContext | None], bool]
"""Whether an agent is offered a tool. There is no context where nothing runs."""


class BaseToolset(ABC):
    """Where an agent gets tools from: one of its `tools`, asked once an invocation what it has.

    Args:
        tool_filter: The names of the tools to offer, or a predicate. None: all.
        tool_name_prefix: The tools are offered as `<prefix>_<name>`; the filter knows them without it.

    Raises:
        ConfigurationError: The prefix makes names that are reserved.
    """

    named_outside: bool = False
    """True: its tools get their names from somewhere else than the agent's author."""

    def __init__(
        self, *, tool_filter: ToolPredicate | Sequence[str] | None = None, tool_name_prefix: str | None = None
    ) -> None:
        if f"{tool_name_prefix or ''}_".startswith(RESERVED):
            raise ConfigurationError(
                f"tool_name_prefix={tool_name_prefix!r}: names that start with {RESERVED!r} are reserved"
            )
        self.tool_filter = tool_filter
        self.tool_name_prefix = tool_name_prefix
        self._last: tuple[str, list[BaseTool]] | None = None
        self._missed: set[str] = set()
        self._met: dict[str, None] = {}
        """Names that a filter of names was asked about: a toolset may itself leave out what the filter refuses."""

    @abstractmethod
    async def get_tools(self, readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:
        """Its tools under their own names, those that the filter refuses left out or not.

        Args:
            readonly_context: Of the invocation that they are for. None: nothing runs.
        """

    async def get_tools_with_prefix(self, readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:
        """The tools as an agent is offered them: what the filter lets through, renamed; the same in one invocation."""
        invocation = readonly_context.invocation_id if readonly_context else None
        if invocation and self._last and self._last[0] == invocation:
            return self._last[1]
        found = await self.get_tools(readonly_context)
        self._look_for_misspelled(found)
        chosen = [tool for tool in found if self._is_tool_selected(tool, readonly_context)]
        if prefix := self.tool_name_prefix:
            chosen = [tool.renamed(f"{prefix}_{tool.name}") for tool in chosen]
        if invocation:
            self._last = (invocation, chosen)
        return chosen

    def _is_tool_selected(self, tool: BaseTool, readonly_context: ReadonlyContext | None) -> bool:
        """Whether the filter lets `tool` through. ADK's name; for subclasses."""
        if self.tool_filter is None:
            return True
        if callable(self.tool_filter):
            return self.tool_filter(tool, readonly_context)
        self._met[tool.name] = None
        return tool.name in self.tool_filter

    def _look_for_misspelled(self, found: Sequence[BaseTool]) -> None:
        """Say once of each name in the filter that no tool has it."""
        if self.tool_filter is None or callable(self.tool_filter):
            return
        known = list(dict.fromkeys([*self._met, *(tool.name for tool in found)]))
        for name in sorted(set(self.tool_filter) - {*known} - self._missed):
            self._missed.add(name)
            near = closest(name, known)
            hint = f"did you mean {near!r}?" if near else f"there is: {', '.join(known) or 'none'}"
            logger.warning("%s has no tool %r, which its tool_filter names; %s", type(self).__name__, name, hint)

    def get_auth_config(self) -> AuthConfig | None:
        """What it has to be let in with before it can tell what it has. None: nothing."""
        return None

    async def close(self) -> None:
        """Let go of what it holds, such as connections. A later use may open them again."""
        return None

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        """Prepare a request before its tools do. By default: nothing."""
        return None


class _Prepares(BaseTool):
    """Stands among an agent's tools for a toolset that prepares requests; the model never sees it."""

    def __init__(self, toolset: BaseToolset, number: int) -> None:
        super().__init__(name=f"{type(toolset).__name__} {number}", description="")
        self._toolset = toolset

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        return {"error": f"{self.name!r} is a toolset; call one of its tools"}

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        await self._toolset.process_llm_request(tool_context=tool_context, llm_request=llm_request)


async def expanded(
    agent: str, given: Sequence[BaseTool | BaseToolset], ctx: ReadonlyContext | None = None
) -> list[BaseTool]:
    """Tools, and those of toolsets in their place; of two with one name the later, but none `named_outside` instead of
    an agent's own.

    A toolset that fails is left out, and the log says so: the agent can still answer.

    Raises:
        UserError: A toolset was put together wrongly.
    """
    found = await asyncio.gather(*(_tools_of(agent, one, number, ctx) for number, one in enumerate(given, 1)))
    made: dict[str, BaseTool] = {}
    own = {one.name for one in given if isinstance(one, BaseTool)}
    for one, tool in [(one, tool) for one, tools in zip(given, found, strict=True) for tool in tools]:
        if isinstance(one, BaseToolset) and one.named_outside and tool.name in own:
            logger.warning(
                "agent %r has a tool named %r; another of %s is left out", agent, tool.name, type(one).__name__
            )
            continue
        if tool.name in made:
            logger.warning("agent %r has two tools named %r; the later one is used", agent, tool.name)
        made[tool.name] = tool
    return list(made.values())


async def _tools_of(
    agent: str, one: BaseTool | BaseToolset, number: int, ctx: ReadonlyContext | None
) -> list[BaseTool]:
    if isinstance(one, BaseTool):
        return [one]
    prepares = type(one).process_llm_request is not BaseToolset.process_llm_request
    try:
        tools = await one.get_tools_with_prefix(ctx)
    except UserError:
        raise
    except Exception as error:
        _report_left_out(agent, type(one).__name__, error)
        return []
    return [_Prepares(one, number), *tools] if prepares else tools


def _report_left_out(agent: str, toolset: str, error: Exception) -> None:
    report = on_left_out.get()
    if report:
        report(f"agent {agent!r} goes on without the tools of {toolset}: {str(error) or type(error).__name__}")
    logger.log(
        logging.INFO if report else logging.WARNING,
        "agent %r goes on without the tools of %s: %s: %s",
        agent,
        toolset,
        type(error).__name__,
        error,
    )
