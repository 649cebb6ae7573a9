"""The agent that a `%%agent` cell defines: its tools are looked up by name and its braces filled in at each turn."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol, Self

from pydantic import PrivateAttr

from adk_nb import types
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.errors import ToolNotFoundError
from adk_nb.notebook.registry.templates import Template
from adk_nb.runtime.context import ReadonlyContext
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.base_toolset import BaseToolset


class Names(Protocol):
    """What such an agent asks its notebook."""

    def tools_named(self, names: Sequence[str], /) -> Sequence[BaseTool | BaseToolset]: ...
    def is_key(self, name: str, /) -> bool: ...


class CellAgent(LlmAgent):
    """An LlmAgent in all respects. What is assigned to its `tools` or `instruction` in Python counts from then on."""

    _names: Names | None = PrivateAttr(default=None)
    _tool_names: tuple[str, ...] = PrivateAttr(default=())
    _found: list[Any] | None = PrivateAttr(default=None)
    """The tools as last looked up; other ones in `tools` were put there by hand."""
    _source: str = PrivateAttr(default="")
    _written: Template | None = PrivateAttr(default=None)

    def bind(self, names: Names, tools: Sequence[str], written: Template | None) -> Self:
        """Look `tools` up in `names` from now on, and fill `written` in instead of the instruction."""
        self._names, self._tool_names, self._found = names, tuple(tools), self.tools
        self._source, self._written = str(self.instruction), written
        if written and written.attached and not self.static_instruction:  # an instruction alone is text
            self.static_instruction = types.Content(role="user", parts=[*written.attached])
        return self

    def clone(self, update: Mapping[str, Any] | None = None) -> Self:
        copy = super().clone(update)
        if self.tools is self._found and "tools" not in (update or {}):
            copy._found = copy.tools  # it looks its tools up by their names, too
        return copy

    async def canonical_tools(self, ctx: ReadonlyContext | None = None, /) -> list[BaseTool]:
        """Its tools as they are defined now.

        Raises:
            ToolNotFoundError: One is not defined.
        """
        self._look_up()
        return await super().canonical_tools(ctx)

    def tools_now(self) -> list[BaseTool]:
        """Its tools as they are defined now; as they were last, if one is not."""
        with suppress(ToolNotFoundError):
            self._look_up()
        return super().tools_now()

    def _look_up(self) -> None:
        if self._names and self.tools is self._found:
            self.tools = self._found = list[Any](self._names.tools_named(self._tool_names))

    @property
    def as_written(self) -> Template | None:
        """What its cell says, variables put in; None if the cell's braces mean nothing, or Python has changed it."""
        return self._written if self.instruction == self._source else None

    async def canonical_instruction(self, ctx: ReadonlyContext, /) -> tuple[str, bool]:
        if self._names and self._written and self.instruction == self._source:
            return await self._written.filled(ctx, self._names.is_key), True
        return await super().canonical_instruction(ctx)
