"""Rubrics, under google-adk's path."""

from adk_nb.evaluation.eval_case import Rubric, RubricContent

__all__ = ["Rubric", "RubricContent"]
