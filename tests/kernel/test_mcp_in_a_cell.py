"""MCP servers in a real kernel, whose stderr is no file and whose reader can be asked."""

import sys
from pathlib import Path

import pytest
from kernel import Kernel
from talkers import SETUP

pytestmark = pytest.mark.kernel

SERVERS = Path(__file__).parents[1] / "tools"
CONNECT = f"""
from adk_nb.tools.mcp_tool import McpToolset, StdioConnectionParams, StdioServerParameters
def server(*args):
    program = StdioServerParameters(command={sys.executable!r}, args=[*args])
    return McpToolset(connection_params=StdioConnectionParams(server_params=program, timeout=60))
"""


@pytest.mark.kernel_all
def test_a_program_is_started_and_called_and_the_last_words_of_another_are_told(kernel: Kernel):
    kernel.run(SETUP + CONNECT)
    kernel.run(f"program = server({str(SERVERS / 'mcp_server.py')!r})")
    kernel.run("keeper = Agent(name='keeper', model=Calls(call('add', a=2, b=3), 'five'), tools=[program])")

    shown = kernel.run("print(Chat(keeper).ask('2 + 3?').text)")
    loud = kernel.run(
        "bad = server('-c', 'import sys; sys.exit(\"no settings\")')\ntry: sync.run(bad.get_tools())\n"
        "except ConnectionError as error: print(error)"
    )

    kernel.run("sync.run(program.close())")
    assert shown.printed == "five\n"
    assert kernel.run("print(requests[-1][-1].parts[0].function_response.response['structuredContent'])").printed == (
        "{'result': 5}\n"
    )
    assert loud.printed.endswith("it said: no settings\n")


def test_a_server_that_is_not_there_is_one_row_of_the_reply(kernel: Kernel):
    kernel.run(SETUP)
    kernel.run("%load_ext adk_nb\n%tool docs --mcp http://127.0.0.1:9/mcp")
    kernel.run("reader = Agent(name='reader', model=Calls('I cannot look.', 'Nor now.'), tools=[docs])")

    for mode in ("static", "widget"):
        shown = kernel.run(f"Chat(reader, show={mode!r}).ask('Look it up.')")

        row = "agent 'reader' goes on without the tools of McpToolset: the MCP server 'http://127.0.0.1:9/mcp' was not"
        assert shown.complained == ""
        assert shown.text.count(row) == 1


def test_what_a_server_asks_is_typed_under_the_cell(kernel: Kernel):
    kernel.run(SETUP + CONNECT)
    kernel.run(f"program = server({str(SERVERS / 'hostile_mcp_server.py')!r}, 'asks')")
    kernel.run("payer = Agent(name='payer', model=Calls(call('pay', amount=5), 'paid'), tools=[program])")
    kernel.lines = ["y"]

    kernel.run("reply = Chat(payer).ask('pay')")

    answer = kernel.run("print(requests[-1][-1].parts[0].function_response.response['content'][0]['text'])").printed
    kernel.run("sync.run(program.close())")
    assert kernel.prompts and kernel.prompts[0].endswith(" asks: Sure?\nYes? [y/n] ")
    assert '"action": "accept"' in answer
