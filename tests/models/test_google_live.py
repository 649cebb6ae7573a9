"""Gemini's live conversations over a real websocket: what arrives at the service, and what comes of its messages."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from live_server import Client, LiveServer, client_tls, said

from adk_nb import types
from adk_nb.agents import LiveRequestQueue, LlmAgent
from adk_nb.errors import ConfigurationError, MissingKeyError, ModelConnectionLost, ModelError, ModelHTTPError
from adk_nb.events import Event
from adk_nb.models import Gemini, LlmRequest, LlmResponse
from adk_nb.models.base_llm_connection import BaseLlmConnection
from adk_nb.runners import InMemoryRunner

KEY = "AIza-a-key-that-must-not-be-shown"
MODEL = "gemini-live-2.5-flash-native-audio"


def gemini(server: LiveServer, **fields: Any) -> Gemini:
    trusting = types.HttpOptions(async_client_args={"verify": client_tls()})
    return Gemini(**{"model": MODEL, "base_url": server.url, "api_key": KEY, "http_options": trusting} | fields)


def request(**settings: Any) -> LlmRequest:
    return LlmRequest(live_connect_config=types.LiveConnectConfig(**{"response_modalities": ["AUDIO"]} | settings))


@asynccontextmanager
async def connected(
    *talks: Any, asked: LlmRequest | None = None, **fields: Any
) -> AsyncGenerator[tuple[BaseLlmConnection, LiveServer], None]:
    async with (
        asyncio.timeout(5),
        LiveServer(*talks) as server,
        gemini(server, **fields).connect(asked or request()) as connection,
    ):
        yield connection, server


def answers(*messages: dict[str, Any], **fields: Any) -> list[LlmResponse]:
    """What comes of the service's messages, up to the end of its turn."""

    async def collect() -> list[LlmResponse]:
        async with connected(lambda client: client.say(*messages, said(turnComplete=True)), **fields) as (
            connection,
            _,
        ):
            return [response async for response in connection.receive()]

    return asyncio.run(collect())


def sent(*sends: Any, **fields: Any) -> list[dict[str, Any]]:
    """What arrives at the service: `(method, argument)`, or with a dict of keywords as a third."""
    heard: list[dict[str, Any]] = []

    async def talk(client: Client) -> None:
        while "activityEnd" not in (message := await client.heard()).get("realtime_input", {}):
            heard.append(message)
        await client.say(said(turnComplete=True))

    async def send() -> None:
        async with connected(talk, **fields) as (connection, _):
            for name, argument, *more in sends:
                await getattr(connection, name)(argument, **(more[0] if more else {}))
            await connection.send_realtime(types.ActivityEnd())
            async for _ in connection.receive():
                pass

    asyncio.run(send())
    return heard


def kinds(responses: list[LlmResponse]) -> list[dict[str, Any]]:
    return [one.model_dump(exclude_none=True, exclude={"model_version"}) for one in responses]


def words(text: str, **more: Any) -> dict[str, Any]:
    return {"content": {"role": "model", "parts": [{"text": text}]}} | more


# --- the connection


def test_the_set_up_carries_the_settings_and_the_key_and_goes_to_the_live_method():
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    tool = types.Tool(function_declarations=[types.FunctionDeclaration(name="weather", parameters_json_schema=schema)])
    asked = request(
        system_instruction="Be brief.",
        tools=[tool],
        temperature=0.5,
        output_audio_transcription=types.AudioTranscriptionConfig(),
        session_resumption=types.SessionResumptionConfig(handle="before"),
    )

    async def connect() -> LiveServer:
        async with connected(lambda client: client.say(), asked=asked) as (_, server):
            return server

    server = asyncio.run(connect())

    [path] = server.paths
    assert path.endswith(".v1alpha.GenerativeService.BidiGenerateContent")
    assert {name.lower(): one for name, one in server.headers[0].items()}["x-goog-api-key"] == KEY
    [setup] = server.setups
    assert setup["model"] == f"models/{MODEL}"
    assert setup["generationConfig"] == {"responseModalities": ["AUDIO"], "temperature": 0.5}
    assert setup["systemInstruction"]["parts"] == [{"text": "Be brief."}]
    assert setup["tools"][0]["functionDeclarations"][0]["name"] == "weather"
    assert setup["outputAudioTranscription"] == {}
    assert setup["sessionResumption"] == {"handle": "before"}
    assert asked.live_connect_config and asked.live_connect_config.system_instruction == "Be brief."


def test_vertex_ai_has_a_method_of_its_own_and_resumes_transparently(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    resumption = types.SessionResumptionConfig(handle="before")

    async def connect() -> LiveServer:
        async with connected(lambda client: client.say(), asked=request(session_resumption=resumption)) as (_, server):
            return server

    server = asyncio.run(connect())

    [path] = server.paths
    assert path.endswith(".v1beta1.LlmBidiService/BidiGenerateContent")
    assert server.setups[0]["sessionResumption"] == {"handle": "before", "transparent": True}
    assert resumption.transparent is None


@pytest.mark.parametrize("chosen", ["settings", "environment"])
def test_a_version_of_the_api_that_someone_chose_stays(chosen: str, monkeypatch: pytest.MonkeyPatch):
    options = types.HttpOptions(async_client_args={"verify": client_tls()})
    if chosen == "settings":
        options.api_version = "v1beta"
    else:
        monkeypatch.setenv("GOOGLE_GENAI_API_VERSION", "v1beta")

    async def connect() -> LiveServer:
        async with connected(lambda client: client.say(), http_options=options) as (_, server):
            return server

    assert "generativelanguage.v1beta." in asyncio.run(connect()).paths[0]


def test_a_service_whose_certificate_nobody_vouches_for_is_not_talked_to():
    async def connect() -> None:
        async with LiveServer() as server, gemini(server, http_options=None).connect(request()):
            pass

    with pytest.raises(ModelConnectionLost, match=r"\(SSLCertVerificationError"):
        asyncio.run(connect())


def test_without_a_key_the_message_says_how_to_set_one():
    async def connect() -> None:
        async with LiveServer() as server, gemini(server, api_key=None).connect(request()):
            pass

    with pytest.raises(MissingKeyError, match="GOOGLE_API_KEY"):
        asyncio.run(connect())


def test_a_refused_connection_says_what_the_service_said():
    async def connect() -> None:
        async with LiveServer(refuses=403) as server, gemini(server).connect(request()):
            pass

    with pytest.raises(ModelHTTPError, match="HTTP 403: not you"):
        asyncio.run(connect())


def test_settings_that_a_live_conversation_cannot_have_are_named():
    async def connect() -> None:
        options = types.HttpOptions(timeout=5)
        async with LiveServer() as server, gemini(server).connect(request(http_options=options)):
            pass

    with pytest.raises(ConfigurationError, match="timeout"):
        asyncio.run(connect())


# --- what is sent


def test_words_end_a_turn_unless_more_of_them_follow():
    begun, ended = types.UserContent("The sky"), types.UserContent("is blue.")

    arrived = sent(("send_content", begun, {"partial": True}), ("send_content", ended))

    assert arrived == [
        {"client_content": {"turns": [{"parts": [{"text": "The sky"}], "role": "user"}], "turnComplete": False}},
        {"client_content": {"turns": [{"parts": [{"text": "is blue."}], "role": "user"}], "turnComplete": True}},
    ]


def test_sound_pictures_and_signals_are_sent_as_they_come():
    sound = types.Blob(data=b"\x01\x02", mime_type="audio/pcm;rate=16000")
    picture = types.Blob(data=b"\x03", mime_type="image/jpeg")

    arrived = sent(
        ("send_realtime", types.ActivityStart()),
        ("send_realtime", sound),
        ("send_realtime", picture),
        ("send_realtime", types.LiveClientRealtimeInput(audio_stream_end=True)),
    )

    assert [one["realtime_input"] for one in arrived] == [
        {"activityStart": {}},
        {"audio": {"data": "AQI=", "mime_type": "audio/pcm;rate=16000"}},
        {"video": {"data": "Aw==", "mime_type": "image/jpeg"}},
        {"audioStreamEnd": True},
    ]


def test_results_of_calls_are_sent_as_such():
    result = types.FunctionResponse(id="c1", name="weather", response={"result": "mild"})

    [arrived] = sent(("send_content", types.UserContent([types.Part(function_response=result)])))

    assert arrived["tool_response"]["functionResponses"] == [
        {"id": "c1", "name": "weather", "response": {"result": "mild"}}
    ]


def test_history_goes_without_sound_and_asks_only_if_the_user_had_the_last_word():
    sound = types.Part(inline_data=types.Blob(data=b"\x01", mime_type="audio/pcm"))
    before = [
        types.UserContent([types.Part(text="Hi"), sound]),
        types.UserContent([sound]),
        types.ModelContent("Hello"),
    ]

    [arrived] = sent(("send_history", before))

    assert arrived["client_content"] == {
        "turns": [
            {"parts": [{"text": "Hi"}], "role": "user"},
            {"parts": [{"text": "Hello"}], "role": "model"},
        ],
        "turnComplete": False,
    }


def test_a_gemini_3_is_sent_text_as_real_time_input():
    arrived = sent(
        ("send_history", [types.UserContent("Hi")]),
        ("send_content", types.UserContent("Are you there?")),
        model="gemini-3.1-flash-live-preview",
    )

    assert arrived == [
        {"client_content": {"turns": [{"parts": [{"text": "Hi"}], "role": "user"}], "turnComplete": True}},
        {"realtime_input": {"text": "."}},
        {"realtime_input": {"text": "Are you there?"}},
    ]


# --- what comes


def test_words_come_in_pieces_and_then_whole():
    assert kinds(answers(said("It is "), said("mild."))) == [
        words("It is ", partial=True),
        words("mild.", partial=True),
        words("It is mild."),
        {"turn_complete": True},
    ]


def test_thoughts_and_words_are_kept_apart():
    thought = {"serverContent": {"modelTurn": {"parts": [{"text": "Hm.", "thought": True}]}}}

    whole = [one for one in answers(thought, said("Mild.")) if not one.partial and one.content]

    assert [(part.text, part.thought) for one in whole for part in one.parts] == [("Hm.", True), ("Mild.", None)]


def test_sound_is_handed_on_as_it_comes():
    sound = {"inlineData": {"data": "AQI=", "mimeType": "audio/pcm;rate=24000"}}

    first, *_ = answers({"serverContent": {"modelTurn": {"parts": [sound]}}})

    assert first.parts[0].inline_data == types.Blob(data=b"\x01\x02", mime_type="audio/pcm;rate=24000")
    assert first.partial is None


def test_transcripts_come_in_pieces_and_whole_when_the_speaker_is_done():
    assert kinds(
        answers(
            said(inputTranscription={"text": "How is "}),
            said(inputTranscription={"text": "Oslo?"}),
            said(outputTranscription={"text": "Mild."}),
            said(generationComplete=True),
        )
    ) == [
        {"partial": True, "input_transcription": {"text": "How is ", "finished": False}},
        {"partial": True, "input_transcription": {"text": "Oslo?", "finished": False}},
        {"partial": True, "output_transcription": {"text": "Mild.", "finished": False}},
        {"input_transcription": {"text": "How is Oslo?", "finished": True}},
        {"output_transcription": {"text": "Mild.", "finished": True}},
        {"turn_complete": True},
    ]


def test_who_is_interrupted_has_said_what_was_said_so_far():
    assert kinds(answers(said("It is "), said(interrupted=True)))[1:] == [
        words("It is ", interrupted=True),
        {"turn_complete": True},
    ]
    assert kinds(answers(said(interrupted=True)))[0] == {"interrupted": True}


def test_a_call_comes_at_once_after_what_was_heard():
    call = {"toolCall": {"functionCalls": [{"id": "c1", "name": "weather", "args": {"city": "Oslo"}}]}}

    _, heard, called, _ = kinds(answers(said(inputTranscription={"text": "Oslo?"}), call))

    assert heard == {"input_transcription": {"text": "Oslo?", "finished": True}}
    assert called["content"]["parts"] == [{"function_call": {"id": "c1", "name": "weather", "args": {"city": "Oslo"}}}]


def test_handles_farewells_voices_and_tokens_are_told():
    handle, away, voice, tokens, _ = kinds(
        answers(
            {"sessionResumptionUpdate": {"newHandle": "h1", "resumable": True}},
            {"goAway": {"timeLeft": "5s"}},
            {"voiceActivity": {"type": "ACTIVITY_START"}},
            {"usageMetadata": {"promptTokenCount": 4, "responseTokenCount": 6, "totalTokenCount": 10}},
        )
    )

    update = "live_session_resumption_update"
    assert handle[update] == {"new_handle": "h1", "resumable": True}
    assert away["go_away"] == {"time_left": "5s"}
    assert voice["voice_activity"]["voice_activity_type"] == "ACTIVITY_START"
    assert tokens["usage_metadata"] == {
        "prompt_token_count": 4,
        "candidates_token_count": 6,
        "total_token_count": 10,
    }


# --- the end


def ended(talk: Any) -> list[LlmResponse]:
    async def collect() -> list[LlmResponse]:
        async with connected(talk) as (connection, _):
            return [response async for response in connection.receive()]

    return asyncio.run(collect())


def test_a_service_that_hangs_up_in_order_has_said_all():
    assert ended(lambda client: client.hang_up(1000)) == []


@pytest.mark.parametrize("end", [lambda client: client.drop(), lambda client: client.hang_up(1011, "restarting")])
def test_a_broken_connection_can_be_told_from_a_refusal(end: Any):
    with pytest.raises(ModelConnectionLost, match="session_resumption"):
        ended(end)


def test_a_refusal_to_go_on_says_why_without_the_key():
    with pytest.raises(ModelError, match=r"no such model \[secret\]") as error:
        ended(lambda client: client.hang_up(1008, f"no such model {KEY}"))

    assert not isinstance(error.value, ModelConnectionLost)
    assert error.value.__cause__ is None


def test_after_closing_there_is_nothing_more_and_sending_is_no_error():
    async def close() -> list[LlmResponse]:
        async with connected(lambda client: client.say()) as (connection, _):
            await connection.close()
            await connection.send_content(types.UserContent("Still there?"))
            return [response async for response in connection.receive()]

    assert asyncio.run(close()) == []


def test_sending_into_a_broken_connection_says_so():
    async def send() -> None:
        async with connected(lambda client: client.drop()) as (connection, _):
            with pytest.raises(ModelConnectionLost):
                async for _ in connection.receive():
                    pass
            with pytest.raises(ModelConnectionLost, match="broke"):
                await connection.send_content(types.UserContent("Still there?"))

    asyncio.run(send())


# --- a whole conversation


def test_a_tool_is_called_over_the_wire_and_a_dropped_conversation_goes_on_with_its_handle():
    heard: list[dict[str, Any]] = []

    async def first(client: Client) -> None:
        heard.append(await client.heard())
        await client.say({"toolCall": {"functionCalls": [{"id": "c1", "name": "weather", "args": {"city": "Oslo"}}]}})
        heard.append(await client.heard())
        await client.say({"sessionResumptionUpdate": {"newHandle": "h1", "resumable": True}})
        await client.drop()

    async def second(client: Client) -> None:
        sound = {"inlineData": {"data": "AQI=", "mimeType": "audio/pcm;rate=24000"}}
        await client.say({"serverContent": {"modelTurn": {"parts": [sound]}}})
        await client.say(said(outputTranscription={"text": "Mild."}), said(generationComplete=True))
        await client.say(said(turnComplete=True))

    def weather(city: str) -> str:
        """The weather now."""
        return f"mild in {city}"

    async def talk() -> tuple[list[Event], LiveServer]:
        events: list[Event] = []
        queue = LiveRequestQueue()
        queue.send_content("How is Oslo?")
        async with asyncio.timeout(5), LiveServer(first, second) as server:
            runner = InMemoryRunner(LlmAgent(name="guide", model=gemini(server), tools=[weather]), app_name="app")
            session = await runner.session_service.create_session(app_name="app", user_id="u")
            run = runner.run_live(user_id="u", session_id=session.id, live_request_queue=queue)
            async for event in run:
                events.append(event)
                if event.turn_complete:
                    queue.close()
        return events, server

    events, server = asyncio.run(talk())

    assert heard[0]["client_content"]["turns"] == [{"parts": [{"text": "How is Oslo?"}], "role": "user"}]
    assert heard[1]["tool_response"]["functionResponses"] == [
        {"id": "c1", "name": "weather", "response": {"result": "mild in Oslo"}}
    ]
    assert [setup.get("sessionResumption") for setup in server.setups] == [None, {"handle": "h1"}]
    assert [one.name for event in events for one in event.get_function_calls()] == ["weather"]
    assert [event.output_transcription.text for event in events if event.output_transcription] == ["Mild.", "Mild."]
    assert events[-1].turn_complete


def test_a_conversation_of_an_agent_whose_model_refuses_ends_with_what_the_service_said():
    async def talk() -> None:
        async with asyncio.timeout(5), LiveServer(lambda client: client.hang_up(1007, "no such voice")) as server:
            runner = InMemoryRunner(LlmAgent(name="guide", model=gemini(server)), app_name="app")
            session = await runner.session_service.create_session(app_name="app", user_id="u")
            run = runner.run_live(user_id="u", session_id=session.id, live_request_queue=LiveRequestQueue())
            async for _ in run:
                pass

    with pytest.raises(ModelError, match="no such voice"):
        asyncio.run(talk())
