"""Files and memories of a notebook: all its agents and sessions share one store of each."""

from adk_nb import Agent, Chat
from adk_nb.models import ScriptedLlm, call
from tests.notebook.conftest import Shell

NOTES = '''%%tool
async def keep(text: str, tool_context) -> str:
    """Keep a note."""
    from adk_nb import types

    await tool_context.save_artifact("user:note.txt", types.Part(text=text))
    await tool_context.add_session_to_memory()
    return "kept"

async def recall(word: str, tool_context) -> dict:
    """Read the note, and what was said before."""
    note = await tool_context.load_artifact("user:note.txt")
    found = await tool_context.search_memory(word)
    return {"note": note.text, "said": [one.content.parts[0].text for one in found.memories]}
'''


def test_what_one_agent_keeps_another_agent_finds_in_another_session(shell: Shell):
    shell.cell(NOTES)
    shell.names["writes"] = ScriptedLlm(call("keep", text="buy tea"), "done")
    shell.names["reads"] = ScriptedLlm(call("recall", word="market"), "done")
    shell.cell("%%agent writer -m writes -t keep\nBe brief.")
    shell.cell("%%agent reader -m reads -t recall\nBe brief.")

    shell.cell("%chat writer I go to the market")
    reply = shell.cell("%chat reader -s other what was it?")

    [result] = [one for event in reply.events for one in event.get_function_responses()]
    assert result.response == {"note": "buy tea", "said": ["I go to the market"]}


def test_a_result_too_long_for_the_model_is_a_file_of_the_chat():
    def table() -> list[str]:
        """A long table."""
        return ["row"] * 100_000

    reply = Chat(Agent(name="guide", model=ScriptedLlm(call("table"), "long"), tools=[table])).ask("show it")

    [event] = [event for event in reply.events if event.get_function_responses()]
    assert list(event.actions.artifact_delta.values()) == [0]
