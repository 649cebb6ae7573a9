"""Model calls as a reader sees them: what was sent, what was put into it, and what came back; as text and as HTML."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from adk_nb.notebook.view.panels.prompt import (
    Offered,
    Prompt,
    Said,
    Words,
    message_words,
    system_words,
    tools_offered,
)
from adk_nb.notebook.view.plain_text import one_line, shortened
from adk_nb.notebook.view.render import Bundle
from adk_nb.notebook.view.writers.elements import Html, code, element
from adk_nb.runtime.trace import Trace, TracedRequest

_RAW = 4_000
"""Characters of a raw response."""
_SYSTEM, _TOOLS, _LAST = 1_000, 300, 400
"""Characters of what `in_short` has of an instruction, of the names of tools, and of a message."""
_SIGNS = {"text": "", "thought": "thinks: ", "call": "calls ", "result": "", "data": ""}


def drawn(asked: Sequence[Prompt], title: str) -> Bundle:
    """All forms of the model calls of one run; the same in every run of one notebook."""
    lines, parts = [title], [element("p", title)]
    for number, one in enumerate(asked, 1):
        head = _head(one, number, len(asked))
        lines += ["", head]
        blocks = _blocks(one)
        for name, body in blocks:
            lines += [name, *(f"    {line}".rstrip() for line in _text(body).split("\n"))]
        inside = [part for name, body in blocks for part in (_named(name), _pre(body))]
        first = [element("p", element("strong", head)), *inside]
        parts += first if number == 1 else [element("details", element("summary", head), *inside)]
    return {"text/plain": "\n".join(lines), "text/html": element("section", "\n", Html("\n".join(parts)), "\n")}


def _head(one: Prompt, number: int, count: int) -> str:
    told = [f"model call {number} of {count}: {one['agent']} asks {one['model']}"]
    tokens = one["tokens"]
    if tokens:
        told.append(f"{tokens.get('input', 0):,} tokens in, {tokens.get('output', 0):,} out")
    return one_line(" · ".join(told))


def _blocks(one: Prompt) -> list[tuple[str, list[Words]]]:
    """What there is of a call: a name, and its text."""
    messages = "1 message" if one["messages"] == 1 else f"{one['messages']} messages"
    put_in = [_put_in(words) for words in one["system"] if words["source"]]
    blocks = [
        ("system", one["system"]),
        ("put in", _plain("\n".join(dict.fromkeys(put_in)))),
        ("tools", _plain("\n".join(map(_tool, one["tools"])))),
        ("settings", _plain(_short_json(one["settings"]) if one["settings"] else "")),
        (f"history, {messages}", _conversation(one["history"])),
        ("answer", _conversation(one["answer"])),
        ("error", _plain(one["error"])),
        ("raw response", _plain(_short_json(one["raw"]) if one["raw"] else "")),
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


def _tool_name(offered: Offered) -> str:
    return offered["name"]


def _item(name: str, text: str) -> list[str]:
    first, *more = [line for line in text.splitlines() if line.strip()] or [""]
    return [f"    {name}: {first}", *(f"      {line}" for line in more)] if first else []


def _plain(text: str) -> list[Words]:
    return [Words(text=text, source="")]


def _tool(one: Offered) -> str:
    schema: Any = one["parameters"]
    names = ", ".join(schema.get("properties") or ()) if schema else ""
    said = one_line(next(iter(one["description"].strip().splitlines()), ""))
    return f"{one['name']}({names})" + (f": {said}" if said else "")


def _conversation(said: Iterable[Said]) -> list[Words]:
    made: list[Words] = []
    for each in said:
        made += [Words(text=f"{each['role']}: {_SIGNS[each['kind']]}", source=""), *each["text"], *_plain("\n")]
    return made[:-1]


def _short_json(value: Any) -> str:
    return shortened(json.dumps(value, ensure_ascii=False, default=str), _RAW)


def _text(body: Iterable[Words]) -> str:
    return "".join(f"«{words['text']}»" if words["source"] else words["text"] for words in body)


def _named(name: str) -> Html:
    """Apart from what stands above: not all pages keep a distance below `<pre>`."""
    return element("p", element("br"), element("small", name))


def _pre(body: Iterable[Words]) -> Html:
    return element("pre", *(_marked(one) if one["source"] else code(one["text"]) for one in body))


def _marked(one: Words) -> Html:
    return element("strong", code(f"«{one['text']}»"))
