"""A service of models on this machine, for each test of an adapter."""

from collections.abc import Iterator

import pytest
from gemini_server import GeminiServer


@pytest.fixture
def server() -> Iterator[GeminiServer]:
    with GeminiServer() as server:
        yield server
