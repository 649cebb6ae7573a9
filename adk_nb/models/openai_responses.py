"""OpenAI's Responses API: reasoning beside tools, and tools that OpenAI runs itself.

Source: https://platform.openai.com/docs/api-reference/responses.
"""

import base64
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, cast

from adk_nb import types
from adk_nb.errors import ConfigurationError, UnexpectedModelAnswer
from adk_nb.models.adaptation import chat_fields, chat_signature, instruction_text, pair_turns, part_text
from adk_nb.models.json_schemas import (
    allowed_functions,
    calling_config,
    output_schema,
    parameters_schema,
    strict_schema,
)
from adk_nb.models.llm_request import LlmRequest, tools_of
from adk_nb.models.llm_response import LlmResponse
from adk_nb.models.openai_chat import CHOICES, adapt_to_family, call_part, effort_of
from adk_nb.models.pipeline import Payload
from adk_nb.models.response_stream import ResponseStream
from adk_nb.models.vendor_facts import Family
from adk_nb.redaction import hidden

_ITEM = "item"
"""Field of a thought: an item of the service's answer, such as encrypted reasoning, that goes back as it came."""
SERVICE_TOOLS = ("google_search", "file_search")
"""Fields of types.Tool that OpenAI has a tool for, beside code execution."""
_INSTEAD = {
    "mcp_servers": "give the agent an McpToolset, whose calls can be approved",
    "url_context": "give the agent load_web_page of adk_nb.tools.load_web_page",
    "google_maps": "take a Gemini model",
    "enterprise_web_search": "write google_search",
    "google_search_retrieval": "write google_search",
    "retrieval": "write types.Tool(file_search=...) with the ids of vector stores of OpenAI",
}
"""Field of types.Tool that OpenAI has no equal of -> what to do."""
_IMAGE = re.compile(r"data:(image/[a-z+.-]+);base64,((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?)")
_REASONS = {
    "max_output_tokens": types.FinishReason.MAX_TOKENS,
    "content_filter": types.FinishReason.SAFETY,
}


def response_arguments(
    request: LlmRequest, model: str, family: Family, *, server: str, parallel_calls: bool = True
) -> Payload:
    """The arguments of `responses.create`. Nothing is stored at OpenAI: reasoning comes and goes back encrypted.

    Args:
        request: Not changed.
        model: Name at the service.
        family: Settings that the model would refuse are left out.
        server: Name of the server; items that it sent are sent back to it only.
        parallel_calls: The model may call several tools in one turn.

    Raises:
        ConfigurationError: The request has a tool of a service that OpenAI's does not have.
    """
    config = request.config
    arguments: Payload = {"model": model, "input": list(_items(request, server)), "store": False}
    if instruction := instruction_text(config):
        arguments["instructions"] = instruction
    if tools := list(_tools(request)):
        arguments["tools"] = tools
        if (mode := calling_config(request).mode) and mode in CHOICES:
            arguments["tool_choice"] = CHOICES[mode]
        arguments["parallel_tool_calls"] = parallel_calls
    settings = {name: value for name in ("temperature", "top_p") if (value := getattr(config, name)) is not None}
    effort = effort_of(config)
    # The rules of the family but for that of tools, which this API takes beside every effort.
    adapted = adapt_to_family(settings | ({"reasoning_effort": effort} if effort else {}), family)
    effort = adapted.pop("reasoning_effort", None)
    reasoning = {"effort": effort} if effort else {}
    if config.thinking_config and config.thinking_config.include_thoughts:
        reasoning["summary"] = "auto"
    arguments |= adapted | ({"reasoning": reasoning} if reasoning else {})
    included = ["reasoning.encrypted_content"] if family.responses else []
    if any(tool["type"] == "code_interpreter" for tool in tools):
        included.append("code_interpreter_call.outputs")
    if included:
        arguments["include"] = included
    if config.max_output_tokens is not None:
        arguments["max_output_tokens"] = config.max_output_tokens
    if (schema := output_schema(config)) is not None:
        strict = strict_schema(schema)
        form = {"type": "json_schema", "name": "answer", "schema": strict or schema, "strict": strict is not None}
        arguments["text"] = {"format": form}
    elif config.response_mime_type == "application/json":
        arguments["text"] = {"format": {"type": "json_object"}}
    if config.http_options and config.http_options.headers:
        arguments["extra_headers"] = config.http_options.headers
    return arguments


def _items(request: LlmRequest, server: str) -> Iterator[dict[str, Any]]:
    for turn in pair_turns(request.contents):
        parts = turn.parts or []
        if turn.role == "model":
            yield from _model_items(parts, server)
            continue
        content: list[dict[str, Any]] = []
        for part in parts:
            if response := part.function_response:
                yield {"type": "function_call_output", "call_id": response.id, "output": _output(response)}
            elif not part.thought and (block := _block(part)):
                content.append(block)
        if content:
            yield {"role": "user", "content": content}


def _model_items(parts: Sequence[types.Part], server: str) -> Iterator[dict[str, Any]]:
    waiting: list[dict[str, Any]] = []
    has_result = False
    """The item of the last code has its result."""
    for part in parts:
        if part.thought or part.executable_code:
            item = chat_fields(part, server).get(_ITEM)
            waiting += [item] if item else []
            has_result = bool(item)
            if item or part.thought:
                continue
        if part.code_execution_result and has_result:
            continue
        if call := part.function_call:
            arguments = json.dumps(call.args or {}, ensure_ascii=False)
            item = {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments}
        elif text := part_text(part):
            item = {"role": "assistant", "content": text}
        else:
            continue
        # Reasoning without what it led to is refused.
        yield from [*waiting, item]
        waiting = []


def _output(response: types.FunctionResponse) -> Any:
    text = json.dumps(response.response or {}, ensure_ascii=False, default=str)
    blocks = [
        block for part in response.parts or () if (block := _data(part.inline_data or part.file_data)) is not None
    ]
    return [{"type": "input_text", "text": text}, *blocks] if blocks else text


def _block(part: types.Part) -> dict[str, Any] | None:
    if block := _data(part.inline_data or part.file_data):
        return block
    return {"type": "input_text", "text": text} if (text := part_text(part)) else None


def _data(data: Any) -> dict[str, Any] | None:
    """An image or a file, from bytes or a URI; None: `data` is None."""
    if data is None:
        return None
    kind, name = data.mime_type or "application/octet-stream", data.display_name or "file"
    uri: str | None = getattr(data, "file_uri", None)
    content: bytes = getattr(data, "data", None) or b""
    if kind.startswith("text/") and not uri:
        return {"type": "input_text", "text": content.decode("utf-8", "replace")}
    url = uri or f"data:{kind};base64,{base64.b64encode(content).decode()}"
    if kind.startswith("image/"):
        return {"type": "input_image", "image_url": url, "detail": "auto"}
    return (
        {"type": "input_file", "file_url": url} if uri else {"type": "input_file", "filename": name, "file_data": url}
    )


def _tools(request: LlmRequest) -> Iterator[dict[str, Any]]:
    """Functions, then the tools that OpenAI runs itself."""
    for declaration in allowed_functions(request):
        yield {
            "type": "function",
            "name": declaration.name,
            "parameters": parameters_schema(declaration),
            "strict": False,  # the default of this API would refuse most schemas
            **({"description": declaration.description} if declaration.description else {}),
        }
    for tool in tools_of(request):
        if not isinstance(tool, types.Tool):
            continue
        for field in sorted(tool.model_fields_set - {"function_declarations"}):
            setting = getattr(tool, field)
            if setting is None:
                continue
            if field == "google_search":
                yield {"type": "web_search"}
            elif field == "code_execution":
                yield {"type": "code_interpreter", "container": {"type": "auto"}}
            elif field == "file_search" and not setting.metadata_filter:
                limit = {"max_num_results": setting.top_k} if setting.top_k is not None else {}
                yield {"type": "file_search", "vector_store_ids": setting.file_search_store_names or [], **limit}
            else:
                name = "filter of the file search" if field == "file_search" else field
                raise ConfigurationError(
                    f"OpenAI's service has no {name}; {_INSTEAD.get(field, 'leave it out, or take a Gemini model')}"
                )


class ResponseAssembler:
    """Assembles the events of one answer, or takes it whole: what counts is the response in its last event."""

    def __init__(self, model: str, server: str) -> None:
        self._model = model
        self._server = server
        self._shown = ResponseStream(model)
        self._response: Any = None

    def add(self, chunk: Any) -> LlmResponse | None:
        """Add an event, or a response; returns the part of it that can be shown already."""
        match getattr(chunk, "type", None):
            case "response.output_text.delta" | "response.refusal.delta":
                return self._shown.add_parts([types.Part(text=chunk.delta)])
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                return self._shown.add_parts([types.Part(text=chunk.delta, thought=True)])
            case "response.output_item.done" if chunk.item.type == "code_interpreter_call" and chunk.item.code:
                return self._shown.add_parts(_code_parts(chunk.item, self._server))
            case "response.completed" | "response.incomplete" | "response.failed":
                self._response = chunk.response
            case "error":
                raise UnexpectedModelAnswer(self.broken_message(f"its service sent an error: {hidden(chunk.message)}"))
            case None if getattr(chunk, "object", None) == "response":
                self._response = chunk
            case _:  # OpenAI may add events
                pass
        return None

    def complete(self) -> LlmResponse:
        """The complete answer.

        Raises:
            UnexpectedModelAnswer: The service failed, or its events ended before the answer did.
        """
        response = self._response
        if response is None:
            raise UnexpectedModelAnswer(self.broken_message("no complete response came"))
        items: Any = response.output
        if response.status == "failed" or not isinstance(items, list):
            error = getattr(response, "error", None)
            raise UnexpectedModelAnswer(
                f"the service of model {self._model!r} failed: {hidden(str(getattr(error, 'message', error)))[:500]}"
            )
        details = getattr(response, "incomplete_details", None)
        reason = types.FinishReason.STOP
        if response.status == "incomplete":
            reason = _REASONS.get(getattr(details, "reason", None) or "", types.FinishReason.OTHER)
        stream, sources = ResponseStream(self._model), list[types.GroundingChunk]()
        searches, file_searches = list[str](), list[str]()
        for item in cast(list[Any], items):
            if item.type == "message":
                stream.add_parts(_texts(item, sources))
            elif item.type == "code_interpreter_call" and item.code:
                stream.add_parts(_code_parts(item, self._server))
            elif item.type != "function_call":
                # Reasoning, or the work of a tool at the service, is a thought: its summary is shown, the rest is not.
                fields = _fields(item)
                if item.type == "reasoning":
                    fields.pop("status", None)
                pieces = (*(getattr(item, "summary", None) or ()), *(getattr(item, "content", None) or ()))
                thought = types.Part(text="\n\n".join(piece.text for piece in pieces), thought=True)
                thought.thought_signature = chat_signature(self._server, {_ITEM: fields})
                stream.add_parts([thought])
            elif reason == types.FinishReason.STOP:  # else its arguments may be cut off
                stream.add_parts([call_part(item.call_id, item.name, item.arguments)])
            if item.type == "web_search_call":
                query = getattr(item.action, "query", None)
                searches += getattr(item.action, "queries", None) or ([query] if query else [])
            elif item.type == "file_search_call":
                file_searches += item.queries or []
        grounding = types.GroundingMetadata(
            grounding_chunks=sources or None,
            web_search_queries=list(dict.fromkeys(searches)) or None,
            retrieval_queries=list(dict.fromkeys(file_searches)) or None,
        )
        stream.set_fields(
            finish_reason=reason,
            model_version=response.model or None,
            usage_metadata=_usage(response.usage) if getattr(response, "usage", None) else None,
            grounding_metadata=grounding if sources or searches or file_searches else None,
        )
        return stream.complete()

    def counts(self) -> LlmResponse | None:
        """The token counts that came, as a partial response."""
        if usage := getattr(self._response, "usage", None):
            self._shown.set_fields(usage_metadata=_usage(usage))
        return self._shown.counts()

    def broken_message(self, reason: str) -> str:
        """The error message for an answer that broke off."""
        return self._shown.broken_message(reason)


def _fields(item: Any) -> dict[str, Any]:
    """An item as it goes back with the next request."""
    return {name: value for name, value in item.to_dict(mode="json").items() if value is not None}


def _texts(message: Any, sources: list[types.GroundingChunk]) -> Iterator[types.Part]:
    """The texts of a message; the pages and files that it cites are added to `sources`."""
    for content in message.content:
        # A refusal is words, too.
        yield types.Part(text=getattr(content, "text", None) or getattr(content, "refusal", None) or "")
        for note in getattr(content, "annotations", None) or ():
            if note.type == "url_citation":
                web = types.GroundingChunkWeb(uri=note.url, title=getattr(note, "title", None))
                sources.append(types.GroundingChunk(web=web))
            elif note.type == "file_citation":
                file = types.GroundingChunkRetrievedContext(title=note.filename)
                sources.append(types.GroundingChunk(retrieved_context=file))


def _code_parts(item: Any, server: str) -> list[types.Part]:
    """Code that the service ran, its output, and the images that it drew."""
    fields = _fields(item)
    outputs: list[Any] = item.outputs or []
    # The images are parts of the answer: they do not go back a second time.
    fields["outputs"] = [{"type": "logs", "logs": output.logs} for output in outputs if output.type == "logs"]
    ran = types.ExecutableCode(code=item.code, language=types.Language.PYTHON)
    result = types.CodeExecutionResult(
        outcome=types.Outcome.OUTCOME_OK if item.status == "completed" else types.Outcome.OUTCOME_FAILED,
        output="\n".join(output["logs"] for output in fields["outputs"]),
    )
    parts = [
        types.Part(executable_code=ran, thought_signature=chat_signature(server, {_ITEM: fields})),
        types.Part(code_execution_result=result),
    ]
    for output in outputs:
        if output.type == "image" and (match := _IMAGE.fullmatch(output.url)):
            parts.append(types.Part(inline_data=types.Blob(mime_type=match[1], data=base64.b64decode(match[2]))))
        elif output.type == "image" and output.url.startswith("https://"):
            parts.append(types.Part(file_data=types.FileData(file_uri=output.url, mime_type="image/png")))
    return parts


def _usage(usage: Any) -> types.GenerateContentResponseUsageMetadata:
    """Convert token counts. OpenAI's `output_tokens` include reasoning."""
    thoughts = getattr(getattr(usage, "output_tokens_details", None), "reasoning_tokens", None)
    return types.GenerateContentResponseUsageMetadata(
        prompt_token_count=usage.input_tokens,
        candidates_token_count=usage.output_tokens - (thoughts or 0),
        thoughts_token_count=thoughts,
        cached_content_token_count=getattr(getattr(usage, "input_tokens_details", None), "cached_tokens", None),
        total_token_count=usage.total_tokens,
    )
