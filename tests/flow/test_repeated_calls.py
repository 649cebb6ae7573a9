"""What a model calls again in one turn: a payment waits for a person, and what brings nothing new is refused."""

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from adk_nb import sync
from adk_nb.agents import LlmAgent, ParallelAgent, SequentialAgent
from adk_nb.events import Event
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.models.scripted_llm import ScriptedLlm, call
from adk_nb.notebook.chat.chat import Chat
from adk_nb.notebook.view.rows import rows_of
from adk_nb.runners import Runner
from adk_nb.runtime.history import open_interrupts
from adk_nb.runtime.interrupts import Interrupt, answer
from adk_nb.sessions import SqliteSessionService
from adk_nb.tools import AgentTool, BaseTool, FunctionTool, LongRunningFunctionTool, ToolContext, request_input
from adk_nb.types import Content
from tests.support.talk import Talk


class Bank:
    """A tool that notes what it paid; each result is another one."""

    def __init__(self) -> None:
        self.paid: list[float] = []

    def pay(self, amount: float, to: str = "bob") -> str:
        """Pay."""
        self.paid.append(amount)
        return f"receipt {len(self.paid)}"

    def tool(self, **options: Any) -> FunctionTool:
        return FunctionTool(self.pay, **(options or {"require_confirmation": "amount > 100"}))


@pytest.fixture
def bank() -> Bank:
    return Bank()


def clerk(tool: BaseTool, *answers: Any, **fields: Any) -> LlmAgent:
    return LlmAgent(name="clerk", model=ScriptedLlm(*answers, "done"), tools=[tool], **fields)


def pay(amount: float | str = 20, **args: Any) -> Any:
    return call("pay", amount=amount, **args)


def results(events: list[Event]) -> list[dict[str, Any]]:
    return [response.response or {} for event in events for response in event.get_function_responses()]


def waiting(talk: Talk) -> list[Interrupt]:
    return open_interrupts(talk.stored().events)


def decide(talk: Talk, confirmed: bool, **more: Any) -> list[Event]:
    """Answer all that is open, in one message."""
    decision = ToolConfirmation(confirmed=confirmed, **more)
    return talk.say(Content(role="user", parts=[answer(interrupt, decision) for interrupt in waiting(talk)]))


@pytest.mark.parametrize("options", [{"require_confirmation": "amount > 100"}, {"effect": "once"}])
@pytest.mark.parametrize(
    "again", [pay(), pay(20.0), pay(to="bob"), pay(20.0, to="bob")], ids=["same", "float", "default", "both"]
)
def test_a_payment_is_made_once_and_a_person_decides_on_the_second(bank: Bank, options: dict[str, Any], again: Any):
    talk = Talk(clerk(bank.tool(**options), pay(), again))
    talk.say()
    [card] = waiting(talk)
    assert bank.paid == [20]
    assert card.earlier["result"] == {"result": "receipt 1"}
    assert "already ran in this turn" in card.prompt and "receipt 1" in card.prompt
    events = decide(talk, True)
    assert bank.paid == [20, 20]
    assert results(events) == [{"result": "receipt 2"}]


@pytest.mark.parametrize(
    ("kind", "value", "again"),
    [
        (Decimal, 20, "20.00"),
        (datetime, "2026-01-01T00:00:00Z", "2026-01-01T02:00:00+02:00"),
        (set[int], [*range(0, 800, 8)], [*range(792, -8, -8)]),
        (dict[str, Any], {"a": 1, "b": [2.0]}, {"b": [2], "a": 1.0}),
    ],
)
def test_one_value_in_two_spellings_is_one_call(kind: Any, value: Any, again: Any):
    made: list[Any] = []

    def book(what: Any) -> None:
        made.append(what)

    book.__annotations__["what"] = kind
    talk = Talk(clerk(FunctionTool(book, effect="once"), call("book", what=value), call("book", what=again)))
    talk.say()
    assert len(made) == 1 and made[0] != []
    assert len(waiting(talk)) == 1


def test_tools_of_one_name_in_two_agents_are_two_tools():
    made: list[str] = []

    def member(name: str) -> LlmAgent:
        def save(text: str) -> None:
            made.append(name)

        tool = FunctionTool(save, effect="once")
        return LlmAgent(name=name, model=ScriptedLlm(call("save", text="x"), "done"), tools=[tool])

    talk = Talk(SequentialAgent(name="team", sub_agents=[member("a"), member("b")]))
    talk.say()
    assert made == ["a", "b"] and waiting(talk) == []


def test_work_that_has_begun_and_has_no_result_yet_is_not_begun_again():
    begun: list[int] = []

    def start() -> None:
        begun.append(1)

    talk = Talk(clerk(LongRunningFunctionTool(start, effect="once"), [call("start"), call("start")]))
    talk.say()
    assert len(begun) == 1


def test_a_payment_approved_after_other_words_counts_in_the_turn_in_which_it_is_made(bank: Bank):
    talk = Talk(clerk(bank.tool(), pay(500), "it waits", pay(500)))
    talk.say()
    talk.say("And?")
    decide(talk, True)
    assert bank.paid == [500]
    assert [card.earlier["result"] for card in waiting(talk)] == [{"result": "receipt 1"}]


def test_after_a_no_that_comes_after_other_words_nobody_is_asked_again(bank: Bank):
    talk = Talk(clerk(bank.tool(), pay(500), "it waits", pay(500)))
    talk.say()
    talk.say("And?")
    events = decide(talk, False)
    assert bank.paid == [] and waiting(talk) == []
    assert "nobody was asked again" in results(events)[-1]["error"]


def test_two_equal_payments_of_one_step_are_made_once(bank: Bank):
    talk = Talk(clerk(bank.tool(), [pay(), pay(20.0), pay(to="ada")]))
    talk.say()
    assert sorted(bank.paid) == [20, 20]
    assert [card.call.args for card in waiting(talk)] == [{"amount": 20.0}]


def test_other_arguments_and_a_later_turn_are_other_payments(bank: Bank):
    talk = Talk(clerk(bank.tool(), pay(), pay(21), pay(to="ada"), "done", pay()))
    talk.say()
    talk.say("and again")
    assert bank.paid == [20, 21, 20, 20]


def test_two_cards_are_two_decisions(bank: Bank):
    agent = clerk(bank.tool(), [pay(500), pay(500)])
    talk = Talk(agent)
    talk.say()
    assert len(waiting(talk)) == 2 and bank.paid == []
    decide(talk, True)
    assert bank.paid == [500, 500] and waiting(talk) == []


@pytest.mark.parametrize("again", [pay(500), pay(500, to="bob"), pay("500"), pay(500.0)])
def test_of_two_equal_calls_that_wait_one_is_approved_unseen(bank: Bank, again: Any):
    reply = Chat(clerk(bank.tool(), [pay(500), again], again)).ask("Pay", confirm="yes")
    assert (bank.paid, reply.status) == ([500], "done")


def test_a_payment_with_edited_arguments_counts_as_what_was_paid(bank: Bank):
    talk = Talk(clerk(bank.tool(), pay(500), pay(50)))
    talk.say()
    decide(talk, True, args={"amount": 50})
    assert bank.paid == [50]
    assert [card.call.args for card in waiting(talk)] == [{"amount": 50}]


def in_euros(tool: Any, args: dict[str, Any], tool_context: ToolContext) -> None:
    """A callback that writes amounts in one way."""
    if isinstance(args["amount"], str):
        args["amount"] = float(args["amount"].removesuffix(" cents")) / 100


def numbered(tool: Any, args: dict[str, Any], tool_context: ToolContext) -> None:
    """A callback that gives each payment a receiver of its own."""
    args["to"] = f"{args.get('to', 'bob')}-{tool_context.function_call_id}"


@pytest.mark.parametrize("first", ["2000 cents", 20], ids=["changed before", "changed after"])
def test_a_payment_whose_arguments_a_callback_changed_counts_as_what_was_paid(bank: Bank, first: float | str):
    second = 20 if first == "2000 cents" else "2000 cents"
    talk = Talk(clerk(bank.tool(), pay(first), pay(second), before_tool_callback=in_euros))
    talk.say()
    assert bank.paid == [20] and len(waiting(talk)) == 1
    decide(talk, confirmed=False)
    assert bank.paid == [20]


def test_the_same_payment_is_the_same_though_a_callback_makes_each_another(bank: Bank):
    talk = Talk(clerk(bank.tool(), pay(), pay(), before_tool_callback=numbered))
    talk.say()
    assert bank.paid == [20] and len(waiting(talk)) == 1


def test_two_payments_of_one_step_that_a_callback_makes_equal_are_made_once(bank: Bank):
    talk = Talk(clerk(bank.tool(), [pay("2000 cents"), pay()], before_tool_callback=in_euros))
    talk.say()
    assert bank.paid == [20] and len(waiting(talk)) == 1


def test_what_a_callback_changed_is_known_in_the_next_process_and_not_in_words(tmp_path: Path, bank: Bank):
    def with_key(tool: Any, args: dict[str, Any], tool_context: ToolContext) -> None:
        if tool.name == "pay":
            args["to"] = "bob, by key k3y-0f-the-bank"

    async def told(service: SqliteSessionService, agent: LlmAgent, message: Any, **more: Any) -> list[Event]:
        runner = Runner(app_name="app", agent=agent, session_service=service, auto_create_session=True)
        return [one async for one in runner.run_async(user_id="u", session_id="s", new_message=message, **more)]

    question = call("adk_request_input", message="And to whom?")
    path = tmp_path / "sessions.db"
    tools = [bank.tool(), request_input]
    first = LlmAgent(name="clerk", model=ScriptedLlm(pay(), question), tools=tools, before_tool_callback=[with_key])
    sync.run(told(SqliteSessionService(path), first, "Pay Bob"))
    service = SqliteSessionService(path)
    session = sync.run(service.get_session(app_name="app", user_id="u", session_id="s"))
    assert bank.paid == [20] and session and b"k3y-0f-the-bank" not in path.read_bytes()
    again = pay(20, to="bob, by key k3y-0f-the-bank")
    second = LlmAgent(name="clerk", model=ScriptedLlm(again, "done"), tools=tools)
    answered = answer(open_interrupts(session.events)[0], "Bob")
    sync.run(told(service, second, Content(role="user", parts=[answered])))
    session = sync.run(service.get_session(app_name="app", user_id="u", session_id="s"))
    assert bank.paid == [20] and session
    assert [interrupt.kind for interrupt in open_interrupts(session.events)] == ["approval"]


@pytest.mark.parametrize("more", [1, 3])
def test_after_a_no_the_same_call_is_refused_and_nobody_is_asked(bank: Bank, more: int):
    talk = Talk(clerk(bank.tool(), pay(500), *[pay(500.0)] * more, pay(400)))
    talk.say()
    events = decide(talk, False, reason="too much")
    assert bank.paid == []
    errors = [result["error"] for result in results(events)][: 1 + more]
    assert all("too much" in error for error in errors) and "nobody was asked again" in errors[-1]
    assert [card.call.args for card in waiting(talk)] == [{"amount": 400}]


def test_after_a_no_to_a_tool_that_asks_while_it_runs_it_is_not_called_again():
    ran: list[bool] = []

    def send(to: str, tool_context: ToolContext) -> str:
        ran.append(tool_context.tool_confirmation is None)
        if tool_context.tool_confirmation is None:
            tool_context.request_confirmation(hint="Send?")
            return "asked"
        return "sent" if tool_context.tool_confirmation.confirmed else "kept"

    talk = Talk(clerk(FunctionTool(send), call("send", to="ada"), call("send", to="ada")))
    talk.say()
    decide(talk, False)
    assert ran == [True, False]
    assert waiting(talk) == []


def test_where_all_is_approved_unseen_the_model_gets_the_first_result(bank: Bank):
    model = ScriptedLlm(pay(), pay(), pay(), "done")
    chat = Chat(LlmAgent(name="clerk", model=model, tools=[bank.tool()]))
    reply = chat.ask("Pay 20 euros to Bob", confirm="yes")
    assert bank.paid == [20]
    assert (reply.status, reply.text) == ("done", "done")
    errors = [result["error"] for result in results(reply.events) if "rejected" in str(result)]
    assert len(errors) == 2 and all("receipt 1" in error for error in errors)


def test_calls_beside_it_do_not_see_a_payment_that_did_not_run(bank: Bank):
    def refuse_once(tool: Any, args: Any, tool_context: Any) -> Any:
        return {"result": "the bank is closed"} if not asked.append(1) and len(asked) == 1 else None

    asked: list[int] = []
    talk = Talk(clerk(bank.tool(), pay(), pay(), before_tool_callback=refuse_once))
    talk.say()
    assert bank.paid == [20] and waiting(talk) == []


def test_a_payment_that_failed_may_have_been_made():
    def transfer(amount: int) -> str:
        raise ConnectionError("no answer")

    talk = Talk(clerk(FunctionTool(transfer, effect="once"), *[call("transfer", amount=1)] * 2))
    talk.say()
    [card] = waiting(talk)
    assert "no answer" in card.prompt


def test_wrong_arguments_are_corrected_without_a_person(bank: Bank):
    talk = Talk(clerk(bank.tool(), call("pay", amount="much"), call("pay", amount="much"), pay()))
    talk.say()
    assert bank.paid == [20] and waiting(talk) == []


def test_it_holds_over_a_question_in_between(bank: Bank):
    def look() -> None:
        """Look."""

    agent = LlmAgent(
        name="clerk",
        model=ScriptedLlm(pay(), call("look"), pay(), "done"),
        tools=[bank.tool(), LongRunningFunctionTool(look)],
    )
    talk = Talk(agent)
    talk.say()
    talk.say(Content(role="user", parts=[answer(waiting(talk)[0], {"seen": True})]))
    assert bank.paid == [20] and [card.earlier["result"] for card in waiting(talk)] == [{"result": "receipt 1"}]


@pytest.mark.parametrize("streams", [False, True])
def test_it_holds_for_all_agents_of_a_turn(bank: Bank, streams: bool):
    helper = LlmAgent(name="helper", model=ScriptedLlm(pay(), "paid", pay(), "paid"), tools=[bank.tool()])
    calls = [call("helper", request="Pay"), call("helper", request="Pay, please"), pay(), "done"]
    tools = [AgentTool(helper, stream_events=streams), bank.tool()]
    talk = Talk(LlmAgent(name="boss", model=ScriptedLlm(*calls), tools=tools))
    talk.say()
    assert bank.paid == [20]
    assert len(waiting(talk)) == 1


def test_agents_at_work_at_once_pay_once(bank: Bank):
    def member(name: str) -> LlmAgent:
        return LlmAgent(name=name, model=ScriptedLlm(pay(), "done"), tools=[bank.tool()])

    talk = Talk(ParallelAgent(name="team", sub_agents=[member("a"), member("b")]))
    talk.say()
    assert bank.paid == [20] and len(waiting(talk)) == 1


def look_up(value: Callable[[], Any], **options: Any) -> FunctionTool:
    def look_up(city: str = "Bonn") -> Any:
        """Look up."""
        return value()

    return FunctionTool(look_up, **options)


def test_the_third_equal_result_is_noted_and_the_sixth_call_is_refused():
    made: list[int] = []

    def sunny() -> str:
        made.append(1)
        return "sunny"

    agent = clerk(look_up(sunny), *[call("look_up"), call("look_up", city="Bonn")] * 4)
    first, second, *noted, sixth, seventh, eighth = results(Talk(agent).say())
    assert len(made) == 5
    assert first == second == {"result": "sunny"}
    assert [result["result"] for result in noted] == ["sunny"] * 3
    assert [f" {count} times" in result["note"] for count, result in enumerate(noted, 3)] == [True] * 3
    assert all("sunny" in result["error"] for result in (sixth, seventh, eighth))


def test_of_eight_equal_calls_of_one_step_five_are_made():
    made: list[int] = []
    answers = results(Talk(clerk(look_up(lambda: made.append(1) or "sunny"), [call("look_up")] * 8)).say())
    assert len(made) == 5
    assert ["error" in answer for answer in answers] == [False] * 5 + [True] * 3


@pytest.mark.parametrize(
    ("value", "options"),
    [(iter(range(9)).__next__, {}), (lambda: "sunny", {"effect": "pure"})],
    ids=["changes", "pure"],
)
def test_a_result_that_changes_and_a_pure_tool_are_left_alone(value: Callable[[], Any], options: dict[str, Any]):
    answers = results(Talk(clerk(look_up(value, **options), *[call("look_up")] * 8)).say())
    assert len(answers) == 8 and all(answer.keys() == {"result"} for answer in answers)


def test_the_count_starts_again_with_another_result_and_with_each_answer():
    values = iter([1, 1, 2, 2, 1, 1])
    answers = results(Talk(clerk(look_up(lambda: next(values)), *[call("look_up")] * 6)).say())
    assert [answer["result"] for answer in answers] == [1, 1, 2, 2, 1, 1]
    assert not any("note" in answer for answer in answers)
    model = ScriptedLlm(*[call("look_up"), "done"] * 8)
    talk = Talk(LlmAgent(name="clerk", model=model, tools=[look_up(lambda: "sunny")]))
    assert [results(talk.say()) for _ in range(8)] == [[{"result": "sunny"}]] * 8


def test_rows_say_it_of_a_call_that_was_repeated_and_of_one_that_was_refused():
    talk = Talk(clerk(look_up(lambda: "sunny"), *[call("look_up")] * 6))
    text = str(rows_of(talk.say()))
    assert "3 times in this turn" in text and "not made again" in text
