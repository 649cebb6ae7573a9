"""The body of a `%%workflow` cell: one edge or one chain of edges a line."""

import ast
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from adk_nb.errors import WorkflowConfigurationError
from adk_nb.workflow.graph import DEFAULT_ROUTE, END, START, Route

_COMMENT = re.compile(r"#.*")
_TOKEN = re.compile(
    r"(?P<arrow>-\[(?P<routes>[^\]]*)\]->|->|→)|(?P<name>[^\W\d]\w*)|\((?P<set>[\w\s,]*)\)"
    r"|(?P<other>[\[{(].*?[)\]}]|[^\w\s,;]+\w*[^\w\s,;]*|\S)"
)
_SYNTAX = f"write names and arrows, as {START} -> draft, draft -[route]-> review, or (draft, review) -> {END}"
_MEANS_ANY = ("default", "else", "otherwise", "any")


@dataclass(frozen=True)
class WrittenEdge:
    """One edge, as written: from each of `starts` to each of `ends`."""

    starts: tuple[str, ...]
    ends: tuple[str, ...]
    routes: tuple[Route, ...]
    """Empty: always."""
    line: int
    """Of the cell; its first line is that of the magic."""

    @property
    def joins(self) -> bool:
        """Whether the ends wait for all of `starts`."""
        return len(self.starts) > 1


@dataclass(frozen=True)
class _Element:
    names: tuple[str, ...]
    routes: tuple[Route, ...]
    """On the arrow before it."""


def place(cell: int, line: int) -> str:
    """Where a message points to: `In[7] line 3`."""
    return f"In[{cell}] line {line}"


def written_edges(body: str, cell: int) -> list[WrittenEdge]:
    """The edges in the order of the text.

    Raises:
        WorkflowConfigurationError: A line is no edge, or the edges make no graph; the message names the line.
    """
    edges: list[WrittenEdge] = []
    for number, text in enumerate(body.split("\n"), 2):
        if line := _COMMENT.sub("", text).strip():
            chain = _chain(line, place(cell, number))
            for start, end in itertools.pairwise(chain):
                _check_edge(start, end, place(cell, number))
                edges.append(WrittenEdge(start.names, end.names, end.routes, number))
    _check_cycles(edges, cell)
    _check_reached(edges, cell)
    return edges


def _refuse(where: str, why: str) -> NoReturn:
    raise WorkflowConfigurationError(f"{where}: {why}")


def _chain(line: str, where: str) -> list[_Element]:
    """Names and sets of names, each with the routes on the arrow before it."""
    chain: list[_Element] = []
    routes: tuple[Route, ...] | None = ()
    for token in _TOKEN.finditer(line):
        expected = "an arrow" if routes is None else "a name"
        is_arrow = token["arrow"] is not None
        if token["other"] or is_arrow is not (routes is None):
            _refuse(where, f"expected {expected}, got {token.group()!r}; {_SYNTAX}")
        if is_arrow:
            routes = _routes(token["routes"], where)
        else:
            names = (token["name"],) if token["name"] else _names(token["set"], where)
            chain.append(_Element(names, routes or ()))
            routes = None
    if routes is not None:
        _refuse(where, f"nothing follows the last arrow; write a name behind it, or {END}")
    if len(chain) == 1:
        example = f"{line} -> draft" if line == START else f"{START} -> {line}"
        _refuse(where, f"{line} is no edge; write where it leads, as {example}")
    return chain


def _names(text: str, where: str) -> tuple[str, ...]:
    """The names within brackets."""
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if not name.isidentifier():
            _refuse(where, f"({text}) is no set of names; write (draft, review)")
        if names.count(name) > 1:
            _refuse(where, f"{name} is in the brackets twice; leave one out")
        if name in (START, END):
            _refuse(where, f"{name} stands alone and not in brackets")
    return tuple(names)


def _routes(text: str | None, where: str) -> tuple[Route, ...]:
    if text is None:
        return ()
    words = [word.strip() for word in text.split(",")]
    for word in words:
        if not word:
            _refuse(where, "the route is empty; write its name, as -[ok]->, or -[*]-> for any other")
        if word == "*" and len(words) > 1:
            _refuse(where, "* is any other route and stands alone: -[*]->")
        if word.lower() in _MEANS_ANY:
            _refuse(where, f"any other route is written -[*]->; a route named {word} is quoted: -['{word}']->")
        if "|" in word and word[0] not in "'\"":
            _refuse(where, f"commas stand between routes: -[{word.replace('|', ', ')}]->")
    return tuple(map(_route, words))


def _route(word: str) -> Route:
    """A number, a bool, or text in quotes as in Python; any other word as it is."""
    if word == "*":
        return DEFAULT_ROUTE
    try:
        value = ast.literal_eval(word)
    except (SyntaxError, ValueError):
        return word
    return value if isinstance(value, bool | int | str) else word


def _check_edge(start: _Element, end: _Element, where: str) -> None:
    first, last = start.names[0], end.names[0]
    if end.routes and len(start.names) > 1:
        _refuse(where, f"a route is chosen by one node; write {first} -[...]-> {last} alone")
    if last == START:
        _refuse(where, f"nothing leads back to {START}; lead to the first node instead")
    if first == END:
        _refuse(where, f"nothing follows {END}; leave out what stands behind it")
    if first == START and end.routes:
        _refuse(where, f"{START} chooses no route; write {START} -> {last}")
    if (first, last) == (START, END):
        _refuse(where, f"no node stands between {START} and {END}; write {START} -> draft -> {END}")


def _check_cycles(edges: Sequence[WrittenEdge], cell: int) -> None:
    """Refuse an edge that is written twice, and a cycle in which no node chooses a route."""
    lines: dict[tuple[str, str, tuple[Route, ...]], int] = {}
    always: dict[str, set[str]] = {}
    for edge in edges:
        for start, end in itertools.product(edge.starts, edge.ends):
            where = place(cell, edge.line)
            if first := lines.get((start, end, edge.routes)):
                _refuse(where, f"{start} -> {end} is there already, in line {first}; leave one out")
            lines[start, end, edge.routes] = edge.line
            if edge.routes or end == END:
                continue
            if start in _reached([end], always):
                choice = f"{start} -[again]-> {end} and {start} -[ok]-> {END}"
                _refuse(where, f"{start} -> {end} closes a cycle that never ends; let a node in it choose, as {choice}")
            always.setdefault(start, set()).add(end)


def _check_reached(edges: Sequence[WrittenEdge], cell: int) -> None:
    """Refuse a graph that does not begin at START, and nodes that no edge leads to."""
    if wrong := next((edge for edge in edges if edge.starts[0].upper() == START != edge.starts[0]), None):
        _refuse(place(cell, wrong.line), f"{wrong.starts[0]} is written in capitals: {START} -> {wrong.ends[0]}")
    ends: dict[str, set[str]] = {}
    for edge in edges:
        for start in edge.starts:
            ends.setdefault(start, set()).update(edge.ends)
    if START not in ends:
        line, first = (edges[0].line, edges[0].starts[0]) if edges else (1, "draft")
        _refuse(place(cell, line), f"no edge begins at {START}; write {START} -> {first}")
    reached = set(_reached([START], ends))
    for edge in edges:
        if lost := [start for start in edge.starts if start not in reached]:
            _refuse(place(cell, edge.line), f"no edge leads to {lost[0]}; write {START} -> {lost[0]}, or leave it out")


def _reached(first: Iterable[str], ends: Mapping[str, set[str]]) -> Iterator[str]:
    reached, open_nodes = set[str](), list(first)
    while open_nodes:
        node = open_nodes.pop()
        if node not in reached:
            reached.add(node)
            yield node
            open_nodes += ends.get(node, ())
