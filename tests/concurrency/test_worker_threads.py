"""Worker threads that functions keep past their timeout: others take their place, and services have their own."""

import asyncio
import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from adk_nb import types
from adk_nb.agents import LlmAgent, RunConfig
from adk_nb.agents.run_config import ToolThreadPoolConfig
from adk_nb.artifacts import FileArtifactService
from adk_nb.concurrency.threads import MAX_REPLACED, MAX_WORKERS
from adk_nb.memory import SqliteMemoryService
from adk_nb.models import ScriptedLlm, call
from adk_nb.tools import FunctionTool
from tests.support.polling import SECONDS
from tests.support.talk import Talk


class Stuck:
    """Tools that keep their threads until they are released."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self.began = threading.Semaphore(0)
        self.kept: list[threading.Thread] = []

    def function(self, number: int = 0) -> str:
        """Wait."""
        self._wait()
        return "late"

    def generator(self) -> Generator[str, None, None]:
        """Wait for an item."""
        self._wait()
        yield "late"

    def left_after_release(self, number: int) -> int:
        """Let all functions end; the number of their threads that go on, which becomes `wanted`."""
        self.released.set()
        ends = time.monotonic() + SECONDS
        while time.monotonic() < ends and sum(thread.is_alive() for thread in self.kept) > number:
            for thread in self.kept:
                thread.join(0.001)
        return sum(thread.is_alive() for thread in self.kept)

    def _wait(self) -> None:
        self.kept.append(threading.current_thread())
        self.began.release()
        self.released.wait(10 * SECONDS)


@pytest.fixture
def stuck() -> Generator[Stuck, None, None]:
    stuck = Stuck()
    yield stuck
    stuck.released.set()


def quick() -> str:
    """Answer at once."""
    return threading.current_thread().name


async def results(tools: list[Any], calls: Any, config: RunConfig | None = None) -> list[Any]:
    """The results of the calls of one run, in their order."""
    talk = Talk(LlmAgent(name="guide", model=ScriptedLlm(calls, "done"), tools=tools))
    async with asyncio.timeout(4 * SECONDS):
        events = await talk.asay(config=config)
    return [response.response for event in events for response in event.get_function_responses()]


def threads(most: int) -> RunConfig:
    return RunConfig(tool_thread_pool_config=ToolThreadPoolConfig(max_workers=most))


async def save_and_search(folder: Path) -> None:
    async with asyncio.timeout(SECONDS):
        files = FileArtifactService(root_dir=folder / "files")
        part = types.Part(text="x")
        assert await files.save_artifact(app_name="app", user_id="u", session_id="s", filename="f", artifact=part) == 0
        memory = SqliteMemoryService(folder / "m.db")
        assert not (await memory.search_memory(app_name="app", user_id="u", query="x")).memories


@pytest.mark.parametrize("kind", ["function", "generator"])
def test_tools_past_their_timeout_hold_up_nobody(stuck: Stuck, kind: str, tmp_path: Path):
    slow = FunctionTool(getattr(stuck, kind), timeout=0.2)

    late = asyncio.run(results([slow], [call(kind)] * MAX_WORKERS))
    assert len(late) == MAX_WORKERS and all("TimeoutError" in item["error"] for item in late)

    [answer] = asyncio.run(results([quick], call("quick")))
    assert answer["result"].startswith("adk-nb-worker")
    asyncio.run(save_and_search(tmp_path))


def test_services_work_while_tools_keep_every_thread(stuck: Stuck, tmp_path: Path):
    calls = [call("function", number=number) for number in range(2 * MAX_WORKERS)]

    async def use() -> None:
        run = asyncio.create_task(results([stuck.function], calls))
        for _ in range(MAX_WORKERS):
            assert await asyncio.to_thread(stuck.began.acquire, timeout=SECONDS)
        await save_and_search(tmp_path)
        stuck.released.set()
        assert len(await run) == 2 * MAX_WORKERS

    asyncio.run(use())


@pytest.mark.parametrize("kind", ["function", "generator"])
def test_the_limit_of_replaced_threads_is_reported(stuck: Stuck, kind: str):
    slow, config, most = FunctionTool(getattr(stuck, kind), timeout=0.05), threads(2), 2 + MAX_REPLACED
    while len(stuck.kept) < most:
        asyncio.run(results([slow], [call(kind)] * 2, config))

    [refused] = asyncio.run(results([slow], call(kind), config))
    assert str(most) in refused["error"] and "timeout" in refused["error"]

    assert stuck.left_after_release(2) == 2
    assert all("result" in result for result in asyncio.run(results([quick], [call("quick")] * 4, config)))


def test_replaced_threads_end_with_their_functions(stuck: Stuck):
    slow, config = FunctionTool(stuck.function, timeout=0.1), threads(3)
    for _ in range(3):
        asyncio.run(results([slow], [call("function")] * 3, config))
    assert len(stuck.kept) == 9

    assert stuck.left_after_release(3) == 3
