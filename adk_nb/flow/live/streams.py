"""Streaming tools of a live conversation: each item they yield is sent to the model."""

import asyncio
import inspect
import logging
import weakref
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from adk_nb import types
from adk_nb.redaction import in_result
from adk_nb.runtime.live_request_queue import LiveRequest, LiveRequestQueue
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.function_tool import FunctionTool
from adk_nb.tools.tool_result import convert_result

logger = logging.getLogger(__name__)

PENDING = "The function is running asynchronously and the results are pending."
"""Source: google-adk 2.13, also of the texts of `stop`: clients look for them."""
STOP_STREAMING = "stop_streaming"
_STOP_TIMEOUT = 1.0
"""Seconds that a cancelled tool has to end."""


@dataclass
class _RunningStream:
    tool: str
    task: asyncio.Task[None]


class LiveStreams:
    """The running streaming tools of one live conversation."""

    def __init__(self, send: Callable[[types.Content], None]) -> None:
        """`send` sends a result to the model."""
        self._send_content = send
        self._running: dict[str, _RunningStream] = {}
        """Call id -> stream."""
        # Weak: a tool that drops its queue stops listening.
        self._listeners: weakref.WeakSet[LiveRequestQueue] = weakref.WeakSet()

    def listen(self) -> LiveRequestQueue:
        """A queue that gets the user's requests from now on, for as long as the caller holds it."""
        queue = LiveRequestQueue()
        self._listeners.add(queue)
        return queue

    def forward(self, request: LiveRequest) -> None:
        """Pass a request of the user to the listening tools."""
        for queue in list(self._listeners):
            queue.send(request)

    def start(
        self,
        tool: str,
        call_id: str,
        results: AsyncGenerator[Any, None],
        scheduling: types.FunctionResponseScheduling | None = None,
        /,
    ) -> dict[str, Any]:
        """Send the model each result as it comes. Returns the interim response of the call."""

        def send(result: Any) -> None:
            converted = convert_result(result, tool)
            media = [item.part() for item in converted.media] or None
            response = types.FunctionResponse(
                id=call_id, name=tool, response=in_result(converted.response), parts=media, scheduling=scheduling
            )
            self._send_content(types.Content(role="user", parts=[types.Part(function_response=response)]))

        async def run() -> None:
            try:
                async with aclosing(results) as items:
                    async for item in items:
                        send(item)
            except Exception as error:
                logger.warning("streaming tool %r failed", tool, exc_info=True)
                send({"error": f"{tool}() failed: {type(error).__name__}: {error}"[:2_000]})

        task = asyncio.create_task(run())
        self._running[call_id] = _RunningStream(tool, task)
        task.add_done_callback(lambda _: self._running.pop(call_id, None))
        return {"status": PENDING}

    async def stop(self, tool: str) -> dict[str, Any]:
        """Stop the streams of `tool`. Returns the outcome for the model."""
        tasks = [stream.task for stream in self._running.values() if stream.tool == tool]
        if not tasks:
            return {"status": f"No active streaming function named {tool} found"}
        if await _cancel(tasks):
            return {"status": f"Successfully stopped streaming function {tool}"}
        return {"status": f"The task is not cancelled yet for {tool}."}

    async def close(self) -> None:
        """Stop all streams."""
        tasks = [stream.task for stream in self._running.values()]
        if tasks and not await _cancel(tasks):
            tools = sorted({stream.tool for stream in self._running.values()})
            logger.warning("a streaming tool still runs although it was cancelled: %s", tools)


async def _cancel(tasks: list[asyncio.Task[None]]) -> bool:
    """Cancel the tasks. True if all of them ended in time."""
    for task in tasks:
        task.cancel()
    _, running = await asyncio.wait(tasks, timeout=_STOP_TIMEOUT)
    return not running


def with_stop_tool(tools: list[BaseTool], streams: LiveStreams) -> list[BaseTool]:
    """`tools`, with `stop_streaming` if one of them streams; it replaces a tool of that name."""
    if not any(
        tool.name == STOP_STREAMING or (isinstance(tool, FunctionTool) and inspect.isasyncgenfunction(tool.func))
        for tool in tools
    ):
        return tools

    async def stop_streaming(function_name: str) -> dict[str, Any]:
        """Stop a function that still sends results.

        Args:
            function_name: The function's name.
        """
        return await streams.stop(function_name)

    return [*(tool for tool in tools if tool.name != STOP_STREAMING), FunctionTool(stop_streaming)]
