"""A service that fails, in each way there is: one error that tells who, where and what to do; what was done before it
stays; no secret is told; and the next message works.
"""

import gzip
import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from email.utils import formatdate
from typing import Any

import pytest

from adk_nb import clock, types
from adk_nb.agents import LlmAgent
from adk_nb.events import Event
from adk_nb.models import HttpLlm
from adk_nb.models.http_llm import MAX_BYTES
from tests.support.http_service import Answer, Service
from tests.support.talk import Talk, summaries

SOON = types.HttpRetryOptions(attempts=3, initial_delay=0.001, jitter=0)
ONCE = types.HttpRetryOptions(attempts=1)
SECRETS = ("s3cr3t-of-header", "s3cr3t-of-url", "s3cr3t-of-body")


@pytest.fixture
def service() -> Iterator[Service]:
    with Service() as service:
        yield service


NOTE = {"toolCalls": [{"function_name": "note", "function_args": {"text": "first"}, "id": "one"}]}


def agent_of(url: str, *, patience: float | None = None, **kwargs: Any) -> LlmAgent:
    """`patience`: seconds that the service has from the first call of the tool on."""

    def note(text: str, tool_context: Any) -> str:
        """Keeps a note."""
        tool_context.state["noted"] = text
        model.timeout = patience or model.timeout
        return "kept"

    model = HttpLlm(
        f"{url}/chat?key={{{{$secret('u')}}}}",
        headers={"Authorization": "Bearer {{$secret('h')}}"},
        body={"account": "{{$secret('b')}}"},
        secrets=dict(zip("hub", SECRETS, strict=True)),
        **{"retry_options": SOON, **kwargs},
    )
    return LlmAgent(name="guide", model=model, identity=False, tools=[note])


def call(**fields: Any) -> dict[str, Any]:
    return {"toolCalls": [fields]}


@dataclass
class Fails:
    code: str
    says: str
    """In the message."""
    times: int = 1
    """How often the service is asked before it is given up."""


HTML = b"<!doctype html><title>Log in</title>"
AGAIN = 3
REFUSED: list[tuple[str, Any, Fails]] = [
    ("400", Answer({"error": "no"}, 400), Fails("HTTP_400", "; check the request")),
    ("401", Answer({"error": "who?"}, 401), Fails("HTTP_401", "; check its headers")),
    ("403", Answer({"error": "not you"}, 403), Fails("HTTP_403", "; check its headers")),
    ("404", Answer(HTML, 404), Fails("HTTP_404", "; check its url")),
    ("405", Answer(b"", 405), Fails("HTTP_405", "Method Not Allowed; check its method")),
    ("302", Answer(b"", 302, {"Location": "/login?key=s3cr3t-of-url"}), Fails("HTTP_302", "'/login?key=")),
    ("307", Answer(b"", 307, {"Location": "https://x.example/"}), Fails("HTTP_307", "redirects are not followed")),
    ("304", Answer(b"", 304), Fails("HTTP_304", "Not Modified")),
    ("408", Answer(b"", 408), Fails("HTTP_408", "Request Timeout", AGAIN)),
    ("425", Answer(b"", 425), Fails("HTTP_425", "Too Early", AGAIN)),
    ("429", Answer({"error": "slowly"}, 429), Fails("HTTP_429", "retry_options", AGAIN)),
    ("500", Answer(b"Traceback ...", 500), Fails("HTTP_500", "Traceback ...; see the log of the service", AGAIN)),
    ("503", Answer(b"\xff\x00", 503), Fails("HTTP_503", "see the log of the service", AGAIN)),
    ("599", Answer(b"", 599), Fails("HTTP_599", "see the log of the service", AGAIN)),
    ("echo", lambda request: Answer(str(request.headers | request.query).encode(), 418), Fails("HTTP_418", "[secret]")),
    ("echo-json", lambda request: Answer({"body": request.body["account"]}, 500), Fails("HTTP_500", "[secret]", AGAIN)),
]
LOST: list[tuple[str, Any, Fails]] = [
    ("half", Answer({"content": "Hello"}, cut=9), Fails("HTTP_CONNECTION", "received 9 bytes", AGAIN)),
    ("nothing", Answer({"content": "Hello"}, cut=0), Fails("HTTP_CONNECTION", "and its url", AGAIN)),
    ("reset", Answer({"content": "Hello"}, cut=9, reset=True), Fails("HTTP_CONNECTION", "and its url", AGAIN)),
    ("silent", Answer(silent=True), Fails("HTTP_CONNECTION", "within 0.2 s; raise timeout", AGAIN)),
    (
        "drip",
        Answer({"content": "x" * 999}, drip=True),
        Fails("HTTP_CONNECTION", "did not answer within 0.2 s", AGAIN),
    ),
]
GARBAGE: list[tuple[str, Any, str]] = [
    ("bytes", b"\xff\xfe\x00garbage", "not UTF-8"),
    ("latin-1", '{"content": "\u00e9"}'.encode("latin-1"), "not UTF-8"),
    ("empty", b"", "the answer is empty; send {'content': '...'}"),
    ("204", Answer(b"", 204), "the answer is empty"),
    ("half JSON", b'{"content": ', "not JSON: Expecting value"),
    ("a list", b"[1, 2]", "a JSON object, got '[1, 2]'"),
    ("a number", b"42", "a JSON object, got '42'"),
    ("null", b"null", "a JSON object, got 'null'"),
    (
        "HTML",
        Answer(HTML, headers={"Content-Type": "text/html; charset=utf-8"}),
        "text/html, not JSON",
    ),
    ("HTML as JSON", HTML, "not JSON"),
    ("HTML as text", Answer(HTML, headers={"Content-Type": "text/plain"}), "not JSON"),
    (
        "binary",
        Answer(b"hi", headers={"Content-Type": "application/octet-stream"}),
        "application/octet-stream, not JSON",
    ),
    ("NaN", b'{"content": "x", "statusCode": NaN}', "NaN is not a JSON number"),
    ("infinite", b'{"toolCalls": [{"function_name": "note", "function_args": {"n": 1e999}}]}', "1e999 is not"),
    ("a long number", b'{"statusCode": ' + b"9" * 5_000 + b"}", "not JSON"),
    ("twice", b'{"content": "yes", "content": "no"}', "'content' occurs twice"),
    ("twice in arguments", b'{"toolCalls": [{"function_args": {"a": 1, "a": 2}}]}', "'a' occurs twice"),
    ("nested", b"[" * 100_000, "nested too deep"),
    ("huge", b'"' + b"x" * MAX_BYTES + b'"', "more than 8,388,608 bytes"),
    (
        "a bomb",
        Answer(gzip.compress(b" " * (2 * MAX_BYTES)), headers={"Content-Encoding": "gzip"}),
        "more than 8,388,608",
    ),
    ("packed twice", Answer(b"x", headers={"Content-Encoding": "gzip, gzip"}), "neither gzip nor deflate"),
    ("packed wrongly", Answer(b"garbage", headers={"Content-Encoding": "gzip"}), "cannot be decompressed"),
    ("OpenAI's", {"choices": [{"message": {"content": "Hello"}}]}, "none of the fields content, toolCalls"),
    ("an error", {"error": "overloaded"}, "overloaded"),
    ("content", {"content": 5}, "'content' must be text"),
    ("pieces", {"content": [{"text": 5}]}, "'content' must be text"),
    ("a flag", {"exitFlow": "yes"}, "'exitFlow' must be true or false, got 'yes'"),
    ("no list", {"toolCalls": {}}, "'toolCalls' must be a list"),
    ("no call", {"toolCalls": ["note"]}, "function_name"),
    ("no name", call(function_args={}), "function_name"),
    ("an empty name", call(function_name="", function_args={}), "function_name"),
    ("a name of 7", call(function_name=7), "function_name"),
    ("args as half JSON", call(function_name="note", function_args="{"), "'function_args' of 'note' is not JSON"),
    ("args as NaN", call(function_name="note", function_args='{"a": NaN}'), "'function_args' of 'note' is not JSON"),
    ("args as text", call(function_name="note", function_args='"hello"'), "function_args"),
    ("args as a list", call(function_name="note", function_args=[1]), "function_args"),
    ("no prompt", {"hitlRequest": {"question": "?"}}, "'hitlRequest' must be {'prompt': '...'"),
    ("hitl as text", {"hitlRequest": "May I?"}, "'hitlRequest' must be {'prompt': '...'"),
    ("nobody to ask", {"hitlRequest": {"prompt": "?"}}, "write LlmAgent(tools=[ask_a_person]"),
]
ALL = [*REFUSED, *LOST, *((name, text, Fails("INVALID_RESPONSE", says)) for name, text, says in GARBAGE)]


@pytest.mark.parametrize(("answer", "fails"), [pytest.param(*row[1:], id=row[0]) for row in ALL])
def test_a_failure_is_one_clear_error_and_nothing_is_lost(
    service: Service, answer: Any, fails: Fails, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)
    slow = "within 0.2 s" in fails.says
    talk = Talk(agent := agent_of(service.url, patience=0.2 if slow else None))
    text = Answer(answer) if isinstance(answer, bytes) else answer
    service.say("/chat", NOTE, *([] if callable(text) else [text] * fails.times))
    if callable(text):
        service.make("/chat", text)

    *previous, event = talk.say("go")

    assert [text.partition(" ")[0] for _, text in summaries(previous)] == ["calls", "answers"]
    assert previous[-1].actions.state_delta == {"noted": "first"}
    message = event.error_message or ""
    assert (event.author, event.error_code) == ("guide", fails.code)
    assert len(service.asked) == 1 + fails.times or slow  # a busy machine may not have sent it in time
    assert f"'{service.url}/chat'" in message and fails.says in message and len(message) < 1_000
    assert {request.path for request in service.asked} == {"/chat"}  # nor is it gone where it was sent on to
    assert talk.stored().state == {"noted": "first"}

    model = agent.model
    assert isinstance(model, HttpLlm)
    model.timeout = 5.0
    service.say_now("/chat", {"content": "Here I am."})
    assert [run_event.text for run_event in talk.say("again")] == ["Here I am."]
    body = service.asked[-1].body
    assert [error["role"] for error in body["messages"]] == ["user", "assistant", "tool", "user"]
    assert body["state"] == {"noted": "first"}
    output = f"{talk.error} {talk.stored().model_dump_json()} {caplog.text} {model!r} {message}"
    assert not [secret for secret in SECRETS if secret in output]


# ---- what is no failure


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (Answer(b'\xef\xbb\xbf{"content": "Hello"}'), "Hello"),
        (Answer(b'{"content": "Hello"}', headers={"Content-Type": "text/html"}), "Hello"),
        (Answer(gzip.compress(b'{"content": "Hello"}'), headers={"Content-Encoding": "gzip"}), "Hello"),
        ({"content": "Hello", "usage": {"tokens": 7}, "exitFlow": None}, "Hello"),
        (Answer(b"Hello\xc3\xa9", headers={"Content-Type": "text/plain"}), "Hello\u00e9"),
        (Answer(b'{"content": "a\\ud800b"}'), "a?b"),
    ],
)
def test_what_can_be_read_is_read(service: Service, message: Any, text: str):
    service.say("/chat", message)
    assert [event.text for event in Talk(agent_of(service.url)).say()] == [text]


@pytest.mark.parametrize(
    ("payload", "answer"),
    [
        (call(function_name="nota", function_args={"text": "x"}), "did you mean note()?"),
        (call(function_name="note"), "text are missing"),
        (call(function_name="note", function_args=""), "text are missing"),
        (call(function_name="note", function_args="null"), "text are missing"),
        (call(function_name="note", function_args={"text": 7}), "wrong arguments"),
        (call(function_name="adk_request_confirmation", function_args={}), "names that start with 'adk_'"),
    ],
)
def test_a_call_that_cannot_be_made_is_told_to_the_service(service: Service, payload: Any, answer: str):
    service.say("/chat", payload, {"content": "I see."})
    talk = Talk(agent_of(service.url))
    *_, last = talk.say()
    assert (last.text, talk.error, talk.stored().state) == ("I see.", None, {})
    [response] = service.asked[-1].body["messages"][-1]["content"]
    assert answer in response["function_response"]["response"]["error"]


@pytest.mark.parametrize("key", ["x", 7, "", None, {"a": 1}, ["x"]], ids=str)
def test_each_call_gets_its_own_result_whatever_its_id(service: Service, key: Any):
    two = [{"function_name": "note", "function_args": {"text": item}, "id": key} for item in "ab"]
    service.say("/chat", {"toolCalls": two}, {"toolCalls": two[:1]}, {"content": "Done."}, {"content": "Yes."})
    talk = Talk(agent_of(service.url))
    assert talk.say()[-1].text == "Done."
    assert talk.say()[-1].text == "Yes."
    roles = [(message["role"], len(message["content"])) for message in service.asked[-1].body["messages"][:5]]
    assert roles == [("user", 2), ("assistant", 2), ("tool", 2), ("assistant", 1), ("tool", 1)]
    for text, answers in (service.asked[-1].body["messages"][number : number + 2] for number in (1, 3)):
        keys = [item["function_call"]["id"] for item in text["content"]]
        assert keys == [item["function_response"]["id"] for item in answers["content"]] and all(keys)


# ---- again


def test_a_busy_service_is_retried(service: Service):
    for status in (408, 425, 429, 500, 502, 599):
        service.say("/chat", Answer(b"busy", status), Answer({"content": "Hello"}, cut=9), {"content": "Hello"})
        answers = Talk(agent_of(service.url)).say()
        assert [event.text for event in answers] == ["Hello"]
        assert next(attempt.error for attempt in answers[-1].attempts or []) == f"HTTP {status}"


SLOW = types.HttpRetryOptions(attempts=3, initial_delay=60, jitter=0)


@pytest.mark.parametrize("soon", ["0", "0.01", "-1", formatdate(0, usegmt=True), "Thu, 01 Jan 1970 00:00:00 -0000"])
def test_retry_after_is_waited_for_as_seconds_or_as_a_date(service: Service, soon: str):
    service.say("/chat", Answer(b"", 429, {"Retry-After": soon}), {"content": "Hello"})
    assert [event.text for event in Talk(agent_of(service.url, retry_options=SLOW)).say()] == ["Hello"]


@pytest.mark.parametrize(
    "late",
    ["3600", "1e999", formatdate(clock.now() + 3600, usegmt=True), "Fri, 31 Dec 9999 23:59:59 GMT"],
    ids=["seconds", "no end", "in an hour", "in the year 9999"],  # a date of its own would name each worker's test anew
)
def test_a_wait_that_is_longer_than_all_attempts_may_take_is_none(service: Service, late: str):
    service.say("/chat", Answer(b"", 503, {"Retry-After": late}))
    assert [event.error_code for event in Talk(agent_of(service.url, retry_options=SLOW)).say()] == ["HTTP_503"]


@pytest.mark.parametrize("odd", ["soon", "", "Fri, 31 Feb 2026 00:00:00 GMT", "Wed, 21 Oct 2015 07:28:00 +99999999999"])
def test_a_wait_that_cannot_be_read_is_the_usual_one(service: Service, odd: str):
    service.say("/chat", Answer(b"", 503, {"Retry-After": odd}), {"content": "Hello"})
    assert [event.text for event in Talk(agent_of(service.url)).say()] == ["Hello"]


def test_all_attempts_together_have_their_time(service: Service):
    service.make("/chat", lambda request: Answer(silent=True))
    many = types.HttpRetryOptions(attempts=1_000, initial_delay=0.001, jitter=0)
    [event] = Talk(agent_of(service.url, timeout=0.02, total_timeout=0.1, retry_options=many)).say()
    assert event.error_code == "HTTP_CONNECTION" and len(service.asked) < 100
    [event] = Talk(agent_of(service.url, timeout=5.0, total_timeout=0.05)).say()
    assert "0.05 s; raise total_timeout" in (event.error_message or "")


# ---- gone


def failed(talk: Talk) -> Event:
    [event] = talk.say("first")
    assert event.error_code == "HTTP_CONNECTION" and talk.error
    return event


def test_a_service_that_is_gone_is_one_error_and_after_it_is_back_the_next_message_works():
    with Service() as service:
        talk = Talk(agent_of(url := service.url))
        service.say("/chat", {"content": "One."})
        assert talk.say("zero")[0].text == "One."
    assert url in (failed(talk).error_message or "")
    with Service(int(url.rpartition(":")[2])) as service:
        service.say("/chat", {"content": "Here I am."})
        assert [event.text for event in talk.say("second")] == ["Here I am."]
        assert [message["content"] for message in service.asked[0].body["messages"]] == [
            "zero",
            "One.",
            "first",
            "second",
        ]


SERVER = """
import sys, threading
from http.server import BaseHTTPRequestHandler, HTTPServer
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "20")
        self.end_headers()
        if b'"die"' in body[-200:] and len(sys.argv) == 2:
            self.wfile.write(b'{"content": ')
            print("half", flush=True)
            threading.Event().wait()
        self.wfile.write(b'{"content": "Hello"}')
    def log_message(self, *args): pass
server = HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""


def served(*args: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", SERVER, *args], stdout=subprocess.PIPE, text=True)


def test_a_server_that_is_killed_while_it_answers_and_started_again():
    with served("0") as server:
        assert server.stdout
        port = server.stdout.readline().strip()
        model = HttpLlm(f"http://127.0.0.1:{port}/chat", retry_options=ONCE)
        talk = Talk(LlmAgent(name="guide", model=model, identity=False))
        assert talk.say("hi")[0].text == "Hello"

        def kill() -> None:
            if server.stdout and server.stdout.readline() == "half\n":
                server.kill()

        (killer := threading.Thread(target=kill)).start()
        [event] = talk.say("die")
        killer.join(30)
        assert (event.error_code, event.author) == ("HTTP_CONNECTION", "guide")
    with served(port, "again") as server:
        try:
            assert server.stdout and server.stdout.readline().strip() == port
            assert talk.say("back?")[0].text == "Hello"
        finally:
            server.kill()
    assert [event.author for event in talk.stored().events] == ["user", "guide", "user", "guide", "user", "guide"]
