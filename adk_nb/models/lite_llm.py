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
from adk_nb.models.openai_messages import chat_question
from adk_nb.models.pipeline import Payload
from adk_nb.models.sdk_llm import SdkLlm, closing, extra
from adk_nb.redaction import remember_named

_OURS = ("messages", "tools", "stream", "llm_client")
"""Arguments of litellm's that are not to be given: an agent says them."""
_TOLD_BY_LITELLM = {
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

    def __init__(self, model: str, **given: Any) -> None:
        """`given`: the fields, and arguments of litellm's `acompletion`."""
        own = {name: given.pop(name) for name in list(given) if name in type(self).model_fields}
        if "api_base" in given:
            own["base_url"] = given.pop("api_base")
        more = {name: value for name, value in given.items() if name not in _OURS}
        own["additional_args"] = more | own.get("additional_args", {})
        super().__init__(model=model, **own)

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        remember_named(self.additional_args)
        remember_named(self.additional_args.get("extra_headers"))

    @classmethod
    def named(cls, model: str) -> "LiteLlm":
        """Raises ModelNotFoundError if litellm knows no provider of that name."""
        made, provider = cls(model=model), model.partition("/")[0]
        known = [str(getattr(one, "value", one)) for one in made._package().provider_list]
        if provider not in known:
            raise ModelNotFoundError("provider of models", provider, known)
        return made

    @property
    def capabilities(self) -> LlmCapabilities:
        return super().capabilities.model_copy(update=dict.fromkeys(self._cannot(), False))

    def _cannot(self) -> list[str]:
        """What litellm's table says that the model cannot do. Of most it does not say."""
        try:
            known: Any = self._package().get_model_info(self.model)
        except Exception:  # litellm raises a bare Exception for a model it has no entry for
            return []
        return [ours for theirs, ours in _TOLD_BY_LITELLM.items() if known.get(theirs) is False]

    def _package(self) -> Any:
        # Else it asks GitHub for a table of prices as soon as it is imported.
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        return super()._package()

    @property
    def _errors(self) -> Any:
        return extra("openai", "litellm")  # litellm's errors are openai's

    def payload(self, request: LlmRequest, model: str, /) -> Payload:
        question = chat_question(request, model, server=self._provider, parallel_calls=self.capabilities.parallel_calls)
        if (limit := request.config.max_output_tokens) is not None:
            question["max_tokens"] = limit
        if self.api_key:
            question["api_key"] = self.api_key.get_secret_value()
        if self.base_url:
            question["base_url"] = self.base_url
        limit = extra("httpx", "litellm").Timeout(self.timeout, connect=self.connect_timeout)
        once: dict[str, Any] = {"timeout": limit, "max_retries": 0, "num_retries": 0, "drop_params": True}
        return question | once | self.additional_args

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
