"""Ask a busy service again: a little later each time, when it says so, and not for ever."""

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
from adk_nb.models.attempts import Attempt, on_wait
from adk_nb.models.http_address import is_loopback

logger = logging.getLogger(__name__)

T = TypeVar("T")
BUSY = (408, 429, 500, 502, 503, 504)
"""HTTP statuses that may pass by themselves."""


_SPENT = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
"""Refusals with status 429 that no waiting ends. Source: https://platform.openai.com/docs/guides/error-codes."""
OUT_OF_QUOTA = "asking again does not help: look at the plan, the billing and the quota of your account"


def is_spent(kinds: Iterable[str]) -> bool:
    """True if a service refuses because an account has nothing left; `kinds`: how it classes its refusal."""
    return not _SPENT.isdisjoint(kinds)


async def ask_again(
    ask: Callable[[], Awaitable[T]],
    options: types.HttpRetryOptions | None,
    *,
    model: str,
    within: float,
    passes: Callable[[BaseException], bool],
    asked_to_wait: Callable[[BaseException], float | None],
    what: str = "model",
    tried: list[Attempt] | None = None,
    attempts: int = 5,
    address: str | None = None,
) -> T:
    """What `ask` returns, which is called again for as long as its error may pass.

    Args:
        ask: One attempt.
        options: Attempts (`attempts`), first delay (1 s), longest delay (60 s), growth (2) and jitter (1 s).
        model: Named in the log.
        within: Seconds for all attempts and waits together; an attempt that could only start later is not made.
        passes: Whether an error may pass by itself. The others, and the last one, are raised as they are.
        asked_to_wait: How many seconds the service itself asked for, if it did.
        what: The kind of thing that `model` names.
        tried: Each attempt after which another is made is added to it.
        attempts: Where `options` do not say.
        address: The service's. One on this machine that takes no connection is not running: without `options` of the
            caller's own it is asked once.
    """
    is_asked_once = options is None and is_loopback(address)
    options = options or types.HttpRetryOptions()
    backoff = wait_exponential_jitter(
        initial=_given(options.initial_delay, 1.0),
        max=_given(options.max_delay, 60.0),
        exp_base=_given(options.exp_base, 2.0),
        jitter=_given(options.jitter, 1.0),
    )

    def wait(state: RetryCallState) -> float:
        error = _error(state)
        asked = asked_to_wait(error) if error else None
        return backoff(state) if asked is None else asked

    def tell(state: RetryCallState) -> None:
        attempt = Attempt(model=model, error=in_short(_error(state)), waited=round(state.upcoming_sleep, 3))
        if tried is not None:
            tried.append(attempt)
        if heard := on_wait.get():
            heard(attempt)
        logger.log(
            logging.INFO if heard else logging.WARNING,  # a notebook shows the attempts itself
            "%s %r: %s; asking again in %.1f s (try %d)",
            what,
            model,
            in_short(_error(state)),
            state.upcoming_sleep,
            state.attempt_number + 1,
        )

    retrying = AsyncRetrying(
        stop=stop_after_attempt(max(1, int(_given(options.attempts, attempts)))) | stop_before_delay(within),
        wait=wait,
        retry=retry_if_exception(lambda error: passes(error) and not (is_asked_once and found_no_way(error))),
        before_sleep=tell,
        reraise=True,
    )
    return cast(T, await retrying(ask))


def seconds_of(retry_after: str) -> float | None:
    """The seconds a `Retry-After` header asks for; None when it cannot be read.

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


def for_as_long(hint: str, seconds: float | None) -> str:
    """`hint`, where it begins with `wait`, with how many seconds the service itself asked for."""
    if not seconds or math.isinf(seconds) or not hint.startswith("wait,"):
        return hint
    return f"wait {math.ceil(seconds)} s, as it asks{hint.removeprefix('wait')}"


def found_no_way(error: BaseException | None) -> bool:
    """True if no connection came about, so that nobody was asked. Every library of httpx's kind calls that so."""
    while error and type(error).__name__ not in ("ConnectError", "ConnectTimeout"):
        error = error.__cause__ or error.__context__
    return error is not None


def _given(value: float | None, default: float) -> float:
    return default if value is None else value


def _error(state: RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome else None


def in_short(error: BaseException | None) -> str:
    """`HTTP 503`, `no connection`, or the kind of error."""
    told = [getattr(error, name, None) for name in ("status_code", "status", "code")]
    status = next((one for one in told if isinstance(one, int)), None)
    if status:
        return f"HTTP {status}"
    return "no connection" if found_no_way(error) else type(error).__name__
