"""Agents and graphs in YAML files, read as google-adk 2.13 reads them."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adk_nb.agents import BaseAgent, LlmAgent, LoopAgent, SequentialAgent
from adk_nb.agents.config_agent_utils import from_config
from adk_nb.errors import ConfigurationError
from adk_nb.tools import AgentTool, ExampleTool, google_search
from adk_nb.tools.mcp_tool import McpToolset
from adk_nb.workflow import Workflow
from tests.support.talk import Talk

CODE = """
from os import system
from adk_nb.agents import BaseAgent, LlmAgent
from adk_nb.events import Event
from adk_nb.models import ScriptedLlm, call
from adk_nb.tools import BaseTool, FunctionTool
from pydantic import BaseModel

heard = []
model = ScriptedLlm(call("roll", sides=6), "You rolled 4.")

class Answer(BaseModel):
    number: int

class Greeter(BaseAgent):
    greeting: str
    async def _run_async_impl(self, ctx):
        yield Event(author=self.name, message=self.greeting)

class Dice(BaseTool):
    def __init__(self, sides: int):
        super().__init__(name="dice", description="Rolls.")
        self.sides = sides

class Built(BaseTool):
    @classmethod
    def from_config(cls, config, config_abs_path):
        return cls(name=config.name, description="Built.")

def roll(sides: int) -> int:
    'Roll.'
    return 4

def made(args):
    return FunctionTool(roll, name=args.name)

def note(callback_context):
    heard.append(callback_context.agent_name)

def shout(node_input: str):
    return node_input.upper()

def choose(node_input: str):
    return Event(output=node_input, route="long" if len(node_input) > 3 else "short")

helper = LlmAgent(name="helper", model=ScriptedLlm("helped"), description="Helps.")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """The folder of an agent, `yaml_agent`, with a module `code_of_it`."""
    path, modules = list(sys.path), set(sys.modules)
    folder = tmp_path / "yaml_agent"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "code_of_it.py").write_text(CODE)
    yield folder
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.startswith("yaml_agent"):
            del sys.modules[name]


def read(folder: Path, text: str, name: str = "root_agent.yaml") -> Any:
    (folder / name).write_text(text)
    return from_config(folder / name)


def test_an_agent_with_tools_callbacks_and_a_model_of_its_own_answers(folder: Path):
    agent = read(
        folder,
        """
        name: roller
        description: Rolls.
        model_code: yaml_agent.code_of_it.model
        instruction: |
          Roll for {user}.
        tools:
          - name: yaml_agent.code_of_it.roll
        before_agent_callbacks:
          - name: yaml_agent.code_of_it.note
        generate_content_config:
          temperature: 0.1
        output_key: rolled
        """,
    )

    talk = Talk(agent, state={"user": "Ada"})
    answer = talk.say("roll")[-1]

    code = sys.modules["yaml_agent.code_of_it"]
    assert type(agent) is LlmAgent and answer.text == "You rolled 4." and code.heard == ["roller"]
    assert talk.stored().state["rolled"] == "You rolled 4."
    [request, _] = code.model.requests
    assert "Roll for Ada." in str(request.config.system_instruction) and request.config.temperature == 0.1


def test_a_team_is_read_from_its_files_and_from_code(folder: Path):
    (folder / "parts").mkdir()
    (folder / "parts" / "loop.yaml").write_text(
        "agent_class: LoopAgent\nname: loop\nmax_iterations: 2\nsub_agents:\n  - config_path: writer.yaml\n"
    )
    (folder / "parts" / "writer.yaml").write_text("name: writer\ninstruction: Write.\nmodel: offline\n")
    text = "agent_class: google.adk.agents.SequentialAgent\nname: team\nsub_agents:\n  - config_path: parts/loop.yaml\n"

    team = read(folder, f"{text}  - code: yaml_agent.code_of_it.helper\n")

    loop, helper = team.sub_agents
    assert (type(team), type(loop), loop.max_iterations) == (SequentialAgent, LoopAgent, 2)
    assert (loop.sub_agents[0].name, helper.name, helper.parent_agent) == ("writer", "helper", team)
    assert from_config(folder).name == "team"  # the folder's root_agent.yaml


def test_tools_are_named_and_made_with_arguments(folder: Path):
    (folder / "search.yaml").write_text("name: search\ninstruction: Search.\n")
    agent = read(
        folder,
        """
        name: a
        instruction: x
        tools:
          - google_search
          - name: AgentTool
            args: {agent: {config_path: search.yaml}, skip_summarization: true}
          - name: ExampleTool
            args:
              examples:
                - input: {parts: [{text: hi}]}
                  output: [{role: model, parts: [{text: hello}]}]
          - name: yaml_agent.code_of_it.Dice
            args: {sides: 20}
          - name: yaml_agent.code_of_it.Built
            args: {name: brick}
          - name: .code_of_it.made
            args: {name: lucky}
          - name: McpToolset
            args:
              streamable_http_connection_params: {url: "https://tools.example/mcp"}
              tool_filter: [look]
        """,
    )

    search, called, examples, dice, built, lucky, mcp = agent.tools
    assert search is google_search and isinstance(examples, ExampleTool) and isinstance(mcp, McpToolset)
    assert isinstance(called, AgentTool) and called.agent.name == "search" and called.skip_summarization
    assert (dice.sides, built.name, lucky.name) == (20, "brick", "lucky")


def test_schemas_and_classes_of_ones_own_are_references(folder: Path):
    agent = read(folder, "name: a\ninstruction: x\noutput_schema: {name: yaml_agent.code_of_it.Answer}\n")
    greeter = read(folder, "agent_class: yaml_agent.code_of_it.Greeter\nname: g\ngreeting: Good day.\n")

    assert agent.output_schema is sys.modules["yaml_agent.code_of_it"].Answer
    assert isinstance(greeter, BaseAgent) and Talk(greeter).say("hi")[-1].text == "Good day."


def test_a_graph_of_functions_and_agents_runs(folder: Path):
    flow = read(
        folder,
        """
        agent_class: Workflow
        name: flow
        edges:
          - [START, .code_of_it.shout, .code_of_it.choose]
          - [choose, {long: {agent_class: FunctionNode, name: cut, func_code: .code_of_it.shout}, short: END}]
          - {from_node: cut, to_node: .code_of_it.helper}
        """,
    )

    assert isinstance(flow, Workflow)
    assert Talk(flow).say("abc")[-1].output == "ABC"
    assert Talk(flow).say("abcdef")[-1].text == "helped"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("name: a\ninstruction: x\ninstructions: y\n", r"no field 'instructions'.*'instruction'"),
        ("name: a\nbefore_model_callback_s: y\n", "'before_model_callback_s'"),
        ("agent_class: LoopAgent\nname: a\nmax_iteration: 2\n", "'max_iterations'"),
        ("agent_class: LlmAgnt\nname: a\n", "'LlmAgent'"),
        ("agent_class: yaml_agent.code_of_it.Answer\nname: a\n", "no class of agents"),
        ("name: a\nmodel: m\nmodel_code: yaml_agent.code_of_it.model\n", "two spellings"),
        ("name: a\ntools: [{name: google_serch}]\n", "'google_search'"),
        ("name: a\ntools: [{name: yaml_agent.code_of_it.rol}]\n", "'roll'"),
        ("name: a\ntools: [{name: yaml_agent.nowhere.roll}]\n", "yaml_agent.nowhere"),
        ("name: a\ntools: [{title: google_search}]\n", "no tool"),
        ("name: a\ntools: google_search\n", "write a list"),
        ("name: a\ntools: [{name: yaml_agent.code_of_it.Dice, args: {size: 3}}]\n", "size"),
        ("name: a\nsub_agents: [{config_path: /etc/passwd}]\n", "outside"),
        ("name: a\nsub_agents: [{config_path: ../other/root_agent.yaml}]\n", "outside"),
        ("name: a\nsub_agents: [{config_path: link.yaml}]\n", "outside"),
        ("name: a\nsub_agents: [{config_path: root_agent.yaml}]\n", "back to itself"),
        ("name: a\nsub_agents: [{config_path: b.yaml, code: c.d}]\n", "no agent"),
        ("name: a\nsub_agents: [{code: yaml_agent.code_of_it.Greeter}]\n", "name an agent"),
        ("name: a\nsub_agents: [{code: yaml_agent.code_of_it.roll}]\n", "name an agent"),
        ("agent_class: Workflow\nname: w\nedges: [[START, nowhere]]\n", "'nowhere'"),
        ("name: [a\n", "no YAML"),
        ("", "empty"),
        ("- name: a\n", "no keys"),
        ("name: 1 2\ninstruction: x\n", "root_agent.yaml"),
    ],
)
def test_what_a_file_cannot_say_is_refused_in_one_line_with_its_name(folder: Path, text: str, reason: str):
    (folder / "link.yaml").symlink_to("/etc/hostname")

    with pytest.raises(ConfigurationError, match=reason) as refused:
        read(folder, text)

    assert "root_agent.yaml" in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "line",
    [
        "tools: [{name: os.system}]",
        "tools: [{name: posix.system}]",
        "tools: [{name: builtins.exec, args: {a: 1}}]",
        "tools: [{name: yaml.unsafe_load}]",
        "tools: [{name: yaml_agent.code_of_it.system}]",
        "tools: [{name: .code_of_it.system}]",
        "before_agent_callbacks: [{name: subprocess.run}]",
        "model_code: importlib.import_module",
        "output_schema: collections.OrderedDict",
        "planner_code: {name: os.environ}",
        "sub_agents: [{code: os.path}]",
        "agent_class: subprocess.Popen",
    ],
)
def test_a_file_names_nothing_of_the_standard_library(folder: Path, line: str):
    with pytest.raises(ConfigurationError, match="must not name"):
        read(folder, f"name: a\ninstruction: x\n{line}\n")


def test_a_file_starts_no_program_unless_that_is_allowed(folder: Path, monkeypatch: pytest.MonkeyPatch):
    text = "name: a\ninstruction: x\ntools: [{name: McpToolset, args: {stdio_server_params: {command: touch}}}]\n"

    with pytest.raises(ConfigurationError, match="ADK_ALLOW_CONFIG_STDIO_MCP_SERVERS"):
        read(folder, text)

    monkeypatch.setenv("ADK_ALLOW_CONFIG_STDIO_MCP_SERVERS", "1")
    assert isinstance(read(folder, text).tools[0], McpToolset)


def test_a_class_makes_an_agent_of_keys(folder: Path):
    agent = LlmAgent.from_config({"name": "a", "instruction": "x", "tools": ["load_memory"]}, str(folder / "a.yaml"))

    assert (agent.name, len(agent.tools)) == ("a", 1)


def test_a_file_that_is_not_there_is_named(folder: Path):
    with pytest.raises(FileNotFoundError, match=r"none\.yaml"):
        from_config(folder / "none.yaml")
