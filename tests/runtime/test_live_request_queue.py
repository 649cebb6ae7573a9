"""The queue of a live conversation: what is sent arrives in order, from whatever thread."""

import asyncio
import threading

import pytest

from adk_nb import types
from adk_nb.agents.live_request_queue import LiveRequest, LiveRequestQueue
from adk_nb.errors import InputError

SOUND = types.Blob(data=b"\x00\xff", mime_type="audio/pcm;rate=16000")


def text_content(text: str) -> types.Content:
    return types.Content(role="user", parts=[types.Part(text=text)])


def queued_requests(queue: LiveRequestQueue) -> list[LiveRequest]:
    async def take() -> list[LiveRequest]:
        requests: list[LiveRequest] = []
        async with asyncio.timeout(5):
            while not requests or not requests[-1].close:
                requests.append(await queue.get())
        return requests

    return asyncio.run(take())


def test_what_is_sent_before_anyone_listens_arrives_in_order():
    queue = LiveRequestQueue()
    queue.send_content("Hi")
    queue.send_content([types.Part(text="there")], partial=True)
    queue.send_realtime(SOUND)
    queue.send_activity_start()
    queue.send_activity_end()
    queue.send_audio_stream_end()
    queue.send(LiveRequest(state_delta={"seen": True}))
    assert not queue.closed
    queue.close()

    assert queue.closed
    assert queued_requests(queue) == [
        LiveRequest(content=text_content("Hi")),
        LiveRequest(content=text_content("there"), partial=True),
        LiveRequest(blob=SOUND),
        LiveRequest(activity_start=types.ActivityStart()),
        LiveRequest(activity_end=types.ActivityEnd()),
        LiveRequest(audio_stream_end=True),
        LiveRequest(state_delta={"seen": True}),
        LiveRequest(close=True),
    ]


def test_a_listener_on_another_thread_hears_at_once():
    queue, listening, heard = LiveRequestQueue(), threading.Event(), threading.Event()

    async def listen() -> None:
        asyncio.get_running_loop().call_soon(listening.set)
        assert (await queue.get()).close
        heard.set()

    thread = threading.Thread(target=lambda: asyncio.run(listen()))
    thread.start()
    assert listening.wait(30)
    queue.close()

    assert heard.wait(30)
    thread.join(30)


def test_it_can_still_be_closed_after_the_loop_that_listened_has_gone():
    queue = LiveRequestQueue()
    queue.send_content("Hi")
    asyncio.run(queue.get())

    queue.close()

    assert queue.closed


def test_what_is_no_content_is_refused_where_it_is_sent():
    with pytest.raises(InputError, match="must be text"):
        LiveRequestQueue().send_content(3)  # type: ignore[arg-type]


def test_a_request_survives_json_with_its_sound():
    request = LiveRequest(blob=SOUND)

    assert LiveRequest.model_validate_json(request.model_dump_json()) == request
