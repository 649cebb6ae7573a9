"""The agents, teams and graphs of cells as Python."""

import ast
import inspect
from collections.abc import Sequence
from typing import Any

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.models.default_model import GEMINI_MODEL, find_default_model
from adk_nb.notebook.cells import templates
from adk_nb.notebook.cells.agent_cell import CellAgent
from adk_nb.notebook.cells.definitions import AgentDefinition
from adk_nb.notebook.cells.team_cell import CellEdge, condition_of, parse_edges
from adk_nb.notebook.extensions.export.models import NEEDS, lite_llm_code
from adk_nb.notebook.extensions.export.scope import (
    Keywords,
    Piece,
    Scope,
    call_code,
    is_data,
    list_code,
    text_code,
    text_or_none,
)
from adk_nb.notebook.extensions.export.target import LEFT_OUT, is_class_there, is_known_there
from adk_nb.notebook.extensions.export.tools import skills_code, tool_code
from adk_nb.tools.schema import is_generator
from adk_nb.workflow.graph import DEFAULT_ROUTE, END

FROM_STATE_CODE = '''\
def _from_state(context: Any, key: str, otherwise: str | None = None) -> str:
    """A value of the session's state as text; without it `otherwise`, or else an error."""
    if key not in context.state:
        if otherwise is None:
            raise KeyError(f"{key!r} is not in the session's state")
        return otherwise
    value = context.state[key]
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)'''
"""Called by instructions that are functions; it needs `json` and `Any`."""
CHOOSE_CODE = '''\
def _choose(*routes: Any) -> Any:
    """After the model has answered: take the route that the answer is, or the only one that stands in it as a word."""

    def choose(callback_context: Any, llm_response: Any) -> None:
        parts = (llm_response.content and llm_response.content.parts) or []
        if llm_response.partial or any(part.function_call for part in parts):
            return
        answer = "".join(part.text for part in parts if part.text and not part.thought)
        text = answer.strip().strip(".!*\\"'` ").casefold()
        matches = [route for route in routes if text == str(route).casefold()] or [
            route for route in routes if re.search(rf"\\b{re.escape(str(route))}\\b", answer, re.IGNORECASE)
        ]
        if len(matches) == 1:
            callback_context.actions.route = matches[0]

    return choose'''
"""The callback of an agent in a graph with routes behind it; it needs `re` and `Any`."""
TAKE_CODE = '''\
def _take(function: Any, *routes: Any) -> Any:
    """A node of `function` that takes the route that it returns."""

    @functools.wraps(function)
    async def take(*args: Any, **kwargs: Any) -> Any:
        value = function(*args, **kwargs)
        value = await value if inspect.isawaitable(value) else value
        is_route = any(type(value) is type(route) and value == route for route in routes)
        return Event(output=value, route=value) if is_route else value

    return take'''
"""A function in a graph with routes behind it; it needs `functools`, `inspect`, `Any` and `Event`."""
_LOOP_END_CODE = '''\
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
_LOOP_END_NEEDS = ("AsyncGenerator", "BaseAgent", "Event", "EventActions", "InvocationContext")
_EXPLICIT_FIELDS = frozenset(
    {"name", "description", "model", "instruction", "template", "tools", "sub_agents", "mode", "output_key"}
    | {"max_iterations", "parent_agent"}
)
"""Fields that `llm_agent` writes by code of their own; `_other_fields` writes the rest."""


# ---- LLM agents


def llm_agent(definition: AgentDefinition, scope: Scope) -> Piece:
    """The agent of a `%%agent` cell, after the function that is its instruction, if that has to be one."""
    name = definition.name
    agent = scope.notebook.agent(name)
    instruction, function = _instruction(agent, definition, scope)
    limit = definition.max_iterations
    if limit and scope.target.is_google:
        scope.note(f"{name}: max_iterations is left out; google-adk has RunConfig(max_llm_calls=...)")
    tools = [tool_code(tool, name, scope) for tool in definition.tools]
    tool_names = list(tools)
    skills, skill_names = skills_code(definition, scope)
    tools += [f"_{name}_skills"] * bool(skills)
    model, model_variables = _model(definition, scope)
    members = list(map(scope.agent_member, definition.members))
    keywords: Keywords = {
        "name": text_code(name),
        "description": text_or_none(definition.description),
        "model": model,
        "instruction": instruction,
        "tools": list_code(tools) if tools else None,
        "sub_agents": list_code(members) if members else None,
        "mode": text_or_none(definition.mode),
        "output_key": text_or_none(definition.output_key),
        "max_iterations": str(limit) if limit and not scope.target.is_google else None,
    }
    for option in definition.options:
        if option != "skills":
            scope.note(f"not exported: --{option} of {name}")
    fields, field_variables = _other_fields(agent, definition, scope)
    early = ["LlmAgent", *tool_names, *skill_names, *model_variables, *definition.members, *field_variables]
    early += ["_from_state"] * ("_from_state(" in function) + ["Any"] * bool(function)
    return Piece(f"{function}{skills}{name} = {call_code('LlmAgent', keywords | fields)}", early)


def _model(definition: AgentDefinition, scope: Scope) -> tuple[str | None, list[str]]:
    """The model as an expression, and the names that it needs."""
    value, is_google = definition.model_object, scope.target.is_google
    if value is not None and (not is_google or is_class_there(type(value))):
        return definition.model, [definition.model]
    default = find_default_model()
    model = value or definition.model or default.model or default.name
    file = model.partition("gguf:")[2] if isinstance(model, str) else ""
    if not is_google:
        if file and definition.model:
            scope.note(
                f"{definition.name}: its model is read from {file}, with adk_nb's extra `local`, where the script runs"
            )
        return text_or_none(definition.model), []
    if file:
        scope.note(
            f"{definition.name}: to ask {file} there, type: llama-server --model {file} --jinja --port 8080, and write "
            'model=LiteLlm(model="openai/local", api_base="http://127.0.0.1:8080/v1", api_key="none")'
        )
    elif isinstance(model, str) and is_known_there(model):
        return text_code(model), []
    elif code := lite_llm_code(model):
        return code, list(NEEDS)
    scope.other_models.append(definition.name)
    return text_code(GEMINI_MODEL), []


def _other_fields(agent: BaseAgent, definition: AgentDefinition, scope: Scope) -> tuple[Keywords, list[str]]:
    """The other fields that the cell or Python has set, as keywords, and the variables they need."""
    keywords: Keywords = {}
    variables: list[str] = []
    assigned: set[str] = set()  # the fields in statements `agent.field = ...`
    for statement in scope.statements:
        target = statement.node.targets[0] if isinstance(statement.node, ast.Assign) else None
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == agent.name:
            assigned.add(target.attr)
    for name in sorted(agent.model_fields_set - _EXPLICIT_FIELDS - assigned):
        option = definition.fields.get(name)
        value: Any = option.value if option else getattr(agent, name)
        if value == type(agent).model_fields[name].get_default(call_default_factory=True):
            continue
        if scope.target.is_google and name in LEFT_OUT:
            scope.note(f"{agent.name}: {name} is left out; google-adk's LlmAgent has no such field")
        elif is_data(value):
            keywords[name] = repr(value)
        elif variable := (option and option.variable) or scope.variable_of(value):
            keywords[name] = variable
            variables.append(variable)
        else:
            scope.note(f"{agent.name}: {name} is left out; give it a variable of its own in a cell")
    return keywords, variables


def _instruction(agent: BaseAgent, definition: AgentDefinition, scope: Scope) -> tuple[str, str]:
    """The instruction as an expression, and the function that it names, if it has to be one.

    Wherever a brace is only text it is a function: google-adk's versions differ in what they make of other braces.
    """
    template = agent.cell_template if isinstance(agent, CellAgent) and not definition.raw else None
    pieces = template.pieces if template else [templates.Piece(definition.instruction)]
    keys = [piece for piece in pieces if piece.key]
    certain = [piece for piece in keys if piece.is_scoped or piece.optional or scope.is_key(piece.key)]
    required = [piece.key for piece in certain if not (piece.optional or piece.is_artifact)]
    if required:
        names = ", ".join(dict.fromkeys(required))
        scope.note(f"{definition.name} reads {names} from the state: set it before the first turn")
    plain = "".join(piece.text for piece in pieces if not piece.key)
    if len(certain) == len(keys) and "{" not in plain and "}" not in plain:
        return text_code("".join(piece.text for piece in pieces)), ""
    parts: list[str] = []
    for piece in (piece for piece in pieces if piece.text):
        if not piece.key:
            parts.append(text_code(piece.text))
            continue
        is_plain = piece in certain and not piece.optional
        default = "" if is_plain else f", {text_code('' if piece.optional else piece.source)}"
        parts.append(f"_from_state(context, {text_code(piece.key)}{default})")
    body = parts[0] if len(parts) == 1 else "(\n        " + "\n        + ".join(parts) + "\n    )"
    name = f"_{definition.name}_instruction"
    return name, f"def {name}(context: Any) -> str:\n    return {body}\n\n\n"


# ---- teams and graphs


def team(definition: AgentDefinition, scope: Scope) -> Piece:
    """A sequential, parallel or loop agent."""
    kind = {"sequential": "SequentialAgent", "parallel": "ParallelAgent", "loop": "LoopAgent"}[definition.kind]
    name, condition = definition.name, condition_of(definition)
    members = list(map(scope.agent_member, definition.members))
    early = [kind, *definition.members]
    keywords: Keywords = {
        "name": text_code(name),
        "description": text_or_none(definition.description),
        "max_iterations": str(definition.max_iterations) if definition.max_iterations else None,
    }
    loop_end = ""
    if condition and scope.target.is_google:
        class_name = f"_{name.title().replace('_', '')}Ends"
        loop_end = _LOOP_END_CODE.format(name=class_name, condition=condition)
        members.append(f'{class_name}(name="{name}_ends")')
        early += _LOOP_END_NEEDS
    elif condition:
        keywords["exit_condition"] = text_code(condition)
    keywords["sub_agents"] = list_code(members)
    return Piece(f"{loop_end}{name} = {call_code(kind, keywords)}", early)


def workflow(definition: AgentDefinition, scope: Scope) -> Piece:
    """A graph."""
    graph = _Graph(definition, scope)
    keywords: Keywords = {
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
        """Statements before the graph."""
        self.edges: list[str] = []
        self.early = ["Workflow", *definition.members]
        edges = parse_edges(definition)
        self._nodes = {name: self._node(name, edges) for name in definition.members}
        joins: dict[tuple[str, ...], str] = {}
        for edge in edges:
            if edge.is_join and edge.starts not in joins:
                joins[edge.starts] = self._join(edge.starts)
            self._add_edges(edge, joins.get(edge.starts) or self._expression(edge.starts[0]))

    def _expression(self, name: str) -> str:
        return self._nodes.get(name, text_code(name))

    def _node(self, name: str, edges: Sequence[CellEdge]) -> str:
        routes = [route for edge in edges if name in edge.starts for route in edge.routes if route != DEFAULT_ROUTE]
        agent = self._scope.notebook.node_like(name)
        choices = ", ".join(map(repr, dict.fromkeys(routes)))
        if routes and isinstance(agent, BaseAgent) and not agent.runs_others:
            choice = f"_choose({choices})"
            callback = agent.after_model_callback if isinstance(agent, LlmAgent) else None
            callback_code = f"{'*' if isinstance(callback, list) else ''}{name}.after_model_callback"
            callbacks = list_code([callback_code, choice]) if callback else choice
            code = f'{name}.clone(update={{"after_model_callback": {callbacks}}})'
            self.early.append("_choose")
        elif routes and inspect.isroutine(agent) and not is_generator(agent):
            code = f"_take({name}, {choices})"
            self.early.append("_take")
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

    def _add_edges(self, edge: CellEdge, start: str) -> None:
        for end in edge.ends:
            if end == END and self._scope.target.is_google:
                continue  # in google-adk a node without edges is an end
            node = self._expression(end)
            if not edge.routes:
                self.edges.append(f"({start}, {node})")
                continue
            routes = ["DEFAULT_ROUTE" if route == DEFAULT_ROUTE else repr(route) for route in edge.routes]
            self.early += ["DEFAULT_ROUTE"] if "DEFAULT_ROUTE" in routes else []
            self.edges.append(f"({start}, {{{', '.join(f'{route}: {node}' for route in routes)}}})")
