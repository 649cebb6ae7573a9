"""A signature and a docstring become what a model is told: names, types, descriptions."""

import inspect
import logging
import types as pytypes
import typing
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin

import docstring_parser
from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from adk_nb import types
from adk_nb.errors import ConfigurationError
from adk_nb.runtime.context import Context

logger = logging.getLogger(__name__)

_FIELD_PREFIX = "p_"


@dataclass(frozen=True, kw_only=True)
class Signature:
    """What the model may send to a function, and where the context goes."""

    name: str
    arguments: type[BaseModel]
    """One field a parameter; field `p_x` with alias `x`, so that no parameter name clashes with pydantic's own."""
    context_parameter: str | None
    """The parameter that takes the tool's Context."""
    takes_any: bool
    """It has `**kwargs`."""
    untyped: list[str]
    """Parameters without a type: the model is not told what to send."""

    def declaration(self, description: str) -> types.FunctionDeclaration:
        """What the model is told. JSON Schema under `parameters_json_schema`; none when there are no parameters."""
        schema: dict[str, Any] | None = None
        if self.arguments.model_fields:
            schema = self.arguments.model_json_schema(by_alias=True, schema_generator=_PlainTitles)
            schema["title"] = f"{self.name}Params"
        return types.FunctionDeclaration(name=self.name, description=description, parameters_json_schema=schema)


class _PlainTitles(GenerateJsonSchema):
    """JSON Schema without a title for each field: the name says it."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def generate(self, schema: Any, mode: Any = "validation") -> JsonSchemaValue:
        made = super().generate(schema, mode)
        made.pop("additionalProperties", None)
        return made


def signature_of(func: Callable[..., Any], name: str) -> Signature:
    """Read `func`.

    Raises:
        ConfigurationError: A parameter's type is one that no JSON can fill.
    """
    hints = _hints(func)
    told = _parameter_docs(func)
    fields: dict[str, tuple[Any, FieldInfo]] = {}
    context, takes_any, untyped = None, False, list[str]()
    for parameter in inspect.signature(func).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            takes_any = True
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        hint = hints.get(parameter.name, parameter.annotation)
        if _is_context(parameter.name, hint):
            context = parameter.name
            continue
        if hint is parameter.empty or isinstance(hint, str):
            untyped.append(parameter.name)
            hint = Any
        fields[parameter.name] = (hint, _field(parameter, hint, told.get(parameter.name)))
    model = _arguments(name, fields)
    return Signature(name=name, arguments=model, context_parameter=context, takes_any=takes_any, untyped=untyped)


def _field(parameter: inspect.Parameter, hint: Any, description: str | None) -> FieldInfo:
    default = ... if parameter.default is parameter.empty else parameter.default
    if isinstance(default, FieldInfo):
        field = copy(default)
        field.alias = field.validation_alias = field.serialization_alias = parameter.name
        field.description = default.description or description
        return field
    own = next((one for one in getattr(hint, "__metadata__", ()) if isinstance(one, FieldInfo)), None)
    said = own.description if own else None
    return Field(default=default, alias=parameter.name, description=said or description)


def _arguments(name: str, fields: dict[str, tuple[Any, FieldInfo]]) -> type[BaseModel]:
    config = ConfigDict(extra="allow", arbitrary_types_allowed=False, protected_namespaces=())
    given: dict[str, Any] = {_FIELD_PREFIX + key: field for key, field in fields.items()}
    try:
        model = create_model(name, __config__=config, **given)
        model.model_json_schema()
    except (PydanticSchemaGenerationError, PydanticUserError, TypeError) as error:
        odd = ", ".join(f"{key}: {_spelled(hint)}" for key, (hint, _) in fields.items())
        raise ConfigurationError(
            f"tool {name!r}: a model can only send JSON, and one of its parameters ({odd}) has a type that JSON "
            "cannot fill; take str, int, float, bool, list, dict, Literal, Enum, a dataclass or a pydantic model"
        ) from error
    return model


def _spelled(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) else str(hint)


def _hints(func: Callable[..., Any]) -> dict[str, Any]:
    target = func if inspect.isroutine(func) else getattr(func, "func", None) or func.__call__
    try:
        return typing.get_type_hints(target, include_extras=True)
    except Exception as error:  # an annotation may be any expression, so resolving it may raise anything
        name = getattr(func, "__name__", repr(func))
        logger.warning("tool %r: an annotation cannot be resolved (%s); the model is not told its type", name, error)
        return {key: one for key, one in getattr(target, "__annotations__", {}).items() if not isinstance(one, str)}


def _is_context(name: str, hint: Any) -> bool:
    if name == "tool_context":
        return True
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    if get_origin(hint) in (typing.Union, pytypes.UnionType):
        return any(_is_context("", one) for one in get_args(hint))
    if isinstance(hint, str):
        return hint.rpartition(".")[2].removesuffix(" | None") in ("ToolContext", "Context", "CallbackContext")
    return isinstance(hint, type) and issubclass(hint, Context)


def _parameter_docs(func: Callable[..., Any]) -> dict[str, str]:
    """What the docstring says of each parameter: Google, NumPy or Sphinx style."""
    parsed = docstring_parser.parse(inspect.getdoc(func) or "")
    return {one.arg_name: " ".join((one.description or "").split()) for one in parsed.params if one.description}
