"""Several models in one: when the next is asked, and when the error of one is the answer."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Any

import pytest
from gemini_server import GeminiServer
from vendors import ANTHROPIC, GEMINI, OPENAI, Call, Vendor

from adk_nb import types
from adk_nb.agents import LlmAgent, RunConfig, StreamingMode
from adk_nb.errors import ConfigurationError, ModelHTTPError
from adk_nb.models import BaseLlm, FallbackModel, HttpLlm, LlmCapabilities, LlmRequest, LlmResponse, ScriptedLlm
from tests.support.talk import Talk, summaries


@pytest.fixture
def servers() -> Iterator[tuple[GeminiServer, GeminiServer]]:
    with GeminiServer() as one, GeminiServer() as other:
        yield one, other


def both(servers: tuple[GeminiServer, GeminiServer], **fields: Any) -> FallbackModel:
    one, other = OPENAI.model(servers[0], model="first"), ANTHROPIC.model(servers[1], model="second")
    return FallbackModel(models=[one, other], **fields)


def ask(model: BaseLlm, *, stream: bool = False) -> list[LlmResponse]:
    async def collect() -> list[LlmResponse]:
        asked = LlmRequest(model=model.model, contents=[types.UserContent("Go")])
        async with aclosing(model.generate_content_async(asked, stream)) as responses:
            return [response async for response in responses]

    return asyncio.run(collect())


def look() -> str:
    """Looks."""
    return "seen"


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True])
def test_a_turn_goes_from_one_vendor_to_the_other_and_back(
    servers: tuple[GeminiServer, GeminiServer], stream: bool, caplog: pytest.LogCaptureFixture
):
    OPENAI.refuse(servers[0], 503, "busy")
    ANTHROPIC.say(servers[1], "Let me look.", Call("look", {}, "toolu_1"), stream=stream, framing="close")
    OPENAI.say(servers[0], "Seen.", stream=stream, framing="close")
    talk = Talk(LlmAgent(name="guide", model=both(servers), tools=[look]))

    talk.say("Look.", config=RunConfig(streaming_mode=StreamingMode.SSE if stream else StreamingMode.NONE))

    assert talk.error is None
    assert summaries(talk.stored().events) == [
        ("user", "Look. ."),
        ("guide", "Let me look." + "; calls look({})"),
        ("guide", "answers {'result': 'seen'}"),
        ("guide", "Seen. ."),
    ]
    assert [asked.body["model"] for asked in servers[0].requests] == ["first", "first"]
    assert servers[1].requests[0].body["model"] == "second"
    for vendor, server in zip((OPENAI, ANTHROPIC), servers, strict=True):
        for asked in server.requests:
            vendor.check(asked.body)
    assert any(record.getMessage().startswith("model 'first': HTTP 503") for record in caplog.records)


def test_the_last_model_s_error_is_the_answer(servers: tuple[GeminiServer, GeminiServer]):
    OPENAI.refuse(servers[0], 429, "slower")
    ANTHROPIC.refuse(servers[1], 500, "broken")

    with pytest.raises(ModelHTTPError, match="'second' answered HTTP 500"):
        ask(both(servers))


@pytest.mark.parametrize("status", [400, 401, 408])
def test_a_refusal_that_another_model_could_not_mend_is_raised(servers: tuple[GeminiServer, GeminiServer], status: int):
    OPENAI.refuse(servers[0], status, "no")

    with pytest.raises(ModelHTTPError, match=f"HTTP {status}"):
        ask(both(servers))

    assert servers[1].requests == []


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("vendor", [OPENAI, ANTHROPIC, GEMINI], ids=["openai", "anthropic", "gemini"])
def test_a_service_that_is_not_there_is_passed_over(vendor: Vendor, stream: bool):
    with GeminiServer() as server:
        gone = vendor.model(server, attempts=2, model="first")
    model = FallbackModel(models=[gone, HttpLlm(server.url, retry_options={"attempts": 1}), ScriptedLlm("Fine.")])

    answer = ask(model, stream=stream)[-1]

    assert answer.text == "Fine."
    place = server.url.removeprefix("http://")
    assert [(one.model, one.error, one.next_model) for one in answer.attempts or ()] == [
        ("first", "no connection", None),
        ("first", "no connection", place),
        (place, "no connection", "scripted"),
    ]


def test_other_statuses_can_be_named(servers: tuple[GeminiServer, GeminiServer]):
    OPENAI.refuse(servers[0], 401, "no")
    ANTHROPIC.say(servers[1], "Fine.")

    assert ask(both(servers, retriable_status_codes={401}))[-1].text == "Fine."


class Unwell(BaseLlm):
    """A model of one's own, whose error tells its status as those of most packages do."""

    says: str = ""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        if self.says:
            yield LlmResponse(content=types.ModelContent(self.says), partial=True)
        llm_request.contents.append(types.UserContent("scribbled"))
        error = RuntimeError("unwell")
        error.status_code = 503  # pyright: ignore[reportAttributeAccessIssue]
        raise error


def test_once_something_was_said_the_turn_belongs_to_that_model():
    last = ScriptedLlm("Fine.")

    with pytest.raises(RuntimeError, match="unwell"):
        ask(FallbackModel(models=[Unwell(model="a", says="It is"), last]), stream=True)

    assert last.requests == []


def test_what_a_model_scribbles_on_its_request_the_next_does_not_see():
    last = ScriptedLlm("Fine.")

    [answer] = ask(FallbackModel(models=[Unwell(model="a"), last]))
    assert (answer.text, answer.model_version) == ("Fine.", "scripted")

    assert [len(request.contents) for request in last.requests] == [1]


class Able(ScriptedLlm):
    @property
    def capabilities(self) -> LlmCapabilities:
        return LlmCapabilities(output_schema_and_tools=True, service_tools=("google_search", "url_context"))


class LessAble(ScriptedLlm):
    @property
    def capabilities(self) -> LlmCapabilities:
        return LlmCapabilities(images=False, service_tools=("google_search",))


def test_it_can_do_what_all_of_them_can():
    able = FallbackModel(models=[Able("x"), LessAble("x")]).capabilities

    assert (able.output_schema_and_tools, able.images, able.parallel_calls) == (False, False, True)
    assert able.service_tools == ("google_search",)


def test_names_are_looked_up_when_they_are_asked_and_the_first_is_its_own():
    model = FallbackModel(models=["offline", "gemini-2.5-flash"])

    assert model.model == "offline"
    assert ask(model)[-1].text
    assert model.notice


@pytest.mark.parametrize("given", [{"models": []}, {"models": ["offline"], "model": "other"}])
def test_what_makes_no_sense_is_refused_at_once(given: dict[str, Any]):
    with pytest.raises(ConfigurationError, match=r"FallbackModel (has no|takes)"):
        FallbackModel(**given)


def test_the_warning_names_no_secret(servers: tuple[GeminiServer, GeminiServer], caplog: pytest.LogCaptureFixture):
    OPENAI.refuse(servers[0], 503, "busy")
    ANTHROPIC.say(servers[1], "Fine.")

    with caplog.at_level(logging.DEBUG, logger="adk_nb"):
        ask(both(servers))

    assert "sk-a-key" not in caplog.text
