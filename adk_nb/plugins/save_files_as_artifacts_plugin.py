"""A plugin that saves the files of user messages as artifacts."""

import logging
from collections import OrderedDict
from typing import Any
from urllib.parse import urlsplit

from adk_nb import types
from adk_nb.artifacts.base_artifact_service import BaseArtifactService
from adk_nb.errors import ConfigurationError, InputError
from adk_nb.plugins.base_plugin import BasePlugin
from adk_nb.runtime.context import CallbackContext
from adk_nb.runtime.invocation_context import InvocationContext

logger = logging.getLogger(__name__)

_MAX_RUNS = 1_000
_MODEL_SCHEMES = ("gs", "https", "http")
"""Schemes of addresses from which models fetch files. Source: google-adk 2.13."""


class SaveFilesAsArtifactsPlugin(BasePlugin):
    """Saves each file of a message as an artifact, and replaces it by the text `[Uploaded Artifact: "name"]`.

    A file without a valid name is saved as `artifact_<invocation>_<index in the message>`. Give the agent
    `load_artifacts` to read them. An event of the agent lists them in `actions.artifact_delta`.
    """

    def __init__(self, name: str = "save_files_as_artifacts_plugin", *, attach_file_reference: bool = True) -> None:
        """Configure what stays in the message.

        Args:
            name: Unique among the plugins of a runner.
            attach_file_reference: Add a file's address behind its text, if the artifact service keeps it where a model
                can fetch it (`gs:`, `https:`). The services of this package keep files on this machine.
        """
        super().__init__(name)
        self._attach_file_reference = attach_file_reference
        self._saved: OrderedDict[str, dict[str, int]] = OrderedDict()
        """Invocation -> file name -> version, until an event lists them."""

    async def on_user_message_callback(
        self, *, invocation_context: InvocationContext, user_message: types.Content
    ) -> types.Content | None:
        """Save the files, and replace them by text."""
        message_parts = user_message.parts or []
        if not any(part.inline_data for part in message_parts):
            return None
        service = invocation_context.artifact_service
        if service is None:
            raise ConfigurationError(
                "this runner has no artifact service; write Runner(artifact_service=InMemoryArtifactService(), ...)"
            )
        saved: dict[str, int] = {}
        parts: list[types.Part] = []
        for index, part in enumerate(message_parts):
            if not part.inline_data:
                parts.append(part)
                continue
            filename, version = await _save(service, invocation_context, part, index)
            saved[filename] = version
            parts.append(types.Part(text=f'[Uploaded Artifact: "{filename}"]'))
            if self._attach_file_reference and (
                reference := await _reference(service, invocation_context, part.inline_data, filename, version)
            ):
                parts.append(reference)
        self._saved[invocation_context.invocation_id] = saved
        if len(self._saved) > _MAX_RUNS:  # runs that ended before an agent started leave entries
            self._saved.popitem(last=False)
        return types.Content(role=user_message.role, parts=parts)

    async def before_agent_callback(self, *, agent: Any, callback_context: CallbackContext) -> None:
        """List the saved files in the agent's event."""
        # Popped: of several agents of a run only the first lists them.
        callback_context.actions.artifact_delta |= self._saved.pop(callback_context.invocation_id, {})


async def _save(service: BaseArtifactService, ctx: InvocationContext, part: types.Part, index: int) -> tuple[str, int]:
    """Save a file; returns its name and version."""
    session = ctx.session
    owner: dict[str, Any] = {"app_name": session.app_name, "user_id": session.user_id, "session_id": session.id}
    default_name = f"artifact_{ctx.invocation_id}_{index}"
    filename = (part.inline_data and part.inline_data.display_name) or default_name
    try:
        return filename, await service.save_artifact(**owner, filename=filename, artifact=part)
    except InputError as error:  # the name is not allowed
        if filename == default_name:
            raise
        logger.warning("a file is saved as %r: %s", default_name, error)
        return default_name, await service.save_artifact(**owner, filename=default_name, artifact=part)


async def _reference(
    service: BaseArtifactService, ctx: InvocationContext, blob: types.Blob, filename: str, version: int
) -> types.Part | None:
    """The address of a saved file. None: a model cannot fetch it there."""
    session = ctx.session
    try:
        saved = await service.get_artifact_version(
            app_name=session.app_name,
            user_id=session.user_id,
            session_id=session.id,
            filename=filename,
            version=version,
        )
    except Exception as error:  # the file is saved, and its name is in the message
        logger.warning("artifact %r has no address for the model: %s", filename, error)
        return None
    if saved is None or urlsplit(saved.canonical_uri).scheme.lower() not in _MODEL_SCHEMES:
        return None
    mime_type = blob.mime_type or saved.mime_type
    return types.Part(
        file_data=types.FileData(file_uri=saved.canonical_uri, mime_type=mime_type, display_name=filename)
    )
