"""The picture that a team's reply keeps of its run."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from adk_nb.agents import LlmAgent, LoopAgent, ParallelAgent, SequentialAgent
from adk_nb.events import Event, RequestInput
from adk_nb.models import ScriptedLlm, call
from adk_nb.notebook.chat.chat import Chat
from adk_nb.notebook.chat.reply import Reply
from adk_nb.tools import FunctionTool
from adk_nb.workflow import START, Workflow, node

LIT = 'stroke="#1e88e5"'


def agent(name: str, *answers: Any, **fields: Any) -> LlmAgent:
    return LlmAgent(name=name, model=ScriptedLlm(*answers), **fields)


def html(reply: Reply) -> str:
    return reply._repr_mimebundle_()["text/html"]


def said(reply: Reply) -> str:
    """What those are told who do not see the picture."""
    [words] = re.findall('aria-label="([^"]*)"', html(reply))
    return words


def rects(reply: Reply) -> list[str]:
    return re.findall("<rect[^>]*>", html(reply))


def sorting() -> Chat:
    def sort(node_input: str) -> Event:
        return Event(output=node_input, route="lamp" if "lamp" in node_input else "road")

    def electrician(node_input: str) -> str:
        return "on the way"

    def roadworks(node_input: str) -> str:
        return "filled"

    edges: list[Any] = [(START, sort), (sort, {"lamp": electrician, "road": roadworks})]
    return Chat(Workflow(name="triage", edges=edges), show="off")


def test_a_workflows_reply_keeps_the_way_it_took_beside_its_answer_and_its_events_folded():
    lamp = sorting().ask("a lamp")

    open_, _, details = html(lamp).partition("<details>")
    assert open_.index("</svg>") < open_.index("on the way")
    assert details.startswith("<summary>3 events<") and "<svg" not in details
    assert said(lamp).split("; ") == ["triage: START, sort, electrician, roadworks", "done: sort, electrician"]
    assert [LIT in one for one in rects(lamp)] == [True, True, True, False]
    assert said(sorting().ask("a hole")).endswith("; done: sort, roadworks")


def test_the_picture_is_the_same_on_every_run_and_on_every_look():
    reply = sorting().ask("a lamp")

    assert html(reply) == html(reply) == html(sorting().ask("a lamp"))


def test_a_saved_page_has_no_picture_for_an_agent_alone():
    assert "<svg" not in html(Chat(agent("alone", "Here."), show="off").ask("?"))


def test_only_the_colleague_that_took_over_is_lit():
    team = [agent("billing", "12 euros.", "24 euros."), agent("repairs", "On the way.")]
    desk = agent("desk", call("transfer_to_agent", agent_name="billing"), sub_agents=team)
    chat = Chat(desk, show="off")

    assert said(chat.ask("a bill")).split("; ") == ["desk: desk, billing, repairs", "done: desk, billing"]
    assert said(chat.ask("and now?")).split("; ") == ["desk: desk, billing, repairs", "done: billing"]


def test_a_loop_says_in_which_pass_it_ended():
    loop = LoopAgent(name="refine", sub_agents=[agent("title", "One", "Two")], max_iterations=2)

    assert ">pass 2</text>" in html(Chat(loop, show="off").ask("go"))


def test_what_a_callback_writes_to_the_state_is_no_pass_of_its_own():
    def count(callback_context: Any) -> None:
        callback_context.state["words"] = 1

    title = agent("title", "One", "Two", after_agent_callback=count)
    loop = LoopAgent(name="refine", sub_agents=[title], max_iterations=2)

    assert ">pass 2</text>" in html(Chat(loop, show="off").ask("go"))


@pytest.mark.parametrize("kind", [SequentialAgent, ParallelAgent])
def test_who_waits_is_not_done_and_is_when_it_was_answered(kind: Any):
    def pay(euros: int) -> str:
        """Pays."""
        return f"{euros} paid"

    asks = agent("asks", call("pay", euros=5), "Paid.")
    asks.tools = [FunctionTool(pay, require_confirmation=True)]
    chat = Chat(kind(name="team", sub_agents=[agent("says", "A draft."), asks]), show="off")

    waits = chat.ask("go")
    done = waits.approve()

    assert said(waits).split("; ") == ["team: team, says, asks", "waits: team, asks", "done: says"]
    assert said(done).split("; ") == ["team: team, says, asks", "done: team, says, asks"]


def test_a_graph_that_was_asked_twice_keeps_the_way_from_its_beginning():
    def first(node_input: str) -> Iterator[RequestInput]:
        yield RequestInput(message="How many?")

    def second(node_input: str) -> Iterator[RequestInput]:
        yield RequestInput(message="How much?")

    chat = Chat(Workflow(name="order", edges=[(START, first, second)]), show="off")

    pictures = [said(chat.ask(words)).partition("; ")[2] for words in ("go", "3", "5")]

    assert pictures == ["waits: first", "; ".join(["waits: second", "done: first"]), "done: first, second"]


def test_what_failed_is_marked_and_what_came_after_is_not():
    def breaks(node_input: str) -> str:
        raise ValueError("broken")

    def after(node_input: str) -> str:
        return "never"

    reply = Chat(Workflow(name="graph", edges=[(START, breaks, after)]), show="off").ask("go")

    assert said(reply).split("; ") == ["graph: START, breaks, after", "failed: breaks"]
    assert [LIT in one for one in rects(reply)] == [True, False, False]
    assert ">✗</text>" in html(reply)


def test_a_name_is_no_markup_in_the_picture():
    def odd(node_input: str) -> str:
        return "Here."

    reply = Chat(Workflow(name="desk", edges=[(START, node(odd, name='"><b onload=x>'))]), show="off").ask("?")

    assert "<b" not in html(reply)
    assert "&quot;&gt;&lt;b onload=x&gt;" in html(reply)


def test_the_picture_is_of_the_team_that_worked_and_not_of_one_made_since():
    chat = sorting()
    reply = chat.ask("a lamp")
    chat.agent = agent("another", "Here.")

    assert said(reply).startswith("triage: ")
