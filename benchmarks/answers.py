"""An answer to an approval in a session of n events, from the user's message to the last words."""
# pyright: basic

from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any

from benchmarks.adk_shaped import AdkShaped
from benchmarks.script import Script, add

REQUEST = "adk_request_confirmation"
_CHATS = 6


async def waiting(package: str, n: int) -> list[Callable[[], Awaitable[None]]]:
    """Sessions of n events each, in which one call waits; a function for each that approves it."""
    return [await _waiting(package, n) for _ in range(_CHATS)]


async def _waiting(package: str, n: int) -> Callable[[], Awaitable[None]]:
    peer = AdkShaped(package, Script(tool="add", rounds=1), include_contents="none")
    tool = import_module(f"{package}.tools").FunctionTool
    peer.runner.agent.tools = [tool(add, require_confirmation=True)]
    chat = await peer.chat(n // 2)
    events = await _say(peer, chat, peer.content("user", "add"))
    request = next(call for event in events for call in event.get_function_calls() if call.name == REQUEST)

    async def approve() -> None:
        response = peer.types.FunctionResponse(id=request.id, name=REQUEST, response={"confirmed": True})
        message = peer.types.Content(role="user", parts=[peer.types.Part(function_response=response)])
        events = await _say(peer, chat, message)
        results = [
            function_response.response for event in events for function_response in event.get_function_responses()
        ]
        assert {"result": "1"} in results and events[-1].content.parts[0].text == "done.", results

    return approve


async def _say(peer: AdkShaped, chat: Any, message: Any) -> list[Any]:
    run = peer.runner.run_async(user_id="u", session_id=chat.session_id, new_message=message, run_config=peer.config)
    return [event async for event in run]
