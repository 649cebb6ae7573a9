"""What a finished turn keeps in the file beside its events: the order of its calls, and its prompts."""

import asyncio
import re
from typing import Any

from adk_nb.agents import LlmAgent, LoopAgent, ParallelAgent, SequentialAgent
from adk_nb.models import ScriptedLlm, call
from adk_nb.notebook.chat.chat import Chat
from adk_nb.notebook.chat.reply import Reply, view_of_reply
from adk_nb.notebook.view.writers.elements import visible_text


def look(city: str, tool_context: Any) -> str:
    """Looks out of the window."""
    tool_context.state["seen"] = city
    return f"sun in {city}"


def folds(reply: Reply) -> dict[str, str]:
    """Summary -> text of the folds inside that of the events."""
    html = view_of_reply(reply).saved_forms()["text/html"]
    found = re.findall(
        r"<details><summary>([^<]*)</summary>\s*<pre><code>(.*?)</code></pre>\s*</details>", html, re.DOTALL
    )
    return {visible_text(summary): visible_text(text) for summary, text in found}


def test_a_turn_keeps_the_order_of_its_calls_and_its_prompts_without_times() -> None:
    model = ScriptedLlm(call("look", city="Oslo"), "Sunny.")
    chat = Chat(LlmAgent(name="clerk", model=model, tools=[look], instruction="Answer {user:name}."))
    chat.state["user:name"] = "Ada"

    reply = chat.ask("How is Oslo?")

    order, prompts = folds(reply)["order of calls"], folds(reply)["2 prompts, shortened"]
    assert [line.split()[0] for line in order.splitlines()[:4]] == ["clerk", "scripted", "look", "scripted"]
    begun = [line.index(sign) for line, sign in zip(order.splitlines()[1:4], "█▒█", strict=True)]
    assert begun == sorted(set(begun))
    assert "Answer «Ada»." in prompts and "tools: look" in prompts and "How is Oslo?" in prompts
    assert "system: as in 1" in prompts and "sun in Oslo" in prompts
    assert not re.search(r"\d (ms|s|min)\b", order + prompts)
    assert "seen" in view_of_reply(reply).saved_forms()["text/html"].partition(">order of calls")[0]


def test_an_answer_without_calls_has_a_prompt_and_no_order() -> None:
    reply = Chat(LlmAgent(name="clerk", model=ScriptedLlm("Yes."))).ask("Well?")

    assert list(folds(reply)) == ["1 prompt, shortened"]


def race_won_by(first: str) -> Reply:
    """The turn of two agents at once, of which this one is ahead."""
    is_through = asyncio.Event()

    async def go(side: str) -> str:
        """Go on when the first one has."""
        if side == first:
            is_through.set()
        await asyncio.wait_for(is_through.wait(), 30)
        return "went"

    sides = [
        LlmAgent(name=side, model=ScriptedLlm(call("go", side=side), call("go", side=side), "There."), tools=[go])
        for side in ("left", "right")
    ]
    end = LlmAgent(name="end", model=ScriptedLlm("Both."), include_contents="none")
    return Chat(SequentialAgent(name="team", sub_agents=[ParallelAgent(name="race", sub_agents=sides), end])).ask("Go.")


def test_who_is_faster_of_those_that_work_at_once_changes_nothing() -> None:
    assert folds(race_won_by("left"))["order of calls"] == folds(race_won_by("right"))["order of calls"]


def test_a_long_turn_and_long_words_take_a_few_kilobytes() -> None:
    answers = [one for _ in range(60) for one in (call("look", city="Oslo " * 500), "so " * 3_000)]
    agent = LlmAgent(name="clerk", model=ScriptedLlm(*answers), tools=[look], instruction="long " * 5_000)
    chat = Chat(LoopAgent(name="loop", sub_agents=[agent], max_iterations=60))

    told = folds(chat.ask("words " * 5_000))

    assert told["order of calls"].endswith(" more")
    assert "… 114 more" in told["120 prompts, shortened"]
    assert sum(map(len, told.values())) < 12_000


def test_the_port_of_a_server_on_this_machine_changes_nothing() -> None:
    def turn(port: int) -> Reply:
        model = ScriptedLlm(call("look", city="Oslo"), "Sunny.")
        model.model = f"127.0.0.1:{port}/counter"
        return Chat(LlmAgent(name="clerk", model=model, tools=[look])).ask("How is Oslo?")

    assert folds(turn(81)) == folds(turn(54_321))
    assert "127.0.0.1/counter" in folds(turn(81))["order of calls"]
