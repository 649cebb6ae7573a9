"""Texts that are more than words: thoughts in `<think>` tags, and calls that a model writes as text.

Small models on open servers write a call of a tool as JSON, bare, in a code fence or in `<tool_call>` tags, if their
template knows no better.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from adk_nb import types

Schemas = Mapping[str, Mapping[str, Any]]
"""Name of an offered tool -> JSON Schema of its parameters."""
_THINK = re.compile(r"\s*<(think|thinking)>")
_WRAPPING = re.compile(r"(?:[\s,;\[\]]|```(?:json|tool_calls?)?|</?tool_calls?>)*")
"""What may stand around and between the objects of calls."""
_OPEN_MARK = re.compile(r"`{1,2}|(?<=```)[a-z_]{1,10}|</?[a-z_]{0,10}")
"""The beginning of a fence or a tag."""
_OPEN_OBJECT = re.compile(r'\{\s*(?:"(?P<key>[^"]*)(?P<ended>"\s*(?::\s*(?:"(?P<value>[^"]*)(?P<closed>")?)?)?)?)?')
"""The beginning of an object: its first key, and its value if that is a text."""
_ARGUMENTS = ("arguments", "parameters")
_KEYS = ("name", *_ARGUMENTS, "type", "id", "function")
_NAMED = re.compile(r'"name"\s*:\s*"([^"]+)"')
_TAGS = re.compile(r"<tool_calls?>|<function=|\[TOOL_CALLS\]|<\|python_tag\|>")
_OPEN_SCHEMA = {"anyOf", "oneOf", "allOf", "patternProperties", "$ref"}
_DECODER = json.JSONDecoder()


class TextReader:
    """Reads the text of one answer as it comes.

    A text is held back only while it can still be a tag, or a call of one of `tools`.
    """

    def __init__(self, tools: Schemas) -> None:
        self._tools = tools
        self._held = ""
        self._closing_tag: str | None = None
        """Of the thought that is being read."""
        self._at_start = True
        self._drops_blanks = False
        """A thought begins or has ended: the blanks that come next belong to nothing."""
        self._is_words = False
        """The rest of the answer is neither a thought nor a call."""
        self._text: list[str] = []

    def add(self, text: str) -> list[types.Part]:
        """Add a piece; returns the parts that are certain."""
        if self._is_words:
            self._text.append(text)
            return [types.Part(text=text)]
        self._held += text
        if self._at_start and (tag := _THINK.match(self._held)):
            self._closing_tag, self._held, self._at_start = f"</{tag[1]}>", self._held[tag.end() :], False
            self._drops_blanks = True
        if self._drops_blanks:
            self._held = self._held.lstrip()
        if self._at_start:
            if any(tag.startswith(self._held.lstrip()) for tag in ("<think>", "<thinking>")):
                return []
            self._at_start = False
        thoughts: list[types.Part] = []
        if self._closing_tag:
            closing_tag = self._closing_tag
            thought, mark, rest = self._held.partition(closing_tag)
            if mark:
                self._closing_tag, self._held = None, rest.lstrip()
            else:
                # The end may be the beginning of the tag.
                kept = next(n for n in range(len(closing_tag), -1, -1) if self._held.endswith(closing_tag[:n]))
                thought, self._held = self._held[: len(self._held) - kept], closing_tag[:kept]
            self._drops_blanks = bool(mark) or not thought
            thoughts += [types.Part(text=thought, thought=True)] if thought else []
        if self._closing_tag or not self._held or (self._tools and may_become_calls(self._held, self._tools)):
            return thoughts
        self._is_words = True
        return [*thoughts, *self.rest()]

    def after_thought(self) -> None:
        """A thought came beside the text."""
        self._drops_blanks = True

    def calls(self) -> list[types.FunctionCall]:
        """The calls that the whole answer consists of, which are taken from its text; none if it is anything else."""
        calls = None if self._is_words or self._closing_tag else written_calls(self._held, self._tools)
        self._held = "" if calls else self._held
        return calls or []

    def rest(self) -> list[types.Part]:
        """The text that was held back."""
        text, self._held = self._held, ""
        if not text:
            return []
        if self._closing_tag:
            return [types.Part(text=text, thought=True)]
        self._text.append(text)
        return [types.Part(text=text)]

    def is_like_call(self) -> bool:
        """True if the text holds what looks like a call of a tool."""
        text = "".join(self._text)
        if not self._tools:
            return False
        names = any(name in self._tools for name in _NAMED.findall(text))
        return bool(_TAGS.search(text)) or (names and any(f'"{key}"' in text for key in _ARGUMENTS))


def written_calls(text: str, tools: Schemas) -> list[types.FunctionCall] | None:
    """The calls that `text` consists of; None if anything in it is not a call of one of `tools`."""
    return _read(text, tools, is_whole=True) or None


def may_become_calls(text: str, tools: Schemas) -> bool:
    """True if an answer that begins with `text` may consist of calls of `tools`."""
    return _read(text, tools, is_whole=False) is not None


def _read(text: str, tools: Schemas, *, is_whole: bool) -> list[types.FunctionCall] | None:
    position, calls = 0, list[types.FunctionCall]()
    while True:
        wrapping = _WRAPPING.match(text, position)
        position = wrapping.end() if wrapping else 0
        if position >= len(text):
            return calls
        if text[position] != "{":
            return None if is_whole or not _OPEN_MARK.fullmatch(text, position) else calls
        try:
            value, position = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            return None if is_whole or not _may_become_call(text, position, tools) else calls
        if (call := _as_call(value, tools)) is None:
            return None
        calls.append(call)


def _may_become_call(text: str, position: int, tools: Schemas) -> bool:
    """True if the unfinished object at `position` begins as a call does."""
    begun = _OPEN_OBJECT.match(text, position)
    if begun is None or (begun["key"] is None and begun.end() < len(text)):
        return False
    key, value = begun["key"] or "", begun["value"]
    if not begun["ended"]:
        return any(known.startswith(key) for known in _KEYS)
    if key != "name" or value is None:
        return key in _KEYS
    return value in tools if begun["closed"] else any(name.startswith(value) for name in tools)


def _as_call(value: Any, tools: Schemas) -> types.FunctionCall | None:
    """The call that an object is; None if it is none, or its arguments do not fit the tool."""
    members = cast(dict[str, Any], value)
    if isinstance(members.get("function"), dict) and members.keys() <= {"function", "type", "id"}:
        members = cast(dict[str, Any], members["function"])
    given = [key for key in _ARGUMENTS if key in members]
    name: Any = members.get("name")
    if len(given) != 1 or not members.keys() <= {"name", "type", "id", *given} or not isinstance(name, str):
        return None
    args: Any = members[given[0]]
    if isinstance(args, str):  # as in OpenAI's own form of a call
        try:
            args = json.loads(args)
        except (ValueError, RecursionError):
            return None
    if name not in tools or not isinstance(args, dict) or not _fits(cast(dict[str, Any], args), tools[name]):
        return None
    return types.FunctionCall(name=name, args=cast(dict[str, Any], args))


def _fits(names: Iterable[str], schema: Mapping[str, Any]) -> bool:
    is_open = bool(schema.get("additionalProperties")) or not _OPEN_SCHEMA.isdisjoint(schema)
    required: Iterable[str] = schema.get("required") or ()
    return set(required) <= set(names) and (is_open or set(names) <= set(schema.get("properties") or {}))
