"""The cell that began a run: what is displayed when it has ended stands in its output, on older kernels too."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, cast
from weakref import WeakValueDictionary

from IPython.core.getipython import get_ipython

_header_of_context: ContextVar[Any] = ContextVar("header_of_context", default=None)

_on_another_page: WeakValueDictionary[str, Any] = WeakValueDictionary()
"""The last view that such a page has shown in a cell, by the message that had the cell run."""


class OwnCell:
    """The cell that is run now, or whose context this is."""

    def __init__(self) -> None:
        self._publisher: Any = getattr(get_ipython(), "display_pub", None)
        self._header: Any = _header_of_context.get() or getattr(self._publisher, "parent_header", None)

    @property
    def page(self) -> str:
        """The page that had it run, by the name of its connection; empty if unknown."""
        return self._named("session")

    @property
    def is_run_now(self) -> bool:
        """Whether what runs now, on this thread, is this cell."""
        now = cast(dict[str, Any], getattr(self._publisher, "parent_header", None) or {})
        return now.get("msg_id", "") == self._named("msg_id")

    @property
    def view_on_another_page(self) -> Any:
        """The last view in it that a page which does not hear of its outputs has shown; None: there is none."""
        return _on_another_page.get(self._named("msg_id"))

    @view_on_another_page.setter
    def view_on_another_page(self, view: Any) -> None:
        _on_another_page[self._named("msg_id")] = view

    def _named(self, name: str) -> str:
        header = cast(dict[str, Any], self._header or {})
        return str(header.get(name, ""))

    def is_of_this_context(self) -> None:
        """What is begun here later, as after a click, belongs to it too."""
        _header_of_context.set(self._header)

    @contextmanager
    def gets_what_is_displayed(self) -> Generator[None]:
        """Of what this thread displays inside.

        ipykernel 6 gives it to whatever message came last, as the click that let the run go on; 7 to the cell of the
        context. Source: `ZMQDisplayPublisher.publish`, whose hooks are the thread's own.
        """
        if not self._header or not hasattr(self._publisher, "register_hook"):
            yield
            return

        def to_the_cell(message: dict[str, Any]) -> dict[str, Any]:
            return {**message, "parent_header": self._header}

        self._publisher.register_hook(to_the_cell)
        try:
            yield
        finally:
            self._publisher.unregister_hook(to_the_cell)
