"""Where a notebook's sessions are kept, by the address that its author has typed."""

import os
from pathlib import Path

from adk_nb import sync
from adk_nb.errors import InputError
from adk_nb.sessions.base_session_service import BaseSessionService
from adk_nb.sessions.database_session_service import DatabaseSessionService
from adk_nb.sessions.sqlite_session_service import SqliteSessionService

_IN_A_FILE = "sqlite:///"


def opened(address: str, folder: Path) -> BaseSessionService:
    """The sessions that are kept there, found to be usable.

    Args:
        address: `sqlite:///` and a path, or the URL of a PostgreSQL database.
        folder: Where a path begins.

    Raises:
        InputError: There can be no file of that path, or the address is none.
        MissingExtraError: What speaks to a database server is not installed.
        StorageError: The file or the database cannot be used.
    """
    if address.startswith(_IN_A_FILE):
        _refuse_a_query(address)
        path = folder / Path(address.removeprefix(_IN_A_FILE)).expanduser()
        _check(path, address)
        service: BaseSessionService = SqliteSessionService(path)
    else:
        service = DatabaseSessionService(address)
    sync.run(_flushed(service))
    return service


def _refuse_a_query(address: str) -> None:
    """What other packages read as settings would only be a part of the file's name here."""
    before, mark, query = address.partition("?")
    if mark:
        raise InputError(
            f"sessions in a file take no settings, and {'?' + query!r} cannot be in its name; write {before}, or, from "
            "Python, hand SqliteSessionService(path, durability=...) to Chat"
        )


def _check(path: Path, address: str) -> None:
    """What SQLite would say with less words, or only when something is to be written."""
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file in it, as {address.rstrip('/')}/nb.db")
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {path.parent}; make it, or give another path")
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is no file; give another path")
    for place in (path.parent, path):
        if place.exists() and not os.access(place, os.W_OK):
            raise InputError(f"{place} may only be read; let yourself write to it, or give another path")


async def _flushed(service: BaseSessionService) -> None:
    await service.flush()
