"""Braces in a cell: `{{name}}` is a notebook variable, read at once; `{key}` is a key of the state, read at each turn.

All other braces are text, so code, JSON and other templates can be pasted as they are. Inserted values are not scanned
again.
"""

import ast
import hashlib
import re
import warnings
from collections.abc import Callable, Mapping, Sequence, Sized
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from adk_nb import types
from adk_nb.errors import InputError, StateKeyError, closest
from adk_nb.notebook.chat.attachments import parts_of
from adk_nb.notebook.variables import as_text, is_secret, user_variables
from adk_nb.runtime.context import ReadonlyContext
from adk_nb.runtime.instructions import inject_session_state
from adk_nb.runtime.trace import current_trace
from adk_nb.tools.media import media_in
from adk_nb.wire import json_problem

_PATH = r"[^\W\d]\w*(?:\.[^\W\d]\w*|\[(?:-?\d+|'[^'\n\]]*'|\"[^\"\n\]]*\")\])*"
_BRACES = re.compile(
    rf"""
      \\(?P<escaped>\{{+[^{{}}\n]*\}}+)
    | \{{{{3,}}[^{{}}]*\}}+
    | \{{\{{(?P<variable>{_PATH})\}}\}}
    | (?P<unclear>\{{\{{[^{{}}\n]*\}}\}})
    | (?<![${{])\{{(?P<key>(?:(?:app|user|temp):)?[^\W\d]\w*\??|artifact\.[^\s{{}}?]+\??)\}}(?!\}})
    """,
    re.VERBOSE,
)
_ARTIFACT = "artifact."
_COMPUTED = ast.BinOp | ast.BoolOp | ast.Call | ast.Compare | ast.IfExp | ast.Subscript | ast.ListComp

IsKey = Callable[[str], bool]
"""True if a name without a scope is a key of the state: only then `{name}` is one."""


@dataclass(frozen=True)
class Location:
    """Position of a text in the notebook."""

    cell: int | None = None
    """n of `In[n]`."""
    line: int = 1
    """Line of the cell on which it begins; 0: unknown."""

    def describe(self, text: str, offset: int) -> str:
        """Position of a character of the text, in brackets."""
        line = self.line + text.count("\n", 0, offset)
        if self.cell is None:
            return f"(line {line} of the text)"
        return f"(In[{self.cell}] line {line})" if self.line else f"(In[{self.cell}])"


@dataclass(frozen=True)
class Piece:
    """A stretch of a template: plain text, the text of a variable, or the place of a key."""

    text: str
    """The text to send; for a key, its braces."""
    source: str = ""
    """The braces in the cell; empty for plain text."""
    key: str = ""
    """Name of the state key or `artifact.NAME`; empty for text."""
    optional: bool = False
    location: str = ""

    @property
    def is_artifact(self) -> bool:
        return self.key.startswith(_ARTIFACT)

    @property
    def is_scoped(self) -> bool:
        """True for `user:name` and the like, which are keys whether they are set or not."""
        return ":" in self.key or self.is_artifact


@dataclass(frozen=True)
class Template:
    """A text with its variables filled in; its keys are filled in at each turn."""

    pieces: Sequence[Piece]
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    """Path between `{{` and `}}` -> fingerprint of its value: the text, or the hash of a picture."""
    notes: Sequence[str] = ()
    """Notes for the author, a line each."""
    attachments: Sequence[types.Part] = ()
    """Pictures among the variables."""
    sources: Sequence[str] = ()
    """Each variable, with a description of its value in brackets."""

    @property
    def text(self) -> str:
        """The text with its keys as written."""
        return "".join(piece.text for piece in self.pieces)

    @property
    def keys(self) -> list[Piece]:
        return [piece for piece in self.pieces if piece.key]

    async def fill(self, ctx: ReadonlyContext, is_key: IsKey) -> str:
        """The text of one turn.

        Raises:
            StateKeyError: A key without `?` is not in the state, or an artifact does not exist.
            ConfigurationError: It names an artifact, and there is no artifact service.
        """
        state, texts = ctx.session.state, list[str]()
        for piece in self.pieces:
            if not piece.key:
                texts.append(piece.text)
            elif piece.is_artifact:
                try:
                    texts.append(await inject_session_state(piece.source, ctx))
                except StateKeyError as error:
                    raise StateKeyError(f"{error} {piece.location}") from error
            elif piece.key in state:
                value = state[piece.key]
                texts.append("" if value is None else as_text(value)[0])
            elif piece.optional:
                texts.append("")
            elif not (piece.is_scoped or is_key(piece.key)):
                texts.append(piece.source)
            else:
                near = closest(piece.key, state)
                hint = (
                    f"did you mean {{{near}}}?" if near else f"type %state {piece.key}=..., or write {{{piece.key}?}}"
                )
                fault = f"{piece.source} is not in the session's state; {hint} {piece.location}"
                raise StateKeyError(fault, piece.key)
        if (trace := current_trace.get()) is None:
            return "".join(texts)
        # The prompt panel marks each inserted value with the braces it came from.
        pairs = zip(texts, self.pieces, strict=True)
        return trace.join_instruction((text, piece.source if text != piece.source else "") for text, piece in pairs)

    def describe_sources(self, is_key: IsKey) -> str:
        """A line such as `uses: places (notebook, 3 items, 42 chars) · budget (state)`; empty if all is plain text.

        `is_key`: of any name without scope, those in the state among them.
        """
        keys = [piece for piece in self.keys if piece.is_scoped or piece.optional or is_key(piece.key)]
        names = [f"{piece.source[1:-1]} ({'artifact' if piece.is_artifact else 'state'})" for piece in keys]
        return f"uses: {' · '.join(dict.fromkeys([*self.sources, *names]))}" if self.sources or names else ""


def parse(
    source: str, variables: Mapping[str, Any], *, keys: bool = True, location: Location | None = None
) -> Template:
    """Fill in the variables of a text.

    Args:
        source: As written.
        variables: The notebook's.
        keys: False for a message to an agent, in which `{key}` is text.
        location: For error messages.

    Raises:
        InputError: A variable does not exist, or holds what looks like a secret.
    """
    location = location or Location()
    pieces: list[Piece] = []
    values: dict[str, _Value] = {}
    notes: dict[str, None] = {}
    plain, end = "", 0
    for match in _BRACES.finditer(source):
        plain += source[end : match.start()]
        end, path, key, position = (
            match.end(),
            match["variable"],
            match["key"],
            location.describe(source, match.start()),
        )
        if path:
            value = values[path] = values.get(path) or _value_of(path, variables, position)
            notes |= dict.fromkeys(value.notes)
            piece = Piece(value.text, match.group())
        elif key and keys:
            piece = Piece(match.group(), match.group(), key.removesuffix("?"), key.endswith("?"), position)
        else:
            plain += match["escaped"] or match.group()
            notes |= dict.fromkeys(_notes_on(match["unclear"] or "", variables))
            continue
        pieces += [Piece(plain)] * bool(plain) + [piece]
        plain = ""
    return Template(
        [*pieces, Piece(plain + source[end:])],
        {path: value.fingerprint for path, value in values.items()},
        tuple(notes),
        tuple(part for value in values.values() for part in value.parts),
        tuple(f"{path} ({value.description})" for path, value in values.items()),
    )


def _notes_on(braces: str, variables: Mapping[str, Any]) -> list[str]:
    """Warn about double braces that are text although their author may have meant a value."""
    inside = braces[2:-2].strip()
    path = re.match(_PATH, inside)
    is_known = path is not None and re.split(r"\W", path[0])[0] in variables
    if path and is_known and path[0] == inside:
        return [f"{braces} is left as text; write {{{{{inside}}}}} for the variable"]
    is_computed = False
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError), warnings.catch_warnings(action="ignore"):
        is_computed = isinstance(ast.parse(inside, mode="eval").body, _COMPUTED)
    if is_known or is_computed:
        return [f"{braces} is left as text, as nothing is computed in braces; put its value into a variable"]
    return []


@dataclass(frozen=True)
class _Value:
    """A variable's value, ready to be inserted."""

    text: str
    description: str
    fingerprint: str
    notes: Sequence[str] = ()
    parts: Sequence[types.Part] = ()


def _value_of(path: str, variables: Mapping[str, Any], position: str) -> _Value:
    name = re.split(r"\W", path)[0]
    if name not in variables:
        near = closest(name, user_variables(variables))
        hint = f"did you mean {{{{{near}}}}}?" if near else f"write \\{{{{{path}}}}} or use --raw to keep the braces"
        raise InputError(f"{{{{{path}}}}} is not a variable; {hint} {position}")
    try:
        # `_PATH` lets through attributes and constant subscripts only.
        value: Any = eval(path, {"__builtins__": {}}, {name: variables[name]})
    except (AttributeError, LookupError, SyntaxError, TypeError) as error:
        raise InputError(f"{{{{{path}}}}} cannot be read: {type(error).__name__}: {error} {position}") from error
    if not isinstance(value, str) and media_in(value):
        parts = parts_of(value, name=path)
        data = parts[-1].inline_data
        description = f"notebook, {data.mime_type if data else 'file'}, {len((data and data.data) or b''):,} bytes"
        fingerprint = hashlib.sha256(str(parts).encode()).hexdigest()
        return _Value(f"[{path}, attached]", description, fingerprint, parts=parts)
    text, cut = as_text(value)
    if is_secret(text):
        raise InputError(f"{{{{{path}}}}} looks like a secret and was not put in {position}")
    if fault := json_problem(text):
        hint = f"{path} = {path}.encode(errors='replace').decode()" if isinstance(value, str) else "replace it"
        raise InputError(f"{{{{{path}}}}} holds {fault}, which cannot be sent; {hint} {position}")
    count = len(value) if isinstance(value, Sized) and not isinstance(value, str) else None
    items = "" if count is None else f"{count:,} item{'' if count == 1 else 's'}, "
    notes = [f"{{{{{path}}}}}: {cut}"] if cut else []
    return _Value(text, f"notebook, {items}{len(text):,} chars", text, notes)
