"""`%chat` with an app or a runner that a cell has made."""

from typing import Any

import pytest

from adk_nb import App, Chat, InMemoryRunner, Runner, tool
from adk_nb.errors import ConfigurationError
from adk_nb.models import call
from adk_nb.notebook.chat.chat import turn_runner
from adk_nb.plugins import BasePlugin
from adk_nb.runners import DEBUG_SESSION, DEBUG_USER
from adk_nb.sessions import InMemorySessionService
from tests.notebook.conftest import Shell
from tests.support.talk import guide


class Counts(BasePlugin):
    def __init__(self) -> None:
        super().__init__("counts")
        self.runs = 0

    async def before_run_callback(self, **_: Any) -> None:
        self.runs += 1


@tool(confirm=True)
def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


def test_an_app_answers_with_its_plugins_in_the_session_of_the_notebook(shell: Shell):
    counts = Counts()
    shell.names["shop"] = App(name="shop", root_agent=guide("hello", "again"), plugins=[counts])

    assert shell.cell("%chat shop hi").text == "hello"
    assert shell.cell("%chat and now?").text == "again"

    assert counts.runs == 2
    assert shell.names["_run"].agent == "guide"
    assert "main" in str(shell.cell("%session"))


def test_an_app_that_is_made_anew_answers_from_then_on_and_the_session_goes_on(shell: Shell):
    shell.names["shop"] = App(name="shop", root_agent=guide("old"))
    shell.cell("%chat shop My name is Ann.")
    agent = guide("new")
    shell.names["shop"] = App(name="shop", root_agent=agent)

    assert shell.cell("%chat shop hi").text == "new"
    assert len(shell.ip.adk_nb.sessions.events()) == 4


def test_a_call_of_an_app_is_approved_with_confirm(shell: Shell):
    shell.names["shop"] = App(name="shop", root_agent=guide(call("pay", amount=4), "done", tools=[pay]))

    assert shell.cell("%chat shop pay 4").status == "pending"

    assert shell.cell("%confirm --yes").text == "done"


def test_a_runner_answers_in_its_own_sessions_where_run_debug_goes_on(shell: Shell):
    service, counts = InMemorySessionService(), Counts()
    runner = Runner(app_name="bistro", agent=guide("hello", "Ann"), session_service=service, plugins=[counts])
    shell.names["runner"] = runner
    before = [plugin.name for plugin in runner.plugin_manager.plugins]

    assert shell.cell("%chat runner My name is Ann").text == "hello"
    shell.cell("events = await runner.run_debug('Who am I?', quiet=True)")

    session = service.get_session_sync(app_name="bistro", user_id=DEBUG_USER, session_id=DEBUG_SESSION)
    assert session and [event.text for event in session.events] == ["My name is Ann", "hello", "Who am I?", "Ann"]
    assert counts.runs == 2
    assert [plugin.name for plugin in runner.plugin_manager.plugins] == before
    assert shell.ip.adk_nb.sessions.events() == []


def test_a_call_of_a_runner_is_approved_from_its_reply(shell: Shell):
    shell.names["runner"] = InMemoryRunner(guide(call("pay", amount=4), "done", tools=[pay]))

    reply = shell.cell("%chat runner pay 4")

    assert reply.status == "pending" and "chat.approve()" in str(reply)
    assert shell.cell("_run.approve()").text == "done"


def test_a_runner_talks_in_the_session_that_is_named(shell: Shell):
    shell.names["runner"] = runner = InMemoryRunner(guide("a", "b"))

    shell.cell("%chat runner -s one hi")
    assert "new session" not in shell.printed
    told = shell.fails("%chat runner --new hi")

    assert "-s" in told
    [session] = runner.session_service.list_sessions_sync(app_name="InMemoryRunner").sessions
    assert session.id == "one"


def test_an_app_or_a_runner_is_no_agent_to_be_forgotten(shell: Shell):
    shell.names["runner"] = InMemoryRunner(guide("hello"))

    assert "del runner" in shell.fails("%agents --rm runner")
    assert shell.cell("%chat hi").text == "hello"


def test_a_chat_with_a_runner_forks_and_takes_no_other_services():
    runner = InMemoryRunner(guide("hello", "bye", "so long"))
    chat = Chat(runner)

    chat.ask("hi")
    fork = chat.fork()

    assert [chat.ask("a").text, fork.ask("b").text] == ["bye", "so long"]
    with pytest.raises(ConfigurationError, match="session_service"):
        Chat(runner, session_service=InMemorySessionService())


def test_a_chat_leaves_its_runner_as_it_is():
    first, second = guide("one", "two"), guide("three")
    runner = InMemoryRunner(first)
    chat = Chat(runner)

    assert chat.ask("hi").text == "one"
    chat.agent, turn_runner(chat).conversation.sticky = second, False
    fork = chat.fork()
    assert chat.ask("hi").text == "three"

    assert (fork.agent, turn_runner(fork).conversation.sticky) == (second, False)
    assert (runner.agent, runner.sticky_agents, runner.auto_create_session) == (first, True, False)
    assert runner.plugin_manager.plugins == []
    assert Chat(runner).ask("hi").text == "two"
