"""A clock that tests turn on."""

import pytest

from adk_nb import clock


@pytest.fixture
def ticks(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The one number in it is what the machine's clock says."""
    now = [1000.0]
    monkeypatch.setattr(clock, "ticks", lambda: now[0])
    return now
