"""Sessions in one SQLite file: kept across kernels, and shared by the processes of one machine."""

import os

from adk_nb.sessions.sql.sqlite import SqliteDatabase
from adk_nb.sessions.sql.sqlite_file import Durability
from adk_nb.sessions.sql.store import SqlSessionService


class SqliteSessionService(SqlSessionService):
    """Sessions in one file, which is made when it is not there. Also a `journal.Journal`.

    What was appended is in the file: it survives the end of the process. A service is good for any number of threads,
    event loops and sessions, and several processes of one machine may have services on one file. A file that is locked
    is waited for, and the event loop goes on meanwhile. Storage is JSON.

    Events are parsed when they are first looked at, so a long session is opened at once; `GetSessionConfig` says that
    only the newest are to be read.

    Raises:
        InputError: `db_path` names no file.
        ConfigurationError: There is no such `durability`.
    """

    def __init__(self, db_path: str | os.PathLike[str], durability: Durability = "normal") -> None:
        """Nothing is opened before it is needed; `flush` opens, and tells of a file that cannot be used.

        Args:
            db_path: A path, or a URL such as `sqlite:///nb.db`.
            durability: `full`: what was appended also survives the machine losing power, at some milliseconds each.
                `normal`: then the newest may be lost, and what is left has no gaps.
        """
        super().__init__(SqliteDatabase(db_path, durability))

    def __repr__(self) -> str:
        return f"SqliteSessionService({self.address.removeprefix('sqlite:///')!r})"
