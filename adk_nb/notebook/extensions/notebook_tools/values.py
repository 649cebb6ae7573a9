"""What a model is told of the notebook's values, without running code of their classes.

Only values of Python's own types and of known libraries are read; of any other the model gets the type's name. What it
gets is bounded, and known secrets are hidden in it.
"""

import datetime as dt
import decimal
import enum
import json
import sys
import types as python_types
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import PurePath
from typing import Any, cast

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.apps.app import App
from adk_nb.models.base_llm import BaseLlm
from adk_nb.notebook.variables import user_variables
from adk_nb.redaction import REDACTED, hidden, is_secret_name, without_known
from adk_nb.runners import Runner
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.base_toolset import BaseToolset

Json = dict[str, Any]

MOST_CHARACTERS = 4_000
"""Of one result, as JSON."""
MOST_ROWS = 20
"""Rows, items and values of one result."""
_SEARCHED = 10_000
"""Characters of a text in which secrets are searched for, before it is cut: one that is cut in two is not found."""
_CELL = 80
"""Characters of a value in a table or a list."""
_SHORT = 60
"""Characters of a value that is listed beside its name."""
_WIDE = 200
"""Columns of a frame above which its size is not added up."""
_DEPTH = 3
"""Levels of containers in containers."""
_LIBRARIES = frozenset({"numpy", "pandas", "polars", "pyarrow", "modin", "duckdb", "matplotlib", "PIL", "torch"})
"""Whose classes are read."""
_LENGTHS: dict[type, Any] = {
    kind: vars(kind)["__len__"] for kind in (str, bytes, bytearray, list, tuple, dict, set, frozenset, range)
}
_LEFT_OUT = (
    python_types.ModuleType, type, python_types.FunctionType, python_types.BuiltinFunctionType,
    python_types.MethodType, python_types.GenericAlias, BaseAgent, BaseTool, BaseToolset, BaseLlm, App, Runner,
)  # fmt: skip
_TIMES = (dt.datetime, dt.date, dt.time, dt.timedelta, decimal.Decimal, uuid.UUID)
_PLAIN = (bool, int, float, complex, type(None))


def type_name(value: object) -> str:
    """The name of a value's type, as `pandas.DataFrame`; read without code of its metaclass."""
    name, package = type.__dict__["__qualname__"].__get__(type(value)), _package(type(value))
    name = cut(str.__str__(name), _CELL)
    return name if package in ("builtins", "__main__", "") else f"{package}.{name}"


def _package(kind: type) -> str:
    module: Any = type.__dict__["__module__"].__get__(kind)
    return module.partition(".")[0] if type(module) is str else ""


def _is_a(value: object, kinds: Any) -> bool:
    return issubclass(type(value), kinds)  # `isinstance` would read `__class__`, which a class may compute


def _bases(value: object) -> tuple[type, ...]:
    return type.__dict__["__mro__"].__get__(type(value))


def library_of(value: object) -> tuple[str, str]:
    """The known library that a value is of, and the name of its class there; two empty texts: of none."""
    cls = type(value)
    package = _package(cls)
    return (package, cls.__name__) if package in _LIBRARIES and package in sys.modules else ("", "")


def length_of(value: object) -> int | None:
    """The length of a value of Python's own types, also of a class that is derived from one. None: of another type."""
    for cls in _bases(value):
        if cls in _LENGTHS:
            return _LENGTHS[cls](value)
    return None


def without_secrets(text: str) -> str:
    """`text` without known secrets and without what looks like one, and in characters that have a UTF-8 form."""
    return hidden(text).encode("utf-8", "replace").decode()


def cut(text: str, most: int) -> str:
    """`text` in at most `most` characters, without known secrets and without what looks like one."""
    whole = without_secrets(text[:_SEARCHED])
    return whole if len(whole) <= most and len(text) <= _SEARCHED else f"{whole[: most - 1]}…"


def plain(value: object, most: int = _CELL, depth: int = 0) -> Any:
    """A value as JSON: plain ones as they are, text cut, containers bounded; of any other the name of its type."""
    kind = type(value)
    if kind in _PLAIN:
        return _number(value)
    if kind is str:
        return cut(cast(str, value), most)
    if kind in _TIMES:
        return str(value)
    if _is_a(value, PurePath) and _package(kind) == "pathlib":
        return cut(str(value), most)
    package, name = library_of(value)
    if package == "numpy" and _is_a(value, sys.modules["numpy"].generic) and name != "void":
        return plain(cast(Any, value).item(), most, depth)
    if (package, name) in (("pandas", "Timestamp"), ("pandas", "Timedelta"), ("pandas", "Period")):
        return str(value)
    if package == "pandas" and name in ("NAType", "NaTType"):
        return None
    if kind in (list, tuple, set, frozenset) and depth < _DEPTH:
        items = [*_first(value, MOST_ROWS)]
        more = len(cast(Any, value)) - len(items)
        return [*(plain(item, most, depth + 1) for item in items), *([f"… {more:,} more"] if more > 0 else [])]
    if kind is dict and depth < _DEPTH:
        return _mapping(cast(dict[Any, Any], value), most, depth)
    if _is_a(value, enum.Enum):
        return f"{type_name(value)}.{object.__getattribute__(value, '_name_')}"
    length = length_of(value)
    return f"<{type_name(value)}>" if length is None else f"<{type_name(value)}, length {length:,}>"


def _number(value: Any) -> Any:
    if type(value) is int and value.bit_length() > 200:
        return f"<int of {value.bit_length():,} bits>"
    if type(value) is complex or (type(value) is float and not abs(value) < float("inf")):
        return str(value)
    return value


def _first(items: Any, most: int) -> list[Any]:
    found: list[Any] = []
    with suppress(RuntimeError):  # another thread changes it
        for item in items:
            if len(found) == most:
                break
            found.append(item)
    return found


def _mapping(value: dict[Any, Any], most: int, depth: int) -> Json:
    entries: list[tuple[Any, Any]] = _first(value.items(), MOST_ROWS)
    shown: Json = {}
    for key, item in entries:
        name = key_text(key)
        shown[name] = REDACTED if is_secret_name(name) else plain(item, most, depth + 1)
    if (more := len(value) - len(entries)) > 0:
        shown["…"] = f"{more:,} more"
    return shown


def key_text(key: object) -> str:
    """A key of a dict or the name of a column as text."""
    shown = plain(key)
    return shown if type(shown) is str else json.dumps(shown, default=str)


# ---- the list


def listed(variables: Mapping[str, Any], words: str = "") -> Json:
    """The variables, the newest first: name -> type, shape or length, size.

    `words`: each is in the name or the type.
    """
    wanted = words.lower().split()
    now = dict(variables)
    found: dict[str, str] = {}
    used = left_out = 0
    for name in reversed(user_variables([name for name in now if type(name) is str])):
        value = now[name]
        if _is_a(value, _LEFT_OUT) or _is_known_secret(value):
            continue
        if wanted and not all(word in f"{name} {type_name(value)}".lower() for word in wanted):
            continue
        if used > MOST_CHARACTERS - 400:
            left_out += 1
            continue
        found[name] = line = summary(name, value)
        used += len(json.dumps([name, line])) + 2
    listing: Json = {"variables": found}
    if left_out:
        listing["left_out"] = f"{left_out:,} older variables; name a word of theirs as the filter"
    if not found:
        none = f"no variable has {words!r:.80} in its name or type" if wanted else "no variable is defined yet"
        listing["note"] = none
    return listing


def _is_known_secret(value: object) -> bool:
    if type(value) is bytes:
        value = value[:_SEARCHED].decode("latin-1")
    return type(value) is str and len(value) <= _SEARCHED and without_known(value) != value


def summary(name: str, value: object) -> str:
    """A line about a value: `pandas.DataFrame, 1,000 x 5, 40 kB`."""
    facts = [type_name(value)]
    if is_secret_name(name):
        return f"{facts[0]}, not shown: its name is that of a key"
    package, _ = library_of(value)
    if package:
        with suppress(Exception):  # a library may refuse, as of a closed connection
            facts += _shape_and_size(value)
    elif (length := length_of(value)) is not None:
        facts.append(f"{length:,} {'character' if _is_a(value, str) else 'item'}{'' if length == 1 else 's'}")
        if type(value) is str and length <= _SHORT:
            facts[-1] = json.dumps(cut(value, _SHORT), ensure_ascii=False)
    elif type(value) in (*_PLAIN, *_TIMES):
        facts.append(cut(str(plain(value)), _SHORT))
    return ", ".join(facts)


def _shape_and_size(value: Any) -> list[str]:
    shape: Any = getattr(value, "shape", None)
    if shape is None and type(getattr(value, "size", None)) is tuple:  # a picture
        shape = value.size
    if shape is None:
        return []
    facts = [" x ".join(f"{int(part):,}" for part in shape) or "one value"]
    if hasattr(cast(Any, type(value)), "dtype"):
        facts.append(cut(str(value.dtype), _CELL))
    columns = len(shape) > 1 and shape[1] > _WIDE and hasattr(value, "columns")
    size: Any = None
    if hasattr(value, "memory_usage"):
        used = None if columns else value.memory_usage()
        size = used if used is None or isinstance(used, int) else int(used.sum())
    elif hasattr(value, "estimated_size"):
        size = None if columns else value.estimated_size()
    elif hasattr(value, "nbytes"):
        size = value.nbytes
    return [*facts, *([size_text(int(size))] if size is not None else [])]


def size_text(count: int) -> str:
    """`40 kB`."""
    size, units = float(count), ["B", "kB", "MB", "GB", "TB"]
    while size >= 1_000 and len(units) > 1:
        size /= 1_000
        del units[0]
    return f"{size:.0f} {units[0]}" if size >= 10 or units[0] == "B" else f"{size:.1f} {units[0]}"


def fitted(result: Json) -> Json:
    """`result` in at most `MOST_CHARACTERS` of JSON: its longest lists, tables and texts are cut to their half."""
    while (length := weight(result)) > MOST_CHARACTERS:
        name = max(result, key=lambda name: weight(result[name]))
        value = result[name]
        if isinstance(value, list) and len(cast(list[Any], value)) > 1:
            items = cast(list[Any], value)
            value = items[: len(items) // 2]
        elif isinstance(value, dict) and len(cast(Json, value)) > 1:
            entries = list(cast(Json, value).items())
            value = dict(entries[: len(entries) // 2])
        elif isinstance(value, list | dict):
            value = json.dumps(value, ensure_ascii=False, default=str)
        else:
            text = str(value)
            value = f"{text[: max(0, len(text) - (length - MOST_CHARACTERS) - 200)]}…"
        result = {**result, name: value, "cut": f"to {MOST_CHARACTERS:,} characters"}
    return result


def weight(value: object) -> int:
    """Characters of a result, or of a part of it, as JSON."""
    return len(json.dumps(value, ensure_ascii=False, default=str))
