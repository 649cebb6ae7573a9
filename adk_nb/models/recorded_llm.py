"""A model whose answers are kept in a file: recorded once with the real one, replayed without it."""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, aclosing
from pathlib import Path

from pydantic import Field, PrivateAttr

from adk_nb import clock
from adk_nb.errors import ConfigurationError, MissingKeyError, RecordingMismatchError
from adk_nb.models.base_llm import BaseLlm, LlmCapabilities
from adk_nb.models.base_llm_connection import BaseLlmConnection
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.models.recorded.cassette import Asked, Cassette, Piece, Recording
from adk_nb.models.recorded.difference import differences, nearest
from adk_nb.models.recorded.request import normalize
from adk_nb.models.signals import note_replayed


class RecordedLlm(BaseLlm):
    """Records another model's answers to a file of JSON lines, or replays them from it.

        RecordedLlm("demo.jsonl", record=Gemini(model="gemini-3.5-flash-lite"))    # asks the model and writes
        RecordedLlm("demo.jsonl")                                             # reads; needs no key and no network
        RecordedLlm("demo.jsonl", record=model, replay=True)                  # reads what is there, asks for the rest

    Recording: the answer is written when it is whole and before its last response is handed on. A call that raised, or
    was left before its end, is not written. Keys, tokens and passwords are replaced by `[redacted]`, e-mail addresses
    by others; the rest of the conversation is in the file as it was said. Live conversations are not written. Each line
    holds its whole request, so a file grows with the square of a conversation's turns: it is made for tutorials and
    tests.

    Replaying: strict. A request must equal a recorded one in model, instruction, tools, settings and messages; ids and
    times of day do not count. Equal requests get their answers in recorded order, each once. A run that streams gets
    the answer in the pieces it came in, another gets it whole. What the tools answered is part of the messages: tools
    run for real.
    """

    speed: float = Field(default=0, ge=0, allow_inf_nan=False)
    """How fast the pieces come: 0 without waiting, 1 as recorded, 2 twice as fast."""
    _cassette: Cassette = PrivateAttr()
    _recorded: BaseLlm | None = PrivateAttr(default=None)
    _replays: bool = PrivateAttr(default=True)
    _agent: str = PrivateAttr(default="")

    def __init__(
        self,
        path: str | os.PathLike[str] | Cassette,
        *,
        record: BaseLlm | None = None,
        replay: bool = False,
        model: str | None = None,
        speed: float = 0,
        agent: str = "",
    ) -> None:
        """Record `record` into `path`, or replay `path` when there is nothing to record.

        Args:
            path: The file, or a Cassette that several models share: then equal requests of all of them get their
                answers in one order. A recording is added to its end.
            record: The model to ask. It is not changed.
            replay: With `record`: the model is asked only for what was not recorded yet.
            model: Which model's answers to replay; by default the first one's that was recorded.
            speed: See the field.
            agent: Who asks, for errors.

        Raises:
            InputError: The file cannot be used: missing, cut off, no cassette, from a newer version.
        """
        if record is not None and not isinstance(record, BaseLlm):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigurationError(f"record={record!r} is not a model; write e.g. record=OfflineLlm()")
        cassette = path if isinstance(path, Cassette) else Cassette(path, to_record=record is not None)
        first = cassette.recordings[0].request.model if cassette.recordings else None
        super().__init__(model=model or (record.model if record else first) or "recorded", speed=speed)
        self._cassette = cassette
        self._recorded = record
        self._replays = replay or record is None
        self._agent = agent

    @property
    def capabilities(self) -> LlmCapabilities:
        """Those of the model that is recorded, or was: the request is shaped by them."""
        if self._recorded:
            return self._recorded.capabilities
        capabilities = [
            recording.capabilities for recording in self._cassette.recordings if recording.request.model == self.model
        ]
        return LlmCapabilities.model_validate(capabilities[0] if capabilities else {})

    @property
    def notice(self) -> str | None:
        """Whose answers these are."""
        if self._recorded and not (self._replays and self._cassette.had):
            return self._recorded.notice
        recordings = [recording for recording in self._cassette.recordings if recording.request.model == self.model]
        names = sorted({recording.model for recording in recordings or self._cassette.recordings})
        models = f"model{'s' if len(names) > 1 else ''} " + ", ".join(f'"{name}"' for name in names)
        text = f"replayed from {self._cassette.path.name}: recorded answers of {models}"
        text += "; it answers what is not recorded" if self._recorded else ""
        notices = sorted({recording.notice for recording in recordings if recording.notice})
        return f"{text} ({'; '.join(notices)})" if notices else text

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        request, digest = normalize(llm_request, model=self.model, hiding=self._cassette.hiding)
        recording = self._cassette.take(request, digest) if self._replays else None
        if recording:
            answers = self._replay(recording)
        elif self._recorded:
            answers = self._record(self._recorded, llm_request, request, digest)
        else:
            raise RecordingMismatchError(self._mismatch(request))
        async with aclosing(answers):
            try:
                async for answer in answers:
                    if stream or not answer.partial:
                        yield answer
            except MissingKeyError as error:
                if not self._replays:
                    raise
                raise RecordingMismatchError(
                    f"{self._mismatch(request)}; the model was not asked, as {error}"
                ) from error

    async def _record(
        self, model: BaseLlm, llm_request: LlmRequest, request: Asked, digest: str
    ) -> AsyncGenerator[LlmResponse, None]:
        pieces: list[Piece] = []
        complete: LlmResponse | None = None
        answer: LlmResponse | None = None
        previous = clock.now()
        async with aclosing(model.generate_content_async(llm_request, stream=True)) as answers:
            async for answer in answers:
                now = clock.now()
                pieces.append(_piece(answer, max(0.0, now - previous)))
                previous = now
                if complete:
                    yield complete
                complete = None if answer.partial else answer
                if not complete:
                    yield answer
        last = complete or answer
        if last and not last.interrupted:  # a model that only streams has said all it has to say
            self._cassette.append(_recording(model, request, digest, pieces, last))
            if self._replays:
                self._cassette.take(request, digest)  # it was given now: asked again, the model is asked again
        if complete:
            yield complete

    async def _replay(self, recording: Recording) -> AsyncGenerator[LlmResponse, None]:
        for piece in recording.responses:
            await asyncio.sleep(piece.after / self.speed if self.speed else 0)
            response = LlmResponse.model_validate(piece.response)
            if response.usage_metadata:
                note_replayed(response.usage_metadata)
            yield response

    def connect(self, llm_request: LlmRequest) -> AbstractAsyncContextManager[BaseLlmConnection]:
        return (self._recorded or super()).connect(llm_request)

    def _mismatch(self, request: Asked) -> str:
        path, hint = self._cassette.shown, self._cassette.how
        if not self._cassette.recordings:
            return f"{path} holds no recording; {hint}"
        if times := self._cassette.alike(request):
            count = f"{times} time" + ("s" if times > 1 else "")
            return f"this was recorded {count} in {path} and is asked once more; restart from the top, or, {hint}"
        index = nearest(request, self._cassette.recordings)
        changed = differences(request, self._cassette.recordings[index].request)
        agent = f" of {self._agent!r}" if self._agent else ""
        return (
            f"no recording in {path} for this request{agent}: {changed} (compared with recording {index + 1}); {hint}"
        )


def _piece(answer: LlmResponse, after: float) -> Piece:
    data = answer.model_dump(mode="json", by_alias=True, exclude_none=True, fallback=repr)
    return Piece(after=round(after, 3), response=data)


def _recording(model: BaseLlm, request: Asked, digest: str, pieces: list[Piece], last: LlmResponse) -> Recording:
    return Recording(
        model=last.model_version or model.model,
        notice=model.notice,
        capabilities=model.capabilities.model_dump(exclude_defaults=True),
        request=request,
        digest=digest,
        responses=pieces,
    )


class ReplayTap:
    """Replays one cassette in place of the models that are asked by name; a model object is asked itself."""

    def __init__(self, path: Path) -> None:
        self._cassette = Cassette(path)

    def model(self, model: str | BaseLlm, agent: str = "", /) -> BaseLlm:
        return model if isinstance(model, BaseLlm) else RecordedLlm(self._cassette, model=model, agent=agent)
