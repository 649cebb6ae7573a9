"""Ctrl-C and its kin in a real kernel: the cell ends at once, nothing runs on, and the conversation goes on."""

import json
import time

import pytest
from kernel import Kernel
from talkers import DOES, SETUP

pytestmark = pytest.mark.kernel


def assert_all_is_well(kernel: Kernel, say: str, events: str) -> None:
    """Nothing of the stopped run is left; the next turn's request is well paired; the events tell of the stop."""
    before = kernel.run("print(json.dumps([left(), len(requests), len(tokens), len(closed)]))")
    left, calls, tokens, closed = json.loads(before.printed)
    assert left == []
    assert calls == 1
    assert closed == (1 if tokens else 0)

    assert "here I am" in kernel.run(say).text

    after = kernel.run(
        "print(json.dumps([len(requests), len(tokens), tools_ended, [paired(one) for one in requests], left()]))"
    )
    assert json.loads(after.printed) == [2, tokens, [], [True, True], []]
    told = json.loads(kernel.run(f"print(json.dumps([[one.author, one.error_code] for one in {events}]))").printed)
    assert [code for _, code in told if code] == ["INVOCATION_ABORTED"]
    assert [author for author, _ in told].count("user") == 2


@pytest.mark.parametrize("agent", DOES)
def test_an_interrupted_chat_cell_ends_at_once_and_the_next_one_works(kernel: Kernel, agent: str):
    kernel.run(SETUP)
    cell = kernel.start(f"%chat -s {agent} {agent} go on")
    kernel.until_printed(cell, DOES[agent])

    seconds = kernel.interrupt(cell)

    assert (seconds < 15, cell.error) == (True, "KeyboardInterrupt"), seconds
    assert cell.complained == ""
    assert_all_is_well(
        kernel, f"%chat -s {agent} {agent} are you there?", f"get_ipython().adk_nb.sessions.events({agent!r})"
    )
    assert "the run was stopped" in kernel.run(f"%trace -s {agent}").text


@pytest.mark.parametrize("source", ["%chat -s words slow go on", "await Chat(slow).aask('go on')"])
def test_an_interrupted_cell_keeps_the_text_that_had_streamed(kernel: Kernel, source: str):
    kernel.run(SETUP)
    cell = kernel.start(source)
    kernel.until_printed(cell, "streaming")

    kernel.interrupt(cell)

    assert "word0 word1 word2" in kernel.updates[-1]
    assert "stopped" in kernel.updates[-1]


@pytest.mark.parametrize("agent", DOES)
def test_an_interrupted_cell_that_awaits_ends_at_once(kernel: Kernel, agent: str):
    kernel.run(SETUP)
    kernel.run(f"chat = Chat({agent})")
    cell = kernel.start("await chat.aask('go on')")
    kernel.until_printed(cell, DOES[agent])

    seconds = kernel.interrupt(cell)

    assert (seconds < 15, cell.error in ("KeyboardInterrupt", "CancelledError")) == (True, True), (seconds, cell.error)
    assert cell.complained == ""
    assert_all_is_well(kernel, "await chat.aask('are you there?')", "chat.events")


def test_a_run_in_the_background_survives_an_interrupt_and_is_cancelled_by_its_handle(kernel: Kernel):
    kernel.run(SETUP)
    kernel.run("chat = Chat(slow)")
    cell = kernel.start("run = chat.start('go on')")
    kernel.until_printed(cell, "streaming")
    other = kernel.start("print('waiting', flush=True); time.sleep(30)")
    kernel.until_printed(other, "waiting")
    kernel.interrupt(other)
    assert kernel.run("print(run.done())").text == "False"

    ended = kernel.run("print(run.cancel(), run.done())\ntry: run.result()\nexcept BaseException as e: print(type(e))")

    assert ended.text.split() == ["True", "True", "<class", "'asyncio.exceptions.CancelledError'>"]
    assert_all_is_well(kernel, "chat.ask('are you there?')", "chat.events")


def test_an_interrupt_of_an_idle_kernel_stops_the_tool_of_a_background_run(kernel: Kernel):
    kernel.run(SETUP)
    kernel.run("chat = Chat(sleeper)")
    cell = kernel.start("run = chat.start('go on')")
    kernel.until_printed(cell, "sleeping")
    kernel.until_ended(cell)

    next_cell = kernel.start("1")
    assert kernel.interrupt(next_cell) < 15

    kernel.run("try: run.result(5)\nexcept asyncio.CancelledError: pass")
    assert_all_is_well(kernel, "chat.ask('are you there?')", "chat.events")


def test_stop_ends_a_run_with_a_reply_that_says_so(kernel: Kernel):
    kernel.run(SETUP)
    kernel.run("chat = Chat(slow)")
    cell = kernel.start("stop_in_the_middle(chat); reply = chat.ask('go on')")
    kernel.until_ended(cell)

    status, streamed = kernel.run("print(reply.status, reply.text)").text.split(" ", 1)
    assert status == "cancelled"
    assert streamed.startswith("word0 word1 word2")
    assert_all_is_well(kernel, "chat.ask('are you there?')", "chat.events")


@pytest.mark.parametrize("agent", ["sleeper", "worker"])
@pytest.mark.parametrize("say", ["chat.ask('go on')", "await chat.aask('go on')"])
def test_stop_ends_a_tool_that_runs_in_the_cell(kernel: Kernel, agent: str, say: str):
    kernel.run(SETUP)
    kernel.run(f"chat = Chat({agent})")
    cell = kernel.start(f"stop_in_the_middle(chat); reply = {say}")
    kernel.until_printed(cell, DOES[agent])
    began = time.monotonic()

    kernel.until_ended(cell)

    assert (time.monotonic() - began < 15, cell.error) == (True, None)
    assert kernel.run("print(reply.status)").text == "cancelled"
    assert_all_is_well(kernel, "chat.ask('are you there?')", "chat.events")
