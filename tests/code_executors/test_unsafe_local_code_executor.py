"""Code in a process of its own, each time a new one. About 50 ms each."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from support.messages import mentions

from adk_nb import sync
from adk_nb.agents import LlmAgent
from adk_nb.code_executors import UnsafeLocalCodeExecutor
from adk_nb.code_executors.code_execution_utils import CodeExecutionInput, CodeExecutionResult
from adk_nb.models import ScriptedLlm
from tests.support.each import each
from tests.support.polling import SECONDS
from tests.support.talk import Talk


def runs(code: str, **settings: Any) -> CodeExecutionResult:
    """Run one block; this executor does not look at the invocation."""
    return UnsafeLocalCodeExecutor(**settings).execute_code(None, CodeExecutionInput(code=code))  # type: ignore[arg-type]


async def _read(fifo: Path) -> str:
    async with asyncio.timeout(SECONDS):
        return await sync.blocking(fifo.read_text, thread=True)


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    return path


def test_an_agent_runs_code_and_goes_on_with_what_it_gave():
    model = ScriptedLlm("```python\nprint(6 * 7)\n```", "42")
    talk = Talk(LlmAgent(name="a", model=model, code_executor=UnsafeLocalCodeExecutor()))

    _, result, answer = talk.say()

    assert result.parts[0].code_execution_result
    assert result.parts[0].code_execution_result.output == "Code execution result:\n42\n\n"
    assert answer.text == "42"


@each(
    "code, exit_code, stdout, stderr",
    [
        ("print('é', end='')", 0, "é", ""),
        ("if __name__ == '__main__':\n    print('main', end='')", 0, "main", ""),
        ("def f(n): return n and f(n - 1)\nprint(f(3), end='')", 0, "0", ""),
        ("import sys\nsys.exit(0)", 0, "", ""),
        ("import sys\nprint('warned', file=sys.stderr)", 0, "", "warned\n"),
        ("import sys\nsys.exit(3)", 3, "", "status 3"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", -9, "", "signal SIGKILL"),
        ("import os\nos.close(1)\nos.close(2)", 0, "", ""),
        ("print(input())", 1, "", "EOFError"),
        ("1 +", 1, "", "SyntaxError"),
        ("x = 1\nx / 0", 1, "", "    x / 0"),
    ],
)
def test_what_comes_of_code(code: str, exit_code: int, stdout: str, stderr: str):
    result = runs(code)

    assert (result.exit_code, result.stdout) == (exit_code, stdout)
    assert stderr in result.stderr
    assert bool(stderr) == bool(result.stderr)


def test_the_code_can_import_what_this_process_can_and_has_no_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / "of_the_author.py").write_text("value = 7")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("MY_TOKEN", "secret")

    assert runs("import os, of_the_author\nprint(of_the_author.value, 'MY_TOKEN' in os.environ)").stdout == "7 False\n"


def test_code_that_runs_too_long_is_ended_with_all_it_started_and_its_words_are_kept(fifo: Path):
    code = f"import subprocess\nprint('so far', flush=True)\nsubprocess.run('exec sleep 600 > {fifo}', shell=True)"
    process = sync.start(_read(fifo))

    result = runs(code, timeout_seconds=0.5)

    assert (result.exit_code, result.stdout) == (-1, "so far\n")
    assert mentions(result.stderr, "code was stopped … 0.5 seconds")
    assert process.result(SECONDS) == ""


def test_what_code_leaves_running_is_ended_when_the_code_ends(fifo: Path):
    process = sync.start(_read(fifo))

    result = runs(
        f"import subprocess\nsubprocess.Popen('exec sleep 600 > {fifo}', shell=True)\nopen({str(fifo)!r}, 'w')"
    )

    assert result.exit_code == 0
    assert process.result(SECONDS) == ""


def test_a_cancelled_run_ends_its_code(fifo: Path):
    model = ScriptedLlm(f"```python\nfifo = open({str(fifo)!r}, 'w')\nwhile True: pass\n```")
    talk = Talk(LlmAgent(name="a", model=model, code_executor=UnsafeLocalCodeExecutor()))
    turn = sync.start(talk.asay())

    with fifo.open() as file:
        assert turn.cancel()
        assert file.read() == ""


def test_output_without_end_is_cut_and_not_kept_in_memory():
    result = runs("for _ in range(200): print('x' * 100_000)")

    assert len(result.stdout) < 51_000
    assert "[19,950,200 more characters" in result.stdout


@pytest.mark.parametrize("setting", ["stateful", "optimize_data_file"])
def test_what_it_cannot_do_is_refused(setting: str):
    with pytest.raises(ValueError, match=f"cannot be {setting}=True; use KernelCodeExecutor"):
        UnsafeLocalCodeExecutor(**{setting: True})
