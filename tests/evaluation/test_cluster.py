"""Rows run on a Dask cluster, and a lost worker loses and repeats nothing."""

import os
import signal
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from adk_nb import Agent, types
from adk_nb.errors import InputError
from adk_nb.evaluation import agent_map, evaluate
from adk_nb.models.llm_response import LlmResponse
from adk_nb.sessions import DatabaseSessionService, InMemorySessionService
from adk_nb.tools.function_tool import FunctionTool
from tests.sessions.postgres import Postgres
from tests.support.late import late

distributed = late("distributed")
pytestmark = pytest.mark.skipif(not find_spec("distributed"), reason="distributed is not installed")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A scheduler and two workers, each a process of its own."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address="127.0.0.1:0"
    ) as cluster:
        yield cluster


def _clerk(folder: Path) -> Agent:
    """Charges each customer once; `c3` kills its worker after the charge, the first time."""
    charged, killed = str(folder / "charged"), str(folder / "killed")

    def charge(customer: str) -> str:
        """Charge a customer."""
        with open(charged, "a") as file:
            file.write(f"{customer}\n")
        if customer == "c3" and not os.path.exists(killed):
            open(killed, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return "charged"

    def answer(callback_context: Any, llm_request: Any) -> LlmResponse:
        last = llm_request.contents[-1].parts[-1]
        if last.function_response:
            part = types.Part(text="Done.")
        else:
            part = types.Part(function_call=types.FunctionCall(name="charge", args={"customer": last.text}))
        return LlmResponse(content=types.Content(role="model", parts=[part]))

    return Agent(name="clerk", model="gemini-2.5-flash", tools=[FunctionTool(charge)], before_model_callback=answer)


@pytest.mark.slow
@pytest.mark.postgres
def test_a_killed_worker_loses_no_row_and_repeats_no_call(cluster: Any, postgres: Postgres, tmp_path: Path) -> None:
    cases = [{"message": f"c{number}", "answer": "Done", "calls": "charge"} for number in range(120)]
    service = DatabaseSessionService(postgres.url())
    evaluation = evaluate(
        _clerk(tmp_path), cases, session_service=service, scheduler=cluster.scheduler_address, max_concurrency=1
    )
    outcomes = {row.case.question: row.outcome for row in evaluation.rows}
    assert (tmp_path / "killed").exists()
    assert outcomes.pop("c3") == "pending"  # whether c3 was charged, only a person can say
    assert set(outcomes.values()) == {"passed"} and len(outcomes) == 119
    charged = (tmp_path / "charged").read_text().split()
    assert sorted(charged) == sorted(f"c{number}" for number in range(120))


@pytest.mark.slow
@pytest.mark.postgres
def test_a_table_is_answered_on_a_cluster(cluster: Any, postgres: Postgres, tmp_path: Path) -> None:
    rows = [{"customer": f"d{number}"} for number in range(60)]
    table = agent_map(
        _clerk(tmp_path),
        rows,
        message="{{customer}}",
        session_service=DatabaseSessionService(postgres.url()),
        scheduler=cluster.scheduler_address,
    )
    assert {row["answer"] for row in table} == {"Done."} and len(table) == 60


@pytest.mark.slow
@pytest.mark.postgres
def test_a_budget_holds_on_a_cluster(cluster: Any, postgres: Postgres) -> None:
    def answer(callback_context: Any, llm_request: Any) -> LlmResponse:
        usage = types.GenerateContentResponseUsageMetadata(candidates_token_count=1_000, total_token_count=1_000)
        content = types.Content(role="model", parts=[types.Part(text="yes")])
        return LlmResponse(content=content, usage_metadata=usage, model_version="gemini-2.5-flash")

    agent = Agent(name="priced", model="gemini-2.5-flash", before_model_callback=answer)  # $0.0025 an answer
    evaluation = evaluate(
        agent,
        [f"question {number}" for number in range(20)],
        budget_usd=0.0101,
        session_service=DatabaseSessionService(postgres.url()),
        scheduler=cluster.scheduler_address,
    )
    assert [row.outcome for row in evaluation.rows].count("not run") == 16
    assert evaluation.progress.is_over and evaluation.progress.cost_usd == pytest.approx(0.01)


def test_a_cluster_needs_a_database(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"InMemorySessionService"):
        evaluate(_clerk(tmp_path), ["c1"], session_service=InMemorySessionService(), scheduler="tcp://127.0.0.1:9")


@pytest.mark.slow
def test_a_cluster_that_is_not_there_is_named(tmp_path: Path) -> None:
    service = DatabaseSessionService(f"sqlite:///{tmp_path}/rows.db")
    with pytest.raises(InputError, match=r"tcp://127\.0\.0\.1:9"):
        evaluate(_clerk(tmp_path), ["c1"], session_service=service, scheduler="tcp://127.0.0.1:9")
