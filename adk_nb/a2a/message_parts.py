"""Parts of a message: ours as A2A's, and A2A's as ours.

Text, files and data are what the protocol has. Function calls and responses travel as data with ADK's metadata.
"""

import mimetypes
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, cast

from pydantic import ValidationError
from pydantic_core import from_json, to_json

from adk_nb import types
from adk_nb.a2a.protocol import EXTRA, FUNCTION_CALL, FUNCTION_RESPONSE, THOUGHT, TYPE, a2a_types, metadata_of
from adk_nb.errors import InputError
from adk_nb.lazy import require

_JSON = "application/json"
_BYTES = "application/octet-stream"


# ---- ours as A2A's


def visible_parts(content_parts: Iterable[types.Part]) -> list[Any]:
    """The parts that a user sees, as A2A's: text and files, no thoughts, calls and code."""
    sent = [to_a2a_part(part) for part in content_parts if not part.thought]
    return [part for part in sent if part is not None]


def to_a2a_part(part: types.Part) -> Any | None:
    """A text or a file as an A2A part; JSON files are data. None: it is neither."""
    a2a = a2a_types()
    if part.text:
        return a2a.Part(text=part.text)
    if (blob := part.inline_data) and blob.data is not None:
        if blob.mime_type == _JSON:
            with suppress(ValueError):
                # `null` goes as a file: readers take `data: null` for a part without content.
                if (value := from_json(blob.data)) is not None:
                    data = data_part(value)
                    data.filename = blob.display_name or ""
                    return data
        # A2A 1.0: a part is one of text, raw, url and data; raw is base64 on the wire.
        return a2a.Part(raw=blob.data, media_type=blob.mime_type or _BYTES, filename=blob.display_name or "")
    if (file := part.file_data) and file.file_uri:
        return a2a.Part(url=file.file_uri, media_type=file.mime_type or "", filename=file.display_name or "")
    return None


def data_part(value: Any, **metadata: Any) -> Any:
    """JSON as an A2A part; numbers too large for the protocol's floats are sent as text."""
    json_format = require("google.protobuf.json_format", package=EXTRA)
    # protobuf's Value has doubles alone: a whole number above 2**53 would lose digits.
    exact = require("a2a.utils.proto_utils", package=EXTRA).normalize_large_integers_to_strings(value)
    part = a2a_types().Part(media_type=_JSON, metadata=metadata or None)
    json_format.ParseDict(exact, part.data)
    return part


def output_part(value: Any) -> Any:
    """The output of a graph or an agent as an A2A part."""
    return a2a_types().Part(text=value) if isinstance(value, str) else data_part(from_json(to_json(value)))


def call_part(call: types.FunctionCall, **metadata: Any) -> Any:
    """A function call as an A2A part."""
    value = call.model_dump(mode="json", by_alias=True, exclude_none=True)
    return data_part(value, **{TYPE: FUNCTION_CALL}, **metadata)


def response_part(response: types.FunctionResponse) -> Any:
    """A function response as an A2A part."""
    value = response.model_dump(mode="json", by_alias=True, exclude_none=True)
    return data_part(value, **{TYPE: FUNCTION_RESPONSE})


# ---- A2A's as ours


def from_a2a_parts(parts: Iterable[Any]) -> list[types.Part]:
    """Parts of a message as ours; texts that follow each other become one, data is JSON text.

    Raises:
        InputError: A part marked as a function call or response is not a valid one.
    """
    ours: list[types.Part] = []
    pieces: list[str] = []
    """The text of the last of `ours`, which later parts go on with; empty if it is none."""
    for part in parts:
        ours_of_it, is_text = _from_a2a_part(part), part.WhichOneof("content") == "text"
        # A stream may cut one text into parts; thoughts and answers must not flow together.
        if is_text and pieces and bool(ours[-1].thought) == bool(ours_of_it.thought):
            pieces.append(part.text)
        elif ours_of_it.text != "":
            _join(ours, pieces)
            ours.append(ours_of_it)
            pieces = [part.text] if is_text else []
    _join(ours, pieces)
    return ours


def _join(ours: list[types.Part], pieces: list[str]) -> None:
    """Give the last part all of its text."""
    if len(pieces) > 1:
        ours[-1] = ours[-1].model_copy(update={"text": "".join(pieces)})


def _from_a2a_part(part: Any) -> types.Part:
    kind = part.WhichOneof("content")
    if kind == "raw":
        blob = types.Blob(data=part.raw, mime_type=_media_type(part), display_name=part.filename or None)
        return types.Part(inline_data=blob)
    if kind == "url":
        file = types.FileData(file_uri=part.url, mime_type=_media_type(part), display_name=part.filename or None)
        return types.Part(file_data=file)
    if kind != "data":
        return types.Part(text=part.text, thought=True if metadata_of(part).get(THOUGHT) is True else None)
    # ADK marks calls and responses in the metadata, because A2A has no part for them.
    value, mark = data_of(part), metadata_of(part).get(TYPE)
    try:
        if mark == FUNCTION_CALL:
            return types.Part(function_call=types.FunctionCall.model_validate(value))
        if mark == FUNCTION_RESPONSE:
            return types.Part(function_response=types.FunctionResponse.model_validate(value))
    except ValidationError as error:
        raise InputError(f"the data {value!r:.80} is marked as a {mark}, but is not a valid one") from error
    return types.Part(text=to_json(value).decode())


def _media_type(part: Any) -> str:
    return part.media_type or mimetypes.guess_type(part.filename or part.url)[0] or _BYTES


def data_of(part: Any) -> Any:
    """The JSON of a data part; whole numbers, which the protocol has as floats, are whole, and keys are sorted."""
    value = require("google.protobuf.json_format", package=EXTRA).MessageToDict(part.data)
    return _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        # A protobuf map has no order: unsorted, the same message would differ between runs.
        return {key: _plain(item) for key, item in sorted(cast(dict[str, Any], value).items())}
    if isinstance(value, list):
        return [_plain(item) for item in cast(list[Any], value)]
    return value


def text_of(parts: Iterable[Any]) -> str:
    """The text of A2A parts, without thoughts."""
    return "".join(part.text for part in parts if part.text and metadata_of(part).get(THOUGHT) is not True)
