"""Teams and graphs as Python: what their cells say, with the agents of both packages."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from adk_nb.notebook.export.code import Piece, call_code, list_code, text_code
from adk_nb.notebook.export.target import Target
from adk_nb.notebook.registry.definitions import AgentDefinition
from adk_nb.notebook.registry.edges import Lead, leads_of
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

Member = Callable[[str], str]
"""A name -> the expression that is it here: itself, or a copy if it is somewhere else already."""


def team(definition: AgentDefinition, condition: str | None, member: Member, target: Target) -> Piece:
    """A sequential, parallel or loop agent. `condition`: when the loop ends."""
    kind = {"sequential": "SequentialAgent", "parallel": "ParallelAgent", "loop": "LoopAgent"}[definition.kind]
    under = [member(one) for one in definition.members]
    early = [kind, *definition.members]
    given = {"name": text_code(definition.name), "description": _or_none(definition.description)}
    if definition.max_iterations:
        given["max_iterations"] = str(definition.max_iterations)
    before = ""
    if condition and not target.is_google:
        given["exit_condition"] = text_code(condition)
    elif condition:
        ends = f"_{definition.name.title().replace('_', '')}Ends"
        before = _ends(ends, condition)
        under.append(f'{ends}(name="{definition.name}_ends")')
        early += ["AsyncGenerator", "BaseAgent", "Event", "EventActions", "InvocationContext"]
    given["sub_agents"] = list_code(under)
    return Piece(f"{before}{definition.name} = {call_code(kind, given)}", early)


def _or_none(text: str) -> str | None:
    return text_code(text) if text else None


def _ends(name: str, condition: str) -> str:
    return f'''\
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


@dataclass
class _Graph:
    """What is known of a graph while it is written."""

    definition: AgentDefinition
    google: bool
    lines: list[str] = field(default_factory=list[str])
    """Before the graph."""
    nodes: dict[str, str] = field(default_factory=dict[str, str])
    edges: list[str] = field(default_factory=list[str])
    early: list[str] = field(default_factory=list[str])


def workflow(
    definition: AgentDefinition,
    choosers: Sequence[str],
    member: Member,
    target: Target,
    callbacks: Callable[[str], Sequence[str]],
) -> Piece:
    """A graph.

    Args:
        definition: Of its cell.
        choosers: The nodes that are agents with a model of their own: their answers choose.
        member: See Member.
        target: For whom.
        callbacks: An agent's own `after_model_callback`s, as expressions.
    """
    leads = leads_of(definition.instruction, definition.cell)
    made = _Graph(definition, target.is_google, early=["Workflow", *definition.members])
    for name in definition.members:
        _node(name, leads, made, name in choosers, member, callbacks)
    joins: dict[tuple[str, ...], str] = {}
    for lead in leads:
        start = made.nodes.get(lead.starts[0], text_code(lead.starts[0]))
        if lead.joins and not (start := joins.get(lead.starts, "")):
            start = joins[lead.starts] = f"_join_{'_'.join(lead.starts)}"
            made.lines.append(f'{start} = JoinNode(name="{start[1:]}")')
            made.edges += [f"({made.nodes[one]}, {start})" for one in lead.starts]
            made.early.append("JoinNode")
        _edges(lead, start, made)
    given = {
        "name": text_code(definition.name),
        "description": _or_none(definition.description),
        "edges": "[\n" + "".join(f"        {one},\n" for one in made.edges) + "    ]",
        "max_concurrency": str(definition.max_concurrency) if definition.max_concurrency else None,
    }
    return Piece("\n".join([*made.lines, f"{definition.name} = {call_code('Workflow', given)}"]), made.early)


def _node(
    name: str,
    leads: Sequence[Lead],
    made: _Graph,
    chooses: bool,
    member: Member,
    callbacks: Callable[[str], Sequence[str]],
) -> None:
    routes = [route for lead in leads if name in lead.starts for route in lead.routes if route != DEFAULT_ROUTE]
    if not (routes and chooses):
        made.nodes[name] = here = member(name)
        if here.endswith(")"):  # a copy, and one copy however many edges lead to it
            made.nodes[name] = f"_{name}_in_{made.definition.name}"
            made.lines.append(f"{made.nodes[name]} = {here}")
        return
    made.nodes[name] = f"_{name}_in_{made.definition.name}"
    choice = f"_choose({', '.join(map(repr, dict.fromkeys(routes)))})"
    own = callbacks(name)
    update = f'update={{"after_model_callback": {list_code([*own, choice]) if own else choice}}}'
    made.lines.append(f"{made.nodes[name]} = {name}.clone({update})")
    made.early.append("_choose")


def _edges(lead: Lead, start: str, made: _Graph) -> None:
    for end in lead.ends:
        if end == END and made.google:
            continue  # there, where no edge leads on is the end
        to = made.nodes.get(end, text_code(end))
        if not lead.routes:
            made.edges.append(f"({start}, {to})")
            continue
        routes = ["DEFAULT_ROUTE" if one == DEFAULT_ROUTE else repr(one) for one in lead.routes]
        made.early += ["DEFAULT_ROUTE"] if "DEFAULT_ROUTE" in routes else []
        made.edges.append(f"({start}, {{{', '.join(f'{route}: {to}' for route in routes)}}})")
