"""The engine of evaluations: budget, rate, approvals, stopping, and rows that survive their process."""

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from adk_nb import Agent, sync, types
from adk_nb.code_executors import UnsafeLocalCodeExecutor
from adk_nb.errors import InputError, ModelTimeoutError
from adk_nb.evaluation import Evaluation, aevaluate, evaluate, judge
from adk_nb.evaluation.batch import Batch
from adk_nb.evaluation.cases import Case, read_cases
from adk_nb.evaluation.progress import Progress
from adk_nb.evaluation.rate import Rate
from adk_nb.evaluation.row_runs import Row
from adk_nb.models.base_llm import BaseLlm
from adk_nb.models.http_llm import HttpLlm
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.models.scripted_llm import ScriptedLlm, call
from adk_nb.notebook.extensions.evaluation.tables import progress_text
from adk_nb.sessions import InMemorySessionService
from adk_nb.skills import SkillCatalog
from adk_nb.tools.function_tool import FunctionTool
from adk_nb.tools.skill_toolset import SkillToolset
from tests.support.http_service import Answer, Service
from tests.support.skills import write_skill
from tests.support.token_counts import counted

PRICED = "gemini-2.5-flash"
"""A model of the price table; 1,000 tokens of its answers cost $0.0025."""


def _priced(tokens: int = 1_000, model: str = PRICED) -> Agent:
    def answer(callback_context: Any, llm_request: Any) -> LlmResponse:
        usage = types.GenerateContentResponseUsageMetadata(
            prompt_token_count=0, candidates_token_count=tokens, total_token_count=tokens
        )
        content = types.Content(role="model", parts=[types.Part(text="yes")])
        return LlmResponse(content=content, usage_metadata=usage, model_version=model)

    return Agent(name="priced", model=PRICED, before_model_callback=answer)


def _cases(count: int) -> list[Case]:
    return read_cases([f"question {number}" for number in range(count)])


def _rows(batch: Batch, cases: list[Case], **options: Any) -> list[Row]:
    async def collect() -> list[Row]:
        return [row async for row in batch.run(cases, **options)]

    return sync.run(collect())


# ---- budget


def test_at_the_budget_no_row_starts_and_what_is_done_stays() -> None:
    batch = Batch(_priced(), budget_usd=0.0101)
    rows = _rows(batch, _cases(20))
    assert [row.status for row in rows].count("done") == 4
    assert batch.progress.not_run == 16
    assert batch.progress.cost_usd == pytest.approx(0.01)


def test_rows_that_are_done_cost_nothing_the_next_time() -> None:
    service = InMemorySessionService()
    _rows(Batch(_priced(), session_service=service, budget_usd=0.0101), _cases(6))
    batch = Batch(_priced(), session_service=service, budget_usd=0.0101)
    rows = _rows(batch, _cases(6))
    assert {row.status for row in rows} == {"done"}
    assert batch.progress.cost_usd == pytest.approx(0.005)


def _priced_judge(count: int) -> ScriptedLlm:
    verdict = '{"verdicts": [{"reason": "r", "holds": true}]}'
    return ScriptedLlm(*[counted(verdict, input=0, output=10_000)] * count)


def test_a_budget_counts_what_judges_cost() -> None:
    polite = judge("is polite", model=_priced_judge(20))  # $0.025 each

    evaluation = evaluate(_priced(), _cases(20), metrics=[polite], budget_usd=0.1)

    assert [row.outcome for row in evaluation.rows].count("passed") == 3
    assert evaluation.progress.cost_usd == pytest.approx(3 * 0.0275)


def test_a_budget_counts_judges_of_rows_that_are_done() -> None:
    service = InMemorySessionService()
    evaluate(_priced(), _cases(8), metrics=[lambda run: True], session_service=service)

    judged = evaluate(
        _priced(),
        _cases(8),
        metrics=[judge("is polite", model=_priced_judge(8))],
        budget_usd=0.06,
        session_service=service,
    )

    assert judged.progress.cost_usd == pytest.approx(0.05)


def test_without_the_table_of_prices_the_cost_of_judges_is_unknown_and_not_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)

    evaluation = evaluate(
        Agent(name="clerk", model=ScriptedLlm("done")),
        [{"message": "pay"}],
        metrics=[judge("is polite", model=_priced_judge(1))],
    )

    assert [row.outcome for row in evaluation.rows] == ["passed"]
    assert evaluation.progress.cost_usd is None


def test_a_budget_needs_the_price_of_a_judge() -> None:
    unpriced = judge("is polite", model=ScriptedLlm(counted("{}", model="house-model")))
    with pytest.raises(InputError, match="house-model"):
        evaluate(_priced(), _cases(2), metrics=[unpriced], budget_usd=1)


def test_rows_go_one_by_one_until_one_has_cost_something() -> None:
    running, most, asked = 0, 0, 0

    async def answer(callback_context: Any, llm_request: Any) -> LlmResponse:
        nonlocal running, most, asked
        running, asked = running + 1, asked + 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        if asked <= 3:
            raise RuntimeError("no answer")
        return counted("yes", input=0, output=60_000)  # $0.15

    agent = Agent(name="failing", model=PRICED, before_model_callback=answer)
    batch = Batch(agent, budget_usd=0.5)
    rows = _rows(batch, _cases(20))

    assert asked == 6 and most <= 2
    assert [row.status for row in rows].count("done") == 3
    assert batch.progress.cost_usd == pytest.approx(0.45)


def test_a_budget_needs_the_price_of_the_model() -> None:
    with pytest.raises(InputError, match="house-model"):
        _rows(Batch(_priced(model="house-model"), budget_usd=1), _cases(2))


def test_cost_and_time_of_the_rest_are_projected_after_five_rows() -> None:
    seen: list[Progress] = []
    batch = Batch(_priced(), on_progress=seen.append, max_concurrency=1)
    _rows(batch, _cases(4))
    assert seen[-1].projected_usd is None
    _rows(batch, _cases(12))
    assert seen[-1].projected_usd == pytest.approx(12 * 0.0025, rel=0.5)
    assert seen[-1].remaining_seconds == 0


def test_a_batch_projected_above_the_limit_pauses_and_goes_on_when_it_is_run_again() -> None:
    batch = Batch(_priced(), confirm_above_usd=0.02, max_concurrency=1)
    assert [row.status for row in _rows(batch, _cases(12))].count("done") == 5
    assert batch.progress.is_paused
    assert batch.progress.projected_usd == pytest.approx(12 * 0.0025)
    assert {row.status for row in _rows(batch, _cases(12))} == {"done"}
    assert batch.progress.cost_usd == pytest.approx(7 * 0.0025)


# ---- approvals


def _saver(*answers: Any, saved: list[str]) -> Agent:
    def save(planet: str) -> str:
        """Save a planet."""
        saved.append(planet)
        return "saved"

    return Agent(name="saver", model=ScriptedLlm(*answers), tools=[FunctionTool(save, require_confirmation=True)])


@pytest.mark.parametrize(("confirm", "expected"), [("yes", ["Venus"]), ("no", []), (["save"], ["Venus"])])
def test_approvals_are_answered_as_the_policy_says(confirm: Any, expected: list[str]) -> None:
    saved: list[str] = []
    agent = _saver(call("save", planet="Venus"), "Done.", saved=saved)
    evaluation = evaluate(agent, [{"message": "Save Venus", "answer": "Done", "approvals": "save"}], confirm=confirm)
    assert evaluation.rows[0].outcome == "passed"
    assert saved == expected


def test_open_approvals_wait_and_are_answered_together() -> None:
    saved: list[str] = []
    agent = _saver(call("save", planet="Venus"), call("save", planet="Mars"), "Done.", "Done.", saved=saved)
    cases = [{"message": f"Save {planet}", "answer": "Done"} for planet in ("Venus", "Mars")]
    evaluation = evaluate(agent, cases, max_concurrency=1)
    assert [row.outcome for row in evaluation.rows] == ["pending", "pending"]
    assert saved == []
    assert evaluation.score is None
    answered = evaluation.answer(True, tool="save")
    assert [row.outcome for row in answered.rows] == ["passed", "passed"]
    assert saved == ["Venus", "Mars"]


def test_an_approval_of_a_script_is_not_one_of_another_that_nobody_saw(tmp_path: Path) -> None:
    for name in ("report", "cleanup"):
        write_skill(tmp_path, name=name, files={f"scripts/{name}.py": f"print({name!r})"})
    skills = SkillToolset(SkillCatalog(tmp_path), code_executor=UnsafeLocalCodeExecutor())
    runs = [call("run_skill_script", skill_name=name, file_path=f"scripts/{name}.py") for name in ("report", "cleanup")]
    agent = Agent(name="clerk", model=ScriptedLlm(*runs, "Done.", "Done."), tools=[skills])
    cases = [{"message": name, "answer": "Done"} for name in ("report", "cleanup")]
    evaluation = evaluate(agent, cases, max_concurrency=1)
    (report,), (cleanup,) = [row.waiting_for for row in evaluation.rows]
    assert report != cleanup
    answered = evaluation.answer(True, tool=report)
    assert [row.outcome for row in answered.rows] == ["passed", "pending"]


# ---- rate


def test_a_refused_row_waits_as_the_service_asks_and_runs_again() -> None:
    refusal = Answer({"error": "slow down"}, 429, {"Retry-After": "0.01"})
    with Service() as service:
        service.say("/ask", *[refusal] * 8, *[{"content": "yes"}] * 6)
        agent = Agent(name="remote", model=HttpLlm(f"{service.url}/ask"))
        seen: list[Progress] = []
        evaluation = evaluate(agent, [{"message": f"q{n}", "answer": "yes"} for n in range(6)], on_progress=seen.append)
        assert [row.outcome for row in evaluation.rows] == ["passed"] * 6
        assert len(service.bodies("/ask")) == 14


def test_refusals_halve_the_rows_that_run_at_once_and_successes_raise_them_slowly() -> None:
    rate = Rate(64)
    for _ in range(40):
        rate.succeed()
    before = rate.limit
    rate.refuse(0.0)
    assert (before, rate.limit) == (48, 24)
    for _ in range(24):
        rate.succeed()
    assert rate.limit == 24 or rate.limit == 25
    rate.refuse(60.0)
    assert rate.limit == 0 and rate.wait_seconds > 0


class _Queue(BaseLlm):
    """A server that answers two requests, and lets those that were sent beside them run into their timeout."""

    model: str = "queue"
    timeouts: int
    """How many time out before it answers."""
    _sent: int = 0
    _open: int = 0
    _most: int = 0

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self._sent += 1
        self._open += 1
        try:
            if self._sent <= self.timeouts:
                await asyncio.sleep(0)
                raise ModelTimeoutError("model 'queue' did not answer in time; raise OpenAILlm(timeout=60)")
            self._most = max(self._most, self._open)
            for _ in range(20):
                await asyncio.sleep(0)
            yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text="yes")]))
        finally:
            self._open -= 1


def test_rows_that_time_out_are_asked_again_with_fewer_beside_them() -> None:
    server = _Queue(timeouts=8)
    cases = [{"message": f"q{number}", "answer": "yes"} for number in range(12)]
    evaluation = evaluate(Agent(name="slow", model=server), cases)
    assert [row.outcome for row in evaluation.rows] == ["passed"] * 12
    assert server._sent == 20 and server._most <= 6


def test_a_row_that_times_out_alone_is_not_asked_again() -> None:
    server = _Queue(timeouts=100)
    evaluation = evaluate(Agent(name="slow", model=server), [{"message": "q", "answer": "yes"}], max_concurrency=1)
    assert evaluation.rows[0].outcome == "error" and "did not answer in time" in evaluation.rows[0].error
    assert server._sent == 1


def test_a_server_of_this_machine_is_asked_two_rows_at_once() -> None:
    with Service() as service:
        service.say("/ask", {"content": "yes"})
        here, elsewhere = Batch(Agent(name="a", model=HttpLlm(f"{service.url}/ask"))), Batch(_priced())
        for batch in (here, elsewhere):
            assert [row.status for row in _rows(batch, _cases(1))] == ["done"]
        assert (here.progress.at_once, elsewhere.progress.at_once) == (2, 9)
    assert "at most 2 at once" in progress_text(here.progress)


# ---- stopping


def test_stop_lets_running_rows_end_and_starts_no_other() -> None:
    batch = Batch(_priced(), max_concurrency=2)

    async def stop_after(count: int) -> list[Row]:
        rows: list[Row] = []
        async for row in batch.run(_cases(20)):
            rows.append(row)
            if len(rows) == count:
                batch.stop()
        return rows

    rows = sync.run(stop_after(3))
    done = [row for row in rows if row.status == "done"]
    assert 3 <= len(done) <= 5
    assert len(rows) == 20 and rows[-1].status == "not run"


def test_cancelling_a_batch_leaves_no_row_half_done() -> None:
    service = InMemorySessionService()
    started = asyncio.Event()

    async def answer(callback_context: Any, llm_request: Any) -> LlmResponse:
        if "question 2" in str(llm_request.contents[-1].parts[-1].text) and not started.is_set():
            started.set()
            await asyncio.Event().wait()
        return LlmResponse(content=types.Content(role="model", parts=[types.Part(text="yes")]))

    def agent() -> Agent:
        return Agent(name="slow", model=PRICED, before_model_callback=answer)

    async def run() -> list[Row]:
        batch = Batch(agent(), session_service=service)
        return [row async for row in batch.run(_cases(4))]

    async def cancel_and_run_again() -> list[Row]:
        task = asyncio.create_task(run())
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await run()

    rows = sync.run(cancel_and_run_again())
    assert {row.status for row in rows} == {"done"}
    assert all(len([event for event in row.events if event.text == "yes"]) == 1 for row in rows)


def test_a_cancelled_evaluation_hands_over_what_is_done() -> None:
    kept: list[Evaluation] = []

    async def answer(callback_context: Any, llm_request: Any) -> LlmResponse:
        if llm_request.contents[-1].parts[-1].text == "question 2":
            await asyncio.Event().wait()
        return LlmResponse(content=types.Content(role="model", parts=[types.Part(text="yes")]))

    def is_stuck(progress: Progress) -> None:
        if progress.done == 2:
            task.cancel()

    async def run() -> None:
        nonlocal task
        agent = Agent(name="slow", model=PRICED, before_model_callback=answer)
        cases = [{"message": f"question {number}", "answer": "yes"} for number in range(4)]
        options: dict[str, Any] = {"max_concurrency": 1, "on_progress": is_stuck, "on_stop": kept.append}
        task = asyncio.create_task(aevaluate(agent, cases, **options))
        with pytest.raises(asyncio.CancelledError):
            await task

    task: asyncio.Task[Evaluation]
    sync.run(run())
    assert [row.outcome for row in kept[0].rows] == ["passed", "passed", "not run", "not run"]


def _charging(charged: list[str], started: asyncio.Event) -> Agent:
    async def charge(customer: str) -> str:
        """Charge a customer."""
        charged.append(customer)
        started.set()
        await asyncio.Event().wait()
        return "charged"

    return Agent(name="clerk", model=ScriptedLlm(call("charge", customer="c1"), "Done."), tools=[FunctionTool(charge)])


def test_a_call_that_was_cancelled_is_not_made_again_even_where_no_journal_is() -> None:
    charged: list[str] = []

    async def run() -> Row:
        started = asyncio.Event()
        batch = Batch(_charging(charged, started), session_service=InMemorySessionService())
        task = asyncio.create_task(anext(batch.run(_cases(1))))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await anext(batch.run(_cases(1)))

    row = sync.run(run())
    assert row.status == "error" and "charge" in row.error
    assert charged == ["c1"]


# ---- resuming

_KILLED = """
import os, sys
from adk_nb import Agent, types
from adk_nb.evaluation import evaluate
from adk_nb.models.llm_response import LlmResponse
from adk_nb.sessions import SqliteSessionService
from adk_nb.tools.function_tool import FunctionTool

folder = sys.argv[1]

def charge(customer: str) -> str:
    "Charge a customer."
    with open(f"{folder}/charged", "a") as file:
        file.write(customer + "\\n")
    if customer == sys.argv[2]:  # no variable: another value would be another tool
        os.kill(os.getpid(), 9)
    return "charged"

def answer(callback_context, llm_request):
    last = llm_request.contents[-1].parts[-1]
    if last.function_response:
        part = types.Part(text="Done.")
    else:
        part = types.Part(function_call=types.FunctionCall(name="charge", args={"customer": last.text}))
    return LlmResponse(content=types.Content(role="model", parts=[part]))

agent = Agent(name="clerk", model="gemini-2.5-flash", tools=[FunctionTool(charge)], before_model_callback=answer)
service = SqliteSessionService(f"{folder}/rows.db")
evaluation = evaluate(
    agent, [{"message": f"c{n}", "answer": "Done"} for n in range(8)], session_service=service, max_concurrency=1
)
print([row.outcome for row in evaluation.rows])
"""


@pytest.mark.slow
def test_a_killed_batch_resumes_without_repeating_a_call_with_an_effect(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _KILLED, str(tmp_path)]
    first = subprocess.run([*command, "c3"], capture_output=True, text=True, timeout=60)
    assert first.returncode == -signal.SIGKILL
    second = subprocess.run([*command, "nobody"], capture_output=True, text=True, timeout=60)
    charged = (tmp_path / "charged").read_text().split()
    assert charged == [f"c{n}" for n in range(8)], second.stderr
    outcomes = ["passed"] * 3 + ["pending"] + ["passed"] * 4  # whether c3 was charged, only a person can say
    assert second.stdout.strip() == str(outcomes), second.stderr


@pytest.mark.slow
def test_progress_is_reported_once_a_second_however_fast_the_rows_are() -> None:
    seen: list[Progress] = []
    started = time.monotonic()
    _rows(Batch(_priced(), on_progress=seen.append), _cases(400))
    assert 1 <= len(seen) <= time.monotonic() - started + 2
    assert seen[-1].done == 400
