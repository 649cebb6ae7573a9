"""The error of a reader that cannot answer: a sentence, and what it is about."""

from typing import Literal

Reason = Literal["refused", "column", "table", "time", "memory", "locked", "gone", "missing", "other"]


class ReadError(Exception):
    """A query that cannot be answered.

    Args:
        reason: What is wrong. `gone`: the data is not there, or cannot be reached. `missing`: a package.
        text: One sentence.
        name: The unknown column or table.
    """

    def __init__(self, reason: Reason, text: str, name: str = "") -> None:
        super().__init__(text)
        self.reason: Reason = reason
        self.name = name
