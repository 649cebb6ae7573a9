"""A call that may have taken effect before its process died is never repeated by an answer for others."""

from pathlib import Path
from typing import Any

import pytest

from adk_nb import Agent, clock
from adk_nb.errors import AdkNbError
from adk_nb.evaluation import evaluate
from adk_nb.models.scripted_llm import ScriptedLlm, call
from adk_nb.sessions import SqliteSessionService
from adk_nb.sessions.journal import LEASE_SECONDS
from adk_nb.tools import FunctionTool

CASES = [{"id": to, "message": f"Pay {to}", "answer": "Done"} for to in ("ada", "bob")]


def test_an_answer_for_a_tool_repeats_no_call_in_doubt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now, paid = [1000.0], list[str]()
    monkeypatch.setattr(clock, "ticks", lambda: now[0])
    service = SqliteSessionService(tmp_path / "rows.db")

    async def pay(to: str) -> str:
        """Pay a person."""
        paid.append(to)
        if len(paid) == 1:
            await service.close()  # what comes now is as if the process were gone
        return "paid"

    def evaluated(store: SqliteSessionService, *said: Any, **options: Any) -> Any:
        tool = FunctionTool(pay, require_confirmation=True)
        agent = Agent(name="clerk", model=ScriptedLlm(*said), tools=[tool])
        return evaluate(agent, CASES, session_service=store, max_concurrency=1, **options)

    first = evaluated(service, call("pay", to="ada"), call("pay", to="bob"))
    with pytest.raises(AdkNbError):
        first.answer(True, tool="pay")
    assert paid == ["ada"]

    now[0] += LEASE_SECONDS + 1
    reopened = SqliteSessionService(tmp_path / "rows.db")
    for confirm in ("ask", "yes"):  # a policy does not repeat it either
        second = evaluated(reopened, "Done.", "Done.", "Done.", confirm=confirm)
    ada, bob = second.rows
    assert ada.outcome == "pending" and ada.waiting_calls[0].in_doubt
    assert paid == ["ada", "bob"] and bob.outcome == "passed"

    for answered in (second.answer(True), second.answer(True, tool="pay")):
        assert answered.rows[0].outcome == "pending"
    assert paid == ["ada", "bob"]
    (doubt,) = ada.waiting_for
    assert doubt.startswith("pay:")
    assert second.answer(True, tool=doubt).rows[0].outcome == "passed"
    assert paid == ["ada", "bob", "ada"]
