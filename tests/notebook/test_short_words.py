"""Help that begins with what everybody needs, and errors and hints that say a thing once."""

from pathlib import Path
from typing import Any

import pytest

from adk_nb.models import ScriptedLlm, call
from adk_nb.notebook.magics.catalog import grammars
from tests.notebook.conftest import Shell

PAY = '''%%tool --confirm always
def pay(amount: int) -> str:
    """Pays."""
    return "paid"'''


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def inspected(shell: Shell, name: str) -> dict[str, str]:
    """The forms of what `name?` shows."""
    ip: Any = shell.ip
    return ip.object_inspect_mime(name)


def test_help_begins_with_a_few_lines_and_three_examples_and_the_rest_is_folded_on_a_page(shell: Shell) -> None:
    for name, grammar in grammars().items():
        first, rest = grammar.help_parts
        beginning, _, examples = first.partition("Examples:")
        assert len([line for line in beginning.splitlines() if line.strip()]) <= 5, name
        assert [example for example in grammar.examples if example.splitlines()[0] in examples][:3] == (
            grammar.examples[:3]
        )
        page = inspected(shell, f"%{name}")["text/markdown"]
        shown, _, folded = page.partition("<details>")
        assert first in shown and rest in folded
        assert all(option.usage in folded and option.help in folded for option in grammar.all_options)


def test_help_of_other_things_is_as_it_was_and_that_of_magics_is_gone_with_them(shell: Shell) -> None:
    assert "text/markdown" not in inspected(shell, "len")
    shell.cell("%unload_ext adk_nb")
    assert not shell.ip.inspector.mime_hooks


@pytest.mark.parametrize(
    ("line", "meant"), [("%agnt x", "%%agent?"), ("%%agnt x\ny", "%%agent?"), ("%workflw x", "%%workflow?"),
    ("%chta x", "%chat?"), ("%%chta x\ny", "%%chat?")],
)  # fmt: skip
def test_a_misspelt_magic_is_proposed_as_it_is_meant(shell: Shell, line: str, meant: str) -> None:
    assert f"did you mean {meant}" in shell.fails(line)


def test_a_tool_without_a_docstring_is_told_that_the_model_sees_no_description(shell: Shell) -> None:
    report = str(
        shell.cell("%%tool\ndef half(x: int) -> int:\n    return x\ndef one() -> int:\n    'One.'\n    return 1")
    )

    assert "half has no docstring: the model sees no description of it" in report and "one has" not in report
    assert "docstring" not in str(shell.cell("%%tool\ndef half(x: int) -> int:\n    'Halves.'\n    return x"))


def test_a_condition_that_fits_one_of_two_functions_is_told_how_to_be_for_that_one(shell: Shell) -> None:
    cell = "%%tool --confirm 'amount > 100'\ndef {}:\n    'A.'\n    return 1\ndef {}:\n    'B.'\n    return 1"
    functions = ["pay(amount: int) -> int", "look(name: str) -> int"]

    for order in (functions, functions[::-1]):
        said = shell.fails(cell.format(*order))
        assert "--only pay" in said and "%tool pay --confirm 'amount > 100'" in said
    shell.cell(cell.replace("amount > 100'", "amount > 100' --only pay").format(*functions))
    assert "if amount > 100" in str(shell.cell("%tools"))


def test_a_wrong_condition_for_one_function_says_nothing_of_others(shell: Shell) -> None:
    said = shell.fails("%%tool --confirm 'amount > 100'\ndef look(name: str) -> int:\n    'Looks.'\n    return 1")

    assert "there is no 'amount'" in said and "--only" not in said


@pytest.mark.parametrize("line", ["%export my_agents/ desk", "%export desk my_agents/"])
def test_an_export_names_its_folder_and_its_root_in_either_order(shell: Shell, tmp_path: Path, line: str) -> None:
    for name in ("desk", "other"):
        shell.cell(f"%%agent {name}\nHelp.")
    assert "type %export my_agents/ NAME, with one of desk, other" in shell.fails("%export my_agents/")

    assert "root_agent is desk, with other" in str(shell.cell(line))

    assert "root_agent" in (tmp_path / "my_agents" / "agent.py").read_text()
    assert "'desks'" in shell.fails(line.replace("desk", "desks"))


def test_the_waterfall_after_a_rewind_is_of_the_last_turn_that_agents_still_see(shell: Shell) -> None:
    shell.names["model"] = ScriptedLlm("One.", "Two.", "Three.")
    shell.cell("%%agent guide -m model\nHelp.")
    shell.cell("%chat guide First\n%chat guide Second\n%chat guide Third\n%rewind 2")

    for form in ("--waterfall", "--why"):
        assert "turn 1: First" in str(shell.cell(f"%trace {form}"))
        assert "turn 3, undone: Third" in str(shell.cell(f"%trace -1 {form}"))
    shell.cell("%rewind")
    assert "undone" in str(shell.cell("%trace --waterfall"))


def test_a_stand_in_is_refused_for_a_schema_before_any_row_is_asked(shell: Shell) -> None:
    shell.cell("from pydantic import BaseModel\nclass Label(BaseModel):\n    label: str\nrows = ['a', 'b']")
    shell.cell("%%agent sorter -m offline\nSort.")

    said = shell.fails("%map sorter --over rows --schema Label")

    assert "'offline'" in said and "%key" in said and "_map" not in shell.names


def test_a_cause_that_all_rows_share_is_said_once(shell: Shell) -> None:
    shell.names.update(rows=["a", "b", "c"])
    shell.cell("def broken(callback_context, llm_request):\n    raise ValueError('the line is cut')")
    shell.cell("%%agent sorter -m offline --set before_model_callback=broken\nSort.")
    shell.cell("%map sorter --over rows;")

    assert "3 of 3 questions failed" in shell.printed and shell.printed.count("the line is cut") == 1


def test_where_no_page_shows_a_card_the_same_line_has_what_to_type(shell: Shell) -> None:
    shell.cell(PAY)
    shell.names["model"] = ScriptedLlm(call("pay", amount=3), "Paid.")
    shell.cell("%%agent clerk -m model -t pay\nPay.")
    shell.cell("%chat clerk Pay 3")

    said = shell.fails("%chat clerk Hello?")

    assert "1 approval is open (pay); answer with %confirm --yes or %confirm --no" in said
