"""Streamed answers: pieces to show, then one whole answer to keep."""

from collections.abc import AsyncGenerator
from typing import Any

from inline_snapshot import snapshot

from adk_nb import types
from adk_nb.agents import LlmAgent, RunConfig, StreamingMode
from adk_nb.models import BaseLlm, LlmRequest, LlmResponse, ScriptedLlm, call
from tests.support.talk import Talk, summaries
from tests.support.transcripts import call_line

SSE = RunConfig(streaming_mode=StreamingMode.SSE)


def look() -> str:
    """Looks."""
    return "seen"


def test_pieces_come_first_and_then_the_whole_answer():
    talk = Talk(LlmAgent(name="guide", model=ScriptedLlm(["Hel", "lo"]), output_key="last"))

    events = talk.say(config=SSE)

    assert summaries(events) == snapshot(
        [("guide", "Hel..."), ("guide", "lo..."), ("guide", "Hello => {'last': 'Hello'} .")]
    )
    assert len({event.id for event in events}) == 1
    assert len({event.invocation_id for event in events}) == 1


def test_pieces_do_nothing_and_are_not_kept():
    talk = Talk(LlmAgent(name="guide", model=ScriptedLlm(["Hel", "lo"]), output_key="last"))

    events = talk.say(config=SSE)

    assert all(event.actions.model_dump(exclude_defaults=True) == {} for event in events[:-1])
    assert [event.text for event in talk.stored().events] == ["hi", "Hello"]


def test_a_stream_with_a_call_runs_the_tool_once():
    model = ScriptedLlm(["Let me ", "look.", call("look")], ["do", "ne"])
    talk = Talk(LlmAgent(name="guide", model=model, tools=[look], output_key="last"))

    assert summaries(talk.say(config=SSE)) == snapshot(
        [
            ("guide", "Let me ..."),
            ("guide", "look...."),
            ("guide", f"Let me look.; {call_line('look')}"),
            ("guide", "answers {'result': 'seen'}"),
            ("guide", "do..."),
            ("guide", "ne..."),
            ("guide", "done => {'last': 'done'} ."),
        ]
    )
    assert talk.stored().state == {"last": "done"}


def test_without_streaming_there_are_no_pieces():
    talk = Talk(LlmAgent(name="guide", model=ScriptedLlm(["Hel", "lo"])))

    assert summaries(talk.say()) == [("guide", "Hello .")]


class Pieces(BaseLlm):
    """A model that says what it is given, and never says it whole."""

    model: str = "pieces"
    pieces: list[Any]
    """Parts, or responses; none is whole."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        for piece in self.pieces:
            if isinstance(piece, types.Part):
                piece = LlmResponse(content=types.Content(role="model", parts=[piece]))
            yield piece.model_copy(update={"partial": True})


def test_the_pieces_of_a_model_that_only_streams_are_its_answer():
    talk = Talk(LlmAgent(name="guide", model=Pieces(pieces=[types.Part(text="Hel"), types.Part(text="lo")])))

    assert summaries(talk.say(config=SSE)) == [("guide", "Hel..."), ("guide", "lo..."), ("guide", "Hello .")]
    assert talk.stored().events[-1].text == "Hello"


def test_of_a_model_that_only_streams_thoughts_stay_apart_in_their_order():
    signed = types.Part(text="so.", thought=True, thought_signature=b"s")
    pieces = [
        *(types.Part(text=word, thought=True) for word in ("I ", "think ")),
        signed,
        *(types.Part(text=word) for word in ("Let me ", "look.")),
        types.Part(text="think", thought=True),
    ]
    talk = Talk(LlmAgent(name="guide", model=Pieces(pieces=pieces)))

    events = talk.say(config=SSE)

    whole = events[-1]
    assert [(bool(part.thought), part.text) for part in whole.parts] == [
        (True, "I think "),
        (True, "so."),
        (False, "Let me look."),
        (True, "think"),
    ]
    assert whole.parts[1].thought_signature == b"s"
    assert [event.partial for event in events] == [True] * len(pieces) + [None]
    assert {event.id for event in events} == {whole.id}


def test_what_the_last_piece_says_of_the_answer_is_said_of_the_whole():
    usage = types.GenerateContentResponseUsageMetadata(total_token_count=7)
    last = LlmResponse(
        content=types.Content(role="model", parts=[types.Part(text="lo")]),
        finish_reason=types.FinishReason.MAX_TOKENS,
        usage_metadata=usage,
    )
    talk = Talk(LlmAgent(name="guide", model=Pieces(pieces=[types.Part(text="Hel"), last])))

    [_, _, whole] = talk.say(config=SSE)

    assert (whole.text, whole.error_code, whole.usage_metadata) == ("Hello", "MAX_TOKENS", usage)
    assert whole.is_final_response()


def test_a_model_that_answers_several_times_gives_as_many_events():
    class Twice(BaseLlm):
        model: str = "twice"

        async def generate_content_async(
            self, llm_request: LlmRequest, stream: bool = False
        ) -> AsyncGenerator[LlmResponse, None]:
            for words, partial in (("on", True), ("one", None), ("tw", True), ("two", None)):
                yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=words)]), partial=partial)

    talk = Talk(LlmAgent(name="guide", model=Twice()))

    events = talk.say(config=SSE)

    assert summaries(events) == [("guide", "on..."), ("guide", "one ."), ("guide", "tw..."), ("guide", "two .")]
    assert events[0].id == events[1].id != events[2].id == events[3].id
    assert [event.text for event in talk.stored().events] == ["hi", "one", "two"]


def test_after_model_sees_every_piece_and_before_model_is_asked_once():
    asked: list[Any] = []

    def shout(callback_context: Any, llm_response: LlmResponse) -> LlmResponse:
        words = types.Content(role="model", parts=[types.Part(text=llm_response.text.upper())])
        return LlmResponse(content=words)

    agent = LlmAgent(
        name="guide",
        model=ScriptedLlm(["Hel", "lo"]),
        before_model_callback=lambda callback_context, llm_request: asked.append(1),
        after_model_callback=shout,
    )

    assert summaries(Talk(agent).say(config=SSE)) == [("guide", "HEL..."), ("guide", "LO..."), ("guide", "HELLO .")]
    assert asked == [1]


def test_what_a_callback_wrote_during_the_pieces_lands_on_the_whole_answer():
    def count(callback_context: Any, llm_response: LlmResponse) -> None:
        callback_context.state["pieces"] = callback_context.state.get("pieces", 0) + bool(llm_response.partial)

    talk = Talk(LlmAgent(name="guide", model=ScriptedLlm(["a", "b", "c"]), after_model_callback=count))

    events = talk.say(config=SSE)

    assert [event.actions.state_delta for event in events] == [{}, {}, {}, {"pieces": 3}]
