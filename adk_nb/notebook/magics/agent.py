"""`%%agent`: define an agent. `%agents`: list, draw or remove agents."""

import argparse
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, cast

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.errors import InputError, UserError, closest
from adk_nb.models.base_llm import BaseLlm
from adk_nb.notebook import settings
from adk_nb.notebook.cells import agent_cell
from adk_nb.notebook.cells.agent_cell import stale_variables
from adk_nb.notebook.cells.definitions import AddedValue, AgentDefinition, FieldValue
from adk_nb.notebook.cells.notebook import Notebook
from adk_nb.notebook.magics import values
from adk_nb.notebook.magics.grammar import AgentOption, Argument, Grammar, Option
from adk_nb.notebook.magics.output import Host, Output, as_json, table, text
from adk_nb.notebook.registry import resolve
from adk_nb.notebook.view.drawing import drawing_of, tree_of
from adk_nb.notebook.view.panels.graph import drawn
from adk_nb.notebook.view.panels.graph import picture as picture_of
from adk_nb.notebook.view.plain_text import one_line
from adk_nb.notebook.view.writers import html

REPLACE_OPTION = Option("--replace", "replace a tool or an agent that has this name")

AGENT = Grammar(
    "agent",
    "Define an agent: its name on the line, its instruction below. Run the cell again to change it.",
    cells=True,
    body="prose",
    examples=[
        "%%agent weather -t get_weather\nAnswer in one sentence.\nAlways call get_weather; never guess.",
        "%%agent guide --model gemini-3.5-flash-lite --output-key plan\nPlan a trip for {user:name?} within {budget}.",
        "%%agent planner --root\nThe season table is:\n{{season_table}}",
        "%%agent desk --sub tickets,tours\nSend visitors to the colleague who can help them.",
        "%%agent pipeline --kind sequential\ndraft -> critic -> editor",
        "%%agent refine --kind loop --max-iterations 4\nwriter -> critic\nuntil: session_state.get('score', 0) >= 8",
        "%%agent ask_all --kind parallel\nweather, news",
        "%%agent reader --output-schema Trip --set include_contents=none\nRead the message and fill in the form.",
        "%%agent clerk --skills skills\nAnswer letters of customers.",
        "%%agent researcher\n---\nmodel: gemini-3.8-flash\ntools: [search, read_page]\nset:\n  include_contents: none\n"
        "---\nYou are a careful researcher. Cite a source for each claim.",
    ],
    arguments=[
        Argument("NAME", "a Python name; the variable of that name holds the agent", needed=True, names="agent")
    ],
    options=[
        Option("-m, --model MODEL", "a model, or a variable that holds one or its name", names="model"),
        Option(
            "-t, --tools a,b", "names of its tools, which later cells may define", names="tool", convert=values.names
        ),
        Option(
            "--sub a,b",
            "names of its sub-agents, which later cells may define; their --mode is how it uses them",
            names="agent",
            convert=values.names,
        ),
        Option(
            "--mode MODE",
            "as a sub-agent: chat takes over; single_turn is called and answers; task is called and may ask the user",
            choices=("chat", "single_turn", "task"),
        ),
        Option(
            "--kind KIND",
            "sequential, parallel or loop: a team of the agents named below the line",
            choices=("sequential", "parallel", "loop"),
            default="llm",
            hints=dict.fromkeys(("graph", "workflow"), "for a graph, begin the cell with %%workflow"),
        ),
        Option("--description TEXT", "its purpose, for agents that choose between others"),
        Option("--output-key KEY", "the state key for its answers", names="state"),
        Option(
            "--output-schema VAR",
            "the type of its answers: a variable with a pydantic class, another type, or a JSON schema",
            names="variable",
        ),
        Option("--input-schema VAR", "the type of messages to it, likewise", names="variable"),
        Option(
            "--max-iterations N",
            "limit of model calls in a turn (16), or of passes of a loop",
            convert=values.positive_integer,
        ),
        Option(
            "--set k=v",
            "another field of LlmAgent: a JSON or Python value, a variable, or text",
            many=True,
            names="field",
        ),
        Option("--raw", "leave braces in the instruction as they are"),
        Option("--root", "make it the agent for %chat lines that name none"),
        REPLACE_OPTION,
    ],
    twin='weather = LlmAgent(name="weather", instruction="...", tools=[get_weather])',
    pairs=True,
    surplus_hint="the name is one word; write the instruction below the line",
)

_BOOLEANS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_HINTS = {"name": "write the name after %%agent", "instruction": "write the instruction below the second ---"}
"""Keys that a front matter cannot have -> where to write them."""


def agent(host: Host, line: str, cell: str | None) -> Any:
    """Define an agent.

    Raises:
        UserError: The cell is wrong; nothing was changed.
    """
    with failures_noted(host, AGENT, line):
        return _agent(host, line, cell)


def _agent(host: Host, line: str, cell: str | None) -> Any:
    args, body, note = parse(AGENT, line, cell)
    kind, notebook = args.kind or "llm", host.notebook
    is_llm = kind == "llm"
    if not is_llm:
        _check_team(args)
    if not body.strip():
        problem = "has no instruction; write it below the line, see %%agent?"
        problem = problem if is_llm else "names no agents; write them below the line, as draft -> review"
        raise InputError(f"%%agent {args.name} {problem}")
    model = notebook.model_named(args.model) if args.model else ""
    definition = AgentDefinition(
        name=args.name,
        kind=kind,
        cell=host.cell_number,
        instruction=body.strip("\n") if is_llm else body.rstrip(),
        model=model if isinstance(model, str) else args.model,
        model_object=model if isinstance(model, BaseLlm) else None,
        tools=tuple(dict.fromkeys(args.tools or ())),
        options=_added_values(host, args),
        members=tuple(args.sub or ()),
        mode=args.mode,
        description=args.description or "",
        output_key=args.output_key,
        max_iterations=args.max_iterations or (settings.now.max_iterations if is_llm else None),
        raw=args.raw,
        fields=_fields(args, notebook.variables),
        source=f"%%agent {line}\n{cell or ''}".rstrip(),
    )
    return define(host, definition, args, note, has_picture=bool(definition.members) or not is_llm)


def _added_values(host: Host, args: Any) -> dict[str, AddedValue]:
    """Return the options that extensions add, those of the line alone, with checked values."""
    added: dict[str, AddedValue] = {}
    for item in AGENT.added:
        option, value = item.option, getattr(args, item.option.attribute)
        if not isinstance(item, AgentOption) or value in (None, False, []):
            continue
        typed = cast(list[Any], value) if isinstance(value, list) else [] if value is True else [value]
        if item.check:
            value = resolve(item.check)(host, f"{args.mark} --{option.name}", value)
        added[option.name] = AddedValue(words=tuple(map(str, typed)), value=value, option=item)
    return added


@contextmanager
def failures_noted(host: Host, grammar: Grammar, line: str) -> Generator[None]:
    """Note a cell that fails for the name that it was to define, so that a message to that name can say why."""
    try:
        yield
    except Exception as error:
        name = next(iter(line.split()), "")
        with suppress(UserError):
            name = grammar.parse(line, "").name
        reason, number = one_line(str(error), 200), host.cell_number
        host.notebook.failed[name] = f"its cell In[{number}] failed ({reason}): correct it, and run it again"
        raise


def define(host: Host, definition: AgentDefinition, args: Any, note: str, *, has_picture: bool) -> Any:
    """Define the agent of a cell; returns the report, with its drawing."""
    lines = [*host.notebook.define_agent(definition, root=args.root, replace=args.replace), note]
    if args.silent:  # drawing would build the team
        return None
    return picture(host.notebook, definition.name, *filter(None, lines)) if has_picture else text(*lines)


def parse(grammar: Grammar, line: str, cell: str | None) -> tuple[Any, str, str]:
    """Return the line merged with the front matter, the text below it, and a note."""
    try:
        args = grammar.parse(line, cell)
    except InputError:
        if "->" not in line and "→" not in line:
            raise
        raise InputError(f"%%{grammar.name}: write the graph below the line, not on it") from None
    mark = f"{args.mark} {args.name}"
    options = {option.name: option for option in grammar.all_options}
    matter, body = agent_cell.split_front_matter(cell or "", mark)
    if matter is None:
        is_unmarked = agent_cell.looks_like_options(body, list(options))
        hint = "the text begins like options; to use them as options, put them between two lines ---"
        return args, body, hint if is_unmarked else ""
    mark = f"{mark}, front matter"
    for key, value in matter.texts.items():
        option = options.get(key.replace("_", "-"))
        if option is None:
            near = closest(key.replace("_", "-"), options)
            hint = _HINTS.get(key) or (near and f"did you mean {near}?")
            hint = hint or ("set" in options and "write other fields under set:")
            raise InputError(f"{mark}: unknown option {key!r}; {hint or 'use ' + ', '.join(options)}")
        if option.name == "set":
            fields = matter.values[key]
            if not isinstance(fields, dict):
                raise InputError(f"{mark}: set must be a mapping, as set: {{include_contents: none}}")
            args.set = [(str(name), field) for name, field in cast(dict[Any, Any], fields).items()] + args.set
        elif getattr(args, option.attribute) in (None, False):  # what the line says takes precedence
            setattr(args, option.attribute, _option_value(option, key, value, mark))
    return args, body, ""


def _option_value(option: Option, key: str, value: Any, mark: str) -> Any:
    if isinstance(value, list):
        value = ",".join(map(str, cast(list[Any], value)))
    if not isinstance(value, str):
        raise InputError(f"{mark}: {key} must be text or a list of names")
    if not option.value and value.lower() not in _BOOLEANS:
        raise InputError(f"{mark}: {key} must be true or false, got {value!r:.60}")
    try:
        return option.parse(value.strip()) if option.value else _BOOLEANS[value.lower()]
    except argparse.ArgumentTypeError as error:
        raise InputError(f"{mark}: {key}: {error}") from None


def _check_team(args: Any) -> None:
    mark = f"{args.mark} --kind {args.kind}"
    if args.sub:
        raise InputError(f"{mark} has no --sub; write the names of the agents below the line")
    added = [item.option.name for item in AGENT.added]
    for option in ("model", "tools", *added, "output-key", "output-schema", "input-schema", "mode", "set"):
        if getattr(args, option.replace("-", "_")):
            raise InputError(f"{mark} has no --{option}; define it in the cells of its agents")
    if args.max_iterations and args.kind != "loop":
        raise InputError(f"{mark} has no --max-iterations; use it with --kind loop")


def _fields(args: Any, variables: Mapping[str, Any]) -> dict[str, FieldValue]:
    """Return fields of LlmAgent from `--set`, `set:` of the front matter, and the schema options."""
    fields: dict[str, FieldValue] = {}
    mark = f"{args.mark} --set"
    for field in cast(list[str | tuple[str, Any]], args.set):
        name, value = values.split_pair(field, mark, "--set include_contents=none") if isinstance(field, str) else field
        fields[name] = agent_cell.field_of(mark, name, value, variables)
    for option in ("input_schema", "output_schema"):
        if name := getattr(args, option):
            fields[option] = agent_cell.schema_of(f"{args.mark} --{option.replace('_', '-')}", name, variables)
    return fields


# ---- %agents

AGENTS = Grammar(
    "agents",
    "List the agents of this notebook.",
    examples=["%agents", "%agents --graph pipeline", "%agents --show weather", "%agents --rm weather"],
    options=[
        Option(
            "--graph[=NAME]",
            "draw it, or the agent that was asked last; `_.mermaid` has it as text",
            takes=str.isidentifier,
            names="agent",
        ),
        Option("--show NAME", "its facts, and the cell that defines it", names="agent"),
        Option("--rm NAME", "remove it; its sessions stay", names="agent"),
        Option("--json", "the table as JSON"),
    ],
    surplus_hint="for a single agent, type %agents --show NAME",
)


def agents(host: Host, line: str, cell: str | None) -> Any:
    """List agents, or show, draw or remove one.

    Raises:
        AgentNotFoundError: There is no agent of that name.
    """
    args, notebook = AGENTS.parse(line, cell), host.notebook
    if args.rm:
        return text(notebook.forget_agent(args.rm))
    if args.graph is not None:
        return picture(notebook, args.graph or notebook.agent_in_question())
    if args.show:
        return _show(notebook, args.show)
    facts = [_facts(notebook, name) for name in notebook.agent_names]
    if args.json:
        return as_json(facts)
    if not facts:
        return text("no agent is defined yet; begin a cell with %%agent NAME, see %%agent?")
    added = [item.option.name for item in AGENT.added]
    headers = ["agent", "kind", "model", "tools", *added, "agents", "defined", "used"]
    rows = [_row(agent, added) for agent in facts]
    listed = table("agents", headers, rows, optional=("kind", *added, "agents", "used"))
    return listed.below(*filter(None, map(_stale_line, facts)))


def _row(agent: dict[str, Any], added: list[str]) -> list[str]:
    named = [", ".join(agent[key]) for key in ("tools", *added, "agents")]
    name = f"{agent['name']} v{agent['version']}" if agent["version"] else agent["name"]
    defined, used = _cell(agent["defined_in"]) or "Python", _cell(agent["last_used"])
    return [name, agent["kind"] or agent["mode"], agent["model"], *named, defined, used]


def _show(notebook: Notebook, name: str) -> Output:
    """Return facts about an agent with its cell; without a cell, with its instruction."""
    agent = _facts(notebook, name)
    definition = notebook.definitions.get(name)
    facts = [f"v{agent['version']}" if agent["version"] else "Python", agent["kind"] or agent["mode"], agent["model"]]
    named = ("tools", *(item.option.name for item in AGENT.added), "agents")
    facts += [f"{key} {', '.join(agent[key])}" for key in named if agent[key]]
    facts += [f"{key.replace('_', ' ')} {_cell(agent[key])}" for key in ("defined_in", "last_used") if agent[key]]
    title = " · ".join([name, *filter(None, facts)])
    instruction = getattr(notebook.agent(name), "instruction", "")
    if definition and notebook.is_of_its_cell(name) and instruction in ("", definition.instruction):
        return text(title, _stale_line(agent), definition.source or definition.instruction.strip())
    return text(title, instruction if isinstance(instruction, str) else repr(instruction))


def _stale_line(agent: dict[str, Any]) -> str:
    names, cell = ", ".join(agent["stale"]), agent["defined_in"]
    return names and f"stale in {agent['name']}: {names}; run In[{cell}] again to update"


def _facts(notebook: Notebook, name: str) -> dict[str, Any]:
    agent = notebook.agent(name)
    definition = notebook.definitions.get(name) if notebook.is_of_its_cell(name) else None
    tools = list(definition.tools) if definition else [_tool_name(tool) for tool in getattr(agent, "tools", [])]
    members = definition.members if definition and definition.members else [sub.name for sub in agent.sub_agents]
    kind = agent.team_kind
    names = [item.option.name for item in AGENT.added]
    added: Mapping[str, AddedValue] = definition.options if definition else {}
    return {
        "name": name,
        "version": definition.version if definition else None,
        "kind": kind,
        "mode": getattr(agent, "mode", None) or "",
        "model": agent.answering_model if isinstance(agent, LlmAgent) else "",
        "tools": tools,
        **{name: list(added[name].words or ("yes",)) if name in added else [] for name in names},
        "agents": list(members),
        "defined_in": definition.cell if definition else None,
        "last_used": notebook.used.get(agent.name) or None,
        "stale": stale_variables(definition, notebook.variables) if definition else [],
    }


def _tool_name(tool: Any) -> str:
    return str(getattr(tool, "name", None) or getattr(tool, "__name__", type(tool).__name__))


def _cell(number: int | None) -> str:
    return f"In[{number}]" if number else ""


class Picture(Output):
    """The drawing of an agent, a team or a workflow, with the same tree as text."""

    def __init__(self, agent: BaseAgent, notebook: Notebook, *lines: str) -> None:
        """`lines`: text above the drawing."""
        drawing = drawing_of(agent)
        super().__init__(*drawn(drawing, tree_of(agent, notebook.version_in_words), *lines))
        self.mermaid = drawing.mermaid
        """The drawing as a mermaid diagram."""
        self.svg = str(html.write([picture_of(drawing)]))


def picture(notebook: Notebook, name: str, *lines: str) -> Picture:
    """Draw the agent of that name.

    Raises:
        AgentNotFoundError: There is no agent of that name.
    """
    return Picture(notebook.agent(name), notebook, *lines)


def mime_bundle(notebook: Notebook, agent: BaseAgent) -> dict[str, str]:
    """Return the display data of an agent that is the last expression of a cell."""
    return Picture(agent, notebook).forms
