"""What both sides of A2A share: versions, bindings, paths, and the keys that ADK's agents put into metadata.

Sources: https://a2a-protocol.org/latest/specification/ (1.0); google-adk 2.13 for the keys.
"""

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from adk_nb.lazy import require

EXTRA = "adk-nb[a2a]"
"""The extra that installs a2a-sdk, which speaks the protocol."""
AGENT_CARD_WELL_KNOWN_PATH = CARD_PATH = "/.well-known/agent-card.json"
OLD_CARD_PATH = "/.well-known/agent.json"
"""Until 0.2."""
JSONRPC, HTTP_JSON = "JSONRPC", "HTTP+JSON"
BINDINGS = (JSONRPC, HTTP_JSON)
VERSIONS = ("1.0", "0.3")
MAX_BYTES = 64 * 1024 * 1024
"""Limit of a request, and of a reply with all its updates."""

TYPE = "adk_type"
"""Key in the metadata of a data part: what the data is."""
FUNCTION_CALL, FUNCTION_RESPONSE = "function_call", "function_response"
LONG_RUNNING = "adk_is_long_running"
"""Key in the metadata of a function call: True if the task waits for its response."""
THOUGHT = "adk_thought"
"""Key in the metadata of a text part: True if it is not an answer."""

WORKING = ("TASK_STATE_SUBMITTED", "TASK_STATE_WORKING", "TASK_STATE_UNSPECIFIED")
"""States in which a task goes on by itself."""
WAITING = ("TASK_STATE_INPUT_REQUIRED", "TASK_STATE_AUTH_REQUIRED")
"""States in which a task waits for a message."""


def a2a_types() -> ModuleType:
    """The messages of the protocol.

    Raises:
        MissingExtraError: a2a-sdk is not installed.
    """
    return require("a2a.types", package=EXTRA)


def state_name(status: Any) -> str:
    """`TASK_STATE_...` of a task's status."""
    return a2a_types().TaskState.Name(status.state)


def metadata_of(message: Any) -> Mapping[str, Any]:
    """The metadata of a message or a part, as JSON."""
    if not message.HasField("metadata"):
        return {}
    # A Struct; its numbers are floats.
    return require("google.protobuf.json_format", package=EXTRA).MessageToDict(message.metadata)
