"""Facts about vendors and their models, as of November 2026, each with its source; stated nowhere else.

A version later than all rows of its line is treated like the newest of them, an unknown line of models like the
vendor's row without a line.
"""

import re
from dataclasses import dataclass, replace
from typing import Literal

_CLAUDE = "https://platform.claude.com/docs/en/"


@dataclass(frozen=True, kw_only=True)
class Vendor:
    """A vendor of models."""

    name: str
    patterns: tuple[str, ...]
    """Regular expressions for the names of its models."""
    default_model: str
    """Used if only a key is given: a small stable model that takes tools through the API of our adapter."""
    proposed: tuple[str, ...]
    """Other models to suggest for a mistyped name."""
    key_variables: tuple[str, ...]
    """Environment variables; the first that is set is used."""
    key_page: str
    """The page where keys are created."""
    package: str = ""
    """The client module, and the extra that installs it. Empty: it is a dependency of this package."""
    source: str
    """The page with shutdown dates of models, by which the default was chosen."""


GOOGLE = Vendor(
    name="gemini",
    patterns=(
        r"(models/)?gemini-.*",
        r"model-optimizer-.*",
        r"projects/.+/locations/.+/endpoints/.+",
        r"projects/.+/locations/.+/publishers/google/models/gemini.+",
    ),
    default_model="gemini-3.5-flash-lite",
    proposed=("gemini-3.8-flash",),
    key_variables=("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    key_page="https://aistudio.google.com/apikey",
    # gemini-2.5-flash: 1 December 2026, routed to gemini-3.5-flash-lite at the same price.
    source="https://ai.google.dev/gemini-api/docs/deprecations",
)
OPENAI = Vendor(
    name="openai",
    patterns=(r"gpt-.*", r"chatgpt-.*", r"o\d.*", r"https?://[^#]+/v1/?(#.+)?"),
    default_model="gpt-6-luna",
    proposed=("gpt-6.1-terra",),
    key_variables=("OPENAI_API_KEY",),
    key_page="https://platform.openai.com/api-keys",
    package="openai",
    source="https://developers.openai.com/api/docs/deprecations",  # gpt-5-mini: 11 December 2026
)
ANTHROPIC = Vendor(
    name="anthropic",
    patterns=(r"claude-.*",),
    # claude-sonnet-5-5 costs the same and refuses a forced tool, and thoughts behind an instruction that changed.
    default_model="claude-sonnet-5",
    proposed=("claude-opus-5-5", "claude-haiku-5-5"),
    key_variables=("ANTHROPIC_API_KEY",),
    key_page="https://console.anthropic.com/settings/keys",
    package="anthropic",
    source=_CLAUDE + "about-claude/model-deprecations",  # claude-sonnet-4-5: 30 November 2026
)
VENDORS = (GOOGLE, OPENAI, ANTHROPIC)
"""In the order in which their keys are looked up."""

GEMINI_SERVICE_TOOLS = ("google_search", "url_context", "google_maps")
"""Fields of types.Tool that the Gemini API runs itself. Source: https://ai.google.dev/gemini-api/docs/tools."""
VERTEX_SERVICE_TOOLS = ("enterprise_web_search", "retrieval")
"""Those of Vertex AI alone. Source: google-genai, which refuses to send them to the Gemini API."""
MIN_THINKING_BUDGET = 1024
"""Minimum of Claude's `budget_tokens`. Source: build-with-claude/extended-thinking."""


@dataclass(frozen=True, kw_only=True)
class Family:
    """Models of one line, from a version on, that take the same settings. Other settings are answered with HTTP 400."""

    vendor: Literal["gemini", "openai", "anthropic"]
    line: str
    """`opus`, `gpt`; the name of a model with rules of its own; empty: all others of the vendor."""
    since: tuple[int, int] = (0, 0)
    thinking: Literal["none", "budget", "adaptive", "both"] = "adaptive"
    """Anthropic's `thinking`: `{"type": "enabled", "budget_tokens": N}`, `{"type": "adaptive"}`, or either."""
    thinking_off: Literal["disabled", "between_tools"] | None = "disabled"
    """Anthropic's type that turns thinking off; None if it is always on."""
    thinks_by_default: bool = True
    minimal_effort: bool = True
    """It takes the effort `minimal` (OpenAI)."""
    effort: bool = True
    """It takes an effort at all (Anthropic)."""
    sampling: Literal["always", "unless thinking", "never"] = "always"
    """When it takes `temperature`, `top_p` and similar settings."""
    tools: Literal["always", "unless thinking"] = "always"
    responses: bool = False
    """It reasons beside tools in the Responses API only, and is asked there (OpenAI)."""
    forced_tool: Literal["always", "unless thinking", "never"] = "always"
    """When a tool call can be forced."""
    media_in_results: bool = True
    """Reads images within a function response."""
    service_tools: bool = True
    """Its service searches, and runs the code that it writes."""
    text_is_realtime: bool = False
    """In a live conversation, text is sent as realtime input."""
    min_cached_tokens: int = 0
    """Minimum length of an explicit cache, in tokens."""
    source: str


# ---- Claude

_CLAUDE_3 = Family(
    vendor="anthropic",
    line="",
    thinking="none",
    effort=False,
    sampling="unless thinking",
    source=_CLAUDE + "build-with-claude/extended-thinking",
)
_CLAUDE_4 = replace(_CLAUDE_3, thinking="budget", forced_tool="unless thinking")
_OPUS_4_5 = replace(_CLAUDE_4, effort=True, source=_CLAUDE + "build-with-claude/effort")
_CLAUDE_4_6 = replace(_OPUS_4_5, thinking="adaptive", source=_CLAUDE + "build-with-claude/adaptive-thinking")
_OPUS_4_7 = replace(_CLAUDE_4_6, sampling="never", source=_CLAUDE + "about-claude/models/migration-guide")
_OPUS_4_8 = replace(_OPUS_4_7, forced_tool="always", source="https://github.com/langchain-ai/langchain-aws/pull/1141")
_CLAUDE_5 = replace(_OPUS_4_8, source=_CLAUDE + "models/opus-5/migration-guide")
_ALWAYS_THINKS = replace(_CLAUDE_5, thinking_off=None, source=_CLAUDE + "build-with-claude/adaptive-thinking")
_SONNET_5_5 = replace(
    _CLAUDE_5, thinking_off="between_tools", forced_tool="never", source=_CLAUDE + "models/sonnet-5-5/migration-guide"
)
_CLAUDE_5_5 = replace(_ALWAYS_THINKS, forced_tool="never", source=_CLAUDE + "models/opus-5-5/migration-guide")

# ---- OpenAI

_GPT_5 = Family(
    vendor="openai",
    line="",
    sampling="unless thinking",
    source="https://developers.openai.com/api/docs/guides/latest-model",
)
_GPT_5_1 = replace(
    _GPT_5,
    minimal_effort=False,
    thinks_by_default=False,
    # The efforts; and https://github.com/bolna-ai/bolna/pull/852 (no `minimal`).
    source="https://learn.microsoft.com/en-us/javascript/api/@azure/ai-projects/reasoningeffort",
)
_GPT_5_4 = replace(
    _GPT_5_1,
    tools="unless thinking",
    responses=True,
    source="https://github.com/openai/openai-openapi/issues/541",
)
_GPT_5_5 = replace(_GPT_5_4, thinks_by_default=True, source="https://github.com/BerriAI/litellm/pull/34569")
_GPT_6_ASTRA = replace(_GPT_5_1, thinks_by_default=True, source="https://github.com/bolna-ai/bolna/pull/1019")

# ---- Gemini

_GEMINI_1 = Family(
    vendor="gemini",
    line="",
    media_in_results=False,
    service_tools=False,
    source="https://ai.google.dev/gemini-api/docs/models",
)
_GEMINI_2 = replace(_GEMINI_1, service_tools=True, source="https://ai.google.dev/gemini-api/docs/tools")
_GEMINI_2_5 = replace(_GEMINI_2, min_cached_tokens=2048, source="https://ai.google.dev/gemini-api/docs/caching")
_GEMINI_3 = replace(
    _GEMINI_2_5,
    media_in_results=True,  # before: https://github.com/google-gemini/gemini-cli/issues/19436
    text_is_realtime=True,  # https://ai.google.dev/gemini-api/docs/live-guide
    min_cached_tokens=4096,
)

FAMILIES = (
    *(replace(_CLAUDE_3, line=line) for line in ("opus", "sonnet", "haiku")),
    replace(_CLAUDE_4, line="opus", since=(4, 0)),
    replace(_OPUS_4_5, line="opus", since=(4, 5)),
    replace(_CLAUDE_4_6, line="opus", since=(4, 6)),
    replace(_OPUS_4_7, line="opus", since=(4, 7)),
    replace(_OPUS_4_8, line="opus", since=(4, 8)),
    replace(_CLAUDE_5, line="opus", since=(5, 0)),
    replace(_CLAUDE_5_5, line="opus", since=(5, 5)),
    replace(_CLAUDE_4, line="sonnet", since=(3, 7)),
    replace(_CLAUDE_4_6, line="sonnet", since=(4, 6)),
    replace(_CLAUDE_5, line="sonnet", since=(5, 0)),
    replace(_SONNET_5_5, line="sonnet", since=(5, 5)),
    replace(_CLAUDE_5_5, line="sonnet", since=(5, 6)),
    replace(_CLAUDE_4, line="haiku", since=(4, 5)),
    replace(_CLAUDE_5, line="haiku", since=(5, 0)),
    replace(_CLAUDE_5_5, line="haiku", since=(5, 6)),
    *(replace(_ALWAYS_THINKS, line=line) for line in ("fable", "mythos")),
    *(replace(_CLAUDE_5_5, line=line, since=(5, 1)) for line in ("fable", "mythos")),
    replace(_CLAUDE_5_5, line=""),
    replace(_GPT_5, line="o"),  # o1, o3 and o4-mini take what gpt-5 takes
    replace(_GPT_5, line="gpt", since=(5, 0)),
    replace(_GPT_5_1, line="gpt", since=(5, 1)),
    replace(_GPT_5_4, line="gpt", since=(5, 4)),
    replace(_GPT_5_5, line="gpt", since=(5, 5)),
    *(replace(_GPT_6_ASTRA, line=name) for name in ("gpt-6-astra", "gpt-6.1-sol")),
    replace(_GEMINI_1, line="gemini"),
    replace(_GEMINI_2, line="gemini", since=(2, 0)),
    replace(_GEMINI_2_5, line="gemini", since=(2, 5)),
    replace(_GEMINI_3, line="gemini", since=(3, 0)),
)
"""Of each line the oldest first."""
_FALLBACKS = {
    # A server that speaks as Anthropic's does, under a name of its own.
    "anthropic": replace(_CLAUDE_4_6, thinking="both", source=_CLAUDE + "build-with-claude/extended-thinking"),
    # gpt-4o, which does not reason, and models of other makers.
    "openai": Family(vendor="openai", line="", source="https://platform.openai.com/docs/api-reference/chat/create"),
    "gemini": Family(vendor="gemini", line="", source="https://ai.google.dev/api/generate-content"),
}

_CLAUDE_NAME = re.compile(
    r"claude-(?:(?P<major>\d)(?:[-.](?P<minor>\d{1,2}))?-)?(?P<line>[a-z]+)"
    r"(?:-(?P<major_>\d{1,2})(?:[-.](?P<minor_>\d{1,2}))?(?!\d))?"
)
"""`claude-opus-4-5-20251101`, `anthropic.claude-sonnet-4-6`, `claude-3-7-sonnet-latest`, `claude-mythos-preview`."""
_OPENAI_NAME = re.compile(r"(?:^|[/.#])(?P<line>gpt-|o)(?P<major>\d+)(?:\.(?P<minor>\d+))?(?:-(?!chat).+)?$")
"""`gpt-5.4-mini-2026-03-17`, `o4-mini`, `openai.gpt-6-luna`; not `gpt-4o`, which does not reason."""
_GEMINI_NAME = re.compile(r"(?P<line>gemini)-(?P<major>\d+)(?:\.(?P<minor>\d+))?")


def claude_family(model: str) -> Family:
    """The family of `model`, by its id at Anthropic, Bedrock, Vertex AI or a gateway."""
    if not (name := _CLAUDE_NAME.search(model.lower())):
        return _FALLBACKS["anthropic"]
    major, minor = name["major"] or name["major_"], name["minor"] or name["minor_"]
    return _family("anthropic", name["line"] if major else "", major, minor)


def openai_family(model: str) -> Family:
    """The family of `model`, by its id at OpenAI, Azure, Bedrock or a gateway."""
    if not (name := _OPENAI_NAME.search(model.lower())):
        return _FALLBACKS["openai"]
    exact = next((row for row in FAMILIES if row.vendor == "openai" and "-" in row.line and row.line in model), None)
    return exact or _family("openai", name["line"].rstrip("-"), name["major"], name["minor"])


def gemini_family(model: str) -> Family:
    """The family of `model`, by its id at the Gemini API or Vertex AI."""
    name = _GEMINI_NAME.search(model.lower())
    return _family("gemini", "gemini", name["major"], name["minor"]) if name else _FALLBACKS["gemini"]


def _family(vendor: str, line: str, major: str | None, minor: str | None) -> Family:
    version = (int(major or 0), int(minor or 0))
    rows = [row for row in FAMILIES if row.vendor == vendor]
    matches = [row for row in rows if row.line == line and row.since <= version]
    if matches:
        return matches[-1]
    # An unknown line, or a version before the first row of its line.
    return next((row for row in rows if not row.line), _FALLBACKS[vendor])
