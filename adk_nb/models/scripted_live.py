"""A live conversation that answers from a list: for tests and for teaching."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence

from adk_nb import types
from adk_nb.errors import ModelConnectionLost
from adk_nb.models.base_llm_connection import BaseLlmConnection, RealtimeInput
from adk_nb.models.llm_response import LlmResponse

Turn = Sequence[LlmResponse | Exception]
"""All that comes for one thing that was said; an error is raised in its place, and ends the connection."""


class ScriptedConnection(BaseLlmConnection):
    """Gives the script's next answer whenever the user has said something: words, results, or the end of speech."""

    def __init__(self, next_turn: Callable[[], Turn]) -> None:
        self.sent: list[types.Content | RealtimeInput] = []
        """What was sent, history included, oldest first."""
        self.closed = False
        self._next_turn = next_turn
        self._turns: asyncio.Queue[Turn] = asyncio.Queue()

    async def send_history(self, history: Sequence[types.Content]) -> None:
        self.sent.extend(history)
        if history and history[-1].role == "user":
            self._answer()

    async def send_content(self, content: types.Content, *, partial: bool = False) -> None:
        self._keep(content)
        if not partial:
            self._answer()

    async def send_realtime(self, blob: RealtimeInput) -> None:
        self._keep(blob)
        stops = isinstance(blob, types.LiveClientRealtimeInput) and blob.audio_stream_end
        if stops or isinstance(blob, types.ActivityEnd):
            self._answer()

    async def receive(self) -> AsyncGenerator[LlmResponse, None]:
        if self.closed:
            return
        for one in await self._turns.get():
            if isinstance(one, Exception):
                self.closed = True
                raise one
            yield one

    async def close(self) -> None:
        self.closed = True
        self._turns.put_nowait(())

    def _keep(self, said: types.Content | RealtimeInput) -> None:
        if self.closed:
            raise ModelConnectionLost("the script has ended this connection")
        self.sent.append(said)

    def _answer(self) -> None:
        self._turns.put_nowait(self._next_turn())
