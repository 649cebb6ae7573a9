"""Streamed answers over real HTTP: the pieces, the whole, and what a broken stream never becomes."""

import asyncio
import re
from contextlib import aclosing
from typing import Any

import pytest
from gemini_server import USAGE, GeminiServer, Reply, answer, calls, chunked, refusal, sse
from google import genai

from adk_nb import types
from adk_nb.errors import ModelError, ModelHTTPError, ModelTimeoutError, UnexpectedModelAnswer
from adk_nb.models import Gemini, LlmRequest, LlmResponse


def gemini(server: GeminiServer, **fields: Any) -> Gemini:
    return Gemini(base_url=server.url, api_key="key", retry_options=types.HttpRetryOptions(attempts=1), **fields)


async def listen(model: Gemini) -> list[LlmResponse]:
    asked = LlmRequest(contents=[types.UserContent("How is Oslo?")])
    async with aclosing(model.generate_content_async(asked, stream=True)) as responses:
        return [response async for response in responses]


def stream(server: GeminiServer, *bodies: dict[str, Any]) -> list[LlmResponse]:
    server.say(*bodies, stream=True)
    return asyncio.run(listen(gemini(server)))


def told(response: LlmResponse) -> list[tuple[str, str]]:
    """Each part in a few characters."""
    return [
        ("calls", f"{part.function_call.name}({part.function_call.args})")
        if part.function_call
        else ("thinks" if part.thought else "says", part.text or "")
        for part in response.parts
    ]


def test_pieces_carry_only_what_is_new_and_the_whole_carries_it_all(server: GeminiServer):
    responses = stream(server, answer("It "), answer("is "), answer("mild.", finish="STOP", usageMetadata=USAGE))

    assert [(response.text, response.partial) for response in responses] == [
        ("It ", True),
        ("is ", True),
        ("mild.", True),
        ("It is mild.", None),
    ]
    whole = responses[-1]
    assert len(whole.parts) == 1
    assert (whole.finish_reason, whole.error_code, whole.model_version) == ("STOP", None, "gemini-2.5-flash")
    assert whole.usage_metadata
    assert whole.usage_metadata.total_token_count == 12


def test_thoughts_stay_apart_from_words(server: GeminiServer):
    *pieces, whole = stream(
        server,
        answer({"text": "Oslo ", "thought": True}),
        answer({"text": "is north.", "thought": True}, "It "),
        answer("is mild.", finish="STOP"),
    )

    assert [told(piece) for piece in pieces] == [
        [("thinks", "Oslo ")],
        [("thinks", "is north."), ("says", "It ")],
        [("says", "is mild.")],
    ]
    assert told(whole) == [("thinks", "Oslo is north."), ("says", "It is mild.")]


def test_calls_are_told_once_in_their_place_and_order(server: GeminiServer):
    *pieces, whole = stream(
        server,
        answer("Let me "),
        answer("look.", calls("weather", city="Oslo")),
        answer(calls("weather", city="Rome")),
        answer("Done.", finish="STOP"),
    )

    assert [told(piece) for piece in pieces] == [[("says", "Let me ")], [("says", "look.")], [("says", "Done.")]]
    assert told(whole) == [
        ("says", "Let me look."),
        ("calls", "weather({'city': 'Oslo'})"),
        ("calls", "weather({'city': 'Rome'})"),
        ("says", "Done."),
    ]


def test_a_signature_stays_on_the_part_it_came_with(server: GeminiServer):
    *pieces, whole = stream(
        server,
        answer("It is "),
        answer("mild."),
        answer({"text": "", "thoughtSignature": "c2ln"}, finish="STOP"),
    )

    assert [piece.text for piece in pieces] == ["It is ", "mild."]
    assert [(part.text, part.thought_signature) for part in whole.parts] == [("It is mild.", None), ("", b"sig")]


def test_grounding_comes_with_the_whole(server: GeminiServer):
    grounding = {"webSearchQueries": ["oslo weather"]}

    *_, whole = stream(server, answer("Mild."), answer(finish="STOP", candidate={"groundingMetadata": grounding}))

    assert whole.grounding_metadata
    assert whole.grounding_metadata.web_search_queries == ["oslo weather"]


@pytest.mark.parametrize("reason", ["SAFETY", "MAX_TOKENS", "RECITATION", "MALFORMED_FUNCTION_CALL"])
def test_an_answer_that_was_stopped_says_why_and_keeps_its_words(server: GeminiServer, reason: str):
    *_, whole = stream(server, answer("It is "), answer(finish=reason))

    assert (whole.text, whole.error_code, whole.partial) == ("It is ", reason, None)


def test_a_stop_before_the_first_word_is_an_answer_without_content(server: GeminiServer):
    (whole,) = stream(server, answer(finish="SAFETY"))

    assert (whole.content, whole.error_code) == (None, "SAFETY")


def test_a_blocked_prompt_is_one_answer(server: GeminiServer):
    (whole,) = stream(server, {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": USAGE})

    assert (whole.content, whole.error_code, whole.partial) == (None, "SAFETY", None)


def test_an_empty_answer_is_one_answer_without_parts(server: GeminiServer):
    (whole,) = stream(server, answer("", finish="STOP"))

    assert (whole.parts, whole.error_code, whole.finish_reason) == ([], None, "STOP")


@pytest.mark.skipif(
    [int(n) for n in genai.__version__.split(".")[:2]] < [3, 4],
    reason="google-genai took these for line ends in a stream",
)
def test_line_separators_inside_a_text_do_not_break_it(server: GeminiServer):
    *_, whole = stream(server, answer("a\u2028b\u0085c \u00e6\u00f8\u00e5 \U0001f327"), answer("d", finish="STOP"))

    assert whole.text == "a\u2028b\u0085c \u00e6\u00f8\u00e5 \U0001f327d"


# --- arguments that are streamed bit by bit


def bit(name: str | None = None, *bits: dict[str, Any], more: bool = True) -> dict[str, Any]:
    call: dict[str, Any] = {"partialArgs": list(bits)} if bits else {}
    return {"functionCall": call | ({"name": name} if name else {}) | ({"willContinue": True} if more else {})}


def test_streamed_arguments_are_put_together(server: GeminiServer):
    *pieces, whole = stream(
        server,
        answer(bit("book")),
        answer(bit(None, {"jsonPath": "$.city", "stringValue": "New ", "willContinue": True})),
        answer(bit(None, {"jsonPath": "$.city", "stringValue": "York"})),
        answer(bit(None, {"jsonPath": "$.nights", "numberValue": 3})),
        answer(bit(None, {"jsonPath": "$.guests[0].name", "stringValue": "Ada"})),
        answer(bit(None, {"jsonPath": "$.guests[1]['full name']", "stringValue": "Bo"})),
        answer(
            bit(None, {"jsonPath": "$.pets", "boolValue": False}, {"jsonPath": "$.note", "nullValue": "NULL_VALUE"})
        ),
        answer(bit(more=False)),
        answer(calls("pay"), finish="STOP"),
    )

    assert pieces == []
    book, pay = whole.get_function_calls()
    assert (book.name, pay.name) == ("book", "pay")
    assert book.args == {
        "city": "New York",
        "nights": 3,
        "guests": [{"name": "Ada"}, {"full name": "Bo"}],
        "pets": False,
        "note": None,
    }
    assert (book.partial_args, book.will_continue) == (None, None)


def test_a_streamed_call_that_does_not_end_is_no_call(server: GeminiServer):
    with pytest.raises(UnexpectedModelAnswer, match="tool call"):
        stream(server, answer(bit("book", {"jsonPath": "$.city", "stringValue": "New"})), answer(finish="STOP"))


@pytest.mark.parametrize("path", ["city", "$", "$.a[5]", "$.a[-1]", "$..city", "$.a[0].b.c[99999999]", ""])
def test_a_streamed_argument_that_leads_nowhere_is_one_clear_error(server: GeminiServer, path: str):
    with pytest.raises(UnexpectedModelAnswer, match=re.escape(repr(path))):
        stream(server, answer(bit("book", {"jsonPath": path, "stringValue": "x"}, more=False), finish="STOP"))


# --- streams that break


SHORT: tuple[dict[str, Any], ...] = (
    {"candidates": [{"content": {"parts": [{"text": "L\u00f8\u00f8k."}]}}]},
    {"candidates": [{"content": {"parts": [calls("pay", to="Ada", sum=1000)]}}]},
    {"candidates": [{"finishReason": "STOP"}]},
)


@pytest.mark.slow
@pytest.mark.parametrize("framing", ["close", "chunked"])
def test_a_stream_cut_at_any_byte_is_one_error_or_the_whole_answer(server: GeminiServer, framing: str):
    body = sse(*SHORT)
    length = len(body if framing == "close" else chunked(body))
    for cut in range(length + 1):
        server.replies.append(Reply(body, headers={"Content-Type": "text/event-stream"}, framing=framing, cut=cut))

    ends = asyncio.run(_ends(gemini(server), length + 1))

    # Where only the end of the connection tells the end, the last empty line may be missing.
    whole = [cut for cut, end in enumerate(ends) if end == "whole"]
    assert whole == list(range(length - 4, length + 1) if framing == "close" else [length])
    assert len(server.requests) == length + 1


async def _ends(model: Gemini, times: int) -> list[str]:
    """For each question: `whole`, or the error it ended in. Nothing that ended in an error may hold a call."""
    ends: list[str] = []
    for cut in range(times):
        heard: list[LlmResponse] = []
        try:
            asked = LlmRequest(contents=[types.UserContent("Hi")])
            async with aclosing(model.generate_content_async(asked, stream=True)) as responses:
                async for response in responses:
                    heard.append(response)  # noqa: PERF401 - what came before the error counts
        except ModelError as error:
            assert len(str(error)) < 900, cut
            assert not any(response.get_function_calls() for response in heard), cut
            assert all(response.partial for response in heard), cut
            ends.append(type(error).__name__)
        else:
            *pieces, whole = heard
            assert told(whole) == [("says", "L\u00f8\u00f8k."), ("calls", "pay({'to': 'Ada', 'sum': 1000})")]
            assert all(piece.partial for piece in pieces)
            ends.append("whole")
    return ends


@pytest.mark.parametrize("cut", [100, 200, 1000])
def test_a_whole_answer_cut_short_is_one_clear_error(server: GeminiServer, cut: int):
    server.say(answer(calls("pay", to="Ada" * 400), finish="STOP"), cut=cut)

    async def ask() -> None:
        async for _ in gemini(server).generate_content_async(LlmRequest()):
            pytest.fail("half an answer was taken for one")

    with pytest.raises(ModelError, match=r"\(RemoteProtocolError"):
        asyncio.run(ask())


def test_a_stream_without_an_end_says_where_it_stopped(server: GeminiServer):
    with pytest.raises(UnexpectedModelAnswer, match=r"'It is mi' \(no finish reason"):
        stream(server, answer("It is "), answer("mi"), answer(calls("pay", to="Ada")))


def test_a_stream_that_never_starts_is_one_clear_error(server: GeminiServer):
    with pytest.raises(UnexpectedModelAnswer, match="before its first"):
        stream(server)


def test_an_error_inside_a_stream_is_told_as_the_service_says_it(server: GeminiServer):
    with pytest.raises(ModelHTTPError, match="HTTP 503: UNAVAILABLE: Overloaded"):
        stream(server, answer("It is "), refusal(503, "UNAVAILABLE", "Overloaded."))

    assert len(server.requests) == 1


def test_what_was_heard_already_is_not_asked_for_again(server: GeminiServer):
    server.say(answer("It is "), answer("mild.", finish="STOP"), cut=190)
    patient = Gemini(base_url=server.url, api_key="key", retry_options=types.HttpRetryOptions(initial_delay=0.01))

    with pytest.raises(ModelError, match="after 'It is '"):
        asyncio.run(listen(patient))

    assert len(server.requests) == 1


@pytest.mark.parametrize("limits", [{"stall_timeout": 0.2}, {"total_timeout": 0.3}])
def test_a_stream_that_falls_silent_is_left(server: GeminiServer, limits: dict[str, float]):
    server.say(answer("It is "), answer("mi"), then_wait=True)

    with pytest.raises(ModelTimeoutError, match=r"'It is mi' \(.* in time"):
        asyncio.run(listen(gemini(server, **limits)))

    assert server.client_left.wait(30)


def test_of_many_pieces_none_is_lost(server: GeminiServer):
    *pieces, whole = stream(server, *(answer(f"{n} ") for n in range(2000)), answer(finish="STOP"))

    assert len(pieces) == 2000
    assert whole.text == "".join(f"{n} " for n in range(2000))
