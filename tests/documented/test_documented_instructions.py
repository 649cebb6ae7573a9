"""What the pages of adk-rs (LlmAgent) and ADK (LLM agents) promise of instructions and of the history, as they say."""

from typing import Any

import pytest

from adk_nb import types
from adk_nb.agents import CallbackContext, LlmAgent
from adk_nb.agents.readonly_context import ReadonlyContext
from adk_nb.models import LlmRequest, LlmResponse, ScriptedLlm, call
from adk_nb.tools import ToolContext
from tests.support.talk import Talk, requests

CAPITAL = """You are an agent that provides the capital city of a country.
1. Identify the country name from the user's query.
2. Respond clearly, stating the capital city.
Example Query: "What's the capital of France?"
"""


def agent(*answers: Any, **fields: Any) -> LlmAgent:
    return LlmAgent(name="support", model=ScriptedLlm(*answers), identity=False, **fields)


def told(agent: LlmAgent) -> list[Any]:
    """The system instructions, request by request."""
    assert isinstance(agent.model, ScriptedLlm)
    return [request.config.system_instruction for request in agent.model.requests]


@pytest.mark.parametrize(
    ("state", "text"),
    [
        ({"language": "Norwegian", "user:tier": "gold"}, "Speak in Norwegian. Customer tier: gold."),
        ({"language": "Norwegian"}, "Speak in Norwegian. Customer tier: ."),
    ],
)
def test_a_key_is_filled_in_and_one_with_a_question_mark_may_be_missing(state: dict[str, Any], text: str):
    sub_agent = agent("ok", instruction="Speak in {language}. Customer tier: {user:tier?}.")

    Talk(sub_agent, state).say()

    assert told(sub_agent) == [text]


@pytest.mark.parametrize("missing", ["{language}", "{artifact.notes.txt}"])
def test_what_is_missing_is_an_error(missing: str):
    talk = Talk(agent("never", instruction=f"Speak in {missing}."))

    [failed] = talk.say()

    assert (failed.error_code, isinstance(talk.error, KeyError)) == ("KeyError", True)
    assert "not found" in (failed.error_message or "")


def test_it_is_filled_in_before_each_call_of_the_model_also_within_a_turn():
    def count(tool_context: ToolContext) -> str:
        """Counts."""
        tool_context.state["n"] += 1
        return "counted"

    sub_agent = agent(call("count"), "done", instruction="{n} so far", tools=[count])

    Talk(sub_agent, {"n": 0}).say()

    assert told(sub_agent) == ["0 so far", "1 so far"]


def test_each_scope_of_the_state_has_its_prefix():
    def note(callback_context: CallbackContext) -> None:
        callback_context.state["temp:k"] = "now"

    sub_agent = agent("ok", instruction="{k} {app:k} {user:k} {temp:k}", before_agent_callback=note)

    Talk(sub_agent, {"k": "here", "app:k": "all", "user:k": "you"}).say()

    assert told(sub_agent) == ["here all you now"]


def test_an_artifact_is_filled_in():
    async def keep(callback_context: CallbackContext) -> None:
        await callback_context.save_artifact("notes.txt", types.Part(text="Be kind to {all}."))

    sub_agent = agent("ok", instruction="Notes: {artifact.notes.txt} {artifact.other?}!", before_agent_callback=keep)

    Talk(sub_agent).say()

    assert told(sub_agent) == ["Notes: Be kind to {all}. !"]


def test_what_is_no_name_survives():
    sub_agent = agent("ok", instruction='Answer as {"capital": "name"}, {1, 2} or { }.')

    Talk(sub_agent).say()

    assert told(sub_agent) == ['Answer as {"capital": "name"}, {1, 2} or { }.']


def test_a_plain_instruction_of_many_lines_is_told_as_it_is():
    sub_agent = agent("Paris.", instruction=CAPITAL, description="Answers questions about capitals.")

    Talk(sub_agent).say("What's the capital of France?")

    assert told(sub_agent) == [CAPITAL]


def test_a_function_is_asked_at_each_turn():
    turns = iter(["first", "second"])

    async def provider(ctx: ReadonlyContext) -> str:
        return f"{next(turns)} {{n}} {ctx.state['n']}"

    sub_agent = agent("1", "2", instruction=provider)
    talk = Talk(sub_agent, {"n": 7})

    talk.say()
    talk.say()

    assert told(sub_agent) == ["first {n} 7", "second {n} 7"]


def test_a_global_instruction_comes_before_the_instruction_after_a_blank_line():
    sub_agent = agent("ok", global_instruction="Be {tone}.", instruction="Help with {topic}.")

    Talk(sub_agent, {"tone": "kind", "topic": "taxes"}).say()

    assert told(sub_agent) == ["Be kind.\n\nHelp with taxes."]


def test_with_a_static_instruction_the_system_instruction_is_the_same_every_turn():
    sub_agent = agent("1", "2", static_instruction="You are {not templated}.", instruction="It is {hour} o'clock.")
    talk = Talk(sub_agent, {"hour": 1})

    talk.say("a")
    talk.say("b", state_delta={"hour": 2})

    assert told(sub_agent) == ["You are {not templated}."] * 2
    assert ["It is 2 o'clock." in text for _, text in requests(sub_agent)[1]] == [False, False, True, False]


def test_by_default_the_whole_history_goes_before_the_users_words():
    sub_agent = agent("1", "2")
    talk = Talk(sub_agent)

    talk.say("a")
    talk.say("b")

    assert requests(sub_agent)[1] == [("user", "a"), ("model", "1"), ("user", "b")]


def test_an_agent_without_history_sees_its_instruction_and_the_users_words():
    sub_agent = agent("1", "2", instruction="Do.", include_contents="none")
    talk = Talk(sub_agent)

    talk.say("a")
    talk.say("b")

    assert requests(sub_agent) == [[("user", "a")], [("user", "b")]]
    assert told(sub_agent) == ["Do.", "Do."]


def test_what_one_agent_left_in_the_state_is_told_to_the_next():
    extractor = agent(
        '{"summary": "no heat", "severity": "high"}',
        description="Extracts facts from a support ticket.",
        instruction="Extract the issue. Locale: {user:locale?}",
        include_contents="none",
        output_schema={"type": "object", "properties": {"summary": {"type": "string"}}},
        output_key="ticket_info",
        max_iterations=4,
    )
    talk = Talk(extractor)
    talk.say("The heating is off.")
    later_agent = agent("ok", instruction="Answer this ticket: {ticket_info}")

    Talk(later_agent, talk.stored().state).say()

    assert told(extractor) == ["Extract the issue. Locale: "]
    assert told(later_agent) == ['Answer this ticket: {"summary":"no heat","severity":"high"}']


def test_a_callback_may_put_a_content_in_place_of_the_instruction_and_reads_the_users_words_last():
    def guard(callback_context: CallbackContext, llm_request: LlmRequest) -> LlmResponse | None:
        last = llm_request.contents[-1]
        if last.parts and last.parts[0].text == "BLOCK":
            return LlmResponse(content=types.Content(role="model", parts=[types.Part(text="Blocked.")]))
        present: Any = llm_request.config.system_instruction
        assert isinstance(present, str)
        text = types.Part(text=f"[Modified] {present}")
        llm_request.config.system_instruction = types.Content(role="system", parts=[text])
        return None

    sub_agent = agent("fine", instruction="Be helpful.", before_model_callback=guard)
    talk = Talk(sub_agent)

    assert [event.text for event in talk.say("BLOCK")] == ["Blocked."]
    assert [event.text for event in talk.say("hi")] == ["fine"]
    assert told(sub_agent)[0].parts[0].text == "[Modified] Be helpful."
