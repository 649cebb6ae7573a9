"""Secrets that are known: how they become known, in which spellings they are hidden, and where."""

import copy
import io
import json
import logging
import pickle
import sys
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from uvicorn.logging import AccessFormatter

from adk_nb import redaction, types
from adk_nb.auth import AuthCredential, AuthCredentialTypes, HttpAuth, HttpCredentials, OAuth2Auth
from adk_nb.code_executors import UnsafeLocalCodeExecutor
from adk_nb.errors import ConfigurationError
from adk_nb.models import Gemini, RecordedLlm, ScriptedLlm, call
from adk_nb.notebook.chat.chat import Chat
from adk_nb.plugins import DebugLoggingPlugin, LoggingPlugin
from adk_nb.redaction import HIDDEN, hidden, redacted, remember, remember_named, remember_url, without_known
from tests.support.talk import Talk, guide, summaries

ONE = "q7Zx-5bR1-mm2"
ODD = "q7Z'\"\\ {%s}é&\n5bR1"


@pytest.mark.parametrize("spelled", [str, repr, json.dumps, quote, lambda one: json.dumps(one, ensure_ascii=False)])
def test_a_secret_is_hidden_however_it_is_spelled(spelled: Callable[[str], str]):
    remember(ODD)

    told = without_known(f"before {spelled(ODD)} after")

    assert HIDDEN in told
    assert "5bR1" not in told


def test_what_is_not_known_stays_as_it_is():
    value = {"a": [ONE, 1, None], "b": f"x {ONE}"}

    assert without_known(value) is value
    remember(ONE)
    assert without_known(value) == {"a": [HIDDEN, 1, None], "b": f"x {HIDDEN}"}


@pytest.mark.parametrize("word", ["", "short", "password", "Production", "[secret]", "[redacted]", "12345"])
def test_words_that_stand_in_text_by_chance_are_not_hidden(word: str):
    remember(word, None)

    assert without_known(f"the word {word} here") == f"the word {word} here"


@pytest.mark.parametrize("secret", ["hunter2", "correcthorsebattery", "0123456789", ONE])
def test_what_is_longer_or_no_word_is_hidden(secret: str):
    remember(secret)

    assert without_known(f"the word {secret} here") == f"the word {HIDDEN} here"


def test_headers_and_variables_are_known_by_their_name_or_their_look():
    remember_named(
        {
            "Authorization": "Bearer first-secret-1",
            "Cookie": "lang=en; sid=second-secret-2",
            "MY_API_KEY": "third-secret-3",
            "X-Whatever": "Rand0mLooking5tring",
            "User-Agent": "a-client/1.0 and more",
            "MODEL": "some-model-2025-01-01",
            "SERVICE": "https://me:fourth-secret-4@example.com/?api_key=fifth-secret-5&page=some-page-6",
            "COUNT": 12345678,
        }
    )

    told = without_known(
        "first-secret-1 second-secret-2 third-secret-3 Rand0mLooking5tring a-client/1.0 and more "
        "some-model-2025-01-01 fourth-secret-4 fifth-secret-5 some-page-6 12345678"
    )

    assert told == " ".join([*[HIDDEN] * 4, "a-client/1.0 and more some-model-2025-01-01", HIDDEN, HIDDEN]) + (
        " some-page-6 12345678"
    )


@pytest.mark.parametrize("url", ["", "no address", "http://[broken", None])
def test_what_is_no_address_holds_no_secret(url: str | None):
    remember_url(url)

    assert redaction.known_secrets() == ()


def test_errors_are_hidden_for_what_the_environment_holds_at_that_moment(monkeypatch: pytest.MonkeyPatch):
    assert hidden(f"it said {ONE}") == f"it said {ONE}"
    monkeypatch.setenv("SHOP_TOKEN", ONE)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/home/me/account.json")

    assert hidden(f"it said {ONE} of /home/me/account.json") == f"it said {HIDDEN} of /home/me/account.json"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("GET https://a.example/b?page=2&api_key=abcdefgh", "GET https://a.example/b?page=2&api_key=[redacted]"),
        ("no route to http://me:pass@a.example:8080/", "no route to http://me:[redacted]@a.example:8080/"),
        ("key AIza" + "x" * 35 + " refused", "key [redacted] refused"),
        ("a page: https://a.example/b?page=2#key=x", "a page: https://a.example/b?page=2#key=x"),
    ],
)
def test_errors_are_hidden_for_what_looks_like_a_secret(text: str, left: str):
    assert hidden(text) == left
    assert hidden(left) == left


def test_no_secret_is_ever_shown_again_however_many_came_after_it():
    remember(
        "the-oldest-0", *(f"ya29.token{number}" for number in range(5_000)), *(f"{n:04x}-token" for n in range(5_000))
    )

    assert without_known("the-oldest-0 ya29.token4999 00ff-token!") == f"{HIDDEN} {HIDDEN} {HIDDEN}!"


def test_a_secret_that_begins_as_another_is_hidden_whole():
    remember("a-secret-1", "a-secret-1-and-more", "secret-1-and")

    assert without_known("xa-secret-1-and-more, a-secret-1-and") == f"x{HIDDEN}, {HIDDEN}-and"


def steps(work: Callable[[], Any]) -> int:
    """How many lines of Python run in `work`."""
    ran = 0

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal ran
        ran += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return ran


def test_a_log_record_costs_the_same_however_many_secrets_are_known():
    def lines() -> int:
        hidden("GET /a 200 in 12 ms")  # the environment is read once
        return steps(lambda: hidden("GET /a 200 in 12 ms"))

    remember(*(f"ya29.token{number}" for number in range(10)))
    few = lines()
    remember(*(f"ya29.token{number}" for number in range(10, 5_000)))

    assert lines() == few < 60


# --- how they become known


def test_a_credential_is_known_from_when_it_is_made_also_in_the_form_that_is_sent():
    http = HttpAuth(scheme="basic", credentials=HttpCredentials(username="me", password="letMe1n!"))
    AuthCredential(auth_type=AuthCredentialTypes.HTTP, http=http)
    OAuth2Auth(auth_response_uri="http://127.0.0.1/back?state=some-state&code=4%2Fcode-of-mine")

    told = without_known("letMe1n! bWU6bGV0TWUxbiE= 4/code-of-mine 4%2Fcode-of-mine some-state")

    assert told == f"{HIDDEN} {HIDDEN} {HIDDEN} {HIDDEN} some-state"


def test_a_model_is_known_for_its_key_headers_and_address_and_does_not_show_them():
    options = types.HttpOptions(headers={"X-Gateway-Token": "gateway-token-1"})
    model = Gemini(
        api_key="own-key-22222",  # pyright: ignore[reportArgumentType]
        http_options=options,
        base_url="https://gateway.example/?key=gateway-key-3",
    )

    assert without_known("gateway-token-1 own-key-22222 gateway-key-3") == " ".join([HIDDEN] * 3)
    assert f"key={HIDDEN}" in repr(model)
    assert not any(one in repr(model) for one in ("gateway-token", "own-key", "gateway-key"))
    with pytest.raises(ConfigurationError, match="cannot be pickled"):
        pickle.dumps(model)


def test_a_credential_is_copied_but_pickled_only_without_its_secrets():
    credential = AuthCredential(auth_type=AuthCredentialTypes.API_KEY, api_key=ONE)

    assert copy.deepcopy(credential) == credential == credential.model_copy(deep=True)
    assert pickle.loads(pickle.dumps(credential.public())).api_key is None
    with pytest.raises(ConfigurationError, match="AuthCredential with secrets"):
        pickle.dumps([credential])


# --- where they are hidden


def fails() -> str:
    """Fails."""
    raise ValueError(f"refused {ONE}")


def tells() -> dict[str, Any]:
    """Tells."""
    return {"setting": ONE, "others": [f"also {ONE}"]}


def test_neither_model_nor_session_hears_what_a_tool_says_of_a_secret():
    remember(ONE)
    talk = Talk(guide([call("fails"), call("tells")], "done", tools=[fails, tells]))

    events = talk.say()

    assert summaries(events)[1][1] == (
        f"answers {{'error': 'ValueError: refused {HIDDEN}'}}; "
        f"answers {{'setting': '{HIDDEN}', 'others': ['also {HIDDEN}']}}"
    )
    assert ONE not in talk.stored().model_dump_json()


def test_the_event_and_the_reply_of_a_run_that_failed_hide_them():
    remember(ONE)
    agent = guide(call("fails"), tools=[fails], tool_errors="raise")

    talk, chat = Talk(agent), Chat(guide(call("fails"), tools=[fails], tool_errors="raise"))
    talk.say()
    reply = chat.ask("go on")

    assert talk.stored().events[-1].error_message == f"refused {HIDDEN}"
    assert reply.error is not None
    assert HIDDEN in reply.error
    assert ONE not in f"{reply!r} {reply} {reply._repr_mimebundle_()}"


def test_a_page_does_not_show_what_a_model_came_to_know():
    remember(ONE)

    reply = Chat(guide(f"the key is {ONE}")).ask("what is it?")

    assert all(ONE not in one and HIDDEN in one for one in reply._repr_mimebundle_().values())


def test_plugins_that_write_down_everything_write_no_secrets(tmp_path: Any):
    remember(ONE)
    lines: list[str] = []
    file = tmp_path / "debug.jsonl"
    plugins = [LoggingPlugin(write=lines.append), DebugLoggingPlugin(file)]

    Talk(guide([call("fails"), call("tells")], "done", tools=[fails, tells]), plugins=plugins).say(f"use {ONE}")

    assert HIDDEN in str(lines)
    assert HIDDEN in file.read_text()
    assert ONE not in str(lines) + file.read_text()


def test_a_recording_holds_none_and_is_found_again_with_it(tmp_path: Any):
    remember(ONE)
    path = tmp_path / "cassette.jsonl"

    for recorded in (ScriptedLlm(call("fails"), "done"), None):
        agent = guide(tools=[fails])
        agent.model = RecordedLlm(path, record=recorded)
        assert summaries(Talk(agent).say(f"use {ONE}"))[-1] == ("guide", "done .")

    assert ONE not in path.read_text()


def test_a_log_record_of_any_library_holds_none(caplog: pytest.LogCaptureFixture):
    remember(ONE)
    logger = logging.getLogger("some.library")

    with caplog.at_level(logging.DEBUG):
        logger.debug("sent %s to %r", ONE, {"key": ONE})
        try:
            fails()
        except ValueError:
            logger.exception("failed")
        logger.debug("nothing %s", "here")

    assert [record.getMessage() for record in caplog.records[:2]] == [
        f"sent {HIDDEN} to {{'key': '{HIDDEN}'}}",
        "failed",
    ]
    assert f"ValueError: refused {HIDDEN}" in caplog.text
    assert ONE not in caplog.text
    assert caplog.records[-1].args == ("here",)


def test_json_is_redacted_by_the_names_of_its_fields_too():
    remember(ONE)

    assert redacted({"password": "x", "said": f"it is {ONE}", "data": ONE}) == {
        "password": "[redacted]",
        "said": f"it is {HIDDEN}",
        "data": ONE,
    }


def test_what_code_of_a_model_printed_is_told_without_them():
    remember(ONE)
    answer = f"```python\nprint('it is', '{ONE[:5]}' + '{ONE[5:]}')\n```"

    events = Talk(guide(answer, "done", code_executor=UnsafeLocalCodeExecutor())).say()

    results = [part.code_execution_result for event in events for part in event.parts if part.code_execution_result]
    assert [one.output for one in results] == [f"Code execution result:\nit is {HIDDEN}\n\n"]


def test_a_formatter_that_reads_the_arguments_of_a_record_gets_them_without_secrets():
    remember(ONE)
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(AccessFormatter('%(client_addr)s "%(request_line)s" %(status_code)s', use_colors=False))
    logger = logging.getLogger("uvicorn.access.of.a.test")
    logger.propagate = False
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    request = ("127.0.0.1:1", "GET", f"/a%20b?token={ONE}", "1.1", 200)
    logger.info('%s - "%s %s HTTP/%s" %d', *request)
    logger.removeHandler(handler)
    assert written.getvalue().startswith('127.0.0.1:1 "GET /a%20b?token=[')
    assert written.getvalue().endswith('HTTP/1.1" 200 OK\n') and ONE not in written.getvalue()
