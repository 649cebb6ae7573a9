"""The package an export is written for, google-adk or adk_nb, and the modules of its names."""

from collections.abc import Mapping
from dataclasses import dataclass

from adk_nb.errors import InputError
from adk_nb.models.base_llm import BaseLlm

_OURS = "adk_nb"
# Source of these tables: google-adk 2.13; tests/peers imports each name there.
_FLAT_PACKAGES = ("workflow", "apps", "plugins", "planners", "code_executors", "memory", "artifacts", "sessions")
"""Packages whose files google-adk names otherwise; it has the names in the package itself."""
_NAMES = {
    "a2a.utils.agent_to_a2a": "to_a2a",
    "agents": "Agent LlmAgent",
    "agents.callback_context": "CallbackContext",
    "agents.context": "Context",
    "agents.remote_a2a_agent": "RemoteA2aAgent",
    "agents.run_config": "RunConfig StreamingMode",
    "apps": "App",
    "apps.app": "EventsCompactionConfig",
    "apps.base_events_summarizer": "BaseEventsSummarizer",
    "apps.llm_event_summarizer": "LlmEventSummarizer",
    "artifacts.base_artifact_service": "ArtifactVersion",
    "auth.auth_credential": "HttpAuth HttpCredentials ServiceAccount ServiceAccountCredential",
    "auth.auth_tool": "AuthToolArguments",
    "events": "Event",
    "events.event_actions": "EventCompaction",
    "memory.base_memory_service": "SearchMemoryResponse",
    "memory.memory_entry": "MemoryEntry",
    "models.lite_llm": "LiteLlm",
    "plugins.context_filter_plugin": "ContextFilterPlugin",
    "plugins.global_instruction_plugin": "GlobalInstructionPlugin",
    "plugins.save_files_as_artifacts_plugin": "SaveFilesAsArtifactsPlugin",
    "runners": "InMemoryRunner Runner",
    "sessions.base_session_service": "GetSessionConfig ListSessionsResponse",
    "sessions.sqlite_session_service": "SqliteSessionService",
    "tools.authenticated_function_tool": "AuthenticatedFunctionTool",
    "tools.base_toolset": "BaseToolset",
    "tools.tool_confirmation": "ToolConfirmation",
    "workflow": "Workflow",
}
"""Modules of google-adk -> names that adk_nb, or a package in it, has too."""
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}
_OURS_ALONE = frozenset(
    {
        "A2aServer",
        "Chat",
        "Reply",
        "run",
        "HttpLlm",
        "LocalLlm",
        "OfflineLlm",
        "RecordedLlm",
        "ScriptedLlm",
        "END",
        "ToolNode",
        "GraphBuilder",
    }
    | {"build_node", "KernelCodeExecutor", "SqliteMemoryService", "AgentNode", "OllamaLlm", "StaticToolset", "call"}
    | {"built_in_code_execution", "register_search_backend", "tool", "SkillCatalog"}
)
_PACKAGES_OURS_ALONE = ("notebook", "graph_compose", "engines", "flow", "runtime", "wire", "sync", "errors")
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
    """True if google-adk resolves a model name: Gemini's, and `provider/model` of litellm."""
    return not model or model.startswith("gemini") or ("/" in model and ":" not in model.partition("/")[0])


def is_class_there(kind: type[BaseLlm]) -> bool:
    """True if google-adk, a cell or another package defines a class of models."""
    module = kind.__module__
    return module == "adk_nb.models.google_llm" or module.partition(".")[0] != _OURS


@dataclass(frozen=True)
class Target:
    """The package in which the written Python will run."""

    package: str
    """As it is imported."""

    @property
    def is_google(self) -> bool:
        return self.package != _OURS

    def place_of(self, module: str, name: str) -> tuple[str, str]:
        """Module and name in this target of an import of a cell; an empty name is the module itself.

        Raises:
            InputError: The target has no such name.
        """
        top, _, inner = module.partition(".")
        if not self.is_google or top != _OURS:
            return module, name
        if inner == "types" or (not inner and name == "types"):
            return ("google.genai.types", name) if inner else ("google.genai", "types")
        if not (inner or name):
            raise InputError(
                "%export: `import adk_nb` cannot be written for google-adk; write from adk_nb import LlmAgent"
            )
        package = inner.partition(".")[0]
        if name in _OURS_ALONE or package in _PACKAGES_OURS_ALONE:
            raise InputError(
                f"google-adk has no {name or module}, which a cell imports; write a script instead: %export agent.py"
            )
        if inner in ("", package) and name in _MODULES:
            inner = _MODULES[name]
        # google-adk documents the package as the place to import from; its files move.
        elif package in _FLAT_PACKAGES:
            inner = package
        return ".".join(filter(None, [self.package, inner])), name


GOOGLE_ADK = Target("google.adk")
ADK_NB = Target(_OURS)
