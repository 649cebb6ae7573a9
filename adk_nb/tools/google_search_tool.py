"""`google_search`: a web search by Gemini's service, or by a registered backend for other models."""

from collections.abc import Callable
from typing import Any

from adk_nb import types
from adk_nb.errors import ConfigurationError
from adk_nb.models.llm_request import LlmRequest
from adk_nb.runtime.context import ToolContext
from adk_nb.tools.function_tool import FunctionTool
from adk_nb.tools.service_tool import ServiceTool

_NAME = "google_search"
_DESCRIPTION = "Searches the web."

_backend: FunctionTool | None = None


def register_search_backend(search: Callable[..., Any] | None) -> None:
    """Register the function behind `google_search` for models whose service has no search.

    Args:
        search: Sync or async; takes `query: str`, other parameters need defaults; its result goes to the model. The
            docstring is the description. None: unregister.

    Raises:
        ConfigurationError: It has no parameter `query`, or needs others.
    """
    global _backend
    if search is None:
        _backend = None
        return
    backend = FunctionTool(search, name=_NAME, description=(search.__doc__ or "").strip() or _DESCRIPTION)
    if backend.signature.required != ["query"]:
        needs = ", ".join(backend.signature.required) or "nothing"
        raise ConfigurationError(
            f"a search backend takes a query, and {search!r:.80} needs {needs}; write `def search(query: str) -> list:`"
        )
    _backend = backend


class GoogleSearchTool(ServiceTool):
    """Grounds answers in a Google search. Google's terms require showing the search suggestions with the answer.

    They are in `grounding_metadata.search_entry_point.rendered_content`, as HTML. Source:
    https://ai.google.dev/gemini-api/docs/grounding/search-suggestions.
    """

    alternative = "or write a search of your own: adk_nb.tools.register_search_backend(search)"

    def __init__(self, *, bypass_multi_tools_limit: bool = False, model: str | None = None) -> None:
        """Configure the search.

        Args:
            bypass_multi_tools_limit: With other tools present, wrap the search in an agent `google_search_agent` that
                the model calls: for services that take a search only alone.
            model: Model that answers requests with this tool. None: the agent's.
        """
        super().__init__(_NAME)
        self.bypass_multi_tools_limit = bypass_multi_tools_limit
        self.model = model

    @property
    def stands_alone(self) -> bool:
        """True with `bypass_multi_tools_limit`."""
        return self.bypass_multi_tools_limit

    def setting(self, tool_context: ToolContext) -> types.Tool:
        """The field `google_search`."""
        return types.Tool(google_search=types.GoogleSearch())

    def check(self, args: dict[str, Any]) -> str | None:
        """Validate `args` for the registered backend."""
        return _backend.check(args) if _backend else None

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """Call the registered backend."""
        if _backend:
            return await _backend.run_async(args=args, tool_context=tool_context)
        return await super().run_async(args=args, tool_context=tool_context)

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        """Enable the service's search, or declare the backend where the service has none."""
        if _backend and (self.missing(tool_context, llm_request) or not self.declared(tool_context, llm_request)):
            llm_request.append_tools([_backend])
        else:
            llm_request.model = self.model or llm_request.model
            await super().process_llm_request(tool_context=tool_context, llm_request=llm_request)


google_search = GoogleSearchTool()
