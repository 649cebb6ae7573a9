"""What the body of a `%%workflow` cell says: one edge or one chain of them a line."""

import ast
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from adk_nb.errors import WorkflowConfigurationError
from adk_nb.workflow.graph import DEFAULT_ROUTE, END, START, Route

_LIKE_ARROWS = r"[-=~<>\u2010-\u2015\u2190-\u21ff\u2212\u2794-\u27be\u27f0-\u27ff]+"
_COMMENT = re.compile(r"#.*")
_TOKEN = re.compile(
    r"(?P<arrow>-\[(?P<route>[^\]]*)\]->|->|→)|(?P<name>[^\W\d]\w*)|(?P<mark>[(),])"
    rf"|(?P<slip>-\[[^\]>]*\]?-*>?|-\w+\]?-+>|-\([^)]*\)->|[\[{{][^\]}}]*[\]}}]|{_LIKE_ARROWS}|\S)"
)
_ROUTE_SLIP = re.compile(r"[-\[(]+\s*(\w[^\])>-]*)")
_ANY = "*"
_MEANS_ANY = ("default", "else", "otherwise", "any")


@dataclass(frozen=True)
class Lead:
    """One edge, as written: from each of `starts` to each of `ends`."""

    starts: tuple[str, ...]
    ends: tuple[str, ...]
    routes: tuple[Route, ...]
    """Empty: always."""
    line: int
    """Of the cell; its first line is that of the magic."""

    @property
    def joins(self) -> bool:
        """True: what follows waits for all of `starts`."""
        return len(self.starts) > 1


@dataclass
class _Element:
    names: tuple[str, ...] = ()
    routes: tuple[Route, ...] = field(default=())
    """On the arrow before it."""


def place(cell: int, line: int) -> str:
    """How a message says where: `In[7] line 3`."""
    return f"In[{cell}] line {line}"


def leads_of(body: str, cell: int) -> list[Lead]:
    """The edges in the order of the text.

    Raises:
        WorkflowConfigurationError: A line is no edge; the message names it, and says what to write.
    """
    found: list[Lead] = []
    for number, text in enumerate(body.split("\n"), 2):
        words = _COMMENT.sub("", text).strip()
        if words:
            found += _Line(words, cell, number).leads()
    _check(found, cell)
    return found


class _Line:
    def __init__(self, text: str, cell: int, number: int) -> None:
        self._text, self._cell, self._number = text, cell, number

    def leads(self) -> list[Lead]:
        chain = list(self._chain())
        if len(chain) == 1:
            example = {START: f"{START} -> draft", END: f"draft -> {END}"}.get(self._text, f"{START} -> {self._text}")
            self._refuse(f"{self._text} is no edge yet; write where it leads, as {example}")
        if [one.names for one in chain] == [(START,), (END,)]:
            self._refuse(f"no node stands between {START} and {END}; write {START} -> draft -> {END}")
        made: list[Lead] = []
        for before, here in itertools.pairwise(chain):
            self._check_edge(before, here)
            made.append(Lead(before.names, here.names, here.routes, self._number))
        return made

    def _check_edge(self, before: _Element, here: _Element) -> None:
        if here.routes and len(before.names) > 1:
            self._refuse(f"a route is chosen by one node; write {before.names[0]} -[...]-> {here.names[0]} alone")
        for one in (before, here):
            if len(one.names) > 1 and (lone := next((name for name in one.names if name in (START, END)), None)):
                self._refuse(f"{lone} stands alone and not in brackets")
        if here.names == (START,):
            self._refuse(f"nothing leads back to {START}; lead to the first node instead")
        if before.names == (END,):
            self._refuse(f"nothing follows after {END}; leave out what stands behind it")
        if before.names == (START,) and here.routes:
            self._refuse(f"from {START} no route leads, as no node has chosen one; write {START} -> {here.names[0]}")
        if here.names == before.names and not here.routes:
            name = here.names[0]
            self._refuse(f"{name} would lead to itself for ever; give it a way out: {name} -[again]-> {name}")

    def _chain(self) -> Iterator[_Element]:
        """Names and sets of names, each with the routes before it."""
        tokens = list(_TOKEN.finditer(self._text))
        at, here, wants = 0, _Element(), True
        while at < len(tokens):
            token = tokens[at]
            if token["slip"]:
                self._refuse_slip(token["slip"], wants)
            if token["arrow"]:
                if wants:
                    self._refuse_lonely_arrow(token["arrow"], first=at == 0)
                yield here
                here, wants = _Element(routes=self._routes(token["route"])), True
                at += 1
                continue
            if not wants:
                self._refuse_unparted(tokens[at - 1], token)
            here.names, at = self._names(tokens, at)
            wants = False
        if wants:
            self._refuse(f"nothing follows the last arrow; write a name behind it, or {END}")
        yield here

    def _names(self, tokens: Sequence[re.Match[str]], at: int) -> tuple[tuple[str, ...], int]:
        """A name, or those within brackets, and where it goes on."""
        if tokens[at]["name"]:
            return (tokens[at].group(),), at + 1
        if tokens[at]["mark"] != "(":
            self._refuse(f"{tokens[at].group()!r} stands outside brackets; several nodes are written (a, b)")
        names: list[str] = []
        for end in range(at + 1, len(tokens)):
            token = tokens[end]
            if token["name"] and tokens[end - 1]["name"]:
                self._refuse(f"no comma stands between {tokens[end - 1].group()} and {token.group()} in the brackets")
            if token["name"]:
                names.append(token.group())
            elif token["mark"] == ")":
                return self._as_set(names), end + 1
            elif token["mark"] != ",":
                break
        self._refuse_open(self._text[tokens[at].end() :], names)

    def _as_set(self, names: list[str]) -> tuple[str, ...]:
        if not names:
            self._refuse("the brackets are empty; write (a, b), or one name without brackets")
        if twice := next((one for one in names if names.count(one) > 1), None):
            self._refuse(f"{twice} is in the brackets twice; leave one out")
        return tuple(names)

    def _routes(self, text: str | None) -> tuple[Route, ...]:
        if text is None:
            return ()
        words = [one.strip() for one in text.split(",") if one.strip()]
        if not words:
            self._refuse("the route is empty; write its name, as -[ok]->, or -[*]-> for any other")
        if _ANY in words and len(words) > 1:
            self._refuse("* is any other route and stands alone: -[*]->")
        for word in words:
            if word.lower() in _MEANS_ANY:
                self._refuse(f"any other route is written -[*]->; one that is named {word} in quotes: -['{word}']->")
            if "|" in word and word[0] not in "'\"":
                self._refuse(f"commas stand between routes: -[{word.replace('|', ', ')}]->")
        return tuple(map(_route, words))

    def _refuse_open(self, rest: str, names: list[str]) -> NoReturn:
        inside, closed, _ = rest.partition(")")
        if "(" in inside:
            self._refuse(f"brackets stand within brackets; write ({inside.replace('(', '').strip()})")
        if closed and (chain := next((one.strip() for one in inside.split(",") if "->" in one), None)):
            self._refuse(f"an arrow stands within brackets; write {chain} on a line of its own")
        self._refuse(f"a bracket is open; write ({', '.join(names) or 'a, b'})")

    def _refuse_unparted(self, before: re.Match[str], token: re.Match[str]) -> NoReturn:
        said, here = before.group() if before["name"] else ")", token.group()
        if here == ",":
            self._refuse(f"several nodes stand in brackets: ({said}, ...)")
        if re.match(r"\(\s*\)", self._text[token.start() :]):
            self._refuse(f"{said} is named here and not called; leave out the brackets behind it")
        self._refuse(f"no arrow stands between {said} and {here}; write {said} -> {here}")

    def _refuse_slip(self, slip: str, wants: bool) -> NoReturn:
        """`wants`: a name was to stand there."""
        if wants and slip[0] in "[{":
            self._refuse(f"several nodes stand in round brackets: ({slip[1:-1].strip()})")
        if wants and slip in ("'", '"'):
            self._refuse("names stand without quotes")
        if (meant := _ROUTE_SLIP.match(slip)) and slip[0] in "-[":
            self._refuse(f"{slip} is no arrow; a route is written -[{meant[1].strip()}]->")
        if re.fullmatch(_LIKE_ARROWS, slip):
            hint = "turn the line round, and write ->" if slip.startswith("<") else "write ->, or -[route]->"
            self._refuse(f"{slip} is no arrow; {hint}")
        self._refuse(f"{slip!r} cannot stand here; a line is names with arrows: {START} -> draft -> review")

    def _refuse_lonely_arrow(self, arrow: str, *, first: bool) -> NoReturn:
        if first:
            self._refuse(f"the line begins with an arrow; write from where it leads, as {START} {self._text}")
        self._refuse(f"no name stands before {arrow}; write one between the two arrows, or leave one out")

    def _refuse(self, why: str) -> NoReturn:
        raise WorkflowConfigurationError(f"{place(self._cell, self._number)}: {why}")


def _route(word: str) -> Route:
    """A number, a bool, or text in quotes as in Python; any other word as it is."""
    if word == _ANY:
        return DEFAULT_ROUTE
    try:
        value = ast.literal_eval(word)
    except (SyntaxError, ValueError):
        return word
    return value if isinstance(value, bool | int | str) else word


def _check(leads: Sequence[Lead], cell: int) -> None:
    """What is wrong with the edges together.

    Raises:
        WorkflowConfigurationError: It names the line.
    """
    seen: dict[tuple[str, str, tuple[Route, ...]], int] = {}
    always: dict[str, set[str]] = {}
    for lead in leads:
        for start, end in ((start, end) for start in lead.starts for end in lead.ends):
            here = place(cell, lead.line)
            if first := seen.get((start, end, lead.routes)):
                raise WorkflowConfigurationError(
                    f"{here}: {start} -> {end} is there already, in line {first}; leave one out"
                )
            seen[start, end, lead.routes] = lead.line
            if not lead.routes and end != END:
                if start in _reached([end], always):
                    raise WorkflowConfigurationError(
                        f"{here}: {start} -> {end} closes a circle that never ends; let a node in it choose, as "
                        f"{start} -[again]-> {end} and {start} -[ok]-> {END}"
                    )
                always.setdefault(start, set()).add(end)
    _check_all_reached(leads, cell)


def _check_all_reached(leads: Sequence[Lead], cell: int) -> None:
    ways: dict[str, set[str]] = {}
    for lead in leads:
        for start in lead.starts:
            ways.setdefault(start, set()).update(lead.ends)
    if not leads or START not in ways:
        line = leads[0].line if leads else 1
        first = leads[0].starts[0] if leads else "draft"
        if lead := next((one for one in leads if one.starts[0].upper() == START), None):
            raise WorkflowConfigurationError(
                f"{place(cell, lead.line)}: {lead.starts[0]} is written in capitals: {START} -> {lead.ends[0]}"
            )
        raise WorkflowConfigurationError(f"{place(cell, line)}: no edge begins at {START}; write {START} -> {first}")
    reached = _reached([START], ways)
    for lead in leads:
        if lost := [one for one in lead.starts if one not in reached]:
            raise WorkflowConfigurationError(
                f"{place(cell, lead.line)}: no way leads to {lost[0]}; write {START} -> {lost[0]}, or leave it out"
            )


def _reached(first: Sequence[str], ways: dict[str, set[str]]) -> set[str]:
    seen, look = set(first), list(first)
    while look:
        for one in ways.get(look.pop(), ()):
            if one not in seen:
                seen.add(one)
                look.append(one)
    return seen
