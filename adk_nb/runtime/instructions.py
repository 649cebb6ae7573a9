"""Instruction templates: replace each `{key}` by a value of the session's state or an artifact."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic_core import to_json

from adk_nb.errors import StateKeyError, closest
from adk_nb.runtime.context import ReadonlyContext
from adk_nb.runtime.trace import current_trace

Artifacts = Mapping[str, str | None]
"""Artifact name -> text to insert; None if there is no such artifact."""
# `${key}` is for shells and other templates, and `\{key}` is escaped: neither is filled in.
_SPAN = re.compile(r"(?<![${\\])\{+[^{}]*\}+|\\(?P<escaped>\{+[^{}]*\}+)")
_SCOPES = ("app:", "user:", "temp:")
_ARTIFACT = "artifact."
_NO_ARTIFACTS: Artifacts = {}


def fill_in(template: str, state: Mapping[str, Any], agent: str, artifacts: Artifacts = _NO_ARTIFACTS) -> str:
    r"""`template` with each `{key}`, `{app:key}` and `{key?}` replaced by the state's value.

    Text is inserted unchanged, None as empty text, a dict or list as JSON. A key with `?` may be missing. Braces around
    other text stay, and `\{key}` becomes `{key}`. Inserted values are not scanned again.

    Args:
        template: The instruction as written.
        state: The session's state.
        agent: Name of the agent, for the error.
        artifacts: Text for each `{artifact.name}`.

    Raises:
        StateKeyError: A key without `?` is not in the state, or there is no such artifact.
    """

    def replace(span: re.Match[str]) -> str:
        if escaped := span["escaped"]:
            return escaped
        key, optional = _parse_placeholder(span)
        scope = next((prefix for prefix in _SCOPES if key.startswith(prefix)), "")
        if not key.removeprefix(scope).isidentifier():
            return span.group() if (name := _artifact_name(key)) is None else artifact(name, optional)
        if key in state:
            return _as_text(state[key])
        if optional:
            return ""
        near = closest(key, state)
        hint = f"did you mean {{{near}}}?" if near else f"set it, or write {{{key}?}} if it may be missing"
        raise StateKeyError(f"Context variable not found: `{key}` in agent {agent!r}; {hint}", key)

    def artifact(name: str, optional: bool) -> str:
        text = artifacts.get(name)
        if text is None and not optional:
            hint = f"save it, or write {{{_ARTIFACT}{name}?}} if it may be missing"
            raise StateKeyError(f"Artifact not found: `{name}` in agent {agent!r}; {hint}")
        return text or ""

    def pieces() -> Iterator[tuple[str, str]]:
        end = 0
        for span in _SPAN.finditer(template):
            value = replace(span)
            yield template[end : span.start()], ""
            yield value, "" if span["escaped"] or value == span.group() else span.group()
            end = span.end()
        yield template[end:], ""

    if "{" not in template:
        return template
    # Only a trace records which pieces were inserted.
    trace = current_trace.get()
    return trace.join_instruction(pieces()) if trace else _SPAN.sub(replace, template)


async def inject_session_state(template: str, readonly_context: ReadonlyContext) -> str:
    """Fill in a template from the session's state and artifacts, as `fill_in`; for instruction functions.

    An artifact's text is inserted unchanged, any other part as JSON.

    Raises:
        StateKeyError: A key or an artifact without `?` does not exist.
        ConfigurationError: It names an artifact, and the runner has no artifact service.
    """
    ctx = readonly_context
    spans = [span for span in _SPAN.finditer(template) if not span["escaped"]] if _ARTIFACT in template else ()
    names = {name for span in spans if (name := _artifact_name(_parse_placeholder(span)[0])) is not None}
    artifacts: dict[str, str | None] = {}
    for name in sorted(names):
        part = await ctx.load_artifact(name)
        artifacts[name] = part and part.text
        if part and part.text is None:
            artifacts[name] = part.model_dump_json(exclude_none=True, by_alias=True)
    return fill_in(template, ctx.session.state, ctx.agent_name, artifacts)


def _parse_placeholder(span: re.Match[str]) -> tuple[str, bool]:
    """The key in the braces, and True if it may be missing."""
    key = span.group().strip("{}").strip()
    return key.removesuffix("?"), key.endswith("?")


def _artifact_name(key: str) -> str | None:
    return key.removeprefix(_ARTIFACT) if len(key) > len(_ARTIFACT) and key.startswith(_ARTIFACT) else None


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    return to_json(value, fallback=str).decode() if isinstance(value, list | dict) else str(value)
