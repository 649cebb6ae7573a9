"""The history an agent sees of its session."""
