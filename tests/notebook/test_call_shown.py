"""What an approver sees of a call: all of it, nothing invisible, and only known secrets hidden."""

import html
import json
from typing import Any

from adk_nb import tool
from adk_nb.agents import Agent
from adk_nb.models import ScriptedLlm, call
from adk_nb.notebook.chat.chat import Chat
from adk_nb.notebook.chat.reply import view_of_reply
from adk_nb.redaction import HIDDEN, remember
from adk_nb.workflow import START, Workflow, node
from tests.notebook.conftest import Shell
from tests.support.each import each

SECRET = "q7Zx-5bR1-mm2"
LOOKS_LIKE_A_KEY = "AIza" + "y" * 35


@tool(confirm=True)
def pay(to: str, amount: str, note: str = "", login: dict[str, Any] | None = None) -> str:
    """Pays."""
    return f"paid {amount} to {to}"


def asked(**args: Any) -> dict[str, str]:
    """The card of a call of `pay` as a saved notebook keeps it, in each form, without markup."""
    reply = Chat(Agent(name="payer", model=ScriptedLlm(call("pay", **args), "done"), tools=[pay])).ask("go")
    forms = view_of_reply(reply).saved_forms()
    above = {"text/plain": forms["text/plain"], "text/markdown": forms["text/markdown"].partition("2 events")[0]}
    above["text/html"] = forms["text/html"].partition("<details>")[0]
    return {form: html.unescape(text.replace("<span>", "").replace("</span>", "")) for form, text in above.items()}


@each("unseen", ["\u202e", "\u200b", "\u200d", "\u00ad", "\u2060", "\u3164", "\u00a0", "\U000e0041"])
def test_a_character_that_cannot_be_seen_is_an_escape_in_values_and_names(unseen: str):
    forms = asked(to="me", amount=f"1{unseen}00", **{f"am{unseen}ount": "2", "login": {f"na{unseen}me": "x"}})

    for form, text in forms.items():
        assert unseen not in text, form
        assert text.count(json.dumps(unseen)[1:-1]) >= 3, form


def test_letters_of_all_scripts_and_emoji_are_shown_as_they_are():
    name = "Zoë Łukasz Ωmega Жук 東京 👩\u200d💻 ❤\ufe0f"

    assert all(f'to="{name}"' in text for text in asked(to=name, amount="1").values())


def test_each_argument_has_its_place_however_long_the_others_are():
    for text in asked(note="x" * 50_000, to="me", amount="9000", login={"z" * 50_000: 1}).values():
        assert 'to="me"' in text and 'amount="9000"' in text
        assert "note=" in text and "login=" in text
        assert len(text) < 12_000


def test_a_call_of_very_many_arguments_shows_those_that_the_tool_has_and_counts_the_rest():
    extra = {f"junk{number}": "x" * 100 for number in range(5_000)}

    for text in asked(**extra, to="me", amount="9000").values():
        assert 'to="me"' in text and 'amount="9000"' in text
        assert "4,902 more arguments" in text
        assert len(text) < 30_000


def test_an_argument_that_the_tool_does_not_have_is_marked_and_its_letters_are_told():
    for text in asked(to="me", amount="9000", аmount="1.00").values():  # a Cyrillic a
        assert 'amount="9000"' in text
        assert r'\u0430mount="1.00" (unknown)' in text
        assert r"\u0430mount" in text


def test_a_key_within_an_argument_that_mixes_scripts_has_escapes():
    login = {"\u0430mount": "Жук", "amount": "2", "größe": "ü", "имя": 1}

    for text in asked(to="me", amount="1", login=login).values():
        assert r'{"\u0430mount": "Жук", "amount": "2", "größe": "ü", "имя": 1}' in text


def test_a_name_that_reads_as_other_arguments_stands_in_quotes():
    for text in asked(to="me", amount="9000", **{'amount="1", note': "x"}).values():
        assert r'"amount=\"1\", note"="x" (unknown)' in text


def test_only_known_secrets_are_hidden_and_that_is_said():
    remember(SECRET)

    for text in asked(to=LOOKS_LIKE_A_KEY, amount=f"{SECRET} 1", login={"password": "hunter"}).values():
        assert LOOKS_LIKE_A_KEY in text
        assert '{"password": "hunter"}' in text
        assert SECRET not in text
        assert f'amount="{HIDDEN} 1"' in text
        assert f"{HIDDEN} stands for" in text


def test_a_tool_in_a_node_of_a_graph_is_asked_about_with_the_whole_call():
    remember(SECRET)
    args = {"note": "x" * 50_000, "to": f"{LOOKS_LIKE_A_KEY} {SECRET}", "amount": "\u202e9000"}
    graph = Workflow(name="desk", edges=[(START, node(lambda: args, name="first"), pay)])
    forms = view_of_reply(Chat(graph).ask("go")).saved_forms()

    for text in (forms["text/plain"], forms["text/html"].partition("<details>")[0]):
        text = html.unescape(text).replace("<span>", "").replace("</span>", "")
        assert r'amount="\u202e9000"' in text and f'to="{LOOKS_LIKE_A_KEY} {HIDDEN}"' in text
        assert "\u202e" not in text and SECRET not in text


def test_confirm_lists_the_whole_call(shell: Shell):
    long = call("pay", note="x" * 5_000, to="me", amount="\u202e9000", аmount="1")  # a Cyrillic a
    shell.ip.user_ns.update(payer=Agent(name="payer", model=ScriptedLlm(long, "done"), tools=[pay]))
    shell.cell("%chat payer go")

    shell.cell("%confirm")

    assert 'to="me"' in shell.printed and r'amount="\u202e9000"' in shell.printed
    assert r'\u0430mount="1" (unknown)' in shell.printed and "\u202e" not in shell.printed
