"""A stand-in that answers to the name of a Gemini model, for code that names one."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from typing import Any

from adk_nb import types
from adk_nb.agents import LlmAgent
from adk_nb.models import BaseLlm, LlmCapabilities, LLMRegistry, LlmRequest, LlmResponse, ScriptedLlm, registry
from adk_nb.runners import Runner
from adk_nb.sessions import InMemorySessionService

NAME = "gemini-2.0-flash"
APP, USER, SESSION = "documented_app", "1234", "session1234"


class Script:
    """What the stand-in answers, whichever agent asks, and what it was asked."""

    def __init__(self) -> None:
        self.model = ScriptedLlm()

    def answers(self, *given: Any) -> None:
        """Let it give these from now on."""
        self.model = ScriptedLlm(*given)

    @property
    def requests(self) -> list[LlmRequest]:
        return self.model.requests


@contextmanager
def stand_in() -> Iterator[Script]:
    """Within, `gemini-2.0-flash` is a script; its service searches and runs code, as the real one's does."""
    script, before = Script(), list(registry._registered)

    class StandIn(BaseLlm):
        @classmethod
        def supported_models(cls) -> list[str]:
            return [NAME]

        @property
        def capabilities(self) -> LlmCapabilities:
            return LlmCapabilities(code_execution=True, service_tools=("google_search", "retrieval"))

        async def generate_content_async(
            self, llm_request: LlmRequest, stream: bool = False
        ) -> AsyncGenerator[LlmResponse, None]:
            async for answer in script.model.generate_content_async(llm_request, stream):
                yield answer

    LLMRegistry.register(StandIn)
    yield script
    registry._registered[:] = before
    registry._find.cache_clear()


def running(agent: LlmAgent) -> Runner:
    """As all the examples do it: the session is made without await, and what comes is used at once."""
    session_service = InMemorySessionService()
    session = session_service.create_session(app_name=APP, user_id=USER, session_id=SESSION)
    assert session.id == SESSION and session.state == {}
    return Runner(agent=agent, app_name=APP, session_service=session_service)


def ask(runner: Runner, query: str) -> list[str | None]:
    """The examples' `call_agent`: the final words, read without looking whether there are any."""
    content = types.Content(role="user", parts=[types.Part(text=query)])
    events = runner.run(user_id=USER, session_id=SESSION, new_message=content)
    return [event.content.parts[0].text for event in events if event.is_final_response()]
