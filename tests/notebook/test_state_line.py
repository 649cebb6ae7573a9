"""`%state key=value`, and `--edit key=value` of `%confirm`: what a value may look like."""

import json
from typing import Any

import pytest

from adk_nb.errors import InputError
from adk_nb.notebook.magics.confirm import CONFIRM
from tests.notebook.conftest import Shell


def state_of(shell: Shell) -> dict[str, Any]:
    return json.loads(str(shell.cell("%state --json")))


@pytest.mark.parametrize(
    ("line", "state"),
    [
        ('c={"x":[1,2]}', {"c": {"x": [1, 2]}}),
        ('c={"x y": "it\'s #1"} d=[1, "two words"]', {"c": {"x y": "it's #1"}, "d": [1, "two words"]}),
        ("c='{\"x\": 1}' d=2", {"c": {"x": 1}, "d": 2}),
        ("d = 4", {"d": 4}),
        ("d =4 e= 5", {"d": 4, "e": 5}),
        ("d= -5 e = two", {"d": -5, "e": "two"}),
        ('user:list = ["a", "b"]  # a comment', {"user:list": ["a", "b"]}),
        ("empty= other=3", {"empty": "", "other": 3}),
        ("empty= # a comment", {"empty": ""}),
        ('said="four words, and \\u00e4" n="4"', {"said": "four words, and ä", "n": "4"}),
        ('text="{x} in braces"', {"text": "{x} in braces"}),
        ("path=\"C:\\d\" b='two words'", {"path": "C:\\d", "b": "two words"}),
        ("colour=#fff sum=a=b", {"colour": "#fff", "sum": "a=b"}),
        ('c={"x": 1};', {"c": {"x": 1}}),
    ],
)
def test_a_value_arrives_as_it_was_written(shell: Shell, line: str, state: dict[str, Any]) -> None:
    shell.cell(f"%state {line}")

    assert state_of(shell) == state


@pytest.mark.parametrize(
    "line", ["c={x: 1}", "c = [1, 2", "c='{x}'", 'c=["a"]b', "c={'x': 1}", 'd=1 c={"x": 1 e=2', "c=[one] d=1"]
)
def test_what_begins_like_json_and_is_none_is_refused_with_how_to_quote_it(shell: Shell, line: str) -> None:
    said = shell.fails(f"%state {line}")

    assert said.startswith("InputError: %state: c=")
    assert " JSON; " in said and 'c={"x": ["y"]}' in said
    assert "\n" not in said
    assert state_of(shell) == {}


def test_an_edit_of_an_approval_takes_json_too() -> None:
    asked = CONFIRM.parse('--edit place={"city": "Oslo"} --yes --edit amount = 3 --reason "half, as agreed"')

    assert asked.edit == ['place={"city": "Oslo"}', "amount=3"]
    assert (asked.yes, asked.reason) == (True, "half, as agreed")
    with pytest.raises(InputError, match=r"%confirm: place=.* JSON"):
        CONFIRM.parse("--edit place={city: Oslo} --yes")


def test_options_keep_their_meaning_beside_pairs(shell: Shell) -> None:
    shell.cell("%state -s main a = 1")
    shell.cell("%state -s main b= 2 --del a")

    assert state_of(shell) == {"b": 2}


def test_a_key_of_an_empty_state_is_not_found_with_the_reason(shell: Shell) -> None:
    message = shell.fails("%state budget")
    assert message.startswith("StateKeyError: ") and message.endswith("empty")
    assert "'budget'" in message and "'main'" in message
