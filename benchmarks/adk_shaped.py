"""google-adk, and whatever else has its import paths: the runtime is named by its package."""
# pyright: basic
# The package is imported by name, so nothing of it is known to the type checker.

from collections import deque
from collections.abc import AsyncGenerator
from importlib import import_module
from typing import Any

from benchmarks.script import Script

WHERE = {"app_name": "bench", "user_id": "u"}


class AdkShaped:
    """A Runner, an LlmAgent and a BaseLlm of `package`, over its InMemorySessionService.

    `settings` go to LlmAgent.
    """

    def __init__(self, package: str, script: Script, **settings: Any):
        def get(module: str, name: str) -> Any:
            return getattr(import_module(f"{package}.{module}"), name)

        self.types: Any = import_module("google.genai.types" if package == "google.adk" else f"{package}.types")
        self.event = get("events", "Event")
        self.script, self.calls = script, deque[Any]()
        agent = get("agents", "LlmAgent")(
            name="a",
            model=scripted(self.types, get("models", "BaseLlm"), get("models", "LlmResponse"), script, self.calls),
            instruction="Be brief.",
            tools=script.tools,
            **settings,
        )
        mode = get("agents.run_config", "StreamingMode")
        self.config = get("agents.run_config", "RunConfig")(streaming_mode=mode.SSE if script.chunks else mode.NONE)
        self.service = get("sessions", "InMemorySessionService")()
        self.runner = get("runners", "Runner")(agent=agent, app_name="bench", session_service=self.service)

    async def chat(self, turns: int = 0) -> "_Chat":
        session = await self.service.create_session(**WHERE)
        for turn in range(turns):
            for author, role, text in (("user", "user", "hello there"), ("a", "model", "done.")):
                event = self.event(author=author, invocation_id=f"e-{turn}", content=self.content(role, text))
                await self.service.append_event(session, event)
        for calls in self.script.calls():
            parts = [self.types.Part(function_call=self.types.FunctionCall(name=n, args=args)) for n, args in calls]
            self.calls.append(self.types.Content(role="model", parts=parts))
        return _Chat(self, session.id)

    def content(self, role: str, text: str) -> Any:
        return self.types.Content(role=role, parts=[self.types.Part(text=text)])


class _Chat:
    def __init__(self, peer: AdkShaped, session_id: str):
        self.peer, self.session_id = peer, session_id

    async def turn(self, text: str) -> tuple[int, str]:
        pieces, event = 0, None
        async for event in self.peer.runner.run_async(
            user_id="u",
            session_id=self.session_id,
            new_message=self.peer.content("user", text),
            run_config=self.peer.config,
        ):
            pieces += bool(event.partial)
        assert event is not None
        return pieces, event.content.parts[0].text


def scripted(types: Any, base_llm: Any, llm_response: Any, script: Script, calls: deque[Any]) -> Any:
    """A model of the runtime's own kind that follows `script` and says contents that were made before the clock."""
    piece, content = (
        types.Content(role="model", parts=[types.Part(text=text)])
        for text in ("word ", "word " * script.chunks or "done.")
    )

    class Scripted(base_llm):
        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncGenerator[Any, None]:
            for _ in range(script.chunks):
                yield llm_response(content=piece, partial=True)
            last = llm_request.contents[-1].parts
            ends = script.ends(answers_a_tool=any(part.function_response for part in last))
            yield llm_response(content=content if ends else calls.popleft())

    return Scripted(model="scripted")
