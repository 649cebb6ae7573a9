from collections.abc import Iterator

import pytest

from tests.support.http_service import Service


@pytest.fixture
def service() -> Iterator[Service]:
    with Service() as service:
        yield service
