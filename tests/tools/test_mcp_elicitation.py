"""What an MCP server asks a person while its tool runs: by `input()` in the cell that waits, or by a callback."""

import asyncio
import json
import threading
from typing import Any

import pytest

from adk_nb import sync
from adk_nb.agents import LlmAgent
from adk_nb.models import ScriptedLlm, call
from adk_nb.tools.mcp_tool.content import MAX_QUESTIONS
from tests.support.late import late
from tests.support.talk import Talk
from tests.tools.mcp_talk import STARTING, Service, answer_in, web
from tests.tools.test_mcp_hostile import toolset


class Person:
    """Types the given lines at `input()`."""

    def __init__(self, *lines: str) -> None:
        self.lines = [*lines]
        self.prompts: list[str] = []

    def __call__(self, prompt: str = "") -> str:
        assert threading.current_thread() is threading.main_thread()
        self.prompts.append(prompt)
        if not self.lines:
            raise EOFError
        return self.lines.pop(0)


def told_to(trick: str, **options: Any) -> tuple[Any, list[str]]:
    """What the server was answered, and what the log says meanwhile."""
    with toolset(trick, **options) as one:
        talk = Talk(LlmAgent(name="a", model=ScriptedLlm(call("pay"), "done"), tools=[one]))
        events = talk.say()
        answer = json.loads(answer_in(events, talk)["content"][0]["text"])
    return answer.get("result") or answer["error"], [event.text for event in events[1:-2]]


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> Person:
    person = Person()
    monkeypatch.setattr("builtins.input", person)
    return person


def test_a_person_fills_in_a_form_and_may_leave_out_what_need_not_be_there(person: Person):
    person.lines = ["Ada", "12", "thirty", "36", "yes", "", "green", "blue", "egg, ham"]

    answer, log = told_to("asks a form")

    expected = {"name": "Ada", "age": 36, "sure": True, "size": 1.5, "colour": "blue", "toppings": ["egg", "ham"]}
    assert answer == {"action": "accept", "content": expected}
    first, *rest = person.prompts
    assert " asks: Who are you?\n(To decline, leave a field empty that has to be filled.)\nname (Your name): " in first
    assert rest[1].startswith("age: 12 is less than the minimum of 18\nage (integer): ")
    assert "colour (one of red, blue): " in rest[5:7][0] + rest[6]
    assert log[0].endswith(" asks: Who are you?") and log[1] == "answered: accept"
    assert "Ada" not in "".join(log)


@pytest.mark.parametrize("lines", [[""], ["Ada", "1", "2", "3"]])
def test_a_field_left_empty_or_never_right_declines(person: Person, lines: list[str]):
    person.lines = lines

    answer, log = told_to("asks a form")

    assert answer == {"action": "decline"} and log[1] == "answered: decline"


@pytest.mark.parametrize(("line", "action"), [("y", "accept"), ("n", "decline"), ("", "decline")])
@pytest.mark.parametrize("trick", ["asks", "asks to open"])
def test_a_question_and_an_address_are_answered_with_yes_or_no(person: Person, trick: str, line: str, action: str):
    person.lines = [line]

    answer, log = told_to(trick)

    assert answer["action"] == action and len(person.prompts) == 1
    assert trick == "asks" or "https://pay.example/1" in log[0]


@pytest.mark.parametrize(
    ("trick", "why"),
    [("asks to run", "not a web page"), ("asks much", "500 fields at once"), ("asks", "there is no input")],
)
def test_what_cannot_be_asked_is_declined_and_the_log_says_why(person: Person, trick: str, why: str):
    answer, log = told_to(trick)

    assert answer == {"action": "decline"}
    assert log[1].startswith("it was declined, because no user could be asked: ") and why in log[1]


@pytest.mark.parametrize("trick", ["asks on and on", "asks all at once"])
def test_a_call_that_asks_without_end_is_ended_and_both_sides_are_told(trick: str):
    with toolset(trick, elicitation_callback=lambda context, params: True) as one:
        model = ScriptedLlm(call("pay"), call("pay"), "done")
        talk = Talk(LlmAgent(name="a", model=model, tools=[one]))
        events = sync.start(talk.asay()).result(STARTING)

    questions = [event for event in events if (event.custom_metadata or {}).get("elicitation")]
    first, second = [found.response for event in events for found in event.get_function_responses()]
    assert len(questions) == MAX_QUESTIONS
    assert f"more than {MAX_QUESTIONS} questions" in first["error"]
    assert f"more than {MAX_QUESTIONS} questions" in second["content"][0]["text"], "what the server was told"


async def says_later(context: Any, params: Any) -> Any:
    await asyncio.sleep(0)
    return {"name": params.message, "age": 40}


@pytest.mark.parametrize(
    ("callback", "expected"),
    [
        (lambda context, params: {"age": 1}, {"action": "accept", "content": {"age": 1}}),
        (says_later, {"action": "accept", "content": {"name": "Who are you?\u202e", "age": 40}}),
        (lambda context, params: late("mcp_types").ElicitResult(action="cancel"), {"action": "cancel"}),
        (lambda context, params: True, {"action": "accept"}),
        (lambda context, params: None, {"action": "decline"}),
    ],
)
def test_an_author_s_callback_answers(callback: Any, expected: dict[str, Any]):
    answer, log = told_to("asks a form", elicitation_callback=callback)

    assert answer == expected and log[1] == f"answered: {expected['action']}"


def test_a_callback_that_raises_is_told_to_the_author_and_not_to_the_server():
    def breaks(context: Any, params: Any) -> Any:
        raise KeyError("my-own-table")

    answer, log = told_to("asks", elicitation_callback=breaks)

    assert answer["message"] == "no answer"
    assert "elicitation_callback" in log[1] and "raised KeyError: 'my-own-table'" in log[1]


def test_each_of_several_calls_at_once_is_asked_for_itself():
    """The newest protocol asks within the call; the answers go to the call that they are for."""
    service = Service()
    asked: list[str] = []

    def answers(context: Any, params: Any) -> Any:
        asked.append(params.message)
        return {"name": params.message.removeprefix("Who is ")}

    one = web(service, elicitation_callback=answers)
    calls = [call("ask", of=f"number {number}") for number in range(5)]
    talk = Talk(LlmAgent(name="a", model=ScriptedLlm(calls, "done"), tools=[one]))

    events = sync.start(talk.asay()).result(STARTING)

    sync.run(one.close())
    service.stop()
    found = [found.response for event in events for found in event.get_function_responses()]
    assert [answer["structuredContent"]["result"] for answer in found if answer] == [f"number {n}" for n in range(5)]
    assert sorted(asked) == [f"Who is number {number}" for number in range(5)]
