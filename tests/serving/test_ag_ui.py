"""AG-UI: the order of its events, state, interrupts and their answers, and errors as events."""

import json
from typing import Any

import pytest

from adk_nb import tool, types
from adk_nb.agents import Agent
from adk_nb.models import LlmResponse, ScriptedLlm, call
from tests.serving.conftest import Served


@tool(confirm=True)
def pay(to: str, amount: float) -> str:
    """Pay a person."""
    return f"paid {amount:g} to {to}"


@tool
def note(text: str, tool_context) -> str:
    """Write a note."""
    tool_context.state["note"] = text
    return "noted"


def clerk(*answers: Any, **options: Any) -> Agent:
    return Agent(name="clerk", model=ScriptedLlm(*answers), **options)


def talk(served: Served, text: Any = None, thread: str = "t", **more: Any) -> list[dict[str, Any]]:
    """The events of one run."""
    messages = [] if text is None else [{"id": "m", "role": "user", "content": text}]
    run = {"threadId": thread, "runId": "r", "messages": messages, "tools": [], "context": [], **more}
    answer = served.client.post("/ag-ui", json=run)
    assert answer.status_code == 200, answer.text
    return [json.loads(line.removeprefix("data: ")) for line in answer.text.splitlines() if line]


def kinds(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events]


def resumed(*entries: tuple[str, str, Any]) -> list[dict[str, Any]]:
    return [{"interruptId": key, "status": status, "payload": payload} for key, status, payload in entries]


def test_a_text_streams_within_its_message_and_its_step(serve):
    served = serve(clerk("One two three."))
    events = talk(served, "Count")
    assert kinds(events) == [
        *("RUN_STARTED", "STATE_SNAPSHOT", "STEP_STARTED", "TEXT_MESSAGE_START"),
        *["TEXT_MESSAGE_CONTENT"] * (len(events) - 9),
        *("TEXT_MESSAGE_END", "STEP_FINISHED", "STATE_SNAPSHOT", "MESSAGES_SNAPSHOT", "RUN_FINISHED"),
    ]
    assert "".join(event.get("delta", "") for event in events) == "One two three."
    assert events[0]["protocolVersion"] == "1.0" and events[-1]["outcome"] == {"type": "success"}
    assert [message["role"] for message in events[-2]["messages"]] == ["user", "assistant"]


def test_thoughts_are_reasoning(serve):
    thought = types.Part(text="Hm.", thought=True)
    answer = LlmResponse(content=types.Content(role="model", parts=[thought, types.Part(text="Yes.")]))
    events = talk(serve(clerk(answer)), "Well?")
    inside = [kind for kind in kinds(events) if kind.startswith(("REASONING", "TEXT"))]
    assert inside == [
        *("REASONING_START", "REASONING_MESSAGE_START", "REASONING_MESSAGE_CONTENT", "REASONING_MESSAGE_END"),
        *("REASONING_END", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"),
    ]
    assert events[-2]["messages"][-1]["content"] == "Yes."


def test_a_call_has_its_result_and_the_state_its_change(serve):
    served = serve(clerk(call("note", text="a/b~c"), "Noted.", tools=[note]))
    events = talk(served, "Note it", state={"mood": "good"})
    start, args, _, result = (event for event in events if event["type"].startswith("TOOL_CALL"))
    assert (start["toolCallName"], json.loads(args["delta"])) == ("note", {"text": "a/b~c"})
    assert result["toolCallId"] == start["toolCallId"] and "noted" in result["content"]
    (delta,) = (event["delta"] for event in events if event["type"] == "STATE_DELTA")
    assert delta == [{"op": "add", "path": "/note", "value": "a/b~c"}]
    assert events[-3]["snapshot"] == {"mood": "good", "note": "a/b~c"}
    assert [message["role"] for message in events[-2]["messages"]] == ["user", "assistant", "tool", "assistant"]


def test_a_key_that_a_client_removes_is_removed(serve):
    served = serve(clerk("A.", "B."))
    talk(served, "One", state={"keep": 1, "drop": 2})
    assert talk(served, "Two", state={"keep": 1})[-3]["snapshot"] == {"keep": 1}
    assert talk(served, state={})[-3]["snapshot"] == {"keep": 1}, "a client without a state removes nothing"


def test_an_approval_ends_the_run_as_an_interrupt_and_resume_answers_it(serve):
    served = serve(clerk(call("pay", to="Anna", amount=250), "Anna has it.", tools=[pay]))
    asked = talk(served, "Pay Anna")
    (interrupt,) = asked[-1]["outcome"]["interrupts"]
    (started,) = (event for event in asked if event["type"] == "TOOL_CALL_START")
    assert asked[-1]["outcome"]["type"] == "interrupt" and interrupt["reason"] == "tool_call"
    assert interrupt["toolCallId"] == started["toolCallId"] and "pay" in interrupt["message"]
    assert interrupt["responseSchema"]["required"] == ["confirmed"] and "T" in interrupt["expiresAt"]
    assert "TOOL_CALL_RESULT" not in kinds(asked)

    refused = talk(served, "And now?")
    assert kinds(refused)[-1] == "RUN_ERROR" and interrupt["id"] in refused[-1]["message"]
    assert kinds(talk(served, resume=resumed(("none", "resolved", True))))[-1] == "RUN_ERROR"

    answers = resumed((interrupt["id"], "resolved", {"approved": True, "editedArgs": {"to": "Anna", "amount": 9}}))
    done = talk(served, resume=answers)
    assert "TOOL_CALL_START" not in kinds(done)
    (result,) = (event for event in done if event["type"] == "TOOL_CALL_RESULT")
    assert result["toolCallId"] == started["toolCallId"] and "paid 9 to Anna" in result["content"]
    assert done[-1]["outcome"] == {"type": "success"}
    again = talk(served, resume=answers)
    assert again[-1]["outcome"] == {"type": "success"} and "TOOL_CALL_RESULT" not in kinds(again), "safe to send again"


@pytest.mark.parametrize(
    ("status", "payload"),
    [("cancelled", None), ("resolved", False), ("resolved", {"approved": False}), ("resolved", {"confirmed": "yes"}),
     ("resolved", "yes"), ("resolved", None)],
)  # fmt: skip
def test_only_a_true_is_a_yes(serve, status: str, payload: Any):
    served = serve(clerk(call("pay", to="Anna", amount=250), "Then not.", tools=[pay]))
    (interrupt,) = talk(served, "Pay Anna")[-1]["outcome"]["interrupts"]
    done = talk(served, resume=resumed((interrupt["id"], status, payload)))
    assert "paid" not in json.dumps(done) and done[-1]["outcome"] == {"type": "success"}


def test_all_that_is_open_is_answered_together(serve):
    both = [call("pay", to="Anna", amount=1), call("pay", to="Bob", amount=2)]
    served = serve(clerk(both, "Both have it.", tools=[pay]))
    first, second = talk(served, "Pay both")[-1]["outcome"]["interrupts"]
    half = talk(served, resume=resumed((first["id"], "resolved", True)))
    assert kinds(half)[-1] == "RUN_ERROR" and second["id"] in half[-1]["message"]
    done = talk(served, resume=resumed((first["id"], "resolved", True), (second["id"], "resolved", True)))
    assert "paid 1 to Anna" in json.dumps(done) and "paid 2 to Bob" in json.dumps(done)


def test_a_failed_run_ends_with_an_error_event_and_the_thread_goes_on(serve):
    served = serve(clerk(RuntimeError("the service is down"), "Back."))
    failed = talk(served, "Hi")
    assert kinds(failed)[-1] == "RUN_ERROR" and "the service is down" in failed[-1]["message"]
    assert kinds(failed).count("RUN_FINISHED") == 0
    assert talk(served, "Hi again")[-2]["messages"][-1]["content"] == "Back."


def test_pictures_are_sent_as_bytes_or_by_address(serve):
    agent = clerk("Nice.", "Nice.")
    served = serve(agent)
    data = {"type": "image", "source": {"type": "data", "value": "AAEC", "mimeType": "image/png"}}
    talk(served, [{"type": "text", "text": "Look"}, data])
    parts = agent.model.requests[-1].contents[-1].parts
    assert parts[0].text == "Look" and parts[1].inline_data.data == b"\x00\x01\x02"
    address = {"type": "image", "source": {"type": "url", "value": "https://a.example/b.png", "mimeType": "image/png"}}
    talk(served, [address])
    assert agent.model.requests[-1].contents[-1].parts[0].file_data.file_uri == "https://a.example/b.png"
    broken = talk(served, [{"type": "image", "source": {"type": "data", "value": "!", "mimeType": "image/png"}}])
    assert kinds(broken)[-1] == "RUN_ERROR" and "base64" in broken[-1]["message"]


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"threadId": "t"}', b'{"threadId": " ", "runId": "r", "messages": []}']
)
def test_what_is_no_run_is_refused(serve, content: bytes):
    assert serve(clerk()).client.post("/ag-ui", content=content).status_code == 422
