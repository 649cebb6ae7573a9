"""Code in a container, with a stand-in for the `docker` program that runs its processes on this machine.

The stand-in reads the same command lines, passes stdin on as Docker does, and ends a container with its program. What
only Docker can show is not tested here: that the code reaches no network and no files.
"""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest
from support.messages import mentions

from adk_nb import sync
from adk_nb.agents import LlmAgent
from adk_nb.code_executors import ContainerCodeExecutor
from adk_nb.code_executors.code_execution_utils import CodeExecutionInput, CodeExecutionResult
from adk_nb.errors import ConfigurationError
from adk_nb.models import ScriptedLlm
from tests.support.polling import SECONDS
from tests.support.talk import Talk

STAND_IN = """#!{python}
import json, os, pathlib, subprocess, sys, threading
here, args = pathlib.Path({here!r}), sys.argv[1:]
with open(here / "commands", "a") as log:
    log.write(json.dumps(args) + "\\n")
if args[0] == "--host":
    args = args[2:]
if (here / "down").exists():
    sys.exit("docker: Cannot connect to the Docker daemon at unix:///x. Is it running?\\n\\nRun 'docker run --help'")
if args[0] == "build":
    sys.exit("ERROR: no such instruction: FORM" if "FORM" in (pathlib.Path(args[-1]) / "Dockerfile").read_text() else 0)
if args[0] == "run":
    if "bare" in args:
        sys.exit('exec: "python3": executable file not found in $PATH')
    name = args[args.index("--name") + 1]
    (here / name).touch()
    done = subprocess.run([{python!r}, *args[args.index("-c"):]])
    (here / name).unlink()
    sys.exit(done.returncode)
if not (here / args[2]).exists():
    sys.exit(f"Error response from daemon: No such container: {{args[2]}}")
inside = subprocess.Popen([{python!r}, *args[4:]], stdin=subprocess.PIPE, start_new_session=True)

def pass_on():
    while piece := os.read(0, 65536):
        inside.stdin.write(piece)
        inside.stdin.flush()
    inside.stdin.close()

threading.Thread(target=pass_on, daemon=True).start()
code = inside.wait()
os._exit(code if code >= 0 else 128 - code)
"""


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The stand-in's folder: its log `commands`, and a file for each container that runs."""
    program = tmp_path / "bin" / "docker"
    program.parent.mkdir()
    program.write_text(STAND_IN.format(python=sys.executable, here=str(tmp_path)))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


def commands(docker: Path) -> list[list[str]]:
    return [json.loads(line) for line in (docker / "commands").read_text().splitlines()]


def containers(docker: Path) -> list[str]:
    return [path.name for path in docker.glob("adk-nb-*")]


def runs(executor: ContainerCodeExecutor, code: str) -> CodeExecutionResult:
    return executor.execute_code(None, CodeExecutionInput(code=code))  # type: ignore[arg-type]


def test_an_agent_runs_code_in_a_container_and_goes_on_with_what_it_gave(docker: Path):
    model = ScriptedLlm("```python\nprint(6 * 7)\n```", "42")
    with ContainerCodeExecutor(image="python:3-slim") as executor:
        _, result, answer = Talk(LlmAgent(name="a", model=model, code_executor=executor)).say()

    assert result.parts[0].code_execution_result
    assert result.parts[0].code_execution_result.output == "Code execution result:\n42\n\n"
    assert answer.text == "42"


def test_one_container_without_network_and_powers_serves_all_code_and_ends_with_close(docker: Path):
    executor = ContainerCodeExecutor(image="python:3-slim")
    assert containers(docker) == []

    texts = [runs(executor, code).stdout for code in ("x = 1\nprint(x)", "print('x' in globals())")]
    [name] = containers(docker)
    sync.run(executor.close())

    assert texts == ["1\n", "False\n"] and containers(docker) == []
    start, *blocks = commands(docker)
    asked = " ".join(start)
    assert all(part in asked for part in ("--rm", "--network none", "--cap-drop ALL", "no-new-privileges"))
    assert asked.index("--entrypoint python3 python:3-slim") > asked.index(name)
    assert [block[:3] for block in blocks] == [["exec", "-i", name]] * 2


def test_code_after_close_gets_a_new_container(docker: Path):
    with ContainerCodeExecutor(image="i") as executor:
        runs(executor, "print(1)")
        sync.run(executor.close())

        assert runs(executor, "print(2)").stdout == "2\n"
    assert containers(docker) == []


@pytest.mark.parametrize(
    ("code", "exit_code", "stdout", "stderr"),
    [
        ("print('é', end='')", 0, "é", ""),
        ("import sys\nsys.exit(3)", 3, "", "status 3"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", -9, "", "signal SIGKILL"),
        ("print(input())", 1, "", "EOFError"),
        ("x = 1\nx / 0", 1, "", "    x / 0"),
        ("#" * 300_000 + "\nprint('long', end='')", 0, "long", ""),
    ],
    ids=["text", "status", "signal", "input", "error", "long"],
)
def test_what_comes_of_code(docker: Path, code: str, exit_code: int, stdout: str, stderr: str):
    with ContainerCodeExecutor(image="i") as executor:
        result = runs(executor, code)

    assert (result.exit_code, result.stdout) == (exit_code, stdout)
    assert stderr in result.stderr and bool(stderr) == bool(result.stderr)


def test_code_over_the_time_limit_is_stopped_with_what_it_started_and_the_container_stays(docker: Path):
    fifo = docker / "fifo"
    os.mkfifo(fifo)
    code = f"import subprocess, sys\nsubprocess.Popen(['sleep', '600'], stdout=open({str(fifo)!r}, 'w'))\n"
    with ContainerCodeExecutor(image="i", timeout_seconds=1) as executor:
        reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        result = runs(executor, f"{code}print('begun', flush=True)\nwhile True: pass")
        os.set_blocking(reader, True)

        assert os.read(reader, 1) == b""  # no process has the other end any more
        assert result.stdout == "begun\n" and "longer than 1 seconds" in result.stderr and result.failed
        assert runs(executor, "print('next')").stdout == "next\n"
        assert len(containers(docker)) == 1
    os.close(reader)


def test_a_cancelled_run_stops_the_code(docker: Path):
    fifo = docker / "fifo"
    os.mkfifo(fifo)

    async def cancelled() -> bytes:
        with ContainerCodeExecutor(image="i") as executor:
            code = f"out = open({str(fifo)!r}, 'w')\nprint('begun', file=out, flush=True)\nwhile True: pass"
            run = asyncio.create_task(executor.execute_code_async(None, CodeExecutionInput(code=code)))  # type: ignore[arg-type]
            async with asyncio.timeout(SECONDS):
                with await sync.blocking(lambda: open(fifo, "rb"), thread=True) as reader:
                    await sync.blocking(reader.readline, thread=True)
                    run.cancel()
                    return await sync.blocking(reader.read, thread=True)

    assert sync.run(cancelled()) == b""


def test_network_host_and_an_image_of_ones_own(docker: Path):
    (docker / "Dockerfile").write_text("FROM python:3-slim")
    settings = {"base_url": "tcp://10.0.0.1:2375", "docker_path": str(docker), "network_enabled": True}
    with ContainerCodeExecutor(**settings) as executor:
        runs(executor, "1")

    build, start, block = commands(docker)
    assert build == ["--host", "tcp://10.0.0.1:2375", "build", "--tag", "adk-code-executor:latest", str(docker)]
    assert "--network" not in start and "adk-code-executor:latest" in start
    assert [line[:2] for line in (start, block)] == [["--host", "tcp://10.0.0.1:2375"]] * 2


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({}, "image"),
        ({"image": "i", "stateful": True}, "KernelCodeExecutor"),
        ({"image": "i", "optimize_data_file": True}, "KernelCodeExecutor"),
        ({"image": "i", "timeout_seconds": None}, "timeout_seconds=300"),
        ({"image": "i", "timeout_seconds": 0}, "timeout_seconds"),
    ],
)
def test_settings_that_it_cannot_have_are_refused(docker: Path, settings: dict[str, object], reason: str):
    with pytest.raises(ConfigurationError, match=reason):
        ContainerCodeExecutor(**settings)  # type: ignore[arg-type]


def test_without_docker_one_line_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(ConfigurationError) as refused:
        ContainerCodeExecutor(image="python:3-slim")

    assert mentions(refused.value, "'docker' … KernelCodeExecutor") and "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("image", "dockerfile", "reason"),
    [
        ("i", None, "Cannot connect to the Docker daemon"),
        ("bare", None, "python3"),
        (None, "FORM python", "no such instruction: FORM"),
    ],
)
def test_docker_that_cannot_start_the_container_says_why_in_one_line(
    docker: Path, image: str | None, dockerfile: str | None, reason: str
):
    if reason.startswith("Cannot"):
        (docker / "down").touch()
    if dockerfile:
        (docker / "Dockerfile").write_text(dockerfile)
    executor = ContainerCodeExecutor(image=image, docker_path=str(docker) if dockerfile else None)

    with pytest.raises(ConfigurationError) as refused:
        runs(executor, "1")

    assert reason in str(refused.value) and "\n" not in str(refused.value)
