"""The walk of one message through the whole house: runner, agent, model, tool, session, and back as events."""

from typing import Any

from inline_snapshot import snapshot

from adk_nb.agents import LlmAgent
from adk_nb.events import Event
from adk_nb.models import ScriptedLlm, call
from adk_nb.tools import ToolContext
from tests.support.talk import Talk, content_summaries, summaries
from tests.support.transcripts import call_line, result_line


def weather(city: str, tool_context: ToolContext) -> str:
    """The weather in a city."""
    tool_context.state["asked"] = city
    return f"{city}: sunny"


def test_a_message_becomes_events_history_and_state():
    model = ScriptedLlm(call("weather", city="Oslo"), "It is sunny in Oslo.", "You asked of Oslo.")
    agent = LlmAgent(
        name="guide",
        description="Knows weather.",
        model=model,
        instruction="Answer for {home}.",
        tools=[weather],
        output_key="last",
    )
    talk = Talk(agent, state={"home": "Oslo"})

    first = talk.say("How is Oslo?")
    second = talk.say("What did I ask?")

    assert summaries(first + second) == snapshot(
        [
            ("guide", call_line("weather", city="Oslo")),
            ("guide", "answers {'result': 'Oslo: sunny'} => {'asked': 'Oslo'}"),
            ("guide", "It is sunny in Oslo. => {'last': 'It is sunny in Oslo.'} ."),
            ("guide", "You asked of Oslo. => {'last': 'You asked of Oslo.'} ."),
        ]
    )
    assert content_summaries(model.requests[-1].contents) == snapshot(
        [
            ("user", "How is Oslo?"),
            ("model", call_line("weather", city="Oslo")),
            ("user", result_line(result="Oslo: sunny")),
            ("model", "It is sunny in Oslo."),
            ("user", "What did I ask?"),
        ]
    )
    assert model.requests[0].config.system_instruction == snapshot("""\
Answer for Oslo.

You are an agent. Your internal name is "guide". The description about you is "Knows weather.".\
""")
    assert [[one.name for one in tool.function_declarations] for tool in model.requests[0].config.tools] == [
        ["weather"]
    ]
    stored = talk.stored()
    assert [event.author for event in stored.events] == ["user", "guide", "guide", "guide", "user", "guide"]
    assert stored.state == {"home": "Oslo", "asked": "Oslo", "last": "You asked of Oslo."}
    assert len({event.id for event in stored.events}) == 6
    assert [len({event.invocation_id for event in turn}) for turn in (first, second)] == [1, 1]
    assert first[0].invocation_id != second[0].invocation_id


def test_each_event_is_history_before_it_is_seen_and_the_agent_waits_until_it_is_taken():
    steps: list[Any] = []

    def look(city: str) -> str:
        """Looks."""
        steps.append("tool")
        return city

    talk = Talk(LlmAgent(name="guide", model=ScriptedLlm(call("look", city="Oslo"), "done"), tools=[look]))

    for event in talk.runner.run(user_id="u", session_id="s", new_message="go"):
        stored = talk.stored().events
        steps.append((len(stored), stored[-1] == event))

    assert steps == [(2, True), "tool", (3, True), (4, True)]


def test_the_events_of_sync_code_are_those_of_async_code():
    def events(talk: Talk) -> list[Event]:
        return list(talk.runner.run(user_id="u", session_id="s", new_message="How is Oslo?"))

    def script() -> ScriptedLlm:
        return ScriptedLlm(call("weather", city="Oslo"), "It is sunny.")

    sync_talk, async_talk = (Talk(LlmAgent(name="guide", model=script(), tools=[weather])) for _ in range(2))

    assert summaries(events(sync_talk)) == summaries(async_talk.say("How is Oslo?"))
