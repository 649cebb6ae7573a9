"""A session as data."""

from adk_nb.agents import LlmAgent
from adk_nb.models import ScriptedLlm
from adk_nb.sessions import Session
from tests.support.talk import Talk


def test_a_session_read_back_from_json_is_equal_and_one_with_another_event_is_not():
    talk = Talk(LlmAgent(name="guide", model=ScriptedLlm("hello", "bye"), output_key="said"))
    talk.say()
    kept = talk.stored()

    for by_alias in (True, False):
        assert Session.model_validate_json(kept.model_dump_json(by_alias=by_alias)) == kept
    talk.say()
    assert talk.stored() != kept
    assert kept != kept.id
