"""The session service on a database server."""

from typing import Any

from adk_nb.errors import ConfigurationError, InputError
from adk_nb.sessions.sql.postgres import URL_FORMS, PostgresDatabase
from adk_nb.sessions.sql.sqlite import SqliteDatabase
from adk_nb.sessions.sql.store import SqlSessionService


class DatabaseSessionService(SqlSessionService):
    """Sessions in the database of a URL. Also a `journal.Journal`.

    `postgresql://user:password@host/database` is PostgreSQL, for any number of processes and machines; it needs the
    extra `db`. `sqlite:///nb.db` is `SqliteSessionService("nb.db")`. The drivers of SQLAlchemy's URLs
    (`postgresql+asyncpg://`, `sqlite+aiosqlite:///`) are accepted and ignored.

    A service may be used by any number of threads, event loops and sessions; its connections are closed by `close`, or
    when the service is collected. Storage is JSON.

    Raises:
        InputError: The URL is not of such a database.
        ConfigurationError: An option is unknown.
        MissingExtraError: psycopg is not installed.
    """

    def __init__(self, db_url: str, **options: Any) -> None:
        """Configure the service; it connects on first use. `flush` connects at once, and reports an unusable database.

        Args:
            db_url: URL of the database. Its password is redacted from errors and logs.
            options: For PostgreSQL `pool_size`, the maximum number of connections (10), and `connect_args`, a dict
                of options of `psycopg.connect`; for SQLite `durability`, as in `SqliteSessionService`.
        """
        kind = db_url.partition(":")[0].partition("+")[0]
        if kind not in _OPTIONS:
            raise InputError(f"db_url must be of PostgreSQL or SQLite, got {kind!r:.40}; write {URL_FORMS}")
        if unknown := sorted(options.keys() - set(_OPTIONS[kind])):
            raise ConfigurationError(
                f"{', '.join(unknown)}: unknown option of {kind} sessions; there is {' and '.join(_OPTIONS[kind])}"
            )
        super().__init__(SqliteDatabase(db_url, **options) if kind == "sqlite" else PostgresDatabase(db_url, **options))
        self._arguments = db_url, options

    def __reduce__(self) -> Any:
        """Pickle as its URL and options, so that workers on other machines open the same database."""
        return _opened, self._arguments


def _opened(db_url: str, options: dict[str, Any]) -> DatabaseSessionService:
    return DatabaseSessionService(db_url, **options)


_OPTIONS = {
    "sqlite": ("durability",),
    "postgresql": ("pool_size", "connect_args"),
    "postgres": ("pool_size", "connect_args"),
}
