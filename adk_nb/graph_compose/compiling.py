"""Compile a workflow: validate it, and make an app of agents."""

import keyword
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NoReturn

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.apps.app import App
from adk_nb.errors import ConfigurationError, closest
from adk_nb.expression import Expression
from adk_nb.graph_compose.activities import RetryingLlm
from adk_nb.graph_compose.agents import GraphLoop, GraphParallel, GraphSequence, ServiceAgent
from adk_nb.graph_compose.configs import (
    ActivityConfig,
    AgentConfig,
    AgentToolConfig,
    FunctionToolConfig,
    HttpConfig,
    HttpToolConfig,
    LlmAgentConfig,
    LoopAgentConfig,
    ParallelAgentConfig,
    SequentialAgentConfig,
    WorkflowConfig,
)
from adk_nb.graph_compose.running import WorkflowPlugin
from adk_nb.graph_compose.tools import HttpTool, WorkflowAgentTool, WorkflowFunctionTool, ask_a_person
from adk_nb.models.connections import check_url
from adk_nb.models.http_llm import HttpLlm
from adk_nb.models.http_messages import check_template
from adk_nb.runtime.approvals import RESERVED
from adk_nb.runtime.open_calls import TRANSFER
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.web_access import WebAccess

Container = SequentialAgentConfig | ParallelAgentConfig | LoopAgentConfig
MAX_AGENTS = 1_000
"""Agents in one tree: repeated references multiply with each level of containers."""


def compile_app(workflow: WorkflowConfig, *, secrets: Mapping[str, str], expose_system_state: bool = False) -> App:
    """The app that runs `workflow`.

    Raises:
        ConfigurationError: It could not run; the message says what to write.
    """
    check_workflow(workflow)
    compiler = _Compiler(workflow, secrets, expose_system_state)
    root = compiler.agent(workflow.root_agent_id or "")
    return App(
        name=_to_identifier(workflow.name, "workflow"),
        root_agent=root,
        plugins=[WorkflowPlugin(set(compiler.ids), workflow.max_orchestration_cycles)],
    )


class _Compiler:
    def __init__(self, workflow: WorkflowConfig, secrets: Mapping[str, str], system: bool) -> None:
        self._workflow = workflow
        self._secrets = dict(secrets)
        self._expose_system_state = system
        self._agents = {agent.id: agent for agent in workflow.agents}
        self._tools = {tool.id: tool for tool in workflow.global_tools}
        self.ids: dict[str, str] = {}
        """Name -> id. An agent with several references has one name per position in the tree."""
        self._names: dict[tuple[str, int], str] = {}
        """(id, position in its tree) -> name."""
        for agent in workflow.agents:
            for config in (agent, *nested_agents(agent)):
                self._names[config.id, 1] = name = self._unique_name(_to_identifier(config.id, "agent"))
                self.ids[name] = config.id
        self._counts = Counter[str]()
        """Occurrences of each id in the tree that is being built."""
        # The author of the workflow wrote the URLs, so loopback and private addresses are allowed.
        self._web = WebAccess(allow_private_network_access=True)

    def agent(self, key: str) -> BaseAgent:
        config = self._agents[key]
        if isinstance(config, LlmAgentConfig):
            return self._llm_agent(config)
        fields: dict[str, Any] = {
            "name": self._name(key),
            "id": key,
            "sub_agents": [
                self.agent(reference.agent_id)
                for reference in (config.sub_agents if isinstance(config, Container) else ())
            ],
        }
        if isinstance(config, LoopAgentConfig):
            return GraphLoop(
                **fields,
                max_iterations=config.max_agent_loop_iterations,
                exit_condition=config.loop_exit_condition,
                output_key=config.output_key,
            )
        if isinstance(config, SequentialAgentConfig):
            return GraphSequence(**fields, output_key=config.output_key)
        return GraphParallel(**fields)

    def _llm_agent(self, config: LlmAgentConfig) -> ServiceAgent:
        tools: list[BaseTool] = [self._tool(name) for name in config.tools]
        return ServiceAgent(
            name=self._name(config.id),
            id=config.id,
            description=config.description,
            model=self._model(config),
            instruction=config.instructions,
            # The service gets the instruction as written: its placeholders are not ours, and it knows its name.
            template=False,
            identity=False,
            tools=[*tools, ask_a_person],
            output_key=config.output_key,
            sub_agents=[self._llm_agent(sub_agent) for sub_agent in config.sub_agents],
        )

    def _model(self, config: LlmAgentConfig) -> Any:
        http, activity = config.http_config, config.activity_config or ActivityConfig()
        if http is None:
            return RetryingLlm.wrap(config.model, activity) if config.activity_config else config.model
        return HttpLlm(
            http.url,
            model=config.id,
            method=http.method,
            headers=http.headers,
            body=http.body,
            secrets=self._secrets,
            timeout=activity.start_to_close_timeout,
            total_timeout=activity.total_timeout,
            retry_options=activity.retry_policy.options(),
            expose_system_state=self._expose_system_state,
        )

    def _tool(self, key: str) -> BaseTool:
        config = self._tools[key]
        if isinstance(config, AgentToolConfig):
            outer_counts, self._counts = self._counts, Counter[str]()  # an agent tool has a tree of its own
            agent = self.agent(config.target_agent_id)
            self._counts = outer_counts
            return WorkflowAgentTool(agent, config).renamed(config.id)
        if isinstance(config, FunctionToolConfig):
            return WorkflowFunctionTool(config)
        assert isinstance(config, HttpToolConfig)
        return HttpTool(config, self._web, self._secrets, self._workflow.name, self.ids)

    def _name(self, key: str) -> str:
        """The name of the agent at its next position in the tree."""
        self._counts[key] += 1
        if self._counts.total() > MAX_AGENTS:
            raise ConfigurationError(
                f"workflow {self._workflow.name!r}: it has more than {MAX_AGENTS} agents, counting every reference; "
                f"remove some references to {key!r}"
            )
        # The same position has the same name in each compilation, so that stored sessions find their agents.
        position = (key, self._counts[key])
        if position not in self._names:
            self._names[position] = name = self._unique_name(_to_identifier(key, "agent"))
            self.ids[name] = key
        return self._names[position]

    def _unique_name(self, name: str) -> str:
        number = 2
        while name in self.ids:
            name, number = f"{name.rstrip('_0123456789')}_{number}", number + 1
        return name


def _to_identifier(key: str, kind: str) -> str:
    """An identifier made from `key`; never `user`, a reserved author."""
    name = re.sub(r"\W+", "_", key).strip("_") or kind
    is_valid = name.isidentifier() and not keyword.iskeyword(name) and name != "user" and name.isascii()
    return name if is_valid else f"{kind}_{re.sub(r'[^0-9A-Za-z_]+', '_', name)}".rstrip("_")


def check_workflow(workflow: WorkflowConfig) -> None:
    """Validate a workflow.

    Raises:
        ConfigurationError: It has no root agent, a reference to a missing agent or tool, or a cycle; or a field of an
            agent or tool is wrong.
    """
    _Checker(workflow).run()


def nested_agents(agent: AgentConfig) -> Iterator[LlmAgentConfig]:
    """The agents nested in one, depth first."""
    for sub_agent in agent.sub_agents if isinstance(agent, LlmAgentConfig) else ():
        yield sub_agent
        yield from nested_agents(sub_agent)


class _Checker:
    def __init__(self, workflow: WorkflowConfig) -> None:
        self._workflow = workflow
        self._agents = {agent.id: agent for agent in workflow.agents}
        self._tools = {tool.id: tool for tool in workflow.global_tools}
        self._acyclic: set[str] = set()
        """Ids of agents that lead to no cycle."""

    def run(self) -> None:
        workflow = self._workflow
        self._check_unique(
            "agents", [config.id for agent in workflow.agents for config in (agent, *nested_agents(agent))]
        )
        self._check_unique("tools", [tool.id for tool in workflow.global_tools])
        if not workflow.root_agent_id:
            self._refuse("it has no root agent; write .root_agent('...'), in JSON rootAgentId: one of its agents")
        self._check_agent_exists(workflow.root_agent_id, "its root agent")
        for tool in workflow.global_tools:
            label = f"tool {tool.id!r}"
            if tool.id == TRANSFER or tool.id.startswith(RESERVED):
                self._refuse(f"{label} has a reserved id; give it another id")
            if isinstance(tool, AgentToolConfig):
                self._check_agent_exists(tool.target_agent_id, label)
            if isinstance(tool, HttpToolConfig):
                self._check_http(tool.http_config, label)
                if tool.parameters is not None and tool.parameters.get("type", "object") != "object":
                    self._refuse(
                        f"parameters of {label} must be a JSON schema such as {{'type': 'object', 'properties': "
                        f"{{...}}}}, got {tool.parameters!r:.80}"
                    )
        for agent in workflow.agents:
            for config in (agent, *nested_agents(agent)):
                self._check_agent(config)
        # Last: it follows references, whose targets the checks above require to exist.
        self._check_acyclic(workflow.root_agent_id, ())

    def _check_http(self, http: HttpConfig, owner: str) -> None:
        label = f"workflow {self._workflow.name!r}: {owner}"
        check_url(http.url, label)
        check_template([http.url, http.headers, http.body], label)

    def _check_agent(self, agent: AgentConfig) -> None:
        label = f"agent {agent.id!r}"
        if isinstance(agent, LlmAgentConfig):
            if (agent.http_config is None) == (agent.model is None):
                self._refuse(
                    f"{label} needs either a service or a model; write httpConfig={{'url': 'https://...'}} or model=..."
                )
            if agent.http_config:
                self._check_http(agent.http_config, label)
            for name in agent.tools:
                if name not in self._tools:
                    self._refuse_reference("tool", name, label, self._tools, ".http_tool(create_http_tool(id=")
        if isinstance(agent, LoopAgentConfig) and agent.loop_exit_condition is not None:
            try:
                Expression(agent.loop_exit_condition, ("session_state",))
            except ConfigurationError as error:
                self._refuse(f"loopExitCondition of {label}: {error}")
        if isinstance(agent, Container):
            for reference in agent.sub_agents:
                self._check_agent_exists(reference.agent_id, label)

    def _check_agent_exists(self, name: str, referrer: str) -> None:
        if name not in self._agents:
            self._refuse_reference("agent", name, referrer, self._agents, ".agent(create_llm_agent(id=")

    def _refuse_reference(self, kind: str, name: str, referrer: str, known_ids: Collection[str], add: str) -> NoReturn:
        suggestion = closest(name, known_ids)
        listing = f"choose from {', '.join(known_ids)}, or " if known_ids else ""
        hint = f"did you mean {suggestion!r}?" if suggestion else f"{listing}add {add}{name!r}, ...))"
        self._refuse(f"{referrer} refers to {kind} {name!r}, which does not exist; {hint}")

    def _check_unique(self, kind: str, ids: list[str]) -> None:
        duplicates = [name for name, count in Counter(ids).items() if count > 1]
        if duplicates:
            self._refuse(f"two {kind} have the id {duplicates[0]!r}; give each its own id")

    def _check_acyclic(self, name: str, path: tuple[str, ...]) -> None:
        if name in path:
            cycle = " -> ".join([*path[path.index(name) :], name])
            self._refuse(f"its agents form a cycle: {cycle}; remove one of these references")
        # After the cycle check: an agent that is on the path now is not yet in this set.
        if name in self._acyclic:
            return
        agent = self._agents[name]
        next_ids = [reference.agent_id for reference in (agent.sub_agents if isinstance(agent, Container) else ())]
        for config in (agent, *nested_agents(agent)):
            tools = [self._tools[key] for key in config.tools] if isinstance(config, LlmAgentConfig) else []
            next_ids += [tool.target_agent_id for tool in tools if isinstance(tool, AgentToolConfig)]
        for next_id in next_ids:
            self._check_acyclic(next_id, (*path, name))
        self._acyclic.add(name)

    def _refuse(self, problem: str) -> NoReturn:
        raise ConfigurationError(f"workflow {self._workflow.name!r}: {problem}")
