"""What a notebook has defined: names that survive a re-run, and sessions that are kept."""

import json

import pytest

from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.errors import ConfigurationError
from adk_nb.models.scripted_llm import ScriptedLlm, call
from adk_nb.notebook.chat.chat import Chat
from adk_nb.tools.base_toolset import StaticToolset
from adk_nb.tools.function_tool import FunctionTool
from adk_nb.tools.mcp_tool import McpToolset, StdioServerParameters
from tests.notebook.conftest import Shell

WEATHER = '%%tool\ndef weather(city: str) -> str:\n    """Weather of a city."""\n    return "{}"\n'
GUIDE = "%%agent guide -m model -t weather\n{}"


def begin(shell: Shell, *answers: object) -> ScriptedLlm:
    model = ScriptedLlm(*answers)  # type: ignore[arg-type]
    shell.names["model"] = model
    shell.cell(WEATHER.format("sunny"))
    return model


def test_a_cell_that_is_run_again_unchanged_says_so_and_keeps_the_object(shell: Shell) -> None:
    begin(shell)
    first = shell.cell(GUIDE.format("Be brief."))
    agent = shell.names["guide"]

    assert str(first) == "guide v1 · model model · tools weather"
    assert str(shell.cell(GUIDE.format("Be brief."))) == "guide v1, unchanged"
    assert shell.names["guide"] is agent
    assert isinstance(agent, LlmAgent)
    assert str(shell.cell(WEATHER.format("sunny"))) == "weather v1, unchanged"


def test_a_changed_cell_says_what_changed_and_the_session_goes_on(shell: Shell) -> None:
    model = begin(shell, call("weather", city="Oslo"), "Sunny.", "Still sunny.")
    shell.cell(GUIDE.format("Be brief.\nBe kind."))
    shell.cell("%chat guide How is Oslo?")
    shell.cell('%%tool\ndef book(day: str) -> str:\n    "Book."\n    return day')

    said = shell.cell("%%agent guide -m model -t weather,book --output-key answer\nBe brief.\nBe bold.\nBe new.")
    shell.cell("%chat guide And now?")

    assert str(said) == ("guide v1 → v2 (instruction +2 -1 lines, tools +book, output-key); session kept, 4 events")
    assert len(model.requests[-1].contents) == 5
    assert "Be bold." in str(model.requests[-1].config.system_instruction)
    assert shell.cell("%state answer") == "Still sunny."


def test_the_note_of_a_change_is_in_the_session_and_no_model_sees_it(shell: Shell) -> None:
    model = begin(shell, "One.", "Two.")
    shell.cell(GUIDE.format("Be brief."))
    shell.cell("%chat guide First")
    shell.cell(GUIDE.format("Be bold."))
    shell.cell("%chat guide Second")

    marks = [one for one in shell.ip.adk_nb.sessions.events() if one.author == "notebook"]
    assert [one.custom_metadata for one in marks] == [{"definition_changed": "guide v1 → v2 (instruction +1 -1 lines)"}]
    assert "v1 → v2" not in str(model.requests[-1].contents)
    assert len(model.requests[-1].contents) == 3


def test_a_tool_that_is_run_again_is_used_by_agents_that_were_not(shell: Shell) -> None:
    model = begin(shell, call("weather", city="Oslo"), "Sunny.", call("weather", city="Oslo"), "Rainy.")
    shell.cell(GUIDE.format("Be brief."))
    shell.cell("%chat guide How is Oslo?")

    said = shell.cell(WEATHER.format("rainy"))
    shell.cell("%chat guide How is Oslo?")

    assert str(said) == "weather v1 → v2; used by guide"
    assert "rainy" in str(model.requests[-1].contents[-1])


def test_the_python_twin_uses_a_tool_that_was_run_again_too(shell: Shell) -> None:
    model = begin(shell, call("weather", city="Oslo"), "Rainy.")
    shell.cell(GUIDE.format("Be brief."))
    chat = Chat(shell.names["guide"])
    shell.cell(WEATHER.format("rainy"))

    chat.ask("How is Oslo?")

    assert "rainy" in str(model.requests[-1].contents[-1])


def test_a_decorated_function_is_found_by_name_and_found_again(shell: Shell) -> None:
    model = ScriptedLlm(call("sail", days=2), "Done.", call("sail", days=2), "Done.")
    shell.names["model"] = model
    twin = "from adk_nb import tool\n@tool\ndef sail(days: int) -> str:\n    'Sail.'\n    return '{}'"
    shell.cell(twin.format("first"))
    shell.cell("%%agent captain -m model -t sail\nSail.")
    shell.cell("%chat captain Go")
    shell.cell(twin.format("second"))
    shell.cell("%chat captain Go")

    assert "second" in str(model.requests[-1].contents[-1])


def test_a_tool_may_be_defined_after_the_agent_that_names_it_but_before_it_is_asked(shell: Shell) -> None:
    shell.names["model"] = ScriptedLlm(call("weather", city="Oslo"), "Sunny.")

    said = shell.cell(GUIDE.format("Be brief."))
    error = shell.fails("%chat guide How is Oslo?")
    nothing_said = shell.ip.adk_nb.sessions.events()
    shell.cell(WEATHER.format("sunny"))

    assert str(said).splitlines()[1:] == ["not defined yet: weather; define before you ask guide"]
    assert "ToolNotFoundError: no tool named 'weather'" in error
    assert nothing_said == []
    assert shell.cell("%chat guide How is Oslo?").text == "Sunny."


def test_a_plain_function_is_no_tool_until_it_is_made_one(shell: Shell) -> None:
    shell.names["model"] = ScriptedLlm("Fine.")
    shell.cell("def weather(city: str) -> str:\n    return city")
    shell.cell(GUIDE.format("Be brief."))

    assert "here, type: %tool weather" in shell.fails("%chat guide Hi")
    shell.cell("%tool weather")
    assert shell.cell("%chat guide Hi").text == "Fine."


def test_a_tool_of_pythons_is_found_by_its_variable_too(shell: Shell) -> None:
    shell.names["forecast"] = FunctionTool(lambda: "rain", name="weather")
    shell.names["model"] = model = ScriptedLlm("Fine.")
    said = shell.cell(GUIDE.replace("weather", "forecast").format("Be brief."))

    assert "not defined yet" not in str(said)
    assert shell.cell("%chat guide Hi").text == "Fine."
    assert list(model.requests[0].tools_dict) == ["weather"]


def test_a_tool_of_another_library_is_told_with_how_to_wrap_it(shell: Shell) -> None:
    foreign = type("StructuredTool", (), {"__module__": "langchain_core.tools.structured"})
    shell.names["model"] = ScriptedLlm("Fine.")
    shell.names["weather"] = foreign()
    shell.cell(GUIDE.format("Be brief."))

    assert shell.fails("%chat guide Hi").endswith("; write weather_tool = LangchainTool(tool=weather)")
    with pytest.raises(ConfigurationError, match=r"write LangchainTool\(tool=...\)"):
        LlmAgent(name="guide", tools=[foreign()])


def test_an_agent_of_pythons_is_asked_by_its_variable_and_by_what_it_calls_itself(shell: Shell) -> None:
    shell.names["one"] = LlmAgent(name="guide", model=ScriptedLlm("As one.", "As guide."))
    shell.names["two"] = LlmAgent(name="other", model=ScriptedLlm())

    assert shell.cell("%chat one Hi").text == "As one."
    assert shell.cell("%chat guide Hi again").text == "As guide."
    assert [one.text for one in shell.ip.adk_nb.sessions.events() if one.author == "user"] == ["Hi", "Hi again"]
    assert "did you mean 'other'?" in shell.fails("%chat otehr Hi")


def test_an_agent_assigned_in_python_takes_the_place_of_the_cells(shell: Shell) -> None:
    begin(shell, "From the cell.", "From the cell again.")
    shell.cell(GUIDE.format("Be brief."))
    shell.cell("%chat guide Hi")

    shell.names["guide"] = LlmAgent(name="guide", model=ScriptedLlm("From Python."), instruction="Hi.")
    assert shell.cell("%chat guide Hi").text == "From Python."

    assert str(shell.cell(GUIDE.format("Be brief."))).startswith("guide v1 → v2")
    assert shell.cell("%chat guide Hi").text == "From the cell again."


def test_what_is_assigned_to_an_agent_in_python_counts(shell: Shell) -> None:
    model = begin(shell, "One.")
    shell.cell(GUIDE.format("Be brief."))
    shell.names["guide"].instruction = "Be long."
    shell.names["guide"].tools = []

    shell.cell("%chat guide Hi")

    assert "Be long." in str(model.requests[0].config.system_instruction)
    assert not model.requests[0].config.tools


def test_a_forgotten_agent_is_gone_and_its_session_is_not(shell: Shell) -> None:
    begin(shell, "One.")
    shell.cell(GUIDE.format("Be brief."))
    shell.cell("%chat guide Hello there")

    assert str(shell.cell("%agents --rm guide")) == "guide was removed; its sessions stay"
    assert "guide" not in shell.names
    assert "Hello there" in str(shell.cell("%trace"))
    assert "no agent" in str(shell.cell("%agents"))


def test_several_agents_that_share_a_session_see_each_other_quoted(shell: Shell) -> None:
    shell.cell("%config AdkNb.sessions_shared = True")
    begin(shell, "I am the guide.")
    shell.cell(GUIDE.format("Be brief."))
    other = shell.names["other"] = ScriptedLlm("I am the critic.")
    shell.cell("%%agent critic -m other\nCriticise.")

    shell.cell("%chat guide Who are you?")
    shell.cell("%chat critic And you?")

    assert "I am the guide." in str(other.requests[0].contents)


# ---- braces


def test_variables_are_read_when_the_cell_runs_and_again_when_it_is_run_again(shell: Shell) -> None:
    model = begin(shell, "One.", "Two.")
    shell.cell("places = ['Oslo', {'a': '{budget}'}]\nclass Trip: days = 3\ntrip = Trip()")
    cell = GUIDE.format("Places: {{places}}, first {{places[0]}}, {{trip.days}} days, {{places[1]['a']}}.")
    shell.cell(cell)
    shell.cell("%state budget=400\n%chat guide Hi")
    shell.cell("places = ['Rome', {'a': 'b'}]")
    said = shell.cell(cell)
    shell.cell("%chat guide Hi")

    first, second = (str(one.config.system_instruction) for one in model.requests)
    assert 'Places: ["Oslo",{"a":"{budget}"}], first Oslo, 3 days, {budget}.' in first
    assert 'Places: ["Rome",{"a":"b"}], first Rome, 3 days, b.' in second
    assert str(said).startswith("guide v1 → v2 ({{places}}, {{places[0]}}, {{places[1]['a']}})")


def test_pasted_braces_stay_and_state_keys_are_filled_in_at_each_turn(shell: Shell) -> None:
    model = begin(shell, "One.", "Two.")
    text = "{v: k for k in d} ${x} {} {{ f(1) }} {count} \\{{places}} {user:name?}|{count?}| {'a': 1}"
    said = shell.cell(GUIDE.format("").rstrip() + "\n" + text)
    shell.cell("%chat guide Hi")
    shell.cell("%state count=3 user:name=Ada")
    shell.cell("%chat guide Hi")

    first, second = (str(one.config.system_instruction) for one in model.requests)
    assert "{v: k for k in d} ${x} {} {{ f(1) }} {count} {{places}} || {'a': 1}" in first
    assert "{v: k for k in d} ${x} {} {{ f(1) }} 3 {{places}} Ada|3| {'a': 1}" in second
    assert str(said).splitlines()[1:] == [
        "uses: user:name? (state) · count? (state)",
        "{{ f(1) }} is left as text, as nothing is computed in braces; put its value into a variable",
        "not in the state yet, so left as text: {count}",
    ]


def test_a_key_that_was_known_and_is_gone_is_an_error_not_text(shell: Shell) -> None:
    begin(shell, "One.")
    shell.cell("%state budget=4")
    shell.cell(GUIDE.format("Within {budget}."))
    shell.cell("%state --del budget")

    said = shell.fails("%chat guide Hi").splitlines()[-1]

    assert "StateKeyError: {budget}" in said and "state; type %state budget=..." in said


def test_raw_takes_braces_as_they_are(shell: Shell) -> None:
    model = begin(shell, "One.")
    shell.cell("%%agent guide -m model --raw\n{{nothing}} {user:name}")
    shell.cell("%chat --raw guide {{nothing}} {x}")

    assert "{{nothing}} {user:name}" in str(model.requests[0].config.system_instruction)
    assert model.requests[0].contents[0].parts[0].text == "{{nothing}} {x}"


def test_single_braces_in_a_message_are_text_and_double_ones_are_variables(shell: Shell) -> None:
    model = begin(shell, "One.")
    shell.cell(GUIDE.format("Be brief."))
    shell.cell("import pandas as pd\nframe = pd.DataFrame({'city': ['Oslo'], 'days': [3]})\n%state budget=3")
    shell.cell("%%chat guide\n{budget} {v: k} {{frame}}")

    assert model.requests[0].contents[0].parts[0].text == (
        "{budget} {v: k} table of 1 row:\n\n| city ("
        + str(shell.names["frame"].dtypes.iloc[0])
        + ") | days (int64) |\n| --- | --- |\n| Oslo | 3 |"
    )


def test_a_long_value_is_truncated_with_a_note(shell: Shell) -> None:
    begin(shell)
    shell.cell("long = 'x' * 12340")

    said = shell.cell(GUIDE.format("{{long}}"))

    assert "{{long}}: 12,340 → 4,000 characters" in str(said)


def test_a_toolset_in_a_variable_is_named_as_a_tool_is(shell: Shell) -> None:
    begin(shell, call("shop_price", of="tea"), "Four.")

    def price(of: str) -> int:
        """What it costs."""
        return len(of) + 1

    shell.names["shop"] = StaticToolset([price], tool_name_prefix="shop")

    said = shell.cell("%%agent guide -m model -t weather,shop\nBe brief.")

    assert str(said) == "guide v1 · model model · tools weather, shop"
    assert "'result': 4" in str([event.content for event in shell.cell("%chat guide Tea?").events])
    assert "%tools --schema shop" in str(shell.cell("%tools"))
    assert '"name": "shop_price"' in str(shell.cell("%tools --schema shop"))


def test_a_toolset_that_does_not_reach_its_server_says_so_in_a_line(shell: Shell) -> None:
    shell.names["gone"] = McpToolset(connection_params=StdioServerParameters(command="no-such-command"))

    said = shell.fails("%tools --schema gone")

    assert said.startswith("InputError: %tools --schema gone: ")
    assert "no-such-command" in said
    assert "\n" not in said.strip()

    shell.cell("%%tool\ndef look(city: str) -> str:\n    'Looks.'\n    return city")
    listed = json.loads(str(shell.cell("%tools --schema")))
    assert listed["look"]["description"] == "Looks." and "no-such-command" in listed["gone"]
