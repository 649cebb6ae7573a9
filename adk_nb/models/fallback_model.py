"""A chain of models: the next is called when one cannot answer."""

import logging
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import Any, ClassVar

from pydantic import Field, PrivateAttr

from adk_nb.errors import ConfigurationError, ModelError, ModelHTTPError
from adk_nb.models.base_llm import BaseLlm, LlmCapabilities
from adk_nb.models.base_llm_connection import BaseLlmConnection
from adk_nb.models.default_model import GEMINI_MODEL
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import Attempt, LlmResponse, note_attempts
from adk_nb.models.registry import LLMRegistry
from adk_nb.models.retrying import is_connect_error, short_error
from adk_nb.wire import copy_model

logger = logging.getLogger(__name__)


class FallbackModel(BaseLlm):
    """Calls `models` in order until one answers: `FallbackModel(models=["gemini-3.8-flash", "claude-sonnet-5"])`.

    Each model retries as its own `retry_options` say. The next is called when its service has refused with one of
    `retriable_status_codes`, or no connection was made. Any other error is raised; so is one after the first response.

    Raises:
        ConfigurationError: `models` is empty, or `model` is given.
    """

    model: str = ""
    """Name of the first model."""
    models: list[str | BaseLlm]
    retriable_status_codes: frozenset[int] = Field(default_factory=lambda: FallbackModel.DEFAULT_STATUS_CODES)

    DEFAULT_STATUS_CODES: ClassVar[frozenset[int]] = frozenset({429, 500, 502, 503, 504})
    """Without 408, after which the service may have done its work, and would charge twice. Source: google-adk 2.13."""
    _created: dict[str, BaseLlm] = PrivateAttr(default_factory=dict[str, BaseLlm])

    def __init__(self, **fields: Any) -> None:
        super().__init__(**fields)
        if not self.models:
            raise ConfigurationError(f"FallbackModel has no models; write FallbackModel(models=[{GEMINI_MODEL!r}])")
        first = self.models[0] if isinstance(self.models[0], str) else self.models[0].model
        if self.model not in ("", first):
            raise ConfigurationError(
                f"FallbackModel takes the name of its first model, {first!r}, got {self.model!r}; leave out model="
            )
        self.model = first

    @property
    def capabilities(self) -> LlmCapabilities:
        """The capabilities that all models share: a request is built once, for any of them."""
        first, *others = (self._model(entry).capabilities for entry in self.models)
        flags = {
            name: value and all(getattr(other, name) for other in others)
            for name, value in first
            if isinstance(value, bool)  # not `service_tools`
        }
        shared_tools = tuple(
            tool for tool in first.service_tools if all(tool in other.service_tools for other in others)
        )
        return LlmCapabilities(**flags, service_tools=shared_tools)

    def unsent_settings(self, llm_request: LlmRequest) -> dict[str, str]:
        """Those of its first model."""
        return self._model(self.models[0]).unsent_settings(llm_request)

    @property
    def notice(self) -> str | None:
        """The first notice of its models."""
        return next((notice for entry in self.models if (notice := self._model(entry).notice)), None)

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Call the models in order; see `BaseLlm`."""
        attempts: list[Attempt] = []
        for number, entry in enumerate(self.models, 1):
            model, has_started = self._model(entry), False
            request = _copy_for(llm_request, model)
            try:
                async with aclosing(model.generate_content_async(request, stream)) as responses:
                    async for response in responses:
                        # The token counts of an answer that broke off are no part of it.
                        has_started = has_started or not response.partial or response.content is not None
                        if attempts and not response.partial:
                            response = copy_model(
                                response,
                                attempts=[*attempts, *(response.attempts or ())],
                                model_version=response.model_version or model.model,
                            )
                        yield response
                return
            except Exception as error:
                # Once the user has seen a part of an answer: another model would not continue it.
                if has_started or number == len(self.models) or not self._is_retriable(error, model):
                    with note_attempts(attempts):
                        raise
                attempts += error.attempts if isinstance(error, ModelError) else ()
                next_model = self._model(self.models[number]).model
                attempts.append(Attempt(model=model.model, error=short_error(error), next_model=next_model))

    @asynccontextmanager
    async def connect(self, llm_request: LlmRequest) -> AsyncGenerator[BaseLlmConnection, None]:
        """Open a live conversation with the first model that accepts it; see `BaseLlm`."""
        async with AsyncExitStack() as stack:
            for number, entry in enumerate(self.models, 1):
                model = self._model(entry)
                try:
                    context = model.connect(_copy_for(llm_request, model))
                    connection = await stack.enter_async_context(context)
                except Exception as error:
                    if number == len(self.models) or not self._is_retriable(error, model):
                        raise
                    continue
                yield connection
                return

    def _model(self, entry: str | BaseLlm) -> BaseLlm:
        if isinstance(entry, BaseLlm):
            return entry
        if entry not in self._created:
            self._created[entry] = LLMRegistry.new_llm(entry)
        return self._created[entry]

    def _is_retriable(self, error: Exception, model: BaseLlm) -> bool:
        """True if the next model is called; logs the error then."""
        # A model class of the user's own may raise its client's error, with a `status_code`.
        status = error.status if isinstance(error, ModelHTTPError) else getattr(error, "status_code", None)
        if status not in self.retriable_status_codes and not is_connect_error(error):
            return False
        logger.warning("model %r: %s; asking the next model", model.model, short_error(error))
        return True


def _copy_for(request: LlmRequest, model: BaseLlm) -> LlmRequest:
    """A copy of `request` for `model`, since a model class of the user's own may change it."""
    return copy_model(request, model=model.model, contents=[*request.contents], config=request.config.model_copy())
