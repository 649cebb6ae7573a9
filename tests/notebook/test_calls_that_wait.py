"""An answer for the calls of many rows covers the calls that were listed, each with its own arguments."""

import pytest

from adk_nb.notebook.extensions.evaluation import approvals as evaluation_approvals
from tests.notebook.conftest import Shell

CLERK = '''
from adk_nb import Agent, tool, types
from adk_nb.models.llm_response import LlmResponse

paid = []

@tool(confirm=True)
def pay(to: str, amount: float) -> str:
    "Pay a person."
    paid.append((to, amount))
    return "paid"

def answer(callback_context, llm_request):
    """Pay what the message says; after `then`, one more."""
    first, *more = llm_request.contents[0].parts[0].text.split(" then ")
    done = sum(bool(part.function_response) for content in llm_request.contents for part in content.parts)
    left = [first, *more][done:]
    part = types.Part(text="Done.")
    if left:
        to, amount = left[0].split()
        part = types.Part(function_call=types.FunctionCall(name="pay", args={"to": to, "amount": float(amount)}))
    return LlmResponse(content=types.Content(role="model", parts=[part]))

clerk = Agent(name="clerk", model="gemini-2.5-flash", tools=[pay], before_model_callback=answer)
'''
MAP = '%map clerk --over rows --message "{{message}}"'


@pytest.fixture
def clerk(shell: Shell) -> Shell:
    """A shell with an agent that pays what it is told."""
    shell.cell(CLERK)
    return shell


def _listed(shell: Shell, run: str, messages: list[str]) -> list[str]:
    """The rows of the list of calls that a cell shows."""
    if run == "map":
        shell.cell(f"rows = [{{'n': n, 'message': m}} for n, m in enumerate({messages})]")
        shell.cell(MAP)
    else:
        shell.cell(f"cases = [{{'id': str(n), 'message': m}} for n, m in enumerate({messages})]")
        shell.cell("%eval clerk --cases cases")
    return [line for line in shell.printed.splitlines() if '"' in line]


@pytest.mark.parametrize("run", ["map", "eval"])
def test_every_kind_of_call_is_listed_with_its_count_and_the_odd_one_first(clerk: Shell, run: str) -> None:
    messages = ["ada 5", "ada 5.0", "mallory 90000", "ada  5"]
    first, second = _listed(clerk, run, messages)
    assert "mallory" in first and "90000" in first and first.split()[0].strip("|") in ("1", "")
    assert "ada" in second and "3" in second
    clerk.cell(f"%{run} approve pay")
    assert sorted(clerk.names["paid"]) == [("ada", 5.0)] * 3 + [("mallory", 90000.0)]


@pytest.mark.parametrize("run", ["map", "eval"])
def test_a_call_that_came_after_the_list_is_listed_before_it_is_approved(clerk: Shell, run: str) -> None:
    _listed(clerk, run, ["ada 5 then mallory 90000", "bob 5"])
    clerk.cell(f"%{run} approve pay")
    assert "90000" in clerk.printed  # asked for by the row that ran on, and listed
    assert sorted(clerk.names["paid"]) == [("ada", 5.0), ("bob", 5.0)]
    clerk.cell(f"%{run} approve pay")
    assert clerk.names["paid"][-1] == ("mallory", 90000.0)


def test_what_was_not_listed_is_listed_first_and_then_approved(clerk: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation_approvals, "MOST_LISTED", 1)
    _listed(clerk, "map", ["ada 5", "mallory 90000"])
    assert "90000" in clerk.printed and '"ada"' not in clerk.printed
    clerk.cell("%map approve pay")
    assert '"ada"' in clerk.printed and clerk.names["paid"] == []
    clerk.cell("%map approve pay")
    assert len(clerk.names["paid"]) == 2


def test_the_run_of_each_call_says_what_was_approved_in_it_and_how(clerk: Shell) -> None:
    _listed(clerk, "eval", ["ada 5", "mallory 90000"])
    clerk.cell("%eval approve pay")
    clerk.cell("reply = %eval open 1")
    shown = str(clerk.names["reply"])
    assert 'amount=90000.0, to="mallory"' in shown or 'to="mallory", amount=90000.0' in shown
    assert "ada" not in shown and "%eval approve" in shown


@pytest.mark.parametrize("run", ["map", "eval"])
def test_a_payment_that_is_repeated_is_listed_with_what_it_did(clerk: Shell, run: str) -> None:
    _listed(clerk, run, ["ada 5 then ada 5", "bob 5"])
    clerk.cell(f"%{run} approve pay")
    assert "already ran in this turn" in clerk.printed and '"paid"' in clerk.printed
    assert sorted(clerk.names["paid"]) == [("ada", 5.0), ("bob", 5.0)]


@pytest.mark.parametrize("run", ["map", "eval"])
def test_no_call_is_made_of_a_tool_that_the_agent_does_not_have_any_more(clerk: Shell, run: str) -> None:
    _listed(clerk, run, ["ada 5"])
    clerk.cell('clerk = Agent(name="clerk", model="gemini-2.5-flash", before_model_callback=answer)')
    assert f"clerk has no tool pay any more; give it back to the agent, or type %{run} reject pay" in clerk.fails(
        f"%{run} approve pay"
    )
    assert clerk.names["paid"] == []
    clerk.cell('clerk = Agent(name="clerk", model="gemini-2.5-flash", tools=[pay], before_model_callback=answer)')
    clerk.cell(f"%{run} approve pay")
    assert clerk.names["paid"] == [("ada", 5.0)]
