"""A kernel that is killed, and its notebook reopened in a new one."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from kernel import Kernel, running_kernel

from adk_nb import Agent, Chat
from adk_nb.models import ScriptedLlm
from adk_nb.sessions import SqliteSessionService

pytestmark = pytest.mark.kernel

FIRST = """%load_ext adk_nb
%config AdkNb.sessions = "sqlite:///nb.db"
from pathlib import Path
from adk_nb.models.scripted_llm import ScriptedLlm, call
Path("paid.txt").touch()
"""
PAY = """%%tool --confirm
def pay(amount: int) -> str:
    \"\"\"Pay.\"\"\"
    with open("paid.txt", "a") as done:
        done.write(f"{amount}\\n")
    return "paid"
"""
SLOW_PAY = """%%tool
def pay(amount: int) -> str:
    \"\"\"Pay.\"\"\"
    with open("paid.txt", "a") as done:
        done.write(f"{amount}\\n")
    print("begun", flush=True)
    if not Path("again").exists():
        input()
    return "paid"
"""
CLERK = "%%agent clerk -m model -t pay\nPay what is due."
Kernels = Callable[[str], Kernel]


@pytest.fixture
def kernels(tmp_path: Path) -> Iterator[Kernels]:
    """New kernels in one folder, each with what its model answers; the one before was killed."""
    with ExitStack() as ends:

        def new(answers: str) -> Kernel:
            kernel = ends.enter_context(running_kernel(tmp_path))
            kernel.run(FIRST)
            kernel.run(f"model = ScriptedLlm({answers})")
            return kernel

        yield new


def test_an_approval_that_was_open_is_answered_in_a_new_kernel_and_the_tool_runs_once(
    kernels: Kernels, tmp_path: Path
) -> None:
    first = kernels("call('pay', amount=5)")
    first.run(PAY)
    first.run(CLERK)
    assert "pay" in first.run("%chat clerk Pay 5").text
    first.kill()

    second = kernels("'Done.'")
    second.run(PAY)
    second.run(CLERK)
    assert "pay" in second.run("%confirm").text
    assert "Done." in second.run("%confirm --yes").text
    second.run("%confirm --yes", raises=True)

    assert (tmp_path / "paid.txt").read_text() == "5\n"
    assert second.run("%session").text.split().count("main") == 1


@pytest.mark.kernel_all
def test_a_card_is_drawn_anew_in_a_new_kernel_lets_the_tool_run_once_and_is_stale_when_another_process_has_answered(
    kernels: Kernels, tmp_path: Path
) -> None:
    first = kernels("call('pay', amount=5)")
    first.run(PAY)
    first.run(CLERK)
    first.run("%chat clerk Pay 5")
    asked = first.cards[first.card("pay")]
    first.kill()

    second = kernels("'Done.', call('pay', amount=6)")
    second.run(PAY)
    second.run(CLERK)
    cell = second.run("%confirm")
    card = second.card("pay")
    assert second.cards[card] == asked
    second.click(card, decision="approve")
    second.until(lambda: "Done." in cell.shown, "the reply under the cell of the card")
    second.click(card, decision="approve")

    assert second.cards[card]["state"] == "approved"
    assert "no approval" in second.run("%confirm").text
    assert (tmp_path / "paid.txt").read_text() == "5\n"

    second.run("%chat clerk Pay 6")
    card = second.card("pay")
    clerk = Agent(name="clerk", model=ScriptedLlm("I see."))
    Chat(clerk, app_name="notebook", session_service=SqliteSessionService(tmp_path / "nb.db")).reject()
    second.click(card, decision="approve")
    assert second.card("pay", "stale") == card
    assert (tmp_path / "paid.txt").read_text() == "5\n"


@pytest.mark.kernel_all
def test_a_tool_that_was_at_work_is_not_called_again_without_a_persons_word(kernels: Kernels, tmp_path: Path) -> None:
    first = kernels("call('pay', amount=5)")
    first.run(SLOW_PAY)
    first.run(CLERK)
    first.until_printed(first.start("%chat clerk Pay 5"), "begun")
    first.kill()

    (tmp_path / "again").touch()
    second = kernels("'Paid.'")
    assert "interrupted" in second.run("%session").text
    second.run('%config AdkNb.sessions = ""')
    opened = second.run('%config AdkNb.sessions = "sqlite:///nb.db"').printed
    assert "interrupted: %session resume, or %session drop" in opened
    second.run(SLOW_PAY)
    second.run(CLERK + " Be brief.")
    assert "up with %session drop" in second.run("%session resume", raises=True).traceback
    second.run(CLERK)
    refused = second.run("%chat clerk Pay 5", raises=True)
    assert "%session resume" in refused.traceback
    assert "taken effect" in second.run("%session resume").text
    assert (tmp_path / "paid.txt").read_text() == "5\n"

    assert "Paid." in second.run("%confirm 1 --yes").text

    assert (tmp_path / "paid.txt").read_text() == "5\n5\n"


WORKER = """%%tool --effect pure
def work() -> str:
    \"\"\"Work.\"\"\"
    print("begun", flush=True)
    deadline = time.monotonic() + 60
    while not Path("again").exists() and time.monotonic() < deadline:
        time.sleep(9)
    return "worked"
"""


@pytest.mark.parametrize("way", ["in the cell", "after a click"])
def test_a_run_that_a_restart_cuts_off_resumes_as_after_a_kill(kernels: Kernels, tmp_path: Path, way: str) -> None:
    def define(answers: str) -> None:
        kernel.run(f"import time\nmodel = ScriptedLlm({answers})")
        kernel.run(WORKER if way == "in the cell" else WORKER.replace("--effect", "--confirm --effect"))
        kernel.run("%%agent clerk -m model -t work\nWork.")

    kernel = kernels("")
    kernel.run("from adk_nb.concurrency.threads import farewell\nfarewell.seconds = 20  # a busy machine")
    define("call('work')")
    cell = kernel.start("%chat clerk Work")
    if way == "after a click":
        kernel.click(kernel.card("work"), decision="approve")
    kernel.until_printed(cell, "begun")

    kernel.restart()

    (tmp_path / "again").touch()
    kernel.run(FIRST)
    define("'It is done.'")
    trace = kernel.run("%trace").text
    assert "interrupted by a restart of the kernel at " in trace
    assert "still running" not in trace and "stopped" not in trace
    assert "a run was interrupted: %session resume, or %session drop" in trace
    assert "It is done." in kernel.run("%session resume").text
    assert "a run was interrupted" not in kernel.run("%trace").text
