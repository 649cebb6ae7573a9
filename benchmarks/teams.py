"""Many agents in one turn: side by side, in a circle, in a row, and as nodes of a graph."""
# pyright: basic
# The package is imported by name, so nothing of it is known to the type checker.

import gc
import time
from collections import deque
from collections.abc import Callable
from importlib import import_module
from typing import Any

from benchmarks.adk_shaped import WHERE, scripted
from benchmarks.script import Script

PACKAGES = {"google-adk": "google.adk", "adk_nb": "adk_nb"}
KINDS = ("parallel", "loop", "sequence", "graph", "functions")


class Team:
    """A Runner over `n` agents of `package` that say one word each, or over a graph of `n` functions."""

    def __init__(self, package: str, kind: str, n: int):
        def get(module: str, name: str) -> Any:
            return getattr(import_module(f"{package}.{module}"), name)

        self.types: Any = import_module("google.genai.types" if package == "google.adk" else f"{package}.types")
        self._get, self.n, self.events = get, n, n
        self.model = scripted(self.types, get("models", "BaseLlm"), get("models", "LlmResponse"), Script(), deque())
        makes: dict[str, Callable[[], Any]] = {
            "parallel": lambda: get("agents", "ParallelAgent")(name="top", sub_agents=self.agents(n)),
            "loop": lambda: get("agents", "LoopAgent")(name="top", sub_agents=self.agents(1), max_iterations=n),
            "sequence": lambda: get("agents", "SequentialAgent")(name="top", sub_agents=self.agents(n)),
            "graph": self.graph,
            "functions": self.functions,
        }
        start = time.process_time()
        top = self.top = makes[kind]()
        self.built = time.process_time() - start
        self.service = get("sessions", "InMemorySessionService")()
        session_key = {"node": top} if package == "google.adk" and kind in ("graph", "functions") else {"agent": top}
        self.runner = get("runners", "Runner")(**session_key, app_name="bench", session_service=self.service)

    def agents(self, n: int) -> list[Any]:
        make = self._get("agents", "LlmAgent")
        return [make(name=f"a{number}", model=self.model, instruction="Be brief.") for number in range(n)]

    def graph(self) -> Any:
        """The agents at once, and a node that waits for all."""
        workflow = import_module(f"{self._get('workflow', 'Workflow').__module__.rpartition('.')[0]}")
        join = workflow.JoinNode(name="join")
        self.events = self.n + 1
        return workflow.Workflow(name="top", edges=[(workflow.START, tuple(self.agents(self.n)), join)])

    def functions(self) -> Any:
        """A tenth of the nodes at once, ten rows deep, and a node that waits for all."""
        workflow = import_module(f"{self._get('workflow', 'Workflow').__module__.rpartition('.')[0]}")
        join, edges = workflow.JoinNode(name="join"), []
        for row in range(self.n // 10):
            nodes = [workflow.node(passing(), name=f"n{row}_{step}") for step in range(10)]
            edges.append((workflow.START, *nodes, join))
        self.events = self.n + 1
        extra = {"max_steps": 2 * self.n} if "max_steps" in workflow.Workflow.model_fields else {}
        return workflow.Workflow(name="top", edges=edges, **extra)

    async def turn(self) -> str:
        """One turn in a session of its own; its id."""
        session = await self.service.create_session(**WHERE)
        message = self.types.Content(role="user", parts=[self.types.Part(text="hello there")])
        count = 0
        async for event in self.runner.run_async(user_id="u", session_id=session.id, new_message=message):
            count += event.content is not None or event.output is not None
        assert count == self.events, (count, self.events)
        return session.id

    async def forget(self, session_id: str) -> None:
        """Leave the team alone: what ran it, and what it said, are gone."""
        await self.service.delete_session(**WHERE, session_id=session_id)
        del self.runner


def passing() -> Callable[[str], str]:
    """A function of its own: a graph knows nodes by what they are made of."""

    def passes(node_input: str) -> str:
        return node_input

    return passes


def built(peer: str, kind: str, n: int) -> Team:
    """Made after one of the same kind was run, so that what is made once is nobody's work."""
    gc.collect()
    return Team(PACKAGES[peer], kind, n)
