"""Retries of a call to a busy service, with exponential backoff."""

import logging
import math
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import TypeVar, cast

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    stop_after_attempt,
    stop_before_delay,
    wait_exponential_jitter,
)

from adk_nb import clock, types
from adk_nb.models.http_address import is_loopback
from adk_nb.models.llm_response import Attempt, on_wait

logger = logging.getLogger(__name__)

T = TypeVar("T")
BUSY = (408, 429, 500, 502, 503, 504)
"""HTTP statuses that may be temporary."""
_QUOTA_CODES = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
"""Refusals with status 429 that retrying does not help. Source: https://platform.openai.com/docs/guides/error-codes."""
OUT_OF_QUOTA = "retrying does not help: check the plan, the billing and the quota of your account"


def is_quota_error(kinds: Iterable[str]) -> bool:
    """True if a service refuses because an account's quota is used up; `kinds`: types and codes of the refusal."""
    return not _QUOTA_CODES.isdisjoint(kinds)


async def retry(
    send: Callable[[], Awaitable[T]],
    options: types.HttpRetryOptions | None,
    *,
    model: str,
    max_seconds: float,
    is_temporary: Callable[[BaseException], bool],
    requested_wait: Callable[[BaseException], float | None],
    kind: str = "model",
    attempts_made: list[Attempt] | None = None,
    attempts: int = 5,
    address: str | None = None,
) -> T:
    """Return the result of `send`, called again while its error may be temporary.

    Args:
        send: One attempt.
        options: Attempts (`attempts`), first delay (1 s), longest delay (60 s), growth (2) and jitter (1 s).
        model: Name for the log.
        max_seconds: Seconds for all attempts and waits together; an attempt that would start later is not made.
        is_temporary: True for an error that may be temporary. Other errors, and the last one, are raised as they are.
        requested_wait: Seconds that the service asked to wait, if it did.
        kind: Kind of the resource that `model` names, for the log.
        attempts_made: List to which each failed attempt is added, except the last.
        attempts: Default for `options`.
        address: URL of the service. If no server listens at a loopback address, there is one attempt, unless the
            caller gave `options`.
    """
    # A local server that is not running will not be within seconds: fail at once. With `options` it may be starting up.
    is_asked_once = options is None and is_loopback(address)
    options = options or types.HttpRetryOptions()
    backoff = wait_exponential_jitter(
        initial=_default(options.initial_delay, 1.0),
        max=_default(options.max_delay, 60.0),
        exp_base=_default(options.exp_base, 2.0),
        jitter=_default(options.jitter, 1.0),
    )

    def wait(state: RetryCallState) -> float:
        error = _error(state)
        requested = requested_wait(error) if error else None
        # A shorter wait than Retry-After would be refused again.
        return backoff(state) if requested is None else requested

    def report(state: RetryCallState) -> None:
        attempt = Attempt(model=model, error=short_error(_error(state)), waited=round(state.upcoming_sleep, 3))
        if attempts_made is not None:
            attempts_made.append(attempt)
        if listener := on_wait.get():
            listener(attempt)
        logger.log(
            logging.INFO if listener else logging.WARNING,  # a notebook shows the attempts itself
            "%s %r: %s; asking again in %.1f s (try %d)",
            kind,
            model,
            short_error(_error(state)),
            state.upcoming_sleep,
            state.attempt_number + 1,
        )

    retrying = AsyncRetrying(
        stop=stop_after_attempt(max(1, int(_default(options.attempts, attempts)))) | stop_before_delay(max_seconds),
        wait=wait,
        retry=retry_if_exception(lambda error: is_temporary(error) and not (is_asked_once and is_connect_error(error))),
        before_sleep=report,
        reraise=True,
    )
    return cast(T, await retrying(send))


def seconds_of(retry_after: str) -> float | None:
    """Parse a `Retry-After` header to seconds; None if it is malformed.

    Source: RFC 9110, section 10.2.3: a number of seconds, or a date.
    """
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    try:
        date = parsedate_to_datetime(retry_after)
        return max(0.0, (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - clock.now())
    except (ValueError, OverflowError):
        return None


def add_wait(hint: str, seconds: float | None) -> str:
    """Put the seconds that the service asked for into a `hint` that starts with `wait`."""
    if not seconds or math.isinf(seconds) or not hint.startswith("wait,"):
        return hint
    return f"wait {math.ceil(seconds)} s, as it asks{hint.removeprefix('wait')}"


def is_connect_error(error: BaseException | None) -> bool:
    """True if no connection was made, so nothing was sent. Libraries like httpx share these class names."""
    # By name: SDKs use httpx, and this package httpx2.
    while error and type(error).__name__ not in ("ConnectError", "ConnectTimeout"):
        error = error.__cause__ or error.__context__
    return error is not None


def _default(value: float | None, default: float) -> float:
    return default if value is None else value


def _error(state: RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome else None


def short_error(error: BaseException | None) -> str:
    """`HTTP 503`, `no connection`, or the type of the error."""
    response = getattr(error, "response", None)  # httpx2's errors have the status there
    codes = [getattr(error, name, None) for name in ("status_code", "status", "code")]
    codes.append(getattr(response, "status_code", None))
    status = next((code for code in codes if isinstance(code, int)), None)
    if status:
        return f"HTTP {status}"
    return "no connection" if is_connect_error(error) else type(error).__name__
