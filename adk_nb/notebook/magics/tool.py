"""`%%tool`: define tools from functions, a web service or an MCP server. `%tools`: list tools."""

from typing import Any

from adk_nb import sync
from adk_nb.errors import CredentialError, InputError
from adk_nb.notebook.cells import tool_cell
from adk_nb.notebook.cells.definitions import approval_of
from adk_nb.notebook.cells.notebook import Notebook
from adk_nb.notebook.magics import values
from adk_nb.notebook.magics.agent import AGENT, REPLACE_OPTION
from adk_nb.notebook.magics.grammar import AgentOption, Argument, Grammar, Option, ToolOption
from adk_nb.notebook.magics.output import Host, as_json, table, text
from adk_nb.notebook.registry import resolve
from adk_nb.tools.function_tool import FunctionTool


def _is_condition(token: str) -> bool:
    """Return True if the token after `--confirm` is its value, not the name of a tool."""
    return token in ("always", "never") or not (token.isidentifier() or values.is_option(token))


TOOL = Grammar(
    "tool",
    "Run the cell as Python and make tools of the functions it defines. On one line: make tools of existing functions.",
    cells=True,
    body="python",
    examples=[
        '%%tool\ndef get_weather(city: str) -> dict:\n    """Weather for a city."""\n    return {"temp_c": 21}',
        '%%tool --confirm "amount > 100"\n'
        'def refund(order_id: str, amount: float) -> dict:\n    """Refund an order."""\n'
        '    return {"order_id": order_id, "refunded": amount}',
        "%tool get_weather to_fahrenheit",
        "%tool shop --openapi shop.yaml --only list_orders,refund --confirm",
        "%tool docs --mcp https://example.com/mcp",
        "%tool sales --data df",
        "%tool trips --data taxis.parquet,zones.csv",
        "%tool shop --sql sqlite:///shop.db",
    ],
    arguments=[Argument("NAME", "functions to make tools of; or the name of the toolset", many=True, names="function")],
    options=[
        Option(
            "--confirm[=WHEN]",
            'ask for approval before it runs: always, never, "amount > 100", or a function that decides',
            bare="always",
            takes=_is_condition,
            proposals=("always", "never"),
        ),
        Option("--thread", "run it on a worker thread, not on the main thread"),
        Option(
            "--timeout SECONDS",
            "limit of a call, which fails after it; a sync tool runs on a thread",
            convert=values.seconds,
        ),
        Option(
            "--effect EFFECT",
            "may a resumed run call it again? pure, idempotent: yes; once: only if the user agrees",
            choices=("pure", "idempotent", "once"),
        ),
        Option("--long-running", "it only starts an operation; the result is sent later"),
        Option("--pause", "with --long-running: the turn waits for the result"),
        Option("--only f,g", "make tools of these functions only", convert=values.names),
        REPLACE_OPTION,
        Option("--rename a=b", "the name b for function a", many=True),
    ],
    twin='@tool, @tool(confirm=True), @tool(confirm="amount > 100")',
)

TOOLS = Grammar(
    "tools",
    "List the tools of this notebook.",
    examples=["%tools", "%tools --schema get_weather", "%tools --schema  # of all"],
    options=[
        Option(
            "--schema[=NAME]",
            "its declaration for the model as JSON; without a name, those of all",
            takes=str.isidentifier,
            names="tool",
        )
    ],
    surplus_hint="for a single tool, type %tools --schema NAME",
)


def tool(host: Host, line: str, cell: str | None) -> Any:
    """Define tools from the functions in a cell, existing functions, or the tools of a server.

    Raises:
        UserError: The line or a function is wrong; nothing was changed.
    """
    __tracebackhide__ = True
    args, notebook = TOOL.parse(line, cell), host.notebook
    for item in TOOL.added:
        if isinstance(item, ToolOption) and getattr(args, item.option.attribute):
            return text(*resolve(item.define)(host, args))
    if cell is not None and not cell.strip():
        raise InputError("%%tool: the cell is empty; write a function below the line, see %%tool?")
    return text(*tool_cell.define_tools(notebook, host.shell, args, cell, host.cell_number))


def tools(host: Host, line: str, cell: str | None) -> Any:
    """List tools, or show their declarations as models get them.

    Raises:
        ToolNotFoundError: There is no tool of that name.
        InputError: The server of a toolset was not reached.
    """
    args, notebook = TOOLS.parse(line, cell), host.notebook
    names = notebook.tool_names
    if args.schema:
        return as_json(_declaration(notebook, args.schema))
    if args.schema is not None:
        return as_json({name: _declaration_or_reason(notebook, name) for name in names})
    further, lines = _rows_of_options(notebook)
    if not (names or further or lines):
        return text("no tool is defined yet; begin a cell with %%tool, see %%tool?")
    approval = "approval, effect" if any(_effect(notebook, name) for name in names) else "approval"
    headers = ["tool", "description", approval, "defined", "used by"]
    rows = [*(_row(notebook, name) for name in names), *further]
    listed = table("tools", headers, rows, optional=(approval, "used by"))
    # Parameters that a declaration cannot describe.
    of_functions = {name: None if notebook.toolset(name) else notebook.tool(name) for name in names}
    faults = [
        f"{name}: {fault}"
        for name, tool in of_functions.items()
        if isinstance(tool, FunctionTool)
        for fault in tool.signature.faults.values()
    ]
    return listed.below(*faults, *lines)


def _rows_of_options(notebook: Notebook) -> tuple[list[list[str]], list[str]]:
    """Return the rows and lines of what options that extensions add bring to agents, as their skills."""
    rows, lines = list[list[str]](), list[str]()
    for item in AGENT.added:
        if not (isinstance(item, AgentOption) and item.listed):
            continue
        added = {agent: of.options.get(item.option.name) for agent, of in notebook.definitions.items()}
        further = resolve(item.listed)({agent: of.value for agent, of in added.items() if of})
        rows, lines = [*rows, *further[0]], [*lines, *further[1]]
    return rows, lines


def _row(notebook: Notebook, name: str) -> list[str]:
    definition, toolset = notebook.tools.get(name), notebook.toolset(name)
    version = f" v{definition.version}" if definition and definition.version else ""
    cell = f"In[{definition.cell}]" if definition else "Python"
    used = ", ".join(notebook.users_of(name))
    if toolset:
        description = f"{type(toolset).__name__}; %tools --schema {name} lists its tools"
        return [name + version, description, approval_of(toolset), cell, used]
    tool = notebook.tool(name)
    signature = f"{tool.name}({', '.join(tool.signature.names)})" if isinstance(tool, FunctionTool) else tool.name
    lines = tool.description.strip().splitlines() or ["no docstring: the model gets only the name"]
    approval_and_effect = "; ".join(filter(None, [approval_of(tool), _effect(notebook, name)]))
    return [signature + version, lines[0], approval_and_effect, cell, used]


def _effect(notebook: Notebook, name: str) -> str:
    """Return the effect of a tool; empty for `once`, the default."""
    effect = "once" if notebook.toolset(name) else notebook.tool(name).effect
    return "" if effect == "once" else effect


def _declaration_or_reason(notebook: Notebook, name: str) -> Any:
    """As `_declaration`; one toolset whose server is gone does not hide the other tools."""
    try:
        return _declaration(notebook, name)
    except InputError as error:
        return str(error)


def _declaration(notebook: Notebook, name: str) -> Any:
    """Return the declaration of a tool, or those of the current tools of a toolset.

    Raises:
        InputError: The tools of the toolset cannot be listed.
    """
    toolset = notebook.toolset(name)
    try:
        tools = sync.run(toolset.get_tools_with_prefix()) if toolset else [notebook.tool(name)]
    except (OSError, CredentialError) as error:
        raise InputError(f"%tools --schema {name}: cannot list its tools: {error}") from error
    declarations = [
        tool.function_declaration.model_dump(exclude_none=True, mode="json")
        for tool in tools
        if tool.function_declaration
    ]
    return declarations if toolset else next(iter(declarations), None)
