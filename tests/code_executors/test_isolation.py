"""What a model's code sees of the processes beside it, and what is left of those that it starts."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from adk_nb import sync
from adk_nb.agents import LlmAgent
from adk_nb.code_executors import KernelCodeExecutor, UnsafeLocalCodeExecutor
from adk_nb.code_executors.code_execution_utils import CodeExecutionInput, CodeExecutionResult
from adk_nb.code_executors.isolation import available
from adk_nb.errors import ConfigurationError
from adk_nb.models import ScriptedLlm
from tests.support.polling import SECONDS
from tests.support.talk import Talk

LOOKING_FOR_KEYS = """
import pathlib
found = []
for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
    try:
        found.append(b"A_KEY_OF_THE_NOTEBOOK" in path.read_bytes())
    except OSError:
        pass
print(len(found) > 0, any(found))
"""
LOOKING_UNDER_PROC = (
    """
import ctypes
ctypes.CDLL(None).umount2(b"/proc", 2)
"""
    + LOOKING_FOR_KEYS
)
LEAVING = "import subprocess\nsubprocess.Popen('exec sleep 600 > {fifo}', shell=True, start_new_session=True)\n"


@pytest.fixture
def only_with(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[object]:
    """`only_with("bwrap")`: of the programs that isolate, there is this one. Skips where it does not work."""

    def there_is(*programs: str) -> None:
        folder = tmp_path / "bin"
        folder.mkdir()
        for name in ("sh", "sleep", *programs):
            if which := shutil.which(name):
                (folder / name).symlink_to(which)
        monkeypatch.setenv("PATH", str(folder))
        available.cache_clear()
        if programs and not available():
            pytest.skip(f"{programs[0]} does not work here")

    yield there_is
    available.cache_clear()


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    return path


def runs(code: str, **settings: object) -> CodeExecutionResult:
    """Run one block; this executor does not look at the invocation."""
    return UnsafeLocalCodeExecutor(**settings).execute_code(None, CodeExecutionInput(code=code))  # type: ignore[arg-type]


def notebook(script: str, *args: str, path: str) -> str:
    """What a process prints that has a key among its variables from its start."""
    output = subprocess.run(
        [sys.executable, "-c", script, *args],
        env={**os.environ, "PATH": path, "SECRET": "A_KEY_OF_THE_NOTEBOOK"},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert output.returncode == 0, output.stderr
    return output.stdout


IN_A_PROCESS = """
import sys
from adk_nb.code_executors import UnsafeLocalCodeExecutor
from adk_nb.code_executors.code_execution_utils import CodeExecutionInput
code = CodeExecutionInput(code=sys.argv[1])
print(UnsafeLocalCodeExecutor(isolation=sys.argv[2]).execute_code(None, code).stdout)
"""
IN_A_KERNEL = """
import sys
from adk_nb import run
from adk_nb.code_executors.child_kernel import ChildKernel
from adk_nb.code_executors.isolation import available
async def main():
    kernel = await ChildKernel.start(512, available())
    try:
        return await kernel.run(sys.argv[1], [], 60)
    finally:
        await kernel.stop()
print(run(main()).stdout)
"""


@pytest.mark.slow
@pytest.mark.parametrize("program", ["bwrap", "unshare"])
@pytest.mark.parametrize("script", [IN_A_PROCESS, pytest.param(IN_A_KERNEL, marks=pytest.mark.kernel)])
@pytest.mark.parametrize("code", [LOOKING_FOR_KEYS, LOOKING_UNDER_PROC])
def test_code_does_not_find_the_keys_of_the_notebook_in_another_process(
    only_with, program: str, script: str, code: str
):
    only_with(program)

    printed = notebook(script, code, "processes", path=os.environ["PATH"])

    assert printed.split()[1] == "False"
    assert code == LOOKING_UNDER_PROC or printed.split()[0] == "True"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")
def test_without_isolation_it_does():
    printed = notebook(IN_A_PROCESS, LOOKING_FOR_KEYS, "none", path=os.environ["PATH"])

    assert printed.split() == ["True", "True"]


@pytest.mark.parametrize("program", ["bwrap", "unshare"])
def test_a_process_in_a_session_of_its_own_ends_with_the_code(only_with, program: str, fifo: Path):
    only_with(program)
    process = sync.start(sync.blocking(fifo.read_text, thread=True))

    result = runs(LEAVING.format(fifo=fifo) + f"open({str(fifo)!r}, 'w')")

    assert (result.exit_code, result.stderr) == (0, "")
    assert process.result(SECONDS) == ""


@pytest.mark.parametrize("program", ["bwrap", "unshare"])
@pytest.mark.parametrize(
    ("code", "exit_code", "text"),
    [("import os; os.kill(os.getpid(), 9)", -9, "SIGKILL"), ("raise SystemExit(3)", 3, "status 3")],
)
def test_how_the_code_ended_is_told_as_without_isolation(only_with, program: str, code: str, exit_code: int, text: str):
    only_with(program)

    result = runs(code)

    assert (result.exit_code, result.stdout) == (exit_code, "") and text in result.stderr
    assert "Killed" not in result.stderr


@pytest.mark.kernel
@pytest.mark.parametrize("program", ["bwrap", "unshare"])
def test_a_kernel_is_interrupted_and_takes_along_what_it_started_in_another_session(
    only_with, program: str, fifo: Path
):
    only_with(program)
    executor = KernelCodeExecutor(timeout_seconds=3, isolation="processes")
    codes = [LEAVING.format(fifo=fifo) + "x = 7", "import time\ntime.sleep(600)", "print(x)"]
    model = ScriptedLlm(*(answer for code in codes for answer in (f"```python\n{code}\n```", "ok")))
    talk = Talk(LlmAgent(name="a", model=model, code_executor=executor))
    process = sync.start(sync.blocking(fifo.read_text, thread=True))
    try:
        results = [event.parts[0].code_execution_result for _ in codes for event in talk.say()]
        _, interrupted, last = [result.output or "" for result in results if result]
    finally:
        sync.run(executor.close())

    assert "KeyboardInterrupt" in interrupted and "3 seconds" in interrupted
    assert "7\n" in last
    assert process.result(SECONDS) == ""


@pytest.mark.kernel
@pytest.mark.parametrize("programs", [("bwrap",), ("unshare",), ()])
def test_a_kernel_ends_with_a_notebook_that_is_killed(only_with, programs: tuple[str, ...], fifo: Path):
    only_with(*programs)
    code = f"held = open({str(fifo)!r}, 'w')"
    script = IN_A_KERNEL.replace("return await kernel.run", "await kernel.run").replace(
        "    finally:", "        import os; os.kill(os.getpid(), 9)\n    finally:"
    )
    process = sync.start(sync.blocking(fifo.read_text, thread=True))

    output = subprocess.run([sys.executable, "-c", script, code], capture_output=True, text=True, timeout=100)

    assert output.returncode == -signal.SIGKILL, output.stderr
    assert process.result(SECONDS) == ""


OUT_OF_A_SANDBOX = """
import os, socket
seen = [name for name in {files!r} if os.path.exists(name)]
try:
    socket.create_connection(("127.0.0.1", {port}), timeout=30).close()
    seen.append("network")
except OSError:
    pass
open("mine.txt", "w").write("7")
print(seen, open("mine.txt").read())
"""


@pytest.mark.parametrize("kind", ["process", pytest.param("kernel", marks=pytest.mark.kernel)])
def test_in_a_sandbox_the_code_has_no_network_and_no_file_of_the_user(only_with, kind: str, tmp_path: Path):
    only_with("bwrap")
    if not available(sandbox=True):
        pytest.skip("bwrap makes no sandbox here")
    (tmp_path / "key.txt").write_text("secret")
    files = [str(tmp_path / "key.txt"), __file__, "/etc/passwd", os.path.expanduser("~/.bashrc")]
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = OUT_OF_A_SANDBOX.format(files=files, port=server.getsockname()[1])
        if kind == "process":
            output = runs(code, isolation="sandbox").stdout
        else:
            executor = KernelCodeExecutor(isolation="sandbox")
            model = ScriptedLlm(f"```python\n{code}\n```", "ok")
            try:
                events = Talk(LlmAgent(name="a", model=model, code_executor=executor)).say()
            finally:
                sync.run(executor.close())
            [result] = [
                code_execution_result
                for event in events
                if (code_execution_result := event.parts[0].code_execution_result)
            ]
            output = (result.output or "").removeprefix("Code execution result:\n")

    assert output.startswith("[] 7\n")


MOUNTS_ANEW = """
import ctypes
remount, bind, prefix = 32, 4096, {prefix!r}
print(ctypes.CDLL(None).mount(None, prefix.encode(), None, remount | bind, None) == 0)
try:
    open(prefix + "/written_in_a_test", "x").close()
except OSError as error:
    print(error.strerror)
"""


def test_in_a_sandbox_not_even_root_writes_to_this_python(only_with):
    only_with("bwrap")
    if not available(sandbox=True):
        pytest.skip("bwrap makes no sandbox here")

    try:
        printed = runs(MOUNTS_ANEW.format(prefix=sys.prefix), isolation="sandbox").stdout
    finally:
        Path(sys.prefix, "written_in_a_test").unlink(missing_ok=True)

    assert printed.splitlines() == ["False", "Read-only file system"]


@pytest.mark.parametrize("executor", [UnsafeLocalCodeExecutor, KernelCodeExecutor])
def test_where_nothing_isolates_the_author_is_told_when_an_executor_is_made(
    only_with, executor: type, caplog: pytest.LogCaptureFixture
):
    only_with()

    executor(isolation="none")
    assert caplog.text == ""
    executor()
    assert executor.__name__ in caplog.text and 'isolation="none"' in caplog.text and "bubblewrap" in caplog.text
    for level in ("processes", "sandbox"):
        with pytest.raises(ConfigurationError, match="install bubblewrap"):
            executor(isolation=level)


def test_a_program_that_is_there_and_does_not_work_is_not_used(only_with, tmp_path: Path):
    only_with()
    for name in ("bwrap", "unshare"):
        program = tmp_path / "bin" / name
        program.write_text("#!/bin/sh\necho no permissions to create a new namespace >&2; exit 1\n")
        program.chmod(0o755)
    available.cache_clear()

    with pytest.raises(ConfigurationError, match="install bubblewrap"):
        UnsafeLocalCodeExecutor(isolation="processes")


def test_the_code_runs_all_the_same_where_nothing_isolates(only_with):
    only_with()

    assert runs("print(7)").stdout == "7\n"


def test_the_notebooks_own_kernel_is_not_isolated_and_says_nothing(only_with, caplog: pytest.LogCaptureFixture):
    only_with()

    KernelCodeExecutor(kernel="this")

    assert caplog.text == ""
