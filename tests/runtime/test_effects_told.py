"""A call that was made is in the history, with a result, however its run has ended."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from adk_nb import sync, types
from adk_nb.agents import LlmAgent
from adk_nb.events import Event
from adk_nb.models import LlmResponse
from adk_nb.models.scripted_llm import ScriptedLlm, call
from adk_nb.plugins import BasePlugin
from adk_nb.runners import Runner
from adk_nb.runtime.history import History
from adk_nb.sessions import BaseSessionService, InMemorySessionService, SqliteSessionService
from adk_nb.tools import AgentTool, ToolContext
from tests.support.talk import content_summaries


class Hard(BaseException):
    """No Exception."""


class Shop:
    """A session, kept in memory or in a file, and a tool that notes what it did."""

    def __init__(self, service: BaseSessionService) -> None:
        self.service = service
        self.paid: list[int] = []

    def pay(self, amount: int, tool_context: ToolContext) -> str:
        """Pay."""
        self.paid.append(amount)
        tool_context.state["paid"] = amount
        return "paid"

    def say(self, agent: LlmAgent, *plugins: BasePlugin, abort: asyncio.Event | None = None) -> list[Event]:
        async def run() -> list[Event]:
            runner = Runner(
                app_name="app",
                agent=agent,
                session_service=self.service,
                plugins=plugins,
                auto_create_session=True,
            )
            turn = runner.run_async(user_id="u", session_id="s", new_message="pay", abort_signal=abort)
            async with runner, aclosing(turn) as events:
                return [event async for event in events]

        return sync.run(run())

    def stored(self) -> Any:
        async def get() -> Any:
            return await self.service.get_session(app_name="app", user_id="u", session_id="s")

        return sync.run(get())

    def next_request(self, **fields: Any) -> list[str]:
        """The calls and results that the model of the next turn is shown."""
        model = ScriptedLlm("I see.")
        self.say(LlmAgent(name="clerk", model=model, tools=[self.pay], **fields))
        return [
            words
            for _, words in content_summaries(model.requests[0].contents)
            if words.startswith(("calls", "answers"))
        ]


@pytest.fixture(params=["memory", "sqlite"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    if request.param == "memory":
        yield Shop(InMemorySessionService())
        return
    service = SqliteSessionService(tmp_path / "s.db")
    yield Shop(service)
    sync.run(service.close())


def raises(error: BaseException) -> Callable[..., Any]:
    def hook(*_: Any, **__: Any) -> None:
        raise error

    return hook


class OfTools(BasePlugin):
    async def after_tool_callback(self, **_: Any) -> Any:
        raise ValueError("plugin")


class OfResults(BasePlugin):
    async def on_event_callback(self, *, event: Event, **_: Any) -> Any:
        if event.get_function_responses():
            raise ValueError("plugin")


@pytest.mark.parametrize(
    ("fields", "plugins"),
    [
        ({"after_tool_callback": raises(ValueError("callback"))}, []),
        ({"after_tool_callback": raises(Hard())}, []),
        ({}, [OfTools("p")]),
        ({}, [OfResults("p")]),
    ],
    ids=["callback", "hard callback", "plugin", "plugin of events"],
)
def test_a_call_is_reported_when_a_hook_ends_its_run(shop: Shop, fields: dict[str, Any], plugins: list[BasePlugin]):
    clerk = LlmAgent(name="clerk", model=ScriptedLlm(call("pay", amount=5)), tools=[shop.pay], **fields)
    with pytest.raises((Exception, Hard)):
        shop.say(clerk, *plugins)

    assert shop.paid == [5] and not list(History(shop.stored().events).calls.open())
    called, answered = shop.next_request()
    assert called == "calls pay({'amount': 5})" and "error" in answered and "not called" not in answered


def test_a_call_is_told_that_raised_what_is_no_exception(shop: Shop):
    def pay(amount: int) -> str:
        """Pay."""
        shop.paid.append(amount)
        raise Hard

    clerk = LlmAgent(name="clerk", model=ScriptedLlm([call("pay", amount=5), call("pay", amount=6)]), tools=[pay])
    with pytest.raises(Hard):
        shop.say(clerk)

    assert sorted(shop.paid) in ([5], [5, 6]) and not list(History(shop.stored().events).calls.open())
    assert len(shop.next_request()) == 2


def test_a_call_before_which_the_model_failed_has_a_result(shop: Shop):
    whole = LlmResponse(content=types.Content(role="model", parts=[call("pay", amount=5)]))
    model = ScriptedLlm([whole, ConnectionError("gone")])
    with pytest.raises(ConnectionError):
        shop.say(LlmAgent(name="clerk", model=model, tools=[shop.pay]))

    assert not list(History(shop.stored().events).calls.open())
    assert shop.next_request()[0] == "calls pay({'amount': 5})"


def test_a_call_that_was_done_beside_one_that_is_cancelled_keeps_its_result_and_what_it_wrote(shop: Shop):
    abort, paid = asyncio.Event(), asyncio.Event()

    async def pay(amount: int, tool_context: ToolContext) -> str:
        """Pay."""
        paid.set()
        return shop.pay(amount, tool_context)

    async def wait() -> str:
        """Wait."""
        await paid.wait()
        abort.set()
        await asyncio.Event().wait()
        return "never"

    model = ScriptedLlm([call("pay", amount=5), call("wait")])
    events = shop.say(LlmAgent(name="clerk", model=model, tools=[pay, wait]), abort=abort)

    assert events[-1].error_code == "INVOCATION_ABORTED"
    results = {one.name: one.response for one in events[-1].get_function_responses()}
    assert results["pay"] == {"result": "paid"} and "error" in (results["wait"] or {})
    assert shop.stored().state["paid"] == 5


def test_a_call_in_a_called_agent_that_failed_is_told_there(shop: Shop):
    after = raises(ValueError("callback"))
    inner = LlmAgent(
        name="inner", model=ScriptedLlm(call("pay", amount=5)), tools=[shop.pay], after_tool_callback=after
    )
    tool = AgentTool(inner, stream_events=True)
    outer = LlmAgent(name="outer", model=ScriptedLlm(call("inner", request="pay"), "It failed."), tools=[tool])

    events = shop.say(outer)

    assert events[-1].text == "It failed." and shop.paid == [5]
    assert not list(History(shop.stored().events).calls.open())
    [told] = [event for event in events if event.author == "inner" and event.get_function_responses()]
    assert told.error_code == "ValueError"
