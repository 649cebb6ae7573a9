"""Servers of others, started for these tests with a model that they make; `make real-server` installs both."""

import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from adk_nb.models import OpenAILlm

_HERE = Path(__file__).parent
PYTHON = _HERE.parents[1] / ".venv-server" / "bin" / "python"
_STARTING = 60.0
"""Seconds that a server has to start, on a machine that has other things to do."""
KEY, CONTEXT = "sk-of-the-noise-server", 2048
"""Of `noise_server.py`, which this environment cannot import."""
NAMES = ["llama.cpp", "llama-cpp-python"]


@dataclass
class Noise:
    """A running server."""

    name: str
    url: str

    def model(self, **fields: Any) -> OpenAILlm:
        """The server's model."""
        given: dict[str, Any] = {"model": "noise", "base_url": f"{self.url}/v1", "api_key": KEY}
        given["extra_body"] = {"seed": 7}
        return OpenAILlm(**given | fields)


@pytest.fixture(scope="session")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Noise]]:
    """Starts a server by its name, once."""
    running: dict[str, tuple[subprocess.Popen[str], Noise]] = {}

    def start(name: str) -> Noise:
        if name not in running:
            folder = tmp_path_factory.mktemp("noise")
            command = [str(PYTHON), str(_HERE / "noise_server.py"), name, str(folder)]
            with open(folder / "log", "w") as log:
                program = subprocess.Popen(command, stdin=-1, stdout=-1, stderr=log, text=True)
            late = threading.Timer(_STARTING, program.kill)
            late.start()
            said = program.stdout.readline() if program.stdout else ""
            late.cancel()
            assert said.startswith("ready "), (folder / "log").read_text()[-2000:]
            running[name] = program, Noise(name, said.split()[1])
        return running[name][1]

    yield start
    for program, _ in running.values():
        program.communicate(timeout=20)  # its input ends, and so does it
