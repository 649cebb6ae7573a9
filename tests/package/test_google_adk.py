"""Code that imports from google.adk runs on adk_nb, where google-adk is not installed."""

import subprocess
import sys
from pathlib import Path

import pytest

COURSE = """
import adk_nb
adk_nb.stand_in_for_google_adk()
adk_nb.stand_in_for_google_adk()

import google.adk
import google.adk.tools.function_tool as function_tool
from google.adk import Agent
from google.adk.agents import LlmAgent, LoopAgent, ParallelAgent, SequentialAgent
from google.adk.agents.callback_context import CallbackContext
from google.adk.apps.app import App, EventsCompactionConfig, ResumabilityConfig
from google.adk.code_executors import BuiltInCodeExecutor
from google.adk.evaluation import AgentEvaluator
from google.adk.evaluation.eval_set import EvalSet
from google.adk.memory import InMemoryMemoryService
from google.adk.models.google_llm import Gemini
from google.adk.models.llm_request import LlmRequest
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.plugins.logging_plugin import LoggingPlugin
from google.adk.runners import InMemoryRunner, Runner
from google.adk.sessions import DatabaseSessionService, InMemorySessionService
from google.adk.tools import AgentTool, FunctionTool, google_search, load_memory, preload_memory
from google.adk.tools.mcp_tool.mcp_session_manager import StdioConnectionParams
from google.adk.tools.mcp_tool.mcp_toolset import McpToolset
from google.adk.tools.tool_context import ToolContext
from google.genai import types

import asyncio
import adk_nb.agents

def set_table(seats: int, tool_context: ToolContext) -> dict:
    '''Sets a table.'''
    tool_context.state["seats"] = seats
    return {"status": "success", "seats": seats}

async def main():
    agent = LlmAgent(name="waiter", model="offline", tools=[FunctionTool(func=set_table)])
    runner = Runner(agent=agent, app_name="bistro", session_service=InMemorySessionService())
    await runner.session_service.create_session(app_name="bistro", user_id="u", session_id="s")
    message = types.Content(role="user", parts=[types.Part(text="set table: seats = 4")])
    async for event in runner.run_async(user_id="u", session_id="s", new_message=message):
        for response in event.get_function_responses():
            print(response.name, response.response["seats"])

asyncio.run(main())
assert google.adk is adk_nb and LlmAgent is adk_nb.agents.LlmAgent and function_tool.FunctionTool is FunctionTool
assert adk_nb.agents.__spec__.name == "adk_nb.agents"
"""


def run(code: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    env = {"PYTHONPATH": str(path)} if path else {}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=env)


@pytest.mark.slow
def test_the_code_of_a_course_runs_and_hears_once_what_it_runs_on():
    done = run(COURSE)

    assert done.returncode == 0, done.stderr
    told, *rest = done.stdout.splitlines()
    assert "google.adk" in told and "adk_nb" in told
    assert rest == ["set_table 4"]


INSTEAD = {
    "import google.adk.cli.fast_api": "%chat",
    "import google.adk.features": "leave it out",
    "import google.adk.platform.time": "adk_nb.clock",
    "import google.adk.a2a.executor.a2a_agent_executor": "to_a2a",
    "import google.adk.flows.llm_flows.contents": "adk_nb.flow",
    "import google.adk.tools.bigquery": "Google Cloud",
    "import google.adk.tools.bigquery.client": "Google Cloud",
    "import adk_nb.tools.bigquery.client": "Google Cloud",
    "import google.adk.nowhere": "nowhere",
    "from google.adk.tools import bigquery": "OpenAPIToolset",
    "from google.adk.utils import context_utils": "aclosing",
    "from google.adk.integrations.openai import OpenAIResponsesLlm": "responses=True",
    "from google.adk.live import CascadeLive": "run_live",
    "from adk_nb.live import CascadeLive": "run_live",
}


def test_what_is_not_here_is_an_import_error_with_what_to_use():
    tries = "\n".join(f"try: {line}\nexcept ImportError as e: print(e)" for line in INSTEAD)

    done = run(f"import adk_nb\nadk_nb.stand_in_for_google_adk()\n{tries}")

    told = done.stdout.splitlines()[-len(INSTEAD) :]
    for (line, instead), said in zip(INSTEAD.items(), told, strict=True):
        assert instead in said and ("adk_nb" in said or not line.startswith("import")), (line, said)


NEIGHBOURS = """
import adk_nb
adk_nb.stand_in_for_google_adk()
from google.adk.errors.not_found_error import NotFoundError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.errors.tool_execution_error import ToolErrorType, ToolExecutionError
from google.adk.integrations.langchain import LangchainTool
from google.adk.integrations.openai import OpenAILlm
from google.adk.live import LiveRequestQueue
from google.adk.telemetry import tracer
import adk_nb.errors

assert NotFoundError is adk_nb.errors.NotFoundError and issubclass(SessionNotFoundError, ValueError)
print(NotFoundError("no such table").message, ToolExecutionError("slow", ToolErrorType.GATEWAY_TIMEOUT).error_type)
"""


@pytest.mark.slow
def test_names_that_google_adk_has_at_other_paths_are_there_too():
    done = run(NEIGHBOURS)

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "no such table GATEWAY_TIMEOUT"


def test_an_installed_google_adk_stays_what_it_is_and_that_is_printed(tmp_path: Path):
    installed = tmp_path / "google" / "adk"
    installed.mkdir(parents=True)
    (installed / "__init__.py").write_text("mark = 'theirs'")

    done = run("import adk_nb\nadk_nb.stand_in_for_google_adk()\nimport google.adk\nprint(google.adk.mark)", tmp_path)

    assert done.returncode == 0, done.stderr
    told, mark = done.stdout.splitlines()
    assert "installed" in told and mark == "theirs"
