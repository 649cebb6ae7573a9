"""What a run looks like when it is logged."""

import pytest

from adk_nb.agents import RunConfig, StreamingMode
from adk_nb.models import call
from adk_nb.plugins import LoggingPlugin
from tests.support.talk import Talk, boom, guide, look


def logged(talk: Talk, lines: list[str]) -> list[str]:
    invocation = talk.stored().events[0].invocation_id
    return [line.removeprefix("[logging_plugin] ").replace(invocation, "ID") for line in lines]


def test_each_event_of_a_turn_is_one_line():
    lines: list[str] = []
    agent = guide(call("look"), "done", tools=[look], output_key="k")
    talk = Talk(agent, plugins=[LoggingPlugin(write=lines.append)])

    talk.say("hi")

    assert logged(talk, lines) == [
        "message of user 'u', session 's', ID: hi",
        "run begins: agent 'guide'",
        "agent begins: 'guide'",
        "model is called: scripted, 1 contents, tools ['look']",
        "model answers: [calls look({})]",
        "event of 'guide': [calls look({})]",
        "tool is called: look({})",
        "tool answers: look: seen",
        "event of 'guide': [look answers {'result': 'seen'}]",
        "model is called: scripted, 3 contents, tools ['look']",
        "model answers: done",
        "final event of 'guide': done [state ['k']]",
        "agent ends: 'guide'",
        "run ends: ID",
    ]


def test_errors_are_reported_with_their_place():
    lines: list[str] = []
    agent = guide(call("boom"), tools=[boom], tool_errors="raise")
    talk = Talk(agent, plugins=[LoggingPlugin(write=lines.append)])

    talk.say("hi")

    assert logged(talk, lines)[-4:] == [
        "tool failed: boom: ValueError: bad",
        "agent failed: 'guide': ValueError: bad",
        "final event of 'guide': [boom answers {'error': 'ValueError: bad'}] [failed ValueError]",
        "run failed: ValueError: bad",
    ]


def test_pieces_are_told_once_and_long_words_are_cut():
    lines: list[str] = []
    talk = Talk(guide("a " * 300), plugins=[LoggingPlugin(write=lines.append)])

    talk.say("hi", config=RunConfig(streaming_mode=StreamingMode.SSE))

    told = logged(talk, lines)
    assert len([line for line in told if line.startswith("piece of 'guide'")]) == 300
    assert len([line for line in told if line.startswith("model answers")]) == 1
    assert max(map(len, told)) < 250


def test_by_default_the_lines_go_where_print_goes(capsys: pytest.CaptureFixture[str]):
    Talk(guide("hello"), plugins=[LoggingPlugin("mine")]).say("hi")

    assert "[mine] model answers: hello\n" in capsys.readouterr().out
