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
