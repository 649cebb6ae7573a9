"""llama.cpp's server, started for these tests with a model that they make; `make real-server` installs it."""

import subprocess
import threading
from collections.abc import Iterator
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


@dataclass
class Noise:
    """A running server."""

    url: str

    def model(self, **fields: Any) -> OpenAILlm:
        """The server's model."""
        given: dict[str, Any] = {"model": "noise", "base_url": f"{self.url}/v1", "api_key": KEY}
        given["extra_body"] = {"seed": 7}
        return OpenAILlm(**given | fields)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noise]:
    folder = tmp_path_factory.mktemp("noise")
    with open(folder / "log", "w") as log:
        command = [str(PYTHON), str(_HERE / "noise_server.py"), str(folder)]
        program = subprocess.Popen(command, stdin=-1, stdout=-1, stderr=log, text=True)
    late = threading.Timer(_STARTING, program.kill)
    late.start()
    said = program.stdout.readline() if program.stdout else ""
    late.cancel()
    assert said.startswith("ready "), (folder / "log").read_text()[-2000:]
    yield Noise(said.split()[1])
    program.communicate(timeout=60)  # its input ends, and so does it
