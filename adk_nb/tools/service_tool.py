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
    """

    at = "a Gemini model, from 2 on"
    """Who has such a service."""

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
        agent = cast(_Asks, tool_context.get_invocation_context().agent)
        model, wanted = agent.canonical_model, self.setting(tool_context)
        if missing := sorted(wanted.model_fields_set - set(model.capabilities.service_tools)):
            raise ConfigurationError(
                f"agent {agent.name!r}: tool {self.name!r} needs a model whose service has {missing[0]}, and that of "
                f"{model.model!r} has none; take {self.at}, or another tool"
            )
        before: list[Any] = [*(cast(Any, llm_request.config).tools or [])]
        llm_request.config.tools = [*before, wanted]
