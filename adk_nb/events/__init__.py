"""Events, under ADK's import paths."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(
    __name__,
    {
        "Event": "adk_nb.events.event",
        "EventActions": "adk_nb.events.event_actions",
        "EventCompaction": "adk_nb.events.event_actions",
        "RequestInput": "adk_nb.events.request_input",
        "ToolConfirmation": "adk_nb.events.tool_confirmation",
    },
)
