"""Sessions of rows for which nobody named a store."""

import shutil
import tempfile
from pathlib import Path
from weakref import finalize

from adk_nb.sessions.base_session_service import BaseSessionService
from adk_nb.sessions.in_memory_session_service import InMemorySessionService
from adk_nb.sessions.sqlite_session_service import SqliteSessionService

_MAX_IN_MEMORY = 1_000


def default_service(row_count: int) -> BaseSessionService:
    """Memory for few rows, a temporary file for many."""
    return InMemorySessionService() if row_count <= _MAX_IN_MEMORY else temporary_service()


def temporary_service() -> SqliteSessionService:
    """Sessions in a temporary file: a journal, so that rows that were stopped go on."""
    folder = tempfile.mkdtemp(prefix="adk_nb_rows_")
    service = SqliteSessionService(Path(folder) / "sessions.db")
    # With the service, or at the end of the process.
    finalize(service, shutil.rmtree, folder, ignore_errors=True)
    return service
