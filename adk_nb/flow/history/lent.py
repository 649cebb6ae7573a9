"""A history that is lent to callbacks: what they take out of it is copied, so that the session's stays as it is."""

from collections.abc import Iterable, Iterator
from typing import Any, SupportsIndex, overload

from adk_nb.types import Content


class Lent(list[Content]):
    """Contents that belong to someone else. A copy takes the place of each that is looked at, and may be edited.

    A callback mostly looks at the newest; so a long history costs no more than a short one.
    """

    def __init__(self, contents: Iterable[Content] = ()) -> None:
        super().__init__(contents)
        owned = self.taken_back()
        self._owned = dict(zip(map(id, owned), owned, strict=True))
        """Not to be changed, by their ids."""

    def taken_back(self) -> list[Content]:
        """The contents, for those that only read."""
        return [*super().__iter__()]

    @overload
    def __getitem__(self, at: SupportsIndex, /) -> Content: ...
    @overload
    def __getitem__(self, at: slice, /) -> list[Content]: ...
    def __getitem__(self, at: SupportsIndex | slice, /) -> Content | list[Content]:
        if isinstance(at, slice):
            return [self[one] for one in range(*at.indices(len(self)))]
        content: Content = super().__getitem__(at)
        if id(content) in self._owned:
            content = content.model_copy(deep=True)
            super().__setitem__(at, content)
        return content

    def __iter__(self) -> Iterator[Content]:
        at = 0
        while at < len(self):
            yield self[at]
            at += 1

    def __reversed__(self) -> Iterator[Content]:
        return (self[at] for at in range(len(self) - 1, -1, -1))

    def __add__(self, more: Any, /) -> Any:
        return [*self, *more]

    def __radd__(self, first: list[Content], /) -> list[Content]:
        return [*first, *self]

    def pop(self, at: SupportsIndex = -1, /) -> Content:
        content = self[at]
        del self[at]
        return content

    def copy(self) -> list[Content]:
        return [*self]
