"""What is heard and spoken in a live conversation, kept as files where the run says so."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from adk_nb import clock, types
from adk_nb.errors import ConfigurationError, StorageError
from adk_nb.events.event import Event
from adk_nb.models.llm_response import LlmResponse
from adk_nb.runtime.context import Context
from adk_nb.runtime.invocation_context import InvocationContext

logger = logging.getLogger(__name__)


_FOLDER = "_adk_live"
"""In a reference, what tells a recording from a file that a model may be shown. Source: google-adk 2.13."""


def is_recording(parts: Sequence[types.Part]) -> bool:
    """True for a reference to recorded sound, whose words the transcripts tell."""
    return any(part.file_data and f"/{_FOLDER}/" in (part.file_data.file_uri or "") for part in parts)


@dataclass
class _Sound:
    """Pieces of one speaker, up to where it pauses."""

    file: str
    pieces: list[bytes] = field(default_factory=list[bytes])
    mime_type: str = "audio/pcm"
    began: float = 0.0

    def add(self, blob: types.Blob) -> None:
        kind = blob.mime_type or ""
        if not (blob.data and kind.startswith("audio/")):
            return
        if not self.pieces:
            self.mime_type, self.began = kind, clock.now()
        self.pieces.append(blob.data)


class LiveRecording:
    """Collects the sound of both sides; `RunConfig.save_live_blob` decides whether any is kept.

    Raises:
        ConfigurationError: It is to be kept, and the runner has nowhere to.
    """

    def __init__(self, ctx: InvocationContext) -> None:
        self._ctx = ctx
        self._on = ctx.run_config.save_live_blob
        self._heard, self._spoken = _Sound("input_audio"), _Sound("output_audio")
        if self._on and not ctx.artifact_service:
            raise ConfigurationError(
                "RunConfig(save_live_blob=True) keeps sound as artifacts, and this runner keeps none; "
                "write Runner(artifact_service=InMemoryArtifactService(), ...)"
            )

    def hear(self, blob: types.Blob | None) -> None:
        """Take in what the user sends."""
        if self._on and blob:
            self._heard.add(blob)

    async def follow(self, response: LlmResponse) -> list[Event]:
        """Take in what the model says.

        Returns:
            Events with a reference to the files that are kept now: the model's when it has spoken or is interrupted,
            the user's before it when the model has spoken.
        """
        if not self._on:
            return []
        for part in response.parts:
            if part.inline_data:
                self._spoken.add(part.inline_data)
        if response.turn_complete:
            return await self.rest()
        return await self._all([self._spoken]) if response.interrupted else []

    async def rest(self) -> list[Event]:
        """The same for all that was not kept yet, when the conversation is over."""
        return await self._all([self._heard, self._spoken])

    async def _all(self, sounds: list[_Sound]) -> list[Event]:
        kept = [await self._keep(sound) for sound in sounds if sound.pieces]
        return [event for event in kept if event]

    async def _keep(self, sound: _Sound) -> Event | None:
        ctx, session = self._ctx, self._ctx.session
        data, sound.pieces = b"".join(sound.pieces), []
        extension = sound.mime_type.partition(";")[0].rpartition("/")[2]
        filename = f"adk_live_audio_storage_{sound.file}_{int(sound.began * 1000)}.{extension}"
        blob = types.Blob(data=data, mime_type=sound.mime_type)
        context = Context(ctx)
        try:
            version = await context.save_artifact(filename, types.Part(inline_data=blob))
        except StorageError as error:  # the conversation goes on without its recording
            logger.warning("the sound of a live conversation was not kept as %r: %s", filename, error)
            return None
        uri = f"artifact://{session.app_name}/{session.user_id}/{session.id}/{_FOLDER}/{filename}#{version}"
        users = sound is self._heard
        reference = types.Part(file_data=types.FileData(file_uri=uri, mime_type=sound.mime_type))
        return Event(
            author="user" if users else ctx.agent.name,
            invocation_id=ctx.invocation_id,
            branch=ctx.branch,
            content=types.Content(role="user" if users else "model", parts=[reference]),
            actions=context.actions,
        )
