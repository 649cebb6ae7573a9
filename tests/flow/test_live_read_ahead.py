"""A live conversation reads little more than it has handled, however much the service sends, and stays awake."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from pydantic import PrivateAttr

from adk_nb import types
from adk_nb.agents import CallbackContext, LiveRequestQueue, LlmAgent
from adk_nb.events import Event
from adk_nb.flow.live import inbox
from adk_nb.models import LlmRequest, LlmResponse, call
from adk_nb.models.base_llm import BaseLlm
from adk_nb.models.base_llm_connection import BaseLlmConnection, RealtimeInput
from tests.flow.test_live import GO_AWAY, TURN_COMPLETE, LiveTalk, handle, sound, transcription

READ_AHEAD = 20
"""In these tests, so that they are short."""
MANY = 100
CHUNK = sound(b"\x01\x02")
INTERRUPTED = LlmResponse(interrupted=True)
LIMIT = READ_AHEAD + 1
"""With the one that is being handled."""


@pytest.fixture(autouse=True)
def short_inbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox, "READ_AHEAD", READ_AHEAD)


def calling(name: str) -> LlmResponse:
    return LlmResponse(content=types.Content(role="model", parts=[call(name)]))


class Stream(BaseLlmConnection):
    """Sends all of its responses at once, as fast as they are read, after the first thing that it hears."""

    def __init__(self, responses: Sequence[LlmResponse]) -> None:
        self.sent: list[types.Content | RealtimeInput] = []
        self.read = 0
        self.heard_again = asyncio.Event()
        self._responses = responses
        self._heard, self._closed = asyncio.Event(), asyncio.Event()

    async def send_history(self, history: Sequence[types.Content]) -> None:
        self.sent.extend(history)
        self._heard.set()

    async def send_content(self, content: types.Content, *, partial: bool = False) -> None:
        self.sent.append(content)
        (self.heard_again if self._heard.is_set() else self._heard).set()

    async def send_realtime(self, blob: RealtimeInput) -> None:
        self.sent.append(blob)

    async def receive(self) -> AsyncGenerator[LlmResponse, None]:
        await self._heard.wait()
        for response in self._responses[self.read :]:
            self.read += 1
            yield response
            await asyncio.sleep(0)
        await self._closed.wait()

    async def close(self) -> None:
        self._closed.set()


class Speaker(BaseLlm):
    """Opens one `Stream` after the other."""

    model: str = "speaker"
    _scripts: list[Sequence[LlmResponse]] = PrivateAttr(default_factory=list[Sequence[LlmResponse]])
    _streams: list[Stream] = PrivateAttr(default_factory=list[Stream])

    def __init__(self, *scripts: Sequence[LlmResponse]) -> None:
        super().__init__(model="speaker")
        self._scripts = list(scripts)

    @property
    def streams(self) -> list[Stream]:
        return self._streams

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        raise NotImplementedError
        yield

    @asynccontextmanager
    async def connect(self, llm_request: LlmRequest) -> AsyncGenerator[Stream, None]:
        self._streams.append(Stream(self._scripts[len(self._streams)]))
        yield self._streams[-1]


def chunks(events: list[Event]) -> int:
    return sum(1 for event in events for part in event.parts if part.inline_data)


async def many_turns_of_the_loop() -> None:
    for _ in range(2 * MANY):
        await asyncio.sleep(0)


def test_while_a_tool_works_only_so_much_is_read_ahead_and_nothing_is_lost():
    model = Speaker([calling("work"), *[CHUNK] * MANY, INTERRUPTED, CHUNK, TURN_COMPLETE])
    read: list[int] = []

    async def work() -> str:
        await many_turns_of_the_loop()
        read.append(model.streams[0].read)
        return "worked"

    talk = LiveTalk(LlmAgent(name="guide", model=model, tools=[work]))
    events = talk.live("go")

    assert talk.error is None and 1 < read[0] <= LIMIT
    assert chunks(events) == MANY + 1
    assert [event.interrupted for event in events].index(True) == len(events) - 3 and events[-1].turn_complete


def test_whoever_reads_the_events_slowly_sets_the_pace():
    model = Speaker([*[CHUNK] * MANY, TURN_COMPLETE])
    ahead: list[int] = []

    async def listen() -> int:
        queue, number = LiveRequestQueue(), 0
        queue.send_content("go")
        async for event in talk.runner.run_live(user_id="u", session_id="s", live_request_queue=queue):
            if number == 10:
                await many_turns_of_the_loop()
            number += 1
            ahead.append(model.streams[0].read - number)
            if event.turn_complete:
                queue.close()
        return number

    talk = LiveTalk(LlmAgent(name="guide", model=model))

    assert asyncio.run(listen()) == MANY + 1
    assert READ_AHEAD - 1 <= max(ahead) <= LIMIT


def test_the_user_is_heard_while_a_tool_works_and_more_waits_than_is_read():
    model = Speaker([calling("work"), *[CHUNK] * MANY, INTERRUPTED, TURN_COMPLETE])
    queue = LiveRequestQueue()

    async def work() -> str:
        await many_turns_of_the_loop()
        queue.send_content("stop it")
        await model.streams[0].heard_again.wait()
        return "worked"

    talk = LiveTalk(LlmAgent(name="guide", model=model, tools=[work]))
    events = talk.live("go", queue=queue)

    assert talk.error is None and chunks(events) == MANY
    assert any(event.interrupted for event in events) and events[-1].turn_complete
    assert [event.text for event in talk.stored().events if event.author == "user" and event.text] == ["go", "stop it"]


@pytest.mark.parametrize("tells", [[], [handle("h")]], ids=["anew", "resumed"])
def test_a_change_of_the_connection_with_much_unread_leaves_room_for_the_next(tells: list[LlmResponse]):
    rest = [*[CHUNK] * MANY, TURN_COMPLETE]
    model = Speaker([*tells, calling("work"), GO_AWAY, *rest], rest)

    async def work() -> str:
        await many_turns_of_the_loop()
        return "worked"

    talk = LiveTalk(LlmAgent(name="guide", model=model, tools=[work]))
    events = talk.live("go")

    assert talk.error is None and len(model.streams) == 2
    assert model.streams[0].read <= LIMIT + len(tells)
    assert chunks(events) >= MANY and events[-1].turn_complete and model.streams[1].read == len(rest)


def test_what_a_callback_drops_makes_room():
    rest = [*[CHUNK] * MANY, TURN_COMPLETE]
    model = Speaker([transcription("the secret"), *rest], rest)

    async def no_secrets(callback_context: CallbackContext, llm_request: LlmRequest) -> LlmResponse | None:
        await many_turns_of_the_loop()
        last = llm_request.contents[-1].parts or []
        said = any("secret" in (part.text or "") for part in last)
        return LlmResponse(content=types.Content(role="model", parts=[types.Part(text="no")])) if said else None

    talk = LiveTalk(LlmAgent(name="guide", model=model, before_model_callback=no_secrets))
    events = talk.live("go", "more")

    assert talk.error is None and [stream.read for stream in model.streams] == [LIMIT, len(rest)]
    assert chunks(events) == MANY


def test_a_run_that_is_stopped_while_much_waits_leaves_nothing_behind():
    model = Speaker([calling("work"), *[CHUNK] * MANY, TURN_COMPLETE])
    remaining: list[Any] = []

    async def work() -> str:
        await many_turns_of_the_loop()
        is_waiting.set()
        await asyncio.Event().wait()
        return "never"

    is_waiting = asyncio.Event()
    talk = LiveTalk(LlmAgent(name="guide", model=model, tools=[work]))

    async def stop() -> None:
        run = asyncio.create_task(talk.alive("go"))
        await is_waiting.wait()
        run.cancel()
        with suppress(asyncio.CancelledError):
            await run
        remaining.extend(asyncio.all_tasks() - {asyncio.current_task()})

    asyncio.run(stop())

    assert remaining == [] and model.streams[0].read <= LIMIT
