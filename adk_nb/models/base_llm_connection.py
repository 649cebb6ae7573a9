"""A live conversation with a model: it hears and speaks at the same time."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Sequence

from adk_nb import types
from adk_nb.models.llm_response import LlmResponse

RealtimeInput = types.Blob | types.ActivityStart | types.ActivityEnd | types.LiveClientRealtimeInput
"""A piece of sound, a picture, or a signal. Of the last kind only `audio_stream_end` is sent."""


class BaseLlmConnection(ABC):
    """One open connection. What is sent, and `receive`, run at the same time, in two tasks."""

    @abstractmethod
    async def send_history(self, history: Sequence[types.Content]) -> None:
        """Tell what was said before, oldest first; once, before anything else is sent.

        The model answers if the last word was the user's.
        """

    @abstractmethod
    async def send_content(self, content: types.Content, *, partial: bool = False) -> None:
        """Send a user's words, or the results of calls, which then are all of its parts.

        Args:
            content: Not changed.
            partial: The model waits for more before it answers.

        Raises:
            ModelConnectionLost: The connection broke; then `receive` ends, too.
        """

    @abstractmethod
    async def send_realtime(self, blob: RealtimeInput) -> None:
        """Send sound, a picture or a signal as it comes; the model finds out itself when it is to answer.

        Raises:
            ModelConnectionLost: The connection broke; then `receive` ends, too.
        """

    @abstractmethod
    def receive(self) -> AsyncGenerator[LlmResponse, None]:
        """What the model says, as it comes. Asked again when it ends; if nothing comes then, the conversation is over.

        Yields:
            Pieces of words and transcripts (`partial=True`), then each whole; sound and calls; `interrupted` when the
            user spoke in between, and `turn_complete` when the model has said all.

        Raises:
            ModelConnectionLost: The connection broke, or the service ended it: it may be taken up again.
            ModelError: The service refuses to go on.
        """

    @abstractmethod
    async def close(self) -> None:
        """Close it. What was sent and not answered yet is lost."""
