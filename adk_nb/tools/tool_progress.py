"""Runs tools that yield: values become progress events, and the last value is the result."""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from adk_nb import parts, types
from adk_nb.auth.secrets import redact
from adk_nb.events.event import Event
from adk_nb.events.event_actions import EventActions
from adk_nb.redaction import in_result
from adk_nb.runtime.branches import for_call
from adk_nb.runtime.context import ToolContext
from adk_nb.sessions.state import State
from adk_nb.tools.tool_result import convert_result

_MISSING = object()


async def run_with_progress(
    items: AsyncGenerator[Any, None], tool: str, context: ToolContext, *, as_responses: bool = False
) -> Any:
    """Run a tool that yields. Return its last value, or None if there is none; emit the values before it as progress.

    By default a value becomes a `partial` event, which is not stored, with the value as JSON in `output` and as text.
    An `Event(message=...)` is stored with its state writes, but not sent to a model; its `output`, if any, is a value.

    Args:
        items: The tool's generator.
        tool: The tool's name.
        context: Context of the call.
        as_responses: Store each value as an interim response to the call (`will_continue`); the model sees the latest.
    """
    result: Any = _MISSING
    emit = _emit_response if as_responses else _emit_progress
    async with aclosing(items):
        try:
            async for item in items:
                value: Any = item
                if isinstance(item, Event):
                    await _emit(context, tool, _own_event(item, context))
                    if item.output is None:
                        continue
                    value = item.output
                # One value behind: only the end of the generator shows which value was the last.
                await emit(context, tool, result)
                result = value
        except Exception:
            await emit(context, tool, result)
            raise
    return None if result is _MISSING else result


async def _emit(context: ToolContext, tool: str, event: Event | None) -> None:
    ctx = context.get_invocation_context()
    if event is None or ctx.emit is None:
        return
    event.author = tool
    event.invocation_id = ctx.invocation_id
    event.isolation_scope = ctx.isolation_scope
    event.branch = for_call(ctx.branch, tool, context.function_call_id)
    await ctx.emit(event)


async def _emit_progress(context: ToolContext, tool: str, value: Any) -> None:
    """Emit a value as progress, unless it is None."""
    if value is _MISSING or value is None:
        return
    response = _response(context, value, tool)
    output = response["result"] if response.keys() == {"result"} else response
    text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
    content = parts.content("model", [types.Part(text=text)])
    await _emit(context, tool, Event(partial=True, output=output, content=content))


async def _emit_response(context: ToolContext, tool: str, value: Any) -> None:
    """Emit a value as an interim response, unless it is None."""
    ctx = context.get_invocation_context()
    if value is _MISSING or value is None or ctx.emit is None:
        return
    part = parts.result(context.function_call_id, tool, _response(context, value, tool))
    if part.function_response:
        part.function_response.will_continue = True
    content = parts.content("user", [part])
    await ctx.emit(Event(author=context.agent_name, branch=ctx.branch, content=content))


def _response(context: ToolContext, value: Any, tool: str) -> dict[str, Any]:
    response = convert_result(value, tool).response
    if context.auth_credential:
        response = redact(response, context.auth_credential.secrets())
    return in_result(response)


def _own_event(event: Event, context: ToolContext) -> Event | None:
    """Reduce an event made by a tool to what a tool may write: text, media, files, state. None: nothing is left.

    Raises:
        ConfigurationError: It writes a value that the state cannot store.
    """
    content_parts = (event.content and event.content.parts) or []
    own_parts = [part for part in content_parts if not (part.function_call or part.function_response)]
    actions = EventActions(artifact_delta=event.actions.artifact_delta)
    ctx = context.get_invocation_context()
    state = State(ctx.session.state, actions.state_delta, ctx.state_schema, only_json=ctx.keeps_only_json)
    state.update(event.actions.state_delta)
    if not (own_parts or actions.state_delta or actions.artifact_delta):
        return None
    role = (event.content and event.content.role) or "user"
    return Event(
        content=parts.content(role, own_parts) if own_parts else None,
        actions=actions,
        partial=event.partial,
        custom_metadata=event.custom_metadata,
    )
