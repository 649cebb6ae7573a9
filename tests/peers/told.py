"""Runs the same agents on google-adk or on adk_nb and prints the events: python told.py PACKAGE.

Only what both promise is told: who says what, in which order, with which changes of state. Left out are ids, times, the
words of an error, and the state of pieces (google-adk's pieces share the whole event's actions).
"""

import asyncio
import importlib
import json
import sys
import warnings
from types import SimpleNamespace
from typing import Any

from pydantic import BaseModel

BUILT_IN = ("google_search", "url_context", "enterprise_web_search", "google_maps_grounding")
STORE = "projects/p/locations/eu/collections/c/dataStores/d"
SERVICES = ("google_search", "url_context", "enterprise_web_search", "google_maps", "retrieval")


def load(package: str) -> SimpleNamespace:
    def get(module: str, name: str) -> Any:
        return getattr(importlib.import_module(f"{package}.{module}"), name)

    kit = SimpleNamespace(
        types=importlib.import_module("google.genai.types" if package == "google.adk" else f"{package}.types"),
        LlmAgent=get("agents", "LlmAgent"),
        BaseLlm=get("models", "BaseLlm"),
        LlmResponse=get("models", "LlmResponse"),
        Runner=get("runners", "Runner"),
        InMemorySessionService=get("sessions", "InMemorySessionService"),
        AgentTool=get("tools.agent_tool", "AgentTool"),
        FunctionTool=get("tools", "FunctionTool"),
        request_input=get("tools", "request_input"),
        get_user_choice=get("tools", "get_user_choice"),
        ToolContext=get("tools", "ToolContext"),
        RunConfig=get("agents.run_config", "RunConfig"),
        StreamingMode=get("agents.run_config", "StreamingMode"),
        App=get("apps", "App"),
        EventsCompactionConfig=get("apps.app", "EventsCompactionConfig"),
        LlmEventSummarizer=get("apps.llm_event_summarizer", "LlmEventSummarizer"),
    )
    kit.Scripted = scripted(kit)
    kit.built_in = {name: get("tools", name) for name in BUILT_IN}
    kit.VertexAiSearchTool = get("tools", "VertexAiSearchTool")
    kit.BuiltInCodeExecutor = get("code_executors", "BuiltInCodeExecutor")
    kit.Capable = capable(
        kit, getattr(importlib.import_module(f"{package}.models"), "LlmCapabilities", SimpleNamespace)
    )
    return kit


def scripted(kit: SimpleNamespace) -> Any:
    class Scripted(kit.BaseLlm):
        answers: list[Any]
        asked: list[Any]
        told: list[Any]

        async def generate_content_async(self, llm_request: Any, stream: bool = False):
            self.told.append(llm_request.config.system_instruction)
            self.asked.append([said(content) for content in llm_request.contents])
            answer = self.answers.pop(0)
            if isinstance(answer, str):
                if stream:
                    for token in answer.split():
                        yield kit.LlmResponse(content=content(kit, token), partial=True)
                yield kit.LlmResponse(content=content(kit, answer))
            else:
                parts = [
                    kit.types.Part(function_call=kit.types.FunctionCall(name=name, args=args)) for name, args in answer
                ]
                yield kit.LlmResponse(content=kit.types.Content(role="model", parts=parts))

    return Scripted


def capable(kit: SimpleNamespace, capabilities: Any) -> Any:
    """A Gemini model by its name, and where a model says so itself, by what it says."""

    class Capable(kit.Scripted):
        configured: list[Any]

        @property
        def capabilities(self) -> Any:
            return capabilities(code_execution=True, service_tools=SERVICES)

        async def generate_content_async(self, llm_request: Any, stream: bool = False):
            tools = llm_request.config.tools or []
            self.configured.append([setting(tool) for tool in tools])
            async for answer in super().generate_content_async(llm_request, stream):
                yield answer

    return Capable


def setting(tool: Any) -> Any:
    """A tool of a request; of functions their names, the rest of them has tests of its own."""
    if tool.function_declarations:
        return [declaration.name for declaration in tool.function_declarations]
    return tool.model_dump(mode="json", exclude_none=True)


async def configured(kit: SimpleNamespace, **agent: Any) -> list[Any]:
    """The tools in the request of an agent with a Gemini model."""
    model = kit.Capable(model="gemini-2.5-flash", answers=["Found."], asked=[], told=[], configured=[])
    runner = kit.Runner(
        app=kit.App(name="peers", root_agent=kit.LlmAgent(name="guide", model=model, **agent)),
        session_service=kit.InMemorySessionService(),
    )
    session = await runner.session_service.create_session(app_name="peers", user_id="u")
    session_key = {"user_id": "u", "session_id": session.id}
    async for _ in runner.run_async(**session_key, new_message=content(kit, "Look it up", "user")):
        pass
    return model.configured


def content(kit: SimpleNamespace, text: str, role: str = "model") -> Any:
    return kit.types.Content(role=role, parts=[kit.types.Part(text=text)])


def said(content: Any) -> list[Any]:
    roles: list[Any] = [content.role]
    for part in content.parts or []:
        if part.function_call:
            args = {} if part.function_call.name.startswith("adk_") else part.function_call.args
            roles.append(["calls", part.function_call.name, args])
        elif part.function_response:
            response = part.function_response.response
            roles.append(["answers", part.function_response.name, list(response) if "error" in response else response])
        else:
            roles.append(part.text)
    return roles


def seen(event: Any) -> dict[str, Any]:
    return {
        "author": event.author,
        "said": said(event.content) if event.content else None,
        "partial": bool(event.partial),
        "state": None if event.partial else dict(event.actions.state_delta),
        "asks": len(event.actions.requested_tool_confirmations),
        "final": event.is_final_response(),
    }


async def converse(
    kit: SimpleNamespace,
    answers: list[Any],
    messages: list[Any],
    stream: bool = False,
    compaction: dict[str, int] | None = None,
    **agent: Any,
):
    """What the events tell, then what the model was sent, then the session's state."""
    model = kit.Scripted(model="scripted", answers=answers, asked=[], told=[])
    service = kit.InMemorySessionService()
    summarizer = kit.LlmEventSummarizer(llm=model, prompt_template="Sum up.\n{conversation_history}")
    app = kit.App(
        name="peers",
        root_agent=kit.LlmAgent(name="guide", model=model, **agent),
        events_compaction_config=kit.EventsCompactionConfig(summarizer=summarizer, **compaction)
        if compaction
        else None,
    )
    runner = kit.Runner(app=app, session_service=service)
    session = await service.create_session(app_name="peers", user_id="u", state={"city": "Oslo"})
    session_key = {"user_id": "u", "session_id": session.id}
    config = kit.RunConfig(streaming_mode=kit.StreamingMode.SSE if stream else kit.StreamingMode.NONE)
    events: list[Any] = []
    seens: list[dict[str, Any]] = []
    for message in messages:
        new_message = message(events) if callable(message) else content(kit, message, "user")
        async for event in runner.run_async(**session_key, new_message=new_message, run_config=config):
            events.append(event)
            seens.append(seen(event))
    stored = await service.get_session(app_name="peers", **session_key)
    return {
        "events": seens,
        "told": model.told,
        "asked": model.asked,
        "state": dict(stored.state),
        "stored": [event.author for event in stored.events],
    }


class Wanted(BaseModel):
    question: str
    words: int = 2


class Found(BaseModel):
    answer: str


async def call_an_agent(
    kit: SimpleNamespace, answers: list[Any], messages: list[str], skip: bool = False, **expert: Any
) -> dict[str, Any]:
    """`converse` with an agent that has an expert as its tool; and what the expert was told."""
    model = kit.Scripted(model="scripted", answers=expert.pop("says"), asked=[], told=[])
    agent = kit.LlmAgent(name="expert", description="Knows.", model=model, **expert)
    tool = kit.AgentTool(agent=agent, skip_summarization=skip)
    conversation = await converse(kit, answers, messages, tools=[tool])
    return conversation | {"expert": {"told": model.told, "asked": model.asked}}


async def call_a_sub_agent(
    kit: SimpleNamespace, answers: list[Any], messages: list[str], *, says: list[Any], words: bool = True, **expert: Any
) -> dict[str, Any]:
    """`converse` with an agent that has an expert under it; and what the expert was told.

    `words=False`: without the system instruction, whose words are each package's own.
    """
    model = kit.Scripted(model="scripted", answers=says, asked=[], told=[])
    agent = kit.LlmAgent(name="expert", description="Knows.", instruction="Know.", model=model, **expert)
    conversation = await converse(kit, answers, messages, sub_agents=[agent])
    return conversation | {"expert": {"asked": model.asked} | ({"told": model.told} if words else {})}


async def tell(kit: SimpleNamespace) -> dict[str, Any]:
    def weather(city: str) -> dict[str, str]:
        """The weather in a city."""
        return {"sky": f"{city}: sunny"}

    def note(text: str, tool_context: Any) -> str:
        """Notes something."""
        tool_context.state["noted"] = text
        tool_context.state["user:notes"] = 1
        return "noted"

    note.__annotations__["tool_context"] = kit.ToolContext

    def answer_for_the_model(callback_context: Any, llm_request: Any) -> Any:
        callback_context.state["asked"] = True
        return kit.LlmResponse(content=content(kit, "from the callback"))

    def other_result(tool: Any, args: dict[str, Any], tool_context: Any, tool_response: Any) -> dict[str, Any]:
        return {"sky": "cloudy after all"}

    def confirm(events: list[Any]) -> Any:
        asks = [
            part.function_call
            for event in events
            for part in event.content.parts
            if part.function_call and part.function_call.name == "adk_request_confirmation"
        ]
        answer = kit.types.FunctionResponse(id=asks[0].id, name=asks[0].name, response={"confirmed": True})
        return kit.types.Content(role="user", parts=[kit.types.Part(function_response=answer)])

    def answer(name: str, value: str) -> Any:
        def said(events: list[Any]) -> Any:
            [call] = [call for event in events for call in event.get_function_calls() if call.name == name]
            response = kit.types.FunctionResponse(id=call.id, name=name, response={"result": value})
            return kit.types.Content(role="user", parts=[kit.types.Part(function_response=response)])

        return said

    long = "and so on and on " * 20
    oslo, bergen = ("weather", {"city": "Oslo"}), ("weather", {"city": "Bergen"})
    return {
        "words": await converse(
            kit, ["Hello.", "Again."], ["hi", "hi again"], instruction="You are in {city}.", output_key="last"
        ),
        "a tool": await converse(kit, [[oslo], "Sunny."], ["How is Oslo?"], tools=[weather]),
        "tools side by side": await converse(kit, [[oslo, bergen], "Sunny."], ["And Bergen?"], tools=[weather]),
        "tools in a row": await converse(kit, [[oslo], [bergen], "Sunny."], ["Both?"], tools=[weather]),
        "a tool that writes state": await converse(
            kit, [[("note", {"text": "milk"})], "Done."], ["Note milk"], tools=[note]
        ),
        "a stream": await converse(kit, ["One two three."], ["Count"], stream=True, output_key="last"),
        "a stream after a tool": await converse(
            kit, [[oslo], "Sunny today."], ["How is Oslo?"], stream=True, tools=[weather]
        ),
        "a callback that answers": await converse(kit, [], ["hi"], before_model_callback=answer_for_the_model),
        "a callback that changes a result": await converse(
            kit, [[oslo], "Cloudy."], ["How is Oslo?"], tools=[weather], after_tool_callback=other_result
        ),
        "a conversation kept short": await converse(
            kit,
            [f"one {long}", f"two {long}", "SUMMARY 1", "three", f"four {long}", "SUMMARY 2", "five"],
            [f"m1 {long}", f"m2 {long}", "m3", f"m4 {long}", "m5"],
            compaction={"compaction_interval": 2, "overlap_size": 1},
        ),
        "a long prompt cut short": await converse(
            kit,
            [f"one {long}", "SUMMARY 1", [oslo], "Sunny.", "three"],
            [f"m1 {long}", f"m2 {long}", "m3"],
            compaction={"token_threshold": 250, "event_retention_size": 1},
            tools=[weather],
        ),
        "the present turn alone": await converse(
            kit,
            ["One.", [oslo], "Sunny.", "Three."],
            ["first", "How is Oslo?", "third"],
            include_contents="none",
            tools=[weather],
        ),
        "instructions": await converse(
            kit,
            ["One.", "Two."],
            ["first", "second"],
            instruction=lambda ctx: f"{{x}} {ctx.state['city']}",
            global_instruction="All in {city}{nothing?}.",
        ),
        "a static instruction": await converse(kit, ["One.", "Two."], ["first", "second"], static_instruction="{x}"),
        "an agent as a tool": await call_an_agent(
            kit,
            [[("expert", {"request": "Which city?"})], "It is Oslo.", "You are welcome."],
            ["Where am I?", "thanks"],
            says=[[("note", {"text": "asked"})], "Oslo."],
            instruction="The city is {city}.",
            output_key="found",
            tools=[note],
        ),
        "an agent as a tool that has the last word": await call_an_agent(
            kit,
            [[("expert", {"request": "Which city?"})], "You are welcome."],
            ["Where am I?", "thanks"],
            skip=True,
            says=["Oslo."],
        ),
        "an agent as a tool with schemas": await call_an_agent(
            kit,
            [[("expert", {"question": "Which city?"})], "It is Oslo."],
            ["Where am I?"],
            says=['{"answer": "Oslo"}'],
            input_schema=Wanted,
            output_schema=Found,
        ),
        "a sub-agent of a single turn": await call_a_sub_agent(
            kit,
            ["Hello.", [("expert", {"request": "Which city?"})], "It is Oslo.", "You are welcome."],
            ["hi", "Where am I?", "thanks"],
            says=[[("note", {"text": "asked"})], "Oslo."],
            mode="single_turn",
            output_key="found",
            tools=[note],
        ),
        "a sub-agent of a single turn with schemas": await call_a_sub_agent(
            kit,
            [[("expert", {"question": "Which city?", "words": 3})], "It is Oslo."],
            ["Where am I?"],
            says=['{"answer": "Oslo"}'],
            mode="single_turn",
            input_schema=Wanted,
            output_schema=Found,
        ),
        "a task": await call_a_sub_agent(
            kit,
            [[("expert", {"request": "book"})], "All done.", "You are welcome."],
            ["Book it.", "tomorrow", "two", "thanks"],
            says=["When?", "For how many?", [("finish_task", {"result": "booked"})]],
            words=False,
            mode="task",
        ),
        "a task with a schema": await call_a_sub_agent(
            kit,
            [[("expert", {"request": "find"})], "It is Oslo."],
            ["Find it."],
            says=[[("finish_task", {"wrong": "x"})], [("finish_task", {"answer": "Oslo"})]],
            words=False,
            mode="task",
            output_schema=Found,
        ),
        **{f"the request with {name}": await configured(kit, tools=[value]) for name, value in kit.built_in.items()},
        "the request with a store of documents": await configured(
            kit, tools=[kit.VertexAiSearchTool(data_store_id=STORE, max_results=3, filter="a")]
        ),
        "the request with a search engine": await configured(
            kit, tools=[kit.VertexAiSearchTool(search_engine_id=STORE.replace("dataStores", "engines"))]
        ),
        "the request with code execution": await configured(kit, code_executor=kit.BuiltInCodeExecutor()),
        "the request with a search beside a function": await configured(
            kit, tools=[kit.FunctionTool(weather), kit.built_in["google_search"]]
        ),
        "an approval": await converse(
            kit,
            [[oslo], "Sunny."],
            ["How is Oslo?", confirm],
            tools=[kit.FunctionTool(weather, require_confirmation=True)],
        ),
        "a question": await converse(
            kit,
            [[("adk_request_input", {"message": "Where?", "response_schema": {"type": "string"}})], [oslo], "Sunny."],
            ["How is it?", answer("adk_request_input", "Oslo")],
            tools=[kit.request_input, weather],
        ),
        "a choice": await converse(
            kit,
            [[("get_user_choice", {"options": ["Oslo", "Bergen"]})], [bergen], "Sunny."],
            ["How is it?", answer("get_user_choice", "Bergen")],
            tools=[kit.get_user_choice, weather],
        ),
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with asyncio.Runner() as runner:
        print(json.dumps(runner.run(tell(load(sys.argv[1])))))
