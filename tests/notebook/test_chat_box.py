"""`%chat` without a text: line by line where there is no page, and what the box of a page keeps of a conversation."""

import base64
import json
import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import comm
import pytest
from wire import WAIT, Pages, Wire, told

from adk_nb.agents import Agent
from adk_nb.errors import SessionBusyError
from adk_nb.events.event import Event
from adk_nb.models.scripted_llm import ScriptedLlm, call
from adk_nb.notebook.chat.chat import Chat, turn_runner
from adk_nb.notebook.chat.chat_box import ChatBox
from adk_nb.notebook.chat.reply import view_of_reply
from adk_nb.notebook.view.display import LiveRun
from adk_nb.notebook.view.reply_view import conversation_document
from adk_nb.notebook.view.view_state import ViewState
from adk_nb.notebook.view.writers import bundle
from adk_nb.notebook.view.writers.elements import visible_text
from adk_nb.sessions import InMemorySessionService, Session
from adk_nb.tools import FunctionTool
from tests.notebook.conftest import Shell

REFUND = "%%tool --confirm\ndef refund(order: str) -> str:\n    'Pays back.'\n    return 'paid ' + order"
Types = Callable[..., list[str]]


@pytest.fixture
def types(monkeypatch: pytest.MonkeyPatch) -> Iterator[Types]:
    """Lets a person type these lines; the prompts come to the list that it returns."""

    def lines(*args: str) -> list[str]:
        prompts: list[str] = []
        pending_args = iter(args)

        def typed(prompt: str = "") -> str:
            prompts.append(prompt)
            line = next(pending_args, None)
            if line is None:
                raise EOFError
            return line

        monkeypatch.setattr("builtins.input", typed)
        return prompts

    yield lines


def guide(shell: Shell, *answers: Any) -> None:
    shell.names["model"] = ScriptedLlm(*answers)
    shell.cell(REFUND)
    shell.cell("%%agent guide -m model -t refund\nBe brief.")


def test_in_a_terminal_it_asks_for_line_after_line_until_an_empty_one(shell: Shell, types: Types) -> None:
    guide(shell, "Hello!", "It is 9 degrees.")
    prompts = types("Hi", "How warm is it in {{city}}?", "", "never said")
    shell.names["city"] = "Oslo"

    assert shell.cell("%chat guide") is None

    assert shell.printed.splitlines()[1:] == ["guide > Hello!", "guide > It is 9 degrees."]
    assert prompts == ["you > "] * 3
    assert shell.names["_run"].text == "It is 9 degrees."
    assert [part.text for part in shell.names["model"].requests[1].contents[-1].parts] == ["How warm is it in Oslo?"]


@pytest.mark.parametrize(("typed", "ran"), [("y", True), ("", False)])
def test_an_approval_is_asked_for_in_the_same_place(shell: Shell, types: Types, typed: str, ran: bool) -> None:
    guide(shell, call("refund", order="A17"), "Done.")
    prompts = types("Pay me back.", typed)

    shell.cell("%chat")  # the only agent; the end of what is typed is the end of it

    assert prompts[1] == 'approve refund(order="A17")? [y/N] '
    assert "guide > Done." in shell.printed
    answers = [response.response for event in shell.names["_run"].events for response in event.get_function_responses()]
    assert ({"result": "paid A17"} in answers) is ran


def test_an_approval_stays_open_where_no_line_can_be_typed(shell: Shell, types: Types) -> None:
    guide(shell, call("refund", order="A17"), "Done.")
    prompts = types("Pay me back.")

    shell.cell("%chat")

    assert prompts == ["you > ", 'approve refund(order="A17")? [y/N] ', "you > "]
    assert shell.names["_run"].status == "pending"
    assert shell.cell("%confirm --yes").text == "Done."


def test_what_cannot_be_said_is_told_and_the_conversation_goes_on(shell: Shell, types: Types) -> None:
    guide(shell, "Hello!")
    types("{{nowhere}}", "Hi")

    shell.cell("%chat guide")

    assert "nowhere" in shell.printed.splitlines()[1]
    assert "guide > Hello!" in shell.printed


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("%chat --height 300 guide Hello", "%chat --height: "),
        ("%chat --height low guide", "--height"),
        ("%chat --height 10 guide", "a chat box of 10 pixels has no room for an answer; give it 80 or more"),
        ("%chat --quiet guide", "%chat --quiet needs a text"),
        ("%chat --replay guide", "%chat --replay needs a text"),
        ("ans = %chat ans << guide", "leave out ans <<"),
        ("%chat giude", "no agent named 'giude'; did you mean 'guide'?"),
        ("%%chat guide\n\n", "no text"),
    ],
)
def test_a_line_that_does_not_fit_a_box_is_refused(shell: Shell, types: Types, line: str, text: str) -> None:
    guide(shell, "never")
    types()

    assert text in shell.fails(line)


def test_a_box_is_for_the_session_that_its_line_names(shell: Shell, types: Types) -> None:
    guide(shell, "Hello!")
    types("Hi")

    shell.cell("%chat -s other guide")

    assert [event.author for event in shell.cell("get_ipython().adk_nb.sessions.events('other')")] == ["user", "guide"]


def test_the_python_twin_talks_in_lines_too(shell: Shell, types: Types) -> None:
    guide(shell, "Hello!")
    prompts = types("Hi")

    shell.cell("from adk_nb.notebook.chat.chat import Chat\nChat(guide).box()")

    assert (prompts, "guide > Hello!" in shell.printed) == (["you > ", "you > "], True)


def test_a_saved_notebook_keeps_questions_answers_calls_and_approvals(shell: Shell) -> None:
    guide(shell, call("refund", order="<b>A17</b>"), "All **settled**.", "Goodbye.")
    first = replace(view_of_reply(shell.cell("%chat --yes guide Pay me back.")), question="Pay me back, <i>now</i>.")

    stored_bundle = bundle(conversation_document([first, view_of_reply(shell.cell("%chat guide Bye."))]))

    assert stored_bundle["text/plain"].splitlines()[:1] == ["you > Pay me back, <i>now</i>."]
    assert stored_bundle["text/plain"].endswith("you > Bye.\nguide > Goodbye.")
    assert "<strong>you:</strong> Pay me back, &lt;i&gt;now&lt;/i&gt;." in stored_bundle["text/html"]
    assert "approves refund by %chat --yes" in visible_text(stored_bundle["text/html"])
    assert "<b>" not in stored_bundle["text/html"] and "<i>" not in stored_bundle["text/html"]
    assert "**you:** Bye." in stored_bundle["text/markdown"]
    answer = bundle(conversation_document([replace(first, question=None)]))
    assert not any("you" in value.splitlines()[0] for value in answer.values())
    assert bundle(conversation_document([])) == {"text/plain": "", "text/markdown": "", "text/html": ""}


class Kept(queue.Queue[str]):
    """What a saved notebook keeps, each time that it is written."""

    def update(self, stored: dict[str, str], *, raw: bool) -> None:
        self.put(stored["text/plain"])


class Busy(InMemorySessionService):
    """Nothing can be undone in it: another kernel is at work there."""

    async def append_event(self, session: Session, event: Event) -> Event:
        if event.actions.rewind_before_invocation_id:
            raise SessionBusyError(session.id, "another kernel", 0.0)
        return await super().append_event(session, event)


@pytest.fixture
def box(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Wire, Kept]]:
    """Opens a box as a page would be shown it; the model gives these answers."""
    monkeypatch.setattr(comm, "create_comm", Wire)

    def opened(*answers: Any, service: InMemorySessionService | None = None) -> tuple[Wire, Kept]:
        refund = FunctionTool(lambda: "paid", name="refund", require_confirmation=True)
        chat = Chat(Agent(name="guide", model=ScriptedLlm(*answers), tools=[refund]), session_service=service)
        box = ChatBox(turn_runner(chat), "main", height=400)
        box.open()
        stored = box.shown._text_output = Kept()  # pyright: ignore[reportPrivateUsage]
        return cast(Wire, box.shown._view.comm), stored  # pyright: ignore[reportPrivateUsage]

    return opened


def ops(wire: Wire, op: str) -> list[dict[str, Any]]:
    """What the page was told to do of that kind."""
    return [item for batch in wire.batches for item in batch["ops"] if item["op"] == op]


def test_what_is_refused_while_something_waits_is_not_what_its_answer_is_to(box: Any) -> None:
    wire, stored = box(call("refund"), "Paid.")
    wire.says(kind="ask", text="Pay me back.")
    assert stored.get(timeout=WAIT).startswith("you > Pay me back.\nguide > (waiting for you)")

    wire.says(kind="ask", text="And now?")
    wire.wait_for(lambda wire: told(wire, "row", id="refused1"))
    wire.says(kind="answer", id=told(wire, "card", state="asked")[0]["id"], decision="approve")

    assert stored.get(timeout=WAIT).startswith(
        "you > Pay me back.\nguide > Paid.  [1 tool call]\n✓ You approved refund("
    )


def test_a_page_that_asks_as_soon_as_it_hears_of_the_end_is_told_all_of_the_turn(box: Any) -> None:
    wire, _ = box("Hello.", "Bye.")

    def asks(data: Any) -> None:
        if data.get("method") == "custom" and '"op": "status", "status": "done"' in json.dumps(data):
            question = {"kind": "need", "what": "missed", "id": "a page loaded since"}
            asking = threading.Thread(target=wire.says, kwargs=question)
            asking.start()
            asking.join(0.3)  # a page is quick; the end of a turn may take longer than its question

    wire.on_hearing = asks
    for number, text in enumerate(["Hi", "See you"]):
        wire.says(kind="ask", text=text)
        wire.wait_for(lambda wire, number=number: len(ops(wire, "panel")) > number)

    assert "Bye." in json.dumps(ops(wire, "panel")[1]["data"])


def test_a_turn_that_cannot_be_taken_back_now_can_be_later(box: Any) -> None:
    wire, stored = box(RuntimeError("no"), service=Busy())
    wire.says(kind="ask", text="Hi")
    stored.get(timeout=WAIT)
    [card] = told(wire, "card", kind="error", state="asked")

    wire.says(kind="answer", id=card["id"], decision="drop")

    wire.wait_for(lambda wire: told(wire, "card", id=card["id"], state="asked", again=1))
    assert "another kernel" in told(wire, "card", id=card["id"])[-1]["note"]


def test_the_heads_of_a_run_and_a_box_name_the_model_that_answers(shell: Shell, pages: Pages) -> None:
    shell.names["other"] = ScriptedLlm("Later.", model="of-the-turn")
    shell.names["model"] = ScriptedLlm("Hello.", model="of-the-agent")
    shell.cell("%%agent guide -m model\nBe brief.")
    shell.cell("%chat guide Hi")
    shell.cell("%chat guide -m other Bye")
    shell.cell("%chat guide")

    *_, box = views = [pages.next() for _ in range(3)]

    assert [view.snapshots[0]["model"] for view in views] == ["of-the-agent", "of-the-turn", "of-the-agent"]
    shell.names["guide"].model = ScriptedLlm("I am new.", model="of-now")
    box.says(kind="ask", text="And now?")
    box.wait_for(lambda box: [op["name"] for op in ops(box, "model")] == ["of-now"])


@pytest.mark.parametrize("answered_in", ["the cell", "the box", "a line"])
def test_what_waits_already_is_asked_in_a_new_box_too_and_answered_once(
    shell: Shell, pages: Pages, answered_in: str
) -> None:
    guide(shell, call("refund", order="A17"), "Paid.")
    shell.cell("%chat guide Pay me back.")
    clicks = {"the cell": f"by a click {cell_of(shell)}", "the box": "by a click in a chat box"}
    shell.cell("%chat guide")
    run, box = pages.next(), pages.next()
    [card] = told(box, "card", state="asked")
    assert told(run, "card", id=card["id"], state="asked") and card["args"] == {"order": "A17"}

    if answered_in == "a line":
        shell.cell("%confirm --yes")
    else:
        (run if answered_in == "the cell" else box).says(kind="answer", id=card["id"], decision="approve")

    session_key = clicks.get(answered_in) or cell_of(shell)
    for page in {"the cell": [box], "the box": [run], "a line": [run, box]}[answered_in]:
        page.wait_for(lambda page: told(page, "card", id=card["id"], state="approved", note=session_key))
    answering = run if answered_in == "the cell" else box
    answering.wait_for(lambda page: any(op["status"] == "done" for op in ops(page, "status")))
    assert len(shell.names["model"].requests) == 2
    assert shell.names["_run"].text == "Paid."


def cell_of(shell: Shell) -> str:
    """The cell that was run last, as `in [8]`."""
    return f"in [{len(shell.ip.history_manager.input_hist_parsed) - 1}]"


@pytest.mark.parametrize(
    ("typed", "row", "note"),
    [
        ("%confirm --yes", "approved CELL", "CELL"),
        ("%confirm --no --reason 'too much'", "rejected CELL", "CELL: too much"),
        ("%confirm --edit order=B2 --yes", "edited CELL", 'CELL: ran with order="B2"'),
        ("%rewind 1", "its turn was undone", "its turn was undone"),
    ],
)
def test_what_is_settled_in_another_cell_waits_nowhere_any_more(
    shell: Shell, pages: Pages, typed: str, row: str, note: str
) -> None:
    guide(shell, call("refund", order="A17"), "Well.")
    shell.cell("%chat guide")
    box = pages.next()
    box.says(kind="ask", text="Pay me back.")
    box.wait_for(lambda page: told(page, "card", state="asked"))
    box.wait_for(lambda page: ops(page, "status")[-1]["status"] == "pending")  # the turn itself is over, too

    shell.cell(typed)

    row, note = (text.replace("CELL", cell_of(shell)) for text in (row, note))
    box.wait_for(lambda page: told(page, "card", note=note))
    [line] = told(box, "row", kind="call")
    box.wait_for(lambda page: row in [op.get("text") for op in ops(page, "patch") if op["id"] == line["id"]])
    box.wait_for(lambda page: ops(page, "status")[-1]["status"] in ("done", "idle"))


def test_a_box_that_was_just_opened_can_rerun_and_write_state(shell: Shell, pages: Pages) -> None:
    guide(shell, "One.", "Another one.")
    shell.cell("%chat guide Count.")
    shell.cell("%chat guide")
    _, box = pages.next(), pages.next()
    [line] = told(box, "row", kind="user")

    box.says(kind="state", key="speed", text="3")
    box.wait_for(lambda page: '"speed"' in json.dumps(page.batches))
    box.says(kind="rerun", event=line["id"].partition("/")[0])
    repeated = pages.next()
    repeated.wait_for(lambda page: "Another one." in json.dumps(page.batches))
    assert "asked again in session 'main-2', a copy" in json.dumps(repeated.batches)


def test_a_box_that_is_opened_after_a_parallel_team_shows_nobody_at_work(shell: Shell, pages: Pages) -> None:
    for name in ("poet", "critic"):
        shell.names[f"{name}_model"] = ScriptedLlm(f"I am the {name}.")
        shell.cell(f"%%agent {name} -m {name}_model\nSpeak.")
    shell.cell("%%agent both --kind parallel\npoet, critic")
    shell.cell("%chat both Who are you?")
    shell.cell("%chat both")
    _, box = pages.next(), pages.next()

    stands = {lane["name"]: lane["state"] for lane in told(box, "lane")}

    assert stands == {"poet": "was", "critic": "was"}


def test_a_box_has_the_card_that_another_agent_of_the_session_waits_for(shell: Shell, pages: Pages) -> None:
    shell.cell("%config AdkNb.sessions_shared = True")
    guide(shell, call("refund", order="A17"), "Paid.")
    shell.names["clerk"] = Agent(name="clerk", model=ScriptedLlm("Never said."))
    shell.cell("%chat guide Pay me back.")
    shell.cell("%chat clerk")
    run, box = pages.next(), pages.next()

    box.says(kind="ask", text="Hello.")

    box.wait_for(lambda page: told(page, "row", kind="error"))
    [asked] = told(run, "card", state="asked")
    assert {card["id"] for card in told(box, "card", state="asked")} == {asked["id"]}
    assert "1 approval is open (refund); answer with %confirm --yes" in told(box, "row", kind="error")[0]["text"]


def test_each_turn_of_a_box_is_traced_by_itself(shell: Shell, pages: Pages) -> None:
    def done(times: int) -> Callable[[Wire], bool]:
        return lambda page: json.dumps(page.batches).count('"status": "done"') >= times

    guide(shell, "Hello!", call("refund", order="A17"), "Paid.")
    shell.cell("%chat guide")
    box = pages.next()
    box.says(kind="ask", text="Hi")
    box.wait_for(done(1))
    box.says(kind="ask", text="Pay me back.")
    box.wait_for(lambda page: told(page, "card", state="asked"))
    box.says(kind="answer", id=told(box, "card", state="asked")[0]["id"], decision="approve")
    box.wait_for(done(2))

    assert "model calls  1         2\n" in str(shell.cell("%trace --diff -2 -1"))
    assert "model call 1 of 1:" in str(shell.cell("%trace 1 --why"))


def test_one_of_several_cards_says_its_number_where_it_is_drawn_alone(
    shell: Shell, pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    guide(shell, [call("refund", order="A1"), call("refund", order="B2")])
    first, _ = shell.cell("%chat guide Pay both back.").interrupts
    patched: list[Any] = []
    monkeypatch.setattr(LiveRun, "patch_card", lambda self, key, fields: patched.append((key, fields["how"])))

    shell.names["draw"] = turn_runner(shell.ip.adk_nb.chat("guide", None, show="widget")).draw_cards
    shell.cell(f"draw([{first.id!r}])")

    assert set(patched) == {(first.id, "%confirm 1 --yes")}


@pytest.mark.parametrize("line", ["%chat guide Pay both back.", "%chat guide"])
def test_cards_of_several_say_their_numbers(shell: Shell, pages: Pages, line: str) -> None:
    guide(shell, [call("refund", order="A1"), call("refund", order="B2")], "On.", call("refund", order="C3"), "Paid.")
    shell.cell(line)
    page = pages.next()
    if line == "%chat guide":
        page.says(kind="ask", text="Pay both back.")
    page.wait_for(lambda page: len(told(page, "card", state="asked")) == 2)

    first, second = told(page, "card", state="asked")
    assert [first["how"], second["how"]] == ["%confirm 1 --yes", "%confirm 2 --yes"]
    shell.cell(second["how"])
    page.says(kind="answer", id=first["id"], decision="approve")
    page.wait_for(lambda page: told(page, "card", state="asked", args={"order": "C3"}))

    assert told(page, "card", args={"order": "C3"})[0]["how"] == "%confirm --yes"
    paid = [
        content.parts[0].function_response for content in shell.names["model"].requests[-1].contents if content.parts
    ]
    assert [item.response for item in paid if item][-1] == {"result": "paid A1"}


def test_a_card_of_a_member_of_a_team_has_the_form_of_its_tool(shell: Shell, pages: Pages) -> None:
    guide(shell, call("refund", order="A17"), "Paid.")
    shell.cell("%%agent desk --kind sequential\nguide")
    shell.cell("%chat desk Pay me back.")

    page = pages.next()
    page.wait_for(lambda page: told(page, "card", state="asked"))

    [card] = told(page, "card", state="asked")
    assert card["schema"]["properties"] == {"order": {"type": "string"}}


def test_the_row_of_a_call_stands_there_while_its_tool_keeps_the_loop_from_all_else(shell: Shell, pages: Pages) -> None:
    async def look() -> str:
        """Looks, and lets nobody else work."""
        page = pages.next()
        page.wait_for(lambda page: told(page, "row", kind="call", tool="look"))
        return "rain"

    shell.names["clerk"] = Agent(name="clerk", model=ScriptedLlm(call("look"), "It rains."), tools=[look])

    assert shell.cell("%chat clerk Look").events[-2].get_function_responses()[0].response == {"result": "rain"}


def test_a_session_that_only_a_box_has_opened_is_listed(shell: Shell, pages: Pages) -> None:
    guide(shell, "One.")
    shell.cell("%chat guide Hello")
    shell.cell("%chat guide -s tea")

    rows = str(shell.cell("%session")).splitlines()

    assert [row.split()[:2] for row in rows if row.startswith("tea")] == [["tea", "0"]]


def rows_now(page: Wire) -> list[str]:
    """The texts that the page shows now, in order, without those of calls."""
    view = ViewState(box={})
    for batch in page.batches:
        for op in batch["ops"]:
            view.apply(op)
    return [row["text"] for row in view.rows.values() if row["kind"] != "call"]


def boxes(page: Wire) -> dict[str, Any]:
    """What the page was told of the box, all in all."""
    changes = [op["box"] for op in ops(page, "box")]
    return {key: value for change in [page.snapshots[0]["box"], *changes] for key, value in change.items()}


def settled(page: Wire, answer: str) -> None:
    """Wait until an answer is shown, and its turn is over."""
    page.wait_for(lambda page: answer in rows_now(page) and ops(page, "status")[-1]["status"] == "done")


def test_what_is_said_in_a_cell_of_the_session_is_shown_in_the_open_box(shell: Shell, pages: Pages) -> None:
    guide(shell, "Hello!", "From a cell.", "Of another session.")
    shell.cell("%chat guide")
    box = pages.next()
    box.says(kind="ask", text="Hi")
    settled(box, "Hello!")

    shell.cell("%chat guide And in a cell?")
    shell.cell("%chat guide -s tea Elsewhere")

    assert rows_now(box) == ["Hi", "Hello!", "And in a cell?", "From a cell."]
    assert f"answering in cell {cell_of(shell)[3:-2]}" in " ".join(op["text"] for op in ops(box, "status"))
    assert not boxes(box)["elsewhere"]


def test_a_message_waits_for_the_cell_that_answers_in_its_session(shell: Shell, pages: Pages) -> None:
    heard: list[str] = []

    def look() -> str:
        """Looks, until the box says that its message waits."""
        box.says(kind="ask", text="And now?")
        box.wait_for(lambda page: boxes(page)["waiting"])
        heard.append(boxes(box)["waiting"])
        return "rain"

    model = ScriptedLlm(call("look"), "It rains.", "After the cell.")
    shell.names["clerk"] = Agent(name="clerk", model=model, tools=[look])
    shell.cell("%chat clerk")
    box = pages.next()

    shell.cell("%chat clerk Look")

    settled(box, "After the cell.")
    assert heard == [f"cell {cell_of(shell)[3:]}"]
    assert rows_now(box) == ["Look", "It rains.", "And now?", "After the cell."]
    assert boxes(box)["waiting"] == ""


@pytest.mark.parametrize("text", [None, "And Rome?"])
def test_a_message_is_sent_again_in_a_copy_and_its_session_stays(shell: Shell, pages: Pages, text: str | None) -> None:
    guide(shell, "Hello!", "It is cold.", "Not the same.", "On.")
    shell.cell("%chat guide")
    box = pages.next()
    for said, answer in (("Hi", "Hello!"), ("And Oslo?", "It is cold.")):
        box.says(kind="ask", text=said)
        settled(box, answer)
    [event] = [row["id"].partition("/")[0] for row in told(box, "row", kind="user", text="And Oslo?")]

    box.says(kind="again", event=event, text=text)

    settled(box, "Not the same.")
    first, greeting, note, again, answer = rows_now(box)
    assert [first, greeting, again, answer] == ["Hi", "Hello!", text or "And Oslo?", "Not the same."]
    assert "'main-2'" in note and "'main' is as it was" in note
    assert boxes(box)["sessions"] == {"current": "main-2", "names": ["main-2", "main"]}
    sessions = shell.ip.adk_nb.sessions
    assert [event.text for event in sessions.events("main")] == ["Hi", "Hello!", "And Oslo?", "It is cold."]
    assert sessions.current == "main-2"
    sent = [content.parts[0].text for content in shell.names["model"].requests[-1].contents]
    assert sent == ["Hi", "Hello!", text or "And Oslo?"]


def test_a_message_that_was_never_sent_is_not_sent_again(shell: Shell, pages: Pages) -> None:
    guide(shell, "Hello!")
    shell.cell("%chat guide")
    box = pages.next()

    box.says(kind="again", event="nowhere", text=None)

    box.wait_for(lambda page: told(page, "row", kind="error"))
    assert shell.ip.adk_nb.sessions.names == []


def test_a_box_goes_to_another_session_and_to_a_new_one(shell: Shell, pages: Pages) -> None:
    guide(shell, "One.", "Two.", "Three.")
    shell.cell("%chat guide First")
    shell.cell("%chat guide -s tea Second")
    shell.cell("%chat guide")
    _, _, box = (pages.next() for _ in range(3))
    assert boxes(box)["sessions"] == {"current": "main", "names": ["main", "tea"]}

    box.says(kind="session", name="tea")
    box.wait_for(lambda page: rows_now(page) == ["Second", "Two."])
    box.says(kind="session", name="nowhere")
    box.says(kind="session", name="")
    box.wait_for(lambda page: boxes(page)["sessions"]["current"] == "main-2")
    box.says(kind="ask", text="Third")
    settled(box, "Three.")

    assert rows_now(box) == ["Third", "Three."]
    assert set(shell.ip.adk_nb.sessions.names) == {"main", "tea", "main-2"}


@pytest.mark.parametrize(("line", "session"), [("%chat guide", "tea"), ("%chat guide -s main", "main")])
def test_cells_go_along_to_the_session_that_their_box_is_moved_to(
    shell: Shell, pages: Pages, line: str, session: str
) -> None:
    guide(shell, "One.", "Two.", "Three.")
    shell.cell("%chat guide -s tea First")
    shell.cell("%chat guide Second")
    shell.cell(line)
    _, _, box = (pages.next() for _ in range(3))

    box.says(kind="session", name="tea")
    box.wait_for(lambda page: rows_now(page) == ["First", "One."])
    shell.cell("%chat guide Third")

    sessions = shell.ip.adk_nb.sessions
    assert sessions.current == session
    assert [event.text for event in sessions.events(session)][-2:] == ["Third", "Three."]
    assert ("Three." in rows_now(box)) is (session == "tea")


def test_variables_and_files_are_listed_and_go_with_a_message(
    shell: Shell, pages: Pages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "map.csv").write_text("a,b\n1,2\n")
    monkeypatch.chdir(tmp_path)
    guide(shell, "I see.", "never")
    shell.names["sold"] = [105, 106]
    shell.cell("%chat guide")
    box = pages.next()

    box.says(kind="need", what="attachables", id="x")
    box.wait_for(lambda page: ops(page, "panel"))
    listed = ops(box, "panel")[0]["data"]
    assert {"name": "sold", "kind": "list"} in listed and listed[-1] == {"name": "map.csv", "kind": "file"}
    assert not {"model", "guide", "refund"} & {item["name"] for item in listed}
    box.says(kind="ask", text="What is it?", attach=["sold", "map.csv"])
    settled(box, "I see.")
    parts = shell.names["model"].requests[-1].contents[-1].parts
    assert [part.inline_data.data for part in parts if part.inline_data] == [b"[105,106]", b"a,b\n1,2\n"]

    box.says(kind="ask", text="And this?", attach=["slod"])
    box.wait_for(lambda page: told(page, "row", kind="error"))
    assert "did you mean 'sold'" in told(box, "row", kind="error")[0]["text"]


def upload(page: Wire, name: str, data: bytes, piece: int = 12) -> dict[str, str]:
    """Send a file as a page does, in pieces of so many bytes; returns what stands for it in a message."""
    for at in range(0, len(data), piece):
        page.says(kind="file", id=name, data=base64.b64encode(data[at : at + piece]).decode())
    return {"name": name, "file": name}


@pytest.mark.parametrize(
    "data", [b"a,b\n1,2\n3,4\n5,6\n", b"\x89PNG\r\n\x1a\n" + bytes(40)], ids=["table.csv", "map.png"]
)
def test_a_file_of_the_reader_goes_to_the_model_as_one_of_the_folder_does(
    shell: Shell,
    pages: Pages,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    data: bytes,
) -> None:
    name = request.node.callspec.id
    (tmp_path / name).write_bytes(data)
    monkeypatch.chdir(tmp_path)
    guide(shell, "Of the folder.", "Of the reader.")
    shell.cell("%chat guide")
    box = pages.next()
    box.says(kind="ask", text="What is it?", attach=[name])
    settled(box, "Of the folder.")
    (tmp_path / name).unlink()

    box.says(kind="ask", text="What is it?", attach=[upload(box, name, data)])

    settled(box, "Of the reader.")
    first, _, again = shell.names["model"].requests[-1].contents
    assert again.parts == first.parts and again.parts[-1].inline_data.data == data
    first, again = told(box, "row", kind="user")
    assert (again["text"], again["shown"]) == (first["text"], first["shown"])


def test_a_file_arrives_whole_while_another_page_of_the_box_sends_a_message(shell: Shell, pages: Pages) -> None:
    guide(shell, "Hello!", "I see.")
    shell.cell("%chat guide")
    box = pages.next()

    upload(box, "of a closed page", bytes(boxes(box)["most"] - 10), piece=5_000_000)
    upload(box, "notes.txt", b"the first half, ")
    box.says(kind="ask", text="Hi", attach=[])
    settled(box, "Hello!")
    box.says(kind="ask", text="What is it?", attach=[upload(box, "notes.txt", b"and the second")])
    settled(box, "I see.")

    data = [part.inline_data.data for part in shell.names["model"].requests[-1].contents[-1].parts if part.inline_data]
    assert data == [b"the first half, and the second"]


@pytest.mark.parametrize("data", ["too much", "no base64"])
def test_a_file_that_does_not_arrive_is_not_sent(
    shell: Shell, pages: Pages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: str
) -> None:
    (tmp_path / "notes.txt").write_text("of the kernel, not of the reader")
    monkeypatch.chdir(tmp_path)
    guide(shell, "never")
    shell.cell("%chat guide")
    box = pages.next()
    most = boxes(box)["most"]

    if data == "too much":
        upload(box, "notes.txt", bytes(most + 3_000_000), piece=3_000_000)
    else:
        box.says(kind="file", id="notes.txt", data="***")
    box.says(kind="ask", text="What is it?", attach=[{"name": "notes.txt", "file": "notes.txt"}])

    box.wait_for(lambda page: told(page, "row", kind="error"))
    text = told(box, "row", kind="error")[0]["text"]
    assert "'notes.txt' did not arrive" in text and f"{most:,} bytes" in text


def test_an_empty_box_suggests_what_to_say_by_the_tools_of_its_agent(shell: Shell, pages: Pages) -> None:
    guide(shell, "Hello!")
    shell.cell("%chat guide")

    box = boxes(pages.next())

    assert (box["agent"], box["suggestions"]) == ("guide", ["What can you do?", "Use refund for …"])


@pytest.mark.parametrize("line", ["%rewind", "get_ipython().adk_nb.chat('guide', None, show='off').rewind()"])
def test_turns_that_are_undone_in_a_cell_leave_the_box_at_once(shell: Shell, pages: Pages, line: str) -> None:
    guide(shell, "Hello!", "Never mind.", "Again.")
    shell.cell("%chat guide")
    box = pages.next()
    for said, answer in (("Hi", "Hello!"), ("A mistake", "Never mind.")):
        box.says(kind="ask", text=said)
        settled(box, answer)

    shell.cell(line)

    assert rows_now(box) == ["Hi", "Hello!"]
    assert ops(box, "status")[-1]["status"] == "idle"
    box.says(kind="ask", text="Better")

    settled(box, "Again.")
    assert rows_now(box) == ["Hi", "Hello!", "Better", "Again."]
