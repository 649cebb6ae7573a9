"""Notebooks with agents that the browser tests talk to: their models answer from a script."""

import json

WAIT_FOR = """
import pathlib, time

def wait_for(name):
    deadline = time.monotonic() + 60
    while not pathlib.Path(name).exists():
        assert time.monotonic() < deadline, f"no {name}"
        time.sleep(0.02)  # a cell or a tool that blocks until the test makes the file
"""
SETUP = (
    WAIT_FOR
    + """
%load_ext adk_nb
import asyncio, json
from adk_nb import tool
from adk_nb.agents import Agent
from adk_nb.models import ScriptedLlm, call
from adk_nb.notebook.chat.chat import Chat

ran = []

@tool
def look(city: str) -> dict:
    'Looks out of the window.'
    wait_for("go")
    return {"city": city, "temp_c": 9}

@tool(confirm=True)
def refund(order: str, amount: float) -> str:
    'Pays money back.'
    ran.append((order, amount))
    print("paid", amount)
    return f"paid {amount} for {order}"

@tool(confirm=True)
def refund_slowly(order: str) -> str:
    'Pays money back when there is a go.'
    wait_for("go")
    return "paid at last"

def told(model):
    'What a model was last sent of a call.'
    return model.requests[-1].contents[-1].parts[0].function_response.response
"""
)
PAYING = """
model = ScriptedLlm(call("refund", order="A17", amount=250.0), "All **settled**.")
payer = Agent(name="payer", model=model, tools=[refund])
"""
"""An agent that wants to pay, and then says that all is settled."""
ASK = "%chat payer Please pay me back."
NOTES = "print(json.dumps([ran, told(model)]))"
SLOW = """
from adk_nb import types
from adk_nb.models import BaseLlm, LlmResponse

class Slow(BaseLlm):
    'Streams a word every 20 ms.'
    async def generate_content_async(self, llm_request, stream=False):
        for number in range(3_000):
            part = types.Part(text=f"word{number} ")
            yield LlmResponse(content=types.Content(role="model", parts=[part]), partial=True)
            await asyncio.sleep(0.02)

slow = Agent(name="slow", model=Slow(model="slow"))
"""
COUNT = """
from ipykernel.comm.comm import BaseComm
counted, publish = [], BaseComm.publish_msg

def counting(self, *said, **named):
    counted.append(said)
    return publish(self, *said, **named)

BaseComm.publish_msg = counting
"""
"""From here on every message of a widget is counted."""
HOSTILE = (
    "<img src=x onerror=alert(1)> </script><script>alert(2)</script> [x](javascript:alert(3)) "
    "\x1b[31mred\x1b[0m \x1b]8;;javascript:alert(4)\x07link\x1b]8;;\x07 $\\href{javascript:alert(5)}{x}$ \"'`"
)


def hostile_cells() -> list[str]:
    """A conversation in which everybody says nothing but `HOSTILE`; the last cell ends with a card."""
    return [
        f"H = json.loads({json.dumps(HOSTILE)!r})",
        """
from adk_nb.tools import FunctionTool, ToolContext

def echo(said: dict, tool_context: ToolContext) -> dict:
    tool_context.state[H] = {H: [H]}
    return {H: [said, H]}

def fail(said: str) -> str:
    raise ValueError(H)

def careful(said: str, tool_context: ToolContext) -> str:
    if tool_context.tool_confirmation is None:
        tool_context.request_confirmation(hint=H, payload={H: H})
        return H
    raise ValueError(H)

echo, fail = FunctionTool(echo, name=H, description=H), FunctionTool(fail, description=H)
tools = [echo, fail, careful]
calls = [call(H, said={H: H}), call("fail", said=H), call("<b onclick=alert(1)>", said=H), call("careful", said=H)]
calls = [H + " ", H] + calls
talker = Agent(name="talker", description=H, instruction="x", model=ScriptedLlm(calls[:2] + calls[2:5], H), tools=tools)
raiser = Agent(name="raiser", model=ScriptedLlm(RuntimeError(H)))
asker = Agent(name="asker", model=ScriptedLlm(calls[:2] + calls[5:], H), tools=tools)
""",
        f"%%chat --raw talker\n{HOSTILE}",
        f"%%chat --raw raiser\n{HOSTILE}",
        "%tools",
        "%tools --schema fail",
        "%agents",
        "%trace",
        "%state",
        f"%%chat --raw asker\n{HOSTILE}",
    ]
