"""A2A by google-adk 2.13.0: `serve` serves an agent and prints its address; `ask URL` has its RemoteA2aAgent ask."""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator
from typing import Any

import uvicorn
from google.adk.a2a.utils.agent_to_a2a import to_a2a
from google.adk.agents import LlmAgent
from google.adk.agents.remote_a2a_agent import RemoteA2aAgent
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools import FunctionTool, LongRunningFunctionTool
from google.genai import types


class Script(BaseLlm):
    """Calls the tool whose name the user's text is; answers anything else, and what a tool returned."""

    model: str = "script"

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        part = llm_request.contents[-1].parts[-1]
        if part.function_response:
            answer = types.Part(text=f"The tool says {json.dumps(part.function_response.response)}.")
        elif part.text in ("ask", "pay"):
            answer = types.Part(function_call=types.FunctionCall(name=part.text, args={"amount": 250}))
        else:
            answer = types.Part(text=f"{len(llm_request.contents)}: {part.text}")
        yield LlmResponse(content=types.Content(role="model", parts=[answer]))


def ask(amount: float) -> dict[str, str]:
    """Ask somebody."""
    return {"status": "pending"}


def pay(amount: float) -> str:
    """Pay an amount."""
    return f"paid {amount:g}"


def serve() -> None:
    tools = [LongRunningFunctionTool(ask), FunctionTool(pay, require_confirmation=True)]
    agent = LlmAgent(name="there", description="Answers.", model=Script(), tools=tools)
    config = uvicorn.Config(app=agent, host="127.0.0.1", port=0, log_level="critical")
    socket = config.bind_socket()
    port = socket.getsockname()[1]
    config.app = to_a2a(agent, host="127.0.0.1", port=port)
    Server(config).run(sockets=[socket])


class Server(uvicorn.Server):
    """Prints its address once it listens."""

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        sys.stdout.write(f"http://127.0.0.1:{sockets[0].getsockname()[1]}\n")
        sys.stdout.flush()


async def ask_remote(url: str, messages: list[str]) -> list[Any]:
    agent = RemoteA2aAgent(name="there", agent_card=f"{url}/.well-known/agent-card.json")
    runner = InMemoryRunner(agent=agent, app_name="app")
    await runner.session_service.create_session(app_name="app", user_id="u", session_id="s")
    told: list[Any] = []
    for message in messages:
        content = types.Content(role="user", parts=[types.Part(text=message)])
        texts: list[str] = []
        async for event in runner.run_async(user_id="u", session_id="s", new_message=content):
            parts = (event.content and event.content.parts) or []
            texts += [part.text for part in parts if part.text and not part.thought and not event.partial]
            texts += [f"calls {part.function_call.name}" for part in parts if part.function_call]
            texts += [event.error_message] if event.error_message else []
        told.append(texts)
    return told


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    else:
        sys.stdout.write(json.dumps(asyncio.run(ask_remote(sys.argv[2], sys.argv[3:]))) + "\n")
