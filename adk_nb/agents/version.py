"""What agents and their tools are, in a short text: a run that goes on after they were edited is known by it."""

import hashlib
from typing import Any
from weakref import WeakKeyDictionary

from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.fingerprint import code_fingerprint, fingerprint

_known: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
"""Of tools: one is not edited in place."""


def version_of(root: Any) -> str:
    """Of a tree of agents: kinds, names, instructions, models and tools. What toolsets offer is no part of it, nor are
    the nodes of graphs.
    """
    said: list[str] = []
    agents = [root]
    while agents:
        one = agents.pop()
        instruction, model = getattr(one, "instruction", ""), getattr(one, "model", "")
        said += [type(one).__qualname__, one.name, model if isinstance(model, str) else type(model).__qualname__]
        said.append(instruction if isinstance(instruction, str) else code_fingerprint(instruction))
        said += [_of_tool(tool) for tool in getattr(one, "tools", None) or ()]
        agents += getattr(one, "sub_agents", None) or ()
    return hashlib.sha256("\0".join(said).encode()).hexdigest()[:32]


def _of_tool(tool: Any) -> str:
    try:
        if tool not in _known:
            _known[tool] = _of_one(tool)
        return _known[tool]
    except TypeError:  # it has no hash, or cannot be referred to weakly
        return _of_one(tool)


def _of_one(tool: Any) -> str:
    if isinstance(tool, BaseTool):
        return fingerprint(tool)
    return code_fingerprint(tool) if callable(tool) else type(tool).__qualname__
