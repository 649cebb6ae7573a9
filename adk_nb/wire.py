"""Records that are stored or sent as JSON (camelCase keys, snake_case in Python), and fast copies of models."""

import json
import math
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, ClassVar, TypeVar, cast

from pydantic import BaseModel, ConfigDict, GetPydanticSchema, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import InitErrorDetails, PydanticCustomError, core_schema

from adk_nb.errors import ConfigurationError, InputError, closest

MAX_DEPTH = 100
"""Depth of nested lists and dicts. Pydantic parses up to 200 levels of JSON, and an event adds a few."""
_MAX_INT_BITS = 12_000
"""Python refuses to parse an integer of more than 4,300 digits (`sys.get_int_max_str_digits`)."""

M = TypeVar("M", bound=BaseModel)
D = TypeVar("D")


class WireModel(BaseModel):
    """The base class of records that are stored or sent as JSON.

    Parsing ignores unknown keys, so that an older version reads a newer record. The constructor refuses them with a
    ValidationError that names the closest field.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="ignore",
        arbitrary_types_allowed=True,
        defer_build=True,  # build validators on first use: importing the package is a third faster
    )

    shorthands: ClassVar[frozenset[str]] = frozenset()
    """Arguments of the constructor that are not fields."""
    takes_unknown: ClassVar[bool] = False
    """The constructor ignores unknown fields, too."""

    def __init__(self, /, **fields: Any) -> None:
        kind = type(self)
        if (
            not fields.keys() <= _arguments(kind)
            and not kind.takes_unknown
            and kind.model_config.get("extra") == "ignore"
        ):
            field_names = sorted(kind.shorthands.union(kind.model_fields))
            problems = {n: unknown_field(n, field_names) for n in fields if n not in _arguments(kind)}
            errors: list[InitErrorDetails] = [
                {
                    "type": PydanticCustomError("extra_forbidden", "{problem}", {"problem": problem}),
                    "loc": (name,),
                    "input": fields[name],
                }
                for name, problem in problems.items()
            ]
            raise ValidationError.from_exception_data(
                kind.__name__, errors, hide_input=kind.model_config.get("hide_input_in_errors", False)
            )
        self.__pydantic_validator__.validate_python(fields, self_instance=self)  # what pydantic's own __init__ does

    # Without this mark pydantic calls an overridden __init__ for each record that it reads, nested ones too.
    setattr(__init__, "__pydantic_base_init__", True)  # noqa: B010 - pyright knows no attributes of functions


@cache
def _arguments(kind: type[WireModel]) -> frozenset[str]:
    """Names that the constructor accepts: fields under both of their names, and shorthands."""
    fields = kind.model_fields
    return kind.shorthands.union(fields, (field.alias for field in fields.values() if field.alias))


class SettingsModel(BaseModel):
    """The base class of settings: an unknown or invalid field raises a ConfigurationError that names the field."""

    model_config = ConfigDict(extra="forbid")

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            problems = field_errors(error, type(self).model_fields)
            raise ConfigurationError(f"{type(self).__name__}: {problems}") from error


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _validate_lazily(kind: Any, _handler: object) -> core_schema.CoreSchema:
    return core_schema.no_info_plain_validator_function(lambda value: _adapter(kind).validate_python(value))


LAZY = GetPydanticSchema(_validate_lazily)
"""In `Annotated[T, LAZY]`: build the validator of `T` when the field is first set. For large types of google-genai,
which take 25 ms to build and are seldom set."""


_put_fields, _put_fields_set, _put_extra, _put_private = (
    vars(BaseModel)[name].__set__
    for name in ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
)


def copy_model(model: M, /, **changed: Any) -> M:
    """`model.model_copy(update=changed)` at half its cost: shallow, not validated, without private fields.

    Source: https://docs.pydantic.dev/latest/api/base_model/ names the four attributes that make up a model.
    """
    return new_model(model.__class__, model.__pydantic_fields_set__ | changed.keys(), model.__dict__ | changed)


def new_model(kind: type[M], fields_set: set[str], fields: dict[str, Any]) -> M:
    """A model with these `fields`, not validated. `fields_set`: names of the fields that count as set."""
    model = object.__new__(kind)
    _put_fields(model, fields)
    _put_fields_set(model, fields_set)
    _put_extra(model, None)
    _put_private(model, None)
    return model


_SAME_KEYS = 40
"""More than the 30 attribute slots of a new class: each further instance lets CPython drop an unused slot."""


def prototype(model: M) -> M:
    """`model` with a key-sharing dict, so that copies by `copy_model` take half the memory.

    Source: https://peps.python.org/pep-0412/
    """
    copy = model
    for _ in range(_SAME_KEYS):
        copy = object.__new__(model.__class__)
        for name, value in model.__dict__.items():
            object.__setattr__(copy, name, value)
    return new_model(model.__class__, model.__pydantic_fields_set__, vars(copy))


class SharedNames(set[str]):
    """A set of field names shared by many records; a set of a few names takes 200 to 700 bytes."""


def shares_field_names(model: type[M]) -> type[M]:
    """A class decorator: records may have `SharedNames`, which are copied before a field is set."""
    plain: Callable[[M, str, Any], None] = vars(BaseModel)["__setattr__"]

    def set_and_unshare(record: M, name: str, value: Any) -> None:
        if isinstance(names := record.__pydantic_fields_set__, SharedNames):
            _put_fields_set(record, set(names))
        plain(record, name, value)

    setattr(model, "__setattr__", set_and_unshare)  # noqa: B010 - written into the class, it would hide misspelt names from checkers
    return model


def deep_copy(value: D) -> D:
    """A deep copy of models, lists, dicts, tuples and sets; other objects, and frozen models, are shared.

    Ten times faster than `model_copy(deep=True)`, which copies a record with private or extra fields. Values may be
    anything: `plain_json` copies what has to be JSON, and `json_problem` says why something is not.
    """
    copier = _COPIERS[type(value)]
    return copier(value) if copier else value


class _Copiers(dict[type, Callable[[Any], Any] | None]):
    """Type -> its copy function; None: share values. Exact types only: a subclass may have more than its items."""

    def __missing__(self, kind: type) -> Callable[[Any], Any] | None:
        if not issubclass(kind, BaseModel):
            return None
        copier = None if kind.model_config.get("frozen") else _copy_record
        self[kind] = copier
        return copier


def _copy_dict(value: dict[Any, Any]) -> dict[Any, Any]:
    # A snapshot: a sync tool in a thread may write to the dict.
    copy = value.copy()
    for key, item in copy.items():
        if copier := _COPIERS[type(item)]:
            copy[key] = copier(item)
    return copy


def _copy_list(value: Iterable[Any]) -> list[Any]:
    return [copier(item) if (copier := _COPIERS[type(item)]) else item for item in value]


def _copy_record(record: BaseModel) -> BaseModel:
    # Private and extra fields may hold any object: leave the copy to pydantic.
    if record.__pydantic_private__ or record.__pydantic_extra__:
        return record.model_copy(deep=True)
    kind, fields, fields_set = record.__class__, record.__dict__.copy(), record.__pydantic_fields_set__
    for name in fields_set if _has_plain_defaults(kind) else fields:
        if copier := _COPIERS[type(fields.get(name))]:
            fields[name] = copier(fields[name])
    return new_model(kind, fields_set if type(fields_set) is SharedNames else fields_set.copy(), fields)


@cache
def _has_plain_defaults(kind: type[BaseModel]) -> bool:
    """True if no default value of a field needs a copy."""
    return all(
        _COPIERS[type(field.default)] is None and not field.default_factory for field in kind.model_fields.values()
    )


_COPIERS = _Copiers(
    {dict: _copy_dict, list: _copy_list, tuple: lambda value: tuple(_copy_list(value)), set: lambda value: value.copy()}
)
_COPIERS.update(dict.fromkeys((str, int, float, bool, bytes, type(None))))


def fast_private_attributes(model: type[M]) -> type[M]:
    """A class decorator: read private attributes three times faster than pydantic does.

    Agents, nodes and models read theirs many times: without it a turn with a tool takes 2 to 4 % more CPU time.
    """
    fallback: Callable[[M, str], Any] = vars(BaseModel)["__getattr__"]

    def get_private(record: M, name: str) -> Any:
        try:
            private: Any = object.__getattribute__(record, "__pydantic_private__")
        except AttributeError:
            private = None  # the instance is being constructed
        return private[name] if private and name in private else fallback(record, name)

    setattr(model, "__getattr__", get_private)  # noqa: B010 - written into the class, it would hide misspelt names from checkers
    return model


def replace_fields(instance: D, /, **changed: Any) -> D:
    """`dataclasses.replace(instance, **changed)` at an eighth of its cost, for a dataclass without `__post_init__`."""
    copy = object.__new__(instance.__class__)
    copy.__dict__ = instance.__dict__ | changed
    return copy


def plain_json(values: Mapping[str, Any] | None, owner: str) -> dict[str, Any]:
    """A copy of `values` (None: empty) that survives a round trip through JSON unchanged.

    Args:
        values: Not changed and not referred to afterwards.
        owner: For the error, such as `custom_metadata of artifact 'a.txt'`.

    Raises:
        InputError: JSON would change it, or cannot represent it.
    """
    original = dict(values or {})
    try:
        # The round trip finds what JSON changes silently: tuples, keys that are numbers, NaN.
        copy = json.loads(json.dumps(original, allow_nan=False))
        is_equal = bool(copy == original)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{owner} is stored as JSON, and {original!r:.80} cannot be: {error}") from error
    if not is_equal:
        raise InputError(
            f"{owner} is stored as JSON, which would change {original!r:.80}; use str, int, float, list, dict"
        )
    return copy


def field_errors(
    error: ValidationError, field_names: Iterable[str], unknown: Callable[[str], str] | None = None, *, got: bool = True
) -> str:
    """The problems of all fields, joined by `; `.

    Args:
        error: Of a model made from keyword arguments.
        field_names: Names of the fields.
        unknown: Message for an unknown field. None: `unknown_field`.
        got: Include the value. False: it may be a secret.
    """
    messages: list[str] = []
    for details in error.errors(include_url=False, include_context=False):
        steps, value = details["loc"], details["input"]
        field = ".".join(str(step) for step in steps)
        if details["type"] == "missing":
            messages.append(f"{field!r} is missing")
        elif details["type"] == "extra_forbidden":
            if len(steps) > 1:
                messages.append(unknown_field(field))
            else:
                messages.append(unknown(field) if unknown else unknown_field(field, field_names))
        elif not steps:
            messages.append(details["msg"].removeprefix("Value error, "))
        else:
            message = details["msg"].removeprefix("Value error, ")
            hint = f"; write {value.__name__}(...)" if isinstance(value, type) and "instance of" in message else ""
            excerpt = f" (got {' '.join(repr(value).split()):.80})" if got else ""
            messages.append(f"{field!r}: {message}{excerpt}{hint}")
    return "; ".join(messages)


def unknown_field(name: str, field_names: Iterable[str] = ()) -> str:
    """The message for an unknown field, with the closest known one."""
    near = closest(name, field_names)
    return f"there is no field {name!r}" + (f"; did you mean {near!r}?" if near else "")


def json_problem(value: Any, depth: int = 0, *, objects: bool = False) -> str | None:
    """Description of the first part of `value` that is not plain JSON. None: all of it is.

    Args:
        value: Checked with all its items.
        depth: Of `value` in the whole.
        objects: Allow objects of other types, and check only text, integers and nesting.
    """
    # bool before int, of which it is a subclass; ASCII text has no surrogates.
    if value is None or isinstance(value, str | bool):
        return None if value is None or isinstance(value, bool) or value.isascii() else _text_problem(value)
    if isinstance(value, int):
        return None if value.bit_length() < _MAX_INT_BITS else "a number of thousands of digits"
    if isinstance(value, float):
        return None if objects or math.isfinite(value) else f"the number {value}"
    if not isinstance(value, list | dict):
        if objects:
            return None
        kind = type(value).__name__
        return f"{'an' if kind[0] in 'aeioAEIO' else 'a'} {kind}"
    if depth >= MAX_DEPTH:
        return f"lists and dicts that are nested more than {MAX_DEPTH} deep, or in themselves"
    inner = cast(list[Any], value)
    if isinstance(value, dict):
        inner = [*cast(dict[Any, Any], value).values()]
        for key in [*cast(dict[Any, Any], value)]:
            if not isinstance(key, str) and not objects:
                return f"a dict with the key {key!r}, which is not a string"
            if isinstance(key, str) and (problem := json_problem(key)):
                return problem
    return next((problem for item in inner if (problem := json_problem(item, depth + 1, objects=objects))), None)


def has_control(text: str) -> bool:
    """True if `text` has a character that is not drawn but moves what is: a line break, a tab, a change of direction.

    Where such a text is shown or typed again, it is another one.
    """
    return not text.isprintable() and any(
        unicodedata.category(char) in _CONTROL_CATEGORIES or unicodedata.bidirectional(char) in _DIRECTIONS
        for char in text
    )


_CONTROL_CATEGORIES = ("Cc", "Zl", "Zp")
_DIRECTIONS = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")


def _text_problem(text: str) -> str | None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return f"text with half a character ({text[error.start]!r} at {error.start})"
    return None


def json_or_text(text: str) -> Any:
    """The value of JSON text; `text` itself if it is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def join_surrogates(text: str) -> str:
    """`text` with each pair of surrogates, the halves of an emoji that came apart, as the character that it is."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def replace_surrogates(value: Any) -> Any:
    """`value` with a `?` instead of each lone surrogate, which JSON can represent and UTF-8 cannot."""
    if isinstance(value, str):
        return value if value.isascii() else join_surrogates(value).encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [replace_surrogates(item) for item in cast(list[Any], value)]
    if isinstance(value, dict):
        return {replace_surrogates(key): replace_surrogates(item) for key, item in cast(dict[Any, Any], value).items()}
    return value
