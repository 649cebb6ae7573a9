"""google-adk's eval service: run the cases of an eval set, then score the runs."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar

from adk_nb import clock, types
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.apps.app import App
from adk_nb.artifacts.base_artifact_service import BaseArtifactService
from adk_nb.artifacts.in_memory_artifact_service import InMemoryArtifactService
from adk_nb.errors import InputError, NotFoundError
from adk_nb.evaluation.agent_evaluator import metric_of
from adk_nb.evaluation.base_eval_service import (
    BaseEvalService,
    EvaluateRequest,
    InferenceRequest,
    InferenceResult,
    InferenceStatus,
)
from adk_nb.evaluation.case_run import CaseRun, invocations_of
from adk_nb.evaluation.cases import Case, case_of_eval_case
from adk_nb.evaluation.eval_case import EvalCase, IntermediateData, Invocation
from adk_nb.evaluation.eval_metrics import EvalMetric, EvalMetricResult, EvalStatus, PrebuiltMetrics
from adk_nb.evaluation.eval_result import EvalCaseResult, EvalMetricResultPerInvocation
from adk_nb.evaluation.eval_set_results_manager import EvalSetResultsManager
from adk_nb.evaluation.eval_sets_manager import EvalSetsManager
from adk_nb.evaluation.metrics import Metric, Score
from adk_nb.events.event import Event
from adk_nb.memory.base_memory_service import BaseMemoryService
from adk_nb.runners import Runner
from adk_nb.runtime.run_config import RunConfig
from adk_nb.sessions.base_session_service import BaseSessionService
from adk_nb.sessions.in_memory_session_service import InMemorySessionService

EVAL_SESSION_ID_PREFIX = "adk-eval-session-"
_USER = "test_user_id"
"""The owner of a session whose case names none. Source: google-adk 2.13."""
_OF_ONE_TURN = (PrebuiltMetrics.TOOL_TRAJECTORY_AVG_SCORE.value, PrebuiltMetrics.RESPONSE_MATCH_SCORE.value)
"""Metrics that have a value for each turn."""
T = TypeVar("T")


def _new_session_id() -> str:
    return f"{EVAL_SESSION_ID_PREFIX}{clock.new_id()}"


class LocalEvalService(BaseEvalService):
    """Runs cases in this process, and scores the runs with the metrics of `evaluate`.

    Args:
        root_agent: The agent.
        eval_sets_manager: Has the eval sets.
        session_service: Gets the sessions of the runs. None: memory.
        artifact_service: Gets their files. None: memory.
        eval_set_results_manager: Gets the results of each call of `evaluate`. None: nobody does.
        session_id_supplier: Makes the id of a session, unless its case has one.
        memory_service: The agent's memories.
        app: Runs the agent with its plugins.
    """

    def __init__(
        self,
        root_agent: BaseAgent,
        eval_sets_manager: EvalSetsManager,
        *,
        session_service: BaseSessionService | None = None,
        artifact_service: BaseArtifactService | None = None,
        eval_set_results_manager: EvalSetResultsManager | None = None,
        session_id_supplier: Callable[[], str] = _new_session_id,
        memory_service: BaseMemoryService | None = None,
        app: App | None = None,
    ) -> None:
        self._agent, self._app = root_agent, app
        self._sets, self._results = eval_sets_manager, eval_set_results_manager
        self._sessions = session_service or InMemorySessionService()
        self._artifacts = artifact_service or InMemoryArtifactService()
        self._memory = memory_service
        self._new_id = session_id_supplier

    async def perform_inference(self, inference_request: InferenceRequest) -> AsyncGenerator[InferenceResult, None]:
        """Run cases, each in a session of its own; yield each run as it ends. A run that fails is a result, too.

        Raises:
            NotFoundError: There is no such eval set or case.
        """
        app_name, set_id = inference_request.app_name, inference_request.eval_set_id
        eval_set = self._sets.get_eval_set(app_name, set_id)
        if eval_set is None:
            raise NotFoundError("eval set", set_id)
        by_id = {case.eval_id: case for case in eval_set.eval_cases}
        wanted = inference_request.eval_case_ids or list(by_id)
        if missing := [name for name in wanted if name not in by_id]:
            raise NotFoundError(f"case of eval set {set_id!r}", missing[0], by_id)
        config = RunConfig(labels=inference_request.inference_config.labels)
        runs = [self._run(app_name, set_id, by_id[name], config) for name in wanted]
        async for result in _as_done(runs, inference_request.inference_config.parallelism):
            yield result

    async def _run(self, app_name: str, set_id: str, eval_case: EvalCase, config: RunConfig) -> InferenceResult:
        given = eval_case.session_input
        session_id = (given and given.session_id) or self._new_id()
        result = InferenceResult(
            app_name=app_name, eval_set_id=set_id, eval_case_id=eval_case.eval_id, session_id=session_id
        )
        runner = Runner(
            app=self._app,
            app_name=app_name,
            agent=None if self._app else self._agent,
            session_service=self._sessions,
            artifact_service=self._artifacts,
            memory_service=self._memory,
        )
        key: dict[str, Any] = {"user_id": _user_of(eval_case), "session_id": session_id}
        events: list[Event] = []
        try:
            await self._sessions.create_session(app_name=app_name, **key, state=dict(given.state) if given else None)
            for message in case_of_eval_case(eval_case).contents():
                run = runner.run_async(**key, new_message=message, run_config=config, yield_user_message=True)
                events += [event async for event in run]
        except Exception as error:  # of the agent: the other cases go on
            result.status, result.error_message = InferenceStatus.FAILURE, f"{type(error).__name__}: {error}"
            return result
        result.status, result.inferences = InferenceStatus.SUCCESS, invocations_of(events)
        return result

    async def evaluate(self, evaluate_request: EvaluateRequest) -> AsyncGenerator[EvalCaseResult, None]:
        """Score runs; yield the result of each as it is known. All of them go to the results manager at the end.

        Raises:
            NotFoundError: There is no such case.
            InputError: A metric is not computed here, or a run has another number of turns than its case.
        """
        config = evaluate_request.evaluate_config
        metrics = [(entry, metric_of(entry)) for entry in config.eval_metrics]
        by_set: dict[tuple[str, str], list[EvalCaseResult]] = {}

        async def scored(inference: InferenceResult) -> tuple[InferenceResult, EvalCaseResult]:
            return inference, await self._scored(inference, metrics)

        runs = [scored(inference) for inference in evaluate_request.inference_results]
        async for inference, result in _as_done(runs, config.parallelism):
            by_set.setdefault((inference.app_name, inference.eval_set_id), []).append(result)
            yield result
        if self._results:
            for (app_name, set_id), results in by_set.items():
                self._results.save_eval_set_result(app_name, set_id, results)

    async def _scored(self, inference: InferenceResult, metrics: Sequence[tuple[EvalMetric, Metric]]) -> EvalCaseResult:
        eval_case = self._sets.get_eval_case(inference.app_name, inference.eval_set_id, inference.eval_case_id)
        if eval_case is None:
            raise NotFoundError(f"case of eval set {inference.eval_set_id!r}", inference.eval_case_id)
        user_id, session = _user_of(eval_case), None
        if inference.session_id is not None:
            session = await self._sessions.get_session(
                app_name=inference.app_name, user_id=user_id, session_id=inference.session_id
            )
        result = EvalCaseResult(
            eval_set_id=inference.eval_set_id,
            eval_id=inference.eval_case_id,
            final_eval_status=EvalStatus.FAILED,
            overall_eval_metric_results=[],
            eval_metric_result_per_invocation=[],
            session_id=inference.session_id or "",
            session_details=session,
            user_id=user_id,
        )
        turns = inference.inferences
        if turns is None or inference.status is InferenceStatus.FAILURE:
            return result
        case = case_of_eval_case(eval_case)
        if len(turns) != len(case.reference):
            raise InputError(f"case {case.id!r} has {len(case.reference)} turns, and its run has {len(turns)}")
        state = dict(session.state) if session else {}
        pairs = list(zip(turns, case.reference, strict=True))
        result.eval_metric_result_per_invocation = [
            EvalMetricResultPerInvocation(actual_invocation=turn, expected_invocation=expected)
            for turn, expected in pairs
        ]
        whole = CaseRun(case, session.events if session else _events_of(turns), state, seconds=0.0)
        for entry, metric in metrics:
            result.overall_eval_metric_results.append(await _measured(entry, metric, whole))
            for row, (turn, expected) in zip(result.eval_metric_result_per_invocation, pairs, strict=True):
                single = CaseRun(_single(case, expected), _events_of([turn]), state, seconds=0.0)
                measured = entry.metric_name in _OF_ONE_TURN
                row.eval_metric_results.append(await _measured(entry, metric if measured else None, single))
        result.final_eval_status = _final(result.overall_eval_metric_results)
        return result


def _events_of(turns: Iterable[Invocation]) -> list[Event]:
    """The events of turns in google-adk's form, as metrics read them."""
    events: list[Event] = []
    for number, turn in enumerate(turns):
        key = turn.invocation_id or f"turn {number}"
        events.append(Event(author="user", invocation_id=key, content=turn.user_content))
        data = turn.intermediate_data
        if isinstance(data, IntermediateData):
            if calls := [types.Part(function_call=call) for call in data.tool_uses]:
                content = types.Content(role="model", parts=calls)
                events.append(Event(author="agent", invocation_id=key, content=content))
        elif data:
            events += [
                Event(
                    author=step.author,
                    invocation_id=key,
                    content=step.content,
                    usage_metadata=step.usage_metadata,
                    model_version=step.model_version,
                )
                for step in data.invocation_events
            ]
        if turn.final_response:
            events.append(Event(author="agent", invocation_id=key, content=turn.final_response))
    return events


async def _as_done(runs: Sequence[Awaitable[T]], parallelism: int) -> AsyncGenerator[T, None]:
    """The results in the order in which they come; an error or the end of the reader cancels the others."""
    room = asyncio.Semaphore(parallelism)

    async def in_its_turn(run: Awaitable[T]) -> T:
        async with room:
            return await run

    tasks = [asyncio.ensure_future(in_its_turn(run)) for run in runs]
    try:
        for task in asyncio.as_completed(tasks):
            yield await task
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _measured(entry: EvalMetric, metric: Metric | None, run: CaseRun) -> EvalMetricResult:
    """The result of a metric on a run. None: it has no value for this."""
    score = Score(metric=entry.metric_name, verdict="not evaluated")
    if metric and metric.applies_to(run.case):
        score = await metric.score(run)
    return EvalMetricResult(
        metric_name=entry.metric_name,
        threshold=entry.threshold,
        criterion=entry.criterion,
        custom_function_path=entry.custom_function_path,
        score=score.value,
        eval_status=EvalStatus[score.verdict.upper().replace(" ", "_")],
    )


def _final(results: Iterable[EvalMetricResult]) -> EvalStatus:
    statuses = {result.eval_status for result in results}
    order = (EvalStatus.FAILED, EvalStatus.PASSED)
    return next((status for status in order if status in statuses), EvalStatus.NOT_EVALUATED)


def _single(case: Case, expected: Invocation) -> Case:
    """A case of one turn."""
    return Case(id=case.id, messages=(expected.user_content,), reference=(expected,), rubrics=case.rubrics)


def _user_of(eval_case: EvalCase) -> str:
    return (eval_case.session_input and eval_case.session_input.user_id) or _USER
