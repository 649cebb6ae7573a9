"""An agent with a model and tools."""

import inspect
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from typing import Annotated, Any, ClassVar, Literal, cast

from pydantic import Field, InstanceOf, PrivateAttr

from adk_nb import types
from adk_nb.agents.base_agent import BaseAgent, short_repr
from adk_nb.agents.team_agent import TeamAgent
from adk_nb.code_executors.base_code_executor import BaseCodeExecutor
from adk_nb.errors import ConfigurationError, InputError
from adk_nb.events.event import Event
from adk_nb.flow import live
from adk_nb.flow.loop import apply_and_report, run_llm
from adk_nb.flow.request import static_content
from adk_nb.locations import warn
from adk_nb.models.base_llm import BaseLlm
from adk_nb.models.default_model import GEMINI_MODEL, default_model, model_of_code, set_default_model
from adk_nb.models.registry import LLMRegistry, current_tap
from adk_nb.planners.base_planner import BasePlanner
from adk_nb.runtime.context import ReadonlyContext
from adk_nb.runtime.hooks import Hooks
from adk_nb.runtime.invocation_context import InvocationContext, RunnableAgent
from adk_nb.tools.agent_tool import AgentTool
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.base_toolset import BaseToolset, expand_toolsets
from adk_nb.tools.finish_task_tool import FinishTaskTool
from adk_nb.tools.foreign_tool import wrapper_template
from adk_nb.tools.function_tool import FunctionTool
from adk_nb.tools.shape import Shape
from adk_nb.wire import LAZY

ToolUnion = BaseTool | BaseToolset | Callable[..., Any]
InstructionProvider = Callable[[ReadonlyContext], Any]
"""`(context) -> str`, sync or async; placeholders in its text are not filled in."""
BeforeModelCallback = AfterModelCallback = OnModelErrorCallback = Hooks
BeforeToolCallback = AfterToolCallback = OnToolErrorCallback = Hooks
"""ADK's names for the types of these fields."""

_ELSEWHERE = {
    "tools": "pass them as LlmAgent(tools=[...])",
    "system_instruction": "pass it as LlmAgent(instruction=...)",
    "response_schema": "pass it as LlmAgent(output_schema=...)",
    "response_json_schema": "pass it as LlmAgent(output_schema=...)",
    "base_url": "give it to the model: LlmAgent(model=Gemini(model=..., base_url=...))",
}
"""Fields of google's config that belong elsewhere -> the place."""
_SINGLE_TURN_DEFAULTS = {"include_contents": "none", "identity": False}
"""Defaults of an agent with `mode="single_turn"`. Source: google-adk 2.13, where `include_contents` is so only for a
graph's node."""
_BY_ALIAS = {field.alias: name for name, field in types.GenerateContentConfig.model_fields.items()}


class LlmAgent(TeamAgent):
    """A name, a model, an instruction, and tools. Plain functions become tools.

    Args:
        name: A Python identifier, not `user`.
        model: A model or its name. Empty: that of the nearest parent, else the default.
        instruction: Text, in which `{key}` is a value of the state; or a function that returns text.
        tools: Functions, tools and toolsets.
        description: Its task in one sentence, for agents that choose between others.
        sub_agents: Agents to which it transfers the conversation, or which it calls, as their `mode` says.
        mode: As a sub-agent: `chat` takes over, `single_turn` is called and answers, `task` may ask the user.
        output_schema: Type or JSON schema of its final answer, which is then JSON.
        output_key: State key for its final answer.
        max_iterations: Limit of model calls in one turn (16).
        before_model_callback: One of the callbacks before and after the agent, its model and its tools.
        generate_content_config: Temperature and other settings of the model.
        fields: The other fields; `LlmAgent??` shows their documentation.

    Raises:
        ConfigurationError: A field is unknown or wrong; the message names it and the right place.
    """

    model: str | BaseLlm = ""
    """A model or its name. Empty: the model of the nearest parent that has one, else that of `set_default_model`, else
    the default (see `models.default_model`)."""
    instruction: str | InstructionProvider = ""
    """Its instruction. At each turn `{key}` is replaced by the state's value and `{artifact.name}` by the text of that
    file; the text of a function is used as it is."""
    template: bool = True
    """False: placeholders in its instructions are not filled in."""
    global_instruction: str | InstructionProvider = ""
    """Instruction for the whole tree if this agent is its root, else for itself alone; filled in as `instruction`."""
    static_instruction: Any = None
    """Text, a content, or parts, first in the request and the same at every call, so that a service can cache it;
    `instruction` then precedes the user's message instead of being in the system instruction."""
    identity: bool = True
    """False: the model does not get the agent's name and description; the default with `mode="single_turn"`."""
    include_contents: Literal["default", "none"] = "default"
    """`none`: the agent sees only the current turn; the default with `mode="single_turn"`."""
    tools: list[Any] = Field(default_factory=list[Any])
    """Functions, tools, or toolsets."""
    generate_content_config: Annotated[types.GenerateContentConfig | None, LAZY] = None
    """Temperature, limits, safety and similar settings; tools and instruction are fields of the agent."""
    input_schema: Any = None
    """Schema of a message to this agent, which is JSON: a pydantic model, or a JSON schema. None: any message."""
    output_schema: Any = None
    """Schema of its final answer, which is JSON: a type that pydantic knows, a JSON schema, or a types.Schema. Of the
    last two only the outermost type is checked; the model's service ensures the rest."""
    on_output_error: Literal["event", "raise", "raw", "retry"] = "event"
    """Reaction to an answer that does not fit `output_schema`: an OUTPUT_SCHEMA_MISMATCH event, an exception, the plain
    text, or one more request to the model."""
    output_key: str | None = None
    """State key for its final answer: the text, or with `output_schema` the JSON value."""
    planner: BasePlanner | None = None
    """Makes the model plan (`adk_nb.planners`)."""
    code_executor: InstanceOf[BaseCodeExecutor] | None = None
    """Runs the code in its answers (`adk_nb.code_executors`)."""
    max_iterations: int | None = Field(default=16, gt=0)
    """Model calls in one turn; the next ends it with a MAX_ITERATIONS event. None: no limit."""
    tool_errors: Literal["return", "raise"] = "return"
    """Reaction to an error of a tool: it goes to the model, or ends the run."""
    before_model_callback: Hooks = None
    """`(callback_context, llm_request) -> LlmResponse | None`: a response replaces the model call."""
    after_model_callback: Hooks = None
    """`(callback_context, llm_response) -> LlmResponse | None`: a response replaces the model's."""
    on_model_error_callback: Hooks = None
    """`(callback_context, llm_request, error) -> LlmResponse | None`: a response replaces the error."""
    before_tool_callback: Hooks = None
    """`(tool, args, tool_context) -> dict | None`: a dict is the result, and the tool does not run."""
    after_tool_callback: Hooks = None
    """`(tool, args, tool_context, tool_response) -> dict | None`: a dict replaces the result, which is
    `{"error": ...}` if the tool failed."""
    on_tool_error_callback: Hooks = None
    """`(tool, args, tool_context, error) -> dict | None`: a dict is the result."""

    _shapes: dict[str, tuple[Any, Shape]] = PrivateAttr(default_factory=dict[str, tuple[Any, Shape]])
    _canonical: tuple[list[Any], list[BaseTool]] = PrivateAttr(default_factory=lambda: ([], list[BaseTool]()))
    _with_toolsets: list[BaseTool | BaseToolset] = PrivateAttr(default_factory=list[BaseTool | BaseToolset])
    """Its tools and toolsets; empty if it has no toolset."""
    _name_owners: dict[str, BaseToolset] = PrivateAttr(default_factory=dict[str, BaseToolset])
    """Name of a tool -> the toolset that had it last; see `expand_toolsets`."""
    DEFAULT_LIVE_MODEL: ClassVar[str] = "gemini-live-2.5-flash-native-audio"
    """Source: google-adk 2.13."""
    _model: tuple[str, BaseLlm] | None = PrivateAttr(default=None)

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        for name, value in _SINGLE_TURN_DEFAULTS.items() if self.mode is not None else ():
            if name not in self.model_fields_set:  # without adding it to `model_fields_set`
                default = type(self).model_fields[name].default
                vars(self)[name] = value if self.mode == "single_turn" else default
        settings = self.generate_content_config
        for field, better in _ELSEWHERE.items() if settings else ():
            if getattr(settings, field, None) or getattr(settings and settings.http_options, field, None):
                raise ConfigurationError(
                    f"agent {self.name!r}: {field!r} does not belong in generate_content_config; {better}"
                )
        try:
            if self.static_instruction and not isinstance(self.static_instruction, str):
                static_content(self.static_instruction)
        except InputError as error:
            raise ConfigurationError(
                f"agent {self.name!r}: 'static_instruction' is text, a types.Content, a types.Part, a types.File with "
                f"a uri or a list of these parts, files and texts, got {short_repr(self.static_instruction)}"
            ) from error
        self._shape("input_schema")
        self._shape("output_schema")
        duplicates = {tool.name for tool in self.tools_now()} & {tool.name for tool in self.sub_agent_tools}
        if duplicates:
            name = min(duplicates)
            notice = f"agent {self.name!r} has a tool and a sub-agent named {name!r}; the sub-agent is called"
            warn(notice)

    def __repr__(self) -> str:
        model = self.model if isinstance(self.model, str) else self.model.model
        tools = [tool.name for tool in self.tools_now()]
        return f"{type(self).__name__}(name={self.name!r}, model={model or 'default'!r}, tools={tools})"

    __str__ = __repr__

    @property
    def called_agents(self) -> Sequence[RunnableAgent]:
        return [tool.agent for tool in self.tools if isinstance(tool, AgentTool) and tool.resumable]

    @property
    def is_task(self) -> bool:
        return self.mode == "task"

    @property
    def is_llm(self) -> bool:
        return True

    @property
    def may_hand_back(self) -> bool:
        return not self.disallow_transfer_to_parent

    @property
    def output_shape(self) -> Shape | None:
        """The parser of its final answer. None: no `output_schema`, or a task, which ends with `finish_task`."""
        return None if self.output_schema is None or self.mode == "task" else self._shape("output_schema")

    @property
    def input_shape(self) -> Shape | None:
        return self._shape("input_schema")

    @property
    def canonical_model(self) -> BaseLlm:
        """The model that answers for this agent, made once.

        Raises:
            ConfigurationError: There is no model of that name.
        """
        model_or_name = self._named_model() or cast(str | BaseLlm, model_of_code())
        # Before the class of the model is loaded: a replay needs neither its package nor a key.
        if tap := current_tap():
            return tap.model(model_or_name, self.name)
        model = model_or_name or default_model()
        if isinstance(model, BaseLlm):
            return model
        # Cached by name: the default may change with a key or a setting.
        if self._model is None or self._model[0] != model:
            self._model = (model, LLMRegistry.new_llm(model))
        return self._model[1]

    @classmethod
    def set_default_model(cls, model: str | BaseLlm) -> None:
        """Set the model of agents without one of their own or of a parent.

        Raises:
            TypeError: It is neither a model nor the name of one.
            ConfigurationError: The name is empty.
        """
        if not isinstance(cast(Any, model), str | BaseLlm):
            raise TypeError(f"a default model must be a BaseLlm or the name of a model, got {short_repr(model)}")
        if not model:
            raise ConfigurationError(f"the name of the default model is empty; pass one such as {GEMINI_MODEL!r}")
        set_default_model(model)

    @property
    def answering_model(self) -> str:
        """The name of the model that answers for this agent: its own, a parent's, or the default."""
        model = self._named_model()
        return model.model if isinstance(model, BaseLlm) else model or default_model()

    @property
    def canonical_live_model(self) -> BaseLlm:
        """The model of its live conversations: its own, a parent's, or `DEFAULT_LIVE_MODEL`."""
        return self.canonical_model if self._named_model() else LLMRegistry.new_llm(self.DEFAULT_LIVE_MODEL)

    def _named_model(self) -> str | BaseLlm:
        """Its own model, or the nearest parent's; empty if there is none."""
        current: BaseAgent | None = self
        while current:
            if isinstance(current, LlmAgent) and current.model:
                return current.model
            current = current.parent_agent
        return ""

    @property
    def toolsets(self) -> Sequence[BaseToolset]:
        """The toolsets among its tools."""
        tools = self._with_toolsets if self.tools_now() or self.tools else ()
        return [tool for tool in tools if isinstance(tool, BaseToolset)] if tools else ()

    async def canonical_tools(self, ctx: ReadonlyContext | None = None, /) -> list[BaseTool]:
        """All its tools: functions wrapped, toolsets expanded, and the tools of its team."""
        tools = self.tools_now()
        if self.tools and (tools_and_sets := self._with_toolsets):
            tools = await expand_toolsets(self.name, tools_and_sets, ctx, owners=self._name_owners)
            self._canonical = (self._canonical[0], tools)
        if not (self.sub_agents or self.mode or isinstance(self._parent, TeamAgent)):
            return tools
        # For calling sub-agents, transferring the conversation, and finishing a task.
        transfer_tool = self._make_transfer_tool()
        finish_tools = [FinishTaskTool(self._shape("output_schema"), self.output_key)] if self.mode == "task" else []
        team = [*self.sub_agent_tools, *([transfer_tool] if transfer_tool else []), *finish_tools]
        return [*tools, *team] if team else tools

    @property
    def instructed_by(self) -> Sequence["LlmAgent"]:
        """The agents whose `global_instruction` this agent gets: the root of its tree, then itself."""
        root = self.root_agent
        above = (root,) if root is not self and isinstance(root, LlmAgent) and root.global_instruction else ()
        return (*above, self) if self.global_instruction else above

    async def canonical_instruction(self, ctx: ReadonlyContext, /) -> tuple[str, bool]:
        """The instruction of this turn; and True if placeholders stay: from a function, or with `template=False`.

        Raises:
            ConfigurationError: The function did not return text.
        """
        if isinstance(self.instruction, str):
            return self.instruction, not self.template
        return await self._provided("instruction", self.instruction, ctx), True

    async def canonical_global_instruction(self, ctx: ReadonlyContext, /) -> tuple[str, bool]:
        """Its own global instruction of this turn, as `canonical_instruction`."""
        if isinstance(self.global_instruction, str):
            return self.global_instruction, not self.template
        return await self._provided("global_instruction", self.global_instruction, ctx), True

    def _hook_events(self, ctx: InvocationContext, event: Event) -> Iterable[Event]:
        return apply_and_report(ctx, self, event)

    def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        return live.run_live_turn(ctx, self) if ctx.run_config.support_cfc else run_llm(ctx, self)

    def _run_live_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        return live.run_live(ctx, self)

    def tools_now(self) -> list[BaseTool]:
        """`canonical_tools` without await: built once, and again when `tools` has changed.

        Toolsets are expanded as at the last `canonical_tools`.
        """
        if not self.tools:
            return []
        cached_for, cached = self._canonical
        # Compared with a copy, as the list may have been changed in place.
        if cached_for != self.tools:
            wrapped = _wrapped(self, self.tools)
            cached = [wrapped_tool for wrapped_tool in wrapped if isinstance(wrapped_tool, BaseTool)]
            self._with_toolsets = wrapped if len(cached) < len(wrapped) else []
            self._canonical = (list(self.tools), cached)
        return cached

    def _shape(self, field: str) -> Shape | None:
        """The schema of a field, parsed once, and again when the field has changed."""
        schema = getattr(self, field)
        if schema is None:
            return None
        if field not in self._shapes or self._shapes[field][0] is not schema:
            try:
                self._shapes[field] = (schema, Shape(schema))
            except ConfigurationError as error:
                raise ConfigurationError(f"agent {self.name!r}: {field}: {error}") from error
        return self._shapes[field][1]

    async def _provided(self, field: str, provider: InstructionProvider, ctx: ReadonlyContext) -> str:
        if not callable(provider):
            raise ConfigurationError(
                f"agent {self.name!r}: its {field} must be text or a function, got {short_repr(provider)}"
            )
        text = provider(ctx)
        if inspect.isawaitable(text):
            text = await text
        if text is not None and not isinstance(text, str):
            raise ConfigurationError(
                f"agent {self.name!r}: its {field} is a function that returned {short_repr(text)}; return text"
            )
        return text or ""

    def _unknown_field(self, field: str) -> str:
        field = _BY_ALIAS.get(field, field)
        if better := _ELSEWHERE.get(field):
            return f"an agent has no field {field!r}; {better}"
        if field in types.GenerateContentConfig.model_fields:
            return (
                f"{field!r} belongs in generate_content_config; "
                f"write generate_content_config=types.GenerateContentConfig({field}=...)"
            )
        return super()._unknown_field(field)


def _wrapped(agent: LlmAgent, tools: Sequence[Any]) -> list[BaseTool | BaseToolset]:
    by_name: dict[str | int, BaseTool | BaseToolset] = {}
    for argument in tools:
        candidate = (
            AgentTool(argument, stream_events=True)
            if isinstance(argument, BaseAgent) and argument.is_tool
            else argument
        )
        if isinstance(candidate, BaseAgent):
            raise ConfigurationError(
                f"agent {agent.name!r}: the agent {candidate.name!r} is not a tool; "
                f"write AgentTool(agent={candidate.name}), or pass it in sub_agents"
            )
        if isinstance(candidate, BaseToolset):
            # The names of its tools are known only when a run lists them.
            by_name[id(candidate)] = candidate
            continue
        if template := wrapper_template(candidate):
            raise ConfigurationError(
                f"agent {agent.name!r}: {short_repr(candidate)} is a tool of another library; write "
                f"{template.format('...')}"
            )
        if not (isinstance(candidate, BaseTool) or callable(candidate)):
            raise ConfigurationError(
                f"agent {agent.name!r}: {short_repr(candidate)} is not a tool; pass functions, or tools, or toolsets"
            )
        tool = candidate if isinstance(candidate, BaseTool) else FunctionTool(cast(Callable[..., Any], candidate))
        if len(tools) > 1 and tool.stands_alone:
            # Gemini refuses its search beside other tools: a nested agent searches, whose events show the sources.
            tool = AgentTool(_Searcher(agent, tool), stream_events=True)
        if tool.name in by_name:
            notice = f"agent {agent.name!r} has two tools named {tool.name!r}; the later one is used"
            warn(notice)
        by_name[tool.name] = tool
    return list(by_name.values())


class _Searcher(LlmAgent):
    """An agent that only searches, with the model of its caller."""

    _caller: LlmAgent = PrivateAttr()

    def __init__(self, caller: LlmAgent, search: BaseTool) -> None:
        super().__init__(
            name=f"{search.name}_agent",
            description="Searches the web with Google.",
            instruction="Search the web for what you are asked, and answer from what you find.",
            tools=[search],
        )
        self._caller = caller

    @property
    def canonical_model(self) -> BaseLlm:
        return self._caller.canonical_model


Agent = LlmAgent
"""A name, a model, an instruction, and tools; the short name for `LlmAgent`."""
