"""Answers of a scripted model with the tokens that a service would count."""

from typing import Any

from adk_nb import types
from adk_nb.models import LlmResponse

FLASH = "gemini-2.5-flash"


def counted(*said: str | types.Part, model: str | None = FLASH, **tokens: int) -> LlmResponse:
    """An answer of 1,000,000 tokens in and 100,000 out, or of others: `input`, `output`, `cached`, `thoughts`."""
    asked, answered = tokens.get("input", 1_000_000), tokens.get("output", 100_000)
    thoughts: int | None = tokens.get("thoughts")
    parts: list[Any] = [types.Part(text=one) if isinstance(one, str) else one for one in said]
    return LlmResponse(
        content=types.Content(role="model", parts=parts),
        model_version=model,
        usage_metadata=types.GenerateContentResponseUsageMetadata(
            prompt_token_count=asked,
            candidates_token_count=answered,
            cached_content_token_count=tokens.get("cached"),
            thoughts_token_count=thoughts,
            total_token_count=asked + answered + (thoughts or 0),
        ),
    )
