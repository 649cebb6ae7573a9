"""Tools of a live conversation that go on after their call was answered: each thing they yield is told to the model."""

import asyncio
import inspect
import logging
import weakref
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any

from adk_nb import types
from adk_nb.redaction import in_result
from adk_nb.runtime.live_request_queue import LiveRequest, LiveRequestQueue
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.function_tool import FunctionTool
from adk_nb.tools.tool_result import convert_result

logger = logging.getLogger(__name__)

PENDING = "The function is running asynchronously and the results are pending."
"""Source: google-adk 2.13, as the words of `stop`: clients look for them."""
STOP_STREAMING = "stop_streaming"
_LONGEST_STOP = 1.0
"""Seconds that a tool has to let go."""


@dataclass
class _Running:
    tool: str
    task: asyncio.Task[None]


class LiveStreams:
    """The tools of one agent that stream, in one live conversation."""

    def __init__(self, tell: Callable[[types.Content], None]) -> None:
        """`tell`: sends a result to the model."""
        self._tell = tell
        self._running: dict[str, _Running] = {}
        """By the id of the call."""
        self._listening: weakref.WeakSet[LiveRequestQueue] = weakref.WeakSet()

    def listen(self) -> LiveRequestQueue:
        """All that the user sends from now on, for as long as the queue is held."""
        queue = LiveRequestQueue()
        self._listening.add(queue)
        return queue

    def hear(self, request: LiveRequest) -> None:
        """Hand what the user sent to the tools that listen."""
        for queue in list(self._listening):
            queue.send(request)

    def start(
        self,
        tool: str,
        call_id: str,
        results: AsyncGenerator[Any, None],
        scheduling: types.FunctionResponseScheduling | None = None,
        /,
    ) -> dict[str, Any]:
        """Tell the model each result as it comes. Returns what the call is answered with for now."""
        send = partial(self._send, tool, call_id, scheduling)
        task = asyncio.create_task(_run(tool, results, send))
        self._running[call_id] = _Running(tool, task)
        task.add_done_callback(lambda _: self._running.pop(call_id, None))
        return {"status": PENDING}

    async def stop(self, tool: str) -> dict[str, Any]:
        """Stop all that `tool` still does. Returns what came of it, for the model."""
        tasks = [one.task for one in self._running.values() if one.tool == tool]
        if not tasks:
            return {"status": f"No active streaming function named {tool} found"}
        if await _cancelled(tasks):
            return {"status": f"Successfully stopped streaming function {tool}"}
        return {"status": f"The task is not cancelled yet for {tool}."}

    async def close(self) -> None:
        """Stop all of them."""
        tasks = [one.task for one in self._running.values()]
        if tasks and not await _cancelled(tasks):
            logger.warning("a streaming tool goes on although it was cancelled: %s", sorted(self._names()))

    def _names(self) -> set[str]:
        return {one.tool for one in self._running.values()}

    def _send(self, tool: str, call_id: str, scheduling: types.FunctionResponseScheduling | None, result: Any) -> None:
        said = convert_result(result, tool)
        media = [one.part() for one in said.media] or None
        response = types.FunctionResponse(
            id=call_id, name=tool, response=in_result(said.response), parts=media, scheduling=scheduling
        )
        self._tell(types.Content(role="user", parts=[types.Part(function_response=response)]))


async def _run(tool: str, results: AsyncGenerator[Any, None], send: Callable[[Any], None]) -> None:
    try:
        async with aclosing(results) as items:
            async for item in items:
                send(item)
    except Exception as error:
        logger.warning("streaming tool %r broke off", tool, exc_info=True)
        send({"error": f"{tool}() broke off: {type(error).__name__}: {error}"[:2_000]})


async def _cancelled(tasks: list[asyncio.Task[None]]) -> bool:
    """True if all of them have ended."""
    for task in tasks:
        task.cancel()
    _, going_on = await asyncio.wait(tasks, timeout=_LONGEST_STOP)
    return not going_on


def with_a_way_to_stop(tools: list[BaseTool], streams: LiveStreams) -> list[BaseTool]:
    """`tools`, and where one of them streams, `stop_streaming`; in the place of one that has this name."""
    if not any(tool.name == STOP_STREAMING or _streams(tool) for tool in tools):
        return tools

    async def stop_streaming(function_name: str) -> dict[str, Any]:
        """Stop a function that still sends results.

        Args:
            function_name: The function's name.
        """
        return await streams.stop(function_name)

    return [*(tool for tool in tools if tool.name != STOP_STREAMING), FunctionTool(stop_streaming)]


def _streams(tool: BaseTool) -> bool:
    return isinstance(tool, FunctionTool) and inspect.isasyncgenfunction(tool.func)
