"""Runs the same teams in resumable apps of google-adk or adk_nb and prints their marks: python told_marks.py PACKAGE.

Told is, an event each: who, on which branch, where it stands or that it has ended, and what it says. What agents say at
the same time is told branch by branch.
"""

import asyncio
import importlib
import json
import sys
import warnings
from types import SimpleNamespace
from typing import Any

from told import content, said, scripted  # pyright: ignore[reportImplicitRelativeImport]


def load(package: str) -> SimpleNamespace:
    def get(module: str, name: str) -> Any:
        return getattr(importlib.import_module(f"{package}.{module}"), name)

    agents = ("LlmAgent", "SequentialAgent", "LoopAgent", "ParallelAgent")
    kit = SimpleNamespace(
        types=importlib.import_module("google.genai.types" if package == "google.adk" else f"{package}.types"),
        BaseLlm=get("models", "BaseLlm"),
        LlmResponse=get("models", "LlmResponse"),
        Runner=get("runners", "Runner"),
        InMemorySessionService=get("sessions", "InMemorySessionService"),
        App=get("apps", "App"),
        ResumabilityConfig=get("apps", "ResumabilityConfig"),
        FunctionTool=get("tools", "FunctionTool"),
        LongRunningFunctionTool=get("tools", "LongRunningFunctionTool"),
        exit_loop=get("tools.exit_loop_tool", "exit_loop"),
        **{name: get("agents", name) for name in agents},
    )
    kit.Scripted = scripted(kit)
    return kit


def seen(event: Any) -> dict[str, Any]:
    told = {
        "author": event.author,
        "branch": event.branch,
        "stands": event.actions.agent_state,
        "ends": bool(event.actions.end_of_agent),
        "said": said(event.content) if event.content else None,
    }
    return {key: value for key, value in told.items() if value not in (None, False)}


def ask() -> None:
    """Asks."""


def pay(n: int) -> str:
    """Pays."""
    return f"paid {n}"


class Teams:
    def __init__(self, kit: SimpleNamespace) -> None:
        self.kit = kit

    def agent(self, name: str, *answers: Any, **fields: Any) -> Any:
        model = self.kit.Scripted(model="scripted", answers=list(answers), asked=[], told=[])
        return self.kit.LlmAgent(name=name, model=model, **fields)

    def asks(self, name: str, *answers: Any) -> Any:
        return self.agent(name, [("ask", {})], *answers, tools=[self.kit.LongRunningFunctionTool(ask)])

    def pays(self, name: str, *answers: Any) -> Any:
        tool = self.kit.FunctionTool(pay, require_confirmation=True)
        return self.agent(name, [("pay", {"n": 1})], *answers, tools=[tool])

    def sequence(self, *agents: Any) -> Any:
        return self.kit.SequentialAgent(name="seq", sub_agents=list(agents))

    def loop(self, *agents: Any, **fields: Any) -> Any:
        return self.kit.LoopAgent(name="loop", sub_agents=list(agents), **fields)

    def at_once(self, *agents: Any) -> Any:
        return self.kit.ParallelAgent(name="par", sub_agents=list(agents))

    def leaves(self, name: str, *answers: Any) -> Any:
        return self.agent(name, *answers, [("exit_loop", {})], tools=[self.kit.exit_loop])


async def converse(kit: SimpleNamespace, root: Any) -> list[list[dict[str, Any]]]:
    """Each turn's events: of the first words, of an answer to each question, and of going on with what is done."""
    app = kit.App(name="peers", root_agent=root, resumability_config=kit.ResumabilityConfig(is_resumable=True))
    service = kit.InMemorySessionService()
    runner = kit.Runner(app=app, session_service=service)
    session = await service.create_session(app_name="peers", user_id="u")
    where = {"user_id": "u", "session_id": session.id}
    turns: list[list[dict[str, Any]]] = []
    invocations: set[str] = set()

    async def turn(**said: Any) -> list[Any]:
        events = [event async for event in runner.run_async(**where, **said)]
        invocations.update(event.invocation_id for event in events)
        turns.append(sorted(map(seen, events), key=lambda one: one.get("branch", "")) if events else [])
        return events

    asked = await turn(new_message=content(kit, "go", "user"))
    while waiting := [
        one for event in asked for one in event.get_function_calls() if one.id in (event.long_running_tool_ids or ())
    ]:
        asked = []
        for one in waiting:
            response = {"confirmed": True} if one.name.startswith("adk_") else {"r": 1}
            answer = kit.types.FunctionResponse(id=one.id, name=one.name, response=response)
            parts = [kit.types.Part(function_response=answer)]
            asked += await turn(new_message=kit.types.Content(role="user", parts=parts))
    assert len(invocations) == 1, invocations
    if not isinstance(root, kit.LlmAgent):  # of one that is alone and done google-adk asks the model again
        assert not await turn(invocation_id=invocations.pop())
    return turns


async def tell(kit: SimpleNamespace) -> dict[str, Any]:
    on = Teams(kit)
    teams = {
        "one that waits for a yes": on.pays("y", "y done"),
        "a sequence that waits for an outcome": on.sequence(
            on.agent("x", "x out"), on.asks("y", "y done"), on.agent("z", "z out")
        ),
        "a sequence that waits for a yes": on.sequence(on.pays("y", "y done"), on.agent("z", "z out")),
        "a loop that waits": on.loop(on.asks("y", "y1", "y2"), on.agent("z", "z1", "z2"), max_iterations=2),
        "a loop that is left": on.loop(on.agent("x", "x1", "x2"), on.leaves("y", "y1"), on.agent("z", "z1")),
        "several at once of which two wait": on.at_once(on.asks("a", "a1"), on.agent("b", "b1"), on.pays("c", "c1")),
        "one inside the other": on.sequence(
            on.loop(on.at_once(on.asks("a", "a1", "a2"), on.agent("b", "b1", "b2")), max_iterations=2),
            on.agent("z", "z out"),
        ),
    }
    return {name: await converse(kit, team) for name, team in teams.items()}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(asyncio.run(tell(load(sys.argv[1])))))
