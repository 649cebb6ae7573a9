"""Examples that a model is told: which, when, and how they are written."""

from typing import Any

import pytest

from adk_nb import types
from adk_nb.errors import ConfigurationError
from adk_nb.examples import BaseExampleProvider, Example
from adk_nb.models import ScriptedLlm, call
from adk_nb.tools import ExampleTool
from tests.support.talk import Talk, guide, look


def words(role: str, text: str) -> types.Content:
    return types.Content(role=role, parts=[types.Part(text=text)])


def weather(question: str = "Is it dry?") -> Example:
    result = types.FunctionResponse(name="weather", response={"rain": "no"})
    return Example(
        input=words("user", question),
        output=[
            types.Content(role="model", parts=[types.Part(text="I look."), call("weather", city="Oslo")]),
            types.Content(role="user", parts=[types.Part(function_response=result)]),
            words("model", "It is dry."),
        ],
    )


def instructions(tool: ExampleTool, *said: Any) -> list[str]:
    agent = guide(call("look"), "done", tools=[look, tool], identity=False, instruction="Be brief.")
    talk = Talk(agent)
    talk.say(*said)
    assert talk.error is None and isinstance(agent.model, ScriptedLlm)
    for request in agent.model.requests:
        [declared] = request.config.tools or []
        assert isinstance(declared, types.Tool) and [one.name for one in declared.function_declarations or []] == [
            "look"
        ]
    return [str(request.config.system_instruction) for request in agent.model.requests]


def test_examples_are_told_with_each_call_of_the_model():
    first, second = instructions(ExampleTool([weather(), weather("And today?")]))

    assert (
        first
        == second
        == (
            "Be brief.\n\n"
            "These are examples of what users say, and of what you say and do then. Follow them.\n\n"
            "EXAMPLE 1:\n[user]\nIs it dry?\n[model]\nI look.\n(calls) weather(city='Oslo')\n[user]\n"
            '(result of weather) {"rain": "no"}\n[model]\nIt is dry.\n\n'
            "EXAMPLE 2:\n[user]\nAnd today?\n[model]\nI look.\n(calls) weather(city='Oslo')\n[user]\n"
            '(result of weather) {"rain": "no"}\n[model]\nIt is dry.'
        )
    )


class Looked(BaseExampleProvider):
    def __init__(self) -> None:
        self.asked: list[str] = []

    def get_examples(self, query: str) -> list[Example]:
        self.asked.append(query)
        return [weather(query)] if "rain" in query else []


def test_a_provider_is_asked_for_those_that_fit_what_the_user_said():
    provider = Looked()

    assert "EXAMPLE 1:\n[user]\nwill it rain?" in instructions(ExampleTool(provider), "will it rain?")[1]
    assert instructions(ExampleTool(provider), "hello")[0] == "Be brief."
    assert provider.asked == ["will it rain?", "will it rain?", "hello", "hello"]


def test_examples_may_be_dicts_and_what_is_none_is_refused():
    one = {"input": {"parts": [{"text": "hi"}]}, "output": [{"role": "model", "parts": [{"text": "hello"}]}]}

    assert instructions(ExampleTool([one]))[0].endswith("[user]\nhi\n[model]\nhello")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigurationError, match=r"output: Field required"):
        ExampleTool([{"input": {"parts": [{"text": "hi"}]}}])  # pyright: ignore[reportArgumentType]
