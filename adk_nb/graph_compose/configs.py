"""The configs of a workflow, its agents and tools, with fields in snake_case or camelCase.

Source of the fields: the documentation of Graph Compose's agent types.
"""

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, cast

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    SerializeAsAny,
    ValidationError,
    model_validator,
)
from pydantic.alias_generators import to_camel

from adk_nb import types
from adk_nb.errors import ConfigurationError
from adk_nb.redaction import hidden
from adk_nb.tools.function_tool import name_of
from adk_nb.wire import WireModel, field_errors, unknown_field

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "": 1.0}


def _parse_seconds(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|)\s*", value)
    if not match:
        raise ValueError("must be a number of seconds, or a text such as '500ms', '60s', '5m', '1h'")
    return float(match[1]) * _UNITS[match[2]]


Seconds = Annotated[
    float,
    BeforeValidator(_parse_seconds),
    Field(gt=0),
    PlainSerializer(lambda seconds: f"{seconds:.6f}".rstrip("0").rstrip(".") + "s", when_used="json"),
]


class _Config(WireModel):
    model_config = ConfigDict(extra="forbid")


class _NestedConfig(_Config):
    """A config inside another one."""

    @model_validator(mode="before")
    @classmethod
    def _check_fields(cls, value: Any) -> Any:
        field_names = [to_camel(name) for name in cls.model_fields]
        if isinstance(value, cls):
            return value
        if not isinstance(value, Mapping):
            raise ValueError(f"must be a dict with the fields {', '.join(field_names)}")
        # Before pydantic's own check, whose message does not list the fields.
        for name in cast(Mapping[str, Any], value):
            if name not in field_names and name not in cls.model_fields:
                raise ValueError(f"unknown field {name!r}; the fields are {', '.join(field_names)}")
        return cast(Any, value)


class HttpConfig(_NestedConfig):
    """The request of a service. `{{$secret('name')}}` and `{{state.key}}` are filled in when it is sent."""

    url: str
    method: Literal["GET", "POST", "PUT", "DELETE", "PATCH"] = "POST"
    headers: dict[str, str] = Field(default_factory=dict[str, str])
    body: dict[str, Any] = Field(default_factory=dict[str, Any])
    """JSON fields added to the body."""


class RetryPolicy(_NestedConfig):
    """Retries after transient errors."""

    maximum_attempts: int = Field(default=3, ge=0)
    """0 means 3."""
    initial_interval: Seconds = 1.0
    backoff_coefficient: float = Field(default=2.0, ge=1)
    maximum_interval: Seconds = 60.0

    def options(self) -> types.HttpRetryOptions:
        """The policy as retry options of a model, without jitter."""
        return types.HttpRetryOptions(
            attempts=self.maximum_attempts or 3,
            initial_delay=self.initial_interval,
            exp_base=self.backoff_coefficient,
            max_delay=self.maximum_interval,
            jitter=0.0,
        )


class ActivityConfig(_NestedConfig):
    """Timeouts and retries of a call."""

    start_to_close_timeout: Seconds = 60.0
    """Seconds for one attempt."""
    schedule_to_close_timeout: Seconds | None = None
    """Seconds for all attempts and their delays. None: 300, or the sum of all attempts if that is more."""
    retry_policy: RetryPolicy = Field(default_factory=RetryPolicy)

    @property
    def total_timeout(self) -> float:
        """Seconds for all attempts and their delays."""
        # The time of one attempt more, for the delays between them.
        attempts = (self.retry_policy.maximum_attempts or 3) + 1
        return self.schedule_to_close_timeout or max(300.0, self.start_to_close_timeout * attempts)


class SubAgentReference(_NestedConfig):
    """An agent of the workflow, by its id."""

    agent_id: str


def _parse_reference(value: Any) -> Any:
    if isinstance(value, AgentConfig):
        raise ValueError(f"must be an agent's id: write {value.id!r}, and add the agent itself with .agent(...)")
    return {"agent_id": value} if isinstance(value, str) else value


Reference = Annotated[SubAgentReference, BeforeValidator(_parse_reference)]


class AgentConfig(_Config):
    """The common fields of agents."""

    id: str = Field(min_length=1)
    type: str = ""

    def model_post_init(self, context: Any, /) -> None:
        self.model_fields_set.add("type")  # so that `to_dict` writes the default, too


def _parse_tool_id(value: Any) -> Any:
    if isinstance(value, ToolConfig):
        raise ValueError(f"must be a tool's id: write {value.id!r}, and add the tool itself with .http_tool(...)")
    if callable(value):
        name = getattr(value, "__name__", "...")
        raise ValueError(f"must be a tool's id: write {name!r}, and add the function with .function_tool({name})")
    return value


def _check_sub_agent(value: Any) -> Any:
    if isinstance(value, str | SubAgentReference | AgentConfig) and not isinstance(value, LlmAgentConfig):
        raise ValueError("must be the agent itself, not a reference; write create_llm_agent(id=..., ...)")
    return value


class LlmAgentConfig(AgentConfig):
    """An agent of an HTTP service or a local model."""

    type: str = Field(default="LlmAgent", pattern="^LlmAgent$")
    http_config: HttpConfig | None = None
    model: Any = Field(default=None, exclude=True)
    """Instead of `http_config`: a model or its name."""
    instructions: str = ""
    description: str = ""
    """For agents that may transfer to it."""
    tools: list[Annotated[str, BeforeValidator(_parse_tool_id)]] = Field(default_factory=list[str])
    output_key: str | None = None
    activity_config: ActivityConfig | None = None
    sub_agents: list[Annotated["LlmAgentConfig", BeforeValidator(_check_sub_agent)]] = Field(
        default_factory=list["LlmAgentConfig"]
    )
    """Agents that it may transfer to; configs, not references."""


class SequentialAgentConfig(AgentConfig):
    """Agents in sequence."""

    type: str = Field(default="SequentialAgent", pattern="^SequentialAgent$")
    sub_agents: list[Reference] = Field(min_length=1)
    output_key: str | None = None


class ParallelAgentConfig(AgentConfig):
    """Agents in parallel."""

    type: str = Field(default="ParallelAgent", pattern="^ParallelAgent$")
    sub_agents: list[Reference] = Field(min_length=1)


class LoopAgentConfig(AgentConfig):
    """Agents in sequence, repeatedly."""

    type: str = Field(default="LoopAgent", pattern="^LoopAgent$")
    sub_agents: list[Reference] = Field(min_length=1)
    max_agent_loop_iterations: int = Field(ge=1)
    loop_exit_condition: str | None = None
    output_key: str | None = None


class ToolConfig(_Config):
    """The common fields of tools."""

    id: str = Field(min_length=1)
    type: str = ""
    output_key: str | None = None
    """State key that gets its result."""

    def model_post_init(self, context: Any, /) -> None:
        self.model_fields_set.add("type")


class HttpToolConfig(ToolConfig):
    """An HTTP service as a tool."""

    type: str = Field(default="HttpTool", pattern="^HttpTool$")
    http_config: HttpConfig
    description: str = ""
    """Defaults to the id."""
    parameters: dict[str, Any] | None = None
    """JSON schema of its arguments. None: an object without properties."""
    activity_config: ActivityConfig | None = None
    raw: bool = False
    """Return the whole response: `status_code`, `body`, `headers`, `error`."""


class AgentToolConfig(ToolConfig):
    """Another agent of the workflow as a tool."""

    type: str = Field(default="AgentTool", pattern="^AgentTool$")
    target_agent_id: str
    skip_summarization: bool = False


class FunctionToolConfig(ToolConfig):
    """A Python function as a tool."""

    type: str = Field(default="FunctionTool", pattern="^FunctionTool$")
    func: Callable[..., Any] = Field(exclude=True)
    description: str = ""
    """Defaults to the function's docstring."""
    activity_config: ActivityConfig | None = None
    """Timeouts and retries. None: one attempt without a timeout."""


class WorkflowConfig(_Config):
    """A workflow, as in the REST API."""

    name: str = "workflow"
    agents: list[SerializeAsAny[AgentConfig]] = Field(default_factory=list[AgentConfig])
    global_tools: list[SerializeAsAny[ToolConfig]] = Field(default_factory=list[ToolConfig])
    root_agent_id: str | None = None
    initial_user_input: str | None = None
    max_orchestration_cycles: int | None = Field(default=None, ge=1)
    state: dict[str, Any] = Field(default_factory=dict[str, Any])

    def model_post_init(self, context: Any, /) -> None:
        self.model_fields_set.update(("agents", "global_tools"))  # the builder appends to them


_CONFIG_TYPES: dict[str, type[_Config]] = {
    "LlmAgent": LlmAgentConfig,
    "SequentialAgent": SequentialAgentConfig,
    "ParallelAgent": ParallelAgentConfig,
    "LoopAgent": LoopAgentConfig,
    "HttpTool": HttpToolConfig,
    "AgentTool": AgentToolConfig,
}
_NO_OUTPUT_KEY = "a ParallelAgent has no outputKey; give each of its agents an outputKey"


def make_config(kind: type[Any], record: Mapping[str, Any] | None, fields: Mapping[str, Any]) -> Any:
    """Validate a record, a dict of fields in either spelling, as a config of `kind`.

    Raises:
        ConfigurationError: A field is unknown, missing or wrong.
    """
    if not isinstance(cast(Any, record), Mapping | None):
        raise ConfigurationError(
            f"{kind.__name__.removesuffix('Config')}: write its fields by name, such as id={record!r:.80}"
        )
    values = {**(record or {}), **fields}
    label = f"{kind.__name__.removesuffix('Config')} {values.get('id', values.get('name', '?'))!r}"
    if kind is ParallelAgentConfig and (values.keys() & {"output_key", "outputKey"}):
        raise ConfigurationError(f"{label}: {_NO_OUTPUT_KEY}")
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        field_names = [to_camel(name) for name in kind.model_fields]

        def unknown(name: str) -> str:
            message = unknown_field(name, field_names)
            return message if message.endswith("?") else f"{message}; the fields are {', '.join(field_names)}"

        problems = field_errors(error, field_names, unknown)
        # Not chained: pydantic's own message may quote a header.
        raise ConfigurationError(f"{label}: {hidden(problems)}") from None


def make_config_of_type(value: Any, type_names: tuple[str, ...]) -> Any:
    """Validate a record as a config of its `type`.

    Raises:
        ConfigurationError: The type is none of `type_names`, or a field is wrong.
    """
    if isinstance(value, _Config):
        return value
    record = cast(dict[str, Any], value) if isinstance(value, dict) else {}
    if record.get("type") not in type_names:
        raise ConfigurationError(
            f"{record.get('id', value)!r:.80}: 'type' must be one of {', '.join(type_names)}, got "
            f"{record.get('type')!r:.80}"
        )
    return make_config(_CONFIG_TYPES[record["type"]], record, {})


def create_llm_agent(record: Mapping[str, Any] | None = None, /, **fields: Any) -> LlmAgentConfig:
    """An agent of an HTTP service. Fields of LlmAgentConfig, in either spelling, or as one dict."""
    return make_config(LlmAgentConfig, record, fields)


def create_sequential_agent(record: Mapping[str, Any] | None = None, /, **fields: Any) -> SequentialAgentConfig:
    """Agents in sequence. Fields of SequentialAgentConfig."""
    return make_config(SequentialAgentConfig, record, fields)


def create_parallel_agent(record: Mapping[str, Any] | None = None, /, **fields: Any) -> ParallelAgentConfig:
    """Agents in parallel. Fields of ParallelAgentConfig."""
    return make_config(ParallelAgentConfig, record, fields)


def create_loop_agent(record: Mapping[str, Any] | None = None, /, **fields: Any) -> LoopAgentConfig:
    """Agents in a loop. Fields of LoopAgentConfig."""
    return make_config(LoopAgentConfig, record, fields)


def create_sub_agent_reference(agent_id: str) -> SubAgentReference:
    """An agent of the workflow, by its id."""
    return make_config(SubAgentReference, None, {"agent_id": agent_id})


def create_http_tool(record: Mapping[str, Any] | None = None, /, **fields: Any) -> HttpToolConfig:
    """An HTTP service as a tool. Fields of HttpToolConfig."""
    return make_config(HttpToolConfig, record, fields)


def create_agent_tool(record: Mapping[str, Any] | None = None, /, **fields: Any) -> AgentToolConfig:
    """Another agent of the workflow as a tool. Fields of AgentToolConfig."""
    return make_config(AgentToolConfig, record, fields)


def create_function_tool(func: Callable[..., Any], /, **fields: Any) -> FunctionToolConfig:
    """A Python function as a tool. Fields of FunctionToolConfig; the `id` defaults to the function's name."""
    values: dict[str, Any] = {"func": func}
    if not callable(func):
        raise ConfigurationError(f"create_function_tool() takes a function, got {func!r:.60}; pass the function itself")
    if "id" not in fields:
        values["id"] = name_of(func)
    return make_config(FunctionToolConfig, values, fields)


createLlmAgent = create_llm_agent
createHttpTool = create_http_tool
createAgentTool = create_agent_tool
createFunctionTool = create_function_tool
createSequentialAgent = create_sequential_agent
createParallelAgent = create_parallel_agent
createLoopAgent = create_loop_agent
createSubAgentReference = create_sub_agent_reference
