from adk_nb.events.event import Event as Event
from adk_nb.events.event_actions import EventActions as EventActions
from adk_nb.events.event_actions import EventCompaction as EventCompaction
from adk_nb.events.request_input import RequestInput as RequestInput
from adk_nb.events.tool_confirmation import ToolConfirmation as ToolConfirmation
