"""ADK's path to the queue of a live conversation."""

from adk_nb.runtime.live_request_queue import LiveRequest, LiveRequestQueue

__all__ = ["LiveRequest", "LiveRequestQueue"]
