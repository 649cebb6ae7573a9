"""What a user says in a live conversation, on its way to the model: words, sound, and when they speak."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict

from adk_nb import types
from adk_nb.errors import InputError
from adk_nb.events.event import as_content


class LiveRequest(BaseModel):
    """One thing that is sent. Of several that are set, the first of these counts: the signals, `blob`, `content`."""

    model_config = ConfigDict(extra="forbid", ser_json_bytes="base64", val_json_bytes="base64", defer_build=True)

    content: types.Content | None = None
    """Words, which the model answers at once."""
    blob: types.Blob | None = None
    """A piece of sound or a picture, as it is recorded: PCM of 16 bit at 16 kHz, or one image a second."""
    activity_start: types.ActivityStart | None = None
    """The user begins to speak. Only where the model's own detection of speech is switched off."""
    activity_end: types.ActivityEnd | None = None
    """The user has spoken. Only where the model's own detection of speech is switched off."""
    audio_stream_end: bool = False
    """The microphone is off: what was heard is all there is for now."""
    close: bool = False
    """The conversation is over."""
    partial: bool = False
    """More of this content follows before the model is to answer."""
    state_delta: dict[str, Any] | None = None
    """Written to the session's state, whatever else is set."""


class LiveRequestQueue:
    """Sends to a live conversation, from any thread; what is sent before it begins is sent when it does.

    Source of the names: google-adk, https://google.github.io/adk-docs/streaming/.
    """

    def __init__(self) -> None:
        self._requests: asyncio.Queue[LiveRequest] = asyncio.Queue()
        self._loop: asyncio.AbstractEventLoop | None = None
        """Where the requests are taken."""
        self._lock = threading.Lock()
        self._closed = False

    @property
    def closed(self) -> bool:
        """True once the user's side has closed it."""
        return self._closed

    def send(self, req: LiveRequest) -> None:
        """Send one request; ADK's name for the argument."""
        self._closed = self._closed or req.close
        with self._lock:
            self._deliver()(req)

    def send_content(self, content: types.Content | str | list[types.Part], partial: bool = False) -> None:
        """Send words; the model answers at once. `partial`: it waits for more of them.

        Raises:
            InputError: It is no content, or calls a function.
        """
        said = as_content(content)
        if any(part.function_call for part in said.parts or ()):
            raise InputError("a user's message cannot call functions; only a model's answer does")
        self.send(LiveRequest(content=said, partial=partial))

    def send_realtime(self, blob: types.Blob) -> None:
        """Send a piece of sound or a picture; the model answers when it has heard the user stop."""
        self.send(LiveRequest(blob=blob))

    def send_activity_start(self) -> None:
        """The user begins to speak, where the model is not to find that out itself."""
        self.send(LiveRequest(activity_start=types.ActivityStart()))

    def send_activity_end(self) -> None:
        """The user has spoken, where the model is not to find that out itself."""
        self.send(LiveRequest(activity_end=types.ActivityEnd()))

    def send_audio_stream_end(self) -> None:
        """The microphone is off: the model need not wait for more sound."""
        self.send(LiveRequest(audio_stream_end=True))

    def close(self) -> None:
        """End the conversation."""
        self.send(LiveRequest(close=True))

    async def get(self) -> LiveRequest:
        """The next request, once there is one. One reader at a time."""
        with self._lock:
            self._loop = asyncio.get_running_loop()
        return await self._requests.get()

    def _deliver(self) -> Callable[[LiveRequest], object]:
        put, loop = self._requests.put_nowait, self._loop
        if loop is None or loop.is_closed() or loop is _running_loop():
            return put
        return lambda request: loop.call_soon_threadsafe(put, request)


class Streams(Protocol):
    """What a tool needs of a live conversation in which it goes on after its call was answered."""

    def listen(self) -> LiveRequestQueue:
        """All that the user sends from now on, for as long as the queue is held."""
        ...

    def start(
        self,
        tool: str,
        call_id: str,
        results: AsyncGenerator[Any, None],
        scheduling: types.FunctionResponseScheduling | None = None,
        /,
    ) -> dict[str, Any]:
        """Tell the model each result as it comes. Returns what the call is answered with for now."""
        ...


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
