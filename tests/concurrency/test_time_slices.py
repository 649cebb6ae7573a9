"""Long work on the event loop: in slices, and without garbage collections of all there is."""

import asyncio
import gc
import itertools
from collections.abc import Iterator

import pytest

from adk_nb import clock
from adk_nb.concurrency.generators import many_objects, run_in_slices


@pytest.fixture
def second_at_each_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "ticks", itertools.count().__next__)


@pytest.fixture
def nothing_frozen() -> Iterator[None]:
    """As in a program of its own; the tests' own process has frozen what it imported."""
    gc.unfreeze()
    yield
    gc.freeze()


def full_collections() -> int:
    return gc.get_stats()[2]["collections"]


@pytest.mark.slow
def test_objects_that_are_made_in_slices_cause_no_full_collection_and_are_collected_later(
    second_at_each_look: None, nothing_frozen: None
):
    made: list[list[object]] = []

    def make() -> Iterator[None]:
        for _ in range(1_000):
            made.extend([[]] for _ in range(400))
            made[-1].append(made[-1])
            yield

    gc.collect()
    before, frozen = full_collections(), gc.get_freeze_count()
    asyncio.run(run_in_slices(make()))
    assert len(made) == 400_000 and full_collections() == before
    assert gc.isenabled() and gc.get_freeze_count() <= frozen
    made.clear()
    assert gc.collect() >= 1_000


@pytest.mark.slow
def test_what_is_made_within_counts_as_old(nothing_frozen: None):
    gc.collect()  # after which Python 3.12 counts its immortal objects as frozen
    with many_objects():
        made = [object]
    assert any(one is made for one in gc.get_objects(generation=2))


def test_frozen_objects_are_counted_once_for_all_slices(second_at_each_look: None, monkeypatch: pytest.MonkeyPatch):
    count, counted = gc.get_freeze_count, list[int]()
    monkeypatch.setattr(gc, "get_freeze_count", lambda: counted.append(count()) or counted[-1])
    asyncio.run(run_in_slices(range(10)))
    assert counted == []
    asyncio.run(run_in_slices(range(1_000)))
    assert len(counted) == 1


@pytest.mark.parametrize("is_on", [True, False])
def test_the_collector_is_left_as_it_was_also_after_an_error(is_on: bool):
    if not is_on:
        gc.disable()
    try:
        with pytest.raises(ValueError, match="no"), many_objects():
            assert not gc.isenabled()
            raise ValueError("no")
        assert gc.isenabled() is is_on
    finally:
        gc.enable()


def test_what_a_user_froze_stays_frozen(nothing_frozen: None):
    frozen = [object()]
    gc.freeze()
    with many_objects():
        pass
    assert gc.get_freeze_count() > 0  # the number itself falls when another thread drops something
    assert not any(one is frozen for one in gc.get_objects())
