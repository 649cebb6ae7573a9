"""What the pages of adk-rs (LlmAgent, tools) and ADK (LLM agents, callbacks) promise of output, callbacks and tools."""

import asyncio
import json
from typing import Any

import pytest
from pydantic import BaseModel, Field

from adk_nb import types
from adk_nb.agents import CallbackContext, LlmAgent, RunConfig, StreamingMode
from adk_nb.models import LlmRequest, LlmResponse, ScriptedLlm, call
from adk_nb.runners import Runner
from adk_nb.sessions import InMemorySessionService
from adk_nb.tools import ToolContext
from tests.support.talk import Talk, content_summaries, requests, summaries

# ---- adk-rs: the extractor of the page on LlmAgent

TICKET = types.Schema(
    type=types.Type.OBJECT,
    properties={"summary": types.Schema(type=types.Type.STRING), "severity": types.Schema(type=types.Type.STRING)},
)


def extractor(*answers: Any, **fields: Any) -> LlmAgent:
    return LlmAgent(
        name="extractor",
        description="Reads facts out of a support ticket.",
        model=ScriptedLlm(*answers),
        instruction="Say what the customer's trouble is. Locale: {user:locale?}",
        include_contents="none",
        max_iterations=4,
        output_schema=TICKET,
        output_key="ticket_info",
        **fields,
    )


def test_the_extractor_leaves_parsed_json_in_the_state():
    agent = extractor('{"summary": "no login", "severity": "high"}', '{"summary": "slow", "severity": "low"}')
    talk = Talk(agent, state={"user:locale": "nb"})

    talk.say("I cannot log in!")
    talk.say("It is slow.")

    assert talk.stored().state["ticket_info"] == {"summary": "slow", "severity": "low"}
    deltas = [event.actions.state_delta.get("ticket_info") for event in talk.stored().events]
    assert deltas == [
        None,
        {"summary": "no login", "severity": "high"},
        None,
        {"summary": "slow", "severity": "low"},
    ]
    assert requests(agent)[1] == [("user", "It is slow.")]  # a stateless step


def test_the_extractors_request_carries_the_schema_and_the_filled_in_instruction():
    agent = extractor("{}")
    Talk(agent, state={"user:locale": "nb"}).say("Ticket")

    assert isinstance(agent.model, ScriptedLlm)
    config = agent.model.requests[0].config
    assert config.response_schema == TICKET and config.response_mime_type == "application/json"
    assert str(config.system_instruction).startswith("Say what the customer's trouble is. Locale: nb")


def test_the_next_agent_reads_it_as_json_text():
    talk = Talk(extractor('{"summary": "no login", "severity": "high"}'))
    talk.say("Ticket")
    answerer = LlmAgent(name="answerer", model=ScriptedLlm("ok"), instruction="Answer this: {ticket_info}")
    Talk(answerer, state=talk.stored().state).say()

    assert isinstance(answerer.model, ScriptedLlm)
    text = str(answerer.model.requests[0].config.system_instruction)
    assert json.loads(text.removeprefix("Answer this: ").splitlines()[0]) == {"summary": "no login", "severity": "high"}


def test_the_loop_ends_with_an_event_after_as_many_calls_as_it_may_make():
    def look() -> str:
        """Looks."""
        return "nothing yet"

    events = Talk(extractor(*[call("look")] * 5, tools=[look])).say()

    assert events[-1].error_code == "MAX_ITERATIONS" and events[-1].content is None
    assert sum(bool(event.get_function_calls()) for event in events) == 4


def test_without_a_schema_the_words_of_the_final_answer_are_kept():
    talk = Talk(LlmAgent(name="a", model=ScriptedLlm("The answer."), output_key="last"))
    talk.say()

    assert talk.stored().state == {"last": "The answer."}


def test_a_stream_is_put_together_into_the_event_that_is_kept():
    talk = Talk(extractor(['{"summary": "x",', ' "severity": "y"}']))
    events = talk.say(config=RunConfig(streaming_mode=StreamingMode.SSE))

    assert [event.partial for event in events] == [True, True, None]
    assert [event.text for event in talk.stored().events][1:] == ['{"summary": "x", "severity": "y"}']
    assert talk.stored().state == {"ticket_info": {"summary": "x", "severity": "y"}}


def test_what_a_tool_writes_rides_on_the_event_with_its_result():
    def note(text: str, tool_context: ToolContext) -> str:
        """Notes."""
        tool_context.state["note"] = text
        return "noted"

    talk = Talk(LlmAgent(name="a", model=ScriptedLlm(call("note", text="hi"), "done"), tools=[note]))

    assert summaries(talk.say())[1] == ("a", "answers {'result': 'noted'} => {'note': 'hi'}")
    assert talk.stored().state == {"note": "hi"}


def test_each_call_has_an_id_and_a_failing_tool_is_a_value_the_model_can_react_to():
    def fetch(url: str) -> str:
        """Fetches."""
        raise TimeoutError(f"{url} did not answer")

    agent = LlmAgent(name="a", model=ScriptedLlm(call("fetch", url="x"), "Sorry."), tools=[fetch])
    events = Talk(agent).say()

    [function_call], [response] = events[0].get_function_calls(), events[1].get_function_responses()
    assert function_call.id and function_call.id == response.id
    assert response.response == {"error": "TimeoutError: x did not answer"}
    assert events[-1].text == "Sorry."


# ---- ADK: the guardrail of the page on callbacks


def guard(callback_context: CallbackContext, llm_request: LlmRequest) -> LlmResponse | None:
    """Puts words before the instruction; answers itself when the user says BLOCK."""
    text = ""
    if llm_request.contents and llm_request.contents[-1].role == "user" and llm_request.contents[-1].parts:
        text = llm_request.contents[-1].parts[0].text or ""
    instruction: Any = llm_request.config.system_instruction or types.Content(role="system", parts=[])
    if not isinstance(instruction, types.Content):
        instruction = types.Content(role="system", parts=[types.Part(text=str(instruction))])
    instruction.parts[0].text = f"[{callback_context.agent_name} is guarded] {instruction.parts[0].text}"
    llm_request.config.system_instruction = instruction
    if "BLOCK" not in text.upper():
        return None
    return LlmResponse(content=types.Content(role="model", parts=[types.Part(text="That was blocked.")]))


def guarded(*answers: Any) -> LlmAgent:
    return LlmAgent(
        name="Guarded",
        model=ScriptedLlm(*answers),
        instruction="You are a helpful assistant.",
        description="Shows a guardrail",
        before_model_callback=guard,
    )


def test_a_guardrail_changes_the_request_and_lets_it_through():
    agent = guarded("Hello!", "Again!")
    talk = Talk(agent)

    assert [talk.say(text)[-1].text for text in ("callback example", "once more")] == ["Hello!", "Again!"]
    assert isinstance(agent.model, ScriptedLlm)
    for request in agent.model.requests:  # each call anew: it does not pile up
        instruction: Any = request.config.system_instruction
        assert instruction.parts[0].text.startswith("[Guarded is guarded] You are a helpful assistant.")


def test_a_guardrail_answers_in_the_models_place():
    agent = guarded()
    talk = Talk(agent)
    events = talk.say("please BLOCK this")

    assert [event.text for event in events if event.is_final_response()] == ["That was blocked."]
    assert events[-1].author == "Guarded" and talk.stored().events[-1].text == "That was blocked."
    assert isinstance(agent.model, ScriptedLlm) and agent.model.requests == []


# ---- ADK: the two capital agents of the page on LLM agents


class CountryInput(BaseModel):
    country: str = Field(description="The country that is asked about.")


class CapitalInfo(BaseModel):
    capital: str = Field(description="The capital city of the country.")
    population_estimate: str = Field(description="About how many people live there.")


def get_capital_city(country: str) -> str:
    """Retrieves the capital city of a given country."""
    return {"france": "Paris", "canada": "Ottawa"}.get(country.lower(), f"no capital of {country} is known")


def with_tool(*answers: Any) -> LlmAgent:
    return LlmAgent(
        model=ScriptedLlm(*answers),
        name="capital_agent_tool",
        instruction='The user sends {"country": "country_name"}. Look its capital up with get_capital_city.',
        tools=[get_capital_city],
        input_schema=CountryInput,
        output_key="capital_tool_result",
    )


def with_schema(*answers: Any) -> LlmAgent:
    return LlmAgent(
        model=ScriptedLlm(*answers),
        name="structured_info_agent_schema",
        instruction=f"""The user sends {{"country": "country_name"}}.
Answer with JSON of this schema alone:
{json.dumps(CapitalInfo.model_json_schema(), indent=2)}
""",
        input_schema=CountryInput,
        output_schema=CapitalInfo,
        output_key="structured_info_result",
    )


def asked(agent: LlmAgent, *queries: str) -> tuple[list[str], Any]:
    """The final words to each query, and what is in the state under the agent's output key."""

    async def run() -> tuple[list[str], Any]:
        service = InMemorySessionService()
        session_key = {"user_id": "test_user_456", "session_id": "s"}
        await service.create_session(app_name="agent_comparison_app", **session_key)
        runner = Runner(agent=agent, app_name="agent_comparison_app", session_service=service)
        answers: list[str] = []
        for query in queries:
            message = types.Content(role="user", parts=[types.Part(text=query)])
            events = runner.run_async(new_message=message, **session_key)
            answers += [event.text async for event in events if event.is_final_response() and event.content]
        session = await service.get_session(app_name="agent_comparison_app", **session_key)
        assert session and agent.output_key
        return answers, session.state.get(agent.output_key)

    return asyncio.run(run())


def test_the_capital_agent_with_a_tool():
    agent = with_tool(
        call("get_capital_city", country="France"), "The capital of France is Paris.",
        call("get_capital_city", country="Canada"), "The capital of Canada is Ottawa.",
    )  # fmt: skip

    answers, stored_request = asked(agent, '{"country": "France"}', '{"country": "Canada"}')

    assert answers == ["The capital of France is Paris.", "The capital of Canada is Ottawa."]
    assert stored_request == "The capital of Canada is Ottawa."
    assert requests(agent)[1][-1] == ("user", "answers {'result': 'Paris'}")


def test_the_capital_agent_with_a_schema():
    text = '{"capital": "Tokyo", "population_estimate": "14 million"}'
    agent = with_schema('{"capital": "Paris", "population_estimate": "2 million"}', text)

    answers, stored_request = asked(agent, '{"country": "France"}', '{"country": "Japan"}')

    assert answers[-1] == text
    assert stored_request == {"capital": "Tokyo", "population_estimate": "14 million"}
    assert isinstance(agent.model, ScriptedLlm)
    request = agent.model.requests[0]
    assert request.config.response_schema is CapitalInfo and not request.tools_dict
    assert str(request.config.system_instruction).startswith(str(agent.instruction))  # braces of JSON are no keys
    assert content_summaries(request.contents) == [("user", '{"country": "France"}')]


def test_the_users_message_must_be_the_json_that_the_agent_takes():
    with pytest.raises(ValueError, match="country: Field required"):
        asked(with_tool(), '{"land": "France"}')
    with pytest.raises(ValueError, match="Invalid JSON"):
        asked(with_schema(), "France")


def test_a_schema_no_longer_takes_the_tools_away():
    # The page says that an agent with an output schema cannot use tools; it can.
    agent = LlmAgent(
        model=ScriptedLlm(
            call("get_capital_city", country="France"),
            call("set_model_response", capital="Paris", population_estimate="2 million"),
        ),
        name="both",
        tools=[get_capital_city],
        output_schema=CapitalInfo,
        output_key="found",
    )

    answers, stored_request = asked(agent, "France?")

    assert stored_request == {"capital": "Paris", "population_estimate": "2 million"}
    assert json.loads(answers[-1]) == stored_request
