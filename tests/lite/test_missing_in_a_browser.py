"""What a browser cannot have ends in one sentence: what is missing there, and what to do."""

import pytest
from lite_page import BOOT, LitePage

pytestmark = pytest.mark.lite

CODE = 'ScriptedLlm("```python\\nprint(6 * 7)\\n```", "It is 42.")'
PREPARED = f"""
import os
from adk_nb import Agent
from adk_nb.code_executors import KernelCodeExecutor, UnsafeLocalCodeExecutor
from adk_nb.models import LiteLlm, ScriptedLlm, call
os.makedirs("skills/hi/scripts", exist_ok=True)
open("skills/hi/SKILL.md", "w").write("---\\nname: hi\\ndescription: Say hi to people.\\n---\\nRun scripts/hi.py.")
open("skills/hi/scripts/hi.py", "w").write("print('hi')")
greeting = ScriptedLlm(call("run_skill_script", skill_name="hi", file_path="scripts/hi.py"), "I could not.")
local = Agent(name="local", model={CODE}, code_executor=UnsafeLocalCodeExecutor(isolation="none"))
child = Agent(name="child", model={CODE}, code_executor=KernelCodeExecutor())
here = Agent(name="here", model={CODE}, code_executor=KernelCodeExecutor(kernel="this"))
"""
STDIO = """
from adk_nb.tools.mcp_tool import McpToolset, StdioServerParameters
McpToolset(connection_params=StdioServerParameters(command="python", args=["server.py"]))"""
REMOTE = """
from adk_nb.a2a import RemoteA2aAgent
RemoteA2aAgent("http://127.0.0.1:8001")"""
CELLS = [
    ("%chat local Compute it", ["UnsafeLocalCodeExecutor", "process", "browser", "JupyterLab"]),
    ("%chat child Compute it", ["KernelCodeExecutor", "process", "browser", "JupyterLab"]),
    ("%chat hello Say hi", ["scripts/hi.py", "process", "browser", "JupyterLab"]),
    ("%serve here", ["%serve", "sockets", "browser", "JupyterLab"]),
    (STDIO, ["McpToolset", "'python'", "browser", "JupyterLab", "url="]),
    (REMOTE, ["'a2a'", "your machine", "a2a-sdk[http-server]"]),
    ('LiteLlm(model="openai/gpt")', ["'litellm'", "browser", "your machine", '"litellm<']),
    ('%config AdkNb.sessions = "postgresql://ada@127.0.0.1/x"', ["'psycopg'", "browser", "psycopg[binary]"]),
    ('%config AdkNb.otlp = "http://127.0.0.1:4318"', ["'opentelemetry'", "your machine", "opentelemetry-sdk>="]),
    ("%config AdkNb.nest_asyncio = True", ["'nest_asyncio2'", "browser", "nest-asyncio2"]),
]
"""A cell -> words of its sentence."""
TRACEBACK = ("Traceback (most", "File /lib", "OSError", "Errno", "can't start new thread")


def test_what_needs_a_process_or_a_socket_ends_in_one_sentence(page: LitePage):
    page.open("00_start_here.ipynb")
    page.run_cell(1, timeout=BOOT)
    page.write(2, PREPARED)
    page.run_cell(2, timeout=BOOT)
    assert "KernelCodeExecutor starts a process" in page.text(2)
    page.insert(3, "%%agent hello -m greeting --skills skills\nSay hi.")
    page.run_cell(3)

    for place, (source, words) in enumerate(CELLS, 4):
        page.insert(place, source)
        page.run_cell(place, allow_errors=True, timeout=BOOT)
        text = page.text(place)
        assert all(word in text for word in words), f"{source}: {text}"
        assert not any(sign in text for sign in TRACEBACK), f"{source}: {text}"


def test_code_of_a_model_runs_in_the_notebook_itself(page: LitePage):
    page.open("00_start_here.ipynb")
    page.run_cell(1, timeout=BOOT)
    page.write(2, PREPARED)
    page.run_cell(2, timeout=BOOT)
    page.insert(3, "%chat here Compute it")

    page.run_cell(3)

    assert "It is 42." in page.text(3)


def test_a_notebook_whose_cells_await_is_exported(page: LitePage):
    page.open("00_start_here.ipynb")
    page.run_cell(1, timeout=BOOT)
    page.insert(2, "import asyncio\nawait asyncio.sleep(0)")
    page.run_cell(2)
    page.insert(3, "%%agent clerk\nBe brief.")
    page.run_cell(3, timeout=BOOT)
    page.insert(4, "%export clerk")

    page.run_cell(4)

    assert "clerk" in page.text(4)
