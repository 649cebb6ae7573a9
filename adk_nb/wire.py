"""The shape of everything that is stored or sent: snake_case in Python, camelCase in JSON, both read."""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, ClassVar, TypeVar, cast

from pydantic import BaseModel, ConfigDict, GetPydanticSchema, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import InitErrorDetails, PydanticCustomError, core_schema

from adk_nb.errors import InputError, closest

MAX_DEPTH = 100
"""Lists and dicts within each other. Pydantic reads JSON of less than 200, and an event adds some of its own."""
_MOST_BITS = 12_000
"""Python reads no number of more than 4,300 digits."""

M = TypeVar("M", bound=BaseModel)
D = TypeVar("D")


class WireModel(BaseModel):
    """A record that travels as JSON.

    Reading JSON ignores keys it does not know, so an older reader reads a newer record. The constructor refuses them
    with a ValidationError that names the closest field.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="ignore",
        arbitrary_types_allowed=True,
        defer_build=True,  # each record is built when the first is made: an import that makes none is a third cheaper
    )

    shorthands: ClassVar[frozenset[str]] = frozenset()
    """Arguments of the constructor that are not fields."""
    takes_unknown: ClassVar[bool] = False
    """The constructor ignores unknown fields, too."""

    def __init__(self, /, **given: Any) -> None:
        kind = type(self)
        if (
            not given.keys() <= _arguments(kind)
            and not kind.takes_unknown
            and kind.model_config.get("extra") == "ignore"
        ):
            raise _unknown_arguments(kind, given)
        self.__pydantic_validator__.validate_python(given, self_instance=self)  # what pydantic's own __init__ does

    # Without this mark pydantic calls an overridden __init__ for each record that it reads, nested ones too.
    setattr(__init__, "__pydantic_base_init__", True)  # noqa: B010 - pyright knows no attributes of functions


@cache
def _arguments(kind: type[WireModel]) -> frozenset[str]:
    """What the constructor takes: fields under both of their names, and the shorthands."""
    fields = kind.model_fields
    return kind.shorthands.union(fields, (field.alias for field in fields.values() if field.alias))


def _unknown_arguments(kind: type[WireModel], given: Mapping[str, Any]) -> ValidationError:
    known = sorted(kind.shorthands.union(kind.model_fields))
    wrong: list[InitErrorDetails] = [
        {
            "type": PydanticCustomError("extra_forbidden", "{problem}", {"problem": no_field(name, known)}),
            "loc": (name,),
            "input": value,
        }
        for name, value in given.items()
        if name not in _arguments(kind)
    ]
    return ValidationError.from_exception_data(
        kind.__name__, wrong, hide_input=kind.model_config.get("hide_input_in_errors", False)
    )


@cache
def _reader(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _read_when_given(kind: Any, _handler: object) -> core_schema.CoreSchema:
    return core_schema.no_info_plain_validator_function(lambda given: _reader(kind).validate_python(given))


LATE = GetPydanticSchema(_read_when_given)
"""In `Annotated[T, LATE]`: what `T` says of a field is read when it is first set. For large types of google-genai,
which take 25 ms to read and are seldom set."""


_put_fields, _put_given, _put_extra, _put_private = (
    vars(BaseModel)[name].__set__
    for name in ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
)


def copied(one: M, /, **changed: Any) -> M:
    """`one.model_copy(update=changed)` at half its price: shallow, unchecked, and without private fields.

    Source: https://docs.pydantic.dev/latest/api/base_model/ names the four attributes that make up a model.
    """
    made = object.__new__(one.__class__)  # as `bare` does, without the call: a tool round makes ten, and is 1 % faster
    _put_fields(made, one.__dict__ | changed)
    _put_given(made, one.__pydantic_fields_set__ | changed.keys())
    _put_extra(made, None)
    _put_private(made, None)
    return made


def bare(kind: type[M], given: set[str], fields: dict[str, Any]) -> M:
    """A record of just these `fields`, unchecked; `given` are the names of those that count as set."""
    made = object.__new__(kind)
    _put_fields(made, fields)
    _put_given(made, given)
    _put_extra(made, None)
    _put_private(made, None)
    return made


_SAME_KEYS = 40
"""Python makes room for fewer attributes in each further object of a class, down to those there are. A class has 30."""


def prototype(model: M) -> M:
    """`model`, so that what `copied` makes of it takes half of the memory: the dicts of all copies share their keys.

    Source: https://peps.python.org/pep-0412/
    """
    made = model
    for _ in range(_SAME_KEYS):
        made = object.__new__(model.__class__)
        for name, value in model.__dict__.items():
            object.__setattr__(made, name, value)
    return bare(model.__class__, model.__pydantic_fields_set__, vars(made))


class SharedNames(set[str]):
    """The names of the fields that were given to many records alike; a set of a few names takes 200 to 700 bytes."""


def may_share_names(model: type[M]) -> type[M]:
    """A class decorator: a record of `model` has `SharedNames` until a field of it is set."""
    plain: Callable[[M, str, Any], None] = vars(BaseModel)["__setattr__"]

    def put(one: M, name: str, value: Any) -> None:
        if isinstance(given := one.__pydantic_fields_set__, SharedNames):
            _put_given(one, set(given))
        plain(one, name, value)

    setattr(model, "__setattr__", put)  # noqa: B010 - written into the class, it would hide misspelt names from checkers
    return model


def copied_in_depth(value: D) -> D:
    """A copy of `value` whose records, lists, dicts and sets are copies too; other objects are shared.

    Takes a tenth of the time of `model_copy(deep=True)`.
    """
    copier = _COPIERS[type(value)]
    return copier(value) if copier else value


class _Copiers(dict[type, Callable[[Any], Any] | None]):
    """Type -> its copier; None where values are shared. Exactly the type: a subclass may hold more than its items."""

    def __missing__(self, kind: type) -> Callable[[Any], Any] | None:
        if not issubclass(kind, BaseModel):
            return None
        copier = None if kind.model_config.get("frozen") else _copy_record
        self[kind] = copier
        return copier


def _copy_dict(value: dict[Any, Any]) -> dict[Any, Any]:
    # A snapshot: a sync tool in a thread may write to the dict.
    made = value.copy()
    for key, item in made.items():
        if copier := _COPIERS[type(item)]:
            made[key] = copier(item)
    return made


def _copy_list(value: list[Any]) -> list[Any]:
    return [copier(item) if (copier := _COPIERS[type(item)]) else item for item in value]


def _copy_tuple(value: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(_copy_list(list(value)))


def _copy_set(value: set[Any]) -> set[Any]:
    return value.copy()


def _copy_record(record: BaseModel) -> BaseModel:
    if record.__pydantic_private__ or record.__pydantic_extra__:
        return record.model_copy(deep=True)
    kind, fields, given = record.__class__, record.__dict__.copy(), record.__pydantic_fields_set__
    for name in given if _has_plain_defaults(kind) else fields:
        if copier := _COPIERS[type(fields.get(name))]:
            fields[name] = copier(fields[name])
    return bare(kind, given if type(given) is SharedNames else given.copy(), fields)


@cache
def _has_plain_defaults(kind: type[BaseModel]) -> bool:
    """True if fields that are not given hold nothing to copy."""
    return all(
        _COPIERS[type(field.default)] is None and not field.default_factory for field in kind.model_fields.values()
    )


_COPIERS = _Copiers({dict: _copy_dict, list: _copy_list, tuple: _copy_tuple, set: _copy_set})
_COPIERS.update(dict.fromkeys((str, int, float, bool, bytes, type(None))))


def reads_privates_fast(model: type[M]) -> type[M]:
    """A class decorator: private fields of `model` are found at a third of the price that pydantic's way takes.

    Agents, nodes and models read theirs many times in a turn.
    """
    otherwise: Callable[[M, str], Any] = vars(BaseModel)["__getattr__"]

    def found(one: M, name: str) -> Any:
        try:
            private: Any = object.__getattribute__(one, "__pydantic_private__")
        except AttributeError:
            private = None  # it is only being made
        return private[name] if private and name in private else otherwise(one, name)

    setattr(model, "__getattr__", found)  # noqa: B010 - written into the class, it would hide misspelt names from checkers
    return model


def but(one: D, /, **changed: Any) -> D:
    """`dataclasses.replace(one, **changed)` at an eighth of its price: of a dataclass that does nothing when made."""
    made = object.__new__(one.__class__)
    made.__dict__ = one.__dict__ | changed
    return made


def plain_json(given: Mapping[str, Any] | None, what: str) -> dict[str, Any]:
    """A copy of `given`, empty for None, that a file can hold and give back equal.

    Args:
        given: The caller's own; not kept.
        what: Whose it is, for the error: `custom_metadata of artifact 'a.txt'`.

    Raises:
        InputError: JSON would change it, or cannot hold it.
    """
    whole = dict(given or {})
    try:
        copy = json.loads(json.dumps(whole, allow_nan=False))
        same = bool(copy == whole)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{what} is kept as JSON, and {whole!r:.80} cannot be: {error}") from error
    if not same:
        raise InputError(f"{what} is kept as JSON, which would change {whole!r:.80}; use str, int, float, list, dict")
    return copy


def wrong_fields(
    error: ValidationError, known: Iterable[str], unknown: Callable[[str], str] | None = None, *, got: bool = True
) -> str:
    """What is wrong with each field, joined by `; `.

    Args:
        error: Of a model made from keyword arguments.
        known: The fields there are.
        unknown: What to say of a field that is none. None: that, and the one that was meant.
        got: Say what was given. False: it may be a secret.
    """
    told: list[str] = []
    for wrong in error.errors(include_url=False, include_context=False):
        steps, given = wrong["loc"], wrong["input"]
        field = ".".join(str(step) for step in steps)
        if wrong["type"] == "missing":
            told.append(f"{field!r} is missing")
        elif wrong["type"] == "extra_forbidden":
            if len(steps) > 1:
                told.append(no_field(field))
            else:
                told.append(unknown(field) if unknown else no_field(field, known))
        elif not steps:
            told.append(wrong["msg"].removeprefix("Value error, "))
        else:
            message = wrong["msg"].removeprefix("Value error, ")
            hint = f"; write {given.__name__}(...)" if isinstance(given, type) and "instance of" in message else ""
            shown = f" (got {' '.join(repr(given).split()):.80})" if got else ""
            told.append(f"{field!r}: {message}{shown}{hint}")
    return "; ".join(told)


def no_field(name: str, known: Iterable[str] = ()) -> str:
    """That there is no such field, and which of those that are `known` is like it."""
    near = closest(name, known)
    return f"there is no field {name!r}" + (f"; did you mean {near!r}?" if near else "")


def not_json(value: Any, depth: int = 0, *, objects: bool = False) -> str | None:
    """What in `value` no JSON reader gives back, in words; None if all of it is plain JSON. `depth` is where it is.

    With `objects`, any object will do: only broken text, endless numbers, lists and dicts are named.
    """
    if value is None or isinstance(value, str | bool):
        return None if value is None or isinstance(value, bool) or value.isascii() else _half_a_character(value)
    if isinstance(value, int | float):
        return None if objects and isinstance(value, float) else _no_number(value)
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
        if odd := next((odd for key in [*cast(dict[Any, Any], value)] if (odd := _odd_key(key, objects))), None):
            return odd
    return next((odd for one in inner if (odd := not_json(one, depth + 1, objects=objects))), None)


def _no_number(value: float) -> str | None:
    if isinstance(value, int):
        return None if value.bit_length() < _MOST_BITS else "a number of thousands of digits"
    return None if math.isfinite(value) else f"the number {value}"


def _half_a_character(text: str) -> str | None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return f"text with half a character ({text[error.start]!r} at {error.start})"
    return None


def _odd_key(key: Any, objects: bool) -> str | None:
    if isinstance(key, str):
        return not_json(key)
    return None if objects else f"a dict with the key {key!r}, which is no string"


def mended(value: Any) -> Any:
    """`value` with a `?` for each half of a character: JSON may carry such a half, UTF-8 cannot."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [mended(one) for one in cast(list[Any], value)]
    if isinstance(value, dict):
        return {mended(key): mended(one) for key, one in cast(dict[Any, Any], value).items()}
    return value
