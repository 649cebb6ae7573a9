"""A workflow that could not be run is refused when it is built, with what to write instead."""

from collections import Counter
from collections.abc import Collection, Iterator
from typing import NoReturn

from adk_nb.errors import ConfigurationError, closest
from adk_nb.expression import Expression
from adk_nb.graph_compose.configs import (
    AgentConfig,
    AgentToolConfig,
    HttpConfig,
    HttpToolConfig,
    LlmAgentConfig,
    LoopAgentConfig,
    ParallelAgentConfig,
    SequentialAgentConfig,
    ToolConfig,
    WorkflowConfig,
)
from adk_nb.models.connections import check_url
from adk_nb.models.http_template import check_template
from adk_nb.runtime.approvals import RESERVED
from adk_nb.tools.transfer_to_agent_tool import NAME as TRANSFER

Container = SequentialAgentConfig | ParallelAgentConfig | LoopAgentConfig


def check(workflow: WorkflowConfig) -> None:
    """Look at all of it.

    Raises:
        ConfigurationError: It has no root, or names what is not there, or goes round in a circle; or
            an agent's own record is wrong.
    """
    _Check(workflow).all()


def inside(agent: AgentConfig) -> Iterator[LlmAgentConfig]:
    """The agents that are written out in one, in depth."""
    for one in agent.sub_agents if isinstance(agent, LlmAgentConfig) else ():
        yield one
        yield from inside(one)


class _Check:
    def __init__(self, workflow: WorkflowConfig) -> None:
        self._workflow = workflow
        self._agents = {agent.id: agent for agent in workflow.agents}
        self._tools = {tool.id: tool for tool in workflow.global_tools}
        self._sound: set[str] = set()
        """Ids of agents from which no circle begins."""

    def all(self) -> None:
        workflow = self._workflow
        self._unique("agents", [one.id for agent in workflow.agents for one in (agent, *inside(agent))])
        self._unique("tools", [tool.id for tool in workflow.global_tools])
        if not workflow.root_agent_id:
            self._refuse("it has no root agent; write .root_agent('...'), in JSON rootAgentId: one of its agents")
        self._known(workflow.root_agent_id, "its root agent")
        for tool in workflow.global_tools:
            self._tool(tool)
        for agent in workflow.agents:
            for one in (agent, *inside(agent)):
                self._agent(one)
        self._no_circle(workflow.root_agent_id, ())

    def _tool(self, tool: ToolConfig) -> None:
        what = f"tool {tool.id!r}"
        if tool.id == TRANSFER or tool.id.startswith(RESERVED):
            self._refuse(f"{what} has a name that the engine has given away; give it another id")
        if isinstance(tool, AgentToolConfig):
            self._known(tool.target_agent_id, what)
        if isinstance(tool, HttpToolConfig):
            self._http(tool.http_config, what)
            if tool.parameters is not None and tool.parameters.get("type", "object") != "object":
                self._refuse(
                    f"parameters of {what} is a JSON schema, {{'type': 'object', 'properties': {{...}}}}, and not "
                    f"{tool.parameters!r:.80}"
                )

    def _http(self, http: HttpConfig, of: str) -> None:
        what = f"workflow {self._workflow.name!r}: {of}"
        check_url(http.url, what)
        check_template([http.url, http.headers, http.body], what)

    def _agent(self, agent: AgentConfig) -> None:
        if isinstance(agent, LlmAgentConfig):
            self._llm_agent(agent)
        if isinstance(agent, LoopAgentConfig) and agent.loop_exit_condition is not None:
            try:
                Expression(agent.loop_exit_condition, ("session_state",))
            except ConfigurationError as error:
                self._refuse(f"loopExitCondition of agent {agent.id!r}: {error}")
        if isinstance(agent, Container):
            for reference in agent.sub_agents:
                self._known(reference.agent_id, f"agent {agent.id!r}")

    def _llm_agent(self, agent: LlmAgentConfig) -> None:
        if (agent.http_config is None) == (agent.model is None):
            self._refuse(
                f"agent {agent.id!r} needs a service; write httpConfig={{'url': 'https://...', 'method': 'POST'}}, "
                "or model=... for a local model, one of the two"
            )
        if agent.http_config:
            self._http(agent.http_config, f"agent {agent.id!r}")
        for name in agent.tools:
            if name not in self._tools:
                self._missing("tool", name, f"agent {agent.id!r}", self._tools, ".http_tool(create_http_tool(id=")

    def _known(self, name: str, by: str) -> None:
        if name not in self._agents:
            self._missing("agent", name, by, self._agents, ".agent(create_llm_agent(id=")

    def _missing(self, kind: str, name: str, by: str, known: Collection[str], add: str) -> NoReturn:
        near = closest(name, known)
        there = f"there is: {', '.join(known)}; or " if known else ""
        meant = f"did you mean {near!r}?" if near else f"{there}add {add}{name!r}, ...))"
        self._refuse(f"{by} names {kind} {name!r}, which is not there; {meant}")

    def _unique(self, kind: str, ids: list[str]) -> None:
        twice = [name for name, times in Counter(ids).items() if times > 1]
        if twice:
            self._refuse(f"two {kind} have the id {twice[0]!r}; give one of them another")

    def _no_circle(self, name: str, way: tuple[str, ...]) -> None:
        if name in way:
            circle = " -> ".join([*way[way.index(name) :], name])
            self._refuse(f"its agents go round in a circle: {circle}; take one of these out")
        if name in self._sound:
            return
        for further in self._leads_to(self._agents[name]):
            self._no_circle(further, (*way, name))
        self._sound.add(name)

    def _leads_to(self, agent: AgentConfig) -> Iterator[str]:
        if isinstance(agent, Container):
            yield from (reference.agent_id for reference in agent.sub_agents)
        for one in (agent, *inside(agent)):
            for name in one.tools if isinstance(one, LlmAgentConfig) else ():
                if isinstance(tool := self._tools[name], AgentToolConfig):
                    yield tool.target_agent_id

    def _refuse(self, why: str) -> NoReturn:
        raise ConfigurationError(f"workflow {self._workflow.name!r}: {why}")
