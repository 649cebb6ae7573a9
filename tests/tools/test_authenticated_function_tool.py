"""A function that is handed what it was let in with, as ADK's own tool for it has it."""

import functools
from typing import Any

import pytest

from adk_nb.auth import APIKey, APIKeyIn, AuthConfig, AuthCredential, AuthCredentialTypes
from adk_nb.errors import ConfigurationError
from adk_nb.models.scripted_llm import call
from adk_nb.runtime import credentials, interrupts
from adk_nb.runtime.history import open_interrupts
from adk_nb.runtime.interrupts import CREDENTIALS
from adk_nb.tools import AuthenticatedFunctionTool, ToolContext
from tests.support.talk import Talk, guide, summaries

CONFIG = AuthConfig(auth_scheme=APIKey(in_=APIKeyIn.header, name="X-Key"))
KEY = AuthCredential(auth_type=AuthCredentialTypes.API_KEY, api_key="a-persons-key")


def fetch(city: str, credential: AuthCredential, tool_context: ToolContext) -> str:
    """Fetch the news.

    Args:
        city: Of where.
        credential: The key.
    """
    assert credential == tool_context.auth_credential == KEY
    return f"news of {city}"


async def afetch(city: str, *, credential: AuthCredential | None = None) -> str:
    """Fetch the news."""
    assert credential == KEY
    return f"news of {city}"


class Fetcher:
    def fetch(self, city: str, credential: AuthCredential) -> str:
        """Fetch the news."""
        return fetch(city, credential, tool_context=type("C", (), {"auth_credential": KEY})())  # type: ignore[arg-type]


def bare(city: str) -> str:
    """Fetch the news."""
    return f"news of {city}"


@pytest.mark.parametrize("func", [fetch, afetch, Fetcher().fetch, bare, functools.partial(fetch)])
def test_it_waits_for_the_credential_and_is_handed_it(func: Any):
    tool = AuthenticatedFunctionTool(func, CONFIG, name="fetch")
    assert tool.declaration
    assert list(tool.declaration.parameters_json_schema["properties"]) == ["city"]
    talk = Talk(guide(call("fetch", city="Oslo"), "here", tools=[tool]))
    talk.say()
    [asked] = open_interrupts(talk.stored().events, CREDENTIALS)

    events = talk.say(interrupts.answer(asked, {"apiKey": "a-persons-key"}))

    assert summaries(events)[0] == ("guide", "answers {'result': 'news of Oslo'}")
    assert "a-persons-key" not in talk.stored().model_dump_json()


@pytest.mark.parametrize(
    ("given", "seen"),
    [("Please sign in.", {"result": "Please sign in."}), ({"wait": 1}, {"wait": 1}), (None, credentials.placeholder())],
)
def test_what_the_model_has_meanwhile_can_be_said(given: Any, seen: dict[str, Any]):
    tool = AuthenticatedFunctionTool(func=fetch, auth_config=CONFIG, response_for_auth_required=given)

    events = Talk(guide(call("fetch", city="Oslo"), tools=[tool])).say()

    [result] = [one.response for event in events for one in event.get_function_responses()]
    assert result == seen


def test_a_credential_that_the_model_makes_up_is_none():
    tool = AuthenticatedFunctionTool(fetch, CONFIG.model_copy(update={"raw_auth_credential": KEY}))

    events = Talk(guide(call("fetch", city="Oslo", credential="mine"), "here", tools=[tool])).say()

    assert summaries(events)[1] == ("guide", "answers {'result': 'news of Oslo'}")


def test_without_a_config_it_says_what_to_write():
    with pytest.raises(ConfigurationError, match="or use FunctionTool"):
        AuthenticatedFunctionTool(fetch, None)  # type: ignore[arg-type]
