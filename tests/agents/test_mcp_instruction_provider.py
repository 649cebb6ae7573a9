"""An instruction that is a prompt of an MCP server."""

import pytest

from adk_nb import sync
from adk_nb.agents import LlmAgent, McpInstructionProvider
from adk_nb.errors import ConfigurationError, NotFoundError
from adk_nb.models import ScriptedLlm
from adk_nb.tools.mcp_tool import StreamableHTTPConnectionParams
from tests.support.messages import mentions
from tests.support.talk import Talk
from tests.tools.mcp_talk import Service


def test_the_prompt_is_asked_for_at_each_turn_with_what_the_state_has():
    service = Service()
    role = McpInstructionProvider(StreamableHTTPConnectionParams(url=service.address), "role")
    model = ScriptedLlm("hi", "hi")
    talk = Talk(LlmAgent(name="a", model=model, instruction=role, identity=False), state={"city": "Oslo", "other": 1})
    talk.say()
    talk.say(state_delta={"mood": "grumpy {city}"})
    sync.run(role.close())
    service.stop()

    instructions = [request.config.system_instruction for request in model.requests]
    assert instructions == ["You are a kind guide of Oslo.", "You are a grumpy {city} guide of Oslo."]


def test_a_prompt_that_is_not_there_is_told_with_those_that_are():
    service = Service()
    role = McpInstructionProvider(StreamableHTTPConnectionParams(url=service.address), "rol")
    talk = Talk(LlmAgent(name="a", model=ScriptedLlm("hi"), instruction=role))

    talk.say()

    sync.run(role.close())
    service.stop()
    assert isinstance(talk.error, NotFoundError) and mentions(talk.error, "'rol' … 'role'?")


def test_a_server_that_cannot_be_known_is_refused_at_once():
    with pytest.raises(ConfigurationError, match=r"^connection_params must.*StdioConnectionParams"):
        McpInstructionProvider("python server.py", "role")
