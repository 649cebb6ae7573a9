"""Graphs as their author writes them, checked when they are built."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from adk_nb.errors import WorkflowConfigurationError
from adk_nb.wire import field_errors
from adk_nb.workflow.base_node import BaseNode

START: Final = "START"
"""The start of a run: edges lead from here to the nodes that get the user's message."""
END: Final = "END"
"""The end of a run. An edge to it says only that nothing else follows."""
DEFAULT_ROUTE: Final = "__DEFAULT__"
"""The route that is taken when none of the node's other edges matches."""

Route = bool | int | str
Name = str


class Edge(BaseModel):
    """An edge from one node to another; with a route, followed only if the first node took that route."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    from_node: Any
    to_node: Any
    route: Any = None
    """A value, or a list of values of which any matches. None: always."""

    def __init__(self, **node_like: Any) -> None:
        try:
            super().__init__(**node_like)
        except ValidationError as error:
            raise WorkflowConfigurationError(f"an edge: {field_errors(error, Edge.model_fields)}") from error


@dataclass(frozen=True, repr=False)
class NamedEdge:
    """An edge, by the names of its nodes."""

    start: Name
    end: Name
    routes: tuple[Route, ...] = ()
    """Empty: always."""

    def matches(self, routes: Sequence[Route]) -> bool:
        """True if the edge is followed after a node that took these routes."""
        return not self.routes or any(
            # With the type: 1 == True, but they may be two routes.
            type(taken) is type(route) and taken == route
            for taken in routes
            for route in self.routes
        )

    def __repr__(self) -> str:  # versions of graphs are hashes of it, and stored: its form stays
        return f"Way(start={self.start!r}, end={self.end!r}, routes={self.routes!r})"

    @property
    def is_default(self) -> bool:
        return DEFAULT_ROUTE in self.routes


class Graph:
    """Nodes, and the edges between them, by name."""

    def __init__(self, name: str, edges: Iterable[Any], build: Callable[[Any], BaseNode]) -> None:
        """`edges`: chains (tuples) of nodes, in which a tuple is a set of nodes and a dict leads on by route; or Edges.
        `build`: makes a node of a function, an agent, a tool or a workflow.

        Raises:
            WorkflowConfigurationError: The graph cannot be run.
        """
        self._name = name
        self._build = build
        self._nodes_by_key: dict[Any, BaseNode] = {}
        self._node_likes: list[Any] = []
        """The objects that nodes were made of, held so that their id() is not reused."""
        self.nodes: dict[Name, BaseNode] = {}
        self.edges_from: dict[Name, list[NamedEdge]] = {START: []}
        """Node -> the edges that leave it, in the author's order, without those to END."""
        self.edges_to_end: dict[Name, list[NamedEdge]] = {}
        """Node -> its edges to END."""
        self.predecessors: dict[Name, list[Name]] = {}
        """Node -> the nodes with an edge to it, in the author's order."""
        for item in edges:
            if isinstance(item, Edge):
                route: Any = item.route
                routes = () if route is None else tuple(cast(list[Any], route)) if isinstance(route, list) else (route,)
                self._connect([self._name_of(item.from_node)], [self._name_of(item.to_node)], routes)
            elif isinstance(item, tuple) and len(cast(tuple[Any, ...], item)) > 1:
                self._chain(cast(tuple[Any, ...], item))
            elif isinstance(item, str):
                self._refuse(f"edges is a list of edges; write edges=[({START!r}, first, second)]")
            else:
                self._refuse(
                    f"{item!r:.80} is not an edge; write ({START!r}, first, second), or "
                    "Edge(from_node=..., to_node=...)"
                )
        self._check()

    def next(self, name: Name, routes: Sequence[Route]) -> list[Name]:
        """The nodes that follow after a node that took these routes."""
        return [edge.end for edge in self._followed(name, routes) if edge.end != END]

    def leads_to_end(self, name: Name, routes: Sequence[Route]) -> bool:
        """True if a node that took these routes led to END."""
        return any(edge.end == END for edge in self._followed(name, routes))

    def _followed(self, name: Name, routes: Sequence[Route]) -> list[NamedEdge]:
        candidates = [*self.edges_from.get(name, ()), *self.edges_to_end.get(name, ())]
        edges = [edge for edge in candidates if not edge.is_default and edge.matches(routes)]
        # The default only if no other edge matches.
        return edges or [edge for edge in candidates if edge.is_default]

    def ends(self, name: Name) -> bool:
        """True if nothing can follow after that node."""
        return not self.edges_from.get(name)

    # -- building

    def _chain(self, chain: tuple[Any, ...]) -> None:
        sources: list[Name] = []
        for position, element in enumerate(chain):
            ends: list[Name] = []
            if isinstance(element, dict):
                if not sources:
                    self._refuse("routes lead on from a node; put it before the dict")
                for route, branch in cast(dict[Any, Any], element).items():
                    names = self._names(branch)
                    self._connect(sources, names, (route,))
                    ends += names
            else:
                ends = self._names(element)
                if position:
                    self._connect(sources, ends)
            sources = ends

    def _names(self, element: Any) -> list[Name]:
        if isinstance(element, tuple | list | set):
            return [self._name_of(item) for item in cast(Iterable[Any], element)]
        return [self._name_of(element)]

    def _name_of(self, node_like: Any) -> Name:
        if isinstance(node_like, str):
            if node_like in (START, END):
                return node_like
            self._refuse(
                f"{node_like!r} is not a node; a text can only be {START!r} or {END!r}: pass the function or the agent"
            )
        # Each access to a method creates a new object, so its parts identify it.
        key = (id(node_like.__self__), id(node_like.__func__)) if inspect.ismethod(node_like) else id(node_like)
        if key not in self._nodes_by_key:
            node = self._build(node_like)
            if node.name in self.nodes:
                self._refuse(f"two nodes are named {node.name!r}; give one another with node(..., name='...')")
            if node.name in (START, END):
                self._refuse(
                    f"{node.name} is the name of the start or the end; give the node another: node(..., name='...')"
                )
            self._nodes_by_key[key] = node
            self._node_likes.append(node_like)
            self.nodes[node.name] = node
            self.edges_from.setdefault(node.name, [])
        return self._nodes_by_key[key].name

    def _connect(self, starts: Iterable[Name], ends: Iterable[Name], routes: tuple[Any, ...] = ()) -> None:
        ends = list(ends)
        for start in starts:
            for end in ends:
                self._add(start, end, routes)

    def _add(self, start: Name, end: Name, routes: tuple[Any, ...]) -> None:
        edge_text = f"on the edge {start} -> {end}"
        if start == END:
            self._refuse(f"nothing can follow after {END}")
        if end == START:
            self._refuse(f"nothing can lead back to {START}; lead to the first node instead")
        if start == START and routes:
            self._refuse(f"an edge from {START} has no route: no node has chosen one yet")
        if DEFAULT_ROUTE in routes and len(routes) > 1:
            self._refuse(f"DEFAULT_ROUTE cannot be in a list of routes, {edge_text}")
        if invalid := [route for route in routes if not isinstance(route, bool | int | str)]:
            self._refuse(f"a route must be text, a number or a bool, got {invalid[0]!r:.40}, {edge_text}")
        if end == END:
            self.edges_to_end.setdefault(start, []).append(NamedEdge(start, END, routes))
            return
        if any(edge.end == end and edge.routes == routes for edge in self.edges_from[start]):
            self._refuse(f"the edge {start} -> {end} is there twice; leave one out")
        self.edges_from[start].append(NamedEdge(start, end, routes))
        names_before = self.predecessors.setdefault(end, [])
        if start not in names_before:
            names_before.append(start)

    # -- checking

    def _check(self) -> None:
        if not self.edges_from[START]:
            self._refuse(f"no edge leads from {START!r}; write ({START!r}, first_node)")
        reached, queue = set[Name](), [START]
        while queue:
            new = {edge.end for edge in self.edges_from.get(queue.pop(), ())} - reached
            reached |= new
            queue += new
        if unreached := self.nodes.keys() - reached:
            self._refuse(f"no edge leads to {', '.join(sorted(unreached))}; add an edge, or leave them out")
        if cycle := self._endless_cycle():
            text = " -> ".join(cycle)
            self._refuse(f"the cycle {text} never ends; let a node choose a route out of it")

    def _endless_cycle(self) -> list[Name]:
        """The names of a cycle of edges without a route; empty if there is none."""
        finished = set[Name]()
        # Depth-first search with an explicit stack: recursion would limit the length of a graph.
        for first in self.nodes:
            path: list[tuple[Name, list[Name]]] = [(first, self._unconditional(first))] if first not in finished else []
            on_path = {first}
            while path:
                name, remaining = path[-1]
                if not remaining:
                    path.pop()
                    on_path.discard(name)
                    finished.add(name)
                    continue
                following = remaining.pop()
                if following in on_path:
                    names = [item for item, _ in path]
                    return [*names[names.index(following) :], following]
                if following not in finished:
                    on_path.add(following)
                    path.append((following, self._unconditional(following)))
        return []

    def _unconditional(self, name: Name) -> list[Name]:
        return [edge.end for edge in self.edges_from[name] if not edge.routes]

    def _refuse(self, problem: str) -> Any:
        raise WorkflowConfigurationError(f"workflow {self._name!r}: {problem}")
