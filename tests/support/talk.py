"""A conversation in a test: one session of one runner, and events told in one line each."""

from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

from adk_nb import sync, types
from adk_nb.agents import BaseAgent, LlmAgent, RunConfig
from adk_nb.events import Event
from adk_nb.models import ScriptedLlm
from adk_nb.plugins import BasePlugin
from adk_nb.runners import InMemoryRunner
from adk_nb.sessions import Session

SESSION_KEY = {"user_id": "u", "session_id": "s"}


class Talk:
    """Says things to an agent in session `s` of user `u`; the runner and its service are there for a closer look."""

    def __init__(
        self, agent: BaseAgent, state: dict[str, Any] | None = None, plugins: Sequence[BasePlugin] = ()
    ) -> None:
        self.runner = InMemoryRunner(agent, app_name="app", plugins=plugins)
        self.service = self.runner.session_service
        self.error: BaseException | None = None
        """What the last turn raised, after its events."""
        self.open("s", state)

    def open(self, session_id: str, state: dict[str, Any] | None = None, user_id: str = "u") -> None:
        async def make() -> None:
            await self.service.create_session(app_name="app", user_id=user_id, session_id=session_id, state=state)

        sync.run(make())

    def say(
        self,
        message: Any = "hi",
        *,
        session_id: str = "s",
        user_id: str = "u",
        config: RunConfig | None = None,
        **more: Any,
    ) -> list[Event]:
        """One turn's events."""
        return sync.run(self.asay(message, session_id=session_id, user_id=user_id, config=config, **more))

    async def asay(
        self,
        message: Any = "hi",
        *,
        session_id: str = "s",
        user_id: str = "u",
        config: RunConfig | None = None,
        **more: Any,
    ) -> list[Event]:
        events: list[Event] = []
        self.error = None
        turn = self.runner.run_async(
            user_id=user_id, session_id=session_id, new_message=message, run_config=config, **more
        )
        try:
            async with aclosing(turn):
                async for event in turn:
                    events.append(event)  # noqa: PERF401  # a list of what came before an error
        except Exception as error:
            self.error = error
        return events

    def stored(self, session_id: str = "s", user_id: str = "u") -> Session:
        """The session as its service has it."""

        async def get() -> Session | None:
            return await self.service.get_session(app_name="app", user_id=user_id, session_id=session_id)

        session = sync.run(get())
        assert session is not None
        return session


def summaries(events: list[Event]) -> list[tuple[str, str]]:
    """Who and what, an event each: `text`, `calls f({...})`, `answers {...}`, `failed CODE`, `did nothing`.

    Marks at the end: `...` for a piece, `{key: value}` after `=>` for what it writes to the state, `.` if it is final.
    """
    return [(event.author, _summary(event)) for event in events]


def _summary(event: Event) -> str:
    words = "; ".join(part_summary(part) for part in event.parts)
    if event.error_code:
        words = f"{words} failed {event.error_code}".strip()
    if event.actions.state_delta:
        words = f"{words} => {event.actions.state_delta}".strip()
    return (words or "did nothing") + ("..." if event.partial else "") + (" ." if event.is_final_response() else "")


def part_summary(part: types.Part) -> str:
    if part.function_call:
        return f"calls {part.function_call.name}({part.function_call.args or {}})"
    if part.function_response:
        return f"answers {part.function_response.response}"
    return part.text if part.text is not None else "(data)"


def content_summaries(contents: list[types.Content]) -> list[tuple[str, str]]:
    """What a model was sent: role and words of each content."""
    return [(content.role or "", "; ".join(part_summary(part) for part in content.parts or [])) for content in contents]


def look() -> str:
    """Looks."""
    return "seen"


def boom() -> str:
    """Fails."""
    raise ValueError("bad")


def guide(*answers: Any, **fields: Any) -> LlmAgent:
    return LlmAgent(name="guide", model=ScriptedLlm(*answers), **fields)


def requests(agent: LlmAgent) -> list[list[tuple[str, str]]]:
    assert isinstance(agent.model, ScriptedLlm)
    return [content_summaries(request.contents) for request in agent.model.requests]


def authors(talk: Talk) -> list[str]:
    return [event.author for event in talk.stored().events]
