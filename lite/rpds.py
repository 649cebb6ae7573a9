"""What `referencing`, and so jsonschema, needs of rpds-py, whose Rust is not on PyPI for a browser.

Persistent collections: each change is a copy. That is slower than sharing parts, and no slower to notice for the few
schemas of a notebook. Source of the names: https://rpds.readthedocs.io/en/latest/api/.
"""

from collections.abc import Iterable, Mapping
from typing import Any


class HashTrieMap(dict[Any, Any]):
    """A persistent map."""

    @classmethod
    def convert(cls, value: Any) -> "HashTrieMap":
        """The map itself, or one of a mapping's items."""
        return value if isinstance(value, cls) else cls(value)

    def __hash__(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return hash(frozenset(self.items()))

    def insert(self, key: Any, value: Any) -> "HashTrieMap":
        """A copy with the item."""
        return HashTrieMap({**self, key: value})

    def update(self, *others: Mapping[Any, Any] | Iterable[Any], **items: Any) -> "HashTrieMap":  # pyright: ignore[reportIncompatibleMethodOverride]
        """A copy with the items."""
        copy = dict(self)
        for other in others:
            copy.update(other)
        return HashTrieMap({**copy, **items})

    def remove(self, key: Any) -> "HashTrieMap":
        """A copy without the key; KeyError if it is not there."""
        copy = dict(self)
        del copy[key]
        return HashTrieMap(copy)


class HashTrieSet(frozenset[Any]):
    """A persistent set."""

    def insert(self, value: Any) -> "HashTrieSet":
        """A copy with the value."""
        return HashTrieSet(self | {value})

    def update(self, *others: Iterable[Any]) -> "HashTrieSet":
        """A copy with the values."""
        return HashTrieSet(self.union(*others))

    def remove(self, value: Any) -> "HashTrieSet":
        """A copy without the value; KeyError if it is not there."""
        if value not in self:
            raise KeyError(value)
        return HashTrieSet(self - {value})

    def discard(self, value: Any) -> "HashTrieSet":
        """A copy without the value."""
        return HashTrieSet(self - {value})


class List(tuple[Any, ...]):
    """A persistent list, which grows in front."""

    def __new__(cls, *items: Any) -> "List":
        """Of one iterable, or of several items."""
        return super().__new__(cls, items[0] if len(items) == 1 else items)

    @property
    def first(self) -> Any:
        """The item in front; IndexError if there is none."""
        return self[0]

    @property
    def rest(self) -> "List":
        """All but the item in front."""
        return List(self[1:])

    def push_front(self, item: Any) -> "List":
        """A copy with the item in front."""
        return List((item, *self))

    def drop_first(self) -> "List":
        """A copy without the item in front; IndexError if there is none."""
        if not self:
            raise IndexError("empty list")
        return self.rest
