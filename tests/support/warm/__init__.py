"""Kernels for tests that are not about how one begins: `kernel_name=WARM` starts a copy of one that has begun."""

import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

_PLACE = "ADK_NB_WARM_KERNELS"
_MODULES = (
    *("ipykernel.kernelapp", "ipykernel.ipkernel", "ipykernel.zmqshell", "adk_nb.notebook.magics.extension"),
    *("adk_nb.types", "adk_nb.agents.llm_agent", "adk_nb.notebook.magics.tool", "adk_nb.notebook.magics.agent"),
    *("adk_nb.notebook.magics.chat", "adk_nb.notebook.view.widget", "adk_nb.models.offline_llm"),
)
"""What a kernel has loaded a while after `%load_ext adk_nb`."""
WARM = "adk-nb-warm"
_CAN_COPY = sys.platform == "linux"
"""Elsewhere, and outside pytest, such a kernel begins as any other."""


def kernelspec() -> dict[str, object]:
    """What Jupyter starts as such a kernel."""
    start = [sys.executable, "-m"]
    if _CAN_COPY and _PLACE in os.environ:
        start = [sys.executable, "-I", "-S", str(Path(__file__).with_name("ask.py")), f"{os.environ[_PLACE]}/door"]
    return {
        "argv": [*start, "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "Python 3",
        "language": "python",
        "metadata": {"debugger": True},
    }


def pytest_configure(config: pytest.Config) -> None:
    """Start the server that all workers ask; it imports nothing before the first kernel is wanted."""
    if _PLACE in os.environ:  # of the run whose worker this is
        return
    place = tempfile.TemporaryDirectory(prefix="adk-nb-warm-")
    config.add_cleanup(place.cleanup)
    os.environ[_PLACE] = place.name
    config.add_cleanup(lambda: os.environ.pop(_PLACE))
    before = os.environ.get("JUPYTER_PATH")
    os.environ["JUPYTER_PATH"] = os.pathsep.join(filter(None, [place.name, before]))
    spec = Path(place.name, "kernels", WARM, "kernel.json")
    spec.parent.mkdir(parents=True)
    spec.write_text(json.dumps(kernelspec()))
    if not _CAN_COPY:
        return
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
        door.bind(f"{place.name}/door")
        door.listen(64)
        command = [sys.executable, str(Path(__file__).with_name("server.py")), str(door.fileno()), *_MODULES]
        server = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment, pass_fds=[door.fileno()])

    def end() -> None:
        server.communicate(timeout=30)

    config.add_cleanup(end)
