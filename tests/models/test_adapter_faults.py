"""Streams that break at any byte, and histories that faults have left: what adapters make of both."""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from typing import Any

import pytest
from gemini_server import GeminiServer, Reply, chunked
from hypothesis import example, given
from hypothesis import strategies as st
from vendors import ANTHROPIC, GEMINI, OPENAI, VENDORS, Call, Thought, Vendor

from adk_nb import sync, types
from adk_nb.agents import LlmAgent, RunConfig, StreamingMode
from adk_nb.errors import ModelError
from adk_nb.events import Event
from adk_nb.models import LlmRequest, LlmResponse
from adk_nb.models.adaptation import pair_turns
from adk_nb.tools import FunctionTool
from tests.support.talk import Talk, summaries

REQUEST = "adk_request_confirmation"
SSE = RunConfig(streaming_mode=StreamingMode.SSE)
SAID = ("Ünd ", Call("send_money", {"to": "ü", "sum": 100}, "c_1"), Call("note", {}, "c_2"))


@pytest.fixture(scope="module")
def refusing() -> Iterator[GeminiServer]:
    with GeminiServer() as server:
        yield server


@pytest.fixture(params=VENDORS)
def vendor(request: pytest.FixtureRequest) -> Vendor:
    return request.param


# --- streams cut at every byte


@pytest.mark.slow
@pytest.mark.parametrize(
    ("framing", "step"), [("chunked", 41), ("close", 41), pytest.param("close", 1, marks=pytest.mark.long)]
)
def test_no_call_comes_of_a_stream_that_is_cut_wherever_that_is(
    vendor: Vendor, server: GeminiServer, framing: str, step: int
):
    body = b"".join(vendor.events(SAID, ""))
    framed = chunked(body) if framing == "chunked" else body
    told_at = framed.index(vendor.ended)
    cuts = range(0, len(framed), step)
    for cut in cuts:
        server.replies.append(Reply(body, headers={"Content-Type": "text/event-stream"}, framing=framing, cut=cut))

    outcomes = asyncio.run(_each(vendor.model(server, attempts=1), len(cuts)))

    for cut, (responses, error) in zip(cuts, outcomes, strict=True):
        whole = [response for response in responses if not response.partial]
        calls = [(call.name, call.args) for response in responses for call in response.get_function_calls()]
        if error is not None:
            assert isinstance(error, ModelError), (cut, error)
            assert "m-1" in str(error)
            assert whole == []
            assert calls == []
        else:  # the service had said that its answer ends, before the connection did
            assert cut >= told_at
            assert calls == [("send_money", {"to": "ü", "sum": 100}), ("note", {})]
            assert len(whole) == 1


async def _each(
    model: Any, times: int, request: LlmRequest | None = None
) -> list[tuple[list[LlmResponse], Exception | None]]:
    """What the model answers, `times` times, and what each attempt ended with."""
    outcomes: list[tuple[list[LlmResponse], Exception | None]] = []
    sent_request = request or LlmRequest(contents=[types.UserContent("Go")])
    for _ in range(times):
        responses: list[LlmResponse] = []
        try:
            async with aclosing(model.generate_content_async(sent_request, stream=True)) as stream:
                async for response in stream:
                    responses.append(response)  # noqa: PERF401  # a list of what came before an error
        except Exception as error:
            outcomes.append((responses, error))
        else:
            outcomes.append((responses, None))
    return outcomes


def test_after_a_broken_stream_there_is_one_clear_error_event_and_the_session_goes_on(
    vendor: Vendor, server: GeminiServer
):
    paid: list[int] = []

    def send_money(to: str, sum: int) -> str:
        """Sends money."""
        paid.append(sum)
        return "sent"

    body = b"".join(vendor.events(SAID[:2], ""))
    headers = {"Content-Type": "text/event-stream", "Connection": "close"}
    cut = body.index(b"100") if vendor.calls_are_text else body.index(vendor.ended)
    server.replies.append(Reply(body, headers=headers, framing="close", cut=cut))
    vendor.say(server, Call("send_money", {"to": "ü", "sum": 100}), stream=True, framing="close")
    vendor.say(server, "It is sent.", stream=True, framing="close")
    talk = Talk(LlmAgent(name="guide", model=vendor.model(server), tools=[send_money]))

    broken = talk.say("Send it.", config=SSE)

    assert isinstance(talk.error, ModelError)
    assert paid == []
    stored = talk.stored().events
    assert [event.author for event in stored] == ["user", "guide"]
    assert stored[-1].error_code == type(talk.error).__name__
    assert "'Ünd '" in (stored[-1].error_message or "")
    assert [event for event in broken if event.get_function_calls()] == []

    talk.say("Again.", config=SSE)

    assert talk.error is None
    assert paid == [100]
    for request in server.requests:
        vendor.check(request.body)


# --- histories


WORDS = st.sampled_from(["Hi.", "", "  ", "Ünd"])
IDS = st.sampled_from([None, "a", "b", "toolu_1", "adk-0f7c1e4c-bb1d-4b5e-8f9d-0123456789ab", "with space/ü", "x" * 64])
NAMES = st.sampled_from(["look", "send"])
CALLS = st.builds(
    lambda id, name: types.Part(function_call=types.FunctionCall(id=id, name=name, args={"n": 1})), IDS, NAMES
)
RESULTS = st.builds(
    lambda id, name: types.Part(
        function_response=types.FunctionResponse(id=id, name=name, response={"result": "seen"})
    ),
    IDS,
    NAMES,
)
THOUGHTS = st.sampled_from(
    [
        types.Part(text="Hm.", thought=True),
        types.Part(text="Hm.", thought=True, thought_signature=b"claude:c2ln"),
        types.Part(text="Hm.", thought=True, thought_signature=b"\x00\xff"),
        types.Part(thought=True, thought_signature=b"claude:cmVk"),
        types.Part(text="", thought_signature=b"\x00\xff"),
    ]
)
DATA = st.sampled_from(
    [
        types.Part(inline_data=types.Blob(data=b"\x89PNG", mime_type="image/png")),
        types.Part(inline_data=types.Blob(data=b"RIFF", mime_type="audio/wav")),
        types.Part(inline_data=types.Blob(data=b"?", mime_type="video/mp4")),
        types.Part(file_data=types.FileData(file_uri="gs://b/x.pdf", mime_type="application/pdf")),
        types.Part(executable_code=types.ExecutableCode(code="1+1", language=types.Language.PYTHON)),
    ]
)
TEXTS = st.builds(lambda text: types.Part(text=text), WORDS)
CONTENTS = st.one_of(
    st.builds(
        lambda parts: types.Content(role="model", parts=parts), st.lists(st.one_of(TEXTS, CALLS, THOUGHTS), max_size=4)
    ),
    st.builds(
        lambda parts: types.Content(role="user", parts=parts), st.lists(st.one_of(TEXTS, RESULTS, DATA), max_size=4)
    ),
)


MISNAMED = [
    types.Content(role="model", parts=[types.Part(function_call=types.FunctionCall(id="a", name="look"))]),
    types.Content(role="user", parts=[types.Part(function_response=types.FunctionResponse(id="a", name="send"))]),
]
"""A result of one call's id and another tool's name."""


@pytest.mark.slow
@pytest.mark.parametrize("vendor", [OPENAI, ANTHROPIC, GEMINI], ids=["openai", "anthropic", "gemini"])
@example(contents=MISNAMED, lacks=set())
@given(contents=st.lists(CONTENTS, max_size=7), lacks=st.sets(st.sampled_from(["parallel_calls", "images"])))
def test_the_rules_of_turns_hold_for_any_history(
    refusing: GeminiServer, vendor: Vendor, contents: list[types.Content], lacks: set[str]
):
    model = vendor.kind(model="m-1", base_url=refusing.url, api_key="k", lacks=lacks)
    text = json.dumps([content.model_dump(mode="json") for content in contents])
    vendor.refuse(refusing, 400, "enough")

    ((responses, error),) = asyncio.run(_each(model, 1, LlmRequest(contents=contents)))

    assert responses == []
    assert isinstance(error, ModelError)
    vendor.check(refusing.requests.pop().body)
    assert json.dumps([content.model_dump(mode="json") for content in contents]) == text


@given(contents=st.lists(CONTENTS, max_size=7))
def test_no_message_or_answer_is_lost(contents: list[types.Content]):
    turns = pair_turns(contents)

    def count(owner: Sequence[types.Content], name: str) -> int:
        return sum(1 for item in owner for part in item.parts or () if getattr(part, name))

    assert count(turns, "function_call") == count(contents, "function_call")
    assert count(turns, "inline_data") == count(contents, "inline_data")
    assert count(turns, "function_response") == count(turns, "function_call")
    text = json.dumps([turn.model_dump(mode="json", exclude_none=True) for turn in turns])
    assert text.count('"seen"') + text.count('\\"seen\\"') == count(contents, "function_response")


def test_a_result_that_comes_after_more_words_is_still_the_result():
    call = types.Part(function_call=types.FunctionCall(id="a", name="look", args={}))
    result = types.Part(function_response=types.FunctionResponse(id="a", name="look", response={"result": "seen"}))

    turns = pair_turns(
        [
            types.UserContent("Go"),
            types.Content(role="model", parts=[call]),
            types.Content(role="model", parts=[types.Part(text="Wait.")]),
            types.Content(role="user", parts=[types.Part(text="Here:"), result]),
        ]
    )

    assert [(turn.role, turn.parts) for turn in turns[1:]] == [
        ("model", [call, types.Part(text="Wait.")]),
        ("user", [result, types.Part(text="Here:")]),
    ]


# --- the faults of runs


def look() -> str:
    """Looks."""
    return "seen"


def boom() -> str:
    """Fails."""
    raise ValueError("bad")


async def _leave(talk: Talk, message: str, later_number: int) -> None:
    """Say something and stop listening after some events."""
    turn: AsyncGenerator[Any, None] = talk.runner.run_async(user_id="u", session_id="s", new_message=message)
    async with aclosing(turn) as events:
        async for _ in events:
            later_number -= 1
            if not later_number:
                return


@pytest.mark.parametrize(
    "fault", ["left after the call", "left after the result", "tool raises", "unknown tool", "limit"]
)
def test_the_next_turn_after_a_fault_keeps_the_rules_of_the_service(vendor: Vendor, server: GeminiServer, fault: str):
    calls = {
        "tool raises": [Call("look", {}, "c_1"), Call("boom", {}, "c_2")],
        "unknown tool": [Call("lok", {}, "c_1")],
    }.get(fault, [Thought("Hm."), "Let me look.", Call("look", {}, "c_1"), Call("look", {}, "c_2")])
    vendor.say(server, *calls, framing="close")
    if fault in ("tool raises", "unknown tool"):
        vendor.say(server, "Sorry.", framing="close")
    vendor.say(server, Call("look", {}, "c_1"), framing="close")  # some services number calls anew in each turn
    vendor.say(server, "Fine.", framing="close")
    talk = Talk(LlmAgent(name="guide", model=vendor.model(server), tools=[look, boom]))

    if fault.startswith("left"):
        asyncio.run(_leave(talk, "Look.", 1 if fault == "left after the call" else 2))
    else:
        talk.say("Look.", config=RunConfig(max_llm_calls=1) if fault == "limit" else None)
    events = talk.say("And now?")

    assert talk.error is None
    assert summaries(events)[-1] == ("guide", "Fine. .")
    for request in server.requests:
        vendor.check(request.body)


def test_wherever_a_kill_has_cut_the_history_the_next_turn_keeps_the_rules(vendor: Vendor, server: GeminiServer):
    vendor.say(server, Thought("Hm."), Call("look", {}, "c_1"), Call("boom", {}, "c_2"), framing="close")
    vendor.say(server, "One failed.", Call("look", {}, "c_1"), framing="close")
    vendor.say(server, "Seen.", framing="close")
    agent = LlmAgent(name="guide", model=vendor.model(server), tools=[look, boom])
    talk = Talk(agent)
    events = talk.say("Look.")
    stored = talk.stored().events
    assert (talk.error, len(events)) == (None, len(stored) - 1)

    for count in range(1, len(stored) + 1):
        vendor.say(server, "Fine.", framing="close")
        cut = Talk(agent)
        sync.run(_append(cut, stored[:count]))
        cut.say("And now?")
        assert cut.error is None

    assert len(server.requests) == 3 + len(stored)
    for request in server.requests:
        vendor.check(request.body)


async def _append(talk: Talk, events: Sequence[Event]) -> None:
    session = await talk.service.get_session(app_name="app", user_id="u", session_id="s")
    assert session
    for event in events:
        await talk.service.append_event(session, event.model_copy(deep=True))


@pytest.mark.parametrize("confirmed", [True, False])
def test_an_answered_approval_keeps_the_rules_of_the_service(vendor: Vendor, server: GeminiServer, confirmed: bool):
    vendor.say(server, Call("look", {}, "c_1"), Call("boom", {}, "c_2"), framing="close")
    vendor.say(server, "Done.", framing="close")
    vendor.say(server, "Fine.", framing="close")
    asks = FunctionTool(look, require_confirmation=True)
    talk = Talk(LlmAgent(name="guide", model=vendor.model(server), tools=[asks, boom]))
    (function_call,) = [
        call for event in talk.say("Look.") for call in event.get_function_calls() if call.name == REQUEST
    ]

    answer = types.FunctionResponse(id=function_call.id, name=REQUEST, response={"confirmed": confirmed})
    talk.say(types.Content(role="user", parts=[types.Part(function_response=answer)]))
    talk.say("And now?")

    assert talk.error is None
    assert len(server.requests) >= 2
    for request in server.requests:
        vendor.check(request.body)


def test_what_waits_for_a_yes_keeps_the_rules_of_the_service(vendor: Vendor, server: GeminiServer):
    vendor.say(server, Call("look", {}, "c_1"), framing="close")
    vendor.say(server, "Waiting.", framing="close")
    vendor.say(server, "Still waiting.", framing="close")
    vendor.say(server, "Still waiting.", framing="close")
    talk = Talk(
        LlmAgent(name="guide", model=vendor.model(server), tools=[FunctionTool(look, require_confirmation=True)])
    )

    talk.say("Look.")
    talk.say("And now?")

    for request in server.requests:
        vendor.check(request.body)
