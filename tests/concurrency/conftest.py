import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from adk_nb import sync

LeftOver = Callable[[], set[asyncio.Task[Any]]]


@pytest.fixture
def left_over() -> LeftOver:
    """Tasks of the background loop that are there, and were not when the test began."""

    async def tasks() -> set[asyncio.Task[Any]]:
        return {task for task in asyncio.all_tasks() if task is not asyncio.current_task()}

    earlier = sync.run(tasks())  # tests that ran in this process before may keep a kernel, which is a task
    return lambda: sync.run(tasks()) - earlier
