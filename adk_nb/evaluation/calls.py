"""Expected tool calls, as they are written in a table of cases, and how they are compared with actual calls."""

import ast
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from adk_nb import types
from adk_nb.errors import InputError
from adk_nb.evaluation.comparison import normalized

Order = Literal["exact", "in order", "any order"]
_ORDER = re.compile(r"\s*(exact|in order|any order)\s*:\s*", re.IGNORECASE)
_OPEN_ENDED = re.compile(r"(?:\(|,)\s*(\*)\s*\)\s*$")
"""The `*` of `save_facts(planet="Venus", *)`: other arguments may follow."""
_EXAMPLE = 'planet_facts(planet="Jupiter"); save_facts(*)'


@dataclass(frozen=True, kw_only=True)
class ExpectedCall:
    """A call that a case expects."""

    name: str
    args: Mapping[str, Any] = field(default_factory=dict[str, Any])
    is_open_ended: bool = False
    """True: the call may have other arguments."""

    def matches(self, call: types.FunctionCall, *, ignore_args: bool = False) -> bool:
        """True if `call` is the expected one."""
        if call.name != self.name:
            return False
        args, expected = normalized(call.args or {}), normalized(self.args)
        if self.is_open_ended:
            args = {key: value for key, value in args.items() if key in expected}
        return ignore_args or args == expected

    def __str__(self) -> str:
        args = [f"{key}={value!r}" for key, value in self.args.items()] + (["*"] if self.is_open_ended else [])
        return f"{self.name}({', '.join(args)})"


@dataclass(frozen=True, kw_only=True)
class ExpectedCalls:
    """The calls that a case expects, and the order in which they may come."""

    calls: tuple[ExpectedCall, ...]
    order: Order = "exact"

    def __str__(self) -> str:
        prefix = "" if self.order == "exact" else f"{self.order}: "
        return prefix + ("; ".join(map(str, self.calls)) or "none")

    def problem(self, actual: Sequence[types.FunctionCall], *, ignore_args: bool = False) -> str:
        """The first difference in a line; empty if the calls are as expected."""
        if self.order == "any order":
            remaining = list(actual)
            for expected in self.calls:
                fits = (
                    number for number, call in enumerate(remaining) if expected.matches(call, ignore_args=ignore_args)
                )
                if (index := next(fits, None)) is None:
                    return f"{expected} was not called{_instead(remaining)}"
                del remaining[index]
            return ""
        if self.order == "in order":
            later = iter(actual)
            for expected in self.calls:
                # The iterator goes on behind the match, so the order is kept.
                if not any(expected.matches(call, ignore_args=ignore_args) for call in later):
                    return f"{expected} was not called, or too early{_instead(actual)}"
            return ""
        for expected, call in zip(self.calls, actual, strict=False):
            if not expected.matches(call, ignore_args=ignore_args):
                return f"expected {expected}, got {call_text(call)}"
        if len(actual) > len(self.calls):
            return f"unexpected {call_text(actual[len(self.calls)])}"
        return f"{self.calls[len(actual)]} was not called" if len(actual) < len(self.calls) else ""


def parse_calls(value: Any) -> ExpectedCalls:
    """Parse expected calls: text as in a table, or a list of texts or of `{"name": ..., "args": ...}`.

    `none` expects no call. `in order:` and `any order:` before the calls let others come between. `*` as the last
    argument lets other arguments follow, a name without parentheses any arguments.

    Raises:
        InputError: It cannot be parsed; the message has an example.
    """
    if isinstance(value, ExpectedCalls):
        return value
    if isinstance(value, list | tuple):
        calls: list[ExpectedCall] = []
        for item in cast(Sequence[Any], value):
            if isinstance(item, types.FunctionCall):
                calls.append(ExpectedCall(name=item.name or "", args=item.args or {}))
            elif isinstance(item, Mapping):
                entry = cast(Mapping[str, Any], item)
                calls.append(ExpectedCall(name=str(entry.get("name", "")), args=entry.get("args") or {}))
            else:
                calls.append(_parse_call(str(item)))
        return ExpectedCalls(calls=tuple(calls))
    text = str(value).strip()
    order: Order = "exact"
    if match := _ORDER.match(text):
        order, text = match[1].lower(), text[match.end() :]  # pyright: ignore[reportAssignmentType]
    if text.lower() in ("none", "[]"):
        return ExpectedCalls(calls=(), order=order)
    return ExpectedCalls(calls=tuple(_parse_call(item) for item in _split(text)), order=order)


def _split(text: str) -> list[str]:
    """The calls of a text, which semicolons or line ends separate outside of quotes and brackets."""
    calls, start, depth, quote = list[str](), 0, 0, ""
    for index, char in enumerate(text):
        if quote:
            quote = "" if char == quote and text[index - 1] != "\\" else quote
        elif char in "\"'":
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif char in ";\n" and depth == 0:
            calls.append(text[start:index])
            start = index + 1
    return [call.strip() for call in [*calls, text[start:]] if call.strip()]


def _parse_call(text: str) -> ExpectedCall:
    if text.isidentifier():
        return ExpectedCall(name=text, is_open_ended=True)
    star = _OPEN_ENDED.search(text)
    # A `*` at the end is no Python: it is cut off before the rest is parsed.
    source = f"{text[: star.start(1)].rstrip().rstrip(',')})" if star else text
    try:
        call = ast.parse(source.strip(), mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise InputError(f"{text!r} is not a tool call; write {_EXAMPLE}")
        if call.args or any(keyword.arg is None for keyword in call.keywords):
            raise InputError(f"name the arguments of {text!r}: {_EXAMPLE}")
        args: dict[str, Any] = {}
        for keyword in call.keywords:
            try:
                args[keyword.arg or ""] = ast.literal_eval(keyword.value)
            except ValueError:  # a name, or something to compute
                value = ast.unparse(keyword.value)
                raise InputError(
                    f"{text!r}: {value} is not a value; put text in quotes, as {keyword.arg}={json.dumps(value)}"
                ) from None
    except InputError:
        raise
    except (SyntaxError, ValueError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else error
        raise InputError(f"{text!r} is not a tool call: {reason}; write {_EXAMPLE}") from None
    return ExpectedCall(name=call.func.id, args=args, is_open_ended=star is not None)


def call_text(call: types.FunctionCall) -> str:
    """A call in a line: `save_facts(planet='Venus')`."""
    args = ", ".join(f"{key}={value!r}" for key, value in (call.args or {}).items())
    return f"{call.name}({args})"


def _instead(actual: Sequence[types.FunctionCall]) -> str:
    return f"; called: {'; '.join(map(call_text, actual))}" if actual else "; no tool was called"
