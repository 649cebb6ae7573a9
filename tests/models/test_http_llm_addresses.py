"""Where a model that is a service is asked: at its own address alone, which is checked before anything is sent."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from adk_nb import types
from adk_nb.agents import LlmAgent
from adk_nb.errors import ConfigurationError
from adk_nb.models import HttpLlm
from tests.support.each import each
from tests.support.http_service import Answer, Service
from tests.support.talk import Talk

ONCE = types.HttpRetryOptions(attempts=1)


@pytest.fixture
def service() -> Iterator[Service]:
    with Service() as service:
        yield service


def agent_of(url: str) -> LlmAgent:
    return LlmAgent(name="guide", model=HttpLlm(f"{url}/chat", retry_options=ONCE))


def test_proxies_and_passwords_of_the_environment_are_not_used(
    service: Service, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
):
    with Service() as proxy:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
            monkeypatch.setenv(name.lower(), proxy.url)
        monkeypatch.setenv("NO_PROXY", "")
        (netrc := tmp_path / "netrc").write_text("machine 127.0.0.1 login me password of-netrc\n")
        monkeypatch.setenv("NETRC", str(netrc))
        service.say("/chat", {"content": "Hello"})
        model = HttpLlm(f"{service.url}/chat", retry_options=ONCE)
        assert Talk(LlmAgent(name="guide", model=model)).say()[0].text == "Hello"
        assert proxy.asked == [] and "authorization" not in service.asked[0].headers


def test_a_cookie_is_not_sent_back(service: Service):
    service.say("/chat", Answer({"content": "Hello"}, headers={"Set-Cookie": "who=me"}), {"content": "Hello"})
    talk = Talk(agent_of(service.url))
    talk.say()
    talk.say()
    assert "cookie" not in service.asked[1].headers


@each(
    "fields, told_so",
    [
        ({"url": "ftp://x/y"}, "http://"),
        ({"url": "http:///chat"}, "http:// or https:// .*'http:///chat'"),
        ({"url": "{{state.url}}/chat"}, r"http:// or https:// .*\{\{state.url"),
        ({"url": "http://x:99999/chat"}, "url is invalid: .*port"),
        ({"url": "http://x:abc/chat"}, "url is invalid"),
        ({"url": "http://x y/chat"}, "url is invalid"),
        ({"url": "http://me:s3cr3t-of-url@x:99999/chat"}, r"http://me:\[secret\]@x:99999/chat'"),
        ({}, "'url' is missing"),
        ({"url": "http://x", "method": "FETCH"}, "method"),
        ({"url": "http://x", "timeout": 0}, "timeout"),
        ({"url": "http://x", "header": {}}, "did you mean 'headers'"),
        ({"url": "http://x", "headers": {"A b": "c"}}, "header name 'A b'"),
        ({"url": "http://x", "headers": {"A": "{{$secret(name)}}"}}, r"\{\{\$secret\(name\)\}\}.*not a placeholder"),
        ({"url": "http://x", "body": {"A": "{{$secrets('x')}}"}}, "secrets.*not a placeholder"),
    ],
)
def test_a_model_put_together_wrongly_says_what_to_write(fields: dict[str, Any], told_so: str):
    with pytest.raises(ConfigurationError, match=told_so) as refused:
        HttpLlm(**fields)
    assert refused.value.__cause__ is None  # pydantic's own words would show headers as they were given


@pytest.mark.parametrize(
    ("url", "state", "says"),
    [
        ("http://{{state.host}}/chat", {}, "url is invalid"),
        ("http://127.0.0.1:{{state.port}}/chat", {"port": "7@evil.example"}, "url is invalid"),
        ("{{$secret('base')}}/chat", {}, "url is invalid"),
    ],
)
def test_an_address_that_is_none_once_it_is_filled_is_not_asked(url: str, state: dict[str, Any], says: str):
    agent = LlmAgent(name="guide", model=HttpLlm(url, secrets={"base": "no-address-7"}, retry_options=ONCE))
    [event] = Talk(agent, state).say()
    assert event.error_code == "ConfigurationError" and says in (event.error_message or "")


def test_more_than_an_address_can_hold_is_not_sent_with_get(service: Service):
    talk = Talk(LlmAgent(name="guide", model=HttpLlm(f"{service.url}/chat", method="GET")))
    [event] = talk.say("x" * 100_000)
    assert event.error_code == "ConfigurationError" and "write method='POST'" in (event.error_message or "")


def test_what_is_asked_at_once_is_answered_to_who_asked(service: Service):
    service.make("/chat", lambda asked: {"content": asked.body["messages"][-1]["content"].upper()})
    agent = agent_of(service.url)

    talks = [Talk(agent) for _ in range(8)]
    said: list[str] = [""] * 8

    def say(at: int) -> None:
        said[at] = talks[at].say(f"word {at}")[0].text

    threads = [threading.Thread(target=say, args=(at,)) for at in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert said == [f"WORD {at}" for at in range(8)]
