"""Which agent of a team answers a line of `%chat`."""

from typing import Any

import pytest
from turns import reply_forms

from adk_nb.agents import LlmAgent, LoopAgent, SequentialAgent
from adk_nb.events import Event
from adk_nb.models import ScriptedLlm, call
from adk_nb.notebook.chat.chat import Chat, turn_runner
from adk_nb.tools import FunctionTool, exit_loop
from adk_nb.workflow import START, Workflow, node
from tests.notebook.conftest import Shell
from tests.support.talk import summaries

TO_HELPER = call("transfer_to_agent", agent_name="helper")


def agent(name: str, *answers: Any, **fields: Any) -> LlmAgent:
    return LlmAgent(name=name, model=ScriptedLlm(*answers), **fields)


def test_a_line_that_names_nobody_goes_to_who_has_the_word_and_one_that_names_the_root_goes_there(shell: Shell) -> None:
    helper = agent("helper", "Helper here.", "Helper again.")
    shell.names["boss"] = agent("boss", TO_HELPER, "Boss here.", sub_agents=[helper])

    said = [shell.cell(line).text for line in ("%chat boss Help me.", "%chat Please go on.", "%chat boss And you?")]

    assert said == ["Helper here.", "Helper again.", "Boss here."]


def test_a_sub_agent_that_is_named_answers(shell: Shell) -> None:
    shell.names["helper"] = agent("helper", "Helper here.")
    shell.names["boss"] = agent("boss", "Boss here.", sub_agents=[shell.names["helper"]])

    assert shell.cell("%chat boss Hello").text == "Boss here."
    assert shell.cell("%chat helper Hello").text == "Helper here."


def test_a_task_is_talked_over_line_by_line_and_its_parent_goes_on(shell: Shell) -> None:
    booker = agent("booker", "Which date?", call("finish_task", result="booked"), mode="task")
    shell.names["boss"] = agent("boss", call("booker", request="book"), "All done.", sub_agents=[booker])

    assert shell.cell("%chat boss Book it.").text == "Which date?"
    assert shell.cell("%chat Tomorrow.").text == "All done."


def test_in_python_a_conversation_stays_with_who_has_it_unless_that_is_unwanted() -> None:
    helper = agent("helper", "Helper here.", "Helper again.")
    chat = Chat(agent("boss", TO_HELPER, "Boss here.", sub_agents=[helper]), show="off")

    said = [chat.ask("Help me.").text, chat.ask("Go on.").text]
    turn_runner(chat).conversation.sticky = False

    assert [*said, chat.ask("And you?").text] == ["Helper here.", "Helper again.", "Boss here."]


def test_an_agent_of_a_single_turn_is_not_talked_to(shell: Shell) -> None:
    shell.names["alone"] = agent("alone", mode="single_turn")

    assert "mode='single_turn'" in shell.fails("%chat alone hello")


@pytest.mark.parametrize("mode", ["single_turn", "task"])
def test_what_a_called_sub_agent_asks_is_answered_and_may_be_changed(shell: Shell, mode: Any) -> None:
    def refund(order: str) -> str:
        """Refunds an order."""
        return f"refunded {order}"

    ends = "Refunded." if mode == "single_turn" else call("finish_task", result="Refunded.")
    clerk = agent("clerk", call("refund", order="A1"), ends, mode=mode)
    clerk.tools = [FunctionTool(refund, require_confirmation=True)]
    shell.names["boss"] = agent("boss", call("clerk", request="Refund A1"), "All done.", sub_agents=[clerk])

    assert shell.cell("%chat boss Refund A1").status == "pending"
    reply = shell.cell("%confirm --yes --edit order=B2")

    assert reply.text == "All done."
    assert summaries(reply.events)[1][1].startswith("answers {'result': 'refunded B2'")


@pytest.mark.parametrize(
    "team", ["%%agent team --kind sequential\nasks -> after", "%%workflow team\nSTART -> asks -> after"]
)
def test_a_team_goes_on_when_what_a_member_asks_is_answered_by_a_line(shell: Shell, team: str) -> None:
    shell.cell("%%tool --confirm\ndef pay(euros: int) -> str:\n    'Pays.'\n    return f'{euros} paid'")
    shell.names["says"], shell.names["ends"] = ScriptedLlm(call("pay", euros=5), "Paid."), ScriptedLlm("All is done.")
    shell.cell("%%agent asks -m says -t pay\nPay.")
    shell.cell("%%agent after -m ends\nSum up.")
    shell.cell(team)

    shell.cell("%chat team go")
    reply = shell.cell("%confirm --yes")

    assert (reply.agent, reply.text) == ("team", "All is done.")
    assert [event.author for event in reply.events if event.is_final_response()][-2:] == ["asks", "after"]


def handed_over() -> LlmAgent:
    return agent("desk", TO_HELPER, sub_agents=[agent("helper", "Helper here.")])


def in_order() -> SequentialAgent:
    return SequentialAgent(name="desk", sub_agents=[agent("first", "Draft."), agent("helper", "Helper here.")])


def in_a_loop() -> LoopAgent:
    critic = agent("critic", call("exit_loop"), tools=[exit_loop])
    return LoopAgent(name="desk", sub_agents=[agent("helper", "Helper here."), critic])


def in_a_graph() -> Workflow:
    def helper(node_input: str) -> Event:
        return Event(output=f"{node_input[:0]}Helper here.")

    return Workflow(name="desk", edges=[(START, helper)])


def talking_a_task_over() -> LlmAgent:
    helper = agent("helper", "Helper here.", mode="task")
    return agent("desk", call("helper", request="help"), sub_agents=[helper])


@pytest.mark.parametrize("made", [handed_over, in_order, in_a_loop, in_a_graph, talking_a_task_over])
def test_a_reply_is_headed_by_the_agent_of_the_chat_and_by_who_of_its_team_has_answered(made: Any) -> None:
    reply = Chat(made(), show="off").ask("Help me.")

    forms = reply_forms(reply)
    assert forms["text/plain"].startswith("desk · helper > Helper here.")
    assert "*desk · helper*\n\nHelper here." in forms["text/markdown"]
    assert "<p><small>desk · helper</small></p>\n<p>Helper here.</p>" in forms["text/html"]
    assert (reply.agent, reply.answered_by) == ("desk", "helper")


def test_an_agent_that_answers_itself_is_named_once() -> None:
    clerk = agent("clerk", "Found.", mode="single_turn")
    forms = reply_forms(
        Chat(agent("desk", call("clerk", request="find"), "Here.", sub_agents=[clerk]), show="off").ask("?")
    )

    assert forms["text/plain"] == "desk > Here.  [1 tool call]"
    assert forms["text/markdown"].startswith("Here.")
    assert "<small>" not in forms["text/html"]


def test_a_name_is_no_markup_in_a_heading() -> None:
    def odd(node_input: str) -> str:
        return "Here."

    graph = Workflow(name="desk", edges=[(START, node(odd, name="<b>*odd*"))])
    forms = reply_forms(Chat(graph, show="off").ask("?"))

    assert forms["text/plain"] == "desk · <b>*odd* > Here."
    assert forms["text/markdown"].startswith("*desk · &lt;b&#62;&#42;odd&#42;*")
    assert "<small>desk · &lt;b&gt;*odd*</small>" in forms["text/html"]


def test_what_follows_on_nodes_side_by_side_without_a_join_answers_and_not_one_of_those() -> None:
    def left(node_input: str) -> str:
        return f"left of {node_input}"

    def right(node_input: str) -> str:
        return f"right of {node_input}"

    def last(node_input: str) -> str:
        return f"last of {node_input}"

    reply = Chat(Workflow(name="flow", edges=[(START, (left, right), last)]), show="off").ask("it")

    assert (reply.text, reply.answered_by) == ("last of right of it", "last")


def test_what_an_agent_hands_back_that_the_user_gave_a_task_to_is_its_answer() -> None:
    chat = Chat(agent("booking", "Which day?", call("finish_task", result="Friday"), mode="task"), show="off")

    assert [chat.ask("A table, please").text, chat.ask("Friday").text] == ["Which day?", "Friday"]


# ---- a first word that looks like the name of somebody else


def agents(shell: Shell, *names: str) -> None:
    shell.names["model"] = ScriptedLlm(*["Hello."] * 6)
    for name in names:
        shell.cell(f"%%agent {name} -m model\nBe brief.")
        shell.cell(f"%chat {name} Hi")


def heading(shell: Shell, line: str) -> str:
    """What a line of `%chat` shows before the answer."""
    return str(shell.cell(line)).partition("Hello.")[0]


@pytest.mark.parametrize("line", ["%chat barista hi", "%chat barista What do you have?", "%chat tea_maker hello there"])
def test_a_line_for_an_agent_that_is_not_there_is_sent_to_no_other_one(shell: Shell, line: str) -> None:
    agents(shell, "waiter", "cook")

    said = shell.fails(line)

    assert "waiter, cook" in said and "--root" in said and repr(line.split()[1]) in said
    assert shell.names["_run"].question == "Hi"


def test_a_root_gets_the_whole_line_and_its_reply_says_so_in_its_head(shell: Shell) -> None:
    agents(shell, "waiter", "cook")
    shell.cell("%%agent host --root -m model\nBe brief.")

    forms = reply_forms(shell.cell("%chat barista hi"))

    assert shell.names["_run"].question == "barista hi"
    for form in forms.values():
        head = form.partition("Hello.")[0]
        assert "to host, the root agent" in head and "no agent is named 'barista'" in head
    assert "to host" in heading(shell, "%chat hi")
    assert "to host" not in heading(shell, "%chat host hi")


def test_the_agent_that_has_the_others_under_it_gets_a_line_without_a_name(shell: Shell) -> None:
    agents(shell, "waiter", "cook")
    shell.cell("%%agent host --sub waiter,cook -m model\nBe brief.")

    assert "to host, which has the others under it" in heading(shell, "%chat hi")
    shell.cell("%%agent guard -m model\nBe brief.")
    assert "waiter, cook, host, guard" in shell.fails("%chat hi")


@pytest.mark.parametrize(
    "cell", ["%%agent refundbot -m model -t", "%%agent refundbot --mode odd", "%%workflow refundbot\nSTART ->"]
)
@pytest.mark.parametrize("line", ["%chat refundbot Send it", "%chat refundbot", "%%chat refundbot\nSend it"])
def test_a_line_for_an_agent_whose_cell_has_failed_names_the_cell_and_the_reason(
    shell: Shell, cell: str, line: str
) -> None:
    agents(shell, "waiter")
    reason = shell.fails(f"{cell}\nBe kind.").partition(": ")[2]

    said = shell.fails(line)

    assert f"In[{shell.ip.execution_count - 2}] failed ({reason[:40]}" in said
    assert shell.names["_run"].question == "Hi"
    shell.cell("%%agent refundbot -m model\nBe kind.")
    assert shell.cell("%chat refundbot Send it").agent == "refundbot"


@pytest.mark.parametrize(
    "line",
    [
        "%chat What do you have?",  # capitals: no agent is named so
        "%chat do you have tea",
        "%chat barista",  # no words follow
        "%chat -- barista hi",
        "%chat coffee, please",
        "%%chat\nbarista hi",
        "%chat waiter barista hi",
    ],
)
def test_a_line_that_names_nobody_says_nothing_of_it(shell: Shell, line: str) -> None:
    agents(shell, "cook")
    shell.cell("%%agent waiter --root -m model\nBe brief.")

    assert "no agent" not in heading(shell, line)


def test_where_one_agent_is_alone_verbs_are_no_names(shell: Shell) -> None:
    agents(shell, "waiter")

    assert "no agent" not in heading(shell, "%chat order a coffee")
    assert "the only agent" in heading(shell, "%chat barista What do you have?")


def test_an_answer_to_a_question_of_an_agent_is_no_name(shell: Shell) -> None:
    shell.names["model"] = ScriptedLlm(call("adk_request_input", message="Which colour?"), "Fine.")
    agents_tool = "from adk_nb.tools import request_input"
    shell.cell(agents_tool)
    shell.cell("%%agent painter -m model -t request_input\nAsk.")
    shell.cell("%%agent cook -m model\nCook.")
    shell.cell("%chat painter Paint it")

    assert "no agent" not in heading(shell, "%chat blue with stripes")


def _shout(node_input: str) -> str:
    return node_input.upper()


def _drop(node_input: str) -> None:
    return None


def test_the_output_node_of_a_workflow_within_a_workflow_answers() -> None:
    inner = Workflow(name="inner", edges=[(START, agent("poet", "a verse"), node(_shout, name="shout"))])

    reply = Chat(Workflow(name="outer", edges=[(START, inner)])).ask("Go.")

    assert (reply.text, reply.answered_by) == ("A VERSE", "shout")


def test_an_agent_that_speaks_after_the_output_node_does_not_take_its_place() -> None:
    late = (START, node(_shout, name="first"), agent("chatter", "by the way"), node(_drop, name="drop"))
    edges = [(START, node(_shout, name="shout")), late]

    reply = Chat(Workflow(name="flow", edges=edges)).ask("go")

    assert (reply.text, reply.answered_by) == ("GO", "shout")


def test_a_workflow_without_an_output_is_answered_by_who_spoke_last() -> None:
    flow = Workflow(name="flow", edges=[(START, agent("chatter", "by the way"), node(_drop, name="drop"))])

    assert Chat(flow).ask("go").text == "by the way"


def test_what_follows_a_workflow_in_a_team_answers() -> None:
    flow = Workflow(name="flow", edges=[(START, node(_shout, name="shout"))])

    assert Chat(SequentialAgent(name="team", sub_agents=[flow, agent("editor", "Edited.")])).ask("go").text == "Edited."
