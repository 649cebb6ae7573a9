"""Events of a run as events of AG-UI, and a session as its messages."""

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from ag_ui.core import (
    AssistantMessage,
    EventType,
    FunctionCall,
    ReasoningEndEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    ReasoningStartEvent,
    StateDeltaEvent,
    StepFinishedEvent,
    StepStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCall,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
    ToolMessage,
    UserMessage,
)
from ag_ui.core import Interrupt as AgUiInterrupt

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.events.event_actions import DELETED, EventActions
from adk_nb.events.requests import REQUESTS
from adk_nb.redaction import hidden
from adk_nb.runtime.history import History
from adk_nb.runtime.interrupts import Interrupt, Kind

_REASONS: dict[Kind, str] = {"approval": "tool_call", "node_approval": "confirmation", "input": "input_required"}
"""AG-UI's own reasons; any other kind is `adk_nb:KIND`."""
_THOUGHT = "/thought"
"""Ends the id of the message with the thoughts of an event."""


class AgUiEvents:
    """Converts the events of one run to AG-UI's, in the order that its clients verify."""

    def __init__(self) -> None:
        self.error = ""
        """Why the run failed; empty: it did not."""
        self.error_code: str | None = None
        self._author = ""
        self._streaming: dict[str, str] = {}
        """Id of an unfinished message -> its text so far."""

    def feed(self, event: Event) -> Iterator[Any]:
        """The AG-UI events of the run's next event."""
        if event.author == "user":
            return
        yield from self._step(event.author)
        texts = {True: "", False: ""}
        for part in _parts(event):
            if part.text:
                texts[bool(part.thought)] += part.text
        for is_thought in (True, False):
            yield from self._text(event, texts[is_thought], is_thought)
        if event.partial:
            return
        yield from _calls(event)
        yield from _results(event)
        if event.actions.state_delta:
            yield StateDeltaEvent.model_validate({"type": EventType.STATE_DELTA, "delta": _patch(event.actions)})
        if event.error_code or event.error_message:
            self.error = hidden(event.error_message or str(event.error_code))
            self.error_code = str(event.error_code) if event.error_code else None

    def end(self) -> Iterator[Any]:
        """Close what is open."""
        for key in list(self._streaming):
            yield from self._close(key)
        yield from self._step("")

    def _step(self, author: str) -> Iterator[Any]:
        if author == self._author:
            return
        if self._author:
            yield StepFinishedEvent(type=EventType.STEP_FINISHED, step_name=self._author)
        if author:
            yield StepStartedEvent(type=EventType.STEP_STARTED, step_name=author)
        self._author = author

    def _text(self, event: Event, text: str, is_thought: bool) -> Iterator[Any]:
        key = event.id + _THOUGHT if is_thought else event.id
        before = self._streaming.get(key)
        # A complete event repeats the text of its partial ones.
        if not event.partial and before is not None:
            text = text.removeprefix(before) if text.startswith(before) else ""
        if text:
            if before is None:
                yield from _opened(key, is_thought)
            self._streaming[key] = (before or "") + text
            content: Any = ReasoningMessageContentEvent if is_thought else TextMessageContentEvent
            kind = EventType.REASONING_MESSAGE_CONTENT if is_thought else EventType.TEXT_MESSAGE_CONTENT
            yield content(type=kind, message_id=key, delta=text)
        if not event.partial:
            yield from self._close(key)

    def _close(self, key: str) -> Iterator[Any]:
        if self._streaming.pop(key, None) is None:
            return
        if key.endswith(_THOUGHT):
            yield ReasoningMessageEndEvent(type=EventType.REASONING_MESSAGE_END, message_id=key)
            yield ReasoningEndEvent(type=EventType.REASONING_END, message_id=key)
        else:
            yield TextMessageEndEvent(type=EventType.TEXT_MESSAGE_END, message_id=key)


def _opened(key: str, is_thought: bool) -> Iterator[Any]:
    if is_thought:
        yield ReasoningStartEvent(type=EventType.REASONING_START, message_id=key)
        yield ReasoningMessageStartEvent(type=EventType.REASONING_MESSAGE_START, message_id=key, role="reasoning")
    else:
        yield TextMessageStartEvent(type=EventType.TEXT_MESSAGE_START, message_id=key, role="assistant")


def _calls(event: Event) -> Iterator[Any]:
    for call in _tool_calls(event):
        key = call.id or ""
        yield ToolCallStartEvent(
            type=EventType.TOOL_CALL_START, tool_call_id=key, tool_call_name=call.name or "", parent_message_id=event.id
        )
        yield ToolCallArgsEvent(type=EventType.TOOL_CALL_ARGS, tool_call_id=key, delta=_json(call.args or {}))
        yield ToolCallEndEvent(type=EventType.TOOL_CALL_END, tool_call_id=key)


def _results(event: Event) -> Iterator[Any]:
    for response in _tool_results(event):
        yield ToolCallResultEvent(
            type=EventType.TOOL_CALL_RESULT,
            message_id=f"{event.id}/{response.id}",
            tool_call_id=response.id or "",
            content=_json(response.response or {}),
            role="tool",
        )


def _tool_calls(event: Event) -> list[types.FunctionCall]:
    """The calls of tools, without the requests that are interrupts."""
    return [call for call in event.get_function_calls() if call.name not in REQUESTS]


def _tool_results(event: Event) -> list[types.FunctionResponse]:
    """The results, without those that only say that a call waits, and without answers."""
    responses, actions = event.get_function_responses(), event.actions
    return [r for r in responses if r.name not in REQUESTS and not actions.is_placeholder_for(r.id)]


def _patch(actions: EventActions) -> list[dict[str, Any]]:
    """A change of the state as a JSON Patch: `add` writes over a key. Source: RFC 6902, section 4.1."""
    patch: list[dict[str, Any]] = []
    for key, value in actions.state_delta.items():
        path = "/" + key.replace("~", "~0").replace("/", "~1")
        is_deleted = value == DELETED
        patch.append({"op": "remove", "path": path} if is_deleted else {"op": "add", "path": path, "value": value})
    return patch


def messages_of(history: History) -> list[Any]:
    """The conversation as AG-UI's messages, oldest first."""
    messages: list[Any] = []
    for event in history.events:
        text = "".join(part.text for part in _parts(event) if part.text and not part.thought)
        calls = list(map(_call_of, _tool_calls(event)))
        if event.author == "user":
            messages += [UserMessage(id=event.id, role="user", content=text)] if text else []
        elif text or calls:
            messages.append(
                AssistantMessage(id=event.id, role="assistant", content=text or None, tool_calls=calls or None)
            )
        for response in _tool_results(event) if event.author != "user" else ():
            key = f"{event.id}/{response.id}"
            content = _json(response.response or {})
            messages.append(ToolMessage(id=key, role="tool", content=content, tool_call_id=response.id or ""))
    return messages


def _call_of(call: types.FunctionCall) -> ToolCall:
    function = FunctionCall(name=call.name or "", arguments=_json(call.args or {}))
    return ToolCall(id=call.id or "", type="function", function=function)


def interrupts_of(open_: Sequence[Interrupt]) -> list[AgUiInterrupt]:
    """Open interrupts as AG-UI's."""
    return [
        AgUiInterrupt(
            id=interrupt.id,
            reason=_REASONS.get(interrupt.kind, f"adk_nb:{interrupt.kind}"),
            message=interrupt.prompt or f"{', '.join(interrupt.names)} waits for an answer ({interrupt.kind})",
            tool_call_id=interrupt.call.id if interrupt.kind in ("approval", "long_running") else None,
            response_schema=interrupt.schema or None,
            expires_at=None
            if interrupt.expires_at is None
            else datetime.fromtimestamp(interrupt.expires_at, UTC).isoformat(),
        )
        for interrupt in open_
    ]


def _parts(event: Event) -> list[types.Part]:
    return (event.content and event.content.parts) or []


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
