"""Teams: `%%agent --kind`, whose cell names agents of the notebook."""

import pytest

from adk_nb.agents import BaseAgent, LlmAgent, LoopAgent, ParallelAgent, SequentialAgent
from adk_nb.models.scripted_llm import ScriptedLlm, call
from adk_nb.notebook.chat.chat import Chat
from adk_nb.notebook.chat.reply import view_of_reply
from adk_nb.tools import request_input
from tests.notebook.conftest import Shell
from tests.notebook.test_magics import one_line


def agents(shell: Shell, **answers: list) -> None:
    """An agent of each name, with a model of its own, `m_NAME`."""
    for name, said in answers.items():
        shell.names[f"m_{name}"] = ScriptedLlm(*said)
        shell.cell(f"%%agent {name} -m m_{name}\nBe {name}.")


def authors(reply) -> list[str]:
    return [event.author for event in reply.events if event.text]


def test_a_sequence_runs_the_agents_that_its_cell_names_in_their_order(shell: Shell) -> None:
    agents(shell, draft=["A draft."], critic=["Too short."], editor=["Done."])

    told = str(shell.cell("%%agent pipeline --kind sequential\ndraft -> critic  # and then\n\neditor"))
    reply = shell.cell("%chat pipeline Write.")

    assert isinstance(shell.names["pipeline"], SequentialAgent)
    assert told == (
        "pipeline v1 · sequential\npipeline (sequential) v1\n├─ draft (scripted) v1\n├─ critic (scripted) v1\n"
        "└─ editor (scripted) v1"
    )
    assert authors(reply) == ["user", "draft", "critic", "editor"]
    assert reply.text == "Done."


def test_a_loop_makes_as_many_passes_as_it_may(shell: Shell) -> None:
    agents(shell, draft=["One.", "Two."], critic=["Again.", "Better."])

    shell.cell("%%agent refine --kind loop --max-iterations 2\ndraft -> critic")
    reply = shell.cell("%chat refine Write.")

    assert isinstance(shell.names["refine"], LoopAgent)
    assert authors(reply) == ["user", "draft", "critic", "draft", "critic"]


def test_a_loop_ends_when_its_condition_is_met_after_a_pass(shell: Shell) -> None:
    agents(shell, draft=["One.", "Two.", "Three."])
    shell.cell("%%agent draft -m m_draft --output-key last\nBe draft.")

    told = str(shell.cell("%%agent refine --kind loop\ndraft\nuntil: 'Two' in session_state.get('last', '')"))
    reply = shell.cell("%chat refine Write.")

    assert "refine (loop, until 'Two' in session_state.get('last', '')) v1" in told
    assert authors(reply) == ["user", "draft", "draft"]


def test_a_member_may_be_defined_in_a_later_cell(shell: Shell) -> None:
    agents(shell, draft=["A draft."])

    told = str(shell.cell("%%agent team --kind sequential\ndraft -> polish")).splitlines()
    too_early = shell.fails("%chat team Write.")
    agents(shell, polish=["Polished."])

    assert told[1] == "not defined yet: polish; define before you ask team"
    assert "begins %%agent polish" in too_early
    assert shell.cell("%chat team Write.").text == "Polished."


def test_a_team_whose_kind_was_forgotten_says_so(shell: Shell) -> None:
    agents(shell, draft=["D"], critic=["C"])

    assert "them is %%agent team --kind sequential" in str(shell.cell("%%agent team\ndraft -> critic"))


@pytest.mark.parametrize("body", ["weather, news", "weather\nnews  # both"])
def test_a_parallel_team_has_names_with_commas_or_in_lines(shell: Shell, body: str) -> None:
    agents(shell, weather=["Sunny."], news=["None."])

    shell.cell(f"%%agent both --kind parallel\n{body}")
    reply = shell.cell("%chat both What is up?")

    assert isinstance(shell.names["both"], ParallelAgent)
    assert sorted(authors(reply)) == ["news", "user", "weather"]


def test_teams_are_members_of_teams_and_an_agent_of_several(shell: Shell) -> None:
    agents(shell, draft=["D1", "D2"], critic=["C1"], editor=["E1"])
    shell.cell("%%agent first --kind sequential\ndraft -> critic")
    shell.cell("%%agent second --kind loop --max-iterations 1\ndraft")
    shell.cell("%%agent outer --kind sequential\nfirst -> editor")

    assert authors(shell.cell("%chat second Go.")) == ["user", "draft"]
    assert authors(shell.cell("%chat outer Go.")) == ["user", "draft", "critic", "editor"]


def test_a_new_version_of_a_member_counts_in_every_team_at_once(shell: Shell) -> None:
    agents(shell, draft=["A draft.", "Another."], critic=["Fine."])
    shell.cell("%%agent inner --kind sequential\ndraft")
    shell.cell("%%agent outer --kind sequential\ninner -> critic")

    shell.cell("%%agent draft -m m_draft\nBe better.")

    assert shell.names["outer"].find_agent("draft").instruction == "Be better."
    assert "draft (scripted) v2" in str(shell.cell("%agents --graph outer"))
    assert authors(shell.cell("%chat outer Go.")) == ["user", "draft", "critic"]


def test_a_member_that_python_replaced_counts_at_the_next_turn(shell: Shell) -> None:
    agents(shell, draft=["Old."])
    shell.cell("%%agent team --kind sequential\ndraft")

    shell.cell(
        "from adk_nb.agents import LlmAgent\nfrom adk_nb.models import ScriptedLlm\n"
        "draft = LlmAgent(name='draft', model=ScriptedLlm('New.'))"
    )

    assert shell.cell("%chat team Go.").text == "New."


def test_members_find_their_tools_by_name_at_each_turn(shell: Shell) -> None:
    shell.cell("%%tool\ndef look(city: str) -> str:\n    'Looks.'\n    return 'old'")
    shell.names["m"] = ScriptedLlm(call("look", city="Oslo"), "Seen.")
    shell.cell("%%agent watcher -m m -t look\nWatch.")
    shell.cell("%%agent team --kind sequential\nwatcher")

    shell.cell("%%tool\ndef look(city: str) -> str:\n    'Looks.'\n    return 'new'")
    reply = shell.cell("%chat team Go.")

    assert "'new'" in str([event.get_function_responses() for event in reply.events])


def test_a_cell_that_is_run_again_is_no_new_version_and_a_changed_one_says_what_is_new(shell: Shell) -> None:
    agents(shell, draft=["D"], critic=["C"])
    shell.cell("%%agent team --kind sequential\ndraft")
    shell.cell("%chat team Go.")

    again = str(shell.cell("%%agent team --kind sequential\ndraft")).splitlines()[0]
    changed = str(shell.cell("%%agent team --kind sequential\ndraft -> critic")).splitlines()[0]
    other = str(shell.cell("%%agent team --kind parallel\ndraft, critic")).splitlines()[0]

    assert again == "team v1, unchanged"
    assert changed == "team v1 → v2 (agents +1 -1 lines); session kept, 2 events"
    assert other == "team v2 → v3 (sequential → parallel); session kept, 2 events"
    assert "team v2 → v3 (sequential → parallel)" in str(shell.cell("%trace"))


def test_the_table_of_agents_has_the_kinds_where_there_are_teams(shell: Shell) -> None:
    agents(shell, draft=["D"])
    without = str(shell.cell("%agents")).splitlines()[0].split()
    shell.cell("%%agent team --kind sequential --root\ndraft")

    shown = str(shell.cell("%agents")).splitlines()

    assert without == ["agent", "model", "tools", "defined"]
    assert shown[0].split() == ["agent", "kind", "model", "tools", "agents", "defined"]
    assert shown[3].split() == ["team", "v1", "sequential", "draft", "In[4]"]
    assert str(shell.cell("%agents --show team")).splitlines()[1:] == ["%%agent team --kind sequential --root", "draft"]
    assert shell.cell("%chat Go.").agent == "team"


def test_a_member_that_is_gone_is_named_before_anything_runs(shell: Shell) -> None:
    agents(shell, draft=["D"], critic=["C"])
    shell.cell("%%agent team --kind sequential\ndraft -> critic")
    shell.cell("%agents --rm critic")

    assert "no agent named 'critic'" in shell.fails("%chat team Go.")


WRONG = [
    ("--kind sequental", "draft", "unknown kind 'sequental'; use sequential, parallel or loop"),
    (
        "--kind sequential",
        "draft critic",
        "line 2: 'draft critic' is not the name of an agent; write names with arrows",
    ),
    ("--kind sequential", "draft\n-> critik", "line 3: no agent is named 'critik'; did you mean 'critic'?"),
    ("--kind parallel", "draft -> critic", "parallel agents have no order; write commas between: draft, critic"),
    ("--kind loop", "draft -> draft", "draft is in the team already, in line 2; leave one out"),
    ("--kind loop", "# nobody", "names no agents; write draft -> review below"),
    ("--kind sequential", "", "names no agents; write them below the line"),
    ("--kind sequential -m x", "draft", "--kind sequential has no --model; define it in the cells"),
    ("--kind parallel -t x", "draft", "--kind parallel has no --tools; define it in the cells"),
    ("--kind parallel --max-iterations 3", "draft", "--max-iterations; use it with --kind loop"),
    ("--kind sequential", "count", "'count' is a tool or a function, not an agent; only %%workflow takes those"),
    ("--kind sequential", "team", "team cannot be a member of itself"),
    (
        "--kind parallel",
        "(draft, critic)",
        "line 2: '(draft' is not the name of an agent; write names with commas between them",
    ),
    ("--kind sequential", "1. draft\n2. critic", "line 2: '1. draft' is not the name of an agent"),
    ("--kind sequential", "START -> draft", "line 2: a team has no START; leave it out, or write %%workflow team"),
    (
        "--kind graph",
        "draft",
        "'graph'; use sequential, parallel or loop; for a graph, begin the cell with %%workflow",
    ),
    ("--kind sequential", "draft -> lambda", "no agent is named 'lambda'; an agent cannot have that name"),
    ("--kind sequential draft -> critic", "", "write the graph below the line"),
    ("--kind loop", "draft\nuntil:", "line 3: the expression '' cannot be used"),
    (
        "--kind loop",
        "draft\nuntil: score > 8",
        "line 3: the expression 'score > 8' cannot be used: there is no 'score'",
    ),
    ("--kind loop", "draft\nuntil ready", "line 3: 'until ready' is not the name of an agent"),
    ("--kind loop", "until: 1 > 2\nuntil: 2 > 3\ndraft", "line 3: a second until:; write one condition"),
    ("--kind sequential", "draft\nuntil: 1 > 2", "only a loop ends by a condition, not team; write --kind loop"),
    ("--kind sequential", "Write, please!", "'please!' is not the name of an agent; write names with arrows"),
]


def test_what_is_wrong_with_a_team_is_said_in_a_line(shell: Shell) -> None:
    agents(shell, draft=["D"], critic=["C"])
    shell.names["Write"] = shell.names["draft"]
    shell.names["count"] = agents

    for line, body, said in WRONG:
        shown = shell.fails(f"%%agent team {line}\n{body}")
        assert said in one_line(shown, shown.partition(":")[0])

    assert "team" not in shell.names


def test_no_team_is_a_member_of_itself_by_way_of_another(shell: Shell) -> None:
    agents(shell, draft=["D"])
    shell.cell("%%agent inner --kind sequential\ndraft")
    shell.cell("%%agent outer --kind sequential\ninner")

    assert "inner " in shell.fails("%%agent inner --kind sequential\nouter")


def test_names_complete_in_the_body_of_a_workflow_and_kinds_on_the_line(shell: Shell) -> None:
    agents(shell, draft=["D"])

    assert "%%agent x --kind sequential" in shell.complete("%%agent x --kind s")
    assert "%%workflow w\nSTART -> draft" in shell.complete("%%workflow w\nSTART -> dr")
    assert "%%agent t --kind parallel\ndraft" in shell.complete("%%agent t --kind parallel\ndr")


def test_help_tells_of_teams_conditions_routes_and_names_of_later_cells(shell: Shell) -> None:
    shell.cell("%%agent?")
    assert (
        "--kind loop" in shell.printed
        and "--max-iterations 4\n    writer -> critic\n    until: session_state" in shell.printed
    )

    shell.cell("%%workflow?")
    assert "later cells" in shell.printed
    assert "sort -[*]-> clerk" in shell.printed


@pytest.mark.parametrize(
    "cell", ["%%agent team --kind sequential\ndraft", "%%workflow team\nSTART -> draft"], ids=["team", "workflow"]
)
def test_a_reply_says_that_a_member_has_a_stand_in_for_a_model(shell: Shell, cell: str) -> None:
    shell.cell("%%agent draft -m offline\nWrite.")
    shell.cell(cell)

    assert view_of_reply(shell.cell("%chat team Hello")).notice


def waiting_team(shell: Shell, kind: str = "sequential") -> None:
    """A team whose second member waits for an approval."""
    agents(shell, draft=["A draft.", "Another."], last=["The last word."])
    shell.names["paid"] = []
    shell.cell('%%tool --confirm\ndef pay(n: int) -> str:\n    "Pays."\n    paid.append(n)\n    return "paid"')
    shell.names["m_clerk"] = ScriptedLlm(call("pay", n=1), "Paid.")
    shell.cell("%%agent clerk -m m_clerk -t pay\nPay.")
    once = " --max-iterations 1" if kind == "loop" else ""
    shell.cell(f"%%agent team --kind {kind}{once}\ndraft -> clerk -> last")
    assert shell.cell("%chat team Go.").status == "pending"


@pytest.mark.parametrize("kind", ["sequential", "loop"])
@pytest.mark.parametrize(
    "changed",
    [
        "%%agent team --kind sequential\ndraft",
        "%%agent clerk -m m_new -t pay\nAnother clerk.",
        "%%agent last -m m_new\nSays something else.",
    ],
    ids=["the team without it", "who waits", "who comes after"],
)
def test_a_team_that_waits_goes_on_as_it_was_and_what_is_said_next_goes_to_the_new_one(
    shell: Shell, kind: str, changed: str
) -> None:
    waiting_team(shell, kind)
    shell.names["m_new"] = ScriptedLlm("New.", "Newer.")
    shell.cell(changed)

    reply = shell.cell("%confirm --yes")

    assert (authors(reply), reply.text, shell.names["paid"]) == (["clerk", "last"], "The last word.", [1])
    shell.run("%chat team Once more.")  # not all of them have more to say
    assert authors(shell.names["_run"])[:2] == ["user", "draft"]


def test_a_question_inside_a_team_that_was_changed_is_answered_in_words(shell: Shell) -> None:
    agents(shell, last=["The last word."])
    shell.names["request_input"] = request_input
    shell.names["m_asker"] = ScriptedLlm(call("adk_request_input", message="Who?"), "Hello Bo.")
    shell.cell("%%agent asker -m m_asker -t request_input\nAsk.")
    shell.cell("%%agent team --kind sequential\nasker -> last")
    shell.cell("%chat team Go.")
    shell.cell("%%agent team --kind sequential\nlast")

    assert authors(shell.cell("%chat team Bo")) == ["asker", "last"]


def test_a_task_inside_a_team_that_was_changed_is_talked_over_to_its_end() -> None:
    def team(*agents: BaseAgent) -> SequentialAgent:
        return SequentialAgent(name="team", sub_agents=list(agents))

    booker = LlmAgent(
        name="booker", mode="task", model=ScriptedLlm("Which date?", call("finish_task", result="booked"))
    )
    boss = LlmAgent(name="boss", model=ScriptedLlm(call("booker", request="book"), "All done."), sub_agents=[booker])
    chat = Chat(team(boss, LlmAgent(name="last", model=ScriptedLlm("The last word."))), show="off")

    assert chat.ask("Book.").text == "Which date?"
    chat.agent = team(LlmAgent(name="other", model=ScriptedLlm("Other here.")))
    assert chat.ask("Tomorrow.").text == "The last word."
    assert chat.ask("And?").text == "Other here."
