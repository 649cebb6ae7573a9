"""What a tool yields while it runs becomes events; the last value is its result."""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from adk_nb import parts, types
from adk_nb.auth.secrets import without
from adk_nb.events.event import Event
from adk_nb.events.event_actions import EventActions
from adk_nb.redaction import in_result
from adk_nb.runtime.branches import for_call
from adk_nb.runtime.context import ToolContext
from adk_nb.sessions.state import State
from adk_nb.tools.tool_result import told

_NOTHING = object()


async def last_of(items: AsyncGenerator[Any, None], tool: str, context: ToolContext, *, news: bool = False) -> Any:
    """The result of a tool that yields: the last value, None if there is none. All before it is told as it comes.

    A value becomes an event that no history keeps (`partial`), with the value as JSON in `output` and in words as its
    text. An `Event(message=...)` is kept, with the state it writes; no model is told of it. Its `output`, if it has
    one, is a value.

    Args:
        items: What the tool yields.
        tool: Its name.
        context: Of its call.
        news: A value becomes a response to the call that is not the last (`will_continue`), and is kept; the model sees
            the latest.
    """
    result: Any = _NOTHING
    tell = _tell_news if news else _tell_value
    async with aclosing(items):
        try:
            async for item in items:
                value: Any = item
                if isinstance(item, Event):
                    await _tell(context, tool, _said(item, context))
                    if item.output is None:
                        continue
                    value = item.output
                await tell(context, tool, result)
                result = value
        except Exception:
            await tell(context, tool, result)
            raise
    return None if result is _NOTHING else result


async def _tell(context: ToolContext, tool: str, event: Event | None) -> None:
    within = context.get_invocation_context()
    if event is None or within.tell is None:
        return
    event.author = tool
    event.invocation_id = within.invocation_id
    event.isolation_scope = within.isolation_scope
    event.branch = for_call(within.branch, tool, context.function_call_id)
    await within.tell(event)


async def _tell_value(context: ToolContext, tool: str, value: Any) -> None:
    """Tell a value that is not the last, unless it says nothing."""
    if value is not _NOTHING and value is not None:
        await _tell(context, tool, _on_the_way(context, value, tool))


async def _tell_news(context: ToolContext, tool: str, value: Any) -> None:
    within = context.get_invocation_context()
    if value is _NOTHING or value is None or within.tell is None:
        return
    part = parts.result(context.function_call_id, tool, _response(context, value, tool))
    if part.function_response:
        part.function_response.will_continue = True
    content = parts.content("user", [part])
    await within.tell(Event(author=context.agent_name, branch=within.branch, content=content))


def _response(context: ToolContext, value: Any, tool: str) -> dict[str, Any]:
    response = told(value, tool).response
    if context.auth_credential:
        response = without(response, context.auth_credential.secrets())
    return in_result(response)


def _on_the_way(context: ToolContext, value: Any, tool: str) -> Event:
    response = _response(context, value, tool)
    said = response["result"] if response.keys() == {"result"} else response
    words = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
    return Event(partial=True, output=said, content=parts.content("model", [types.Part(text=words)]))


def _said(event: Event, context: ToolContext) -> Event | None:
    """Of an event that a tool made, what is the tool's to say: words, media, files, state. None: nothing.

    Raises:
        ConfigurationError: It writes what the state cannot hold.
    """
    given = (event.content and event.content.parts) or []
    said = [part for part in given if not (part.function_call or part.function_response)]
    actions = EventActions(artifact_delta=event.actions.artifact_delta)
    within = context.get_invocation_context()
    state = State(within.session.state, actions.state_delta, within.state_schema, only_json=within.keeps_only_json)
    state.update(event.actions.state_delta)
    if not (said or actions.state_delta or actions.artifact_delta):
        return None
    role = (event.content and event.content.role) or "user"
    return Event(
        content=parts.content(role, said) if said else None,
        actions=actions,
        partial=event.partial,
        custom_metadata=event.custom_metadata,
    )
