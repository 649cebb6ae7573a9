"""What a graph asks of a person while it runs."""

from typing import Any

from pydantic import Field

from adk_nb import clock
from adk_nb.wire import WireModel


class RequestInput(WireModel):
    """A question. The run pauses until it is answered.

    Source of the shape: google-adk 2.13.
    """

    interrupt_id: str = Field(default_factory=lambda: clock.new_id())
    """What an answer names."""
    payload: Any = None
    """JSON that is shown with the question."""
    message: str | None = None
    response_schema: Any = None
    """Of the answer: a type that pydantic knows, or a JSON Schema. None: anything."""
