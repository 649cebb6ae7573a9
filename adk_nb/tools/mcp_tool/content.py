"""Messages of MCP servers: results with media, descriptions, and progress and questions during a call."""

import asyncio
import json
import unicodedata
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any, cast

from adk_nb.lazy import require
from adk_nb.tools.mcp_tool.mcp_connection import EXTRA
from adk_nb.tools.media import blob

MAX_DESCRIPTION = 8_000
"""Length limit in characters: a server's descriptions are part of every request."""
MAX_SCHEMA = 100_000
"""Length limit of a tool's schema as JSON, in characters."""
_TEXT_KEYWORDS = ("description", "title", "$comment")
_DATA_KEYWORDS = ("enum", "const", "default", "examples")
_ALLOWED = {"\n", "\t", "\u200d"}


def convert_result(response: Any) -> dict[str, Any]:
    """Convert the result of a call: `content`, with media as base64 text, and `structuredContent` if there is any.

    A failure reported by the tool itself becomes `{"error": text, "isError": True}`.
    """
    # by_alias: the field names of the MCP specification, such as isError.
    dumped: dict[str, Any] = response.model_dump(mode="json", by_alias=True, exclude_none=True)
    blocks: list[dict[str, Any]] = dumped.get("content", [])
    if dumped.get("isError"):
        error_text = "\n".join(str(block["text"]) for block in blocks if "text" in block)
        media = [_strip_metadata(block) for block in blocks if "text" not in block]
        result = {"error": error_text or "the tool failed and did not say why", "isError": True}
        return result | ({"content": media} if media else {})
    converted: dict[str, Any] = {"content": [_strip_metadata(block) for block in blocks]}
    # MCP: servers repeat it as text in `content`, for older clients.
    if "structuredContent" in dumped:
        converted["structuredContent"] = dumped["structuredContent"]
    return converted | {"isError": False}


def convert_resource(response: Any) -> dict[str, Any]:
    """Convert a resource; bytes become a blob if a model can take them."""
    dumped: dict[str, Any] = response.model_dump(mode="json", by_alias=True, exclude_none=True)
    contents = [_strip_metadata(content) for content in dumped.get("contents", [])]
    for content in contents:
        if decoded := blob(content.get("blob"), content.get("mimeType")):
            content["blob"] = decoded
    return {"contents": contents}


def _strip_metadata(block: dict[str, Any]) -> dict[str, Any]:
    # MCP: these are for clients and users, and not for the model.
    stripped = {key: value for key, value in block.items() if key not in ("_meta", "annotations", "icons")}
    if isinstance(stripped.get("resource"), dict):
        stripped["resource"] = _strip_metadata(cast(dict[str, Any], stripped["resource"]))
    return stripped


def clean_text(text: str) -> str:
    """Remove the characters that a model reads and a person does not see: controls and invisible marks."""
    # Cc: control, Cf: format (direction, zero width), Co: private use, Cs: surrogate.
    cleaned = "".join(
        char for char in text if char in _ALLOWED or unicodedata.category(char) not in ("Cc", "Cf", "Co", "Cs")
    )
    return cleaned if len(cleaned) <= MAX_DESCRIPTION else cleaned[:MAX_DESCRIPTION] + "..."


def clean_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Clean the descriptions in a schema.

    Raises:
        ValueError: It is too long.
    """
    if len(json.dumps(schema)) > MAX_SCHEMA:
        raise ValueError(f"its schema has more than {MAX_SCHEMA} characters")
    return cast(dict[str, Any], _clean_descriptions(schema))


def _clean_descriptions(value: Any) -> Any:
    if isinstance(value, list):
        return [_clean_descriptions(item) for item in cast(list[Any], value)]
    if not isinstance(value, dict):
        return value
    return {
        key: clean_text(inner)
        if key in _TEXT_KEYWORDS and isinstance(inner, str)
        else inner
        if key in _DATA_KEYWORDS
        else _clean_descriptions(inner)
        for key, inner in cast(dict[str, Any], value).items()
    }


MAX_PENDING = 100
"""Limit of undelivered progress messages; further ones are dropped."""
MAX_QUESTIONS = 20
"""Limit of questions in one call: each is stored, and takes the user's time."""


@dataclass(frozen=True)
class Progress:
    """Progress of a tool, in the server's own unit."""

    progress: float
    total: float | None
    message: str | None


class Question:
    """A question of the server, which waits until `answer` is set."""

    def __init__(self, context: Any, params: Any) -> None:
        self.context = context
        self.params = params
        self.loop = asyncio.get_running_loop()
        self.outcome: asyncio.Future[Any] = self.loop.create_future()

    @property
    def answer(self) -> Any:
        """The user's answer. It may be set from any loop; only the first one counts."""
        return self.outcome.result()

    @answer.setter
    def answer(self, value: Any) -> None:
        """Set the answer, unless the call has ended."""
        self.loop.call_soon_threadsafe(lambda: self.outcome.done() or self.outcome.set_result(value))


class CallMessages:
    """Progress and questions of a server during a call.

    Created and read on the call's loop; `progress` and `asks` are called on the connection's loop.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[Progress | Question | ConnectionError | None] = asyncio.Queue()
        self._asked = 0

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Receive progress."""
        if self._queue.qsize() < MAX_PENDING:
            self._put(Progress(progress, total, message))

    async def asks(self, context: Any, params: Any) -> Any:
        """Receive a question; wait for its answer. One over the limit is refused, and ends the call."""
        self._asked += 1
        if self._asked > MAX_QUESTIONS:
            reason = f"more than {MAX_QUESTIONS} questions to the user in one call"
            if self._asked == MAX_QUESTIONS + 1:
                self._put(ConnectionError(f"the call was ended: its server asked {reason}; it may have done its work"))
            mcp_types = require("mcp_types", package=EXTRA)
            return mcp_types.ErrorData(code=mcp_types.INVALID_REQUEST, message=f"refused: {reason}")
        question = Question(context, params)
        self._put(question)
        return await question.outcome

    async def until(self, calling: "asyncio.Future[Any]") -> AsyncGenerator[Progress | Question, None]:
        """Messages until `calling` is done. Closing the generator cancels `calling` and waits for its end.

        Raises:
            ConnectionError: The server asked too many questions.
        """
        calling.add_done_callback(lambda _: self._queue.put_nowait(None))  # wakes the reader
        try:
            while message := await self._queue.get():
                if isinstance(message, ConnectionError):
                    raise message
                yield message
        finally:
            if calling.cancel():
                await asyncio.wait({calling})

    def _put(self, message: Progress | Question | ConnectionError) -> None:
        # asyncio queues are not thread-safe, and the connection may live on another loop.
        if asyncio.get_running_loop() is self._loop:
            self._queue.put_nowait(message)
        else:
            self._loop.call_soon_threadsafe(self._queue.put_nowait, message)
