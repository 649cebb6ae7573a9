"""The lines that define something, and those that list what is defined."""

from adk_nb.notebook.magics.arguments import (
    Grammar,
    Option,
    Word,
    effect,
    is_condition,
    kind,
    mode,
    names_in,
    seconds,
    whole_number,
)

_REPLACE = Option(name="replace", help="take the name, if something else in this notebook has it")

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
    words=[Word(name="NAME", help="a Python name; the variable of that name is the agent", needed=True, names="agent")],
    options=[
        Option(name="model", short="m", value="MODEL", help="a model, or a variable that holds one", names="model"),
        Option(
            name="tools",
            short="t",
            value="a,b",
            help="tools by name; those defined later count too",
            names="tool",
            convert=names_in,
        ),
        Option(
            name="sub",
            value="a,b",
            help="agents that it can hand over to, or call if that is their mode; those defined later count too",
            names="agent",
            convert=names_in,
        ),
        Option(
            name="mode",
            value="MODE",
            help="under another agent: chat takes over; single_turn is called, and answers; task is called, and talks",
            names="chat|single_turn|task",
            convert=mode,
        ),
        Option(
            name="kind",
            value="KIND",
            help="sequential, parallel or loop: a team of the agents that are named below the line",
            names="llm|sequential|parallel|loop",
            convert=kind,
        ),
        Option(name="description", value="TEXT", help="what it is good at, for other agents"),
        Option(name="output-key", value="KEY", help="where in the state its answers are kept", names="state"),
        Option(
            name="output-schema",
            value="VAR",
            help="what its answer must be: a variable that holds a pydantic class, another type, or a JSON schema",
            names="variable",
        ),
        Option(name="input-schema", value="VAR", help="what a message to it must be; as above", names="variable"),
        Option(
            name="max-iterations",
            value="N",
            help="model calls in a turn (16), or passes of a loop",
            convert=whole_number,
        ),
        Option(
            name="set",
            value="k=v",
            help="another field of LlmAgent: a value (JSON, or Python's), a variable, or text",
            many=True,
            names="field",
        ),
        Option(name="raw", help="take braces in the instruction as they are"),
        Option(name="root", help="it gets the lines of %chat that name no agent"),
        _REPLACE,
    ],
    twin='weather = LlmAgent(name="weather", instruction="...", tools=[get_weather])',
    pairs=True,
)

TOOL = Grammar(
    "tool",
    "Run the cell as Python; the functions it defines become tools. On one line: make functions that exist tools.",
    cells=True,
    examples=[
        '%%tool\ndef get_weather(city: str) -> dict:\n    """Weather for a city."""\n    return {"temp_c": 21}',
        '%%tool --confirm "amount > 100"\n'
        'def refund(order_id: str, amount: float) -> dict:\n    """Refund an order."""\n'
        '    return {"order_id": order_id, "refunded": amount}',
        "%tool get_weather to_fahrenheit",
        "%tool shop --openapi shop.yaml --only list_orders,refund --confirm",
        "%tool docs --mcp https://example.com/mcp",
    ],
    words=[Word(name="NAME", help="the tool's name, or the functions that become tools", many=True, names="function")],
    options=[
        Option(
            name="confirm",
            value="WHEN",
            bare="always",
            takes=is_condition,
            help='ask a person before it runs: always, never, "amount > 100", or a function that says when',
            names="always|never",
        ),
        Option(name="thread", help="run it on a worker thread, not in the cell's"),
        Option(name="timeout", value="SECONDS", help="when a call fails; a sync one is in a thread", convert=seconds),
        Option(
            name="effect",
            value="EFFECT",
            help="if it may be called again after its run was cut: pure, idempotent; once: a person is asked first",
            names="pure|idempotent|once",
            convert=effect,
        ),
        Option(name="long-running", help="it only starts something; what comes of it is sent later"),
        Option(name="pause", help="with --long-running: the turn ends until that is sent"),
        Option(name="only", value="f,g", help="only these become tools", convert=names_in),
        _REPLACE,
        Option(name="rename", value="a=b", help="the model knows function a as b", many=True),
        Option(
            name="openapi",
            value="FILE",
            help="%tool: the operations of the web service that an OpenAPI document describes, as a toolset",
            names="document",
        ),
        Option(name="mcp", value="URL", help="%tool: what an MCP server offers, as a toolset"),
    ],
    twin='@tool, @tool(confirm=True), @tool(confirm="amount > 100")',
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
    words=[Word(name="NAME", help="a Python name; the variable of that name is the workflow", needed=True)],
    options=[
        Option(name="description", value="TEXT", help="what it is good at, for other agents"),
        Option(name="max-concurrency", value="N", help="the most nodes that run at a time", convert=whole_number),
        Option(name="root", help="it gets the lines of %chat that name no agent"),
        _REPLACE,
    ],
    twin='Workflow(name="write", edges=[("START", draft, review), (review, {"revise": draft, "ok": "END"})])',
)

AGENTS = Grammar(
    "agents",
    "List the agents of this notebook.",
    examples=["%agents", "%agents --graph pipeline", "%agents --show weather", "%agents --rm weather"],
    options=[
        Option(
            name="graph",
            value="NAME",
            bare="",
            takes=str.isidentifier,
            help="draw it, or the one that %chat would ask; `_.mermaid` is the same as text",
            names="agent",
        ),
        Option(name="show", value="NAME", help="what it is, and the cell that defines it", names="agent"),
        Option(name="rm", value="NAME", help="forget it; its sessions stay", names="agent"),
        Option(name="json", help="the table as JSON"),
    ],
)

TOOLS = Grammar(
    "tools",
    "List the tools of this notebook.",
    examples=["%tools", "%tools --schema get_weather", "%tools --schema  # of all"],
    options=[
        Option(
            name="schema",
            value="NAME",
            bare="",
            takes=str.isidentifier,
            help="what the model is told of it, or of all, as JSON",
            names="tool",
        )
    ],
)
