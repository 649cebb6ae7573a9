"""A PostgreSQL server for rows that several machines write."""

from tests.sessions.conftest import postgres as postgres
from tests.sessions.conftest import running_postgres as running_postgres
