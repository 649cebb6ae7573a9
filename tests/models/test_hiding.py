"""What is not written into a recording."""

import pytest

from adk_nb.errors import InputError
from adk_nb.models import LLMRegistry
from adk_nb.models.cassette import Redactor


def test_an_address_becomes_one_that_nobody_has_and_always_the_same():
    redactor = Redactor()
    once = redactor.redact({"to": ["Ann <ann.lee+x@post.no>, bob@post.no"], "cc": "ANN.LEE+x@post.no"})
    [both] = once["to"]

    assert both == f"Ann <{once['cc']}>, {both.rpartition(' ')[2]}"
    assert once["cc"].endswith("@example.com")
    assert both.count("@example.com") == 2
    assert redactor.redact(once) == once


@pytest.mark.parametrize(
    "text", ["ann@example.org", "a@b.test", "x@mail.example.com", "@tool", "me@localhost", "3 @ 4.50", "a@b"]
)
def test_addresses_for_documents_and_what_is_none_stay(text: str):
    assert Redactor().redact(text) == text


def test_keys_and_what_the_author_names_are_hidden():
    redactor = Redactor([r"order \d+"])

    value = {"api_key": "x1", "said": ["order 12 by sk-abcdefghijklmnop0123456789", 7, None]}

    assert redactor.redact(value) == {"api_key": "[redacted]", "said": ["[redacted] by [redacted]", 7, None]}


def test_a_malformed_pattern_is_refused_with_its_fault():
    with pytest.raises(InputError, match=r"'\[x'.*unterminated"):
        Redactor(["[x"])


@pytest.mark.parametrize("mode", ["auto", "record", "replay"])
def test_a_notebooks_mode_is_refused_where_there_is_no_notebook(mode: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ADK_NB_REPLAY", mode)

    with pytest.raises(InputError, match=f"={mode} .*%load_ext adk_nb"):
        LLMRegistry.new_llm("offline")
