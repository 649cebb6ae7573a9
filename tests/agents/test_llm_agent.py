"""What an agent may be made of, and what it says to what it may not."""

from typing import Any

import pytest
from pydantic import BaseModel
from support.messages import mentions

from adk_nb import types
from adk_nb.agents import Agent, BaseAgent, LlmAgent
from adk_nb.agents.readonly_context import ReadonlyContext
from adk_nb.errors import ConfigurationError, ModelNotFoundError
from adk_nb.models import ScriptedLlm, call
from adk_nb.planners import PlanReActPlanner
from adk_nb.tools import FunctionTool
from tests.support.each import each
from tests.support.talk import Talk, summaries


def look() -> str:
    """Looks."""
    return "seen"


def test_agent_is_short_for_llm_agent():
    assert Agent is LlmAgent


@pytest.mark.parametrize(
    ("name", "better"),
    [
        ("my agent", "'my_agent'"),
        ("a-b", "'a_b'"),
        ("1a", "'agent_1a'"),
        ("", "'agent'"),
        ("!", "'agent'"),
        ("bad-class", "'bad_class'"),
    ],
)
def test_a_name_that_is_no_identifier_is_refused_with_one_that_is(name: str, better: str):
    with pytest.raises(ConfigurationError) as refused:
        LlmAgent(name=name)

    assert mentions(refused.value, f"Python identifier … {name!r} … try {better}")


def test_names_that_serve():
    assert [LlmAgent(name=name).name for name in ("a", "é", "_x1", "class")] == ["a", "é", "_x1", "class"]


def test_no_agent_is_the_user():
    with pytest.raises(ConfigurationError, match="'user'"):
        LlmAgent(name="user")


class Answer(BaseModel):
    answer: str


@each(
    "fields, text",
    [
        ({"instructions": "Be brief."}, "agent 'a': … 'instructions'; did you mean 'instruction'?"),
        ({"zzz": 1}, "agent 'a': … no field 'zzz'"),
        (
            {"temperature": 0.2},
            "agent 'a': 'temperature' belongs in generate_content_config; "
            "write generate_content_config=types.GenerateContentConfig(temperature=...)",
        ),
        ({"generate_content_config": {"temp": 1}}, "agent 'a': … no field 'generate_content_config.temp'"),
        ({"model": ScriptedLlm}, "; write ScriptedLlm(...)"),
        ({"planner": PlanReActPlanner}, "PlanReActPlanner'>); write PlanReActPlanner(...)"),
        ({"description": 5}, "agent 'a': 'description': Input should be a valid string (got 5)"),
        ({"max_iterations": "many"}, "'max_iterations': Input should be a valid integer"),
        ({"tool_errors": "ignore"}, "'tool_errors': Input should be 'return' or 'raise' (got 'ignore')"),
        ({"tools": look}, "'tools': Input should be a valid list"),
        ({"tools": ["look"]}, "agent 'a': 'look' … functions, or tools"),
        ({"tools": [LlmAgent(name="b")]}, "agent 'a': … 'b' … not a tool"),
        (
            {"generate_content_config": types.GenerateContentConfig(tools=[types.Tool()])},
            "agent 'a': 'tools' … generate_content_config; … LlmAgent(tools=[...])",
        ),
        (
            {"generate_content_config": types.GenerateContentConfig(system_instruction="Be brief.")},
            "agent 'a': 'system_instruction' does not belong in generate_content_config; "
            "pass it as LlmAgent(instruction=...)",
        ),
        (
            {"generate_content_config": types.GenerateContentConfig(response_schema=Answer)},
            "'response_schema' … generate_content_config; … LlmAgent(output_schema=...)",
        ),
        (
            {"generate_content_config": types.GenerateContentConfig(response_json_schema={"type": "object"})},
            "'response_json_schema' … generate_content_config; … LlmAgent(output_schema=...)",
        ),
        (
            {"generate_content_config": {"http_options": {"base_url": "http://127.0.0.1"}}},
            "'base_url' … generate_content_config; … model: LlmAgent(model=Gemini(",
        ),
        ({"maxOutputTokens": 5}, "GenerateContentConfig(max_output_tokens=...)"),
        ({"system_instruction": "x"}, "no field … LlmAgent(instruction=...)"),
        ({"response_schema": Answer}, "no field … LlmAgent(output_schema=...)"),
        ({"on_output_error": "ignore"}, "'on_output_error': Input should be 'event', 'raise', 'raw' or 'retry'"),
    ],
)
def test_a_wrong_field_is_told_in_one_line_with_the_right_one(fields: dict[str, Any], text: str):
    with pytest.raises(ConfigurationError) as refused:
        LlmAgent(name="a", **fields)

    assert mentions(refused.value, text)
    assert "\n" not in str(refused.value)


def test_an_agent_without_a_name_is_refused():
    with pytest.raises(ConfigurationError, match=r"'name' is missing$"):
        LlmAgent(**{"model": "offline"})


def test_settings_that_are_the_agents_own_are_taken():
    config = types.GenerateContentConfig(
        temperature=0.1,
        response_mime_type="text/plain",
        thinking_config=types.ThinkingConfig(thinking_budget=5),
        http_options=types.HttpOptions(timeout=1000),
    )

    assert LlmAgent(name="a", generate_content_config=config).generate_content_config == config


def test_several_wrong_fields_are_reported_at_once():
    with pytest.raises(ConfigurationError) as refused:
        LlmAgent(descripton="x", output_kee="y")

    text = str(refused.value)
    assert "'name' is missing" in text
    assert "did you mean 'description'?" in text and "did you mean 'output_key'?" in text


def test_a_configuration_error_is_a_value_error_as_in_adk():
    with pytest.raises(ValueError):
        LlmAgent(name="not a name")


def test_an_agent_is_made_without_its_model():
    agent = LlmAgent(name="a", model="no-such-model")

    with pytest.raises(ModelNotFoundError, match="no-such-model"):
        _ = agent.canonical_model


def test_a_model_that_cannot_be_found_is_an_event_and_then_raised():
    talk = Talk(LlmAgent(name="a", model="no-such-model"))

    assert summaries(talk.say()) == [("a", "failed ModelNotFoundError")]
    assert isinstance(talk.error, ModelNotFoundError)


def test_a_named_model_is_made_once():
    agent = LlmAgent(name="a", model="gemini-2.5-flash")

    assert agent.canonical_model is agent.canonical_model
    assert agent.canonical_model.model == "gemini-2.5-flash"


def test_functions_become_tools_once_and_again_when_the_list_changed():
    ready = FunctionTool(look, name="ready")
    agent = LlmAgent(name="a", tools=[look, ready])

    first = agent.tools_now()
    assert [tool.name for tool in first] == ["look", "ready"]
    assert first[1] is ready and agent.tools_now() is first

    agent.tools.append(FunctionTool(look, name="third"))
    assert [tool.name for tool in agent.tools_now()] == ["look", "ready", "third"]


def test_settings_reach_the_model_and_are_not_changed_by_it():
    settings = types.GenerateContentConfig(temperature=0.2, max_output_tokens=10)
    model = ScriptedLlm(call("look"), "done")
    talk = Talk(LlmAgent(name="a", model=model, tools=[look], instruction="Look.", generate_content_config=settings))

    talk.say()

    assert [request.config.temperature for request in model.requests] == [0.2, 0.2]
    assert [len(request.config.tools or []) for request in model.requests] == [1, 1]
    assert settings == types.GenerateContentConfig(temperature=0.2, max_output_tokens=10)


def instructed(**fields: Any) -> str:
    model = ScriptedLlm("ok")
    talk = Talk(LlmAgent(name="a", model=model, **fields), state={"x": "X"})
    talk.say()
    assert talk.error is None
    return str(model.requests[0].config.system_instruction)


def test_an_instruction_is_told_before_who_the_agent_is():
    assert instructed(instruction="Be {x}.", description="Helps.") == (
        'Be X.\n\nYou are an agent. Your internal name is "a". The description about you is "Helps".'.replace(
            '"Helps"', '"Helps."'
        )
    )
    assert instructed() == 'You are an agent. Your internal name is "a".'


def test_braces_mean_nothing_without_a_template():
    assert instructed(instruction="Be {x} {y}.", template=False).startswith("Be {x} {y}.\n\n")


def test_an_instruction_may_be_made_each_turn_and_is_taken_as_it_is():
    def sync_provider(context: ReadonlyContext) -> str:
        return f"{context.agent_name} {context.state['x']} {{x}}"

    async def async_provider(context: ReadonlyContext) -> str:
        return sync_provider(context)

    assert instructed(instruction=sync_provider).startswith("a X {x}\n\n")
    assert instructed(instruction=async_provider).startswith("a X {x}\n\n")


def test_who_makes_an_instruction_reads_and_does_not_write():
    def provider(context: Any) -> str:
        context.state["x"] = 1
        return "never"

    talk = Talk(LlmAgent(name="a", model=ScriptedLlm("ok"), instruction=provider))

    assert summaries(talk.say()) == [("a", "failed TypeError")]


def test_only_the_words_of_the_final_answer_are_kept():
    thought = types.Part(text="hm", thought=True)
    model = ScriptedLlm(["Let me look. ", call("look")], [thought, "done"], "")
    talk = Talk(LlmAgent(name="a", model=model, tools=[look], output_key="user:last"))

    talk.say()
    assert talk.stored().state == {"user:last": "done"}

    assert summaries(talk.say()) == [("a", "failed MODEL_RETURNED_NO_CONTENT")]
    assert talk.stored().state == {"user:last": "done"}


def test_an_agent_in_code_declares_its_own_fields():
    class Greets(BaseAgent):
        greeting: str = "hello"

    assert Greets(name="g", greeting="hi").greeting == "hi"
    with pytest.raises(ConfigurationError, match=r"'greting'; .*'greeting'"):
        Greets(name="g", greting="hi")


def test_an_instruction_that_became_something_else_is_told_by_its_agent():
    agent = LlmAgent(name="guide", model=ScriptedLlm("hello"))
    agent.instruction = 5  # type: ignore[assignment]

    talk = Talk(agent)
    talk.say()

    assert "'guide': its instruction" in str(talk.error) and "5" in str(talk.error)


def test_an_agent_prints_in_one_line():
    agent = LlmAgent(name="guide", model=ScriptedLlm())

    assert str(agent) == "LlmAgent(name='guide', model='scripted', tools=[])"
