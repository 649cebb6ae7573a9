"""ADK's path to the base of an eval set's records."""

from adk_nb.evaluation.eval_case import EvalBaseModel

__all__ = ["EvalBaseModel"]
