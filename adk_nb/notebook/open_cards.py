"""The views that have cards of open interrupts: one answer counts for all of them, a chat box opened later too."""

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
        """The views that have the card of that interrupt."""
        return self._views.get(key, ())

    def elsewhere(self, view: RunView) -> set[str]:
        """Ids of the interrupts that have cards in other views, and not in `view`."""
        return {key for key, views in self._views.items() if view not in views}

    def also_in(self, view: RunView, keys: Iterable[str]) -> None:
        """`view` has cards of these too."""
        self._views |= {key: tuple(dict.fromkeys((*self.asking(key), view))) for key in keys}

    def wait_after(self, view: RunView, keys: Iterable[str]) -> None:
        """These are open after a turn in `view`, and no others."""
        self._views = {key: self.asking(key) or (view,) for key in keys}

    def answered(self, verdicts: Mapping[str, Verdict], where: Iterable[RunView]) -> list[RunView]:
        """Interrupts were answered: no view asks for them any more.

        Args:
            verdicts: By id.
            where: The views whose cards are to say so: without that in which they were answered.

        Returns:
            Those views, each once.
        """
        views = list(dict.fromkeys(where))
        for key in verdicts:
            self._views.pop(key, None)
        for view in views:
            view.answered_elsewhere(verdicts, last=not self.asks_in(view))
        return views

    def interrupts_undone(self, keys: Collection[str]) -> None:
        """The interrupts of these ids were undone: their cards say so."""
        views = dict.fromkeys(view for key in keys for view in self._views.pop(key, ()))
        for view in views:
            view.interrupts_undone(keys)
        self.close_answered(*views)

    def close_all(self) -> None:
        """Close all views; their cards can be answered no more."""
        views = dict.fromkeys(view for views in self._views.values() for view in views)
        self._views = {}
        self.close_answered(*views)

    def close_answered(self, *views: RunView) -> None:
        """Close those of which no card can be answered any more."""
        for view in views:
            if not self.asks_in(view):
                view.close()

    def asks_in(self, view: RunView) -> bool:
        """True if a card of that view can be answered."""
        return any(view in views for views in self._views.values())
