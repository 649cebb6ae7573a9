"""Spans that cannot be sent: the run's own cell says so, also if another cell runs by then."""

import socket

import pytest
from kernel import Kernel

pytestmark = [pytest.mark.kernel, pytest.mark.kernel_all]


def test_the_warning_is_below_the_cell_whose_run_could_not_be_sent(kernel: Kernel) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{taken.getsockname()[1]}"
        kernel.run("%load_ext adk_nb\nfrom adk_nb.models import ScriptedLlm\nmodel = ScriptedLlm('hi', 'hi')")
        kernel.run("%%agent greeter -m model\nGreet.")
        kernel.run("%chat greeter Hello")
        switch = kernel.run(f"%config AdkNb.otlp = {endpoint!r}")

        chat = kernel.run("%chat greeter Hello again")
        later = kernel.start("input()")
        kernel.until(lambda: endpoint in chat.complained, "the warning")
        kernel.lines.append("")
        kernel.until_ended(later)

        assert "no connection" in chat.complained
        assert switch.complained == later.complained == ""
        assert f"no longer sent to {endpoint}" in kernel.run("%config AdkNb.otlp = None").printed
