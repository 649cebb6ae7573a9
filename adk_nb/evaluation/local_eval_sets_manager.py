"""Reading eval sets, under google-adk's path."""

from adk_nb.evaluation.eval_set import EvalSet, read_eval_set


def load_eval_set_from_file(eval_set_file_path: str, eval_set_id: str) -> EvalSet:
    """`read_eval_set`. `eval_set_id` has no effect: an eval set of the older format is named after its file."""
    return read_eval_set(eval_set_file_path)
