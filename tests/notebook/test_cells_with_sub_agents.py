"""`%%agent --sub` and `--mode`: agents of cells that hand over to others, and that are called by them."""

import pytest
from support.messages import mentions

from adk_nb.agents import LlmAgent
from adk_nb.models.scripted_llm import ScriptedLlm, call
from adk_nb.notebook.chat.chat import Chat
from tests.notebook.conftest import Shell

TO_TICKETS = call("transfer_to_agent", agent_name="tickets")


def agent(shell: Shell, name: str, *answers: object, line: str = "", body: str = "") -> str:
    """Run a cell that defines an agent with a model of its own; what it says."""
    shell.names[f"m_{name}"] = ScriptedLlm(*answers)
    return str(shell.cell(f"%%agent {name} -m m_{name} {line}\n{body or f'Be {name}.'}"))


def test_an_agent_hands_over_to_those_that_its_line_names(shell: Shell) -> None:
    agent(shell, "tickets", "12 euros.", "24 euros.", line='--description "Sells tickets."')
    agent(shell, "tours", "At 11.")

    told = agent(shell, "desk", TO_TICKETS, line="--sub tickets,tours")
    first, then = shell.cell("%chat desk What do tickets cost?"), shell.cell("%chat And for two?")

    facts, *tree = told.splitlines()
    assert facts.split(" · ") == ["desk v1", "model m_desk", "agents tickets, tours"]
    assert tree == ["desk (scripted) v1", "├─ tickets (scripted) v1", "└─ tours (scripted) v1"]
    assert (first.text, first.answered_by) == ("12 euros.", "tickets")
    assert (then.text, then.agent, then.answered_by) == ("24 euros.", "desk", "tickets")
    assert "tickets: Sells tickets." in str(shell.names["m_desk"].requests[0].config.system_instruction)


def test_one_of_a_single_turn_is_called_and_one_with_a_task_is_talked_to(shell: Shell) -> None:
    agent(shell, "translator", "¡Hola!", line="--mode single_turn")
    agent(shell, "booking", "Which day?", call("finish_task", result="Friday"), line="--mode task")
    calls = [call("translator", request="Hello!"), call("booking", request="a group"), "Until Friday: ¡Hola!"]

    told = agent(shell, "guide", *calls, line="--sub translator,booking")

    assert told.splitlines()[1:3] == ["guide (scripted) v1", "├─ translator (scripted) v1"]
    asks, done = shell.cell("%chat guide Hello"), shell.cell("%chat Friday")
    assert (asks.text, asks.answered_by) == ("Which day?", "booking")
    assert (done.text, done.answered_by) == ("Until Friday: ¡Hola!", "guide")


def test_a_colleague_whose_cell_is_run_again_counts_at_once_and_its_parents_words_stay_as_they_were(
    shell: Shell,
) -> None:
    shell.names["place"] = "a museum"
    agent(shell, "tickets", "12 euros.")
    agent(shell, "desk", TO_TICKETS, "Welcome.", line="--sub tickets", body="You sit in {{place}}.")
    shell.names["place"] = "a zoo"

    agent(shell, "tickets", "15 euros.")

    assert shell.cell("%chat desk What do tickets cost?").text == "15 euros."
    assert "sit in a museum." in str(shell.names["m_desk"].requests[0].config.system_instruction)
    assert str(shell.cell("%agents --graph desk")).splitlines() == ["desk (scripted) v1", "└─ tickets (scripted) v2"]


def test_a_parent_whose_cell_is_run_again_says_what_is_new_and_the_conversation_goes_on(shell: Shell) -> None:
    agent(shell, "tickets", "12 euros.", "24 euros.")
    agent(shell, "tours", "At 11.")
    desk = "%%agent desk -m m_desk --sub {}\nBe desk."
    agent(shell, "desk", TO_TICKETS, line="--sub tickets")
    shell.cell("%chat desk What do tickets cost?")

    again = str(shell.cell(desk.format("tickets"))).splitlines()[0]
    changed = str(shell.cell(desk.format("tickets,tours"))).splitlines()[0]
    mode = str(shell.cell("%%agent tours -m m_tours --mode single_turn\nBe tours.")).splitlines()[0]

    assert again == "desk v1, unchanged"
    assert changed.startswith("desk v1 → v2 (agents +tours)") and "4 events" in changed
    assert mode.startswith("tours v1 → v2 (mode)")
    assert shell.cell("%chat And for two?").text == "24 euros."


def test_a_colleague_may_be_defined_in_a_later_cell(shell: Shell) -> None:
    told = agent(shell, "desk", TO_TICKETS, line="--sub tickets").splitlines()
    too_early = shell.fails("%chat desk Hello")
    agent(shell, "tickets", "12 euros.")

    note, root, member = told[1:]
    assert ": tickets;" in note and note.endswith("desk")
    assert root == "desk (scripted) v1" and member.startswith("└─ tickets (not ")
    assert "desk" in too_early and "%%agent tickets" in too_early
    assert shell.cell("%chat desk Hello").text == "12 euros."


def test_one_agent_may_be_under_several_and_be_one_that_python_has_put_somewhere(shell: Shell) -> None:
    shell.names["tickets"] = LlmAgent(name="tickets", model=ScriptedLlm("12 euros.", "12 euros."))
    shell.names["other"] = LlmAgent(name="other", sub_agents=[shell.names["tickets"]])
    for name in ("desk", "kiosk"):
        agent(shell, name, TO_TICKETS, line="--sub tickets")

    assert [shell.cell(f"%chat {one} --new Hello").text for one in ("desk", "kiosk")] == ["12 euros.", "12 euros."]
    assert shell.names["tickets"].parent_agent is shell.names["other"]


def test_in_python_it_is_an_agent_with_sub_agents(shell: Shell) -> None:
    agent(shell, "tickets", "12 euros.")
    agent(shell, "desk", TO_TICKETS, line="--sub tickets")

    assert [one.name for one in shell.names["desk"].sub_agents] == ["tickets"]
    assert Chat(shell.names["desk"], show="off").ask("Hello").text == "12 euros."


def test_a_member_with_colleagues_of_its_own_works_in_a_team(shell: Shell) -> None:
    agent(shell, "tickets", "12 euros.")
    agent(shell, "desk", TO_TICKETS, line="--sub tickets")
    shell.cell("%%agent team --kind sequential\ndesk")
    agent(shell, "tickets", "15 euros.")

    assert shell.cell("%chat team Hello").text == "15 euros."


def test_the_table_of_agents_has_who_is_under_whom_and_how(shell: Shell) -> None:
    agent(shell, "tickets", line="--mode task")
    agent(shell, "desk", line="--sub tickets,later")

    lines = str(shell.cell("%agents")).splitlines()

    assert [line.split() for line in lines if line[0] != "-"] == [
        ["agent", "kind", "model", "tools", "agents", "defined"],
        ["tickets", "v1", "task", "scripted", lines[2].split()[-1]],
        ["desk", "v1", "scripted", "tickets,", "later", lines[3].split()[-1]],
    ]
    assert "Be desk." in str(shell.cell("%agents --show desk"))


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("desk --sub ticket", "%%agent desk --sub: … 'ticket'; did you mean 'tickets'?"),
        ("desk --sub look", "%%agent desk --sub: 'look' … not an agent; … -t look"),
        ("desk --sub desk", "%%agent desk --sub: desk … of itself; … out"),
        ("desk --sub 'tickets tours'", "'tickets tours' … names with commas"),
        ("desk --sub all", "'all'; … choose another"),
        ("tickets --sub boss", "tickets … member of itself; … out"),
        ("desk --kind loop --sub tickets", "no --sub; … below"),
        ("desk --kind loop --mode task", "no --mode; … cells"),
        ("desk --mode single-turn", "unknown mode 'single-turn'; use chat, single_turn or task"),
        ("desk --mode x", "unknown mode 'x'; use chat, single_turn or task"),
    ],
)
def test_what_is_typed_wrong_is_said_and_all_is_as_it_was(shell: Shell, line: str, wrong: str) -> None:
    shell.cell("%%tool\ndef look(city: str) -> str:\n    'Looks.'\n    return city")
    agent(shell, "tickets", "12 euros.")
    agent(shell, "boss", TO_TICKETS, line="--sub tickets")

    assert mentions(" ".join(shell.fails(f"%%agent {line}\nBe it.").split()), wrong)
    assert "desk" not in shell.names
    assert shell.cell("%chat boss Hello").text == "12 euros."


def test_help_and_completion_know_both(shell: Shell) -> None:
    agent(shell, "tickets")
    agent(shell, "tours")

    line, help_text = "%%agent desk", shell.ip.magics_manager.magics["cell"]["agent"].getdoc()
    assert "--sub a,b" in help_text
    assert shell.complete(f"{line} --sub tickets,t") == [f"{line} --sub tickets,tours"]
    assert shell.complete(f"{line} --mode si") == [f"{line} --mode single_turn"]


def test_a_colleague_that_waits_for_approval_goes_on_though_its_cell_is_run_again(shell: Shell) -> None:
    shell.cell("%%tool --confirm\ndef pay(euros: int) -> str:\n    'Pays.'\n    return f'{euros} paid'")
    agent(shell, "tickets", call("pay", euros=5), "Paid.", line="-t pay")
    agent(shell, "desk", TO_TICKETS, line="--sub tickets")

    waits = shell.cell("%chat desk Pay.")
    shell.cell("%%agent tickets -m m_tickets -t pay\nBe quick.")
    done = shell.cell("%confirm --yes")

    assert (waits.status, waits.text) == ("pending", "")
    assert (done.text, done.agent, done.answered_by) == ("Paid.", "desk", "tickets")
