"""Teams and graphs as Python: what their cells say, with the agents of both packages."""

from collections.abc import Sequence

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.notebook.export.code import Piece, call_code, list_code, text_code, text_or_none
from adk_nb.notebook.export.scope import Scope
from adk_nb.notebook.registry.definitions import AgentDefinition
from adk_nb.notebook.registry.team_cell import CellEdge, condition_of, parse_edges
from adk_nb.workflow.graph import DEFAULT_ROUTE, END

CHOOSE = '''\
def _choose(*routes: Any) -> Any:
    """After the model has answered: take the route that the answer is, or the only one that stands in it as a word."""

    def choose(callback_context: Any, llm_response: Any) -> None:
        parts = (llm_response.content and llm_response.content.parts) or []
        if llm_response.partial or any(part.function_call for part in parts):
            return
        answer = "".join(part.text for part in parts if part.text and not part.thought)
        words = answer.strip().strip(".!*\\"'` ").casefold()
        found = [one for one in routes if words == str(one).casefold()] or [
            one for one in routes if re.search(rf"\\b{re.escape(str(one))}\\b", answer, re.IGNORECASE)
        ]
        if len(found) == 1:
            callback_context.actions.route = found[0]

    return choose'''
"""What leads on from an agent in a graph; it needs `re` and `Any`."""
_ENDS = '''\
class {name}(BaseAgent):
    """The last of each pass: ends the loop when the state is as it has to be."""

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        session_state = ctx.session.state
        try:
            ends = bool({condition})
        except Exception:  # it has no value yet
            ends = False
        if ends:
            actions = EventActions(escalate=True)
            yield Event(author=self.name, invocation_id=ctx.invocation_id, branch=ctx.branch, actions=actions)


'''
_ENDS_NEEDS = ("AsyncGenerator", "BaseAgent", "Event", "EventActions", "InvocationContext")


def team(definition: AgentDefinition, scope: Scope) -> Piece:
    """A sequential, parallel or loop agent."""
    kind = {"sequential": "SequentialAgent", "parallel": "ParallelAgent", "loop": "LoopAgent"}[definition.kind]
    name, condition = definition.name, condition_of(definition)
    members = list(map(scope.agent_member, definition.members))
    early = [kind, *definition.members]
    keywords: dict[str, str | None] = {
        "name": text_code(name),
        "description": text_or_none(definition.description),
        "max_iterations": str(definition.max_iterations) if definition.max_iterations else None,
    }
    before = ""
    if condition and scope.target.is_google:
        ends = f"_{name.title().replace('_', '')}Ends"
        before = _ENDS.format(name=ends, condition=condition)
        members.append(f'{ends}(name="{name}_ends")')
        early += _ENDS_NEEDS
    elif condition:
        keywords["exit_condition"] = text_code(condition)
    keywords["sub_agents"] = list_code(members)
    return Piece(f"{before}{name} = {call_code(kind, keywords)}", early)


def workflow(definition: AgentDefinition, scope: Scope) -> Piece:
    """A graph."""
    graph = _Graph(definition, scope)
    keywords: dict[str, str | None] = {
        "name": text_code(definition.name),
        "description": text_or_none(definition.description),
        "edges": "[\n" + "".join(f"        {edge},\n" for edge in graph.edges) + "    ]",
        "max_concurrency": str(definition.max_concurrency) if definition.max_concurrency else None,
    }
    code = f"{definition.name} = {call_code('Workflow', keywords)}"
    return Piece("\n".join([*graph.lines, code]), graph.early)


class _Graph:
    """The nodes and edges of a graph as expressions."""

    def __init__(self, definition: AgentDefinition, scope: Scope) -> None:
        self._name, self._scope = definition.name, scope
        self.lines: list[str] = []
        """Before the graph."""
        self.edges: list[str] = []
        self.early = ["Workflow", *definition.members]
        leads = parse_edges(definition)
        self._nodes = {name: self._node(name, leads) for name in definition.members}
        joins: dict[tuple[str, ...], str] = {}
        for lead in leads:
            if lead.is_join and lead.starts not in joins:
                joins[lead.starts] = self._join(lead.starts)
            self._add_edges(lead, joins.get(lead.starts) or self._expression(lead.starts[0]))

    def _expression(self, name: str) -> str:
        return self._nodes.get(name, text_code(name))

    def _node(self, name: str, leads: Sequence[CellEdge]) -> str:
        routes = [route for lead in leads if name in lead.starts for route in lead.routes if route != DEFAULT_ROUTE]
        agent = self._scope.notebook.node_like(name)
        if routes and isinstance(agent, BaseAgent) and not agent.runs_others:
            choice = f"_choose({', '.join(map(repr, dict.fromkeys(routes)))})"
            own = agent.after_model_callback if isinstance(agent, LlmAgent) else None
            own_code = f"{'*' if isinstance(own, list) else ''}{name}.after_model_callback"
            callbacks = list_code([own_code, choice]) if own else choice
            code = f'{name}.clone(update={{"after_model_callback": {callbacks}}})'
            self.early.append("_choose")
        else:
            code = self._scope.member(name)
        if not code.endswith(")"):
            return code
        variable = f"_{name}_in_{self._name}"  # one copy, however many edges lead to it
        self.lines.append(f"{variable} = {code}")
        return variable

    def _join(self, starts: tuple[str, ...]) -> str:
        variable = f"_join_{'_'.join(starts)}"
        self.lines.append(f'{variable} = JoinNode(name="{variable[1:]}")')
        self.edges += [f"({self._nodes[name]}, {variable})" for name in starts]
        self.early.append("JoinNode")
        return variable

    def _add_edges(self, lead: CellEdge, start: str) -> None:
        for end in lead.ends:
            if end == END and self._scope.target.is_google:
                continue  # in google-adk a node without edges is an end
            node = self._expression(end)
            if not lead.routes:
                self.edges.append(f"({start}, {node})")
                continue
            routes = ["DEFAULT_ROUTE" if route == DEFAULT_ROUTE else repr(route) for route in lead.routes]
            self.early += ["DEFAULT_ROUTE"] if "DEFAULT_ROUTE" in routes else []
            self.edges.append(f"({start}, {{{', '.join(f'{route}: {node}' for route in routes)}}})")
