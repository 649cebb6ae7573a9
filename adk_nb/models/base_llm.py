"""The one thing every model can do."""

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
    """What a model can do beyond answering. What it cannot do is not asked of it (see `models.fitting`)."""

    output_schema_and_tools: bool = False
    """It takes an output schema and tools in one request."""
    code_execution: bool = False
    """Its service runs the code that it writes."""
    service_tools: tuple[str, ...] = ()
    """What its service looks up by itself when asked to: fields of types.Tool, such as `google_search`."""
    system_prompt: bool = True
    """It takes an instruction that no turn of the conversation says."""
    images: bool = True
    """It can be shown images."""
    media_in_results: bool = True
    """It takes images, and other media, within the result of a call."""
    parallel_calls: bool = True
    """It may call several tools at once, and can be told of such calls."""
    output_schema: bool = True
    """It can be held to a schema, where no tools are offered."""


@fast_private_attributes
class BaseLlm(BaseModel):
    """A model behind one method. Subclass it to bring your own.

    Raises:
        ConfigurationError: A field is unknown, missing or wrong.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    model: str
    """The name its service knows it by."""

    def __init__(self, **given: Any) -> None:
        try:
            super().__init__(**given)
        except ValidationError as error:
            told = field_errors(error, type(self).model_fields, got=not self.model_config.get("hide_input_in_errors"))
            raise ConfigurationError(f"{type(self).__name__}: {hidden(told)}") from None

    @classmethod
    def supported_models(cls) -> list[str]:
        """Regular expressions; a model name that one of them matches whole is answered by this class."""
        return []

    @classmethod
    def named(cls, model: str) -> "BaseLlm":
        """The model that `model` stands for, a name that this class answers to."""
        return cls(model=model)

    @property
    def capabilities(self) -> LlmCapabilities:
        """What this model can do beyond answering.

        A class that does not say, such as a company's gateway to Gemini, is trusted with all that its service may do.
        """
        return LlmCapabilities(code_execution=True, service_tools=tuple(types.Tool.model_fields))

    @property
    def notice(self) -> str | None:
        """One sentence that every view shows beside this model's words, for a stand-in that is not what it seems."""
        return None

    @abstractmethod
    def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Answer `llm_request`.

        Args:
            llm_request: Read, never changed: a retry sends the same object again.
            stream: Yield pieces as they come, then the whole answer.

        Yields:
            Zero or more pieces (`partial=True`), then exactly one whole answer that repeats their text.

        Raises:
            ModelHTTPError: The service refused. A refusal by the model is an answer, not an error.
            ModelTimeoutError: The service did not answer in time.
        """

    def connect(self, llm_request: LlmRequest) -> AbstractAsyncContextManager[BaseLlmConnection]:
        """A live conversation, closed when its block is left. Override it as an `@asynccontextmanager`.

        Args:
            llm_request: Settings in `live_connect_config`; its contents are not sent, see `send_history`.

        Raises:
            NotImplementedError: This model holds no live conversations.
            ModelError: The service refused, or cannot be reached.
        """
        raise NotImplementedError(
            f"model {self.model!r} holds no live conversations; take one that does, such as a Gemini live model"
        )

    def with_a_user_turn(self, llm_request: LlmRequest) -> list[types.Content]:
        """The request's contents, ending in a user turn, which most services insist on."""
        contents = llm_request.contents
        if not contents:
            text = "Do what your system instruction says."
        elif contents[-1].role != "user":
            text = "Go on, or sum up what you have found if there is nothing left to do."
        else:
            return contents
        return [*contents, types.Content(role="user", parts=[types.Part(text=text)])]
