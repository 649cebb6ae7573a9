"""A session's state as one can read and write it between turns."""

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

from adk_nb.events.event_actions import DELETED


class ChatState(MutableMapping[str, Any]):
    """A session's state as it stands now; a write is an event, so that it is in the history like any other."""

    def __init__(self, read: Callable[[], dict[str, Any]], write: Callable[[dict[str, Any]], None]) -> None:
        self._read = read
        self._write = write

    def __getitem__(self, key: str) -> Any:
        return self.to_dict()[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._write({key: value})

    def __delitem__(self, key: str) -> None:
        if key not in self:
            raise KeyError(key)
        self._write({key: dict(DELETED)})

    def __iter__(self) -> Iterator[str]:
        return iter(self.to_dict())

    def __len__(self) -> int:
        return len(self.to_dict())

    def __repr__(self) -> str:
        return repr(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """All keys with their values, in a dict of the caller's own."""
        return self._read()
