"""The panel of prompts: each request to a model, exactly as sent, and its response, as JSON."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, cast

from pydantic_core import to_jsonable_python

from adk_nb import types
from adk_nb.notebook.view.document import (
    Block,
    Code,
    Fold,
    Frame,
    Heading,
    Line,
    Section,
    Span,
    Table,
    Text,
    parts_of,
    plain,
    rich,
    text_of,
)
from adk_nb.notebook.view.panels import Panel, PanelRun, add, text_fold
from adk_nb.notebook.view.panels.waterfall import bars, in_steps
from adk_nb.notebook.view.plain_text import LONG, bounded_json, cleaned, json_text, one_line, shortened
from adk_nb.redaction import redacted
from adk_nb.runtime.trace import Substitution, Trace, TracedRequest

_TRANSPORT = {"http_options", "should_return_http_response", "system_instruction", "tools"}
"""Transport options, and fields with a place of their own."""
_MOST_PARTS = 300
"""Newest parts of a history that are sent to a page."""
_MOST_SAVED = 6
"""Prompts in a saved notebook."""
_RAW = 4_000
"""Characters of a raw response."""
_SHORT = 1_500
"""Characters of an instruction that is unfolded at first."""
_SYSTEM, _TOOLS, _LAST = 1_000, 300, 400
"""Characters of an instruction, of the names of tools, and of a message in a saved notebook."""
_SIGNS = {"text": "", "thought": "thinks: ", "call": "calls ", "result": "", "data": ""}


class Piece(TypedDict):
    """A stretch of text."""

    text: str
    source: str
    """The placeholder whose value it is, as `{{places}}` or `{budget}`; empty: none."""


class ToolOffer(TypedDict):
    """A tool in a request."""

    name: str
    description: str
    parameters: Any
    """JSON schema of the parameters; None: it has none. For a tool of the service, such as search, its settings."""


class MessagePart(TypedDict):
    """A part of the history: text, a call, a result, or the name of other data."""

    role: str
    """`user` or `model`."""
    kind: str
    """`text`, `thought`, `call`, `result` or `data`."""
    text: list[Piece]


class Prompt(TypedDict):
    """One model call, complete."""

    agent: str
    model: str
    event: str
    """Id of the answer's event."""
    ms: float | None
    """None: the call has not ended."""
    first_ms: float | None
    """Up to the first piece of a streamed answer."""
    system: list[Piece]
    tools: list[ToolOffer]
    history: list[MessagePart]
    messages: int
    """Messages in the history; a message may have several parts."""
    settings: Any
    """The rest of the request, as JSON; a setting that the service was not sent is `{"value", "not sent": reason}`."""
    answer: list[MessagePart]
    raw: Any
    """The whole response as JSON; None: there is none."""
    tokens: dict[str, int]
    """`input`, `output`, `cached`, `thoughts`, `total`; without those that the service did not count."""
    error: str


def prompts(trace: Trace) -> list[Prompt]:
    """The model calls of a run in the order in which they were sent; keys are masked in all of them."""
    return [_prompt(call, trace) for call in trace.requests]


def _prompt(call: TracedRequest, trace: Trace) -> Prompt:
    request, response = call.request, call.response
    settings = {key: value for key, value in _json(request.config).items() if key not in _TRANSPORT}
    unsent = call.unsent_settings(request) if call.unsent_settings and settings else {}
    return Prompt(
        agent=call.agent,
        model=call.model,
        event=call.event_id,
        ms=_ms(call.began, call.ended),
        first_ms=_ms(call.began, call.first),
        system=_system(call, trace),
        tools=_tools(call),
        history=[part for content in request.contents for part in _parts(content, trace)],
        messages=len(request.contents),
        settings={
            key: {"value": value, "not sent": cleaned(unsent[key])} if key in unsent else value
            for key, value in settings.items()
        },
        answer=_parts(response.content, trace) if response and response.content else [],
        raw=_json(response) if response else None,
        tokens=_tokens(response.usage_metadata if response else None),
        error=cleaned(call.error),
    )


def _system(call: TracedRequest, trace: Trace) -> list[Piece]:
    instruction: Any = call.request.config.system_instruction
    if instruction is None or isinstance(instruction, str):
        return _pieces(instruction or "", trace)
    parts: list[Any] = getattr(instruction, "parts", None) or (
        cast(list[Any], instruction) if isinstance(instruction, list) else [instruction]
    )
    texts = [part if isinstance(part, str) else getattr(part, "text", None) or "" for part in parts]
    return _pieces("\n".join(texts), trace)


def _tools(call: TracedRequest) -> list[ToolOffer]:
    offers: list[ToolOffer] = []
    for tool in call.request.config.tools or ():
        settings: dict[str, Any] = _json(tool)
        declarations: list[dict[str, Any]] = settings.pop("function_declarations", None) or []
        offers += [
            ToolOffer(
                name=cleaned(str(function.get("name", ""))),
                description=cleaned(str(function.get("description", ""))),
                parameters=function.get("parameters_json_schema") or function.get("parameters"),
            )
            for function in declarations
        ]
        offers += [ToolOffer(name=name, description="", parameters=value) for name, value in settings.items()]
    return offers


def _ms(began: float, moment: float | None) -> float | None:
    return None if moment is None else round(max(0.0, moment - began) * 1000, 1)


def _pieces(text: str, trace: Trace) -> list[Piece]:
    """`text` split at the values of its placeholders."""
    pieces: list[Piece] = []
    end = 0
    for place in sorted(_values(text, trace), key=lambda place: (place.start, -place.end)):
        if place.start >= end:
            pieces += [_piece(text[end : place.start]), _piece(text[place.start : place.end], place.source)]
            end = place.end
    pieces.append(_piece(text[end:]))
    return [piece for piece in pieces if piece["text"] or piece["source"]]


def _values(text: str, trace: Trace) -> Iterable[Substitution]:
    for instruction, values in trace.instructions.items():
        start = text.find(instruction) if instruction else -1
        if start >= 0:
            yield from (Substitution(start + value.start, start + value.end, value.source) for value in values)


def _piece(text: str, source: str = "") -> Piece:
    return Piece(text=cleaned(text), source=source)


def _parts(content: types.Content, trace: Trace) -> list[MessagePart]:
    parts: list[MessagePart] = []
    for part in content.parts or ():
        if part.text is not None:
            kind, text = "thought" if part.thought else "text", _pieces(part.text, trace)
        elif call := part.function_call:
            kind, text = "call", [_piece(f"{call.name}({_arguments(call.args)})")]
        elif response := part.function_response:
            kind, text = "result", [_piece(f"{response.name} → {json_text(response.response)}")]
        elif (blob := part.inline_data) and blob.data is not None:
            kind, text = "data", [_piece(f"[{blob.mime_type or 'data'}, {len(blob.data):,} bytes]")]
        else:
            kind, text = "data", [_piece(json_text(_json(part)))]
        parts.append(MessagePart(role=content.role or "user", kind=kind, text=text))
    return parts


def _arguments(args: dict[str, Any] | None) -> str:
    return ", ".join(f"{name}={json_text(value, name=name)}" for name, value in (args or {}).items())


def _tokens(usage: types.GenerateContentResponseUsageMetadata | None) -> dict[str, int]:
    names = {
        "input": "prompt_token_count",
        "output": "candidates_token_count",
        "cached": "cached_content_token_count",
        "thoughts": "thoughts_token_count",
        "total": "total_token_count",
    }
    return {name: count for name, field in names.items() if (count := getattr(usage, field, None))}


def _json(value: Any) -> Any:
    """`value` as JSON without empty fields, with keys masked."""
    dumped = to_jsonable_python(
        value, by_alias=False, exclude_none=True, bytes_mode="base64", fallback=lambda obj: f"<{type(obj).__name__}>"
    )
    return json.loads(json.dumps(redacted(dumped)))


# ---- what a call repeats of an earlier one


class Repeated(TypedDict):
    """What a model call repeats of the call before it of the same agent."""

    call: int
    """The number of that call, from 1; 0: there is none."""
    parts: list[str]
    """Names of the parts that are the same, of `SYSTEM`, `INSERTED`, `TOOLS` and `SETTINGS`."""
    history: int
    """Number of parts at the beginning of the history that are the same."""
    messages: int
    """Number of messages that they are."""


SYSTEM, INSERTED, TOOLS, SETTINGS = "system instruction", "inserted values", "tools", "settings"


def repeated(prompt: Prompt, earlier: Prompt | None, call: int) -> Repeated:
    """What `prompt` repeats of `earlier`, which is model call number `call`."""
    if earlier is None:
        return Repeated(call=0, parts=[], history=0, messages=0)
    pairs = {SYSTEM: "system", INSERTED: "system", TOOLS: "tools", SETTINGS: "settings"}
    parts = [name for name, field in pairs.items() if prompt[field] == earlier[field]]
    known = len(earlier["history"])
    goes_on = prompt["history"][:known] == earlier["history"]
    messages = earlier["messages"] if goes_on else 0
    return Repeated(call=call, parts=parts, history=known if goes_on else 0, messages=messages)


# ---- as blocks


@dataclass(frozen=True, kw_only=True)
class _Part:
    """A part of a model call: of its request, or of its response."""

    name: str
    size: str
    text: Line
    table: Table | None = None
    """The same in forms that have tables."""

    def blocks(self, *, is_open: bool) -> tuple[Block, ...]:
        """It, folded in the rich forms."""
        fold = Fold(self.name, (self.table or Code(self.text),), self.size, is_open)
        return plain(Text(_facts(self.name, self.size), small=True), Code(self.text)), rich(fold)


def drawn(calls: Sequence[Prompt], title: str) -> tuple[Block, ...]:
    """The model calls of a run, each with its parts; of a further call of an agent those that have changed."""
    blocks: list[Block] = [plain(Text(title))]
    newest: dict[str, tuple[int, Prompt]] = {}
    for number, prompt in enumerate(calls, 1):
        call, earlier = newest.get(prompt["agent"], (0, None))
        newest[prompt["agent"]] = number, prompt
        same = repeated(prompt, earlier, call)
        blocks.append(Heading(_head(prompt, number, len(calls)), is_near=True))
        for part in _parts_of(prompt, same):
            is_open = part.name == SYSTEM and number == 1 and len(text_of(part.text)) <= _SHORT
            blocks += part.blocks(is_open=is_open)
        if line := _same_line(prompt, same):
            blocks.append(Text(line, small=True))
    chips = ["1 model call" if len(calls) == 1 else f"{len(calls)} model calls"]
    return (Section((Frame(title, tuple(blocks), chips),)),)


def _head(prompt: Prompt, number: int, total: int) -> str:
    tokens = prompt["tokens"]
    used = f"{tokens.get('input', 0):,} tokens in, {tokens.get('output', 0):,} out" if tokens else ""
    return one_line(_facts(f"model call {number} of {total}: {prompt['agent']} asks {prompt['model']}", used))


def _facts(*facts: str) -> str:
    return " · ".join(filter(None, facts))


def _parts_of(prompt: Prompt, same: Repeated) -> list[_Part]:
    """The parts with content, without those that the call repeats."""
    inserted = {piece["source"]: one_line(piece["text"]) for piece in prompt["system"] if piece["source"]}
    values = [[source, value or "(nothing)"] for source, value in inserted.items()]
    settings: dict[str, Any] = prompt["settings"] or {}
    history, messages = prompt["history"][same["history"] :], count(prompt["messages"], "message")
    if same["messages"]:
        messages = f"{prompt['messages'] - same['messages']} new of {messages}"
    raw = _short_json(prompt["raw"]) if prompt["raw"] else ""
    system = "".join(piece["text"] for piece in prompt["system"])
    parts = [
        _Part(name=SYSTEM, size=count(len(system), "character"), text=_line(prompt["system"])),
        _Part(
            name=INSERTED,
            size=count(len(values), "value"),
            text="\n".join(map(" → ".join, values)),
            table=Table(["placeholder", "value"], values),
        ),
        _Part(name=TOOLS, size=str(len(prompt["tools"])), text="\n".join(map(_tool, prompt["tools"]))),
        _Part(name=SETTINGS, size=str(len(settings)), text=_short_json(settings) if settings else ""),
        _Part(name="history", size=messages, text=_line(_conversation(history))),
        _Part(name="answer", size=_size_of(prompt["answer"]), text=_line(_conversation(prompt["answer"]))),
        _Part(name="error", size="", text=prompt["error"]),
        _Part(name="raw response", size=count(len(raw), "character"), text=raw),
    ]
    return [part for part in parts if part.name not in same["parts"] and any(map(text_of, parts_of(part.text)))]


def _same_line(prompt: Prompt, same: Repeated) -> str:
    """The names of what the call repeats, without those of parts that are empty."""
    filled = {SYSTEM: prompt["system"], TOOLS: prompt["tools"], SETTINGS: prompt["settings"]}
    names = [name for name, content in filled.items() if content and name in same["parts"]]
    names += [f"the first {count(same['messages'], 'message')}"] if same["messages"] else []
    return f"as in model call {same['call']}: {', '.join(names)}" if names else ""


def _size_of(parts: Sequence[MessagePart]) -> str:
    calls = sum(part["kind"] == "call" for part in parts)
    text = sum(len(piece["text"]) for part in parts if part["kind"] == "text" for piece in part["text"])
    return ", ".join([*([count(calls, "call")] if calls else []), *([count(text, "character")] if text else [])])


def count(number: int, word: str) -> str:
    """`1 message`, `1,204 messages`."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def _item(name: str, text: str) -> list[str]:
    first, *more = [line for line in text.splitlines() if line.strip()] or [""]
    return [f"    {name}: {first}", *(f"      {line}" for line in more)] if first else []


def _tool(offer: ToolOffer) -> str:
    schema: Any = offer["parameters"]
    names = ", ".join(schema.get("properties") or ()) if schema else ""
    summary = one_line(next(iter(offer["description"].strip().splitlines()), ""))
    return f"{offer['name']}({names})" + (f": {summary}" if summary else "")


def _conversation(parts: Iterable[MessagePart]) -> list[Piece]:
    pieces: list[Piece] = []
    for part in parts:
        beginning = f"{part['role']}: {_SIGNS[part['kind']]}"
        pieces += [Piece(text=beginning, source=""), *part["text"], Piece(text="\n", source="")]
    return pieces[:-1]


def _short_json(value: Any) -> str:
    return shortened(json.dumps(value, ensure_ascii=False, indent=1, default=str), _RAW)


def _text(body: Iterable[Piece]) -> str:
    return "".join(f"«{piece['text']}»" if piece["source"] else piece["text"] for piece in body)


def _line(body: Iterable[Piece]) -> Line:
    return tuple(Span(piece["text"], "inserted") if piece["source"] else piece["text"] for piece in body)


# ---- the panel


def _headings(run: PanelRun, _: str) -> list[dict[str, Any]]:
    """A heading for each model call; cheap, since messages are left out."""
    headings: list[dict[str, Any]] = []
    for call in run.trace.requests:
        usage = call.response.usage_metadata if call.response else None
        tokens = (usage.total_token_count if usage else None) or 0
        ms = _ms(call.began, call.ended)
        headings.append({"agent": call.agent, "model": call.model, "event": call.event_id, "ms": ms, "tokens": tokens})
    return headings


def _numbered(run: PanelRun, number: str) -> dict[str, Any] | None:
    """A model call by index, with `same`, a `Repeated`; long texts are cut."""
    requests = run.trace.requests
    if not number.isdecimal() or int(number) >= len(requests):
        return None
    index = int(number)
    prompt = _prompt(requests[index], run.trace)
    before = (at for at in range(index - 1, -1, -1) if requests[at].agent == requests[index].agent)
    earlier = next(before, None)
    same = repeated(prompt, None if earlier is None else _prompt(requests[earlier], run.trace), (earlier or 0) + 1)
    prompt["system"] = _bounded(prompt["system"])
    for part in (*prompt["history"], *prompt["answer"]):
        part["text"] = _bounded(part["text"])
    if (left_out := len(prompt["history"]) - _MOST_PARTS) > 0:
        note = MessagePart(role="", kind="", text=[_piece(f"{left_out} earlier parts")])
        prompt["history"] = [note, *prompt["history"][left_out:]]
        same["history"] = max(0, same["history"] - left_out + 1)
    for field in ("raw", "settings", "tools"):
        prompt[field] = bounded_json(prompt[field], LONG)
    return {**prompt, "same": same}


def _bounded(texts: list[Piece]) -> list[Piece]:
    return [Piece(text=shortened(text["text"], LONG), source=text["source"]) for text in texts]


def _saved(run: PanelRun) -> tuple[Block, ...]:
    """The shortened requests in the order of the waterfall, which does not depend on the speed of parallel agents."""
    by_event = {call.event_id: call for call in run.trace.requests}
    events = [bar["event"] for bar in in_steps(bars(run.events, run.trace)) if bar["kind"] == "model"]
    calls = [by_event[event] for event in events if event in by_event]
    if not calls:
        return ()
    count = f"{len(calls)} prompts" if len(calls) > 1 else "1 prompt"
    lines: list[str] = []
    first_with: dict[str, int] = {}
    for number, call in enumerate(calls[:_MOST_SAVED], 1):
        system = _text(_system(call, run.trace)).strip()
        first = first_with.setdefault(system, number)
        contents = call.request.contents
        last = _text(_conversation(_parts(contents[-1], run.trace))) if contents else ""
        lines.append(one_line(f"{number}  {call.agent} asks {call.model}"))
        lines += _item("system", f"as in {first}" if first < number else shortened(system, _SYSTEM))
        lines += _item("tools", shortened(", ".join(offer["name"] for offer in _tools(call)), _TOOLS))
        which = f"{len(contents)} messages, the last" if len(contents) > 1 else "message"
        lines += _item(which, shortened(last, _LAST))
    return (text_fold(f"{count}, shortened", lines, len(calls) - _MOST_SAVED),)


add(
    Panel(
        name="prompt",
        title="Prompt",
        order=50,
        data=_numbered,
        requests={"prompts": _headings},
        saved=_saved,
    )
)
