"""What an export is written from: the notebook, the Python of its cells, and the target."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.errors import InputError
from adk_nb.notebook.export.statements import Statement, imports_of, is_function
from adk_nb.notebook.export.target import Target
from adk_nb.notebook.registry.notebook import Notebook
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.function_tool import FunctionTool
from adk_nb.workflow.workflow import Workflow


class Scope:
    """The notebook as the writers of agents, teams and tools see it; collects notes for the user.

    Args:
        notebook: What is exported.
        statements: The Python of its cells, in the order in which they ran.
        target: The package it is written for.
        folder: The folder of the file that is written.
    """

    def __init__(self, notebook: Notebook, statements: Sequence[Statement], target: Target, folder: Path) -> None:
        self.notebook, self.statements, self.target, self.folder = notebook, statements, target, folder
        self.variables = notebook.variables
        self.notes: dict[str, None] = {}
        """What differs from the notebook, a line each."""
        self.other_models: list[str] = []
        """Agents whose model google-adk lacks."""
        self.renamed: dict[str, str] = {}
        """Functions that are tools with options -> the tool that is written beside them."""
        self._placed = set(self._sub_agents_of_python())

    def note(self, text: str) -> None:
        """Say once what differs."""
        self.notes[text] = None

    def binding(self, name: str) -> Statement | None:
        """The statement that bound a name last."""
        return next((statement for statement in reversed(self.statements) if name in statement.binds), None)

    def is_key(self, name: str) -> bool:
        """Whether `{name}` means the state."""
        return self.notebook.is_key(name) or name in self.notebook.sessions.state()

    def variable_of(self, value: Any) -> str | None:
        """The variable that holds an object, or the tool made of it."""
        for name, held in self.variables.items():
            same = held is value or (isinstance(held, FunctionTool) and held.func is value)
            if same and name[0] != "_" and (isinstance(value, BaseTool) or name == getattr(value, "__name__", name)):
                return name
        return None

    def is_function_of_a_cell(self, variable: str) -> bool:
        """Whether the cells' Python binds a function, and the tool in that variable was made of it."""
        statement = self.binding(variable)
        if statement is None:
            return False
        tool = self.variables[variable]
        defined = self.notebook.tools.get(getattr(tool, "name", ""))
        if is_function(statement) or (defined and defined.tool is tool):
            return True
        return imports_of(statement) is not None and defined is not None

    def member(self, name: str) -> str:
        """The expression of a member of a team; an agent has one parent, so later ones get copies."""
        if name not in self.notebook.agent_names:
            return self.renamed.get(name, name)
        is_graph = isinstance(self.notebook.agent(name), Workflow)
        if name in self._placed and not (self.target.is_google and is_graph):
            return f"{name}.clone()"  # a graph of google-adk has no parent
        self._placed.add(name)
        return name

    def agent_member(self, name: str) -> str:
        """As `member`, where google-adk takes no workflow.

        Raises:
            InputError: It is one.
        """
        if self.target.is_google and isinstance(self.notebook.node_like(name), Workflow):
            raise InputError(
                f"%export: google-adk takes no workflow under an agent, and {name} is one; make it the --root, or "
                "write a script: %export agent.py"
            )
        return self.member(name)

    def _sub_agents_of_python(self) -> Iterator[str]:
        """The variables of agents under an agent that Python has made."""
        agents = {name: held for name, held in self.variables.items() if isinstance(held, BaseAgent)}
        for name in self.notebook.agent_names:
            if not self.notebook.is_of_its_cell(name):
                members = self.notebook.agent(name).sub_agents
                yield from (variable for variable, held in agents.items() if any(held is one for one in members))
