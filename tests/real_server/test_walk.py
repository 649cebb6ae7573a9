"""The walk that docs/pages/walk.md describes, walked: every block of it, in a fresh environment."""

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.real_server.conftest import PYTHON

pytestmark = [pytest.mark.real_server, pytest.mark.timeout(1800)]
HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BLOCKS: list[tuple[str, str]] = re.findall(
    r"^```(\w+)\n(.*?)^```", (ROOT / "docs" / "pages" / "walk.md").read_text(), re.MULTILINE | re.DOTALL
)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """What a reader has: the repository, and nothing installed."""
    folder = tmp_path / "clone"
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, stdout=-1, check=True, text=True).stdout
    for name in filter(None, tracked.split("\0")):
        if name.startswith(("adk_nb/", "pyproject", "README", "LICENSE", "CHANGELOG")) and (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """With llama.cpp's server on the path, a model file beside it, and no browser."""
    programs, settings = tmp_path / "bin", tmp_path / "jupyter"
    programs.mkdir()
    settings.mkdir()
    server = programs / "llama-server"
    server.write_text(f'#!/bin/sh\nexec "{PYTHON}" "{HERE / "noise_server.py"}" "$@"\n')
    server.chmod(0o755)
    told = {"ServerApp": {"allow_root": True, "open_browser": False, "port": free_port()}}
    (settings / "jupyter_server_config.json").write_text(json.dumps(told))
    return {
        **{name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")},
        "PATH": f"{programs}:{os.environ['PATH']}",
        "JUPYTER_CONFIG_DIR": str(settings),
        "VIRTUAL_ENV": "",
    }


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


@contextlib.contextmanager
def started(command: str, folder: Path, environment: dict[str, str], ready: str) -> Iterator[None]:
    """A program that goes on; it is there when it has said `ready`."""
    program = subprocess.Popen(
        f"exec {command}",
        shell=True,
        cwd=folder,
        env=environment,
        stdin=-1,
        stdout=-1,
        stderr=subprocess.STDOUT,
        text=True,
    )
    late = threading.Timer(120, program.kill)
    late.start()
    said = ""
    for line in program.stdout or ():
        said += line
        if re.search(ready, line):
            break
    else:
        raise AssertionError(said)
    late.cancel()
    rest = threading.Thread(target=lambda: [None for _ in program.stdout or ()])
    rest.start()
    try:
        yield
    finally:
        program.terminate()
        program.wait(30)
        rest.join()
        for pipe in (program.stdin, program.stdout):
            if pipe:
                pipe.close()


class Walk:
    """What has been done, and how long it took."""

    def __init__(self, clone: Path, environment: dict[str, str]) -> None:
        self.clone = clone
        self.environment = environment
        self.steps: list[tuple[str, float]] = []
        self.blocks = iter(BLOCKS)

    def block(self, kind: str, begins: str) -> str:
        """The page's next block, which is of that kind and begins so."""
        found, words = next(self.blocks)
        assert (found, words[: len(begins)]) == (kind, begins)
        return words

    def note(self, step: str, seconds: float) -> None:
        """Keep it in a file, for the page."""
        self.steps.append((step, seconds))
        lines = [
            f"| {step} | {seconds:.1f} s |"
            for step, seconds in [*self.steps, ("in all", sum(dict(self.steps).values()))]
        ]
        (ROOT / "build").mkdir(exist_ok=True)
        (ROOT / "build" / "walk.md").write_text("\n".join(["| step | time |", "|---|---|", *lines]) + "\n")

    def took(self, step: str, since: float) -> None:
        self.note(step, time.perf_counter() - since)

    def shell(self, begins: str, step: str) -> None:
        since = time.perf_counter()
        done = subprocess.run(
            ["sh", "-e", "-c", self.block("sh", begins)],
            cwd=self.clone,
            env=self.environment,
            stdout=-1,
            stderr=-2,
            text=True,
        )
        assert done.returncode == 0, done.stdout[-3000:]
        self.took(step, since)


class Notebook:
    """A notebook of the walk's own environment."""

    def __init__(self, walk: Walk, port: int) -> None:
        self.walk = walk
        self.port = port
        self.kernel = subprocess.Popen(
            [walk.clone / ".venv" / "bin" / "python", HERE / "walker.py"],
            cwd=walk.clone,
            env=walk.environment,
            stdin=-1,
            stdout=-1,
            text=True,
        )

    def cell(self, begins: str, step: str, *, fails: bool = False) -> str:
        """Run the page's next cell; what it showed."""
        return self.again(self.walk.block("python", begins), step, fails=fails)

    def again(self, source: str, step: str, *, fails: bool = False) -> str:
        assert self.kernel.stdin and self.kernel.stdout
        self.kernel.stdin.write(json.dumps(source.replace("8080", str(self.port))) + "\n")
        self.kernel.stdin.flush()
        told: dict[str, Any] = json.loads(self.kernel.stdout.readline())
        assert told["failed"] == fails, told["shown"]
        self.walk.note(step, told["seconds"])
        return told["shown"]


def test_the_walk_leads_where_it_says(clone: Path, environment: dict[str, str], tmp_path: Path):
    walk, port = Walk(clone, environment), free_port()
    walk.shell("python3 -m venv", "install")
    since = time.perf_counter()
    with started(walk.block("sh", ".venv/bin/jupyter lab").strip(), clone, environment, r"http://.*/lab"):
        walk.took("open JupyterLab", since)

    notebook = Notebook(walk, port)
    notebook.cell("%load_ext", "load the extension")
    notebook.cell("%%tool", "write a tool")
    notebook.cell("%%agent", "write an agent")
    said = notebook.cell("%chat", "ask it, without a model")
    assert "3.20 euros" in said

    make = f"import sys; sys.path.insert(0, {str(HERE)!r}); import noise_server, pathlib; "
    make += "noise_server.make_model(pathlib.Path('your-model.gguf'))"
    subprocess.run([PYTHON, "-c", make], cwd=clone, check=True)
    command = walk.block("sh", "llama-server").strip().replace("8080", str(port))
    since = time.perf_counter()
    with started(command, clone, environment, "ready http"):
        walk.took("start the server", since)
        notebook.cell("%%agent", "name its address")
        missing = notebook.cell("%chat", "ask, and be told what is missing", fails=True)
        assert walk.block("text", "'openai'").strip() in missing
        notebook.cell("%pip", "install what is missing")
        said = notebook.cell("%chat", "ask the model on this machine")
        assert "1 tool call" in said or "tool calls" in said
        told = notebook.cell("%trace", "look at what it did")
        assert "price_of" in told and "euros" in told

    said = notebook.cell("%chat", "ask when the server is gone", fails=True)
    assert "cannot be reached" in said
    with started(command, clone, environment, "ready http"):
        said = notebook.cell("%rewind --rerun", "ask again when it is there")
        assert "waiter" in said and "cannot be reached" not in said
    notebook.kernel.communicate(timeout=60)
    assert next(walk.blocks, None) is None
