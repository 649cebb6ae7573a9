"""A served agent in a real page: its address and token, the chats of its clients, and an approval on a card."""

import json
from contextlib import suppress

import httpx2
import pytest
from chats import PAYING, SETUP
from lab import Lab, Page

pytestmark = [pytest.mark.browser, pytest.mark.browser_all]

TELL = """
import json, pathlib
pathlib.Path("served.json").write_text(json.dumps({"url": _serve.url, "headers": _serve.headers}))
"""


def ask(client: httpx2.Client, text: str, session: str = "web") -> httpx2.Response:
    client.post("/apps/payer/users/user/sessions", json={"sessionId": session})
    message = {"role": "user", "parts": [{"text": text}]}
    body = {"appName": "payer", "userId": "user", "sessionId": session, "newMessage": message}
    return client.post("/run", json=body)


def client_of(lab: Lab) -> httpx2.Client:
    served = json.loads((lab.folder / "served.json").read_text())
    return httpx2.Client(base_url=served["url"], headers=served["headers"], timeout=60)


def test_chats_over_http_are_shown_and_approved_in_the_cell_of_the_server(lab: Lab):
    page: Page = lab.open(lab.write("served.ipynb", SETUP, PAYING, "%serve payer", TELL, "%serve --stop"))
    page.resize(1000, 1000)
    for cell in (0, 1, 2, 3):
        page.run_cell(cell)
    page.wait(".adknb-served", "payer is served at http://127.0.0.1:")
    with client_of(lab) as client:
        token = client.headers["authorization"].removeprefix("Bearer ")
        assert token not in page.wait(".adknb-served").text
        page.click(".adknb-served-show")
        page.wait(".adknb-served-secret", token)
        page.screenshot("serve-token")
        assert token not in json.dumps(page.saved()), "the file has no token, shown or not"
        page.click(".adknb-served-show")
        page.gone(".adknb-served-secret code")

        answer = ask(client, "Please pay me back for order A17.")
        assert "adk_request_confirmation" in answer.text
        page.wait(".adknb-card", "asks to call")
        page.screenshot("serve-card")
        assert ask(client, "And now?").status_code == 409
        page.button("Approve").click()
        page.until(lambda: ("payer", "All settled.") in page.talk(), "the answer after the approval")
        events = client.get("/apps/payer/users/user/sessions/web").json()["events"]
        assert events[-1]["content"]["parts"][0]["text"] == "All **settled**."
        page.screenshot("serve-light")
        page.theme("JupyterLab Dark")
        page.screenshot("serve-dark")
        page.theme("JupyterLab Light")
        page.resize(480, 900)
        page.screenshot("serve-narrow")
        page.resize(1000, 1000)

    page.run_cell(4)
    assert "is free" in page.text(4)
    page.wait(".adknb-served", "payer is served no more")
    stored_text = json.dumps(page.saved())
    assert token not in stored_text and "All **settled**." in stored_text
    with client_of(lab) as client, suppress(httpx2.ConnectError):
        assert client.get("/list-apps").status_code == 401, "another server that has taken the port since"
    assert [line for line in page.complaints() if "anywidget" in line] == []
