"""Pieces of the Python that is written, put in an order in which each finds what it needs."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class Piece:
    """Some lines that belong together."""

    text: str
    early: Sequence[str] = ()
    """Names that have to be there when it runs."""
    late: Sequence[str] = ()
    """Names that have to be there when what it defines is called."""


Find = Callable[[str, str], Iterable[Piece]]
"""`(name, who needs it) -> the pieces that make it`, in their order; none for what Python has itself."""


class Order:
    """The pieces that some names need, in an order in which they run."""

    def __init__(self, find: Find) -> None:
        self.pieces: list[Piece] = []
        self._find = find
        self._of: dict[str, list[Piece]] = {}
        self._begun: set[str] = set()
        self._written: set[Piece] = set()

    def add(self, name: str, needed_by: str) -> None:
        """Write what makes `name`, after all that it needs."""
        if name in self._begun:
            self._finish(name)  # a circle: those that need it only when called come after it
            return
        self._begun.add(name)
        self._of[name] = list(self._find(name, needed_by))
        for piece in self._of[name]:
            for one in piece.early:
                if one != name:
                    self.add(one, name)
            for one in piece.late:
                if one not in self._begun:
                    self.add(one, name)
            self._write(piece)

    def add_or_leave(self, name: str, needed_by: str) -> None:
        """As `add`; if it raises, all is as it was."""
        before = list(self.pieces), dict(self._of), set(self._begun), set(self._written)
        try:
            self.add(name, needed_by)
        except Exception:
            self.pieces, self._of, self._begun, self._written = before
            raise

    def _finish(self, name: str) -> None:
        for piece in self._of.get(name, ()):
            self._write(piece)

    def _write(self, piece: Piece) -> None:
        if piece not in self._written:
            self._written.add(piece)
            self.pieces.append(piece)
