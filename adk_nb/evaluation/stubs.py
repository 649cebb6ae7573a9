"""Answers in place of tools: an evaluation that must not pay or send mail."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, cast

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.agents.tree import agents_below
from adk_nb.errors import InputError, did_you_mean
from adk_nb.evaluation.cases import Case
from adk_nb.evaluation.eval_case import IntermediateData, Invocation, InvocationEvents
from adk_nb.plugins.base_plugin import BasePlugin
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.tool_context import ToolContext

STUBBED = "(stubbed)"
"""The result of a call for which its case has none."""


@dataclass(kw_only=True)
class StubbedCase:
    """The case that a row runs, and how often each of its tools was answered."""

    case: Case
    answered: Counter[str] = field(default_factory=Counter[str])


stubbed_case: ContextVar[StubbedCase | None] = ContextVar("adk_nb_stubbed_case", default=None)
"""The case of the row that runs in this context."""


class StubPlugin(BasePlugin):
    """Answers calls of some tools, which then do not run and ask for no approval.

    The result is that of the case: its column `stubs`, or the results of these calls in its expected turns, in their
    order. Else it is `"(stubbed)"`.
    """

    def __init__(self, names: Collection[str]) -> None:
        super().__init__("stubs")
        self._names = frozenset(names)

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        """The result in place of a stubbed tool's."""
        if tool.name not in self._names:
            return None
        row = stubbed_case.get()
        result: Any = STUBBED
        if row:
            number = row.answered[tool.name]
            row.answered[tool.name] += 1
            expected = [results for turn in row.case.reference for results in _results(turn, tool.name)]
            if tool.name in row.case.stubs:
                result = row.case.stubs[tool.name]
            elif number < len(expected):
                result = expected[number]
        return dict(cast(Mapping[str, Any], result)) if isinstance(result, Mapping) else {"result": result}


def check_stubs(agent: BaseAgent, names: Collection[str]) -> None:
    """Refuse the name of a tool that no agent has.

    Raises:
        InputError: There is no such tool, and no toolset that could have it.
    """
    agents = [below for below in agents_below(agent) if isinstance(below, LlmAgent)]
    known = {tool.name for below in agents for tool in below.tools_now()}
    if any(below.toolsets for below in agents):
        return
    for name in names:
        if name not in known:
            there = ", ".join(sorted(known)) or "none"
            raise InputError(f"no tool {name!r} to stub; {did_you_mean(name, known, f'the tools are: {there}')}")


def _results(turn: Invocation, name: str) -> Iterator[Any]:
    data = turn.intermediate_data
    if isinstance(data, IntermediateData):
        found = data.tool_responses
    else:
        contents = [event.content for event in data.invocation_events] if isinstance(data, InvocationEvents) else []
        parts = [part for content in contents if content for part in content.parts or ()]
        found = [part.function_response for part in parts if part.function_response]
    yield from (response.response for response in found if response.name == name)
