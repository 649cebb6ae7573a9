"""The offline model among other agents: whom it hands over to, and whose words it takes for the user's."""

import pytest

from adk_nb.agents import Agent, SequentialAgent
from adk_nb.notebook.chat.chat import Chat


def total(invoice: int) -> str:
    """Tells the total of an invoice."""
    return f"invoice {invoice}: 90 euros in all"


def visit(day: str) -> str:
    """Arranges a visit for a broken boiler."""
    return f"somebody comes on {day}"


def desk() -> Chat:
    billing = Agent(name="billing", model="offline", description="Invoices and refunds.", tools=[total])
    repairs = Agent(name="repairs", model="offline", description="Broken boilers.", tools=[visit])
    return Chat(Agent(name="desk", model="offline", sub_agents=[billing, repairs]), show="off")


def authors(chat: Chat) -> list[str]:
    return [event.author for event in chat.events if event.is_final_response()]


def test_it_hands_over_to_the_agent_whose_description_has_the_words():
    chat = desk()

    first = chat.ask("Can you tell me the total of invoice 17?")
    second = chat.ask("My boiler is broken, please come on Monday")

    assert first.text == "Invoice 17: 90 euros in all."
    assert second.text == "Somebody comes on Monday."
    assert authors(chat) == ["user", "billing", "user", "repairs"]


def test_who_was_handed_the_conversation_keeps_it_for_this_turn():
    chat = desk()

    reply = chat.ask("Transfer me to repairs, not to billing")

    assert [event.actions.transfer_to_agent for event in reply.events if event.actions.transfer_to_agent] == ["repairs"]
    assert authors(chat)[-1] == "repairs"
    reply = chat.ask("Back to the desk")
    assert reply.events[-1].author == "desk"


@pytest.mark.parametrize("words", ["hello", "xyzzy"])
def test_it_says_whom_there_is(words: str):
    told = desk().ask(words).text

    assert "`billing`: Invoices" in told
    assert "`repairs`: Broken boilers" in told
    assert "transfer_to_agent" not in told


def test_what_another_agent_said_is_not_what_the_user_asks():
    first = Agent(name="first", model="offline", tools=[total])
    second = Agent(name="second", model="offline", tools=[visit])

    reply = Chat(SequentialAgent(name="both", sub_agents=[first, second]), show="off").ask("The total of invoice 17?")

    assert [call.name for event in reply.events for call in event.get_function_calls()] == ["total"]


def test_one_agent_takes_over_though_the_words_fit_two():
    reply = desk().ask("Refund the invoice, and then the boiler is broken")

    assert [call.name for call in reply.events[1].get_function_calls()] == ["transfer_to_agent"]
