"""A workflow's activities: calls with timeouts and retries, and a local model that has them."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from functools import partial
from typing import Any, TypeVar

from adk_nb.errors import ModelTimeoutError, ServiceRefused, ServiceUnreachable
from adk_nb.graph_compose.configs import ActivityConfig
from adk_nb.models.base_llm import BaseLlm, LlmCapabilities
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.models.registry import LLMRegistry
from adk_nb.models.retrying import retry


class RetryingLlm(BaseLlm):
    """A local model with the timeouts and retries of an activity. It never streams: a stream cannot be retried."""

    llm: BaseLlm
    activity: ActivityConfig

    @classmethod
    def wrap(cls, model: BaseLlm | str, activity: ActivityConfig) -> "RetryingLlm":
        """Wrap a model or the model of that name."""
        llm = LLMRegistry.new_llm(model) if isinstance(model, str) else model
        return cls(model=llm.model, llm=llm, activity=activity)

    @property
    def capabilities(self) -> LlmCapabilities:
        return self.llm.capabilities

    @property
    def notice(self) -> str | None:
        return self.llm.notice

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        try:
            responses = await run_activity(partial(self._attempt, llm_request), self.activity, self.model, "model")
        except TimeoutError as error:
            raise ModelTimeoutError(
                f"model {self.model!r} did not answer in time; raise startToCloseTimeout or scheduleToCloseTimeout"
            ) from error
        for response in responses:
            yield response

    async def _attempt(self, request: LlmRequest) -> list[LlmResponse]:
        # Collect all responses before yielding: after the first, an attempt could not be repeated.
        async with asyncio.timeout(self.activity.start_to_close_timeout):
            async with aclosing(self.llm.generate_content_async(request)) as responses:
                return [response async for response in responses]


T = TypeVar("T")
_FILE_ERRORS = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError)


def _is_transient(error: BaseException) -> bool:
    # The status of a client's error, under the attribute names of common clients. It decides, if there is one: the
    # connection worked, whatever class the error has.
    response: Any = getattr(error, "response", None)
    values = [getattr(value, name, None) for value in (error, response) for name in ("status_code", "status", "code")]
    status = next((value for value in values if isinstance(value, int) and 100 <= value <= 599), None)
    if status is not None:
        return status in (408, 425, 429) or status >= 500
    if isinstance(error, ModelTimeoutError | ServiceUnreachable):
        return True
    # HTTP clients wrap the system's error, some of them several times.
    while not isinstance(error, OSError) and error.__cause__ is not None:
        error = error.__cause__
    return isinstance(error, OSError) and not isinstance(error, _FILE_ERRORS)


async def run_activity(
    attempt: Callable[[], Awaitable[T]],
    activity: ActivityConfig,
    name: str,
    kind: str,
    is_temporary: Callable[[BaseException], bool] = _is_transient,
) -> T:
    """Retry `attempt` after a lost connection, a timeout, or HTTP 408, 425, 429 or 5xx.

    Args:
        attempt: Called for each attempt.
        activity: The timeouts and retries.
        name: The tool or model, for the log.
        kind: "tool" or "model", for the log.
        is_temporary: True for an error after which it is tried again.

    Raises:
        TimeoutError: The attempts together took longer than `total_timeout`.
    """
    total_timeout = activity.total_timeout
    async with asyncio.timeout(total_timeout):
        return await retry(
            attempt,
            activity.retry_policy.options(),
            model=name,
            max_seconds=total_timeout,
            is_temporary=is_temporary,
            requested_wait=lambda error: error.retry_after if isinstance(error, ServiceRefused) else None,
            kind=kind,
        )
