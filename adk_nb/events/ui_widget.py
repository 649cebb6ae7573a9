"""ADK's path to widgets that a tool shows."""

from adk_nb.events.event_actions import UiWidget

__all__ = ["UiWidget"]
