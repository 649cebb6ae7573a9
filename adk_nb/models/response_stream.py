"""Adds up a streamed answer: each piece to show as it comes, then one whole answer to keep."""

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, cast

from adk_nb import types
from adk_nb.errors import UnexpectedModelAnswer
from adk_nb.models.llm_response import LlmResponse

_LATEST = (
    "finish_reason",
    "error_code",
    "error_message",
    "model_version",
    "usage_metadata",
    "grounding_metadata",
    "citation_metadata",
    "avg_logprobs",
    "logprobs_result",
)
"""Of these the last piece's word counts: services count from the start of the answer."""


_STEP = re.compile(r"""\.([^.\[\]]+) | \[(\d+)\] | \['((?:[^'\\]|\\.)*)'\] | \["((?:[^"\\]|\\.)*)"\]""", re.VERBOSE)


class ResponseStream:
    """Takes the pieces of one answer, as the service sent them.

    Tool calls are not in the pieces to show: they are told once, in the whole answer, when they are complete.
    """

    def __init__(self, model: str) -> None:
        self._model = model
        self._parts: list[types.Part | _Words | _StreamedCall] = []
        self._about: dict[str, Any] = {}

    def add(self, piece: LlmResponse) -> LlmResponse | None:
        """Keep `piece`; returns what of it can be shown already."""
        self.note(**{name: getattr(piece, name) for name in _LATEST})
        return self.take(piece.parts, piece.model_version)

    def note(self, **about: Any) -> None:
        """Keep fields of the answer; those that are None are not said."""
        self._about |= {name: value for name, value in about.items() if value is not None}

    def take(self, parts: Iterable[types.Part], model_version: str | None = None) -> LlmResponse | None:
        """Keep `parts`; returns those of them that can be shown already."""
        shown: list[types.Part] = []
        for part in parts:
            self._keep(part)
            if not part.function_call and part.text != "":
                shown.append(part)
        if not shown:
            return None
        content = types.Content(role="model", parts=shown)
        return LlmResponse(content=content, partial=True, model_version=model_version)

    def whole(self) -> LlmResponse:
        """All pieces in one: text that follows on text is joined, thoughts stay apart, calls stay in their order.

        Raises:
            UnexpectedModelAnswer: The pieces ended before the answer did.
        """
        if not self._about.get("finish_reason") and not self._about.get("error_code"):
            raise UnexpectedModelAnswer(self.broken("no finish reason came"))
        return self.joined()

    def joined(self) -> LlmResponse:
        """As `whole`, also of pieces that do not say that they are the last.

        Raises:
            UnexpectedModelAnswer: The pieces ended within a call.
        """
        reason: types.FinishReason | None = self._about.get("finish_reason")
        if any(isinstance(part, _StreamedCall) and not part.finished for part in self._parts):
            raise UnexpectedModelAnswer(self.broken("a tool call was not finished"))
        if reason and reason != types.FinishReason.STOP:
            self._about["error_code"] = reason.value
        parts = [part if isinstance(part, types.Part) else part.part() for part in self._parts]
        return LlmResponse(content=types.Content(role="model", parts=parts) if parts else None, **self._about)

    def broken(self, why: str) -> str:
        """What to say of an answer that broke off, with the last of its words."""
        words = "".join(part.text for part in self._parts if isinstance(part, _Words))
        said = f"after {words[-200:]!r}" if words else "before its first word"
        return f"the answer of model {self._model!r} broke off {said} ({why}); ask again"

    def _keep(self, part: types.Part) -> None:
        last = self._parts[-1] if self._parts else None
        if part.function_call and isinstance(last, _StreamedCall) and not last.finished:
            last.add(part)
        elif part.function_call and (part.function_call.will_continue or part.function_call.partial_args):
            self._parts.append(_StreamedCall(part))
        elif not _only_words(part):
            self._parts.append(part)
        elif isinstance(last, _Words) and last.thought == bool(part.thought):
            last.texts.append(part.text or "")
        elif part.text:
            self._parts.append(_Words(part))


class _Words:
    """Text parts that follow on each other, to be joined once at the end."""

    def __init__(self, first: types.Part) -> None:
        self.thought = bool(first.thought)
        self.texts = [first.text or ""]

    @property
    def text(self) -> str:
        return "".join(self.texts)

    def part(self) -> types.Part:
        return types.Part(text=self.text, thought=self.thought or None)


def _only_words(part: types.Part) -> bool:
    """A signature belongs to the part it came with, so a signed part is not joined with another.

    Source: https://ai.google.dev/gemini-api/docs/thought-signatures.
    """
    return part.text is not None and part == types.Part(text=part.text, thought=part.thought)


class _StreamedCall:
    """A tool call whose arguments arrive in bits, each with the JSON path it belongs to.

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
