"""A session as data."""

from adk_nb.agents import LlmAgent
from adk_nb.models import ScriptedLlm
from adk_nb.sessions import Session
from tests.support.talk import Talk


def test_a_session_read_back_from_json_is_equal_and_one_with_another_event_is_not():
    talk = Talk(LlmAgent(name="guide", model=ScriptedLlm("hello", "bye"), output_key="said"))
    talk.say()
    stored_session = talk.stored()

    for by_alias in (True, False):
        assert Session.model_validate_json(stored_session.model_dump_json(by_alias=by_alias)) == stored_session
    talk.say()
    assert talk.stored() != stored_session
    assert stored_session != stored_session.id
