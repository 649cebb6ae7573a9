"""What a notebook says of names: those that were removed, those that were mistyped, and what it counts."""

from adk_nb.models.scripted_llm import ScriptedLlm
from tests.notebook.conftest import Shell


def with_agents(shell: Shell, *names: str) -> ScriptedLlm:
    model = ScriptedLlm(*["Fine."] * 9)
    shell.names["model"] = model
    for name in names:
        shell.cell(f"%%agent {name} -m model\nBe brief.")
    return model


def test_the_name_of_a_removed_agent_is_not_sent_to_another(shell: Shell) -> None:
    model = with_agents(shell, "bot", "guide")
    shell.cell("%agents --rm bot")

    said = shell.fails("%chat bot hi")

    assert said.startswith("InputError: agent 'bot'")
    assert "%chat --" in said
    assert model.requests == []
    assert shell.cell("%chat -- bot hi").agent == "guide"
    with_agents(shell, "bot")
    assert shell.cell("%chat bot hi").agent == "bot"


def test_a_slip_in_an_agents_name_is_one_readable_line(shell: Shell) -> None:
    with_agents(shell, "planner")

    said = shell.fails("%chat planer hi")
    assert said.startswith("AgentNotFoundError: ")
    assert "'planer'; did you mean 'planner'?" in said
    assert "%chat --" in said


def test_a_missing_text_is_said_with_a_name_that_is_there(shell: Shell) -> None:
    said = shell.fails("%chat")
    assert said.startswith("InputError: ")
    assert "%%agent NAME, see" in said and "%%agent?" in said
    with_agents(shell, "planner")
    assert "%chat planner for" in shell.fails("%%chat\n ")


def test_a_tool_that_is_mistyped_in_an_agent_is_told_apart_from_one_that_comes_later(shell: Shell) -> None:
    shell.cell("%%tool\ndef days_until(date: str) -> int:\n    'Days.'\n    return 1")

    said = str(shell.cell("%%agent planner -t days_untl,quite_another\nPlan."))

    undefined = said.splitlines()[1]
    assert ": days_untl, quite_another;" in undefined
    assert "planner" in undefined
    assert undefined.endswith("'days_until'?")


def test_the_notes_of_the_notebook_do_not_count_as_events_of_the_session(shell: Shell) -> None:
    with_agents(shell, "guide")
    shell.cell("%chat guide hi")

    for text in ("Be kind.", "Be bold.", "Be new."):
        said = str(shell.cell(f"%%agent guide -m model\n{text}"))
        assert said.endswith("session kept, 2 events")
