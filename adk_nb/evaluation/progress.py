"""Counts, cost and time of a batch."""

from dataclasses import dataclass

PROJECTED_AFTER = 5
"""Rows after which cost and time of the rest are projected."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Counts, cost and time of a batch."""

    total: int | None
    """Rows. None: not known in advance."""
    done: int = 0
    """Rows with an answer, the reused included."""
    reused: int = 0
    running: int = 0
    failed: int = 0
    pending: int = 0
    not_run: int = 0
    cost_usd: float | None = 0.0
    """Spent by this batch now. None: unknown."""
    seconds: float = 0.0
    """Since the start."""
    at_once: int = 0
    """Most rows at once, as the services' refusals and timeouts allow now."""
    waiting_seconds: float = 0.0
    """Until the next row starts, as a service asked."""
    is_paused: bool = False
    """More than `confirm_above_usd` is projected, so no further row starts."""

    @property
    def finished(self) -> int:
        """Rows that ended in any way."""
        return self.done + self.failed + self.pending

    @property
    def is_over(self) -> bool:
        """No row runs, and none will."""
        return self.total is not None and self.finished + self.not_run >= self.total

    @property
    def remaining_seconds(self) -> float | None:
        """Projected seconds of the rows that are left. None: too early to say."""
        worked = self.finished - self.reused
        if self.total is None or worked < PROJECTED_AFTER:
            return None
        return self.seconds / worked * (self.total - self.finished - self.not_run)

    @property
    def projected_usd(self) -> float | None:
        """Projected cost of the whole batch. None: too early to say, or unknown."""
        worked = self.finished - self.reused
        if self.total is None or self.cost_usd is None or worked < PROJECTED_AFTER:
            return None
        return self.cost_usd / worked * (self.total - self.reused)
