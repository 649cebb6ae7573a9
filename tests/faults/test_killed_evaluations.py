"""An evaluation whose process is killed at any time loses no row, repeats no call with an effect, and pays once."""

import asyncio
import json
import random
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from adk_nb import Agent, types
from adk_nb.evaluation import aevaluate
from adk_nb.evaluation.evaluation import Evaluation
from adk_nb.models.llm_response import LlmResponse
from adk_nb.sessions.sqlite_session_service import SqliteSessionService
from adk_nb.tools.function_tool import FunctionTool
from tests.faults.clerk import line
from tests.faults.workers import forkserver
from tests.support.polling import eventually

ROWS, AT_ONCE = 100, 4
CALLS = 2 * ROWS
"""Model calls of a pass without a kill: one for the call of the tool, one for the answer."""


def clerk(folder: Path) -> Agent:
    """Charges each customer, and notes every charge and every model call in a file."""

    async def charge(customer: str) -> str:
        """Charge a customer."""
        line(folder / "charged", customer)
        await asyncio.sleep(0.001)
        return "charged"

    async def answer(callback_context: Any, llm_request: Any) -> LlmResponse:
        last = llm_request.contents[-1].parts[-1]
        line(folder / "paid", "model")
        await asyncio.sleep(0.001)
        call = types.FunctionCall(name="charge", args={"customer": last.text})
        part = types.Part(text="Done.") if last.function_response else types.Part(function_call=call)
        return LlmResponse(content=types.Content(role="model", parts=[part]))

    return Agent(name="clerk", model="gemini-2.5-flash", tools=[FunctionTool(charge)], before_model_callback=answer)


async def evaluation(folder: Path) -> Evaluation:
    """Evaluate the clerk in the store of a folder; what is done there stays."""
    service = SqliteSessionService(str(folder / "rows.db"))
    cases = [{"message": f"c{number}", "answer": "Done"} for number in range(ROWS)]
    result = await aevaluate(clerk(folder), cases, session_service=service, max_concurrency=AT_ONCE)
    await service.close()
    return result


def evaluate_in_a_process(folder: Path) -> None:
    """Evaluate the clerk, and note that it came to the end."""
    (folder / "began").touch()
    asyncio.run(evaluation(folder))
    (folder / "ended").touch()


def _kill(folder: Path, chance: random.Random) -> bool:
    """Run an evaluation and kill it; False: it came to its end before."""
    (folder / "began").unlink(missing_ok=True)
    process = forkserver().Process(target=evaluate_in_a_process, args=(folder,))
    process.start()
    eventually(lambda: (folder / "began").exists() or not process.is_alive(), pause=0.002)
    assert (folder / "began").exists()
    process.join(chance.uniform(0.01, 0.25))
    process.kill()
    process.join(30)
    return process.exitcode == -signal.SIGKILL


def _check(folder: Path, kills: int) -> None:
    result = asyncio.run(evaluation(folder))
    outcomes = Counter(row.outcome for row in result.rows)
    charged = Counter(map(json.loads, (folder / "charged").read_text().splitlines()))
    paid = (folder / "paid").read_text().count("model")
    assert outcomes.keys() <= {"passed", "pending"} and outcomes.total() == ROWS  # no row is lost
    assert outcomes["pending"] <= kills * AT_ONCE  # whether these were charged, only a person can say
    assert set(charged.values()) == {1}  # no call is repeated
    questions = {row.case.question for row in result.rows if row.outcome == "passed"}
    assert questions <= charged.keys()
    assert paid <= CALLS + kills * AT_ONCE  # a kill costs what was under way


@pytest.mark.slow
@pytest.mark.parametrize(
    "kills",
    [pytest.param(6, id="some"), pytest.param(300, id="all", marks=[pytest.mark.faults])],
)
def test_a_kill_at_any_time_loses_no_row_and_repeats_no_call(kills: int, tmp_path: Path) -> None:
    chance, total = random.Random("evaluation"), 0
    for number in range(kills):
        folder = tmp_path / str(number)
        folder.mkdir()
        earlier_total = total
        while total < kills and total - earlier_total < 6 and _kill(folder, chance):
            total += 1
        _check(folder, total - earlier_total)
        if total >= kills:
            return
    raise AssertionError(f"{total} kills")


@pytest.mark.slow
def test_a_kill_in_the_middle_costs_two_percent_at_most(tmp_path: Path) -> None:
    (tmp_path / "began").touch()
    process = forkserver().Process(target=evaluate_in_a_process, args=(tmp_path,))
    process.start()
    paid = tmp_path / "paid"
    eventually(lambda: paid.exists() and paid.read_text().count("model") >= CALLS / 2, pause=0.002)
    process.kill()
    process.join(30)
    asyncio.run(evaluation(tmp_path))
    assert paid.read_text().count("model") <= 1.02 * CALLS
