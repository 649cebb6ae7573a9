"""A local model with the patience that a workflow's activity has."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial

from adk_nb.errors import ModelTimeoutError
from adk_nb.graph_compose.configs import ActivityConfig
from adk_nb.graph_compose.patience import patiently
from adk_nb.models.base_llm import BaseLlm, LlmCapabilities
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.models.registry import LLMRegistry


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
        try:
            answers = await patiently(partial(self._once, llm_request), self.activity, self.model, "model")
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
