"""For whom a notebook is written: google-adk or adk_nb, and what each calls a name."""

from collections.abc import Mapping
from dataclasses import dataclass

from adk_nb.errors import InputError
from adk_nb.models.base_llm import BaseLlm

_HERE = "adk_nb"
_ROOMS_WITHOUT_FILES = ("workflow", "apps", "plugins", "planners", "code_executors", "memory", "artifacts", "sessions")
"""Whose files google-adk calls otherwise, while the names stand at the room's door."""
_AT_THE_DOOR = {
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
"""What `from adk_nb import ...` gives -> where it stands in google-adk."""
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
"""What google-adk does not have at the door of its room -> where. Source: google-adk 2.13."""
_OURS_ALONE = frozenset(
    {"Chat", "Reply", "run", "HttpLlm", "OfflineLlm", "RecordedLlm", "ScriptedLlm", "END", "ToolNode", "GraphBuilder"}
    | {"build_node", "KernelCodeExecutor", "SqliteMemoryService", "AgentNode", "OllamaLlm", "StaticToolset", "call"}
    | {"built_in_code_execution", "register_search_backend", "tool"}
)
_OURS_ROOMS = ("notebook", "graph_compose", "engines", "flow", "runtime", "wire", "sync", "errors")


def is_known_there(model: str) -> bool:
    """Whether google-adk finds a model by this name: Gemini's, and those of litellm with a provider before `/`."""
    return not model or model.startswith("gemini") or "/" in model


def is_class_there(kind: type[BaseLlm]) -> bool:
    """Whether google-adk has a class of models, or a cell or another package defines it."""
    module = kind.__module__
    return module == "adk_nb.models.google_llm" or module.partition(".")[0] != _HERE


@dataclass(frozen=True)
class Target:
    """Where the written Python will run."""

    package: str
    """As it is imported."""
    in_words: str

    @property
    def is_google(self) -> bool:
        return self.package != _HERE

    @property
    def types(self) -> tuple[str, str]:
        """Module and name of the content types."""
        return ("google.genai", "types") if self.is_google else (_HERE, "types")

    def place_of(self, module: str, name: str) -> tuple[str, str]:
        """Where this target has what a cell imports.

        Args:
            module: As the cell has it.
            name: What of it; empty: the module itself.

        Raises:
            InputError: It has no such thing.
        """
        if not self.is_google or module.partition(".")[0] != _HERE:
            return module, name
        inner = module.removeprefix(_HERE).removeprefix(".")
        if inner == "types" or (not inner and name == "types"):
            return ("google.genai.types", name) if inner else ("google.genai", "types")
        if not (inner or name):
            raise InputError("%export: google-adk is imported otherwise than adk_nb; write from adk_nb import LlmAgent")
        room = inner.partition(".")[0]
        if name in _OURS_ALONE or room in _OURS_ROOMS:
            raise InputError(
                f"google-adk has no {name or module}, which a cell imports; write a script instead: %export agent.py"
            )
        if inner in ("", room) and name in _DEEPER:
            inner = _DEEPER[name]
        elif not inner:
            inner = _AT_THE_DOOR.get(name, "")
        elif room in _ROOMS_WITHOUT_FILES:
            inner = room
        return ".".join(filter(None, [self.package, inner])), name


GOOGLE_ADK = Target("google.adk", "google-adk")
ADK_NB = Target(_HERE, "adk_nb")

LEFT_OUT: Mapping[str, str] = {
    "exit_condition": "LoopAgent",
    "disable_transfer": "LlmAgent",
    "identity": "LlmAgent",
    "isolate_state": "ParallelAgent",
    "max_iterations": "LlmAgent",
    "on_output_error": "LlmAgent",
    "template": "LlmAgent",
    "tool_errors": "LlmAgent",
}
"""Fields that google-adk's agents do not have -> of which class."""
