"""Workflows written as a chain of calls, as Graph Compose's own clients have it, in Python's spelling or in theirs."""

from collections.abc import Callable, Mapping
from typing import Any, Self, cast

from adk_nb import sync
from adk_nb.apps.app import App
from adk_nb.errors import ConfigurationError, InputError
from adk_nb.graph_compose.checking import check, inside
from adk_nb.graph_compose.compiling import app_of
from adk_nb.graph_compose.configs import (
    AgentConfig,
    AgentToolConfig,
    FunctionToolConfig,
    HttpToolConfig,
    ToolConfig,
    WorkflowConfig,
    create_function_tool,
    made,
    made_of_type,
)
from adk_nb.graph_compose.running import WorkflowHandle, WorkflowResult
from adk_nb.redaction import remember
from adk_nb.wire import plain_json

_AGENTS = ("LlmAgent", "SequentialAgent", "ParallelAgent", "LoopAgent")
_TOOLS = ("HttpTool", "AgentTool")


class WorkflowBuilder:
    """Collects the agents and tools of a workflow."""

    def __init__(self, name: str) -> None:
        self._workflow = WorkflowConfig(name=name)

    def root_agent(self, agent_id: str) -> Self:
        """The agent that a message goes to."""
        self._workflow.root_agent_id = agent_id
        return self

    def agent(self, config: AgentConfig | Mapping[str, Any]) -> Self:
        """One more agent; a dict names its `type`."""
        self._workflow.agents.append(_made(config, AgentConfig, _AGENTS, "agent(create_llm_agent(...))"))
        return self

    def http_tool(self, config: HttpToolConfig | Mapping[str, Any]) -> Self:
        """One more tool that is a service."""
        given = {"type": "HttpTool", **config} if isinstance(config, Mapping) else config
        self._workflow.global_tools.append(
            _made(given, HttpToolConfig, ("HttpTool",), "http_tool(create_http_tool(...))")
        )
        return self

    def agent_tool(self, config: AgentToolConfig | Mapping[str, Any]) -> Self:
        """One more tool that is an agent."""
        given = {"type": "AgentTool", **config} if isinstance(config, Mapping) else config
        self._workflow.global_tools.append(
            _made(given, AgentToolConfig, ("AgentTool",), "agent_tool(create_agent_tool(...))")
        )
        return self

    def function_tool(self, tool: FunctionToolConfig | Callable[..., Any]) -> Self:
        """One more tool that is a Python function, which runs here."""
        config = tool if isinstance(tool, FunctionToolConfig) else create_function_tool(tool)
        self._workflow.global_tools.append(config)
        return self

    def with_max_cycles(self, most: int) -> Self:
        """The most turns that it has: messages of the user, and answers of a person."""
        if not isinstance(cast(Any, most), int) or most < 1:
            raise ConfigurationError(f"workflow {self._workflow.name!r}: with_max_cycles(1) or more, and not {most!r}")
        self._workflow.max_orchestration_cycles = most
        return self

    def build(self) -> WorkflowConfig:
        """The whole.

        Raises:
            ConfigurationError: It could not be run; the message says what to write.
        """
        check(self._workflow)
        return self._workflow

    rootAgent, httpTool, agentTool, functionTool = root_agent, http_tool, agent_tool, function_tool
    withMaxCycles = with_max_cycles


class AdkWorkflow:
    """The workflow of a graph: its agents, what its state begins with, and what it is asked first."""

    def __init__(self, graph: "GraphCompose", name: str) -> None:
        self._graph = graph
        self._name = name

    def with_workflow(self, build: Callable[[WorkflowBuilder], WorkflowConfig | WorkflowBuilder]) -> Self:
        """`lambda builder: builder.root_agent("...").agent(...).build()`."""
        made_so: Any = build(WorkflowBuilder(self._name))
        workflow = made_so.build() if isinstance(made_so, WorkflowBuilder) else made_so
        if not isinstance(workflow, WorkflowConfig):
            raise ConfigurationError(
                f"workflow {self._name!r}: what with_workflow() is given returns builder.build(), "
                f"and not {workflow!r:.80}"
            )
        before = self._graph.workflow
        workflow.state, workflow.initial_user_input = before.state, before.initial_user_input
        self._graph.workflow = workflow
        return self

    def with_state(self, state: Mapping[str, Any]) -> Self:
        """What the state begins with: JSON."""
        if not isinstance(cast(Any, state), Mapping):
            raise InputError(f"workflow {self._name!r}: with_state({{'key': ...}}), and not {state!r:.80}")
        self._graph.workflow.state = plain_json(state, f"the state of workflow {self._name!r}")
        return self

    def with_initial_prompt(self, prompt: str) -> Self:
        """The user's first message."""
        self._graph.workflow.initial_user_input = prompt
        return self

    def __getattr__(self, name: str) -> Any:
        hint = f"; write .end().{name}" if hasattr(GraphCompose, name) else ""
        raise AttributeError(f"a workflow that is being built has no {name!r}{hint}", name=name, obj=self)

    def end(self) -> "GraphCompose":
        """The graph."""
        return self._graph

    withWorkflow, withState, withInitialPrompt = with_workflow, with_state, with_initial_prompt


class GraphCompose:
    """A workflow of agents that are services behind HTTP. It runs here, and reaches nothing but those services.

    graph = GraphCompose()
    graph.adk("claims").with_workflow(lambda b: b.root_agent("a").agent(create_llm_agent(...)).build())
    result = await graph.execute("Process claim 7.")
    """

    def __init__(
        self,
        given: Mapping[str, Any] | None = None,
        /,
        *,
        token: str | None = None,
        secrets: Mapping[str, str] | None = None,
        expose_system_state: bool = False,
    ) -> None:
        """Nothing is needed.

        Args:
            given: `{"token": ...}`, as other clients write it.
            token: Taken for the sake of what is written elsewhere, and not used.
            secrets: Name -> what `{{$secret('name')}}` stands for; else the environment's variable of that name.
            expose_system_state: Services are also told the engine's own counters.
        """
        if not isinstance(cast(Any, given), Mapping | None):
            raise InputError(
                "write GraphCompose({'token': '...'}), or GraphCompose() alone: nothing needs a token here"
            )
        remember(token, (given or {}).get("token"), *(secrets or {}).values())
        self._secrets = dict(secrets or {})
        self._expose = expose_system_state
        self.workflow = WorkflowConfig()

    def __repr__(self) -> str:
        flow = self.workflow
        agents = ", ".join(agent.id for agent in flow.agents)
        return f"GraphCompose({flow.name!r}, root {flow.root_agent_id!r}, agents: {agents or 'none yet'})"

    def adk(self, name: str) -> AdkWorkflow:
        """Begin the workflow.

        Raises:
            ConfigurationError: The graph has one.
        """
        if self.workflow.agents:
            raise ConfigurationError(
                f"this graph has workflow {self.workflow.name!r}; make another GraphCompose() for {name!r}"
            )
        return AdkWorkflow(self, name)

    def to_app(self) -> App:
        """An app of ordinary agents: `Runner(app=graph.to_app(), session_service=...)`.

        Raises:
            ConfigurationError: It could not be run.
        """
        return app_of(self.workflow, secrets=self._secrets, expose_system_state=self._expose)

    async def start(self, prompt: str | None = None) -> WorkflowHandle:
        """Run the first turn, until it ends or waits for someone.

        Args:
            prompt: The user's first message. None: the workflow's own.

        Raises:
            ConfigurationError: It could not be run, or there is no prompt.
        """
        said = prompt if prompt is not None else self.workflow.initial_user_input
        handle = WorkflowHandle(self.to_app(), self.workflow.max_orchestration_cycles)
        if not said:
            raise ConfigurationError(
                f"workflow {self.workflow.name!r} has no first message; write .with_initial_prompt('...')"
            )
        await handle.begin(said, self.workflow.state)
        return handle

    async def execute(self, prompt: str | None = None) -> WorkflowResult:
        """`start`, and what came of the first turn."""
        handle = await self.start(prompt)
        result = handle.get_latest_orchestration_result()
        assert result is not None
        await handle.end_conversation()
        return result

    def execute_sync(self, prompt: str | None = None) -> WorkflowResult:
        """`execute` without await."""
        return sync.run(self.execute(prompt))

    def to_dict(self) -> dict[str, Any]:
        """The workflow as JSON, in REST's names; without `secrets`, but with what headers say in so many words.

        Raises:
            ConfigurationError: It has a local model or a Python function, which JSON cannot hold.
        """
        return to_dict(self.workflow)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any], **settings: Any) -> Self:
        """What `to_dict` gave. `settings`: those of the constructor.

        Raises:
            ConfigurationError: It is no workflow that could be run.
        """
        graph = cls(**settings)
        graph.workflow = from_dict(given)
        return graph

    executeSync, toApp, toDict, fromDict = execute_sync, to_app, to_dict, from_dict


def to_dict(workflow: WorkflowConfig) -> dict[str, Any]:
    """A workflow as JSON, in REST's names: what was written, and nothing that was left out.

    Raises:
        ConfigurationError: It has a local model or a Python function, which JSON cannot hold.
    """
    for agent in (one for outer in workflow.agents for one in (outer, *inside(outer))):
        if getattr(agent, "model", None) is not None:
            raise ConfigurationError(
                f"agent {agent.id!r} has a local model, which JSON cannot hold; give it httpConfig"
            )
    for tool in workflow.global_tools:
        if isinstance(tool, FunctionToolConfig):
            raise ConfigurationError(f"tool {tool.id!r} is a Python function, which JSON cannot hold; use an http_tool")
    return workflow.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude_none=True)


def from_dict(given: Mapping[str, Any]) -> WorkflowConfig:
    """A workflow from JSON.

    Raises:
        ConfigurationError: It could not be run, or is none.
    """
    if not isinstance(cast(Any, given), Mapping):
        raise ConfigurationError(f"a workflow is a dict, such as json.loads(...) gives, and not {given!r:.80}")
    agents = [made_of_type(one, _AGENTS) for one in _listed(given, "agents")]
    tools = [made_of_type(one, _TOOLS) for one in _listed(given, "globalTools")]
    rest = {key: value for key, value in given.items() if key not in ("agents", "globalTools")}
    workflow = cast(WorkflowConfig, made(WorkflowConfig, rest, {}))
    workflow.agents, workflow.global_tools = agents, cast(list[ToolConfig], tools)
    check(workflow)
    return workflow


def _listed(given: Mapping[str, Any], name: str) -> list[Any]:
    listed = given.get(name, [])
    if not isinstance(listed, list):
        raise ConfigurationError(f"a workflow's {name!r} is a list, and not {listed!r:.80}")
    return cast(list[Any], listed)


def _made(given: Any, kind: type[Any], kinds: tuple[str, ...], how: str) -> Any:
    if isinstance(given, kind):
        return given
    if isinstance(given, Mapping):
        return made_of_type(dict(cast(Mapping[str, Any], given)), kinds)
    raise ConfigurationError(f"write {how}, and not {given!r:.80}")
