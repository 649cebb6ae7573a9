"""Ids and time."""

import uuid

import pytest

from adk_nb import clock


@pytest.fixture(autouse=True)
def thawed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()


def test_an_id_is_a_random_uuid_in_its_usual_spelling():
    made = [clock.new_id() for _ in range(1_000)]

    assert all(str(uuid.UUID(one)) == one for one in made)
    assert {(uuid.UUID(one).version, uuid.UUID(one).variant) for one in made} == {(4, uuid.RFC_4122)}
    assert len(set(made)) == 1_000
