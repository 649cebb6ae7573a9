"""The names there are, by kind: what completion proposes."""

import inspect
from collections.abc import Callable
from pathlib import Path

from adk_nb.errors import ModelNotFoundError
from adk_nb.models.base_llm import BaseLlm
from adk_nb.models.registry import LLMRegistry
from adk_nb.notebook.registry.agent_options import FIELDS
from adk_nb.notebook.registry.notebook import Notebook
from adk_nb.notebook.variables import user_variables
from adk_nb.runtime.interrupts import ALL
from adk_nb.tools.base_tool import BaseTool


def known_names(notebook: Notebook, kind: str) -> list[str]:
    """Names of that kind, in the order to propose them; empty if nothing is known of it."""
    return _KINDS[kind](notebook) if kind in _KINDS else []


def _models(notebook: Notebook) -> list[str]:
    held = [one for one, value in notebook.variables.items() if isinstance(value, BaseLlm) and one[0] != "_"]
    try:
        LLMRegistry.resolve("")
    except ModelNotFoundError as error:  # it names those that it knows
        return [*error.known, *held]
    return held


def _functions(notebook: Notebook) -> list[str]:
    own = _variables(notebook)
    return [one for one in own if inspect.isroutine(held := notebook.variables[one]) or isinstance(held, BaseTool)]


def _variables(notebook: Notebook) -> list[str]:
    own = user_variables(notebook.variables)
    return sorted(name for name in own if not inspect.ismodule(notebook.variables[name]))


def _state(notebook: Notebook) -> list[str]:
    answers = {one.output_key for one in notebook.definitions.values() if one.output_key}
    return sorted({*notebook.sessions.state(), *notebook.sessions.keys, *answers})


def _sessions(notebook: Notebook) -> list[str]:
    return sorted({*notebook.sessions.names, notebook.sessions.current})


def _turns(notebook: Notebook) -> list[str]:
    return [str(-number) for number, _ in enumerate(notebook.sessions.history().turns, 1)]


def _interrupts(notebook: Notebook) -> list[str]:
    return [str(interrupt.number) for interrupt in notebook.sessions.history().interrupts(kinds=ALL)]


def _files(notebook: Notebook) -> list[str]:
    return sorted(one.name for one in Path().glob("*.json"))


def _attachments(notebook: Notebook) -> list[str]:
    files = [one.name for one in Path().iterdir() if one.is_file() and one.name[0] != "." and " " not in one.name]
    return [*_variables(notebook), *sorted(files)]


_KINDS: dict[str, Callable[[Notebook], list[str]]] = {
    "attachment": _attachments,
    "agent": lambda notebook: notebook.addressees,
    "interrupt": _interrupts,
    "document": lambda notebook: sorted(
        one.name for one in Path().iterdir() if one.suffix in (".yaml", ".yml", ".json")
    ),
    "field": lambda notebook: FIELDS,
    "file": _files,
    "function": _functions,
    "node": lambda notebook: [*notebook.node_names, "START", "END"],
    "model": _models,
    "session": _sessions,
    "state": _state,
    "turn": _turns,
    "tool": lambda notebook: notebook.tool_names,
    "variable": _variables,
}
