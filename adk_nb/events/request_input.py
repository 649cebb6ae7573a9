"""A graph's question to the user."""

from typing import Any

from pydantic import Field

from adk_nb import clock
from adk_nb.wire import WireModel


class RequestInput(WireModel):
    """A question to the user. The run pauses until it is answered.

    Source of the shape: google-adk 2.13.
    """

    interrupt_id: str = Field(default_factory=lambda: clock.new_id())
    """Id that the answer names."""
    payload: Any = None
    """JSON shown with the question."""
    message: str | None = None
    response_schema: Any = None
    """Schema of the answer: a type that pydantic supports, or a JSON Schema. None: any value."""
