"""Who edits an event, or a message, changes no history: neither what is stored, nor what the model is sent."""

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from adk_nb import types
from adk_nb.agents import LlmAgent
from adk_nb.events import Event
from adk_nb.models import LlmRequest, ScriptedLlm, call
from adk_nb.runners import Runner
from adk_nb.sessions import BaseSessionService, InMemorySessionService, Session, SqliteSessionService
from tests.support.polling import SECONDS

SESSION_KEY: dict[str, Any] = {"user_id": "u", "session_id": "s"}


@pytest.fixture(params=["memory", "sqlite"])
def service(request: pytest.FixtureRequest, tmp_path: Path) -> BaseSessionService:
    return SqliteSessionService(tmp_path / "s.db") if request.param == "sqlite" else InMemorySessionService()


def add(x: str) -> str:
    """Adds."""
    return x


class Conversation:
    """One session, whose events are edited as they come."""

    def __init__(self, service: BaseSessionService, *answers: Any) -> None:
        self.service, self.model = service, ScriptedLlm(*answers)
        self.runner = Runner(
            app_name="app",
            agent=LlmAgent(name="guide", model=self.model, tools=[add]),
            session_service=service,
            auto_create_session=True,
        )

    async def turn(self, message: Any, *, edited: bool = False) -> None:
        async with (
            asyncio.timeout(SECONDS),
            aclosing(self.runner.run_async(**SESSION_KEY, new_message=message)) as events,
        ):
            async for event in events:
                if edited:
                    edit(event)

    async def stored(self) -> Session:
        session = await self.service.get_session(app_name="app", **SESSION_KEY)
        assert session is not None
        return session

    @property
    def asked(self) -> LlmRequest:
        return self.model.requests[-1]


def edit(event: Event) -> None:
    event.author = "edited"
    event.actions.state_delta["edited"] = True
    for part in event.parts:
        if part.function_call:
            assert part.function_call.args is not None
            part.function_call.args["x"] = "edited"
        else:
            part.text = "edited"
    assert event.content is not None and event.content.parts is not None
    event.content.parts.append(types.Part(text="edited"))


def test_edited_events_of_get_session_change_no_history(service: BaseSessionService):
    async def talk() -> None:
        conversation = Conversation(service, "first", "second")
        await conversation.turn("hi")
        before = [event.model_dump() for event in (await conversation.stored()).events]
        for event in (await conversation.stored()).events:
            edit(event)
        assert [event.model_dump() for event in (await conversation.stored()).events] == before
        await conversation.turn("and?")
        assert "edited" not in str(conversation.asked.contents)

    asyncio.run(talk())


def test_edited_events_of_a_run_change_neither_the_run_nor_history(service: BaseSessionService):
    async def talk() -> None:
        conversation = Conversation(service, call("add", x="1"), "first", "second")
        await conversation.turn("hi", edited=True)
        assert "edited" not in str(conversation.asked.contents)  # the round after the call
        await conversation.turn("and?", edited=True)
        texts = [content.parts for content in conversation.asked.contents if content.parts]
        assert "edited" not in str(texts) and "first" in str(texts)
        session = await conversation.stored()
        assert "edited" not in str([event.model_dump() for event in session.events]) and "edited" not in session.state

    asyncio.run(talk())


def test_a_message_that_is_used_again_changes_no_history(service: BaseSessionService):
    async def talk() -> None:
        conversation = Conversation(service, "first", "second")
        message = types.Content(role="user", parts=[types.Part(text="hi")])
        await conversation.turn(message)
        assert message.parts is not None
        message.parts[0].text = "and?"
        await conversation.turn(message)
        texts = [part.text for content in conversation.asked.contents for part in content.parts or []]
        assert texts == ["hi", "first", "and?"]
        assert [event.text for event in (await conversation.stored()).events] == ["hi", "first", "and?", "second"]

    asyncio.run(talk())


def test_an_edited_event_of_another_class_changes_no_history():
    class Noted(Event):
        note: str = ""

    async def write() -> None:
        service, content = InMemorySessionService(), types.Content(role="model", parts=[types.Part(text="hi")])
        session = await service.create_session(app_name="app", **SESSION_KEY)
        await service.append_event(session, Noted(author="guide", content=content, note="kept"))
        for text in ("edited", "again"):
            found = await service.get_session(app_name="app", **SESSION_KEY)
            assert found
            (event,) = found.events
            assert isinstance(event, Noted) and (event.note, event.text) == ("kept", "hi")
            event.note = event.parts[0].text = text

    asyncio.run(write())
