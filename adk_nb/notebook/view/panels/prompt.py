"""The panel of prompts: exactly what a model was sent, and what came back, as JSON."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, TypedDict, cast

from pydantic_core import to_jsonable_python

from adk_nb import types
from adk_nb.notebook.view.document import Block, Code, Fold, Heading, Section, Span, Text, in_html, plain
from adk_nb.notebook.view.panel import Panel, PanelRun, add, text_fold
from adk_nb.notebook.view.panels.waterfall import bars, in_steps
from adk_nb.notebook.view.plain_text import LONG, bounded_json, cleaned, json_text, one_line, shortened
from adk_nb.redaction import redacted
from adk_nb.runtime.trace import Placed, Trace, TracedRequest

_TRANSPORT = {"http_options", "should_return_http_response", "system_instruction", "tools"}
"""How the request travels, and what has a place of its own."""
_MOST_PARTS = 300
"""Parts of a history that are sent to a page; the newest."""
_MOST_SAVED = 6
"""Prompts in a saved notebook."""
_RAW = 4_000
"""Characters of a raw response."""
_SYSTEM, _TOOLS, _LAST = 1_000, 300, 400
"""Characters of what `in_short` has of an instruction, of the names of tools, and of a message."""
_SIGNS = {"text": "", "thought": "thinks: ", "call": "calls ", "result": "", "data": ""}


class Words(TypedDict):
    """A stretch of text."""

    text: str
    source: str
    """What it was put in for, as `{{places}}` or `{budget}`; empty: it stands as it was written."""


class ToolOffer(TypedDict):
    """A tool as the model is told of it."""

    name: str
    description: str
    parameters: Any
    """Its JSON schema; None: it takes none. For what a service does by itself: its settings."""


class MessagePart(TypedDict):
    """A part of the history: words, a call, a result, or the name of what is none of these."""

    role: str
    """`user` or `model`."""
    kind: str
    """`text`, `thought`, `call`, `result` or `data`."""
    text: list[Words]


class Prompt(TypedDict):
    """One model call, whole."""

    agent: str
    model: str
    event: str
    """The event that tells of the answer."""
    ms: float | None
    """How long it took; None: it is not at its end."""
    first_ms: float | None
    """How long the first piece of a streamed answer took."""
    system: list[Words]
    tools: list[ToolOffer]
    history: list[MessagePart]
    messages: int
    """How many the history has; one may have several parts."""
    settings: Any
    """All else that was sent, as JSON."""
    answer: list[MessagePart]
    raw: Any
    """The response as JSON, with all that its service says of it; None: there is none."""
    tokens: dict[str, int]
    """`input`, `output`, `cached`, `thoughts`, `total`, where the service counted them."""
    error: str


def prompts(trace: Trace) -> list[Prompt]:
    """The model calls of a run in the order in which they were sent; keys are masked in all of them."""
    return [prompt_sent(sent, trace) for sent in trace.requests]


def prompt_sent(sent: TracedRequest, trace: Trace) -> Prompt:
    """One model call of a run."""
    request, response = sent.request, sent.response
    config: Any = request.config
    return Prompt(
        agent=sent.agent,
        model=sent.model,
        event=sent.event_id,
        ms=_ms(sent.began, sent.ended),
        first_ms=_ms(sent.began, sent.first),
        system=system_words(sent, trace),
        tools=tools_offered(sent),
        history=[part for content in request.contents for part in message_words(content, trace)],
        messages=len(request.contents),
        settings={key: value for key, value in _json(config).items() if key not in _TRANSPORT},
        answer=message_words(response.content, trace) if response and response.content else [],
        raw=_json(response) if response else None,
        tokens=_tokens(response.usage_metadata if response else None),
        error=cleaned(sent.error),
    )


def system_words(sent: TracedRequest, trace: Trace) -> list[Words]:
    """The system instruction of a model call."""
    return _marked(system_text(sent.request.config.system_instruction), trace)


def tools_offered(sent: TracedRequest) -> list[ToolOffer]:
    """The tools of a model call."""
    return [offer for tool in sent.request.config.tools or () for offer in _offered(tool)]


def system_text(instruction: Any) -> str:
    """A system instruction as text."""
    if instruction is None or isinstance(instruction, str):
        return instruction or ""
    parts: list[Any] = getattr(instruction, "parts", None) or (
        cast(list[Any], instruction) if isinstance(instruction, list) else [instruction]
    )
    return "\n".join(part if isinstance(part, str) else getattr(part, "text", None) or "" for part in parts)


def _ms(began: float, moment: float | None) -> float | None:
    return None if moment is None else round(max(0.0, moment - began) * 1000, 1)


def _marked(text: str, trace: Trace) -> list[Words]:
    """`text` cut where something was put in."""
    placed = sorted(_placed(text, trace), key=lambda place: (place.start, -place.end))
    pieces: list[Words] = []
    end = 0
    for place in placed:
        if place.start < end:
            continue
        pieces += [_words(text[end : place.start]), _words(text[place.start : place.end], place.source)]
        end = place.end
    pieces.append(_words(text[end:]))
    return [piece for piece in pieces if piece["text"] or piece["source"]]


def _placed(text: str, trace: Trace) -> Iterable[Placed]:
    for instruction, placed in trace.instructions.items():
        at = text.find(instruction) if instruction else -1
        if at >= 0:
            yield from (Placed(at + place.start, at + place.end, place.source) for place in placed)


def _words(text: str, source: str = "") -> Words:
    return Words(text=cleaned(text), source=source)


def _offered(tool: Any) -> list[ToolOffer]:
    dumped: dict[str, Any] = _json(tool)
    declarations: list[dict[str, Any]] = dumped.pop("function_declarations", None) or []
    offers = [
        ToolOffer(
            name=cleaned(str(function.get("name", ""))),
            description=cleaned(str(function.get("description", ""))),
            parameters=function.get("parameters_json_schema") or function.get("parameters"),
        )
        for function in declarations
    ]
    return offers + [ToolOffer(name=name, description="", parameters=value) for name, value in dumped.items()]


def message_words(content: types.Content, trace: Trace) -> list[MessagePart]:
    """A message of the history, part by part."""
    role = content.role or "user"
    return [_part(role, part, trace) for part in content.parts or ()]


def _part(role: str, part: types.Part, trace: Trace) -> MessagePart:
    if part.text is not None:
        return MessagePart(role=role, kind="thought" if part.thought else "text", text=_marked(part.text, trace))
    if call := part.function_call:
        return MessagePart(role=role, kind="call", text=[_words(f"{call.name}({_arguments(call.args)})")])
    if response := part.function_response:
        return MessagePart(role=role, kind="result", text=[_words(f"{response.name} → {json_text(response.response)}")])
    if (blob := part.inline_data) and blob.data is not None:
        return MessagePart(
            role=role, kind="data", text=[_words(f"[{blob.mime_type or 'data'}, {len(blob.data):,} bytes]")]
        )
    return MessagePart(role=role, kind="data", text=[_words(json_text(_json(part)))])


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
    """As JSON without what is empty, keys masked, bytes by their length."""
    dumped = to_jsonable_python(
        value, by_alias=False, exclude_none=True, bytes_mode="base64", fallback=lambda obj: f"<{type(obj).__name__}>"
    )
    return json.loads(json.dumps(redacted(dumped)))


# ---- as blocks


def drawn(calls: Sequence[Prompt], title: str) -> tuple[Block, ...]:
    """The model calls of one run, the first one open; the same in every run of one notebook."""
    blocks: list[Block] = [Text(title)]
    for number, prompt in enumerate(calls, 1):
        head = _head(prompt, number, len(calls))
        inside = [block for name, body in _blocks(prompt) for block in (Text(name, small=True), _code(body))]
        opened: list[Block] = [Heading(head), *inside]
        blocks += opened if number == 1 else [plain(*opened), in_html(Fold(head, tuple(inside)))]
    return (Section(tuple(blocks)),)


def _head(prompt: Prompt, number: int, count: int) -> str:
    facts = [f"model call {number} of {count}: {prompt['agent']} asks {prompt['model']}"]
    tokens = prompt["tokens"]
    if tokens:
        facts.append(f"{tokens.get('input', 0):,} tokens in, {tokens.get('output', 0):,} out")
    return one_line(" · ".join(facts))


def _blocks(prompt: Prompt) -> list[tuple[str, list[Words]]]:
    """What there is of a call: a name, and its text."""
    messages = "1 message" if prompt["messages"] == 1 else f"{prompt['messages']} messages"
    put_in = [_put_in(words) for words in prompt["system"] if words["source"]]
    blocks = [
        ("system", prompt["system"]),
        ("put in", _plain("\n".join(dict.fromkeys(put_in)))),
        ("tools", _plain("\n".join(map(_tool, prompt["tools"])))),
        ("settings", _plain(_short_json(prompt["settings"]) if prompt["settings"] else "")),
        (f"history, {messages}", _conversation(prompt["history"])),
        ("answer", _conversation(prompt["answer"])),
        ("error", _plain(prompt["error"])),
        ("raw response", _plain(_short_json(prompt["raw"]) if prompt["raw"] else "")),
    ]
    return [(name, body) for name, body in blocks if any(words["text"] or words["source"] for words in body)]


def _put_in(words: Words) -> str:
    return f"{words['source']} → {one_line(words['text']) or '(nothing)'}"


def in_short(sent: Sequence[TracedRequest], trace: Trace) -> list[str]:
    """What models were sent, some lines for each call: the instruction, the tools, the last message."""
    lines: list[str] = []
    known: dict[str, int] = {}
    for number, request in enumerate(sent, 1):
        system = _text(system_words(request, trace)).strip()
        first = known.setdefault(system, number)
        contents = request.request.contents
        last = _text(_conversation(message_words(contents[-1], trace))) if contents else ""
        lines.append(one_line(f"{number}  {request.agent} asks {request.model}"))
        lines += _item("system", f"as in {first}" if first < number else shortened(system, _SYSTEM))
        lines += _item("tools", shortened(", ".join(map(_tool_name, tools_offered(request))), _TOOLS))
        which = f"{len(contents)} messages, the last" if len(contents) > 1 else "message"
        lines += _item(which, shortened(last, _LAST))
    return lines


def _tool_name(offered: ToolOffer) -> str:
    return offered["name"]


def _item(name: str, text: str) -> list[str]:
    first, *more = [line for line in text.splitlines() if line.strip()] or [""]
    return [f"    {name}: {first}", *(f"      {line}" for line in more)] if first else []


def _plain(text: str) -> list[Words]:
    return [Words(text=text, source="")]


def _tool(offer: ToolOffer) -> str:
    schema: Any = offer["parameters"]
    names = ", ".join(schema.get("properties") or ()) if schema else ""
    summary = one_line(next(iter(offer["description"].strip().splitlines()), ""))
    return f"{offer['name']}({names})" + (f": {summary}" if summary else "")


def _conversation(parts: Iterable[MessagePart]) -> list[Words]:
    pieces: list[Words] = []
    for part in parts:
        pieces += [Words(text=f"{part['role']}: {_SIGNS[part['kind']]}", source=""), *part["text"], *_plain("\n")]
    return pieces[:-1]


def _short_json(value: Any) -> str:
    return shortened(json.dumps(value, ensure_ascii=False, default=str), _RAW)


def _text(body: Iterable[Words]) -> str:
    return "".join(f"«{words['text']}»" if words["source"] else words["text"] for words in body)


def _code(body: Iterable[Words]) -> Code:
    return Code(tuple(Span(_text([words]), "strong") if words["source"] else words["text"] for words in body))


# ---- the panel


def _headings(run: PanelRun, _: str) -> list[dict[str, Any]]:
    """A line for each model call, without looking at its messages."""
    return [_heading(sent) for sent in run.trace.requests]


def _heading(sent: TracedRequest) -> dict[str, Any]:
    usage = sent.response.usage_metadata if sent.response else None
    tokens = (usage.total_token_count if usage else None) or 0
    ms = _ms(sent.began, sent.ended)
    return {"agent": sent.agent, "model": sent.model, "event": sent.event_id, "ms": ms, "tokens": tokens}


def _numbered(run: PanelRun, number: str) -> Prompt | None:
    """One model call, counted from 0; long texts are cut."""
    requests = run.trace.requests
    if not number.isdecimal() or int(number) >= len(requests):
        return None
    prompt = prompt_sent(requests[int(number)], run.trace)
    prompt["system"] = _bounded(prompt["system"])
    for part in (*prompt["history"], *prompt["answer"]):
        part["text"] = _bounded(part["text"])
    if (left_out := len(prompt["history"]) - _MOST_PARTS) > 0:
        note = MessagePart(role="", kind="", text=[_words(f"{left_out} earlier parts")])
        prompt["history"] = [note, *prompt["history"][left_out:]]
    for field in ("raw", "settings", "tools"):
        prompt[field] = bounded_json(prompt[field], LONG)
    return prompt


def _bounded(texts: list[Words]) -> list[Words]:
    return [Words(text=shortened(text["text"], LONG), source=text["source"]) for text in texts]


def _saved(run: PanelRun) -> tuple[Block, ...]:
    """What models were sent, shortened, in the order of the waterfall: agents at work at once differ in speed."""
    by_event = {sent.event_id: sent for sent in run.trace.requests}
    events = [bar["event"] for bar in in_steps(bars(run.events, run.trace)) if bar["kind"] == "model"]
    sent = [by_event[event] for event in events if event in by_event]
    if not sent:
        return ()
    count = f"{len(sent)} prompts" if len(sent) > 1 else "1 prompt"
    lines = in_short(sent[:_MOST_SAVED], run.trace)
    return (text_fold(f"{count}, shortened", lines, len(sent) - _MOST_SAVED),)


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
