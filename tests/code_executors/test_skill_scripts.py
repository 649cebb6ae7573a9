"""Scripts of skills in each executor."""

import sys
from pathlib import Path

import pytest

from adk_nb import Chat
from adk_nb.agents import LlmAgent
from adk_nb.code_executors import BaseCodeExecutor, KernelCodeExecutor, UnsafeLocalCodeExecutor
from adk_nb.code_executors.isolation import available
from adk_nb.models import ScriptedLlm, call
from adk_nb.skills import SkillCatalog
from adk_nb.tools.skill_toolset import SkillToolset
from tests.support.skills import REPORT, write_skill

LOOKS_AROUND = """
import os, pathlib, socket, sys
print("args", *sys.argv[1:])
print("sees", pathlib.Path({outside!r}).exists(), file=sys.stderr)
"""


def result_of(executor: BaseCodeExecutor, folder: Path, source: str) -> dict[str, str]:
    write_skill(folder, files={"scripts/report.py": source})
    run = call("run_skill_script", skill_name="trip-budget", file_path="scripts/report.py", args=["Oslo"])
    toolset = SkillToolset(SkillCatalog(folder), code_executor=executor)
    chat = Chat(LlmAgent(name="clerk", model=ScriptedLlm(run, "Done."), tools=[toolset]))
    approval = chat.ask("Report").interrupts[0]
    chat.approve()
    responses = [part.function_response for event in chat.events for part in event.parts if part.function_response]
    result = next(response.response for response in reversed(responses) if response.name == "run_skill_script")
    return {**(result or {}), "prompt": approval.prompt}


@pytest.mark.kernel
def test_a_kernel_runs_a_script_with_its_streams_and_its_status(tmp_path: Path):
    executor = KernelCodeExecutor()
    result = result_of(executor, tmp_path, REPORT + "print('warned', file=sys.stderr)\n")
    failed = result_of(executor, tmp_path, "raise SystemExit(3)")

    assert (result["stdout"], result["stderr"], result["status"]) == ("report Oslo\n", "warned\n", "warning")
    assert failed["status"] == "error" and "3" in failed["stderr"]


@pytest.mark.skipif(not available(sandbox=True), reason="this machine has no sandbox")
def test_a_script_in_a_sandbox_sees_no_file_of_the_user(tmp_path: Path):
    outside = tmp_path / "private.txt"
    outside.write_text("x")
    result = result_of(
        UnsafeLocalCodeExecutor(isolation="sandbox"), tmp_path / "s", LOOKS_AROUND.format(outside=str(outside))
    )

    assert (result["stdout"], result["stderr"]) == ("args Oslo\n", "sees False\n")
    assert "in a sandbox: it can reach neither your files nor the network" in result["prompt"]


@pytest.mark.skipif(sys.platform != "linux" or not available(), reason="this machine isolates no processes")
def test_an_isolated_script_sees_no_process_of_the_user(tmp_path: Path):
    result = result_of(
        UnsafeLocalCodeExecutor(isolation="processes"),
        tmp_path,
        "import os\nprint(max(int(name) for name in os.listdir('/proc') if name.isdigit()) < 100)",
    )

    assert result["stdout"] == "True\n"
