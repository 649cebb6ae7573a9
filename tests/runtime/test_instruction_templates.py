"""Keys in braces are filled in from the state; everything else stays as it was written."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adk_nb.errors import StateKeyError
from adk_nb.runtime.instructions import fill_in
from tests.support.each import each

STATE: dict[str, Any] = {
    "x": "X",
    "n": 3,
    "yes": True,
    "none": None,
    "d": {"a": 1, "b": [None]},
    "l": ["ä", 2],
    "app:k": "AK",
    "user:k": "UK",
    "temp:k": "TK",
    "é": "E",
    "braces": "{x} \\{x} {{",
    "class": "a keyword is a name too",
}


# The table of google-adk 2.13 as observed, with the deviations that ours are: JSON for dict and list, \{x} for {x}.
@each(
    "template, filled",
    [
        ("{x}", "X"),
        ("{ x }", "X"),
        ("a {x} b {n} c", "a X b 3 c"),
        ("{x?}", "X"),
        ("[{missing?}]", "[]"),
        ("{app:k}{user:k}{temp:k}", "AKUKTK"),
        ("[{app:missing?}]", "[]"),
        ("{{x}}", "X"),
        ("{{{x}}}", "X"),
        ("[{none}]", "[]"),
        ("{yes}", "True"),
        ("{d}", '{"a":1,"b":[null]}'),
        ("{l}", '["ä",2]'),
        ("{é}", "E"),
        ("{class}", "a keyword is a name too"),
        ("{braces}", "{x} \\{x} {{"),
        ("${x}", "${x}"),
        (r"\{x}", "{x}"),
        (r"\{{x}}", "{{x}}"),
        (r"\{missing}", "{missing}"),
        (r"\\{x}", r"\{x}"),
        ("{foo.bar}", "{foo.bar}"),
        ("{a-b}", "{a-b}"),
        ("{bad:x}", "{bad:x}"),
        ("{app:}", "{app:}"),
        ("{app:a b}", "{app:a b}"),
        ("{ }", "{ }"),
        ("{}", "{}"),
        ("{?}", "{?}"),
        ("{1,2}", "{1,2}"),
        ('{"a": 1}', '{"a": 1}'),
        ('{"a": {"b": 1}}', '{"a": {"b": 1}}'),
        ("{x", "{x"),
        ("x}", "x}"),
        ("{\nx\n}", "X"),
        ("no braces", "no braces"),
        ("", ""),
    ],
)
def test_the_table(template: str, filled: str):
    assert fill_in(template, STATE, "a1") == filled


def test_a_missing_key_is_named_with_its_agent():
    with pytest.raises(StateKeyError) as error:
        fill_in("{missing}", {}, "a1")

    assert "found: `missing` in agent 'a1'; set" in str(error.value)
    assert isinstance(error.value, KeyError) and error.value.code == "KeyError"


def test_a_key_that_is_nearly_there_is_suggested():
    with pytest.raises(StateKeyError, match=re.escape("did you mean {city}?")):
        fill_in("{citty}", {"city": "Oslo"}, "a1")


def test_an_object_under_temp_is_put_in_as_its_text():
    class Thing:
        def __str__(self) -> str:
            return "a thing"

    assert (
        fill_in("{temp:one} {temp:many}", {"temp:one": Thing(), "temp:many": [Thing()]}, "a") == 'a thing ["a thing"]'
    )


@given(st.text())
def test_text_that_names_no_key_stays_as_it_is(text: str):
    names_a_key = re.search(r"\{\s*((app|user|temp):)?\w*\??\s*\}", text)

    if not names_a_key and "\\{" not in text:
        assert fill_in(text, {}, "a") == text


@given(st.text(alphabet="{}x $\\?:.app\n", max_size=30))
def test_any_text_is_filled_in_or_names_the_missing_key(text: str):
    try:
        filled = fill_in(text, {"x": "X", "app:x": "AX"}, "a")
    except StateKeyError as error:
        assert "variable not found" in str(error)
    else:
        assert not re.search(r"(?<![${\\])\{x\??\}", filled.replace("\\", "")) or "\\" in text or "$" in text


@given(st.text(), st.text())
def test_what_a_value_says_is_not_filled_in_again(before: str, value: str):
    plain = before.replace("{", "(").replace("}", ")").replace("\\", "/").replace("$", "S")

    assert fill_in(plain + "{x}", {"x": value}, "a") == plain + value
