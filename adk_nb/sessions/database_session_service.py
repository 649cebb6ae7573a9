"""Sessions in a database server: shared by the processes of many machines."""

from typing import Any

from adk_nb.errors import ConfigurationError, InputError
from adk_nb.sessions.sql.postgres import SHAPE, PostgresDatabase
from adk_nb.sessions.sql.sqlite import SqliteDatabase
from adk_nb.sessions.sql.store import SqlSessionService


class DatabaseSessionService(SqlSessionService):
    """Sessions in the database of a URL. Also a `journal.Journal`.

    `postgresql://user:password@host/database` keeps them in PostgreSQL, for any number of processes and machines; it
    needs the extra `db`. `sqlite:///nb.db` is `SqliteSessionService("nb.db")`. The drivers of SQLAlchemy's URLs
    (`postgresql+asyncpg://`, `sqlite+aiosqlite:///`) may stay, and change nothing.

    A service is good for any number of threads, event loops and sessions; its connections end with `close`, or when
    nothing refers to it any more. Storage is JSON.

    Raises:
        InputError: The URL names no database of those.
        ConfigurationError: There is no such option.
        MissingExtraError: psycopg is not installed.
    """

    def __init__(self, db_url: str, **options: Any) -> None:
        """Nothing is opened before it is needed; `flush` connects, and tells of a database that cannot be used.

        Args:
            db_url: Where sessions are kept. A password in it is hidden from errors and logs.
            options: For PostgreSQL `pool_size`, the number of connections at most (10), and `connect_args`, a dict
                of options of `psycopg.connect`; for SQLite `durability`, as in `SqliteSessionService`.
        """
        kind = db_url.partition(":")[0].partition("+")[0]
        if kind not in _OPTIONS:
            raise InputError(f"sessions are kept in PostgreSQL or SQLite, and not in {kind!r:.40}; write {SHAPE}")
        if unknown := sorted(options.keys() - set(_OPTIONS[kind])):
            raise ConfigurationError(
                f"{', '.join(unknown)}: no option of sessions in {kind}; there is {' and '.join(_OPTIONS[kind])}"
            )
        super().__init__(SqliteDatabase(db_url, **options) if kind == "sqlite" else PostgresDatabase(db_url, **options))


_OPTIONS = {
    "sqlite": ("durability",),
    "postgresql": ("pool_size", "connect_args"),
    "postgres": ("pool_size", "connect_args"),
}
