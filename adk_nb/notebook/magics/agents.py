"""`%agents`: who is defined, where, what of it is stale, and the drawing of an agent."""

from typing import Any

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.models.base_llm import BaseLlm
from adk_nb.models.default_model import default_model
from adk_nb.notebook.magics.grammar import Grammar, Option
from adk_nb.notebook.magics.host import Host
from adk_nb.notebook.magics.output import Output, as_json, table, text
from adk_nb.notebook.registry.agent_cell import stale_variables
from adk_nb.notebook.registry.notebook import Notebook
from adk_nb.notebook.view.drawing import drawing_of, kind_of, tree_of
from adk_nb.notebook.view.drawing_svg import drawn
from adk_nb.notebook.view.drawing_svg import picture as picture_of
from adk_nb.notebook.view.writers import html

AGENTS = Grammar(
    "agents",
    "List the agents of this notebook.",
    examples=["%agents", "%agents --graph pipeline", "%agents --show weather", "%agents --rm weather"],
    options=[
        Option(
            "--graph[=NAME]",
            "draw it, or the one that %chat would ask; `_.mermaid` is the same as text",
            takes=str.isidentifier,
            names="agent",
        ),
        Option("--show NAME", "what it is, and the cell that defines it", names="agent"),
        Option("--rm NAME", "forget it; its sessions stay", names="agent"),
        Option("--json", "the table as JSON"),
    ],
    surplus_hint="to look at one agent, type %agents --show NAME",
)


def agents(host: Host, line: str, cell: str | None) -> Any:
    """List agents, show or draw one, or forget one.

    Raises:
        AgentNotFoundError: There is no agent of that name.
    """
    args, notebook = AGENTS.parse(line, cell), host.notebook
    if args.rm:
        return text(notebook.forget_agent(args.rm))
    if args.graph is not None:
        return picture(notebook, args.graph or notebook.agent_for_text())
    if args.show:
        return _show(notebook, args.show)
    facts = [_facts(notebook, name) for name in notebook.agent_names]
    if args.json:
        return as_json(facts)
    if not facts:
        return text("no agent is defined yet; begin a cell with %%agent NAME, see %%agent?")
    headers = ["agent", "kind", "model", "tools", "agents", "defined", "used"]
    listed = table(headers, [_row(agent) for agent in facts], optional=("kind", "agents", "used"))
    return listed.below(*filter(None, map(_stale_line, facts)))


def _row(agent: dict[str, Any]) -> list[str]:
    tools, members = ", ".join(agent["tools"]), ", ".join(agent["agents"])
    name = f"{agent['name']} v{agent['version']}" if agent["version"] else agent["name"]
    defined, used = _cell(agent["defined_in"]) or "Python", _cell(agent["last_used"])
    return [name, agent["kind"] or agent["mode"], agent["model"], tools, members, defined, used]


def _show(notebook: Notebook, name: str) -> Output:
    """An agent, and the cell that defines it; of one that Python has made, its instruction."""
    agent = _facts(notebook, name)
    definition = notebook.definitions.get(name)
    facts = [f"v{agent['version']}" if agent["version"] else "Python", agent["kind"] or agent["mode"], agent["model"]]
    facts += [f"{key} {', '.join(agent[key])}" for key in ("tools", "agents") if agent[key]]
    facts += [f"{key.replace('_', ' ')} {_cell(agent[key])}" for key in ("defined_in", "last_used") if agent[key]]
    title = " · ".join([name, *filter(None, facts)])
    instruction = getattr(notebook.agent(name), "instruction", "")
    if definition and notebook.is_of_its_cell(name) and instruction in ("", definition.instruction):
        return text(title, _stale_line(agent), definition.source or definition.instruction.strip())
    return text(title, instruction if isinstance(instruction, str) else repr(instruction))


def _stale_line(agent: dict[str, Any]) -> str:
    names, cell = ", ".join(agent["stale"]), agent["defined_in"]
    return names and f"stale in {agent['name']}: {names}; run In[{cell}] again to take it over"


def _facts(notebook: Notebook, name: str) -> dict[str, Any]:
    agent = notebook.agent(name)
    definition = notebook.definitions.get(name) if notebook.is_of_its_cell(name) else None
    tools = list(definition.tools) if definition else [_tool_name(tool) for tool in getattr(agent, "tools", [])]
    members = definition.members if definition and definition.members else [sub.name for sub in agent.sub_agents]
    model, kind = getattr(agent, "model", ""), kind_of(agent)
    model = model.model if isinstance(model, BaseLlm) else str(model or default_model())
    return {
        "name": name,
        "version": definition.version if definition else None,
        "kind": kind,
        "mode": getattr(agent, "mode", None) or "",
        "model": "" if kind else model,
        "tools": tools,
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
    """The drawing of an agent, a team or a workflow, with the same as text under it."""

    def __init__(self, agent: BaseAgent, notebook: Notebook, *lines: str) -> None:
        """`lines`: text above it."""
        drawing = drawing_of(agent)
        super().__init__(*drawn(drawing, tree_of(agent, notebook.version_in_words), *lines))
        self.mermaid = drawing.mermaid
        """The same in mermaid's language."""
        self.svg = str(html.write([picture_of(drawing)]))


def picture(notebook: Notebook, name: str, *lines: str) -> Picture:
    """Draw the agent of that name.

    Raises:
        AgentNotFoundError: There is none.
    """
    return Picture(notebook.agent(name), notebook, *lines)


def mime_bundle(notebook: Notebook, agent: BaseAgent) -> dict[str, str]:
    """Return the output of a cell that ends with an agent."""
    return Picture(agent, notebook).forms
