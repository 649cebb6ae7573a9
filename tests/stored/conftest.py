"""The PostgreSQL of the tests of sessions."""

from tests.sessions.conftest import postgres, running_postgres

__all__ = ["postgres", "running_postgres"]
