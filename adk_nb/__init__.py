"""Build, run and watch LLM agents cell by cell."""

import sys
from typing import Any

from adk_nb.lazy import face
from adk_nb.missing_modules import MissingModules

__version__ = "0.1.0"

__getattr__, _public_names = face(
    __name__,
    {
        "Agent": "adk_nb.agents.llm_agent",
        "App": "adk_nb.apps.app",
        "Chat": "adk_nb.notebook.chat.chat",
        "Context": "adk_nb.runtime.context",
        "Event": "adk_nb.events.event",
        "InMemoryRunner": "adk_nb.runners",
        "LlmAgent": "adk_nb.agents.llm_agent",
        "Reply": "adk_nb.notebook.chat.reply",
        "RunConfig": "adk_nb.runtime.run_config",
        "Runner": "adk_nb.runners",
        "StreamingMode": "adk_nb.runtime.run_config",
        "Workflow": "adk_nb.workflow.workflow",
        "run": "adk_nb.sync",
        "stand_in_for_google_adk": "adk_nb.google_adk",
        "tool": "adk_nb.tools.tool_decorator",
        "types": "adk_nb.types",
    },
)
if not any(isinstance(finder, MissingModules) for finder in sys.meta_path):
    sys.meta_path.append(MissingModules())


def __dir__() -> list[str]:
    """Return the public names, for Tab and help."""
    return sorted([*_public_names(), "__version__"])


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext adk_nb` calls this."""
    from adk_nb.notebook.magics.extension import load_ipython_extension as load  # noqa: PLC0415  # the one door to IPython

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """`%unload_ext adk_nb` calls this."""
    from adk_nb.notebook.magics.extension import unload_ipython_extension as unload  # noqa: PLC0415  # as above

    unload(shell)
