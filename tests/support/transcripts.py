"""The lines of a transcript, as `told`, `sent` and the quotes of other agents write them."""

import json
from typing import Any


def call_line(tool: str, /, **args: Any) -> str:
    """A call of a tool."""
    return f"calls {tool}({args})"


def result_line(**result: Any) -> str:
    """The result of a call."""
    return f"answers {result}"


def quoted_call(agent: str, args: dict[str, Any], tool: str = "f") -> str:
    """A call of another agent, quoted; the fence is written as <...>."""
    return f"[{agent}] called tool `{tool}` with parameters: <{json.dumps(args, separators=(',', ':'))}>"


def quoted_result(agent: str, result: dict[str, Any], tool: str = "f") -> str:
    """The result of another agent's call, quoted."""
    return f"[{agent}] `{tool}` tool returned result: <{json.dumps(result, separators=(',', ':'))}>"


def quoted_text(agent: str, text: str, verb: str = "said") -> str:
    """A text of another agent, quoted."""
    return f"[{agent}] {verb}: <{text}>"
