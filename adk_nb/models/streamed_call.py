"""A tool call whose arguments arrive bit by bit, each bit with the JSON path it belongs to."""

import re
from itertools import pairwise
from typing import Any, cast

from adk_nb import types
from adk_nb.errors import UnexpectedModelAnswer

_STEP = re.compile(r"""\.([^.\[\]]+) | \[(\d+)\] | \['((?:[^'\\]|\\.)*)'\] | \["((?:[^"\\]|\\.)*)"\]""", re.VERBOSE)


class StreamedCall:
    """Puts the bits of one call together.

    Source: https://googleapis.github.io/python-genai/genai.html#genai.types.FunctionCall, `partial_args` and
    `will_continue`; the paths are RFC 9535's, such as `$.foo.bar[0].data`.
    """

    def __init__(self, first: types.Part) -> None:
        self._first = first
        self._signature = first.thought_signature
        self._id: str | None = None
        self._name: str | None = None
        self._args: dict[str, Any] = {}
        self._unfinished: set[str] = set()
        self.finished = False
        self.add(first)

    def add(self, part: types.Part) -> None:
        """Take the next bit.

        Raises:
            UnexpectedModelAnswer: A path that cannot be read, or that leads nowhere.
        """
        call = part.function_call
        if call is None:
            return
        self._signature = part.thought_signature or self._signature
        self._id = call.id or self._id
        self._name = call.name or self._name
        self._args.update(call.args or {})
        for bit in call.partial_args or []:
            self._put(bit)
        self.finished = not call.will_continue

    def part(self) -> types.Part:
        """The call as if it had come in one piece."""
        call = types.FunctionCall(id=self._id, name=self._name, args=self._args)
        return self._first.model_copy(update={"function_call": call, "thought_signature": self._signature})

    def _put(self, bit: types.PartialArg) -> None:
        path = bit.json_path or ""
        steps = _steps(path)
        place: Any = self._args
        for step, following in pairwise(steps):
            place = _below(place, step, [] if isinstance(following, int) else {}, path)
        before, value = _below(place, steps[-1], None, path), _value(bit)
        goes_on = path in self._unfinished and isinstance(before, str) and isinstance(value, str)
        place[steps[-1]] = before + value if goes_on else value
        (self._unfinished.add if bit.will_continue else self._unfinished.discard)(path)


def _steps(path: str) -> list[str | int]:
    """`$.foo[0]['a b']` -> `["foo", 0, "a b"]`."""
    found = list(_STEP.finditer(path))
    if not found or "$" + "".join(one.group() for one in found) != path:
        raise UnexpectedModelAnswer(f"the model streamed an argument to {path[:200]!r}, which is no path; ask again")
    return [int(one[2]) if one[2] else re.sub(r"\\(.)", r"\1", one[1] or one[3] or one[4] or "") for one in found]


def _below(place: Any, step: str | int, empty: Any, path: str) -> Any:
    """What lies in `place` at `step`; `empty` is laid there when nothing does."""
    if isinstance(place, dict) and isinstance(step, str):
        return cast(dict[str, Any], place).setdefault(step, empty)
    if isinstance(place, list) and isinstance(step, int):
        items = cast(list[Any], place)
        if step == len(items):
            items.append(empty)
        if step < len(items):
            return items[step]
    raise UnexpectedModelAnswer(f"the model streamed an argument to {path[:200]!r}, which leads nowhere; ask again")


def _value(bit: types.PartialArg) -> Any:
    if bit.string_value is not None:
        return bit.string_value
    if bit.number_value is not None:  # a double on the wire, whatever the parameter's type
        return int(bit.number_value) if bit.number_value.is_integer() else bit.number_value
    return bit.bool_value
