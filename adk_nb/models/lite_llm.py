"""Models of all providers of litellm: `provider/model`."""

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, ClassVar

from pydantic import Field

from adk_nb.errors import ModelNotFoundError
from adk_nb.models.base_llm import LlmCapabilities
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.openai_chat import SENT_AS, ChatAssembler, chat_arguments, check_completion
from adk_nb.models.pipeline import Payload
from adk_nb.models.sdk_llm import SdkLlm, close_after, import_extra
from adk_nb.redaction import remember_named

_RESERVED = ("messages", "tools", "stream", "llm_client")
"""Arguments of litellm that the request sets; ignored, as in google-adk."""
_CAPABILITY_FIELDS = {
    "supports_system_messages": "system_prompt",
    "supports_vision": "images",
    "supports_parallel_function_calling": "parallel_calls",
    "supports_response_schema": "output_schema",
}
"""Field of litellm's model table -> capability."""


class LiteLlm(SdkLlm):
    """A model through litellm: `LlmAgent(name="guide", model=LiteLlm(model="mistral/mistral-small-latest"))`.

    litellm reads the keys from the environment, under each provider's own variables. Other arguments, such as
    `api_base` or `custom_llm_provider`, are passed to litellm's `acompletion`. Settings that a model does not take are
    left out.
    """

    additional_args: dict[str, Any] = Field(default_factory=dict[str, Any], repr=False)

    PACKAGE: ClassVar[str] = "litellm"
    SENT_AS: ClassVar[Mapping[str, tuple[str, ...]] | None] = SENT_AS

    def __init__(self, model: str, **arguments: Any) -> None:
        """Create a model.

        Args:
            model: `provider/model`.
            arguments: Fields of this class, and arguments of litellm's `acompletion`.
        """
        fields = {name: arguments.pop(name) for name in list(arguments) if name in type(self).model_fields}
        if "api_base" in arguments:
            fields["base_url"] = arguments.pop("api_base")
        additional = {name: value for name, value in arguments.items() if name not in _RESERVED}
        fields["additional_args"] = additional | fields.get("additional_args", {})
        super().__init__(model=model, **fields)

    def model_post_init(self, context: Any, /) -> None:
        """Register the secrets of the arguments for redaction."""
        super().model_post_init(context)
        remember_named(self.additional_args)
        nested: list[Any] = [value for value in self.additional_args.values() if isinstance(value, dict)]
        for values in nested:  # headers, extra_body
            remember_named(values)

    @classmethod
    def from_name(cls, model: str) -> "LiteLlm":
        """Create the model; raises ModelNotFoundError if litellm does not have its provider."""
        llm, provider = cls(model=model), model.partition("/")[0]
        providers = [
            str(getattr(provider_entry, "value", provider_entry)) for provider_entry in llm._package().provider_list
        ]
        if provider not in providers:
            raise ModelNotFoundError("provider of models", provider, providers)
        return llm

    @property
    def capabilities(self) -> LlmCapabilities:
        """All capabilities but those that litellm's table denies."""
        capabilities = super().capabilities
        try:
            info: Any = self._package().get_model_info(self.model)  # lacks most models and fields
        except Exception:  # litellm raises a bare Exception for a model it has no entry for
            return capabilities
        denied = [capability for field, capability in _CAPABILITY_FIELDS.items() if info.get(field) is False]
        return capabilities.model_copy(update=dict.fromkeys(denied, False))

    @property
    def is_open_server(self) -> bool:
        """True with an address of its own."""
        return bool(self.address())

    def unsent_settings(self, llm_request: LlmRequest) -> dict[str, str]:
        """As of every service, and those that litellm leaves out for the model's provider."""
        unsent = super().unsent_settings(llm_request)
        try:
            taken: Any = self._package().get_supported_openai_params(llm_request.model or self.model)
        except Exception:  # litellm raises what it likes for a model that it does not know
            return unsent
        for name, targets in SENT_AS.items() if taken else ():
            # Headers and tools are sent in other ways.
            is_given = getattr(llm_request.config, name) is not None and name not in ("http_options", "tool_config")
            if is_given and set(targets).isdisjoint(taken):
                unsent.setdefault(name, f"the provider of {self.model!r} does not take it, says litellm")
        return unsent

    def _package(self) -> Any:
        # Without this variable, importing litellm downloads a price table from GitHub.
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        return super()._package()

    @property
    def _errors(self) -> Any:
        return import_extra("openai", "litellm")  # litellm's errors are subclasses of openai's

    def payload(self, request: LlmRequest, model: str, /) -> Payload:
        """Arguments of litellm's `acompletion`; its own retries are off, since the pipeline retries."""
        arguments = chat_arguments(
            request, model, server=self._provider, parallel_calls=self.capabilities.parallel_calls
        )
        if (limit := request.config.max_output_tokens) is not None:
            arguments["max_tokens"] = limit
        if self.api_key:
            arguments["api_key"] = self.api_key.get_secret_value()
        if self.base_url:
            arguments["base_url"] = self.base_url
        timeout = import_extra("httpx", "litellm").Timeout(self.timeout, connect=self.connect_timeout)
        options: dict[str, Any] = {"timeout": timeout, "max_retries": 0, "num_retries": 0, "drop_params": True}
        return arguments | options | self.additional_args

    @property
    def _provider(self) -> str:
        return f"litellm {self.model.partition('/')[0]}"

    async def chunks(self, payload: Payload, /, *, stream: bool) -> AsyncGenerator[Any, None]:
        """Send the request; yield the chunks of a stream, or the completion."""
        complete = self._package().acompletion
        if not stream:
            yield check_completion(await complete(**payload), payload["model"])
            return
        answer = await complete(**payload, stream=True, stream_options={"include_usage": True})
        try:
            async with aclosing(close_after(answer)) as chunks:
                async for chunk in chunks:
                    # litellm makes up a finish reason for a stream that broke off: skip it.
                    ended = any(choice.finish_reason for choice in chunk.choices or ())
                    if not ended or answer.received_finish_reason or answer.intermittent_finish_reason:
                        yield chunk
        except self._package().exceptions.MidStreamFallbackError as error:
            # Wrapped for litellm's router, which is not used here.
            raise (error.original_exception or error) from None

    def assembler(self, payload: Payload, /, *, stream: bool) -> ChatAssembler:
        """Create an assembler for chunks."""
        return ChatAssembler(payload, self._provider)
