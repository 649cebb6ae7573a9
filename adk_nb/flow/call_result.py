"""The result of one tool call: its function response, without secrets and within limits, and its journal record."""

import json
import logging
import mimetypes
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from adk_nb import parts, sync, types
from adk_nb.auth.auth_credential import redact
from adk_nb.events.event_actions import EventActions
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.redaction import in_result, without_known
from adk_nb.runtime.context import Context, call_state
from adk_nb.runtime.durable import DurableCall
from adk_nb.runtime.invocation_context import Decision
from adk_nb.sessions.state import storable_delta
from adk_nb.tools.media import MAX_MEDIA_BYTES, Media, with_base64, with_blobs
from adk_nb.tools.tool_result import MIME_TYPES, Piece, as_response, convert_result

MAX_DISPLAY_CHARS = 64 * 1024
"""Longest rendered result that an event stores; longer ones become artifacts."""
logger = logging.getLogger(__name__)

_UNSAFE_IN_FILENAME = re.compile(r"[^A-Za-z0-9_-]")


def result_text_part(response: types.FunctionResponse | None) -> types.Part | None:
    """A result as text for the user: a string as it is, anything else as JSON; None for errors."""
    result: Any = (response and response.response) or {}
    if "error" in result:
        return None
    result = result["result"] if result.keys() == {"result"} else result
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    return types.Part(text=text) if text else None


async def result_part(
    call: types.FunctionCall, result: Any, context: Context, confirmation: ToolConfirmation | None
) -> types.Part:
    """The function response of a call. Sets `call_state(context).display` to the rendered result, if there is one."""
    name = call.name or ""
    filename = f"{name}-{call.id}"
    response, full_result, media, display = convert_result(with_blobs(result), name)
    # The media that fit into the limit; for the others, the JSON of the result names the artifact.
    remaining_bytes, sent_media = MAX_MEDIA_BYTES, list[Media]()
    for number, item in enumerate(media, 1):
        if len(item.data) <= remaining_bytes:
            remaining_bytes -= len(item.data)
            sent_media.append(item)
            item.placeholder["part"] = len(sent_media)
        else:
            del item.placeholder["part"]
            item.placeholder["note"] = f"omitted: the media of one result are limited to {MAX_MEDIA_BYTES} bytes"
            item.placeholder |= await _save_artifact(context, f"{filename}-{number}", item.mime_type, item.data)
    if full_result:
        hide = partial(_redact, context)
        response |= await _save_artifact(
            context, filename, "application/json", lambda: hide(full_result().decode()).encode()
        )
    if context.auth_credential:
        response = redact(response, context.auth_credential.secrets())
    response = in_result(response)
    if confirmation and confirmation.confirmed and confirmation.args is not None:
        key = "approval_note" if "note" in response else "note"
        response |= as_response(
            {key: f"a person changed the arguments before approving them, to {confirmation.args}"}, name
        )
    if display:
        call_state(context).display = shown = list[Piece]()
        for number, piece in enumerate(display, 1):
            piece = _redact(context, piece)
            if len(piece.get("text", "")) > MAX_DISPLAY_CHARS:
                kind, text = piece["kind"], piece["text"]
                artifact_name = f"{filename}-shown-{number}"
                artifact = await _save_artifact(context, artifact_name, MIME_TYPES[kind], text.encode())
                piece = {"kind": kind, "chars": len(text), **artifact}
            shown.append(piece)
    if sent_media:
        # After the redaction, which else would search megabytes of base64.
        response = with_base64(response, sent_media)
    part = parts.result(call.id, name, response)
    if sent_media and part.function_response:
        part.function_response.parts = [item.part() for item in sent_media]
    return part


def _redact(context: Context, value: Any) -> Any:
    """Remove secrets from text or JSON."""
    return without_known(redact(value, context.auth_credential.secrets()) if context.auth_credential else value)


async def _save_artifact(
    context: Context, name: str, mime_type: str, data: bytes | Callable[[], bytes]
) -> dict[str, Any]:
    """Save data as an artifact. Returns its name and version; {} if there is no service, or it failed."""
    if not context.get_invocation_context().artifact_service:
        return {}
    filename = f"tool_results/{_UNSAFE_IN_FILENAME.sub('_', name)[:100]}{mimetypes.guess_extension(mime_type) or ''}"
    try:
        content = data if isinstance(data, bytes) else await sync.blocking(data, thread=True)
        part = types.Part(inline_data=types.Blob(data=content, mime_type=mime_type))
        return {"artifact": filename, "version": await context.save_artifact(filename, part)}
    except Exception as error:  # the tool has run: its result still goes to the model
        logger.warning("the whole result of a tool was not saved as %r: %s", filename, error)
        return {}


@dataclass
class CallResult:
    """The result of one tool call, before it is merged with the other results of its step."""

    part: types.Part | None
    """The function response; None if the result comes later, from outside the run."""
    actions: EventActions
    is_placeholder: bool = False
    """The tool has not run: the call waits for an approval or a credential."""
    decision: Decision | None = None
    """The approver's decision on the call, if there was one."""
    is_interim: bool = False
    """The part is an interim result; the model is asked only after the final one."""
    text_part: types.Part | None = None
    """The result as text for the user, where the model does not summarize it."""
    call_id: str | None = None
    """Id of the call."""
    failed_at: str | None = None
    """Cell and line in which the tool raised; see `CallState.failed_at`."""
    repeated: int = 0
    """See `CallState.attempt_in_doubt`."""
    display: list[dict[str, Any]] | None = None
    """The result rendered for the user; see `tools.tables`."""
    nested_usage: list[dict[str, Any]] | None = None
    """See `CallState.nested_usage`."""
    same_call: dict[str, Any] | None = None
    """See `calls.SAME_CALL`."""
    ran_with: str | None = None
    """See `calls.RAN_WITH`."""
    is_not_run: bool = False
    """See `calls.NOT_RUN`."""
    has_nested_interrupt: bool = False
    """An interrupt is open inside the tool, which is called again once that is answered."""
    is_task_result: bool = False
    """The tool ran a task; the author of its result is `user`."""
    task_output: tuple[Any] | None = None
    """The agent's output in a tuple of one, if this call completes its task."""
    event_id: str | None = None
    """Id reserved for the result's event, where the session has a journal."""

    @classmethod
    def of(cls, context: Context, part: types.Part | None, **fields: Any) -> "CallResult":
        """The result of the call of `context`, with what its tool and the runtime noted there."""
        state = call_state(context)
        return cls(
            part,
            context.actions,
            call_id=context.function_call_id,
            failed_at=state.failed_at,
            repeated=state.attempt_in_doubt,
            display=state.display,
            nested_usage=state.nested_usage,
            same_call=state.same_call,
            ran_with=state.ran_with,
            task_output=state.task_output,
            **fields,
        )


async def save_result(durable: DurableCall | None, result: CallResult) -> CallResult:
    """Return `result` once it is in the journal."""
    if not (durable and durable.attempt):
        return result
    result.event_id = durable.event_id
    # Without `temp:` keys, which end with their run.
    actions = result.actions.model_copy(update={"state_delta": storable_delta(result.actions.state_delta)})
    await durable.finish(
        {  # these keys are stored, so they stay as they are
            "part": result.part and result.part.model_dump(mode="json", exclude_none=True),
            "words": result.text_part and result.text_part.text,
            "actions": actions.model_dump(mode="json", exclude_defaults=True, exclude_none=True),
            "asks": bool(actions.requested_tool_confirmations or actions.requested_auth_configs),
            "id": result.call_id,
            "failed_at": result.failed_at,
            "repeated": result.repeated,
            "shown": result.display,
            "usage": result.nested_usage,
            "same_call": result.same_call,
            "ran_with": result.ran_with,
            "not_run": result.is_not_run,
            "pauses": result.is_interim,
            "hands_back": result.is_task_result,
            "finished": result.task_output and list(result.task_output),
        }
    )
    return result


def result_from_record(record: dict[str, Any], event_id: str | None) -> CallResult:
    """Restore the result of a call whose run was interrupted before its event was stored."""
    return CallResult(
        record["part"] and types.Part.model_validate(record["part"]),
        EventActions.model_validate(record["actions"]),
        is_interim=record["pauses"],
        text_part=record["words"] and parts.text_part(record["words"]),
        call_id=record["id"],
        failed_at=record["failed_at"],
        repeated=record.get("repeated", 0),
        display=record.get("shown"),
        nested_usage=record.get("usage"),
        same_call=record.get("same_call"),
        ran_with=record.get("ran_with"),
        is_not_run=record.get("not_run", False),
        is_task_result=record["hands_back"],
        task_output=record["finished"] and (record["finished"][0],),
        event_id=event_id,
    )
