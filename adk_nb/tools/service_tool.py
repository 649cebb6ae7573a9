"""What a model's own service looks up while it answers: among an agent's tools, it switches that on in the request."""

from abc import abstractmethod
from typing import Any, Protocol, cast

from adk_nb import types
from adk_nb.errors import ConfigurationError
from adk_nb.models.base_llm import BaseLlm
from adk_nb.models.llm_request import LlmRequest
from adk_nb.runtime.context import ToolContext
from adk_nb.tools.base_tool import BaseTool


class _Asks(Protocol):
    """What is read of the agent that has the tool."""

    @property
    def name(self) -> str: ...
    @property
    def canonical_model(self) -> BaseLlm: ...


class ServiceTool(BaseTool):
    """A setting of the request, and no function: the model neither sees nor calls it.

    What was looked up comes in the answer's text, and where it was found in the event's `grounding_metadata`.

    Services have limits, and say so with an error of theirs: Gemini 2 takes one such tool alone, without functions
    beside it and without agents to hand over to; Gemini 3 takes several, and functions. Give it an agent of its own
    then, and that to others as AgentTool. Source: https://ai.google.dev/gemini-api/docs/tool-combination.
    """

    at = "a Gemini model, from 2 on"
    """Who has such a service."""

    otherwise = "or another tool"
    """What else can be done."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name, description=name)

    @abstractmethod
    def setting(self, tool_context: ToolContext) -> types.Tool:
        """The tool as the service is told of it, with one field set."""

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        return {"error": f"{self.name} is not called: ask what you want to know, and the service looks it up"}

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        """Switch it on.

        Raises:
            ConfigurationError: The agent's model has no such service.
        """
        if missing := self.missing(tool_context):
            agent = _asking(tool_context)
            raise ConfigurationError(
                f"agent {agent.name!r}: tool {self.name!r} needs a model whose service has {missing}, and that of "
                f"{agent.canonical_model.model!r} has none; take {self.at}, {self.otherwise}"
            )
        before: list[Any] = [*(cast(Any, llm_request.config).tools or [])]
        llm_request.config.tools = [*before, self.setting(tool_context)]

    def declared(self, tool_context: ToolContext) -> bool:
        """True if the class of the agent's model says what its service has."""
        return type(_asking(tool_context).canonical_model).capabilities is not BaseLlm.capabilities

    def missing(self, tool_context: ToolContext) -> str | None:
        """What the service of the agent's model would have to have. None: it has all."""
        has = _asking(tool_context).canonical_model.capabilities.service_tools
        return next(iter(sorted(self.setting(tool_context).model_fields_set - set(has))), None)


def _asking(tool_context: ToolContext) -> _Asks:
    return cast(_Asks, tool_context.get_invocation_context().agent)
