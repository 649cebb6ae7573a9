"""The package an export is written for, google-adk or adk_nb, and where it has a name."""

from collections.abc import Mapping
from dataclasses import dataclass

from adk_nb.errors import InputError
from adk_nb.models.base_llm import BaseLlm

_HERE = "adk_nb"
_FLAT_ROOMS = ("workflow", "apps", "plugins", "planners", "code_executors", "memory", "artifacts", "sessions")
"""Packages whose files google-adk names otherwise; it has the names in the package itself."""
# Source of both tables: google-adk 2.13; tests/peers imports each name there.
_TOP_LEVEL = {
    "Agent": "agents",
    "App": "apps",
    "Context": "agents.context",
    "Event": "events",
    "InMemoryRunner": "runners",
    "LlmAgent": "agents",
    "RunConfig": "agents.run_config",
    "Runner": "runners",
    "StreamingMode": "agents.run_config",
    "Workflow": "workflow",
}
"""What `from adk_nb import ...` gives -> its module in google-adk."""
_DEEPER = {
    "ArtifactVersion": "artifacts.base_artifact_service",
    "AuthToolArguments": "auth.auth_tool",
    "AuthenticatedFunctionTool": "tools.authenticated_function_tool",
    "BaseEventsSummarizer": "apps.base_events_summarizer",
    "BaseToolset": "tools.base_toolset",
    "CallbackContext": "agents.callback_context",
    "ContextFilterPlugin": "plugins.context_filter_plugin",
    "EventCompaction": "events.event_actions",
    "EventsCompactionConfig": "apps.app",
    "GetSessionConfig": "sessions.base_session_service",
    "GlobalInstructionPlugin": "plugins.global_instruction_plugin",
    "HttpAuth": "auth.auth_credential",
    "HttpCredentials": "auth.auth_credential",
    "ListSessionsResponse": "sessions.base_session_service",
    "LlmEventSummarizer": "apps.llm_event_summarizer",
    "MemoryEntry": "memory.memory_entry",
    "SaveFilesAsArtifactsPlugin": "plugins.save_files_as_artifacts_plugin",
    "SearchMemoryResponse": "memory.base_memory_service",
    "ServiceAccount": "auth.auth_credential",
    "ServiceAccountCredential": "auth.auth_credential",
    "SqliteSessionService": "sessions.sqlite_session_service",
    "StreamingMode": "agents.run_config",
    "ToolConfirmation": "tools.tool_confirmation",
}
"""Names of our packages that google-adk has only in a module -> that module."""
_OURS_ALONE = frozenset(
    {"Chat", "Reply", "run", "HttpLlm", "OfflineLlm", "RecordedLlm", "ScriptedLlm", "END", "ToolNode", "GraphBuilder"}
    | {"build_node", "KernelCodeExecutor", "SqliteMemoryService", "AgentNode", "OllamaLlm", "StaticToolset", "call"}
    | {"built_in_code_execution", "register_search_backend", "tool"}
)
_OUR_ROOMS = ("notebook", "graph_compose", "engines", "flow", "runtime", "wire", "sync", "errors")
LEFT_OUT: Mapping[str, str] = {
    "disable_transfer": "",
    "exit_condition": "end the loop with the tool exit_loop",
    "identity": "",
    "isolate_state": "",
    "max_iterations": "",
    "on_output_error": "",
    "template": "give it a function as its instruction",
    "tool_errors": "",
}
"""Fields that google-adk's agents lack -> what to write instead, where the agent would behave differently without."""


def is_known_there(model: str) -> bool:
    """Whether google-adk resolves a model name: Gemini's, and `provider/model` of litellm."""
    return not model or model.startswith("gemini") or "/" in model


def is_class_there(kind: type[BaseLlm]) -> bool:
    """Whether google-adk, a cell or another package defines a class of models."""
    module = kind.__module__
    return module == "adk_nb.models.google_llm" or module.partition(".")[0] != _HERE


@dataclass(frozen=True)
class Target:
    """Where the written Python will run."""

    package: str
    """As it is imported."""

    @property
    def is_google(self) -> bool:
        return self.package != _HERE

    def place_of(self, module: str, name: str) -> tuple[str, str]:
        """Module and name in this target of what a cell imports; an empty name is the module itself.

        Raises:
            InputError: The target has no such thing.
        """
        if not self.is_google or module.partition(".")[0] != _HERE:
            return module, name
        inner = module.removeprefix(_HERE).removeprefix(".")
        if inner == "types" or (not inner and name == "types"):
            return ("google.genai.types", name) if inner else ("google.genai", "types")
        if not (inner or name):
            raise InputError(
                "%export: `import adk_nb` cannot be written for google-adk; write from adk_nb import LlmAgent"
            )
        room = inner.partition(".")[0]
        if name in _OURS_ALONE or room in _OUR_ROOMS:
            raise InputError(
                f"google-adk has no {name or module}, which a cell imports; write a script instead: %export agent.py"
            )
        if inner in ("", room) and name in _DEEPER:
            inner = _DEEPER[name]
        elif not inner:
            inner = _TOP_LEVEL.get(name, "")
        elif room in _FLAT_ROOMS:
            inner = room
        return ".".join(filter(None, [self.package, inner])), name


GOOGLE_ADK = Target("google.adk")
ADK_NB = Target(_HERE)
