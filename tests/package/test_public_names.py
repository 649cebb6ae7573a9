"""Every import path that snippets written for ADK use, as far as it is built, and nothing that is not there."""

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

import adk_nb
from adk_nb.errors import CloudServiceError
from tests.support.each import each

ROOT = Path(adk_nb.__file__).parent
NAMES_PAGE = Path(__file__).parents[2] / "docs" / "pages" / "names.md"

CLOUD = {
    "adk_nb.artifacts": {"GcsArtifactService": "FileArtifactService"},
    "adk_nb.code_executors": {
        "VertexAiCodeExecutor": "KernelCodeExecutor",
    },
    "adk_nb.memory": {"VertexAiMemoryBankService": "SqliteMemoryService"},
    "adk_nb.skills": {"load_skill_from_gcs_dir": "load_skill_from_dir"},
    "adk_nb.sessions": {"VertexAiSessionService": "DatabaseSessionService"},
    "adk_nb.tools": {"APIHubToolset": "OpenAPIToolset"},
}
"""Module -> names of ADK's for services of Google Cloud -> what is named in their place."""

# module -> its names; the same object under each path. Counted in google/adk-docs, and our own beside.
PATHS: dict[str, str] = {
    "adk_nb": (
        "Agent App Chat Context Event InMemoryRunner LlmAgent NotebookToolset Reply RunConfig Runner StreamingMode "
        "Workflow run stand_in_for_google_adk tool types"
    ),
    "adk_nb.a2a": "A2aServer RemoteA2aAgent to_a2a",
    "adk_nb.a2a.utils": "to_a2a",
    "adk_nb.a2a.utils.agent_to_a2a": "to_a2a",
    "adk_nb.agents": (
        "Agent BaseAgent CallbackContext Context InvocationContext LiveRequest LiveRequestQueue LlmAgent "
        "LoopAgent McpInstructionProvider ParallelAgent RunConfig SequentialAgent StreamingMode"
    ),
    "adk_nb.agents.base_agent": "AfterAgentCallback BaseAgent BeforeAgentCallback",
    "adk_nb.agents.callback_context": "CallbackContext",
    "adk_nb.agents.common_configs": "AgentRefConfig CodeConfig",
    "adk_nb.agents.config_agent_utils": (
        "from_config resolve_agent_reference resolve_callbacks resolve_code_reference resolve_fully_qualified_name"
    ),
    "adk_nb.agents.context": "Context",
    "adk_nb.agents.context_cache_config": "ContextCacheConfig",
    "adk_nb.agents.invocation_context": "InvocationContext LlmCallsLimitExceededError",
    "adk_nb.agents.live_request_queue": "LiveRequest LiveRequestQueue",
    "adk_nb.agents.llm_agent": (
        "AfterModelCallback AfterToolCallback Agent BeforeModelCallback BeforeToolCallback InstructionProvider "
        "LlmAgent OnModelErrorCallback OnToolErrorCallback ToolUnion"
    ),
    "adk_nb.agents.mcp_instruction_provider": "McpInstructionProvider",
    "adk_nb.agents.readonly_context": "ReadonlyContext",
    "adk_nb.agents.remote_a2a_agent": (
        "A2AClientError AGENT_CARD_WELL_KNOWN_PATH AgentCardResolutionError DEFAULT_TIMEOUT RemoteA2aAgent"
    ),
    "adk_nb.agents.run_config": "RunConfig StreamingMode ToolThreadPoolConfig",
    "adk_nb.apps": "App BaseEventsSummarizer EventsCompactionConfig LlmEventSummarizer ResumabilityConfig",
    "adk_nb.apps.app": "App EventsCompactionConfig ResumabilityConfig",
    "adk_nb.apps.base_events_summarizer": "BaseEventsSummarizer",
    "adk_nb.apps.llm_event_summarizer": "LlmEventSummarizer",
    "adk_nb.artifacts": "ArtifactVersion BaseArtifactService FileArtifactService InMemoryArtifactService",
    "adk_nb.artifacts.base_artifact_service": "ArtifactVersion BaseArtifactService",
    "adk_nb.artifacts.file_artifact_service": "FileArtifactService",
    "adk_nb.artifacts.in_memory_artifact_service": "InMemoryArtifactService",
    "adk_nb.auth": (
        "APIKey APIKeyIn AuthConfig AuthCredential AuthCredentialTypes AuthHandler AuthScheme AuthSchemeType "
        "AuthToolArguments HTTPBase HttpAuth HttpCredentials OAuth2 OAuth2Auth OAuthFlowAuthorizationCode "
        "OAuthFlowClientCredentials OAuthFlows OpenIdConnect OpenIdConnectWithConfig ServiceAccount "
        "ServiceAccountCredential"
    ),
    "adk_nb.auth.auth_credential": (
        "AuthCredential AuthCredentialTypes HttpAuth HttpCredentials OAuth2Auth ServiceAccount ServiceAccountCredential"
    ),
    "adk_nb.auth.auth_handler": "AuthHandler",
    "adk_nb.auth.auth_schemes": "AuthScheme AuthSchemeType OpenIdConnectWithConfig",
    "adk_nb.auth.auth_tool": "AuthConfig AuthToolArguments",
    "adk_nb.auth.credential_service": (
        "BaseCredentialService FileCredentialService InMemoryCredentialService KeyringCredentialService"
    ),
    "adk_nb.auth.credential_service.base_credential_service": "BaseCredentialService",
    "adk_nb.auth.credential_service.in_memory_credential_service": "InMemoryCredentialService",
    "adk_nb.auth.credential_service.session_state_credential_service": "SessionStateCredentialService",
    "adk_nb.code_executors": (
        "BaseCodeExecutor BuiltInCodeExecutor CodeExecutorContext ContainerCodeExecutor KernelCodeExecutor "
        "UnsafeLocalCodeExecutor"
    ),
    "adk_nb.code_executors.base_code_executor": "BaseCodeExecutor",
    "adk_nb.code_executors.built_in_code_executor": "BuiltInCodeExecutor",
    "adk_nb.code_executors.code_execution_utils": "CodeExecutionInput CodeExecutionResult File",
    "adk_nb.code_executors.code_executor_context": "CodeExecutorContext",
    "adk_nb.code_executors.container_code_executor": "ContainerCodeExecutor",
    "adk_nb.code_executors.unsafe_local_code_executor": "UnsafeLocalCodeExecutor",
    "adk_nb.engines": "DbosEngine Outcome",
    "adk_nb.errors": (
        "AlreadyExistsError InputError InvocationNotFoundError LlmCallsLimitExceededError NotFoundError PluginError "
        "SessionNotFoundError StateSchemaError ToolErrorType ToolExecutionError"
    ),
    "adk_nb.errors.already_exists_error": "AlreadyExistsError",
    "adk_nb.errors.input_validation_error": "InputValidationError",
    "adk_nb.errors.not_found_error": "NotFoundError",
    "adk_nb.errors.session_not_found_error": "SessionNotFoundError",
    "adk_nb.errors.tool_execution_error": "ToolErrorType ToolExecutionError",
    "adk_nb.events": "Event EventActions EventCompaction RequestInput ToolConfirmation",
    "adk_nb.events.event": "Event",
    "adk_nb.events.event_actions": "EventActions EventCompaction",
    "adk_nb.events.request_input": "RequestInput",
    "adk_nb.events.ui_widget": "UiWidget",
    "adk_nb.examples": "BaseExampleProvider Example",
    "adk_nb.examples.base_example_provider": "BaseExampleProvider",
    "adk_nb.examples.example": "Example",
    "adk_nb.extensions": (
        "AgentOption Argument Extension Finding Grammar Host Magic Option Output Setting ToolOption TurnOption "
        "register table text"
    ),
    "adk_nb.graph_compose": (
        "GraphCompose WorkflowHandle WorkflowResult ask_a_person createAgentTool createFunctionTool createHttpTool "
        "createLlmAgent createLoopAgent createParallelAgent createSequentialAgent createSubAgentReference "
        "create_agent_tool create_function_tool create_http_tool create_llm_agent create_loop_agent "
        "create_parallel_agent create_sequential_agent create_sub_agent_reference"
    ),
    "adk_nb.integrations": "crewai langchain openai",
    "adk_nb.integrations.crewai": "CrewaiTool",
    "adk_nb.integrations.crewai.crewai_tool": "CrewaiTool",
    "adk_nb.integrations.langchain": "LangchainTool",
    "adk_nb.integrations.langchain.langchain_tool": "LangchainTool",
    "adk_nb.integrations.openai": "OpenAILlm",
    "adk_nb.live": "LiveRequest LiveRequestQueue",
    "adk_nb.live.live_request_queue": "LiveRequest LiveRequestQueue",
    "adk_nb.memory": (
        "BaseMemoryService InMemoryMemoryService MemoryEntry SearchMemoryResponse SqliteMemoryService "
        "VertexAiRagMemoryService"
    ),
    "adk_nb.memory.base_memory_service": "BaseMemoryService SearchMemoryResponse",
    "adk_nb.memory.in_memory_memory_service": "InMemoryMemoryService",
    "adk_nb.memory.memory_entry": "MemoryEntry",
    "adk_nb.models": (
        "BaseLlm Claude FallbackModel Gemini HttpLlm LLMRegistry LiteLlm LlmCapabilities LlmRequest LlmResponse "
        "LocalLlm OfflineLlm OllamaLlm OpenAILlm RecordedLlm ScriptedLlm call"
    ),
    "adk_nb.models.anthropic_llm": "Claude",
    "adk_nb.models.base_llm": "BaseLlm",
    "adk_nb.models.base_llm_connection": "BaseLlmConnection",
    "adk_nb.models.google_llm": "Gemini",
    "adk_nb.models.lite_llm": "LiteLlm",
    "adk_nb.models.local_llm": "LocalLlm",
    "adk_nb.models.llm_request": "LlmRequest",
    "adk_nb.models.llm_response": "LlmResponse",
    "adk_nb.models.registry": "LLMRegistry",
    "adk_nb.evaluation": (
        "AgentEvaluator Case CaseRun EvalCase EvalSet Evaluation aagent_map aevaluate agent_map evaluate judge metric"
    ),
    "adk_nb.evaluation.agent_evaluator": "AgentEvaluator",
    "adk_nb.evaluation.common": "EvalBaseModel",
    "adk_nb.evaluation.eval_case": "EvalCase IntermediateData Invocation InvocationEvents SessionInput",
    "adk_nb.evaluation.eval_config": "EvalConfig get_eval_metrics_from_config get_evaluation_criteria_or_default",
    "adk_nb.evaluation.eval_metrics": "EvalMetric EvalStatus JudgeModelOptions PrebuiltMetrics ToolTrajectoryCriterion",
    "adk_nb.evaluation.eval_set": "EvalSet",
    "adk_nb.evaluation.evaluator": "EvalStatus EvaluationResult PerInvocationResult",
    "adk_nb.evaluation.local_eval_sets_manager": "load_eval_set_from_file",
    "adk_nb.planners": "BasePlanner BuiltInPlanner PlanReActPlanner",
    "adk_nb.planners.base_planner": "BasePlanner",
    "adk_nb.planners.built_in_planner": "BuiltInPlanner",
    "adk_nb.planners.plan_re_act_planner": "PlanReActPlanner",
    "adk_nb.plugins": (
        "BasePlugin ContextFilterPlugin DebugLoggingPlugin GlobalInstructionPlugin LoggingPlugin PluginManager "
        "ReflectAndRetryModelPlugin ReflectAndRetryToolPlugin SaveFilesAsArtifactsPlugin"
    ),
    "adk_nb.plugins.base_plugin": "BasePlugin",
    "adk_nb.plugins.context_filter_plugin": "ContextFilterPlugin",
    "adk_nb.plugins.debug_logging_plugin": "DebugLoggingPlugin",
    "adk_nb.plugins.global_instruction_plugin": "GlobalInstructionPlugin",
    "adk_nb.plugins.logging_plugin": "LoggingPlugin",
    "adk_nb.plugins.plugin_manager": "PluginManager",
    "adk_nb.plugins.reflect_retry_tool_plugin": "ReflectAndRetryToolPlugin TrackingScope",
    "adk_nb.plugins.save_files_as_artifacts_plugin": "SaveFilesAsArtifactsPlugin",
    "adk_nb.runners": "InMemoryRunner Runner",
    "adk_nb.serving": "Server create_app new_token",
    "adk_nb.sessions": (
        "BaseSessionService DatabaseSessionService GetSessionConfig InMemorySessionService ListSessionsResponse "
        "Session SqliteSessionService State StateSchemaError"
    ),
    "adk_nb.sessions.base_session_service": "BaseSessionService GetSessionConfig ListSessionsResponse",
    "adk_nb.sessions.database_session_service": "DatabaseSessionService",
    "adk_nb.sessions.in_memory_session_service": "InMemorySessionService",
    "adk_nb.sessions.session": "Session",
    "adk_nb.sessions.sqlite_session_service": "SqliteSessionService",
    "adk_nb.sessions.state": "State StateSchemaError",
    "adk_nb.skills": (
        "Frontmatter Resources Script Skill SkillCatalog list_skills_in_dir load_skill_from_dir load_skills_from_dir"
    ),
    "adk_nb.skills.models": "Frontmatter Resources Script Skill",
    "adk_nb.skills.prompt": "format_skills_as_xml",
    "adk_nb.telemetry": "instrument tracer uninstrument",
    "adk_nb.telemetry.tracing": "tracer",
    "adk_nb.tools": (
        "AgentTool AuthenticatedFunctionTool BaseTool BaseToolset DataToolset ExampleTool FunctionTool "
        "LongRunningFunctionTool MCPToolset McpToolset SqlToolset StaticToolset ToolContext "
        "TransferToAgentTool VertexAiSearchTool "
        "built_in_code_execution enterprise_web_search exit_loop get_user_choice google_maps_grounding google_search "
        "load_artifacts load_memory preload_memory register_search_backend request_input tool transfer_to_agent "
        "url_context"
    ),
    "adk_nb.tools.agent_tool": "AgentTool",
    "adk_nb.tools.authenticated_function_tool": "AuthenticatedFunctionTool",
    "adk_nb.tools.base_tool": "BaseTool",
    "adk_nb.tools.base_toolset": "BaseToolset ToolPredicate",
    "adk_nb.tools.crewai_tool": "CrewaiTool",
    "adk_nb.tools.enterprise_search_tool": "EnterpriseWebSearchTool enterprise_web_search_tool",
    "adk_nb.tools.example_tool": "ExampleTool",
    "adk_nb.tools.exit_loop_tool": "exit_loop",
    "adk_nb.tools.function_tool": "FunctionTool",
    "adk_nb.tools.get_user_choice_tool": "get_user_choice get_user_choice_tool",
    "adk_nb.tools.google_maps_grounding_tool": "GoogleMapsGroundingTool google_maps_grounding",
    "adk_nb.tools.google_search_tool": "GoogleSearchTool google_search register_search_backend",
    "adk_nb.tools.langchain_tool": "LangchainTool",
    "adk_nb.tools.mcp_tool": (
        "MCPToolset McpTool McpToolset SseConnectionParams SseServerParams StdioConnectionParams StdioServerParameters "
        "StreamableHTTPConnectionParams"
    ),
    "adk_nb.tools.mcp_tool.mcp_session_manager": (
        "SseConnectionParams SseServerParams StdioConnectionParams StdioServerParameters StreamableHTTPConnectionParams"
    ),
    "adk_nb.tools.mcp_tool.mcp_toolset": "MCPToolset McpToolset",
    "adk_nb.tools.openapi_tool": "OpenAPIToolset RestApiTool",
    "adk_nb.tools.openapi_tool.auth": "auth_helpers",
    "adk_nb.tools.openapi_tool.auth.auth_helpers": (
        "dict_to_auth_scheme openid_dict_to_scheme_credential service_account_dict_to_scheme_credential "
        "service_account_scheme_credential token_to_scheme_credential"
    ),
    "adk_nb.tools.openapi_tool.openapi_spec_parser": "OpenAPIToolset RestApiTool",
    "adk_nb.tools.openapi_tool.openapi_spec_parser.rest_api_tool": "RestApiTool",
    "adk_nb.tools.openapi_tool.openapi_spec_parser.openapi_toolset": "OpenAPIToolset",
    "adk_nb.tools.load_artifacts_tool": "LoadArtifactsTool load_artifacts load_artifacts_tool",
    "adk_nb.tools.load_mcp_resource_tool": "LoadMcpResourceTool",
    "adk_nb.tools.load_memory_tool": "LoadMemoryTool load_memory load_memory_tool",
    "adk_nb.tools.load_web_page": "load_web_page",
    "adk_nb.tools.long_running_tool": "LongRunningFunctionTool",
    "adk_nb.tools.preload_memory_tool": "PreloadMemoryTool preload_memory preload_memory_tool",
    "adk_nb.tools.retrieval": "BaseRetrievalTool FilesRetrieval LlamaIndexRetrieval VertexAiRagRetrieval",
    "adk_nb.tools.retrieval.base_retrieval_tool": "BaseRetrievalTool",
    "adk_nb.tools.skill_toolset": (
        "ListSkillsTool LoadSkillResourceTool LoadSkillTool RunSkillScriptTool SkillDiscoveryMode SkillToolset"
    ),
    "adk_nb.tools.tool_configs": "BaseToolConfig ToolArgsConfig ToolConfig",
    "adk_nb.tools.tool_confirmation": "ToolConfirmation",
    "adk_nb.tools.tool_context": "ToolContext",
    "adk_nb.tools.url_context_tool": "UrlContextTool url_context",
    "adk_nb.tools.vertex_ai_search_tool": "VertexAiSearchTool",
    "adk_nb.utils": "instructions_utils",
    "adk_nb.utils.instructions_utils": "inject_session_state",
    "adk_nb.workflow": (
        "AgentNode BaseNode DEFAULT_ROUTE END Edge FunctionNode JoinNode Node NodeTimeoutError RetryConfig START "
        "ToolNode Workflow build_node node"
    ),
}
ALIASES = {
    "Agent": "LlmAgent",
    "InputValidationError": "InputError",
    "Node": "BaseNode",
    "CallbackContext": "Context",
    "MCPToolset": "McpToolset",
    "SseServerParams": "SseConnectionParams",
    "ToolContext": "Context",
}
INSIDE = ("flow/history", "flow/live", "tools/auth")
"""Folders with a face that load late too, and are no import paths for users."""
FACES = sorted(
    path
    for path in ROOT.rglob("__init__.py")
    if "face(" in path.read_text(encoding="utf-8") and path.parent.relative_to(ROOT).as_posix() not in INSIDE
)
NAMES = [(module, name) for module, names in PATHS.items() for name in names.split()]


def package_of(path: Path) -> str:
    return ".".join(path.parent.relative_to(ROOT.parent).parts)


@each("module, name", NAMES)
def test_a_path_leads_to_its_name(module: str, name: str):
    found = getattr(importlib.import_module(module), name)

    if isinstance(found, type):
        assert found.__name__ == ALIASES.get(name, name)


@each("name", sorted({name for _, name in NAMES}))
def test_a_name_is_one_object_wherever_it_is_imported_from(name: str):
    found = {id(getattr(importlib.import_module(module), name)) for module, one in NAMES if one == name}

    assert len(found) == 1


@each(
    "module",
    [
        "agent_tool", "base_tool", "base_toolset", "crewai_tool", "function_tool", "langchain_tool", "load_web_page",
        "long_running_tool", "mcp_tool", "openapi_tool", "retrieval", "tool_confirmation", "tool_context",
    ],
)  # fmt: skip
def test_a_room_hands_out_its_files(module: str):
    taken: dict[str, Any] = {}

    exec(f"from adk_nb.tools import {module}", taken)

    assert taken[module] is importlib.import_module(f"adk_nb.tools.{module}")


def test_short_names_are_the_objects_they_are_short_for():
    agents, tools = importlib.import_module("adk_nb.agents"), importlib.import_module("adk_nb.tools")

    assert agents.Agent is agents.LlmAgent
    assert agents.CallbackContext is agents.Context is tools.ToolContext


@each("path", FACES)
def test_a_face_names_what_its_stub_imports_in_order(path: Path):
    face = importlib.import_module(package_of(path))

    names = dir(face)

    assert names == sorted(names)
    assert set(PATHS[package_of(path)].split()) == {*names} - {"__version__"}


@each("path", FACES)
def test_star_takes_what_the_face_has(path: Path):
    taken: dict[str, Any] = {}

    exec(f"from {package_of(path)} import *", taken)

    assert {name for name in taken if not name.startswith("__")} == set(PATHS[package_of(path)].split())


@each("module", sorted(package_of(path) for path in FACES))
def test_every_public_name_stands_on_the_page_of_names_with_what_it_is_for(module: str):
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+\.) \|$", NAMES_PAGE.read_text(encoding="utf-8"), re.MULTILINE))

    assert {*dir(importlib.import_module(module))} - {"__version__"} - {*rows} == set()


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("adk_nb", "Graph"),
        ("adk_nb.sessions", "RedisSessionService"),
        ("adk_nb", "agent"),
    ],
)
def test_a_name_that_is_not_built_is_absent(module: str, name: str):
    with pytest.raises(AttributeError, match=f"module '{module}' has no attribute '{name}'"):
        getattr(importlib.import_module(module), name)


@pytest.mark.parametrize(("module", "name"), [(module, name) for module, names in CLOUD.items() for name in names])
def test_a_name_of_a_cloud_service_says_what_to_use_instead(module: str, name: str):
    with pytest.raises(CloudServiceError) as refused:
        exec(f"from {module} import {name}")

    said = str(refused.value)
    assert name in said and CLOUD[module][name] in said and "\n" not in said
    assert name not in dir(importlib.import_module(module))
