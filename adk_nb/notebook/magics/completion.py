"""Completion in the lines and cells of the magics: options, values, and names of what is defined."""

import inspect
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from adk_nb.errors import ModelNotFoundError
from adk_nb.models.base_llm import BaseLlm
from adk_nb.models.default_model import running_servers
from adk_nb.models.registry import LLMRegistry
from adk_nb.notebook.cells.agent_cell import FIELDS
from adk_nb.notebook.cells.notebook import Notebook
from adk_nb.notebook.magics.catalog import grammar
from adk_nb.notebook.magics.grammar import Grammar, Option
from adk_nb.notebook.registry import registry
from adk_nb.notebook.variables import user_variables
from adk_nb.runtime.interrupts import ALL
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.data_tool.frames import SUFFIXES, library_of

_CELL = re.compile(r"\s*%%(\w+)(?:\s|$)")
_LINE = re.compile(r"(?:^|=)\s*%(\w+)\s(.*)$", re.DOTALL)
_VARIABLE = re.compile(r"(?<!\{)\{\{(\w*)$")
_STATE_KEY = re.compile(r"(?<![{$])\{((?:\w+:)?\w*)$")
_NODE = re.compile(r"(?:^|[>(,→])\s*(\w*)$")
_GGUF = "gguf:"
"""The prefix of models in files."""
_TEAM = re.compile(r"--kind[\s=]+(?!llm\b)\w")


class Proposals(NamedTuple):
    """Completions of the word at the cursor."""

    fragment: str
    """The typed part of the word."""
    names: list[str]
    kind: str
    """The type that IPython shows beside each name."""


def propose(notebook: Notebook, cell: str, line: int, prefix: str) -> Proposals | None:
    """Return the completions at the cursor; None: leave them to Python.

    Args:
        notebook: The source of names.
        cell: The text of the cell.
        line: The number of the cursor's line, from 0.
        prefix: That line up to the cursor.
    """
    lines = cell.split("\n")
    first = next((number for number, text in enumerate(lines) if text.strip()), 0)
    cell_magic = _CELL.match(lines[first])
    if cell_magic and not registry.has_magic(cell_magic[1]):
        return None
    if cell_magic and line > first:
        magic = cell_magic[1]
        if magic == "workflow" or (magic == "agent" and _TEAM.search(lines[first])):
            kind = "node" if magic == "workflow" else "agent"
            node = _NODE.search(prefix)
            return Proposals(node[1], known_names(notebook, kind), kind) if node else None
        if magic in ("agent", "chat") and (match := _VARIABLE.search(prefix)):
            return Proposals(match[1], known_names(notebook, "variable"), "variable")
        if magic == "agent" and (match := _STATE_KEY.search(prefix)):
            keys = [*known_names(notebook, "state"), "user:", "app:", "temp:", "artifact."]
            return Proposals(match[1], keys, "state")
        return None
    if cell_magic and line == first and len(prefix) > cell_magic.end(1):
        return _on_line(notebook, grammar(cell_magic[1]), prefix[cell_magic.end(1) :])
    if not cell_magic and (line_magic := _LINE.search(prefix)) and registry.has_magic(line_magic[1]):
        return _on_line(notebook, grammar(line_magic[1]), line_magic[2])
    return None


def _on_line(notebook: Notebook, grammar: Grammar, typed: str) -> Proposals | None:
    tokens = typed.split()
    fragment = "" if not tokens or typed[-1].isspace() else tokens.pop()
    option = grammar.option(tokens[-1]) if tokens and tokens[-1].startswith("-") else None
    if option and option.value and not option.bare and "=" not in tokens[-1]:
        return _value(notebook, option, fragment)
    if fragment.startswith("--") and "=" in fragment and (option := grammar.option(fragment)):
        return _value(notebook, option, fragment.partition("=")[2])
    if fragment.startswith("-"):
        used = {option.name for token in tokens if (option := grammar.option(token)) and not option.many}
        return Proposals(
            fragment, [f"--{option.name}" for option in grammar.all_options if option.name not in used], "option"
        )
    return _argument(notebook, grammar, tokens, fragment)


def _value(notebook: Notebook, option: Option, typed: str) -> Proposals | None:
    if option.names == "model" and typed.startswith(_GGUF):
        return Proposals(typed, _gguf_files(typed.removeprefix(_GGUF)), "file")
    if values := option.choices or option.proposals:
        return Proposals(typed, list(values), "value")
    if not option.names:
        return None
    names = known_names(notebook, option.names)
    if option.names == "model":
        names += [name for server in running_servers() for name in server.names]
    if option.names == "field":
        return Proposals(typed, [f"{name}=" for name in names], "field")
    if option.convert is str:
        return Proposals(typed, names, option.names)
    *listed, fragment = typed.split(",")
    return Proposals(fragment, [name for name in names if name not in listed], option.names)


def _argument(notebook: Notebook, grammar: Grammar, tokens: list[str], fragment: str) -> Proposals | None:
    values = [False, *(grammar.takes_next(token) for token in tokens)]
    plain = [
        token for token, is_value in zip(tokens, values, strict=False) if not is_value and not token.startswith("-")
    ]
    arguments = grammar.arguments
    if not arguments or (len(plain) >= len(arguments) and not arguments[-1].many):
        return None
    argument = arguments[min(len(plain), len(arguments) - 1)]
    if argument.choices:
        return Proposals(fragment, list(argument.choices), "value")
    kind = argument.names_after.get(plain[-1], "") if argument.names_after else argument.names
    return Proposals(fragment, known_names(notebook, kind), kind) if kind else None


# ---- names


def known_names(notebook: Notebook, kind: str) -> list[str]:
    """Return the names of a kind (see `Option.names`), in the order to propose them."""
    return _KINDS[kind](notebook) if kind in _KINDS else []


def known_among(notebook: Notebook, names: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return those of `names`, by kind, that the notebook has. A variable may hold an agent, a tool or a node."""
    known = {kind: {*known_names(notebook, kind)} for kind in names}
    for kind in known.keys() - {"state"}:
        known[kind] |= notebook.variables.keys()
    return {kind: [name for name in asked if name in known[kind]] for kind, asked in names.items()}


def _models(notebook: Notebook) -> list[str]:
    variables = [name for name, value in notebook.variables.items() if isinstance(value, BaseLlm) and name[0] != "_"]
    try:
        LLMRegistry.resolve("")
    except ModelNotFoundError as error:  # the error lists the known models
        return [*error.known, *(name for name in _gguf_files("") if name[-1] != "/"), *variables]
    return variables


def _gguf_files(typed: str) -> list[str]:
    """Files of models and folders, as `-m` takes them, in the folder that `typed` names."""
    start = typed[: typed.rfind("/") + 1]
    folder = Path(start).expanduser()
    if not folder.is_dir() or not os.access(folder, os.R_OK):
        return []
    entries = sorted(entry for entry in folder.iterdir() if entry.name[0] != "." and " " not in entry.name)
    files = [f"{_GGUF}{start}{entry.name}" for entry in entries if entry.suffix == ".gguf"]
    return files + [f"{_GGUF}{start}{entry.name}/" for entry in entries if entry.is_dir()]


def _variables(notebook: Notebook) -> list[str]:
    names = user_variables(notebook.variables)
    return sorted(name for name in names if not inspect.ismodule(notebook.variables[name]))


def _functions(notebook: Notebook) -> list[str]:
    values = {name: notebook.variables[name] for name in _variables(notebook)}
    return [name for name, value in values.items() if inspect.isroutine(value) or isinstance(value, BaseTool)]


def _state(notebook: Notebook) -> list[str]:
    outputs = {agent.output_key for agent in notebook.definitions.values() if agent.output_key}
    return sorted({*notebook.sessions.state(), *notebook.sessions.keys, *outputs})


def _files(*suffixes: str) -> list[str]:
    return sorted(file.name for file in Path().iterdir() if file.suffix in suffixes)


def _folders(notebook: Notebook) -> list[str]:
    """Folders that hold skills, here and one level below; without any, the folders here."""
    folders = [entry for entry in sorted(Path().iterdir()) if _is_plain_folder(entry)]
    below = [entry for folder in folders for entry in sorted(folder.iterdir()) if _is_plain_folder(entry)]
    with_skills = [
        folder for folder in [*folders, *below] if any((entry / "SKILL.md").exists() for entry in folder.iterdir())
    ]
    return [folder.as_posix() for folder in with_skills or folders]


def _is_plain_folder(path: Path) -> bool:
    return path.is_dir() and path.name[0] not in "._" and " " not in path.name and os.access(path, os.R_OK)


def _attachments(notebook: Notebook) -> list[str]:
    files = [file.name for file in Path().iterdir() if file.is_file() and file.name[0] != "." and " " not in file.name]
    return [*_variables(notebook), *sorted(files)]


def _data(notebook: Notebook) -> list[str]:
    """Variables with frames, and files that are read as tables."""
    frames = [name for name in _variables(notebook) if library_of(notebook.variables[name])]
    return [*frames, *_files(*(f".{suffix}" for suffix in SUFFIXES))]


def _databases(notebook: Notebook) -> list[str]:
    return [*(f"sqlite:///{file}" for file in _files(".db", ".sqlite", ".sqlite3")), "postgresql://"]


_KINDS: dict[str, Callable[[Notebook], list[str]]] = {
    "agent": lambda notebook: notebook.addressees,
    "attachment": _attachments,
    "data": _data,
    "database": _databases,
    "document": lambda notebook: _files(".yaml", ".yml", ".json"),
    "field": lambda notebook: FIELDS,
    "file": lambda notebook: _files(".json"),
    "folder": _folders,
    "function": _functions,
    "interrupt": lambda notebook: [str(open_.number) for open_ in notebook.sessions.history().interrupts(kinds=ALL)],
    "model": _models,
    "node": lambda notebook: [*notebook.node_names, "START", "END"],
    "session": lambda notebook: sorted({*notebook.sessions.names, notebook.sessions.current}),
    "state": _state,
    "tool": lambda notebook: notebook.tool_names,
    "turn": lambda notebook: [str(-number) for number, _ in enumerate(notebook.sessions.history().turns, 1)],
    "variable": _variables,
}
