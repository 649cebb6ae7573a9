"""A hash of everything in an agent that its answers depend on: a row that was done with another one runs again."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Protocol, cast, runtime_checkable

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.agents.tree import agents_below, version_of
from adk_nb.apps.app import App
from adk_nb.errors import AdkNbError
from adk_nb.tools.fingerprint import fingerprint, whole_fingerprint

_ELSEWHERE = {"parent_agent", "sub_agents", "tools", "model"}
"""Fields that are covered apart, or that lead to other agents."""
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


@runtime_checkable
class UsesVariables(Protocol):
    """An agent whose instruction is filled with values that are not its own, such as a notebook's variables."""

    def variables_now(self) -> Mapping[str, Any]:
        """The values by name."""
        ...


def agent_fingerprint(root: BaseAgent | App) -> str:
    """Hash of an agent, or the agent and the plugins of an app, and of all that they reach: the agents that it has and
    calls, or that a function finds by name, with their tools, callbacks, models, planners, schemas, settings, skills
    and variables.
    """
    plugins = list(root.plugins) if isinstance(root, App) else []
    agent = root.root_agent if isinstance(root, App) else root
    return whole_fingerprint([agent, plugins], _parts_of)


def _parts_of(agent: Any) -> Iterator[Any]:
    yield from (version_of(agent), cast(Any, type(agent)))
    yield from (below for below in agents_below(agent) if below is not agent)
    if isinstance(agent, UsesVariables):
        # Other values than text and numbers enter an instruction as their text.
        for name, value in sorted(agent.variables_now().items()):
            yield from (name, value, _ADDRESS.sub("", repr(value)))
    for name in sorted(set(getattr(cast(Any, type(agent)), "model_fields", ())) - _ELSEWHERE):
        yield from (name, getattr(agent, name))
    if isinstance(agent, LlmAgent):
        with suppress(AdkNbError):  # no model is set: a turn says so
            yield agent.canonical_model
        # A notebook's agent looks its tools up here.
        for tool in agent.tools_now():
            yield from (fingerprint(tool), tool)
        yield from agent.toolsets
