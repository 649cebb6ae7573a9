"""What a workflow is written with: its agents and tools as records, in Python's spelling and in camelCase.

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


def _seconds(given: Any) -> Any:
    if not isinstance(given, str):
        return given
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|)\s*", given)
    if not found:
        raise ValueError("a time is a number of seconds, or like '500ms', '60s', '5m', '1h'")
    return float(found[1]) * _UNITS[found[2]]


def _written(seconds: float) -> str:
    return f"{seconds:.6f}".rstrip("0").rstrip(".") + "s"


Seconds = Annotated[float, BeforeValidator(_seconds), Field(gt=0), PlainSerializer(_written, when_used="json")]


class _Config(WireModel):
    model_config = ConfigDict(extra="forbid")


class _Part(_Config):
    """A record in another one."""

    @model_validator(mode="before")
    @classmethod
    def _known(cls, given: Any) -> Any:
        known = [to_camel(name) for name in cls.model_fields]
        if isinstance(given, cls):
            return given
        if not isinstance(given, Mapping):
            raise ValueError(f"it is a dict with {', '.join(known)}")
        for name in cast(Mapping[str, Any], given):
            if name not in known and name not in cls.model_fields:
                raise ValueError(f"there is no field {name!r} in it; there is: {', '.join(known)}")
        return cast(Any, given)


class HttpConfig(_Part):
    """Where a request goes. `{{$secret('name')}}` and `{{state.key}}` in it are filled when it is sent."""

    url: str
    method: Literal["GET", "POST", "PUT", "DELETE", "PATCH"] = "POST"
    headers: dict[str, str] = Field(default_factory=dict[str, str])
    body: dict[str, Any] = Field(default_factory=dict[str, Any])
    """JSON that is sent beside what the contract sends."""


class RetryPolicy(_Part):
    """How often a call is made again that failed for the moment."""

    maximum_attempts: int = Field(default=3, ge=0)
    """0: 3."""
    initial_interval: Seconds = 1.0
    backoff_coefficient: float = Field(default=2.0, ge=1)
    maximum_interval: Seconds = 60.0

    def options(self) -> types.HttpRetryOptions:
        """The same in the words of a model's settings; no chance in it."""
        return types.HttpRetryOptions(
            attempts=self.maximum_attempts or 3,
            initial_delay=self.initial_interval,
            exp_base=self.backoff_coefficient,
            max_delay=self.maximum_interval,
            jitter=0.0,
        )


class ActivityConfig(_Part):
    """How long a call may take, and how often it is made again."""

    start_to_close_timeout: Seconds = 60.0
    """For one attempt."""
    schedule_to_close_timeout: Seconds | None = None
    """For all attempts and the waits between them. None: 300 s, or what all attempts may take."""
    retry_policy: RetryPolicy = Field(default_factory=RetryPolicy)

    @property
    def total_timeout(self) -> float:
        """Seconds for all attempts."""
        attempts = (self.retry_policy.maximum_attempts or 3) + 1
        return self.schedule_to_close_timeout or max(300.0, self.start_to_close_timeout * attempts)


class SubAgentReference(_Part):
    """An agent of the workflow, by its id."""

    agent_id: str


def _reference(given: Any) -> Any:
    if isinstance(given, AgentConfig):
        raise ValueError(f"an agent stands here by its id, {given.id!r}; add the agent itself with .agent(...)")
    return {"agent_id": given} if isinstance(given, str) else given


Reference = Annotated[SubAgentReference, BeforeValidator(_reference)]


class AgentConfig(_Config):
    """What all agents have."""

    id: str = Field(min_length=1)
    type: str = ""

    def model_post_init(self, context: Any, /) -> None:
        self.model_fields_set.add("type")  # it is written, whoever filled it in


def _tool_id(given: Any) -> Any:
    if isinstance(given, ToolConfig):
        raise ValueError(f"a tool stands here by its id, {given.id!r}; add the tool itself with .http_tool(...)")
    if callable(given):
        name = getattr(given, "__name__", "...")
        raise ValueError(f"a tool stands here by its id, {name!r}; add the function with .function_tool({name})")
    return given


def _written_out(given: Any) -> Any:
    if isinstance(given, str | SubAgentReference | AgentConfig) and not isinstance(given, LlmAgentConfig):
        raise ValueError("an agent that it may hand over to is written out here, as create_llm_agent(id=..., ...)")
    return given


class LlmAgentConfig(AgentConfig):
    """An agent that a service speaks for; or a local model."""

    type: str = Field(default="LlmAgent", pattern="^LlmAgent$")
    http_config: HttpConfig | None = None
    model: Any = Field(default=None, exclude=True)
    """Instead of `http_config`: a model, or the name of one."""
    instructions: str = ""
    description: str = ""
    """What it is good at, for agents that may hand over to it."""
    tools: list[Annotated[str, BeforeValidator(_tool_id)]] = Field(default_factory=list[str])
    output_key: str | None = None
    activity_config: ActivityConfig | None = None
    sub_agents: list[Annotated["LlmAgentConfig", BeforeValidator(_written_out)]] = Field(
        default_factory=list["LlmAgentConfig"]
    )
    """Agents that it may hand over to, written out here."""


class SequentialAgentConfig(AgentConfig):
    """Agents one after the other."""

    type: str = Field(default="SequentialAgent", pattern="^SequentialAgent$")
    sub_agents: list[Reference] = Field(min_length=1)
    output_key: str | None = None


class ParallelAgentConfig(AgentConfig):
    """Agents at the same time."""

    type: str = Field(default="ParallelAgent", pattern="^ParallelAgent$")
    sub_agents: list[Reference] = Field(min_length=1)


class LoopAgentConfig(AgentConfig):
    """Agents one after the other, again and again."""

    type: str = Field(default="LoopAgent", pattern="^LoopAgent$")
    sub_agents: list[Reference] = Field(min_length=1)
    max_agent_loop_iterations: int = Field(ge=1)
    loop_exit_condition: str | None = None
    output_key: str | None = None


class ToolConfig(_Config):
    """What all tools have."""

    id: str = Field(min_length=1)
    type: str = ""
    output_key: str | None = None
    """Where in the state its answer is kept."""

    def model_post_init(self, context: Any, /) -> None:
        self.model_fields_set.add("type")


class HttpToolConfig(ToolConfig):
    """A tool that is a service."""

    type: str = Field(default="HttpTool", pattern="^HttpTool$")
    http_config: HttpConfig
    description: str = ""
    """Empty: its id."""
    parameters: dict[str, Any] | None = None
    """JSON schema of its arguments. None: an object without properties."""
    activity_config: ActivityConfig | None = None
    raw: bool = False
    """The result is the answer as it came: `status_code`, `body`, `headers`, `error`."""


class AgentToolConfig(ToolConfig):
    """A tool that is another agent of the workflow."""

    type: str = Field(default="AgentTool", pattern="^AgentTool$")
    target_agent_id: str
    skip_summarization: bool = False


class FunctionToolConfig(ToolConfig):
    """A tool that is a Python function."""

    type: str = Field(default="FunctionTool", pattern="^FunctionTool$")
    func: Callable[..., Any] = Field(exclude=True)
    description: str = ""
    """Empty: the function's docstring."""
    activity_config: ActivityConfig | None = None
    """Its time and its attempts. None: one attempt, which may take as long as it likes."""


class WorkflowConfig(_Config):
    """A whole workflow, as REST has it."""

    name: str = "workflow"
    agents: list[SerializeAsAny[AgentConfig]] = Field(default_factory=list[AgentConfig])
    global_tools: list[SerializeAsAny[ToolConfig]] = Field(default_factory=list[ToolConfig])
    root_agent_id: str | None = None
    initial_user_input: str | None = None
    max_orchestration_cycles: int | None = Field(default=None, ge=1)
    state: dict[str, Any] = Field(default_factory=dict[str, Any])

    def model_post_init(self, context: Any, /) -> None:
        self.model_fields_set.update(("agents", "global_tools"))  # they are added to


_KINDS: dict[str, type[_Config]] = {
    "LlmAgent": LlmAgentConfig,
    "SequentialAgent": SequentialAgentConfig,
    "ParallelAgent": ParallelAgentConfig,
    "LoopAgent": LoopAgentConfig,
    "HttpTool": HttpToolConfig,
    "AgentTool": AgentToolConfig,
}
_NO_OUTPUT = "a ParallelAgent has no outputKey; give each of its agents one of its own"


def made(kind: type[Any], given: Mapping[str, Any] | None, fields: Mapping[str, Any]) -> Any:
    """A record of `kind`.

    Raises:
        ConfigurationError: A field is unknown, missing or wrong.
    """
    if not isinstance(cast(Any, given), Mapping | None):
        raise ConfigurationError(f"{kind.__name__.removesuffix('Config')}: write its fields, such as id={given!r:.80}")
    together = {**(given or {}), **fields}
    who = f"{kind.__name__.removesuffix('Config')} {together.get('id', together.get('name', '?'))!r}"
    if kind is ParallelAgentConfig and (together.keys() & {"output_key", "outputKey"}):
        raise ConfigurationError(f"{who}: {_NO_OUTPUT}")
    try:
        return kind.model_validate(together)
    except ValidationError as error:
        known = [to_camel(name) for name in kind.model_fields]
        told = field_errors(error, known, lambda name: _no_field(name, known))
        raise ConfigurationError(f"{who}: {hidden(told)}") from None


def _no_field(name: str, known: list[str]) -> str:
    told = unknown_field(name, known)
    return told if told.endswith("?") else f"{told}; there is: {', '.join(known)}"


def made_of_type(given: Any, kinds: tuple[str, ...]) -> Any:
    """A record of the kind that its `type` names.

    Raises:
        ConfigurationError: It names none of `kinds`, or the record is wrong.
    """
    if isinstance(given, _Config):
        return given
    written = cast(dict[str, Any], given) if isinstance(given, dict) else {}
    if written.get("type") not in kinds:
        raise ConfigurationError(
            f"{written.get('id', given)!r:.80}: 'type' is one of {', '.join(kinds)}, and not "
            f"{written.get('type')!r:.80}"
        )
    return made(_KINDS[written["type"]], written, {})


def create_llm_agent(given: Mapping[str, Any] | None = None, /, **fields: Any) -> LlmAgentConfig:
    """An agent that a service speaks for. Fields: those of LlmAgentConfig, in either spelling, or as one dict."""
    return made(LlmAgentConfig, given, fields)


def create_sequential_agent(given: Mapping[str, Any] | None = None, /, **fields: Any) -> SequentialAgentConfig:
    """Agents one after the other. Fields: those of SequentialAgentConfig."""
    return made(SequentialAgentConfig, given, fields)


def create_parallel_agent(given: Mapping[str, Any] | None = None, /, **fields: Any) -> ParallelAgentConfig:
    """Agents at the same time. Fields: those of ParallelAgentConfig."""
    return made(ParallelAgentConfig, given, fields)


def create_loop_agent(given: Mapping[str, Any] | None = None, /, **fields: Any) -> LoopAgentConfig:
    """Agents again and again. Fields: those of LoopAgentConfig."""
    return made(LoopAgentConfig, given, fields)


def create_sub_agent_reference(agent_id: str) -> SubAgentReference:
    """An agent of the workflow, by its id."""
    return made(SubAgentReference, None, {"agent_id": agent_id})


def create_http_tool(given: Mapping[str, Any] | None = None, /, **fields: Any) -> HttpToolConfig:
    """A tool that is a service. Fields: those of HttpToolConfig."""
    return made(HttpToolConfig, given, fields)


def create_agent_tool(given: Mapping[str, Any] | None = None, /, **fields: Any) -> AgentToolConfig:
    """A tool that is another agent of the workflow. Fields: those of AgentToolConfig."""
    return made(AgentToolConfig, given, fields)


def create_function_tool(func: Callable[..., Any], /, **fields: Any) -> FunctionToolConfig:
    """A tool that is a Python function, which runs here. Fields: those of FunctionToolConfig; its name is the `id`."""
    given: dict[str, Any] = {"func": func}
    if not callable(func):
        raise ConfigurationError(f"a tool is made of a function, and {func!r:.60} is none; pass the function itself")
    if "id" not in fields:
        given["id"] = name_of(func)
    return made(FunctionToolConfig, given, fields)


createLlmAgent, createHttpTool, createAgentTool = create_llm_agent, create_http_tool, create_agent_tool
createSequentialAgent, createParallelAgent = create_sequential_agent, create_parallel_agent
createLoopAgent, createSubAgentReference = create_loop_agent, create_sub_agent_reference
createFunctionTool = create_function_tool
