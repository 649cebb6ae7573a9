"""Fences: words of others, or for one reader only, between marks that those words cannot write themselves."""

import re

QUOTED = "QUOTED_AGENT_CONTENT"
"""What another agent said or did."""
INSTRUCTION = "SYSTEM_INSTRUCTION"
"""What an agent is told, where it cannot stand in the system instruction."""
_MARK = re.compile(rf"<<<(?=\s*(?:BEGIN|END)_(?:{QUOTED}|{INSTRUCTION})\s*>>>)", re.IGNORECASE)


def marks(kind: str) -> tuple[str, str]:
    """How a fence of that kind begins and ends. Source of the marks: google-adk 2.13."""
    return f"<<<BEGIN_{kind}>>>", f"<<<END_{kind}>>>"


def fenced(kind: str, words: str) -> str:
    """`words` between the marks of that kind, each on a line of its own; what looks like a mark in them is broken."""
    begin, end = marks(kind)
    return f"{begin}\n{without_marks(words)}\n{end}"


def without_marks(words: str) -> str:
    """`words`, with a blank in all that looks like a mark of any kind."""
    return _MARK.sub("<< <", words)
