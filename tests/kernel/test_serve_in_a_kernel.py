"""`%serve` in a real kernel: cells hold no client up, and the end of the kernel frees the port."""

import json
import socket
from pathlib import Path
from typing import Any

import httpx2
import pytest
from kernel import Kernel, running_kernel
from websockets.sync.client import connect

from tests.serving.conftest import texts
from tests.serving.test_adk_live import Talk

pytestmark = pytest.mark.kernel

SETUP = """
%load_ext adk_nb
import threading
from adk_nb import Agent, tool
from adk_nb.models import ScriptedLlm, call

@tool
def look() -> str:
    "Look."
    return threading.current_thread().name

@tool(confirm=True)
def pay(to: str) -> str:
    "Pay a person."
    return f"paid {to}"

gate = threading.Event()
script = ScriptedLlm(call("look"), "Seen.", call("look"), "Seen again.", call("pay", to="Anna"), "Anna has it.")
clerk = Agent(name="clerk", model=script, tools=[look, pay])
"""
TELL = 'import json; print(json.dumps({"url": _serve.url, "headers": _serve.headers, "port": _serve.port}))'


def sent(served: dict[str, Any], part: dict[str, Any]) -> httpx2.Response:
    with httpx2.Client(base_url=served["url"], headers=served["headers"], timeout=60) as client:
        client.post("/apps/clerk/users/user/sessions", json={"sessionId": "web"})
        message = {"role": "user", "parts": [part]}
        return client.post(
            "/run", json={"appName": "clerk", "userId": "user", "sessionId": "web", "newMessage": message}
        )


def ask(served: dict[str, Any], text: str) -> list[Any]:
    answer = sent(served, {"text": text})
    assert answer.status_code == 200, answer.text
    return [part for event in answer.json() for part in event["content"]["parts"]]


def test_clients_are_answered_while_a_cell_works_and_an_approval_is_a_click(kernel: Kernel):
    kernel.run(SETUP)
    serving = kernel.run("%serve clerk")
    told = kernel.run(TELL).printed
    served = json.loads(told)
    assert served["headers"]["Authorization"].removeprefix("Bearer ") not in serving.text
    assert ask(served, "Look")[-1] == {"text": "Seen."}

    busy = kernel.start("print('busy', flush=True)\nwhile not gate.wait(0.05): pass")
    kernel.until_printed(busy, "busy")
    assert ask(served, "Look again")[-1] == {"text": "Seen again."}
    kernel.interrupt(busy)
    assert busy.error == "KeyboardInterrupt"

    asked = ask(served, "Pay Anna")
    request = next(part["functionCall"] for part in asked if "adk_request" in json.dumps(part))
    response = {"id": request["id"], "name": request["name"], "response": {"confirmed": True}}
    assert sent(served, {"functionResponse": response}).status_code == 409
    kernel.until(lambda: "approval request" in kernel.rows[-2]["text"], "the row of the refused approval")
    assert [row["author"] for row in kernel.rows[-2:]] == ["client", "notebook"]
    assert {row["author"] for row in kernel.rows} == {"client", "clerk", "notebook"}
    kernel.click(kernel.card("pay"), decision="approve")
    kernel.card("pay", "approved")
    kernel.until(lambda: "Anna has it." in serving.shown, "the answer in the cell of the server")
    assert "client > Pay Anna" in serving.shown and "you > " not in serving.shown


def test_a_click_approves_a_call_of_a_live_conversation_which_goes_on(kernel: Kernel):
    kernel.run(SETUP)
    kernel.run('script = ScriptedLlm(call("pay", to="Anna"), "It waits.", "Anna has it.")')
    kernel.run('clerk = Agent(name="clerk", model=script, tools=[look, pay])')
    serving = kernel.run("%serve clerk")
    served = json.loads(kernel.run(TELL).printed)
    with httpx2.Client(base_url=served["url"], headers=served["headers"], timeout=60) as client:
        client.post("/apps/clerk/users/user/sessions", json={"sessionId": "live"})
    address = served["url"].replace("http", "ws", 1) + "/run_live?user_id=user&session_id=live&modalities=TEXT"
    with connect(address, additional_headers=served["headers"], proxy=None) as websocket:
        conversation = Talk(websocket)
        conversation.say("Pay Anna")
        assert texts(conversation.turn()) == ["It waits."]
        kernel.click(kernel.card("pay"), decision="approve")
        assert texts(conversation.turn()) == ["Anna has it."]
        kernel.card("pay", "approved")
        conversation.say(close=True)
        assert conversation.end()[0] == 1000
    kernel.until(lambda: "Anna has it." in serving.shown, "the answer in the cell of the server")
    typed = [(row["author"], row["text"]) for row in kernel.rows if row["kind"] == "user"]
    assert typed[-2:] == [("client", "Pay Anna"), ("user", "approves pay by a click")]


@pytest.mark.kernel_all
def test_the_end_of_the_kernel_frees_the_port(tmp_path: Path):
    with running_kernel(tmp_path) as kernel:
        kernel.run(SETUP)
        kernel.run("%serve clerk")
        port = json.loads(kernel.run(TELL).printed)["port"]
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.1", port))
