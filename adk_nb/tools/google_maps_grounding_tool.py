"""`google_maps_grounding`: Gemini's service looks up places in Google Maps."""

from adk_nb import types
from adk_nb.runtime.context import ToolContext
from adk_nb.tools.service_tool import ServiceTool


class GoogleMapsGroundingTool(ServiceTool):
    """Grounds answers in Google Maps."""

    def __init__(self) -> None:
        super().__init__("google_maps")

    def setting(self, tool_context: ToolContext) -> types.Tool:
        """The field `google_maps`."""
        return types.Tool(google_maps=types.GoogleMaps())


google_maps_grounding = GoogleMapsGroundingTool()
