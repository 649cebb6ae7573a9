"""Adaptation of a request to a model: its capabilities, the pairing of calls and results, and signatures."""

import json
import re
from collections.abc import Iterable
from operator import is_
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
        parts = [
            part
            for part in content.parts or ()
            if part.text is None or part.text.strip() or (part.thought and part.thought_signature)
        ]
        if not parts:
            continue
        if content.role == "model":
            _append_turn(turns, "model", [ids.with_unique_id(part) for part in parts], content)
            open_calls = [part.function_call for part in turns[-1].parts or () if part.function_call]
        else:
            _append_turn(turns, "user", _results(open_calls, parts, ids), content)
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


def _append_turn(turns: list[types.Content], role: str, parts: list[types.Part], given: types.Content) -> None:
    """Add `parts` to the last turn if it has this role, else as a turn: `given` itself, if these are its parts."""
    if turns and turns[-1].role == role:
        parts = [*(turns.pop().parts or ()), *parts]
    # To make an object costs more than all else here, and long histories have thousands.
    elif given.role == role and len(parts) == len(given.parts or ()) and all(map(is_, parts, given.parts or ())):
        turns.append(given)
        return
    turns.append(types.Content(role=role, parts=parts))


def _user_turn(parts: list[types.Part]) -> types.Content:
    return types.Content(role="user", parts=parts)


def _results(calls: list[types.FunctionCall], parts: list[types.Part], ids: "_Ids") -> list[types.Part]:
    """The results of `calls`, then the other parts of the user's turn."""
    rest, results = list(parts), list[types.Part]()
    for call in calls:
        match = next((part for part in rest if ids.answers(part.function_response, call)), None)
        # Used up: a result answers one call only, even where a service gave several calls the same id.
        if match:
            rest.remove(match)
        response = match and match.function_response
        if match and response and (response.id, response.name) == (call.id, call.name):
            results.append(match)
            continue
        response = response or types.FunctionResponse(name=call.name, response=_NO_RESULT)
        call_fields = {"id": call.id, "name": call.name}  # Gemini matches by name, the others by id
        results.append(types.Part(function_response=response.model_copy(update=call_fields)))
    for part in rest:
        if response := part.function_response:
            text = json.dumps(cast(Any, response.response), ensure_ascii=False, default=str)
            part = types.Part(text=f"{response.name} answered: {text}")
        results.append(part)
    return results


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
        existing = instruction_text(config)
        instruction = f"{existing}\n\n{schema_instruction}" if existing else schema_instruction
        without_schema = {"response_schema": None, "response_json_schema": None, "response_mime_type": None}
        config = config.model_copy(update={"system_instruction": instruction, **without_schema})
    if not capabilities.images:
        contents = [_without_images(content) for content in contents]
    if not capabilities.media_in_results and any(_media_in_results(content) for content in contents):
        contents = [_with_media_beside_results(content) for content in contents]
    if not capabilities.parallel_calls:
        contents = _with_single_calls(contents)
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
    texts: list[str | None] = []
    for item in items:
        if isinstance(item, types.Content):
            texts += [part.text for part in item.parts or ()]
        else:
            texts.append(item.text if isinstance(item, types.Part) else str(item))
    return "\n\n".join(text for text in texts if text)


def _media_in_results(content: types.Content) -> list[types.Part]:
    """The media within the function responses of a turn, as parts of their own."""
    return [
        types.Part(
            inline_data=types.Blob.model_validate(medium.inline_data.model_dump()) if medium.inline_data else None,
            file_data=types.FileData.model_validate(medium.file_data.model_dump()) if medium.file_data else None,
        )
        for part in content.parts or ()
        for medium in (part.function_response and part.function_response.parts) or ()
    ]


def _with_media_beside_results(content: types.Content) -> types.Content:
    """Move media out of the function responses of a turn, behind them."""
    if not (media := _media_in_results(content)):
        return content
    parts: list[types.Part] = []
    for part in content.parts or ():
        if part.function_response and part.function_response.parts:
            response = part.function_response.model_copy(update={"parts": None})
            part = part.model_copy(update={"function_response": response})
        parts.append(part)
    return content.model_copy(update={"parts": [*parts, *media]})


def _without_images(content: types.Content) -> types.Content:
    """Replace each image of a turn by a description; returns the same object if there is none."""
    parts: list[types.Part] = []
    for part in content.parts or ():
        response = part.function_response
        if (data := part.inline_data or part.file_data) and _is_image(data):
            part = types.Part(text=_describe_image(data))
        elif response and response.parts:
            remaining = [item for item in response.parts if not _is_image(item.inline_data or item.file_data)]
            images = [
                _describe_image(item.inline_data or item.file_data, "; the user is shown it")
                for item in response.parts
                if item not in remaining
            ]
            if images:
                changes = {"parts": remaining, "response": (response.response or {}) | {"images": images}}
                part = part.model_copy(update={"function_response": response.model_copy(update=changes)})
        parts.append(part)
    is_same = all(new is old for new, old in zip(parts, content.parts or (), strict=True))
    return content if is_same else content.model_copy(update={"parts": parts})


def _is_image(data: Any) -> bool:
    return data is not None and (data.mime_type or "").startswith("image/")


def _describe_image(data: Any, suffix: str = "") -> str:
    name = f" {data.display_name!r}" if data.display_name else ""
    return f"[an image{name} ({data.mime_type}) that you cannot be shown{suffix}]"


def _with_single_calls(contents: Iterable[types.Content]) -> list[types.Content]:
    """Split each turn with several calls into turns with one call and its result each."""
    split, open_parts = list[types.Content](), list[types.Part]()
    # Paired first: the split needs exactly one result for each call, in order.
    for turn in pair_turns(contents):
        parts = turn.parts or []
        if turn.role == "model" and sum(1 for part in parts if part.function_call) > 1:
            open_parts = parts
            continue
        if not open_parts:
            split.append(turn)
            continue
        calls = [part for part in open_parts if part.function_call]
        results, rest = parts[: len(calls)], parts[len(calls) :]
        preceding = [part for part in open_parts if not part.function_call]
        for call, result in zip(calls, results, strict=True):
            split.append(types.Content(role="model", parts=[*preceding, call]))
            split.append(types.Content(role="user", parts=[result]))
            preceding = []
        split[-1].parts = [results[-1], *rest]
        open_parts = []
    return split
