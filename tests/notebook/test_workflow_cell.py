"""`%%workflow`: a cell whose body is the graph itself."""

import pytest

from adk_nb.models.scripted_llm import ScriptedLlm
from adk_nb.notebook.cells.workflow_cell import chosen_route
from adk_nb.workflow import JoinNode, Workflow
from tests.notebook.conftest import Shell
from tests.notebook.test_kinds import agents, authors
from tests.notebook.test_magics import one_line

LOOP = """%%workflow flow
START -> draft -> review

review -[revise]-> draft  # once more
review -[ok]-> END"""


def test_edges_lead_from_node_to_node_and_routes_are_what_an_agent_answers(shell: Shell) -> None:
    agents(shell, draft=["One.", "Two."], review=["Please revise.", "OK!"])

    told = str(shell.cell(LOOP))
    reply = shell.cell("%chat flow Write.")

    assert isinstance(shell.names["flow"], Workflow)
    assert told.splitlines() == [
        "flow v1 · workflow",
        "flow (workflow) v1",
        "├─ START -> draft",
        "├─ draft (scripted) v1 -> review",
        "└─ review (scripted) v1 " + "-[revise]-> draft, -[ok]-> END",
    ]
    assert authors(reply) == ["user", "draft", "review", "draft", "review"]
    assert (reply.status, reply.text) == ("done", "OK!")


def test_functions_and_tools_are_nodes_and_choose_routes(shell: Shell) -> None:
    shell.cell(
        "from adk_nb.events.event import Event\n"
        "def measure(node_input: str):\n"
        "    size = len(node_input)\n"
        "    return Event(output={'size': size}, route=size > 3)"
    )
    shell.cell("%%tool\ndef note(size: int) -> str:\n    'Notes.'\n    return f'noted {size}'")
    shell.cell("%%workflow flow\nSTART -> measure\nmeasure -[True]-> note\nmeasure -[*]-> END")

    long, short = shell.cell("%chat flow 12345"), shell.cell("%chat flow 1")

    assert "noted 5" in long.text
    assert short.text == '{"size": 1}'
    assert "note" in [event.node_info.name for event in long.events]
    assert "note" not in [event.node_info.name for event in short.events]


def test_a_function_chooses_the_route_that_it_returns(shell: Shell) -> None:
    shell.cell(
        "def size_of(node_input):\n    return 'short'\n"
        "async def is_odd(node_input: str):\n    return len(node_input) % 2 == 1\n"
        "def shout(node_input):\n    return 'odd and long'\n"
        "def whisper(node_input):\n    return 'short'"
    )
    shell.cell(
        "%%workflow flow\nSTART -> is_odd\nis_odd -[True]-> shout\nis_odd -[False]-> size_of\n"
        "size_of -[long]-> shout\nsize_of -[short]-> whisper"
    )

    odd, even = shell.cell("%chat flow 12345"), shell.cell("%chat flow 1234")

    assert [event.node_info.name for event in odd.events[1:]] == ["is_odd", "shout"]
    assert [event.node_info.name for event in even.events[1:]] == ["is_odd", "size_of", "whisper"]


def test_what_follows_a_set_waits_for_all_of_it(shell: Shell) -> None:
    agents(shell, weather=["Sunny."], news=["None."], editor=["Both."])
    shell.cell("%%workflow flow\nSTART -> (weather, news) -> editor")

    reply = shell.cell("%chat flow What is up?")

    assert isinstance(shell.names["flow"].graph.nodes["join_weather_news"], JoinNode)
    assert authors(reply)[-1] == "editor"
    [request] = shell.names["m_editor"].requests
    assert "Sunny." in str(request.contents)
    assert "None." in str(request.contents)


def test_several_routes_lead_one_way(shell: Shell) -> None:
    agents(shell, sort=["crash", "praise"], engineer=["On it."], clerk=["Thanks."])
    shell.cell("%%workflow flow\nSTART -> sort\nsort -[bug, crash]-> engineer\nsort -[*]-> clerk")

    texts = ("It fell over.", "I like it.")
    assert [authors(shell.cell(f"%chat flow {text}"))[-1] for text in texts] == ["engineer", "clerk"]


def test_a_node_that_is_defined_anew_counts_at_once(shell: Shell) -> None:
    agents(shell, draft=["One.", "Two."], review=["ok", "ok"])
    shell.cell(LOOP)
    shell.cell("def review(node_input): return 'as good as it gets'")
    shell.cell("%agents --rm review")
    shell.cell("def review(node_input): return 'as good as it gets'")

    shell.names["m_draft2"] = ScriptedLlm("Another model's.")
    shell.cell("%%agent draft -m m_draft2\nBe draft.")
    reply = shell.cell("%chat flow Write.")

    assert reply.events[1].text == "Another model's."


def test_a_changed_graph_is_a_new_version_and_the_log_says_so(shell: Shell) -> None:
    agents(shell, draft=["One.", "Two."], review=["ok", "ok"])
    shell.cell(LOOP)
    shell.cell("%chat flow Write.")

    again = str(shell.cell(LOOP)).splitlines()[0]
    changed = str(shell.cell("%%workflow flow\nSTART -> draft -> review")).splitlines()[0]

    assert again == "flow v1, unchanged"
    assert changed.startswith("flow v1 → v2 (edges -3 lines)") and "3 events" in changed
    assert "flow v1 → v2" in str(shell.cell("%trace"))


WRONG = [
    ("draft", "line 2: draft is not an edge; write where it leads, as START -> draft"),
    ("START => draft", "line 2: expected an arrow, got '=>'; write names and arrows, as START -> draft"),
    ("START --> draft", "expected an arrow, got '-->'"),
    ("START <- draft", "expected an arrow, got '<-'"),
    (
        "# a comment\n\nSTART -> drft",
        "line 4: no agent, tool or function is named 'drft'; did you mean 'draft'?",
    ),
    ("START -> draft ->", "nothing follows the last arrow; write a name behind it, or END"),
    ("-> draft", "expected a name, got '->'"),
    ("START -> -> draft", "expected a name, got '->'"),
    ("START draft", "expected an arrow, got 'draft'"),
    ("START -> draft, review", "expected an arrow, got ','"),
    ("START -> (draft, review", "expected a name, got '(draft'"),
    ("START -> (draft -> review, END) -> END", "expected a name, got '(draft -> review, END)'"),
    ("START -> (draft review)", "(draft review) is not a set of names; write (draft, review)"),
    ("START -> ()", "() is not a set of names; write (draft, review)"),
    ("START -> (draft, draft)", "draft is in the brackets twice; leave one out"),
    ("(START, draft) -> review", "START stands alone and not in brackets"),
    ("START -> draft\ndraft -ok-> END", "line 3: expected an arrow, got '-ok->'"),
    ("START -> draft\ndraft -(ok)-> END", "expected an arrow, got '-"),
    (
        "START -> draft\ndraft [ok] -> END",
        "expected an arrow, got '[ok]'; write names and arrows, as START -> draft, ",
    ),
    ("START -> draft -[]-> END", "the route is empty; write its name, as -[ok]->"),
    ("START -> draft -[*, ok]-> END", "* is any other route and stands alone: -[*]->"),
    ("START -[ok]-> draft", "an edge from START has no route"),
    ("START -> (draft, review) -[ok]-> END", "a route is chosen by one node; write draft -[...]-> END alone"),
    ("START -> draft -> START", "nothing can lead back to START; lead to the first node instead"),
    ("START -> END -> draft", "line 2: no edge leads from START to a node; write START -> draft"),
    ("START -> draft -> END -> draft", "nothing can follow after END"),
    ("start -> draft", "line 2: 'start' is written in capitals: START"),
    ("START -> draft -> end", "'end' is written in capitals: END"),
    ("START -> draft\nSTART -> draft", "the edge START -> draft is there twice; leave one out"),
    ("draft -> review", "line 2: no edge leads from START to a node; write START -> draft"),
    ("START -> draft\nreview -> END", "no edge leads to review; add"),
    ("START -> draft -> review\nreview -> draft", "the cycle draft -> review -> draft never ends"),
    ("START -> draft -> draft", "the cycle draft -> draft never ends; let a node choose a route out of it"),
    ("START -> number", "'number' is a variable of type int; a node is an agent, a tool or a function"),
    ("START -> draft; draft -> review", "expected an arrow, got ';'"),
    ("START -> flow", "line 2: flow cannot be a node of itself; leave it out"),
    ("START → draft ⇒ review", "expected an arrow, got '⇒'"),
    ("START -> [draft, review]", "expected a name, got '[draft, review]'"),
    ("START -> draft\ndraft -[a|b]-> review", "line 3: commas stand between routes: -[a, b]->"),
    ("START -> draft\ndraft -[else]-> review", "any other route is written -[*]->; a route named else is quoted"),
    ("START -> draft()", "expected an arrow, got '()'"),
    ("START -> 'draft'", "line 2: expected a name, got \"'draft'\""),
    ("START -> END", "line 2: no edge leads from START to a node; write START -> draft"),
    ("START", "line 2: START is not an edge; write where it leads, as START -> draft"),
    ("START -> print", "no agent, tool or function is named 'print'; an agent cannot have that name; choose another"),
    ("START -> draft\r\nreview -> END\r\n", "no edge leads to review"),
    ("# nothing", "line 2: no edge leads from START to a node; write START -> draft"),
]


def test_what_is_wrong_with_a_graph_is_said_in_a_line_that_says_where(shell: Shell) -> None:
    agents(shell, draft=["D"], review=["ok"])
    shell.names["number"] = 3

    for count, (body, said) in enumerate(WRONG, 4):
        shown = one_line(shell.fails(f"%%workflow flow\n{body}"), "WorkflowConfigurationError")
        assert shown.startswith(f"In[{count}]")
        assert said in shown

    assert "flow" not in shell.names


@pytest.mark.parametrize("body", ["START → draft → review", "  START -> draft\r\n\r\n\tdraft -> review  # so\r\n"])
def test_arrows_blanks_and_ends_of_lines_may_be_those_of_any_editor(shell: Shell, body: str) -> None:
    agents(shell, draft=["D"], review=["ok"])

    told = str(shell.cell(f"%%workflow flow\n{body}")).splitlines()

    assert told[2:] == ["├─ START -> draft", "├─ draft (scripted) v1 -> review", "└─ review (scripted) v1"]


def test_a_node_may_be_defined_in_a_later_cell(shell: Shell) -> None:
    agents(shell, draft=["A draft."])

    told = str(shell.cell("%%workflow flow\nSTART -> draft -> polish -> END")).splitlines()
    too_early = one_line(shell.fails("%chat flow Write."), "AgentNotFoundError")
    agents(shell, polish=["A polished draft."])
    reply = shell.cell("%chat flow Write.")

    assert ": polish;" in told[1] and told[1].endswith("flow")
    assert told[-1].startswith("└─ polish (not") and told[-1].endswith("-> END")
    assert "'polish'" in too_early and "flow" in too_early and too_early.endswith("defines polish")
    assert reply.text == "A polished draft."
    assert "polish (scripted) v1" in str(shell.cell("%agents --graph flow"))


def test_a_function_of_a_later_cell_is_a_node_and_chooses_routes(shell: Shell) -> None:
    agents(shell, draft=["A draft."])
    shell.cell("%%workflow flow\nSTART -> measure\nmeasure -[long]-> draft\nmeasure -[*]-> END")

    shell.cell(
        "from adk_nb.events.event import Event\n"
        "def measure(node_input: str):\n    return Event(route='long' if len(node_input) > 3 else 'short')"
    )

    assert shell.cell("%chat flow 12345").text == "A draft."


def test_a_workflow_and_a_team_that_name_each_other_are_refused_whichever_comes_first(shell: Shell) -> None:
    shell.cell("%%workflow flow\nSTART -> team")

    message = shell.fails("%%agent team --kind sequential\nflow")
    assert "team " in message and " itself" in message


def test_edges_on_the_line_are_sent_below_it(shell: Shell) -> None:
    message = one_line(shell.fails("%%workflow flow START -> draft"), "InputError")
    assert message.startswith("%%workflow: ") and "below the line" in message


def test_an_empty_cell_says_what_to_write(shell: Shell) -> None:
    message = one_line(shell.fails("%%workflow flow"), "InputError")
    assert message.startswith("%%workflow flow ") and "START -> draft" in message


@pytest.mark.parametrize(
    ("answer", "route"),
    [
        ("ok", "ok"),
        ("**OK.**", "ok"),
        ("I would revise this.", "revise"),
        ("ok or revise? I cannot say", None),
        ("okay", None),
        ("3", 3),
    ],
)
def test_an_agents_answer_is_a_route_or_has_one_in_it(answer: str, route: object) -> None:
    assert chosen_route(answer, ["ok", "revise", 3]) == route
