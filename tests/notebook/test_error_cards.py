"""What a live view tells of what went wrong: turns that failed, tools that failed, models that are waited for."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from adk_nb import types
from adk_nb.models.llm_response import Attempt, on_wait
from adk_nb.models.retrying import retry
from adk_nb.notebook.view.cards import ErrorCards, answer_of, cell_traceback, error_card
from adk_nb.notebook.view.view_state import ViewState
from adk_nb.redaction import HIDDEN, remember
from adk_nb.sync import run
from tests.notebook.conftest import Shell

FAILS = """def split(bill, people):
    return bill / people

try:
    split(1, 0)
except Exception as error:
    wrong = error"""


@pytest.fixture
def wrong(shell: Shell) -> ZeroDivisionError:
    """What a cell raised: the second of the shell."""
    shell.cell(FAILS)
    return shell.names["wrong"]


def cards(tell: Callable[[ErrorCards], None]) -> list[dict[str, Any]]:
    """The cards of a view that is told of errors."""
    view = ViewState()

    def push(ops: list[dict[str, Any]]) -> None:
        for op in ops:
            view.apply(op)

    tell(ErrorCards(push))
    return list(view.cards.values())


def test_a_card_tells_what_where_and_how_in_the_words_of_the_notebook(wrong: ZeroDivisionError) -> None:
    def ends(errors: ErrorCards) -> None:
        errors.failed(wrong)
        errors.ended("payer", "ZeroDivisionError: division by zero (In[2] line 2)", "e1")

    [told] = cards(ends)

    assert (told["kind"], told["title"], told["where"]) == (
        "error",
        "ZeroDivisionError: division by zero",
        "In[2] line 2",
    )
    assert told["ways"] == ["retry", "drop"]
    place, code = told["traceback"].splitlines()[1:3]
    assert (place.partition(",")[0], code) == ("  In[2] line 5", "    split(1, 0)")
    assert "In[2] line 2, in" in told["traceback"]


def test_a_card_says_in_words_what_a_code_means() -> None:
    [told] = cards(lambda errors: errors.ended("guide", "MAX_COST: this run has cost about $1", "e1"))

    assert "limit" in told["title"]
    assert told["title"].endswith("about $1")


def test_a_traceback_begins_at_the_cell_and_holds_no_secret(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-key-000042")
    shell.cell(
        "import os, json\ntry:\n    json.loads(os.environ['OPENAI_API_KEY'])\nexcept Exception as e:\n    one = e"
    )
    shell.cell(
        "try:\n    raise RuntimeError(os.environ['OPENAI_API_KEY'])\nexcept Exception as error:\n    two = error"
    )

    assert cell_traceback(shell.names["one"]).splitlines()[1].startswith("  In[2] line 3")
    assert "decoder.py" in cell_traceback(shell.names["one"])
    assert "sk-not" not in cell_traceback(shell.names["two"])


def test_nothing_can_be_said_again_where_nothing_was_said() -> None:
    assert [one["ways"] for one in cards(lambda errors: errors.ended("payer", "no key", ""))] == [[]]


@pytest.mark.parametrize(("decision", "state"), [("retry", "retried"), ("drop", "dropped")])
def test_a_click_after_an_error_is_one_of_its_ways(decision: str, state: str) -> None:
    asked = error_card("e", "payer", "it broke", None, ["retry", "drop"])

    assert answer_of(asked, {"decision": decision}) == (
        {"kind": "answer", "id": "e", "decision": decision},
        {"state": state, "note": ""},
    )
    assert answer_of({**asked, "ways": []}, {"decision": decision}) is None
    assert answer_of(asked, {"decision": "approve", "args": {}}) is None


def test_the_row_of_a_failed_call_has_the_cell_the_arguments_and_what_the_model_is_told(
    wrong: ZeroDivisionError,
) -> None:
    errors = ErrorCards(lambda _: None)
    errors.tool_failed("c2", "split", {"bill": 1, "people": 0}, wrong)
    errors.tool_failed("c3", "look", {}, ValueError("of no cell"))
    told = [{"result": 1}, {"error": "ZeroDivisionError: division by zero"}, {"error": "of no cell"}]
    responses = [types.FunctionResponse(id=f"c{n}", name="f", response=one) for n, one in enumerate(told, 1)]
    ops: list[dict[str, Any]] = [
        {"op": "patch", "id": "r1", "ok": True},
        {"op": "append", "row": {"ok": False}},
        {"op": "patch", "ok": False},
    ]

    errors.add_failures(ops, responses)

    failure = ops[1]["row"]["failure"]
    assert (failure["tool"], failure["where"]) == ("split", "In[2] line 2")
    assert [(one["name"], one["text"]) for one in failure["arguments"]] == [("bill", "1"), ("people", "0")]
    assert failure["sent"] == '{"error": "ZeroDivisionError: division by zero"}'
    assert "failure" not in ops[0] and "failure" not in ops[2]


def test_error_cards_hold_no_known_secret(wrong: ZeroDivisionError) -> None:
    remember("q7Zx-5bR1-mm2")

    def ends(errors: ErrorCards) -> None:
        errors.ended("payer", "ValueError: no order q7Zx-5bR1-mm2", "e1")

    errors, patch = ErrorCards(lambda _: None), {"op": "patch", "ok": False}
    errors.tool_failed("c", "split", {"bill": "q7Zx-5bR1-mm2", "rows": "x" * 1_000_000}, wrong)
    errors.add_failures([patch], [types.FunctionResponse(id="c", name="f", response={"error": "x"})])

    told = json.dumps([cards(ends), patch])
    assert "q7Zx" not in told and told.count(HIDDEN) == 2
    assert len(told) < 10_000


def test_a_busy_model_has_a_card_until_it_goes_on() -> None:
    def twice(errors: ErrorCards) -> None:
        errors.model_busy("gemini-2.5-flash", "HTTP 429", 4.5)
        errors.model_busy("gemini-2.5-flash", "HTTP 503", 9.0)
        errors.close_busy_card()
        errors.close_busy_card()

    first, second = cards(twice)

    assert "gemini-2.5-flash" in first["title"]
    assert (first["hint"], first["seconds"]) == ("HTTP 429", 4.5)
    assert (first["state"], second["state"]) == ("over", "over")
    [waiting] = cards(lambda errors: errors.model_busy("m", "HTTP 429", 1))
    assert waiting["state"] == "asked"


def test_a_run_that_waits_for_its_model_says_so_as_the_wait_begins() -> None:
    heard: list[Attempt] = []
    answers = iter([TimeoutError(), TimeoutError(), "here"])

    async def ask() -> str:
        if isinstance(answer := next(answers), Exception):
            raise answer
        return answer

    async def asked() -> str:
        on_wait.set(heard.append)
        options = types.HttpRetryOptions(initial_delay=0.001, max_delay=0.001, jitter=0.001)
        return await retry(
            ask, options, model="m", max_seconds=5, is_temporary=lambda _: True, requested_wait=lambda _: None
        )

    assert run(asked()) == "here"
    assert [(one.model, one.error) for one in heard] == [("m", "TimeoutError")] * 2
    assert on_wait.get() is None
