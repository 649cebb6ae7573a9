"""A chat box in a real kernel: what is typed in a page is said beside the cells, and the reply is `_run`."""

import pytest
from kernel import Kernel

pytestmark = pytest.mark.kernel

CELLS = """
%load_ext adk_nb
from adk_nb import tool
from adk_nb.agents import Agent
from adk_nb.models import ScriptedLlm, call
import threading

@tool(confirm=True)
def pay(amount: int) -> str:
    'Pays.'
    print("paid on", threading.current_thread() is threading.main_thread())
    return f"paid {amount}"

payer = Agent(name="payer", model=ScriptedLlm("Hello!", call("pay", amount=5), "All settled."), tools=[pay])
"""


def test_what_is_typed_is_said_and_goes_on_from_a_click(kernel: Kernel):
    kernel.run(CELLS)
    box = kernel.run("%chat payer")
    kernel.until(lambda: bool(kernel.views), "the view of the box")
    view = kernel.views[-1]

    kernel.tell(view, kind="ask", text="Hi")
    kernel.until(lambda: any("payer > Hello!" in one for one in kernel.updates), "the first answer")
    kernel.tell(view, kind="ask", text="Pay.")
    kernel.click(kernel.card("pay"), decision="approve")
    kernel.until(lambda: any("All settled." in one for one in kernel.updates), "the second answer")

    assert kernel.run("print(_run.text)").text == "All settled."
    assert "paid on" in box.printed
    said = kernel.run("[event.text for event in get_ipython().adk_nb.sessions.events() if event.text]").text
    assert said == "['Hi', 'Hello!', 'Pay.', 'All settled.']"
    kernel.tell(view, kind="ask", text="{{nobody}}")
    kernel.until(lambda: any("nobody" in str(row.get("text")) for row in kernel.rows), "why it cannot be said")
