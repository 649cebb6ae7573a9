"""The card of an evaluation: one click answers all approvals that are alike."""

import pytest
from hands import card, press, says, within
from lab import Lab

pytestmark = [pytest.mark.browser, pytest.mark.browser_all]

AGENT = '''
from adk_nb import Agent, types
from adk_nb.models.llm_response import LlmResponse
from adk_nb.tools.function_tool import FunctionTool

paid = []

def pay(amount: int) -> str:
    """Pay an amount."""
    paid.append(amount)
    return "done"

def answer(callback_context, llm_request):
    last = llm_request.contents[-1].parts[-1]
    if last.function_response:
        part = types.Part(text=f"Paid {len(paid)}.")
    else:
        part = types.Part(function_call=types.FunctionCall(name="pay", args={"amount": int(last.text.split()[-1])}))
    return LlmResponse(content=types.Content(role="model", parts=[part]))

clerk = Agent(name="clerk", model="gemini-2.5-flash", tools=[FunctionTool(pay, require_confirmation=True)],
              before_model_callback=answer)
'''
CASES = "%%eval clerk\n| id | message | answer |\n| --- | --- | --- |\n| a | Pay 1 | Paid |\n| b | Pay 2 | Paid |"


def test_one_click_answers_the_approvals_of_all_runs(lab: Lab):
    page = lab.open(lab.write("evaluation.ipynb", "%load_ext adk_nb", AGENT, CASES, "sorted(paid)", "%eval open a"))
    for cell in range(3):
        page.run_cell(cell)
    says(page, 2, "%eval approve pay")
    page.screenshot("evaluation-card")

    press(page, 2, "Approve 2 calls")
    says(page, 2, "2 of 2 cases passed")
    assert "blocking call" not in page.text(2)
    page.run_cell(3)
    assert page.text(3) == "[1, 2]"
    page.run_cell(4)
    says(page, 4, "used pay")
    page.screenshot("evaluation-run")


def test_an_answer_that_is_typed_closes_the_card(lab: Lab):
    page = lab.open(lab.write("evaluation.ipynb", "%load_ext adk_nb", AGENT, CASES, "%eval reject pay"))
    for cell in range(4):
        page.run_cell(cell)
    says(page, 2, "You rejected")
    says(page, 3, "2 of 2 cases passed")  # the agent answers a rejection in the same words
    assert not within(page, 2, ".adknb-button")


def test_what_is_not_ticked_stays_open_on_a_card_of_its_own(lab: Lab):
    messages = [f"Pay {5 if n % 3 else 7000 + n}" for n in range(24)]
    rows = f"rows = [{{'n': n, 'message': m}} for n, m in enumerate({messages})]"
    ask = '%map clerk --over rows --message "{{message}} "'
    page = lab.open(lab.write("table.ipynb", "%load_ext adk_nb", AGENT, rows, ask, "sorted(paid)", "%map approve pay"))
    for cell in range(4):
        page.run_cell(cell)
    page.until(lambda: within(page, 3, ".adknb-alike"), "the table of calls")
    lines = [line.text for line in within(page, 3, ".adknb-alike tbody tr")]
    assert "7021" in lines[0] and len(lines) == 9  # each kind once, the largest number first
    page.js("arguments[0].scrollIntoView({block: 'center'})", card(page, 3))
    page.screenshot("calls-of-a-table")
    page.theme("JupyterLab Dark")
    page.screenshot("calls-of-a-table-dark")
    page.theme("JupyterLab Light")

    within(page, 3, ".adknb-alike-search input")[0].send_keys("7021")
    assert len(within(page, 3, ".adknb-alike tbody tr")) == 1
    within(page, 3, ".adknb-alike tbody input")[0].click()
    press(page, 3, "Approve 8 calls")
    page.until(lambda: card(page, 3).text.count("7021"), "a card of what was left")
    says(page, 3, "You approved 8 calls of pay")
    page.screenshot("calls-of-a-table-left")
    page.run_cell(4)
    assert page.text(4).count("5") >= 1 and "7021" not in page.text(4)
    page.run_cell(5)
    page.run_cell(4)
    assert "7021" in page.text(4)
