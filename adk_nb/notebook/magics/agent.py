"""`%%agent` and `%%workflow`: the line, the options above the text, and the text become a definition."""

import argparse
from collections.abc import Mapping
from typing import Any, cast

from adk_nb.errors import InputError, closest
from adk_nb.notebook import settings
from adk_nb.notebook.magics import values
from adk_nb.notebook.magics.agents import picture
from adk_nb.notebook.magics.grammar import Argument, Grammar, Option
from adk_nb.notebook.magics.host import Host
from adk_nb.notebook.magics.output import text
from adk_nb.notebook.registry import agent_options
from adk_nb.notebook.registry.agent_options import FrontMatter
from adk_nb.notebook.registry.definitions import AgentDefinition, FieldValue

REPLACE_OPTION = Option("--replace", "take the name, if something else in this notebook has it")

AGENT = Grammar(
    "agent",
    "Define an agent: the name on the line, its instruction below. Run the cell again to change it.",
    cells=True,
    examples=[
        "%%agent weather -t get_weather\nAnswer in one sentence.\nAlways call get_weather; never guess.",
        "%%agent guide --model gemini-3.5-flash-lite --output-key plan\nPlan a trip for {user:name?} within {budget}.",
        "%%agent planner --root\nThe season table is:\n{{season_table}}",
        "%%agent desk --sub tickets,tours\nSend visitors to the colleague who can help them.",
        "%%agent pipeline --kind sequential\ndraft -> critic -> editor",
        "%%agent refine --kind loop --max-iterations 4\nwriter -> critic\nuntil: session_state.get('score', 0) >= 8",
        "%%agent ask_all --kind parallel\nweather, news",
        "%%agent reader --output-schema Trip --set include_contents=none\nRead the message and fill in the form.",
        "%%agent researcher\n---\nmodel: gemini-3.8-flash\ntools: [search, read_page]\nset:\n  include_contents: none\n"
        "---\nYou are a careful researcher. Cite a source for each claim.",
    ],
    arguments=[Argument("NAME", "a Python name; the variable of that name is the agent", needed=True, names="agent")],
    options=[
        Option("-m, --model MODEL", "a model, or a variable that holds one", names="model"),
        Option("-t, --tools a,b", "tools by name; those defined later count too", names="tool", convert=values.names),
        Option(
            "--sub a,b",
            "agents that it can hand over to, or call if that is their mode; those defined later count too",
            names="agent",
            convert=values.names,
        ),
        Option(
            "--mode MODE",
            "under another agent: chat takes over; single_turn is called, and answers; task is called, and talks",
            choices=("chat", "single_turn", "task"),
        ),
        Option(
            "--kind KIND",
            "sequential, parallel or loop: a team of the agents that are named below the line",
            choices=("sequential", "parallel", "loop"),
            default="llm",
            hints=dict.fromkeys(("graph", "workflow"), "a graph is a cell that begins %%workflow"),
        ),
        Option("--description TEXT", "what it is good at, for other agents"),
        Option("--output-key KEY", "where in the state its answers are kept", names="state"),
        Option(
            "--output-schema VAR",
            "what its answer must be: a variable that holds a pydantic class, another type, or a JSON schema",
            names="variable",
        ),
        Option("--input-schema VAR", "what a message to it must be; as above", names="variable"),
        Option(
            "--max-iterations N", "model calls in a turn (16), or passes of a loop", convert=values.positive_integer
        ),
        Option(
            "--set k=v",
            "another field of LlmAgent: a value (JSON, or Python's), a variable, or text",
            many=True,
            names="field",
        ),
        Option("--raw", "take braces in the instruction as they are"),
        Option("--root", "it gets the lines of %chat that name no agent"),
        REPLACE_OPTION,
    ],
    twin='weather = LlmAgent(name="weather", instruction="...", tools=[get_weather])',
    pairs=True,
    surplus_hint="a name is one word, and the instruction stands below the line",
)

WORKFLOW = Grammar(
    "workflow",
    "Define a workflow: its graph stands below the line, one edge or one chain a line. Names are those of agents, tools"
    " and functions of this notebook; later cells may define them.",
    cells=True,
    examples=[
        "%%workflow write\nSTART -> draft -> review\nreview -[revise]-> draft\nreview -[ok]-> END",
        "%%workflow ask_all\n# both at once; sum_up gets what both said\nSTART -> (weather, news) -> sum_up",
        "%%workflow triage\nSTART -> sort\n# by what the agent sort answers, or a function returns, itself or as"
        " Event(route=...); * is any other\n"
        "sort -[bug, crash]-> engineer\nsort -[*]-> clerk",
    ],
    arguments=[Argument("NAME", "a Python name; the variable of that name is the workflow", needed=True)],
    options=[
        Option("--description TEXT", "what it is good at, for other agents"),
        Option("--max-concurrency N", "the most nodes that run at a time", convert=values.positive_integer),
        Option("--root", "it gets the lines of %chat that name no agent"),
        REPLACE_OPTION,
    ],
    twin='Workflow(name="write", edges=[("START", draft, review), (review, {"revise": draft, "ok": "END"})])',
)

_BOOLEANS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_HINTS = {"name": "the name stands behind %%agent", "instruction": "the instruction stands below the second ---"}
"""Keys of a front matter that are no options -> where they belong."""


def agent(host: Host, line: str, cell: str | None) -> Any:
    """Define an agent.

    Raises:
        UserError: The cell does not fit; all is as it was.
    """
    args, body, note = _parse(AGENT, line, cell)
    kind, notebook = args.kind or "llm", host.notebook
    is_llm = kind == "llm"
    if not is_llm:
        _check_team(args)
    if not body.strip():
        lacks = "has no instruction; write it below the line, see %%agent?"
        lacks = lacks if is_llm else "names no agents; write them below the line, as draft -> review"
        raise InputError(f"%%agent {args.name} {lacks}")
    definition = AgentDefinition(
        name=args.name,
        kind=kind,
        cell=host.cell_number,
        instruction=body.strip("\n") if is_llm else body.rstrip(),
        model=args.model or "",
        model_object=notebook.model_named(args.model) if args.model else None,
        tools=tuple(dict.fromkeys(args.tools or ())),
        members=tuple(args.sub or ()),
        mode=args.mode,
        description=args.description or "",
        output_key=args.output_key,
        max_iterations=args.max_iterations or (settings.now.max_iterations if is_llm else None),
        raw=args.raw,
        fields=_fields(args, notebook.variables),
        source=f"%%agent {line}\n{cell or ''}".rstrip(),
    )
    return _define(host, definition, args, note, has_picture=bool(definition.members) or not is_llm)


def workflow(host: Host, line: str, cell: str | None) -> Any:
    """Define the graph of a cell. Raises as `agent`."""
    args, body, note = _parse(WORKFLOW, line, cell)
    if not body.strip():
        raise InputError(f"%%workflow {args.name} has no edges; write START -> draft below the line")
    definition = AgentDefinition(
        name=args.name,
        kind="workflow",
        cell=host.cell_number,
        instruction=body.rstrip(),
        description=args.description or "",
        max_concurrency=args.max_concurrency,
        source=f"%%workflow {line}\n{cell or ''}".rstrip(),
    )
    return _define(host, definition, args, note, has_picture=True)


def _define(host: Host, definition: AgentDefinition, args: Any, note: str, *, has_picture: bool) -> Any:
    lines = [*host.notebook.define_agent(definition, root=args.root, replace=args.replace), note]
    if args.silent:  # a team is not put together for its picture alone
        return None
    return picture(host.notebook, definition.name, *filter(None, lines)) if has_picture else text(*lines)


def _parse(grammar: Grammar, line: str, cell: str | None) -> tuple[Any, str, str]:
    """The line with the options above the text, the text, and a note on it."""
    try:
        args = grammar.parse(line, cell)
    except InputError:
        if "->" not in line and "→" not in line:
            raise
        raise InputError(f"%%{grammar.name}: names with arrows stand below the line, not on it") from None
    mark = f"{args.mark} {args.name}"
    options = {option.name: option for option in grammar.options}
    matter, body = agent_options.split_front_matter(cell or "", mark)
    if matter:
        _add_front_matter(args, matter, options, f"{mark}, front matter")
    elif agent_options.looks_like_options(body, list(options)):
        return args, body, "the text begins like options; they count as such between two lines ---"
    return args, body, ""


def _add_front_matter(args: Any, matter: FrontMatter, options: Mapping[str, Option], mark: str) -> None:
    """Take the options of the front matter that the line does not have."""
    for key, value in matter.texts.items():
        option = options.get(key.replace("_", "-"))
        if option is None:
            near = closest(key.replace("_", "-"), options)
            hint = _HINTS.get(key) or (near and f"did you mean {near}?")
            hint = hint or ("set" in options and "a field that has no option stands under set:")
            raise InputError(f"{mark}: there is no option {key!r}; {hint or 'there is ' + ', '.join(options)}")
        if option.name == "set":
            fields = matter.values[key]
            if not isinstance(fields, dict):
                raise InputError(f"{mark}: set holds fields, as set: {{include_contents: none}}")
            args.set = [(str(name), field) for name, field in cast(dict[Any, Any], fields).items()] + args.set
        elif getattr(args, option.attribute) in (None, False):
            setattr(args, option.attribute, _option_value(option, key, value, mark))


def _option_value(option: Option, key: str, value: Any, mark: str) -> Any:
    if isinstance(value, list):
        value = ",".join(map(str, cast(list[Any], value)))
    if not isinstance(value, str):
        raise InputError(f"{mark}: {key} is text, or a list of names")
    if not option.value and value.lower() not in _BOOLEANS:
        raise InputError(f"{mark}: {key} is true or false, and not {value!r:.60}")
    try:
        return option.parse(value.strip()) if option.value else _BOOLEANS[value.lower()]
    except argparse.ArgumentTypeError as error:
        raise InputError(f"{mark}: {key}: {error}") from None


def _check_team(args: Any) -> None:
    mark = f"{args.mark} --kind {args.kind}"
    if args.sub:
        raise InputError(f"{mark} has no --sub; write the names of its agents below the line")
    for option in ("model", "tools", "output-key", "output-schema", "input-schema", "mode", "set"):
        if getattr(args, option.replace("-", "_")):
            raise InputError(f"{mark} has no --{option}; give it to its agents")
    if args.max_iterations and args.kind != "loop":
        raise InputError(f"{mark} makes one pass; --max-iterations goes with --kind loop")


def _fields(args: Any, variables: Mapping[str, Any]) -> dict[str, FieldValue]:
    """Fields of LlmAgent that have no option: tokens of `--set`, and pairs of the front matter."""
    fields: dict[str, FieldValue] = {}
    mark = f"{args.mark} --set"
    for field in cast(list[str | tuple[str, Any]], args.set):
        name, value = values.split_pair(field, mark, "--set include_contents=none") if isinstance(field, str) else field
        fields[name] = agent_options.field_of(mark, name, value, variables)
    for option in ("input_schema", "output_schema"):
        if name := getattr(args, option):
            fields[option] = agent_options.schema_of(f"{args.mark} --{option.replace('_', '-')}", name, variables)
    return fields
