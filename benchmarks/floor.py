"""The least a runtime can do: a bare asyncio loop over pydantic models, which says what the machine allows."""

import asyncio
import inspect
import time
import uuid
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pydantic import BaseModel, Field

from benchmarks.script import TOOLS, Calls, Script


class Call(BaseModel):
    id: str = Field(default_factory=lambda: uuid.uuid4().hex)
    name: str
    args: dict[str, Any]


class Part(BaseModel):
    text: str | None = None
    call: Call | None = None
    answer: dict[str, Any] | None = None


class Content(BaseModel):
    role: str
    parts: list[Part]


class Event(BaseModel):
    id: str = Field(default_factory=lambda: uuid.uuid4().hex)
    timestamp: float = Field(default_factory=time.time)
    invocation_id: str
    author: str
    partial: bool = False
    content: Content


class Floor:
    """No session service, no hooks, no validation of arguments: a list of events and a loop."""

    def __init__(self, script: Script):
        self.script = script
        self.calls = deque[Calls]()
        self.threads = ThreadPoolExecutor(128)

    async def chat(self, turns: int = 0) -> "_Chat":
        chat = _Chat(self)
        for turn in range(turns):
            chat.put(str(turn), "user", _words("user", "hello there"))
            chat.put(str(turn), "a", _words("model", "done."))
        self.calls.extend(self.script.calls())
        return chat


class _Chat:
    def __init__(self, peer: Floor):
        self.peer = peer
        self.events: list[Event] = []
        self.history: list[Content] = []

    def put(self, invocation: str, author: str, content: Content) -> Event:
        event = Event(invocation_id=invocation, author=author, content=content)
        self.events.append(event)
        self.history.append(content)
        return event

    async def turn(self, text: str) -> tuple[int, str]:
        script, pieces, invocation = self.peer.script, 0, uuid.uuid4().hex
        self.put(invocation, "user", _words("user", text))
        for _ in range(script.chunks):
            pieces += Event(
                invocation_id=invocation, author="a", partial=True, content=_words("model", "word ")
            ).partial
        while True:
            if script.ends(answers_a_tool=self.history[-1].parts[0].answer is not None):
                event = self.put(invocation, "a", _words("model", "word " * script.chunks or "done."))
                return pieces, event.content.parts[0].text or ""
            calls = [Call(name=name, args=args) for name, args in self.peer.calls.popleft()]
            self.put(invocation, "a", Content(role="model", parts=[Part(call=call) for call in calls]))
            answers = await asyncio.gather(*map(self.answer, calls))
            self.put(invocation, "a", Content(role="user", parts=[Part(answer=answer) for answer in answers]))

    async def answer(self, call: Call) -> dict[str, Any]:
        tool: Any = TOOLS[call.name]
        if inspect.iscoroutinefunction(tool):
            result = await tool(**call.args)
        else:
            result = await asyncio.get_running_loop().run_in_executor(self.peer.threads, lambda: tool(**call.args))
        return {"id": call.id, "name": call.name, "result": result}


def _words(role: str, text: str) -> Content:
    return Content(role=role, parts=[Part(text=text)])
