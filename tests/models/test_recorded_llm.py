import asyncio
import json
import re
import uuid
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from adk_nb import clock, types
from adk_nb.agents import LlmAgent
from adk_nb.errors import ConfigurationError, InputError, RecordingMismatchError, UserError
from adk_nb.models.base_llm import BaseLlm, LlmCapabilities
from adk_nb.models.cassette import Cassette
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.models.offline_llm import OfflineLlm
from adk_nb.models.recorded_llm import RecordedLlm, ReplayTap
from adk_nb.models.registry import replay_cassette, use_tap
from adk_nb.models.scripted_llm import ScriptedLlm, call

WEATHER: dict[str, Any] = {
    "name": "get_weather",
    "description": "The weather in a city.",
    "parameters_json_schema": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
}


def asking(
    *args: str | types.Content,
    instruction: str = "Be kind.\nBe short.",
    tools: tuple[dict[str, Any], ...] = (WEATHER,),
    model: str | None = None,
    **config: Any,
) -> LlmRequest:
    declared = [types.FunctionDeclaration(**tool) for tool in tools]
    return LlmRequest(
        model=model,
        contents=[types.UserContent(parts=[types.Part(text=arg)]) if isinstance(arg, str) else arg for arg in args],
        config=types.GenerateContentConfig(
            system_instruction=instruction, tools=[types.Tool(function_declarations=declared)], **config
        ),
    )


def heard(model: BaseLlm, request: LlmRequest, stream: bool = False) -> list[LlmResponse]:
    async def ask() -> list[LlmResponse]:
        return [response async for response in model.generate_content_async(request, stream)]

    return asyncio.run(ask())


def recorded(path: Path, *args: LlmRequest, stream: bool = False) -> None:
    answers = [f"answer {n}" for n in range(1, len(args) + 1)]
    model = RecordedLlm(path, record=ScriptedLlm(*answers, model="real"))
    for arg in args:
        heard(model, arg, stream)


def miss(path: Path, request: LlmRequest, stream: bool = False) -> str:
    with pytest.raises(RecordingMismatchError) as caught:
        heard(RecordedLlm(path), request, stream)
    return str(caught.value)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "demo.jsonl"


def test_a_recorded_answer_is_replayed_without_the_model(path: Path):
    recorded(path, asking("hello"))

    assert [response.text for response in heard(RecordedLlm(path), asking("hello"))] == ["answer 1"]


def test_a_replay_has_the_pieces_of_the_recording_and_the_same_whole_answer(path: Path):
    original = heard(RecordedLlm(path, record=ScriptedLlm("one two three")), asking("count"), stream=True)

    replayed = heard(RecordedLlm(path), asking("count"), stream=True)

    assert [(item.text, item.partial) for item in replayed] == [
        ("one ", True),
        ("two ", True),
        ("three", True),
        ("one two three", None),
    ]
    assert replayed == original


def test_tool_calls_images_usage_and_signatures_survive_the_file(path: Path):
    answer = LlmResponse(
        content=types.Content(
            role="model",
            parts=[
                types.Part(text="thinking", thought=True, thought_signature=b"\xff\xfesk-"),
                types.Part(inline_data=types.Blob(data=b"\x89PNG\x00\xff", mime_type="image/png")),
                call("get_weather", city="Oslo", day=None),
            ],
        ),
        finish_reason=types.FinishReason.STOP,
        usage_metadata=types.GenerateContentResponseUsageMetadata(total_token_count=7),
        custom_metadata={"a": [1, None]},
    )
    heard(RecordedLlm(path, record=ScriptedLlm(answer)), asking("draw"))

    assert heard(RecordedLlm(path), asking("draw")) == [answer]


def test_every_call_is_one_line_that_a_reviewer_can_read(path: Path):
    recorded(path, asking("blåbær?", temperature=0.5), asking("two"))

    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    assert len(lines) == 2
    assert "blåbær?" in path.read_text(encoding="utf-8")
    assert lines[0]["cassette_version"] == 1
    assert lines[0]["model"] == "real"
    assert lines[0]["request"] == {
        "model": "real",
        "instruction": "Be kind.\nBe short.",
        "tools": [WEATHER],
        "config": {"temperature": 0.5},
        "contents": [{"role": "user", "parts": [{"text": "blåbær?"}]}],
    }


def test_the_model_that_really_answered_is_named(path: Path):
    answer = LlmResponse(content=types.ModelContent("hi"), model_version="gemini-2.5-flash-001")
    heard(RecordedLlm(path, record=ScriptedLlm(answer, model="gemini-2.5-flash")), asking("hello"))

    replay = RecordedLlm(path)

    assert replay.model == "gemini-2.5-flash"
    assert replay.notice is not None
    assert "demo.jsonl" in replay.notice
    assert '"gemini-2.5-flash-001"' in replay.notice
    assert heard(replay, asking("hello"))[0].model_version == "gemini-2.5-flash-001"


class StandIn(ScriptedLlm):
    @property
    def notice(self) -> str | None:
        return "a stand-in, not a language model"

    @property
    def capabilities(self) -> LlmCapabilities:
        return LlmCapabilities(output_schema_and_tools=True)


def test_what_a_stand_in_says_of_itself_and_can_do_is_kept(path: Path):
    recording = RecordedLlm(path, record=StandIn("hi", model="stand-in"))
    heard(recording, asking("hello"))

    assert recording.notice == "a stand-in, not a language model"
    notice = RecordedLlm(path).notice or ""
    assert '"stand-in"' in notice
    assert recording.notice in notice
    assert RecordedLlm(path).capabilities.output_schema_and_tools


def test_equal_requests_are_answered_in_recorded_order_each_once(path: Path):
    recorded(path, asking("roll"), asking("roll"), asking("other"))
    model = RecordedLlm(path)

    texts = [heard(model, asking(text))[0].text for text in ("other", "roll", "roll")]

    assert texts == ["answer 3", "answer 1", "answer 2"]
    with pytest.raises(RecordingMismatchError, match=r"recorded 2 times .*demo"):
        heard(model, asking("roll"))


def test_models_that_share_a_cassette_share_its_order(path: Path):
    recorded(path, asking("roll", model="m"), asking("roll", model="m"))
    cassette = Cassette(path)

    texts = [heard(RecordedLlm(cassette), asking("roll", model="m"))[0].text for _ in range(2)]

    assert texts == ["answer 1", "answer 2"]


def conversation(call_id: str, result: Any = "mild") -> LlmRequest:
    call = types.FunctionCall(id=call_id, name="get_weather", args={"city": "Oslo"})
    response = types.FunctionResponse(id=call_id, name="get_weather", response={"result": result})
    return asking(
        "how is Oslo?",
        types.ModelContent(parts=[types.Part(function_call=call, thought_signature=call_id.encode())]),
        types.UserContent(parts=[types.Part(function_response=response)]),
    )


def test_ids_of_calls_and_times_in_texts_do_not_count(path: Path):
    recorded(path, conversation("adk-" + str(uuid.uuid4()), f"measured 2026-01-02T03:04:05Z, ticket {uuid.uuid4()}"))

    repeated_conversation = conversation(
        "adk-" + str(uuid.uuid4()), f"measured 2026-05-06T07:08:09.1+02:00, ticket {uuid.uuid4()}"
    )

    assert heard(RecordedLlm(path), repeated_conversation)[0].text == "answer 1"


def test_two_requests_that_differ_only_in_an_id_each_get_their_own_answer(path: Path):
    first, second = (asking(f"refund {uuid.uuid4()}") for _ in range(2))
    recorded(path, first, second)
    model = RecordedLlm(path)

    assert heard(model, second)[0].text == "answer 2"
    assert heard(model, first)[0].text == "answer 1"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            asking("hello", instruction="Be kind.\nBe long."),
            "the instruction changed at line 2: 'Be long.' instead of 'Be short.'",
        ),
        (asking("hello", instruction="Be kind.\nBe short.\nRhyme."), "the instruction has a new line 3: 'Rhyme.'"),
        (asking("hello", instruction="Be kind."), "the instruction lost line 2: 'Be short.'"),
        (asking("hullo"), "message 1 differs: 'hullo' instead of 'hello'"),
        (asking("hello", "there"), "message 2 is new: 'there'"),
        (asking("hello", model="other"), "the model is 'other' instead of 'real'"),
        (asking("hello", temperature=0.1), "setting 'temperature' is new"),
        (asking("hello", tools=()), "tool 'get_weather' is gone"),
        (asking("hello", tools=(WEATHER, {"name": "add"})), "tool 'add' is new"),
        (asking("hello", tools=(WEATHER | {"description": "Sky."},)), "tool 'get_weather': its description changed"),
    ],
)
def test_a_miss_says_which_part_changed(path: Path, changed: LlmRequest, message: str):
    recorded(path, asking("hello"))

    text = miss(path, changed)

    assert f": {message} (" in text
    assert "recording 1)" in text
    assert f"delete {path} and " in text
    assert f"RecordedLlm({str(path)!r}, record=model)" in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"properties": {"city": {"type": "string"}, "day": {"type": "string"}}}, "parameter 'day' is new"),
        ({"properties": {}, "required": []}, "parameter 'city' is gone"),
        ({"properties": {"city": {"type": "integer"}}}, "parameter 'city': type is 'integer' instead of 'string'"),
        ({"required": []}, "parameter 'city' is optional now"),
    ],
)
def test_a_miss_names_the_parameter_of_the_tool(path: Path, schema: dict[str, Any], message: str):
    recorded(path, asking("hello"))

    tool = WEATHER | {"parameters_json_schema": WEATHER["parameters_json_schema"] | schema}

    assert f"tool 'get_weather': {message}" in miss(path, asking("hello", tools=(tool,)))


def test_a_miss_compares_with_the_nearest_recording(path: Path):
    recorded(path, asking("the sea is blue", instruction="A"), asking("tell me of Oslo"), asking("count to ten"))

    rome, oslo = "tell me of Rome", "tell me of Oslo"
    text = miss(path, asking(rome))
    assert f"{rome!r} instead of {oslo!r}" in text
    assert "recording 2)" in text


def test_a_long_message_is_shown_where_it_parts(path: Path):
    recorded(path, asking("a" * 500 + " Oslo " + "b" * 500))

    text = miss(path, asking("a" * 500 + " Rome " + "b" * 500))

    assert re.search(r"'…a+ Rome b+….*'…a+ Oslo b+…", text)
    assert len(text.replace(str(path), "")) < 400


def test_a_changed_tool_result_is_reported(path: Path):
    recorded(path, conversation("x", "mild"))

    text = miss(path, conversation("x", "cold"))
    assert "message 3 differs" in text
    assert "{'result': 'cold'}" in text


def test_keys_and_tokens_do_not_reach_the_file(path: Path):
    secrets = [
        "AIza" + "SyA1234567890abcdefghijklmnopqrstuv",
        "sk-" + "proj-abc123def456ghi789",
        "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2",
        "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc",
        "abc123token456",
        "hunter2hunter2",
    ]
    text = f"use {secrets[0]}, {secrets[1]} or {secrets[2]}; Bearer {secrets[3]}; Authorization: Bearer {secrets[4]}"
    request = asking(text, http_options=types.HttpOptions(headers={"x-goog-api-key": secrets[0]}))
    answer = [f"your key is {secrets[0]}", call("login", password=secrets[5], user="ann@example.org")]
    heard(RecordedLlm(path, record=ScriptedLlm(answer)), request)

    output = path.read_text()

    assert [secret for secret in secrets if secret in output] == []
    assert "ann@example.org" in output
    replayed = heard(RecordedLlm(path), request)[0]
    assert replayed.text == "your key is [redacted]"
    assert replayed.get_function_calls()[0].args == {"password": "[redacted]", "user": "ann@example.org"}


@pytest.mark.parametrize(
    "harmless",
    ["task-based learning in 2024 schools", "sk-learn", "Basic income", "the bearer of news", "disk-a1b2c3d4e5f6g7h8"],
)
def test_ordinary_words_are_not_taken_for_keys(path: Path, harmless: str):
    recorded(path, asking(harmless))

    assert harmless in path.read_text()


class Failing(BaseLlm):
    whole: bool = False

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        yield LlmResponse(content=types.ModelContent("begi"), partial=True)
        if self.whole:
            yield LlmResponse(content=types.ModelContent("begi"), interrupted=True)
            return
        raise ConnectionError("cut")


def test_an_answer_that_raised_is_not_written(path: Path):
    with pytest.raises(ConnectionError, match="cut"):
        heard(RecordedLlm(path, record=Failing(model="m")), asking("hello"), stream=True)

    assert path.read_text() == ""


def test_an_answer_that_was_cut_short_is_not_written(path: Path):
    assert len(heard(RecordedLlm(path, record=Failing(model="m", whole=True)), asking("hello"), stream=True)) == 2
    assert path.read_text() == ""


class OnlyPieces(BaseLlm):
    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        for text in ("one ", "two"):
            yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]), partial=True)


def test_a_model_that_only_streams_is_recorded_as_it_answers(path: Path):
    original = heard(RecordedLlm(path, record=OnlyPieces(model="m")), asking("count"), stream=True)

    assert heard(RecordedLlm(path), asking("count"), stream=True) == original
    assert len(original) == 2


def test_an_answer_left_in_its_middle_is_not_written_and_one_left_after_its_end_is(path: Path):
    async def leave_after(pieces: int) -> None:
        answers = RecordedLlm(path, record=ScriptedLlm("one two")).generate_content_async(asking("count"), stream=True)
        for _ in range(pieces):
            await anext(answers)
        await answers.aclose()

    asyncio.run(leave_after(2))
    assert path.read_text() == ""

    asyncio.run(leave_after(3))
    assert path.read_text().count("\n") == 1


def test_a_second_recording_goes_to_the_end_of_the_file(path: Path):
    recorded(path, asking("one"))
    path.write_bytes(path.read_bytes().rstrip(b"\n"))  # as some editors leave it
    recorded(path, asking("two"))

    assert [recording.request.contents[0]["parts"][0]["text"] for recording in Cassette(path).recordings] == [
        "one",
        "two",
    ]


def test_calls_side_by_side_keep_their_lines_whole(path: Path):
    answers = [f"{n} " * 200 for n in range(20)]
    model = RecordedLlm(path, record=ScriptedLlm(*answers))

    async def all_at_once() -> None:
        async def one(n: int) -> None:
            async for _ in model.generate_content_async(asking(f"say {n}"), stream=True):
                await asyncio.sleep(0)

        await asyncio.gather(*(one(n) for n in range(20)))

    asyncio.run(all_at_once())

    assert len(Cassette(path).recordings) == 20


def test_a_line_that_was_cut_off_is_named(path: Path):
    recorded(path, asking("one"), asking("two"))
    path.write_bytes(path.read_bytes()[:-40])

    for open_it in (lambda: RecordedLlm(path), lambda: RecordedLlm(path, record=ScriptedLlm())):
        with pytest.raises(InputError, match=r"jsonl line 2 .*; delete"):
            open_it()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("[" * 100_000 + "]" * 100_000 + "\n", r"line 1 .* too deep", id="deep"),
        ("{]\n{}\n", r"line 1 is not JSON .*; delete that line"),
        ("[1]\n", r"line 1 .* recording: the line: "),
        ('{"model": "m"}\n', r"line 1 .* recording: request: Field required"),
        (
            '{"cassette_version": 2, "anything": 1}\n',
            r"line 1 was written as cassette_version 2, and .* up to 1;.*install",
        ),
        ("\ufeff\u0000\n", r"line 1 is not JSON"),
    ],
)
def test_a_file_that_is_no_cassette_is_refused_in_one_line(path: Path, text: str, message: str):
    path.write_text(text, encoding="utf-8")

    with pytest.raises(InputError, match=message) as caught:
        RecordedLlm(path)

    assert "\n" not in str(caught.value)


def test_a_missing_cassette_says_how_to_record_one(path: Path):
    with pytest.raises(InputError, match=r"demo\.jsonl'; .*RecordedLlm"):
        RecordedLlm(path)
    with pytest.raises(InputError, match="cannot be opened"):
        RecordedLlm(path.parent)


def test_an_empty_cassette_says_so(path: Path):
    path.touch()

    assert f"delete {path} and " in miss(path, asking("hello"))


def test_only_a_model_can_be_recorded(path: Path):
    with pytest.raises(ConfigurationError, match=r"record='offline'.*OfflineLlm"):
        RecordedLlm(path, record="offline")  # pyright: ignore[reportArgumentType]


def test_delays_are_kept_and_waited_for_only_when_asked(path: Path, monkeypatch: pytest.MonkeyPatch):
    times = iter([10.0, 10.5, 11.5, 11.25])  # the last: a clock that was set back
    monkeypatch.setattr(clock, "now", lambda: next(times))
    heard(RecordedLlm(path, record=ScriptedLlm("one two")), asking("count"), stream=True)
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    for speed in (0, 1, 2):
        heard(RecordedLlm(path, speed=speed), asking("count"), stream=True)

    assert waited == [0, 0, 0, 0.5, 1.0, 0, 0.25, 0.5, 0]


class Answer(BaseModel):
    name: str


def test_settings_that_are_classes_other_tools_and_long_instructions_are_matched_too(path: Path):
    def request(text: str) -> LlmRequest:
        image = types.Part(inline_data=types.Blob(data=text.encode(), mime_type="image/png"))
        built = asking(types.UserContent(parts=[image]), response_schema=Answer)
        built.config.tools = [types.Tool(google_search=types.GoogleSearch()), types.Tool(function_declarations=[])]
        built.config.system_instruction = types.Content(parts=[types.Part(text="One."), types.Part(text="Two.")])
        return built

    recorded(path, request("picture"))
    sent_request = Cassette(path).recordings[0].request

    assert sent_request.instruction == "One.\nTwo."
    assert sent_request.config["response_schema"]["properties"]["name"]["type"] == "string"
    assert heard(RecordedLlm(path), request("picture"))[0].text == "answer 1"
    assert "bytes, sha256" in miss(path, request("another"))


def test_a_schema_that_is_a_union_is_told_from_another(path: Path):
    recorded(path, asking("hi", response_schema=Answer | None))

    assert heard(RecordedLlm(path), asking("hi", response_schema=Answer | None))[0].text == "answer 1"
    assert "response_schema" in miss(path, asking("hi", response_schema=Answer | int))


@pytest.mark.parametrize("text", [None, "", "off", " OFF "])
def test_nothing_is_replayed_by_default(monkeypatch: pytest.MonkeyPatch, text: str | None):
    if text is not None:
        monkeypatch.setenv("ADK_NB_REPLAY", text)

    assert replay_cassette() is None


def test_the_environment_names_a_cassette(monkeypatch: pytest.MonkeyPatch, path: Path):
    path.touch()
    monkeypatch.setenv("ADK_NB_REPLAY", str(path))

    assert replay_cassette() == path


@pytest.mark.parametrize("text", ["auto", "record", "replay", "missing.jsonl"])
def test_a_replay_mode_or_file_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch, text: str):
    monkeypatch.setenv("ADK_NB_REPLAY", text)

    with pytest.raises(UserError, match=r"ADK_NB_REPLAY.* set it to .*, or to off"):
        replay_cassette()


def test_a_notebook_is_not_taken_for_its_cassette(monkeypatch: pytest.MonkeyPatch, path: Path):
    (notebook := path.with_suffix(".ipynb")).write_text("{}")
    monkeypatch.setenv("ADK_NB_REPLAY", str(notebook))

    with pytest.raises(UserError, match=r"demo\.ipynb'; .* replay"):
        replay_cassette()


def test_what_was_recorded_for_a_run_that_does_not_stream_is_replayed_in_pieces_for_one_that_does(path: Path):
    heard(RecordedLlm(path, record=ScriptedLlm("one two three")), asking("count"))

    assert [response.text for response in heard(RecordedLlm(path), asking("count"), stream=True)] == [
        "one ",
        "two ",
        "three",
        "one two three",
    ]
    assert [response.text for response in heard(RecordedLlm(path), asking("count"))] == ["one two three"]


def test_the_tap_of_a_turn_is_not_that_of_another_at_the_same_time(path: Path):
    recorded(path, asking("hi"))
    agent = LlmAgent(name="guide", model="offline")
    inside = asyncio.Event()

    async def replays() -> BaseLlm:
        with use_tap(ReplayTap(path)):
            inside.set()
            await asyncio.sleep(0)
            return agent.canonical_model

    async def asks() -> BaseLlm:
        await inside.wait()
        return agent.canonical_model

    async def run_pair() -> list[BaseLlm]:
        return await asyncio.gather(asks(), replays())

    request, replayed = asyncio.run(run_pair())

    assert isinstance(request, OfflineLlm)
    assert isinstance(replayed, RecordedLlm)
