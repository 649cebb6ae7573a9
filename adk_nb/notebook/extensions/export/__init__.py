"""Export of agents as a Python package: %export."""
