"""Build workflows as a chain of calls, as Graph Compose's clients do, in snake_case or camelCase."""

from collections.abc import Callable, Mapping
from typing import Any, Self, cast

from adk_nb import sync
from adk_nb.apps.app import App
from adk_nb.errors import ConfigurationError, InputError
from adk_nb.graph_compose.compiling import check_workflow, compile_app, nested_agents
from adk_nb.graph_compose.configs import (
    AgentConfig,
    AgentToolConfig,
    FunctionToolConfig,
    HttpToolConfig,
    ToolConfig,
    WorkflowConfig,
    create_function_tool,
    make_config,
    make_config_of_type,
)
from adk_nb.graph_compose.running import WorkflowHandle, WorkflowResult
from adk_nb.redaction import remember
from adk_nb.wire import plain_json

_AGENT_TYPES = ("LlmAgent", "SequentialAgent", "ParallelAgent", "LoopAgent")
_TOOL_TYPES = ("HttpTool", "AgentTool")


class WorkflowBuilder:
    """Collects the agents and tools of a workflow."""

    def __init__(self, name: str) -> None:
        self._workflow = WorkflowConfig(name=name)

    def root_agent(self, agent_id: str) -> Self:
        """Set the agent that gets the messages."""
        self._workflow.root_agent_id = agent_id
        return self

    def agent(self, config: AgentConfig | Mapping[str, Any]) -> Self:
        """Add an agent; a dict names its `type`."""
        self._workflow.agents.append(_to_config(config, AgentConfig, _AGENT_TYPES, "agent(create_llm_agent(...))"))
        return self

    def http_tool(self, config: HttpToolConfig | Mapping[str, Any]) -> Self:
        """Add an HTTP service as a tool."""
        fields = {"type": "HttpTool", **config} if isinstance(config, Mapping) else config
        self._workflow.global_tools.append(
            _to_config(fields, HttpToolConfig, ("HttpTool",), "http_tool(create_http_tool(...))")
        )
        return self

    def agent_tool(self, config: AgentToolConfig | Mapping[str, Any]) -> Self:
        """Add an agent as a tool."""
        fields = {"type": "AgentTool", **config} if isinstance(config, Mapping) else config
        self._workflow.global_tools.append(
            _to_config(fields, AgentToolConfig, ("AgentTool",), "agent_tool(create_agent_tool(...))")
        )
        return self

    def function_tool(self, tool: FunctionToolConfig | Callable[..., Any]) -> Self:
        """Add a Python function as a tool; it runs in this process."""
        config = tool if isinstance(tool, FunctionToolConfig) else create_function_tool(tool)
        self._workflow.global_tools.append(config)
        return self

    def with_max_cycles(self, max_turns: int) -> Self:
        """Limit the turns: messages of the user, and answers to requests."""
        if not isinstance(cast(Any, max_turns), int) or max_turns < 1:
            raise ConfigurationError(
                f"workflow {self._workflow.name!r}: with_max_cycles() takes a positive integer, got {max_turns!r}"
            )
        self._workflow.max_orchestration_cycles = max_turns
        return self

    def build(self) -> WorkflowConfig:
        """Validate and return the workflow.

        Raises:
            ConfigurationError: It could not run; the message says what to write.
        """
        check_workflow(self._workflow)
        return self._workflow

    rootAgent, httpTool, agentTool, functionTool = root_agent, http_tool, agent_tool, function_tool
    withMaxCycles = with_max_cycles


class AdkWorkflow:
    """The workflow of a graph: its agents, initial state and first message."""

    def __init__(self, graph: "GraphCompose", name: str) -> None:
        self._graph = graph
        self._name = name

    def with_workflow(self, build: Callable[[WorkflowBuilder], WorkflowConfig | WorkflowBuilder]) -> Self:
        """Set the agents: `lambda builder: builder.root_agent("...").agent(...).build()`."""
        built: Any = build(WorkflowBuilder(self._name))
        workflow = built.build() if isinstance(built, WorkflowBuilder) else built
        if not isinstance(workflow, WorkflowConfig):
            raise ConfigurationError(
                f"workflow {self._name!r}: the function of with_workflow() must return builder.build(), "
                f"got {workflow!r:.80}"
            )
        earlier = self._graph.workflow
        # Set in any order: `with_state` may have come first.
        workflow.state, workflow.initial_user_input = earlier.state, earlier.initial_user_input
        self._graph.workflow = workflow
        return self

    def with_state(self, state: Mapping[str, Any]) -> Self:
        """Set the initial state, as JSON."""
        if not isinstance(cast(Any, state), Mapping):
            raise InputError(
                f"workflow {self._name!r}: with_state() takes a dict, such as {{'key': 1}}, got {state!r:.80}"
            )
        self._graph.workflow.state = plain_json(state, f"the state of workflow {self._name!r}")
        return self

    def with_initial_prompt(self, prompt: str) -> Self:
        """Set the user's first message."""
        self._graph.workflow.initial_user_input = prompt
        return self

    def __getattr__(self, name: str) -> Any:
        # Forgetting `.end()` is the most common mistake in such a chain.
        hint = f"; write .end().{name}" if hasattr(GraphCompose, name) else ""
        raise AttributeError(f"AdkWorkflow has no attribute {name!r}{hint}", name=name, obj=self)

    def end(self) -> "GraphCompose":
        """Return the graph."""
        return self._graph

    withWorkflow, withState, withInitialPrompt = with_workflow, with_state, with_initial_prompt


class GraphCompose:
    """A workflow of agents that are HTTP services. It runs in this process, and connects only to those services.

    graph = GraphCompose()
    graph.adk("claims").with_workflow(lambda b: b.root_agent("a").agent(create_llm_agent(...)).build())
    result = await graph.execute("Process claim 7.")
    """

    def __init__(
        self,
        options: Mapping[str, Any] | None = None,
        /,
        *,
        token: str | None = None,
        secrets: Mapping[str, str] | None = None,
        expose_system_state: bool = False,
    ) -> None:
        """All arguments are optional.

        Args:
            options: `{"token": ...}`, as other clients write it.
            token: Accepted for compatibility, and not used.
            secrets: Name -> value of `{{$secret('name')}}`; default: the environment variable of that name.
            expose_system_state: Send the engine's counters to services, too.
        """
        if not isinstance(cast(Any, options), Mapping | None):
            raise InputError(
                f"GraphCompose() takes a dict such as {{'token': '...'}}, got {options!r:.80}; it needs no token"
            )
        remember(token, (options or {}).get("token"), *(secrets or {}).values())
        self._secrets = dict(secrets or {})
        self._expose_system_state = expose_system_state
        self.workflow = WorkflowConfig()

    def __repr__(self) -> str:
        workflow = self.workflow
        agents = ", ".join(agent.id for agent in workflow.agents)
        return f"GraphCompose({workflow.name!r}, root {workflow.root_agent_id!r}, agents: {agents or 'none yet'})"

    def adk(self, name: str) -> AdkWorkflow:
        """Begin the workflow.

        Raises:
            ConfigurationError: The graph has a workflow already.
        """
        if self.workflow.agents:
            raise ConfigurationError(
                f"this graph already has workflow {self.workflow.name!r}; write another GraphCompose() for {name!r}"
            )
        return AdkWorkflow(self, name)

    def to_app(self) -> App:
        """An app of ordinary agents: `Runner(app=graph.to_app(), session_service=...)`.

        Raises:
            ConfigurationError: It could not run.
        """
        return compile_app(self.workflow, secrets=self._secrets, expose_system_state=self._expose_system_state)

    async def start(self, prompt: str | None = None) -> WorkflowHandle:
        """Run the first turn, until it ends or waits for the user.

        Args:
            prompt: The user's first message. None: the workflow's own.

        Raises:
            ConfigurationError: It could not run, or there is no prompt.
        """
        message = prompt if prompt is not None else self.workflow.initial_user_input
        handle = WorkflowHandle(self.to_app(), self.workflow.max_orchestration_cycles)
        if not message:
            raise ConfigurationError(
                f"workflow {self.workflow.name!r} has no first message; write .with_initial_prompt('...')"
            )
        await handle.begin(message, self.workflow.state)
        return handle

    async def execute(self, prompt: str | None = None) -> WorkflowResult:
        """Run the first turn and return its result."""
        handle = await self.start(prompt)
        result = handle.get_latest_orchestration_result()
        assert result is not None  # `start` has run a turn
        await handle.end_conversation()
        return result

    def execute_sync(self, prompt: str | None = None) -> WorkflowResult:
        """`execute` without await."""
        return sync.run(self.execute(prompt))

    def to_dict(self) -> dict[str, Any]:
        """The workflow as JSON, with the field names of the REST API. Leaves out `secrets`, but not literal headers.

        Raises:
            ConfigurationError: It has a local model or a Python function, which JSON cannot hold.
        """
        return to_dict(self.workflow)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], **settings: Any) -> Self:
        """A graph from the JSON of `to_dict`. `settings`: arguments of the constructor.

        Raises:
            ConfigurationError: It is not a valid workflow.
        """
        graph = cls(**settings)
        graph.workflow = from_dict(data)
        return graph

    executeSync, toApp, toDict, fromDict = execute_sync, to_app, to_dict, from_dict


def to_dict(workflow: WorkflowConfig) -> dict[str, Any]:
    """A workflow as JSON, with the field names of the REST API; only fields that were set.

    Raises:
        ConfigurationError: It has a local model or a Python function, which JSON cannot hold.
    """
    for agent in (agent for outer in workflow.agents for agent in (outer, *nested_agents(outer))):
        if getattr(agent, "model", None) is not None:
            raise ConfigurationError(
                f"agent {agent.id!r} has a local model, which JSON cannot hold; give it httpConfig"
            )
    for tool in workflow.global_tools:
        if isinstance(tool, FunctionToolConfig):
            raise ConfigurationError(f"tool {tool.id!r} is a Python function, which JSON cannot hold; use an http_tool")
    return workflow.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude_none=True)


def from_dict(data: Mapping[str, Any]) -> WorkflowConfig:
    """A workflow from JSON.

    Raises:
        ConfigurationError: It is not a valid workflow.
    """
    if not isinstance(cast(Any, data), Mapping):
        raise ConfigurationError(f"from_dict() takes a dict, such as json.loads(...) returns, got {data!r:.80}")
    agents = [make_config_of_type(record, _AGENT_TYPES) for record in _list_in(data, "agents")]
    tools = [make_config_of_type(record, _TOOL_TYPES) for record in _list_in(data, "globalTools")]
    rest = {key: value for key, value in data.items() if key not in ("agents", "globalTools")}
    workflow = cast(WorkflowConfig, make_config(WorkflowConfig, rest, {}))
    workflow.agents, workflow.global_tools = agents, cast(list[ToolConfig], tools)
    check_workflow(workflow)
    return workflow


def _list_in(data: Mapping[str, Any], name: str) -> list[Any]:
    items = data.get(name, [])
    if not isinstance(items, list):
        raise ConfigurationError(f"{name!r} of a workflow must be a list, got {items!r:.80}")
    return cast(list[Any], items)


def _to_config(value: Any, kind: type[Any], kinds: tuple[str, ...], example: str) -> Any:
    if isinstance(value, kind):
        return value
    if isinstance(value, Mapping):
        return make_config_of_type(dict(cast(Mapping[str, Any], value)), kinds)
    raise ConfigurationError(f"write {example}, got {value!r:.80}")
