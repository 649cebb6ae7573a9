"""A workflow's record becomes an app of ordinary agents."""

import keyword
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.apps.app import App
from adk_nb.errors import ConfigurationError
from adk_nb.graph_compose.agents import GraphLoop, GraphParallel, GraphSequence, ServiceAgent
from adk_nb.graph_compose.asking import ask_a_person
from adk_nb.graph_compose.called import CalledAgent, CalledFunction
from adk_nb.graph_compose.checking import check, inside
from adk_nb.graph_compose.configs import (
    ActivityConfig,
    AgentConfig,
    AgentToolConfig,
    FunctionToolConfig,
    HttpToolConfig,
    LlmAgentConfig,
    LoopAgentConfig,
    ParallelAgentConfig,
    SequentialAgentConfig,
    WorkflowConfig,
)
from adk_nb.graph_compose.counting import WorkflowPlugin
from adk_nb.graph_compose.http_tool import HttpTool
from adk_nb.graph_compose.patient_llm import PatientLlm
from adk_nb.models.http_llm import HttpLlm
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.web_access import WebAccess

MAX_AGENTS = 1_000
"""Places of agents in one tree: references double with each container that names another one twice."""


def app_of(workflow: WorkflowConfig, *, secrets: Mapping[str, str], expose_system_state: bool = False) -> App:
    """The app that runs `workflow`.

    Raises:
        ConfigurationError: It cannot be run; the message says what to write.
    """
    check(workflow)
    making = _Making(workflow, secrets, expose_system_state)
    root = making.agent(workflow.root_agent_id or "")
    return App(
        name=_named(workflow.name, "workflow"),
        root_agent=root,
        plugins=[WorkflowPlugin(set(making.ids), workflow.max_orchestration_cycles)],
    )


class _Making:
    def __init__(self, workflow: WorkflowConfig, secrets: Mapping[str, str], system: bool) -> None:
        self._workflow = workflow
        self._secrets = dict(secrets)
        self._system = system
        self._agents = {agent.id: agent for agent in workflow.agents}
        self._tools = {tool.id: tool for tool in workflow.global_tools}
        self.ids: dict[str, str] = {}
        """Name -> id. An agent that is referenced several times has a name for each place of a tree."""
        self._names: dict[tuple[str, int], str] = {}
        """Id, and which place in its tree it is -> name."""
        for agent in workflow.agents:
            for one in (agent, *inside(agent)):
                self._names[one.id, 1] = name = self._free(_named(one.id, "agent"))
                self.ids[name] = one.id
        self._places = Counter[str]()
        """How often each id stands in the tree that is being made."""
        # Whoever wrote the addresses wrote the workflow, so that his own machine may be among them.
        self._web = WebAccess(allow_private_network_access=True)

    def agent(self, key: str) -> BaseAgent:
        config = self._agents[key]
        if isinstance(config, LlmAgentConfig):
            return self._llm_agent(config)
        under: dict[str, Any] = {
            "name": self._name(key),
            "id": key,
            "sub_agents": [self.agent(one) for one in _referenced(config)],
        }
        if isinstance(config, LoopAgentConfig):
            return GraphLoop(
                **under,
                max_iterations=config.max_agent_loop_iterations,
                exit_condition=config.loop_exit_condition,
                output_key=config.output_key,
            )
        if isinstance(config, SequentialAgentConfig):
            return GraphSequence(**under, output_key=config.output_key)
        return GraphParallel(**under)

    def _llm_agent(self, config: LlmAgentConfig) -> ServiceAgent:
        tools: list[BaseTool] = [self._tool(name) for name in config.tools]
        return ServiceAgent(
            name=self._name(config.id),
            id=config.id,
            description=config.description,
            model=self._model(config),
            instruction=config.instructions,
            template=False,
            identity=False,
            tools=[*tools, ask_a_person],
            output_key=config.output_key,
            sub_agents=[self._llm_agent(one) for one in config.sub_agents],
        )

    def _model(self, config: LlmAgentConfig) -> Any:
        http, activity = config.http_config, config.activity_config or ActivityConfig()
        if http is None:
            return PatientLlm.around(config.model, activity) if config.activity_config else config.model
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
            expose_system_state=self._system,
        )

    def _tool(self, key: str) -> BaseTool:
        config = self._tools[key]
        if isinstance(config, AgentToolConfig):
            around, self._places = self._places, Counter[str]()  # a called agent is a tree of its own
            agent = self.agent(config.target_agent_id)
            self._places = around
            return CalledAgent(agent, config).renamed(config.id)
        if isinstance(config, FunctionToolConfig):
            return CalledFunction(config)
        assert isinstance(config, HttpToolConfig)
        return HttpTool(config, self._web, self._secrets, self._workflow.name, self.ids)

    def _name(self, key: str) -> str:
        """The name of the agent at its next place in the tree."""
        self._places[key] += 1
        if self._places.total() > MAX_AGENTS:
            raise ConfigurationError(
                f"workflow {self._workflow.name!r}: with all references followed it has more than {MAX_AGENTS} agents; "
                f"take out some of the references to {key!r}"
            )
        place = (key, self._places[key])
        if place not in self._names:
            self._names[place] = name = self._free(_named(key, "agent"))
            self.ids[name] = key
        return self._names[place]

    def _free(self, name: str) -> str:
        taken, number = self.ids, 2
        while name in taken:
            name, number = f"{name.rstrip('_0123456789')}_{number}", number + 1
        return name


def _referenced(config: AgentConfig) -> list[str]:
    if isinstance(config, SequentialAgentConfig | ParallelAgentConfig | LoopAgentConfig):
        return [one.agent_id for one in config.sub_agents]
    return []


def _named(key: str, kind: str) -> str:
    """An identifier like `key`, which is not `user`."""
    name = re.sub(r"\W+", "_", key).strip("_") or kind
    free = name.isidentifier() and not keyword.iskeyword(name) and name != "user" and name.isascii()
    return name if free else f"{kind}_{re.sub(r'[^0-9A-Za-z_]+', '_', name)}".rstrip("_")
