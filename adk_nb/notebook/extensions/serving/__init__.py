"""Serving agents to others: %serve."""
