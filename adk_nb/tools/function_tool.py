"""A Python function as a tool; of one that yields, the values are progress events, and the last one is the result."""

import asyncio
import copy
import functools
import inspect
import json
import logging
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing
from datetime import UTC, datetime
from decimal import Decimal
from types import AsyncGeneratorType
from typing import Any, Self, cast, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json, to_jsonable_python

from adk_nb import parts, sync, types
from adk_nb.auth.auth_credential import redact
from adk_nb.auth.auth_tool import AuthConfig
from adk_nb.concurrency.generators import blocking_items
from adk_nb.errors import ConfigurationError
from adk_nb.events.event import Event
from adk_nb.events.event_actions import EventActions
from adk_nb.redaction import in_result
from adk_nb.runtime.branches import for_call
from adk_nb.runtime.context import ToolContext, abandon, call_state
from adk_nb.runtime.live_request_queue import LiveRequestQueue
from adk_nb.sessions.journal import Effect
from adk_nb.sessions.state import State
from adk_nb.tools.base_tool import BaseTool, effect_of
from adk_nb.tools.conditions import Condition, argument_names, condition_holds, is_awaitable, parse_condition
from adk_nb.tools.schema import call_is, docstring_owners, is_generator, signature_of
from adk_nb.tools.shape import error_text
from adk_nb.tools.tool_result import LAZY_TYPES, acollect, collect, convert_result

_MISSING = object()


async def run_with_progress(
    items: AsyncGenerator[Any, None], tool: str, context: ToolContext, *, as_responses: bool = False
) -> Any:
    """Run a tool that yields. Return its last value, or None if there is none; emit the values before it as progress.

    By default a value becomes a `partial` event, which is not stored, with the value as JSON in `output` and as text.
    An `Event(message=...)` is stored with its state writes, but not sent to a model; its `output`, if any, is a value.

    Args:
        items: The tool's generator.
        tool: The tool's name.
        context: Context of the call.
        as_responses: Store each value as an interim response to the call (`will_continue`); the model sees the latest.
    """
    result: Any = _MISSING
    emit = _emit_response if as_responses else _emit_progress
    async with aclosing(items):
        try:
            async for item in items:
                value: Any = item
                if isinstance(item, Event):
                    await _emit(context, tool, _own_event(item, context))
                    if item.output is None:
                        continue
                    value = item.output
                # One value behind: only the end of the generator shows which value was the last.
                await emit(context, tool, result)
                result = value
        except Exception:
            await emit(context, tool, result)
            raise
    return None if result is _MISSING else result


async def _emit(context: ToolContext, tool: str, event: Event | None) -> None:
    ctx = context.get_invocation_context()
    if event is None or ctx.emit is None:
        return
    event.author = tool
    event.invocation_id = ctx.invocation_id
    event.isolation_scope = ctx.isolation_scope
    event.branch = for_call(ctx.branch, tool, context.function_call_id)
    await ctx.emit(event)


async def _emit_progress(context: ToolContext, tool: str, value: Any) -> None:
    """Emit a value as progress, unless it is None."""
    if value is _MISSING or value is None:
        return
    response = _response(context, value, tool)
    output = response["result"] if response.keys() == {"result"} else response
    text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
    content = parts.content("model", [types.Part(text=text)])
    await _emit(context, tool, Event(partial=True, output=output, content=content))


async def _emit_response(context: ToolContext, tool: str, value: Any) -> None:
    """Emit a value as an interim response, unless it is None."""
    ctx = context.get_invocation_context()
    if value is _MISSING or value is None or ctx.emit is None:
        return
    part = parts.result(context.function_call_id, tool, _response(context, value, tool))
    if part.function_response:
        part.function_response.will_continue = True
    content = parts.content("user", [part])
    await ctx.emit(Event(author=context.agent_name, branch=ctx.branch, content=content))


def _response(context: ToolContext, value: Any, tool: str) -> dict[str, Any]:
    response = convert_result(value, tool).response
    if context.auth_credential:
        response = redact(response, context.auth_credential.secrets())
    return in_result(response)


def _own_event(event: Event, context: ToolContext) -> Event | None:
    """Reduce an event made by a tool to what a tool may write: text, media, files, state. None: nothing is left.

    Raises:
        ConfigurationError: It writes a value that the state cannot store.
    """
    content_parts = (event.content and event.content.parts) or []
    own_parts = [part for part in content_parts if not (part.function_call or part.function_response)]
    actions = EventActions(artifact_delta=event.actions.artifact_delta)
    ctx = context.get_invocation_context()
    state = State(ctx.session.state, actions.state_delta, ctx.state_schema, only_json=ctx.keeps_only_json)
    state.update(event.actions.state_delta)
    if not (own_parts or actions.state_delta or actions.artifact_delta):
        return None
    role = (event.content and event.content.role) or "user"
    return Event(
        content=parts.content(role, own_parts) if own_parts else None,
        actions=actions,
        partial=event.partial,
        custom_metadata=event.custom_metadata,
    )


logger = logging.getLogger(__name__)


class FunctionTool(BaseTool):
    """Wraps a function: its signature is the schema, its docstring the description.

    Args:
        func: Sync or async. A parameter named `tool_context`, or annotated so, is handed the call's Context.
            Of a generator, sync or async, the last value is the result (of a sync one: what it returns, if that is not
            None). The values before it, and each `Event(message=...)`, reach the caller while it runs; see
            `tools/tool_progress.py`. In a live conversation an async generator keeps running after its call was
            answered: the model gets each item as it is yielded, and a parameter annotated as LiveRequestQueue gets what
            the user sends meanwhile.
        require_confirmation: Ask the user before it runs: True; a callable that gets the arguments; or an expression of
            them, as `"amount > 100"`; missing ones take their defaults (see `expression.Expression`).
        auth_config: The credential it needs; the function finds it in `tool_context.auth_credential`.
        thread: Run a sync function on a worker thread.
        effect: Safety of repeating a call after an interrupted run; see `BaseTool.effect`. None: `once`, or `pure` for
            functions of this package without side effects, as `exit_loop`.
        timeout: Seconds until the call fails with a TimeoutError. An async function is cancelled then. A sync function
            cannot be: it runs on a worker thread and is abandoned there; its later writes to state and actions are
            lost. Up to 96 abandoned threads are replaced; beyond that, when the remaining threads are busy too, calls
            fail. Time that the consumer of progress takes counts too. None: no limit.

    Raises:
        ConfigurationError: A parameter's type cannot be filled from JSON; the timeout is not positive; `func` is a tool
            or not callable.
    """

    def __init__(
        self,
        func: Callable[..., Any],
        *,
        require_confirmation: Condition = False,
        auth_config: AuthConfig | None = None,
        thread: bool = False,
        timeout: float | None = None,
        effect: Effect | None = None,
        name: str | None = None,
        description: str | None = None,
    ) -> None:
        if isinstance(func, FunctionTool):  # wrapping it would drop its approval and credential
            raise ConfigurationError(
                f"{type(self).__name__} takes a function, and {func.name!r} is a tool already; use it as it is, or "
                "pass its .func"
            )
        if not callable(func):
            raise ConfigurationError(f"a tool needs a function, got {func!r:.60}; pass the function itself")
        super().__init__(name=name or name_of(func), description=description or _description(func))
        self.func = func
        if not isinstance(cast(Any, auth_config), AuthConfig | None):  # its value may be a key: name only its type
            raise ConfigurationError(
                f"tool {self.name!r}: auth_config must be an AuthConfig, got {type(auth_config).__name__}; "
                "write AuthConfig(auth_scheme=APIKey(name='X-Key', in_='header')), or another scheme"
            )
        self.auth_config = auth_config
        if not (timeout is None or (isinstance(cast(Any, timeout), int | float) and timeout > 0)):
            raise ConfigurationError(
                f"tool {self.name!r}: timeout must be a positive number of seconds, got {timeout!r}"
            )
        if effect is not None and effect not in get_args(Effect):
            raise ConfigurationError(
                f"tool {self.name!r}: effect must be 'pure', 'idempotent' or 'once', got {effect!r:.80}"
            )
        # Set only where somebody said it: see `BaseTool.asks_to_repeat`.
        if effect or effect_of(func) != BaseTool.effect:
            self.effect = effect or effect_of(func)
        self.thread = thread or timeout is not None  # only a worker thread can be abandoned at the timeout
        self.timeout = timeout
        self._has_own_description = description is not None
        self._analyze()
        parameters = None if self.signature.takes_any else self.signature.names
        self.require_confirmation = parse_condition(require_confirmation, f"tool {self.name!r}", parameters)

    def _analyze(self) -> None:
        """Derive the signature, and the way to call it, from the function."""
        func, self._analyzed_code = self.func, getattr(self.func, "__code__", None)
        self.signature = signature_of(func, self.name)
        self._is_async = call_is(inspect.iscoroutinefunction, func)
        self._streams = call_is(inspect.isasyncgenfunction, func)
        self.reports_progress = is_generator(func)
        if self.signature.untyped:
            logger.warning(
                "tool %r: the type of %s cannot be resolved, so the model gets no schema for it",
                self.name,
                ", ".join(self.signature.untyped),
            )
        for parameter in self.signature.faults.keys() - set(self.signature.untyped):
            logger.warning("tool %r: %s", self.name, self.signature.faults[parameter])

    def refreshed(self) -> Self:
        """A copy with the new signature if the function's code was replaced in place, as by autoreload; else self."""
        if self._analyzed_code is getattr(self.func, "__code__", None):
            return self
        fresh = copy.copy(self)
        fresh.description = self.description if self._has_own_description else _description(self.func)
        fresh._declaration_cache = ()  # rebuilt on next use
        fresh._analyze()
        return fresh

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function directly, not as a tool."""
        return self.func(*args, **kwargs)

    def _get_declaration(self) -> types.FunctionDeclaration | None:
        return self.signature.declaration(self.description)

    @property
    def may_need_approval(self) -> bool:
        """True if some calls need an approval."""
        is_overridden = type(self).check_require_confirmation is not FunctionTool.check_require_confirmation
        return bool(self.require_confirmation) or is_overridden

    def comparable_args(self, args: dict[str, Any]) -> dict[str, Any]:
        """`args` as the function gets them; as they are if they are not valid or have no JSON form."""
        checked = self._validate(args)
        if isinstance(checked, str):
            return args
        try:
            return _comparable(checked.model_dump(by_alias=True, warnings=False))
        except (ValueError, ArithmeticError):
            return args

    async def check_require_confirmation(self, args: dict[str, Any], tool_context: ToolContext) -> bool:
        """Evaluate `require_confirmation`; False for invalid arguments, which are returned to the model anyway."""
        condition = self.require_confirmation
        if not condition:
            return False
        if isinstance(condition, str):
            checked = self._validate(args)
            if isinstance(checked, str):
                return False
            names = argument_names(condition) - getattr(self.func, "keywords", {}).keys()
            fields = {key: field.alias or key for key, field in type(checked).model_fields.items()}
            included = {*names, *(key for key, alias in fields.items() if alias in names)}
            try:
                values = checked.model_dump(mode="json", by_alias=True, include=included, warnings=False)
            except ValueError:  # a value without JSON form
                values = {}
            return await condition_holds(condition, values, tool_context)
        arguments = self._call_arguments(args, tool_context)
        if isinstance(arguments, str):
            return False  # nothing will run: the error goes back to the model
        arguments.pop(self._context_name or "", None)
        arguments.pop(self.signature.stream_parameter or "", None)
        return await condition_holds(condition, arguments, tool_context)

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """Call the function with the validated arguments; invalid ones give `{"error": message}`."""
        arguments = self._call_arguments(args, tool_context)
        if isinstance(arguments, str):
            return {"error": arguments}
        # Positional-only parameters cannot be passed by keyword.
        positional = [arguments.pop(name) for name in self.signature.positional if name in arguments]
        if self.timeout is None:
            return await self._run(tool_context, positional, arguments)
        limit = asyncio.timeout(self.timeout)
        try:
            async with limit:
                return await self._run(tool_context, positional, arguments)
        except TimeoutError as error:
            if not limit.expired():  # a TimeoutError of the function itself
                raise
            note = "; it continues in its thread, and may take effect" if call_state(tool_context).is_abandoned else ""
            raise TimeoutError(f"{self.name}() had no result after {self.timeout:g} seconds{note}") from error

    async def _run(self, context: ToolContext, positional: list[Any], arguments: dict[str, Any]) -> Any:
        if self._is_async:
            return await self.func(*positional, **arguments)
        if self._streams:
            return await self._run_stream(self.func(*positional, **arguments), context)
        pool = context.run_config.tool_thread_pool_config
        max_threads, thread = pool and pool.max_workers, self.thread or context.run_config.timeout is not None
        on_abandon = functools.partial(abandon, context, self.name)
        if self.reports_progress:
            new_items = functools.partial(_items_and_return_value, self.func, positional, arguments)
            items = blocking_items(new_items, thread=thread, threads=max_threads, on_abandon=on_abandon)
            return await run_with_progress(items, self.name, context, as_responses=self.is_long_running)
        call = functools.partial(_call, self.func, positional, arguments)
        result = await sync.blocking(call, thread=thread, threads=max_threads, on_abandon=on_abandon, keeps_result=True)
        if type(result) is AsyncGeneratorType:  # a plain function may return an async generator
            return await self._run_stream(cast(Any, result), context)
        return await result if is_awaitable(result) else result  # a plain function may return a coroutine

    async def _run_stream(self, items: AsyncGenerator[Any, None], context: ToolContext) -> Any:
        """Run a generator: its last item if the tool declares that it yields, else a list of all items."""
        if streams := context.get_invocation_context().streams:  # live: its items go to the model as they come
            return streams.start(self.name, context.function_call_id or "", items, self.response_scheduling)
        if not self.reports_progress:
            return await acollect(items)
        return await run_with_progress(items, self.name, context, as_responses=self.is_long_running)

    def check(self, args: dict[str, Any]) -> str | None:
        """Validate `args` against the signature."""
        checked = self._validate(args)
        return checked if isinstance(checked, str) else None

    @property
    def _context_name(self) -> str | None:
        return self.signature.context_parameter

    def _call_arguments(self, args: dict[str, Any], tool_context: ToolContext) -> dict[str, Any] | str:
        """The function's keyword arguments, or an error message for the model."""
        checked = self._validate(args)
        if isinstance(checked, str):
            return checked
        arguments = {field.alias or key: getattr(checked, key) for key, field in type(checked).model_fields.items()}
        if self.signature.takes_any:
            arguments = (checked.model_extra or {}) | arguments  # extra arguments go to **kwargs
            for bound in getattr(self.func, "keywords", ()):
                arguments.pop(bound, None)  # bound by the partial, so not the model's to set
        if self._context_name:
            arguments[self._context_name] = tool_context
        if self.signature.stream_parameter:
            # What the user sends from now on; outside a live conversation nothing.
            streams = tool_context.get_invocation_context().streams
            queue = streams.listen() if streams else LiveRequestQueue()
            if not streams:
                queue.close()
            arguments[self.signature.stream_parameter] = queue
        return arguments

    def _validate(self, args: dict[str, Any]) -> BaseModel | str:
        if missing := [name for name in self.signature.required if name not in args]:
            return (
                f"{self.name}() was not called: the mandatory parameters {', '.join(missing)} are missing. "
                "Call it again with all of them."
            )
        arguments = self.signature.arguments
        try:
            return arguments.model_validate(args)
        except ValidationError as error:
            first_error = error  # it shows the arguments as the model sent them
        invalid_names = {fault["loc"][0] for fault in first_error.errors(include_url=False, include_context=False)}
        try:  # some models send a list or an object as JSON text
            parsed = {key: _parse_json(value) if key in invalid_names else value for key, value in args.items()}
            return arguments.model_validate(parsed)
        except ValidationError:
            message = error_text(first_error)
            return f"{self.name}() was not called: wrong arguments: {message}. Call it again with arguments that fit."


def name_of(func: Callable[..., Any]) -> str:
    """The default name of the tool that wraps `func`. Raises ConfigurationError for a lambda, which has no name."""
    inner = cast(Any, func).func if isinstance(func, functools.partial) else func
    name = getattr(inner, "__name__", None) or type(inner).__name__
    if name == "<lambda>":
        raise ConfigurationError("a lambda has no name that a model could call; write `def`, or pass name='...'")
    return name


def _call(func: Callable[..., Any], positional: list[Any], arguments: dict[str, Any]) -> Any:
    result = func(*positional, **arguments)
    return collect(result) if type(result) in LAZY_TYPES else result  # iterate in the tool's thread


def _items_and_return_value(
    func: Callable[..., Any], positional: list[Any], arguments: dict[str, Any]
) -> Generator[Any, None, None]:
    """Items of a generator function, and after them its return value unless that is None."""
    items: Generator[Any, None, Any] = func(*positional, **arguments)
    returned = yield from items
    if returned is not None:
        yield returned


def _parse_json(value: Any) -> Any:
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return from_json(value)
        except ValueError:
            return value
    return value


def _comparable(value: Any) -> Any:
    """`value` in JSON, the same for equal values: 20 and 20.00, one moment in two time zones, a set in any order.

    Raises:
        ValueError, ArithmeticError: It has no JSON form.
    """
    if isinstance(value, dict):
        return {str(key): _comparable(item) for key, item in cast(dict[Any, Any], value).items()}
    if isinstance(value, list | tuple):
        return [_comparable(item) for item in cast(list[Any], value)]
    if isinstance(value, set | frozenset):
        return sorted((_comparable(item) for item in cast(set[Any], value)), key=repr)
    if isinstance(value, Decimal) and value.is_finite():
        return str(value.normalize())
    if isinstance(value, datetime) and value.tzinfo:
        return value.astimezone(UTC).isoformat()
    return to_jsonable_python(value, by_alias=True)


def _description(func: Callable[..., Any]) -> str:
    if isinstance(func, functools.partial):
        return _description(cast(Callable[..., Any], func.func))
    return next((text for owner in docstring_owners(func) if (text := inspect.getdoc(owner))), "")
