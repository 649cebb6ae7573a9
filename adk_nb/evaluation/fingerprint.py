"""A hash of everything in an agent that its answers depend on: a row that was done with another one runs again."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Protocol, cast, runtime_checkable

from pydantic import BaseModel, TypeAdapter

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.agents.version import version_of
from adk_nb.models.base_llm import BaseLlm
from adk_nb.tools.fingerprint import code_fingerprint

_ELSEWHERE = {"parent_agent", "sub_agents", "tools", "instruction"}
"""Fields that `version_of` covers, or that lead to other agents."""
_PLAIN = (type(None), bool, int, float, str, bytes)


@runtime_checkable
class UsesVariables(Protocol):
    """An agent whose instruction is filled with values that are not its own, such as a notebook's variables."""

    def variables_now(self) -> Mapping[str, Any]:
        """The values by name."""
        ...


def agent_fingerprint(root: BaseAgent) -> str:
    """Hash of the agents below `root` with their tools, callbacks, schemas, settings and variables."""
    agents, parts = [root], list[str]()
    while agents:
        agent = agents.pop()
        agents += agent.sub_agents
        if isinstance(agent, LlmAgent):
            # A notebook's agent looks its tools up here: `version_of` sees those of now.
            parts += [
                f"{tool.name}: {_token(getattr(tool, 'require_confirmation', False))}" for tool in agent.tools_now()
            ]
        if isinstance(agent, UsesVariables):
            parts += [f"{agent.name}:{name}={value!r}" for name, value in agent.variables_now().items()]
        names = [name for name in type(agent).model_fields if name not in _ELSEWHERE]
        parts += [f"{agent.name}.{name}={_token(getattr(agent, name))}" for name in names]
    parts.append(version_of(root))
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()


def _token(value: Any) -> str:
    if isinstance(value, _PLAIN):
        return repr(value)
    # Not its settings: a key or a timeout changes no answer.
    if isinstance(value, BaseLlm):
        return f"{type(value).__qualname__} {value.model}"
    if isinstance(value, type):
        return json.dumps(TypeAdapter(cast(Any, value)).json_schema(), sort_keys=True, default=str)
    if isinstance(value, BaseModel):
        return value.model_dump_json(exclude_none=True, fallback=lambda other: type(other).__qualname__)
    if isinstance(value, list | tuple):
        return " ".join(map(_token, cast(list[Any], value)))
    if isinstance(value, Mapping):
        return json.dumps(dict(cast(Mapping[str, Any], value)), sort_keys=True, default=_token)
    return code_fingerprint(value) if callable(value) else type(value).__qualname__
