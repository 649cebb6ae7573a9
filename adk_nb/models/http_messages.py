"""Conversion of requests and answers of a JSON service: messages, tools, state, and placeholders in its settings."""

import json
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import quote

from adk_nb import types
from adk_nb.errors import ConfigurationError, InvalidResponse, MissingKeyError
from adk_nb.models.json_schemas import declared_functions, parameters_schema
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import ESCALATE, EXIT_FLOW, HITL_REQUEST, WAIT_FOR_USER_INPUT, LlmResponse
from adk_nb.redaction import remember, without_known

_PLACEHOLDER = re.compile(r"\{\{\s*(?:\$secret\(\s*(?:'([^']*)'|\"([^\"]*)\")\s*\)|state\.([^{}\s]+))\s*\}\}")
_SECRET = re.compile(r"\{\{\s*\$")
_HOW_TO_WRITE = "write {{$secret('name')}} or {{state.key}}"


@dataclass(frozen=True)
class TemplateValues:
    """Values of the placeholders `{{$secret('name')}}` and `{{state.key}}`; those within a value are not filled."""

    state: Mapping[str, Any] = field(default_factory=dict[str, Any])
    secrets: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Take precedence over the environment."""

    def text(self, template: str) -> str:
        """Replace the placeholders of `template`; a missing state key by nothing.

        Raises:
            MissingKeyError: A secret is missing.
        """
        return self._fill(template, str)

    def url(self, template: str) -> str:
        """As `text`, for a URL: values of the state are quoted, so that they cannot change its host or path."""
        return self._fill(template, lambda value: quote(value, safe=""))

    def json(self, template: Any) -> Any:
        """As `text`, for every text in JSON."""
        if isinstance(template, str):
            return self.text(template)
        if isinstance(template, list):
            return [self.json(item) for item in cast(list[Any], template)]
        if isinstance(template, dict):
            return {key: self.json(value) for key, value in cast(dict[str, Any], template).items()}
        return template

    def _fill(self, template: str, quote_value: Callable[[str], str]) -> str:
        def replacement(match: re.Match[str]) -> str:
            """Value of one placeholder."""
            if match[3] is not None:
                return quote_value(_as_text(self.state.get(match[3])))
            return self._secret(match[1] if match[1] is not None else match[2])

        return _PLACEHOLDER.sub(replacement, template) if "{{" in template else template

    def _secret(self, name: str) -> str:
        value = self.secrets.get(name) or os.environ.get(name)
        if not value:
            raise MissingKeyError(
                f"the secret {name!r} is not set; type: import os, getpass; "
                f"os.environ[{name!r}] = getpass.getpass(), or pass secrets={{{name!r}: ...}}"
            )
        remember(value)  # before any request: an error's text may repeat it
        return value


def check_template(template: Any, owner: str) -> None:
    """Check text or JSON for malformed placeholders of secrets, which would be sent as they are.

    Args:
        template: Text, or JSON.
        owner: Owner of the template, for errors.

    Raises:
        ConfigurationError: A placeholder is malformed.
    """
    # JSON escapes the double quotes of a placeholder.
    text = template if isinstance(template, str) else json.dumps(template).replace('\\"', '"')
    for match in _SECRET.finditer(text):
        if not _PLACEHOLDER.match(text, match.start()):
            placeholder = text[match.start() :].partition("}}")[0][:60] + "}}"
            raise ConfigurationError(f"{owner}: {placeholder!r} is not a placeholder; {_HOW_TO_WRITE}")


def _as_text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)


ASK_A_PERSON = "adk_request_input"
"""Name of the call for a `hitlRequest`. Source of the name: google-adk 2.13."""
CHAT = "chat"
"""Argument of such a call: true if it asks for the user's next message, which the service gets as a plain message."""
_DECISION = {"type": ["boolean", "object"], "properties": {"confirmed": {"type": "boolean"}}, "required": ["confirmed"]}
"""Schema of the answer to a `hitlRequest`: a boolean, or an object with the boolean `confirmed`."""
SYSTEM_STATE = ("_user_message_count", "orchestration_cycle_count")
"""State keys of the engine, sent only with `expose_system_state`."""
_Questions = Mapping[str | None, types.FunctionCall]
"""The calls for `hitlRequest`s, by id."""
_SEND = "send {'content': '...'}"
_FIELDS = ("content", "toolCalls", "exitFlow", "escalate", "hitlRequest", "waitForUserInput", "statusCode")
_FLAGS = {"exitFlow": EXIT_FLOW, "escalate": ESCALATE, "waitForUserInput": WAIT_FOR_USER_INPUT}


def request_body(request: LlmRequest, *, system_state: bool = False) -> dict[str, Any]:
    """Create the body: `messages`, `tools`, `state`."""
    system: Any = cast(Any, request.config).system_instruction
    messages: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
    parts = [part for content in request.contents for part in content.parts or ()]
    calls = [part.function_call for part in parts if part.function_call]
    questions = {call.id: call for call in calls if call.name == ASK_A_PERSON}
    for content in request.contents:
        messages += _messages(content, questions)
    return {
        "messages": messages,
        "tools": list(_tools(request)),
        "state": sent_state(request.session_state, system=system_state),
    }


def sent_state(state: Mapping[str, Any] | None, *, system: bool = False) -> dict[str, Any]:
    """The session's state without `temp:` keys and, unless `system`, without the engine's keys."""
    hidden = () if system else SYSTEM_STATE
    return {key: value for key, value in (state or {}).items() if key not in hidden and not key.startswith("temp:")}


def parse_response(body: bytes, media_type: str) -> LlmResponse:
    """Parse an answer.

    Raises:
        InvalidResponse: It breaks the contract; the message names the field.
    """
    data = _read(body, media_type)
    if isinstance(data, str):
        data = {"content": data}
    if not isinstance(data, dict):
        raise InvalidResponse(f"the answer must be a JSON object, got {_excerpt(data)}; {_SEND}")
    answer = cast(dict[str, Any], data)
    if answer and not answer.keys() & set(_FIELDS):
        raise InvalidResponse(f"it has none of the fields {', '.join(_FIELDS)}: {_excerpt(answer)}; {_SEND}")
    metadata: dict[str, Any] = {}
    for flagged, name in _FLAGS.items():
        if (flag := answer.get(flagged)) is not None and not isinstance(flag, bool):
            raise InvalidResponse(f"{flagged!r} must be true or false, got {_excerpt(flag)}")
        metadata |= {name: True} if flag else {}
    content = answer.get("content")
    pieces = cast(list[Any], content) if isinstance(content, list) else [] if content is None else [content]
    texts: list[Any] = [cast(dict[str, Any], item).get("text") if isinstance(item, dict) else item for item in pieces]
    if not all(isinstance(text, str) for text in texts):
        raise InvalidResponse(f"'content' must be text, a list of {{'text': ...}}, or null, got {_excerpt(content)}")
    if not isinstance(calls := answer.get("toolCalls"), list | None):
        raise InvalidResponse(f"'toolCalls' must be a list or null, got {_excerpt(calls)}")
    parts = [types.Part(text=text) for text in texts if text]
    parts += [types.Part(function_call=_call(call)) for call in cast(list[Any], calls or [])]
    if question := _question(answer.get("hitlRequest")):
        parts.append(question)
        metadata[HITL_REQUEST] = True
    if isinstance(status := answer.get("statusCode"), int):
        metadata["status_code"] = status
    return LlmResponse(content=types.Content(role="model", parts=parts), custom_metadata=metadata or None)


# ---- requests


def _asks_for_decision(call: types.FunctionCall) -> bool:
    return call.name == ASK_A_PERSON and (call.args or {}).get("response_schema") == _DECISION


def _messages(content: types.Content, questions: _Questions) -> Iterator[dict[str, Any]]:
    parts: list[types.Part] = []
    for part in content.parts or ():
        call, response = part.function_call, part.function_response
        # The question for the user's next message was none of the service's calls.
        if part.thought or (call and call.name == ASK_A_PERSON and (call.args or {}).get(CHAT)):
            continue
        # The response to a `hitlRequest`: the user's message becomes text, a boolean a decision.
        if response and (question := questions.get(response.id)):
            answer = (response.response or {}).get("result")
            if (question.args or {}).get(CHAT):
                part = types.Part(text=answer if isinstance(answer, str) else json.dumps(answer))
            elif _asks_for_decision(question) and isinstance(answer, bool):
                decided = {"confirmed": answer, "payload": None}
                part = types.Part(function_response=response.model_copy(update={"response": decided}))
        parts.append(part)
    results = [part for part in parts if part.function_response]
    rest = [part for part in parts if not part.function_response]
    if results:
        yield {"role": "tool", "content": [_part(part) for part in results]}
    if rest:
        role = "assistant" if content.role == "model" else "user"
        alone = rest[0].text if len(rest) == 1 else None
        yield {"role": role, "content": [_part(part) for part in rest] if alone is None else alone}


def _part(part: types.Part) -> dict[str, Any]:
    if call := part.function_call:
        hidden = ("response_schema",) if _asks_for_decision(call) else ()
        args = {name: value for name, value in (call.args or {}).items() if name not in hidden}
        return {"function_call": {"id": call.id, "name": call.name, "args": args}}
    if response := part.function_response:
        return {"function_response": {"id": response.id, "name": response.name, "response": response.response or {}}}
    if part.text is not None:
        return {"text": part.text}
    return part.model_dump(mode="json", exclude_none=True, exclude={"thought_signature"})


def _tools(request: LlmRequest) -> Iterator[dict[str, Any]]:
    for declaration in declared_functions(request):
        function = {
            "name": declaration.name,
            "description": declaration.description or declaration.name,
            "parameters": parameters_schema(declaration, whole=True),
        }
        yield {"type": "function", "function": function}


# ---- answers


def _read(body: bytes, media_type: str) -> Any:
    kind = media_type.partition(";")[0].strip().lower()
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidResponse("the answer is not UTF-8 text; send JSON, or plain text") from error
    if not text.strip():
        raise InvalidResponse(f"the answer is empty; {_SEND}")
    try:
        # A service may echo a secret of its request.
        return without_known(_JSON.decode(text.strip()))
    except (ValueError, RecursionError) as error:
        # A broken object or an HTML page is a mistake, not an answer.
        if kind in ("text/plain", "") and text.lstrip()[0] not in "{[<":
            return without_known(text)
        reason = str(error) if isinstance(error, ValueError) else "it is nested too deep"
        raise InvalidResponse(
            f"the answer is {kind or 'text'}, not JSON: {reason}: {_excerpt(text)}; {_SEND}"
        ) from error


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Create an object; duplicate keys are refused, since parsers disagree which value counts."""
    data = dict(pairs)
    if len(data) < len(pairs):
        [(duplicate, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"the key {duplicate!r:.80} occurs twice in one object")
    return data


def _finite(number: str) -> float:
    # Python's parser takes NaN and Infinity, which JSON lacks, and reads 1e999 as infinity.
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number:.40} is not a JSON number")
    return value


_JSON = json.JSONDecoder(object_pairs_hook=_unique_keys, parse_float=_finite, parse_constant=_finite)


def _call(data: Any) -> types.FunctionCall:
    call = cast(dict[str, Any], data) if isinstance(data, dict) else {}
    name, key = call.get("function_name"), call.get("id") or call.get("call_id")
    args: Any = call.get("function_args")
    if isinstance(args, str):
        try:
            args = _JSON.decode(args.strip()) if args.strip() else {}
        except (ValueError, RecursionError) as error:
            raise InvalidResponse(f"'function_args' of {name!r:.80} is not JSON: {_excerpt(args)}") from error
    if not isinstance(name, str) or not name or not isinstance(args, dict | None):
        raise InvalidResponse(
            "each of 'toolCalls' must be {'function_name': '...', 'function_args': {...}}, got " + _excerpt(data)
        )
    return types.FunctionCall(
        id=key if isinstance(key, str) else None, name=name, args=cast(dict[str, Any] | None, args) or {}
    )


def _question(data: Any) -> types.Part | None:
    if data is None:
        return None
    request = cast(dict[str, Any], data) if isinstance(data, dict) else {}
    if not isinstance(prompt := request.get("prompt"), str):
        raise InvalidResponse(f"'hitlRequest' must be {{'prompt': '...', 'actionDetails': ...}}, got {_excerpt(data)}")
    args: dict[str, Any] = {"message": prompt, "response_schema": _DECISION}
    if (details := request.get("actionDetails")) is not None:
        args["payload"] = details
    return types.Part(function_call=types.FunctionCall(name=ASK_A_PERSON, args=args))


def _excerpt(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return repr(text[:200])
