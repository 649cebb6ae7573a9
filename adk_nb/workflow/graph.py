"""A graph as its author writes it, and what is wrong with it: told when it is built."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from adk_nb.errors import WorkflowConfigurationError
from adk_nb.wire import field_errors
from adk_nb.workflow.base_node import BaseNode

START: Final = "START"
"""Where a run begins: edges lead from here to the nodes that get the user's message."""
END: Final = "END"
"""Where a run ends. An edge to it says only that nothing else follows."""
DEFAULT_ROUTE: Final = "__DEFAULT__"
"""The route that is taken when no other of the node's edges fits."""

Route = bool | int | str
Name = str


class Edge(BaseModel):
    """From one node to another. With a route, only when the first one took it."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    from_node: Any
    to_node: Any
    route: Any = None
    """A value, or a list of several, any of which will do. None: always."""

    def __init__(self, **given: Any) -> None:
        try:
            super().__init__(**given)
        except ValidationError as error:
            raise WorkflowConfigurationError(f"an edge: {field_errors(error, Edge.model_fields)}") from error


@dataclass(frozen=True)
class Way:
    """An edge, by the names of its nodes."""

    start: Name
    end: Name
    routes: tuple[Route, ...] = ()
    """Empty: always."""

    def fits(self, taken: Sequence[Route]) -> bool:
        """Whether it is gone after a node that took these routes."""
        return not self.routes or any(type(one) is type(mine) and one == mine for one in taken for mine in self.routes)

    @property
    def is_default(self) -> bool:
        return DEFAULT_ROUTE in self.routes


class Graph:
    """Nodes and the ways between them."""

    def __init__(self, name: str, edges: Iterable[Any], build: Callable[[Any], BaseNode]) -> None:
        """`edges`: chains (tuples) of nodes, in which a tuple is a set of nodes and a dict leads on by route; or Edges.
        `build`: makes a node of what stands for one.

        Raises:
            WorkflowConfigurationError: It is no graph that could be run.
        """
        self._name = name
        self._build = build
        self._made: dict[Any, BaseNode] = {}
        self._kept: list[Any] = []
        """What nodes were made of: ids are good only as long as it lives."""
        self.nodes: dict[Name, BaseNode] = {}
        self.ways: dict[Name, list[Way]] = {START: []}
        """By the node that they lead away from, in the author's order."""
        self.endings: dict[Name, list[Way]] = {}
        """The ways to END, by the node that they lead away from."""
        self.before: dict[Name, list[Name]] = {}
        """The nodes that lead to each, in the author's order."""
        for item in edges:
            self._read(item)
        self._check()

    def next(self, name: Name, taken: Sequence[Route]) -> list[Name]:
        """The nodes that follow after a node that took these routes."""
        return [way.end for way in self._gone(name, taken) if way.end != END]

    def leads_out(self, name: Name, taken: Sequence[Route]) -> bool:
        """True if a node that took these routes led to END."""
        return any(way.end == END for way in self._gone(name, taken))

    def _gone(self, name: Name, taken: Sequence[Route]) -> list[Way]:
        ways = [*self.ways.get(name, ()), *self.endings.get(name, ())]
        found = [way for way in ways if not way.is_default and way.fits(taken)]
        return found or [way for way in ways if way.is_default]

    def ends(self, name: Name) -> bool:
        """True if nothing can follow after that node."""
        return not self.ways.get(name)

    # -- reading

    def _read(self, item: Any) -> None:
        if isinstance(item, Edge):
            route: Any = item.route
            given = () if route is None else tuple(cast(list[Any], route)) if isinstance(route, list) else (route,)
            self._join([self._named(item.from_node)], [self._named(item.to_node)], given)
        elif isinstance(item, tuple) and len(cast(tuple[Any, ...], item)) > 1:
            self._chain(cast(tuple[Any, ...], item))
        elif isinstance(item, str):
            self._refuse(f"edges is a list of edges; write edges=[({START!r}, first, second)]")
        else:
            self._refuse(
                f"{item!r:.80} is no edge; write ({START!r}, first, second), or Edge(from_node=..., to_node=...)"
            )

    def _chain(self, chain: tuple[Any, ...]) -> None:
        before: list[Name] = []
        for place, element in enumerate(chain):
            if isinstance(element, dict):
                before = self._lead_on(before, cast(dict[Any, Any], element))
                continue
            here = self._names(element)
            if place:
                self._join(before, here)
            before = here

    def _lead_on(self, before: list[Name], by_route: dict[Any, Any]) -> list[Name]:
        if not before:
            self._refuse("routes lead on from a node; put it before the dict")
        found: list[Name] = []
        for route, element in by_route.items():
            here = self._names(element)
            self._join(before, here, (route,))
            found += here
        return found

    def _names(self, element: Any) -> list[Name]:
        if isinstance(element, tuple | list | set):
            return [self._named(one) for one in cast(Iterable[Any], element)]
        return [self._named(element)]

    def _named(self, given: Any) -> Name:
        if isinstance(given, str):
            if given in (START, END):
                return given
            self._refuse(
                f"{given!r} is no node; a text can only be {START!r} or {END!r}: pass the function or the agent"
            )
        key = (id(given.__self__), id(given.__func__)) if inspect.ismethod(given) else id(given)
        if key not in self._made:
            node = self._build(given)
            if node.name in self.nodes:
                self._refuse(f"two nodes are named {node.name!r}; give one another with node(..., name='...')")
            if node.name in (START, END):
                self._refuse(
                    f"{node.name} is where it begins or ends; give the node another name: node(..., name='...')"
                )
            self._made[key] = node
            self._kept.append(given)
            self.nodes[node.name] = node
            self.ways.setdefault(node.name, [])
        return self._made[key].name

    def _join(self, starts: Iterable[Name], ends: Iterable[Name], routes: tuple[Any, ...] = ()) -> None:
        ends = list(ends)
        for start in starts:
            for end in ends:
                self._add(start, end, routes)

    def _add(self, start: Name, end: Name, routes: tuple[Any, ...]) -> None:
        self._check_edge(start, end, routes)
        if end == END:
            self.endings.setdefault(start, []).append(Way(start, END, routes))
            return
        if any(way.end == end and way.routes == routes for way in self.ways[start]):
            self._refuse(f"the edge {start} -> {end} is there twice; leave one out")
        self.ways[start].append(Way(start, end, routes))
        known = self.before.setdefault(end, [])
        if start not in known:
            known.append(start)

    # -- checking

    def _check_edge(self, start: Name, end: Name, routes: tuple[Any, ...]) -> None:
        where = f"on the edge {start} -> {end}"
        if start == END:
            self._refuse(f"nothing can follow after {END}")
        if end == START:
            self._refuse(f"nothing can lead back to {START}; lead to the first node instead")
        if start == START and routes:
            self._refuse(f"an edge from {START} has no route: no node has chosen one yet")
        if DEFAULT_ROUTE in routes and len(routes) > 1:
            self._refuse(f"DEFAULT_ROUTE stands alone, and not in a list of routes, {where}")
        if odd := [route for route in routes if not isinstance(route, bool | int | str)]:
            self._refuse(f"a route is text, a number or a bool, and not {odd[0]!r:.40}, {where}")

    def _check(self) -> None:
        if not self.ways[START]:
            self._refuse(f"no edge leads from {START!r}; write ({START!r}, first_node)")
        if unreached := self.nodes.keys() - self._reached():
            self._refuse(f"no way leads to {', '.join(sorted(unreached))}; add an edge, or leave them out")
        if circle := self._circle_without_a_choice():
            told = " -> ".join(circle)
            self._refuse(f"the circle {told} never ends; let a node choose a route out of it")

    def _reached(self) -> set[Name]:
        seen, look = set[Name](), [START]
        while look:
            for way in self.ways.get(look.pop(), ()):
                if way.end not in seen:
                    seen.add(way.end)
                    look.append(way.end)
        return seen

    def _circle_without_a_choice(self) -> list[Name]:
        """A circle of edges that are always gone; empty if there is none."""
        done = set[Name]()
        for first in self.nodes:
            path: list[tuple[Name, list[Name]]] = [(first, self._always(first))] if first not in done else []
            on_path = {first}
            while path:
                name, left = path[-1]
                if not left:
                    path.pop()
                    on_path.discard(name)
                    done.add(name)
                    continue
                following = left.pop()
                if following in on_path:
                    names = [one for one, _ in path]
                    return [*names[names.index(following) :], following]
                if following not in done:
                    on_path.add(following)
                    path.append((following, self._always(following)))
        return []

    def _always(self, name: Name) -> list[Name]:
        return [way.end for way in self.ways[name] if not way.routes]

    def _refuse(self, why: str) -> Any:
        raise WorkflowConfigurationError(f"workflow {self._name!r}: {why}")
