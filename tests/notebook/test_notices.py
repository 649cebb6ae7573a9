"""The notice of a stand-in model: a chip in every form, its explanation in one cell of a notebook."""

import re
from typing import Any

import pytest

from adk_nb import Chat, LlmAgent, types
from adk_nb.models import LlmResponse, ScriptedLlm, call
from tests.notebook.conftest import Shell

EXPLANATION = "No language model."


def read(form: str) -> str:
    """A form without its tooltips."""
    return re.sub(' title="[^"]*"', "", form)


PAY = '''%%tool --confirm
def pay(amount: int) -> str:
    """Pay."""
    return "paid"
'''


def forms(shell: Shell) -> dict[str, str]:
    return shell.names["_run"]._repr_mimebundle_()


def test_the_first_cell_explains_a_stand_in_and_later_cells_have_its_chip_alone(shell: Shell) -> None:
    shell.cell("%%agent guide -m offline\nHelp.")
    shell.cell("%%agent clerk -m offline\nHelp.")
    first, second = shell.cell("%chat guide Hi"), shell.cell("%chat clerk Hi")

    for form in ("text/plain", "text/markdown", "text/html"):
        assert EXPLANATION in first._repr_mimebundle_()[form]
        assert EXPLANATION not in read(second._repr_mimebundle_()[form])
        assert "Offline stand-in" in second._repr_mimebundle_()[form]
    assert str(second).endswith("  [Offline stand-in]")
    assert EXPLANATION in str(first)  # also when it is shown again


def test_a_cell_that_explains_does_so_again_when_it_is_run_again(shell: Shell) -> None:
    shell.cell("%%agent guide -m offline\nHelp.")

    def explains(cell_id: str) -> bool:
        shell.ip.get_parent = lambda: {"metadata": {"cellId": cell_id}}  # as ipykernel's shell has it
        shell.cell("%chat guide Hi")
        return EXPLANATION in read(forms(shell)["text/html"])

    assert [explains(cell) for cell in "abab"] == [True, False, True, False]
    del shell.ip.get_parent


def test_a_reply_that_no_cell_shows_leaves_the_explanation_to_the_next(shell: Shell) -> None:
    shell.cell("%%agent guide -m offline\nHelp.")
    shell.cell("from adk_nb.notebook.chat.chat import Chat")
    shell.cell('unseen = Chat(guide, show="off").ask("Hi").text')

    assert EXPLANATION in str(shell.cell("%chat guide Hi"))


def test_a_question_stands_in_the_log_only_where_the_cell_does_not_say_it(shell: Shell) -> None:
    shell.names["model"] = ScriptedLlm("One.", "Two.")
    shell.cell("%%agent guide -m model\nHelp.")
    shell.cell("%chat guide Is it   warm in Rome?")
    assert "<td" in forms(shell)["text/html"] and "warm in Rome" not in forms(shell)["text/html"].partition("prompt")[0]

    shell.cell("city = 'Oslo'\nreply = _run.chat.ask(f'Is it warm in {city}?')")
    assert "warm in Oslo?" in forms(shell)["text/html"].partition("prompt")[0]


def test_the_file_of_an_asking_cell_says_nothing_that_its_answer_makes_wrong(shell: Shell) -> None:
    shell.names["model"] = ScriptedLlm(call("pay", amount=40), "Done.")
    shell.cell(PAY)
    shell.cell("%%agent clerk -m model -t pay\nPay.")
    asking = shell.cell("%chat clerk Go")

    saved = asking._repr_mimebundle_()
    assert "approval:</strong> <code>pay(amount=40)<" in saved["text/html"].partition("<blockquote ")[2]
    for form in ("text/plain", "text/markdown", "text/html"):
        assert "pay(amount=40)" in saved[form] and "%confirm" in saved[form]
        assert "--yes" not in saved[form] and "Answer" not in saved[form]
    typed = "Answer with %confirm --yes or %confirm --no"
    assert typed in str(asking) and typed in str(shell.cell("%confirm"))
    assert shell.cell("%confirm --yes").text == "Done."


def test_requests_of_a_session_with_a_blank_in_its_name_are_listed(shell: Shell) -> None:
    shell.names["model"] = ScriptedLlm(call("pay", amount=40), "Done.")
    shell.cell(PAY)
    shell.cell("%%agent clerk -m model -t pay\nPay.")
    shell.cell("%chat -s 'my money' clerk Go")

    assert "pay(amount=40)" in str(shell.cell("%confirm -s 'my money'"))
    assert shell.cell("%confirm -s 'my money' yes").text == "Done."


def test_what_a_model_wrote_as_text_is_told_beside_the_call_and_under_the_answer(shell: Shell) -> None:
    written = LlmResponse(
        content=types.Content(role="model", parts=[call("pay", amount=3)]), custom_metadata={"written_as_text": True}
    )
    noted = LlmResponse(
        content=types.Content(role="model", parts=[types.Part(text='{"name": "pay"')]),
        custom_metadata={"model_note": "No tool was <b>called</b>"},
    )
    shell.names["model"] = ScriptedLlm(written, "Paid.", noted)
    shell.cell('%%tool\ndef pay(amount: int) -> str:\n    """Pay."""\n    return "paid"\n')
    shell.cell("%%agent clerk -m model -t pay\nHelp.")
    shell.cell("%chat clerk Pay 3")
    first = forms(shell)
    shell.cell("%chat clerk Pay 4")
    second = forms(shell)

    assert "call written as text" in first["text/html"]
    assert "call written as text" not in second["text/html"]
    assert "No tool was <b>called</b>" in second["text/plain"]
    assert "No tool was &lt;b&gt;called" in second["text/html"]


class OpenServer(ScriptedLlm):
    """A model on a server of open models."""

    @property
    def is_open_server(self) -> bool:
        return True


@pytest.mark.parametrize(("kind", "calls", "noted"), [(OpenServer, 0, [5]), (OpenServer, 1, []), (ScriptedLlm, 0, [])])
def test_tools_that_are_never_called_are_remarked_on_once(
    shell: Shell, kind: Any, calls: int, noted: list[int]
) -> None:
    def look() -> str:
        """Look."""
        return "seen"

    answers = [*[call("look")] * calls, *["So."] * 7]
    chat = Chat(LlmAgent(name="clerk", model=kind(*answers), tools=[look]), show="off")

    replies = [str(chat.ask("Look.")) for _ in range(7)]

    assert [number for number, text in enumerate(replies, 1) if "not called any" in text] == noted
