"""Notebooks that are exported in tests, what their model says, and what is said to them."""

from dataclasses import dataclass, field
from typing import Any

from adk_nb import types
from adk_nb.models import BaseLlm, LLMRegistry, LlmResponse
from tests.peers.told_exported import heard

MODEL = "told-by-the-test"
Answer = str | list[tuple[str, dict[str, Any]]]
"""Words, or calls."""


class Told(BaseLlm):
    """Answers what the test says, whichever agent asks."""

    @classmethod
    def supported_models(cls) -> list[str]:
        return [MODEL]

    async def generate_content_async(self, llm_request: Any, stream: bool = False):
        answer = ANSWERS.pop(0)
        said: list[Answer] = [answer] if isinstance(answer, str) else [*answer]
        parts = [types.Part(text=one) if isinstance(one, str) else _call(*one) for one in said]
        yield LlmResponse(content=types.Content(role="model", parts=parts))


ANSWERS: list[Answer] = []
LLMRegistry.register(Told)


def _call(name: str, args: dict[str, Any]) -> types.Part:
    return types.Part(function_call=types.FunctionCall(name=name, args=args))


@dataclass(frozen=True)
class Notebook:
    """Cells, then a conversation with the root agent."""

    cells: list[str]
    answers: list[Answer]
    messages: list[str | bool] = field(default_factory=lambda: ["hi"])
    """What the user says; True and False answer an approval."""
    state: dict[str, Any] = field(default_factory=dict[str, Any])


TOOLS = '''%%tool --confirm "amount > 100" --timeout 5
import math

def refund(order: str, amount: float = 500) -> dict:
    """Refunds an order."""
    return {"order": order, "euros": math.floor(_in_euros(amount))}

def _in_euros(amount):
    return amount * RATES["USD"]
'''
NOTEBOOKS = {  # the names are those of packages
    "tools": Notebook(
        [
            "# euros\nRATES = {'USD': 1}\nRATES['USD'] = 0.9",
            TOOLS,
            "from adk_nb import tool\nfrom adk_nb.tools import ToolContext",
            '@tool(name="note_down")\ndef note(text: str, tool_context: ToolContext) -> str:\n    """Notes."""\n'
            '    tool_context.state["noted"] = text\n    return "noted"',
            f"%%agent desk -m {MODEL} -t refund,note_down --output-key last\nHelp {{user:name?}}.",
        ],
        [
            [("refund", {"order": "7", "amount": 20}), ("note_down", {"text": "seven"})],
            "Done.",
            [("refund", {"order": "8", "amount": 200})],
            "Refunded.",
            [("refund", {"order": "9", "amount": 300})],
            "Not refunded.",
        ],
        ["Refund 7", "And 8", True, "And 9", False],
    ),
    "braces": Notebook(
        [
            "city = 'Oslo'",
            f'%%agent guide -m {MODEL}\nIn {{{{city}}}}, for {{budget}} euros, {{count}} times, as {{"a": {{}}}}.',
        ],
        ["Fine."],
        state={"budget": 400},
    ),
    "hand_over": Notebook(
        [
            f'%%agent clerk -m {MODEL} --description "Books."\nBook.',
            f"%%agent desk -m {MODEL} --sub clerk --root\nHand over.",
        ],
        [[("transfer_to_agent", {"agent_name": "clerk"})], "Booked.", "Again."],
        ["Book", "Book again"],
    ),
    "called": Notebook(
        [
            f'%%agent expert -m {MODEL} --mode single_turn --description "Knows."\nKnow.',
            f"%%agent desk -m {MODEL} --sub expert --root\nAsk.",
        ],
        [[("expert", {"request": "Where?"})], "Oslo.", "It is Oslo."],
    ),
    "in_a_row": Notebook(
        [
            f"%%agent draft -m {MODEL} --output-key text\nWrite.",
            f"%%agent critic -m {MODEL}\nJudge {{text}}.",
            "%%agent pipeline --kind sequential --root\ndraft -> critic",
        ],
        ["A text.", "Good."],
    ),
    "a_loop": Notebook(
        [
            '%%tool\ndef score(points: int, tool_context):\n    """Scores."""\n'
            '    tool_context.state["score"] = points\n    return points',
            f"%%agent writer -m {MODEL}\nWrite.",
            f"%%agent critic -m {MODEL} -t score\nScore.",
            "%%agent refine --kind loop --max-iterations 4 --root\nwriter -> critic\n"
            "until: session_state.get('score', 0) >= 8",
        ],
        ["One.", [("score", {"points": 3})], "Bad.", "Two.", [("score", {"points": 9})], "Good."],
    ),
    "a_graph": Notebook(
        [
            f"%%agent draft -m {MODEL}\nWrite.",
            f"%%agent review -m {MODEL}\nSay ok or revise.",
            "%%workflow write --root\nSTART -> draft -> review\nreview -[revise]-> draft\nreview -[ok]-> END",
        ],
        ["One.", "Revise it.", "Two.", "OK."],
    ),
    "functions": Notebook(
        [
            "def sort(node_input: str):\n    from adk_nb import Event\n"
            "    return Event(route='bug' if 'bug' in node_input else 'else', output=node_input)",
            "def note(node_input: str) -> str:\n    return 'noted ' + node_input",
            f"%%agent mend -m {MODEL}\nMend.",
            "%%workflow triage --root\nSTART -> sort\nsort -[bug, fault]-> note\nsort -[*]-> mend\nnote -> mend",
        ],
        ["Mended."],
        ["a bug"],
    ),
    "returned_routes": Notebook(
        [
            "def size(node_input: str) -> str:\n    return 'long' if len(node_input) > 3 else 'short'",
            "async def tone(node_input: str):\n    return node_input == 'long'",
            f"%%agent one -m {MODEL}\nOne.",
            f"%%agent two -m {MODEL}\nTwo.",
            "%%workflow flow --root\nSTART -> size\nsize -[long]-> tone\nsize -[*]-> one\n"
            "tone -[True]-> two\ntone -[False]-> one",
        ],
        ["Two here."],
        ["12345"],
    ),
    "made_in_python": Notebook(
        [
            "from adk_nb.agents import LlmAgent\nfrom adk_nb.tools import AgentTool",
            "def greet(callback_context):\n    callback_context.state['greeted'] = True",
            f'expert = LlmAgent(name="expert", description="Knows.", model="{MODEL}", instruction="Know.")',
            f'desk = LlmAgent(name="desk", model="{MODEL}", instruction="Ask.", max_iterations=3,\n'
            "    tools=[AgentTool(agent=expert)], before_agent_callback=greet)",
            f"%%agent other -m {MODEL}\nNobody asks me.",
            f"%%agent boss -m {MODEL} --sub desk --root\nLead.",
        ],
        [[("transfer_to_agent", {"agent_name": "desk"})], [("expert", {"request": "Where?"})], "Oslo.", "It is Oslo."],
    ),
}


def told_in_the_notebook(shell: Any, notebook: Notebook) -> list[dict[str, Any]]:
    """Run the cells and hold the conversation; what the session tells."""
    for cell in notebook.cells:
        shell.cell(cell)
    for key, value in notebook.state.items():
        shell.cell(f"%state {key}={value}")
    ANSWERS[:] = notebook.answers
    for message in notebook.messages:
        if isinstance(message, bool):
            shell.cell(f"%confirm --{'yes' if message else 'no'}")
        else:
            shell.cell(f"%chat -q -- {message}")
    assert not ANSWERS
    return heard(shell.ip.adk_nb.sessions.events())


def forget(shell: Any) -> None:
    """Make a new notebook of the shell's."""
    del shell.ip.adk_nb
    shell.ip.reset()
    shell.cell("%reload_ext adk_nb")
