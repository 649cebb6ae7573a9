"""What a model cannot do is done without it: a request is put so that the model can take it."""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

from adk_nb import types
from adk_nb.models.base_llm import LlmCapabilities
from adk_nb.models.json_schemas import output_schema_of
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.pairing import paired

_SEEN = "; the user is shown it"
Lack = Literal["system_prompt", "images", "parallel_calls", "output_schema"]
"""What can be worked around."""


def fitted(request: LlmRequest, can: LlmCapabilities) -> LlmRequest:
    """`request` as a model that can do `can` takes it; itself if that model takes it as it is.

    Without system prompts the instruction begins the user's first turn. Without images a description stands in the
    place of each. Where results hold no media, these come after the results, in the same turn. Without output schemas
    the schema is told in words. Without parallel calls those of one turn are told as one after the other. An output
    schema beside tools is the loop's to ask for (`set_model_response`).
    """
    config, contents = request.config, request.contents
    schema = None if can.output_schema else output_schema_of(config)
    if schema is not None:
        told = f"Answer with JSON of this schema, and with nothing else:\n{json.dumps(schema, ensure_ascii=False)}"
        config = _with_instruction(config, told)
        changed = {"response_schema": None, "response_json_schema": None, "response_mime_type": None}
        config = config.model_copy(update=changed)
    if not can.images:
        contents = [_changed(one, _without_images) for one in contents]
    if not can.media_in_results:
        contents = _same_or([_with_media_beside_results(one) for one in contents], contents)
    if not can.parallel_calls:
        contents = list(_one_by_one(paired(contents)))
    if not can.system_prompt and (instruction := words_of(config)):
        config = config.model_copy(update={"system_instruction": None})
        contents = [types.Content(role="user", parts=[types.Part(text=instruction)]), *contents]
    if config is request.config and contents is request.contents:
        return request
    return request.model_copy(update={"config": config, "contents": contents})


def text_of(part: types.Part) -> str:
    """The text of a part, its code as Markdown."""
    if code := part.executable_code:
        return f"```{(code.language or 'python').lower()}\n{code.code}\n```"
    if result := part.code_execution_result:
        return f"```tool_output\n{result.output}\n```"
    return part.text or ""


def words_of(config: types.GenerateContentConfig) -> str:
    """The system instruction."""
    said = config.system_instruction
    if said is None or isinstance(said, str):
        return said or ""
    several: list[object] = [*said] if isinstance(said, list) else [said]
    return "\n\n".join(text for one in several if (text := _text(one)))


def _text(one: object) -> str:
    if isinstance(one, types.Content):
        return "\n\n".join(part.text for part in one.parts or () if part.text)
    return (one.text or "") if isinstance(one, types.Part) else str(one)


def _with_instruction(config: types.GenerateContentConfig, told: str) -> types.GenerateContentConfig:
    before = words_of(config)
    return config.model_copy(update={"system_instruction": f"{before}\n\n{told}" if before else told})


def _changed(content: types.Content, change: Callable[[types.Part], types.Part]) -> types.Content:
    parts = content.parts or []
    made = [change(part) for part in parts]
    if all(one is other for one, other in zip(made, parts, strict=True)):
        return content
    return content.model_copy(update={"parts": made})


def _same_or(changed: list[types.Content], contents: list[types.Content]) -> list[types.Content]:
    """`contents` themselves where nothing has changed."""
    return contents if all(one is other for one, other in zip(changed, contents, strict=True)) else changed


def _with_media_beside_results(content: types.Content) -> types.Content:
    """All results of a turn, and after them what was within them."""
    beside = [
        types.Part(
            inline_data=types.Blob.model_validate(one.inline_data.model_dump()) if one.inline_data else None,
            file_data=types.FileData.model_validate(one.file_data.model_dump()) if one.file_data else None,
        )
        for part in content.parts or ()
        for one in (part.function_response and part.function_response.parts) or ()
    ]
    if not beside:
        return content
    parts = [_without_parts(part) for part in content.parts or ()]
    return content.model_copy(update={"parts": [*parts, *beside]})


def _without_parts(part: types.Part) -> types.Part:
    response = part.function_response
    if not (response and response.parts):
        return part
    return part.model_copy(update={"function_response": response.model_copy(update={"parts": None})})


def _without_images(part: types.Part) -> types.Part:
    if (data := part.inline_data or part.file_data) and _is_image(data):
        return types.Part(text=_in_words(data))
    response = part.function_response
    if not (response and response.parts):
        return part
    shown = [one for one in response.parts if not _is_image(one.inline_data or one.file_data)]
    hidden = [_in_words(one.inline_data or one.file_data, _SEEN) for one in response.parts if one not in shown]
    if not hidden:
        return part
    changed = {"parts": shown, "response": (response.response or {}) | {"images": hidden}}
    return part.model_copy(update={"function_response": response.model_copy(update=changed)})


def _is_image(data: Any) -> bool:
    return data is not None and (data.mime_type or "").startswith("image/")


def _in_words(data: Any, more: str = "") -> str:
    name = f" {data.display_name!r}" if data.display_name else ""
    return f"[an image{name} ({data.mime_type}) that you cannot be shown{more}]"


def _one_by_one(turns: Iterable[types.Content]) -> Iterator[types.Content]:
    """Each call in a turn of its own, and behind it its result."""
    said: list[types.Part] = []
    for turn in turns:
        parts = turn.parts or []
        if turn.role == "model" and sum(1 for part in parts if part.function_call) > 1:
            said = parts
        elif said:
            yield from _taken_apart(said, parts)
            said = []
        else:
            yield turn


def _taken_apart(said: list[types.Part], answered: list[types.Part]) -> Iterator[types.Content]:
    calls = [part for part in said if part.function_call]
    results, others = answered[: len(calls)], answered[len(calls) :]
    before = [part for part in said if not part.function_call]
    for at, (call, result) in enumerate(zip(calls, results, strict=True), 1):
        yield types.Content(role="model", parts=[*before, call])
        yield types.Content(role="user", parts=[result, *(others if at == len(calls) else ())])
        before = []
