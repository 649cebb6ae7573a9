"""What stands beside the chat looks like its cards: frames, chips, columns of numbers, the line of a failed call."""

import re
from typing import Any

import pandas as pd
import pytest

from adk_nb import types
from adk_nb.agents import LlmAgent
from adk_nb.events.event_actions import UiWidget
from adk_nb.models import LlmResponse, ScriptedLlm, call
from adk_nb.notebook.chat.chat import Chat
from adk_nb.notebook.chat.reply import Reply
from adk_nb.notebook.view.document import Table, document
from adk_nb.notebook.view.rows import RunRows
from adk_nb.notebook.view.view_state import ViewState
from adk_nb.notebook.view.writers import bundle
from adk_nb.notebook.view.writers.elements import CARD, CHIP, FRAME
from adk_nb.tools import ToolContext
from tests.notebook.conftest import Shell
from tests.notebook.turns import reply_forms


def html_of(shell: Shell, cell: str) -> str:
    return forms_of(shell, shell.cell(cell))["text/html"]


def forms_of(shell: Shell, value: Any) -> dict[str, str]:
    """What the cell shows of its value."""
    return shell.ip.display_formatter.format(value)[0]


def rows_of(reply: Reply) -> list[dict[str, Any]]:
    """The rows of a live view."""
    rows, view = RunRows(), ViewState()
    for event in reply.events:
        for op in rows.feed(event):
            view.apply(op)
    return list(view.rows.values())


def counted(*said: Any) -> LlmResponse:
    """An answer of 9 tokens."""
    parts = [types.Part(text=it) if isinstance(it, str) else it for it in said]
    usage = types.GenerateContentResponseUsageMetadata(total_token_count=9)
    return LlmResponse(content=types.Content(role="model", parts=parts), usage_metadata=usage)


def asked(*answers: Any, tools: list[Any]) -> Reply:
    return Chat(LlmAgent(name="guide", model=ScriptedLlm(*answers), tools=tools), show="off").ask("Look.")


CELLS = [
    "%trace",
    "%trace 1",
    "%trace --waterfall",
    "%trace --why",
    "%trace --diff -1 -2",
    "%session",
    "%doctor",
    "%state",
    "%agents",
    "%tools",
    "%%eval clerk\n| message | answer |\n| --- | --- |\n| Hi | like Hello |\n",
]


def test_what_a_magic_shows_stands_in_one_frame_with_a_title(shell: Shell):
    shell.names["model"] = ScriptedLlm("Hello.", "Hello again.", "Hello.", "Hello.")
    shell.cell("%%tool\ndef look() -> str:\n    'Looks.'\n    return 'seen'")
    shell.cell("%%agent clerk -m model -t look\nHelp.")
    shell.cell("%state city=Oslo")
    shell.cell("%chat clerk Hi")
    shell.cell("%chat clerk And?")

    for cell in CELLS:
        html = html_of(shell, cell)
        assert html.count(f'<section style="{FRAME}">') == 1, cell
        assert re.search(r"<p style=[^>]*><strong>[^<]+</strong>", html), cell


def test_a_request_looks_like_a_card_and_the_figures_of_an_evaluation_are_chips(shell: Shell):
    shell.names["model"] = ScriptedLlm(call("pay"), "Hello.")
    shell.cell("%%tool --confirm\ndef pay() -> str:\n    'Pays.'\n    return 'paid'")
    shell.cell("%%agent clerk -m model -t pay\nPay.")
    assert CARD in html_of(shell, "%chat clerk Pay")
    assert CARD in html_of(shell, "%confirm")

    shell.names["other"] = ScriptedLlm("Hello.", "Nothing.")
    shell.cell("%%agent greeter -m other\nGreet.")
    cases = "| message | answer |\n| --- | --- |\n| Hi | like Hello. |\n| Ho | like Hello. |\n"
    evaluated = shell.cell(f"%%eval greeter\n{cases}")
    html = forms_of(shell, evaluated)["text/html"]

    chips = re.findall(f'<span style="{re.escape(CHIP)}">([^<]*)</span>', html)
    assert chips[:2] == ["1 of 2 cases passed", "1 failed"]
    assert forms_of(shell, evaluated)["text/plain"].startswith("greeter: 1 of 2 cases passed, 1 failed")


def test_columns_of_numbers_are_aligned_to_the_right_in_every_form():
    table = Table(["city", "price", "share", "code"], [["Oslo", "1,204", "9%", "7b"], ["Rome", "12", "", "8"]])

    forms = bundle(document(table))

    assert forms["text/plain"].splitlines() == [
        "city  price  share  code",
        "----  -----  -----  ----",
        "Oslo  1,204     9%  7b",
        "Rome     12         8",
    ]
    assert "| --- | ---: | ---: | --- |" in forms["text/markdown"]
    assert re.findall(r'text-align: (\w+)">(?:12|1,204|7b|price)<', forms["text/html"]) == [
        *("right", "right", "left", "right")
    ]


def test_the_call_that_failed_stands_below_the_answer():
    def look(city: str) -> str:
        """Looks."""
        raise KeyError(city)

    reply = asked(call("look", city="Oslo"), "I cannot see it.", tools=[look])

    html = reply_forms(reply)["text/html"]
    assert re.search(r"I cannot see it.*✗ look\(city=.Oslo.\) → failed: KeyError: .*<details>", html, re.DOTALL)


def test_the_tokens_of_an_answer_stand_with_its_words_not_with_the_tool_that_it_calls():
    def look() -> str:
        """Looks."""
        return "seen"

    reply = asked(counted("I look.", call("look")), counted("Done."), tools=[look])

    rows = {row["text"] or row["tool"]: row["usage"] for row in rows_of(reply)}
    assert rows["look"] is None and rows["I look."] and rows["Done."]


def test_a_stand_in_is_explained_once_and_else_a_label_in_the_line_of_the_counts(shell: Shell):
    shell.cell("%%agent clerk\nHelp.")

    first, second = html_of(shell, "%chat clerk Hi"), html_of(shell, "%chat clerk Hello")

    assert "<small>" in first.partition("<details>")[0]
    answer, _, below = second.partition("<summary>")
    assert CHIP not in answer
    label = re.search(f'<span style="{re.escape(CHIP)}" title="([^"]+)">([^<]+)</span></summary>', below)
    assert label and label[1] not in second.replace(f'title="{label[1]}"', "")
    assert label[2] in str(shell.cell("%chat clerk Hello")).splitlines()[0]


def test_an_evaluation_names_a_stand_in_that_an_earlier_cell_explains_in_its_own_head(shell: Shell):
    shell.cell("%%agent clerk -m offline\nHelp.")
    shell.cell("%chat clerk Hi")

    html = html_of(shell, "%%eval clerk\n| message | answer |\n| --- | --- |\n| Hi | like Hello |\n")

    assert "Offline stand-in</span></p>" in html and "(Offline stand-in)" not in shell.printed


def test_the_path_of_a_workflow_stands_beside_its_answer(shell: Shell):
    for name in ("draft", "review"):
        shell.names["model"] = ScriptedLlm(f"{name}: ok")
        shell.cell(f"%%agent {name} -m model\n{name}.")
    shell.cell("%%workflow flow\nSTART -> draft -> review -> END")

    html = html_of(shell, "%chat flow Write.")

    assert html.index("<svg") < html.index("review: ok") < html.index("<details")
    assert "flex-wrap: wrap" in html
    shell.names["model"] = ScriptedLlm("Done.")
    shell.cell("%%agent boss -m model --sub draft\nBoss.")
    assert "flex-wrap" not in html_of(shell, "%chat boss Again.")


def test_a_widget_that_a_tool_gives_is_named_with_its_tool():
    def board(tool_context: ToolContext) -> str:
        """Draws."""
        widget = UiWidget(id="board-1", provider="mcp", payload={"resource_uri": "ui://chess/board.html"})
        tool_context.render_ui_widget(widget)
        return "drawn"

    reply = asked(call("board"), "Done.", tools=[board])

    line = "shows the mcp widget ui://chess/board.html, from board(), which this view does not draw"
    assert line in [row["text"] for row in rows_of(reply) if row["kind"] == "marker"]
    assert line in reply_forms(reply)["text/html"]


@pytest.mark.parametrize("answer", ["Sold: see below.", "| city | sold |\n| --- | --- |\n| Oslo | 12 |"])
def test_a_table_is_shown_once_also_if_the_answer_has_it(answer: str):
    def sales() -> pd.DataFrame:
        """Looks."""
        return pd.DataFrame({"city": ["Oslo", "Rome"], "sold": [12, 3]})

    reply = asked(call("sales"), answer, tools=[sales])

    answered = reply_forms(reply)["text/html"].partition("<details>")[0]
    assert answered.count("<table>") == 1
    [row] = [row for row in rows_of(reply) if row["kind"] == "call"]
    assert row["result"] == "table of 2 rows" and len(row["shown"]) == 1
