"""Sessions in a database server: shared by the processes of many machines."""

from typing import Any

from adk_nb.errors import ConfigurationError
from adk_nb.sessions.sql.postgres import PostgresDriver
from adk_nb.sessions.sql.store import SqlSessionService
from adk_nb.sessions.sqlite_session_service import SqliteSessionService


class DatabaseSessionService(SqlSessionService):
    """Sessions in a database that SQLAlchemy names by a URL. Also a `journal.Journal`. Needs the extra `db`.

    `postgresql://user:password@host/database` keeps them in PostgreSQL, for any number of processes and machines;
    the driver is psycopg unless the URL names another. With an async driver (`postgresql+asyncpg://`) nothing blocks
    a thread, with others the work is done in threads. `sqlite:///nb.db` is `SqliteSessionService("nb.db")`, and needs
    no extra; `sqlite+aiosqlite:///` and `sqlite+pysqlite:///` go through SQLAlchemy.

    A service is good for any number of threads, event loops and sessions; its connections end with `close`, or when
    nothing refers to it any more. Storage is JSON.

    Raises:
        InputError: The URL names no database of those.
        ConfigurationError: `engine_kwargs` for a `sqlite:///` URL.
        MissingExtraError: SQLAlchemy, or the driver, is not installed.
    """

    def __init__(self, db_url: str, **engine_kwargs: Any) -> None:
        """Nothing is opened before it is needed; `flush` connects, and tells of a database that cannot be used.

        Args:
            db_url: Where sessions are kept. A password in it is hidden from errors and logs.
            engine_kwargs: For SQLAlchemy's `create_engine`: `pool_size`, `connect_args`, ...
        """
        if not db_url.startswith("sqlite:///"):
            super().__init__(PostgresDriver(db_url, engine_kwargs))
            return
        if unknown := sorted(engine_kwargs.keys() - {"durability"}):
            raise ConfigurationError(
                f"{', '.join(unknown)}: options of SQLAlchemy's engine, which sqlite:/// does not use; "
                "write sqlite+pysqlite:/// to go through it"
            )
        super().__init__(SqliteSessionService(db_url, **engine_kwargs)._driver)
