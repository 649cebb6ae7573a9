"""`google_search`: Gemini's service searches the web with Google, or a search of one's own does where it cannot."""

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
    """Let models whose service does not search use `google_search` too: they call `search` as a function tool.

    Args:
        search: Sync or async; takes `query: str`, whatever else has a default, and returns what the model is told. Its
            docstring is the description. None: take back what was registered.

    Raises:
        ConfigurationError: It takes no `query`, or asks for more.
    """
    global _backend
    if search is None:
        _backend = None
        return
    made = FunctionTool(search, name=_NAME, description=(search.__doc__ or "").strip() or _DESCRIPTION)
    if made.signature.required != ["query"]:
        needs = ", ".join(made.signature.required) or "nothing"
        raise ConfigurationError(
            f"a search backend takes a query, and {search!r:.80} needs {needs}; write `def search(query: str) -> list:`"
        )
    _backend = made


class GoogleSearchTool(ServiceTool):
    """Grounds answers in a search. Google asks for its suggestions to be shown with them.

    They are in `grounding_metadata.search_entry_point.rendered_content`, as HTML. Source:
    https://ai.google.dev/gemini-api/docs/grounding/search-suggestions.
    """

    otherwise = "or write a search of your own: adk_nb.tools.register_search_backend(search)"

    def __init__(self, *, bypass_multi_tools_limit: bool = False, model: str | None = None) -> None:
        """A search.

        Args:
            bypass_multi_tools_limit: Beside other tools it becomes an agent of its own, that only searches and that the
                model calls as `google_search_agent`: for services that take a search only alone.
            model: Name of the service's model that answers requests with this tool. None: the agent's.
        """
        super().__init__(_NAME)
        self.bypass_multi_tools_limit = bypass_multi_tools_limit
        self.model = model

    def setting(self, tool_context: ToolContext) -> types.Tool:
        return types.Tool(google_search=types.GoogleSearch())

    def check(self, args: dict[str, Any]) -> str | None:
        return _backend.check(args) if _backend else None

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        if _backend:
            return await _backend.run_async(args=args, tool_context=tool_context)
        return await super().run_async(args=args, tool_context=tool_context)

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        if _backend and (self.missing(tool_context) or not self.declared(tool_context)):
            llm_request.append_tools([_backend])
        else:
            await super().process_llm_request(tool_context=tool_context, llm_request=llm_request)
            llm_request.model = self.model or llm_request.model


google_search = GoogleSearchTool()
