"""`url_context`: Gemini's service reads the pages whose URLs are in the conversation."""

from adk_nb import types
from adk_nb.runtime.context import ToolContext
from adk_nb.tools.service_tool import ServiceTool


class UrlContextTool(ServiceTool):
    """Grounds answers in web pages."""

    def __init__(self) -> None:
        super().__init__("url_context")

    def setting(self, tool_context: ToolContext) -> types.Tool:
        """The field `url_context`."""
        return types.Tool(url_context=types.UrlContext())


url_context = UrlContextTool()
