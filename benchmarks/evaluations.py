"""An evaluation of n cases, a metric each: adk_nb's engine, google-adk's LocalEvalService and pydantic-evals.

Each row has a session of its own, and a model that answers at once with the question.
"""
# pyright: basic
# google-adk is imported by name, in its own environment.

import gc
import resource
import time
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any

Figures = dict[str, float]
WARM_UP = 20


async def evaluation(peer: str, n: int) -> Figures:
    """A row of an evaluation of n cases."""
    return await (_google_adk(n) if peer == "google-adk" else _adk_nb(n))


def echo(package: str) -> Any:
    """An agent of `package` that answers with the question."""
    types = import_module("google.genai.types" if package == "google.adk" else f"{package}.types")
    models = import_module(f"{package}.models")

    class Echo(models.BaseLlm):
        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
            text = llm_request.contents[-1].parts[-1].text
            yield models.LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]))

    return import_module(f"{package}.agents").LlmAgent(name="echo", model=Echo(model="echo"))


async def _adk_nb(n: int) -> Figures:
    from adk_nb.evaluation import aevaluate  # noqa: PLC0415  # the other peer's environment does not have it

    agent = echo("adk_nb")

    cases = [{"message": f"question {number}", "answer": f"equals question {number}"} for number in range(n)]

    async def run(count: int) -> None:
        result = await aevaluate(agent, cases[:count])
        assert result.score == 1.0

    await run(WARM_UP)
    gc.collect()
    earlier_peak_mb = _peak_mb()
    wall_us = await _timed(lambda: run(n)) / n * 1e6
    grown_mb = _peak_mb() - earlier_peak_mb
    turn_us, pydantic_us = await _turns(agent, n), await _pydantic_evals(agent, min(n, 1_000))
    return {
        "wall_us": wall_us,
        "grown_mb": grown_mb,
        "of_turn": wall_us / turn_us,
        "of_pydantic_evals": wall_us / pydantic_us,
    }


async def _turns(agent: Any, n: int) -> float:
    """Microseconds of a plain turn in a new session, in the same kind of store."""
    from adk_nb.evaluation.temporary_rows import default_service  # noqa: PLC0415  # as above

    ask = _asker(agent, default_service(n))

    async def run() -> None:
        for number in range(n):
            await ask(f"question {number}")

    await ask("question")
    return await _timed(run) / n * 1e6


async def _pydantic_evals(agent: Any, n: int) -> float:
    """Microseconds of a case, whose task is a turn of the same agent in a new session."""
    from pydantic_evals import Case, Dataset  # noqa: PLC0415  # only needed here
    from pydantic_evals.evaluators import EqualsExpected  # noqa: PLC0415

    async def run(count: int) -> None:
        names = [f"question {number}" for number in range(count)]
        cases = [Case(name=name, inputs=name, expected_output=name) for name in names]
        report = await Dataset(name="bench", cases=cases, evaluators=[EqualsExpected()]).evaluate(
            _asker(agent), progress=False
        )
        assert report.averages().assertions == 1.0

    await run(WARM_UP)
    return await _timed(lambda: run(n)) / n * 1e6


def _asker(agent: Any, service: Any = None) -> Callable[[str], Awaitable[str]]:
    """A task that asks the agent in a new session. `service`: None for memory."""
    from adk_nb import Runner, types  # noqa: PLC0415  # as above
    from adk_nb.sessions import InMemorySessionService  # noqa: PLC0415

    runner = Runner(app_name="bench", agent=agent, session_service=service or InMemorySessionService())

    async def ask(text: str) -> str:
        session = await runner.session_service.create_session(app_name=runner.app_name, user_id="u")
        content, answer = types.Content(role="user", parts=[types.Part(text=text)]), ""
        async for event in runner.run_async(user_id="u", session_id=session.id, new_message=content):
            answer = event.text
        return answer

    return ask


async def _google_adk(n: int) -> Figures:
    get = lambda module: import_module(f"google.adk.evaluation.{module}")  # noqa: E731
    service_module, case_module, metrics = get("base_eval_service"), get("eval_case"), get("eval_metrics")
    types = import_module("google.genai.types")
    criterion = metrics.BaseCriterion(threshold=0.8)
    metric = metrics.EvalMetric(metric_name="response_match_score", threshold=0.8, criterion=criterion)

    def case(number: int) -> Any:
        text = [types.Part(text=f"question {number}")]
        user, model = types.Content(role="user", parts=text), types.Content(role="model", parts=text)
        return case_module.EvalCase(
            eval_id=f"case{number}", conversation=[case_module.Invocation(user_content=user, final_response=model)]
        )

    async def run(count: int) -> None:
        manager = get("in_memory_eval_sets_manager").InMemoryEvalSetsManager()
        manager.create_eval_set("bench", "set")
        for number in range(count):
            manager.add_eval_case("bench", "set", case(number))
        service = get("local_eval_service").LocalEvalService(root_agent=echo("google.adk"), eval_sets_manager=manager)
        request = service_module.InferenceRequest(
            app_name="bench", eval_set_id="set", inference_config=service_module.InferenceConfig()
        )
        inferences = [result async for result in service.perform_inference(request)]
        request = service_module.EvaluateRequest(
            inference_results=inferences, evaluate_config=service_module.EvaluateConfig(eval_metrics=[metric])
        )
        statuses = [result.final_eval_status.name async for result in service.evaluate(request)]
        assert statuses == ["PASSED"] * count

    await run(WARM_UP)
    return {"wall_us": await _timed(lambda: run(n)) / n * 1e6}


async def _timed(run: Callable[[], Awaitable[None]]) -> float:
    gc.collect()
    started = time.perf_counter()
    await run()
    return time.perf_counter() - started


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
