"""`google_search`: Gemini's service searches the web with Google."""

from adk_nb import types
from adk_nb.runtime.context import ToolContext
from adk_nb.tools.service_tool import ServiceTool


class GoogleSearchTool(ServiceTool):
    """Grounds answers in a search. Google asks for its suggestions to be shown with them.

    They are in `grounding_metadata.search_entry_point.rendered_content`, as HTML. Source:
    https://ai.google.dev/gemini-api/docs/grounding/search-suggestions.
    """

    def __init__(self) -> None:
        super().__init__("google_search")

    def setting(self, tool_context: ToolContext) -> types.Tool:
        return types.Tool(google_search=types.GoogleSearch())


google_search = GoogleSearchTool()
