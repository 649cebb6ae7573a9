"""What a folded run says besides its answer: the last words of each member, and how many tools failed."""

from turns import reply_forms

from adk_nb.agents import LlmAgent, LoopAgent, SequentialAgent
from adk_nb.models import ScriptedLlm, call
from adk_nb.notebook.chat.chat import Chat
from adk_nb.notebook.chat.reply import Reply, view_of_reply
from adk_nb.notebook.view.reply_view import MAX_MEMBERS, answer_for_view
from adk_nb.tools import AgentTool
from tests.notebook.test_who_answers import agent


def members(reply: Reply) -> list[tuple[str, str]]:
    return [(one["who"], one["text"]) for one in answer_for_view(view_of_reply(reply))["members"]]


def test_each_member_has_its_last_words_and_the_one_that_answers_has_none() -> None:
    circle = LoopAgent(
        name="circle", max_iterations=2, sub_agents=[agent("draft", "One.", "Two."), agent("critic", "No.", "**Yes**.")]
    )
    team = SequentialAgent(name="team", sub_agents=[circle, agent("editor", "Done.")])

    reply = Chat(team).ask("Write.")

    assert reply.text == "Done."
    assert members(reply) == [("draft", "Two."), ("critic", "Yes.")]
    shown = reply_forms(reply)
    assert "<small>draft: Two.</small></p>\n<p><small>critic:" in shown["text/html"]
    assert shown["text/html"].index("critic: Yes.") < shown["text/html"].index("<p>Done.</p>")
    assert "*draft: Two.*\n\n*critic:" in shown["text/markdown"]


def test_formulas_of_a_member_are_tex_between_dollar_signs_and_its_code_stays() -> None:
    draft = agent("draft", "So $a^2$, $$b < c$$ and `\\(d\\)`.")

    reply = Chat(SequentialAgent(name="team", sub_agents=[draft, agent("editor", "Done.")])).ask("Write.")

    assert members(reply) == [("draft", "So $a^2$, $$b < c$$ and \\(d\\).")]


def test_members_with_the_same_last_words_are_all_there() -> None:
    team = SequentialAgent(name="team", sub_agents=[agent("left", "Fine."), agent("right", "Fine.")])

    reply = Chat(team).ask("Well?")

    assert (reply.answered_by, members(reply)) == ("right", [("left", "Fine.")])


def test_one_agent_alone_and_what_a_called_agent_says_to_its_caller_are_no_members() -> None:
    helper = AgentTool(agent("helper", "Between us."))
    alone = agent("alone", ["Let me ask. ", call("helper", request="?")], "It is 9.", tools=[helper])

    assert members(Chat(alone).ask("Go.")) == []


def test_long_words_are_shortened_and_many_members_counted() -> None:
    many = [agent(f"member{number}", "so " * 500 + str(number)) for number in range(MAX_MEMBERS + 4)]

    told = members(Chat(SequentialAgent(name="team", sub_agents=[*many])).ask("Go."))

    assert told[0][0] == ""
    assert told[0][1].startswith("3 more")
    assert len(told) == MAX_MEMBERS + 1
    assert max(len(text) for _, text in told) <= 300


def broken(path: str) -> str:
    """Reads a file."""
    raise OSError("no such file")


def test_failed_tools_are_counted_beside_the_answer() -> None:
    calls = [call("broken", path="a"), call("broken", path="b")]
    reader = LlmAgent(name="reader", model=ScriptedLlm(calls, "I could not read them."), tools=[broken])

    shown = reply_forms(Chat(reader).ask("Read."))

    assert "[2 tool calls; 2 failed]" in shown["text/plain"]
    assert "2 tool calls · **2 failed**:" in shown["text/markdown"]
    assert "2 tool calls · <strong>2 failed" in shown["text/html"]
