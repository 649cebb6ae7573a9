"""Adaptation of a request to a model: its capabilities, the pairing of calls and results, and signatures."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, cast

from adk_nb import types
from adk_nb.models.base_llm import LlmCapabilities
from adk_nb.models.json_schemas import output_schema
from adk_nb.models.llm_request import LlmRequest

_CLAUDE_PREFIX = b"claude:"
"""Prefix of Claude's signatures, which are text. Gemini's, which are bytes, are stored without a prefix."""
_CHAT_PREFIX = b"chat:"
"""Prefix of the JSON that a chat completions server sent beside a thought or a call."""


def claude_signature(signature: str) -> bytes | None:
    """Claude's signature as stored in a part; None if it is empty."""
    return _CLAUDE_PREFIX + signature.encode() if signature else None


def claude_signature_of(part: types.Part) -> str | None:
    """Claude's signature of `part`; None if it has none."""
    signature = part.thought_signature or b""
    is_claude = signature.startswith(_CLAUDE_PREFIX)
    return signature.removeprefix(_CLAUDE_PREFIX).decode("ascii", "replace") if is_claude else None


def chat_signature(server: str, fields: dict[str, Any]) -> bytes | None:
    """Fields to send back to a chat completions server, as stored in a part; None without fields."""
    return _CHAT_PREFIX + json.dumps({"server": server, "fields": fields}).encode() if fields else None


def chat_fields(part: types.Part, server: str) -> dict[str, Any]:
    """The fields that `server` sent beside `part`."""
    signature = part.thought_signature
    if not signature or not signature.startswith(_CHAT_PREFIX):
        return {}
    stored: Any = json.loads(signature.removeprefix(_CHAT_PREFIX))
    return cast(dict[str, Any], stored["fields"]) if stored["server"] == server else {}


def is_gemini_signature(part: types.Part) -> bool:
    """False if another service has signed `part`."""
    return not (part.thought_signature or b"").startswith((_CLAUDE_PREFIX, _CHAT_PREFIX))


_CONTINUE = "Go on from here."
"""Inserted as the user's turn at the start or end of a history that lacks one."""
_NO_RESULT = {"error": "there is no result of this call yet"}
_MAX_ID = 40
"""Characters. Source: the error of OpenAI's API for a longer id."""


def pair_turns(contents: Iterable[types.Content]) -> list[types.Content]:
    """Convert `contents` to alternating turns of user and model, the first and the last the user's.

    The turn after a model turn with calls starts with the results, in the order of the calls: a call without a result
    gets an error result, a result without a call becomes text. Ids are letters, digits, `_` and `-`, and unique.
    Empty parts and turns are dropped. The given contents are not changed.
    """
    ids, turns = _Ids(), list[types.Content]()
    open_calls: list[types.FunctionCall] = []
    for content in contents:
        parts = [part for part in content.parts or () if _has_content(part)]
        if not parts:
            continue
        if content.role == "model":
            parts = [ids.with_unique_id(part) for part in parts]
            _append_parts(turns, "model", parts)
            open_calls = [part.function_call for part in turns[-1].parts or () if part.function_call]
        else:
            _append_parts(turns, "user", _results(open_calls, parts, ids))
            open_calls = []
    if open_calls:
        turns.append(_user_turn(_results(open_calls, [], ids)))
    if not turns or turns[0].role == "model":
        turns.insert(0, _user_turn([types.Part(text=_CONTINUE)]))
    if turns[-1].role == "model":
        turns.append(_user_turn([types.Part(text=_CONTINUE)]))
    return turns


def is_paired(contents: Iterable[types.Content]) -> bool:
    """True if Gemini accepts the order of the turns.

    The user begins and ends; a turn with calls comes after a user turn, and before a turn with exactly its results, in
    the same order. Several turns of one side in a row are accepted.

    Source: errors of Gemini's API: "function call turn comes immediately after a user turn or after a function
    response turn", "the number of function response parts is equal to the number of function call parts".
    """
    open_calls, previous_role = list[str | None](), None
    for content in contents:
        parts = content.parts or []
        calls = [part.function_call.name for part in parts if part.function_call]
        results = [part.function_response.name for part in parts if part.function_response]
        starts_with_model = content.role == "model" and previous_role is None
        if not parts or starts_with_model or results != open_calls or (calls and (results or previous_role != "user")):
            return False
        open_calls, previous_role = calls, content.role
    return previous_role == "user" and not open_calls


def _append_parts(turns: list[types.Content], role: str, parts: list[types.Part]) -> None:
    if turns and turns[-1].role == role:
        parts = [*(turns.pop().parts or ()), *parts]
    turns.append(types.Content(role=role, parts=parts))


def _user_turn(parts: list[types.Part]) -> types.Content:
    return types.Content(role="user", parts=parts)


def _has_content(part: types.Part) -> bool:
    return part.text is None or bool(part.text.strip()) or bool(part.thought and part.thought_signature)


def _results(calls: list[types.FunctionCall], parts: list[types.Part], ids: "_Ids") -> list[types.Part]:
    """The results of `calls`, then the other parts of the user's turn."""
    rest, results = list(parts), list[types.Part]()
    for call in calls:
        match = next((part for part in rest if ids.answers(part.function_response, call)), None)
        # Used up: a result answers one call only, even where a service gave several calls the same id.
        if match:
            rest.remove(match)
        response = (match and match.function_response) or types.FunctionResponse(name=call.name, response=_NO_RESULT)
        call_fields = {"id": call.id, "name": call.name}  # Gemini matches by name, the others by id
        results.append(types.Part(function_response=response.model_copy(update=call_fields)))
    return results + [_result_as_text(part) if part.function_response else part for part in rest]


def _result_as_text(part: types.Part) -> types.Part:
    response = part.function_response or types.FunctionResponse()
    result: Any = response.response
    return types.Part(text=f"{response.name} answered: {json.dumps(result, ensure_ascii=False, default=str)}")


class _Ids:
    """Assigns unique ids that every service accepts to calls."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._originals: dict[str, str | None] = {}
        """Assigned id -> original id."""

    def with_unique_id(self, part: types.Part) -> types.Part:
        """`part` with a unique id in its call, if it has one."""
        call = part.function_call
        if not call:
            return part
        base = re.sub(r"[^a-zA-Z0-9_-]", "_", call.id or "")[:_MAX_ID] or f"call_{len(self._used)}"
        # Some services number the calls of each answer from 1, and long ids may be equal once cut: add a number.
        unique, number = base, 1
        while unique in self._used:
            number += 1
            unique = f"{base[: _MAX_ID - 5]}_{number}"
        self._used.add(unique)
        self._originals[unique] = call.id
        if unique == call.id:
            return part
        return part.model_copy(update={"function_call": call.model_copy(update={"id": unique})})

    def answers(self, response: types.FunctionResponse | None, call: types.FunctionCall) -> bool:
        """True if `response` is the result of `call`: by id, or else by name."""
        if not response:
            return False
        original = self._originals.get(call.id or "")
        return response.id == original if response.id and original else response.name == call.name


MissingCapability = Literal["system_prompt", "images", "parallel_calls", "output_schema"]
"""Capabilities that can be worked around."""


def adapt_request(request: LlmRequest, capabilities: LlmCapabilities) -> LlmRequest:
    """Adapt `request` to a model with `capabilities`; returns the same object if nothing changes.

    Without system prompts, the instruction is the start of the user's first turn. Without images, each is replaced by a
    description. Without media in results, media follow the results in the same turn. Without output schemas, the
    schema is part of the instruction. Without parallel calls, the calls of one turn become turns of their own. An
    output schema beside tools is not handled here but by the agent's loop (`set_model_response`).
    """
    config, contents = request.config, request.contents
    schema = None if capabilities.output_schema else output_schema(config)
    if schema is not None:
        schema_instruction = (
            f"Answer with JSON of this schema, and with nothing else:\n{json.dumps(schema, ensure_ascii=False)}"
        )
        config = _with_instruction(config, schema_instruction)
        without_schema = {"response_schema": None, "response_json_schema": None, "response_mime_type": None}
        config = config.model_copy(update=without_schema)
    if not capabilities.images:
        contents = [_map_parts(content, _without_images) for content in contents]
    if not capabilities.media_in_results:
        contents = _original_if_equal([_with_media_beside_results(content) for content in contents], contents)
    if not capabilities.parallel_calls:
        # Paired first: the split needs exactly one result for each call, in order.
        contents = list(_serialize_calls(pair_turns(contents)))
    if not capabilities.system_prompt and (instruction := instruction_text(config)):
        config = config.model_copy(update={"system_instruction": None})
        contents = [types.Content(role="user", parts=[types.Part(text=instruction)]), *contents]
    if config is request.config and contents is request.contents:
        return request
    return request.model_copy(update={"config": config, "contents": contents})


def part_text(part: types.Part) -> str:
    """The text of a part; code as Markdown."""
    if code := part.executable_code:
        return f"```{(code.language or 'python').lower()}\n{code.code}\n```"
    if result := part.code_execution_result:
        return f"```tool_output\n{result.output}\n```"
    return part.text or ""


def instruction_text(config: types.GenerateContentConfig) -> str:
    """The system instruction as text."""
    instruction = config.system_instruction
    if instruction is None or isinstance(instruction, str):
        return instruction or ""
    items: list[object] = [*instruction] if isinstance(instruction, list) else [instruction]
    return "\n\n".join(text for item in items if (text := _item_text(item)))


def _item_text(item: object) -> str:
    if isinstance(item, types.Content):
        return "\n\n".join(part.text for part in item.parts or () if part.text)
    return (item.text or "") if isinstance(item, types.Part) else str(item)


def _with_instruction(config: types.GenerateContentConfig, addition: str) -> types.GenerateContentConfig:
    existing = instruction_text(config)
    return config.model_copy(update={"system_instruction": f"{existing}\n\n{addition}" if existing else addition})


def _map_parts(content: types.Content, change: Callable[[types.Part], types.Part]) -> types.Content:
    parts = content.parts or []
    new_parts = [change(part) for part in parts]
    if all(new is old for new, old in zip(new_parts, parts, strict=True)):
        return content
    return content.model_copy(update={"parts": new_parts})


def _original_if_equal(changed: list[types.Content], contents: list[types.Content]) -> list[types.Content]:
    """`contents` itself if nothing has changed, to keep prompt caches valid."""
    return contents if all(new is old for new, old in zip(changed, contents, strict=True)) else changed


def _with_media_beside_results(content: types.Content) -> types.Content:
    """Move media out of the function responses of a turn, behind them."""
    media = [
        types.Part(
            inline_data=types.Blob.model_validate(medium.inline_data.model_dump()) if medium.inline_data else None,
            file_data=types.FileData.model_validate(medium.file_data.model_dump()) if medium.file_data else None,
        )
        for part in content.parts or ()
        for medium in (part.function_response and part.function_response.parts) or ()
    ]
    if not media:
        return content
    parts = [_without_parts(part) for part in content.parts or ()]
    return content.model_copy(update={"parts": [*parts, *media]})


def _without_parts(part: types.Part) -> types.Part:
    response = part.function_response
    if not (response and response.parts):
        return part
    return part.model_copy(update={"function_response": response.model_copy(update={"parts": None})})


def _without_images(part: types.Part) -> types.Part:
    if (data := part.inline_data or part.file_data) and _is_image(data):
        return types.Part(text=_describe_image(data))
    response = part.function_response
    if not (response and response.parts):
        return part
    remaining = [item for item in response.parts if not _is_image(item.inline_data or item.file_data)]
    descriptions = [
        _describe_image(item.inline_data or item.file_data, "; the user is shown it")
        for item in response.parts
        if item not in remaining
    ]
    if not descriptions:
        return part
    changes = {"parts": remaining, "response": (response.response or {}) | {"images": descriptions}}
    return part.model_copy(update={"function_response": response.model_copy(update=changes)})


def _is_image(data: Any) -> bool:
    return data is not None and (data.mime_type or "").startswith("image/")


def _describe_image(data: Any, suffix: str = "") -> str:
    name = f" {data.display_name!r}" if data.display_name else ""
    return f"[an image{name} ({data.mime_type}) that you cannot be shown{suffix}]"


def _serialize_calls(turns: Iterable[types.Content]) -> Iterator[types.Content]:
    """Split a turn with several calls into turns with one call and its result each."""
    call_parts: list[types.Part] = []
    for turn in turns:
        parts = turn.parts or []
        if turn.role == "model" and sum(1 for part in parts if part.function_call) > 1:
            call_parts = parts
        elif call_parts:
            yield from _split_turn(call_parts, parts)
            call_parts = []
        else:
            yield turn


def _split_turn(call_parts: list[types.Part], response_parts: list[types.Part]) -> Iterator[types.Content]:
    calls = [part for part in call_parts if part.function_call]
    results, rest = response_parts[: len(calls)], response_parts[len(calls) :]
    preceding = [part for part in call_parts if not part.function_call]
    for number, (call, result) in enumerate(zip(calls, results, strict=True), 1):
        yield types.Content(role="model", parts=[*preceding, call])
        # The other parts of the user's turn follow the last result.
        yield types.Content(role="user", parts=[result, *(rest if number == len(calls) else ())])
        preceding = []
