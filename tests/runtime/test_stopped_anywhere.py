"""A run that is cancelled at any of its steps: each of its calls has one result, and any model takes the next turn."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field

from adk_nb import types
from adk_nb.agents import LlmAgent
from adk_nb.events import Event
from adk_nb.models import BaseLlm, LlmRequest, LlmResponse
from adk_nb.sessions import BaseSessionService, InMemorySessionService, Session, SqliteSessionService
from adk_nb.sessions.journal import Lease
from adk_nb.tools import AgentTool, FunctionTool
from tests.runtime.ledger import events_of, runner_of, stored, talk
from tests.support.role_rules import check_roles


class ByHistory(BaseLlm):
    """Makes its calls, all at once, and when they have results it is done. To words it says so at once."""

    calls: list[str]
    seen: list[LlmRequest] = Field(default_factory=list[LlmRequest])

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self.seen.append(llm_request)
        await asyncio.sleep(0)
        asked = (llm_request.contents[-1].parts or [types.Part()])[-1].text == "go"
        calls = self.calls if asked else ()
        parts = [types.Part(function_call=types.FunctionCall(name=name, args={"request": "go"})) for name in calls]
        yield LlmResponse(content=types.Content(role="model", parts=parts or [types.Part(text="all done")]))


def tools() -> list[Any]:
    async def look(request: str) -> str:
        """Looks."""
        await asyncio.sleep(0)
        return "seen"

    async def pay(request: str) -> str:
        """Pays."""
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return "paid"

    return [look, FunctionTool(pay)]


def clerk() -> LlmAgent:
    return LlmAgent(name="clerk", model=ByHistory(model="m", calls=["look", "pay"]), tools=tools())


def outer() -> LlmAgent:
    inner = clerk()
    return LlmAgent(
        name="outer",
        model=ByHistory(model="m", calls=["look", "clerk"]),
        tools=[tools()[0], AgentTool(agent=inner, stream_events=True)],
    )


class Stopping(SqliteSessionService):
    """Counts the steps that a run takes in its file, and cancels it at one of them: before it, or when it is done."""

    def __init__(self, path: Path, fatal: int) -> None:
        super().__init__(path)
        self.run: asyncio.Task[Any] | None = None
        self._left = fatal

    def step(self) -> None:
        self._left -= 1
        if self.run and not self._left:
            self.run.cancel()

    async def append_event(self, session: Session, event: Event) -> Event:
        self.step()
        event = await super().append_event(session, event)
        self.step()
        return event

    async def claim(self, *args: Any, **said: Any) -> Lease:  # type: ignore[override]
        self.step()
        lease = await super().claim(*args, **said)
        release = lease.release

        async def stepped(outcome: str | None = None) -> None:
            self.step()
            await release(outcome)
            self.step()

        lease.release = stepped  # type: ignore[method-assign]
        self.step()
        return lease


async def check_next_turn(agent: LlmAgent, service: BaseSessionService) -> None:
    await events_of(talk(runner_of(agent, service), "and now?"))
    model = agent.canonical_model
    assert isinstance(model, ByHistory)
    check_roles(model.seen[-1].contents)
    events = (await stored(service)).events
    calls = [one.id for event in events for one in event.get_function_calls()]
    assert sorted(calls) == sorted(one.id for event in events for one in event.get_function_responses())


@pytest.mark.parametrize("make", [clerk, outer])
def test_the_next_turn_is_one_that_every_model_takes(make: Callable[[], LlmAgent]):
    async def stopped_after(steps: int) -> bool:
        """False: it was over before."""
        service, agent = InMemorySessionService(), make()
        run = asyncio.create_task(events_of(talk(runner_of(agent, service))))
        for _ in range(steps):
            await asyncio.sleep(0)
        was_stopped = run.cancel()
        await asyncio.wait([run])
        await check_next_turn(agent, service)
        return was_stopped

    async def stop_everywhere() -> int:
        steps = 0
        while await stopped_after(steps):
            steps += 1
        return steps

    assert asyncio.run(stop_everywhere()) >= 8


@pytest.mark.parametrize("make", [clerk, outer])
def test_so_it_is_in_a_file_whatever_was_being_written(tmp_path: Path, make: Callable[[], LlmAgent]):
    async def stopped_at(step: int) -> bool:
        service, agent = Stopping(tmp_path / f"{step}.db", step), make()
        service.run = run = asyncio.create_task(events_of(talk(runner_of(agent, service))))
        await asyncio.wait([run])
        await check_next_turn(agent, service)
        assert await service.unfinished(await stored(service)) == []
        await service.close()
        return run.cancelled()

    async def stop_everywhere() -> int:
        step = 1
        while await stopped_at(step):
            step += 1
        return step

    assert asyncio.run(stop_everywhere()) >= 9
