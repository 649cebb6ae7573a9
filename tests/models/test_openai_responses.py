"""OpenAI's Responses API: what is asked, what goes back, and what comes of its answers.

Bodies as in https://platform.openai.com/docs/api-reference/responses and /responses-streaming; what is asked is held
against the types of openai's own package.
"""

import asyncio
import base64
import json
from contextlib import aclosing
from functools import cache
from typing import Any

import pytest
from gemini_server import GeminiServer, Reply
from pydantic import BaseModel, TypeAdapter

from adk_nb import types
from adk_nb.agents import LlmAgent, RunConfig, StreamingMode
from adk_nb.code_executors import BuiltInCodeExecutor
from adk_nb.errors import ConfigurationError, UnexpectedModelAnswer
from adk_nb.models import LlmRequest, LlmResponse, OpenAILlm
from adk_nb.tools import VertexAiSearchTool, google_maps_grounding, google_search, url_context
from adk_nb.tools.built_in_code_execution_tool import built_in_code_execution
from tests.support.late import late
from tests.support.talk import Talk, summaries

MODEL = "gpt-6-luna"
SEALED = "gAAAA-sealed-thoughts"
USAGE = {
    "input_tokens": 20,
    "input_tokens_details": {"cached_tokens": 8},
    "output_tokens": 10,
    "output_tokens_details": {"reasoning_tokens": 4},
    "total_tokens": 30,
}
response_create_params = late("openai.types.responses.response_create_params")


@cache
def checked() -> TypeAdapter[Any]:
    return TypeAdapter(response_create_params.ResponseCreateParamsNonStreaming)


class Price(BaseModel):
    item: str
    euros: int


def model(server: GeminiServer, **fields: Any) -> OpenAILlm:
    patience = types.HttpRetryOptions(attempts=1)
    given = {"model": MODEL, "base_url": server.url + "/v1", "api_key": "sk-none", "responses": True}
    return OpenAILlm(**given | {"retry_options": patience} | fields)


def reasoning(number: int = 1, *summary: str) -> dict[str, Any]:
    texts = [{"type": "summary_text", "text": text} for text in summary]
    return {"id": f"rs_{number}", "type": "reasoning", "summary": texts, "encrypted_content": f"{SEALED}-{number}"}


def words(text: str, *notes: dict[str, Any]) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": list(notes), "logprobs": []}]
    return {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": content}


def call(name: str, arguments: str, call_id: str = "call_1") -> dict[str, Any]:
    made = {"call_id": call_id, "name": name, "arguments": arguments}
    return {"id": f"fc_{call_id}", "type": "function_call", "status": "completed", **made}


def response(*items: dict[str, Any], status: str = "completed", **more: Any) -> dict[str, Any]:
    about = {"id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-6-luna-2026", "status": status}
    return about | {"output": list(items), "usage": USAGE, "error": None, "incomplete_details": None} | more


def say(server: GeminiServer, *items: dict[str, Any], stream: bool = False, cut: int = 0, **more: Any) -> None:
    """Answer the next request; of a stream without its last `cut` events."""
    whole = response(*items, **more)
    if not stream:
        server.replies.append(Reply(json.dumps(whole).encode()))
        return
    events: list[dict[str, Any]] = [{"type": "response.created", "response": response(status="in_progress")}]
    for index, item in enumerate(items):
        events.append({"type": "response.output_item.added", "output_index": index, "item": item})
        place = {"output_index": index, "item_id": item["id"]}
        thoughts = [
            ("response.reasoning_summary_text", "summary_index", one["text"]) for one in item.get("summary", ())
        ]
        text = item["content"][0]["text"] if item["type"] == "message" else ""
        halves = [
            ("response.output_text", "content_index", half) for half in (text[: len(text) // 2], text[len(text) // 2 :])
        ]
        events += [
            {"type": f"{kind}.delta", **place, index_name: 0, "delta": delta}
            for kind, index_name, delta in thoughts + halves
            if delta
        ]
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": f"response.{whole['status']}", "response": whole})
    sent = events[: len(events) - cut]
    body = b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in sent)
    server.replies.append(Reply(body, headers={"Content-Type": "text/event-stream"}, framing="chunked"))


def ask(llm: OpenAILlm, *contents: types.Content, stream: bool = False, **config: Any) -> list[LlmResponse]:
    request = LlmRequest(
        contents=list(contents) or [types.UserContent("Go")], config=types.GenerateContentConfig(**config)
    )

    async def collect() -> list[LlmResponse]:
        async with aclosing(llm.generate_content_async(request, stream=stream)) as responses:
            return [response async for response in responses]

    return asyncio.run(collect())


def body_of(server: GeminiServer, number: int = -1) -> dict[str, Any]:
    """A request, which has to be one that OpenAI takes."""
    sent = server.requests[number]
    assert sent.path == "/v1/responses"
    known = response_create_params.ResponseCreateParamsBase.__annotations__.keys() | {"stream"}
    assert sent.body.keys() <= known
    checked().validate_python({name: value for name, value in sent.body.items() if name != "stream"})
    return sent.body


class Shop:
    """An agent with a tool, and what it was asked."""

    def __init__(self, server: GeminiServer, **fields: Any) -> None:
        self.asked: list[str] = []

        def price_of(item: str) -> str:
            """The price of an item."""
            self.asked.append(item)
            return "3 €"

        self.agent = LlmAgent(name="shop", model=model(server), tools=[price_of], **fields)
        self.talk = Talk(self.agent)

    def say(self, *, stream: bool) -> list[Any]:
        mode = StreamingMode.SSE if stream else StreamingMode.NONE
        return self.talk.say("Tea?", config=RunConfig(streaming_mode=mode))


@pytest.mark.parametrize("stream", [False, True])
def test_reasoning_goes_with_tools_and_comes_back_sealed_and_unseen(server: GeminiServer, stream: bool):
    level = types.ThinkingConfig(thinking_level=types.ThinkingLevel.HIGH)
    shop = Shop(server, generate_content_config=types.GenerateContentConfig(thinking_config=level))
    say(server, reasoning(), call("price_of", '{"item": "tea"}'), stream=stream)
    say(server, reasoning(2), words("It costs 3 €."), stream=stream)
    say(server, words("Yes."), stream=stream)

    events = shop.say(stream=stream)
    shop.say(stream=stream)

    assert shop.asked == ["tea"]
    assert events[-1].text == "It costs 3 €."
    first, second, third = (body_of(server, number) for number in range(3))
    assert first["reasoning"] == {"effort": "high"}
    assert first["store"] is False and first["include"] == ["reasoning.encrypted_content"]
    assert [item.get("type") for item in second["input"][1:]] == ["reasoning", "function_call", "function_call_output"]
    assert second["input"][1] == reasoning()
    assert second["input"][2]["call_id"] == second["input"][3]["call_id"]
    assert [item["encrypted_content"] for item in third["input"] if item.get("type") == "reasoning"] == [
        f"{SEALED}-1",
        f"{SEALED}-2",
    ]
    assert all(SEALED not in part.text for event in events for part in event.parts if part.text)


def test_a_summary_of_the_reasoning_is_a_thought_if_it_was_asked_for(server: GeminiServer):
    say(server, reasoning(1, "Tea is cheap."), words("3 €."), stream=True)

    thinking = types.ThinkingConfig(include_thoughts=True)
    *partial, whole = ask(model(server), stream=True, thinking_config=thinking)

    assert body_of(server)["reasoning"] == {"summary": "auto"}
    assert [(part.text, bool(part.thought)) for part in whole.parts] == [("Tea is cheap.", True), ("3 €.", False)]
    assert [part.text for piece in partial for part in piece.parts] == ["Tea is cheap.", "3 ", "€."]


def test_reasoning_that_led_to_nothing_does_not_go_back_and_none_goes_to_another_server(server: GeminiServer):
    say(server, reasoning(), status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    [cut] = ask(model(server))
    say(server, reasoning(), words("3 €."))
    [good] = ask(model(server))
    for _ in range(2):
        say(server, words("Well."))

    assert cut.error_code == "MAX_TOKENS"
    question = types.UserContent("Tea?")
    ask(model(server), question, cut.content or question, types.UserContent("And?"))
    assert "sealed" not in json.dumps(body_of(server))
    elsewhere = model(server, base_url=server.url.replace("127.0.0.1", "localhost") + "/v1")
    ask(elsewhere, question, good.content or question, types.UserContent("And?"))
    assert "sealed" not in json.dumps(body_of(server))


@pytest.mark.parametrize("stream", [False, True])
def test_tokens_of_reasoning_are_counted_apart(server: GeminiServer, stream: bool):
    say(server, words("3 €."), stream=stream)

    usage = ask(model(server), stream=stream)[-1].usage_metadata

    assert usage
    assert (usage.prompt_token_count, usage.cached_content_token_count, usage.total_token_count) == (20, 8, 30)
    assert (usage.candidates_token_count, usage.thoughts_token_count) == (6, 4)


def test_the_answer_can_have_a_schema_beside_tools(server: GeminiServer):
    shop = Shop(server, output_schema=Price)
    say(server, words('{"item": "tea", "euros": 3}'))

    [event] = shop.say(stream=False)

    body = body_of(server)
    names = {tool["name"] for tool in body["tools"]}
    form = body.get("text", {}).get("format", {})
    assert form.get("type") == "json_schema" or "set_model_response" in names
    assert json.loads(event.text)["euros"] == 3


def test_a_schema_is_strict_where_it_can_be(server: GeminiServer):
    say(server, words("{}"))

    ask(model(server), response_schema=Price)

    form = body_of(server)["text"]["format"]
    assert (form["type"], form["strict"], set(form["schema"]["properties"])) == (
        "json_schema",
        True,
        {"item", "euros"},
    )


def test_images_and_files_are_sent_in_messages_and_in_results(server: GeminiServer):
    say(server, words("A cup."))
    image = types.Part(inline_data=types.Blob(mime_type="image/png", data=b"png"))
    paper = types.Part(inline_data=types.Blob(mime_type="application/pdf", data=b"pdf", display_name="a.pdf"))
    made = types.FunctionCall(id="c1", name="draw", args={})
    drawn = types.FunctionResponse(
        id="c1",
        name="draw",
        response={"ok": True},
        parts=[types.FunctionResponsePart(inline_data=types.FunctionResponseBlob(mime_type="image/png", data=b"png"))],
    )

    ask(
        model(server),
        types.Content(role="user", parts=[types.Part(text="What is it?"), image, paper]),
        types.Content(role="model", parts=[types.Part(function_call=made)]),
        types.Content(role="user", parts=[types.Part(function_response=drawn)]),
    )

    message, _, result = body_of(server)["input"]
    url = "data:image/png;base64," + base64.b64encode(b"png").decode()
    assert [block["type"] for block in message["content"]] == ["input_text", "input_image", "input_file"]
    assert message["content"][1]["image_url"] == url
    assert [block["type"] for block in result["output"]] == ["input_text", "input_image"]


def test_the_search_of_our_name_is_openai_s_and_its_pages_are_sources(server: GeminiServer):
    searched = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"type": "search"}}
    note = {"type": "url_citation", "url": "https://tea.example/", "title": "Tea", "start_index": 0, "end_index": 3}
    say(server, reasoning(), searched, words("Tea is 3 €.", note))
    say(server, words("Yes."))
    talk = Talk(LlmAgent(name="finder", model=model(server), tools=[google_search]))

    [event] = talk.say("Tea?")
    talk.say("Sure?")

    assert body_of(server, 0)["tools"] == [{"type": "web_search"}]
    assert event.grounding_metadata.grounding_chunks[0].web.uri == "https://tea.example/"
    assert event.text == "Tea is 3 €."
    assert [item.get("type") for item in body_of(server)["input"][1:3]] == ["reasoning", "web_search_call"]


def ran(code: str, *outputs: dict[str, Any], status: str = "completed") -> dict[str, Any]:
    made = {"id": "ci_1", "type": "code_interpreter_call", "status": status, "container_id": "cntr_1"}
    return made | {"code": code, "outputs": list(outputs)}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "fields", [{"code_executor": BuiltInCodeExecutor()}, {"tools": [built_in_code_execution]}], ids=["executor", "tool"]
)
def test_code_that_the_service_runs_is_shown_with_its_output_and_goes_back_as_it_came(
    server: GeminiServer, stream: bool, fields: dict[str, Any]
):
    picture = "data:image/png;base64," + base64.b64encode(b"png").decode()
    outputs = [{"type": "logs", "logs": "42\n"}, {"type": "image", "url": picture}, {"type": "logs", "logs": "drawn"}]
    say(server, reasoning(), ran("print(6 * 7)", *outputs), words("It is 42."), stream=stream)
    say(server, words("Yes."), stream=stream)
    talk = Talk(LlmAgent(name="coder", model=model(server), **fields))
    config = RunConfig(streaming_mode=StreamingMode.SSE if stream else StreamingMode.NONE)

    *_, event = talk.say("6 * 7?", config=config)
    talk.say("Sure?", config=config)

    first, second = body_of(server, 0), body_of(server)
    assert first["tools"] == [{"type": "code_interpreter", "container": {"type": "auto"}}]
    assert "code_interpreter_call.outputs" in first["include"]
    _, code, result, image, text = event.parts
    assert code.executable_code.code == "print(6 * 7)"
    assert (result.code_execution_result.outcome.value, result.code_execution_result.output) == (
        "OUTCOME_OK",
        "42\n\ndrawn",
    )
    assert (image.inline_data.mime_type, image.inline_data.data, text.text) == ("image/png", b"png", "It is 42.")
    assert [item.get("type") or item["role"] for item in second["input"]] == [
        "user",
        "reasoning",
        "code_interpreter_call",
        "assistant",
        "user",
    ]
    assert second["input"][2] == ran("print(6 * 7)", outputs[0], outputs[2])


def test_code_goes_to_another_server_as_text_and_code_that_failed_says_so(server: GeminiServer):
    say(server, ran("1 / 0", {"type": "logs", "logs": "ZeroDivisionError"}, status="failed"), words("It failed."))
    [answer] = ask(model(server), tools=[types.Tool(code_execution=types.ToolCodeExecution())])
    say(server, words("Well."))

    assert answer.parts[1].code_execution_result.outcome == types.Outcome.OUTCOME_FAILED
    elsewhere = model(server, base_url=server.url.replace("127.0.0.1", "localhost") + "/v1")
    ask(elsewhere, types.UserContent("Go"), answer.content, types.UserContent("And?"))
    sent = json.dumps(body_of(server)["input"])
    assert "1 / 0" in sent and "ZeroDivisionError" in sent and "code_interpreter_call" not in sent


@pytest.mark.parametrize("url", ["data:image/png;base64,abc", "javascript:alert(1)", "data:text/html;base64,YWJj", ""])
def test_an_image_that_is_none_is_left_out(server: GeminiServer, url: str):
    say(server, ran("draw()", {"type": "image", "url": url}), words("Drawn."))

    [answer] = ask(model(server))

    assert [bool(part.inline_data or part.file_data) for part in answer.parts] == [False, False, False]


def test_what_the_service_searched_for_is_told(server: GeminiServer):
    searched = {"id": "ws_1", "type": "web_search_call", "status": "completed"}
    page = {"type": "open_page", "url": "https://tea.example/"}
    say(
        server,
        searched | {"action": {"type": "search", "query": "tea price", "queries": ["tea price", "price of tea"]}},
        searched | {"id": "ws_2", "action": {"type": "search", "query": "tea price"}},
        searched | {"id": "ws_3", "action": page},
        words("Tea is 3 €."),
    )

    [answer] = ask(model(server), tools=[types.Tool(google_search=types.GoogleSearch())])

    assert answer.grounding_metadata.web_search_queries == ["tea price", "price of tea"]
    assert answer.text == "Tea is 3 €."


def test_a_file_search_is_openai_s_and_its_files_are_sources(server: GeminiServer):
    searched = {"id": "fs_1", "type": "file_search_call", "status": "completed", "queries": ["tea"], "results": None}
    note = {"type": "file_citation", "file_id": "file_1", "filename": "prices.pdf", "index": 3}
    say(server, searched, words("Tea is 3 €.", note))
    search = types.FileSearch(file_search_store_names=["vs_1"], top_k=4)

    [answer] = ask(model(server), tools=[types.Tool(file_search=search)])

    assert body_of(server)["tools"] == [{"type": "file_search", "vector_store_ids": ["vs_1"], "max_num_results": 4}]
    grounding = answer.grounding_metadata
    assert grounding.retrieval_queries == ["tea"]
    assert [chunk.retrieved_context.title for chunk in grounding.grounding_chunks] == ["prices.pdf"]


@pytest.mark.parametrize(
    ("tool", "name"),
    [
        (types.Tool(url_context=types.UrlContext()), "url_context"),
        (types.Tool(google_maps=types.GoogleMaps()), "google_maps"),
        (types.Tool(mcp_servers=[types.McpServer(name="files")]), "mcp_servers"),
        (types.Tool(file_search=types.FileSearch(file_search_store_names=["vs_1"], metadata_filter="a=1")), "filter"),
    ],
)
def test_a_tool_that_the_service_does_not_have_is_refused_before_anything_is_sent(
    server: GeminiServer, tool: types.Tool, name: str
):
    with pytest.raises(ConfigurationError, match=name) as refused:
        ask(model(server), tools=[tool])

    assert "\n" not in str(refused.value)
    assert server.requests == []


@pytest.mark.parametrize("tool", [url_context, google_maps_grounding, VertexAiSearchTool(data_store_id="stores/s")])
def test_a_tool_of_gemini_s_service_alone_is_refused_by_name(server: GeminiServer, tool: Any):
    talk = Talk(LlmAgent(name="finder", model=model(server), tools=[tool]))

    talk.say("Tea?")

    assert isinstance(talk.error, ConfigurationError)
    assert tool.name in str(talk.error) and "\n" not in str(talk.error)
    assert server.requests == []


@pytest.mark.parametrize("raw", ['{"item": ', "[1]"])
def test_unreadable_arguments_go_back_to_the_model_as_an_error(server: GeminiServer, raw: str):
    shop = Shop(server)
    say(server, call("price_of", raw))
    say(server, words("I cannot."))

    assert summaries(shop.say(stream=False))[-1] == ("shop", "I cannot. .")
    assert shop.asked == []
    assert "not a JSON object" in body_of(server)["input"][-1]["output"]


@pytest.mark.parametrize("stream", [False, True])
def test_what_the_service_says_of_its_own_failure_is_told(server: GeminiServer, stream: bool):
    say(server, status="failed", error={"code": "server_error", "message": "the rack burns"}, stream=stream)

    came: list[LlmResponse] = []

    async def collect() -> None:
        async with aclosing(model(server).generate_content_async(LlmRequest(), stream=stream)) as responses:
            async for response in responses:
                came.append(response)  # noqa: PERF401  # a list of what came before an error

    with pytest.raises(UnexpectedModelAnswer, match="the rack burns"):
        asyncio.run(collect())

    counts = [response.usage_metadata.total_token_count for response in came if response.usage_metadata]
    assert counts == ([30] if stream else [])


def test_a_stream_that_breaks_off_is_no_answer(server: GeminiServer):
    say(server, words("It is mild."), stream=True, cut=1)

    with pytest.raises(UnexpectedModelAnswer, match="It is mild"):
        ask(model(server), stream=True)


@pytest.mark.parametrize(
    ("name", "is_there"), [("gpt-6-luna", True), ("gpt-5.4-mini", True), ("gpt-5", False), ("gpt-4o", False)]
)
def test_openai_s_own_models_that_need_it_are_asked_there_and_other_servers_are_not(name: str, is_there: bool):
    request = LlmRequest(contents=[types.UserContent("Go")])
    own, other = OpenAILlm(model=name), OpenAILlm(model=name, base_url="http://127.0.0.1:9/v1")

    assert ("input" in own.payload(request, name)) is is_there
    assert "messages" in other.payload(request, name)
    assert ("google_search" in own.capabilities.service_tools) is is_there
