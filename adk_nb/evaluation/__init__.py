"""Evaluate agents on cases, and answer tables with them."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(
    __name__,
    {
        "AgentEvaluator": "adk_nb.evaluation.agent_evaluator",
        "Case": "adk_nb.evaluation.cases",
        "CaseRun": "adk_nb.evaluation.case_run",
        "EvalCase": "adk_nb.evaluation.eval_case",
        "EvalSet": "adk_nb.evaluation.eval_set",
        "Evaluation": "adk_nb.evaluation.evaluation",
        "aagent_map": "adk_nb.evaluation.mapping",
        "aevaluate": "adk_nb.evaluation.evaluation",
        "agent_map": "adk_nb.evaluation.mapping",
        "evaluate": "adk_nb.evaluation.evaluation",
        "judge": "adk_nb.evaluation.judges",
        "metric": "adk_nb.evaluation.metrics",
    },
)
