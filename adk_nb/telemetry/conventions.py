"""Names and values of OpenTelemetry's conventions for generative AI, in two versions.

`latest`: release 0.1.0 and later, https://github.com/open-telemetry/semantic-conventions-genai; all of it is in
development there. `1.36`: the baseline that older instrumentations keep,
https://github.com/open-telemetry/semantic-conventions/tree/v1.36.0/docs/gen-ai.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

from adk_nb import types
from adk_nb.errors import ModelHTTPError, ToolExecutionError
from adk_nb.models.base_llm import BaseLlm
from adk_nb.models.llm_request import LlmRequest
from adk_nb.runtime.invocation_context import InvocationContext

Version = Literal["latest", "1.36"]
VERSIONS: tuple[Version, ...] = get_args(Version)

OPERATION = "gen_ai.operation.name"
AGENT = "gen_ai.agent.name"
AGENT_ID = "gen_ai.agent.id"
AGENT_DESCRIPTION = "gen_ai.agent.description"
CONVERSATION = "gen_ai.conversation.id"
ERROR = "error.type"
INVOCATION = "adk_nb.invocation_id"
SESSION = "adk_nb.session_id"
NODE_PATH = "adk_nb.node.path"
FAILED_ATTEMPTS = "adk_nb.failed_attempts"
"""Errors of the attempts before the one that counts: `HTTP 503`, `no connection`."""

_PROVIDERS = {
    "Gemini": "gcp.gemini",
    "Claude": "anthropic",
    "LocalLlm": "llama.cpp",
    "OllamaLlm": "ollama",
    "OpenAILlm": "openai",
}
"""Class -> well-known name of its provider; a subclass has its parent's."""
_SETTINGS = {
    "temperature": "gen_ai.request.temperature",
    "top_p": "gen_ai.request.top_p",
    "top_k": "gen_ai.request.top_k",
    "max_output_tokens": "gen_ai.request.max_tokens",
    "frequency_penalty": "gen_ai.request.frequency_penalty",
    "presence_penalty": "gen_ai.request.presence_penalty",
    "seed": "gen_ai.request.seed",
    "stop_sequences": "gen_ai.request.stop_sequences",
}
_FINISH_REASONS = {"STOP": "stop", "MAX_TOKENS": "length", "MALFORMED_FUNCTION_CALL": "error"}
_FILTERED = ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII")


@dataclass(frozen=True, kw_only=True)
class Conventions:
    """One version of the conventions: what differs from the other."""

    provider: str
    """Attribute with the name of the provider."""
    has_workflows: bool
    """A graph's operation is `invoke_workflow`."""
    has_agent_ids: bool
    """The span of an agent has its id and its provider."""
    has_details: bool
    """Model calls have the tokens of thoughts and caches, and the time to the first chunk."""
    has_content_attributes: bool
    """Messages, arguments and results are attributes; else messages are events of the span."""


CONVENTIONS: Mapping[Version, Conventions] = {
    "latest": Conventions(
        provider="gen_ai.provider.name",
        has_workflows=True,
        has_agent_ids=False,
        has_details=True,
        has_content_attributes=True,
    ),
    "1.36": Conventions(
        provider="gen_ai.system",
        has_workflows=False,
        has_agent_ids=True,
        has_details=False,
        has_content_attributes=False,
    ),
}


def conversation_of(ctx: InvocationContext) -> str:
    """The id of a session among all sessions of a backend; it outlives the process if the session does.

    The session's own id is a name such as `main` in every notebook; so its first event has a part in it.
    """
    session = ctx.session
    if not (conversation := session.views.get(CONVERSATION)):
        # A run that reads only the newest events of a session does not know its first.
        is_whole = ctx.run_config.get_session_config is None
        first = (session.events[0].id if session.events else ctx.invocation_id) if is_whole else ""
        names = "\0".join((session.app_name, session.user_id, session.id, first))
        digest = blake2b(names.encode(errors="replace"), digest_size=6).hexdigest()
        conversation = session.views[CONVERSATION] = f"{session.id}-{digest}"
    return conversation


def provider_of(model: BaseLlm) -> str:
    """The model's provider: a well-known name, or the class's own without `Llm`."""
    provider = _provider_of(type(model))
    if provider == "gcp.gemini" and getattr(model, "client_kwargs", {}).get("vertexai"):
        return "gcp.vertex_ai"
    # litellm names models `provider/model`.
    return model.model.partition("/")[0] if provider == "lite" and "/" in model.model else provider


@lru_cache(maxsize=256)
def _provider_of(kind: type[BaseLlm]) -> str:
    name = next((_PROVIDERS[base.__name__] for base in kind.__mro__ if base.__name__ in _PROVIDERS), "")
    return name or kind.__name__.removesuffix("Llm").removesuffix("Model").lower()


def operation_of(provider: str) -> str:
    """`generate_content` for Google's API, `chat` for all others."""
    return "generate_content" if provider.startswith("gcp.") else "chat"


def request_attributes(model: BaseLlm, request: LlmRequest, conventions: Conventions, streams: bool) -> dict[str, Any]:
    """The settings of a request, as far as they are set, and its server."""
    attributes: dict[str, Any] = {}
    config = vars(request.config)
    for setting, name in _SETTINGS.items():
        if (value := config.get(setting)) is not None:
            # Gemini has top_k as a float, the conventions as an int.
            attributes[name] = int(value) if setting == "top_k" else value
    if (count := config.get("candidate_count")) not in (None, 1):
        attributes["gen_ai.request.choice.count"] = count
    if config.get("response_mime_type") == "application/json" or config.get("response_schema") is not None:
        attributes["gen_ai.output.type"] = "json"
    if streams and conventions.has_details:
        attributes["gen_ai.request.stream"] = True
    if _has_address(type(model)) and (address := getattr(model, "base_url", None)):
        attributes |= _server(address)
    return attributes


@lru_cache(maxsize=256)
def _has_address(kind: type[BaseLlm]) -> bool:
    # Asking pydantic for a field that a model has not costs more than all the rest.
    return "base_url" in kind.model_fields


@lru_cache(maxsize=256)
def _server(address: str) -> Mapping[str, Any]:
    try:
        parts = urlsplit(address)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:  # no address: the call itself will say so
        return {}
    if not parts.hostname:
        return {}
    return {"server.address": parts.hostname} | ({"server.port": port} if port else {})


def usage_attributes(usage: types.GenerateContentResponseUsageMetadata, conventions: Conventions) -> dict[str, int]:
    """Token counts. Input includes cached tokens and tool prompts, output includes thoughts."""
    thoughts, cached = usage.thoughts_token_count, usage.cached_content_token_count
    attributes: dict[str, int] = {}
    if usage.prompt_token_count is not None:
        # Gemini counts tool prompts beside the prompt, the conventions within the input.
        attributes["gen_ai.usage.input_tokens"] = usage.prompt_token_count + (usage.tool_use_prompt_token_count or 0)
    if usage.candidates_token_count is not None or thoughts is not None:
        # Gemini counts thoughts beside the candidates, the conventions within the output.
        attributes["gen_ai.usage.output_tokens"] = (usage.candidates_token_count or 0) + (thoughts or 0)
    if conventions.has_details and thoughts is not None:
        attributes["gen_ai.usage.reasoning.output_tokens"] = thoughts
    if conventions.has_details and cached is not None:
        attributes["gen_ai.usage.cache_read.input_tokens"] = cached
    return attributes


def finish_reason(reason: types.FinishReason | None, *, has_calls: bool) -> str | None:
    """A vendor-neutral finish reason. None: the service gave none."""
    if reason is None:
        return "tool_call" if has_calls else None
    # Gemini ends an answer with calls by STOP, too.
    if has_calls and reason.value == "STOP":
        return "tool_call"
    # IMAGE_SAFETY and others are the same refusals for pictures.
    if reason.value.removeprefix("IMAGE_") in _FILTERED:
        return "content_filter"
    return _FINISH_REASONS.get(reason.value, reason.value.lower())


def error_type(error: BaseException) -> str:
    """Class of an error, with few values: what a tool named, a service's status, or the name of the exception."""
    if isinstance(error, ToolExecutionError) and error.error_type:
        return error.error_type
    return str(error.status) if isinstance(error, ModelHTTPError) else type(error).__qualname__
