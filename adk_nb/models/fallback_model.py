"""Several models in one: the next is asked when one cannot answer."""

import logging
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import Any, ClassVar

from pydantic import Field, PrivateAttr

from adk_nb.errors import ConfigurationError, ModelError, ModelHTTPError
from adk_nb.models.attempts import Attempt, note_attempts
from adk_nb.models.base_llm import BaseLlm, LlmCapabilities
from adk_nb.models.base_llm_connection import BaseLlmConnection
from adk_nb.models.default_model import GEMINI_MODEL
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.models.registry import LLMRegistry
from adk_nb.models.retrying import found_no_way, in_short
from adk_nb.wire import copy_model

logger = logging.getLogger(__name__)


class FallbackModel(BaseLlm):
    """Asks `models` in their order until one answers: `FallbackModel(models=["gemini-3.8-flash", "claude-sonnet-5"])`.

    Each is asked as its own `retry_options` say, and the next one when its service has refused with one of
    `retriable_status_codes`, or no connection to it came about. Any other error is raised; so is one that comes when
    something of an answer is there.

    Raises:
        ConfigurationError: There are no models, or `model` is given.
    """

    model: str = ""
    """The first one's name."""
    models: list[str | BaseLlm]
    retriable_status_codes: frozenset[int] = Field(default_factory=lambda: FallbackModel.DEFAULT_STATUS_CODES)

    DEFAULT_STATUS_CODES: ClassVar[frozenset[int]] = frozenset({429, 500, 502, 503, 504})
    """Without 408 and the like: after those a service may have done its work, and it would be paid for twice."""
    _made: dict[str, BaseLlm] = PrivateAttr(default_factory=dict[str, BaseLlm])

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        if not self.models:
            raise ConfigurationError(f"FallbackModel has no models; write FallbackModel(models=[{GEMINI_MODEL!r}])")
        first = self.models[0] if isinstance(self.models[0], str) else self.models[0].model
        if self.model not in ("", first):
            raise ConfigurationError(
                f"FallbackModel has the name of its first model, {first!r}, and not {self.model!r}; do not give one"
            )
        self.model = first

    @property
    def capabilities(self) -> LlmCapabilities:
        """What all of them can do: a request is put once, and any of them may be asked."""
        first, *others = (self._one(entry).capabilities for entry in self.models)
        able = {
            name: value and all(getattr(other, name) for other in others)
            for name, value in first
            if value in (True, False)
        }
        shared = tuple(one for one in first.service_tools if all(one in other.service_tools for other in others))
        return LlmCapabilities(**able, service_tools=shared)

    @property
    def notice(self) -> str | None:
        return next((said for entry in self.models if (said := self._one(entry).notice)), None)

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        tried: list[Attempt] = []
        for number, entry in enumerate(self.models, 1):
            model, begun = self._one(entry), False
            request = _fresh(llm_request, model)
            try:
                async with aclosing(model.generate_content_async(request, stream)) as responses:
                    async for response in responses:
                        begun = True
                        yield _after(tried, response, model.model)
                return
            except Exception as error:
                if begun or number == len(self.models) or not self._passes_on(error, model):
                    with note_attempts(tried):
                        raise
                tried += _attempts_of(error, model, self._one(self.models[number]))

    @asynccontextmanager
    async def connect(self, llm_request: LlmRequest) -> AsyncGenerator[BaseLlmConnection, None]:
        async with AsyncExitStack() as stack:
            for number, entry in enumerate(self.models, 1):
                model = self._one(entry)
                try:
                    opened = model.connect(_fresh(llm_request, model))
                    connection = await stack.enter_async_context(opened)
                except Exception as error:
                    if number == len(self.models) or not self._passes_on(error, model):
                        raise
                    continue
                yield connection
                return

    def _one(self, entry: str | BaseLlm) -> BaseLlm:
        if isinstance(entry, BaseLlm):
            return entry
        if entry not in self._made:
            self._made[entry] = LLMRegistry.new_llm(entry)
        return self._made[entry]

    def _passes_on(self, error: Exception, model: BaseLlm) -> bool:
        """True if the next model is to be asked. A model of one's own may raise an error that tells its status."""
        status = error.status if isinstance(error, ModelHTTPError) else getattr(error, "status_code", None)
        if status not in self.retriable_status_codes and not found_no_way(error):
            return False
        logger.warning("model %r: %s; asking the next model", model.model, in_short(error))
        return True


def _after(tried: list[Attempt], response: LlmResponse, model: str) -> LlmResponse:
    if not tried or response.partial:
        return response
    attempts = [*tried, *(response.attempts or ())]
    return copy_model(response, attempts=attempts, model_version=response.model_version or model)


def _attempts_of(error: Exception, model: BaseLlm, then: BaseLlm) -> list[Attempt]:
    before = error.attempts if isinstance(error, ModelError) else ()
    return [*before, Attempt(model=model.model, error=in_short(error), next_model=then.model)]


def _fresh(request: LlmRequest, model: BaseLlm) -> LlmRequest:
    """`request` for `model`: what one model of a user's own writes in it the next is not to see."""
    return copy_model(request, model=model.model, contents=[*request.contents], config=request.config.model_copy())
