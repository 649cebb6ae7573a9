"""What small models write into the text of an answer: calls of tools, and thoughts in tags."""

import asyncio
import json
from contextlib import aclosing
from typing import Any

import pytest
from gemini_server import GeminiServer, Reply
from vendors import OPENAI, VENDORS, Call, Vendor

from adk_nb import types
from adk_nb.agents import LlmAgent, RunConfig, StreamingMode
from adk_nb.models import LLMRegistry, LlmRequest, LlmResponse
from tests.support.talk import Talk, summaries

CHATS = [row for row in VENDORS if row.id in ("openai", "litellm")]
TEA = '{"name": "price_of", "arguments": {"item": "tea"}}'
RUM = '{"name": "price_of", "arguments": {"item": "rum"}}'


@pytest.fixture(params=CHATS)
def vendor(request: pytest.FixtureRequest) -> Vendor:
    return request.param


class Shop:
    """An agent with tools, on a server; and what they were asked."""

    def __init__(self, vendor: Vendor, server: GeminiServer, **fields: Any) -> None:
        self.asked: list[Any] = []

        def price_of(item: str) -> str:
            """The price of an item."""
            self.asked.append(item)
            return "3 €"

        def now() -> str:
            """The time."""
            self.asked.append("now")
            return "noon"

        tools = fields.pop("tools", [price_of, now])
        self.agent = LlmAgent(name="shop", model=vendor.model(server), tools=tools, **fields)
        self.talk = Talk(self.agent)

    def say(self, *, stream: bool) -> list[tuple[str, str]]:
        mode = StreamingMode.SSE if stream else StreamingMode.NONE
        self.events = self.talk.say("What is the price of tea?", config=RunConfig(streaming_mode=mode))
        return summaries([event for event in self.events if not event.partial])


def pieces(server: GeminiServer, *deltas: dict[str, Any], finish: str = "stop") -> None:
    """Answer the next request with these deltas."""
    about = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": finish})
    body = b"".join(b"data: " + json.dumps({**about, "choices": [one]}).encode() + b"\n\n" for one in choices)
    headers = {"Content-Type": "text/event-stream", "Connection": "close"}
    server.replies.append(Reply(body + b"data: [DONE]\n\n", headers=headers, framing="chunked"))


def letters(text: str, size: int = 3) -> list[dict[str, Any]]:
    return [{"content": text[start : start + size]} for start in range(0, len(text), size)]


def message(server: GeminiServer, **fields: Any) -> None:
    """Answer the next request with this message, whole."""
    choice = {"index": 0, "message": {"role": "assistant", "content": None} | fields, "finish_reason": "stop"}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    server.replies.append(Reply(json.dumps(body).encode(), headers={"Connection": "close"}))


def answer(server: GeminiServer, text: str, *, stream: bool, **more: Any) -> None:
    """Answer the next request with a text, whole or in small pieces."""
    if stream:
        pieces(server, *letters(text), **more)
    else:
        OPENAI.say(server, text, **more)
        server.replies[-1].headers["Connection"] = "close"


def ask(model: Any, *, stream: bool) -> list[LlmResponse]:
    async def collect() -> list[LlmResponse]:
        request = LlmRequest(contents=[types.UserContent("Go")])
        async with aclosing(model.generate_content_async(request, stream=stream)) as responses:
            return [response async for response in responses]

    return asyncio.run(collect())


# --- calls written as text


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "text",
    [
        TEA,
        f"\n{TEA}\n",
        f"```json\n{TEA}\n```",
        f"```\n{TEA}\n```\n",
        f"<tool_call>\n{TEA}\n</tool_call>",
        f"<think>Tea?</think>\n\n<tool_call>{TEA}</tool_call>",
        '{"name": "price_of", "parameters": {"item": "tea"}}',
        '{"type": "function", "function": {"name": "price_of", "arguments": {"item": "tea"}}}',
        '{"arguments": {"item": "tea"}, "name": "price_of"}',
        '{"name": "price_of", "arguments": "{\\"item\\": \\"tea\\"}"}',
    ],
)
def test_an_answer_that_is_a_call_runs_the_tool(vendor: Vendor, server: GeminiServer, text: str, stream: bool):
    shop = Shop(vendor, server)
    answer(server, text, stream=stream)
    answer(server, "It costs 3 €.", stream=stream)

    events = shop.say(stream=stream)

    assert shop.asked == ["tea"]
    assert events[-1] == ("shop", "It costs 3 €. .")
    assert not any(event.text for event in shop.events if "{" in event.text), "the text of the call is shown"
    sent = server.requests[-1].body["messages"]
    assert [one["function"]["name"] for one in sent[-2]["tool_calls"]] == ["price_of"]
    assert sent[-1]["role"] == "tool"
    assert sent[-1]["tool_call_id"] == sent[-2]["tool_calls"][0]["id"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "text",
    [
        f"{TEA}\n{RUM}",
        f"[{TEA}, {RUM}]",
        f"```json\n{TEA}\n```\n```json\n{RUM}\n```",
        f"<tool_call>\n{TEA}\n</tool_call>\n<tool_call>\n{RUM}\n</tool_call>",
    ],
)
def test_several_calls_in_one_answer_all_run(vendor: Vendor, server: GeminiServer, text: str, stream: bool):
    shop = Shop(vendor, server)
    answer(server, text, stream=stream)
    answer(server, "Done.", stream=stream)

    shop.say(stream=stream)

    assert sorted(shop.asked) == ["rum", "tea"]


NO_CALLS = [
    f"I would call {TEA} for this.",
    f"{TEA}\nThat is how it is done.",
    f"Sure:\n```json\n{TEA}\n```",
    '{"name": "price_of", "arguments": {"item": "tea"}',
    '{"name": "price_of", "arguments": {"thing": "tea"}}',
    '{"name": "price_of", "arguments": {}}',
    '{"name": "price_of", "arguments": {"item": "tea", "loud": true}}',
    f"```python\n{TEA}\n```",
    f'{TEA}\n{{"name": "delete_all", "arguments": {{}}}}',
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("text", [*NO_CALLS, '{"name": "Eva", "age": 7}', '{"price": 3}', "[1, 2]", "{", "``", "<tool"])
def test_an_answer_that_is_more_or_other_than_calls_is_text(
    vendor: Vendor, server: GeminiServer, text: str, stream: bool
):
    shop = Shop(vendor, server)
    answer(server, text, stream=stream)

    events = shop.say(stream=stream)

    assert (shop.asked, events) == ([], [("shop", f"{text} .")])
    if stream:
        assert text.startswith("".join(event.text for event in shop.events if event.partial))


@pytest.mark.parametrize("text", NO_CALLS)
def test_a_text_like_a_call_is_noted_and_any_other_is_not(server: GeminiServer, text: str):
    shop = Shop(OPENAI, server)
    answer(server, text, stream=False)
    answer(server, '{"price": 3}', stream=False)

    shop.say(stream=False)
    [noted] = shop.events
    shop.say(stream=False)
    [other] = shop.events

    assert "no tool was called" in str(noted.custom_metadata)
    assert not other.custom_metadata


def test_without_tools_a_call_is_text(server: GeminiServer):
    shop = Shop(OPENAI, server, tools=[])
    answer(server, TEA, stream=True)

    assert shop.say(stream=True) == [("shop", f"{TEA} .")]
    assert not shop.events[-1].custom_metadata


def test_a_call_that_was_cut_at_the_limit_is_text(server: GeminiServer):
    shop = Shop(OPENAI, server)
    answer(server, TEA, stream=True, finish="length")

    shop.say(stream=True)

    assert (shop.asked, shop.events[-1].error_code, shop.events[-1].text) == ([], "MAX_TOKENS", TEA)


def test_a_tool_with_free_arguments_takes_those_that_are_written(server: GeminiServer):
    shop = Shop(OPENAI, server)

    def look(**words: Any) -> str:
        """Look something up."""
        shop.asked.append(words)
        return "seen"

    declared = LlmAgent(name="a", model=OPENAI.model(server), tools=[look])
    answer(server, '{"name": "look", "arguments": {}}', stream=False)
    answer(server, "Done.", stream=False)

    Talk(declared).say("Look.")

    assert shop.asked == [{}]


@pytest.mark.parametrize(
    ("text", "shown_at"),
    [
        ('{"price": 3, "of": "tea"}', 12),
        ('{"name": "Eva", "of": "tea"}', 18),
        ("It is {3}.", 3),
        ("```python\nprint(3)\n```", 12),
        ("<b>Tea</b> is", 6),
        (f"{TEA} is the call", len(TEA) + 4),
    ],
)
def test_text_is_held_back_only_while_it_can_be_a_call(server: GeminiServer, text: str, shown_at: int):
    shop = Shop(OPENAI, server)
    pieces(server, *letters(text, 1))

    shop.say(stream=True)

    texts = [event.text for event in shop.events if event.partial]
    assert "".join(texts) == text
    assert len(texts[0]) <= shown_at


# --- arguments that are no text of an object


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("raw", ['{"item": ', json.dumps('{"item": "tea"}'), "[1]", "tea"])
def test_unreadable_arguments_go_back_to_the_model_as_an_error(
    vendor: Vendor, server: GeminiServer, raw: str, stream: bool
):
    shop = Shop(vendor, server)
    vendor.say(server, Call("price_of", raw=raw), stream=stream)
    vendor.say(server, Call("price_of", {"item": "tea"}, id="b"), stream=stream)
    vendor.say(server, "It costs 3 €.", stream=stream)

    events = shop.say(stream=stream)

    assert shop.asked == ["tea"]
    assert events[-1] == ("shop", "It costs 3 €. .")
    error = json.loads(server.requests[1].body["messages"][-1]["content"])["error"]
    assert "not a JSON object" in error
    assert raw[:5] in error or repr(raw)[1:6] in error


@pytest.mark.parametrize("stream", [False, True])
def test_arguments_that_come_as_an_object_are_that_object(server: GeminiServer, stream: bool):
    shop = Shop(OPENAI, server)
    made = {"index": 0, "id": "a", "type": "function"}
    function = {"name": "price_of", "arguments": {"item": "tea"}}
    if stream:
        pieces(server, {"tool_calls": [made | {"function": function}]})
    else:
        message(server, tool_calls=[made | {"function": function}])
    answer(server, "It costs 3 €.", stream=stream)

    assert shop.say(stream=stream)[-1] == ("shop", "It costs 3 €. .")
    assert shop.asked == ["tea"]


# --- pieces


def call_piece(arguments: str, name: str | None = None, index: int | None = 0, **more: Any) -> dict[str, Any]:
    return {"tool_calls": [{"index": index, "function": {"arguments": arguments, "name": name}} | more]}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("empty", [{"function": {}}, {"function": {"name": "", "arguments": ""}}, {"function": None}])
def test_an_empty_call_beside_a_good_one_is_nothing(server: GeminiServer, empty: dict[str, Any], stream: bool):
    shop = Shop(OPENAI, server)
    good = {"id": "a", "type": "function", "function": {"name": "price_of", "arguments": '{"item": "tea"}'}}
    if stream:
        pieces(server, {"tool_calls": [{"index": 0} | good]}, {"tool_calls": [{"index": 1} | empty]})
    else:
        message(server, tool_calls=[empty, good])
    answer(server, "It costs 3 €.", stream=stream)

    assert shop.say(stream=stream)[-1] == ("shop", "It costs 3 €. .")
    assert shop.asked == ["tea"]


@pytest.mark.parametrize(
    "names", [("price_of",), ("pri", "ce_of"), ("p", "rice_", "of"), ("price_of", "price_of"), ("price_of", "")]
)
def test_a_name_may_come_in_pieces_or_again_and_again(server: GeminiServer, names: tuple[str, ...]):
    shop = Shop(OPENAI, server)
    pieces(server, *[call_piece("", name, id="a") for name in names], call_piece('{"item": "tea"}', id="a"))
    answer(server, "It costs 3 €.", stream=True)

    assert shop.say(stream=True)[-1] == ("shop", "It costs 3 €. .")
    assert shop.asked == ["tea"]


def test_the_calls_of_a_whole_message_need_neither_index_nor_id(server: GeminiServer):
    shop = Shop(OPENAI, server)
    calls = [{"function": {"name": "price_of", "arguments": json.dumps({"item": item})}} for item in ("tea", "rum")]
    message(server, tool_calls=calls)
    answer(server, "Done.", stream=False)

    shop.say(stream=False)

    assert sorted(shop.asked) == ["rum", "tea"]


def test_an_emoji_that_is_split_over_two_pieces_is_whole(server: GeminiServer):
    pieces(server, {"content": "So \ud83d"}, {"content": "\ude00!"}, {"content": " \ud83d"}, {"content": "\ude01"})

    *partial, whole = ask(OPENAI.model(server), stream=True)

    assert whole.text == "".join(piece.text for piece in partial) == "So 😀! 😁"
    assert all(piece.text.encode() for piece in partial), "half of a character is shown"


def test_an_emoji_that_is_split_in_the_arguments_of_a_call_is_whole(server: GeminiServer):
    shop = Shop(OPENAI, server)
    pieces(server, call_piece('{"item": "\ud83d', "price_of", id="a"), call_piece('\ude00"}'))
    answer(server, "Done.", stream=True)

    shop.say(stream=True)

    assert shop.asked == ["😀"]


# --- thoughts in tags


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("text", "thought", "words"),
    [
        ("<think>Hm, 2 < 3.\n\nSo.</think>\n\nThree.", "Hm, 2 < 3.\n\nSo.", "Three."),
        ("\n<thinking>Hm.</thinking>Three.", "Hm.", "Three."),
        ("<think>\n\n</think>\n\nThree.", "", "Three."),
        ("<think>Hm", "Hm", ""),
        ("<think>Hm</thi", "Hm</thi", ""),
        ("Write <think>so</think>.", "", "Write <think>so</think>."),
        ("<thin air>", "", "<thin air>"),
        ("<", "", "<"),
    ],
)
@pytest.mark.parametrize("size", [1, 4, 100])
def test_a_thought_in_tags_is_a_thought(
    vendor: Vendor, server: GeminiServer, text: str, thought: str, words: str, size: int, stream: bool
):
    if stream:
        pieces(server, *letters(text, size))
    else:
        message(server, content=text)

    *partial, whole = ask(vendor.model(server), stream=stream)

    assert whole.text == words
    assert "".join(part.text or "" for part in whole.parts if part.thought) == thought
    shown = [part for piece in partial for part in piece.parts]
    assert words.startswith("".join(part.text or "" for part in shown if not part.thought))
    assert thought.startswith("".join(part.text or "" for part in shown if part.thought))


# --- a template that leaves tools out


def llama_cpp(server: GeminiServer, text: str, *, stream: bool) -> None:
    """Answer the next request as llama.cpp's server does."""
    answer(server, text, stream=stream)
    body = server.replies[-1].body
    server.replies[-1].body = body.replace(b'"model":', b'"system_fingerprint": "b8123-abc12", "model":')


def props(server: GeminiServer, *, tools: bool) -> None:
    server.replies.append(Reply(json.dumps({"chat_template_caps": {"supports_tools": tools}}).encode()))


@pytest.mark.parametrize("stream", [False, True])
def test_a_server_that_tells_its_model_of_no_tools_is_noted_at_the_first_turn(server: GeminiServer, stream: bool):
    shop = Shop(OPENAI, server)
    llama_cpp(server, "It costs 9 €.", stream=stream)
    props(server, tools=False)
    llama_cpp(server, "Yes.", stream=stream)

    shop.say(stream=stream)
    first = shop.events[-1].custom_metadata
    shop.say(stream=stream)

    assert "does not tell model 'm-1'" in str(first)
    assert not shop.events[-1].custom_metadata
    assert [sent.path for sent in server.requests].count("GET /props") == 1


def test_a_model_that_calls_its_tools_all_the_same_is_not_noted(server: GeminiServer):
    shop = Shop(OPENAI, server, instruction="Write calls like this: {{...}}")
    llama_cpp(server, TEA, stream=False)
    props(server, tools=False)
    llama_cpp(server, "It costs 3 €.", stream=False)

    shop.say(stream=False)

    assert shop.asked == ["tea"]
    assert not any("does not tell" in str(event.custom_metadata) for event in shop.events)


@pytest.mark.parametrize("name", ["", "#m-1"])
def test_a_server_that_is_named_by_its_address_is_noted_too(server: GeminiServer, name: str):
    shop = Shop(OPENAI, server)
    shop.agent.model = LLMRegistry.new_llm(f"{server.url}/v1{name}")
    if not name:
        server.replies.append(Reply(b'{"object": "list", "data": [{"id": "m-1", "object": "model"}]}'))
    llama_cpp(server, "It costs 9 €.", stream=False)
    props(server, tools=False)

    shop.say(stream=False)

    assert "does not tell model" in str(shop.events[-1].custom_metadata)


@pytest.mark.parametrize("is_answered", [False, True])
def test_a_server_that_tells_its_model_of_tools_or_says_nothing_is_not_noted(server: GeminiServer, is_answered: bool):
    shop = Shop(OPENAI, server)
    llama_cpp(server, "It costs 9 €.", stream=False)
    if is_answered:
        props(server, tools=True)
    else:
        server.replies.append(Reply(b"no", 404))

    shop.say(stream=False)

    assert shop.events[-1].text == "It costs 9 €."
    assert not shop.events[-1].custom_metadata
