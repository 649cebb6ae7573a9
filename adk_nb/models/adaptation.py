"""Adaptation of a request to the capabilities of a model."""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

from adk_nb import types
from adk_nb.models.base_llm import LlmCapabilities
from adk_nb.models.json_schemas import output_schema
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.pairing import pair_turns

_USER_SEES_IT = "; the user is shown it"
Lack = Literal["system_prompt", "images", "parallel_calls", "output_schema"]
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
        _describe_image(item.inline_data or item.file_data, _USER_SEES_IT)
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
        yield types.Content(role="user", parts=[result, *(rest if number == len(calls) else ())])
        preceding = []
