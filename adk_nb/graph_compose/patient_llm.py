"""A local model with the patience that a workflow's activity has: a time for each attempt, and some more attempts."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import Any

from adk_nb.errors import ModelHTTPError, ModelTimeoutError, ServiceUnreachable
from adk_nb.graph_compose.configs import ActivityConfig
from adk_nb.models.base_llm import BaseLlm, LlmCapabilities
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.models.registry import LLMRegistry
from adk_nb.models.retrying import ask_again


class PatientLlm(BaseLlm):
    """Asks `of`, whose answers come whole: a streamed one could not be begun again."""

    of: BaseLlm
    activity: ActivityConfig

    @classmethod
    def around(cls, model: BaseLlm | str, activity: ActivityConfig) -> "PatientLlm":
        """`model`, or the one of that name, with the patience of `activity`."""
        of = LLMRegistry.new_llm(model) if isinstance(model, str) else model
        return cls(model=of.model, of=of, activity=activity)

    @property
    def capabilities(self) -> LlmCapabilities:
        return self.of.capabilities

    @property
    def notice(self) -> str | None:
        return self.of.notice

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        within = self.activity.total_timeout
        try:
            async with asyncio.timeout(within):
                answers = await ask_again(
                    partial(self._once, llm_request),
                    self.activity.retry_policy.options(),
                    model=self.model,
                    within=within,
                    passes=_passes,
                    asked_to_wait=_nothing_asked,
                )
        except TimeoutError as error:
            raise ModelTimeoutError(
                f"model {self.model!r} did not answer in time; raise startToCloseTimeout or scheduleToCloseTimeout"
            ) from error
        for answer in answers:
            yield answer

    async def _once(self, request: LlmRequest) -> list[LlmResponse]:
        async with asyncio.timeout(self.activity.start_to_close_timeout):
            async with aclosing(self.of.generate_content_async(request)) as responses:
                return [response async for response in responses]


def _passes(error: BaseException) -> bool:
    if isinstance(error, ModelHTTPError):
        return error.status in (408, 425, 429) or error.status >= 500
    return isinstance(error, TimeoutError | ModelTimeoutError | ServiceUnreachable | ConnectionError)


def _nothing_asked(error: BaseException) -> Any:
    return None
