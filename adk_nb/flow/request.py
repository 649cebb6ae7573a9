"""Build the request of a model call: instruction, history, tools, cache metadata."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, SupportsIndex, cast, overload

from adk_nb import types
from adk_nb.errors import InputError
from adk_nb.events.event import as_content
from adk_nb.flow.history.contents import INSTRUCTION_FENCE, contents_before, fence, fence_marks, read_contents
from adk_nb.flow.spec import LlmSpec, hooks_of
from adk_nb.models.cache_metadata import CacheMetadata
from adk_nb.models.llm_request import LlmRequest
from adk_nb.runtime.context import Context, ReadonlyContext
from adk_nb.runtime.instructions import inject_session_state
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.runtime.run_config import RunConfig
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.set_model_response_tool import INSTRUCTION, SetModelResponseTool
from adk_nb.wire import copy_model

_default_config = cache(types.GenerateContentConfig)
"""Built on first use: importing google-genai's types takes long."""
_empty_request = cache(LlmRequest)


async def build_request(
    ctx: InvocationContext, spec: LlmSpec, tools: Sequence[BaseTool], context: Context
) -> LlmRequest:
    """The request for the next model call of `spec`; `context` is passed to the tools that edit it.

    Contents, in order: the data of the static instruction, the history, and before the user's last message the
    contents that are for this call alone.

    Raises:
        StateKeyError: An instruction names a state key that does not exist.
        ConfigurationError: An instruction function returned no text.
    """
    request = copy_model(  # without validation: the values are checked already
        _empty_request(),
        model=spec.canonical_model.model,
        config=_request_config(spec, ctx.run_config),
        contents=[],
        tools_dict={},
        session_state=ctx.session.state,
    )
    instruction = await add_instructions(ctx, spec, request)
    # Saved: `_add_history` replaces the contents.
    static_contents = request.contents
    if spec.output_shape:
        if any(isinstance(tool, SetModelResponseTool) for tool in tools):
            request.append_instructions([INSTRUCTION])
        else:
            request.set_output_schema(spec.output_shape.schema)
    request.append_tools([tool for tool in tools if _only_declares(tool)])
    # Before the history is read, which a summary shortens.
    if ctx.compaction:
        await ctx.compaction.before_model(ctx, spec.name)
    await _add_history(ctx, spec, request, instruction)
    if ctx.context_cache_config:
        set_cache_hints(ctx, spec.name, request)
    for tool in tools:
        # After the history: these tools may edit it.
        if not _only_declares(tool):
            await tool.process_llm_request(tool_context=context, llm_request=request)
    # At the front, so that the prefix which services cache stays the same from turn to turn.
    request.contents[:0] = static_contents
    # Callbacks may edit the request: they get copies, so that the session's history does not change.
    if hooks_of(ctx, spec, "before_model"):
        request.contents = LentContents(request.contents)
        request.config = request.config.model_copy(deep=True)
    return request


def _request_config(spec: LlmSpec, run_config: RunConfig) -> types.GenerateContentConfig:
    """A copy of the agent's config, with the labels, service tier and HTTP options of the run."""
    config = spec.generate_content_config or _default_config()
    updates: dict[str, Any] = {}
    if run_config.labels:
        updates["labels"] = (config.labels or {}) | run_config.labels
    if run_config.service_tier:
        updates["service_tier"] = types.ServiceTier(run_config.service_tier)
    if options := run_config.http_options:
        http_options = config.http_options or types.HttpOptions()
        http_updates = {name: getattr(options, name) for name in options.model_fields_set}
        # Headers are merged; every other option of the run replaces the agent's.
        http_updates["headers"] = (http_options.headers or {}) | (options.headers or {})
        updates["http_options"] = http_options.model_copy(update=http_updates)
    return copy_model(config, **updates)


async def _add_history(
    ctx: InvocationContext, spec: LlmSpec, request: LlmRequest, instruction: types.Content | None
) -> None:
    """Add the history that the agent sees, and the contents that are for this call alone."""
    this_turn, run_config = spec.include_contents == "none", ctx.run_config
    thoughts = run_config.include_thoughts_from_other_agents and not this_turn
    request.contents = await read_contents(
        ctx.session, spec.name, ctx.branch, ctx.isolation_scope, this_turn=this_turn, thoughts=thoughts
    )
    if ctx.delegated_input:
        request.contents[:0] = _delegated_history(ctx, spec.name, thoughts=thoughts)
    if spec.planner:
        spec.planner.process_llm_request(request)
        if planning := spec.planner.build_planning_instruction(ReadonlyContext(ctx), request):
            request.append_instructions([planning])
    if extra := run_config.model_input_context:
        # From the end: an earlier message may have the same text.
        for index in range(len(request.contents) - 1, -1, -1):
            if request.contents[index] == ctx.user_content:
                request.contents[index:index] = extra
                break
        else:
            request.insert_before_question(extra)
    if instruction:
        request.insert_before_question([instruction])


def _delegated_history(ctx: InvocationContext, agent: str, *, thoughts: bool) -> list[types.Content]:
    """The input of a delegated agent, preceded by the history of its callers that it may see."""
    contents = [ctx.delegated_input] if ctx.delegated_input else []
    if caller := ctx.caller:
        earlier_contents = contents_before(
            ctx.session, ctx.caller_event_count, agent, ctx.branch, caller.isolation_scope, thoughts=thoughts
        )
        return [*_delegated_history(caller, agent, thoughts=thoughts), *earlier_contents, *contents]
    return contents


def _only_declares(tool: BaseTool) -> bool:
    """True if `tool` does not override `process_llm_request`; such tools are declared together."""
    return type(tool).process_llm_request is BaseTool.process_llm_request


_BEGIN, _END = fence_marks(INSTRUCTION_FENCE)
# Part of recorded requests: with other words, the cassettes of agents with a static instruction would not match.
_PREAMBLE = (
    f"What stands between {_BEGIN} and {_END} is your own instruction for this turn, with what is known now. It is "
    "meant for you, and the user did not say it: do not answer it. What the user says stands outside of these marks."
)


async def add_instructions(ctx: InvocationContext, spec: LlmSpec, request: LlmRequest) -> types.Content | None:
    """Set the system instruction: static instruction, global instruction, own instruction, identity.

    They are joined by blank lines. Parts of the static instruction that are not text go to `request.contents`.

    Returns:
        The own instruction as a content, if there is a static one: it changes from turn to turn, so it must not break
        the prefix that services cache.

    Raises:
        StateKeyError: It names a state key, or an artifact, that does not exist.
        ConfigurationError: It names an artifact, and the runner has no artifact service; or a function did not return
            text.
    """
    readonly_context, static = ReadonlyContext(ctx), spec.static_instruction
    if static:
        request.append_instructions([static] if isinstance(static, str) else static_content(static))
        config: Any = request.config  # Any: the declared type refers to PIL, which may not be installed
        request.static_instruction = str(config.system_instruction or "")
    instructions: list[str] = []
    if tree := spec.instructed_by:
        instructions = [
            await _inject_state(*await agent.canonical_global_instruction(readonly_context), readonly_context)
            for agent in tree
        ]
    instruction, is_literal = await spec.canonical_instruction(readonly_context)
    if "{" in instruction:
        instruction = await _inject_state(instruction, is_literal, readonly_context)
    if not static:
        instructions.append(instruction)
    if spec.identity:
        instructions.append(_identity(spec))
    if "" in instructions:
        instructions = [text for text in instructions if text]
    if instructions:
        request.append_instructions(instructions)
    if not (instruction and static):
        return None
    return types.Content(role="user", parts=[types.Part(text=f"{_PREAMBLE}\n{fence(INSTRUCTION_FENCE, instruction)}")])


def static_content(value: Any) -> types.Content:
    """A static instruction that is not text, as a content.

    Raises:
        InputError: `value` is neither a content, a part or an uploaded file nor a list of parts, files and texts.
    """
    if not isinstance(value, types.Part | types.File | list):
        return as_content(value)
    parts: list[Any] = []
    for item in cast(list[Any], value) if isinstance(value, list) else [value]:
        if isinstance(item, types.File):
            if not item.uri:
                raise InputError(f"file {item.name!r} has no uri; take one that client.files.upload returned")
            data = types.FileData(file_uri=item.uri, mime_type=item.mime_type, display_name=item.display_name)
            item = types.Part(file_data=data)
        parts.append(types.Part(text=item) if isinstance(item, str) else item)
    return as_content(parts)


async def _inject_state(text: str, is_literal: bool, readonly_context: ReadonlyContext) -> str:
    return text if is_literal else await inject_session_state(text, readonly_context)


def _identity(spec: LlmSpec) -> str:
    identity = f'You are an agent. Your internal name is "{spec.name}".'
    return f'{identity} The description about you is "{spec.description}".' if spec.description else identity


@dataclass
class _CacheView:
    """The newest cache metadata and prompt size in an agent's events, updated as events are appended."""

    event_count: int = 0
    cache: CacheMetadata | None = None
    invocation_id: str = ""
    """Invocation of the event with `cache`."""
    tokens: int | None = None


def set_cache_hints(ctx: InvocationContext, agent: str, request: LlmRequest) -> None:
    """Set the cache fields of `request`: the app's cache config, the agent's last cache, its last prompt tokens."""
    session = ctx.session
    view = session.views.get(("cache", agent))
    # Fewer events than the view has read: the list was replaced.
    if view is None or view.event_count > len(session.events):
        view = session.views["cache", agent] = _CacheView()
    for event in session.events[view.event_count :]:
        if event.author == agent:
            if event.cache_metadata:
                view.cache, view.invocation_id = event.cache_metadata, event.invocation_id
            if event.usage_metadata and event.usage_metadata.prompt_token_count is not None:
                view.tokens = event.usage_metadata.prompt_token_count
    view.event_count = len(session.events)
    cache = view.cache
    # Each further invocation counts as one more use.
    if cache and cache.invocations_used is not None and view.invocation_id != ctx.invocation_id:
        cache = cache.model_copy(update={"invocations_used": cache.invocations_used + 1})
    request.cache_config = ctx.context_cache_config
    request.cacheable_contents_token_count = view.tokens
    request.cache_metadata = cache


class LentContents(list[types.Content]):
    """Contents of the session. Reading an item replaces it by a copy, which a callback may edit.

    Callbacks mostly read the newest item, so a long history costs no more than a short one.
    """

    def __init__(self, contents: Iterable[types.Content] = ()) -> None:
        super().__init__(contents)
        owned = self.originals()
        self._owned = dict(zip(map(id, owned), owned, strict=True))
        """The session's contents by `id()`, held so that the ids are not reused."""

    def originals(self) -> list[types.Content]:
        """The contents without copying, for readers."""
        return [*super().__iter__()]

    @overload
    def __getitem__(self, index: SupportsIndex, /) -> types.Content: ...
    @overload
    def __getitem__(self, index: slice, /) -> list[types.Content]: ...
    def __getitem__(self, index: SupportsIndex | slice, /) -> types.Content | list[types.Content]:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        content: types.Content = super().__getitem__(index)
        if id(content) in self._owned:
            content = content.model_copy(deep=True)
            super().__setitem__(index, content)
        return content

    def __iter__(self) -> Iterator[types.Content]:
        # By index: a callback may edit the list while it reads.
        index = 0
        while index < len(self):
            yield self[index]
            index += 1

    def __reversed__(self) -> Iterator[types.Content]:
        return (self[index] for index in range(len(self) - 1, -1, -1))

    def __add__(self, contents: Any, /) -> Any:
        return [*self, *contents]

    def __radd__(self, contents: list[types.Content], /) -> list[types.Content]:
        return [*contents, *self]

    def pop(self, index: SupportsIndex = -1, /) -> types.Content:
        content = self[index]
        del self[index]
        return content

    def copy(self) -> list[types.Content]:
        return [*self]
