"""Evaluations and batches: %%eval and %map."""
