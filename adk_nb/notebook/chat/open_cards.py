"""The views that show a card of an open interrupt: several may, and one answer counts for all."""

from collections.abc import Collection, Iterable, Mapping

from adk_nb.notebook.view.interrupt_text import Verdict
from adk_nb.notebook.view.run_view import RunView


class OpenCards:
    """The cards of one conversation that can be answered."""

    def __init__(self) -> None:
        self._views: dict[str, tuple[RunView, ...]] = {}
        """Id of an interrupt -> the views that have its card."""

    def __bool__(self) -> bool:
        return bool(self._views)

    def __contains__(self, key: str) -> bool:
        return key in self._views

    def asking(self, key: str) -> tuple[RunView, ...]:
        """The views that show the card of an interrupt."""
        return self._views.get(key, ())

    def elsewhere(self, view: RunView) -> set[str]:
        """Ids of the interrupts that have cards in other views, and not in `view`."""
        return {key for key, views in self._views.items() if view not in views}

    def also_in(self, view: RunView, keys: Iterable[str]) -> None:
        """Note that `view`, too, has cards of these interrupts."""
        self._views |= {key: tuple(dict.fromkeys((*self.asking(key), view))) for key in keys}

    def wait_after(self, view: RunView, keys: Iterable[str]) -> None:
        """Note all interrupts that are open after a turn in `view`."""
        self._views = {key: self.asking(key) or (view,) for key in keys}

    def answered(self, verdicts: Mapping[str, Verdict], others: Iterable[RunView]) -> list[RunView]:
        """Note that interrupts were answered, and mark their cards.

        Args:
            verdicts: By id.
            others: The views with cards to mark: all but the one in which the answer was given.

        Returns:
            `others`, each once.
        """
        views = list(dict.fromkeys(others))
        for key in verdicts:
            self._views.pop(key, None)
        for view in views:
            view.answered_elsewhere(verdicts, last=not self.asks_in(view))
        return views

    def interrupts_undone(self, keys: Collection[str]) -> None:
        """Mark the cards of interrupts whose turn was undone."""
        views = dict.fromkeys(view for key in keys for view in self._views.pop(key, ()))
        for view in views:
            view.interrupts_undone(keys)
        self.close_answered(*views)

    def close_all(self) -> None:
        """Close all views."""
        views = dict.fromkeys(view for views in self._views.values() for view in views)
        self._views = {}
        self.close_answered(*views)

    def close_answered(self, *views: RunView) -> None:
        """Close those of the views that have no open card."""
        for view in views:
            if not self.asks_in(view):
                view.close()

    def asks_in(self, view: RunView) -> bool:
        """True if that view has an open card."""
        return any(view in views for views in self._views.values())
