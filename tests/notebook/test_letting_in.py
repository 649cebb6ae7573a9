"""A tool that waits to be let in, as a person in a notebook meets it: a link, a field, and what to type."""

import getpass
from collections.abc import Iterator
from typing import Any

import pytest

from adk_nb import types
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.auth import APIKey, APIKeyIn, AuthConfig, AuthCredential, AuthCredentialTypes, HTTPBase, OAuth2Auth
from adk_nb.errors import InputError, PendingError
from adk_nb.models.scripted_llm import ScriptedLlm, call
from adk_nb.notebook.chat.chat import Chat
from adk_nb.notebook.chat.reply import view_of_reply
from adk_nb.notebook.view import interrupt_text
from adk_nb.notebook.view.event_text import WAITS
from adk_nb.notebook.view.rows import rows_of
from adk_nb.runtime.interrupts import Interrupt
from adk_nb.tools.function_tool import FunctionTool
from tests.auth.auth_server import AuthServer, auth_server
from tests.auth.test_credentials import Mail, by_code
from tests.notebook.conftest import Shell


@pytest.fixture
def server() -> Iterator[AuthServer]:
    with auth_server() as running:
        yield running


def chat_with(config: AuthConfig, *answers: Any) -> tuple[Chat, Mail]:
    box = Mail()
    tools = [FunctionTool(box.mail, auth_config=config)]
    return Chat(LlmAgent(name="clerk", model=ScriptedLlm(*answers), tools=tools), show="off"), box


KEY = AuthConfig(auth_scheme=APIKey(in_=APIKeyIn.header, name="X-Key"))


def test_a_link_is_shown_and_the_address_it_leads_to_lets_the_tool_in(server: AuthServer):
    chat, box = chat_with(by_code(server), call("mail"), "one mail")

    reply = chat.ask("mail?")

    [interrupt] = reply.interrupts
    bundle = reply._repr_mimebundle_()
    assert reply.status == "pending" and view_of_reply(reply).pending == []
    assert (
        f'<a href="{(interrupt.auth_uri or "").replace("&", "&amp;")}" rel="noopener noreferrer">this page</a>'
        in (bundle["text/html"])
    )
    assert f"[this page](<{interrupt.auth_uri}>)" in bundle["text/markdown"]
    assert f"    Open this page {interrupt.auth_uri}\n    Then paste the address it leads to into chat.answer()" in str(
        reply
    )

    events = chat.answer(server.let_in(interrupt.auth_uri or ""))

    assert (events.status, events.text, events.interrupts) == ("done", "one mail", [])
    assert box.tokens == list(server.access_tokens)
    assert box.tokens[0] not in str(events._repr_mimebundle_())


def test_without_an_answer_a_field_asks_for_it_and_does_not_show_it(monkeypatch: pytest.MonkeyPatch):
    chat, box = chat_with(KEY, call("mail"), "one mail")
    prompts: list[str] = []

    def field(prompt: str) -> str:
        prompts.append(prompt)
        return " a-persons-key "

    monkeypatch.setattr(getpass, "getpass", field)
    reply = chat.ask("mail?")

    events = reply.answer()

    assert prompts == ["mail needs a key (header X-Key): "] and events.text == "one mail"
    assert [item and item.api_key for item in box.seen] == ["a-persons-key"]
    assert "a-persons-key" not in "".join(event.model_dump_json() for event in chat.events)


def test_where_nobody_can_type_it_says_what_to_write(monkeypatch: pytest.MonkeyPatch):
    def no_field(prompt: str) -> str:
        raise EOFError

    monkeypatch.setattr(getpass, "getpass", no_field)
    chat, _ = chat_with(KEY, call("mail"), "one mail")
    chat.ask("mail?")

    with pytest.raises(InputError, match=r"chat\.answer\('\.\.\.'\)"):
        chat.answer()


def test_nothing_else_can_be_asked_meanwhile_and_a_refusal_is_told_to_the_model():
    chat, box = chat_with(KEY, call("mail"), "as you wish", "hello")
    chat.ask("mail?")

    with pytest.raises(PendingError, match=r"mail needs a key .* chat\.answer\(None\)"):
        chat.ask("hello?")
    events = chat.answer(None)

    assert events.text == "as you wish" and box.seen == []
    assert chat.ask("hello?").text == "hello"
    with pytest.raises(InputError, match="no interrupt"):
        chat.answer("late")


@pytest.mark.parametrize(
    ("scheme", "value", "log"),
    [
        ("basic", "ada:love:lace", ("basic", "ada", "love:lace", None)),
        ("bearer", "a-token", ("bearer", None, None, "a-token")),
        ("bearer", {"token": "a-token"}, ("bearer", None, None, "a-token")),
    ],
)
def test_text_is_read_as_what_was_asked_for(scheme: str, value: Any, log: Any):
    chat, box = chat_with(AuthConfig(auth_scheme=HTTPBase(scheme=scheme)), call("mail"), "one mail")
    chat.ask("mail?")

    chat.answer(value)

    [http] = [item.http for item in box.seen if item and item.http]
    credentials = http.credentials
    assert (http.scheme, credentials.username, credentials.password, credentials.token) == log


def test_a_password_without_its_name_is_not_taken_for_a_token():
    chat, box = chat_with(AuthConfig(auth_scheme=HTTPBase(scheme="basic")), call("mail"), "one mail")
    chat.ask("mail?")

    with pytest.raises(InputError, match="mail needs name:password") as error:
        chat.answer("lovelace")
    assert "lovelace" not in str(error.value)
    assert chat.answer("ada:lovelace").text == "one mail" and len(box.seen) == 1


def test_a_credential_may_be_given_whole():
    chat, box = chat_with(KEY, call("mail"), "one mail")
    chat.ask("mail?")
    credential = AuthCredential(auth_type=AuthCredentialTypes.API_KEY, api_key="a-persons-key")

    chat.answer(credential)

    assert box.seen == [credential]


def test_the_rows_of_a_turn_tell_it_without_the_names_of_the_runtime(server: AuthServer):
    chat, _ = chat_with(by_code(server), call("mail"), "one mail")
    reply = chat.ask("mail?")
    events = chat.answer(server.let_in(reply.interrupts[0].auth_uri or ""))

    first, second = rows_of(reply.events), rows_of(events.events, history=reply.events)

    assert [(row["kind"], row["text"]) for row in first[1:]] == [
        ("call", "needs sign-in"),
        ("text", "mail needs sign-in"),
    ]
    assert second[0]["kind"] == "user" and second[0]["text"] == "answers the request"
    assert "adk_request_credential" not in str(first + second) and WAITS not in str(first)


@pytest.mark.parametrize("uri", ["javascript:alert(1)", "data:text/html,x", 'https://a"onclick="x', "https://a/)[b](x"])
def test_an_address_that_is_no_link_is_none(uri: str):
    credential = AuthCredential(auth_type=AuthCredentialTypes.OAUTH2, oauth2=OAuth2Auth(auth_uri=uri))
    config = KEY.model_copy(update={"exchanged_auth_credential": credential})
    interrupt = Interrupt(id="r", kind="credential", call=types.FunctionCall(), auth_config=config, agent="a")

    link = interrupt_text.link(interrupt) or ""

    assert not set(link) & set("\"'()<> `") and (link == "" or link.startswith("https://a"))


def test_in_a_notebook_of_magics_the_last_reply_lets_it_in(shell: Shell):
    box = Mail()
    shell.names["mail"] = FunctionTool(box.mail, auth_config=KEY)
    shell.names["script"] = ScriptedLlm(call("mail"), "one mail", call("mail"), "two mails")
    shell.cell("%%agent clerk -m script -t mail\nRead mail.")
    shell.cell("%%agent other -m script -t mail\nRead mail.")

    reply = shell.cell("%chat clerk mail?")

    assert "%confirm 1" in str(reply)
    assert shell.cell("_run.answer('a-persons-key')").text == "one mail"
    assert shell.cell("%chat other mail?").text == "two mails"  # what a user has let in, every agent's tools use


def test_confirm_tells_what_waits_to_be_let_in_and_what_to_type(shell: Shell, server: AuthServer):
    shell.names["mail"] = FunctionTool(Mail().mail, auth_config=by_code(server))
    shell.names["pay"] = FunctionTool(Mail().mail, require_confirmation=True, name="pay", description="Pays.")
    shell.names["script"] = ScriptedLlm([call("mail"), call("pay")])
    shell.cell("%%agent clerk -m script -t mail,pay\nRead mail.")
    [interrupt] = [
        interrupt for interrupt in shell.cell("%chat clerk mail?").interrupts if interrupt.kind == "credential"
    ]

    bundle = shell.cell("%confirm")._repr_mimebundle_()
    shell.broke_off("%confirm --no --all")
    alone = str(shell.cell("%confirm"))
    no_approval = shell.fails("%confirm --yes")

    text = f"""mail needs sign-in
    Open this page {interrupt.auth_uri}
    Then paste the address it leads to into %confirm {interrupt.number}"""
    assert alone == text and bundle["text/plain"].endswith(f"\n\n{text}")
    assert "pay" in bundle["text/plain"].splitlines()[0] and "pay" in bundle["text/html"]
    assert [form.count(f"%confirm {interrupt.number}") for form in bundle.values()] == [1, 1, 1]
    assert "'main'" in no_approval and "; type %confirm" in no_approval
