"""`%%agent`: schemas, fields without an option of their own, and options that stand above the text."""

import runpy
from pathlib import Path

import pytest

from adk_nb.models.scripted_llm import ScriptedLlm
from tests.notebook.conftest import Shell

TRIP = "from pydantic import BaseModel\nclass Trip(BaseModel):\n    city: str\n    days: int = 1"


@pytest.fixture
def shell(shell: Shell) -> Shell:
    shell.names["model"] = ScriptedLlm('{"city": "Oslo"}', "Fine.")
    shell.cell(TRIP)
    return shell


def test_an_answer_has_the_shape_of_a_class_of_the_notebook(shell: Shell) -> None:
    told = shell.cell("%%agent reader -m model --output-schema Trip --output-key trip\nRead.")
    shell.cell("%chat reader Three words: Oslo.")

    assert str(told).split(" · ") == ["reader v1", "model model", "output_schema Trip"]
    assert shell.ip.adk_nb.sessions.state() == {"trip": {"city": "Oslo", "days": 1}}
    assert shell.names["model"].requests[0].config.response_schema is shell.names["Trip"]


def test_a_variable_may_hold_the_name_of_a_model(shell: Shell) -> None:
    shell.cell("name = 'offline'")
    told = shell.cell("%%agent reader -m name\nRead.")

    assert str(told) == "reader v1 · model offline"
    shell.cell("%%agent other -m model\nRead.")
    assert shell.cell("%chat other --model name Hello").text
    assert not shell.names["model"].requests

    shell.cell("name = 'of-nobody-1'")
    assert "no model named 'of-nobody-1'" in shell.fails("%%agent reader -m name\nRead.")
    shell.cell("name = ''")
    assert "no model named 'name'" in shell.fails("%%agent reader -m name\nRead.")


def test_a_message_has_the_shape_of_a_json_schema_of_the_notebook(shell: Shell) -> None:
    shell.cell('wanted = {"type": "object", "properties": {"city": {"type": "string"}}}')
    shell.cell("%%agent reader -m model --input-schema wanted\nRead.")

    assert shell.names["reader"].input_schema == shell.names["wanted"]
    reply = shell.cell('%chat reader {"city": "Oslo"}')
    assert "Oslo" in reply.text


def test_a_class_that_was_defined_anew_makes_a_new_version_once_the_cell_is_run_again(shell: Shell) -> None:
    cell = "%%agent reader -m model --output-schema Trip\nRead."
    shell.cell(cell)
    assert str(shell.cell(cell)) == "reader v1, unchanged"
    shell.cell(TRIP)

    assert str(shell.cell(cell)) == "reader v1 → v2 (output_schema)"


def test_a_field_without_an_option_is_set_to_text_json_a_literal_or_a_variable(shell: Shell) -> None:
    shell.cell("def look(callback_context, llm_request): return None")
    shell.cell(
        "%%agent guide -m model --set include_contents=none --set identity=False --set before_model_callback=look "
        '--set generate_content_config={"temperature": 0.2, "stop_sequences": ["a b"]}\nBe brief.'
    )
    guide = shell.names["guide"]

    assert (guide.include_contents, guide.identity, guide.before_model_callback) == ("none", False, shell.names["look"])
    assert guide.generate_content_config.temperature == 0.2
    assert guide.generate_content_config.stop_sequences == ["a b"]


FRONT = """%%agent researcher {}
---
model: model
tools: [search, read_page]
max-iterations: 12
description: Finds and checks
set:
  include_contents: none
  generate_content_config: {{temperature: 0.5}}
root: true
---
You are a careful researcher.
"""


def test_many_options_stand_above_the_text_and_those_of_the_line_win(shell: Shell) -> None:
    told = str(shell.cell(FRONT.format("--max-iterations 3 --set include_contents=default")))
    agent = shell.names["researcher"]

    assert "search, read_page" in told.splitlines()[-1] and "researcher" in told.splitlines()[-1]
    assert agent.instruction == "You are a careful researcher."
    assert (agent.model, agent.max_iterations, agent.description) == (shell.names["model"], 3, "Finds and checks")
    assert (agent.include_contents, agent.generate_content_config.temperature) == ("default", 0.5)
    assert shell.ip.adk_nb.root == "researcher"


def test_a_team_and_a_graph_have_options_above_their_names_too(shell: Shell) -> None:
    shell.cell("%%agent one -m model\nOne.\n")
    shell.cell("%%agent both\n---\nkind: parallel\ndescription: Two\n---\none")
    shell.cell("%%workflow graph\n---\nmax_concurrency: 2\n---\nSTART -> one")

    assert shell.names["both"].description == "Two"
    assert shell.names["graph"].max_concurrency == 2
    message = shell.fails("%%agent both\n---\nkind: loop\n---\none two")
    assert "In[6] line 5: " in message and "'one two'" in message


def test_a_text_that_only_looks_like_options_is_a_text_and_said_to_be(shell: Shell) -> None:
    told = str(shell.cell("%%agent guide -m model\ndescription: what you see.\nDescribe."))

    assert shell.names["guide"].instruction.startswith("description: what")
    assert told.endswith("between two lines ---")


WRONG = [
    ("--output-schema Trp", "there is no variable 'Trp'; did you mean 'Trip'?"),
    ("--output-schema list[Trip]", "write Wanted = list[Trip] in a cell, and %%agent --output-schema Wanted"),
    ("--output-schema model", "output_schema: ScriptedLlm(model='scripted') is not a schema"),
    ("--set include_contents=non", "include_contents must be default or none, got 'non'; did you mean none?"),
    ("--set includ_contents=none", "an agent has no field 'includ_contents'; did you mean include_contents?"),
    ("--set temprature=1", 'did you mean temperature? write --set generate_content_config={"temperature": 1}'),
    ("--set temperature=0.2", 'write --set generate_content_config={"temperature": 0.2}'),
    ("--set planner=Trp", "there is no variable 'Trp'; did you mean 'Trip'?"),
    ("--set planner=Trip", "'planner': Input should be an instance of BasePlanner"),
    ("--set output_key=x", "--set is not needed for output_key: write --output-key"),
    ("--set identity", "expected --set include_contents=none, got 'identity'"),
]
ABOVE = [
    ("modl: model", "front matter: unknown option 'modl'; did you mean model?"),
    ("temperature: 0.4", "unknown option 'temperature'; write other fields under set:"),
    ("name: guide", "write the name after %%agent"),
    ("root: perhaps", "front matter: root must be true or false, got 'perhaps'"),
    ("mode: chatty", "front matter: mode: unknown mode 'chatty'; use chat, single_turn or task"),
    ("a: b: c", "%%agent guide, line 3: mapping values are not allowed here"),
    ("Be brief.", "the lines between --- are options"),
    ("set: 3", "set must be a mapping"),
    ("set:\n  1: x", "an agent has no field '1'; there is "),
    ("set:\n  on: x", "an agent has no field 'True'; "),
    ("tools: {a: b}", "tools must be text or a list of names"),
]


def test_what_is_wrong_with_options_is_said_with_what_to_write(shell: Shell) -> None:
    for line, said in WRONG:
        assert said in shell.fails(f"%%agent guide -m model {line}\nBe brief.")
    for above, said in ABOVE:
        assert said in shell.fails(f"%%agent guide -m model\n---\n{above}\n---\nBe brief.")
    of_a_team = shell.fails("%%agent team --kind loop --set identity=no\nguide")
    assert "--kind loop" in of_a_team and "--set" in of_a_team
    not_closed = shell.fails("%%agent guide -m model\n---\nBe brief.")
    assert "another line ---" in not_closed
    assert "guide" not in shell.names


def test_fields_and_variables_are_completed(shell: Shell) -> None:
    line = "%%agent guide"
    assert shell.complete(f"{line} --set include") == [f"{line} --set include_contents="]
    assert shell.complete(f"{line} --output-schema Tri") == [f"{line} --output-schema Trip"]


# ---- names


def test_a_name_of_another_kind_is_taken_only_on_purpose(shell: Shell) -> None:
    book = '%%tool {}\ndef book(day: str) -> str:\n    "Book."\n    return day'
    shell.cell(book.format(""))
    refused = shell.fails("%%agent book -m model\nBook.")
    shell.cell("%%agent book -m model --replace\nBook.")
    no_tool = shell.ip.adk_nb.tool_names
    refused_too = shell.fails(book.format(""))
    shell.cell(book.format("--replace"))

    assert "'book' is a tool" in refused and "(In[3]); " in refused and "--replace" in refused
    assert no_tool == []
    assert "an agent (In[5]); " in refused_too and "--replace" in refused_too
    assert (shell.ip.adk_nb.agent_names, shell.ip.adk_nb.tool_names) == ([], ["book"])


def test_what_a_cell_names_has_to_be_there_where_that_is_asked_for(shell: Shell) -> None:
    shell.cell("%%agent guide -m model -t later\nBe brief.")
    shell.cell("%config AdkNb.strict = True")

    cells = {
        "%%agent guide -t later\nBe bold.": ("guide ", ": later;"),
        "%%agent team --kind loop\nguide -> late": ("team ", ": late;"),
        "%%agent guide\nWithin {budget}.": ("guide ", ": {budget};"),
    }
    for cell, (name, missing) in cells.items():
        message = shell.fails(cell)
        assert message.startswith(f"InputError: {name}") and missing in message, cell
    assert shell.names["guide"].instruction == "Be brief."


def test_what_options_set_is_exported(shell: Shell, tmp_path: Path) -> None:
    shell.ip.starting_dir = str(tmp_path)
    shell.cell("def look(callback_context, llm_request): return None")
    shell.cell(
        "%%agent reader --output-schema Trip --set before_model_callback=look --set on_output_error=retry --set "
        'generate_content_config={"temperature": 0.2}\nRead.'
    )
    said = str(shell.cell("%export agents/\n"))
    shell.cell("%export agent.py")
    package, script = (tmp_path / "agents/agent.py").read_text(), runpy.run_path(str(tmp_path / "agent.py"))

    assert "on_output_error" in said
    assert "output_schema=Trip," in package and "model_callback=look," in package
    assert package.index("class Trip") < package.index("reader = LlmAgent(")
    reader = script["root_agent"]
    assert (reader.output_schema, reader.before_model_callback) == (script["Trip"], script["look"])
    assert (reader.on_output_error, reader.generate_content_config.temperature) == ("retry", 0.2)
