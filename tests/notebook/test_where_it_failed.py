"""An error in a tool points at the line of the cell that it comes from."""

import logging
from typing import Any

import pytest

from adk_nb.agents import LlmAgent
from adk_nb.events import Event
from adk_nb.models.scripted_llm import ScriptedLlm, call
from adk_nb.notebook.chat.chat import Chat
from adk_nb.notebook.chat.reply import Reply
from tests.notebook.conftest import Shell

SPLIT = "%%tool\ndef split(bill: float, people: int) -> float:\n    'Splits.'\n"


def asked(shell: Shell, *answers: Any) -> Reply:
    shell.names["model"] = ScriptedLlm(*answers)
    shell.cell("%%agent guide -m model -t split\nBe brief.")
    return shell.cell("%chat guide go")


def failed_at(events: list[Event]) -> list[Any]:
    found = [(event.custom_metadata or {}).get("failed_at") for event in events]
    return [place for one in found if one for place in (one.values() if isinstance(one, dict) else [one])]


CALL = (call("split", bill=10, people=0), "Sorry.")


def test_a_failing_tool_is_told_with_its_cell_and_line(shell: Shell, caplog: pytest.LogCaptureFixture) -> None:
    shell.cell(SPLIT + "\n    return bill / people")

    with caplog.at_level(logging.INFO):
        reply = asked(shell, *CALL)

    assert failed_at(reply.events) == ["In[2] line 5"]
    assert "→ failed: ZeroDivisionError: " in str(reply._repr_mimebundle_())
    assert "(In[2] line 5)" in str(reply._repr_mimebundle_())
    assert any("'split'" in message and "ZeroDivisionError in In[2] line 5" in message for message in caplog.messages)
    [answer] = [one.response for event in reply.events for one in event.get_function_responses()]
    assert answer["error"].startswith("ZeroDivisionError: ")
    assert "In[2]" not in answer["error"]  # cells mean nothing to a model


@pytest.mark.parametrize(
    "body",
    [
        "    return _share(bill, people)",
        "    import json\n    return json.loads('[1]', object_hook=None) and sorted([2, 1], key=_share1)[0]",
        "    return [_share(bill, people) for _ in range(2)][0]",
        "    import threading\n    try:\n        int('x')\n    except ValueError as error:\n"
        "        raise RuntimeError('no number') from _caught()",
    ],
    ids=["helper", "library calls the cell back", "comprehension", "cause"],
)
def test_the_innermost_line_of_a_cell_counts(shell: Shell, body: str) -> None:
    shell.cell(
        "def _share(bill, people):\n    return bill / people\n"
        "def _share1(bill):\n    return _share(bill, 0)\n"
        "def _caught():\n    try:\n        _share(1, 0)\n    except ZeroDivisionError as error:\n        return error\n"
    )
    shell.cell(SPLIT + body)

    raised_here = "raise" in body
    assert failed_at(asked(shell, *CALL).events) == [
        f"In[3] line {body.count(chr(10)) + 4}" if raised_here else "In[2] line 2"
    ]


def test_an_error_inside_a_library_is_that_of_the_cell_s_own_line(shell: Shell) -> None:
    shell.cell(SPLIT + "    import json\n    import decimal\n    return json.loads('{')")

    assert failed_at(asked(shell, *CALL).events) == ["In[2] line 6"]


@pytest.mark.parametrize(
    ("line", "tool"),
    [
        ("%%tool", "async def split(bill: float, people: int) -> float:\n    'S.'\n    return bill / people"),
        ("%%tool --thread", "def split(bill: float, people: int) -> float:\n    'S.'\n    return bill / people"),
        ("%%tool --timeout 5", "def split(bill: float, people: int) -> float:\n    'S.'\n    return bill / people"),
        ("%%tool", "def split(bill: float, people: int):\n    yield 1\n    yield bill / people"),
        ("%%tool", "async def split(bill: float, people: int):\n    yield 1\n    yield bill / people"),
        ("%%tool", "def split(bill: float, people: int):\n    'S.'\n    return map(lambda one: one / people, [bill])"),
    ],
    ids=["async", "thread", "timeout", "generator", "async generator", "lazy"],
)
def test_however_the_tool_runs(shell: Shell, line: str, tool: str) -> None:
    shell.cell(f"{line}\n{tool}")

    assert failed_at(asked(shell, *CALL).events) == ["In[2] line 4"]


def test_a_tool_that_takes_too_long_is_told_with_the_line_it_waited_at(shell: Shell) -> None:
    shell.cell(
        "%%tool --timeout 0.01\nimport asyncio\nasync def split(bill: float, people: int) -> float:\n    'S.'\n"
        "    await asyncio.Event().wait()"
    )

    assert failed_at(asked(shell, *CALL).events) == ["In[2] line 5"]


def test_each_of_several_calls_has_its_own_line_and_one_that_works_has_none(shell: Shell) -> None:
    shell.cell(SPLIT + "    if people < 0:\n        raise ValueError('people')\n    return bill / people")

    reply = asked(shell, [call("split", bill=1, people=n) for n in (0, 1, -1)], "Sorry.")

    [results] = [event for event in reply.events if event.get_function_responses()]
    ids = [one.id for one in results.get_function_responses()]
    assert results.custom_metadata["failed_at"] == {ids[0]: "In[2] line 6", ids[2]: "In[2] line 5"}


@pytest.mark.parametrize("callback", ["before_tool_callback", "after_tool_callback", "before_model_callback"])
def test_a_callback_that_raises_ends_the_turn_and_says_where(shell: Shell, callback: str) -> None:
    shell.names["model"] = ScriptedLlm(call("f"), "never")
    shell.cell(
        "from adk_nb import Agent\ndef f() -> int:\n    'F.'\n    return 1\ndef check(**said):\n"
        f"    return {{}}['budget']\nguide = Agent(name='guide', model=model, tools=[f], {callback}=check)"
    )

    reply = shell.broke_off("%chat guide go")

    assert (reply.error or "").split(" ", 2) == ["KeyError:", "'budget'", "(In[2] line 6)"]
    assert failed_at(reply.events) == ["In[2] line 6"]
    assert reply.error in str(reply)


def test_where_tool_errors_end_the_turn_the_error_says_where(shell: Shell) -> None:
    shell.names["model"] = ScriptedLlm(call("f"))
    shell.cell(
        "from adk_nb import Agent\ndef f() -> int:\n    'F.'\n    return 1 / 0\n"
        "guide = Agent(name='guide', model=model, tools=[f], tool_errors='raise')"
    )

    assert shell.broke_off("%chat guide go").error.endswith("by zero (In[2] line 4)")


def test_a_cell_that_is_run_again_has_its_new_number(shell: Shell) -> None:
    for _ in range(2):
        shell.cell(SPLIT + "    return bill / people")

    assert failed_at(asked(shell, *CALL).events) == ["In[3] line 4"]


def test_an_error_that_no_cell_has_a_part_in_points_nowhere(shell: Shell) -> None:
    shell.cell("import math\nfrom adk_nb import Agent, tool")
    shell.names["model"] = ScriptedLlm(call("boom"), "Sorry.")
    shell.cell("from tests.support.talk import boom\nguide = Agent(name='guide', model=model, tools=[boom])")

    reply = shell.cell("%chat guide go")

    assert failed_at(reply.events) == []
    assert "failed: ValueError: bad" in str(reply._repr_mimebundle_())


@pytest.mark.parametrize("line", ["get_ipython = None", "def get_ipython(shell): 1 / 0", "del get_ipython"])
def test_a_notebook_that_has_lost_its_shell_is_no_reason_to_fail(shell: Shell, line: str) -> None:
    shell.cell(f"{line}\n" + "def split(bill: float) -> float:\n    'S.'\n    return bill / 0")
    agent = LlmAgent(name="guide", model=ScriptedLlm(call("split", bill=1), "Sorry."), tools=[shell.names["split"]])

    reply = Chat(agent).ask("go")

    assert failed_at(reply.events) == [] and reply.text == "Sorry."
