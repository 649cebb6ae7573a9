"""Any model that litellm knows a way to: `provider/model`."""

import os
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, ClassVar

from pydantic import Field

from adk_nb.errors import ModelNotFoundError
from adk_nb.models.base_llm import LlmCapabilities
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.openai_answers import ChatReader, check
from adk_nb.models.openai_messages import chat_arguments
from adk_nb.models.pipeline import Payload
from adk_nb.models.sdk_llm import SdkLlm, closing, extra
from adk_nb.redaction import remember_named

_RESERVED = ("messages", "tools", "stream", "llm_client")
"""Arguments of litellm's that are not to be given: an agent says them."""
_CAPABILITY_FIELDS = {
    "supports_system_messages": "system_prompt",
    "supports_vision": "images",
    "supports_parallel_function_calling": "parallel_calls",
    "supports_response_schema": "output_schema",
}
"""What litellm's table says of a model -> what a model can do."""


class LiteLlm(SdkLlm):
    """A model through litellm: `LlmAgent(name="guide", model=LiteLlm(model="mistral/mistral-small-latest"))`.

    litellm reads its keys from the environment, under each provider's own name for them. What else is given, such as
    `api_base` or `custom_llm_provider`, is given to litellm's `acompletion`. Settings that a model does not know are
    left out.
    """

    additional_args: dict[str, Any] = Field(default_factory=dict[str, Any], repr=False)

    PACKAGE: ClassVar[str] = "litellm"

    def __init__(self, model: str, **arguments: Any) -> None:
        """`given`: the fields, and arguments of litellm's `acompletion`."""
        fields = {name: arguments.pop(name) for name in list(arguments) if name in type(self).model_fields}
        if "api_base" in arguments:
            fields["base_url"] = arguments.pop("api_base")
        additional = {name: value for name, value in arguments.items() if name not in _RESERVED}
        fields["additional_args"] = additional | fields.get("additional_args", {})
        super().__init__(model=model, **fields)

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        remember_named(self.additional_args)
        remember_named(self.additional_args.get("extra_headers"))

    @classmethod
    def named(cls, model: str) -> "LiteLlm":
        """Raises ModelNotFoundError if litellm knows no provider of that name."""
        llm, provider = cls(model=model), model.partition("/")[0]
        providers = [
            str(getattr(provider_entry, "value", provider_entry)) for provider_entry in llm._package().provider_list
        ]
        if provider not in providers:
            raise ModelNotFoundError("provider of models", provider, providers)
        return llm

    @property
    def capabilities(self) -> LlmCapabilities:
        return super().capabilities.model_copy(update=dict.fromkeys(self._missing_capabilities(), False))

    def _missing_capabilities(self) -> list[str]:
        """What litellm's table says that the model cannot do. Of most it does not say."""
        try:
            info: Any = self._package().get_model_info(self.model)
        except Exception:  # litellm raises a bare Exception for a model it has no entry for
            return []
        return [capability for field, capability in _CAPABILITY_FIELDS.items() if info.get(field) is False]

    def _package(self) -> Any:
        # Else it asks GitHub for a table of prices as soon as it is imported.
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        return super()._package()

    @property
    def _errors(self) -> Any:
        return extra("openai", "litellm")  # litellm's errors are openai's

    def payload(self, request: LlmRequest, model: str, /) -> Payload:
        arguments = chat_arguments(
            request, model, server=self._provider, parallel_calls=self.capabilities.parallel_calls
        )
        if (limit := request.config.max_output_tokens) is not None:
            arguments["max_tokens"] = limit
        if self.api_key:
            arguments["api_key"] = self.api_key.get_secret_value()
        if self.base_url:
            arguments["base_url"] = self.base_url
        limit = extra("httpx", "litellm").Timeout(self.timeout, connect=self.connect_timeout)
        options: dict[str, Any] = {"timeout": limit, "max_retries": 0, "num_retries": 0, "drop_params": True}
        return arguments | options | self.additional_args

    @property
    def _provider(self) -> str:
        return f"litellm {self.model.partition('/')[0]}"

    async def chunks(self, payload: Payload, /, *, stream: bool) -> AsyncGenerator[Any, None]:
        complete = self._package().acompletion
        if not stream:
            yield check(await complete(**payload), payload["model"])
            return
        answer = await complete(**payload, stream=True, stream_options={"include_usage": True})
        async with aclosing(closing(answer)) as chunks:
            async for chunk in chunks:
                # litellm makes up an end for an answer that broke off.
                ended = any(choice.finish_reason for choice in chunk.choices or ())
                if not ended or answer.received_finish_reason or answer.intermittent_finish_reason:
                    yield chunk

    def assembler(self, payload: Payload, /, *, stream: bool) -> ChatReader:
        return ChatReader(payload["model"], self._provider)
