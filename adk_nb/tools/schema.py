"""A signature and a docstring become what a model is told: names, types, descriptions."""

import functools
import inspect
import json
import logging
import re
import types as pytypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, Unpack, cast, get_args, get_origin

import docstring_parser
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, create_model
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticSerializationError, PydanticUndefined

from adk_nb import types
from adk_nb.errors import ConfigurationError
from adk_nb.runtime.context import Context
from adk_nb.runtime.live_request_queue import LiveRequestQueue
from adk_nb.tools.annotations import hints_of, why_unresolved, yields

logger = logging.getLogger(__name__)

_FIELD_PREFIX = "p_"
_NO_SCHEMA = (PydanticSchemaGenerationError, PydanticUserError, TypeError, AttributeError)
_Field = tuple[Any, Any, FieldInfo]
_CONTEXT_BY_NAME = re.compile(r"\b(Tool|Callback)?Context\b")
_STREAM_BY_NAME = re.compile(r"\bLiveRequestQueue\b")


@dataclass(frozen=True, kw_only=True)
class Signature:
    """What the model may send to a function, and where the context goes."""

    name: str
    arguments: type[BaseModel]
    """One field a parameter; field `p_x` with alias `x`, so that no parameter name clashes with pydantic's own."""
    context_parameter: str | None
    """The parameter that takes the tool's Context."""
    stream_parameter: str | None
    """The parameter that takes what the user says meanwhile, in a live conversation."""
    takes_any: bool
    """It has `**kwargs`."""
    untyped: list[str]
    """Parameters without a type that can be read: the model is not told what to send."""
    faults: dict[str, str]
    """Parameter -> in words why the model cannot be told of it, and what to write; `*args` among them."""
    required: list[str]
    """Parameters without a default."""
    positional: list[str]
    """Parameters that take no keyword, as `x` in `f(x, /)`."""
    returns: Any = None
    """The type of what it returns. None: nothing, or it does not say."""

    @property
    def names(self) -> list[str]:
        """Of what the model may send."""
        return [field.alias or key for key, field in self.arguments.model_fields.items()]

    def declaration(self, description: str) -> types.FunctionDeclaration:
        """What the model is told. JSON Schema under `parameters_json_schema`; none when there are no parameters.

        Under `response_json_schema` what it returns, if it says so and that is JSON.
        """
        schema: dict[str, Any] | None = None
        if self.arguments.model_fields:
            schema = self.arguments.model_json_schema(by_alias=True, schema_generator=_PlainTitles)
            schema["title"] = f"{self.name}Params"
            schema.pop("additionalProperties", None)
        return types.FunctionDeclaration(
            name=self.name,
            description=description,
            parameters_json_schema=schema,
            response_json_schema=_schema_of_result(self.returns),
        )


class _PlainTitles(GenerateJsonSchema):
    """JSON Schema without a title for each field: the name says it. A default that JSON cannot hold is left out."""

    def emit_warning(self, kind: Any, detail: str) -> None:
        logger.debug("%s: %s", kind, detail)

    def encode_default(self, dft: Any) -> Any:
        encoded = super().encode_default(dft)
        try:
            json.dumps(encoded, allow_nan=False)
        except ValueError as error:
            raise PydanticSerializationError(str(error)) from error  # the base class leaves the default out
        return encoded

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def _schema_of_result(hint: Any) -> dict[str, Any] | None:
    if hint is None or hint is type(None) or hint is Any or isinstance(hint, str):
        return None
    if getattr(hint, "__module__", "").startswith("google.genai"):
        return None  # a picture or the like: that goes to the model beside the result
    try:
        return TypeAdapter(hint).json_schema(schema_generator=_PlainTitles, mode="serialization") or None
    except _NO_SCHEMA as error:
        logger.debug("no schema for a result of type %r: %s", hint, error)
        return None


def signature_of(func: Callable[..., Any], name: str) -> Signature:
    """Read `func`.

    Raises:
        ConfigurationError: A parameter's type is one that no JSON can fill, or `func` does not say what it takes.
    """
    parameters = _parameters(func, name)
    hints = hints_of(func)
    told = _parameter_docs(func)
    fields: dict[str, _Field] = {}
    context, stream, untyped, faults = None, None, list[str](), dict[str, str]()
    for parameter in parameters:
        hint = hints.get(parameter.name, parameter.annotation)
        if parameter.kind is parameter.VAR_POSITIONAL:
            faults[parameter.name] = _no_list(parameter)
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        if _is_context(parameter.name, hint):
            context = parameter.name
            continue
        if _is_a(hint, LiveRequestQueue, _STREAM_BY_NAME):
            stream = parameter.name
            continue
        if hint is parameter.empty or isinstance(hint, str):
            untyped.append(parameter.name)
            faults[parameter.name] = _no_type(func, parameter.name, hint)
            hint = Any
        fields[parameter.name] = _field(parameter, hint, told.get(parameter.name))
    others = next((one for one in parameters if one.kind is one.VAR_KEYWORD), None)
    model = _arguments(name, fields, (f"**{others.name}", _of_others(hints.get(others.name))) if others else None)
    return Signature(
        name=name,
        arguments=model,
        context_parameter=context,
        stream_parameter=stream,
        takes_any=others is not None,
        untyped=untyped,
        faults=faults,
        required=[field.alias or "" for field in model.model_fields.values() if field.is_required()],
        positional=[one.name for one in parameters if one.kind is one.POSITIONAL_ONLY],
        returns=None if yields(func) else hints.get("return"),
    )


def context_parameter(func: Callable[..., Any]) -> str | None:
    """The parameter of `func` that takes a Context, told by its name or its type."""
    hints = hints_of(func)
    found = (one.name for one in _parameters(func, "") if _is_context(one.name, hints.get(one.name, one.annotation)))
    return next(found, None)


def _parameters(func: Callable[..., Any], name: str) -> list[inspect.Parameter]:
    """What is still open: what a partial has filled in by name is its author's, not the model's."""
    filled: Any = cast(Any, func).keywords if isinstance(func, functools.partial) else ()
    try:
        return [one for one in inspect.signature(cast(Any, func)).parameters.values() if one.name not in filled]
    except ValueError as error:
        raise ConfigurationError(
            f"tool {name!r}: {func!r:.80} does not say what it takes; write a function around it"
        ) from error


def _field(parameter: inspect.Parameter, hint: Any, description: str | None) -> _Field:
    """One parameter as a field: its type, its default, and what holds whatever its type says: name and description."""
    default = ... if parameter.default is parameter.empty else parameter.default
    said = [default] if isinstance(default, FieldInfo) else []
    description = next(
        (text for one in [*said, *getattr(hint, "__metadata__", ())] if (text := _said(one))), description
    )
    if default is None and hint is not Any:
        hint = Union[hint, None]  # noqa: UP007 - a value, not an annotation
    if isinstance(default, FieldInfo):
        hint, default = Annotated[hint, default], default.get_default(call_default_factory=False)
        default = ... if default is PydanticUndefined else default
    about: dict[str, Any] = {"description": description} if description else {}
    return hint, default, Field(alias=parameter.name, **about)


def _said(metadata: Any) -> str | None:
    """What an entry of `Annotated` says of its parameter: a Field's description, or plain words."""
    if isinstance(metadata, FieldInfo):
        return metadata.description
    return metadata if isinstance(metadata, str) else None


def _of_others(hint: Any) -> Any:
    """What each argument is that `**others` takes; Any if it does not say, or says it of each by name."""
    return Any if hint is None or isinstance(hint, str) or get_origin(hint) is Unpack else hint


def _arguments(name: str, fields: dict[str, _Field], others: tuple[str, Any] | None) -> type[BaseModel]:
    try:
        return _made(name, fields, others and others[1])
    except _NO_SCHEMA as error:
        fields = fields if others is None else {**fields, others[0]: (others[1], ..., Field())}
        odd = next((key for key, field in fields.items() if _is_odd(field)), "")
        if isinstance(error, PydanticUserError) and error.code == "class-not-fully-defined":
            raise ConfigurationError(
                f"tool {name!r}: parameter {odd!r} has a type that cannot be read here: {_spelled(fields[odd][0])}; "
                "define or import what it names first"
            ) from error
        why = "; a variable defined outside needs no parameter, the function can use it"
        if isinstance(error, PydanticUserError) and error.code != "schema-for-unknown-type":
            why = f" ({str(error).splitlines()[0]})"
        raise ConfigurationError(
            f"tool {name!r}: parameter {odd!r} is a {_spelled(fields[odd][0])}, and a model can only send JSON; take "
            f"str, int, float, bool, list, dict, Literal, Enum, a dataclass or a pydantic model{why}"
        ) from error


def _made(name: str, fields: dict[str, _Field], others: Any) -> type[BaseModel]:
    """`others`: what arguments of other names are. None: they are left out."""
    given: dict[str, Any] = {
        _FIELD_PREFIX + key: (Annotated[hint, field], default) for key, (hint, default, field) in fields.items()
    }
    # What is said here holds for dataclasses and TypedDicts among the parameters too.
    extra: Literal["allow", "ignore"] = "ignore" if others is None else "allow"
    config = ConfigDict(extra=extra, arbitrary_types_allowed=False, protected_namespaces=())
    namespace: dict[str, Any] = {"__module__": __name__, "model_config": config}
    if others not in (None, Any):
        namespace["__annotations__"] = {"__pydantic_extra__": dict[str, others]}
    model = create_model(name, __base__=type(name, (BaseModel,), namespace), **given)
    model.model_json_schema(schema_generator=_PlainTitles)
    return model


def _is_odd(field: _Field) -> bool:
    try:
        _made("odd", {"x": field}, None)
        return False
    except _NO_SCHEMA:
        return True


def _spelled(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) else str(hint)


def _no_type(func: Callable[..., Any], name: str, hint: Any) -> str:
    if isinstance(hint, str) and (why := why_unresolved(func, name, hint)):
        return f"parameter {name!r} has a type that cannot be read here: {why}; define or import it first"
    return (
        f"parameter {name!r} has no type, so the model cannot be told what to send; "
        f"write `{name}: str`, or whatever it is"
    )


def _no_list(parameter: inspect.Parameter) -> str:
    of = inspect.formatannotation(parameter.annotation) if parameter.annotation is not parameter.empty else "str"
    of = of.strip("'\"")
    return (
        f"parameter '*{parameter.name}' takes values without a name, and a model sends each by its name; "
        f"write `{parameter.name}: list[{of}]`"
    )


def _is_context(name: str, hint: Any) -> bool:
    return name == "tool_context" or _is_a(hint, Context, _CONTEXT_BY_NAME)


def _is_a(hint: Any, kind: type, by_name: re.Pattern[str]) -> bool:
    """True if `hint` is `kind`, or may be; `by_name` tells where it is still text."""
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    if get_origin(hint) in (Union, pytypes.UnionType):
        return any(_is_a(one, kind, by_name) for one in get_args(hint))
    if isinstance(hint, str):
        return bool(by_name.search(hint))
    return isinstance(hint, type) and issubclass(hint, kind)


def documented_in(func: Any) -> list[Any]:
    """What says in its docstring what `func` does, the best first."""
    if inspect.isroutine(func):
        return [func]
    return [func, func.__init__] if isinstance(func, type) else [type(func), type(func).__call__]


def _parameter_docs(func: Callable[..., Any]) -> dict[str, str]:
    """What the docstring says of each parameter: Google, NumPy or Sphinx style."""
    inner: Any = func.func if isinstance(func, functools.partial) else func
    told: dict[str, str] = {}
    for documented in documented_in(inner):
        try:
            parsed = docstring_parser.parse(inspect.getdoc(documented) or "")
        except docstring_parser.ParseError as error:
            logger.debug("the docstring of %r cannot be read: %s", documented, error)
            continue
        told |= {one.arg_name: " ".join(one.description.split()) for one in parsed.params if one.description}
    return told
