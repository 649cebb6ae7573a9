"""OpenAILlm against llama.cpp's own server, with a model of noise: the words mean nothing, all else is real."""

import asyncio
import json
from contextlib import aclosing
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from adk_nb import types
from adk_nb.agents import LlmAgent, RunConfig, StreamingMode
from adk_nb.errors import ModelError, ModelHTTPError
from adk_nb.models import LLMRegistry, LlmRequest, LlmResponse
from tests.real_server.conftest import CONTEXT, KEY, Noise
from tests.support.talk import Talk

pytestmark = pytest.mark.real_server
PIXEL = b"\x89PNG\r\n\x1a\n"


def ask(model: Any, said: str = "How is Oslo?", *, stream: bool = False, **config: Any) -> list[LlmResponse]:
    settings = types.GenerateContentConfig(**{"max_output_tokens": 1} | config)
    request = LlmRequest(contents=[types.UserContent(said)], config=settings)

    async def collect() -> list[LlmResponse]:
        async with aclosing(model.generate_content_async(request, stream=stream)) as responses:
            return [response async for response in responses]

    return asyncio.run(collect())


class Throw(BaseModel):
    die: Literal["d6", "d20"]
    again: bool


# --- words and counts


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_comes_with_its_counts_and_with_why_it_ended(server: Noise, stream: bool):
    *pieces, whole = ask(server.model(), stream=stream)

    assert (whole.partial, whole.error_code) == (None, "MAX_TOKENS")
    assert whole.text
    if stream:
        assert "".join(piece.text for piece in pieces) == whole.text
    usage = whole.usage_metadata
    assert usage and usage.prompt_token_count and usage.prompt_token_count > len("How is Oslo?") / 2
    assert usage.candidates_token_count == 1
    assert usage.total_token_count == usage.prompt_token_count + 1


def test_a_longer_question_is_counted_as_one(server: Noise):
    short, longer = (
        ask(server.model(), said, system_instruction="Be brief.")[-1].usage_metadata for said in ("a" * 10, "a" * 110)
    )

    assert short and longer
    assert (longer.prompt_token_count or 0) - (short.prompt_token_count or 0) == 100


def test_the_server_says_which_model_answered_whatever_it_was_called(server: Noise):
    """It serves one model, and answers to any name."""
    assert "noise" in (ask(server.model(model="no-such-model"))[-1].model_version or "")


def test_an_agent_streams_its_answer(server: Noise):
    agent = LlmAgent(
        name="guide",
        model=server.model(),
        instruction="Be brief.",
        generate_content_config=types.GenerateContentConfig(max_output_tokens=12),
    )
    talk = Talk(agent)

    events = talk.say("How is Oslo?", config=RunConfig(streaming_mode=StreamingMode.SSE))

    assert talk.error is None
    assert len([event for event in events if event.partial]) > 1
    assert "".join(event.text for event in events if event.partial) == talk.stored().events[-1].text


# --- tools and schemas


@pytest.mark.parametrize("stream", [False, True])
def test_a_call_that_the_server_made_of_noise_is_run_and_its_result_is_taken(server: Noise, stream: bool):
    thrown: list[str] = []

    def throw(die: Literal["d6", "d20"]) -> str:
        """Throws a die."""
        thrown.append(die)
        return f"{die}: 4"

    talk = Talk(LlmAgent(name="croupier", model=server.model(), tools=[throw]))
    mode = RunConfig(streaming_mode=StreamingMode.SSE if stream else StreamingMode.NONE)

    events = talk.say("Throw one.", config=mode)

    assert talk.error is None
    called = [call for event in events for call in event.get_function_calls()]
    assert {call.name for call in called} == {"throw"}
    assert [(call.args or {})["die"] for call in called] == thrown
    assert len({call.id for call in called}) == len(thrown)
    assert events[-1].text  # said when the server had been told of the result
    assert events[-1].error_code is None

    before = len(thrown)
    talk.say("And now?", config=mode)

    assert talk.error is None
    assert len(thrown) > before


def test_an_answer_of_noise_keeps_to_the_schema(server: Noise):
    said = ask(server.model(), "Throw one.", response_schema=Throw, max_output_tokens=300)[-1]

    assert said.error_code is None
    assert Throw.model_validate_json(said.text)


def test_an_agent_s_answer_of_a_schema_lands_in_the_state(server: Noise):
    settings = types.GenerateContentConfig(max_output_tokens=300)
    talk = Talk(
        LlmAgent(
            name="croupier",
            model=server.model(),
            output_schema=Throw,
            output_key="thrown",
            generate_content_config=settings,
        )
    )

    talk.say("Throw one.")

    assert talk.error is None
    assert Throw.model_validate(talk.stored().state["thrown"])


# --- refusals


@pytest.mark.parametrize("stream", [False, True])
def test_a_question_that_is_too_long_is_refused_in_the_server_s_words_and_the_session_goes_on(
    server: Noise, stream: bool
):
    mode = RunConfig(streaming_mode=StreamingMode.SSE if stream else StreamingMode.NONE)
    settings = types.GenerateContentConfig(max_output_tokens=12)
    agent = LlmAgent(name="guide", model=server.model(), include_contents="none", generate_content_config=settings)
    talk = Talk(agent)

    talk.say("x" * (2 * CONTEXT), config=mode)

    assert isinstance(talk.error, ModelError)
    assert str(CONTEXT) in str(talk.error)
    (refused,) = [event for event in talk.stored().events if event.error_code]
    assert str(CONTEXT) in (refused.error_message or "")

    talk.say("x", config=mode)

    assert talk.error is None
    assert talk.stored().events[-1].text


def test_a_wrong_key_is_refused_and_not_shown(server: Noise):
    wrong = "sk-a-key-that-is-not-the-servers"

    with pytest.raises(ModelHTTPError, match=r"HTTP 401: .*; check api_key") as refused:
        ask(server.model(api_key=wrong))

    assert wrong not in str(refused.value)


def test_an_address_that_is_not_the_api_s_is_told_so(server: Noise):
    with pytest.raises(ModelHTTPError, match=r"HTTP 404: .*model's name, and base_url"):
        ask(server.model(base_url=f"{server.url}/v2"))


def test_a_model_without_eyes_refuses_an_image_or_is_told_of_it_in_words(server: Noise):
    image = types.Part(inline_data=types.Blob(data=PIXEL, mime_type="image/png", display_name="cat.png"))
    request = LlmRequest(
        contents=[types.Content(role="user", parts=[types.Part(text="What is it?"), image])],
        config=types.GenerateContentConfig(max_output_tokens=12),
    )

    async def said(model: Any) -> str:
        async with aclosing(model.generate_content_async(request)) as responses:
            return "".join([response.text async for response in responses])

    with pytest.raises(ModelHTTPError, match="image"):
        asyncio.run(said(server.model()))
    assert asyncio.run(said(server.model(lacks={"images"})))


def test_an_answer_that_is_not_heard_to_its_end_leaves_the_server_free(server: Noise):
    model = server.model(total_timeout=60)

    async def leave() -> None:
        settings = types.GenerateContentConfig(max_output_tokens=1500)
        request = LlmRequest(contents=[types.UserContent("Go")], config=settings)
        async with aclosing(model.generate_content_async(request, stream=True)) as responses:
            async for response in responses:
                assert response.partial
                return

    asyncio.run(leave())

    assert ask(model)[-1].text  # it works on one answer at a time


# --- names


@pytest.mark.parametrize("behind", ["", "#noise"])
def test_the_address_is_name_enough(server: Noise, behind: str):
    model = LLMRegistry.new_llm(f"{server.url}/v1{behind}")
    with pytest.raises(ModelHTTPError, match="HTTP 401"):
        ask(model)

    model = model.model_copy(update={"api_key": server.model().api_key})

    assert ask(model)[-1].text
    assert json.dumps(KEY) not in repr(model)


def test_what_stands_where_ollama_would_is_asked_by_ollama_s_spelling(server: Noise, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OLLAMA_HOST", server.url)
    monkeypatch.setenv("OLLAMA_API_KEY", KEY)

    assert ask(LLMRegistry.new_llm("ollama:noise"))[-1].text
