"""What tools may count on in a real kernel: the thread of the cell, its connections, its context and its output."""

import pytest
from kernel import Kernel
from talkers import SETUP

pytestmark = pytest.mark.kernel


@pytest.mark.parametrize("ask", ["%chat keeper go on", "Chat(keeper).ask('go on')", "await Chat(keeper).aask('go on')"])
def test_a_tool_uses_what_a_cell_made_and_prints_into_the_cell_that_asked(kernel: Kernel, ask: str):
    kernel.run(SETUP)
    kernel.run(
        "import contextvars, sqlite3, threading\n"
        "base = sqlite3.connect(':memory:'); base.execute('create table t as select 42 as n')\n"
        "who = contextvars.ContextVar('who', default='nobody')"
    )
    kernel.run(
        "@tool\n"
        "def look() -> int:\n"
        "    'Looks.'\n"
        "    main = threading.current_thread() is threading.main_thread()\n"
        "    print('seen by', who.get(), 'in main' if main else 'elsewhere')\n"
        "    return base.execute('select n from t').fetchone()[0]\n"
        "@tool\n"
        "async def wait() -> str:\n"
        "    'Waits.'\n"
        "    await asyncio.sleep(0)\n"
        "    print('waited by', who.get())\n"
        "    return 'waited'\n"
        "keeper = Agent(name='keeper', model=Calls(call('look'), call('wait'), 'found'), tools=[look, wait])"
    )

    cell = kernel.run(f"_ = who.set('the cell')\n{ask}")

    assert cell.printed.splitlines() == ["seen by the cell in main", "waited by the cell"]
    answers = "[one[-1].parts[0].function_response.response for one in requests[1:]]"
    assert kernel.run(f"print({answers})").text == "[{'result': 42}, {'result': 'waited'}]"


NESTED = """
inner = Agent(name="inner", model=Calls("the inner answer"))
def ask() -> str:
    'Asks another agent.'
    return Chat(inner).ask("and you?").text
async def aask() -> str:
    'Asks another agent.'
    return KIND
outer = Agent(name="outer", model=Calls(call("TOOL"), "done"), tools=[ask, aask])
"""


@pytest.mark.parametrize(
    ("tool", "kind", "warns"),
    [
        ("ask", "''", False),
        ("aask", "(await Chat(inner).aask('and you?')).text", False),
        ("aask", "Chat(inner).ask('and you?').text", True),
    ],
)
def test_a_tool_asks_another_agent(kernel: Kernel, tool: str, kind: str, warns: bool):
    kernel.run(SETUP)
    kernel.run(NESTED.replace("KIND", kind).replace("TOOL", tool))

    cell = kernel.run("%chat outer go on")

    assert "outer > done" in cell.text
    assert kernel.run("print(requests[-1][-1].parts[0].function_response.response)").text == (
        "{'result': 'the inner answer'}"
    )
    assert ("await other.aask" in cell.complained) == warns
    assert bool(cell.complained) == warns


def test_a_figure_that_a_tool_gives_is_drawn_once_and_one_of_the_cell_stays(kernel: Kernel):
    kernel.run(SETUP)
    kernel.run(
        "import matplotlib.pyplot as plt\n"
        "@tool\n"
        "def draw():\n"
        "    'Draws.'\n"
        "    return plt.subplots()[0]\n"
        "painter = Agent(name='painter', model=Calls(call('draw'), 'done', call('draw'), 'done'), tools=[draw])"
    )

    given = kernel.run("%chat --static painter go on")
    beside = kernel.run("plt.subplots()\n%chat --static painter go on")

    assert ["image/png" in one.get("data", {}) for one in given.outputs].count(True) == 0
    assert ["image/png" in one.get("data", {}) for one in beside.outputs].count(True) == 1
    assert "data:image/png" in given.outputs[-1]["data"]["text/html"]


DEBUG = """
%load_ext adk_nb
from adk_nb import InMemoryRunner
@tool(confirm=True)
def pay(amount: int) -> str:
    'Pays.'
    return f'paid {amount}'
def broken(callback_context):
    raise ValueError('the till is empty')
waiter = Agent(name='waiter', model=Calls('Hello!', 'Again!', call('pay', amount=4), 'Paid.'), tools=[pay])
runner = InMemoryRunner(waiter)
failing = InMemoryRunner(Agent(name='failing', model=Calls('no'), before_agent_callback=broken))
"""


def test_run_debug_shows_the_view_and_the_reply_of_each_message(kernel: Kernel):
    kernel.run(SETUP + DEBUG)

    cell = kernel.run("events = await runner.run_debug(['hi', 'and now?'])\nprint([e.text for e in events])")

    assert cell.printed == "['Hello!', 'Again!']\n"
    assert kernel.views
    assert "Hello!" in cell.shown and "Again!" in cell.shown


def test_a_card_of_run_debug_is_answered_by_a_click(kernel: Kernel):
    kernel.run(SETUP + DEBUG)
    cell = kernel.run("events = await runner.run_debug(['hi', 'and now?', 'pay 4'])")

    kernel.click(kernel.card("pay"), decision="approve", args=None, reason=None)

    kernel.until(lambda: any("Paid." in text for text in [cell.shown, *kernel.updates]), "the answer after the click")


def test_run_debug_raises_what_a_run_raised_in_one_line(kernel: Kernel):
    kernel.run(SETUP + DEBUG)

    cell = kernel.run("await failing.run_debug('hi')", raises=True)

    assert cell.error == "ValueError"
    assert cell.traceback == "ValueError: the till is empty"


def test_run_debug_prints_where_no_view_is_wanted(kernel: Kernel):
    kernel.run(SETUP + DEBUG)
    kernel.run("from adk_nb import RunConfig\n%config AdkNb.display = 'off'")
    before = list(kernel.views)

    assert kernel.run("_ = await runner.run_debug('hi')").printed == "waiter > Hello!\n"
    kernel.run("%config AdkNb.display = 'auto'")
    assert kernel.run("_ = await runner.run_debug('hi', run_config=RunConfig())").printed == "waiter > Again!\n"
    assert kernel.views == before
