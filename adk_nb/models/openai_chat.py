"""OpenAI's chat completions, which many servers take: requests, and the assembly of answers.

Source: https://platform.openai.com/docs/api-reference/chat/create.
"""

import base64
import json
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Sequence
from typing import Any, cast

from adk_nb import types
from adk_nb.errors import UnexpectedModelAnswer
from adk_nb.models.adaptation import chat_fields, chat_signature, instruction_text, pair_turns, part_text
from adk_nb.models.json_schemas import (
    allowed_functions,
    calling_config,
    output_schema,
    parameters_schema,
    strict_schema,
)
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import MODEL_NOTE, UNREADABLE, WRITTEN_AS_TEXT, LlmResponse
from adk_nb.models.pipeline import Payload
from adk_nb.models.response_stream import ResponseStream
from adk_nb.models.vendor_facts import Family
from adk_nb.models.written_calls import TextReader
from adk_nb.redaction import hidden
from adk_nb.wire import join_surrogates

_SETTINGS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "stop_sequences": "stop",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "seed": "seed",
    "response_logprobs": "logprobs",
    "logprobs": "top_logprobs",
}
"""Field of GenerateContentConfig -> argument of a chat completion."""
CHOICES = {
    types.FunctionCallingConfigMode.ANY: "required",
    types.FunctionCallingConfigMode.NONE: "none",
    types.FunctionCallingConfigMode.AUTO: "auto",
}
SENT_AS = {name: (target,) for name, target in _SETTINGS.items()} | {
    "max_output_tokens": ("max_tokens", "max_completion_tokens", "max_output_tokens"),
    "thinking_config": ("reasoning_effort", "reasoning.effort"),
    "response_schema": ("response_format", "text.format"),
    "response_json_schema": ("response_format", "text.format"),
    "response_mime_type": ("response_format", "text.format"),
    "tool_config": ("tool_choice", "tools"),
    "http_options": ("extra_headers",),
}
"""Field of GenerateContentConfig -> the arguments of a chat completion, or of a response, that may have it."""
SAMPLING_SETTINGS = ("temperature", "top_p", "response_logprobs", "logprobs")
"""Fields of GenerateContentConfig that some models do not take while they reason."""
_REASONING = "reasoning_content"
"""Field for thoughts of DeepSeek and of servers of open models."""
_BLOCKS = "thinking_blocks"
"""Field for thoughts of litellm, with Claude's signatures.

Source: https://docs.litellm.ai/docs/reasoning_content.
"""
_SAMPLING = ("temperature", "top_p", "logprobs", "top_logprobs")
_AUDIO = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mp3": "mp3", "audio/mpeg": "mp3"}


def chat_arguments(request: LlmRequest, model: str, *, server: str = "", parallel_calls: bool = True) -> dict[str, Any]:
    """The arguments of `chat.completions.create`.

    Settings that chat completions do not have, such as `safety_settings`, are left out.

    Args:
        request: Not changed.
        model: Name at the service.
        server: Name of the server; fields that it sent with thoughts and calls are sent back to it only.
        parallel_calls: The model may call several tools in one turn.
    """
    arguments: dict[str, Any] = {"model": model, "messages": list(chat_messages(request, server))}
    arguments |= _settings(request.config)
    if tools := [_tool(function) for function in allowed_functions(request)]:
        arguments["tools"] = tools
        if choice := _choice(request):
            arguments["tool_choice"] = choice
        # Sent only without parallel calls: some servers refuse the field, and true is the default.
        if not parallel_calls:
            arguments["parallel_tool_calls"] = False
    return arguments


def adapt_to_family(arguments: dict[str, Any], family: Family) -> dict[str, Any]:
    """Remove the settings that the model would refuse with HTTP 400; see `vendor_facts`."""
    adapted = dict(arguments)
    effort: str | None = adapted.get("reasoning_effort")
    if effort == "minimal" and not family.minimal_effort:
        adapted["reasoning_effort"] = effort = "low"
    if family.tools == "unless thinking" and "tools" in adapted:
        # The tools stay: without them the agent could not work at all.
        adapted["reasoning_effort"] = effort = "none"
    is_thinking = family.thinks_by_default if effort is None else effort != "none"
    if is_thinking and family.sampling == "unless thinking":
        return {name: value for name, value in adapted.items() if name not in _SAMPLING}
    return adapted


def chat_messages(request: LlmRequest, server: str = "") -> Iterator[dict[str, Any]]:
    """Convert the contents; a message with calls is followed by one `tool` message for each call."""
    if instruction := instruction_text(request.config):
        # Not `developer`: servers of open models know `system` alone, and OpenAI takes both.
        yield {"role": "system", "content": instruction}
    turns = pair_turns(request.contents)
    needs_reasoning = any(_REASONING in chat_fields(part, server) for turn in turns for part in turn.parts or ())
    with_calls = _turns_with_calls(turns) if needs_reasoning else ()
    id_suffixes: dict[str | None, str] = {}
    for index, turn in enumerate(turns):
        parts = turn.parts or []
        if turn.role == "model":
            message: dict[str, Any] = {"role": "assistant"}
            if content := "".join(text for part in parts if not part.thought and (text := part_text(part))):
                message["content"] = content
            if calls := [
                _call(call, chat_fields(part, server), id_suffixes) for part in parts if (call := part.function_call)
            ]:
                message["tool_calls"] = calls
            message |= _thoughts(parts, server, index in with_calls)
            # Chat completions refuse an assistant message without content and calls.
            if len(message) > 1:
                yield message
            continue
        blocks: list[dict[str, Any]] = []
        # A user message has no thoughts, except in another agent's content that is quoted as the user's.
        for part in [part for part in parts if not part.thought]:
            if response := part.function_response:
                text = json.dumps(response.response or {}, ensure_ascii=False, default=str)
                call_id = f"{response.id}{id_suffixes.get(response.id, '')}"
                yield {"role": "tool", "tool_call_id": call_id, "content": text}
                # A tool message takes text only: its media follow in a message of the user.
                media = [_data(item.inline_data or item.file_data) for item in response.parts or ()]
                blocks += [block for block in media if block]
            elif block := _data(part.inline_data or part.file_data):
                blocks.append(block)
            elif text := part_text(part):
                blocks.append({"type": "text", "text": text})
        if blocks and all(block["type"] == "text" for block in blocks):  # plain text, which every server takes
            yield {"role": "user", "content": "\n\n".join(block["text"] for block in blocks)}
        elif blocks:
            # After all tool messages: OpenAI refuses anything between a call and its results.
            yield {"role": "user", "content": blocks}


def _turns_with_calls(turns: Sequence[types.Content]) -> set[int]:
    """Indexes of the model's turns in exchanges with calls; an exchange lasts until the user's next message."""
    indexes, exchange, has_calls = set[int](), set[int](), False
    for index, turn in enumerate(turns):
        parts = turn.parts or []
        if turn.role == "model":
            exchange.add(index)
            has_calls = has_calls or any(part.function_call for part in parts)
        # Results do not end an exchange; the user's own text does.
        elif not any(part.function_response for part in parts):
            exchange, has_calls = set[int](), False
        if has_calls:
            indexes |= exchange
    return indexes


def _thoughts(parts: Sequence[types.Part], server: str, needs_reasoning: bool) -> dict[str, Any]:
    """Fields with the thoughts of `server`: litellm's `thinking_blocks` of Claude, and `reasoning_content`.

    DeepSeek answers 400 if `reasoning_content`, even an empty one, is missing in a turn with calls, and ignores it
    elsewhere. Source: https://api-docs.deepseek.com/guides/thinking_mode.
    """
    thoughts = [part for part in parts if part.thought]
    server_fields = [fields for part in thoughts if (fields := chat_fields(part, server))]
    blocks = [block for fields in server_fields for block in fields.get(_BLOCKS, ())]
    message: dict[str, Any] = {_BLOCKS: blocks} if blocks else {}
    if needs_reasoning:
        is_own = any(_REASONING in fields for fields in server_fields)
        message[_REASONING] = "".join(part.text or "" for part in thoughts) if is_own else ""
    return message


def _call(call: types.FunctionCall, fields: dict[str, Any], id_suffixes: dict[str | None, str]) -> dict[str, Any]:
    """Convert a call, with the fields that its server sent; the suffix of its id is stored in `id_suffixes`."""
    arguments = json.dumps(call.args or {}, ensure_ascii=False)
    # `extra_content` goes back as it came: Gemini checks the signature in it.
    extra = {name: value for name, value in fields.items() if name != "id_end"}
    id_suffixes[call.id] = fields.get("id_end", "")
    function = {"name": call.name, "arguments": arguments}
    return {"id": f"{call.id}{id_suffixes[call.id]}", "type": "function", "function": function} | extra


def _data(data: Any) -> dict[str, Any] | None:
    """A content block for bytes or a URI; text for URIs other than images."""
    if data is None:
        return None
    kind, name = data.mime_type or "application/octet-stream", data.display_name
    uri = getattr(data, "file_uri", None)
    content: bytes | None = getattr(data, "data", None)
    if uri:
        if kind.startswith("image/"):
            return {"type": "image_url", "image_url": {"url": uri}}
        return {"type": "text", "text": f"[{name or 'a file'} ({kind}) at {uri}]"}
    if kind.startswith("text/"):
        return {"type": "text", "text": (content or b"").decode("utf-8", "replace")}
    coded = base64.b64encode(content or b"").decode()
    if kind.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{coded}"}}
    if kind in _AUDIO:
        return {"type": "input_audio", "input_audio": {"data": coded, "format": _AUDIO[kind]}}
    return {"type": "file", "file": {"filename": name or "file", "file_data": f"data:{kind};base64,{coded}"}}


def _tool(declaration: types.FunctionDeclaration) -> dict[str, Any]:
    function: dict[str, Any] = {"name": declaration.name, "parameters": parameters_schema(declaration)}
    if declaration.description:
        function["description"] = declaration.description
    return {"type": "function", "function": function}


def _settings(config: types.GenerateContentConfig) -> dict[str, Any]:
    settings = {target: value for source, target in _SETTINGS.items() if (value := getattr(config, source)) is not None}
    if effort := effort_of(config):
        settings["reasoning_effort"] = effort
    if (schema := output_schema(config)) is not None:
        strict = strict_schema(schema)
        form: dict[str, Any] = {"name": "answer", "schema": strict or schema, "strict": strict is not None}
        settings["response_format"] = {"type": "json_schema", "json_schema": form}
    elif config.response_mime_type == "application/json":
        settings["response_format"] = {"type": "json_object"}
    if config.http_options and config.http_options.headers:
        settings["extra_headers"] = config.http_options.headers
    return settings


def effort_of(config: types.GenerateContentConfig) -> str | None:
    """The effort that is asked for. None: the model's own."""
    level = config.thinking_config and config.thinking_config.thinking_level
    # Gemini's levels and OpenAI's efforts have the same names in lower case.
    return level.value.lower() if level else None


def call_part(call_id: str | None, name: str, arguments: str) -> types.Part:
    """Convert a call with its arguments as JSON; what is no JSON object is refused, and the model told why."""
    try:
        # Calls without arguments come as an empty text from some servers.
        args: Any = json.loads(join_surrogates(arguments)) if arguments.strip() else {}
    except (ValueError, RecursionError):
        args = None
    if not name:
        args = {UNREADABLE: f"it names no tool, and has the arguments {arguments[:200]!r}"}
    elif not isinstance(args, dict):
        args = {UNREADABLE: f"its arguments are not a JSON object, but {arguments[:200]!r}"}
    return types.Part(
        function_call=types.FunctionCall(id=call_id or None, name=name or None, args=cast(dict[str, Any], args))
    )


def _choice(request: LlmRequest) -> str | None:
    """The mode; never a tool's name, which llama.cpp's server refuses: only the allowed tools are sent."""
    mode = calling_config(request).mode
    return CHOICES.get(mode) if mode else None


# ---- answers

_REASONS = {
    "stop": types.FinishReason.STOP,
    "tool_calls": types.FinishReason.STOP,
    "function_call": types.FinishReason.STOP,
    "eos": types.FinishReason.STOP,
    "length": types.FinishReason.MAX_TOKENS,
    "content_filter": types.FinishReason.SAFETY,
}
_THOUGHT_FIELDS = (_REASONING, "reasoning")
"""Fields for thoughts in answers of servers of open models; OpenAI's own API has none."""
_SIGNED_ID = "__thought__"
"""Separator in litellm's call ids, before Gemini's signature of the call.

Source: litellm's `litellm_core_utils/prompt_templates/factory.py`, THOUGHT_SIGNATURE_SEPARATOR.
"""

LIKE_A_CALL = (
    "The answer looks like a call of a tool, written as text: no tool was called. A larger model, or the server's "
    "template for tools (llama-server --jinja), may help"
)


async def ensure_chunks(stream: Any, model: str, read: Callable[..., Any]) -> Any:
    """Return openai's stream; for a server that answers without streaming, a stream of its one answer.

    Args:
        stream: The response, not yet read.
        model: Name for errors.
        read: Creates openai's ChatCompletion from its fields.

    Raises:
        UnexpectedModelAnswer: The body is neither a stream nor an answer.
    """
    kind = stream.response.headers.get("content-type", "")
    # A stream is text/event-stream; some servers send no content type.
    if "json" not in kind and "html" not in kind:
        return stream
    body = await stream.response.aread()
    if body.lstrip().startswith((b"data:", b"event:", b":")):  # a stream with a wrong content type
        return stream
    try:
        answer: Any = json.loads(body)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise _no_answer(model, f"{kind}: {body[:4_000].decode('utf-8', 'replace')!r}")
    return single_chunk(check_completion(read(**cast(dict[str, Any], answer)), model))


async def single_chunk(chunk: Any) -> AsyncGenerator[Any, None]:
    """An answer that came whole, as a stream."""
    yield chunk


def check_completion(completion: Any, model: str) -> Any:
    """Return `completion`; raises UnexpectedModelAnswer if it has no choices."""
    if error := getattr(completion, "error", None):  # OpenRouter and other gateways report errors with HTTP 200
        raise UnexpectedModelAnswer(
            f"the service of model {model!r} answered with an error: {hidden(str(error))[:500]}"
        )
    if not isinstance(getattr(completion, "choices", None), list):
        answer = completion.to_json(indent=None, warnings=False) if hasattr(completion, "to_json") else completion
        raise _no_answer(model, repr(answer))
    return completion


def _no_answer(model: str, answer: str) -> UnexpectedModelAnswer:
    return UnexpectedModelAnswer(
        f"the service of model {model!r} did not answer with a chat completion, but with {hidden(answer)[:200]}; "
        "check its address"
    )


class ChatAssembler:
    """Assembles the chunks of one answer; its calls are in the complete answer only.

    Fields that `server` requires in the next request are stored as the signatures of thoughts and calls.
    """

    def __init__(self, payload: Payload, server: str) -> None:
        # Where the answer is to be JSON, an object is the answer.
        takes_calls = payload.get("tool_choice") != "none" and "response_format" not in payload
        offered: list[dict[str, Any]] = [tool["function"] for tool in payload.get("tools") or ()]
        self._tools: dict[str, dict[str, Any]] = {tool["name"]: tool.get("parameters") or {} for tool in offered}
        self._stream = ResponseStream(payload["model"])
        self._text = TextReader(self._tools if takes_calls else {})
        self._server = server
        self._has_reasoning_content = False
        """Thoughts came in the field `reasoning_content`."""
        self._blocks: list[dict[str, Any]] = []
        """litellm's `thinking_blocks`, the fragments of each joined."""
        self._calls: list[_Call] = []
        self._reason: types.FinishReason | None = None

    def add(self, chunk: Any) -> LlmResponse | None:
        """Add a chunk, or a complete answer; returns the part of it that can be shown already."""
        usage = getattr(chunk, "usage", None)
        self._stream.set_fields(model_version=chunk.model or None, usage_metadata=usage and _usage(usage))
        for choice in chunk.choices or ():
            # Only the first choice: more than one is never requested.
            if not choice.index and (message := getattr(choice, "delta", None)):
                return self._add_message(message, choice.finish_reason, is_whole=False)
            if message := getattr(choice, "message", None):  # not streamed
                # It is complete, even if the server gives no reason.
                return self._add_message(message, choice.finish_reason or "stop", is_whole=True)
        return None

    def _add_message(self, message: Any, finish_reason: str | None, *, is_whole: bool) -> LlmResponse | None:
        """Add a message or a delta; returns the text and thoughts that can be shown already."""
        if finish_reason:
            self._reason = _REASONS.get(finish_reason, types.FinishReason.OTHER)
        # Each entry of a complete message is a call; the entries of deltas are pieces, which their index tells apart.
        for position, call in enumerate(message.tool_calls or ()):
            self._add_call(call, position if is_whole else getattr(call, "index", None))
        thought = next((text for name in _THOUGHT_FIELDS if (text := getattr(message, name, None))), None)
        is_blank = is_whole and isinstance(thought, str) and not thought.strip()  # `<think>` was taken out on the way
        self._has_reasoning_content |= not is_blank and bool(getattr(message, _REASONING, None))
        for block in map(dict[str, Any], getattr(message, _BLOCKS, None) or ()):
            last = self._blocks[-1] if self._blocks else None
            if last is None or "thinking" not in last or "thinking" not in block or last.get("signature"):
                self._blocks.append(block)
            else:  # a fragment: the text comes first, the signature last
                last["thinking"] = (last["thinking"] or "") + (block["thinking"] or "")
                last["signature"] = block.get("signature")
        parts: list[types.Part] = []
        if isinstance(thought, str):
            parts += [] if is_blank else [types.Part(text=thought, thought=True)]
            self._text.after_thought()
        # OpenAI puts a refusal into a field of its own, beside an empty content.
        for text in (message.content, getattr(message, "refusal", None)):
            parts += self._text.add(text) if text else []
        return self._stream.add_parts(parts)

    def complete(self) -> LlmResponse:
        """The complete answer.

        Raises:
            UnexpectedModelAnswer: The chunks ended before the answer did.
        """
        # After another reason, such as the limit of tokens, a call may be cut off.
        is_finished = self._reason == types.FinishReason.STOP
        calls = [call for call in self._calls if not call.is_empty] if is_finished else []
        written = self._text.calls() if is_finished and not calls else []
        self._stream.add_parts(self._text.rest())
        self._stream.add_parts(types.Part(function_call=call) for call in written)
        for call in calls:
            part = call_part(call.own_id, call.name(self._tools), call.arguments)
            part.thought_signature = chat_signature(self._server, call.fields)
            self._stream.add_parts([part])
        self._stream.set_fields(finish_reason=self._reason)
        answer = self._stream.complete()
        if written:
            answer.custom_metadata = {WRITTEN_AS_TEXT: True}
        elif not calls and self._text.is_like_call():
            answer.custom_metadata = {MODEL_NOTE: LIKE_A_CALL}
        # The message's own fields go into the signature of its first thought; without one, of an empty thought.
        fields: dict[str, Any] = {_REASONING: True} if self._has_reasoning_content else {}
        fields |= {_BLOCKS: self._blocks} if self._blocks else {}
        if fields:
            answer.content = answer.content or types.Content(role="model", parts=[])
            thought = next((part for part in answer.parts if part.thought), None)
            if thought is None:
                thought = types.Part(text="", thought=True)
                answer.content.parts = [thought, *answer.parts]
            thought.thought_signature = chat_signature(self._server, fields)
        return answer

    def counts(self) -> LlmResponse | None:
        """The token counts that came so far, as a partial response."""
        return self._stream.counts()

    def broken_message(self, reason: str) -> str:
        """The error message for an answer that broke off."""
        return self._stream.broken_message(reason)

    def _add_call(self, fragment: Any, index: int | None) -> None:
        """Add a call, or the next fragment of one. Some servers give all calls the index 0, and each its own id."""
        function = fragment.function
        # Among calls with one index the newest: some servers use an index again.
        current = next((call for call in reversed(self._calls) if index is None or call.index == index), None)
        has_new_id = fragment.id and current and current.id and fragment.id != current.id
        if current is None or (has_new_id and function and function.name) or (index is None and fragment.id):
            current = _Call(index)
            self._calls.append(current)
        current.id = fragment.id or current.id
        if extra := getattr(fragment, "extra_content", None):
            current.extra |= extra
        if function:
            current.names += [function.name] if function.name else []
            arguments = function.arguments or ""
            # Some servers send the object itself.
            current.fragments.append(arguments if isinstance(arguments, str) else json.dumps(arguments))


class _Call:
    """A call whose name and arguments come in fragments."""

    def __init__(self, index: int | None) -> None:
        self.index = index
        self.id: str | None = None
        self.names: list[str] = []
        self.fragments: list[str] = []
        self.extra: dict[str, Any] = {}
        """`extra_content`: Gemini's OpenAI-compatible API has the signature of a call there.

        Source: https://ai.google.dev/gemini-api/docs/thought-signatures, "OpenAI compatibility".
        """

    @property
    def own_id(self) -> str | None:
        """The id without a signature."""
        return (self.id or "").partition(_SIGNED_ID)[0] or None

    @property
    def arguments(self) -> str:
        """The arguments as JSON."""
        return "".join(self.fragments)

    @property
    def is_empty(self) -> bool:
        """True for an object that some servers send beside calls: without a name and arguments."""
        return not self.names and self.arguments.strip() in ("", "{}", "null")

    def name(self, tools: Collection[str]) -> str:
        """The name: some servers send it in pieces, others send it whole with every fragment."""
        joined, first = "".join(self.names), self.names[0] if self.names else ""
        is_repeated = first in tools or all(name == first for name in self.names)
        return first if is_repeated and joined not in tools else joined

    @property
    def fields(self) -> dict[str, Any]:
        """Fields to send back with the call: its extra content, and the suffix of its id."""
        _, mark, signature = (self.id or "").partition(_SIGNED_ID)
        return ({"extra_content": self.extra} if self.extra else {}) | ({"id_end": mark + signature} if mark else {})


def _usage(usage: Any) -> types.GenerateContentResponseUsageMetadata:
    """Convert token counts. OpenAI's `completion_tokens` include thoughts."""
    thoughts = getattr(getattr(usage, "completion_tokens_details", None), "reasoning_tokens", None)
    cached = getattr(getattr(usage, "prompt_tokens_details", None), "cached_tokens", None)
    answer = usage.completion_tokens
    return types.GenerateContentResponseUsageMetadata(
        prompt_token_count=usage.prompt_tokens,
        # Gemini counts thoughts beside the candidates.
        candidates_token_count=answer - (thoughts or 0) if answer is not None else None,
        thoughts_token_count=thoughts,
        cached_content_token_count=cached,
        total_token_count=usage.total_tokens,
    )
