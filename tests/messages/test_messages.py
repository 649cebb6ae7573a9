"""The texts that people and models read are those of the golden files, which are reviewed as text."""

from pathlib import Path

import pytest

from tests.messages.collect import golden_files

HERE = Path(__file__).parent
CURRENT = golden_files()


def test_each_room_with_messages_has_a_golden_file():
    assert sorted(path.name for path in HERE.glob("*.txt")) == sorted(CURRENT)


@pytest.mark.parametrize("name", sorted(CURRENT))
def test_the_messages_of_a_room_are_reviewed(name: str):
    assert (HERE / name).read_text(encoding="utf-8") == CURRENT[name], "run python tests/messages/collect.py"
