"""A live conversation is handed over: the next agent has a connection of its own, and knows what was said."""

from typing import Any

from adk_nb import types
from adk_nb.agents import LlmAgent, RunConfig
from adk_nb.models import LlmResponse, ScriptedLlm, call
from tests.flow.test_live import LiveTalk, handle, live_summaries
from tests.support.talk import content_summaries
from tests.support.transcripts import call_line

TO_B = call("transfer_to_agent", agent_name="b")


def agent(name: str, *answers: Any, **fields: Any) -> LlmAgent:
    return LlmAgent(name=name, model=ScriptedLlm(*answers), **fields)


def model(one: LlmAgent) -> ScriptedLlm:
    assert isinstance(one.model, ScriptedLlm)
    return one.model


def sent_texts(one: LlmAgent) -> list[str]:
    """The words and results that were sent over its first connection."""
    return [
        content_summaries([said])[0][1] for said in model(one).connections[0].sent if isinstance(said, types.Content)
    ]


def test_the_target_answers_over_a_connection_of_its_own_and_hears_what_was_said():
    b = agent("b", "B here.", "Good bye.")
    root = agent("root", TO_B, sub_agents=[b])
    talk = LiveTalk(root)

    events = talk.live("Let me talk to b.", "Thanks.")

    assert talk.error is None
    assert [one for one in live_summaries(events) if "..." not in one[1]] == [
        ("root", call_line("transfer_to_agent", agent_name="b")),
        ("root", "answers {'result': None}"),
        ("b", "B here."),
        ("b", "done"),
        ("b", "Good bye."),
        ("b", "done"),
    ]
    assert len(model(root).connections) == len(model(b).connections) == 1
    assert model(root).connections[0].closed
    assert not any("answers" in words for words in sent_texts(root))
    assert sent_texts(b)[0] == "Let me talk to b." and "`transfer_to_agent`" in sent_texts(b)[1]
    assert sent_texts(b)[-1] == "Thanks."


def test_it_comes_back_and_the_next_conversation_begins_with_who_had_the_word():
    b = agent("b", call("transfer_to_agent", agent_name="root"), sub_agents=[])
    root = agent("root", TO_B, "Root again.", "And again.", sub_agents=[b])
    talk = LiveTalk(root)

    first = talk.live("b, please")
    then = talk.live("still there?")

    assert [author for author, words in live_summaries(first) if words == "done"] == ["root"]
    assert [author for author, words in live_summaries(then) if words == "done"] == ["root"]
    assert len(model(root).connections) == 3 and len(model(b).connections) == 1


def test_a_handle_of_one_conversation_is_not_used_for_anothers():
    b = agent("b", "B here.")
    over = LlmResponse(content=types.Content(role="model", parts=[TO_B]))
    root = agent("root", [handle("h1"), over], sub_agents=[b])
    settings = RunConfig(session_resumption=types.SessionResumptionConfig(handle="given"))

    talk = LiveTalk(root)
    talk.live("b, please", config=settings)

    assert talk.error is None
    [asked] = model(b).requests
    assert asked.live_connect_config and asked.live_connect_config.session_resumption
    assert asked.live_connect_config.session_resumption.handle is None


def test_other_calls_of_the_step_are_done_and_told_to_the_target():
    done: list[str] = []

    def work() -> str:
        """Works."""
        done.append("work")
        return "worked"

    b = agent("b", "B here.")

    LiveTalk(agent("root", [call("work"), TO_B], tools=[work], sub_agents=[b])).live("b, please")

    assert done == ["work"]
    assert any("worked" in words for words in sent_texts(b))


def test_a_name_that_nobody_has_is_told_to_the_model_and_the_conversation_goes_on():
    root = agent("root", call("transfer_to_agent", agent_name="bb"), "I answer.", sub_agents=[agent("b")])

    events = LiveTalk(root).live("bb, please")

    [result] = [one.response for event in events for one in event.get_function_responses()]
    assert result and "mean 'b'?" in result["error"]
    assert ("root", "I answer.") in live_summaries(events)
