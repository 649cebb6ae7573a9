"""Runs exported packages and prints their events: python told_exported.py FOLDER < CONVERSATIONS.

CONVERSATIONS is JSON: by package, what its model answers, what the user says, and the state before.
Told is, an event each: who, what is said, and what it changes in the state. Left out are the words of an instruction,
ids, times, and events that only end a loop.
"""

import asyncio
import importlib
import json
import sys
import warnings
from typing import Any

ASKS = "adk_request_confirmation"


def heard(events: Any) -> list[dict[str, Any]]:
    """The events of a session, as both packages tell them."""
    told = [{"author": one.author, "said": _said(one), "state": _state(one)} for one in events]
    by_agents = [one for one in told if one["author"] != "notebook" and (one["said"] or one["state"])]
    return [one for one in by_agents if one["author"] != "user" or one["said"]]  # %state is no message


def _state(event: Any) -> dict[str, Any]:
    return dict(event.actions.state_delta)


def _said(event: Any) -> list[Any]:
    return [_part(part) for part in ((event.content and event.content.parts) or [])]


def _part(part: Any) -> Any:
    if call := part.function_call:
        return ["calls", call.name, {} if call.name == ASKS else call.args]
    if answer := part.function_response:
        response = answer.response
        kept = response.get("confirmed") if answer.name == ASKS else [*response] if "error" in response else response
        return ["answers", answer.name, kept]
    return part.text


async def converse(root: Any, asked: dict[str, Any]) -> list[dict[str, Any]]:
    """Say the messages to a root agent of google-adk; what its session holds then."""
    runners = importlib.import_module("google.adk.runners")
    types = importlib.import_module("google.genai.types")
    is_agent = isinstance(root, importlib.import_module("google.adk.agents").BaseAgent)
    runner = runners.InMemoryRunner(app_name="app", **({"agent": root} if is_agent else {"node": root}))
    where = {"app_name": "app", "user_id": "u", "session_id": "s"}
    await runner.session_service.create_session(**where, state=asked["state"])
    waiting: list[Any] = []
    for message in asked["messages"]:
        if isinstance(message, bool):
            answer = types.FunctionResponse(id=waiting[-1].id, name=ASKS, response={"confirmed": message})
            part = types.Part(function_response=answer)
        else:
            part = types.Part(text=message)
        said = types.Content(role="user", parts=[part])
        async for event in runner.run_async(user_id="u", session_id="s", new_message=said):
            waiting += [call for call in event.get_function_calls() if call.name == ASKS]
    session = await runner.session_service.get_session(**where)
    return heard(session.events)


def answer_for_gemini(answers: list[Any]) -> None:
    """From now on google-adk's Gemini models say this."""
    models = importlib.import_module("google.adk.models")
    types = importlib.import_module("google.genai.types")

    class Told(models.BaseLlm):
        @classmethod
        def supported_models(cls) -> list[str]:
            return ["gemini-.*"]

        async def generate_content_async(self, llm_request: Any, stream: bool = False):
            answer = answers.pop(0)
            if isinstance(answer, str):
                parts = [types.Part(text=answer)]
            else:
                parts = [types.Part(function_call=types.FunctionCall(name=name, args=args)) for name, args in answer]
            yield models.LlmResponse(content=types.Content(role="model", parts=parts))

    models.LLMRegistry.register(Told)


async def converse_with_all(folder: str, asked: dict[str, Any]) -> dict[str, Any]:
    """Each package, loaded as `adk web` and `adk run` load it."""
    answers: list[Any] = []
    answer_for_gemini(answers)
    told: dict[str, Any] = {}
    loader = importlib.import_module("google.adk.cli.utils.agent_loader").AgentLoader(folder)
    for package, one in asked.items():
        answers[:] = one["answers"]
        told[package] = await converse(loader.load_agent(package), one)
    return told


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with asyncio.Runner() as runner:
        print(json.dumps(runner.run(converse_with_all(sys.argv[1], json.load(sys.stdin)))))
