"""A long conversation, kept short for the model."""

import pytest

from adk_nb import types
from adk_nb.errors import ConfigurationError
from adk_nb.models import call
from adk_nb.plugins import ContextFilterPlugin
from tests.support.talk import Talk, guide, look, requests


def test_only_the_newest_turns_are_sent_and_all_are_kept():
    agent = guide("1", "2", "3", "4")
    talk = Talk(agent, plugins=[ContextFilterPlugin(2)])

    for message in "abcd":
        talk.say(message)

    assert [[words for _, words in one] for one in requests(agent)] == [
        ["a"],
        ["a", "1", "b"],
        ["b", "2", "c"],
        ["c", "3", "d"],
    ]
    assert len(talk.stored().events) == 8


def test_a_call_is_not_parted_from_its_result():
    agent = guide("1", call("look"), "2", tools=[look])
    talk = Talk(agent, plugins=[ContextFilterPlugin(1)])

    talk.say("a")
    talk.say("b")

    assert requests(agent)[-1] == [
        ("user", "b"),
        ("model", "calls look({})"),
        ("user", "answers {'result': 'seen'}"),
    ]


def test_turns_are_left_out_several_at_once():
    agent = guide("1", "2", "3", "4")
    talk = Talk(agent, plugins=[ContextFilterPlugin(1, remove_amount=2)])

    for message in "abcd":
        talk.say(message)

    assert [one[0][1] for one in requests(agent)] == ["a", "a", "c", "c"]


def test_a_filter_of_ones_own_sees_what_is_left_and_changes_nothing_but_the_request():
    seen: list[int] = []

    def last(contents: list[types.Content]) -> list[types.Content]:
        seen.append(len(contents))
        contents[-1].parts = [types.Part(text="changed")]
        return contents[-1:]

    agent = guide("1", "2", "3")
    talk = Talk(agent, plugins=[ContextFilterPlugin(2, last)])

    for message in "abc":
        talk.say(message)

    assert seen == [1, 3, 3]
    assert requests(agent)[-1] == [("user", "changed")]
    assert talk.stored().events[-2].text == "c"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"num_invocations_to_keep": 0}, "num_invocations_to_keep=0"),
        ({"remove_amount": 0}, "remove_amount=0"),
    ],
)
def test_numbers_that_cannot_be_are_refused(given: dict[str, int], said: str):
    with pytest.raises(ConfigurationError, match=said):
        ContextFilterPlugin(**given)  # pyright: ignore[reportArgumentType]
