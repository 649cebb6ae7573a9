"""The input queue of a live conversation: text, audio, images and activity signals for the model."""

import asyncio
import threading
from collections.abc import AsyncGenerator
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict

from adk_nb import types
from adk_nb.concurrency.threads import running_loop
from adk_nb.errors import InputError
from adk_nb.events.event import as_content


class LiveRequest(BaseModel):
    """One input. If several fields are set, a signal takes precedence over `blob`, and `blob` over `content`."""

    model_config = ConfigDict(extra="forbid", ser_json_bytes="base64", val_json_bytes="base64", defer_build=True)

    content: types.Content | None = None
    """Text, which the model answers at once."""
    blob: types.Blob | None = None
    """A chunk of audio (PCM, 16 bit, 16 kHz) or an image (one per second)."""
    activity_start: types.ActivityStart | None = None
    """The user begins to speak. Only if the model's voice activity detection is off."""
    activity_end: types.ActivityEnd | None = None
    """The user has stopped speaking. Only if the model's voice activity detection is off."""
    audio_stream_end: bool = False
    """The microphone is off: the model need not wait for more audio."""
    close: bool = False
    """End the conversation."""
    partial: bool = False
    """More content follows before the model answers."""
    state_delta: dict[str, Any] | None = None
    """Written to the session's state, in addition to any other field."""


class MarkedRequest(LiveRequest):
    """An input whose event has metadata of its own; no client can send one."""

    custom_metadata: dict[str, Any]
    """It takes precedence over the metadata of the run."""


class LiveRequestQueue:
    """The input of a live conversation, thread-safe; it may be filled before the conversation starts.

    Source of the names: google-adk, https://google.github.io/adk-docs/streaming/.
    """

    def __init__(self) -> None:
        self._requests: asyncio.Queue[LiveRequest] = asyncio.Queue()
        self._loop: asyncio.AbstractEventLoop | None = None
        """The reader's event loop."""
        self._lock = threading.Lock()
        self._closed = False

    @property
    def closed(self) -> bool:
        """True once `close` was sent."""
        return self._closed

    def send(self, req: LiveRequest) -> None:
        """Send a request. Source of the argument's name: google-adk."""
        self._closed = self._closed or req.close
        with self._lock:
            put, loop = self._requests.put_nowait, self._loop
            # asyncio.Queue is not thread-safe: once a reader waits, other threads put through its loop.
            if loop is None or loop.is_closed() or loop is running_loop():
                put(req)
            else:
                loop.call_soon_threadsafe(put, req)

    def send_content(self, content: types.Content | str | list[types.Part], partial: bool = False) -> None:
        """Send text; the model answers at once. `partial`: it waits for more text.

        Raises:
            InputError: It is not a content, or has a function call.
        """
        message = as_content(content)
        if any(part.function_call for part in message.parts or ()):
            raise InputError("a user's message cannot call functions; only a model's answer does")
        self.send(LiveRequest(content=message, partial=partial))

    def send_realtime(self, blob: types.Blob) -> None:
        """Send a chunk of audio or an image; the model answers when the user stops speaking."""
        self.send(LiveRequest(blob=blob))

    def send_activity_start(self) -> None:
        """Signal that the user begins to speak, if the model's voice activity detection is off."""
        self.send(LiveRequest(activity_start=types.ActivityStart()))

    def send_activity_end(self) -> None:
        """Signal that the user has stopped speaking, if the model's voice activity detection is off."""
        self.send(LiveRequest(activity_end=types.ActivityEnd()))

    def send_audio_stream_end(self) -> None:
        """Signal that the microphone is off: the model need not wait for more audio."""
        self.send(LiveRequest(audio_stream_end=True))

    def close(self) -> None:
        """End the conversation."""
        self.send(LiveRequest(close=True))

    async def get(self) -> LiveRequest:
        """Wait for the next request. Only one reader at a time."""
        with self._lock:
            self._loop = asyncio.get_running_loop()
        return await self._requests.get()


class Streams(Protocol):
    """The part of a live conversation that a streaming tool uses."""

    def listen(self) -> LiveRequestQueue:
        """A queue with everything the user sends from now on, as long as the queue is referenced."""
        ...

    def start(
        self,
        tool: str,
        call_id: str,
        results: AsyncGenerator[Any, None],
        scheduling: types.FunctionResponseScheduling | None = None,
        /,
    ) -> dict[str, Any]:
        """Send each result to the model as it comes. Returns the first response to the call."""
        ...
