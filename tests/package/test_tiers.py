"""Which files a tier imports, which programs it can do without, and how many cases are one item."""

import inspect
import re
import shutil
from pathlib import Path

import pytest

from tests.support.each import each
from tests.support.tiers import may_match, missing

MARKS = ["browser", "browser_all", "kernel", "slow"]
IN_A_PAGE = "pytestmark = [pytest.mark.browser, pytest.mark.browser_all]\n"
SOME_IN_A_KERNEL = "@pytest.mark.kernel\ndef test_it(): ...\n"


@each(
    "asked, text, is_imported",
    [
        ("not kernel", "", True),
        ("kernel", "", False),
        ("kernel", SOME_IN_A_KERNEL, True),
        ("not kernel", SOME_IN_A_KERNEL, True),
        ("not browser_all", IN_A_PAGE, False),
        ("browser and not browser_all", IN_A_PAGE, False),
        ("browser or kernel", IN_A_PAGE, True),
        ("not (kernel or browser)", IN_A_PAGE + SOME_IN_A_KERNEL, False),
        ("kernel and not slow", IN_A_PAGE + SOME_IN_A_KERNEL, True),
    ],
)
def test_a_file_is_imported_if_one_of_its_tests_may_be_meant(asked: str, text: str, is_imported: bool):
    assert may_match(asked, text, MARKS) is is_imported


def test_what_a_machine_lacks_is_told_in_one_line_with_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(Path, "glob", lambda self, pattern: iter(()))
    told = {mark: missing.__wrapped__(mark) for mark in ("browser", "browser_all", "postgres", "kernel")}

    assert told["browser"] == told["browser_all"] and "apt-get install chromium" in told["browser"]
    assert "apt-get install postgresql" in told["postgres"]
    assert told["kernel"] == ""


def test_every_case_is_tried_and_each_that_fails_is_told():
    tried: list[tuple[int, str]] = []

    @each("number", [1, 2, 3])
    @each("word", ["a", "b"])
    def is_small(tmp_path: str, number: int, word: str):
        tried.append((number, word))
        assert number < 2
        if word == "b":
            pytest.fail("it is b")

    assert [*inspect.signature(is_small).parameters] == ["tmp_path"]
    with pytest.raises(BaseExceptionGroup, match="3 of 3 cases") as faults:
        is_small(tmp_path="")
    assert len(tried) == 6
    assert faults.value.exceptions[0].__notes__ == ["in the case word='b'", "in the case number=1"]


def test_the_rooms_of_the_quick_tier_are_there():
    tests = Path(__file__).parents[1]
    makefile = (tests.parent / "Makefile").read_text(encoding="utf-8")
    rooms = re.findall(r"^ESSENTIAL = ((?:.*\\\n)*.*)$", makefile, re.M)[0].replace("\\", "").split()

    assert len(rooms) > 10 and {room for room in rooms if not (tests / room).is_dir()} == set()
