"""`adk-nb run`: one message to an agent of a notebook, a file or a folder, and how it ends."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.command_line.conftest import Ran, process

Cli = Callable[..., Ran]
Write = Callable[..., str]

LOAD = "%load_ext adk_nb"
PAY = '''%%tool --confirm "amount > 100"
def pay(to: str, amount: float) -> str:
    """Pay a person an amount in euros."""
    return f"paid {amount:g} euros to {to}"
'''
CLERK = "%%agent clerk -t pay\nYou pay what is agreed."
BUYER = 'Pay 250 euros to "Anna"'


def test_the_answer_alone_is_on_the_standard_output(adk_nb: Cli, notebook: Write):
    ran = adk_nb("run", notebook(LOAD, PAY, CLERK), "clerk", 'Pay 50 euros to "Anna"')
    assert (ran.code, ran.out) == (0, "Paid 50 euros to Anna.\n")


def test_cells_that_talk_evaluate_serve_or_export_are_named_and_do_not_run(adk_nb: Cli, notebook: Write):
    talking = ["%chat clerk hello", "%%eval clerk\n| message |\n| --- |\n| hi |", "%serve clerk", "%export out/"]
    shell = ["!touch touched", "%pip install nothing-of-that-name"]
    ran = adk_nb("run", notebook(LOAD, PAY, CLERK, *talking, *shell), "clerk", "Pay 5 euros")
    for reason in ("%chat in 4", "%%eval in 5", "%serve in 6", "%export in 7", "!touch in 8", "%pip in 9"):
        assert reason in ran.err
    assert ran.code == 0 and not Path("touched").exists() and not Path("out").exists()


def test_of_a_cell_that_defines_and_talks_the_definitions_run(adk_nb: Cli, notebook: Write):
    mixed = (
        "from adk_nb import Chat, LlmAgent\nfrom pathlib import Path\n"
        "helper = LlmAgent(name='helper', model='offline')\n"
        "async def main():\n    Path('talked').touch()\n    await Chat(helper).aask('hi')\n"
        "reply = await main()\nprint(reply.text)\nlater = reply.text\nhelper_2 = helper.clone({'name': 'second'})\n"
    )
    ran = adk_nb("show", notebook(mixed), "--json")
    assert ran.json["agents"] == ["helper", "helper_2"]
    assert [one["reason"] for one in ran.json["left_out"]] == ["main()", "needs reply"]
    assert not Path("talked").exists()


def test_tags_decide_over_what_a_cell_does(adk_nb: Cli, notebook: Write):
    touch = "from pathlib import Path\nPath('{}').touch()"
    ran = adk_nb(
        "run",
        notebook(LOAD, PAY, CLERK, ("!touch by_run", ["run"]), (touch.format("by_skip"), ["skip"])),
        "clerk",
        "Pay 5 euros",
    )
    assert ran.code == 0 and "tag skip in 5" in ran.err
    assert Path("by_run").exists() and not Path("by_skip").exists()


def test_an_open_approval_is_an_exit_code_of_its_own_and_the_next_process_asks_for_it(adk_nb: Cli, notebook: Write):
    shop, stored = notebook(LOAD, PAY, CLERK), ["--session", "ada", "--sessions", "sqlite:///kept.db"]
    ran = adk_nb("run", shop, "clerk", BUYER, *stored)
    assert ran.code == 3 and 'waits for approval: pay(to="Anna", amount=250)' in ran.err and ran.out == ""
    ran = adk_nb("chat", shop, "clerk", *stored, typed="y\n\n")
    assert ran.code == 0 and "Paid 250 euros to Anna." in ran.out


def test_approvals_are_given_or_refused_by_an_option(adk_nb: Cli, notebook: Write):
    shop = notebook(LOAD, PAY, CLERK)
    assert adk_nb("run", shop, "clerk", BUYER, "--yes").out == "Paid 250 euros to Anna.\n"
    refused = adk_nb("run", shop, "clerk", BUYER, "--no", "--json")
    assert refused.code == 0 and "paid" not in refused.json["text"].lower()


def test_json_has_the_turn_for_programs(adk_nb: Cli, notebook: Write):
    ran = adk_nb("run", notebook(LOAD, PAY, CLERK), "clerk", BUYER, "--json")
    assert ran.code == 3 and ran.err == ""
    assert ran.json["status"] == "pending" and ran.json["calls"] == [
        {"name": "pay", "args": {"to": "Anna", "amount": 250}}
    ]
    assert ran.json["waits_for"][0]["is_approval"]


def test_a_turn_that_fails_is_exit_code_1(adk_nb: Cli, notebook: Write):
    model = "from adk_nb.models import ScriptedLlm\nbroken = ScriptedLlm(RuntimeError('the model is ill'))"
    ran = adk_nb("run", notebook(LOAD, model, "%%agent clerk -m broken\nHelp."), "clerk", "hello")
    assert ran.code == 1 and "the model is ill" in ran.err and ran.out == ""


def test_a_text_is_taken_from_a_pipe(adk_nb: Cli, notebook: Write):
    shop = notebook(LOAD, PAY, CLERK)
    assert adk_nb("run", shop, typed='Pay 7 euros to "Bo"\n').out == "Paid 7 euros to Bo.\n"
    assert adk_nb("run", shop, "clerk", typed="").code == 2
    ran = adk_nb("run", shop, "clerk", "-q", typed=b"caf\xe9")
    assert ran.code == 2 and "what is piped in is no text in utf-8" in ran.err and ran.err.count("\n") == 1


def test_a_python_file_and_the_folder_of_an_agent_are_sources_too(adk_nb: Cli, tmp_path: Path):
    agent = (
        "from google.adk.agents import Agent\n\n\ndef price(item: str) -> str:\n"
        '    """The price of an item."""\n    return f"{item} costs 3 euros"\n\n\n'
        "root_agent = Agent(name='shop', model='offline', tools=[price])\n"
    )
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "agent.py").write_text(agent)
    (tmp_path / "shop" / "__init__.py").write_text("from . import agent\n")
    (tmp_path / "alone.py").write_text(agent + "if __name__ == '__main__':\n    raise SystemExit('it ran')\n")
    (tmp_path / "written").mkdir()
    (tmp_path / "written" / "root_agent.yaml").write_text("name: written\nmodel: offline\ninstruction: Help.\n")
    for source in ("shop", "alone.py"):
        assert adk_nb("run", source, 'What is the price of item "tea"?').out == "Tea costs 3 euros.\n"
    assert adk_nb("show", "written", "--json").json["agents"] == ["written"]


def test_bad_input_is_one_line_and_exit_code_2(adk_nb: Cli, notebook: Write, tmp_path: Path):
    (tmp_path / "broken.ipynb").write_text('{"cells": [')
    (tmp_path / "julia.ipynb").write_text(
        json.dumps({"cells": [], "metadata": {"kernelspec": {"language": "julia"}}, "nbformat": 4})
    )
    (tmp_path / "zero.py").write_text("import os\nx = 1 / 0\n")
    agents = "from adk_nb import LlmAgent\none = LlmAgent(name='clerk', model='offline')\ntwo = one.clone()"
    shop = notebook(LOAD, PAY, CLERK)
    expected: dict[tuple[str, ...], str] = {
        ("missing.ipynb", "hi"): "there is no file 'missing.ipynb'",
        ("shpo.ipynb", "hi"): "did you mean 'shop.ipynb'?",
        ("broken.ipynb", "hi"): "broken.ipynb is no notebook: it is not JSON (line 1",
        ("julia.ipynb", "hi"): "is a notebook of julia",
        ("zero.py", "hi"): "zero.py, line 2: ZeroDivisionError",
        (notebook("x = 1", name="none.ipynb"), "hi"): "defines no agent",
        (notebook(agents, name="twice.ipynb"), "clerk", "hi"): "2 agents are named 'clerk', in one, two",
        (shop, "clrek", "hi"): "did you mean 'clerk'?",
        (shop, "clerk", "hi", "there"): "put the text in quotes",
        (shop, "hi", "--sessions", "sqlite:///none/x.db"): "there is no folder",
        (shop, "hi", "--sessions", "mysql://x"): "cannot use 'mysql://x'",
        (shop, "hi", "-m", "no-such-model"): "no-such-model",
    }
    for arguments, problem in expected.items():
        ran = adk_nb("run", *arguments, "-q")
        assert (ran.code, ran.out) == (2, ""), arguments
        assert problem in ran.err and ran.err.startswith("adk-nb: ") and ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("cells", "problem"),
    [
        ([LOAD, "x = 1\ny = x / 0"], "shop.ipynb, cell 2, line 2: ZeroDivisionError"),
        ([LOAD, "def f(:\n    pass"], "shop.ipynb, cell 2, line 1: SyntaxError"),
        ([LOAD, "%%agent clerk --strictly\nHelp."], "cell 2 (%%agent clerk --strictly): %%agent has no option"),
        ([LOAD, "%%tool\ndef f(x):\n    return y z"], "cell 2 (%%tool), line "),
        (["import module_that_is_missing"], "No module named 'module_that_is_missing'; install it here"),
        (["x = chat.ask('hi').text", "def f(a=1): ...", "%cd .", "class A:\n    y = x"], "defines no agent"),
        (["class A:\n    def f(self): return input()", "A().f()"], "cell 2, line 1: EOFError"),
    ],
)
def test_the_error_of_a_cell_names_notebook_cell_and_line(adk_nb: Cli, notebook: Write, cells: list[str], problem: str):
    ran = adk_nb("show", notebook(*cells), "-q")
    assert ran.code == 2 and problem in ran.err and ran.err.count("\n") == 1


def test_a_function_that_needs_what_was_left_out_is_not_called(adk_nb: Cli, notebook: Write):
    cells = ["%chat reply << clerk hi", "def last(n):\n    return reply.events[n]", "x = last(1)", "print(last(2))"]
    ran = adk_nb("show", notebook(LOAD, PAY, CLERK, *cells), "--json")
    assert ran.code == 0 and [(one["cell"], one["reason"]) for one in ran.json["left_out"]] == [
        (4, "%chat"), (6, "last()"), (7, "last()"),
    ]  # fmt: skip


LOOKS = "first = loud.requests[0]\nlength = len(first.contents)"
"""It fails where nobody has talked."""
LOUD = [
    LOAD,
    "from adk_nb.models import ScriptedLlm\nloud = ScriptedLlm('hi')",
    "%%agent a -m loud\nShout.",
    "%chat a hi",
]


def test_a_cell_that_looks_at_what_talking_left_is_left_out(adk_nb: Cli, notebook: Write):
    ran = adk_nb("run", notebook(*LOUD, LOOKS, "print(length)"), "a", "hello")
    assert (ran.code, ran.out) == (0, "hi\n") and "IndexError in 5" in ran.err


@pytest.mark.parametrize(
    "user",
    [
        "def f():\n    return first",
        "%%agent b\nSay {{length}}.",
        "class A:\n    x = length",
        "twice = [length] * 2\nimport os",
    ],
)
def test_what_such_a_cell_sets_is_no_loss_unless_a_definition_needs_it(adk_nb: Cli, notebook: Write, user: str):
    ran = adk_nb("run", notebook(*LOUD, LOOKS, user), "a", "hello", "-q")
    assert ran.code == 2 and "shop.ipynb, cell 5, line 1: IndexError" in ran.err


def test_a_cell_that_fails_before_anything_talks_is_an_error(adk_nb: Cli, notebook: Write):
    ran = adk_nb("run", notebook(*LOUD[:3], LOOKS), "a", "hello", "-q")
    assert ran.code == 2 and "shop.ipynb, cell 4, line 1: IndexError" in ran.err


def test_a_cell_that_asks_a_person_is_left_out(adk_nb: Cli, notebook: Write):
    asks = "name = input('your name? ')"
    ran = adk_nb("run", notebook(LOAD, asks, "greeting = 'hi ' + name", PAY, CLERK), "Pay 5 euros", typed="unread")
    assert ran.code == 0 and "input(), which needs a person in 2; needs name in 3" in ran.err


def test_an_agent_of_two_cells_is_the_last_one_and_that_is_said(adk_nb: Cli, notebook: Write):
    ran = adk_nb("run", notebook(LOAD, PAY, CLERK, CLERK + "\nBe brief."), "clerk", "Pay 5 euros")
    assert ran.code == 0 and "clerk is defined in cell 3 and in cell 4, which counts" in ran.err


def test_a_secret_in_the_error_of_a_cell_is_hidden(adk_nb: Cli, notebook: Write, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SHOP_API_KEY", "s3cr3t-of-the-shop-42")
    cell = "import os\nraise ValueError('refused: ' + os.environ['SHOP_API_KEY'])"
    ran = adk_nb("show", notebook(cell))
    assert ran.code == 2 and "refused: [secret]" in ran.err


def test_a_key_that_the_env_file_of_a_folder_brings_is_hidden_too(adk_nb: Cli, tmp_path: Path):
    (tmp_path / "keyed_shop").mkdir()
    (tmp_path / "keyed_shop" / ".env").write_text("SHOP_API_KEY='k3y-of-the-folder-42'\n")
    (tmp_path / "keyed_shop" / "agent.py").write_text("import os\nraise ValueError(os.environ['SHOP_API_KEY'])\n")
    ran = adk_nb("show", "keyed_shop")
    assert ran.code == 2 and ran.err == "adk-nb: agent.py, line 2: ValueError: [secret]\n"


def test_code_that_ends_the_program_is_an_error(adk_nb: Cli, tmp_path: Path):
    (tmp_path / "ending.py").write_text("import sys\nsys.exit(0)\n")
    ran = adk_nb("show", "ending.py")
    assert ran.code == 2 and ran.err == "adk-nb: ending.py, line 2: SystemExit: 0\n"


@pytest.mark.parametrize(("buffering", "code"), [(1, 141), (8192, 0)])
def test_an_output_that_nobody_reads_to_its_end_is_no_traceback(
    adk_nb: Cli, notebook: Write, monkeypatch: pytest.MonkeyPatch, buffering: int, code: int
):
    shop = notebook(LOAD, PAY, CLERK)
    read, write = os.pipe()
    os.close(read)
    # The end of the file writes what is left.
    with open(write, "w", buffering, encoding="utf-8") as unread, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", unread)
        assert adk_nb("show", shop).code == code


def test_an_env_file_is_read_as_other_programs_read_it(adk_nb: Cli, tmp_path: Path):
    (tmp_path / "env_shop").mkdir()
    env = tmp_path / "env_shop" / ".env"
    env.write_text('\ufeffSTREET=corner # of two streets\nexport GREETING="good\nday"\nPLACE=${STREET}-shop\n')
    names = "os.environ['STREET'], os.environ['GREETING'], os.environ['PLACE']"
    (tmp_path / "env_shop" / "agent.py").write_text(f"import os\nraise ValueError({names})\n")
    assert "ValueError: ('corner', 'good\\nday', 'corner-shop')" in adk_nb("show", "env_shop").err
    env.write_bytes("KEY=1".encode("utf-16"))
    ran = adk_nb("show", "env_shop")
    assert ran.code == 2 and ".env is no text in UTF-8" in ran.err and ran.err.count("\n") == 1


def test_doctor_and_show_are_for_programs_too(adk_nb: Cli, notebook: Write):
    assert {row["topic"] for row in adk_nb("doctor", "--json").json} >= {"model", "key", "event loop", "extras"}
    shown = adk_nb("show", notebook(LOAD, PAY, CLERK), "--json").json
    assert shown == {"agents": ["clerk"], "tools": ["pay"], "left_out": []}


def test_help_is_read_in_a_minute(adk_nb: Cli):
    ran = adk_nb("--help")
    assert ran.code == 0 and len(ran.out.splitlines()) < 50
    unknown = adk_nb("rum")
    assert unknown.code == 2 and unknown.err.count("\n") == 1


@pytest.mark.slow
def test_the_installed_command_runs_in_a_process_of_its_own(notebook: Write, tmp_path: Path):
    shop = notebook(LOAD, PAY, CLERK)
    ran = process("run", shop, "clerk", 'Pay 50 euros to "Anna"')
    assert (ran.code, ran.out, ran.err) == (0, "Paid 50 euros to Anna.\n", "")
    assert process("run", shop, "clerk", BUYER, "--json").json["status"] == "pending"
