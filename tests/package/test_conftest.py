"""The guards of conftest.py hold."""

import asyncio
import re
import socket
from pathlib import Path

import pytest

from adk_nb import clock


def test_a_connection_off_loopback_is_refused():
    with socket.socket() as off, pytest.raises(RuntimeError, match=r"tried to reach .*203\.0\.113\.9"):
        off.connect(("203.0.113.9", 80))
    with pytest.raises(RuntimeError, match=r"tried to look up 'example\.com'"):
        socket.create_connection(("example.com", 80))


def test_a_connection_off_loopback_is_refused_on_the_event_loop():
    async def reach():
        await asyncio.open_connection("203.0.113.9", 80)

    with asyncio.Runner() as runner, pytest.raises(RuntimeError, match="tried to reach"):
        runner.run(reach())


def test_loopback_is_open():
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(("localhost", server.getsockname()[1])).close()


@pytest.mark.usefixtures("frozen")
def test_frozen_time_stands_still_and_ids_count():
    assert (clock.now(), clock.now(), clock.new_id(), clock.new_id()) == (1000.0, 1000.0, "id-1", "id-2")


def test_the_quick_half_leaves_out_what_has_a_command_of_its_own(pytestconfig: pytest.Config):
    makefile = (Path(__file__).parents[2] / "Makefile").read_text(encoding="utf-8")
    quick = re.findall(r"\w+", re.findall(r"^QUICK = not \((.*)\)$", makefile, re.M)[0])

    assert set(re.findall(r"not (\w+)", " ".join(pytestconfig.getini("addopts")))) <= set(quick)
