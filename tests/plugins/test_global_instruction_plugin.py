"""An instruction before that of every agent."""

from typing import Any

import pytest

from adk_nb import types
from adk_nb.agents import LlmAgent
from adk_nb.models import LlmRequest, ScriptedLlm
from adk_nb.plugins import GlobalInstructionPlugin
from tests.support.talk import Talk, guide


def told(agent: LlmAgent) -> Any:
    assert isinstance(agent.model, ScriptedLlm)
    return agent.model.requests[-1].config.system_instruction


def test_it_stands_first_and_knows_the_state():
    agent = guide("hello", instruction="Be brief.")
    talk = Talk(agent, {"name": "Ada"}, plugins=[GlobalInstructionPlugin("You serve {name}.")])

    talk.say()

    assert told(agent).startswith("You serve Ada.\n\nBe brief.\n\n")


def test_an_agent_without_an_instruction_has_it_too():
    agent = guide("hello")

    Talk(agent, plugins=[GlobalInstructionPlugin("You serve.")]).say()

    assert 'name is "guide".' in told(agent)


def test_a_function_says_it_at_each_turn_and_its_braces_mean_nothing():
    async def provider(ctx: Any) -> str:
        return f"{{turn}} {ctx.session.id}"

    agent = guide("hello")

    Talk(agent, plugins=[GlobalInstructionPlugin(provider)]).say()

    assert told(agent).startswith("{turn} s\n\n")


def test_nothing_to_say_changes_nothing():
    agent, other = guide("hello"), guide("hello")

    Talk(agent, plugins=[GlobalInstructionPlugin("")]).say()
    Talk(other).say()

    assert told(agent) == told(other)


ALL, OWN = types.Part(text="All.\n\n"), types.Part(text="Own.")


@pytest.mark.parametrize(
    ("present", "expected"),
    [
        (types.Content(parts=[OWN]), types.Content(parts=[ALL, OWN])),
        ([OWN], ["All.\n\n", OWN]),
        (OWN, ["All.\n\n", OWN]),
        (None, "All."),
    ],
)
def test_an_instruction_in_another_form_keeps_its_form(present: Any, expected: Any):
    class Sets(GlobalInstructionPlugin):
        async def before_model_callback(self, *, callback_context: Any, llm_request: LlmRequest) -> None:
            llm_request.config.system_instruction = present

    agent = guide("hello")

    Talk(agent, plugins=[Sets(name="sets"), GlobalInstructionPlugin("All.")]).say()

    assert told(agent) == expected
