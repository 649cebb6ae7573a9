"""A PostgreSQL for those tests that ask for one."""

from collections.abc import Iterator

import pytest

from tests.sessions.postgres import Postgres, running


@pytest.fixture(scope="session")
def running_postgres() -> Iterator[Postgres]:
    with running() as server:
        yield server


@pytest.fixture
def postgres(running_postgres: Postgres) -> Postgres:
    running_postgres.empty()
    return running_postgres
