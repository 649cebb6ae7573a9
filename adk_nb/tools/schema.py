"""Builds the declaration of a function from its signature and docstring: names, types, descriptions, defaults."""

import functools
import inspect
import json
import logging
import re
import sys
import types as pytypes
import typing
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, Union, Unpack, cast, get_args, get_origin

import docstring_parser
import typing_extensions
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, create_model
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticSerializationError, PydanticUndefined

from adk_nb import types
from adk_nb.errors import ConfigurationError
from adk_nb.runtime.context import Context
from adk_nb.runtime.live_request_queue import LiveRequestQueue

_LOCAL = ".<locals>."
_NEEDS_TYPING_EXTENSIONS = sys.version_info < (3, 12)
"""Before Python 3.12 pydantic needs TypedDict of typing_extensions.

Source: https://docs.pydantic.dev/latest/errors/usage_errors/#typed-dict-version.
"""


def hints_of(func: Callable[..., Any]) -> dict[str, Any]:
    """The type of each parameter, and of `return`, by name. An annotation that cannot be resolved stays text."""
    target = _annotated_function(func)
    try:
        hints = typing.get_type_hints(target, localns=_local_names(target), include_extras=True)
    except Exception:  # an annotation may be any expression, so resolving it may raise anything
        hints = dict[str, Any](getattr(target, "__annotations__", {}))
        for key, hint in hints.items():
            try:
                hints[key] = _resolve(target, key, hint)
            except Exception as error:
                logger.debug("the type of %r cannot be resolved: %s", key, error)
    try:
        return {key: _supported(hint) for key, hint in hints.items()}
    except RecursionError:  # a recursive TypedDict: pydantic reports it, with the fix
        return hints


def call_is(kind: Callable[[Any], bool], func: Callable[..., Any]) -> bool:
    """True if calling `func` calls a function of that `kind`, as in `call_is(iscoroutinefunction, func)`."""
    inner: Any = func.func if isinstance(func, functools.partial) else func
    return kind(inner) or (not inspect.isroutine(inner) and kind(type(inner).__call__))


def is_generator(func: Callable[..., Any]) -> bool:
    """True if `func` is a generator function, sync or async."""
    return call_is(inspect.isgeneratorfunction, func) or call_is(inspect.isasyncgenfunction, func)


def resolution_error(func: Callable[..., Any], name: str, hint: str) -> str | None:
    """The error that keeps an annotation text. None: it can be resolved now."""
    try:
        _resolve(_annotated_function(func), name, hint)
        return None
    except Exception as error:  # an annotation may be any expression, so resolving it may raise anything
        return str(error)


def _annotated_function(func: Callable[..., Any]) -> Any:
    """The function object that has the annotations."""
    target: Any = func.func if isinstance(func, functools.partial) else func
    if isinstance(target, type):
        return cast(Any, target).__init__
    return target if inspect.isroutine(target) else target.__call__


def _resolve(target: Any, key: str, hint: Any) -> Any:
    holder = pytypes.SimpleNamespace(__annotations__={key: hint})
    module_names = getattr(inspect.unwrap(target), "__globals__", {})
    return typing.get_type_hints(holder, module_names, _local_names(target), include_extras=True)[key]


def _local_names(target: Any) -> dict[str, Any]:
    """Local names visible to a nested function: its closure, and the outer function's variables while that runs."""
    inner: Any = inspect.unwrap(target)
    func = getattr(inner, "__func__", inner)
    code: pytypes.CodeType | None = getattr(func, "__code__", None)
    outer_name = getattr(func, "__qualname__", "").rpartition(_LOCAL)[0]
    if code is None or not outer_name:
        return {}
    names: dict[str, Any] = {}
    # A class that the outer function defines is in the closure only if the body uses it; but while the outer function
    # runs, the class is in its frame.
    frame = inspect.currentframe()
    while frame and not (frame.f_code.co_qualname == outer_name and frame.f_globals is func.__globals__):
        frame = frame.f_back
    if frame:
        names.update(frame.f_locals)
    names.update(inspect.getclosurevars(func).nonlocals)
    return names


def _supported(hint: Any) -> Any:
    """The type, with parts that pydantic cannot read replaced by equal ones: TypedDicts, Enum members in a Literal."""
    if _NEEDS_TYPING_EXTENSIONS and typing.is_typeddict(hint) and type(hint).__module__ == "typing":
        fields: dict[str, Any] = {}
        for key, field in typing.get_type_hints(hint, include_extras=True).items():
            # By the field's own mark, else by the class's `total`.
            if (mark := get_origin(field)) in (typing.Required, typing.NotRequired):
                field = get_args(field)[0]
            else:
                mark = typing.Required if key in hint.__required_keys__ else typing.NotRequired
            fields[key] = cast(Any, mark)[_supported(field)]
        typed_dict = cast(Any, typing_extensions.TypedDict)(hint.__name__, fields)
        typed_dict.__doc__, typed_dict.__module__ = hint.__doc__, hint.__module__
        return typed_dict
    args, origin = get_args(hint), get_origin(hint)
    if origin is typing.Literal:
        members = {member.value: member for member in args if isinstance(member, Enum)}

        def member_of(value: Any) -> Any:
            """The Enum member for `value`. pydantic matches only members that are also str or int."""
            return members.get(value, value) if isinstance(value, str | int | float) else value

        return typing.Annotated[hint, BeforeValidator(member_of)] if members else hint
    new_args = [
        [_supported(item) for item in cast(list[Any], arg)] if isinstance(arg, list) else _supported(arg)
        for arg in args
    ]
    if all(new is old or new == old for new, old in zip(new_args, args, strict=True)):
        return hint
    if origin is typing.Annotated:
        return typing.Annotated[tuple(new_args)]
    if origin in (typing.Union, pytypes.UnionType):
        return typing.Union[tuple(new_args)]  # noqa: UP007  # a value, not an annotation
    return origin[tuple(new_args) if len(new_args) > 1 else new_args[0]]


logger = logging.getLogger(__name__)

_FIELD_PREFIX = "p_"
_NO_SCHEMA = (PydanticSchemaGenerationError, PydanticUserError, TypeError, AttributeError)
_Field = tuple[Any, Any, FieldInfo]
_CONTEXT_BY_NAME = re.compile(r"\b(Tool|Callback)?Context\b")
_STREAM_BY_NAME = re.compile(r"\bLiveRequestQueue\b")


@dataclass(frozen=True, kw_only=True)
class Signature:
    """The arguments that a model may send to a function, and the parameters that the runtime fills."""

    name: str
    arguments: type[BaseModel]
    """One field a parameter; field `p_x` with alias `x`, so that no parameter name clashes with pydantic's own."""
    context_parameter: str | None
    """The parameter that gets the tool's Context."""
    stream_parameter: str | None
    """The parameter that gets the user's input in a live conversation."""
    takes_any: bool
    """True if it has `**kwargs`."""
    untyped: list[str]
    """Parameters without a resolvable type: the model gets no schema for them."""
    faults: dict[str, str]
    """Parameter -> the reason that it cannot be declared, and the fix; also for `*args`."""
    required: list[str]
    """Parameters without a default."""
    positional: list[str]
    """Positional-only parameters, as `x` in `f(x, /)`."""
    returns: Any = None
    """The annotated return type. None: nothing, or not annotated."""

    @property
    def names(self) -> list[str]:
        """Names of the arguments that the model may send."""
        return [field.alias or key for key, field in self.arguments.model_fields.items()]

    def declaration(self, description: str) -> types.FunctionDeclaration:
        """The declaration of the function.

        Without parameters, `parameters_json_schema` is None; with `**kwargs` it is an open object.
        `response_json_schema` is set if the return type is annotated and has a JSON Schema.
        """
        schema: dict[str, Any] | None = None
        if self.arguments.model_fields or self.takes_any:
            schema = self.arguments.model_json_schema(by_alias=True, schema_generator=_PlainTitles)
            schema["title"] = f"{self.name}Params"
            if not self.takes_any:
                schema.pop("additionalProperties", None)
        return types.FunctionDeclaration(
            name=self.name,
            description=description,
            parameters_json_schema=schema,
            response_json_schema=_result_schema(self.returns),
        )


class _PlainTitles(GenerateJsonSchema):
    """JSON Schema without a title per field, which would repeat the name. A default without JSON form is left out."""

    def emit_warning(self, kind: Any, detail: str) -> None:
        """Log pydantic's warnings instead of printing them."""
        # pydantic warns about a default that it cannot encode, which `encode_default` handles.
        logger.debug("%s: %s", kind, detail)

    def encode_default(self, dft: Any) -> Any:
        """Encode a default; one that JSON does not allow, such as NaN, is left out."""
        encoded = super().encode_default(dft)
        try:
            json.dumps(encoded, allow_nan=False)
        except ValueError as error:
            raise PydanticSerializationError(str(error)) from error  # the base class leaves the default out
        return encoded

    def field_title_should_be_set(self, schema: Any) -> bool:
        """No titles."""
        return False


def _result_schema(hint: Any) -> dict[str, Any] | None:
    if hint is None or hint is type(None) or hint is Any or isinstance(hint, str):
        return None
    if getattr(hint, "__module__", "").startswith("google.genai"):
        return None  # media: sent to the model beside the result
    try:
        return TypeAdapter(hint).json_schema(schema_generator=_PlainTitles, mode="serialization") or None
    except _NO_SCHEMA as error:
        logger.debug("no schema for a result of type %r: %s", hint, error)
        return None


def signature_of(func: Callable[..., Any], name: str) -> Signature:
    """Analyze `func`.

    Raises:
        ConfigurationError: A parameter's type cannot be filled from JSON, or `func` has no signature.
    """
    parameters = _parameters(func, name)
    hints = hints_of(func)
    descriptions = _parameter_docs(func)
    fields: dict[str, _Field] = {}
    context, stream, untyped, faults = None, None, list[str](), dict[str, str]()
    for parameter in parameters:
        hint = hints.get(parameter.name, parameter.annotation)
        if parameter.kind is parameter.VAR_POSITIONAL:
            is_typed = parameter.annotation is not parameter.empty
            item_type = inspect.formatannotation(parameter.annotation).strip("'\"") if is_typed else "str"
            faults[parameter.name] = (
                f"parameter '*{parameter.name}' takes values without a name, and a model sends each by its name; "
                f"write `{parameter.name}: list[{item_type}]`"
            )
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        if _takes_context(parameter.name, hint):
            context = parameter.name
            continue
        if _may_be(hint, LiveRequestQueue, _STREAM_BY_NAME):
            stream = parameter.name
            continue
        if hint is parameter.empty or isinstance(hint, str):
            untyped.append(parameter.name)
            reason = resolution_error(func, parameter.name, hint) if isinstance(hint, str) else None
            faults[parameter.name] = f"parameter {parameter.name!r} " + (
                f"has a type that cannot be resolved: {reason}; define or import it first"
                if reason
                else "has no type, so the model cannot be told what to send; "
                f"write `{parameter.name}: str`, or whatever it is"
            )
            hint = Any
        fields[parameter.name] = _field(parameter, hint, descriptions.get(parameter.name))
    kwargs = next((parameter.name for parameter in parameters if parameter.kind is parameter.VAR_KEYWORD), None)
    extra = hints.get(kwargs) if kwargs else None
    if extra is None or isinstance(extra, str) or get_origin(extra) is Unpack:
        extra = Any  # not annotated, or by name
    model = _arguments(name, fields, (f"**{kwargs}", extra) if kwargs else None)
    return Signature(
        name=name,
        arguments=model,
        context_parameter=context,
        stream_parameter=stream,
        takes_any=kwargs is not None,
        untyped=untyped,
        faults=faults,
        required=[field.alias or "" for field in model.model_fields.values() if field.is_required()],
        positional=[parameter.name for parameter in parameters if parameter.kind is parameter.POSITIONAL_ONLY],
        returns=None if is_generator(func) else hints.get("return"),
    )


def context_parameter(func: Callable[..., Any]) -> str | None:
    """The parameter of `func` that takes a Context, recognized by its name or its type."""
    hints = hints_of(func)
    for parameter in _parameters(func, ""):
        if _takes_context(parameter.name, hints.get(parameter.name, parameter.annotation)):
            return parameter.name
    return None


def _parameters(func: Callable[..., Any], name: str) -> list[inspect.Parameter]:
    """The open parameters: those that a partial binds by name are the author's, not the model's."""
    bound: Any = cast(Any, func).keywords if isinstance(func, functools.partial) else ()
    try:
        parameters = inspect.signature(cast(Any, func)).parameters.values()
    except ValueError as error:
        raise ConfigurationError(f"tool {name!r}: {func!r:.80} has no signature; wrap it in a function") from error
    return [parameter for parameter in parameters if parameter.name not in bound]


def _field(parameter: inspect.Parameter, hint: Any, description: str | None) -> _Field:
    """A parameter as a pydantic field: type, default, alias and description."""
    default = ... if parameter.default is parameter.empty else parameter.default
    metadata: list[Any] = [default] if isinstance(default, FieldInfo) else []
    metadata += getattr(hint, "__metadata__", ())
    for entry in metadata:  # of `Annotated`: a Field, or a plain string
        text = entry.description if isinstance(entry, FieldInfo) else entry
        if isinstance(text, str) and text:
            description = text
            break
    # `x: int = None` means that None is allowed.
    if default is None and hint is not Any:
        hint = Union[hint, None]  # noqa: UP007 - a value, not an annotation
    if isinstance(default, FieldInfo):
        hint, default = Annotated[hint, default], default.get_default(call_default_factory=False)
        default = ... if default is PydanticUndefined else default
    options: dict[str, Any] = {"description": description} if description else {}
    return hint, default, Field(alias=parameter.name, **options)


def _arguments(name: str, fields: dict[str, _Field], extra: tuple[str, Any] | None) -> type[BaseModel]:
    try:
        return _build_model(name, fields, extra and extra[1])
    except _NO_SCHEMA as error:
        fields = fields if extra is None else {**fields, extra[0]: (extra[1], ..., Field())}
        culprit = next((key for key, field in fields.items() if _has_no_schema(field)), "")
        hinted = fields[culprit][0]
        culprit_type = hinted.__name__ if isinstance(hinted, type) else str(hinted)
        if isinstance(error, PydanticUserError) and error.code == "class-not-fully-defined":
            raise ConfigurationError(
                f"tool {name!r}: parameter {culprit!r} has a type that cannot be resolved: {culprit_type}; "
                "define or import what it names first"
            ) from error
        hint = "; a variable defined outside needs no parameter, the function can use it"
        if isinstance(error, PydanticUserError) and error.code != "schema-for-unknown-type":
            hint = f" ({str(error).splitlines()[0]})"
        raise ConfigurationError(
            f"tool {name!r}: parameter {culprit!r} is a {culprit_type}, and a model can only send JSON; take "
            f"str, int, float, bool, list, dict, Literal, Enum, a dataclass or a pydantic model{hint}"
        ) from error


def _build_model(name: str, fields: dict[str, _Field], extra_type: Any) -> type[BaseModel]:
    """Build the model of the arguments. `extra_type` is the type of `**kwargs`; None: extra arguments are dropped."""
    definitions: dict[str, Any] = {
        _FIELD_PREFIX + key: (Annotated[hint, field], default) for key, (hint, default, field) in fields.items()
    }
    # The config also applies to dataclasses and TypedDicts among the parameters.
    extra_mode: Literal["allow", "ignore"] = "ignore" if extra_type is None else "allow"
    config = ConfigDict(extra=extra_mode, arbitrary_types_allowed=False, protected_namespaces=())
    namespace: dict[str, Any] = {"__module__": __name__, "model_config": config}
    if extra_type not in (None, Any):
        # pydantic reads the type of extra arguments from this annotation. Source:
        # https://docs.pydantic.dev/latest/concepts/models/#extra-data
        namespace["__annotations__"] = {"__pydantic_extra__": dict[str, extra_type]}
    model = create_model(name, __base__=type(name, (BaseModel,), namespace), **definitions)
    model.model_json_schema(schema_generator=_PlainTitles)  # raises for types that validate but have no schema
    return model


def _has_no_schema(field: _Field) -> bool:
    try:
        _build_model("odd", {"x": field}, None)
        return False
    except _NO_SCHEMA:
        return True


def _takes_context(name: str, hint: Any) -> bool:
    return name == "tool_context" or _may_be(hint, Context, _CONTEXT_BY_NAME)


def _may_be(hint: Any, kind: type, pattern: re.Pattern[str]) -> bool:
    """True if `hint` is or may be `kind`; `pattern` matches annotations that are still text."""
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    if get_origin(hint) in (Union, pytypes.UnionType):
        return any(_may_be(arg, kind, pattern) for arg in get_args(hint))
    if isinstance(hint, str):
        return bool(pattern.search(hint))
    return isinstance(hint, type) and issubclass(hint, kind)


def docstring_owners(func: Any) -> list[Any]:
    """The objects whose docstring describes `func`: the first is best for a summary, the last for the parameters."""
    if inspect.isroutine(func):
        return [func]
    return [func, func.__init__] if isinstance(func, type) else [type(func), type(func).__call__]


def _parameter_docs(func: Callable[..., Any]) -> dict[str, str]:
    """Descriptions of the parameters in the docstring: Google, NumPy or Sphinx style."""
    inner: Any = func.func if isinstance(func, functools.partial) else func
    descriptions: dict[str, str] = {}
    for documented in docstring_owners(inner):
        try:
            parsed = docstring_parser.parse(inspect.getdoc(documented) or "")
        except docstring_parser.ParseError as error:
            logger.debug("the docstring of %r cannot be read: %s", documented, error)
            continue
        descriptions |= {doc.arg_name: " ".join(doc.description.split()) for doc in parsed.params if doc.description}
    return descriptions
