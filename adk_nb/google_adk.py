"""Names of google-adk: what to use for its modules and commands that are not here, and the stand-in for the rest.

With the stand-in, `from google.adk.agents import Agent` finds adk_nb's.
"""

import importlib
import importlib.util
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from adk_nb.errors import MissingModuleError

_OURS = "adk_nb."
_CLOUD = "it is a client of Google Cloud; use OpenAPIToolset, McpToolset or a function"
_CODE = "use KernelCodeExecutor(), ContainerCodeExecutor(), or BuiltInCodeExecutor() with Gemini"
_METRICS = "call adk_nb.evaluation.evaluate(agent, cases, metrics=[...])"
_CRITERION = "name it in the criteria of an EvalConfig, for AgentEvaluator.evaluate"
_RESULTS = "use LocalEvalSetResultsManager(FOLDER)"
_SETS = "use LocalEvalSetsManager(FOLDER)"
_SIMULATED = "write down what the user says in each case: no user is simulated"
_CREDENTIALS = "give tools auth_credential= and auth_scheme=: tokens are exchanged and refreshed by themselves"
_CLOUD_METRIC = "it needs a service of Google Cloud; write judge('what a good answer has'), from adk_nb.evaluation"
_CASCADE = "use Runner.run_live with a model that hears and speaks itself"
_STUB = "stub tools in an evaluation: %%eval AGENT --stub pay,send_mail"
INSTEAD = {
    "a2a.agent": "RemoteA2aAgent(token=...) or (httpx_client=...) does what interceptors did with headers",
    "a2a.converters": "to_a2a and RemoteA2aAgent convert by themselves",
    "a2a.executor": "use to_a2a(agent), or A2aServer",
    "a2a.experimental": "leave it out: the A2A classes give no warning",
    "a2a.logs": "set logging.getLogger('adk_nb').setLevel('DEBUG')",
    "a2a.utils.agent_card_builder": "to_a2a(agent) makes the card; agent_card= takes one of yours",
    "agents.active_streaming_tool": "write an async generator as a tool; its pieces arrive as they come",
    "agents.agent_config": "call adk_nb.agents.config_agent_utils.from_config(FILE)",
    "agents.base_agent_config": "call adk_nb.agents.config_agent_utils.from_config(FILE)",
    "agents.langgraph_agent": "call the graph from a function and give it to an agent as a tool",
    "agents.llm": "use LlmAgent(mode='task')",
    "agents.llm_agent_config": "call adk_nb.agents.config_agent_utils.from_config(FILE)",
    "agents.loop_agent_config": "call adk_nb.agents.config_agent_utils.from_config(FILE)",
    "agents.parallel_agent_config": "call adk_nb.agents.config_agent_utils.from_config(FILE)",
    "agents.sequential_agent_config": "call adk_nb.agents.config_agent_utils.from_config(FILE)",
    "agents.transcription_entry": "read event.input_transcription and event.output_transcription",
    "apps.compaction": "use App(events_compaction_config=EventsCompactionConfig(...))",
    "artifacts.artifact_util": "save and load artifacts by name with the context's save_artifact and load_artifact",
    "artifacts.gcs_artifact_service": "use FileArtifactService",
    "auth.auth_preprocessor": _CREDENTIALS,
    "auth.auth_provider_registry": _CREDENTIALS,
    "auth.base_auth_provider": _CREDENTIALS,
    "auth.credential_manager": _CREDENTIALS,
    "auth.exchanger": _CREDENTIALS,
    "auth.oauth2_credential_util": _CREDENTIALS,
    "auth.oauth2_discovery": _CREDENTIALS,
    "auth.refresher": _CREDENTIALS,
    "cli": "type %chat NAME to talk to an agent, %serve NAME to serve it, %export FOLDER to take it along",
    "cli.fast_api": "type %serve NAME, or call adk_nb.serving.create_app",
    "code_executors.agent_engine_sandbox_code_executor": _CODE,
    "code_executors.gke_code_executor": _CODE,
    "code_executors.vertex_ai_code_executor": _CODE,
    "dependencies": "import the package itself: google-adk only hands it on",
    "environment": "use KernelCodeExecutor(), which has files and packages of its own",
    "evaluation.app_details": "read the reply's requests: %trace --why, or the prompts panel",
    "evaluation.constants": _METRICS,
    "evaluation.conversation_scenarios": _SIMULATED,
    "evaluation.custom_metric_evaluator": "pass a function as a metric: evaluate(agent, cases, metrics=[function])",
    "evaluation.evaluation_constants": _METRICS,
    "evaluation.evaluation_generator": "call adk_nb.evaluation.evaluate(agent, cases), which runs the agent itself",
    "evaluation.final_response_match_v2": _CRITERION,
    "evaluation.gcs_eval_set_results_manager": _RESULTS,
    "evaluation.gcs_eval_sets_manager": _SETS,
    "evaluation.hallucinations_v1": _CRITERION,
    "evaluation.llm_as_judge": "write judge('what a good answer has'), from adk_nb.evaluation",
    "evaluation.llm_as_judge_utils": "write judge('what a good answer has'), from adk_nb.evaluation",
    "evaluation.metric_evaluator_registry": "put @metric, from adk_nb.evaluation, on a function and pass it",
    "evaluation.metric_info_providers": _METRICS,
    "evaluation.multi_turn_task_success_evaluator": _CLOUD_METRIC,
    "evaluation.multi_turn_tool_use_quality_evaluator": _CLOUD_METRIC,
    "evaluation.multi_turn_trajectory_quality_evaluator": _CLOUD_METRIC,
    "evaluation.request_intercepter_plugin": "read the requests in %trace --why, or write a plugin",
    "evaluation.response_evaluator": "call adk_nb.evaluation.evaluate(agent, cases, metrics=['response_match_score'])",
    "evaluation.rubric_based_evaluator": "write judge('what a good answer has'), from adk_nb.evaluation",
    "evaluation.rubric_based_final_response_quality_v1": _CRITERION,
    "evaluation.rubric_based_multi_turn_trajectory_evaluator": _CRITERION,
    "evaluation.rubric_based_tool_use_quality_v1": _CRITERION,
    "evaluation.safety_evaluator": _CLOUD_METRIC,
    "evaluation.simulation": _SIMULATED,
    "evaluation.vertex_ai_eval_facade": _CLOUD_METRIC,
    "examples.example_util": "use ExampleTool(examples)",
    "examples.vertex_ai_example_store": "write a BaseExampleProvider, or pass a list to ExampleTool",
    "features": "leave it out: adk_nb has no switches for features, and no decorators that mark them",
    "flows": "write callbacks or a plugin: the steps of a model call, in adk_nb.flow, are internal",
    "integrations.agent_identity": _CLOUD,
    "integrations.agent_registry": _CLOUD,
    "integrations.api_registry": _CLOUD,
    "integrations.bigquery": _CLOUD,
    "integrations.cloud_run": _CODE,
    "integrations.daytona": _CODE,
    "integrations.e2b": _CODE,
    "integrations.eleven_labs": "call its API in a function and give that to an agent as a tool",
    "integrations.eventarc": _CLOUD,
    "integrations.firestore": "use DatabaseSessionService, and SqliteMemoryService",
    "integrations.gcs": _CLOUD,
    "integrations.livekit": "send audio with Runner.run_live and a LiveRequestQueue",
    "integrations.model_armor": "check texts in a before_model_callback or a plugin",
    "integrations.mongodb": "use DatabaseSessionService, and SqliteMemoryService",
    "integrations.oci": "use LiteLlm(model='oci/...')",
    "integrations.openai.AzureOpenAIResponsesLlm": "use OpenAILlm(model=..., base_url=..., responses=True)",
    "integrations.openai.OpenAIGenerateContentConfig": "use types.GenerateContentConfig",
    "integrations.openai.OpenAIResponsesLlm": "use OpenAILlm(model=..., responses=True)",
    "integrations.opensandbox": _CODE,
    "integrations.parameter_manager": "read os.environ, or type %key",
    "integrations.redis": "use DatabaseSessionService or SqliteSessionService",
    "integrations.secret_manager": "type %key NAME, which asks for a key and keeps it out of the notebook",
    "integrations.skill_registry": "use load_skills_from_dir, or SkillToolset(skills=[...])",
    "integrations.slack": "call Runner.run_async from the handler of your Slack app",
    "integrations.typesafe": "use LlmAgent(output_schema=...)",
    "integrations.vmaas": _CODE,
    "labs": "it is an experiment of google-adk; use LlmAgent with output_schema=, or OpenAILlm",
    "live.AgentSpokenOutput": _CASCADE,
    "live.AudioChunk": _CASCADE,
    "live.CascadeLive": _CASCADE,
    "live.EgressEvent": _CASCADE,
    "live.GeminiSTT": _CASCADE,
    "live.GeminiTTS": _CASCADE,
    "live.IngressEvent": _CASCADE,
    "live.LiveEgress": _CASCADE,
    "live.LiveIngress": _CASCADE,
    "live.PartialTranscript": _CASCADE,
    "live.UserSpeechStarted": _CASCADE,
    "live.UserTurnFinished": _CASCADE,
    "memory.vertex_ai_memory_bank_service": "use SqliteMemoryService",
    "models.apigee_llm": "use OpenAILlm(model=..., base_url=...), or Gemini(base_url=...)",
    "models.gemini_context_cache_manager": "use App(context_cache_config=ContextCacheConfig(...))",
    "models.gemini_llm_connection": "use Runner.run_live with a LiveRequestQueue",
    "models.gemma_llm": "use LlmAgent(model='ollama:gemma3'), or '-m gguf:/path/model.gguf'",
    "models.interactions_utils": "use Gemini(model=...)",
    "optimization": "change the cell of the agent and compare: %eval diff -1 -2",
    "platform": "call random, threading and time themselves; adk_nb.clock has now() and new_id()",
    "plugins.auto_tracing_helpers": "call adk_nb.telemetry.instrument()",
    "plugins.auto_tracing_plugin": "call adk_nb.telemetry.instrument()",
    "plugins.bigquery_agent_analytics_plugin": "call adk_nb.telemetry.instrument(endpoint), or use DebugLoggingPlugin",
    "plugins.multimodal_tool_results_plugin": "leave it out: tools may return types.Part, images and frames",
    "sessions.migration": "use DatabaseSessionService, which has tables of its own",
    "sessions.schemas": "use DatabaseSessionService, whose tables are its own",
    "sessions.vertex_ai_session_service": "use DatabaseSessionService",
    "skills.skill_registry": "use load_skills_from_dir, or SkillToolset(skills=[...])",
    "telemetry.context": "call adk_nb.telemetry.instrument(content=True)",
    "telemetry.google_cloud": "call adk_nb.telemetry.instrument(endpoint)",
    "telemetry.node_tracing": "call adk_nb.telemetry.instrument(), which makes spans of nodes too",
    "telemetry.setup": "call adk_nb.telemetry.instrument(endpoint)",
    "telemetry.sqlite_span_exporter": "type %trace: the session has what happened; or instrument(tracer_provider=...)",
    "tools.agent_simulator": _STUB,
    "tools.api_registry": _CLOUD,
    "tools.apihub_tool": _CLOUD,
    "tools.application_integration_tool": _CLOUD,
    "tools.base_authenticated_tool": "use AuthenticatedFunctionTool, or context.get_auth_response in a BaseTool",
    "tools.bash_tool": "call subprocess in a function with @tool(confirm=True), or use KernelCodeExecutor()",
    "tools.bigquery": _CLOUD,
    "tools.bigtable": _CLOUD,
    "tools.computer_use": "use an MCP server that drives a browser: McpToolset(...)",
    "tools.data_agent": _CLOUD,
    "tools.discovery_engine_search_tool": "use VertexAiSearchTool with Gemini, or a FilesRetrieval",
    "tools.environment": "use KernelCodeExecutor()",
    "tools.environment_simulation": _STUB,
    "tools.google_api_tool": _CLOUD,
    "tools.google_search_agent_tool": "use google_search, which works beside other tools by itself",
    "tools.google_tool": _CLOUD,
    "tools.mcp_tool.conversion_utils": "use %serve NAME for tools over MCP, and McpToolset(...) for those of a server",
    "tools.mcp_tool.session_context": "use McpToolset(...), which opens and closes its sessions",
    "tools.model_consult": "wrap the other model's agent: AgentTool(agent)",
    "tools.openapi_tool.auth.credential_exchangers": _CREDENTIALS,
    "tools.openapi_tool.common": "use OpenAPIToolset(...)",
    "tools.openapi_tool.openapi_spec_parser.operation_parser": "use OpenAPIToolset(...)",
    "tools.openapi_tool.openapi_spec_parser.tool_auth_handler": _CREDENTIALS,
    "tools.pubsub": _CLOUD,
    "tools.spanner": _CLOUD,
    "tools.toolbox_toolset": "use McpToolset(...): the toolbox speaks MCP at its /mcp",
    "tools.vertex_ai_load_profiles_tool": "use load_memory or preload_memory",
    "utils.agent_info": "type %agents, or read agent.name, agent.tools and agent.sub_agents",
    "utils.cache_performance_analyzer": "read the cached tokens in _run.usage",
    "utils.content_utils": "read the parts of types.Content",
    "utils.context_utils": "use contextlib.aclosing",
    "utils.env_utils": "read os.environ",
    "utils.feature_decorator": "leave it out: adk_nb has no decorators that mark features",
    "utils.model_name_utils": "compare the name of the model as a text",
    "utils.output_schema_utils": "leave it out: output_schema works beside tools with every model",
    "utils.streaming_utils": "use RunConfig(streaming_mode=StreamingMode.SSE); the last event has the whole text",
    "utils.variant_utils": "read GOOGLE_GENAI_USE_VERTEXAI in os.environ",
    "utils.vertex_ai_utils": "read GOOGLE_API_KEY in os.environ",
    "utils.yaml_utils": "use yaml.safe_load and yaml.safe_dump",
    "version": "read adk_nb.__version__",
    "workflow.utils": "use the names of adk_nb.workflow",
}
"""Module of ADK, or a name in one, that adk_nb does not have -> what to use. It holds for all modules below, too."""


def instead_of(module: str) -> MissingModuleError | None:
    """The error that names what to use for a module below adk_nb, or a name in one. None: it is no name of ADK's."""
    submodule = module.removeprefix(_OURS)
    known = submodule
    while known and known not in INSTEAD:
        known = known.rpartition(".")[0]
    return MissingModuleError(f"adk_nb has no {submodule!r}; {INSTEAD[known]}", name=module) if known else None


class MissingModules:
    """The last finder: says what to use in place of a module of ADK's that is missing below adk_nb."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if fullname.startswith(_OURS) and (error := instead_of(fullname)):
            raise error


_GOOGLE_ADK = "google.adk"
IN_A_CELL = "ADK_NB_IN_A_CELL"
"""Environment variable that is set for our `adk` where a cell runs it."""
UNWATCHED = "unwatched"
"""Its value where nobody can stop the cell."""
COMMANDS = {
    "api_server": "type %serve NAME",
    "create": "begin a cell with %%agent NAME",
    "deploy": "type %export my_agents/ for a package that google-adk deploys",
    "eval": "begin a cell with %%eval AGENT and a table of cases, or call adk_nb.evaluation.AgentEvaluator.evaluate",
    "run": "type %chat NAME and your text",
    "web": "type %serve NAME for Google's dev UI, or %chat NAME for a chat box here",
}
"""Subcommand of `adk` -> what to use."""


def stand_in_for_google_adk() -> None:
    """Import adk_nb for `google.adk` and the modules below it, and print that.

    Where google-adk is installed, print that instead and change nothing.
    """
    if _FINDER in sys.meta_path:
        return
    if importlib.util.find_spec(_GOOGLE_ADK) is not None:
        sys.stdout.write(f"{_GOOGLE_ADK} is the installed google-adk; to use adk_nb: %pip uninstall -y google-adk\n")
        return
    sys.meta_path.insert(0, _FINDER)  # first, so that a later `%pip install google-adk` does not mix the two
    sys.stdout.write(f"{_GOOGLE_ADK} is adk_nb here, as google-adk is not installed\n")


def give_google_adk_back() -> None:
    """Undo `stand_in_for_google_adk`. Names that a cell has imported stay."""
    _take_adk_off_path()
    if _FINDER not in sys.meta_path:
        return
    sys.meta_path.remove(_FINDER)
    for name in [name for name in sys.modules if f"{name}.".startswith(f"{_GOOGLE_ADK}.")]:
        del sys.modules[name]
    vars(sys.modules["google"]).pop("adk", None)


_commands: list[Any] = []
"""The folder with our `adk`, which goes with the process; empty: it is not on the PATH."""


def put_adk_on_path(*, is_watched: bool) -> None:
    """Let `!adk ...` in a cell run this package's commands, where google-adk is not installed.

    `is_watched`: somebody is there who can stop a cell.
    """
    if _commands or _FINDER not in sys.meta_path or sys.platform == "emscripten":
        return
    if shutil.which("adk"):
        return
    place = "watched" if is_watched else UNWATCHED
    folder = tempfile.TemporaryDirectory(prefix="adk-nb-")
    if os.name == "nt":
        name, lines = "adk.cmd", [f"@set {IN_A_CELL}={place}", f'@"{sys.executable}" -m adk_nb adk %*']
    else:
        quoted = shlex.quote(sys.executable)
        name, lines = "adk", ["#!/bin/sh", f'{IN_A_CELL}={place} exec {quoted} -m adk_nb adk "$@"']
    command = os.path.join(folder.name, name)
    with open(command, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    os.chmod(command, 0o700)
    os.environ["PATH"] = os.pathsep.join(filter(None, [os.environ.get("PATH"), folder.name]))
    _commands.append(folder)


def _take_adk_off_path() -> None:
    for folder in _commands:
        path = os.environ.get("PATH", "").split(os.pathsep)
        os.environ["PATH"] = os.pathsep.join(one for one in path if one != folder.name)
        folder.cleanup()
    _commands.clear()


class _Finder:
    """A finder and loader of the import system. It has no base of `importlib.abc`, which is slow to import."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not f"{fullname}.".startswith(f"{_GOOGLE_ADK}."):
            return None
        if importlib.util.find_spec(_counterpart(fullname)) is None:
            submodule = fullname.removeprefix(f"{_GOOGLE_ADK}.")
            raise MissingModuleError(f"google.adk is adk_nb here, which has no {submodule!r}", name=fullname)
        loader: Any = self
        return ModuleSpec(fullname, loader, is_package=True)

    def create_module(self, spec: ModuleSpec) -> None:
        """Let the import system make the module, which `exec_module` replaces."""

    def exec_module(self, module: ModuleType) -> None:
        # The import system returns what sys.modules holds afterwards: one module under two names.
        sys.modules[module.__name__] = importlib.import_module(_counterpart(module.__name__))


def _counterpart(name: str) -> str:
    return "adk_nb" + name.removeprefix(_GOOGLE_ADK)


_FINDER = _Finder()
