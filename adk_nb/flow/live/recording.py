"""Save the audio of a live conversation as artifacts, with `RunConfig.save_live_blob`."""

import logging
from dataclasses import dataclass, field

from adk_nb import clock, types
from adk_nb.errors import ConfigurationError, StorageError
from adk_nb.events.event import Event
from adk_nb.flow.history.contents import LIVE_FOLDER
from adk_nb.models.llm_response import LlmResponse
from adk_nb.runtime.context import Context
from adk_nb.runtime.invocation_context import InvocationContext

logger = logging.getLogger(__name__)


@dataclass
class _Track:
    """Audio chunks of one speaker since its last pause."""

    file: str
    chunks: list[bytes] = field(default_factory=list[bytes])
    mime_type: str = "audio/pcm"
    began: float = 0.0

    def add(self, blob: types.Blob) -> None:
        kind = blob.mime_type or ""
        if not (blob.data and kind.startswith("audio/")):
            return
        if not self.chunks:
            self.mime_type, self.began = kind, clock.now()
        self.chunks.append(blob.data)


class LiveRecording:
    """Collects the audio of both sides; does nothing without `RunConfig.save_live_blob`.

    Raises:
        ConfigurationError: The runner has no artifact service.
    """

    def __init__(self, ctx: InvocationContext) -> None:
        self._ctx = ctx
        self._is_enabled = ctx.run_config.save_live_blob
        self._user_track, self._model_track = _Track("input_audio"), _Track("output_audio")
        if self._is_enabled and not ctx.artifact_service:
            raise ConfigurationError(
                "RunConfig(save_live_blob=True) saves audio as artifacts, but the runner has no artifact service; "
                "write Runner(artifact_service=InMemoryArtifactService(), ...)"
            )

    def add_user_audio(self, blob: types.Blob | None) -> None:
        """Add audio of the user."""
        if self._is_enabled and blob:
            self._user_track.add(blob)

    async def add_response(self, response: LlmResponse) -> list[Event]:
        """Add audio of the model.

        Returns:
            Events that refer to the files saved now: the model's at the end of its turn or at an interruption, and at
            the end of its turn the user's before it.
        """
        if not self._is_enabled:
            return []
        for part in response.parts:
            if part.inline_data:
                self._model_track.add(part.inline_data)
        if response.turn_complete:
            return await self.save_rest()
        return await self._save_tracks([self._model_track]) if response.interrupted else []

    async def save_rest(self) -> list[Event]:
        """Save the remaining audio at the end of the conversation; returns as `add_response`."""
        return await self._save_tracks([self._user_track, self._model_track])

    async def _save_tracks(self, tracks: list[_Track]) -> list[Event]:
        ctx, session = self._ctx, self._ctx.session
        events: list[Event] = []
        for track in tracks:
            if not track.chunks:
                continue
            data, track.chunks = b"".join(track.chunks), []
            extension = track.mime_type.partition(";")[0].rpartition("/")[2]
            # Source of the name: google-adk 2.13.
            filename = f"adk_live_audio_storage_{track.file}_{int(track.began * 1000)}.{extension}"
            blob = types.Blob(data=data, mime_type=track.mime_type)
            context = Context(ctx)
            try:
                version = await context.save_artifact(filename, types.Part(inline_data=blob))
            except StorageError as error:  # the conversation continues without its recording
                logger.warning("the audio of a live conversation was not saved as %r: %s", filename, error)
                continue
            uri = f"artifact://{session.app_name}/{session.user_id}/{session.id}/{LIVE_FOLDER}/{filename}#{version}"
            is_user = track is self._user_track
            reference = types.Part(file_data=types.FileData(file_uri=uri, mime_type=track.mime_type))
            event = Event(
                author="user" if is_user else ctx.agent.name,
                invocation_id=ctx.invocation_id,
                branch=ctx.branch,
                content=types.Content(role="user" if is_user else "model", parts=[reference]),
                actions=context.actions,
            )
            events.append(event)
        return events
