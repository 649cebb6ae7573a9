from adk_nb.runtime.live_request_queue import LiveRequest as LiveRequest
from adk_nb.runtime.live_request_queue import LiveRequestQueue as LiveRequestQueue
