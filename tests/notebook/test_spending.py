"""Tokens and cost of a turn, of what is replayed, of models without a price, and where a turn may cost so much."""

import sys
from pathlib import Path
from typing import Any

import pytest
from support.messages import mentions

from adk_nb.agents import LlmAgent
from adk_nb.models import RecordedLlm, ScriptedLlm
from adk_nb.notebook import settings
from adk_nb.notebook.chat.chat import Chat
from adk_nb.notebook.chat.reply import Reply
from adk_nb.notebook.view.rows import RunRows
from adk_nb.notebook.view.spending import Cost, Meter
from tests.notebook.conftest import Shell
from tests.support.token_counts import counted

GUIDE = """
from tests.support.token_counts import counted
from adk_nb import tool
from adk_nb.agents import Agent
from adk_nb.models import ScriptedLlm, call

@tool(confirm=True)
def look() -> str:
    'Looks.'
    return 'seen'

def dear(*said, model='gemini-2.5-flash'):
    return Agent(name='dear', tools=[look], model=ScriptedLlm(*(counted(one, model=model) for one in said)))

guide = dear(call('look'), 'done', 'and again')
"""
"""Each answer costs $0.55."""


def asked(*answers: Any, model: Any = None) -> Reply:
    return Chat(LlmAgent(name="guide", model=model or ScriptedLlm(*answers)), show="off").ask("hello")


def test_a_turn_tells_its_tokens_and_what_they_cost():
    reply = asked(counted("hi", input=1204, output=96, cached=800, thoughts=40))

    usage = reply.usage
    assert (usage.model_calls, usage.input_tokens, usage.output_tokens) == (1, 1204, 96)
    assert (usage.cached_tokens, usage.thoughts_tokens, usage.total_tokens) == (800, 40, 1340)
    assert usage.summary() == "1 model call · 1,204 tokens in (cached 800) / 96 out + 40 thinking"
    assert reply.cost.usd == pytest.approx(404 * 0.3e-6 + 800 * 0.03e-6 + 136 * 2.5e-6)
    assert (str(reply.cost), reply.cost.models) == ("≈ $0.0005", ("gemini-2.5-flash",))


@pytest.mark.parametrize("model", ["my-own", "deepseek-r1:8b"])
def test_what_a_model_of_one_s_own_costs_is_not_known(model: str):
    cost = asked(counted("hi", model=model)).cost

    assert (cost.usd, str(cost)) == (None, f"unknown price ({model})")


def test_an_answer_that_names_no_model_costs_what_the_model_costs_that_was_asked():
    unnamed = ScriptedLlm(counted("hi", model=None), model="gemini-2.5-flash")

    assert asked(model=unnamed).cost == asked(counted("hi")).cost


def test_a_limit_holds_where_answers_name_no_model(shell: Shell):
    shell.cell(GUIDE)
    shell.cell("unnamed = ScriptedLlm(counted(call('look'), model=None), 'done', model='gemini-2.5-flash')")
    shell.cell("guide = Agent(name='guide', tools=[look], model=unnamed)")
    shell.broke_off("%chat --max-cost 0.5 --yes guide hello")

    assert (shell.names["_run"].error or "").partition(":")[0] == "MAX_COST"


def test_a_turn_without_counts_costs_nothing_that_could_be_told():
    reply = asked("hi")

    assert (reply.usage.summary(), str(reply.cost), reply.cost) == ("", "", Cost())


def test_a_replay_tells_the_tokens_of_the_recording_and_costs_nothing_now(tmp_path: Path):
    path = tmp_path / "tape.jsonl"
    first = asked(model=RecordedLlm(path, record=ScriptedLlm(counted("hi"))))

    again = asked(model=RecordedLlm(path))

    assert (again.usage, again.cost.usd, str(again.cost)) == (first.usage, 0, "replay, $0 now")
    assert str(first.cost) == "≈ $0.550"


def test_a_footer_adds_up_the_run_and_the_session_before_it():
    before = asked(counted("hi", input=1000, output=10)).events
    meter = Meter(before, limit=2.0)
    told = [meter.feed(event) for event in asked(counted("a"), counted("b")).events]

    assert [one and one["text"] for one in told] == [
        None,
        "1 model call · 1,000,000 tokens in / 100,000 out · ≈ $0.550 · gemini-2.5-flash"
        " · session 1,101,010 tokens, ≈ $0.550",
    ]
    title = (told[1] or {})["title"]
    assert title.startswith("An estimate: prices of genai-prices ") and "cost $2.00" in title


def test_a_limit_that_cannot_hold_is_told_in_the_footer():
    meter = Meter((), limit=0.1)
    told = [meter.feed(event) for event in asked(counted("hi", model="my-own")).events]

    assert "limit of $0.100 does" in (told[1] or {})["title"]


def test_without_the_table_there_are_tokens_and_one_hint(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    monkeypatch.setattr(Meter, "hinted", False)
    [_, event] = asked(counted("hi", input=10, output=5)).events

    first, second = Meter((), None).feed(event), Meter((), None).feed(event)

    assert first and second
    tokens = "1 model call · 10 tokens in / 5 out"
    hint = "%pip install genai-prices tells what answers cost"
    assert (first["text"], second["text"]) == (f"{tokens} · {hint}", tokens)
    assert second["title"] == hint
    with pytest.raises(ImportError, match="type: %pip install"):
        _ = asked(counted("hi")).cost


def test_a_row_tells_the_tokens_of_its_event_and_a_saved_one_does_not():
    [_, event] = asked(counted("hi", input=1204, output=96)).events
    live = RunRows().feed(event)

    assert live[-1]["usage"] == {
        "text": "1,300 tok",
        "title": "1,204 tokens in / 96 out · ≈ $0.0006 · gemini-2.5-flash",
    }
    assert all("usage" not in op for op in RunRows(live=False).feed(event))


def test_a_turn_stops_at_the_limit_of_its_line_also_after_an_approval(shell: Shell):
    shell.cell(GUIDE)
    reply = shell.broke_off("%chat --max-cost 0.5 --yes guide hello")

    assert (reply.status, (reply.error or "").partition(":")[0]) == ("error", "MAX_COST")
    assert len(shell.names["guide"].model.requests) == 1

    shell.cell("%chat guide go on")
    assert shell.names["_run"].text == "done"


def test_words_that_are_refused_while_an_approval_is_open_do_not_lift_its_limit(shell: Shell):
    shell.cell(GUIDE)
    shell.cell("%chat --max-cost 0.5 guide hello")

    assert "approval is open" in shell.fails("%chat guide what is it?")
    shell.broke_off("%confirm --yes")

    assert (shell.names["_run"].error or "").partition(":")[0] == "MAX_COST"
    assert len(shell.names["guide"].model.requests) == 1


def test_the_limit_of_the_notebook_holds_for_each_turn_and_can_be_taken_back(shell: Shell):
    shell.cell(GUIDE)
    shell.cell("%config AdkNb.max_cost_usd = 0.5")
    shell.broke_off("%chat --yes guide hello")
    assert "about $0.5500" in shell.names["_run"].error

    shell.cell("%config AdkNb.max_cost_usd = None")
    shell.cell("%chat --yes guide hello")
    assert shell.names["_run"].text == "done"


def test_a_limit_that_does_not_hold_is_said_with_the_reply(shell: Shell):
    shell.cell(GUIDE + "\nown = dear('hi', model='my-own')")
    shell.cell("%chat --max-cost 0.5 own hello")

    assert "limit of $0.500 does" in shell.printed.rstrip()


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        (
            "%chat --max-cost free guide hi",
            "--max-cost: … US dollars, … 0.10, got 'free'",
        ),
        ("%chat --max-cost -1 guide hi", "--max-cost"),
        ("%chat --maxcost 1 guide hi", "did you mean --max-cost?"),
        ("Chat(guide).ask('hi', max_cost=0)", "max_cost … positive … got 0"),
    ],
)
def test_a_limit_that_is_none_is_refused(shell: Shell, cell: str, told: str):
    shell.cell(GUIDE + "from adk_nb.notebook.chat.chat import Chat")

    assert mentions(shell.fails(cell), told)
    assert shell.names["guide"].model.requests == []


def test_a_limit_of_the_notebook_that_nothing_could_be_held_to_is_refused(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    shell.cell("%config AdkNb.max_cost_usd = 0")
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    shell.cell("%config AdkNb.max_cost_usd = 0.5")

    assert [record.getMessage() for record in caplog.records] == [
        "max_cost_usd must be a positive number, or None for no limit, got 0.0",
        "'genai_prices' is not installed; type: %pip install genai-prices",
    ]
    assert settings.now.max_cost_usd is None
