"""Toolsets: groups of tools from one source, which may change over time."""

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
from adk_nb.tools.function_tool import FunctionTool

logger = logging.getLogger(__name__)

on_toolset_failure: ContextVar[Callable[[str], None] | None] = ContextVar("adk_nb_on_toolset_failure", default=None)
"""Callback of a run with a viewer: gets a sentence for each toolset that failed to list its tools."""

ToolPredicate = Callable[[BaseTool, ReadonlyContext | None], bool]
"""`(tool, context) -> bool`: True if the agent is offered the tool. The context is None outside a run."""


class BaseToolset(ABC):
    """A source of tools in an agent's `tools`; it lists them once per invocation.

    Args:
        tool_filter: The names of the tools to offer, or a predicate. None: all.
        tool_name_prefix: The tools are offered as `<prefix>_<name>`; the filter knows them without it.

    Raises:
        ConfigurationError: The prefix makes names that are reserved.
    """

    external_names: bool = False
    """True: a server names the tools, not the agent's author. On a clash the agent's own tool wins."""

    def __init__(
        self, *, tool_filter: ToolPredicate | Sequence[str] | None = None, tool_name_prefix: str | None = None
    ) -> None:
        if f"{tool_name_prefix or ''}_".startswith(RESERVED):
            raise ConfigurationError(
                f"tool_name_prefix={tool_name_prefix!r}: names that start with {RESERVED!r} are reserved"
            )
        self.tool_filter = tool_filter
        self.tool_name_prefix = tool_name_prefix
        self._use_invocation_cache = True
        """False: it is asked for its tools whenever they are listed, not once per invocation. ADK's name."""
        self._cached: tuple[str, list[BaseTool]] | None = None
        self._copies: dict[tuple[int, str], tuple[BaseTool, BaseTool]] = {}
        """Outside a run: id() of a tool and its name with the prefix -> the tool and its copy of that name."""
        self._reported_names: set[str] = set()
        self._filtered_names: dict[str, None] = {}
        """Names that were checked against the filter, since a subclass may apply it before `get_tools` returns."""

    @abstractmethod
    async def get_tools(self, readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:
        """List the tools under their own names. Applying the filter here is optional.

        Args:
            readonly_context: Context of the invocation. None: outside a run.
        """

    async def get_tools_with_prefix(self, readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:
        """List the tools as the agent is offered them: filtered and prefixed. Cached for one invocation.

        Outside a run, the copies of tools that it still has are the same each time.
        """
        invocation = readonly_context.invocation_id if readonly_context else None
        # Cached for the invocation, so that the tools do not change between the steps of one run.
        if invocation and self._use_invocation_cache and self._cached and self._cached[0] == invocation:
            return self._cached[1]
        tools = await self.get_tools(readonly_context)
        self._warn_unknown_filter_names(tools)
        selected = [tool for tool in tools if self._is_tool_selected(tool, readonly_context)]
        if prefix := self.tool_name_prefix:
            known = {} if invocation else self._copies
            copies: dict[tuple[int, str], tuple[BaseTool, BaseTool]] = {}
            for tool in selected:
                name = f"{prefix}_{tool.name}"
                # With its tool, whose id is not used again then.
                copies[id(tool), name] = known.get((id(tool), name)) or (tool, tool.renamed(name))
            self._copies = self._copies if invocation else copies
            selected = [copy for _, copy in copies.values()]
        if invocation:
            self._cached = (invocation, selected)
        return selected

    def _is_tool_selected(self, tool: BaseTool, readonly_context: ReadonlyContext | None) -> bool:
        """Return True if the filter accepts `tool`. ADK's name; for subclasses."""
        if self.tool_filter is None:
            return True
        if callable(self.tool_filter):
            return self.tool_filter(tool, readonly_context)
        self._filtered_names[tool.name] = None
        return tool.name in self.tool_filter

    def _warn_unknown_filter_names(self, tools: Sequence[BaseTool]) -> None:
        """Warn once for each name in the filter that no tool has."""
        if self.tool_filter is None or callable(self.tool_filter):
            return
        names = list(dict.fromkeys([*self._filtered_names, *(tool.name for tool in tools)]))
        for name in sorted(set(self.tool_filter) - {*names} - self._reported_names):
            self._reported_names.add(name)
            suggestion = closest(name, names)
            hint = f"did you mean {suggestion!r}?" if suggestion else f"there is: {', '.join(names) or 'none'}"
            logger.warning("%s has no tool %r, which its tool_filter names; %s", type(self).__name__, name, hint)

    def get_auth_config(self) -> AuthConfig | None:
        """The credential it needs to list its tools. None: no credential."""
        return None

    async def close(self) -> None:
        """Close its connections. A later call may open new ones."""
        return None

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        """Prepare a request before the tools do. The default does nothing."""
        return None


class _RequestHook(BaseTool):
    """Entry in the list of tools that lets a toolset prepare requests; the model never sees it."""

    def __init__(self, toolset: BaseToolset, number: int) -> None:
        super().__init__(name=f"{type(toolset).__name__} {number}", description="")
        self._toolset = toolset

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """Return an error: a model never calls this tool."""
        return {"error": f"{self.name!r} is a toolset; call one of its tools"}

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        await self._toolset.process_llm_request(tool_context=tool_context, llm_request=llm_request)


async def expand_toolsets(
    agent: str,
    tools: Sequence[BaseTool | BaseToolset],
    ctx: ReadonlyContext | None = None,
    *,
    owners: dict[str, BaseToolset] | None = None,
) -> list[BaseTool]:
    """Replace toolsets by their tools.

    Of two tools with the same name the later wins; but one of a toolset with `external_names` takes no name that an
    agent's own tool or an earlier toolset has, or had: its server would get calls that are meant for another. A
    toolset that fails is skipped with a warning: the agent can still answer.

    Args:
        agent: The agent's name.
        tools: Its tools and toolsets.
        ctx: Context of the invocation. None: outside a run.
        owners: The agent's memory of which toolset had which name; it is updated.

    Raises:
        UserError: A toolset is misconfigured.
    """
    tool_lists = await asyncio.gather(
        *(_tools_from(agent, entry, number, ctx) for number, entry in enumerate(tools, 1))
    )
    owners = {} if owners is None else owners
    positions = {id(entry): position for position, entry in enumerate(tools)}
    by_name: dict[str, BaseTool] = {}
    own_names = {entry.name for entry in tools if isinstance(entry, BaseTool)}
    for entry, tool in ((entry, tool) for entry, group in zip(tools, tool_lists, strict=True) for tool in group):
        name = tool.name
        if isinstance(entry, BaseToolset) and entry.external_names:
            is_taken = name in own_names or name in by_name
            # The owner may be out of reach in this turn: its name is not free then.
            owner = owners.get(name)
            if owner and owner is not entry and id(owner) in positions:
                is_taken |= not owner.external_names or positions[id(owner)] < positions[id(entry)]
            if is_taken:
                logger.warning(
                    "the name %r belongs to another tool of agent %r; that of %s is left out; with "
                    "tool_name_prefix=... it has both",
                    name,
                    agent,
                    type(entry).__name__,
                )
                continue
        if name in by_name:
            logger.warning("agent %r has two tools named %r; the later one is used", agent, name)
        by_name[name] = tool
        if isinstance(entry, BaseToolset):
            owners[name] = entry
    return list(by_name.values())


async def _tools_from(
    agent: str, entry: BaseTool | BaseToolset, number: int, ctx: ReadonlyContext | None
) -> list[BaseTool]:
    if isinstance(entry, BaseTool):
        return [entry]
    has_request_hook = type(entry).process_llm_request is not BaseToolset.process_llm_request
    try:
        tools = await entry.get_tools_with_prefix(ctx)
    except UserError:
        raise
    except Exception as error:
        toolset = type(entry).__name__
        if report := on_toolset_failure.get():
            report(f"agent {agent!r} goes on without the tools of {toolset}: {str(error) or type(error).__name__}")
        logger.log(
            logging.INFO if report else logging.WARNING,
            "agent %r goes on without the tools of %s: %s: %s",
            agent,
            toolset,
            type(error).__name__,
            error,
        )
        return []
    return [_RequestHook(entry, number), *tools] if has_request_hook else tools


class StaticToolset(BaseToolset):
    """A fixed list of tools; use it for its filter and prefix."""

    def __init__(
        self,
        tools: Sequence[BaseTool | Callable[..., Any]],
        *,
        tool_filter: ToolPredicate | Sequence[str] | None = None,
        tool_name_prefix: str | None = None,
    ) -> None:
        """`tools`: functions are wrapped as FunctionTool."""
        super().__init__(tool_filter=tool_filter, tool_name_prefix=tool_name_prefix)
        self.tools = [tool if isinstance(tool, BaseTool) else FunctionTool(tool) for tool in tools]

    async def get_tools(self, readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:
        """The tools that the filter accepts."""
        self._warn_unknown_filter_names(self.tools)
        return [tool for tool in self.tools if self._is_tool_selected(tool, readonly_context)]
