"""Bodies of requests and answers: JSON that is checked on the way in, and has no known secrets on the way out."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing, suppress
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from adk_nb.errors import (
    AdkNbError,
    AlreadyExistsError,
    InputError,
    MissingKeyError,
    NotFoundError,
    PendingError,
    SessionBusyError,
    StaleSessionError,
    TurnFailedError,
    UserError,
)
from adk_nb.redaction import hidden, without_known
from adk_nb.serving.access import problem
from adk_nb.wire import field_errors

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")
E = TypeVar("E")

_STATUS: Mapping[type[Exception], int] = {
    NotFoundError: 404,
    PendingError: 409,
    SessionBusyError: 409,
    StaleSessionError: 409,
    AlreadyExistsError: 409,
    MissingKeyError: 500,
    TurnFailedError: 500,
    InputError: 400,
    UserError: 400,
}
"""Error -> HTTP status, the narrower before the wider; 500 for all others."""
GONE = 499
"""Status of the answer to a client that is gone, as ADK's server has it."""


async def parsed(request: Request, kind: type[M]) -> M:
    """The body of a request.

    Raises:
        HTTPException: It is not JSON, or does not fit `kind`; 422, as FastAPI answers.
    """
    body = await request.body()
    try:
        return kind.model_validate_json(body or b"null")
    except ValidationError as error:
        first = error.errors()[0]
        if first["type"] == "json_invalid" or not body:
            raise HTTPException(422, f"the body is not JSON: {first['msg'].removeprefix('Invalid JSON: ')}") from error
        raise HTTPException(422, hidden(field_errors(error, kind.model_fields))) from error


def status_of(error: Exception) -> int:
    """The HTTP status of an error."""
    return next((status for kind, status in _STATUS.items() if isinstance(error, kind)), 500)


def error_text(error: Exception) -> str:
    """An error in one line, without secrets; it names the type of an error that is not of this package."""
    text = str(error) if isinstance(error, AdkNbError) else f"{type(error).__name__}: {error}"
    return hidden(" ".join(text.split()))


def answer_error(request: Request, error: Exception) -> Response:
    """Starlette's handler of exceptions."""
    if isinstance(error, HTTPException):
        return problem(error.status_code, error.detail, dict(error.headers or {}))
    if isinstance(error, ClientDisconnect):
        return problem(GONE, "the client is gone")
    return problem(status_of(error), error_text(error))


def json_of(record: BaseModel) -> str:
    """A record as it is stored, in camelCase, without known secrets."""
    return without_known(record.model_dump_json(by_alias=True, exclude_none=True))


def json_response(record: BaseModel | None) -> Response:
    """One record."""
    return Response("null" if record is None else json_of(record), media_type="application/json")


def json_list(records: Iterable[BaseModel]) -> Response:
    """A list of records."""
    return Response(f"[{','.join(map(json_of, records))}]", media_type="application/json")


def plain_json(value: Any) -> Response:
    """Any JSON, without known secrets."""
    return JSONResponse(without_known(value))


def always(value: Any) -> Callable[[Request], Awaitable[Response]]:
    """A handler that answers every request with this JSON."""

    async def handler(request: Request) -> Response:
        return plain_json(value)

    return handler


async def sse_response(events: AsyncGenerator[str, None]) -> Response:
    """Server-sent events, each the text of its `data`; an empty text sends nothing.

    The status is decided by the first of them: an error before it is raised here. A client that goes away closes
    `events`.
    """
    try:
        first = await anext(events, None)
    except BaseException:
        await events.aclose()
        raise

    async def stream() -> AsyncIterator[str]:
        async with aclosing(events):
            if first:
                yield f"data: {first}\n\n"
            async for data in events:
                if data:
                    yield f"data: {data}\n\n"

    headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
    return StreamingResponse(stream(), media_type="text/event-stream", headers=headers)


async def unless_gone(request: Request, work: Awaitable[T]) -> T | None:
    """The result of `work`. None: the client went away, and `work` was cancelled."""

    async def disconnected() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    task, watcher = asyncio.ensure_future(work), asyncio.create_task(disconnected())
    try:
        await asyncio.wait({task, watcher}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        return None
    finally:
        watcher.cancel()
        task.cancel()
