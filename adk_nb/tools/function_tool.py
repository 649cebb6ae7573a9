"""A Python function as a tool."""

import asyncio
import copy
import functools
import inspect
import logging
from collections.abc import AsyncGenerator, Callable, Generator
from types import AsyncGeneratorType
from typing import Any, Self, cast, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from adk_nb import sync, types
from adk_nb.auth.auth_tool import AuthConfig
from adk_nb.errors import ConfigurationError
from adk_nb.runtime.context import ToolContext
from adk_nb.runtime.live_request_queue import LiveRequestQueue
from adk_nb.sessions.journal import Effect
from adk_nb.sync_items import blocking_items
from adk_nb.tools.annotations import gives, yields
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.conditions import Decides, as_condition, can_be_awaited, is_asked, names_in
from adk_nb.tools.effects import effect_of
from adk_nb.tools.schema import documented_in, signature_of
from adk_nb.tools.shape import in_words
from adk_nb.tools.tool_progress import last_of
from adk_nb.tools.tool_result import LAZY, adrained, drained

logger = logging.getLogger(__name__)


class FunctionTool(BaseTool):
    """Wraps a function: its signature is the schema, its docstring the description.

    Args:
        func: Sync or async. A parameter named `tool_context`, or annotated so, is handed the call's Context.
            Of a generator, sync or async, the last value is the result (of a sync one: what it returns, if that is not
            None). The values before it, and each `Event(message=...)`, reach the caller while it runs; see
            `tools/tool_progress.py`. In a live conversation an async generator goes on after its call was answered, and
            the model is told each thing it yields as it comes; a parameter annotated as LiveRequestQueue is handed what
            the user sends meanwhile.
        require_confirmation: Ask a human before it runs: True; a callable that is given the arguments; or an expression
            on them, as `"amount > 100"`, with defaults for those that are missing, as `expression.Expression` says.
        auth_config: What it has to be let in with; it then finds that in `tool_context.auth_credential`.
        thread: Run a sync function on a worker thread even where it would run in the caller's.
        effect: What it means to call it again after a run was cut in its midst; see `BaseTool.effect`. None: `once`,
            unless it is a function of ours that does nothing outside its run, as `exit_loop`.
        timeout: Seconds after which the call fails with a TimeoutError. An async function is stopped then. A sync one
            cannot be: so with a timeout it runs on a worker thread, and a late one is left to end there by itself; what
            it still does to state and actions is lost. Up to 96 such threads are replaced; after that, and once the
            others are kept too, calls fail. What the caller takes to read progress counts too. None: it may take as
            long as it likes.

    Raises:
        ConfigurationError: A parameter's type is one that no JSON can fill; a timeout of no seconds; a tool, or what
            cannot be called, for a function.
    """

    def __init__(
        self,
        func: Callable[..., Any],
        *,
        require_confirmation: Decides = False,
        auth_config: AuthConfig | None = None,
        thread: bool = False,
        timeout: float | None = None,
        effect: Effect | None = None,
        name: str | None = None,
        description: str | None = None,
    ) -> None:
        _refuse_no_function(func, type(self).__name__)
        super().__init__(name=name or name_of(func), description=description or _description_of(func))
        self.func = func
        _refuse_no_config(auth_config, self.name)
        self.auth_config = auth_config
        if not (timeout is None or (isinstance(cast(Any, timeout), int | float) and timeout > 0)):
            raise ConfigurationError(
                f"tool {self.name!r}: a timeout is a number of seconds above 0, and not {timeout!r}"
            )
        effect = effect or effect_of(func)
        if effect not in get_args(Effect):
            raise ConfigurationError(
                f"tool {self.name!r}: an effect is 'pure', 'idempotent' or 'once', and not {effect!r:.80}"
            )
        self.effect = effect
        self.thread = thread or timeout is not None
        self.timeout = timeout
        self._described = description is not None
        self._read()
        known = None if self.signature.takes_any else self.signature.names
        self.require_confirmation = as_condition(require_confirmation, f"tool {self.name!r}", known)

    def _read(self) -> None:
        """Take from the function what the model is told, and how it is called."""
        func, self._read_from = self.func, getattr(self.func, "__code__", None)
        self.signature = signature_of(func, self.name)
        self._is_async = gives(inspect.iscoroutinefunction, func)
        self._streams = gives(inspect.isasyncgenfunction, func)
        self.tells = yields(func)
        if self.signature.untyped:
            logger.warning(
                "tool %r: no type that can be read for %s, so the model is not told what to send",
                self.name,
                ", ".join(self.signature.untyped),
            )
        for parameter in self.signature.faults.keys() - set(self.signature.untyped):
            logger.warning("tool %r: %s", self.name, self.signature.faults[parameter])

    def read_again(self) -> Self:
        """A copy as its function is now, if that was changed in place, as by IPython's autoreload; else itself."""
        if self._read_from is getattr(self.func, "__code__", None):
            return self
        other = copy.copy(self)
        other.description = self.description if self._described else _description_of(self.func)
        other._declared = ()
        other._read()
        return other

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself, as if it were no tool."""
        return self.func(*args, **kwargs)

    def _get_declaration(self) -> types.FunctionDeclaration | None:
        return self.signature.declaration(self.description)

    async def check_require_confirmation(self, args: dict[str, Any], tool_context: ToolContext) -> bool:
        asks = self.require_confirmation
        if not asks:
            return False
        if isinstance(asks, str):
            return await self._is_asked_for(asks, args, tool_context)
        given = self._given(args, tool_context)
        if isinstance(given, str):
            return False  # wrong arguments go back to the model; nothing will run
        given.pop(self._context_name or "", None)
        given.pop(self.signature.stream_parameter or "", None)
        return await is_asked(asks, given, tool_context)

    async def _is_asked_for(self, asks: str, args: dict[str, Any], tool_context: ToolContext) -> bool:
        checked = self._checked(args)
        if isinstance(checked, str):
            return False
        wanted = names_in(asks) - getattr(self.func, "keywords", {}).keys()
        fields = {key: field.alias or key for key, field in type(checked).model_fields.items()}
        try:
            given = checked.model_dump(
                mode="json",
                by_alias=True,
                include={*wanted, *(key for key, alias in fields.items() if alias in wanted)},
                warnings=False,
            )
        except ValueError:  # one that JSON cannot hold
            given = {}
        return await is_asked(asks, given, tool_context)

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        given = self._given(args, tool_context)
        if isinstance(given, str):
            return {"error": given}
        positional = [given.pop(name) for name in self.signature.positional if name in given]
        if self.timeout is None:
            return await self._run(tool_context, positional, given)
        limit = asyncio.timeout(self.timeout)
        try:
            async with limit:
                return await self._run(tool_context, positional, given)
        except TimeoutError as error:
            if not limit.expired():
                raise
            goes_on = "; it goes on by itself, and may take effect" if tool_context.is_abandoned else ""
            raise TimeoutError(f"{self.name}() had no result after {self.timeout:g} seconds{goes_on}") from error

    async def _run(self, context: ToolContext, positional: list[Any], given: dict[str, Any]) -> Any:
        if self._is_async:
            return await self.func(*positional, **given)
        if self._streams:
            return await self._streamed(self.func(*positional, **given), context)
        pool = context.run_config.tool_thread_pool_config
        threads, thread = pool and pool.max_workers, self.thread or context.run_config.timeout is not None
        abandon = functools.partial(context.abandon, self.name)
        if self.tells:
            made = functools.partial(_with_what_it_returns, self.func, positional, given)
            items = blocking_items(made, thread=thread, threads=threads, on_abandon=abandon)
            return await last_of(items, self.name, context, news=self.is_long_running)
        call = functools.partial(_called, self.func, positional, given)
        answer = await sync.blocking(call, thread=thread, threads=threads, on_abandon=abandon)
        if type(answer) is AsyncGeneratorType:
            return await self._streamed(cast(Any, answer), context)
        return await answer if can_be_awaited(answer) else answer

    async def _streamed(self, items: AsyncGenerator[Any, None], context: ToolContext) -> Any:
        """Of a tool that says in advance that it yields: its last item. Of another: all of them."""
        if streams := context.get_invocation_context().streams:
            return streams.start(self.name, context.function_call_id or "", items, self.response_scheduling)
        if not self.tells:
            return await adrained(items)
        return await last_of(items, self.name, context, news=self.is_long_running)

    def check(self, args: dict[str, Any]) -> str | None:
        checked = self._checked(args)
        return checked if isinstance(checked, str) else None

    @property
    def _context_name(self) -> str | None:
        return self.signature.context_parameter

    def _given(self, args: dict[str, Any], tool_context: ToolContext) -> dict[str, Any] | str:
        """The function's keyword arguments, or what is wrong with the model's."""
        checked = self._checked(args)
        if isinstance(checked, str):
            return checked
        given = {field.alias or key: getattr(checked, key) for key, field in type(checked).model_fields.items()}
        if self.signature.takes_any:
            given = (checked.model_extra or {}) | given
            for bound in getattr(self.func, "keywords", ()):
                given.pop(bound, None)  # what a partial has filled in is not the model's
        if self._context_name:
            given[self._context_name] = tool_context
        if self.signature.stream_parameter:
            given[self.signature.stream_parameter] = _heard(tool_context)
        return given

    def _checked(self, args: dict[str, Any]) -> BaseModel | str:
        if missing := [name for name in self.signature.required if name not in args]:
            return (
                f"{self.name}() was not called: the mandatory parameters {', '.join(missing)} are missing. "
                "Call it again with all of them."
            )
        arguments = self.signature.arguments
        try:
            return arguments.model_validate(args)
        except ValidationError as error:
            first = error
        wrong = {one["loc"][0] for one in first.errors(include_url=False, include_context=False)}
        try:  # some models send a list or an object as JSON text
            return arguments.model_validate({key: _unpacked(one) if key in wrong else one for key, one in args.items()})
        except ValidationError:
            return _told(self.name, first)


def _refuse_no_function(func: Any, kind: str) -> None:
    if isinstance(func, FunctionTool):  # wrapped, it would run without what it asks for
        raise ConfigurationError(
            f"{kind} takes a function, and {func.name!r} is a tool already; use it as it is, or hand over its .func"
        )
    if not callable(func):
        raise ConfigurationError(f"a tool is made of a function, and {func!r:.60} is none; pass the function itself")


def _refuse_no_config(auth_config: Any, tool: str) -> None:
    if not isinstance(auth_config, AuthConfig | None):  # it is not repeated: it may be the key
        raise ConfigurationError(
            f"tool {tool!r}: auth_config says how it is let in, and {type(auth_config).__name__} does not; "
            "write AuthConfig(auth_scheme=APIKey(name='X-Key', in_='header')), or another scheme"
        )


def name_of(func: Callable[..., Any]) -> str:
    """What a model calls a tool of `func`. Raises ConfigurationError for a lambda, which has no name."""
    inner = cast(Any, func).func if isinstance(func, functools.partial) else func
    name = getattr(inner, "__name__", None) or type(inner).__name__
    if name == "<lambda>":
        raise ConfigurationError("a lambda has no name that a model could call; write `def`, or pass name='...'")
    return name


def _heard(tool_context: ToolContext) -> LiveRequestQueue:
    """What the user says from now on; outside a live conversation, nothing."""
    if streams := tool_context.get_invocation_context().streams:
        return streams.listen()
    nothing = LiveRequestQueue()
    nothing.close()
    return nothing


def _called(func: Callable[..., Any], positional: list[Any], given: dict[str, Any]) -> Any:
    answer = func(*positional, **given)
    return drained(answer) if type(answer) in LAZY else answer  # its items are made in the tool's own thread


def _with_what_it_returns(
    func: Callable[..., Any], positional: list[Any], given: dict[str, Any]
) -> Generator[Any, None, None]:
    """What a generator function yields, and after it what it returns, if that is anything."""
    made: Generator[Any, None, Any] = func(*positional, **given)
    returned = yield from made
    if returned is not None:
        yield returned


def _unpacked(value: Any) -> Any:
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return from_json(value)
        except ValueError:
            return value
    return value


def _told(name: str, error: ValidationError) -> str:
    return f"{name}() was not called: wrong arguments: {in_words(error)}. Call it again with arguments that fit."


def _description_of(func: Callable[..., Any]) -> str:
    if isinstance(func, functools.partial):
        return _description_of(cast(Callable[..., Any], func.func))
    return next((said for one in documented_in(func) if (said := inspect.getdoc(one))), "")
