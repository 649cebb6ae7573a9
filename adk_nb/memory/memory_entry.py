"""A memory."""

from typing import Any

from pydantic import Field

from adk_nb import types
from adk_nb.wire import WireModel


class MemoryEntry(WireModel):
    """A memory: a piece of an earlier conversation."""

    content: types.Content
    custom_metadata: dict[str, Any] = Field(default_factory=dict[str, Any])
    id: str | None = None
    """For an event, the event's id. None: assigned by the service."""
    author: str | None = None
    """`user`, or the name of the agent."""
    timestamp: str | None = None
    """Time of the text, ISO 8601, UTC. Shown to the model as it is."""

    @property
    def text(self) -> str:
        """The text, without thoughts."""
        parts = self.content.parts or ()
        return " ".join(part.text for part in parts if part.text and not part.thought)
