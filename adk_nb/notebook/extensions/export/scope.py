"""The notebook as the writers of an export see it, and the Python literals and calls that they write."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.errors import InputError
from adk_nb.notebook.cells.notebook import Notebook
from adk_nb.notebook.extensions.export.statements import Statement, imports_of, is_function
from adk_nb.notebook.extensions.export.target import Target
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.function_tool import FunctionTool
from adk_nb.workflow.workflow import Workflow

Keywords = dict[str, str | None]
"""Arguments of a call as code; None: the default."""
_MAX_WIDTH = 100
_DEFINITION = re.compile(r"(#.*\n)*(@|def |async def |class )")
_PLAIN = re.compile(r"[^\\\x00-\x09\x0b-\x1f\x7f]*")


class Scope:
    """A notebook, the Python of its cells, and the target of an export; collects notes for the user.

    Args:
        notebook: The notebook.
        statements: The Python of its cells, in the order in which they ran.
        target: The package it is written for.
        folder: The folder of the file that is written.
    """

    def __init__(self, notebook: Notebook, statements: Sequence[Statement], target: Target, folder: Path) -> None:
        self.notebook, self.statements, self.target, self.folder = notebook, statements, target, folder
        self.variables = notebook.variables
        self.notes: dict[str, None] = {}
        """Differences from the notebook, a line each."""
        self.other_models: list[str] = []
        """Agents whose model google-adk lacks."""
        self.renamed: dict[str, str] = {}
        """Functions that are tools with options -> the tool that is written beside them."""
        self._used_members = set(self._sub_agents_of_python())

    def note(self, text: str) -> None:
        """Add a note, once."""
        self.notes[text] = None

    def binding(self, name: str) -> Statement | None:
        """The last statement that bound a name."""
        return next((statement for statement in reversed(self.statements) if name in statement.binds), None)

    def is_key(self, name: str) -> bool:
        """True if `{name}` means the state."""
        notebook = self.notebook
        return notebook.is_key(name) or any(name in notebook.state_of(agent) for agent in notebook.root_names)

    def variable_of(self, value: Any) -> str | None:
        """The variable that holds an object, or the tool made of it."""
        for name, candidate in self.variables.items():
            is_same = candidate is value or (isinstance(candidate, FunctionTool) and candidate.func is value)
            if is_same and name[0] != "_" and (isinstance(value, BaseTool) or name == getattr(value, "__name__", name)):
                return name
        return None

    def is_function_of_a_cell(self, variable: str) -> bool:
        """True if the cells' Python binds a function, and the tool in that variable was made of it."""
        statement = self.binding(variable)
        if statement is None:
            return False
        tool = self.variables[variable]
        definition = self.notebook.tools.get(getattr(tool, "name", ""))
        if is_function(statement) or (definition and definition.tool is tool):
            return True
        return imports_of(statement) is not None and definition is not None

    def member(self, name: str) -> str:
        """The expression of a member of a team; an agent has one parent, so later uses get copies."""
        if name not in self.notebook.agent_names:
            return self.renamed.get(name, name)
        is_graph = isinstance(self.notebook.agent(name), Workflow)
        if name in self._used_members and not (self.target.is_google and is_graph):
            return f"{name}.clone()"  # a graph of google-adk has no parent
        self._used_members.add(name)
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
        agents = {name: value for name, value in self.variables.items() if isinstance(value, BaseAgent)}
        for name in self.notebook.agent_names:
            if not self.notebook.is_of_its_cell(name):
                members = {id(member) for member in self.notebook.agent(name).sub_agents}
                yield from (variable for variable, agent in agents.items() if id(agent) in members)


# ---- Python as text


@dataclass(frozen=True, eq=False)
class Piece:
    """Lines that belong together."""

    text: str
    early: Sequence[str] = ()
    """Names that have to be bound when it runs."""
    late: Sequence[str] = ()
    """Names that have to be bound when the functions in it are called."""


def text_code(text: str) -> str:
    """A string literal, over several lines if the text has several."""
    is_plain = _PLAIN.fullmatch(text) and '"""' not in text and not text.endswith('"')
    if "\n" in text and is_plain:
        return f'"""\\\n{text}"""'
    if is_plain and '"' not in text:
        return f'"{text}"'
    return repr(text)


def text_or_none(text: str | None) -> str | None:
    """A string literal; None for an empty text."""
    return text_code(text) if text else None


def list_code(items: Iterable[str]) -> str:
    """A list of expressions."""
    return f"[{', '.join(items)}]"


def call_code(function: str, keywords: Mapping[str, str | None], *first: str) -> str:
    """A call, on one line or with an argument a line. Keywords that are None are left out."""
    arguments = [*first, *(f"{name}={value}" for name, value in keywords.items() if value is not None)]
    line = f"{function}({', '.join(arguments)})"
    if "\n" not in line and len(line) <= _MAX_WIDTH:
        return line
    return "\n".join([f"{function}(", *(f"    {argument}," for argument in arguments), ")"])


def join_code(texts: Iterable[str]) -> str:
    """Pieces of a file below each other: single lines close together, definitions two lines apart."""
    code = previous = ""
    for text in filter(None, texts):
        is_far = any(_DEFINITION.match(piece) for piece in (text, previous)) or previous.startswith(
            ("import ", "from ")
        )
        gap = "\n\n\n" if is_far else "\n" if "\n" not in text + previous else "\n\n"
        code += gap + text if previous else text
        previous = text
    return code


def is_data(value: Any) -> bool:
    """True if `repr` of a value is a literal of Python with the same value."""
    try:
        literal = ast.literal_eval(repr(value))
        return type(literal) is type(value) and bool(literal == value)
    except Exception:  # any object may be here, with any `repr` and `==`
        return False
