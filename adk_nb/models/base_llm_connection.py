"""The interface of a live conversation with a model: input and output run at the same time."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Sequence

from adk_nb import types
from adk_nb.models.llm_response import LlmResponse

RealtimeInput = types.Blob | types.ActivityStart | types.ActivityEnd | types.LiveClientRealtimeInput
"""A chunk of sound, an image, or a signal. Of LiveClientRealtimeInput only `audio_stream_end` is sent."""


class BaseLlmConnection(ABC):
    """An open connection. One task sends, another iterates over `receive`."""

    @abstractmethod
    async def send_history(self, history: Sequence[types.Content]) -> None:
        """Send the earlier conversation, oldest first; once, before anything else.

        The model answers if the last content is the user's.
        """

    @abstractmethod
    async def send_content(self, content: types.Content, *, partial: bool = False) -> None:
        """Send a user message, or function responses without other parts.

        Args:
            content: Not changed.
            partial: More follows before the model answers.

        Raises:
            ModelConnectionLost: The connection broke; then `receive` ends, too.
        """

    @abstractmethod
    async def send_realtime(self, blob: RealtimeInput) -> None:
        """Send sound, an image or a signal as it comes; the model itself decides when to answer.

        Raises:
            ModelConnectionLost: The connection broke; then `receive` ends, too.
        """

    @abstractmethod
    def receive(self) -> AsyncGenerator[LlmResponse, None]:
        """Receive the model's output as it comes, at most one turn. Called for each turn; the connection has ended once
        a call yields nothing.

        Yields:
            Partial texts and transcripts (`partial=True`), each repeated when it is complete; sound and calls;
            `interrupted` if the user spoke meanwhile, and `turn_complete` at the end of the model's turn.

        Raises:
            ModelConnectionLost: The connection broke, or the service ended it: it may be resumed.
            ModelError: The service refuses to continue.
        """

    @abstractmethod
    async def close(self) -> None:
        """Close the connection. Input that was not answered yet is lost."""
