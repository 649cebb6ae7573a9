"""Each agent of a notebook speaks in a session of its own; `%session` and `-s` choose others."""

from typing import Any

import pytest

from adk_nb import LlmAgent
from adk_nb.apps import App
from adk_nb.models import ScriptedLlm, call
from adk_nb.tools import request_input
from tests.notebook.conftest import Shell

PAY = "%%tool --confirm always\ndef pay(amount: int) -> str:\n    'Pays.'\n    return 'paid'"
KEPT = "%config AdkNb.sessions = 'sqlite:///nb.db'"


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def define(shell: Shell, name: str, *answers: Any, options: str = "") -> ScriptedLlm:
    """Define an agent with a script of its own, which it returns."""
    model = shell.names[f"{name}_model"] = ScriptedLlm(*answers)
    shell.cell(f"%%agent {name} -m {name}_model {options}\nBe brief.")
    return model


def rows(shell: Shell) -> dict[str, list[str]]:
    """Session -> the words of its row in `%session`."""
    lines = [line.split() for line in str(shell.cell("%session")).splitlines()[2:]]
    return {line[0]: line[1:] for line in lines}


def test_an_open_card_of_one_agent_stops_no_other_one_and_its_words_are_in_no_other_prompt(shell: Shell) -> None:
    shell.cell(PAY)
    define(shell, "support", call("pay", amount=3), "Paid.", options="-t pay")
    bomber = define(shell, "bomber", "Boom.")

    assert shell.cell("%chat support Pay 3").status == "pending"
    assert shell.cell("%chat bomber Hi").text == "Boom."

    assert "Pay 3" not in str(bomber.requests[0].contents)
    assert rows(shell)["main"][:3] == ["support", "in", "use"]
    assert rows(shell)["bomber"] == ["bomber", "current", "2"]


def test_the_only_agent_that_waits_is_answered_by_confirm_and_a_repeated_line_answers_no_other(shell: Shell) -> None:
    shell.cell(PAY)
    define(shell, "support", call("pay", amount=3), "Paid.", call("pay", amount=4), "Paid.", options="-t pay")
    define(shell, "bomber", "Boom.", "Boom.", call("pay", amount=5), "Paid.", options="-t pay")
    shell.cell("%chat support Pay 3")
    shell.cell("%chat bomber Hi")

    assert "pay(amount=3)" in str(shell.cell("%confirm"))
    assert shell.cell("%confirm yes").agent == "support"
    assert "was already approved" in str(shell.cell("%confirm yes"))

    shell.cell("%chat support Pay 4\n%chat bomber Hi\n%chat bomber Pay 5")
    assert shell.cell("%confirm yes").agent == "bomber"
    assert "pay(amount=5) was already approved" in str(shell.cell("%confirm yes"))
    assert "pay(amount=4)" in str(shell.cell("%confirm -s main"))


def test_of_two_agents_that_wait_neither_is_guessed(shell: Shell) -> None:
    shell.cell(PAY)
    for name in ("one", "two"):
        define(shell, name, call("pay", amount=3), options="-t pay")
        shell.cell(f"%chat {name} Pay")
    define(shell, "three", "Hello.")
    assert "session 'main' waits, too: type %confirm -s main" in str(shell.cell("%confirm"))
    shell.cell("%chat three Hi")

    said = shell.fails("%confirm yes")

    assert "no approval is open in session 'three'" in said and "%confirm -s two" in said


def test_a_question_is_answered_by_a_line_without_a_name_though_another_agent_was_asked_since(shell: Shell) -> None:
    shell.names["request_input"] = request_input
    define(shell, "clerk", call("adk_request_input", message="Which order?"), "A1 then.", options="-t request_input")
    define(shell, "greeter", "Hello.")
    shell.cell("%chat clerk Refund it")
    shell.cell("%chat greeter Hi")

    assert shell.cell("%chat A1").text == "A1 then."
    assert "A1 then." in str(shell.cell("%trace"))


def test_magics_without_a_session_mean_that_of_the_agent_asked_last(shell: Shell) -> None:
    define(shell, "one", "One.", "One again.", options="--output-key said")
    define(shell, "two", "Two.", "Two again.", options="--output-key said")
    shell.cell("%chat one Hi")
    shell.cell("%chat two Ho")

    assert shell.cell("%state said") == "Two."
    assert "Ho" in str(shell.cell("%trace")) and "Hi" not in str(shell.cell("%trace"))
    assert "session 'two'" in str(shell.cell("%rewind"))
    assert "session 'two'" in str(shell.cell("%session save two.json"))
    shell.cell("%chat one Hi again")
    assert shell.cell("%state said") == "One again."
    assert shell.cell("%state -s two") is not None and "said" not in str(shell.cell("%state -s two"))


def test_a_line_that_names_a_session_moves_no_agent(shell: Shell) -> None:
    define(shell, "one", "One.", "One.", "One.")
    shell.cell("%chat one Hi")
    shell.cell("%chat -s aside one Hi")

    assert rows(shell)["aside"] == ["one", "2"] and rows(shell)["main"] == ["one", "current", "2"]


@pytest.mark.parametrize("begin", ["%session new trip", "%session fork trip", "%chat --new -s trip one Go."])
def test_a_session_that_is_chosen_is_of_one_agent_alone(shell: Shell, begin: str) -> None:
    define(shell, "one", *["One."] * 4)
    define(shell, "two", *["Two."] * 4)
    shell.cell("%chat two Ho")
    shell.cell("%chat one Hi")

    shell.cell(begin)
    shell.cell("%chat one Where?")
    shell.cell("%chat two Where?")

    assert rows(shell)["trip"][:3] == ["one", "in", "use"] and rows(shell)["main"][:2] == ["two", "current"]
    shell.cell("%session use one\n%chat two Still here?\n%chat one Back.")
    assert "Back." in str(shell.cell("%trace -s one")) and "Still here?" in str(shell.cell("%trace -s main"))


def test_a_new_session_is_named_after_the_one_before(shell: Shell) -> None:
    define(shell, "one", *["One."] * 4)
    define(shell, "two", *["Two."] * 4)
    shell.cell("%chat one Hi\n%chat two Ho\n%chat --new two Ho\n%chat --new one Hi")

    assert [*rows(shell)] == ["main-2", "main", "two-2", "two"]


def test_an_agent_that_is_defined_again_keeps_its_session_and_its_reply_says_how_much_is_in_it(shell: Shell) -> None:
    define(shell, "one", "One.", "One.")
    model = define(shell, "two", "Two.", "Two again.")
    shell.cell("%chat one Hi\n%chat two Ho\n%chat one Hi")

    report = str(shell.cell("%%agent two -m two_model\nBe long."))

    assert "session kept, 2 events" in report
    shell.cell("%chat two Again")
    assert "Two." in str(model.requests[1].contents)


def test_members_of_a_team_speak_in_the_session_of_its_root(shell: Shell) -> None:
    define(shell, "other", "Other.")
    shell.cell("%chat other Hi")
    pilot = define(shell, "pilot", "Berth C.")
    define(shell, "harbour", "Come in.", options="--sub pilot")
    shell.cell("%chat harbour The Aurora comes")

    shell.cell("%chat pilot Where?")

    assert "The Aurora comes" in str(pilot.requests[0].contents)
    assert rows(shell)["harbour"][0] == "harbour," and "pilot" not in rows(shell)


def test_an_app_and_its_agent_speak_in_one_session(shell: Shell) -> None:
    define(shell, "other", "Other.")
    shell.cell("%chat other Hi")
    agent = shell.names["clerk"] = LlmAgent(name="clerk", model=ScriptedLlm("One.", "Two."))
    shell.names["desk"] = App(name="desk", root_agent=agent)

    shell.cell("%chat desk Hi")
    shell.cell("%chat clerk Ho")

    assert "Hi" in str(shell.cell("%trace")) and "clerk" not in rows(shell)


def test_all_agents_speak_in_one_session_where_that_is_wanted(shell: Shell) -> None:
    define(shell, "one", "One.", "One.", options="--output-key said")
    two = define(shell, "two", "Two.", "Two.")
    shell.cell("%config AdkNb.sessions_shared = True")

    shell.cell("%chat one Hi\n%chat two Ho")

    assert "Hi" in str(two.requests[0].contents) and [*rows(shell)] == ["main"]
    assert shell.cell("%state said") == "One."
    shell.cell("%session new trip\n%chat one Hi\n%chat two Ho")
    assert rows(shell)["trip"] == ["one,", "two", "current", "4"]


def test_a_key_that_another_agent_has_set_is_told_with_its_session(shell: Shell) -> None:
    define(shell, "writer", "A sum.", options="--output-key summary")
    shell.names["m"] = ScriptedLlm("Called.")
    shell.cell("%%agent phone -m m\nSay {summary}.")
    shell.cell("%chat writer Sum up")

    said = shell.fails("%chat phone Call")

    assert "session 'main'" in said and "%chat -s main phone" in said and "sessions_shared" in said
    assert shell.cell("%chat -s main phone Call").text == "Called."


def test_state_that_is_set_before_anybody_is_asked_is_that_of_the_first_agent(shell: Shell) -> None:
    shell.cell("%state budget=400")
    define(shell, "one", "One.")
    shell.cell("%chat one Hi")

    assert shell.cell("%state budget") == 400 and rows(shell)["main"][:2] == ["one", "current"]


def test_sessions_in_a_file_are_found_again_by_each_agent_in_any_order(shell: Shell) -> None:
    shell.cell(PAY)
    shell.cell(KEPT)
    define(shell, "support", "Hello.", call("pay", amount=3), options="-t pay")
    define(shell, "bomber", "Boom.")
    shell.cell("%chat support Hi\n%chat bomber Ho\n%chat support Pay 3")

    vars(shell.ip).pop("adk_nb")
    shell.cell("%reload_ext adk_nb\n%config AdkNb.sessions = ''")
    shell.cell(KEPT)
    assert "session 'main' continues: 6 events, 1 approval is open, see %confirm" in shell.printed
    assert "session 'bomber' continues: 2 events" in shell.printed
    bomber = define(shell, "bomber", "Boom again.")
    define(shell, "newcomer", "New.")
    define(shell, "support", "Paid.", options="-t pay")

    shell.cell("%chat newcomer Hi")
    shell.cell("%chat bomber And?")
    assert "Ho" in str(bomber.requests[0].contents) and "Hi" not in str(bomber.requests[0].contents)
    assert shell.cell("%confirm yes").text == "Paid."
    assert {name: row[0] for name, row in rows(shell).items()} == {
        "main": "support", "bomber": "bomber", "newcomer": "newcomer"
    }  # fmt: skip


def test_a_stored_session_of_several_agents_goes_on_with_all_of_them(shell: Shell) -> None:
    shell.cell(KEPT)
    shell.cell("%config AdkNb.sessions_shared = True")
    define(shell, "one", "One.", "Again.")
    define(shell, "two", "Two.", "Again.")
    shell.cell("%chat one Hi\n%chat two Ho")
    shell.cell("%config AdkNb.sessions_shared = False")
    vars(shell.ip).pop("adk_nb")
    shell.cell("%reload_ext adk_nb\n%config AdkNb.sessions = ''")
    shell.cell(KEPT)
    one, two = define(shell, "one", "One."), define(shell, "two", "Two.")

    shell.cell("%chat two And?\n%chat one And?")

    assert "Hi" in str(two.requests[0].contents) and "Ho" in str(one.requests[0].contents)
    assert [*rows(shell)] == ["main"]
