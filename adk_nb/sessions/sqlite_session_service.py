"""Sessions in one SQLite file: kept across kernels, and shared by the processes of one machine."""

import os

from adk_nb.sessions.sql.sqlite import SqliteDatabase
from adk_nb.sessions.sql.sqlite_file import Durability
from adk_nb.sessions.sql.store import SqlSessionService


class SqliteSessionService(SqlSessionService):
    """Sessions in one file, which is created if it is missing. Also a `journal.Journal`.

    An appended event is in the file, and survives the end of the process. A service may be used by any number of
    threads, event loops and sessions, and several processes of one machine may use one file. Waiting for a locked file
    does not block the event loop. Storage is JSON.

    Events are parsed when they are first used, so a long session opens quickly; `GetSessionConfig` limits the events to
    load.

    Raises:
        InputError: `db_path` is not a file path.
        ConfigurationError: `durability` is neither `normal` nor `full`.
    """

    def __init__(self, db_path: str | os.PathLike[str], durability: Durability = "normal") -> None:
        """Configure the service; it opens the file on first use. `flush` opens it at once, or says why it cannot.

        Args:
            db_path: A path, or a URL such as `sqlite:///nb.db`.
            durability: `full`: an appended event also survives a power failure; each append takes some milliseconds
                longer. `normal`: a power failure may lose the newest events, and leaves no gaps.
        """
        super().__init__(SqliteDatabase(db_path, durability))

    def __repr__(self) -> str:
        return f"SqliteSessionService({self.address.removeprefix('sqlite:///')!r})"
