"""The patience that a workflow's activity has with what runs here: a time for all attempts, and some more attempts."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from adk_nb.errors import ModelTimeoutError, ServiceRefused, ServiceUnreachable
from adk_nb.graph_compose.configs import ActivityConfig
from adk_nb.models.retrying import retry

T = TypeVar("T")
_OF_FILES = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError)


async def patiently(ask: Callable[[], Awaitable[T]], activity: ActivityConfig, name: str, what: str) -> T:
    """What `ask`, one attempt, returns; made again after a lost connection, a timeout, or HTTP 408, 425, 429 or 5xx.

    Args:
        ask: Called for each attempt.
        activity: How often, and how long all of it may take.
        name: Who is asked, for the log.
        what: The kind of thing that `name` names.

    Raises:
        TimeoutError: All attempts together took too long.
    """
    within = activity.total_timeout
    async with asyncio.timeout(within):
        return await retry(
            ask,
            activity.retry_policy.options(),
            model=name,
            within=within,
            passes=_may_pass,
            asked_to_wait=lambda error: error.retry_after if isinstance(error, ServiceRefused) else None,
            what=what,
        )


def _may_pass(error: BaseException) -> bool:
    status = _status(error)
    if status is not None:
        return status in (408, 425, 429) or status >= 500
    return isinstance(error, ModelTimeoutError | ServiceUnreachable) or _is_of_a_connection(error)


def _is_of_a_connection(error: BaseException) -> bool:
    """True for the system's own errors of connections, and for those of a client, which name one as their cause."""
    while not isinstance(error, OSError) and error.__cause__ is not None:
        error = error.__cause__
    return isinstance(error, OSError) and not isinstance(error, _OF_FILES)


def _status(error: BaseException) -> int | None:
    """The HTTP status that an error tells, under the names that clients give it."""
    response: Any = getattr(error, "response", None)
    told = [getattr(one, name, None) for one in (error, response) for name in ("status_code", "status", "code")]
    return next((one for one in told if isinstance(one, int) and 100 <= one <= 599), None)
