"""A Python function as a node: its parameters are filled from the input and from the state."""

import functools
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args, get_origin

from pydantic import BaseModel, PrivateAttr, TypeAdapter
from pydantic_core import to_jsonable_python

from adk_nb import sync, types
from adk_nb.concurrency.generators import blocking_items
from adk_nb.errors import WorkflowDataError
from adk_nb.events.event import Event
from adk_nb.events.request_input import RequestInput
from adk_nb.runtime.context import Context, abandon
from adk_nb.tools.fingerprint import code_fingerprint
from adk_nb.tools.schema import context_parameter, hints_of, signature_of
from adk_nb.wire import fast_private_attributes
from adk_nb.workflow.base_node import BaseNode
from adk_nb.workflow.values import coerced

_INPUT = "node_input"
_CONTEXT = "ctx"
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Signature:
    """The parameters of a function, and its call. One object, because reading a private field of a model is slow."""

    kind: Literal["async generator", "generator", "async function", "function"]
    context: str | None
    """Name of the parameter that gets the context."""
    parameters: tuple[tuple[str, Any, TypeAdapter[Any] | None], ...]
    """The other parameters: name, default, and converter to the annotated type."""


@fast_private_attributes
class FunctionNode(BaseNode):
    """Runs `func`, sync or async, or a generator of either kind.

    Its parameter `node_input` gets the input, `ctx` (or one annotated as Context) the context, any other the state's
    value of that name, or its default. Pydantic converts values to the annotated types.

    After `timeout` an async function is cancelled. A sync one cannot be: with a timeout it runs on a worker thread, and
    is abandoned there when it is late; its later changes of state and actions are dropped.
    """

    func: Callable[..., Any]
    parameter_binding: Literal["state", "node_input"] = "state"
    """`node_input`: the other parameters are keys of the input, which is a dict."""
    thread: bool = False
    """Run a sync function on a worker thread even where it would run in the caller's."""

    _signature: _Signature = PrivateAttr()

    def __init__(self, **options: Any) -> None:
        func = options.get("func")
        inferred = {"name": name_of(func), "description": inspect.getdoc(func) or ""} if callable(func) else {}
        super().__init__(**{**inferred, **{field: value for field, value in options.items() if value is not None}})

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        parameters, hints = inspect.signature(self.func).parameters, hints_of(self.func)
        # Schemas that are not given come from the signature. Source of the rules: google-adk 2.13.
        if self.parameter_binding == _INPUT:
            declaration = signature_of(self.func, self.name).declaration(self.description)
            schemas = declaration.parameters_json_schema, declaration.response_json_schema
        else:
            returned = hints.get("return")
            if get_origin(returned) in (Generator, AsyncGenerator, Iterator, AsyncIterator):
                returned = get_args(returned)[0]
            schemas = _model_in(hints.get(_INPUT)), _model_in(returned)
        self.input_schema, self.output_schema = self.input_schema or schemas[0], self.output_schema or schemas[1]
        context_name = context_parameter(self.func) or (_CONTEXT if _CONTEXT in parameters else None)
        kind = "async function" if inspect.iscoroutinefunction(self.func) else "function"
        if inspect.isasyncgenfunction(self.func):
            kind = "async generator"
        elif inspect.isgeneratorfunction(self.func):
            kind = "generator"
        self._signature = _Signature(
            kind=kind,
            context=context_name,
            parameters=tuple(
                (name, parameter.default, None if hints.get(name, Any) is Any else TypeAdapter(hints[name]))
                for name, parameter in parameters.items()
                if name != context_name and parameter.kind not in _VARIADIC
            ),
        )

    def request_args(self, ctx: Context, node_input: Any) -> dict[str, Any]:
        signature = self._signature
        arguments = self._arguments(signature, ctx, node_input)
        arguments.pop(signature.context or "", None)
        return to_jsonable_python(arguments, fallback=str)

    def fingerprint(self) -> str:
        return code_fingerprint(self.func)

    def _run_impl(self, *, ctx: Context, node_input: Any) -> AsyncGenerator[Any, None]:
        signature = self._signature
        call = functools.partial(self.func, **self._arguments(signature, ctx, node_input))
        # An async generator is the node's stream itself; the other kinds are wrapped in one.
        if signature.kind == "async generator":
            return call()
        if signature.kind == "generator":
            on_abandon = functools.partial(abandon, ctx, self.name)
            return blocking_items(call, thread=self._uses_worker(ctx), on_abandon=on_abandon)
        return self._run_once(call, ctx)

    async def _run_once(self, call: Callable[[], Any], ctx: Context) -> AsyncGenerator[Any, None]:
        if self._signature.kind == "function":
            on_abandon = functools.partial(abandon, ctx, self.name)
            result = await sync.blocking(call, thread=self._uses_worker(ctx), on_abandon=on_abandon)
            # A partial or a callable object may hide an async function.
            yield await result if inspect.isawaitable(result) else result
            return
        running = ctx.get_invocation_context().shared.running_functions
        running[ctx] = f"{self.name}()"
        try:
            result = await call()
        finally:
            running.pop(ctx, None)
        yield result

    def _uses_worker(self, ctx: Context) -> bool:
        return self.thread or self.timeout is not None or ctx.run_config.timeout is not None

    def _arguments(self, signature: _Signature, ctx: Context, node_input: Any) -> dict[str, Any]:
        arguments: dict[str, Any] = {signature.context: ctx} if signature.context else {}
        for name, default, adapter in signature.parameters:
            value = self._value(name, ctx, node_input)
            if value is not inspect.Parameter.empty:
                arguments[name] = coerced(adapter, value, f"node {self.name!r}: {name}") if adapter else value
            elif default is inspect.Parameter.empty:
                source = "the input" if self.parameter_binding == _INPUT else "the state"
                raise WorkflowDataError(
                    f"node {self.name!r}: there is no value for its parameter {name!r} in {source}; "
                    f"give it a default, or name it {_INPUT!r} to get the input"
                )
        return arguments

    def _value(self, name: str, ctx: Context, node_input: Any) -> Any:
        if self.parameter_binding == _INPUT:
            fields = cast(dict[str, Any], node_input) if isinstance(node_input, dict) else {}
            return fields.get(name, inspect.Parameter.empty)
        return node_input if name == _INPUT else ctx.state.get(name, inspect.Parameter.empty)


def name_of(func: Callable[..., Any]) -> str:
    """The name of a function, or of the class of a callable object; empty for a lambda."""
    inner = cast(Any, func).func if isinstance(func, functools.partial) else func
    name = getattr(inner, "__name__", type(inner).__name__)
    return "" if name == "<lambda>" else name


def _model_in(hint: Any) -> type[BaseModel] | None:
    """`hint`, if it is a pydantic model other than a message, an event or a question. None: it is not."""
    if not (isinstance(hint, type) and issubclass(hint, BaseModel)):
        return None
    return None if issubclass(hint, types.Content | Event | RequestInput) else hint
