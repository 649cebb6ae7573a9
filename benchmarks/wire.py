"""What a request costs before it is on the wire, by vendor and length of the conversation: CPU of this process.

.venv/bin/python -m benchmarks.wire [--turns 10 2000] [--calls 7] [vendor ...]

A server on loopback, in a process of its own, reads each request whole and answers at once. A turn is a question, a
call of a tool, its result and an answer. CPU is that of the fastest call; the loop was held for as long as it did not
turn, at most, in the call that held it least.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from adk_nb import types
from adk_nb.models import BaseLlm, Claude, Gemini, LlmRequest, OpenAILlm

WORDS = "how many days are left until the launch, and what is still to be done by then? " * 3
KEY = "a-key-for-loopback"

MODELS: dict[str, Callable[[str], BaseLlm]] = {
    "openai": lambda url: OpenAILlm(model="gpt-4.1", base_url=f"{url}/v1", api_key=KEY, responses=False),
    "openai-responses": lambda url: OpenAILlm(model="gpt-4.1", base_url=f"{url}/v1", api_key=KEY, responses=True),
    "anthropic": lambda url: Claude(model="claude-sonnet-5", base_url=url, api_key=KEY),
    "gemini": lambda url: Gemini(model="gemini-2.5-flash", base_url=url, api_key=KEY),
}
USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
MESSAGE = {"role": "assistant", "content": "done"}
ANSWERS: dict[str, Any] = {
    "completions": {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": MESSAGE}],
        "usage": USAGE,
    },
    "responses": {
        "id": "1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": "completed",
        "output": [
            {
                "type": "message",
                "id": "2",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "done", "annotations": []}],
            }
        ],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    },
    "messages": {
        "id": "1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "done"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    },
    "generate": {"candidates": [{"content": {"role": "model", "parts": [{"text": "done"}]}, "finishReason": "STOP"}]},
}


class Answering(BaseHTTPRequestHandler):
    """Reads a request and answers as the service of its path."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        name = next((name for name in ANSWERS if self.path.endswith(name)), "generate")
        body = json.dumps(ANSWERS[name]).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None: ...


def serve() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    print(server.server_address[1], flush=True)
    server.serve_forever()


def conversation(turns: int) -> list[types.Content]:
    contents: list[types.Content] = []
    for number in range(turns):
        call = types.FunctionCall(id=f"call_{number}", name="days_until", args={"day": f"2030-01-{number % 28 + 1:02}"})
        result = types.FunctionResponse(id=call.id, name=call.name, response={"days": number})
        contents += [
            types.Content(role="user", parts=[types.Part(text=f"{number}: {WORDS}")]),
            types.Content(role="model", parts=[types.Part(function_call=call)]),
            types.Content(role="user", parts=[types.Part(function_response=result)]),
            types.Content(role="model", parts=[types.Part(text=f"{number} days. {WORDS}")]),
        ]
    return [*contents, types.Content(role="user", parts=[types.Part(text="And now?")])]


async def longest_hold(holds: list[float]) -> None:
    while True:
        begun = time.perf_counter()
        await asyncio.sleep(0)
        holds.append(time.perf_counter() - begun)


async def measure(model: BaseLlm, turns: int, calls: int) -> tuple[float, float]:
    """CPU and the longest hold of the loop, in ms."""
    contents, cpu, held = conversation(turns), list[float](), list[float]()
    for number in range(calls + 1):
        # Each call of a conversation brings a message more than the one before.
        contents = [*contents, types.Content(role="user", parts=[types.Part(text=f"Question {number}")])]
        request = LlmRequest(model=getattr(model, "model", None), contents=contents)
        holds: list[float] = []
        begun = time.process_time()
        async for answer in model.generate_content_async(request):
            assert answer.parts[0].text == "done", answer
        cpu.append(time.process_time() - begun)
        watch = asyncio.create_task(longest_hold(holds))
        await asyncio.sleep(0)
        async for _ in model.generate_content_async(request):
            pass
        watch.cancel()
        held.append(max(holds))
    return min(cpu[1:]) * 1000, min(held[1:]) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("vendors", nargs="*", default=[*MODELS])
    parser.add_argument("--turns", nargs="+", type=int, default=[10, 2000])
    parser.add_argument("--calls", type=int, default=7)
    options = parser.parse_args()
    command = [sys.executable, "-c", "from benchmarks.wire import serve; serve()"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        url = f"http://127.0.0.1:{server.stdout.readline().strip()}"
        try:
            for vendor in options.vendors:
                for turns in options.turns:
                    cpu, held = asyncio.run(measure(MODELS[vendor](url), turns, options.calls))
                    print(f"{vendor:<18}{turns:>6} turns   CPU {cpu:>8.1f} ms   loop held {held:>8.1f} ms", flush=True)
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
