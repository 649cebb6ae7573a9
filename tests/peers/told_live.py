"""Holds the same live conversations on google-adk or on adk_nb and prints the events: python told_live.py PACKAGE.

For each scene: what was yielded, what the session kept, and what the model was sent over each connection. Ids and times
are left out.
"""

import asyncio
import importlib
import json
import sys
import warnings
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

SOUND = {"data": b"\x01\x02", "mime_type": "audio/pcm;rate=16000"}


def load(package: str) -> SimpleNamespace:
    def get(module: str, name: str) -> Any:
        return getattr(importlib.import_module(f"{package}.{module}"), name)

    return SimpleNamespace(
        types=importlib.import_module("google.genai.types" if package == "google.adk" else f"{package}.types"),
        LlmAgent=get("agents", "LlmAgent"),
        RunConfig=get("agents", "RunConfig"),
        LiveRequestQueue=get("agents", "LiveRequestQueue"),
        BaseLlm=get("models", "BaseLlm"),
        LlmResponse=get("models", "LlmResponse"),
        BaseLlmConnection=get("models.base_llm_connection", "BaseLlmConnection"),
        InMemoryRunner=get("runners", "InMemoryRunner"),
    )


class Connection:
    """A connection whose next turn comes when the user has said something whole."""

    def __init__(self, turns: list[Any]) -> None:
        self.turns = turns
        self.ready: asyncio.Queue[list[Any]] = asyncio.Queue()
        self.sent: list[str] = []

    async def send_history(self, history: list[Any]) -> None:
        self.sent += [f"before: {content.role} {parts(content)}" for content in history]

    async def send_content(self, content: Any, *, partial: bool = False) -> None:
        self.sent.append(parts(content))
        self.ready.put_nowait(self.turns.pop(0))

    _send_content = send_content  # google-adk's own, for what is partial

    async def send_realtime(self, blob: Any) -> None:
        self.sent.append(type(blob).__name__)
        if self.sent[-1] == "ActivityEnd":
            self.ready.put_nowait(self.turns.pop(0))

    async def receive(self):
        for response in await self.ready.get():
            yield response

    async def close(self) -> None:
        self.ready.put_nowait([])


def scripted(kit: SimpleNamespace) -> Any:
    connection = type("Connection", (Connection, kit.BaseLlmConnection), {})

    class Scripted(kit.BaseLlm):
        turns: list[Any]
        connections: list[Any]

        async def generate_content_async(self, llm_request: Any, stream: bool = False):
            raise NotImplementedError
            yield

        @asynccontextmanager
        async def connect(self, llm_request: Any):
            self.connections.append(connection(self.turns))
            yield self.connections[-1]

    return Scripted


def parts(content: Any) -> str:
    texts: list[str] = []
    for part in (content.parts if content else None) or []:
        if part.function_call:
            texts.append(f"calls {part.function_call.name}({part.function_call.args})")
        elif part.function_response:
            texts.append(f"answers {part.function_response.response}")
        elif part.inline_data:
            texts.append("sound")
        elif part.file_data:
            texts.append(f"a file in {part.file_data.file_uri.split('/')[-2]}")
        else:
            texts.append(part.text)
    return "; ".join(texts)


def line(event: Any) -> str:
    lines = [event.author, parts(event.content)]
    for text, item in (("hears", event.input_transcription), ("speaks", event.output_transcription)):
        lines += [text, item.text, "and is done" if item.finished else ""] if item else []
    lines += ["handle"] if event.live_session_resumption_update else []
    lines += ["interrupted"] if event.interrupted else []
    lines += ["complete"] if event.turn_complete else []
    lines += [str(event.actions.state_delta)] if event.actions.state_delta else []
    lines += ["later"] if event.long_running_tool_ids else []
    lines += ["..."] if event.partial else []
    return " ".join(line for line in lines if line)


class Says:
    """What a model may say."""

    def __init__(self, kit: SimpleNamespace) -> None:
        self.types, self.response = kit.types, kit.LlmResponse

    def part(self, **part: Any) -> Any:
        return self.response(content=self.types.Content(role="model", parts=[self.types.Part(**part)]))

    def calls(self, name: str, **args: Any) -> Any:
        return self.part(function_call=self.types.FunctionCall(id="c1", name=name, args=args))

    def heard(self, text: str, finished: bool = True) -> Any:
        transcription = self.types.Transcription(text=text, finished=finished)
        return self.response(input_transcription=transcription, partial=not finished)

    def spoken(self, text: str, finished: bool = True) -> Any:
        transcription = self.types.Transcription(text=text, finished=finished)
        return self.response(output_transcription=transcription, partial=not finished)

    def handle(self) -> Any:
        update = self.types.LiveServerSessionResumptionUpdate(new_handle="h1", resumable=True)
        return self.response(live_session_resumption_update=update)


def weather(city: str) -> str:
    """The weather now."""
    return f"mild in {city}"


Scene = tuple[dict[str, Any], list[list[Any]], list[Any], dict[str, Any]]
"""The agent's fields, the model's turns, what the user says, and how it is run."""


def scenes(kit: SimpleNamespace) -> dict[str, Scene]:
    says = Says(kit)
    response, interrupted = says.response(turn_complete=True), says.response(interrupted=True)

    def no_secrets(callback_context: Any, llm_request: Any) -> Any:
        if "secret" in (llm_request.contents[-1].parts[0].text or ""):
            callback_context.state["blocked"] = True
            return says.part(text="no")
        return None

    piece = says.part(text="It")
    piece.partial = True
    sound = says.part(inline_data=kit.types.Blob(**SOUND))
    responses = [says.heard("How is ", False), says.heard("How is Oslo?")]
    voice = [*responses, sound, says.spoken("Mi", False), says.spoken("Mild.")]
    tokens = says.response(usage_metadata=kit.types.GenerateContentResponseUsageMetadata(total_token_count=3))
    return {
        "words": ({"output_key": "k"}, [[piece, says.part(text="It is."), response], [response]], ["Hi", "Bye"], {}),
        "voice": ({}, [[*voice, response]], [SOUND], {}),
        "recorded": ({}, [[*voice, interrupted, response]], [SOUND], {"save_live_blob": True}),
        "a tool": (
            {"tools": [weather]},
            [[says.calls("weather", city="Oslo")], [says.part(text="Mild."), response]],
            ["Hi"],
            {},
        ),
        "a handle": ({}, [[says.handle(), tokens, response]], ["Hi"], {}),
        "words that are refused": ({"before_model_callback": no_secrets}, [[response]], ["a secret", "Hi"], {}),
        "speech that is refused": (
            {"before_model_callback": no_secrets},
            [[says.heard("a secret"), says.spoken("Well."), response], [response]],
            [SOUND, "Hi"],
            {},
        ),
    }


async def hold(kit: SimpleNamespace, scene: Scene) -> Any:
    fields, turns, says, config = scene
    model = scripted(kit)(model="scripted", turns=turns, connections=[])
    runner = kit.InMemoryRunner(agent=kit.LlmAgent(name="guide", model=model, **fields), app_name="app")
    session_key = {"user_id": "u", "session_id": "s"}
    await runner.session_service.create_session(app_name="app", **session_key)
    queue, pending_says = kit.LiveRequestQueue(), list(says)

    def say_next() -> None:
        if not pending_says:
            queue.close()
        elif isinstance(text := pending_says.pop(0), str):
            queue.send_content(kit.types.Content(role="user", parts=[kit.types.Part(text=text)]))
        else:
            queue.send_realtime(kit.types.Blob(**text))
            queue.send_activity_end()

    say_next()
    yielded: list[str] = []
    async with asyncio.timeout(20):
        async for event in runner.run_live(**session_key, live_request_queue=queue, run_config=kit.RunConfig(**config)):
            yielded.append(line(event))
            if event.turn_complete:
                say_next()
    session = await runner.session_service.get_session(app_name="app", **session_key)
    stored_lines = [line(event) for event in session.events]
    return {"yielded": yielded, "kept": stored_lines, "sent": [connection.sent for connection in model.connections]}


async def told(package: str) -> dict[str, Any]:
    kit = load(package)
    return {name: await hold(kit, scene) for name, scene in scenes(kit).items()}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(asyncio.run(told(sys.argv[1]))))
