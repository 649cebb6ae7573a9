"""What an agent is told of cells by the pages of its kernel, which the tests play; and what it does without them."""

import json
from typing import Any

import pytest
from kernel import Kernel
from talkers import SETUP

pytestmark = pytest.mark.kernel

START = (
    SETUP
    + """
import pathlib
from adk_nb import NotebookToolset
from adk_nb.notebook.extensions.notebook_tools import pages
pages.ANSWER_SECONDS = pages.OTHERS_SECONDS = 60.0  # a page of these tests answers late on a busy machine

def helper(*script):
    return Agent(name='helper', model=Calls(*script), tools=[NotebookToolset()])

def told(agent):
    parts = [part for content in requests[-1] for part in content.parts]
    print(json.dumps([part.function_response.response for part in parts if part.function_response]))
"""
)


def cell(number: int, source: str, **more: Any) -> dict[str, Any]:
    """What a page says of a cell."""
    return {"number": number, "id": f"cell{number}", "kind": "code", "count": None, "source": source, **more}


class Pages:
    """Two pages of one notebook, of which the second sends the cells."""

    def __init__(self, kernel: Kernel, *cells: dict[str, Any]) -> None:
        self.kernel, self.cells = kernel, [*cells]
        self.requests: list[dict[str, Any]] = []
        self.answers: dict[str, dict[str, Any]] = {"read": {"cells": self.cells}}
        kernel.page = self

    def __call__(self, request: dict[str, Any]) -> list[dict[str, Any]]:
        self.requests.append(request)
        if request["ask"] != "who":
            return [{"id": "of another request"}, self.answers[request["ask"]]]
        mine = {"page": "mine", "session": self.kernel.session, "seen": False}
        return [{"page": "other", "session": "of a colleague", "seen": True}, mine]


def told(kernel: Kernel) -> list[Any]:
    return json.loads(kernel.run("told(agent)").text)


def test_the_page_that_sent_the_cell_is_asked_and_the_kernel_stays_busy(kernel: Kernel, tmp_path):
    kernel.run(START)
    kernel.run("agent = helper(call('read_cells'), 'Read.')")
    pages = Pages(kernel, cell(1, "rows = []", output="ok"), cell(2, "# Notes", kind="markdown", count="three"))
    go = tmp_path / "go"

    wait = f"while not pathlib.Path({str(go)!r}).exists(): time.sleep(0.01)"
    running = kernel.start(f"Chat(agent).ask('Look.'); print('asked', flush=True)\n{wait}")
    kernel.until_printed(running, "asked")
    kernel.until(lambda: kernel.states[-1] == "busy", "a kernel that says it is busy")
    go.touch()
    kernel.until_ended(running)

    assert kernel.states[-1] == "idle"
    assert [(request["ask"], request.get("to")) for request in pages.requests] == [("who", None), ("read", "mine")]
    [read] = told(kernel)
    assert read["cells"] == [
        {"number": 1, "source": "rows = []", "output": "ok"},
        {"number": 2, "kind": "markdown", "source": "# Notes"},
    ]


def test_what_is_secret_in_a_cell_is_not_told(kernel: Kernel):
    kernel.run(START)
    kernel.run("agent = helper(call('read_cells'), call('change_cell', number=1, source='key = 1'), 'Read.')")
    Pages(kernel, cell(1, "key = 'sk-abcdefghijklmnop1234567890'", error="ValueError: sk-abcdefghijklmnop1234567890"))

    kernel.run("Chat(agent).ask('Look.')")

    read, refused = told(kernel)
    assert "sk-abc" not in json.dumps(read)
    assert refused == {"error": "cell 1 has text that is not shown to you; leave it to the user"}


def test_a_long_notebook_is_listed_and_a_long_cell_is_not_changed(kernel: Kernel):
    kernel.run(START)
    script = "call('read_cells'), call('read_cells', wanted='7'), call('change_cell', number=7, source='x')"
    kernel.run(f"agent = helper({script}, call('change_cell', number=9, source='x'), 'Read.')")
    Pages(kernel, *(cell(number, f"first{number} = 1\n" + "x = 1\n" * 2_000) for number in range(1, 201)))

    kernel.run("Chat(agent).ask('Look.')")

    listed, whole, long, unread = told(kernel)
    assert listed["cells"][0] == "1: first1 = 1" and "left_out" in listed
    assert all(len(json.dumps(result)) < 4_200 for result in (listed, whole))
    assert whole["cells"][0]["source"].startswith("first7")
    assert long == {"error": "cell 7 has text that is not shown to you; leave it to the user"}
    assert unread == {"error": "only the beginning of cell 9 was read; read it by its number"}


def test_an_edit_that_the_page_refuses_or_does_not_confirm_is_told_as_such(kernel: Kernel):
    kernel.run(START)
    kernel.run("pages.WORK_SECONDS = 0.2")
    kernel.run("agent = helper(call('write_cell', source='a = 1'), call('write_cell', source='b = 1'), 'Written.')")
    pages = Pages(kernel)
    pages.answers["insert"] = {"problem": "the notebook is read-only on the page"}
    kernel.run("chat = Chat(agent)")

    answer = kernel.page

    def once(request: dict[str, Any]) -> list[dict[str, Any]]:
        assert answer
        return [] if request.get("source") == "b = 1" else answer(request)

    kernel.page = once
    kernel.run("chat.ask('Write.')")

    refused, silent = told(kernel)
    assert refused == {"error": "the notebook is read-only on the page"}
    assert "has not confirmed" in silent["error"]
    assert [request["by"] for request in pages.requests if request["ask"] == "insert"] == ["helper"]


def test_without_a_page_cells_are_those_of_the_kernel_and_a_new_one_is_shown(kernel: Kernel):
    kernel.page = None
    kernel.run(START)
    kernel.run("pages.ANSWER_SECONDS = 0.2")
    kernel.run("mark = 'of the kernel'")
    calls = "call('read_cells', wanted='mark kernel'), call('write_cell', source='to_copy = 1'), 'Done.'"
    kernel.run(f"agent = helper({calls})")

    shown = kernel.run("Chat(agent).ask('Look.')")

    read, written = told(kernel)
    assert "mark = 'of the kernel'" in [one["source"] for one in read["cells"]]
    assert "written" not in written and "to_copy = 1" in shown.text


def test_a_change_is_made_after_the_agent_was_defined_anew(kernel: Kernel):
    kernel.run(START)
    define = "agent = helper(call('read_cells'), call('change_cell', number=1, source='rows = [1]'), 'Changed.')"
    kernel.run(define)
    pages = Pages(kernel, cell(1, "rows = []"))
    pages.answers["change"] = {"cell": cell(1, "rows = [1]")}
    kernel.run("%chat agent Change it.")
    card = kernel.card("change_cell")

    kernel.run(define)
    kernel.click(card, decision="approve")

    kernel.until(lambda: pages.requests[-1]["ask"] == "change", "the change")
    change = pages.requests[-1]
    assert (change["cell"], change["was"], change["source"]) == ("cell1", "rows = []", "rows = [1]")


def test_two_sessions_whose_models_give_their_calls_the_same_id_change_the_cells_that_were_accepted(kernel: Kernel):
    kernel.run(START)
    kernel.run("def same(**args): return types.Part(function_call=dict(id='call_1', name='change_cell', args=args))")
    kernel.run(
        "agent = helper(call('read_cells'), same(number=1, source='a = 2'), "
        "call('read_cells'), same(number=2, source='b = 2'), 'Changed.')"
    )
    pages = Pages(kernel, cell(1, "a = 1"), cell(2, "b = 1"))
    pages.answers["change"] = {"cell": cell(1, "a = 2")}
    kernel.run("first = Chat(agent, session='first').ask('Change a.')")
    kernel.run("Chat(agent, session='second').ask('Change b.')")

    kernel.run("first.approve()")

    change = pages.requests[-1]
    assert (change["ask"], change["cell"], change["source"]) == ("change", "cell1", "a = 2")
