"""The number of rows that run at once, found from the refusals of the models' services."""

from adk_nb import clock

_START, _START_HERE = 8, 2
"""Rows at the beginning; the second where a model's server is on this machine, which answers few at once."""


class Rate:
    """Additive increase and multiplicative decrease, as in TCP: one more row for each round without a refusal, half as
    many after one. A timeout counts as a refusal: a server that queues requests refuses none.
    """

    def __init__(self, max_concurrency: int, *, is_server_here: bool = False) -> None:
        self._max = max_concurrency
        self._limit = float(min(_START_HERE if is_server_here else _START, max_concurrency))
        self._paused_until = 0.0
        self._is_careful = is_server_here
        """True: one more a round, instead of twice as many."""

    @property
    def at_once(self) -> int:
        """Rows at once, pauses aside."""
        return int(self._limit)

    @property
    def limit(self) -> int:
        """Rows that may run now; 0 while a service asked to wait."""
        return 0 if self.wait_seconds > 0 else self.at_once

    @property
    def wait_seconds(self) -> float:
        """Seconds until the next row may start."""
        return max(0.0, self._paused_until - clock.now())

    def succeed(self) -> None:
        """Note a row without a refusal."""
        # One more for each row, until the first refusal: that doubles the limit each round, as TCP's slow start.
        self._limit = min(self._max, self._limit + (1 / self._limit if self._is_careful else 1))

    def refuse(self, wait_seconds: float) -> None:
        """Note a refusal; refusals of rows that ran at once count as one."""
        if self.wait_seconds == 0:
            self._limit = max(1.0, self._limit / 2)
        self._is_careful = True
        # Of several refusals the longest Retry-After holds.
        self._paused_until = max(self._paused_until, clock.now() + wait_seconds)
