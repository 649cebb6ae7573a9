"""A plugin that keeps the files of a user's message as artifacts, and tells the model where they are."""

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

_RUNS_KEPT = 1_000


class SaveFilesAsArtifactsPlugin(BasePlugin):
    """Saves each file that comes with a message under its own name, and puts `[Uploaded Artifact: "name"]` there.

    A file without a name, or with one that cannot be, is saved as `artifact_<invocation>_<place in the message>`. Give
    the agent `load_artifacts` to read them. An event of the agent tells of them in `actions.artifact_delta`.
    """

    def __init__(self, name: str = "save_files_as_artifacts_plugin") -> None:
        super().__init__(name)
        self._saved: OrderedDict[str, dict[str, int]] = OrderedDict()
        """Invocation -> file name -> version, until an event tells of them."""

    async def on_user_message_callback(
        self, *, invocation_context: InvocationContext, user_message: types.Content
    ) -> types.Content | None:
        given = user_message.parts or []
        if not any(part.inline_data for part in given):
            return None
        service = invocation_context.artifact_service
        if service is None:
            raise ConfigurationError(
                "this runner keeps no artifacts; write Runner(artifact_service=InMemoryArtifactService(), ...)"
            )
        saved: dict[str, int] = {}
        parts = list(given)
        for place, part in enumerate(given):
            if part.inline_data:
                filename, version = await _save(service, invocation_context, part, place)
                saved[filename] = version
                parts[place] = types.Part(text=f'[Uploaded Artifact: "{filename}"]')
        self._saved[invocation_context.invocation_id] = saved
        if len(self._saved) > _RUNS_KEPT:  # of runs that were answered before an agent began
            self._saved.popitem(last=False)
        return types.Content(role=user_message.role, parts=parts)

    async def before_agent_callback(self, *, agent: Any, callback_context: CallbackContext) -> None:
        callback_context.actions.artifact_delta |= self._saved.pop(callback_context.invocation_id, {})


async def _save(service: BaseArtifactService, ctx: InvocationContext, part: types.Part, place: int) -> tuple[str, int]:
    """The name a file was saved under, and the version."""
    session = ctx.session
    where: dict[str, Any] = {"app_name": session.app_name, "user_id": session.user_id, "session_id": session.id}
    usual = f"artifact_{ctx.invocation_id}_{place}"
    filename = (part.inline_data and part.inline_data.display_name) or usual
    try:
        return filename, await service.save_artifact(**where, filename=filename, artifact=part)
    except InputError as error:
        if filename == usual:
            raise
        logger.warning("a file is saved as %r: %s", usual, error)
        return usual, await service.save_artifact(**where, filename=usual, artifact=part)
