"""The public face of a conversation: few names, each with a docstring; a policy, a list of answers, and the end."""

import gc
import weakref
from typing import Any

import pytest

from adk_nb import Agent, Chat, Runner, sync, tool
from adk_nb.errors import InputError
from adk_nb.models import ScriptedLlm, call
from adk_nb.notebook import settings
from adk_nb.notebook.chat.reply import Reply
from adk_nb.sessions import InMemorySessionService
from adk_nb.tools import BaseTool
from adk_nb.tools.base_toolset import BaseToolset

CHAT = (
    "aask agent answer approve ask box close drop events fork interrupts load map reject rerun resume rewind save "
    "session_id start state turns"
)
REPLY = (
    "agent answer answered_by approve chat cost error events interrupts output question reject state_delta status "
    "text trace usage"
)


def public(value: Any) -> list[str]:
    return [name for name in dir(value) if not name.startswith("_")]


@tool(confirm=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def payer(*answers: Any) -> Chat:
    return Chat(Agent(name="payer", model=ScriptedLlm(*answers), tools=[pay]), show="off")


def test_a_chat_and_a_reply_have_few_names_and_each_says_what_it_is():
    chat = payer("hello")
    reply = chat.ask("hi")

    assert public(chat) == CHAT.split()
    assert public(reply) == REPLY.split()
    for owner, names in ((Chat, CHAT), (Reply, REPLY)):
        undocumented = [name for name in names.split() if name in dir(owner) and not getattr(owner, name).__doc__]
        assert undocumented == []


@pytest.mark.parametrize(("confirm", "result"), [("yes", "result"), ("no", "error")])
def test_a_policy_holds_however_a_turn_is_started(confirm: Any, result: str, monkeypatch: pytest.MonkeyPatch):
    def chat() -> Chat:
        return payer(call("pay", amount=3), "done")

    replies = [chat().start("pay", confirm=confirm).result(10), sync.run(chat().aask("pay", confirm=confirm))]
    monkeypatch.setattr(settings, "now", settings.Settings(confirm=confirm))
    replies += [chat().ask("pay"), chat().start("pay").result(10)]

    for reply in replies:
        [*_, last] = [response for event in reply.events for response in event.get_function_responses()]
        assert (reply.text, reply.question, list(last.response or {})) == ("done", "pay", [result])
    assert chat().ask("pay", confirm="ask").status == "pending"


def test_one_answer_goes_to_a_list_of_interrupts():
    chat = payer([call("pay", amount=1), call("pay", amount=2)], "done", call("pay", amount=3), "done")
    chat.ask("pay both")

    with pytest.raises(InputError, match=r"chat\.interrupts"):
        chat.answer(True, [])
    reply = chat.answer(True, chat.interrupts)

    assert (reply.text, chat.interrupts) == ("done", [])
    results = [response.response for event in reply.events for response in event.get_function_responses()]
    assert {"result": "paid 1"} in results and {"result": "paid 2"} in results
    chat.ask("pay again")
    assert chat.answer("no", [1]).status == "done"


class Desk(BaseToolset):
    closed = 0

    async def get_tools(self, readonly_context: Any = None) -> list[BaseTool]:
        return [pay]

    async def close(self) -> None:
        self.closed += 1


def test_a_closed_chat_has_freed_what_it_held_and_refuses_in_a_line():
    desk = Desk()
    chat = Chat(Agent(name="payer", model=ScriptedLlm(call("pay", amount=1)), tools=[desk]), show="off")
    chat.ask("pay")
    event = weakref.ref(chat.events[0])

    chat.close()
    chat.close()
    gc.collect()

    assert (desk.closed, event(), repr(chat)) == (1, None, "Chat(closed)")
    attempts = [lambda: chat.ask("hi"), lambda: chat.answer(True), lambda: chat.state["x"], lambda: chat.events]
    for attempt in attempts:
        with pytest.raises(InputError, match=r"closed; .*Chat\(agent\)"):
            attempt()


def test_closing_a_chat_with_a_runner_leaves_the_runner_and_its_session():
    desk = Desk()
    agent = Agent(name="payer", model=ScriptedLlm("hello", "again"), tools=[desk])
    runner = Runner(app_name="desk", agent=agent, session_service=InMemorySessionService())
    chat = Chat(runner, show="off")
    chat.ask("hi")

    chat.close()

    assert desk.closed == 0 and len(Chat(runner, show="off").events) == 2
    assert Chat(runner, show="off").ask("and now?").text == "again"
