"""`%%workflow`: define a graph of agents, tools and functions."""

from typing import Any

from adk_nb.errors import InputError
from adk_nb.notebook.cells import workflow_cell
from adk_nb.notebook.cells.definitions import AgentDefinition
from adk_nb.notebook.magics import values
from adk_nb.notebook.magics.agent import REPLACE_OPTION, define, failures_noted, parse
from adk_nb.notebook.magics.grammar import Argument, Grammar, Option
from adk_nb.notebook.magics.output import Host

WORKFLOW = Grammar(
    "workflow",
    "Define a workflow: write its graph below the line, one edge or chain per line. Names are those of agents, tools"
    " and functions of this notebook; later cells may define them.",
    cells=True,
    body="edges",
    examples=[
        "%%workflow write\n# a function gets the output of the node before it in its parameter node_input\n"
        "START -> draft -> review\nreview -[revise]-> draft\nreview -[ok]-> END",
        "%%workflow ask_all\n# both at once; sum_up gets both answers\nSTART -> (weather, news) -> sum_up",
        "%%workflow triage\nSTART -> sort\n# the answer of agent sort is the route; of a function, its result"
        " or Event(route=...); * is any other\n"
        "sort -[bug, crash]-> engineer\nsort -[*]-> clerk",
    ],
    arguments=[Argument("NAME", "a Python name; the variable of that name holds the workflow", needed=True)],
    options=[
        Option("--description TEXT", "its purpose, for agents that choose between others"),
        Option("--max-concurrency N", "limit of nodes that run at the same time", convert=values.positive_integer),
        Option("--root", "make it the agent for %chat lines that name none"),
        REPLACE_OPTION,
    ],
    twin='Workflow(name="write", edges=[("START", draft, review), (review, {"revise": draft, "ok": "END"})])',
)


def workflow(host: Host, line: str, cell: str | None) -> Any:
    """Define the graph of a cell. Raises as `agent`."""
    with failures_noted(host, WORKFLOW, line):
        return _workflow(host, line, cell)


def _workflow(host: Host, line: str, cell: str | None) -> Any:
    args, body, note = parse(WORKFLOW, line, cell)
    if not body.strip():
        raise InputError(f"%%workflow {args.name} has no edges; write START -> draft below the line")
    definition = AgentDefinition(
        name=args.name,
        kind="workflow",
        build=workflow_cell.build,
        cell=host.cell_number,
        instruction=body.rstrip(),
        description=args.description or "",
        max_concurrency=args.max_concurrency,
        source=f"%%workflow {line}\n{cell or ''}".rstrip(),
    )
    return define(host, definition, args, note, has_picture=True)
