"""What each family of Claude models takes beside a question: how it thinks, sampling, a forced choice of a tool.

What a model does not take, Anthropic answers with HTTP 400. Sources, as of November 2026, all under
https://platform.claude.com/docs/en: build-with-claude/thinking, /extended-thinking, /adaptive-thinking, /effort and
/thinking-tool-workflows; models/{opus,sonnet,haiku}-5-5/migration-guide and models/opus-5/migration-guide;
about-claude/models/migration-guide (Opus 4.7: no sampling, no budget). Opus 4.8 with a forced choice:
https://github.com/langchain-ai/langchain-aws/pull/1141.
"""

import re
from dataclasses import dataclass
from typing import Literal

MIN_BUDGET = 1024
"""The least `budget_tokens`. Source: build-with-claude/extended-thinking."""

_ID = re.compile(r"claude-(?:(\d)(?:[-.](\d{1,2}))?-)?([a-z]+)(?:-(\d{1,2})(?:[-.](\d{1,2}))?(?!\d))?")
"""`claude-opus-4-5-20251101`, `anthropic.claude-sonnet-4-6`, `claude-3-7-sonnet-latest`, `claude-mythos-preview`."""


@dataclass(frozen=True, kw_only=True)
class Family:
    """Models that take the same settings."""

    thinking: Literal["none", "budget", "adaptive", "both"]
    """`budget`: `{"type": "enabled", "budget_tokens": N}` alone. `adaptive`: `{"type": "adaptive"}` alone."""
    off: Literal["disabled", "between_tools"] | None = "disabled"
    """The type that turns thinking off; None if it is always on."""
    effort: bool = True
    """It takes `output_config.effort`."""
    sampling: bool = False
    """It takes `temperature`, `top_p` and `top_k` when it does not think."""
    forced: Literal["always", "unless thinking", "never"] = "always"
    """When it takes a `tool_choice` of `any` or `tool`."""


_WITHOUT_THINKING = Family(thinking="none", effort=False, sampling=True)
_BUDGET = Family(thinking="budget", effort=False, sampling=True, forced="unless thinking")
_OPUS_4_5 = Family(thinking="budget", sampling=True, forced="unless thinking")
_4_6 = Family(thinking="adaptive", sampling=True, forced="unless thinking")
_OPUS_4_7 = Family(thinking="adaptive", forced="unless thinking")
_5 = Family(thinking="adaptive")
_ALWAYS_ON = Family(thinking="adaptive", off=None)
_SONNET_5_5 = Family(thinking="adaptive", off="between_tools", forced="never")
_NEWEST = Family(thinking="adaptive", off=None, forced="never")
_OTHER = Family(thinking="both", sampling=True, forced="unless thinking")
"""Of a server that speaks as Anthropic's does, under a name of its own."""

_FAMILIES: dict[str, list[tuple[tuple[int, int], Family]]] = {
    "opus": [
        ((3, 0), _WITHOUT_THINKING),
        ((4, 0), _BUDGET),
        ((4, 5), _OPUS_4_5),
        ((4, 6), _4_6),
        ((4, 7), _OPUS_4_7),
        ((4, 8), _5),
        ((5, 5), _NEWEST),
    ],
    "sonnet": [
        ((3, 0), _WITHOUT_THINKING),
        ((3, 7), _BUDGET),
        ((4, 6), _4_6),
        ((5, 0), _5),
        ((5, 5), _SONNET_5_5),
        ((5, 6), _NEWEST),
    ],
    "haiku": [((3, 0), _WITHOUT_THINKING), ((4, 5), _BUDGET), ((5, 0), _5), ((5, 6), _NEWEST)],
    "fable": [((5, 0), _ALWAYS_ON), ((5, 1), _NEWEST)],
    "mythos": [((5, 0), _ALWAYS_ON), ((5, 1), _NEWEST)],
}
"""For each line of models from which version on, oldest first. A later version takes what every model takes."""


def family_of(model: str) -> Family:
    """The family of `model`, by its id at Anthropic, Bedrock, Vertex AI or a gateway."""
    found = _ID.search(model.lower())
    if not found:
        return _OTHER
    families = _FAMILIES.get(found[3])
    major, minor = found[1] or found[4], found[2] or found[5]
    if families is None or major is None:
        return _NEWEST
    version = (int(major), int(minor or 0))
    return next((family for since, family in reversed(families) if version >= since), families[0][1])
