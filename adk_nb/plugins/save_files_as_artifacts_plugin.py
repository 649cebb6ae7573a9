"""A plugin that saves the files of user messages as artifacts."""

import logging
from collections import OrderedDict
from typing import Any

from adk_nb import types
from adk_nb.artifacts.base_artifact_service import BaseArtifactService
from adk_nb.errors import ConfigurationError, InputError
from adk_nb.plugins.base_plugin import BasePlugin
from adk_nb.runtime.context import CallbackContext
from adk_nb.runtime.invocation_context import InvocationContext

logger = logging.getLogger(__name__)

_MAX_RUNS = 1_000


class SaveFilesAsArtifactsPlugin(BasePlugin):
    """Saves each file of a message as an artifact, and replaces it by the text `[Uploaded Artifact: "name"]`.

    A file without a valid name is saved as `artifact_<invocation>_<index in the message>`. Give the agent
    `load_artifacts` to read them. An event of the agent lists them in `actions.artifact_delta`.
    """

    def __init__(self, name: str = "save_files_as_artifacts_plugin") -> None:
        super().__init__(name)
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
        parts = list(message_parts)
        for index, part in enumerate(message_parts):
            if part.inline_data:
                filename, version = await _save(service, invocation_context, part, index)
                saved[filename] = version
                parts[index] = types.Part(text=f'[Uploaded Artifact: "{filename}"]')
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
