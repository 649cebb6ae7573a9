"""Adds up a streamed answer: each piece to show as it comes, then one whole answer to keep."""

from typing import Any

from adk_nb import types
from adk_nb.errors import UnexpectedModelAnswer
from adk_nb.models.llm_response import LlmResponse
from adk_nb.models.streamed_call import StreamedCall

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


class ResponseStream:
    """Takes the pieces of one answer, as the service sent them.

    Tool calls are not in the pieces to show: they are told once, in the whole answer, when they are complete.
    """

    def __init__(self, model: str) -> None:
        self._model = model
        self._parts: list[types.Part | _Words | StreamedCall] = []
        self._about: dict[str, Any] = {}

    def add(self, piece: LlmResponse) -> LlmResponse | None:
        """Keep `piece`; returns what of it can be shown already."""
        for name in _LATEST:
            if (value := getattr(piece, name)) is not None:
                self._about[name] = value
        for part in piece.parts:
            self._keep(part)
        shown = [part for part in piece.parts if not part.function_call and part.text != ""]
        if not shown:
            return None
        content = types.Content(role="model", parts=shown)
        return LlmResponse(content=content, partial=True, model_version=piece.model_version)

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
        if any(isinstance(part, StreamedCall) and not part.finished for part in self._parts):
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
        if part.function_call and isinstance(last, StreamedCall) and not last.finished:
            last.add(part)
        elif part.function_call and (part.function_call.will_continue or part.function_call.partial_args):
            self._parts.append(StreamedCall(part))
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
