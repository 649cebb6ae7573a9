"""What a tool yields while it runs becomes events; the last value is its result."""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from adk_nb import parts, types
from adk_nb.events.event import Event
from adk_nb.events.event_actions import EventActions
from adk_nb.runtime.context import ToolContext
from adk_nb.sessions.state import State
from adk_nb.tools.tool_result import told

_NOTHING = object()


async def last_of(items: AsyncGenerator[Any, None], tool: str, context: ToolContext) -> Any:
    """The result of a tool that yields: the last value, None if there is none. All before it is told as it comes.

    A value becomes an event that no history keeps (`partial`), with the value as JSON in `output` and in words as its
    text. An `Event(message=...)` is kept, with the state it writes; no model is told of it. Its `output`, if it has
    one, is a value.
    """
    result: Any = _NOTHING
    async with aclosing(items):
        try:
            async for item in items:
                value: Any = item
                if isinstance(item, Event):
                    await _tell(context, tool, _said(item, context))
                    if item.output is None:
                        continue
                    value = item.output
                await _tell(context, tool, _on_the_way(result, tool))
                result = value
        except Exception:
            await _tell(context, tool, _on_the_way(result, tool))
            raise
    return None if result is _NOTHING else result


async def _tell(context: ToolContext, tool: str, event: Event | None) -> None:
    within, here = context.get_invocation_context(), f"{tool}@{context.function_call_id}"
    if event is None or within.tell is None:
        return
    event.author = tool
    event.invocation_id = within.invocation_id
    event.isolation_scope = within.isolation_scope
    event.branch = f"{within.branch}.{here}" if within.branch else here
    await within.tell(event)


def _on_the_way(value: Any, tool: str) -> Event | None:
    """A value that is not the last. None: it says nothing."""
    if value is _NOTHING or value is None:
        return None
    response = told(value, tool).response
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
    State(within.session.state, actions.state_delta, within.state_schema).update(event.actions.state_delta)
    if not (said or actions.state_delta or actions.artifact_delta):
        return None
    role = (event.content and event.content.role) or "user"
    return Event(
        content=parts.content(role, said) if said else None,
        actions=actions,
        partial=event.partial,
        custom_metadata=event.custom_metadata,
    )
