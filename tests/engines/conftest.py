"""A PostgreSQL for those tests that ask for one."""

from tests.sessions.conftest import postgres as postgres
from tests.sessions.conftest import running_postgres as running_postgres
