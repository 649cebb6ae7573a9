"""What the model of a benchmark says: the same words and calls for every peer, with no delay."""

import asyncio
import time
from dataclasses import dataclass
from typing import Any, Protocol

NAP_SECONDS = 0.02
Calls = list[tuple[str, dict[str, Any]]]


async def add(x: int) -> str:
    """Adds one."""
    return str(x + 1)


async def doze(x: int) -> str:
    """Waits without blocking."""
    await asyncio.sleep(NAP_SECONDS)
    return str(x)


def block(x: int) -> str:
    """Waits, and blocks its thread."""
    time.sleep(NAP_SECONDS)
    return str(x)


TOOLS = {tool.__name__: tool for tool in (add, doze, block)}


@dataclass
class Script:
    """A model's part in a turn: `rounds` single tool calls in a row, or `parallel` calls at once, then words.

    With `rounds`, one script serves one turn at a time; with `parallel`, any number side by side.
    """

    tool: str | None = None
    rounds: int = 0
    parallel: int = 0
    chunks: int = 0
    """The words come in this many pieces, then whole."""
    asked: int = 0

    def calls(self) -> list[Calls]:
        """What the model calls in one turn: a list for each time it is asked before its last words."""
        name = self.tool or "add"
        together = [[(name, {"x": x}) for x in range(self.parallel)]] if self.parallel else []
        return together or [[(name, {"x": x})] for x in range(self.rounds)]

    def ends(self, *, answers_a_tool: bool) -> bool:
        """Whether the model says its last words now. Its last message was, or was not, a tool's answer."""
        if not self.rounds:
            return answers_a_tool or not self.parallel
        self.asked = self.asked + 1 if answers_a_tool else 1
        return self.asked > self.rounds

    @property
    def tools(self) -> list[Any]:
        """The functions the agent is given."""
        return [TOOLS[self.tool]] if self.tool else []


class Chat(Protocol):
    """One session."""

    async def turn(self, text: str) -> tuple[int, str]:
        """One turn: how many pieces came, and the last words."""
        ...


class Peer(Protocol):
    """A runtime with one agent that follows one script."""

    async def chat(self, turns: int = 0) -> Chat:
        """A session that holds this many turns (of two events) already.

        What the model will call in one turn of it is made here, so that making it counts as nobody's work.
        """
        ...
