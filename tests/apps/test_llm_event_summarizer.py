"""A summariser that asks a model: what it is told, and what comes of its answers."""

from typing import Any

import pytest

from adk_nb import App, InMemoryRunner, sync, types
from adk_nb.apps import EventsCompactionConfig, LlmEventSummarizer
from adk_nb.errors import ConfigurationError, ModelError, UnexpectedModelAnswer
from adk_nb.events import Event
from adk_nb.models import LlmResponse, ScriptedLlm, call
from tests.support.talk import guide, requests

HISTORY = "{conversation_history}"


def said(author: str, *parts: Any, at: float = 1.0) -> Event:
    content_parts = [types.Part(text=part) if isinstance(part, str) else part for part in parts]
    return Event(author=author, content=types.Content(role="user", parts=content_parts), timestamp=at)


def result(name: str, **response: Any) -> types.Part:
    return types.Part(function_response=types.FunctionResponse(id="f1", name=name, response=response))


def summed_up(*events: Event, answer: Any = "short", template: str | None = HISTORY) -> tuple[Event | None, str]:
    """What comes of it, and what the model was asked."""
    model = ScriptedLlm(answer)
    event = sync.run(LlmEventSummarizer(model, template).maybe_summarize_events(events=list(events)))
    return event, "".join(part.text or "" for request in model.requests for part in request.contents[0].parts or [])


def test_the_model_sees_the_author_of_each_message_and_call():
    _, prompt = summed_up(
        said("user", "Oslo?"),
        said("guide", types.Part(text="hm", thought=True), call("weather", city="Oslo")),
        said("guide", result("weather", sky="blue")),
        said("guide", "Blue."),
    )

    assert prompt.splitlines() == [
        "user: Oslo?",
        "guide (thinking): hm",
        'guide called the tool weather: {"city":"Oslo"}',
        'the tool weather answered: {"sky":"blue"}',
        "guide: Blue.",
    ]


def test_the_summary_stands_for_the_time_from_the_first_event_to_the_last():
    used = types.GenerateContentResponseUsageMetadata(prompt_token_count=9)
    parts = [types.Part(text="hm", thought=True), types.Part(text="short")]
    answer = LlmResponse(content=types.Content(role="model", parts=parts), usage_metadata=used)

    event, _ = summed_up(said("user", "a", at=3), said("guide", "b", at=5), answer=answer)

    assert event
    compaction = event.actions.compaction
    assert compaction
    assert (event.author, event.content, event.usage_metadata) == ("user", None, used)
    assert (compaction.start_timestamp, compaction.end_timestamp) == (3, 5)
    assert compaction.compacted_content == types.Content(role="model", parts=[types.Part(text="short")])


def test_long_arguments_and_responses_are_truncated():
    _, prompt = summed_up(
        said("guide", call("write", text="x" * 3000)), said("guide", result("write", text="y" * 3000))
    )

    first, second = prompt.splitlines()
    assert first.endswith("... (1011 characters left out)")
    assert second.endswith("... (1011 characters left out)")
    assert len(first) < 2100


def test_what_people_are_asked_and_answer_is_left_out():
    asks = call("adk_request_credential", key="SECRET")
    _, prompt = summed_up(said("guide", asks), said("user", result("adk_request_credential", token="SECRET")))

    assert prompt == ""


def test_ones_own_prompt_may_have_braces():
    _, prompt = summed_up(said("user", "a {b}"), template='Answer {"x": 1}. {conversation_history}')

    assert prompt == 'Answer {"x": 1}. user: a {b}'


def test_a_prompt_without_a_place_for_the_conversation_is_refused():
    with pytest.raises(ConfigurationError, match=r"add \{conversation_history\} to it"):
        LlmEventSummarizer(ScriptedLlm(), "Sum up.")


def test_the_prompt_asks_for_the_language_and_the_tools():
    _, prompt = summed_up(said("user", "a"), template=None)

    assert "Conversation language" in prompt
    assert "were called" in prompt
    assert prompt.endswith("user: a")


def test_of_no_events_there_is_no_summary():
    assert summed_up() == (None, "")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [(" ", "it said nothing"), (LlmResponse(error_code="SAFETY", error_message="no"), "no")],
)
def test_an_answer_without_words_is_an_error(answer: Any, reason: str):
    with pytest.raises(UnexpectedModelAnswer, match=f"'scripted' .*: {reason}"):
        summed_up(said("user", "a"), answer=answer)


def test_an_error_of_the_model_is_raised():
    with pytest.raises(ModelError, match="down"):
        summed_up(said("user", "a"), answer=ModelError("down"))


def test_without_a_summariser_the_root_agents_model_is_asked():
    agent = guide("r1 " + "x" * 400, "SUMMARY", "r2")
    config = EventsCompactionConfig(compaction_interval=1, overlap_size=0)
    runner = InMemoryRunner(
        app=App(name="app", root_agent=agent, events_compaction_config=config), auto_create_session=True
    )

    for text in ("m1", "m2"):
        list(runner.run(user_id="u", session_id="s", new_message=text))

    assert "user: m1\nguide: r1 xxx" in requests(agent)[1][0][1]
    assert requests(agent)[2] == [("model", "SUMMARY"), ("user", "m2")]
