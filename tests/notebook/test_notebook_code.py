"""run_code: code of an agent in the notebook's own kernel, after a click of its owner."""

import json
import sys
import threading
from typing import Any

import pytest

from adk_nb import redaction
from adk_nb.models import ScriptedLlm, call
from tests.notebook.conftest import Shell
from tests.support.each import each

AGENT = "%%agent analyst -m model --notebook\nHelp with the data."
WHY = "to see"


@pytest.fixture(autouse=True)
def secrets():
    yield
    redaction.forget()


def code(text: str) -> Any:
    return call("run_code", code=text, why=WHY)


def ask(shell: Shell, *answers: Any, line: str = "%chat -q analyst Go.") -> ScriptedLlm:
    shell.names["model"] = model = ScriptedLlm(*answers)
    shell.cell(AGENT)
    shell.cell(line)
    return model


def ran(shell: Shell, text: str) -> dict[str, Any]:
    """What the model is told of code that was allowed."""
    model = ask(shell, code(text), "Done.", line="%chat -q --yes analyst Go.")
    return told(model)


def told(model: ScriptedLlm) -> dict[str, Any]:
    [response] = [part.function_response for part in model.requests[-1].contents[-1].parts]
    return response.response


# ---- the request


def test_a_card_has_the_whole_code_and_why(shell: Shell):
    ask(shell, code("x = 1\nprint(x)"), "Done.")

    [waits] = shell.names["_run"].interrupts
    assert (waits.prompt, waits.documents) == (WHY, {"code.py": "x = 1\nprint(x)"})
    assert waits.action == "Run" and waits.for_turn
    assert "x" not in shell.names
    text = str(shell.cell("%confirm"))
    assert "run_code(…)" in text and "code.py, 2 lines" in text and "print(x)" in text


def test_code_that_is_rejected_does_not_run_and_the_reason_is_told(shell: Shell):
    model = ask(shell, code("x = 1"), "I see.")
    shell.cell("%confirm no not now")

    assert "x" not in shell.names
    assert told(model)["error"].endswith("the reason given: not now")


def test_code_that_the_owner_edits_runs_as_edited(shell: Shell):
    model = ask(shell, code("x = 1"), "Done.")
    shell.cell("_run.approve(code='x = 2')")

    assert shell.names["x"] == 2
    assert "a person changed the arguments" in told(model)["note"]


def test_a_yes_for_the_rest_of_the_turn_ends_with_the_turn(shell: Shell):
    model = ask(shell, code("x = 1"), code("y = 2"), "Done.", code("z = 3"), "Done.")
    shell.cell("from adk_nb.tools.tool_confirmation import ToolConfirmation")
    shell.cell("reply = _run.answer(ToolConfirmation(confirmed=True, for_turn=True))")

    assert shell.names["reply"].text == "Done."
    assert (shell.names["x"], shell.names["y"]) == (1, 2)
    assert "runs unasked" in str(shell.names["reply"]._repr_mimebundle_()["text/html"])
    assert "for the rest of this turn" in str(shell.names["reply"])
    shell.cell("%chat -q analyst And now?")
    assert shell.names["_run"].status == "pending" and "z" not in shell.names
    assert len(model.requests) == 4


def test_never_takes_the_tool_away_and_refuses_what_was_asked_before(shell: Shell):
    model = ask(shell, code("x = 1"), "Done.", "Hello.")
    shell.cell("%config AdkNb.notebook_code = 'never'")
    try:
        shell.cell("%confirm --yes")
        assert "x" not in shell.names
        assert "run_code" not in model.requests[-1].tools_dict
    finally:
        shell.cell("%config AdkNb.notebook_code = 'ask'")


# ---- what the model is told


def test_the_output_the_last_value_and_the_variables_are_told(shell: Shell):
    shell.cell("old = [1]\ngone = 2\nsame = 3\nimport pandas as pd\ndf = pd.DataFrame({'a': [1]})")

    result = ran(shell, "print('hi')\nnew = 4\nold.append(5)\ndel gone\ndf.loc[0, 'a'] = 9\nnew * 2")

    assert result["printed"] == "hi\n"
    assert result["value"] == 8
    assert result["new"] == ["new (int)"]
    assert result["changed"] == ["old", "df"]
    assert result["gone"] == ["gone"]
    assert "hi" in shell.printed


def test_a_frame_as_the_last_value_is_told_as_look_at_and_shown_as_a_table(shell: Shell):
    shell.cell("import pandas as pd\ndf = pd.DataFrame({'city': ['Oslo', 'Bonn'], 'amount': [3, 4]})")

    result = ran(shell, "df[df.amount > 3]")

    assert result["value"]["rows"] == 1 and result["value"]["first_rows"] == [{"city": "Bonn", "amount": 4}]
    assert "Bonn" in str(shell.names["_run"]._repr_mimebundle_()["text/html"])


def test_an_error_is_told_with_its_lines(shell: Shell):
    shell.cell("def half(n):\n    return 1 / n")

    result = ran(shell, "x = 1\nhalf(0)")

    assert result["error"] == "ZeroDivisionError: division by zero"
    assert result["at"][0] == "line 2: half(0)"
    assert result["at"][1].endswith("line 2: return 1 / n")
    assert result["new"] == ["x (int)"]


REFUSED = {
    "%pip install x": "magics and shell lines do not run here (line 1: %pip install x)",
    "x = 1\n!ls": "magics and shell lines do not run here (line 2: !ls)",
    "x = (1": "SyntaxError: '(' was never closed in line 1: x = (1",
    "await f()": "await in line 1 is not possible here",
    "return 1": "SyntaxError: 'return' outside function in line 1",
    "": "there is no code in it",
    "x" * 60_000: "it has 60,000 characters",
}


@each("text", REFUSED)
def test_what_cannot_run_is_refused_by_name_without_a_card(shell: Shell, text: str):
    model = ask(shell, code(text), "I see.")

    assert REFUSED[text] in told(model)["error"]


RAISES = {
    "input('name?')": "RuntimeError: input() is not possible in run_code",
    "import getpass\ngetpass.getpass()": "RuntimeError: getpass() is not possible in run_code",
    "import sys\nsys.exit(3)": "sys.exit(3) ended the code; the kernel goes on",
    "import os\nos._exit(1)": "RuntimeError: os._exit() would end the kernel",
    "import os\nos.abort()": "RuntimeError: os.abort() would end the kernel",
    "raise SystemExit": "sys.exit(None) ended the code",
    "class E(Exception):\n    def __str__(self): raise E\nraise E": "E: its message cannot be read",
    "def f(): f()\nf()": "RecursionError",
}


@each("text", RAISES)
def test_what_would_end_or_block_the_kernel_ends_the_code_alone(shell: Shell, text: str):
    before = sys.stdout, input

    result = ran(shell, text)

    assert RAISES[text] in result["error"]
    assert (sys.stdout, input) == before


def test_a_process_that_the_code_forks_ends_with_the_code(shell: Shell):
    fork = "import os\nchild = os.fork()\nif child:\n    status = os.waitpid(child, 0)[1]\nelse:\n    1 / 0"
    result = ran(shell, fork)

    assert shell.names["status"] == 0
    assert "error" not in result


def test_a_thread_that_goes_on_is_named(shell: Shell):
    start = "threading.Thread(target=end.wait, name='poller', daemon=True).start()"
    result = ran(shell, f"import threading\nend = threading.Event()\n{start}")
    shell.names["end"].set()

    assert result["threads"] == "poller: still running, as the code left them"
    assert threading.current_thread() is threading.main_thread()


def test_a_hundred_megabytes_of_output_are_bounded_for_both(shell: Shell):
    result = ran(shell, "for _ in range(1_000):\n    print('x' * 100_000)\nprint('the end')")

    assert len(json.dumps(result)) <= 4_000
    assert "characters left out]" in result["printed"] and result["printed"].endswith("the end\n")
    assert len(shell.printed) < 250_000
    assert "[more than 200,000 characters: the rest is not shown]" in shell.printed


@each("before", [1_990, 11_990, 19_990])
def test_of_long_output_the_end_is_told_and_no_half_of_a_secret(shell: Shell, before: int):
    redaction.remember("correct-horse-battery")

    printed = ran(shell, f"print('x' * {before} + 'correct-horse-battery' + 'y' * 480)")["printed"]

    assert "correct" not in printed and "battery" not in printed
    assert printed.endswith("y" * 480 + "\n")


def test_a_hundred_figures_are_four_pictures_and_a_count(shell: Shell):
    shell.cell("import matplotlib; matplotlib.use('agg')\nimport matplotlib.pyplot as plt")
    shell.cell("import warnings; warnings.simplefilter('ignore')")

    model = ask(
        shell,
        code("for _ in range(100):\n    plt.subplots(figsize=(1, 1))"),
        "Done.",
        line="%chat -q --yes analyst Go.",
    )
    shell.cell("plt.close('all')")

    [part] = model.requests[-1].contents[-1].parts
    assert len(part.function_response.parts) == 4
    assert part.function_response.response["pictures_left_out"] == 96


def test_known_secrets_are_hidden_in_output_value_and_error(shell: Shell):
    redaction.remember("correct-horse-battery")
    shell.names["word"] = "correct-horse-battery"

    assert ran(shell, "print(word)\nword")["printed"] == "[secret]\n"
    assert ran(shell, "word")["value"] == "[secret]"
    assert ran(shell, "raise ValueError(word)")["error"] == "ValueError: [secret]"


def test_code_runs_on_the_main_thread_also_with_a_time_limit(shell: Shell):
    shell.cell("%config AdkNb.timeout = 100")
    try:
        result = ran(shell, "import threading\nthreading.current_thread() is threading.main_thread()")
    finally:
        shell.cell("%config AdkNb.timeout = None")

    assert result["value"] is True


def test_a_time_limit_ends_the_code(shell: Shell):
    shell.cell("%config AdkNb.timeout = 1.5")
    try:
        shell.names["model"] = ScriptedLlm(code("while True: pass"), "Done.")
        shell.cell(AGENT)
        shell.run("%chat -q --yes analyst Go.")
    finally:
        shell.cell("%config AdkNb.timeout = None")

    assert shell.names["_run"].status == "error"
    assert shell.cell("6 * 7") == 42


def test_functions_that_the_code_defines_have_their_source(shell: Shell):
    result = ran(shell, "import inspect\ndef double(n):\n    return 2 * n\ninspect.getsource(double)")

    assert result["value"] == "def double(n):\n    return 2 * n\n"
