"""Braces in what a cell says: `{{name}}` is a notebook variable, read at once; `{key}` is the state's, at each turn.

Everything else in braces is text: code, JSON and other templates can be pasted as they are. Values are put in once
and never scanned again.
"""

import ast
import hashlib
import re
import warnings
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from adk_nb import types
from adk_nb.errors import InputError, StateKeyError, closest
from adk_nb.notebook.attachments import parts_of
from adk_nb.notebook.variables import as_text, is_secret, user_variables
from adk_nb.runtime.context import ReadonlyContext
from adk_nb.runtime.instructions import inject_session_state
from adk_nb.runtime.trace import listening
from adk_nb.tools.media import media_in
from adk_nb.wire import not_json

_STEP = r"(?:\.[^\W\d]\w*|\[-?\d+\]|\['[^'\n\]]*'\]|\[\"[^\"\n\]]*\"\])"
_SPAN = re.compile(
    rf"""
      \\(?P<escaped>\{{+[^{{}}\n]*\}}+)
    | (?P<many>\{{{{3,}}[^{{}}]*\}}+)
    | \{{\{{(?P<variable>[^\W\d]\w*{_STEP}*)\}}\}}
    | (?P<odd>\{{\{{[^{{}}\n]*\}}\}})
    | (?<![${{])\{{(?P<key>(?:(?:app|user|temp):)?[^\W\d]\w*\??|artifact\.[^\s{{}}?]+\??)\}}(?!\}})
    """,
    re.VERBOSE,
)
_STEPS = re.compile(_STEP)
_PATH = re.compile(rf"([^\W\d]\w*){_STEP}*")
_ARTIFACT = "artifact."

IsKey = Callable[[str], bool]
"""Whether a name without scope is a key of the state: only then `{name}` is one."""


@dataclass(frozen=True)
class Place:
    """Where a text stands."""

    cell: int | None = None
    """n of `In[n]`."""
    line: int = 1
    """The line of the cell on which it begins; 0: that is not known."""

    @classmethod
    def found(cls, cell: int, source: str, text: str) -> "Place":
        """Of a text that is in the cell `source`, which is In[cell]."""
        return cls(cell, 1 + source.count("\n", 0, max(source.find(text), 0)))

    def of(self, text: str, at: int) -> str:
        """Where in the notebook character `at` of `text` is, in brackets."""
        line = self.line + text.count("\n", 0, at)
        if self.cell is None:
            return f"(line {line} of the text)"
        return f"(In[{self.cell}] line {line})" if self.line else f"(In[{self.cell}])"


NOWHERE = Place()


@dataclass(frozen=True)
class Key:
    """A place where the state's value goes, or what an artifact says."""

    name: str
    spelled: str
    optional: bool
    where: str = ""
    """In the notebook."""

    @property
    def scoped(self) -> bool:
        return ":" in self.name or self.is_artifact

    @property
    def is_artifact(self) -> bool:
        return self.name.startswith(_ARTIFACT)


class Inserted(str):
    """The text of a variable."""

    spelled: str
    """As it was written."""


@dataclass(frozen=True)
class Template:
    """Text with places for state keys; variables are in it already."""

    pieces: tuple[str | Key, ...]
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    """What was written between `{{` and `}}` -> the text that was put in, or what tells a picture from another."""
    notes: tuple[str, ...] = ()
    """What its author should know, a line each."""
    attached: tuple[types.Part, ...] = ()
    """Pictures among the variables: they go with the text."""
    bound: tuple[str, ...] = ()
    """Each variable, and in brackets what it held."""

    @cached_property
    def keys(self) -> Sequence[Key]:
        return [piece for piece in self.pieces if isinstance(piece, Key)]

    @cached_property
    def _artifacts(self) -> Sequence[Key]:
        return [key for key in self.keys if key.is_artifact]

    async def filled(self, ctx: ReadonlyContext, is_key: IsKey) -> str:
        """The text of one turn.

        Raises:
            StateKeyError: A key without `?` is not in the state, or an artifact is not there.
            ConfigurationError: It names an artifact, and nothing keeps artifacts.
        """
        files = {key.spelled: await _artifact(key, ctx) for key in self._artifacts}
        state = ctx.session.state
        told = [
            one if isinstance(one, str) else files[one.spelled] if one.is_artifact else _value(one, state, is_key)
            for one in self.pieces
        ]
        if (trace := listening.get()) is None:
            return "".join(told)
        return trace.joined(zip(told, map(_source, told, self.pieces), strict=True))


def read(source: str, variables: Mapping[str, Any], *, keys: bool = True, place: Place = NOWHERE) -> Template:
    """`source` with its variables put in.

    Args:
        source: As written.
        variables: The notebook's.
        keys: Whether `{key}` means anything; in a message to an agent it does not.
        place: Where it is written.

    Raises:
        InputError: A variable is not there, or holds what looks like a secret.
    """
    pieces: list[str | Key] = []
    found: dict[str, _Bound] = {}
    notes: list[str] = []
    end = 0
    for span in _SPAN.finditer(source):
        pieces.append(source[end : span.start()])
        end = span.end()
        if path := span["variable"]:
            if path not in found:
                found[path] = _bound(path, variables, place.of(source, span.start()))
                notes += found[path].notes
            value = Inserted(found[path].text)
            value.spelled = span.group()
            pieces.append(value)
        elif keys and span["key"]:
            name = span["key"]
            key = Key(name.removesuffix("?"), span.group(), name.endswith("?"), place.of(source, span.start()))
            pieces.append(key)
        else:
            pieces.append(span["escaped"] or span.group())
            notes += _note_of_odd(span["odd"], variables)
    pieces.append(source[end:])
    return Template(
        _joined(pieces),
        {path: one.fingerprint for path, one in found.items()},
        tuple(dict.fromkeys(notes)),
        tuple(part for one in found.values() for part in one.parts),
        tuple(f"{path} ({one.told})" for path, one in found.items()),
    )


def uses(template: Template, is_key: IsKey) -> str:
    """What a text takes from elsewhere, in a line: `uses: places (notebook, 3 items, 42 chars) · budget (state)`; empty
    if nothing. `is_key`: of any name without scope, those in the state among them.
    """
    known = (key for key in template.keys if key.scoped or key.optional or is_key(key.name))
    keys = dict.fromkeys(f"{key.spelled[1:-1]} ({'artifact' if key.is_artifact else 'state'})" for key in known)
    told = [*template.bound, *keys]
    return f"uses: {' · '.join(told)}" if told else ""


def _note_of_odd(spelled: str | None, variables: Mapping[str, Any]) -> list[str]:
    """Why double braces that hold no name are text, if their author may have meant more."""
    inside = (spelled or "")[2:-2].strip()
    path = _PATH.match(inside)
    known, rest = (path[1] in variables, inside[path.end() :]) if path else (False, inside)
    if known and not rest:
        return [f"{spelled} is left as text; write {{{{{inside}}}}} for the variable"]
    if path and rest[:1] == "(":
        return [f"{spelled} is left as text, as nothing is called in braces; put what it returns into a variable"]
    if known or _is_computed(inside):
        return [f"{spelled} is left as text, as nothing is computed in braces; put its value into a variable"]
    return []


def _is_computed(inside: str) -> bool:
    try:
        with warnings.catch_warnings(action="ignore"):
            found = ast.parse(inside, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return isinstance(found, ast.BinOp | ast.BoolOp | ast.Compare | ast.IfExp | ast.Subscript | ast.ListComp)


def _joined(pieces: list[str | Key]) -> tuple[str | Key, ...]:
    made: list[str | Key] = []
    for piece in pieces:
        if not isinstance(piece, Key | Inserted) and made and not isinstance(made[-1], Key | Inserted):
            made[-1] += piece
        else:
            made.append(piece)
    return tuple(made)


def _source(told: str, piece: str | Key) -> str:
    """What stood where now `told` stands; empty if just that."""
    return piece.spelled if isinstance(piece, Key | Inserted) and told != piece.spelled else ""


def _value(key: Key, state: Mapping[str, Any], is_key: IsKey) -> str:
    if key.name in state:
        value = state[key.name]
        return "" if value is None else as_text(value)[0]
    if key.optional:
        return ""
    if not (key.scoped or is_key(key.name)):
        return key.spelled
    near = closest(key.name, state)
    hint = f"did you mean {{{near}}}?" if near else f"type %state {key.name}=..., or write {{{key.name}?}}"
    raise StateKeyError(f"{key.spelled} is not in the session's state; {hint} {key.where}".rstrip())


async def _artifact(key: Key, ctx: ReadonlyContext) -> str:
    try:
        return await inject_session_state(key.spelled, ctx)
    except StateKeyError as error:
        raise StateKeyError(f"{error} {key.where}".rstrip()) from error


@dataclass(frozen=True)
class _Bound:
    """A variable as it is put in."""

    text: str
    told: str
    """What it is, for its author."""
    fingerprint: str
    notes: list[str]
    parts: list[types.Part]


def _bound(path: str, variables: Mapping[str, Any], where: str) -> _Bound:
    value = _read(path, variables, where)
    if not isinstance(value, str) and media_in(value):
        parts = parts_of(value, name=path)
        data = parts[-1].inline_data
        size = len(data.data or b"") if data else 0
        told = f"notebook, {data.mime_type if data else 'file'}, {size:,} bytes"
        return _Bound(f"[{path}, attached]", told, hashlib.sha256(str(parts).encode()).hexdigest(), [], parts)
    text, cut = as_text(value)
    if is_secret(text):
        raise InputError(f"{{{{{path}}}}} looks like a secret and was not put in {where}".rstrip())
    if odd := not_json(text):
        mend = f"{path} = {path}.encode(errors='replace').decode()" if isinstance(value, str) else "replace it"
        raise InputError(f"{{{{{path}}}}} holds {odd}, which cannot be sent; {mend} {where}".rstrip())
    many = len(value) if isinstance(value, Sized) and not isinstance(value, str) else None
    items = "" if many is None else f"{many:,} item{'' if many == 1 else 's'}, "
    note = [f"{{{{{path}}}}}: {cut}"] if cut else []
    return _Bound(text, f"notebook, {items}{len(text):,} chars", text, note, [])


def _read(path: str, variables: Mapping[str, Any], where: str) -> Any:
    name = re.match(r"\w+", path)
    first = name[0] if name else path
    if first not in variables:
        near = closest(first, user_variables(variables))
        hint = f"did you mean {{{{{near}}}}}?" if near else f"write \\{{{{{path}}}}} or use --raw to keep the braces"
        raise InputError(f"{{{{{path}}}}} is not a variable; {hint} {where}")
    value = variables[first]
    for step in _STEPS.findall(path):
        try:
            value = getattr(value, step[1:]) if step[0] == "." else value[_index(step)]
        except (AttributeError, LookupError, TypeError) as error:
            raise InputError(f"{{{{{path}}}}} cannot be read: {type(error).__name__}: {error} {where}") from error
    return value


def _index(step: str) -> int | str:
    inner = step[1:-1]
    return inner[1:-1] if inner[0] in "'\"" else int(inner)
