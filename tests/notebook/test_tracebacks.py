"""What a shell shows of an error, with a secret that is known in its words, its source or its values."""

from typing import Any

import pytest

from adk_nb.errors import InputError
from adk_nb.notebook.magics.hooks import without_secrets
from adk_nb.redaction import HIDDEN, remember
from tests.notebook.conftest import Shell

ONE = "q7Zx5bR1mm2tt9Kd"


@pytest.mark.parametrize("mode", ["Plain", "Context", "Verbose", "Minimal", "Docs"])
def test_a_key_that_stands_in_the_cell_is_not_quoted_from_there(shell: Shell, mode: str):
    shell.cell("%colors linux")
    shell.cell(f"%xmode {mode}")
    remember(ONE)

    said = shell.fails(f"key = '{ONE}'\n" + "{}[key, '" + ONE + "', f'not {key}']")

    assert HIDDEN in said
    assert ONE not in said
    assert ONE in shell.names["In"][-1]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"'{ONE}'", f"'{HIDDEN}'"),
        (f"\x1b[33m'{ONE[:5]}\x1b[39m\x1b[1m{ONE[5:]}'", f"\x1b[33m'{HIDDEN}'"),
        (f"'of {ONE[:7]}...{ONE[-8:]} at'", f"'of {HIDDEN}...{HIDDEN} at'"),
        (f"'of {ONE[:7]}…'", f"'of {HIDDEN}…'"),
        (f"... {ONE[-8:]}", f"... {ONE[-8:]}"),
        (f"{ONE[:5]}...{ONE[-5:]}", f"{ONE[:5]}...{ONE[-5:]}"),
    ],
)
def test_a_secret_is_hidden_in_colors_and_cut_short(text: str, left: str):
    remember(ONE)

    assert without_secrets(text) == left


def test_one_with_quotes_is_hidden_however_often_it_is_quoted():
    odd = "q7Z'x\"5b\\R1mm"
    remember(odd)
    text: Any = odd
    for _ in range(4):
        text = [repr(text)]

    assert HIDDEN in without_secrets(str(text))
    assert "R1mm" not in without_secrets(str(text))


def test_the_error_that_a_program_gets_of_a_cell_is_of_the_same_name_and_without_it(shell: Shell):
    remember(ONE)

    error = shell.run(f"raise LookupError('no {ONE}')").error_in_exec

    assert (type(error).__name__, str(error)) == ("LookupError", f"no {HIDDEN}")
    assert isinstance(shell.run("raise LookupError('no one')").error_in_exec, LookupError)


def test_an_error_of_this_package_is_one_line_without_it(shell: Shell):
    remember(ONE)
    shell.names["InputError"] = InputError

    assert shell.fails(f"raise InputError('no agent {ONE}')") == f"InputError: no agent {HIDDEN}"


def test_what_was_unloaded_hides_nothing_and_loaded_twice_hides_once(shell: Shell):
    remember(ONE)
    shell.cell("%reload_ext adk_nb")
    assert ONE not in shell.fails(f"raise ValueError('{ONE}')")

    shell.cell("%unload_ext adk_nb")

    assert ONE in shell.fails(f"raise ValueError('{ONE}')")
    assert "_showtraceback" not in vars(shell.ip)
