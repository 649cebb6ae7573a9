"""Braces in what a cell says: `{{name}}` is a notebook variable, read at once; `{key}` is the state's, at each turn.

Everything else in braces is text: code, JSON and other templates can be pasted as they are. Values are put in once
and never scanned again.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from adk_nb.errors import InputError, StateKeyError, closest
from adk_nb.notebook.cells.inserted import as_text, is_secret
from adk_nb.runtime.trace import listening

_STEP = r"(?:\.[^\W\d]\w*|\[-?\d+\]|\['[^'\n\]]*'\]|\[\"[^\"\n\]]*\"\])"
_SPAN = re.compile(
    rf"""
      \\(?P<escaped>\{{+[^{{}}\n]*\}}+)
    | (?P<many>\{{{{3,}}[^{{}}]*\}}+)
    | \{{\{{(?P<variable>[^\W\d]\w*{_STEP}*)\}}\}}
    | (?<![${{])\{{(?P<key>(?:(?:app|user|temp):)?[^\W\d]\w*\??)\}}(?!\}})
    """,
    re.VERBOSE,
)
_STEPS = re.compile(_STEP)

IsKey = Callable[[str], bool]
"""Whether a name without scope is a key of the state: only then `{name}` is one."""


@dataclass(frozen=True)
class Key:
    """A place where the state's value goes."""

    name: str
    spelled: str
    optional: bool

    @property
    def scoped(self) -> bool:
        return ":" in self.name


class Inserted(str):
    """The text of a variable."""

    spelled: str
    """As it was written."""


@dataclass(frozen=True)
class Template:
    """Text with places for state keys; variables are in it already."""

    pieces: tuple[str | Key, ...]
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    """What was written between `{{` and `}}` -> the text that was put in."""
    notes: tuple[str, ...] = ()
    """What its author should know, a line each."""

    @property
    def keys(self) -> list[Key]:
        return [piece for piece in self.pieces if isinstance(piece, Key)]

    def fill(self, state: Mapping[str, Any], is_key: IsKey) -> str:
        """The text of one turn.

        Raises:
            StateKeyError: A key without `?` is not in the state.
        """
        told = [piece if isinstance(piece, str) else _value(piece, state, is_key) for piece in self.pieces]
        if (trace := listening.get()) is None:
            return "".join(told)
        return trace.joined(zip(told, map(_source, told, self.pieces), strict=True))


def read(source: str, variables: Mapping[str, Any], *, keys: bool = True) -> Template:
    """`source` with its variables put in.

    Args:
        source: As written.
        variables: The notebook's.
        keys: Whether `{key}` means anything; in a message to an agent it does not.

    Raises:
        InputError: A variable is not there, or holds what looks like a secret.
    """
    pieces: list[str | Key] = []
    found: dict[str, str] = {}
    notes: list[str] = []
    end = 0
    for span in _SPAN.finditer(source):
        pieces.append(source[end : span.start()])
        end = span.end()
        if path := span["variable"]:
            if path not in found:
                found[path], note = _inserted(path, variables, source, span.start())
                notes += [note] if note else []
            value = Inserted(found[path])
            value.spelled = span.group()
            pieces.append(value)
        elif keys and span["key"]:
            name = span["key"]
            pieces.append(Key(name.removesuffix("?"), span.group(), name.endswith("?")))
        else:
            pieces.append(span["escaped"] or span.group())
    pieces.append(source[end:])
    return Template(_joined(pieces), found, tuple(notes))


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
    raise StateKeyError(f"{key.spelled} is not in the session's state; {hint}")


def _inserted(path: str, variables: Mapping[str, Any], source: str, at: int) -> tuple[str, str | None]:
    name = re.match(r"\w+", path)
    first = name[0] if name else path
    where = f"(line {source.count(chr(10), 0, at) + 1} of the text)"
    if first not in variables:
        near = closest(first, [one for one in variables if not one.startswith("_")])
        hint = f"did you mean {{{{{near}}}}}?" if near else f"write \\{{{{{path}}}}} or use --raw to keep the braces"
        raise InputError(f"{{{{{path}}}}} is not a variable; {hint} {where}")
    value = variables[first]
    for step in _STEPS.findall(path):
        try:
            value = getattr(value, step[1:]) if step[0] == "." else value[_index(step)]
        except (AttributeError, LookupError, TypeError) as error:
            raise InputError(f"{{{{{path}}}}} cannot be read: {type(error).__name__}: {error} {where}") from error
    text, note = as_text(value)
    if is_secret(text):
        raise InputError(f"{{{{{path}}}}} looks like a secret and was not put in {where}")
    return text, note and f"{{{{{path}}}}}: {note}"


def _index(step: str) -> int | str:
    inner = step[1:-1]
    return inner[1:-1] if inner[0] in "'\"" else int(inner)
