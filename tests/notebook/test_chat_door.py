"""The door of a conversation: what it takes, what it refuses, and how it prints."""

import logging
from typing import Any

import pytest
from support.messages import mentions

from adk_nb import Agent, Chat, tool
from adk_nb.agents import LoopAgent
from adk_nb.apps import App
from adk_nb.errors import ConfigurationError, InputError
from adk_nb.models import ScriptedLlm, call
from adk_nb.notebook.chat.chat import turn_runner
from adk_nb.notebook.chat.conversation import InNotebook
from adk_nb.plugins import BasePlugin
from tests.notebook.conftest import Shell


def guide(*answers: Any) -> Agent:
    return Agent(name="guide", model=ScriptedLlm(*answers))


@pytest.mark.parametrize("nobody", ["guide", 3, None, [guide()]])
def test_a_chat_with_what_is_no_agent_is_refused_at_once(nobody: Any):
    with pytest.raises(ConfigurationError, match="takes an agent"):
        Chat(nobody)


def test_a_chat_in_a_session_without_a_name_is_refused_at_once():
    with pytest.raises(InputError, match="session="):
        Chat(guide(), session=" ")


@pytest.mark.parametrize("nothing", ["", "  \n", None, 3])
def test_what_is_no_message_is_refused_and_nothing_is_stored(nothing: Any):
    chat = Chat(guide("hello"))

    with pytest.raises(InputError, match="non-empty text, got"):
        chat.ask(nothing)

    assert chat.events == []


def test_things_print_in_one_short_line():
    @tool
    def add(x: int) -> int:
        """Add one."""
        return x + 1

    agent = Agent(name="guide", model="offline", tools=[add])

    assert repr(agent) == "LlmAgent(name='guide', model='offline', tools=['add'])"
    assert repr(add) == "FunctionTool(add)"
    assert repr(Chat(agent, session="tea")) == "Chat(agent='guide', session='tea')"


def test_a_turn_in_the_background_says_whether_it_is_done():
    started = Chat(guide("hello")).start("hi")

    assert started.result(5).text == "hello"
    assert repr(started) == "Started(done)"


def test_a_reply_that_goes_on_from_an_approval_shows_the_call_it_was_about():
    @tool(confirm=True)
    def pay(amount: float) -> str:
        """Pay."""
        return f"paid {amount:g}"

    chat = Chat(Agent(name="payer", model=ScriptedLlm(call("pay", amount=3), "Done."), tools=[pay]))
    heard: list[str] = []
    turn_runner(chat).conversation.notebook = InNotebook(on_reply=lambda reply: heard.append(reply.status))
    chat.ask("pay 3")

    reply = chat.approve()

    assert "pay(amount=3)" in reply._repr_mimebundle_()["text/html"]
    assert heard == ["pending", "done"]


def test_a_chat_with_an_app_runs_its_plugins():
    class Counting(BasePlugin):
        turns = 0

        async def before_run_callback(self, **_: Any) -> None:
            self.turns += 1

    plugin = Counting(name="counting")
    chat = Chat(App(name="desk", root_agent=guide("hello", "bye"), plugins=[plugin]))

    assert [chat.ask("hi").text, chat.ask("so long").text] == ["hello", "bye"]
    assert (plugin.turns, chat.agent.name) == (2, "guide")


def test_what_is_said_after_the_answer_does_not_hide_it():
    agent = Agent(name="guide", model=ScriptedLlm("It is sunny."), after_agent_callback=lambda _: "Have a nice day!")

    assert Chat(agent).ask("weather?").text == "It is sunny.\n\nHave a nice day!"


def test_the_magic_does_not_take_a_chat_for_the_beginning_of_a_text(shell: Shell):
    shell.cell("%%agent guide -m offline\nBe brief.")
    shell.names["talk"] = Chat(guide("hello"))

    assert "agent; type talk.ask('...')" in shell.fails("%chat talk hi")
    assert shell.cell("%chat -- talk to me").question == "talk to me"


def test_an_error_of_a_callback_says_where_in_the_cell_it_comes_from(shell: Shell):
    shell.cell(
        "from adk_nb import Agent\n"
        "def check(callback_context):\n"
        "    return {}['budget']\n"
        "careful = Agent(name='careful', model='offline', before_agent_callback=check)"
    )

    assert shell.broke_off("%chat careful hi").error == "KeyError: 'budget' (In[2] line 3)"


def test_of_the_passes_of_a_loop_the_last_one_is_the_answer():
    title = Agent(name="title", model=ScriptedLlm("A long title", "A title"))
    loop = LoopAgent(name="shorten", sub_agents=[title], max_iterations=2)

    assert Chat(loop).ask("shorten it").text == "A title"


def fails(**given: Any) -> None:
    raise RuntimeError("the desk is closed")


def test_in_a_script_a_turn_that_failed_is_told_in_the_log(caplog: pytest.LogCaptureFixture):
    reply = Chat(Agent(name="guide", model=ScriptedLlm("hello"), before_agent_callback=fails)).ask("hi")

    [told] = caplog.record_tuples
    assert reply.text == "" and "RuntimeError: the desk is closed" in (reply.error or "")
    assert told[1] == logging.ERROR and mentions(told[2], f"'guide' failed, … reply.error: {reply.error}")


def test_a_turn_that_failed_in_a_cell_is_told_by_its_reply_alone(shell: Shell, caplog: pytest.LogCaptureFixture):
    shell.names["chat"] = Chat(Agent(name="guide", model=ScriptedLlm("hello"), before_agent_callback=fails))

    assert "the desk is closed" in str(shell.cell("chat.ask('hi')"))
    assert not caplog.records
