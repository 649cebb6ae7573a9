"""Tools of a model's own service, such as a search: enabled in the request, run by the service."""

from abc import abstractmethod
from typing import Any

from adk_nb import types
from adk_nb.errors import ConfigurationError
from adk_nb.models.base_llm import BaseLlm
from adk_nb.models.llm_request import LlmRequest, tools_of
from adk_nb.models.registry import LLMRegistry
from adk_nb.runtime.context import ToolContext
from adk_nb.tools.base_tool import BaseTool


class ServiceTool(BaseTool):
    """A setting of the request, not a function: the model neither sees nor calls it.

    Results are part of the answer's text; their sources are in the event's `grounding_metadata`.

    Services limit combinations and report an error: Gemini 2 takes one such tool alone, without functions or agents to
    transfer to; Gemini 3 takes several, and functions. Otherwise give the tool an agent of its own, and use that as an
    AgentTool. Source: https://ai.google.dev/gemini-api/docs/tool-combination.
    """

    requirement = "a Gemini model, from 2 on"
    """Models whose service has it; part of an error message."""

    alternative = "or another tool"
    """Another remedy; part of the same message."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name, description=name)

    @abstractmethod
    def setting(self, tool_context: ToolContext) -> types.Tool:
        """The tool's setting in the request: a types.Tool with one field set."""

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """Return an error: a model never calls this tool."""
        return {"error": f"{self.name} is not called: ask what you want to know, and the service looks it up"}

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        """Enable the tool in the request.

        Raises:
            ConfigurationError: The service of the agent's model does not have it.
        """
        if missing := self.missing(tool_context, llm_request):
            model = requested_model(tool_context, llm_request)
            raise ConfigurationError(
                f"agent {tool_context.agent_name!r}: tool {self.name!r} needs a model whose service has {missing}, and "
                f"that of {model.model!r} has none; take {self.requirement}, {self.alternative}"
            )
        llm_request.config.tools = [*tools_of(llm_request), self.setting(tool_context)]

    def declared(self, tool_context: ToolContext, llm_request: LlmRequest) -> bool:
        """True if the class of the model states its own capabilities, instead of inheriting the defaults."""
        return type(requested_model(tool_context, llm_request)).capabilities is not BaseLlm.capabilities

    def missing(self, tool_context: ToolContext, llm_request: LlmRequest) -> str | None:
        """Name of the setting that the service of the model lacks. None: it has all."""
        available = requested_model(tool_context, llm_request).capabilities.service_tools
        return min(self.setting(tool_context).model_fields_set.difference(available), default=None)


def requested_model(tool_context: ToolContext, llm_request: LlmRequest) -> BaseLlm:
    """The model of the context's agent; of an agent without one, such as a sequence, the one that the request names.

    Raises:
        ModelNotFoundError: There is no model of that name.
        ConfigurationError: The request names none.
    """
    model: object = getattr(tool_context.get_invocation_context().agent, "canonical_model", None)
    if isinstance(model, BaseLlm):
        return model
    if not llm_request.model:
        raise ConfigurationError(
            f"agent {tool_context.agent_name!r} has no model, and the request names none; "
            'write LlmRequest(model="gemini-3.8-flash")'
        )
    return LLMRegistry.new_llm(llm_request.model)
