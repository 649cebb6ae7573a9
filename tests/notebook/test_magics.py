"""Cells as they are typed, right and wrong, in a real shell."""

import re
import subprocess
import sys

import pytest

from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.errors import UserError
from adk_nb.models.default_model import GEMINI_MODEL
from adk_nb.models.scripted_llm import ScriptedLlm, call
from adk_nb.notebook.chat.reply import Reply
from adk_nb.notebook.magics.catalog import grammars
from adk_nb.notebook.magics.extension import load_ipython_extension, unload_ipython_extension
from adk_nb.tools.function_tool import FunctionTool
from tests.notebook.conftest import Shell

TOOLS = '''%%tool
def weather_in(city: str) -> str:
    """Weather of a city."""
    return f"{city}: sunny"
'''
REFUND = '''%%tool --confirm
def refund(order: str, amount: float = 1.0) -> str:
    """Pay money back."""
    calls.append((order, amount))
    return "done"
'''


def scripted(shell: Shell, *answers: object) -> ScriptedLlm:
    """A model in the variable `model`, with an agent `guide` that has it."""
    model = ScriptedLlm(*answers)  # type: ignore[arg-type]
    shell.names["model"] = model
    shell.cell("%%agent guide -m model -t weather_in\nBe brief.")
    return model


def one_line(said: str, kind: str) -> str:
    """The words of an error that is exactly one line."""
    assert "\n" not in said
    assert said.startswith(f"{kind}: ")
    return said.removeprefix(f"{kind}: ")


def asking_for_refunds(shell: Shell, *later_args: object, calls: int = 1) -> None:
    shell.names["calls"] = []
    shell.cell(REFUND)
    function_calls = [call("refund", order=str(number), amount=250.0) for number in range(calls)]
    shell.names["model"] = ScriptedLlm(function_calls, *later_args)  # type: ignore[arg-type]
    shell.cell("%%agent support -m model -t refund\nHelp.")


# ---- loading


def test_loading_costs_little_and_loads_no_model_and_no_widget() -> None:
    script = (
        "import sys, time\n"
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\n"
        "before = time.process_time()\n"
        "shell.run_line_magic('load_ext', 'adk_nb')\n"
        "spent = time.process_time() - before\n"
        "print(spent, [one for one in ('google.genai', 'anywidget', 'ipywidgets', 'pydantic') if one in sys.modules])\n"
    )
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)

    spent, loaded = output.stdout.splitlines()[-1].split(" ", 1)
    assert loaded == "[]"
    assert float(spent) <= 0.25


def test_the_greeting_is_one_line_and_the_same_wherever_notebooks_are_tested(bare: Shell) -> None:
    bare.cell("%load_ext adk_nb")

    assert bare.printed.count("\n") == 1 and bare.printed.startswith("adk_nb 0.1.0")
    assert "model" not in bare.printed


def test_the_greeting_says_live_which_model_answers(bare: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ADK_NB_DISPLAY")
    bare.cell("%load_ext adk_nb")
    without = bare.printed
    monkeypatch.setenv("GOOGLE_API_KEY", "a key")
    bare.cell("%reload_ext adk_nb")

    assert "offline (no key" in without and without.count("\n") == 1
    assert f"model {GEMINI_MODEL} (GOOGLE_API_KEY " in bare.printed


def test_loading_twice_and_reloading_keep_what_was_defined(shell: Shell) -> None:
    shell.cell(TOOLS)
    scripted(shell, "One.", "Two.")
    shell.cell("%chat guide First")
    earlier_counts = len(shell.ip.Completer.custom_matchers), len(shell.ip.input_transformer_manager.token_transformers)

    shell.cell("%load_ext adk_nb")
    shell.cell("%reload_ext adk_nb")
    unload_ipython_extension(shell.ip)
    load_ipython_extension(shell.ip)
    reply = shell.cell("%chat guide Second")

    later_counts = len(shell.ip.Completer.custom_matchers), len(shell.ip.input_transformer_manager.token_transformers)
    assert earlier_counts == later_counts
    assert reply.text == "Two."
    assert "First" in str(shell.cell("%trace"))


def test_unloading_takes_everything_out(shell: Shell) -> None:
    unload_ipython_extension(shell.ip)

    assert "`%chat` not found" in shell.fails("%chat weather hi")
    assert "`%%agent` not found" in shell.fails("%%agent weather\nhi")
    assert "AdkNb" not in [type(configurable).__name__ for configurable in shell.ip.configurables]


# ---- %%agent, %%tool


def test_a_cell_defines_an_agent_and_the_next_one_talks_to_it(shell: Shell) -> None:
    shell.cell(TOOLS)
    model = scripted(shell, call("weather_in", city="Oslo"), "It is sunny in Oslo.")

    reply = shell.cell("ans = %chat guide How is the weather in Oslo?")

    assert reply is None  # an assignment shows nothing
    assert isinstance(shell.names["ans"], Reply)
    assert shell.names["ans"] is shell.names["_run"]
    assert shell.names["ans"].text == "It is sunny in Oslo."
    assert [len(request.contents) for request in model.requests] == [1, 3]
    assert model.requests[0].contents[0].parts[0].text == "How is the weather in Oslo?"


def test_a_text_that_ends_in_a_question_mark_is_said_not_looked_up(shell: Shell) -> None:
    model = scripted(shell, "1", "2", "3", "4") if shell.cell(TOOLS) else None
    assert model

    shell.cell("%chat guide How is Oslo?")
    shell.cell("ans = %chat guide And Rome?")
    shell.cell("for _ in range(1):\n    %chat guide It's (really fine?")
    shell.cell("%%chat guide\nAnd Paris?")

    texts = [request.contents[-1].parts[0].text for request in model.requests]
    assert texts == ["How is Oslo?", "And Rome?", "It's (really fine?", "And Paris?"]


def test_help_is_shown_for_both_forms_of_every_magic(shell: Shell) -> None:
    for name, grammar in grammars().items():
        for mark in ("%", "%%"):
            shell.cell(f"{mark}{name}?")
            assert grammar.help in shell.printed


def test_a_capture_in_the_first_line_keeps_the_reply_and_shows_nothing(shell: Shell) -> None:
    shell.cell(TOOLS)
    scripted(shell, "One.")

    result = shell.cell("%%chat ans << guide\nHello")

    assert result is None
    assert shell.names["ans"].text == "One."


def test_a_semicolon_silences_and_free_text_with_odd_quotes_is_no_trouble(shell: Shell) -> None:
    shell.cell(TOOLS)
    scripted(shell, "One.", "Two.", "Three.")

    line, cell = "%chat guide it's 'odd (\"text", "%%chat guide\n  it's\n odd: {x} ${y}\n"
    assert shell.cell(f"{line};") is None
    assert shell.cell("%agents ;") is None
    assert shell.cell(line).text == "Two."
    assert shell.cell(cell).text == "Three."


def test_the_functions_of_a_tool_cell_are_tools_and_the_rest_of_it_stays(shell: Shell) -> None:
    reply = shell.cell(
        "%%tool\nimport math\nlimit = 3\ndef _half(x): return x / 2\n"
        "def area(r: float) -> float:\n    'Area.'\n    return math.pi * _half(2 * r) ** 2\n"
        "async def later(x: int) -> int:\n    'Later.'\n    return x\n"
        "class Thing: ...\narea(1.0)\n"
    )

    assert str(reply) == "area v1\nlater v1"
    assert "Out[2]: 3.14" in shell.printed  # an expression at the end shows itself as in any cell
    assert {"math", "limit", "_half", "Thing"} <= shell.names.keys()
    assert isinstance(shell.names["area"], FunctionTool)
    assert shell.names["area"](1.0) == pytest.approx(3.14159, abs=1e-4)
    assert "_half" not in str(shell.cell("%tools"))


def test_an_error_in_a_tool_cell_points_at_the_line_of_the_cell(shell: Shell) -> None:
    shell.cell("x = 1")
    message = shell.fails("%%tool\n\ndef f(x: int) -> int:\n    'F.'\n    return x\n1 / 0")

    assert "ZeroDivisionError" in message
    assert "In[3], line 6" in message or "In[3] line 6" in message
    assert "tool_cell.py" not in message
    assert not shell.ip.adk_nb.tool_names


def test_a_syntax_error_in_a_tool_cell_is_pythons_own(shell: Shell) -> None:
    message = shell.fails("%%tool\ndef f(x: int) -> int\n    return x")

    assert "SyntaxError" in message
    assert "line 2" in message


def test_options_of_a_tool_cell(shell: Shell) -> None:
    g = "def g(x: int) -> int:\n    'G.'\n    return x\n"
    text = "def f(x: int) -> int:\n    'F.'\n    return x\n" + g
    cells = ["--only f --rename f=eff\n" + text, "--confirm=always --thread\n" + text, "gee --timeout 2.5\n" + g]

    asks = "; asks before each call"
    assert [str(shell.cell(f"%%tool {cell}")) for cell in cells] == ["eff v1", f"f v1{asks}\ng v1{asks}", "gee v1"]
    message = shell.fails("%tool f --timeout 0")
    assert "--timeout: " in message and "got '0'" in message

    notebook = shell.ip.adk_nb
    assert (notebook.tool("gee").timeout, notebook.tool("f").timeout) == (2.5, None)
    assert notebook.tool("f").require_confirmation is True
    assert notebook.tool("f").thread is True
    assert notebook.tool("eff").require_confirmation is False


def test_existing_functions_and_decorated_ones_become_tools(shell: Shell) -> None:
    shell.cell(
        "from adk_nb import tool\ndef f(x: int) -> int:\n    'F.'\n    return x\n"
        "@tool(confirm=True)\ndef g(x: int) -> int:\n    'G.'\n    return x"
    )

    assert str(shell.cell("%tool f g")) == "f v1\ng v1; asks before each call"
    assert shell.ip.adk_nb.tool("g").require_confirmation is True
    assert shell.cell("f(3)") == 3


# ---- typed wrong


@pytest.mark.parametrize(
    ("cell", "kind", "text"),
    [
        ("%%agent", "InputError", "%%agent: NAME is missing; type %%agent NAME [options]"),
        ("%%agent other", "InputError", "%%agent other has no instruction; "),
        ("%%agent other\n\n  \n", "InputError", "no instruction"),
        ("%agent other", "InputError", "no instruction"),
        ("%%agent other -t one, two ,three\nHi", "InputError", "one,two,three"),
        ("%%agent other --modle x\nHi", "InputError", "did you mean --model? see %%agent?"),
        ("%%agent other -m gemni-3.8-flash\nHi", "ModelNotFoundError", "did you mean 'gemini-3.8-flash'?"),
        (
            "%%agent my-agent\nHi",
            "ConfigurationError",
            "'my-agent'",
        ),
        ("%%agent list\nHi", "InputError", "'list'"),
        ("%%agent class\nHi", "InputError", "'class'"),
        ("%%agent weather_in\nHi", "ConfigurationError", "'weather_in' is a tool (In[2])"),
        (
            "%%agent data\nHi",
            "InputError",
            "del data",
        ),
        ("%%agent other\nSee {{dat}}.", "InputError", "did you mean {{data}}? (In[5] line 2)"),
        (
            "%%agent other\nSee **\n{{value}}**.",
            "InputError",
            "write \\{{value}} or use --raw",
        ),
        ("%%agent other\nSee {{secret}}.", "InputError", "{{secret}} looks like a secret"),
        ("%%agent other\nSee {{data[7]}}.", "InputError", "{{data[7]}} cannot be read: IndexError"),
        ("%%agent other -t 'a\nHi", "InputError", "a quote is not closed"),
        ("%%chat guide", "InputError", "%%chat: no text"),
        ("%chat giude How are you?", "AgentNotFoundError", "no agent named 'giude'; did you mean 'guide'?"),
        ("%%chat nobody\nHi", "AgentNotFoundError", "no agent named 'nobody'"),
        ("%chat --yes --no guide Hi", "InputError", "--yes and --no exclude each other"),
        ("%chat guide See {{dta}}", "InputError", "did you mean {{data}}?"),
        ("%%chat guide << guide\nHi", "InputError", "the reply in 'guide'"),
        ("%%tool", "InputError", "%%tool: the cell is empty"),
        ("%%tool\nx = 1", "InputError", "%%tool defines no function"),
        (
            "%%tool\ndef f(a, b: int): return 1",
            "ConfigurationError",
            "write `a: str`, or whatever it is (In[5] line 2)",
        ),
        ("%%tool\ndef f(a: int,\n  b): return 1", "ConfigurationError", "parameter 'b' has no type"),
        ("%%tool\nimport io\ndef f(a: io.BytesIO): return 1", "ConfigurationError", "JSON"),
        (
            "%%tool\ndef guide(a: int): return 1",
            "ConfigurationError",
            "'guide' is an agent (In[3]); give the tool another",
        ),
        ("%%tool --confirm=x>1\ndef f(a: int): return 1", "ConfigurationError", "there is no 'x'; there is: a"),
        ("%%tool --confirm a>\ndef f(a: int): return 1", "InputError", "%%tool --confirm: the expression 'a>' cannot"),
        ("%%tool --only g\ndef f(a: int): return 1", "InputError", "this cell defines no function 'g'; it defines f"),
        ("%%tool --rename f\ndef f(a: int): return 1", "InputError", "--rename takes function=name, got 'f'"),
        ("%%tool h\ndef f(a: int): ...\ndef g(a: int): ...", "InputError", "2 functions cannot have one name"),
        ("%%tool f g\ndef f(a: int): return 1", "InputError", "%%tool takes one name, and there are 2: f, g"),
        ("%tool", "InputError", "%tool needs the name of a function"),
        ("%tool fnuc", "InputError", "there is no function 'fnuc'; did you mean 'func'?"),
        ("%tool data", "InputError", "'data' is of type list, not a function"),
        ("%agents --show guid", "AgentNotFoundError", "did you mean 'guide'?"),
        ("%agents --rm guid", "AgentNotFoundError", "did you mean 'guide'?"),
        ("%tools --schema weather", "ToolNotFoundError", "did you mean 'weather_in'?"),
        ("%state budgt", "StateKeyError", "no key 'budgt' in the state of session 'main'; did you mean 'budget'?"),
        ("%state --del budgt", "StateKeyError", "did you mean 'budget'?"),
        ("%state x y=1", "InputError", "'x' has no value; type x=value"),
        ("%state =1", "InputError", "got '=1'"),
        ("%state budget==5", "InputError", "type budget=5"),
        ("%state budget = = 5", "InputError", "type budget=VALUE"),
        ("%state other==", "InputError", "type other=VALUE"),
        ("%state a-b=1", "InputError", "'a-b' cannot be a key"),
        ("%state temp:x=1", "InputError", "would last for one turn only"),
        ("%state -s mian", "SessionNotFoundError", "no session named 'mian'; did you mean 'main'?"),
        ("%%state\nx=1", "InputError", "type %state"),
        ("%trace --raw 99", "InputError", "no event 99"),
        ("%trace --raw x", "InputError", "--raw: must be a positive integer, got 'x'"),
        ("%trace --last", "InputError", "type %chat first"),
        ("%confirm --yes", "InputError", "no approval is open in session 'main'"),
        ("%confirm 7 --yes", "InputError", "no approval is open in session 'main'"),
        ("%confirm --no --all", "InputError", "no approval is open in session 'main'"),
        ("%confirm --yes --no", "InputError", "--yes and --no exclude each other"),
        ("%confirm --edit amount=3", "InputError", "add --yes or --no"),
    ],
)
def test_what_is_typed_wrong_gets_one_line_and_loses_nothing(shell: Shell, cell: str, kind: str, text: str) -> None:
    shell.cell(TOOLS)
    scripted(shell, "Still here.")
    shell.cell("data = [1]\nsecret = 'sk-' + 'a1' * 20\ndef func(x): return x\n%state budget=4")
    stored = {text: shell.names[text] for text in ("guide", "weather_in", "data", "func")}

    line = one_line(shell.fails(cell), kind)

    assert text in line
    assert {item: shell.names[item] for item in stored} == stored
    reply = shell.cell("%chat guide Are you there?")
    assert reply.text == "Still here."
    assert shell.cell("%state budget") == 4


@pytest.mark.parametrize(
    "line", ["%tool Nope", "%%agent other --output-schema Nope\nHi", "%chat --attach Nope Hi", "%chat See {{opne}}"]
)
def test_hints_propose_no_name_that_ipython_made(shell: Shell, line: str) -> None:
    assert "open" in shell.names
    shell.cell("%%agent guide\nGuide.")

    assert "'open'" not in (wrong := shell.fails(line)) and "{{open}}" not in wrong


@pytest.mark.parametrize(
    ("cell", "magic"),
    [
        ("%confrim", "%confirm"),
        ("x = %confrim yes", "%confirm"),
        ("%%agnet guide\nHi", "%%agent"),
        ("%sesion", "%session"),
    ],
)
def test_a_mistyped_magic_is_followed_by_the_name_of_ours(shell: Shell, cell: str, magic: str) -> None:
    assert "not found" in (printed := shell.fails(cell))
    assert f"did you mean {magic}?" in printed.splitlines()[-1]


def test_a_magic_of_somebody_else_gets_no_hint_of_ours(shell: Shell) -> None:
    assert "adk_nb" not in shell.fails("%zzz")
    shell.names["other"] = lambda line: None
    shell.cell("get_ipython().register_magic_function(other, 'line', 'confrims')")
    assert shell.run("%confrims").success and "adk_nb" not in shell.printed


def test_no_error_of_ours_is_one_that_test_runners_overlook(shell: Shell) -> None:
    for cell in ("%%agent a", "%%agent a --x\nb", "%chat", "%confirm --yes"):
        error = shell.run(cell).error_in_exec
        assert isinstance(error, UserError)
        assert type(error).__name__ != "UsageError"


def test_without_any_agent_chat_says_how_to_begin(shell: Shell) -> None:
    line = one_line(shell.fails("%chat How are you?"), "InputError")

    assert "%%agent NAME" in line and line.endswith("see %%agent?")


def test_a_missing_state_key_is_said_when_the_agent_is_asked(shell: Shell) -> None:
    shell.cell(TOOLS)
    shell.names["model"] = ScriptedLlm("Fine.")
    shell.cell("%%agent planner -m model\nPlan within {user:budget} euros.")

    message = one_line(shell.fails("%chat planner Go").splitlines()[-1], "StateKeyError")
    shell.cell("%state user:budget=400")

    assert message.startswith("{user:budget} ")
    for fact in ("%state user:budget=...", "{user:budget?}", "(In[3] line 2)", "%rewind --rerun"):
        assert fact in message
    assert shell.cell("%chat planner Go").text == "Fine."


def test_a_missing_key_of_a_model_is_one_line(shell: Shell) -> None:
    shell.cell("%%agent real -m gemini-2.5-flash\nBe brief.")

    line = shell.fails("%chat real Hi").splitlines()[-1]

    assert "GOOGLE_API_KEY" in one_line(line, "MissingKeyError")


def test_a_tool_that_raises_does_not_end_the_turn(shell: Shell) -> None:
    shell.cell("%%tool\ndef weather_in(city: str) -> str:\n    'Weather.'\n    raise OSError('no network')")
    model = scripted(shell, call("weather_in", city="Oslo"), "I could not look it up.")

    reply = shell.cell("%chat guide How is Oslo?")

    assert (reply.status, reply.text) == ("done", "I could not look it up.")
    assert "OSError: no network" in str(model.requests[1].contents[-1])


# ---- who is meant


def test_a_line_without_a_name_goes_to_the_only_agent_then_to_the_root(shell: Shell) -> None:
    shell.cell(TOOLS)
    scripted(shell, "guide 1", "guide 2")
    assert shell.cell("%chat What is up?").text == "guide 1"

    shell.names["other_model"] = ScriptedLlm("boss 1", "boss 2")
    shell.cell("%%agent boss -m other_model --root\nLead.")
    assert shell.cell("%chat What is up?").text == "boss 1"
    texts = [shell.cell(f"%chat {line} What is up?").text for line in ("guide", "-- guide")]
    assert texts == ["guide 2", "boss 2"]


def test_of_several_agents_without_a_root_none_is_guessed_whoever_was_asked_last(shell: Shell) -> None:
    shell.cell(TOOLS)
    scripted(shell, "guide 1", "guide 2")
    shell.cell("%%agent other -m offline\nHi.")
    shell.cell("%chat guide Hello")

    line = one_line(shell.fails("%chat What is up?"), "InputError")

    assert "guide, other" in line and "--root" in line
    assert shell.names["_run"].text == "guide 1"


def test_agents_made_in_python_are_asked_by_the_name_of_their_variable(shell: Shell) -> None:
    shell.names["poet"] = LlmAgent(name="verses", model=ScriptedLlm("A rhyme.", "Again."), instruction="Rhyme.")

    assert shell.cell("%chat poet Write").text == "A rhyme."
    assert "poet" in str(shell.cell("%agents"))
    assert "Python" in str(shell.cell("%agents"))


def test_names_and_texts_of_any_alphabet(shell: Shell) -> None:
    shell.cell("%%tool\ndef größe(maß: float) -> float:\n    'Größe.'\n    return maß")
    shell.names["модель"] = ScriptedLlm(call("größe", maß=2.0), "二")
    shell.cell("%%agent wächter -m модель -t größe\nAntworte kurz.")

    reply = shell.cell("%chat wächter Wie groß ist «das»? 大きい?")
    assert reply.text == "二"
    assert "'wächter'?" in one_line(shell.fails("%chat wächtre Hallo"), "AgentNotFoundError")


# ---- sessions


def test_sessions_are_apart_and_new_ones_become_the_current_one(shell: Shell) -> None:
    shell.cell(TOOLS)
    model = scripted(shell, "1", "2", "3", "4")

    shell.cell("%chat guide One")
    shell.cell("%chat -s side guide Two")
    shell.cell("%chat guide Three")
    shell.cell("%chat --new guide Four")

    assert [len(request.contents) for request in model.requests] == [1, 1, 3, 1]
    assert "Four" in str(shell.cell("%trace"))
    assert "Three" in str(shell.cell("%trace -s main"))
    repeated_message = shell.fails("%chat --new -s side guide Five")
    assert "'side'" in one_line(repeated_message, "InputError")


def test_state_is_shown_set_deleted_and_explained(shell: Shell) -> None:
    reply = shell.cell('%state budget=400 user:name="Ada L" places=\'["Oslo"]\' note=NaN')
    assert str(reply).splitlines() == ["budget: 400", 'user:name: "Ada L"', 'places: ["Oslo"]', 'note: "NaN"']
    assert str(shell.cell("%state budget=300")) == "budget: 400 → 300"
    assert shell.cell("%state places") == ["Oslo"]
    assert str(shell.cell("%state --del budget")) == "budget is deleted"
    assert "budget" not in str(shell.cell("%state"))
    assert '"user:name": "Ada L"' in str(shell.cell("%state --json"))
    assert str(shell.cell("%state --diff")).count("budget") == 3


def test_an_empty_session_is_one_line_with_what_to_type(shell: Shell) -> None:
    for line in ("%session", "%trace", "%state", "%state --diff", "%agents", "%tools", "%confirm"):
        text = str(shell.cell(line))
        assert len(text.splitlines()) == 1 and re.search(r"%%?\w+", text), text

    shell.cell("%session new second")
    assert "second" in str(shell.cell("%session"))
    shell.cell("%state budget=4")
    assert len(str(shell.cell("%session")).splitlines()) == 3


def test_a_value_that_begins_with_an_equals_sign_stands_in_quotes(shell: Shell) -> None:
    shell.cell("%state formula=\"=a1\" other='a==b'")

    assert (shell.cell("%state formula"), shell.cell("%state other")) == ("=a1", "a==b")


def test_the_numbers_of_the_trace_are_those_of_raw_events(shell: Shell) -> None:
    shell.cell(TOOLS)
    scripted(shell, call("weather_in", city="Oslo"), "Sunny.")
    shell.cell("%chat guide How is it?")

    lines = str(shell.cell("%trace")).splitlines()[2:]
    number = next(line.split()[0] for line in lines if "weather_in(" in line)

    raw = str(shell.cell(f"%trace --raw {number}"))
    assert '"function_call"' in raw
    assert "Oslo: sunny" in raw
    assert str(shell.cell("%trace --last")) == str(shell.cell("%trace"))


# ---- approvals


def test_an_approval_is_listed_edited_given_and_counts_once(shell: Shell) -> None:
    asking_for_refunds(shell, "Paid.", "You are welcome.")
    reply = shell.cell("%chat support Refund order 0, please")
    listed = str(shell.cell("%confirm"))
    busy = one_line(shell.fails("%chat support And?"), "PendingError")
    wrong = one_line(shell.fails("%confirm --yes --edit amout=100"), "InputError")
    misfit = one_line(shell.fails("%confirm --yes --edit amount=much"), "InputError")

    next_reply = shell.cell('%confirm --edit amount=100 --yes --reason "half, as agreed"')
    repeated_text = str(shell.cell("%confirm --yes"))
    likewise = str(shell.cell("%confirm --yes --edit amount=100"))
    edited = one_line(shell.fails("%confirm --yes --edit amount=99"), "InputError")
    against = one_line(shell.fails("%confirm --no"), "InputError")
    by_id = one_line(shell.fails(f"%confirm {reply.interrupts[0].id} --yes"), "InputError")

    assert reply.status == "pending"
    assert "refund" in listed
    assert "250" in listed
    assert "(refund)" in busy
    assert wrong.startswith("refund() ") and "'amout'" in wrong and "'amount'?" in wrong
    assert "'much'" in misfit and "%confirm --yes --edit amount=" in misfit
    assert (next_reply.status, next_reply.text) == ("done", "Paid.")
    assert shell.names["calls"] == [("0", 100)]
    assert repeated_text == likewise
    assert repeated_text.startswith('refund(order="0", amount=100) ') and repeated_text.endswith("%confirm")
    for wrong in (edited, against, by_id):
        assert wrong.endswith(repeated_text)
    other_line = one_line(shell.fails("%confirm 7 --yes"), "InputError")
    assert "'main'" in other_line and "refund" not in other_line and "%confirm 7" not in other_line
    assert shell.names["_run"] is next_reply
    shell.cell("%chat support Thanks")
    assert "%trace" in one_line(shell.fails("%confirm --yes"), "InputError")


def test_a_rejection_is_told_to_the_agent_with_its_reason(shell: Shell) -> None:
    asking_for_refunds(shell, "I am sorry.")
    shell.cell("%chat support Refund order 0, please")

    reply = shell.cell('%confirm --no --reason "too much"')

    assert reply.text == "I am sorry."
    assert shell.names["calls"] == []
    assert "too much" in str(shell.names["model"].requests[-1].contents[-1])


def test_several_approvals_are_answered_one_by_one_or_all_at_once(shell: Shell) -> None:
    asking_for_refunds(shell, "Both.", calls=2)
    shell.cell("%chat support Refund both")

    line = one_line(shell.fails("%confirm --yes"), "InputError")
    unknown = one_line(shell.fails("%confirm 7 --yes"), "InputError")
    twin = one_line(shell.fails("%confirm refund --yes"), "InputError")
    reply = shell.cell("%confirm --yes --all")

    assert line.startswith("2 approvals ") and "1 (refund), 2 (refund)" in line and line.endswith("--all")
    assert "'7'" in unknown and "%confirm" in unknown
    assert "1 (refund), 2 (refund)" in twin
    assert reply.text == "Both."
    assert sorted(shell.names["calls"]) == [("0", 250.0), ("1", 250.0)]


@pytest.mark.parametrize(("mode", "calls"), [("--yes", 1), ("--no", 0)])
def test_a_line_of_chat_can_answer_the_approvals_of_its_turn(shell: Shell, mode: str, calls: int) -> None:
    asking_for_refunds(shell, "Over.")

    reply = shell.cell(f"%chat {mode} support Refund")

    assert (reply.status, reply.text, len(shell.names["calls"])) == ("done", "Over.", calls)


def test_the_setting_answers_approvals_unless_the_line_says_ask(shell: Shell) -> None:
    asking_for_refunds(shell, "Paid.")
    shell.cell("%config AdkNb.confirm = 'yes'")

    reply = shell.cell("%chat --ask support Refund")
    assert reply.status == "pending"
    assert shell.cell("%confirm --yes").text == "Paid."


def test_a_session_that_its_line_begins_is_told_once_and_a_likely_slip_with_the_name_that_was_meant(
    shell: Shell,
) -> None:
    shell.names["model"] = ScriptedLlm(*["Fine."] * 5)
    shell.cell("%%agent planner -m model\nPlan.")

    lines: list[str] = []
    for line in ("-s summer", "-s summer", "-s sumer", "--new -s autumn", "-s main"):
        shell.cell(f"%chat {line} planner Go")
        lines.append(shell.printed.splitlines()[0])
    assert lines[0] == "a new session 'summer'"
    assert "'sumer'" in lines[2] and lines[2].endswith("'summer'?")
    assert not any("a new session" in item for item in (lines[1], lines[3], lines[4]))


def test_a_session_begins_with_a_line_that_names_no_agent_too(shell: Shell) -> None:
    shell.names["model"] = ScriptedLlm("Fine.", "Fine.")
    shell.cell("%%agent planner -m model\nPlan.")
    shell.cell("%chat planner Hello")
    reply = shell.cell("%chat -s summer Add 5 and 6")

    assert (reply.agent, reply.question) == ("planner", "Add 5 and 6")
    assert shell.printed.startswith("a new session 'summer'")
