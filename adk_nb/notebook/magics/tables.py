"""What `%agents` and `%tools` show: who and what is defined, where, and what is missing in it."""

from collections.abc import Iterator, Sequence
from typing import Any

from adk_nb import sync
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.errors import CredentialError, InputError
from adk_nb.models.base_llm import BaseLlm
from adk_nb.models.default_model import default_model
from adk_nb.notebook.magics.reports import as_json, in_a_table
from adk_nb.notebook.magics.shown import Shown, said
from adk_nb.notebook.registry.agent_cell import stale_in
from adk_nb.notebook.registry.notebook import Notebook
from adk_nb.notebook.view.drawing import kind_of
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.base_toolset import BaseToolset
from adk_nb.tools.function_tool import FunctionTool

_NO_WORDS = "no docstring: the model is told only the name"


def agents(notebook: Notebook) -> Shown:
    """A row for each agent, and what of its cell is stale."""
    names = notebook.agent_names
    if not names:
        return said("no agent is defined yet; begin a cell with %%agent NAME, see %%agent?")
    facts = [_agent(notebook, one) for one in names]
    headers = ["agent", "kind", "model", "tools", "agents", "defined", "used"]
    rows = [_agent_row(one) for one in facts]
    shown = _table(headers, rows, ("kind", "agents", "used"))
    return shown.below(*(line for one in facts for line in _stale(one)))


def _agent_row(one: dict[str, Any]) -> list[str]:
    named = [", ".join(one["tools"]), ", ".join(one["agents"])]
    cells = [_cell(one["defined_in"]) or "Python", _cell(one["last_used"])]
    return [_versioned(one["name"], one["version"]), one["kind"] or one["mode"], one["model"], *named, *cells]


def _versioned(name: str, version: int | None) -> str:
    return f"{name} v{version}" if version else name


def agents_as_json(notebook: Notebook) -> Shown:
    """The same as JSON, in the order of the table."""
    return as_json([_agent(notebook, one) for one in notebook.agent_names])


def agent_cell(notebook: Notebook, name: str) -> Shown:
    """What an agent is, and the cell that defines it; of one that Python has made, its instruction."""
    one = _agent(notebook, name)
    definition = notebook.definitions.get(name)
    facts = [f"v{one['version']}" if one["version"] else "Python", one["kind"] or one["mode"], one["model"]]
    facts += [f"{word} {', '.join(one[word])}" for word in ("tools", "agents") if one[word]]
    facts += [f"{word.replace('_', ' ')} {_cell(one[word])}" for word in ("defined_in", "last_used") if one[word]]
    line = " · ".join([name, *filter(None, facts)])
    instruction = getattr(notebook.agent(name), "instruction", "")
    if definition and notebook.is_of_its_cell(name) and instruction in ("", definition.instruction):
        return said(line, *_stale(one), definition.source or definition.instruction.strip())
    return said(line, instruction if isinstance(instruction, str) else repr(instruction))


def _stale(one: dict[str, Any]) -> Iterator[str]:
    if one["stale"]:
        yield f"stale in {one['name']}: {', '.join(one['stale'])}; run In[{one['defined_in']}] again to take it over"


def _agent(notebook: Notebook, name: str) -> dict[str, Any]:
    agent = notebook.agent(name)
    definition = notebook.definitions.get(name)
    of_a_cell = definition if definition and notebook.is_of_its_cell(name) else None
    named = list(of_a_cell.tools) if of_a_cell else [_tool_name(one) for one in getattr(agent, "tools", [])]
    under = of_a_cell.members if of_a_cell and of_a_cell.members else [one.name for one in agent.sub_agents]
    kind = kind_of(agent)
    return {
        "name": name,
        "version": of_a_cell.version if of_a_cell else None,
        "kind": kind,
        "mode": getattr(agent, "mode", None) or "",
        "model": "" if kind else _model_of(agent),
        "tools": named,
        "agents": list(under),
        "defined_in": of_a_cell.cell if of_a_cell else None,
        "last_used": notebook.used.get(agent.name) or None,
        "stale": stale_in(of_a_cell, notebook.variables) if of_a_cell else [],
    }


def _model_of(agent: BaseAgent) -> str:
    model = getattr(agent, "model", "")
    return model.model if isinstance(model, BaseLlm) else str(model or default_model())


def _tool_name(tool: Any) -> str:
    return str(getattr(tool, "name", None) or getattr(tool, "__name__", type(tool).__name__))


def _cell(number: int | None) -> str:
    return f"In[{number}]" if number else ""


def tools(notebook: Notebook) -> Shown:
    """A row for each tool, and what is missing in it."""
    names = notebook.tool_names
    if not names:
        return said("no tool is defined yet; begin a cell with %%tool, see %%tool?")
    effects = any(_effect(notebook, one) for one in names)
    headers = ["tool", "description", "approval, effect" if effects else "approval", "defined", "used by"]
    shown = _table(headers, [_tool_row(notebook, one) for one in names], (headers[2], "used by"))
    return shown.below(*(line for one in names for line in _faults(notebook, one)))


def _tool_row(notebook: Notebook, name: str) -> list[str]:
    definition = notebook.tools.get(name)
    version = definition.version if definition else None
    where = f"In[{definition.cell}]" if definition else "Python"
    used = ", ".join(notebook.users_of(name))
    if toolset := notebook.toolset(name):
        told = f"{type(toolset).__name__}: %tools --schema {name} asks it what it has"
        return [_versioned(name, version), told, _approval(toolset), where, used]
    tool = notebook.tool(name)
    described = tool.description.strip().splitlines()
    words = described[0] if described else _NO_WORDS
    runs = "; ".join(filter(None, [_approval(tool), _effect(notebook, name)]))
    return [_versioned(_spelled(tool), version), words, runs, where, used]


def _effect(notebook: Notebook, name: str) -> str:
    """What it means to call a tool again; empty if it is `once`, as usual."""
    effect = "once" if notebook.toolset(name) else notebook.tool(name).effect
    return "" if effect == "once" else effect


def _faults(notebook: Notebook, name: str) -> Iterator[str]:
    """What a model is not told of a tool's parameters, a line each."""
    tool = None if notebook.toolset(name) else notebook.tool(name)
    if isinstance(tool, FunctionTool):
        for fault in tool.signature.faults.values():
            yield f"{name}: {fault}"


def _spelled(tool: BaseTool) -> str:
    return f"{tool.name}({', '.join(tool.signature.names)})" if isinstance(tool, FunctionTool) else tool.name


def _approval(tool: BaseTool | BaseToolset) -> str:
    asks = getattr(tool, "require_confirmation", False)
    if isinstance(asks, str):
        return f"if {asks}"
    return "by condition" if callable(asks) else ("always" if asks else "")


def schema(notebook: Notebook, name: str) -> Shown:
    """What the model is told of a tool, or of each that a toolset has now.

    Raises:
        InputError: The toolset does not reach what it gets them from.
    """
    return as_json(_declared(notebook, name))


def schemas(notebook: Notebook) -> Shown:
    """The same of all tools."""
    return as_json({name: _declared(notebook, name) for name in notebook.tool_names})


def _declared(notebook: Notebook, name: str) -> Any:
    if toolset := notebook.toolset(name):
        try:
            found = sync.run(toolset.get_tools_with_prefix())
        except (OSError, CredentialError) as error:
            raise InputError(f"%tools --schema {name}: it cannot be asked what it has: {error}") from error
        each = [tool.declaration for tool in found]
        return [one.model_dump(exclude_none=True, mode="json") for one in each if one]
    declared = notebook.tool(name).declaration
    return declared.model_dump(exclude_none=True, mode="json") if declared else None


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]], optional: Sequence[str]) -> Shown:
    """A table without those optional columns that have nothing in them."""
    kept = [at for at, header in enumerate(headers) if header not in optional or any(row[at] for row in rows)]
    return in_a_table([headers[at] for at in kept], [[row[at] for at in kept] for row in rows])
