"""What the magics that look at a notebook show: its agents, tools, state, events and open approvals."""

import json
import shutil
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from IPython.core.getipython import get_ipython

from adk_nb import sync
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.errors import CredentialError, InputError, ToolNotFoundError
from adk_nb.events.event import Event
from adk_nb.models.base_llm import BaseLlm
from adk_nb.models.registry import default_model
from adk_nb.notebook.cells.notebook import Notebook
from adk_nb.notebook.cut_runs import cut_in_brief
from adk_nb.notebook.decisions import edited_words, redefined, redefined_words
from adk_nb.notebook.magics.shown import Shown, said
from adk_nb.notebook.reply import Reply
from adk_nb.notebook.view import input_words
from adk_nb.notebook.view.credential_words import way
from adk_nb.notebook.view.drawing import kind_of
from adk_nb.notebook.view.event_words import asks_text
from adk_nb.notebook.view.render import Bundle, event_table, table, to_be_answered, to_be_let_in
from adk_nb.notebook.view.rows import rows_of
from adk_nb.notebook.view.state_changes import change_text
from adk_nb.notebook.view.view_state import Json
from adk_nb.runtime import credentials, inputs
from adk_nb.runtime.approvals import Pending, pending
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.base_toolset import BaseToolset
from adk_nb.tools.function_tool import FunctionTool


def agents(notebook: Notebook) -> Shown:
    """A row for each agent."""
    names = notebook.agent_names
    if not names:
        return said("no agent is defined yet; begin a cell with %%agent NAME, see %%agent?")
    headers = ["agent", "version", "kind", "model", "tools", "agents", "defined in"]
    rows = [_agent_row(notebook, one) for one in names]
    needed = [
        at for at, header in enumerate(headers) if header not in ("kind", "agents") or any(row[at] for row in rows)
    ]
    return in_a_table([headers[at] for at in needed], [[row[at] for at in needed] for row in rows])


def agent_cell(notebook: Notebook, name: str) -> Shown:
    """The instruction of an agent, with its name and options."""
    agent = notebook.agent(name)
    definition = notebook.definitions.get(name)
    if definition and isinstance(agent, LlmAgent) and agent.instruction == definition.instruction:
        return said(_in_a_line(notebook, name), definition.instruction.rstrip())
    if definition and definition.members and notebook.is_of_its_cell(name):
        return said(_in_a_line(notebook, name), definition.instruction.strip())
    instruction = getattr(agent, "instruction", "")
    return said(_in_a_line(notebook, name), instruction if isinstance(instruction, str) else repr(instruction))


def _in_a_line(notebook: Notebook, name: str) -> str:
    agent, version, kind, model, tools, agents, where = _agent_row(notebook, name)
    return "  ".join([agent, version, *filter(None, [kind]), model, tools, *filter(None, [agents]), where])


def tools(notebook: Notebook) -> Shown:
    """A row for each tool, and what is missing in it."""
    names = notebook.tool_names
    if not names:
        return said("no tool is defined yet; begin a cell with %%tool, see %%tool?")
    headers = ["tool", "description", "approval", "defined in", "used by"]
    return in_a_table(headers, [_tool_row(notebook, one) for one in names])


def schema(notebook: Notebook, name: str) -> Shown:
    """What the model is told of a tool, or of each that a toolset has now.

    Raises:
        InputError: The toolset does not reach what it gets them from.
    """
    if toolset := notebook.toolset(name):
        try:
            tools = sync.run(toolset.get_tools_with_prefix())
        except (OSError, CredentialError) as error:
            raise InputError(f"%tools --schema {name}: it cannot be asked what it has: {error}") from error
        each = [tool.declaration for tool in tools]
        return as_json([one.model_dump(exclude_none=True, mode="json") for one in each if one])
    declared = notebook.tool(name).declaration
    return as_json(declared.model_dump(exclude_none=True, mode="json") if declared else None)


def state(notebook: Notebook, session: str | None, keys: Sequence[str] = ()) -> Shown:
    """A session's state, or these keys of it, sorted by key."""
    now = notebook.sessions.state(session)
    if not now:
        return said(
            f"the state of session {session or notebook.sessions.current!r} is empty; %state key=value sets a key"
        )
    return in_a_table(["key", "value"], [[key, short(now[key])] for key in sorted(keys or now)])


def state_changes(notebook: Notebook, session: str | None) -> Shown:
    """What each event changed, oldest first; events have the numbers that %trace shows."""
    changed: list[list[str]] = []
    for number, row in enumerate(rows_of(notebook.sessions.events(session)), 1):
        changes: list[Json] = row["changes"] or []
        changed += [[str(number), row["author"], change_text(change)] for change in changes]
    if not changed:
        return said(f"nothing has changed the state of session {session or notebook.sessions.current!r} yet")
    return in_a_table(["event", "author", "change"], changed)


def last_reply(notebook: Notebook) -> Reply:
    """What `_run` holds.

    Raises:
        InputError: Nothing was asked yet.
    """
    last = notebook.variables.get("_run")
    if not isinstance(last, Reply):
        raise InputError("%trace --last: nothing was asked yet; type %chat first")
    return last


def approvals(notebook: Notebook, session: str | None) -> Shown:
    """A row for each open approval, then what to open and to type for each tool that waits to be let in, and what to
    type for what else waits.
    """
    events = notebook.sessions.events(session)
    waiting, asked, left = pending(events), credentials.pending(events), inputs.pending(events)
    if not (waiting or asked or left):
        return said(none_open(notebook, session or notebook.sessions.current))
    shown = _approvals(waiting) if waiting else None
    shown = to_be_let_in(asked, way("%confirm"), below=shown) if asked else shown
    magic = notebook.confirm_magic(session or notebook.sessions.current)
    whole = to_be_answered(left, input_words.ways(magic), below=shown) if left else shown or {}
    return Shown(whole).below(*edited_since(notebook, waiting, events, magic))


def none_open(notebook: Notebook, session: str, why: str = "") -> str:
    """That no approval is open: `why`, or where a run was cut, what to type."""
    found = notebook.sessions.find(session)
    if found and notebook.sessions.cut(found):
        why = f"; {cut_in_brief(notebook.confirm_magic(session))}"
    return f"no approval is open in session {session!r}{why}"


def edited_since(notebook: Notebook, waiting: Sequence[Pending], events: Sequence[Event], magic: str) -> list[str]:
    """What was edited since approvals were asked, a line each, and what comes of it."""
    told: dict[str, None] = {}
    for number, one in enumerate(waiting, 1):
        if name := notebook.is_edited(one.id, events):
            told[edited_words(name)] = None
        heard_by = notebook.who_hears(one.id, one.led_by or one.author, events)
        with suppress(ToolNotFoundError):  # its cell was not run yet
            if heard_by and redefined(one, notebook.agent(heard_by), events):
                told[redefined_words(one, magic, number if len(waiting) > 1 else None)] = None
    return list(told)


def waits_otherwise(notebook: Notebook, session: str | None) -> bool:
    """Whether something waits that is no approval."""
    events = notebook.sessions.events(session)
    return bool(credentials.pending(events) or inputs.pending(events))


def _approvals(waiting: Sequence[Pending]) -> Bundle:
    rows = [
        [str(number), one.author, one.call.name or "", short(one.call.args or {}), asks_text(one)]
        for number, one in enumerate(waiting, 1)
    ]
    return table(["approval", "agent", "tool", "arguments", "asks"], rows, width=page_width())


def as_json(value: Any, *, indent: int | None = 2) -> Shown:
    """`value` as JSON text."""
    return said(json.dumps(value, indent=indent, ensure_ascii=False, default=str))


def in_a_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> Shown:
    """Rows under their headers, as wide as there is room."""
    return Shown(table(headers, rows, width=page_width()))


def page_width() -> int | None:
    """Characters of a terminal's line; None in a kernel: what it saves is the same on every machine."""
    kinds = [one.__name__ for one in type(get_ipython()).__mro__]
    return shutil.get_terminal_size().columns if "TerminalInteractiveShell" in kinds else None


def _agent_row(notebook: Notebook, name: str) -> list[str]:
    agent = notebook.agent(name)
    definition = notebook.definitions.get(name)
    of_a_cell = definition if definition and notebook.is_of_its_cell(name) else None
    version = f"v{of_a_cell.version}" if of_a_cell else ""
    where = f"In[{of_a_cell.cell}]" if of_a_cell else "Python"
    named = list(of_a_cell.tools) if of_a_cell else [_tool_name(one) for one in getattr(agent, "tools", [])]
    kind = kind_of(agent)
    under = of_a_cell.members if of_a_cell and of_a_cell.members else [one.name for one in agent.sub_agents]
    mode = getattr(agent, "mode", None) or ""
    return [name, version, kind or mode, "" if kind else _model_of(agent), ", ".join(named), ", ".join(under), where]


def _model_of(agent: BaseAgent) -> str:
    model = getattr(agent, "model", "")
    return model.model if isinstance(model, BaseLlm) else str(model or default_model())


def _tool_name(tool: Any) -> str:
    return str(getattr(tool, "name", None) or getattr(tool, "__name__", type(tool).__name__))


def _tool_row(notebook: Notebook, name: str) -> list[str]:
    if toolset := notebook.toolset(name):
        told = f"{type(toolset).__name__}: %tools --schema {name} asks it what it has"
        return [name, told, _approval(toolset), "Python", ", ".join(notebook.users_of(name))]
    tool = notebook.tool(name)
    definition = notebook.tools.get(name)
    described = tool.description.strip().splitlines()
    return [
        _spelled(tool),
        described[0] if described else "no docstring: the model is told only the name",
        _approval(tool),
        f"In[{definition.cell}]" if definition else "Python",
        ", ".join(notebook.users_of(name)),
    ]


def _spelled(tool: BaseTool) -> str:
    if not isinstance(tool, FunctionTool):
        return tool.name
    return f"{tool.name}({', '.join(tool.signature.names)})"


def _approval(tool: BaseTool | BaseToolset) -> str:
    asks = getattr(tool, "require_confirmation", False)
    if isinstance(asks, str):
        return f"if {asks}"
    return "by condition" if callable(asks) else ("always" if asks else "")


def short(value: Any) -> str:
    """`value` as JSON on one line."""
    return json.dumps(value, ensure_ascii=False, default=str)
