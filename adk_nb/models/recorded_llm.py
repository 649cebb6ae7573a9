"""A model that records the answers of another one and replays them, in the place of models given by name."""

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
from adk_nb.models.cassette import Cassette, NormalizedRequest, Piece, Recording
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse, note_replayed
from adk_nb.models.recorded_requests import closest_recording, describe_difference, normalize


class RecordedLlm(BaseLlm):
    """Records another model's answers to a file of JSON lines, or replays them from it.

        RecordedLlm("demo.jsonl", record=Gemini(model="gemini-3.5-flash-lite"))    # asks the model and writes
        RecordedLlm("demo.jsonl")                                             # reads; needs no key and no network
        RecordedLlm("demo.jsonl", record=model, replay=True)                  # reads what is there, asks for the rest

    Recording: an answer is written when it is complete, before its last response is yielded. A call that raised, or
    was closed early, is not written. Keys, tokens and passwords are replaced by `[redacted]`, e-mail addresses by
    addresses of example.com; the rest of the conversation is written as it is. Live conversations are not recorded.
    Each line has its whole request, so a file grows with the square of a conversation's turns: use it for tutorials and
    tests.

    Replaying: a request must equal a recorded one in model, instruction, tools, settings and messages; ids and times of
    day are ignored. Equal requests get their answers in recorded order, each once. Tools run for real, and their
    results are part of the messages.
    """

    speed: float = Field(default=0, ge=0, allow_inf_nan=False)
    """Speed of a streamed replay: 0 without waiting, 1 as recorded, 2 twice as fast."""
    _cassette: Cassette = PrivateAttr()
    _source: BaseLlm | None = PrivateAttr(default=None)
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
        """Record the model `record` into `path`, or replay `path` without it.

        Args:
            path: The file, or a Cassette that several models share: equal requests of all of them get the recorded
                answers in order.
            record: The model to call; not changed.
            replay: With `record`: call the model only for requests that are not recorded.
            model: Name of the model to replay; by default the first that was recorded.
            speed: See the field.
            agent: Name of the calling agent, for errors.

        Raises:
            InputError: The file is missing, malformed, or from a newer version.
        """
        if record is not None and not isinstance(record, BaseLlm):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigurationError(f"record={record!r} is not a model; write e.g. record=OfflineLlm()")
        cassette = path if isinstance(path, Cassette) else Cassette(path, create=record is not None)
        first = cassette.recordings[0].request.model if cassette.recordings else None
        super().__init__(model=model or (record.model if record else first) or "recorded", speed=speed)
        self._cassette = cassette
        self._source = record
        self._replays = replay or record is None
        self._agent = agent

    @property
    def capabilities(self) -> LlmCapabilities:
        """The capabilities of the recorded model, which shape the request."""
        if self._source:
            return self._source.capabilities
        capabilities = [
            recording.capabilities for recording in self._cassette.recordings if recording.request.model == self.model
        ]
        return LlmCapabilities.model_validate(capabilities[0] if capabilities else {})

    @property
    def notice(self) -> str | None:
        """File and models of the replayed answers; while recording, the notice of the model."""
        if self._source and not (self._replays and self._cassette.initial_count):
            return self._source.notice
        recordings = [recording for recording in self._cassette.recordings if recording.request.model == self.model]
        names = sorted({recording.model for recording in recordings or self._cassette.recordings})
        models = f"model{'s' if len(names) > 1 else ''} " + ", ".join(f'"{name}"' for name in names)
        text = f"replayed from {self._cassette.path.name}: recorded answers of {models}"
        text += "; other requests go to the model" if self._source else ""
        notices = sorted({recording.notice for recording in recordings if recording.notice})
        return f"{text} ({'; '.join(notices)})" if notices else text

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Replay or record an answer; see the class.

        Raises:
            RecordingMismatchError: The request is not recorded, and there is no model to call or it has no key.
        """
        request, digest = normalize(llm_request, model=self.model, redactor=self._cassette.redactor)
        if recording := self._cassette.take(request, digest) if self._replays else None:
            for piece in recording.responses:
                await asyncio.sleep(piece.after / self.speed if self.speed else 0)
                response = LlmResponse.model_validate(piece.response)
                if response.usage_metadata:
                    note_replayed(response.usage_metadata)
                if stream or not response.partial:
                    yield response
            return
        if not self._source:
            raise RecordingMismatchError(self._mismatch(request))
        async with aclosing(self._record(self._source, llm_request, request, digest)) as answers:
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
        self, model: BaseLlm, llm_request: LlmRequest, request: NormalizedRequest, digest: str
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
                # A complete answer is yielded with one delay: the last is written before the agent can act on it.
                if complete:
                    yield complete
                complete = None if answer.partial else answer
                if not complete:
                    yield answer
        last = complete or answer
        if last and not last.interrupted:  # a model may stream without a complete answer at the end
            # Before the yield: what the agent does next may end the process.
            self._cassette.append(_recording(model, request, digest, pieces, last))
            if self._replays:
                self._cassette.take(request, digest)  # used: an equal request calls the model again
        if complete:
            yield complete

    def connect(self, llm_request: LlmRequest) -> AbstractAsyncContextManager[BaseLlmConnection]:
        """Open a live conversation with the recorded model; it is not recorded."""
        return (self._source or super()).connect(llm_request)

    def _mismatch(self, request: NormalizedRequest) -> str:
        path, hint = self._cassette.label, self._cassette.record_hint
        if not self._cassette.recordings:
            return f"{path} holds no recording; {hint}"
        if times := self._cassette.count_equal(request):
            count = f"{times} time" + ("s" if times > 1 else "")
            return (
                f"this request was recorded {count} in {path} and is sent once more; restart from the top, or, {hint}"
            )
        index = closest_recording(request, self._cassette.recordings)
        difference = describe_difference(request, self._cassette.recordings[index].request)
        agent = f" of {self._agent!r}" if self._agent else ""
        compared = f"compared with recording {index + 1}"
        return f"no recording in {path} for this request{agent}: {difference} ({compared}); {hint}"


def _piece(answer: LlmResponse, seconds: float) -> Piece:
    data = answer.model_dump(mode="json", by_alias=True, exclude_none=True, fallback=repr)
    return Piece(after=round(seconds, 3), response=data)


def _recording(
    model: BaseLlm, request: NormalizedRequest, digest: str, pieces: list[Piece], last: LlmResponse
) -> Recording:
    return Recording(
        model=last.model_version or model.model,
        notice=model.notice,
        capabilities=model.capabilities.model_dump(exclude_defaults=True),
        request=request,
        digest=digest,
        responses=pieces,
    )


class ReplayTap:
    """Replays one cassette in place of models that are given by name; a model object is not replaced."""

    def __init__(self, path: Path) -> None:
        self._cassette = Cassette(path)

    def model(self, model: str | BaseLlm, agent: str = "", /) -> BaseLlm:
        """The model to call in place of `model`."""
        return model if isinstance(model, BaseLlm) else RecordedLlm(self._cassette, model=model, agent=agent)
