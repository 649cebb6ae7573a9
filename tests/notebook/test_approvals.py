"""Approvals as a person answers them: what is said can be typed, and settles the call it was said of."""

import re

import pytest
from support.messages import mentions

from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.errors import InputError, PendingError
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.models.scripted_llm import ScriptedLlm, call
from adk_nb.notebook.chat.chat import Chat
from adk_nb.notebook.chat.reply import Reply, view_of_reply
from adk_nb.notebook.view.rows import RunRows
from adk_nb.runtime.history import open_interrupts
from adk_nb.runtime.interrupts import APPROVALS
from adk_nb.tools.tool_context import ToolContext
from adk_nb.tools.tool_decorator import tool
from tests.notebook.conftest import Shell

PAY = '''%%tool --confirm
def pay(amount: int, to: str = "Ada") -> str:
    """Pay."""
    paid.append((amount, to))
    return "paid"
'''


def paying(shell: Shell, *amounts: int, agent: str = "clerk") -> None:
    """An agent that asks for payments, one a turn, and then has a word for everything."""
    shell.names.setdefault("paid", [])
    shell.cell(PAY)
    text = [item for amount in amounts for item in (call("pay", amount=amount), f"{amount} is done")]
    shell.names[f"model_{agent}"] = ScriptedLlm(*text)
    shell.cell(f"%%agent {agent} -m model_{agent} -t pay\nPay.")


def typed(said: str, ending: str) -> str:
    """What a message tells to type for a yes or a no."""
    [match] = set(re.findall(rf"(?:%confirm|chat\.)[^,;`<%]*?{re.escape(ending)}", said))
    return match


@pytest.mark.parametrize("session", ["main", "other", "my money"])
@pytest.mark.parametrize(("ending", "paid"), [("--yes", [(2, "Ada")]), ("--no", [])])
@pytest.mark.parametrize("place", ["reply", "text/plain", "text/markdown", "text/html", "error"])
def test_what_a_message_says_settles_the_call_it_speaks_of(
    shell: Shell, session: str, ending: str, paid: list[object], place: str
) -> None:
    paying(shell, 1, agent="clerk")
    paying(shell, 2, agent="teller")
    shell.cell("%chat -s here clerk Pay 1" if session == "main" else "%chat clerk Pay 1")
    reply = shell.cell(f"%chat -s '{session}' teller Pay 2")
    if place == "error":
        message = shell.fails(f"%chat -s '{session}' teller Well?")
    elif place == "reply":
        message = str(reply)
    else:
        message = shell.cell(f"%confirm -s '{session}'")._repr_mimebundle_()[place]

    assert "chat." not in message
    next_reply = shell.cell(typed(message.replace("&#x27;", "'").replace("&#39;", "'"), ending))

    assert (next_reply.text, next_reply.agent) == ("2 is done", "teller")
    assert shell.names["paid"] == paid


ORDER = '''%%tool
def order(boat: str, tool_context) -> str:
    """Order."""
    said = tool_context.tool_confirmation
    if said is None:
        tool_context.request_confirmation(hint="From where?", payload={"account": "savings", "limit": 9})
        return "asked"
    got.append(said.payload)
    return "ordered"
'''


def ordering(shell: Shell) -> None:
    shell.names.setdefault("got", [])
    shell.cell(ORDER)
    shell.names["model"] = ScriptedLlm(call("order", boat="four"), "Done.")
    shell.cell("%%agent clerk -m model -t order\nOrder.")
    shell.cell("%chat clerk A four")


@pytest.mark.parametrize(
    ("line", "account"), [("%confirm --yes", "savings"), ("%confirm --yes --payload account=cash", "cash")]
)
def test_what_a_tool_wants_to_know_is_said_and_filled_in(shell: Shell, line: str, account: str) -> None:
    ordering(shell)
    waits = shell.names["_run"]._repr_mimebundle_()

    for text in (*waits.values(), str(shell.cell("%confirm"))):
        assert "From where?" in text
        assert "savings" in text
    assert shell.cell(line).text == "Done."
    assert shell.names["got"] == [{"account": account, "limit": 9}]
    assert f'payload: {{"account": "{account}", "limit": 9}}' in str(shell.cell("%trace"))


@pytest.mark.parametrize(
    ("value", "actual"),
    [
        ({}, {"account": "savings", "limit": 9}),
        ({"payload": {"account": "cash"}}, {"account": "cash"}),
        ({"payload": "cash"}, "cash"),
    ],
)
def test_a_yes_in_python_has_a_payload_or_takes_the_suggested_one(value: dict[str, object], actual: object) -> None:
    payloads: list[object] = []

    @tool
    def order(tool_context: ToolContext) -> str:
        """Order."""
        if tool_context.tool_confirmation is None:
            tool_context.request_confirmation(payload={"account": "savings", "limit": 9})
            return "asked"
        payloads.append(tool_context.tool_confirmation.payload)
        return "ordered"

    chat = Chat(LlmAgent(name="clerk", model=ScriptedLlm(call("order"), "Done."), tools=[order]))
    chat.ask("A boat")

    assert chat.approve(**value).text == "Done."
    assert payloads == [actual]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("%confirm --yes --payload acount=cash", "account, limit"),
        ("%confirm --no --payload account=cash", "--payload … --no"),
        ("%confirm --payload account=cash", "add --yes or --no"),
    ],
)
def test_a_payload_that_cannot_be_is_refused_and_the_call_waits_on(shell: Shell, line: str, message: str) -> None:
    ordering(shell)

    assert mentions(shell.fails(line), message)

    assert shell.names["got"] == []
    assert shell.cell("%confirm --yes").text == "Done."


def test_a_reply_takes_the_decision_on_what_it_asks() -> None:
    paid: list[int] = []

    @tool(confirm=True)
    def pay(amount: int) -> str:
        """Pay."""
        paid.append(amount)
        return "paid"

    calls = (call("pay", amount=amount) for amount in (1, 2))
    script = ScriptedLlm(*(item for call in calls for item in (call, "done")))
    chat = Chat(LlmAgent(name="clerk", model=script, tools=[pay]), show="off")

    reply = chat.ask("Pay 1")
    assert (reply.approve(amount=5).text, paid) == ("done", [5])
    with pytest.raises(InputError):
        reply.approve()
    assert (chat.ask("Pay 2").reject(reason="too much").text, paid) == ("done", [5])
    with pytest.raises(InputError, match="chat of this reply"):
        Reply(view_of_reply(reply)).approve()


def test_a_call_that_was_held_back_wants_a_yes_alone(shell: Shell) -> None:
    paying(shell, 1)
    shell.cell("%chat clerk Pay 1")

    assert "no data" in shell.fails("%confirm --yes --payload amount=2")


def test_the_trace_of_an_answer_names_the_call_that_was_answered(shell: Shell) -> None:
    paying(shell, 7)
    shell.cell("%chat clerk Pay 7")
    shell.cell("%confirm --yes")

    text = str(shell.cell("%trace --last"))

    assert "approves pay" in text
    assert "pay(amount=7)" in text


@pytest.mark.parametrize(("ending", "paid"), [("--yes", [(1, "Ada")]), ("--no", [])])
def test_of_several_the_first_is_said_by_its_number(shell: Shell, ending: str, paid: list[object]) -> None:
    shell.names["paid"] = []
    shell.cell(PAY)
    shell.names["model"] = ScriptedLlm([call("pay", amount=1), call("pay", amount=2)], "one", "two")
    shell.cell("%%agent clerk -m model -t pay\nPay.")
    reply = shell.cell("%chat clerk Pay both")

    remaining_reply = shell.cell(typed(str(reply), ending))

    assert shell.names["paid"] == paid and [interrupt.call.args for interrupt in remaining_reply.interrupts] == [
        {"amount": 2}
    ]
    assert shell.cell(typed(str(remaining_reply), "--no")).status == "done"


def test_each_of_several_keeps_its_number_while_others_are_answered(shell: Shell) -> None:
    shell.names["paid"] = []
    shell.cell(PAY)
    shell.names["model"] = ScriptedLlm([call("pay", amount=number) for number in (1, 2, 3)], *("On." for _ in range(3)))
    shell.cell("%%agent clerk -m model -t pay\nPay.")
    shell.cell("%chat clerk Pay all three")

    remaining_reply = shell.cell("%confirm 1 --yes")
    assert "(2): pay(amount=2)\n" in str(remaining_reply)
    assert "(3): pay(amount=3)" in str(remaining_reply)
    assert "%confirm 2 --yes or %confirm" in str(remaining_reply)
    repeated_message = shell.fails("%confirm 1 --yes")
    assert repeated_message.startswith("InputError: no approval '1'")
    assert "%confirm" in repeated_message
    with pytest.raises(InputError, match="no approval 1 "):
        remaining_reply.approve(1)
    listed = str(shell.cell("%confirm"))
    last = shell.cell("%confirm 3 --no")

    assert [line.split()[:1] for line in listed.splitlines()] == [["2"], ["3"], ["Answer"]]
    assert shell.names["paid"] == [(1, "Ada")] and [interrupt.call.args for interrupt in last.interrupts] == [
        {"amount": 2}
    ]
    assert shell.cell(typed(str(last), "--yes")).status == "done" and shell.names["paid"][1:] == [(2, "Ada")]


def test_what_is_asked_later_in_a_turn_has_the_next_numbers_and_the_next_turn_begins_anew(shell: Shell) -> None:
    shell.names["paid"] = []
    shell.cell(PAY)
    turn = [[call("pay", amount=1), call("pay", amount=2)], "On.", [call("pay", amount=3), call("pay", amount=4)]]
    shell.names["model"] = ScriptedLlm(*turn, "On.", "Done.", call("pay", amount=5), "Paid.")
    shell.cell("%%agent clerk -m model -t pay\nPay.")
    shell.cell("%chat clerk Pay all four")
    shell.cell("%confirm 2 --yes")
    later = shell.cell("%confirm 1 --yes")

    assert [interrupt.number for interrupt in later.interrupts] == [3, 4]
    assert "no approval '1'" in shell.fails("%confirm 1 --yes")
    shell.cell("%confirm 4 --no")
    shell.cell("%confirm 3 --yes")
    assert [interrupt.number for interrupt in shell.cell("%chat clerk One more").interrupts] == [1]
    assert [amount for amount, _ in shell.names["paid"]] == [2, 1, 3]


@pytest.mark.parametrize("line", ["--no --reason too much", "--reason too much --no", "--no --reason too much of it"])
def test_a_reason_without_quotes_is_refused_with_a_hint(shell: Shell, line: str) -> None:
    paying(shell, 1)
    shell.cell("%chat clerk Pay")

    assert "in quotes" in shell.fails(f"%confirm {line}")
    assert len(shell.names["_run"].interrupts) == 1


def test_a_reason_in_the_place_of_the_id_is_told_where_it_goes(shell: Shell) -> None:
    paying(shell, 1)
    shell.cell("%chat clerk Pay")

    assert shell.fails('%confirm --no "too much"').endswith(": %confirm no too much")
    shell.cell("%confirm no too much")
    assert not shell.names["_run"].interrupts


@pytest.mark.parametrize(("kind", "count"), [("chat.approve()", 1), ("chat.reject()", 0)])
@pytest.mark.parametrize("place", ["reply", "error"])
def test_a_chat_made_in_python_speaks_of_python_only(kind: str, count: int, place: str) -> None:
    paid: list[int] = []
    chat = own_chat(paid, call("pay", amount=1), "done")
    text = str(chat.ask("Pay"))
    if place == "error":
        with pytest.raises(PendingError) as error:
            chat.ask("Well?")
        text = str(error.value)

    assert kind in text and "%" not in text
    assert eval(kind, {"chat": chat}).text == "done"
    assert len(paid) == count


def test_a_chat_made_in_python_tells_several_apart_by_number() -> None:
    paid: list[int] = []
    chat = own_chat(paid, [call("pay", amount=1), call("pay", amount=2)], "one", "two")
    text = str(chat.ask("Pay"))

    assert "chat.approve(1)" in text and "chat.reject(1)" in text
    with pytest.raises(InputError, match=r"number: 1 \(pay\), 2 \(pay\)"):
        chat.approve()
    chat.approve(2)
    assert paid == [2]


def own_chat(paid: list[int], *answers: object) -> Chat:
    @tool(confirm=True)
    def pay(amount: int, to: str = "Ada") -> str:
        """Pay."""
        paid.append(amount)
        return "paid"

    return Chat(LlmAgent(name="clerk", model=ScriptedLlm(*answers), tools=[pay]))  # type: ignore[arg-type]


def test_an_argument_that_the_tool_has_not_is_refused_before_anything_counts() -> None:
    paid: list[int] = []
    chat = own_chat(paid, call("pay", amount=1), "done")
    chat.ask("Pay")

    with pytest.raises(InputError, match=r"^pay\(\) .* 'amuont'; .* 'amount'\?$"):
        chat.approve(amuont=2)
    with pytest.raises(InputError, match="'amount'"):
        chat.answer(ToolConfirmation(confirmed=True, args={"amount": 1, "amuont": 2}))

    assert paid == [] and len(chat.interrupts) == 1
    assert chat.approve(amount=2, to="Bo").text == "done"
    assert paid == [2]


def test_what_is_no_decision_and_a_reason_in_the_wrong_place_are_told_in_a_line() -> None:
    paid: list[int] = []
    chat = own_chat(paid, call("pay", amount=1), "as you wish")
    chat.ask("Pay")

    for wrong in ("perhaps", {"yes": True}, 1):
        with pytest.raises(InputError, match=r"reject pay; write .*ToolConfirmation\("):
            chat.answer(wrong)
    with pytest.raises(InputError, match=r"^no approval 'too much' .* reason='\.\.\.'$"):
        chat.reject("too much")

    assert chat.reject(reason="too much").text == "as you wish" and paid == []


def test_a_tool_redefined_since_it_was_asked_about_is_not_approved_but_can_be_refused(shell: Shell) -> None:
    paying(shell, 1)
    shell.cell("%chat clerk Pay 1")
    shell.cell(PAY.replace("paid.append((amount, to))", "paid.append((amount * 100, to))"))

    message = shell.fails("%confirm --yes")
    edited = shell.fails("%confirm --yes --edit amount=3")
    assert message == edited
    assert message.startswith("InputError: pay was redefined")
    assert "%confirm --reask" in message
    assert "%confirm --old" in message
    assert shell.cell("%confirm --no").text == "1 is done"
    assert shell.names["paid"] == []


def test_a_tool_cell_that_is_run_again_as_it_was_keeps_what_was_asked(shell: Shell) -> None:
    paying(shell, 1)
    shell.cell("%chat clerk Pay 1")
    shell.cell("# moves the lines\n" * 3)
    shell.cell(PAY)

    assert shell.cell("%confirm --yes").text == "1 is done"
    assert shell.names["paid"] == [(1, "Ada")]


def test_a_no_holds_when_the_cell_does_not_ask_any_more(shell: Shell) -> None:
    paying(shell, 1)
    shell.cell("%chat clerk Pay 1")
    shell.cell(PAY.replace(" --confirm", ""))

    assert shell.cell("%confirm --no").text == "1 is done"
    assert shell.names["paid"] == []


def test_a_call_goes_on_in_the_agent_that_asked_though_its_variable_holds_another_now(shell: Shell) -> None:
    paying(shell, 1)
    shell.names["LlmAgent"] = LlmAgent
    shell.cell("%chat clerk Pay 1")
    shell.cell("clerk = LlmAgent(name='somebody')")

    assert shell.cell("%confirm --yes").answered_by == "clerk"
    assert shell.names["paid"] == [(1, "Ada")]


def test_a_call_of_an_agent_that_is_gone_can_be_refused_and_the_session_goes_on(shell: Shell) -> None:
    paying(shell, 1)
    shell.cell("%chat clerk Pay 1")
    shell.cell("%agents --rm clerk")
    shell.names["other"] = ScriptedLlm("hello")
    shell.cell("%%agent guide -m other\nTalk.")

    message = shell.fails("%confirm --yes")
    assert message.startswith("InputError: agent 'clerk'")
    assert "\n" not in message
    refused = shell.cell(typed(message, "--no") + " --reason 'not now'")

    assert (refused.status, refused.interrupts, shell.names["paid"]) == ("done", [], [])
    assert "clerk was removed" in str(refused) and "not now" in refused._repr_mimebundle_()["text/html"]
    assert "no approval is" in shell.fails("%confirm --no")
    assert shell.cell("%chat guide Hi").text == "hello"
    assert open_interrupts(shell.names["_run"].events, APPROVALS) == []


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("%confirm --no --edit amount=3", "--edit … --no"),
        ("%confirm --yes --edit amount=4 to=Bo", "; add --edit to=Bo"),
    ],
)
def test_an_edit_that_would_be_lost_is_refused(shell: Shell, line: str, text: str) -> None:
    paying(shell, 1)
    shell.cell("%chat clerk Pay 1")

    message = shell.fails(line)

    assert mentions(message, text) and "\n" not in message
    assert shell.names["paid"] == [] and len(shell.names["_run"].interrupts) == 1


def test_an_only_card_says_the_short_form(shell: Shell) -> None:
    paying(shell, 1)
    rows = RunRows(magic="%confirm")
    ops = [op for event in shell.cell("%chat clerk Pay 1").events for op in rows.feed(event)]

    assert [op["card"]["how"] for op in ops if op["op"] == "card"] == ["%confirm --yes"]


def test_a_card_says_what_to_type_for_its_own_call(shell: Shell) -> None:
    shell.names["paid"] = []
    shell.cell(PAY)
    shell.names["model"] = ScriptedLlm([call("pay", amount=1), call("pay", amount=2)], "one", "two")
    shell.cell("%%agent clerk -m model -t pay\nPay.")
    rows = RunRows(magic="%confirm")
    ops = [op for event in shell.cell("%chat clerk Pay both").events for op in rows.feed(event)]
    second = next(op["card"] for op in ops if op["op"] == "card" and op["card"]["args"] == {"amount": 2})

    shell.cell(second["how"])

    assert shell.names["paid"] == [(2, "Ada")]
