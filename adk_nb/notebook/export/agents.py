"""An LLM agent as Python: its instruction, model and fields."""

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.models.default_model import GEMINI_MODEL, default_model
from adk_nb.notebook.export.code import Piece, call_code, is_data, list_code, text_code, text_or_none
from adk_nb.notebook.export.scope import Scope
from adk_nb.notebook.export.statements import Statement
from adk_nb.notebook.export.target import LEFT_OUT, is_class_there, is_known_there
from adk_nb.notebook.export.tools import tool_code
from adk_nb.notebook.registry.agent_cell import CellAgent
from adk_nb.notebook.registry.definitions import AgentDefinition
from adk_nb.notebook.registry.templates import Piece as TemplatePiece
from adk_nb.notebook.registry.templates import Template

FROM_STATE = '''\
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
"""What instructions that are functions call; it needs `json` and `Any`."""
_WRITTEN = frozenset(
    {"name", "description", "model", "instruction", "template", "tools", "sub_agents", "mode", "output_key"}
    | {"max_iterations", "parent_agent"}
)
"""Fields of an agent that are written each in its own way."""


def llm_agent(definition: AgentDefinition, scope: Scope) -> Piece:
    """The agent of a `%%agent` cell, after the function that is its instruction, if that has to be one."""
    name = definition.name
    agent = scope.notebook.agent(name)
    template = agent.cell_template if isinstance(agent, CellAgent) and not definition.raw else None
    instruction = _instruction(name, definition.instruction, template, scope.is_key)
    if instruction.keys:
        scope.note(f"{name} reads {', '.join(instruction.keys)} from the state: set it before the first turn")
    most = definition.max_iterations
    if most and scope.target.is_google:
        scope.note(f"{name}: max_iterations is left out; google-adk has RunConfig(max_llm_calls=...)")
    tools = [tool_code(tool, name, scope) for tool in definition.tools]
    model, model_variable = _model(definition, scope)
    members = list(map(scope.agent_member, definition.members))
    keywords: dict[str, str | None] = {
        "name": text_code(name),
        "description": text_or_none(definition.description),
        "model": model,
        "instruction": instruction.code,
        "tools": list_code(tools) if tools else None,
        "sub_agents": list_code(members) if members else None,
        "mode": text_or_none(definition.mode),
        "output_key": text_or_none(definition.output_key),
        "max_iterations": str(most) if most and not scope.target.is_google else None,
    }
    fields, field_variables = _other_fields(agent, definition, scope)
    early = ["LlmAgent", *tools, *model_variable, *definition.members, *field_variables]
    early += ["_from_state"] if "_from_state(" in instruction.function else []
    early += ["Any"] if instruction.function else []
    before = f"{instruction.function}\n\n\n" if instruction.function else ""
    return Piece(f"{before}{name} = {call_code('LlmAgent', keywords | fields)}", early)


def _model(definition: AgentDefinition, scope: Scope) -> tuple[str | None, list[str]]:
    """The model as an expression, and the variable that holds it, if one does."""
    held = definition.model_object
    if held is not None and (not scope.target.is_google or is_class_there(type(held))):
        return definition.model, [definition.model]
    if not scope.target.is_google:
        return text_or_none(definition.model), []
    model = definition.model or default_model()
    if held is not None or not is_known_there(model):
        scope.other_models.append(definition.name)
        model = GEMINI_MODEL
    return text_code(model), []


def _other_fields(
    agent: BaseAgent, definition: AgentDefinition, scope: Scope
) -> tuple[dict[str, str | None], list[str]]:
    """The fields that the cell or Python has set besides, as keywords, and the variables they need."""
    keywords: dict[str, str | None] = {}
    variables: list[str] = []
    set_later = {field for statement in scope.statements if (field := _assigned_field(statement, agent.name))}
    for name in sorted(agent.model_fields_set - _WRITTEN - set_later):
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


def _assigned_field(statement: Statement, agent: str) -> str:
    """The field in a statement `agent.field = ...`; empty for any other statement."""
    node = statement.node
    target = node.targets[0] if isinstance(node, ast.Assign) else None
    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == agent:
        return target.attr
    return ""


@dataclass(frozen=True)
class _Instruction:
    code: str
    function: str = ""
    """The definition of the function that it is, if it is one."""
    keys: tuple[str, ...] = ()
    """Keys that have to be in the state."""


def _instruction(agent: str, text: str, template: Template | None, is_key: Callable[[str], bool]) -> _Instruction:
    """The instruction of a cell as text in which `{key}` is the state's, or as a function that fills it in.

    Wherever a brace is only text it is a function: google-adk's versions differ in what they make of other braces.
    `template`: the text with its variables put in; None: braces mean nothing.
    """
    pieces = template.pieces if template else [TemplatePiece(text)]
    keys = [piece for piece in pieces if piece.key]
    sure = [key for key in keys if key.is_scoped or key.optional or is_key(key.key)]
    needed = tuple(dict.fromkeys(key.key for key in sure if not (key.optional or key.is_artifact)))
    literal = "".join(piece.text for piece in pieces if not piece.key)
    if len(sure) == len(keys) and "{" not in literal and "}" not in literal:
        return _Instruction(text_code("".join(piece.text for piece in pieces)), keys=needed)
    name = f"_{agent}_instruction"
    parts = [_part(piece, piece in sure) for piece in pieces if piece.text]
    body = parts[0] if len(parts) == 1 else "(\n        " + "\n        + ".join(parts) + "\n    )"
    return _Instruction(name, f"def {name}(context: Any) -> str:\n    return {body}", needed)


def _part(piece: TemplatePiece, sure: bool) -> str:
    if not piece.key:
        return text_code(piece.text)
    default = "" if sure and not piece.optional else f", {text_code('' if piece.optional else piece.source)}"
    return f"_from_state(context, {text_code(piece.key)}{default})"
