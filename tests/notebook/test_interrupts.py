"""One list of what a session waits for, and one answer to any of it: `chat.interrupts`, `chat.answer`, `%confirm`."""

import getpass
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.auth import APIKey, APIKeyIn, AuthConfig, HTTPBase
from adk_nb.errors import InputError, SessionBusyError
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.models.scripted_llm import ScriptedLlm, call
from adk_nb.notebook.chat.chat import Chat
from adk_nb.notebook.chat.reply import view_of_reply
from adk_nb.notebook.magics.completion import known_names
from adk_nb.sessions import InMemorySessionService
from adk_nb.tools.function_tool import FunctionTool
from adk_nb.tools.get_user_choice_tool import get_user_choice
from adk_nb.tools.long_running_tool import LongRunningFunctionTool
from adk_nb.tools.request_input_tool import request_input
from adk_nb.workflow import START, Workflow, node
from tests.notebook.conftest import Shell
from tests.support.polling import SECONDS

KEY = AuthConfig(auth_scheme=APIKey(in_=APIKeyIn.header, name="X-Key"))
SECRET = "a-persons-key"


def ship(item: str) -> None:
    """Ships something."""


def tools_of(done: list[str]) -> list[Any]:
    def pay(amount: int) -> str:
        """Pays."""
        done.append(f"paid {amount}")
        return "paid"

    def mail() -> str:
        """Reads mail."""
        done.append("mail")
        return "one mail"

    return [
        FunctionTool(pay, require_confirmation=True),
        FunctionTool(mail, auth_config=KEY),
        request_input,
        get_user_choice,
        LongRunningFunctionTool(ship),
    ]


EVERY_KIND = [
    call("pay", amount=7),
    call("mail"),
    call("adk_request_input", message="Which?"),
    call("ship", item="tea"),
]


def chat_of(done: list[str], *answers: Any) -> Chat:
    return Chat(LlmAgent(name="clerk", model=ScriptedLlm(*answers), tools=tools_of(done)), show="off")


def open_kinds(chat: Any) -> dict[str, int]:
    return {interrupt.kind: interrupt.number for interrupt in chat.interrupts}


def test_every_kind_is_in_one_list_and_answered_by_number_id_or_name():
    steps: list[str] = []
    chat = chat_of(steps, EVERY_KIND, *["Well."] * 4)

    reply = chat.ask("go")
    open_ = chat.interrupts

    assert [interrupt.number for interrupt in open_] == [1, 2, 3, 4]
    assert open_kinds(chat) == open_kinds(reply)
    assert set(open_kinds(chat)) == {"approval", "credential", "input", "long_running"}
    assert [interrupt.kind for interrupt in view_of_reply(reply).pending] == ["approval"]
    by_kind = {interrupt.kind: interrupt for interrupt in open_}
    chat.answer("yes", "pay")
    chat.answer(SECRET, which=by_kind["credential"].number)
    chat.answer({"status": "sent"}, by_kind["long_running"])
    last = chat.answer("A1")
    assert (sorted(steps), chat.interrupts, last.interrupts) == (["mail", "paid 7"], [], [])


def test_which_of_several_is_said_by_number_and_name_and_nothing_counts_as_answered():
    steps: list[str] = []
    chat = chat_of(steps, [call("pay", amount=1), call("adk_request_input", message="?")], "Well.")
    chat.ask("go")

    with pytest.raises(InputError, match=r"2 interrupts are open; .* 1 \(\w+\), 2 \(\w+\)$") as error:
        chat.answer(True)
    assert "(pay)" in str(error.value) and "(clerk)" in str(error.value)
    with pytest.raises(InputError, match="'refund'"):
        chat.answer(True, "refund")
    assert len(chat.interrupts) == 2 and steps == []


@pytest.mark.parametrize(
    ("value", "paid"),
    [
        (True, ["paid 7"]),
        ("Yes", ["paid 7"]),
        ({"confirmed": True, "args": {"amount": 2}}, ["paid 2"]),
        (ToolConfirmation(confirmed=True), ["paid 7"]),
        (False, []),
        ("no", []),
        ({"confirmed": False, "reason": "dear"}, []),
    ],
)
def test_an_approval_is_answered_in_any_form_once(value: Any, paid: list[str]):
    steps: list[str] = []
    chat = chat_of(steps, call("pay", amount=7), "Well.")
    chat.ask("go")

    assert chat.answer(value).text == "Well." and steps == paid
    with pytest.raises(InputError, match="no interrupt"):
        chat.answer(value)


@pytest.mark.parametrize("value", ["perhaps", 1, None, {"confirmed": "yes"}, {"args": {}}, []])
def test_what_is_neither_a_yes_nor_a_no_leaves_an_approval_open(value: Any):
    steps: list[str] = []
    chat = chat_of(steps, call("pay", amount=7), "Well.")
    chat.ask("go")

    with pytest.raises(InputError, match="approve or reject pay"):
        chat.answer(value)
    assert len(chat.interrupts) == 1 and steps == []


def gated() -> Workflow:
    def pay(node_input: str) -> str:
        return f"paid {node_input}"

    return Workflow(name="desk", edges=[(START, node(pay, require_confirmation=True, rerun_on_resume=True))])


@pytest.mark.parametrize(
    ("value", "text"), [(True, "paid 7"), ("y", "paid 7"), (ToolConfirmation(confirmed=True, by="me"), "paid 7")]
)
def test_a_node_is_approved_like_a_call(value: Any, text: str):
    chat = Chat(gated(), show="off")
    chat.ask("7")

    assert chat.answer(value, "pay").text == text


def test_the_arguments_of_a_node_cannot_be_changed():
    chat = Chat(gated(), show="off")
    chat.ask("7")

    with pytest.raises(InputError, match="cannot be changed"):
        chat.approve(node_input="8")
    assert chat.approve().text == "paid 7"


def test_a_credential_is_refused_with_none():
    steps: list[str] = []
    chat = chat_of(steps, call("mail"), "As you wish.")
    chat.ask("go")

    assert chat.answer(None).text == "As you wish." and steps == []


def clerk(shell: Shell, done: list[str], *answers: Any) -> None:
    names = ("pay", "mail", "request_input", "get_user_choice", "ship")
    shell.names.update(zip(names, tools_of(done), strict=True), model=ScriptedLlm(*answers))
    shell.cell(f"%%agent clerk -m model -t {','.join(names)}\nHelp.")
    shell.cell("%chat clerk go")


def answered(shell: Shell) -> list[Any]:
    events = shell.ip.adk_nb.sessions.events()
    return [
        response.response for event in events if event.author == "user" for response in event.get_function_responses()
    ]


@pytest.mark.parametrize(
    ("schema", "line", "value"),
    [
        ({"type": "integer"}, "%confirm 1", {"result": 1}),
        ({"type": "integer"}, "%confirm 1 250", {"result": 250}),
        ({"type": "string"}, '%confirm I don\'t know; "maybe" # 2', {"result": 'I don\'t know; "maybe" # 2'}),
        ({"type": "object", "properties": {"n": {}}}, '%confirm {"n": 3}', {"n": 3}),
        ({"type": "integer"}, "%confirm -5", {"result": -5}),
    ],
)
def test_a_question_is_answered_as_it_is_typed(shell: Shell, schema: dict[str, Any], line: str, value: Any) -> None:
    clerk(shell, [], call("adk_request_input", message="?", response_schema=schema), "Well.")

    assert shell.cell(line).text == "Well."
    assert answered(shell) == [value]


def test_an_answer_that_does_not_fit_is_refused_and_the_question_stays_open(shell: Shell) -> None:
    clerk(shell, [], call("adk_request_input", message="?", response_schema={"type": "integer"}), "Well.")

    assert "'three' is not of type 'integer'" in shell.fails("%confirm three")
    assert shell.cell("%confirm 3").text == "Well."


def test_each_kind_is_answered_in_a_line_by_its_number(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    prompts: list[str] = []
    monkeypatch.setattr(getpass, "getpass", lambda prompt: prompts.append(prompt) or SECRET)
    clerk(shell, steps, EVERY_KIND, *["Well."] * 4)
    number = open_kinds(shell.names["_run"])
    listed = str(shell.cell("%confirm"))

    shell.cell(f"%confirm {number['long_running']} " + '{"status": "sent"}')
    shell.cell(f"%confirm {number['input']} A1 and A2")
    shell.cell(f"%confirm {number['credential']}")
    shell.cell("%confirm --yes")

    for kind in ("credential", "long_running"):
        assert f"%confirm {number[kind]}" in listed
    assert prompts == ["mail needs a key (header X-Key): "]
    assert (sorted(steps), shell.names["_run"].interrupts) == (["mail", "paid 7"], [])
    assert {"status": "sent"} in answered(shell) and {"result": "A1 and A2"} in answered(shell)
    events = shell.ip.adk_nb.sessions.events()
    assert SECRET not in "".join(event.model_dump_json() for event in events)


@pytest.mark.parametrize("line", [f"%confirm 1 {SECRET}", f"%confirm mail {SECRET}", f"%confirm {SECRET}"])
def test_a_credential_in_a_line_is_refused_and_not_repeated(shell: Shell, line: str) -> None:
    steps: list[str] = []
    clerk(shell, steps, call("mail"), "Well.")

    message = shell.fails(line)

    assert " type %confirm 1," in message and SECRET not in message and "\n" not in message
    assert steps == [] and answered(shell) == []


@pytest.mark.parametrize("line", ["%confirm --no", "%confirm 1 --no", "%confirm mail --no"])
def test_a_credential_request_is_refused_in_a_line(shell: Shell, line: str) -> None:
    steps: list[str] = []
    clerk(shell, steps, call("mail"), "As you wish.")

    assert shell.cell(line).text == "As you wish." and steps == []


def test_a_yes_to_what_is_no_approval_says_where_to_look(shell: Shell) -> None:
    clerk(shell, [], call("adk_request_input", message="?"), "Well.")

    for line in ("%confirm --yes", "%confirm 1 --yes", "%confirm --no"):
        assert "; type %confirm to see" in shell.fails(line)
    assert shell.cell("%confirm fine").text == "Well."


def test_a_value_for_what_is_not_open_and_a_value_beside_a_yes_are_refused(shell: Shell) -> None:
    steps: list[str] = []
    clerk(shell, steps, [call("pay", amount=1), call("pay", amount=2)], "Well.", "Well.")

    assert "'3'" in shell.fails("%confirm 3 x")
    assert "1 (pay), 2 (pay)" in shell.fails("%confirm --yes")
    assert "unexpected '2'" in shell.fails("%confirm 1 2 --yes")
    assert "type %confirm 1 yes, or %confirm 1 no" in shell.fails("%confirm 1")
    assert steps == []
    shell.cell("%confirm 1 yes")
    assert shell.cell("%confirm 2 no").text == "Well." and steps == ["paid 1"]


@pytest.mark.parametrize("line", ["maybe", "yes please", "yes, if it is under 50", "nothing", "True?", "1", "pay ok"])
def test_only_a_plain_yes_or_no_decides_an_approval_and_the_line_to_type_is_named(shell: Shell, line: str) -> None:
    steps: list[str] = []
    clerk(shell, steps, call("pay", amount=1), "Well.")

    refused = shell.fails(f"%confirm {line}")

    assert "type %confirm yes, or %confirm no" in refused and "True or False" not in refused
    assert steps == [] and len(shell.ip.adk_nb.sessions.history().interrupts()) == 1


@pytest.mark.parametrize("line", ["no too dear", 'no "too dear"', "No: too dear", "1 no too dear", "pay no, too dear"])
def test_a_reason_stands_behind_the_no(shell: Shell, line: str) -> None:
    steps: list[str] = []
    clerk(shell, steps, call("pay", amount=1), "Well.")

    reply = shell.cell(f"%confirm {line}")

    assert steps == [] and "too dear" in str(reply) and "rejected" in str(reply)
    assert "was already rejected by %confirm" in str(shell.cell("%confirm no"))
    assert "was already rejected by %confirm" in shell.fails("%confirm yes")


def test_the_numbers_of_all_open_interrupts_are_proposed(shell: Shell) -> None:
    clerk(shell, [], EVERY_KIND, "Well.")

    assert known_names(shell.ip.adk_nb, "interrupt") == ["1", "2", "3", "4"]


@pytest.mark.parametrize(
    ("config", "fields"),
    [
        (KEY, {"apiKey": "password"}),
        (AuthConfig(auth_scheme=HTTPBase(scheme="basic")), {"username": None, "password": "password"}),
        (AuthConfig(auth_scheme=HTTPBase(scheme="bearer")), {"token": "password"}),
    ],
)
def test_the_schema_of_a_credential_names_its_fields_and_which_are_secret(config: AuthConfig, fields: dict[str, Any]):
    def mail() -> str:
        """Reads mail."""
        return "one mail"

    model = ScriptedLlm(call("mail"), "Well.")
    chat = Chat(LlmAgent(name="clerk", model=model, tools=[FunctionTool(mail, auth_config=config)]), show="off")
    chat.ask("go")
    [interrupt] = chat.interrupts

    properties = interrupt.schema["properties"]
    assert {name: field.get("format") for name, field in properties.items()} == fields
    assert chat.answer(dict.fromkeys(fields, "x")).text == "Well."


# ---- tasks


def booking(*answers: Any) -> LlmAgent:
    """An agent that gives a task to `booker`."""
    booker = LlmAgent(name="booker", model=ScriptedLlm(*answers), mode="task", tools=tools_of([]))
    boss = ScriptedLlm(call("booker", request="book"), "All done.", "And now?")
    return LlmAgent(name="boss", model=boss, sub_agents=[booker])


BOOKED = call("finish_task", result="booked")


def test_a_task_that_waits_for_words_is_an_interrupt_and_plain_words_go_to_it() -> None:
    chat = Chat(booking("Which date?", "For how many?", BOOKED), show="off")

    reply = chat.ask("Book it.")
    [task] = reply.interrupts
    assert (task.kind, task.agent, task.path, task.prompt) == ("task", "booker", ("boss",), "Which date?")
    assert (task.number, task.schema, task.has_card) == (1, {"type": "string"}, False)
    assert (reply.status, reply.text, chat.interrupts) == ("done", "Which date?", [task])

    assert chat.ask("Tomorrow.").text == "For how many?"
    [task] = chat.interrupts
    assert task.prompt == "For how many?"
    events = reply.answer("Two.", task.id)
    assert (events.text, events.interrupts) == ("All done.", [])
    assert [event.text for event in chat.events if event.author == "user" and event.text] == [
        "Book it.",
        "Tomorrow.",
        "Two.",
    ]


def test_a_task_at_work_does_not_wait_for_words_and_takes_none_beside_other_answers() -> None:
    chat = Chat(booking("Which date?", call("pay", amount=7), BOOKED), show="off")
    chat.ask("Book it.")
    with pytest.raises(InputError, match="text"):
        chat.answer({"date": "tomorrow"})

    assert [interrupt.kind for interrupt in chat.answer("Tomorrow.").interrupts] == ["approval"]
    assert chat.answer(True).text == "All done."


def test_a_task_of_a_graph_waits_for_words_too() -> None:
    clerk = LlmAgent(name="clerk", model=ScriptedLlm("Which tea?", call("finish_task", result="green")), mode="task")
    chat = Chat(Workflow(name="desk", edges=[(START, clerk)]), show="off")

    [task] = chat.ask("Tea.").interrupts
    assert (task.kind, task.agent, task.prompt) == ("task", "clerk", "Which tea?")
    assert chat.answer("Green.").output == {"result": "green"}
    assert chat.interrupts == []


def test_a_task_is_listed_and_takes_its_words_in_a_line(shell: Shell) -> None:
    shell.names["boss"] = booking("Which date?", BOOKED)
    shell.cell("%chat boss Book it.")

    listed = str(shell.cell("%confirm"))
    assert "booker" in listed and "Which date?" in listed and "%chat" in listed
    assert known_names(shell.ip.adk_nb, "interrupt") == ["1"]
    assert shell.cell("%confirm 1 Tomorrow, please.").text == "All done."


def test_a_yes_that_was_given_before_is_no_error_beside_a_task(shell: Shell) -> None:
    shell.names["boss"] = booking(call("pay", amount=7), "Which date?", BOOKED)
    shell.cell("%chat boss Book it.")
    assert [interrupt.kind for interrupt in shell.cell("%confirm --yes").interrupts] == ["task"]

    assert "already approved" in str(shell.cell("%confirm --yes"))


def test_a_question_beside_an_approval_names_a_line_that_answers_it(shell: Shell) -> None:
    steps: list[str] = []
    asks = call("adk_request_input", message="Who are you?")
    model = ScriptedLlm([asks, call("pay", amount=5)], "Paid.", "Done.")
    shell.names["clerk"] = LlmAgent(name="clerk", model=model, tools=tools_of(steps))

    pending_reply = shell.cell("%chat clerk Pay.")
    question, approval = pending_reply.interrupts
    assert (question.kind, approval.kind) == ("input", "approval")
    assert f"%confirm {question.number} ..." in str(pending_reply) and "%chat ..." not in str(pending_reply)
    assert [interrupt.kind for interrupt in shell.cell(f"%confirm {question.number} Ann").interrupts] == ["approval"]


def test_true_is_not_the_number_of_an_approval() -> None:
    steps: list[str] = []
    model = ScriptedLlm([call("pay", amount=5), call("pay", amount=6)], "Paid.")
    chat = Chat(LlmAgent(name="clerk", model=model, tools=tools_of(steps)), show="off")
    chat.ask("Pay.")

    with pytest.raises(InputError):
        chat.approve(True)
    assert steps == [] and [interrupt.number for interrupt in chat.interrupts] == [1, 2]


def test_an_answer_that_comes_while_the_approved_call_runs_is_refused_and_changes_nothing() -> None:
    service, began, go_on = InMemorySessionService(), threading.Event(), threading.Event()

    def pay(amount: int) -> str:
        """Pays."""
        began.set()
        go_on.wait(SECONDS)
        return "paid"

    def chat() -> Chat:
        model = ScriptedLlm(call("pay", amount=5), "Paid.")
        clerk = LlmAgent(name="clerk", model=model, tools=[FunctionTool(pay, require_confirmation=True)])
        return Chat(clerk, session_service=service, app_name="app", show="off")

    first, second = chat(), chat()
    first.ask("Pay.")
    with ThreadPoolExecutor() as threads:
        approved = threads.submit(first.approve)
        assert began.wait(SECONDS)
        before = len(second.events)
        try:
            with pytest.raises(SessionBusyError):
                second.reject()
            assert len(second.events) == before
        finally:
            go_on.set()
        assert "approved pay" in str(approved.result(SECONDS))

    results = [response.response for event in second.events for response in event.get_function_responses()]
    assert {"result": "paid"} in results and second.interrupts == []
