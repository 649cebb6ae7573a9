"""Fingerprints of code: what it means that a tool, a callback or an agent has changed.

An approval is valid only for the tool that was shown to the approver, and a stored answer only for the agent that gave
it. A fingerprint is the hash of a walk over all that a value can reach: a function reaches its code, its defaults, what
it closes over, and what it finds by name; a class its members; an object its attributes. The walk goes as far as the
user's own code: a notebook, a script, or a module that is not installed. What a function of that code changes while it
works, a counter for instance, is no part of it, so there are two walks: the first finds the functions, whose bytecode
says what they change, and the second leaves that out.
"""

import dis
import functools
import hashlib
import inspect
import json
import operator
import re
import sys
import sysconfig
from array import array
from collections import ChainMap, UserDict, UserList, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, is_dataclass
from datetime import date, time, timedelta, tzinfo
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path, PurePath
from string import Template
from types import CodeType, FunctionType, MappingProxyType, MethodType, ModuleType, SimpleNamespace
from typing import Any, cast, get_args, get_origin
from uuid import UUID

from pydantic import BaseModel, TypeAdapter

from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.function_tool import FunctionTool

_PLAIN = (type(None), bool, int, float, complex, str, bytes)
_VALUES = (date, time, timedelta, tzinfo, Decimal, Fraction, PurePath, UUID, range)
"""Types of Python's library whose values do not change, and are told by their repr."""
_DATA = (list, set, dict, deque, bytearray, array, ChainMap, UserDict, UserList)
_HOLDERS: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (functools.cached_property, ("func",)),
    (functools.singledispatchmethod, ("dispatcher",)),
    (MethodType, ("__func__", "__self__")),
    ((staticmethod, classmethod), ("__func__",)),
    (property, ("fget", "fset", "fdel")),
    (slice, ("start", "stop", "step")),
    (re.Pattern, ("pattern", "flags")),
)
"""Types of Python, and the attributes that are all they hold."""
_MOST_ITEMS = 10_000
"""Of a longer list or dict only the length counts."""
_CONSTRUCTORS = {"__init__", "__new__", "__post_init__", "model_post_init", "__init_subclass__", "__set_name__"}
_CHANGING_METHODS = re.compile(
    "add|append(left)?|clear|(difference_|intersection_|symmetric_difference_)?update|discard|extend|insert|"
    "pop(item|left)?|remove|reverse|rotate|setdefault|sort"
)
"""Names of methods that change a list, a dict or a set."""
_CHANGES_NO_ANSWER = re.compile(
    "api_key|auth_config|auth_credential|headers|http_options|pace_seconds|retry_.*|secrets|speed|(.*_)?timeout"
)
"""Settings of the package's models and tools on which no answer depends."""
_INSTALLED = (
    *(f"{Path(sysconfig.get_paths()[name]).resolve()}/" for name in ("stdlib", "platstdlib", "purelib", "platlib")),
    f"{Path(__file__).resolve().parents[1]}/",
)
"""Folders of Python, of installed packages, and of this one."""
_NAME = re.compile(r"[^\W\d]\w*")


class _Token(str):
    """A piece of text that goes into the hash as it is, unlike a str that the function contains."""


def fingerprint(tool: BaseTool, args: dict[str, Any] | None = None) -> str:
    """A hash of a tool's declaration, code and target. Running the same cells again gives the same hash.

    `args`: of the call that an approval is about, for `BaseTool.call_target`. None: the target is `bound_to`.

    Covers the function's code; the functions that it wraps, closes over or finds by name in the user's own code, and so
    on; and the constants, defaults, variables and attributes with plain values that they read and do not change. Data
    that a tool may change while it works is left out: variables and attributes that some function assigns to, and the
    contents of lists and dicts. Another version of Python compiles other bytecode, so its approvals must be asked for
    again.
    """
    # Parts are joined with a null character, so that adjacent parts cannot merge.
    return hashlib.sha256("\0".join([*_shown(tool, args), *_tokens(tool)]).encode()).hexdigest()[:32]


def tools_fingerprint(tools: Iterable[Any]) -> str:
    """A hash of tools and plain functions together, as in `fingerprint`: a notebook is searched once for all of them,
    for what its functions change.
    """
    tools = tuple(tools)
    shown = [part for tool in tools for part in (_shown(tool, None) if isinstance(tool, BaseTool) else ("function",))]
    return hashlib.sha256("\0".join([*shown, *_tokens(tools)]).encode()).hexdigest()[:32]


def _shown(tool: BaseTool, args: dict[str, Any] | None) -> list[str]:
    declaration = tool.function_declaration
    declared = declaration.model_dump(mode="json", exclude_none=True) if declaration else None
    target = tool.bound_to if args is None else tool.call_target(args)
    return [type(tool).__qualname__, tool.name, target, json.dumps(declared, sort_keys=True, default=repr)]


def code_fingerprint(func: Any) -> str:
    """A hash of a plain function's code, as in `fingerprint`."""
    return hashlib.sha256("\0".join(_tokens(func)).encode()).hexdigest()[:32]


def whole_fingerprint(value: Any, parts_of_agent: Callable[[Any], Iterable[Any]]) -> str:
    """As `fingerprint`, of anything, and with the data: lists and dicts that no function changes, the settings of the
    package's objects, of a planner or a model for instance, and the parts of each agent that is found.
    """
    return hashlib.sha256("\0".join(_tokens(value, parts_of_agent)).encode()).hexdigest()[:32]


def _tokens(value: Any, parts_of_agent: Callable[[Any], Iterable[Any]] | None = None) -> Iterator[str]:
    walk = _Walk(parts_of_agent)
    tokens = list(walk.tokens(value))
    # What a function changes is known when all functions have been seen; if there is any, again without it.
    walk.changed = _Changes.of(walk.functions.values(), walk.namespaces.values())
    return iter(tokens) if walk.changed == _Changes() else walk.tokens(value)


# ---- the walk


class _Walk:
    """A walk over all that a value can reach, in an order that is the same in every process."""

    def __init__(self, parts_of_agent: Callable[[Any], Iterable[Any]] | None) -> None:
        """`parts_of_agent`: None for a walk without data, in which only the name of an agent counts."""
        self.parts_of_agent = parts_of_agent
        self.with_data = parts_of_agent is not None
        self.changed = _Changes()
        self.functions: dict[int, FunctionType] = {}
        self.namespaces: dict[int, dict[str, Any]] = {}
        """Of the user's own code."""

    def tokens(self, value: Any) -> Iterator[str]:
        seen: dict[int, Any] = {}  # keeps the values alive, so that no id is reused during the walk
        pending: list[Any] = [value]
        while pending:
            item = pending.pop()
            kind = _type(item)
            if kind is _Token:
                yield item
            elif kind in _PLAIN:
                yield f"{kind.__name__} {hex(item) if kind is int else repr(item)}"  # repr refuses very long integers
            elif id(item) in seen:
                yield "again"  # a cycle, or the same object in two places
            else:
                seen[id(item)] = item
                yield kind.__qualname__
                pending += reversed(self._parts(item))  # a stack: reversed keeps the parts in order

    def _parts(self, value: Any) -> list[Any]:
        """Parts of a value that count; of objects of other libraries only the type does."""
        if isinstance(value, CodeType):
            # File names and line numbers are left out, so that the same code in another cell is equal.
            names = [*value.co_names, *value.co_varnames, *value.co_freevars, *value.co_cellvars]
            return [_Token(value.co_code.hex()), _Token(" ".join(names)), *value.co_consts]
        if isinstance(value, functools.partial | functools.partialmethod):
            partial = cast(Any, value)
            return [partial.func, *partial.args, *partial.keywords, *partial.keywords.values()]
        if isinstance(value, FunctionType):
            return self._parts_of_function(value)
        for kinds, names in _HOLDERS:
            if isinstance(value, kinds):
                return [getattr(value, name) for name in names]
        if arguments := get_args(value):  # a type such as `list[int]`
            return [get_origin(value), *arguments]
        if isinstance(value, Enum):
            return [_Token(value.name), value.value]
        if isinstance(value, type):
            return self._parts_of_class(cast(type[Any], value))
        if hasattr(_type(value), "find_agent"):
            return [_Token(value.name), *(self.parts_of_agent(value) if self.parts_of_agent else ())]
        held = self._items(value)
        if held is None:
            return self._parts_of_object(value)
        return [*held, *self._parts_of_object(value)] if _is_own_class(_type(value)) else held

    def _items(self, value: Any) -> list[Any] | None:
        """The items of a list, a dict, a number and so on; None for an object of another type."""
        if isinstance(value, tuple):
            return list(cast(tuple[Any, ...], value))
        if isinstance(value, frozenset):  # a constant of `x in {1, 2}`; its order is arbitrary
            return self._sorted(cast(frozenset[Any], value))
        if isinstance(value, MappingProxyType):
            return [part for pair in cast(dict[Any, Any], value).items() for part in pair]
        if isinstance(value, _DATA):
            return self._data(cast(Any, value)) if self.with_data else []
        if isinstance(value, operator.itemgetter | operator.attrgetter | operator.methodcaller):
            return list(cast(Any, value).__reduce__())
        for base in _PLAIN:
            if isinstance(value, base):
                return [_Token(hex(cast(int, value)) if base is int else cast(Any, base).__repr__(value))]
        return [_Token(repr(value))] if isinstance(value, _VALUES) and not _is_own_class(_type(value)) else None

    def _data(self, value: Any) -> list[Any]:
        """What a value that can be changed holds now."""
        if len(value) > _MOST_ITEMS:
            return [len(value)]
        if isinstance(value, set):
            return self._sorted(cast(set[Any], value))
        if isinstance(value, dict):
            pairs = cast(dict[Any, Any], value).items()
            return [getattr(cast(Any, value), "default_factory", None), *(part for pair in pairs for part in pair)]
        if isinstance(value, ChainMap):
            return list(cast(Any, value).maps)
        if isinstance(value, UserDict | UserList):
            return [cast(Any, value).data]
        return [value.typecode, *value] if isinstance(value, array) else list(value)

    def _parts_of_function(self, func: FunctionType) -> list[Any]:
        self.functions[id(func)] = func
        parts: list[Any] = [func.__code__, *(self._value("", default) for default in func.__defaults__ or ())]
        for key, default in (func.__kwdefaults__ or {}).items():
            parts += [_Token("tuple"), key, self._value("", default)]
        for name, cell in zip(func.__code__.co_freevars, func.__closure__ or (), strict=True):
            if id(cell) not in self.changed.cells:
                try:
                    parts.append(self._value(name, cell.cell_contents))
                except ValueError:  # an empty cell
                    parts.append(None)
        attributes: dict[str, Any] = vars(func)
        if _is_own(func.__globals__):
            self.namespaces[id(func.__globals__)] = func.__globals__
            annotations = _annotations(func)
            parts += annotations
            # What it finds by name, in its module and in modules of the user's own that it imports.
            use, namespace = _use_of(func.__code__), func.__globals__
            named = {name for text in annotations if isinstance(text, str) for name in _NAME.findall(text)}
            found = {name: namespace[name] for name in use.read_globals | named if name in namespace}
            found |= {name: sys.modules[name] for name in use.imported if name in sys.modules}
            for name, value in sorted(found.items()):
                if (id(namespace), name) in self.changed.variables:
                    continue
                if not isinstance(value, ModuleType):
                    parts += [_Token(f"global {name}"), self._value(name, value)]
                elif _is_own(inner := vars(value)):
                    self.namespaces[id(inner)] = inner
                    for attribute in sorted(use.attributes & inner.keys()):
                        if (id(inner), attribute) not in self.changed.variables:
                            parts += [_Token(f"global {name}.{attribute}"), self._value(attribute, inner[attribute])]
        else:  # the functions of a `singledispatch`
            attributes = {name: value for name, value in attributes.items() if isinstance(value, MappingProxyType)}
        for name, value in sorted(attributes.items()):
            if name not in self.changed.attributes:
                parts += [_Token(name), self._value(name, value)]
        return parts

    def _value(self, name: str, value: Any) -> Any:
        """A value of that name; of a list or dict that may be changed, the type."""
        kind = _type(value)
        is_data = issubclass(kind, _DATA)
        return _Token(kind.__qualname__) if is_data and name in self.changed.data else value

    def _sorted(self, values: Iterable[Any]) -> list[Any]:
        return [_Token(text) for text in sorted("\0".join(self.tokens(item)) for item in values)]

    def _parts_of_class(self, value: type[Any]) -> list[Any]:
        parts: list[Any] = []
        if self.with_data and issubclass(value, BaseModel):
            try:
                parts.append(json.dumps(TypeAdapter(value).json_schema(), sort_keys=True, default=repr))
            except Exception:  # a field that has no schema in JSON
                parts.append(_Token(" ".join(value.model_fields)))
        if not _is_own_class(value):
            return [_Token(f"{value.__module__}.{value.__qualname__}"), *parts]
        parts += [base for base in (*value.__bases__, type(value)) if base not in (object, type)]
        if issubclass(value, Enum):
            return [*parts, *value.__members__.values()]
        for name, member in sorted(vars(value).items()):
            is_method = isinstance(member, FunctionType | staticmethod | classmethod | property)
            if name in self.changed.attributes or (name.startswith("__") and not is_method):
                continue
            parts += [_Token(name), self._value(name, member)]
        if issubclass(value, BaseModel):
            for name, info in value.model_fields.items():
                parts += [_Token(name), info.annotation, cast(Any, info.default_factory), *info.metadata]
        else:
            parts += _annotations(value)
        return parts

    def _parts_of_object(self, value: Any) -> list[Any]:
        kind = _type(value)
        is_own = _is_own_class(kind)
        is_of_package = any(base.__module__.partition(".")[0] == "adk_nb" for base in kind.__mro__)
        parts: list[Any] = [kind] if is_own else []
        if isinstance(value, FunctionTool):
            parts.append(value.func)
        elif isinstance(value, BaseTool):
            parts.append(kind.run_async)
        elif not is_own:
            # Without running code of the object: what it does when it is called, and what a cache wraps.
            found = [inspect.getattr_static(kind, "__call__", None), inspect.getattr_static(value, "__wrapped__", None)]
            parts += [part for part in found if isinstance(part, FunctionType)]
        is_validator = kind.__module__.startswith("pydantic.") and is_dataclass(kind)
        is_open = is_own or is_validator or isinstance(value, SimpleNamespace | Template)
        if is_open or (self.with_data and (is_of_package or isinstance(value, BaseModel))):
            parts += self._attributes(value, kind, is_own=is_own, is_of_package=is_of_package)
        if self.with_data and isinstance(further := getattr(kind, "further_identity", None), FunctionType):
            parts.append(further(value))
        return parts

    def _attributes(self, value: Any, kind: Any, *, is_own: bool, is_of_package: bool) -> Iterator[Any]:
        """Names and values, without those that hold what the package's base classes have noted."""
        foreign = (func for base in kind.__mro__ if is_own and not _is_own_class(base) for func in _methods(base))
        noted = {name for func in foreign for name in func.__code__.co_names}
        found: dict[str, Any] = {**cast(Any, getattr(value, "__dict__", {}))}
        slots = (name for base in kind.__mro__ for name in _names(cast(Any, vars(base)).get("__slots__", ())))
        found |= {name: getattr(value, name) for name in slots if hasattr(value, name)}
        for name, part in sorted(found.items()):
            is_private = name.startswith("_") and (not is_own or name in noted)
            is_idle = is_of_package and _CHANGES_NO_ANSWER.fullmatch(name)
            is_idle = is_idle or isinstance(inspect.getattr_static(kind, name, None), functools.cached_property)
            if not is_private and not is_idle and name not in self.changed.attributes:
                yield from (_Token(name), self._value(name, part))


# ---- what functions change


@dataclass(kw_only=True)
class _Changes:
    """What functions change: it is no part of them."""

    cells: set[int] = field(default_factory=set[int])
    """Ids of variables of outer functions."""
    variables: set[tuple[int, str]] = field(default_factory=set[tuple[int, str]])
    """Id of the namespace, and name, of global variables."""
    attributes: set[str] = field(default_factory=set[str])
    data: set[str] = field(default_factory=set[str])
    """Names whose lists and dicts they may change."""

    @classmethod
    def of(cls, functions: Iterable[FunctionType], namespaces: Iterable[dict[str, Any]]) -> "_Changes":
        changes = cls()
        found = list(functions)
        for value in [value for namespace in namespaces for value in list(namespace.values())]:
            func = value.func if isinstance(value, FunctionTool) else value
            if isinstance(func, FunctionType) and _is_own(func.__globals__):
                found.append(func)
            elif isinstance(value, type) and _is_own_class(cast(type[Any], value)):
                found += _methods(cast(type[Any], value))
        for func in found:
            use = _use_of(func.__code__)
            if not (use.assigned_cells or use.assigned_globals or use.assigned_attributes or use.changed_data):
                continue
            cells = zip(func.__code__.co_freevars, func.__closure__ or (), strict=True)
            changes.cells.update(id(cell) for name, cell in cells if name in use.assigned_cells)
            changes.variables.update((id(func.__globals__), name) for name in use.assigned_globals)
            if _is_own(func.__globals__):
                changes.attributes |= use.assigned_attributes
                changes.data |= use.changed_data
            else:  # a decorator, whose names mean nothing elsewhere
                changes.data |= use.changed_data.intersection(func.__code__.co_freevars)
        return changes


@dataclass(frozen=True, kw_only=True)
class _Use:
    """The names that code, with the code nested in it, reads and changes."""

    read_globals: frozenset[str]
    imported: frozenset[str]
    attributes: frozenset[str]
    assigned_globals: frozenset[str]
    assigned_cells: frozenset[str]
    assigned_attributes: frozenset[str]
    """By a function that is no constructor."""
    changed_data: frozenset[str]
    """Names of lists and dicts that it may change."""


@functools.lru_cache(maxsize=4096)
def _use_of(code: CodeType) -> _Use:
    used: dict[str, set[str]] = {name: set() for name in _Use.__dataclass_fields__}
    pending = [code]
    while pending:
        current = pending.pop()
        pending += [const for const in current.co_consts if isinstance(const, CodeType)]
        is_constructor, is_changing = current.co_name in _CONSTRUCTORS, False
        variables, attributes = set[str](), set[str]()
        for instruction in dis.get_instructions(current):
            name: Any = instruction.argval
            match instruction.opname:
                case "LOAD_GLOBAL" | "LOAD_NAME" | "LOAD_FROM_DICT_OR_GLOBALS":
                    used["read_globals"].add(name)
                    variables.add(name)
                case "LOAD_DEREF" | "LOAD_CLOSURE" | "LOAD_FROM_DICT_OR_DEREF":
                    variables.add(name)
                case "LOAD_ATTR" | "LOAD_METHOD" | "IMPORT_FROM":
                    used["attributes"].add(name)
                    attributes.add(name)
                    is_changing = is_changing or _CHANGING_METHODS.fullmatch(name) is not None
                case "IMPORT_NAME":
                    used["imported"].add(name)
                case "STORE_GLOBAL" | "DELETE_GLOBAL":
                    used["assigned_globals"].add(name)
                case "STORE_DEREF" | "DELETE_DEREF" if name in current.co_freevars:
                    used["assigned_cells"].add(name)
                case "STORE_ATTR" | "DELETE_ATTR":
                    if not is_constructor:
                        used["assigned_attributes"].add(name)
                case "STORE_SUBSCR" | "DELETE_SUBSCR" | "STORE_SLICE":
                    is_changing = True
                case _:
                    pass
        if is_changing:
            used["changed_data"] |= variables if is_constructor else variables | attributes
    return _Use(**{name: frozenset(names) for name, names in used.items()})


# ---- whose code it is


def _methods(value: type[Any]) -> Iterator[FunctionType]:
    for member in list(vars(value).values()):
        inner: Any = cast(Any, member).__func__ if isinstance(member, staticmethod | classmethod) else member
        inner = inner.func if isinstance(inner, functools.cached_property) else inner
        found = (inner.fget, inner.fset, inner.fdel) if isinstance(inner, property) else (inner,)
        yield from (func for func in found if isinstance(func, FunctionType))


def _annotations(value: Any) -> list[Any]:
    try:
        return list(inspect.get_annotations(value).values())
    except Exception:  # newer versions of Python evaluate them here
        return []


def _names(slots: Any) -> Iterable[str]:
    return (slots,) if isinstance(slots, str) else slots


def _is_own_class(value: type[Any]) -> bool:
    module = sys.modules.get(value.__module__)
    return value.__module__ == "__main__" or (module is not None and _is_own(vars(module)))


def _is_own(namespace: dict[str, Any]) -> bool:
    """True for a namespace of the user's code: it is neither installed nor a part of Python."""
    name, file = namespace.get("__name__"), namespace.get("__file__")
    if name == "__main__" or isinstance(file, str):
        return name == "__main__" or not _is_installed(file)
    return name not in sys.builtin_module_names


@functools.lru_cache(maxsize=4096)
def _is_installed(file: str) -> bool:
    path = f"{Path(file).resolve()}"
    return path.startswith(_INSTALLED) or "site-packages" in path or "dist-packages" in path or path.startswith("<")


def _type(value: Any) -> Any:
    return cast(Any, type(value))
