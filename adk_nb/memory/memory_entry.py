"""One thing that is remembered."""

from typing import Any

from pydantic import Field

from adk_nb import types
from adk_nb.wire import WireModel


class MemoryEntry(WireModel):
    """One thing that is remembered."""

    content: types.Content
    custom_metadata: dict[str, Any] = Field(default_factory=dict[str, Any])
    id: str | None = None
    """Of an event, the event's own. None: the service gives it one when it is kept."""
    author: str | None = None
    """`user`, or the name of the agent that said it."""
    timestamp: str | None = None
    """When it was said; ISO 8601, UTC. Told to the model as it stands."""

    @property
    def text(self) -> str:
        """Its words, without thoughts."""
        parts = self.content.parts or ()
        return " ".join(part.text for part in parts if part.text and not part.thought)
