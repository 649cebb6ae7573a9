"""An agent that thinks with a model and acts with tools."""

import inspect
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from typing import Annotated, Any, ClassVar, Literal, cast

from pydantic import Field, InstanceOf, PrivateAttr, ValidationError

from adk_nb import types
from adk_nb.agents.base_agent import BaseAgent, shown
from adk_nb.agents.team_agent import TeamAgent
from adk_nb.code_executors.base_code_executor import BaseCodeExecutor
from adk_nb.errors import ConfigurationError, InputError
from adk_nb.events.event import Event
from adk_nb.flow.instructing import static_content
from adk_nb.flow.live.conversation import run_live
from adk_nb.flow.live.turn import run_live_turn
from adk_nb.flow.loop import run_llm
from adk_nb.flow.output import settled
from adk_nb.models.base_llm import BaseLlm
from adk_nb.models.default_model import GEMINI_MODEL, default_model
from adk_nb.models.registry import LLMRegistry
from adk_nb.models.tap import installed
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
from adk_nb.tools.google_search_tool import GoogleSearchTool, google_search
from adk_nb.tools.shape import Shape, error_text
from adk_nb.warned import warn
from adk_nb.wire import LAZY

ToolUnion = BaseTool | BaseToolset | Callable[..., Any]
InstructionProvider = Callable[[ReadonlyContext], Any]
"""`(context) -> str`, sync or async; what it returns is not templated."""
BeforeModelCallback = AfterModelCallback = OnModelErrorCallback = Hooks
BeforeToolCallback = AfterToolCallback = OnToolErrorCallback = Hooks
"""Names of ADK's for what the fields of these names take."""

_ELSEWHERE = {
    "tools": "pass them as LlmAgent(tools=[...])",
    "system_instruction": "pass it as LlmAgent(instruction=...)",
    "response_schema": "pass it as LlmAgent(output_schema=...)",
    "response_json_schema": "pass it as LlmAgent(output_schema=...)",
    "base_url": "give it to the model: LlmAgent(model=Gemini(model=..., base_url=...))",
}
"""Fields of google's config that have a place of their own -> the place."""
_ALONE = {"include_contents": "none", "identity": False}
"""What an agent with `mode="single_turn"` has where it says nothing else. Source: google-adk 2.13."""
_BY_ALIAS = {field.alias: name for name, field in types.GenerateContentConfig.model_fields.items()}


class LlmAgent(TeamAgent):
    """A name, a model, an instruction, and tools. Plain functions become tools.

    Raises:
        ConfigurationError: A field is unknown or wrong; the message names it and the right place.
    """

    model: str | BaseLlm = ""
    """A model, or the name of one. Empty: the nearest parent's that has one, else that of `set_default_model`, else the
    default (see `models.default_model`)."""
    instruction: str | InstructionProvider = ""
    """What it is told. At each turn `{key}` is replaced by the state's value and `{artifact.name}` by what that file
    says; a callable's text is taken as it is."""
    template: bool = True
    """False: braces in its instructions mean nothing."""
    global_instruction: str | InstructionProvider = ""
    """Told to every agent of the tree if this one is its root, else to this one alone; templated as `instruction`."""
    static_instruction: Any = None
    """Text, a content, or parts, said first and byte for byte the same at every call, so that a service can cache it;
    `instruction` then stands before the user's words instead of in the system instruction."""
    identity: bool = True
    """False: the model is not told the agent's name and description. If unset, so it is with `mode="single_turn"`."""
    include_contents: Literal["default", "none"] = "default"
    """`none`: the agent sees the current turn only. If unset, so it is with `mode="single_turn"`."""
    tools: list[Any] = Field(default_factory=list[Any])
    """Functions, tools, or toolsets."""
    generate_content_config: Annotated[types.GenerateContentConfig | None, LAZY] = None
    """Temperature, limits, safety and the like; tools and instruction have fields of their own."""
    input_schema: Any = None
    """What a message to this agent must be, as JSON: a pydantic model, or a JSON schema. None: anything."""
    output_schema: Any = None
    """What its final answer must be, as JSON: a type that pydantic knows, a JSON schema, or a types.Schema. Of the
    last two only the outermost type is checked; the rest is the model's service's to keep."""
    on_output_error: Literal["event", "raise", "raw", "retry"] = "event"
    """An answer that does not fit `output_schema`: is told by an OUTPUT_SCHEMA_MISMATCH event, raises, is kept as text,
    or is asked for once more."""
    output_key: str | None = None
    """Where in the state its final answer is kept: the text, or with `output_schema` the JSON value."""
    planner: BasePlanner | None = None
    """How it is told to plan (`adk_nb.planners`)."""
    code_executor: InstanceOf[BaseCodeExecutor] | None = None
    """Runs the code in its answers (`adk_nb.code_executors`)."""
    max_iterations: int | None = Field(default=16, gt=0)
    """Model calls in one turn; the next ends it with a MAX_ITERATIONS event. None: no limit."""
    tool_errors: Literal["return", "raise"] = "return"
    """What a raising tool does: its error goes to the model, or ends the run."""
    before_model_callback: Hooks = None
    """`(callback_context, llm_request) -> LlmResponse | None`: a response is taken instead of asking the model."""
    after_model_callback: Hooks = None
    """`(callback_context, llm_response) -> LlmResponse | None`: a response takes the place of the model's."""
    on_model_error_callback: Hooks = None
    """`(callback_context, llm_request, error) -> LlmResponse | None`: a response is taken as the model's."""
    before_tool_callback: Hooks = None
    """`(tool, args, tool_context) -> dict | None`: a dict is the result, and the tool does not run."""
    after_tool_callback: Hooks = None
    """`(tool, args, tool_context, tool_response) -> dict | None`: a dict takes the place of the result, which is
    `{"error": ...}` if the tool failed."""
    on_tool_error_callback: Hooks = None
    """`(tool, args, tool_context, error) -> dict | None`: a dict is the result."""

    _shapes: dict[str, tuple[Any, Shape]] = PrivateAttr(default_factory=dict[str, tuple[Any, Shape]])
    _canonical: tuple[list[Any], list[BaseTool]] = PrivateAttr(default_factory=lambda: ([], list[BaseTool]()))
    _with_toolsets: list[BaseTool | BaseToolset] = PrivateAttr(default_factory=list[BaseTool | BaseToolset])
    """Its tools and toolsets; empty if it has no toolset."""
    DEFAULT_LIVE_MODEL: ClassVar[str] = "gemini-live-2.5-flash-native-audio"
    """Source: google-adk 2.13."""
    _default_model: ClassVar[str | BaseLlm] = ""
    _model: tuple[str, BaseLlm] | None = PrivateAttr(default=None)

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        if self.mode is not None:
            self._as_its_mode_has_it(alone=self.mode == "single_turn")
        self._check_settings()
        self._check_static()
        self._shape("input_schema")
        self._shape("output_schema")
        duplicates = {tool.name for tool in self.tools_now()} & {tool.name for tool in self.sub_agent_tools}
        if duplicates:
            twice = f"agent {self.name!r} has a tool and a sub-agent named {min(duplicates)!r}; the sub-agent is called"
            warn(twice)

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
        """The parser of its final answer. None: it has no `output_schema`, or has a task, which has no answer."""
        return None if self.output_schema is None or self.mode == "task" else self._shape("output_schema")

    @property
    def input_shape(self) -> Shape | None:
        """The parser of a message to it. None: it has no `input_schema`."""
        return self._shape("input_schema")

    @property
    def canonical_model(self) -> BaseLlm:
        """The model that answers for this agent, made once.

        Raises:
            ConfigurationError: No model goes by that name.
        """
        model_or_name = self._named_model() or self._default_model
        if tap := installed():
            return tap.model(model_or_name, self.name)
        model = model_or_name or default_model()
        if isinstance(model, BaseLlm):
            return model
        if self._model is None or self._model[0] != model:
            self._model = (model, LLMRegistry.new_llm(model))
        return self._model[1]

    @classmethod
    def set_default_model(cls, model: str | BaseLlm) -> None:
        """Let agents that name no model, and have none above them that does, ask this one.

        Raises:
            TypeError: It is neither a model nor the name of one.
            ConfigurationError: The name is empty.
        """
        if not isinstance(cast(Any, model), str | BaseLlm):
            raise TypeError(f"a default model is a BaseLlm or the name of a model, and not {shown(model)}")
        if not model:
            raise ConfigurationError(f"the name of the default model is empty; pass one such as {GEMINI_MODEL!r}")
        LlmAgent._default_model = model

    @property
    def canonical_live_model(self) -> BaseLlm:
        """The model that holds live conversations for this agent: its own, its parents', or `DEFAULT_LIVE_MODEL`."""
        return self.canonical_model if self._named_model() else LLMRegistry.new_llm(self.DEFAULT_LIVE_MODEL)

    def _named_model(self) -> str | BaseLlm:
        """Its own model, or the nearest parent's; empty if none names one."""
        current: BaseAgent | None = self
        while current:
            if isinstance(current, LlmAgent) and current.model:
                return current.model
            current = current.parent_agent
        return ""

    @property
    def toolsets(self) -> Sequence[BaseToolset]:
        """Those among its tools."""
        tools = self._with_toolsets if self.tools_now() or self.tools else ()
        return [tool for tool in tools if isinstance(tool, BaseToolset)] if tools else ()

    async def canonical_tools(self, ctx: ReadonlyContext | None = None, /) -> list[BaseTool]:
        """Its tools, functions wrapped, those of its toolsets, and the way to hand over where there is somebody."""
        tools = self.tools_now()
        if self.tools and (tools_and_sets := self._with_toolsets):
            tools = await expand_toolsets(self.name, tools_and_sets, ctx)
            self._canonical = (self._canonical[0], tools)
        team = self._team_tools()
        return [*tools, *team] if team else tools

    def _team_tools(self) -> list[BaseTool]:
        """The tools for calling sub-agents, transferring the conversation, and finishing a task."""
        if not (self.sub_agents or self.mode or isinstance(self._parent, TeamAgent)):
            return []
        over = self._handing_over()
        finish_tools = [FinishTaskTool(self._shape("output_schema"), self.output_key)] if self.mode == "task" else []
        return [*self.sub_agent_tools, *([over] if over else []), *finish_tools]

    @property
    def instructed_by(self) -> Sequence["LlmAgent"]:
        """The agents whose `global_instruction` is told to this one: the root of its tree, then itself."""
        root = self.root_agent
        above = (root,) if root is not self and isinstance(root, LlmAgent) and root.global_instruction else ()
        return (*above, self) if self.global_instruction else above

    async def canonical_instruction(self, ctx: ReadonlyContext, /) -> tuple[str, bool]:
        """The instruction of this turn; and True if its braces mean nothing: a function's, or `template=False`.

        Raises:
            ConfigurationError: The function did not return text.
        """
        if isinstance(self.instruction, str):
            return self.instruction, not self.template
        return await self._provided("instruction", self.instruction, ctx), True

    async def canonical_global_instruction(self, ctx: ReadonlyContext, /) -> tuple[str, bool]:
        """Its own global instruction of this turn; the rest as `canonical_instruction`."""
        if isinstance(self.global_instruction, str):
            return self.global_instruction, not self.template
        return await self._provided("global_instruction", self.global_instruction, ctx), True

    def input_mismatch(self, message: types.Content, /) -> str | None:
        parts = message.parts or []
        shape = self.input_shape
        if not shape or any(part.function_response for part in parts):
            return None
        try:
            shape.read("".join(part.text for part in parts if part.text and not part.thought))
            return None
        except (ValidationError, ConfigurationError) as error:
            return error_text(error)

    def _settled(self, ctx: InvocationContext, event: Event) -> Iterable[Event]:
        return settled(ctx, self, event)

    def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        return run_live_turn(ctx, self) if ctx.run_config.support_cfc else run_llm(ctx, self)

    def _run_live_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        return run_live(ctx, self)

    def tools_now(self) -> list[BaseTool]:
        """`canonical_tools` without await: made once, and again when `tools` has changed.

        Of toolsets it has what they had last.
        """
        if not self.tools:
            return []
        cached_for, cached = self._canonical
        if cached_for != self.tools:
            wrapped = _wrapped(self, self.tools)
            cached = [wrapped_tool for wrapped_tool in wrapped if isinstance(wrapped_tool, BaseTool)]
            self._with_toolsets = wrapped if len(cached) < len(wrapped) else []
            self._canonical = (list(self.tools), cached)
        return cached

    def _shape(self, field: str) -> Shape | None:
        """The schema of a field, read once, and again when the field has changed."""
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
                f"agent {self.name!r}: its {field} is text or a function, and not {shown(provider)}"
            )
        text = provider(ctx)
        if inspect.isawaitable(text):
            text = await text
        if text is not None and not isinstance(text, str):
            raise ConfigurationError(
                f"agent {self.name!r}: its {field} is a function that returned {shown(text)}; return text"
            )
        return text or ""

    def _as_its_mode_has_it(self, *, alone: bool) -> None:
        for name, value in _ALONE.items():
            if name not in self.model_fields_set:  # and they are not marked as set
                vars(self)[name] = value if alone else type(self).model_fields[name].default

    def _check_static(self) -> None:
        try:
            if self.static_instruction and not isinstance(self.static_instruction, str):
                static_content(self.static_instruction)
        except InputError as error:
            raise ConfigurationError(
                f"agent {self.name!r}: 'static_instruction' is text, a types.Content, a types.Part or a list of these "
                f"parts and texts, and not {shown(self.static_instruction)}"
            ) from error

    def _check_settings(self) -> None:
        settings = self.generate_content_config
        for field, better in _ELSEWHERE.items() if settings else ():
            if getattr(settings, field, None) or getattr(settings and settings.http_options, field, None):
                raise ConfigurationError(
                    f"agent {self.name!r}: {field!r} does not belong in generate_content_config; {better}"
                )

    def _unknown_field(self, field: str) -> str:
        field = _BY_ALIAS.get(field, field)
        if better := _ELSEWHERE.get(field):
            return f"{field!r} is no field of an agent; {better}"
        if field in types.GenerateContentConfig.model_fields:
            return (
                f"{field!r} belongs into generate_content_config; "
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
                f"write AgentTool(agent={candidate.name}), "
                "or pass it in sub_agents"
            )
        if isinstance(candidate, BaseToolset):
            by_name[id(candidate)] = candidate
            continue
        if template := wrapper_template(candidate):
            raise ConfigurationError(
                f"agent {agent.name!r}: {shown(candidate)} is a tool of another library; write {template.format('...')}"
            )
        if not (isinstance(candidate, BaseTool) or callable(candidate)):
            raise ConfigurationError(
                f"agent {agent.name!r}: {shown(candidate)} is not a tool; pass functions, or tools, or toolsets"
            )
        tool = candidate if isinstance(candidate, BaseTool) else FunctionTool(cast(Callable[..., Any], candidate))
        if len(tools) > 1 and isinstance(tool, GoogleSearchTool) and tool.bypass_multi_tools_limit:
            tool = AgentTool(
                _Searcher(agent, tool), stream_events=True
            )  # what it finds is to be shown with where it is
        if tool.name in by_name:
            twice = f"agent {agent.name!r} has two tools named {tool.name!r}; the later one is used"
            warn(twice)
        by_name[tool.name] = tool
    return list(by_name.values())


class _Searcher(LlmAgent):
    """Only searches, with the model of the agent that it searches for."""

    _caller: LlmAgent = PrivateAttr()

    def __init__(self, caller: LlmAgent, search: GoogleSearchTool) -> None:
        super().__init__(
            name=f"{google_search.name}_agent",
            description="Searches the web with Google.",
            instruction="Search the web for what you are asked, and answer from what you find.",
            tools=[search],
        )
        self._caller = caller

    @property
    def canonical_model(self) -> BaseLlm:
        return self._caller.canonical_model


Agent = LlmAgent
