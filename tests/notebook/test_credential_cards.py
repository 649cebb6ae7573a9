"""A request for a credential as the cards of a live view: asked, answered here or elsewhere, refused."""

import pytest
from turns import Talk

from adk_nb import types
from adk_nb.auth import APIKey, APIKeyIn, AuthConfig, HTTPBase
from adk_nb.events.event import Event
from adk_nb.models.scripted_llm import Answer, call
from adk_nb.notebook.view.document import document
from adk_nb.notebook.view.rows import RunRows
from adk_nb.notebook.view.writers import as_text
from adk_nb.runtime import interrupts
from adk_nb.runtime.history import open_interrupts
from adk_nb.runtime.interrupts import CREDENTIALS
from adk_nb.tools.function_tool import FunctionTool

KEY = AuthConfig(auth_scheme=APIKey(in_=APIKeyIn.header, name="X-Key"))


def asked_for_a_key(config: AuthConfig = KEY, *answers: Answer) -> Talk:
    def mail(folder: str) -> str:
        return folder

    return Talk(
        [call("mail", folder="in"), call("mail", folder="out")],
        *answers,
        tools=[FunctionTool(mail, auth_config=config)],
    )


def answers(talk: Talk, said: dict) -> list[Event]:
    [one] = open_interrupts(talk.events, CREDENTIALS)
    return talk.say(types.Content(role="user", parts=[interrupts.answer(one, said)]))


def cards_of(ops: list[dict]) -> list[dict]:
    return [op["card"] for op in ops if op["op"] == "card"]


@pytest.mark.parametrize(
    ("scheme", "needs", "fields"),
    [
        (KEY.auth_scheme, "a key (header X-Key)", [("key", True)]),
        (HTTPBase(scheme="Bearer"), "a Bearer token", [("token", True)]),
        (HTTPBase(scheme="Basic"), "a name and a password", [("name", False), ("password", True)]),
    ],
)
def test_one_card_asks_for_the_key_of_all_calls_that_need_it(scheme, needs, fields):
    talk, rows = asked_for_a_key(AuthConfig(auth_scheme=scheme), "no"), RunRows(magic="%confirm")

    [card] = [card for event in talk.say("Mail?") for card in cards_of(rows.feed(event))]

    assert (card["kind"], card["state"], card["tool"], card["needs"]) == ("credential", "asked", "mail", needs)
    shown = card["answer_schema"]["properties"].values()
    assert [(one["title"], one.get("format") == "password") for one in shown] == fields
    assert (card["link"], card["how"], card["note"]) == ("", "%confirm 1", "")


@pytest.mark.parametrize(
    ("said", "state", "words", "decision"),
    [
        ({"apiKey": "a-persons-key"}, "given", "answers the request", "✓ You gave the credential for mail"),
        ({"error": "access_denied"}, "refused", "refuses the request", "✗ You refused the credential for mail"),
    ],
)
def test_the_answer_closes_the_card_in_every_view_without_what_it_was(said, state, words, decision):
    talk, here = asked_for_a_key(KEY, "done"), RunRows()
    before = talk.say("Mail?")
    for event in before:
        here.feed(event)
    elsewhere = RunRows(history=before)
    assert [card["state"] for card in cards_of(elsewhere.opening())] == ["asked"]

    after = answers(talk, said)

    for rows in (here, elsewhere):
        ops = [op for event in after for op in rows.feed(event)]
        assert [card["state"] for card in cards_of(ops)] == [state]
        assert ops[0]["row"]["text"] == words and "a-persons-key" not in str(ops)
        assert [as_text(document(*decided.blocks)) for decided in rows.decisions] == [decision]


def test_an_approval_beside_a_card_for_a_key_is_still_the_only_one():
    def pay() -> str:
        return "paid"

    tools = [FunctionTool(pay, auth_config=KEY, name="mail"), FunctionTool(pay, require_confirmation=True)]
    talk, rows = Talk([call("mail"), call("pay")], tools=tools), RunRows(magic="%confirm")

    cards = [card for event in talk.say("Both.") for card in cards_of(rows.feed(event))]

    assert [(card["kind"], card["how"]) for card in cards] == [
        ("credential", "%confirm 1"),
        ("approval", "%confirm --yes"),
    ]
