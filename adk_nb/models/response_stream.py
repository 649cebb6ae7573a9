"""Assembly of a streamed answer: each part as it comes, then the complete answer."""

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, cast

from adk_nb import types
from adk_nb.errors import UnexpectedModelAnswer
from adk_nb.models.llm_response import LlmResponse
from adk_nb.wire import join_surrogates

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
"""Fields whose last value counts: services send totals since the start of the answer."""
_STEP = re.compile(r"""\.([^.\[\]]+) | \[(\d+)\] | \['((?:[^'\\]|\\.)*)'\] | \["((?:[^"\\]|\\.)*)"\]""", re.VERBOSE)


class ResponseStream:
    """Collects the responses of a streamed answer.

    Tool calls are not in the partial responses, only in the complete answer, when their arguments are complete.
    """

    def __init__(self, model: str) -> None:
        self._model = model
        self._parts: list[types.Part | _TextRun | _StreamedCall] = []
        self._fields: dict[str, Any] = {}
        self._half = ""
        """The first half of an emoji at the end of the last text; a service may split one."""

    def add(self, piece: LlmResponse) -> LlmResponse | None:
        """Add a response; returns the part of it that can be shown already."""
        self.set_fields(**{name: getattr(piece, name) for name in _LATEST})
        return self.add_parts(piece.parts, piece.model_version)

    def set_fields(self, **fields: Any) -> None:
        """Set fields of the answer; those that are None are ignored."""
        self._fields |= {name: value for name, value in fields.items() if value is not None}

    def add_parts(self, parts: Iterable[types.Part], model_version: str | None = None) -> LlmResponse | None:
        """Add `parts`; returns those that can be shown already."""
        visible: list[types.Part] = []
        for part in parts:
            self._append(part)
            if part.text and (self._half or "\ud800" <= part.text[-1] < "\udc00"):
                text = join_surrogates(self._half + part.text)
                self._half = text[-1] if "\ud800" <= text[-1] < "\udc00" else ""
                part = part.model_copy(update={"text": text.removesuffix(self._half)})
            if not part.function_call and part.text != "":
                visible.append(part)
        if not visible:
            return None
        content = types.Content(role="model", parts=visible)
        return LlmResponse(content=content, partial=True, model_version=model_version)

    def complete(self) -> LlmResponse:
        """The complete answer: consecutive texts are joined, thoughts stay apart, calls keep their order.

        Raises:
            UnexpectedModelAnswer: The stream ended before the answer did, or within a call.
        """
        if not self._fields.get("finish_reason") and not self._fields.get("error_code"):
            raise UnexpectedModelAnswer(self.broken_message("no finish reason came"))
        return self.joined()

    def joined(self) -> LlmResponse:
        """As `complete`, also for a stream without a finish reason, such as one that was stopped.

        Raises:
            UnexpectedModelAnswer: The stream ended within a call.
        """
        reason: types.FinishReason | None = self._fields.get("finish_reason")
        if any(isinstance(part, _StreamedCall) and not part.finished for part in self._parts):
            raise UnexpectedModelAnswer(self.broken_message("a tool call was not finished"))
        if reason and reason != types.FinishReason.STOP:
            # As in google-adk: an answer that stops for another reason than STOP has the reason as its error code.
            self._fields["error_code"] = reason.value
        parts = [part if isinstance(part, types.Part) else part.part() for part in self._parts]
        return LlmResponse(content=types.Content(role="model", parts=parts) if parts else None, **self._fields)

    def counts(self) -> LlmResponse | None:
        """The token counts that came so far, as a partial response without content. None: there are none."""
        if not (usage := self._fields.get("usage_metadata")):
            return None
        return LlmResponse(partial=True, usage_metadata=usage, model_version=self._fields.get("model_version"))

    def broken_message(self, reason: str) -> str:
        """The error message for an answer that broke off, with the end of its text."""
        text = "".join(part.text for part in self._parts if isinstance(part, _TextRun))
        position = f"after {text[-200:]!r}" if text else "before its first word"
        return f"the answer of model {self._model!r} broke off {position} ({reason}); ask again"

    def _append(self, part: types.Part) -> None:
        last = self._parts[-1] if self._parts else None
        # The next piece of an open call may lack its id and name.
        if part.function_call and isinstance(last, _StreamedCall) and not last.finished:
            last.add(part)
        # Gemini streams arguments only on request; the first piece has the name.
        elif part.function_call and (part.function_call.will_continue or part.function_call.partial_args):
            self._parts.append(_StreamedCall(part))
        # A signature belongs to its own part, which is not joined with another.
        # Source: https://ai.google.dev/gemini-api/docs/thought-signatures.
        elif part.text is None or part != types.Part(text=part.text, thought=part.thought):
            self._parts.append(part)
        elif isinstance(last, _TextRun) and last.thought == bool(part.thought):
            last.texts.append(part.text or "")
        # An empty text without a signature carries nothing.
        elif part.text:
            self._parts.append(_TextRun(part))


class _TextRun:
    """Consecutive text parts, joined once at the end."""

    def __init__(self, first: types.Part) -> None:
        self.thought = bool(first.thought)
        self.texts = [first.text or ""]

    @property
    def text(self) -> str:
        """The joined text."""
        return join_surrogates("".join(self.texts))

    def part(self) -> types.Part:
        """The text as one part."""
        return types.Part(text=self.text, thought=self.thought or None)


class _StreamedCall:
    """A tool call whose arguments arrive in pieces, each with its JSON path.

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
        """Add the next piece.

        Raises:
            UnexpectedModelAnswer: A path is malformed, or leads nowhere.
        """
        call = part.function_call
        if call is None:
            return
        self._signature = part.thought_signature or self._signature
        self._id = call.id or self._id
        self._name = call.name or self._name
        self._args.update(call.args or {})
        for fragment in call.partial_args or []:
            self._set(fragment)
        self.finished = not call.will_continue

    def part(self) -> types.Part:
        """The complete call."""
        call = types.FunctionCall(id=self._id, name=self._name, args=self._args)
        return self._first.model_copy(update={"function_call": call, "thought_signature": self._signature})

    def _set(self, fragment: types.PartialArg) -> None:
        path = fragment.json_path or ""
        steps = _parse_path(path)
        container: Any = self._args
        for step, following in pairwise(steps):
            container = _member(container, step, [] if isinstance(following, int) else {}, path)
        old, value = _member(container, steps[-1], None, path), _value(fragment)
        # Only a text whose last fragment said `will_continue` is continued; any other value is replaced.
        continues = path in self._unfinished and isinstance(old, str) and isinstance(value, str)
        container[steps[-1]] = old + value if continues else value
        (self._unfinished.add if fragment.will_continue else self._unfinished.discard)(path)


def _parse_path(path: str) -> list[str | int]:
    """`$.foo[0]['a b']` -> `["foo", 0, "a b"]`."""
    matches = list(_STEP.finditer(path))
    if not matches or "$" + "".join(match.group() for match in matches) != path:
        raise UnexpectedModelAnswer(
            f"the model streamed an argument to {path[:200]!r}, which is not a JSON path; ask again"
        )
    return [
        int(match[2]) if match[2] else re.sub(r"\\(.)", r"\1", match[1] or match[3] or match[4] or "")
        for match in matches
    ]


def _member(container: Any, step: str | int, empty: Any, path: str) -> Any:
    """The value at `step` in `container`; `empty` is inserted if there is none."""
    if isinstance(container, dict) and isinstance(step, str):
        return cast(dict[str, Any], container).setdefault(step, empty)
    if isinstance(container, list) and isinstance(step, int):
        items = cast(list[Any], container)
        # Only the next index is added: `$.x[1000000000]` must not create that many items.
        if step == len(items):
            items.append(empty)
        if step < len(items):
            return items[step]
    raise UnexpectedModelAnswer(f"the model streamed an argument to {path[:200]!r}, which does not exist; ask again")


def _value(fragment: types.PartialArg) -> Any:
    if fragment.string_value is not None:
        return fragment.string_value
    if (number := fragment.number_value) is not None:  # a double on the wire, also for an integer parameter
        return int(number) if number.is_integer() else number
    return fragment.bool_value
