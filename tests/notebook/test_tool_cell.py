"""What a `%%tool` cell and `@tool` refuse, and how they say it."""

import inspect
import logging

import pytest

from adk_nb import tool
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.models.scripted_llm import ScriptedLlm, call
from adk_nb.notebook.chat.chat import Chat
from adk_nb.notebook.magics.tool import TOOL
from adk_nb.tools import FunctionTool, LongRunningFunctionTool
from tests.notebook.conftest import Shell

STARRED = "def days(*dates: str, **rest: str) -> int:\n    'Days.'\n    return len(dates)"


def test_arguments_behind_a_star_are_refused_with_what_to_write(shell: Shell) -> None:
    said = shell.fails(f"%%tool\n{STARRED}")
    decorated = shell.fails(f"from adk_nb import tool\n@tool\n{STARRED}")

    message = decorated.splitlines()[-1]
    assert message.startswith("ConfigurationError: ") and "'days': parameter '*dates'" in message
    assert message.endswith("`dates: list[str]`")
    assert said == f"{message} (In[2] line 2)"
    without_type = shell.fails("%%tool\ndef days(*all):\n    'Days.'")
    assert "'days': parameter '*all'" in without_type
    defined = shell.cell("%%tool\ndef days(dates: list[str], **rest: str) -> int:\n    'D.'\n    return 1")
    assert str(defined) == "days v1"


def test_types_of_earlier_cells_are_read_where_annotations_are_text(shell: Shell) -> None:
    shell.cell(
        "from __future__ import annotations\nfrom pydantic import BaseModel\nclass Place(BaseModel):\n    name: str"
    )

    shell.cell("%%tool\ndef visit(place: Place, days: int | None = None) -> str:\n    'Visits.'\n    return place.name")

    visit = shell.ip.adk_nb.tool("visit")
    assert visit.declaration.parameters_json_schema["properties"]["place"] == {"$ref": "#/$defs/Place"}
    assert visit.check({"place": {"name": "Oslo"}}) is None


def test_a_plain_function_with_a_star_stays_a_tool_and_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    def days(since: str, *dates: str) -> str:
        return f"{since} {dates}"

    with caplog.at_level(logging.WARNING):
        model = ScriptedLlm(call("days", since="May"), "Done.")
        Chat(LlmAgent(name="guide", model=model, tools=[days])).ask("Go")

    assert "May ()" in str(model.requests[-1].contents[-1])
    assert "tool 'days': parameter '*dates' takes values" in caplog.text


@pytest.mark.parametrize(
    ("hint", "why"),
    [
        ("'np.ndarray'", "name 'np' is not defined"),
        ("'list[Nowhere]'", "name 'Nowhere' is not defined"),
        ("list['Nowhere']", "list['Nowhere']"),
        ("'logging.Nowhere'", "module 'logging' has no attribute 'Nowhere'"),
    ],
)
def test_a_type_that_cannot_be_read_is_said_to_be_that(shell: Shell, hint: str, why: str) -> None:
    said = shell.fails(f"%%tool\nimport logging\ndef f(x: {hint}) -> str:\n    'F.'\n    return ''")

    assert "parameter 'x'" in said and f": {why};" in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("body", "line", "why"),
    [
        ("x = 1\ndef f(a: int:\n    return a", 3, "SyntaxError"),
        ("def f(a: int) -> int:\n    return (a", 3, "SyntaxError: '(' was never closed"),
        ("def f(a: int) -> int:\nreturn a", 3, "IndentationError"),
        ("def f(a: int) -> int:\n    return a\nreturn 1", 4, "SyntaxError: 'return' outside function"),
    ],
)
def test_a_cell_that_is_no_python_is_shown_as_python_shows_it(shell: Shell, body: str, line: int, why: str) -> None:
    said = shell.fails(f"%%tool\n{body}")

    assert why in said
    assert f"line {line}" in said
    assert body.splitlines()[line - 2].strip() in said
    assert "adk_nb" not in said and "Traceback" not in said and "magic" not in said
    assert "x" not in shell.names


@pytest.mark.parametrize("name", ["print", "sum", "input"])
def test_no_tool_and_no_agent_hides_what_python_has(shell: Shell, name: str) -> None:
    tool = shell.fails(f"%%tool\ndef {name}(text: str) -> str:\n    'P.'\n    return text")
    agent = shell.fails(f"%%agent {name}\nBe brief.")

    assert tool.startswith("InputError: ") and agent.startswith("InputError: ")
    assert f"`def {name}_tool(...)`" in tool and f"--rename {name}_tool={name}" in tool
    assert repr(name) in agent and f"{name}_agent" in agent
    assert name not in shell.names
    shell.cell(f"%%tool --rename {name}_tool={name}\ndef {name}_tool(text: str) -> str:\n    'P.'\n    return text")
    assert f"{name}(text)" in str(shell.cell("%tools"))


PAY = 'def pay(amount: float, to: str = "Ada") -> str:\n    "Pay."\n    return "paid"'
LARGE = "def is_large(amount: float) -> bool:\n    'Large.'\n    return amount > 100"


def asks(shell: Shell, **args: object) -> bool:
    """Whether a call of `pay` waits for a person."""
    model = ScriptedLlm(call("pay", **args), "Done.")
    return bool(Chat(LlmAgent(name="clerk", model=model, tools=[shell.names["pay"]])).ask("Pay").interrupts)


@pytest.mark.parametrize(
    "cells",
    [
        [f'%%tool --confirm "amount > 100"\n{PAY}'],
        [f"%%tool --confirm amount>100\n{PAY}"],
        [f'%%tool --confirm="amount > 100"\n{PAY}'],
        [f"%%tool --confirm 'to != \"Ada\" or amount > 100'\n{PAY}"],
        [LARGE, f"%%tool --confirm=is_large\n{PAY}"],
        [f"%%tool --confirm=is_large\n{LARGE}\n{PAY}"],
        [f"%%tool\n{LARGE}", f"%%tool --confirm=is_large\n{PAY}"],
        [PAY, '%tool --confirm "amount > 100" pay'],
        [LARGE, PAY, "%tool --confirm=is_large pay"],
        ["from adk_nb import tool", f"@tool(confirm='amount > 100')\n{PAY}"],
        ["from adk_nb import tool", LARGE, f"%%tool\n@tool(confirm=is_large)\n{PAY}"],
        ["from adk_nb import tool", f"%%tool --confirm 'amount > 100'\n@tool(confirm=True)\n{PAY}"],
    ],
)
def test_a_condition_on_the_line_says_the_same_as_in_the_decorator(shell: Shell, cells: list[str]) -> None:
    for cell in cells:
        shell.cell(cell)

    assert (asks(shell, amount=50), asks(shell, amount=150), asks(shell, amount="150")) == (False, True, True)


def test_a_function_that_says_when_to_ask_becomes_no_tool_of_its_cell(shell: Shell) -> None:
    assert (
        str(shell.cell(f"%%tool --confirm=is_large\n{LARGE}\n{PAY}"))
        == "pay v1; asks before a call as its condition says"
    )
    assert shell.names["is_large"](101) is True


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "--confirm amount>",
            "InputError: %%tool --confirm: the expression 'amount>' cannot be used: invalid syntax at the end; write "
            "it as in Python, like amount > 100 and currency != 'EUR'",
        ),
        (
            '--confirm "amuont > 100"',
            "ConfigurationError: tool 'pay': the expression 'amuont > 100' cannot be used: there is no 'amuont'; did "
            "you mean amount?",
        ),
        (
            "--confirm=is_lage",
            "ConfigurationError: tool 'pay': the expression 'is_lage' cannot be used: there is no 'is_lage'; there is: "
            "amount, to",
        ),
        (
            "--confirm=amount > 100",
            "InputError: %%tool: '>' is not a name; a condition stands in quotes: --confirm \"amount > 100\"",
        ),
        (
            "--confirm amount > 100",
            "InputError: %%tool: '>' is not a name; a condition stands in quotes: --confirm \"amount > 100\"",
        ),
        (
            "--confirm is_large",
            "InputError: %%tool: 'is_large' is a function of this notebook; if it decides when to ask, write "
            "--confirm=is_large, else give the tool another name",
        ),
        (
            "--confirm \"print('x')\"",
            "InputError: %%tool --confirm: the expression \"print('x')\" cannot be used: there is no function 'print'; "
            "did you mean int?",
        ),
        (
            '--confirm "to.x == 1"',
            "InputError: %%tool --confirm: the expression 'to.x == 1' cannot be used: in 'to.x': values have no "
            "attributes; an entry of a dict is ['x']",
        ),
    ],
)
def test_a_condition_that_cannot_be_is_told_in_one_line_with_what_to_type(shell: Shell, line: str, said: str) -> None:
    shell.cell(LARGE)

    assert shell.fails(f"%%tool {line}\n{PAY}") == said


def test_options_said_of_a_tool_that_is_no_function_are_not_lost_in_silence(shell: Shell) -> None:
    shell.cell("from adk_nb.tools import google_search")

    said = shell.fails("%tool --confirm google_search")

    assert said.startswith("ConfigurationError: ") and "'google_search'" in said and "GoogleSearchTool" in said


def test_what_the_line_does_not_say_stays_as_the_tool_was_made(shell: Shell) -> None:
    shell.cell("from adk_nb.tools import LongRunningFunctionTool, load_memory")
    shell.cell(f"{PAY}\npay = LongRunningFunctionTool(pay, pause=True, timeout=5, description='Pays.')\nfirst = pay")

    shell.cell('%tool --confirm "amount > 100" pay')
    shell.cell("%tool --confirm load_memory")

    pay, first = shell.names["pay"], shell.names["first"]
    assert (pay.is_long_running, pay.pause, pay.timeout, pay.thread) == (True, True, 5, True)
    assert (pay.require_confirmation, first.require_confirmation) == ("amount > 100", False)
    assert pay.declaration == first.declaration
    assert type(shell.names["load_memory"]).__name__ == "LoadMemoryTool"


def test_what_it_means_to_call_a_tool_again_is_said_on_the_line(shell: Shell) -> None:
    shell.cell("%%tool --effect pure\ndef look(n: int) -> int:\n    'Look.'\n    return n")
    assert shell.names["look"].effect == "pure"
    shell.cell("%tool look")
    assert shell.names["look"].effect == "pure"
    shell.cell("%tool look --effect idempotent")
    assert shell.names["look"].effect == "idempotent"
    said = shell.fails("%tool look --effect onces")
    assert "'onces'; use" in said and "idempotent or once" in said


def test_the_line_and_the_decorator_take_the_same_options() -> None:
    line = {option.name.replace("-", "_") for option in TOOL.all_options}
    decorator = {one.name for one in inspect.signature(tool).parameters.values() if one.kind is one.KEYWORD_ONLY}

    # A cell says the name before the options, describes in the docstring, and has no place for a credential.
    assert decorator - line == {"name", "description", "auth_config"}
    assert line - decorator == {
        "only",
        "rename",
        "replace",
        "openapi",
        "mcp",
        "data",
        "sql",
    }  # of what is no single function


@pytest.mark.parametrize(
    ("line", "decorator"),
    [
        ("", ""),
        ("start_it", "name='start_it'"),
        ("--confirm", "confirm=True"),
        ("--confirm=never", "confirm=False"),
        ("--confirm='x > 1'", "confirm='x > 1'"),
        ("--thread", "thread=True"),
        ("--timeout 2.5", "timeout=2.5"),
        ("--long-running", "long_running=True"),
        ("--long-running --pause --timeout 3 --confirm", "long_running=True, pause=True, timeout=3, confirm='always'"),
    ],
)
def test_an_option_of_the_line_makes_the_tool_that_the_decorator_makes(shell: Shell, line: str, decorator: str) -> None:
    body = "def start(x: int) -> str:\n    'Starts.'\n    return 'begun'"
    shell.cell(f"%%tool {line}\n{body}")
    of_the_line = shell.names["start"]
    shell.cell(f"from adk_nb import tool\n@tool({decorator})\n{body}")
    of_the_decorator = shell.names["start"]

    assert isinstance(of_the_line, FunctionTool) and type(of_the_line) is type(of_the_decorator)
    assert settings(of_the_line) == settings(of_the_decorator)
    if line != "start_it":
        shell.cell(f"@tool\n{body}")
        shell.cell(f"%tool start {line}")
        assert settings(shell.names["start"]) == settings(of_the_line)


def settings(one: FunctionTool) -> tuple[object, ...]:
    pause = one.pause if isinstance(one, LongRunningFunctionTool) else None
    return (
        one.name,
        one.description,
        one.require_confirmation or False,
        one.thread,
        one.timeout,
        one.is_long_running,
        pause,
        one.declaration,
    )


def test_only_what_is_long_running_can_pause(shell: Shell) -> None:
    body = "def start(x: int) -> str:\n    'Starts.'\n    return 'begun'"
    why = "tool 'start': pause needs a long-running tool; add long_running=True, or --long-running"

    assert why in shell.fails(f"%%tool --pause\n{body}")
    decorated = shell.fails(f"from adk_nb import tool\n@tool(pause=True)\n{body}")
    assert why in decorated
    shell.cell(f"@tool\n{body}")
    assert why in shell.fails("%tool start --pause")


def test_a_long_running_tool_of_a_cell_waits_for_its_outcome(shell: Shell) -> None:
    shell.cell("%%tool --long-running --pause\ndef start(x: int) -> str:\n    'Starts.'\n    return 'begun'")
    shell.names["model"] = ScriptedLlm(call("start", x=1), "It is done.")
    shell.cell("%%agent guide -m model -t start\nBe brief.")

    events = shell.cell("%chat guide go").events

    [asked] = [one for event in events for one in event.get_function_calls()]
    assert asked.id in events[-1].long_running_tool_ids
    assert events[-1].get_function_responses()[0].will_continue


# ---- helpers

CLEAN = "def clean(text, *more):\n    return text.strip()\n"
SHOUT = "def shout(text: str) -> str:\n    'Shout.'\n    return clean(text).upper()\n"


@pytest.mark.parametrize("line", ["%%tool", "%%tool shout", "%%tool --confirm never"])
def test_a_function_without_types_stays_a_helper_of_the_tools_in_its_cell(shell: Shell, line: str) -> None:
    told = str(shell.cell(f"{line}\n{CLEAN}{SHOUT}")).splitlines()

    assert told[0] == "shout v1" and len(told) == 2
    assert "clean" in told[1] and "types" in told[1]
    assert inspect.isfunction(shell.names["clean"]) and isinstance(shell.names["shout"], FunctionTool)
    assert "clean" not in str(shell.cell("%tools"))
    shell.names["model"] = ScriptedLlm(call("shout", text=" hi "), "Done.")
    shell.cell("%%agent crier -m model -t shout\nShout.")
    responses = [one for event in shell.cell("%chat crier Hi").events for one in event.get_function_responses()]
    assert [one.response for one in responses] == [{"result": "HI"}]


def test_only_still_narrows_and_says_nothing_of_helpers(shell: Shell) -> None:
    assert str(shell.cell(f"%%tool --only shout\n{CLEAN}{SHOUT}")) == "shout v1"
    assert "'clean'" in shell.fails(f"%%tool --only clean\n{CLEAN}{SHOUT}")


@pytest.mark.parametrize(
    "helper",
    [
        "def half(text: str, times):\n    'Half.'\n",  # a type was forgotten
        "def noted(text, tool_context):\n    'Noted.'\n",  # only tools take it
        "def odd(text: 'Nowhere'):\n    'Odd.'\n",
    ],
)
def test_a_function_that_is_meant_as_a_tool_is_refused_for_its_types(shell: Shell, helper: str) -> None:
    name = helper[4 : helper.index("(")]

    assert f"tool {name!r}: parameter" in shell.fails(f"%%tool\n{helper}    return text\n{SHOUT}")


def test_a_cell_with_helpers_alone_and_a_helper_by_name_are_refused(shell: Shell) -> None:
    assert "tool 'clean': parameter" in shell.fails(f"%%tool\n{CLEAN}")
    assert "tool 'clean': parameter" in shell.fails("%tool clean")
    renamed = shell.fails(f"%%tool --rename clean=tidy\n{CLEAN}{SHOUT}")
    assert "tool 'tidy': parameter" in renamed
