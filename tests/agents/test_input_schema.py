from typing import Any

import pytest
from pydantic import BaseModel

from adk_nb import types
from adk_nb.agents import LlmAgent
from adk_nb.errors import InputError
from adk_nb.models import call
from adk_nb.plugins import BasePlugin
from adk_nb.tools import LongRunningFunctionTool
from tests.support.talk import Talk, guide, look, requests


class Country(BaseModel):
    country: str
    year: int = 2026


def taker(*answers: Any, **fields: Any) -> LlmAgent:
    return guide(*answers, **{"input_schema": Country} | fields)


@pytest.mark.parametrize(
    "message",
    [
        '{"country": "France"}',
        ' {"country": "France", "year": 1999} ',
        '```json\n{"country": "France"}\n```',
        [types.Part(text='{"country":'), types.Part(text=' "France"}')],
        [types.Part(text='{"country": "France"}'), types.Part.from_bytes(data=b"x", mime_type="image/png")],
    ],
)
def test_a_message_that_fits_goes_on_as_it_is(message: Any):
    agent = taker("Paris")
    talk = Talk(agent)

    assert talk.say(message)[-1].text == "Paris"
    assert talk.error is None and requests(agent)[0][0][0] == "user"


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("France", "Invalid JSON"),
        ("", "Invalid JSON"),
        ('{"land": "France"}', "country: Field required"),
        ('{"country": "France", "year": "soon"}', "year: Input should be a valid integer"),
        ([types.Part.from_bytes(data=b"x", mime_type="image/png")], "Invalid JSON"),
    ],
)
def test_a_message_that_does_not_is_refused_and_nothing_is_stored(message: Any, text: str):
    agent = taker("Paris", "Paris")
    talk = Talk(agent, state={"k": 1})

    assert talk.say(message, state_delta={"k": 2}) == []
    assert isinstance(talk.error, InputError)
    assert "input_schema" in str(talk.error) and "agent 'guide'" in str(talk.error) and text in str(talk.error)
    assert "\n" not in str(talk.error)
    assert talk.stored().events == [] and talk.stored().state == {"k": 1}
    assert requests(agent) == []

    assert talk.say('{"country": "France"}')[-1].text == "Paris"


def test_the_result_of_a_call_is_no_message_to_be_read():
    def later() -> None:
        """Answers later."""

    agent = taker(call("later"), "asked", "thanks", tools=[LongRunningFunctionTool(later)])
    talk = Talk(agent)
    first = talk.say('{"country": "France"}')
    function_call = first[0].get_function_calls()[0]
    response = types.FunctionResponse(id=function_call.id, name="later", response={"r": 1})

    assert talk.say([types.Part(function_response=response)])[-1].text in {"asked", "thanks"}
    assert talk.error is None


def test_what_a_plugin_makes_of_the_message_is_what_has_to_fit():
    class Wraps(BasePlugin):
        async def on_user_message_callback(self, *, invocation_context: Any, user_message: types.Content) -> Any:
            return '{"country": "' + str((user_message.parts or [])[0].text) + '"}'

    talk = Talk(taker("Paris"), plugins=[Wraps("wraps")])

    assert talk.say("France")[-1].text == "Paris"
    assert talk.stored().events[0].text == '{"country": "France"}'


def test_a_plain_json_schema_is_read_as_json_only():
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    talk = Talk(taker("ok", input_schema=schema))

    assert talk.say('{"a": "anything"}')[-1].text == "ok"
    talk.say("[1]")
    assert isinstance(talk.error, InputError) and "Input should be an object" in str(talk.error)


def test_a_schema_set_later_counts_from_then_on():
    agent = guide("one", "two", tools=[look])
    talk = Talk(agent)
    talk.say("anything")
    agent.input_schema = Country
    talk.say("anything")

    assert isinstance(talk.error, InputError)
