"""The result of a call as the part that a model gets: JSON without secrets, media within limits."""

import json
import logging
import mimetypes
import re
from collections.abc import Callable
from functools import partial
from typing import Any

from adk_nb import parts, sync, types
from adk_nb.auth.secrets import redact
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.redaction import in_result, without_known
from adk_nb.runtime.context import Context
from adk_nb.tools.content_blocks import with_base64, with_blobs
from adk_nb.tools.media import MAX_MEDIA_BYTES, Media
from adk_nb.tools.previews import MIME_TYPES, Piece
from adk_nb.tools.tool_result import as_response, convert_result

MAX_SHOWN_CHARS = 64 * 1024
"""Of markup that an event keeps for a person to see."""
logger = logging.getLogger(__name__)

_NO_FILE_NAME = re.compile(r"[^A-Za-z0-9_-]")


def in_words(response: types.FunctionResponse | None) -> types.Part | None:
    """A result as it is said, if it is one: bare words as they are, anything else as JSON."""
    said: Any = (response and response.response) or {}
    if "error" in said:
        return None
    said = said["result"] if said.keys() == {"result"} else said
    text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
    return types.Part(text=text) if text else None


async def as_part(
    call: types.FunctionCall, result: Any, context: Context, decided: ToolConfirmation | None
) -> types.Part:
    """A result as the model gets it."""
    name = call.name or ""
    response, whole, media, shown = convert_result(with_blobs(result), name)
    pieces = await _within_limit(context, f"{name}-{call.id}", media) if media else []
    if whole:
        hide = partial(_without_secrets, context)
        response |= await _kept(
            context, f"{name}-{call.id}", "application/json", lambda: hide(whole().decode()).encode()
        )
    if context.auth_credential:
        response = redact(response, context.auth_credential.secrets())
    response = in_result(response)
    if decided and decided.confirmed and decided.args is not None:
        key = "approval_note" if "note" in response else "note"
        response |= as_response({key: f"a person changed the arguments before approving them, to {decided.args}"}, name)
    if shown:
        context.display = await _to_be_shown(context, f"{name}-{call.id}", shown)
    if pieces:
        response = with_base64(response, pieces)
    part = parts.result(call.id, name, response)
    if pieces and part.function_response:
        part.function_response.parts = [piece.part() for piece in pieces]
    return part


async def _within_limit(context: Context, name: str, media: list[Media]) -> list[Media]:
    """The pieces that go to the model; for the others the JSON of the result says where they are."""
    room, sent = MAX_MEDIA_BYTES, list[Media]()
    for number, piece in enumerate(media, 1):
        if len(piece.data) <= room:
            room -= len(piece.data)
            sent.append(piece)
            piece.placeholder["part"] = len(sent)
            continue
        del piece.placeholder["part"]
        piece.placeholder["note"] = f"left out: over the limit of {MAX_MEDIA_BYTES} bytes for the media of a result"
        piece.placeholder |= await _kept(context, f"{name}-{number}", piece.mime_type, piece.data)
    return sent


async def _to_be_shown(context: Context, name: str, pieces: list[Piece]) -> list[Piece]:
    """What the event keeps for a person to see; of what is too large for it, where it is."""
    shown = list[Piece]()
    for number, piece in enumerate(pieces, 1):
        piece = _without_secrets(context, piece)
        if len(piece.get("text", "")) > MAX_SHOWN_CHARS:
            kind = piece["kind"]
            held = await _kept(context, f"{name}-shown-{number}", MIME_TYPES[kind], piece["text"].encode())
            piece = {"kind": kind, "chars": len(piece["text"]), **held}
        shown.append(piece)
    return shown


def _without_secrets(context: Context, value: Any) -> Any:
    """Text or JSON."""
    return without_known(redact(value, context.auth_credential.secrets()) if context.auth_credential else value)


async def _kept(context: Context, name: str, mime_type: str, data: bytes | Callable[[], bytes]) -> dict[str, Any]:
    """Where a piece of a result can be read that the model does not get; nothing if it is not kept."""
    if not context.get_invocation_context().artifact_service:
        return {}
    filename = f"tool_results/{_NO_FILE_NAME.sub('_', name)[:100]}{mimetypes.guess_extension(mime_type) or ''}"
    try:
        made = data if isinstance(data, bytes) else await sync.blocking(data, thread=True)
        part = types.Part(inline_data=types.Blob(data=made, mime_type=mime_type))
        return {"artifact": filename, "version": await context.save_artifact(filename, part)}
    except Exception as error:  # the tool has run: its result is not lost because a copy of it is
        logger.warning("the whole result of a tool was not kept as %r: %s", filename, error)
        return {}
