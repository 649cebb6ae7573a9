"""A kernel that is killed, and its notebook reopened in a new one."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from kernel import Kernel, running_kernel

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


def test_a_tool_that_was_at_work_is_not_called_again_without_a_persons_word(kernels: Kernels, tmp_path: Path) -> None:
    first = kernels("call('pay', amount=5)")
    first.run(SLOW_PAY)
    first.run(CLERK)
    first.until_printed(first.start("%chat clerk Pay 5"), "begun")
    first.kill()

    (tmp_path / "again").touch()
    second = kernels("'Paid.'")
    assert "a run was cut" in second.run("%session").text
    second.run(SLOW_PAY)
    second.run(CLERK)
    refused = second.run("%chat clerk Pay 5", raises=True)
    assert "%session resume" in refused.traceback
    assert "it may already have happened" in second.run("%session resume").text
    assert (tmp_path / "paid.txt").read_text() == "5\n"

    assert "Paid." in second.run("%confirm --yes").text

    assert (tmp_path / "paid.txt").read_text() == "5\n5\n"
