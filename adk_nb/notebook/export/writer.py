"""Writes a notebook's agents and tools as one file of Python, for google-adk or for adk_nb."""

import ast
import builtins
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.errors import InputError, UserError
from adk_nb.models.default_model import GEMINI_MODEL, default_model
from adk_nb.notebook.export import teams, tools
from adk_nb.notebook.export.agents import FROM_STATE, instruction_of
from adk_nb.notebook.export.code import Imports, Order, Piece, call_code, is_data, joined, list_code, text_code
from adk_nb.notebook.export.statements import (
    Rewriter,
    Statement,
    imports_of,
    is_function,
    names_in,
    rewritten,
    without_tool_decorators,
)
from adk_nb.notebook.export.target import LEFT_OUT, Target, is_class_there, is_known_there
from adk_nb.notebook.registry import team_cell
from adk_nb.notebook.registry.agent_cell import CellAgent
from adk_nb.notebook.registry.definitions import AgentDefinition
from adk_nb.notebook.registry.notebook import Notebook
from adk_nb.redaction import redacted
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.function_tool import FunctionTool
from adk_nb.workflow.workflow import Workflow

_WRITTEN = frozenset(
    {"name", "description", "model", "instruction", "template", "tools", "sub_agents", "mode", "output_key"}
    | {"max_iterations", "parent_agent"}
)
"""Fields of an agent that are written each in its own way."""
_HELPERS = {
    "_choose": (teams.CHOOSE, ("re", "Any")),
    "_from_state": (FROM_STATE, ("json", "Any")),
    "_named": (tools.NAMED, ("types", "Any")),
}
"""What is written beside the cells' own -> its text, and what that needs."""


@dataclass(frozen=True)
class Written:
    """What came of it."""

    code: str
    root: str
    """The variable of the root agent."""
    agents: list[str]
    notes: list[str]
    """What is not as in the notebook, a line each."""


class Writer:
    """Makes the file for one target."""

    def __init__(self, notebook: Notebook, statements: Sequence[Statement], target: Target, beside: Path) -> None:
        """`beside`: the folder of the file."""
        self._notebook, self._statements, self._target, self._beside = notebook, statements, target, beside
        self._notes: dict[str, None] = {}
        self._imports = Imports(target)
        self._elsewhere: list[str] = []
        """Agents whose model is another there."""
        self._placed = set(self._under_pythons())
        """Agents that are under another."""
        self._wrappers: dict[str, Piece] = {}
        self._renamed: dict[str, str] = {}
        """Functions that are tools with more to say -> the tool."""
        for variable, tool in self._tool_variables():
            piece, _ = self._wrapper(variable, tool)
            if piece:
                self._wrappers[f"{variable}_tool"] = piece
                self._renamed[variable] = f"{variable}_tool"
        self._rewriter = Rewriter(target, notebook.variables, self._renamed)

    def write(self, root: str, others: Sequence[str], *, also: Mapping[str, tuple[str, str]]) -> Written:
        """The file.

        Args:
            root: The agent that is `root_agent`.
            others: Agents that are written too; one that cannot be is a note.
            also: Names to import besides -> module, and what of it.

        Raises:
            InputError: The root agent, or what it needs, cannot be written.
        """
        for name, place in also.items():
            self._imports.add(name, *place)
        order = Order(self._found)
        order.add(root, "%export")
        agents = [root]
        for name in others:
            try:
                order.add_or_leave(name, "%export")
                agents.append(name)
            except UserError as error:
                self._notes[f"{name} is left out: {error}"] = None
        if self._elsewhere:
            others = ", ".join(self._elsewhere)
            note = f"{others}: the model is {GEMINI_MODEL} there, as google-adk does not have the one of here"
            self._notes[note] = None
        code = joined([self._imports.code, *(one.text for one in order.pieces), f"root_agent = {root}"]) + "\n"
        _refuse_secrets(code)
        return Written(code, root, agents, [*self._notes])

    # ---- what makes a name

    def _found(self, name: str, needed_by: str) -> Iterator[Piece]:
        """The pieces that make a name of the notebook, or of what is written itself."""
        if name in self._notebook.definitions and self._notebook.is_of_its_cell(name):
            definition = self._notebook.definitions[name]
            yield self._agent(definition)
            yield from self._changes(name, after=(definition.cell, 0, 0))
        elif name in self._wrappers:
            yield self._wrappers[name]
        elif toolset := self._toolset_of_a_line(name):
            yield toolset
        elif name in _HELPERS:
            text, needs = _HELPERS[name]
            yield Piece(text, needs)
        elif statement := self._binding(name):
            yield from self._of_statement(statement, name, needed_by)
            yield from self._changes(name, after=statement.place)
        elif not (self._imports.add_known(name) or hasattr(builtins, name) or name.startswith("__")):
            yield from self._of_value(name, needed_by)

    def _binding(self, name: str) -> Statement | None:
        return next((one for one in reversed(self._statements) if name in one.binds), None)

    def _changes(self, name: str, *, after: tuple[int, int, int]) -> Iterator[Piece]:
        for one in self._statements:
            if name in one.changes and one.place > after and not one.is_magic:
                yield self._piece(one)

    def _of_statement(self, statement: Statement, name: str, needed_by: str) -> Iterator[Piece]:
        if imported := imports_of(statement):
            module, what = self._target.place_of(*imported.get(name, (name, "")))
            self._imports.add(name, module, what)
        elif statement.is_magic:
            yield from self._of_value(name, needed_by)
        else:
            yield self._piece(statement)

    def _piece(self, statement: Statement) -> Piece:
        if is_function(statement):
            bare = without_tool_decorators(statement, self._notebook.variables)
            text = rewritten(statement, Rewriter(self._target, self._notebook.variables, {}), lambda _: bare)
            early, late, _ = names_in(text)
            return Piece(text, sorted(early), sorted(late - early))
        text = rewritten(statement, self._rewriter, lambda one: one.text)
        self._notes |= dict.fromkeys(self._rewriter.notes)
        self._elsewhere += [one for one in self._rewriter.elsewhere if one not in self._elsewhere]
        early, late, _ = names_in(text)
        return Piece(text, sorted(early), sorted(late - early))

    def _of_value(self, name: str, needed_by: str) -> Iterator[Piece]:
        """What no cell binds in Python: data is written as it is now, what a module has is imported."""
        variables = self._notebook.variables
        if name not in variables:
            self._notes[f"{needed_by} uses {name}, which is not defined in this notebook"] = None
            return
        value = variables[name]
        if is_data(value):
            yield Piece(f"{name} = {value!r}")
        elif isinstance(value, type(sys)):
            self._imports.add(name, value.__name__, "")
        elif place := _importable(value):
            self._imports.add(name, *self._target.place_of(*place))
        else:
            raise InputError(
                f"%export: {needed_by} needs {name!r}, a {type(value).__name__} that no cell makes in Python; "
                f"write a cell that says {name} = ..., or take it out of {needed_by}"
            )

    # ---- agents

    def _agent(self, definition: AgentDefinition) -> Piece:
        if missing := [one for one in definition.members if self._notebook.node_like(one) is None]:
            raise InputError(
                f"%export: {missing[0]} is not defined, and {definition.name} needs it; run its cell first"
            )
        if definition.kind == "workflow":
            choosers = [one for one in definition.members if self._answers(one)]
            return teams.workflow(definition, choosers, self._member, self._target, self._after_model)
        if definition.kind != "llm":
            return teams.team(definition, team_cell.condition_of(definition), self._agent_member, self._target)
        return self._llm_agent(definition)

    def _llm_agent(self, definition: AgentDefinition) -> Piece:
        name = definition.name
        agent = self._notebook.agent(name)
        written = agent.as_written if isinstance(agent, CellAgent) and not definition.raw else None
        instruction = instruction_of(name, definition.instruction, written, self._is_key)
        if instruction.keys:
            self._notes[f"{name} reads {', '.join(instruction.keys)} from the state: set it before the first turn"] = (
                None
            )
        if definition.max_iterations and self._target.is_google:
            self._notes[f"{name}: max_iterations is left out; google-adk has RunConfig(max_llm_calls=...)"] = None
        named = [self._tool(one, name) for one in definition.tools]
        model, needs = self._model(definition)
        early = ["LlmAgent", *named, *needs, *definition.members]
        early += ["_from_state"] if "_from_state(" in instruction.function else []
        early += ["Any"] if instruction.function else []
        given = {
            "name": text_code(name),
            "description": text_code(definition.description) if definition.description else None,
            "model": model,
            "instruction": instruction.code,
            "tools": list_code(named) if named else None,
            "sub_agents": list_code(map(self._agent_member, definition.members)) if definition.members else None,
            "mode": text_code(definition.mode) if definition.mode else None,
            "output_key": text_code(definition.output_key) if definition.output_key else None,
            "max_iterations": self._ours(definition.max_iterations),
        }
        more, named_there = self._other_fields(agent, definition)
        given |= more
        early += named_there
        before = f"{instruction.function}\n\n\n" if instruction.function else ""
        return Piece(f"{before}{name} = {call_code('LlmAgent', given)}", early)

    def _other_fields(self, agent: BaseAgent, definition: AgentDefinition) -> tuple[dict[str, str | None], list[str]]:
        """What else was said of an agent, by its cell or in Python, as arguments; and the names that those need."""
        given: dict[str, str | None] = {}
        needs: list[str] = []
        set_later = {field for one in self._statements if (field := _field_set(one, agent.name))}
        for name in sorted(agent.model_fields_set - _WRITTEN - set_later):
            said = definition.fields.get(name)
            value = said.value if said else getattr(agent, name)
            if value == type(agent).model_fields[name].get_default(call_default_factory=True):
                continue
            if self._target.is_google and name in LEFT_OUT:
                self._notes[f"{agent.name}: {name} is left out, as google-adk's LlmAgent has none"] = None
            elif is_data(value):
                given[name] = repr(value)
            elif held := (said and said.variable) or self._variable_of(value):
                given[name] = held
                needs.append(held)
            else:
                self._notes[f"{agent.name}: {name} is left out; give it a variable of its own in a cell"] = None
        return given, needs

    def _ours(self, value: int | None) -> str | None:
        return str(value) if value and not self._target.is_google else None

    def _model(self, definition: AgentDefinition) -> tuple[str | None, list[str]]:
        """The model as an expression, and the names that it needs."""
        held = definition.model_object
        if held is not None and (not self._target.is_google or is_class_there(type(held))):
            return definition.model, [definition.model]
        model = "" if held is not None else definition.model or default_model()
        if not self._target.is_google:
            return (text_code(definition.model) if definition.model else None), []
        if held is not None or not is_known_there(model):
            self._elsewhere.append(definition.name)
            model = GEMINI_MODEL
        return text_code(model), []

    def _is_key(self, name: str) -> bool:
        return self._notebook.is_key(name) or name in self._notebook.sessions.state()

    def _agent_member(self, name: str) -> str:
        """The same, where a workflow cannot be.

        Raises:
            InputError: It is one.
        """
        if self._target.is_google and isinstance(self._notebook.node_like(name), Workflow):
            raise InputError(
                f"%export: in google-adk a workflow such as {name} is under no agent; make it the --root, or write a "
                "script: %export agent.py"
            )
        return self._member(name)

    def _member(self, name: str) -> str:
        """The expression of an agent, tool or function in a team: an agent has one parent, so later ones get copies."""
        if name not in self._notebook.agent_names:
            return self._renamed.get(name, name)
        if name in self._placed and not (self._target.is_google and isinstance(self._notebook.agent(name), Workflow)):
            return f"{name}.clone()"  # there a graph has no parent
        self._placed.add(name)
        return name

    def _answers(self, name: str) -> bool:
        found = self._notebook.node_like(name)
        return isinstance(found, BaseAgent) and not found.runs_others

    def _under_pythons(self) -> Iterator[str]:
        """The variables of agents that are under one which Python made."""
        for name in self._notebook.agent_names:
            if not self._notebook.is_of_its_cell(name):
                for under in self._notebook.agent(name).sub_agents:
                    yield from (one for one, held in self._notebook.variables.items() if held is under)

    def _after_model(self, name: str) -> list[str]:
        agent = self._notebook.agent(name)
        own = agent.after_model_callback if isinstance(agent, LlmAgent) else None
        return [f"{'*' if isinstance(own, list) else ''}{name}.after_model_callback"] if own else []

    # ---- tools

    def _tool(self, name: str, agent: str) -> str:
        """The expression of a tool or a toolset that an agent names."""
        if self._notebook.toolset(name):
            return name
        tool = self._notebook.tool(name)
        variable = self._variable_of(tool)
        if variable is None:
            raise InputError(f"%export: {agent} needs tool {name!r}, and no variable holds it; run its cell again")
        if isinstance(tool, FunctionTool) and self._is_function(variable):
            _, notes = self._wrapper(variable, tool)
            self._notes |= dict.fromkeys(notes)
        return self._renamed.get(variable, variable)

    def _tool_variables(self) -> Iterator[tuple[str, FunctionTool]]:
        for variable, value in self._notebook.variables.items():
            if isinstance(value, FunctionTool) and variable[0] != "_" and self._is_function(variable):
                yield variable, value

    def _is_function(self, variable: str) -> bool:
        """Whether the cells' Python binds the function, and the tool was made of it beside."""
        statement = self._binding(variable)
        if statement is None:
            return False
        made = self._notebook.tools.get(getattr(self._notebook.variables[variable], "name", ""))
        is_import = imports_of(statement) is not None and made is not None
        return is_function(statement) or is_import or bool(made and made.tool is self._notebook.variables[variable])

    def _toolset_of_a_line(self, name: str) -> Piece | None:
        """The toolset that a `%tool` line has made, if this is one."""
        made = self._notebook.tools.get(name)
        if made is None or made.place is None or self._notebook.variables.get(name) is not made.tool:
            return None
        piece, note = tools.toolset_piece(name, made.place, self._target, self._beside, self._variable_of)
        self._notes |= dict.fromkeys(note)
        return piece

    def _wrapper(self, variable: str, tool: FunctionTool) -> tuple[Piece | None, list[str]]:
        return tools.wrapper(tool, variable, self._target, self._variable_of)

    def _variable_of(self, value: Any) -> str | None:
        held = self._notebook.variables.items()
        for name, one in held:
            same = one is value or (isinstance(one, FunctionTool) and one.func is value)
            if same and name[0] != "_" and (isinstance(value, BaseTool) or name == getattr(value, "__name__", name)):
                return name
        return None


def _field_set(statement: Statement, agent: str) -> str:
    """Of `agent.field = ...` the field; empty: it is none."""
    node = statement.node
    target = node.targets[0] if isinstance(node, ast.Assign) else None
    is_one = isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == agent
    return target.attr if isinstance(target, ast.Attribute) and is_one else ""


def _importable(value: Any) -> tuple[str, str] | None:
    """Module and name under which anybody can import it."""
    module, name = getattr(value, "__module__", None), getattr(value, "__name__", "")
    if not isinstance(module, str) or module in ("__main__", "builtins"):
        return None
    return (module, name) if getattr(sys.modules.get(module), name, None) is value else None


def _refuse_secrets(code: str) -> None:
    if redacted(code) == code:
        return
    lines = [number for number, line in enumerate(code.splitlines(), 1) if redacted(line) != line]
    shown = redacted(code.splitlines()[lines[0] - 1]).strip() if lines else ""
    raise InputError(
        f"%export: what would be written holds what looks like a key or a token: {shown:.120}; "
        'read it from the environment instead: os.environ["NAME"]'
    )
