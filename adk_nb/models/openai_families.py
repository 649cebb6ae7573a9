"""What each generation of OpenAI's models takes in a chat completion beside the messages: effort, sampling, tools.

What a model does not take, OpenAI answers with HTTP 400. Sources, as of November 2026:
https://developers.openai.com/api/docs/guides/latest-model (sampling only without reasoning);
https://learn.microsoft.com/en-us/javascript/api/@azure/ai-projects/reasoningeffort (the efforts of gpt-5.1);
https://github.com/openai/openai-openapi/issues/541 (gpt-5.4: no tools beside an effort);
https://github.com/BerriAI/litellm/pull/34569 (gpt-5.6: tools are taken with the effort `none` alone);
https://openrouter.ai/docs/cookbook/evaluate-and-optimize/model-migrations/gpt-6 (gpt-6-luna and gpt-6-sol take `none`);
https://github.com/bolna-ai/bolna/pull/852 (no `minimal` from gpt-5.1 on), /pull/1019 (gpt-6-astra takes no `none`).
"""

import logging
import re
from typing import Any

logger = logging.getLogger(__name__)

_NAME = re.compile(r"(?:^|[/.#])(?:gpt-(\d+)(?:\.(\d+))?|o(\d))(?:-(.+))?$")
"""`gpt-5.4-mini-2026-03-17`, `o4-mini`, `openai.gpt-6-luna`; not `gpt-4o`, which does not reason."""
_ALWAYS_REASON = ("gpt-6-astra", "gpt-6.1-sol")
_O_SERIES = (5, 0)
"""o1, o3 and o4-mini take what gpt-5 takes."""
_SAMPLING = ("temperature", "top_p", "logprobs", "top_logprobs")


def as_taken(question: dict[str, Any]) -> dict[str, Any]:
    """`question` without what its model, known by its name, would refuse."""
    model: str = question["model"]
    version = _version(model)
    if version is None:
        return question
    taken = dict(question)
    effort: str | None = taken.get("reasoning_effort")
    takes_none = version >= (5, 1) and not any(name in model for name in _ALWAYS_REASON)
    if version >= (5, 1) and effort == "minimal":
        taken["reasoning_effort"] = effort = "low"
    if takes_none and version >= (5, 4) and "tools" in taken:
        if effort not in (None, "none"):
            logger.warning("model %r takes no tools beside the effort %r and does not reason now", model, effort)
        taken["reasoning_effort"] = effort = "none"
    reasons_by_default = not takes_none or version >= (5, 5)
    if effort == "none" or (effort is None and not reasons_by_default):
        return taken
    return {name: value for name, value in taken.items() if name not in _SAMPLING}


def _version(model: str) -> tuple[int, int] | None:
    """None of a model that does not reason, or of another maker's."""
    found = _NAME.search(model.lower())
    if not found or (found[4] or "").startswith("chat"):
        return None
    version = (int(found[1]), int(found[2] or 0)) if found[1] else _O_SERIES
    return version if version >= (5, 0) else None
