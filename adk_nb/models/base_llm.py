"""The interface of a model."""

from abc import abstractmethod
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from adk_nb import types
from adk_nb.errors import ConfigurationError
from adk_nb.models.base_llm_connection import BaseLlmConnection
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.redaction import hidden
from adk_nb.wire import fast_private_attributes, field_errors


class LlmCapabilities(BaseModel):
    """Capabilities of a model beyond answering; requests are adapted to the missing ones (see `models.adaptation`)."""

    output_schema_and_tools: bool = False
    """Takes an output schema and tools in one request."""
    code_execution: bool = False
    """Its service runs the code that it writes."""
    service_tools: tuple[str, ...] = ()
    """Tools that its service runs itself: fields of types.Tool, such as `google_search`."""
    system_prompt: bool = True
    """Takes a system instruction apart from the turns of the conversation."""
    images: bool = True
    """Reads images."""
    media_in_results: bool = True
    """Reads images and other media within a function response."""
    parallel_calls: bool = True
    """May call several tools in one turn, and reads such turns."""
    output_schema: bool = True
    """Follows an output schema, in a request without tools."""


@fast_private_attributes
class BaseLlm(BaseModel):
    """The interface of a model. Subclass it to bring your own.

    Raises:
        ConfigurationError: A field is unknown, missing or invalid.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    model: str
    """The model's name at its service."""

    def __init__(self, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            is_input_shown = not self.model_config.get("hide_input_in_errors")
            problems = field_errors(error, type(self).model_fields, got=is_input_shown)
            # Not chained: pydantic's own message may quote a key.
            raise ConfigurationError(f"{type(self).__name__}: {hidden(problems)}") from None

    @classmethod
    def supported_models(cls) -> list[str]:
        """Regular expressions; this class is used for a model name that one of them matches completely."""
        return []

    @classmethod
    def from_name(cls, model: str) -> "BaseLlm":
        """Create the model for `model`, a name that this class supports."""
        return cls(model=model)

    @property
    def capabilities(self) -> LlmCapabilities:
        """Capabilities of this model. The default suits a gateway to Gemini: all tools of the service, and its code
        execution.
        """
        return LlmCapabilities(code_execution=True, service_tools=tuple(types.Tool.model_fields))

    @property
    def notice(self) -> str | None:
        """A sentence that every view shows beside the answers, for a stand-in; None for a real model."""
        return None

    @property
    def is_open_server(self) -> bool:
        """True for a server of open models, whose template may not tell the model of tools."""
        return False

    def unsent_settings(self, llm_request: LlmRequest) -> dict[str, str]:
        """Settings of the request that this model is not sent, each with the reason; shown in traces."""
        return {}

    @abstractmethod
    def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Answer `llm_request`.

        Args:
            llm_request: Not changed: a retry sends the same object again.
            stream: Yield partial responses as they come, then the complete answer.

        Yields:
            Zero or more partial responses (`partial=True`), then the complete answer, which repeats their text.

        Raises:
            ModelHTTPError: The service refused. A refusal by the model is an answer, not an error.
            ModelTimeoutError: The service did not answer in time.
        """

    def connect(self, llm_request: LlmRequest) -> AbstractAsyncContextManager[BaseLlmConnection]:
        """Open a live conversation, closed at the end of its block. Override it as an `@asynccontextmanager`.

        Args:
            llm_request: Settings in `live_connect_config`; its contents are not sent, see `send_history`.

        Raises:
            NotImplementedError: This model has no live conversations.
            ModelError: The service refused, or cannot be reached.
        """
        raise NotImplementedError(
            f"model {self.model!r} has no live conversations; use a model that has, such as a Gemini live model"
        )
