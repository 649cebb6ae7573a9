"""`enterprise_web_search`: Vertex AI's web search for regulated businesses."""

from adk_nb import types
from adk_nb.runtime.context import ToolContext
from adk_nb.tools.service_tool import ServiceTool


class EnterpriseWebSearchTool(ServiceTool):
    """Grounds answers in a web search, on Vertex AI only."""

    requirement = "a Gemini model of Vertex AI (GOOGLE_GENAI_USE_VERTEXAI=true)"

    def __init__(self) -> None:
        super().__init__("enterprise_web_search")

    def setting(self, tool_context: ToolContext) -> types.Tool:
        """The field `enterprise_web_search`."""
        return types.Tool(enterprise_web_search=types.EnterpriseWebSearch())


enterprise_web_search = enterprise_web_search_tool = EnterpriseWebSearchTool()
