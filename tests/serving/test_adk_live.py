"""ADK's `/run_live`: a live conversation over a WebSocket."""

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from adk_nb import tool, types
from adk_nb.agents import Agent
from adk_nb.models import LlmResponse, ScriptedLlm, call
from adk_nb.serving.access import MAX_BODY
from tests.serving.conftest import TOKEN, Served, approval, requests_in, texts

HEADERS = {"Authorization": f"Bearer {TOKEN}"}


@tool(confirm=True)
def pay(to: str, amount: float) -> str:
    """Pay a person."""
    return f"paid {amount:g} to {to}"


def clerk(*answers: Any, **options: Any) -> Agent:
    return Agent(name="clerk", model=ScriptedLlm(*answers), **options)


class Talk:
    """A client's side of a conversation."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    def say(self, *parts: Any, **more: Any) -> None:
        """Send text, or other parts."""
        written = [{"text": part} if isinstance(part, str) else part for part in parts]
        content = {"content": {"role": "user", "parts": written}} if written else {}
        self.socket.send(json.dumps({**content, **more}))

    def until(self, is_last: Callable[[dict[str, Any]], Any]) -> list[dict[str, Any]]:
        """The events up to one."""
        events: list[dict[str, Any]] = []
        while not (events and is_last(events[-1])):
            events.append(json.loads(self.socket.recv(timeout=60)))
        return events

    def turn(self) -> list[dict[str, Any]]:
        """The events up to the end of the model's turn."""
        return self.until(lambda event: event.get("turnComplete"))

    def end(self) -> tuple[int, str]:
        """Code and reason of the close that comes, after any events."""
        with pytest.raises(ConnectionClosed) as closed:
            while True:
                self.socket.recv(timeout=60)
        assert closed.value.rcvd
        return closed.value.rcvd.code, closed.value.rcvd.reason


@pytest.fixture
def talk() -> Iterator[Callable[..., Talk]]:
    """Opens a conversation with what is served."""
    with ExitStack() as stack:

        def opened(served: Served, query: str = "", headers: dict[str, str] = HEADERS, **options: Any) -> Talk:
            address = served.url.replace("http", "ws", 1) + "/run_live?" + (query or "user_id=user&session_id=s")
            return Talk(stack.enter_context(connect(address, additional_headers=headers, proxy=None, **options)))

        yield opened


def test_a_message_is_answered_in_pieces_and_whole(serve, talk):
    agent = clerk("One two.", "Three.")
    served = serve(agent)
    served.session()
    conversation = talk(served, "app_name=clerk&user_id=user&session_id=s&modalities=TEXT")
    conversation.say("Count")
    events = conversation.turn()
    pieces = [event["content"]["parts"][0]["text"] for event in events if event.get("partial")]
    assert "".join(pieces) == "One two." and len(pieces) == 2 and texts(events) == ["One two."]
    conversation.say("On", state_delta={"mood": "good"})
    assert texts(conversation.turn()) == ["Three."]
    conversation.say(close=True)
    assert conversation.end() == (1000, "")
    assert texts(served.events()) == ["Count", "One two.", "On", "Three."]
    assert served.client.get("/apps/clerk/users/user/sessions/s").json()["state"] == {"mood": "good"}
    assert agent.model.requests[0].live_connect_config.response_modalities == [types.Modality.TEXT]


def test_audio_goes_both_ways_as_adks_page_sends_and_plays_it(serve, talk):
    sound = types.Part(inline_data=types.Blob(data=b"\xfb\xff\x00", mime_type="audio/pcm"))
    heard = types.Transcription(text="Hello.", finished=True)
    agent = clerk([LlmResponse(content=types.Content(role="model", parts=[sound]), partial=True),
                   LlmResponse(input_transcription=heard), LlmResponse(turn_complete=True)])  # fmt: skip
    served = serve(agent)
    served.session()
    conversation = talk(served)
    spoken = base64.b64encode(b"\x01\x02").decode()
    conversation.say(blob={"mime_type": "audio/pcm;rate=16000", "data": spoken})
    conversation.say(audio_stream_end=True)
    events = conversation.turn()
    data = next(event["content"]["parts"][0]["inlineData"] for event in events if "content" in event)
    assert base64.urlsafe_b64decode(data["data"]) == b"\xfb\xff\x00" and data["mimeType"] == "audio/pcm"
    assert [event["inputTranscription"]["text"] for event in events if "inputTranscription" in event] == ["Hello."]
    assert agent.model.connections[0].sent[0].data == b"\x01\x02"
    assert agent.model.requests[0].live_connect_config.response_modalities == [types.Modality.AUDIO]


def test_the_query_sets_the_conversation(serve, talk):
    agent = clerk("Hello.")
    served = serve(agent)
    served.session()
    query = "user_id=user&session_id=s&modalities=TEXT&modalities=VIDEO&proactive_audio=true"
    query += "&enable_affective_dialog=true&enable_session_resumption=true&explicit_vad_signal=false"
    conversation = talk(served, query)
    conversation.say("Hi")
    conversation.turn()
    settings = agent.model.requests[0].live_connect_config
    assert settings.response_modalities == [types.Modality.TEXT, types.Modality.VIDEO]
    assert settings.proactivity.proactive_audio and settings.enable_affective_dialog
    assert settings.session_resumption.transparent and settings.explicit_vad_signal is False
    assert settings.avatar_config.avatar_name == "Kai", "as ADK's server has it"


def test_a_client_that_goes_ends_the_conversation_and_the_session_goes_on(serve, talk):
    agent = clerk("Hello.", "Back.")
    served = serve(agent)
    served.session()
    conversation = talk(served)
    conversation.say("Hi")
    conversation.turn()
    conversation.socket.close()
    assert texts(served.run("Again").json()) == ["Back."], "which waits for the conversation's end"
    assert texts(served.events()) == ["Hi", "Hello.", "Again", "Back."]
    assert not any(event.get("errorCode") for event in served.events()), "to go is no error"
    assert agent.model.connections[0].closed


def test_an_approval_is_asked_and_given_within_the_conversation(serve, talk):
    served = serve(clerk(call("pay", to="Anna", amount=250), "It waits.", "Anna has it.", tools=[pay]))
    served.session()
    conversation = talk(served)
    conversation.say("Pay Anna 250")
    asked = conversation.turn()
    (key,) = requests_in(asked)
    conversation.say(*approval(key))
    events = conversation.turn()
    results = [part["functionResponse"]["response"] for event in events
               for part in event.get("content", {}).get("parts", []) if "functionResponse" in part]  # fmt: skip
    assert {"result": "paid 250 to Anna"} in results and texts(events)[-1] == "Anna has it."


def test_what_cannot_be_is_said_in_the_answer_or_the_close(serve, talk):
    served = serve(clerk(ValueError("the model is out of tune")))
    for query, status, word in (
        ("user_id=user", 422, "session_id"),
        ("user_id=user&session_id=s&modalities=SMELL", 422, "modalities"),
        ("app_name=other&user_id=user&session_id=s", 404, "other"),
        ("user_id=user&session_id=%01", 400, "session_id"),
    ):
        with pytest.raises(InvalidStatus) as refused:
            talk(served, query)
        assert refused.value.response.status_code == status
        assert word in json.loads(refused.value.response.body)["detail"]
    assert talk(served).end() == (1002, "Session not found"), "as ADK's server has it"
    served.session()
    for message, word in (
        ("{", "LiveRequest"),
        ('{"contents": 1}', "content"),
        (json.dumps({"content": {"parts": [{"functionCall": {"name": "pay"}}]}}), "call functions"),
    ):
        conversation = talk(served)
        conversation.socket.send(message)
        code, reason = conversation.end()
        assert code == 1007 and word in reason and "\n" not in reason
    assert served.events() == []
    conversation = talk(served)
    conversation.say("Sing")
    code, reason = conversation.end()
    assert code == 1011 and reason == "ValueError: the model is out of tune"
    assert served.events()[-1]["errorMessage"]


def test_a_message_is_bounded_as_a_body_is(serve, talk):
    served = serve(clerk("Hello."))
    served.session()
    conversation = talk(served, max_size=None)
    conversation.socket.send(" " * (MAX_BODY + 1))
    assert conversation.end()[0] == 1009


def test_who_may_not_call_may_not_talk(serve, talk):
    served = serve(clerk("Hello."))
    served.session()
    cases: list[tuple[dict[str, str], int]] = [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({**HEADERS, "Origin": "https://evil.example"}, 403),
        ({**HEADERS, "Origin": "null"}, 403),
    ]
    for headers, status in cases:
        with pytest.raises(InvalidStatus) as refused:
            talk(served, headers=headers)
        assert refused.value.response.status_code == status, headers
    with pytest.raises(InvalidStatus) as refused:
        talk(served, f"user_id=user&session_id=s&token={TOKEN}", headers={})
    assert refused.value.response.status_code == 401, "an address with the token is for pages alone"
    page = served.client.get(f"/list-apps?token={TOKEN}", headers={"Authorization": ""})
    cookie = page.headers["set-cookie"].partition(";")[0]
    conversation = talk(served, headers={"Cookie": cookie, "Origin": served.url})
    conversation.say("Hi")
    assert texts(conversation.turn()) == ["Hello."]


@pytest.mark.slow
def test_a_conversation_lasts_longer_than_the_wait_for_a_request(serve, talk, monkeypatch):
    served = serve(clerk("Hello."))
    served.session()
    monkeypatch.setattr("adk_nb.serving.server._HEADER_SECONDS", 2.0)
    conversation = talk(served)
    with pytest.raises(TimeoutError):
        conversation.socket.recv(timeout=2.5)
    conversation.say("Hi")
    assert texts(conversation.turn()) == ["Hello."]
