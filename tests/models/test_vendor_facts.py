"""The table of vendors and families: every row has its source, and a name finds the row it belongs to."""

import re

import pytest

from adk_nb.models.vendor_facts import (
    FAMILIES,
    VENDORS,
    Family,
    Vendor,
    claude_family,
    gemini_family,
    openai_family,
)
from tests.support.each import each


@each("row", [*VENDORS, *FAMILIES])
def test_every_row_has_an_address_as_its_source(row: Family | Vendor):
    assert row.source.startswith("https://")


def test_the_rows_of_a_line_stand_in_the_order_of_their_versions():
    for vendor, line in {(row.vendor, row.line) for row in FAMILIES}:
        since = [row.since for row in FAMILIES if (row.vendor, row.line) == (vendor, line)]
        assert since == sorted(set(since))


@pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.name)
def test_a_vendor_answers_to_the_models_that_it_proposes(vendor: Vendor):
    for name in (vendor.default_model, *vendor.proposed):
        assert any(re.fullmatch(pattern, name) for pattern in vendor.patterns)


@pytest.mark.parametrize(
    ("model", "since"),
    [
        ("gemini-1.5-pro", (0, 0)),
        ("gemini-2.0-flash", (2, 0)),
        ("models/gemini-2.5-pro", (2, 5)),
        ("projects/p/locations/l/publishers/google/models/gemini-3.1-pro-preview", (3, 0)),
        ("gemini-9-flash", (3, 0)),
    ],
)
def test_a_gemini_model_is_of_the_newest_family_that_is_not_newer(model: str, since: tuple[int, int]):
    assert gemini_family(model).since == since


def test_images_in_results_and_the_least_of_a_cache_follow_the_generation():
    assert [gemini_family(f"gemini-{v}-flash").media_in_results for v in ("2.0", "2.5", "3")] == [False, False, True]
    assert [gemini_family(f"gemini-{v}-flash").min_cached_tokens for v in ("2.0", "2.5", "3.5")] == [0, 2048, 4096]


def test_a_model_of_which_nothing_is_known_is_taken_to_do_what_its_vendor_s_others_do():
    assert gemini_family("model-optimizer-exp-04-09").media_in_results
    assert openai_family("gpt-4o").sampling == openai_family("qwen3").sampling == "always"
    assert claude_family("my-own").thinking == "both"
    assert claude_family("claude-newline-9") == claude_family("claude-mythos-preview")
