"""Cells that are run again while something waits, and what earlier turns make of it."""

import sys
from pathlib import Path
from typing import Any

import pytest
from support.messages import mentions

from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.errors import InputError
from adk_nb.models.scripted_llm import ScriptedLlm, call
from adk_nb.notebook.chat.chat import Chat, turn_runner
from adk_nb.notebook.view.cards import answer_of
from adk_nb.notebook.view.view_state import ViewState
from adk_nb.tools.tool_decorator import tool
from tests.notebook.conftest import Shell

PAY = '%%tool --confirm\ndef pay(amount: int) -> str:\n    "Pay."\n    paid.append(amount{})\n    return "paid"'


def paying(shell: Shell, *said: Any) -> ScriptedLlm:
    """An agent that asks to pay 5, and waits."""
    shell.names["paid"] = []
    shell.cell(PAY.format(""))
    model = shell.names["model"] = ScriptedLlm(call("pay", amount=5), *said)
    shell.cell("%%agent clerk -m model -t pay\nPay.")
    shell.cell("%chat clerk Pay 5")
    return model


def versions(events: Any) -> list[Any]:
    return [(one.custom_metadata or {}).get("agent_version") for one in events]


def test_what_waits_goes_on_in_the_agent_that_asked_and_the_next_turn_in_the_new_one(shell: Shell) -> None:
    old = paying(shell, "Paid, says the old one.")
    shell.names["model2"] = ScriptedLlm("Hello, says the new one.")
    told = shell.cell("%%agent clerk -m model2 -t pay\nPay at once.")

    reply = shell.cell("%confirm --yes")
    after = shell.cell("%chat clerk Hello")

    assert str(told).startswith("clerk v1 → v2 (instruction +1 -1 lines, model model → model2); session kept, 4 ev")
    assert reply.text == "Paid, says the old one."
    assert "Pay at once" not in str(old.requests[-1].config.system_instruction)
    assert after.text == "Hello, says the new one."
    assert (set(versions(reply.events)), set(versions(after.events))) == ({1}, {2})


def test_events_of_a_team_carry_the_version_of_each_agent_in_it(shell: Shell) -> None:
    shell.names["model"] = ScriptedLlm("One.", "Two.")
    shell.cell("%%agent one -m model\nOne.")
    shell.cell("%%agent one -m model\nOne, and only one.")
    shell.cell("%%agent team --kind sequential\none")
    reply = shell.cell("%chat team Go")

    assert [one.custom_metadata["agent_versions"] for one in reply.events] == [{"team": 1, "one": 2}] * 2


def test_a_reply_that_is_shown_again_says_what_is_to_be_typed_now(shell: Shell) -> None:
    paying(shell)
    assert "Answer with %confirm --yes or %confirm --no" in str(shell.names["_run"])
    shell.cell(PAY.format(" * 2"))
    assert "Answer with %confirm --reask or %confirm --no" in str(shell.names["_run"])
    assert "<code>%confirm --reask</code>" in shell.cell("%confirm")._repr_mimebundle_()["text/html"]
    shell.cell(PAY.format(""))
    assert "Answer with %confirm --yes or %confirm --no" in str(shell.names["_run"])


def test_a_call_whose_tool_was_redefined_can_run_as_it_was_asked(shell: Shell) -> None:
    paying(shell, "Done.")
    shell.cell(PAY.format(" * 100"))

    assert "%confirm --reask, or run" in shell.fails("%confirm --yes")
    assert shell.cell("%confirm --old").text == "Done."
    assert shell.names["paid"] == [5]
    assert shell.names["clerk"].tools_now()[0] is shell.ip.adk_nb.tool("pay")


def test_only_the_call_that_a_person_was_asked_of_runs_as_it_was(shell: Shell) -> None:
    paying(shell)
    shell.names["model"] = ScriptedLlm(call("pay", amount=5), call("pay", amount=2), call("pay", amount=7), "Done.")
    shell.cell(PAY.replace("--confirm", '--confirm "amount > 3"').format(""))
    shell.cell("%%agent clerk -m model -t pay\nPay.\n")
    shell.cell("%chat --new clerk Pay 5")
    shell.cell(PAY.replace("--confirm", '--confirm "amount > 3"').format(" * 100"))

    again = shell.cell("%confirm --old")

    assert shell.names["paid"] == [5, 200]
    assert [one.call.args for one in again.interrupts] == [{"amount": 7}]
    assert shell.cell("%confirm --yes").text == "Done."
    assert shell.names["paid"] == [5, 200, 700]


def test_a_call_whose_tool_was_redefined_can_be_asked_anew(shell: Shell) -> None:
    model = paying(shell, call("pay", amount=6), "Done.")
    shell.cell(PAY.format(" * 100"))
    again = shell.cell("%confirm --reask")

    assert [one.call.args for one in again.interrupts] == [{"amount": 6}]
    assert "was redefined since" in str(model.requests[1].contents[-1])
    assert shell.cell("%confirm --yes").text == "Done."
    assert shell.names["paid"] == [600]


def test_a_tool_under_a_team_runs_as_it_was_asked_too(shell: Shell) -> None:
    paying(shell)
    shell.names["model"] = ScriptedLlm(call("pay", amount=7), "Done.")
    shell.cell("%%agent clerk -m model -t pay\nPay.\n")
    shell.cell("%%agent team --kind sequential\nclerk")
    shell.cell("%chat --new team Pay 7")
    shell.cell(PAY.format(" * 100"))

    assert shell.cell("%confirm --old").text == "Done."
    assert shell.names["paid"] == [7]


def test_a_cell_that_is_changed_back_can_be_approved_again(shell: Shell) -> None:
    paying(shell, "Done.")
    shell.cell(PAY.format(" * 100"))
    shell.cell(PAY.format(""))

    assert shell.cell("%confirm --yes").text == "Done."
    assert shell.names["paid"] == [5]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("%confirm --yes --old", "--yes and --old exclude each other"),
        ("%confirm --reask --reason no", "--reason … --reask"),
        ("%confirm --reask --edit amount=3", "--edit … --reask"),
        ("%confirm --old", "pay is the same …  %confirm --yes"),
    ],
)
def test_what_cannot_be_is_refused_and_the_call_waits_on(shell: Shell, line: str, said: str) -> None:
    paying(shell, "Done.")

    assert mentions(shell.fails(line), said)
    assert shell.cell("%confirm --yes").text == "Done."


def test_a_chat_of_pythons_keeps_no_earlier_tools() -> None:
    def pay(amount: int) -> str:
        """Pay."""
        return "paid"

    chat = Chat(LlmAgent(name="clerk", model=ScriptedLlm(call("pay", amount=5)), tools=[tool(confirm=True)(pay)]))
    [one] = chat.ask("Pay 5").interrupts

    with pytest.raises(InputError, match=r"chat.reject\(\)"):
        turn_runner(chat).answer_now({one.id: True}, as_asked=True)


def test_in_a_kernel_without_the_old_tool_only_what_works_is_offered(shell: Shell, tmp_path: Path) -> None:
    kept = f'%config AdkNb.sessions = "sqlite:///{tmp_path / "nb.db"}"'
    shell.cell(kept)
    paying(shell, "Done.")
    asked_anew = "ask again with %confirm --reask, or refuse it with %confirm --no"
    del shell.ip.adk_nb  # as a new kernel
    shell.ip.reset()
    shell.cell("%reload_ext adk_nb")
    shell.cell(kept)
    shell.names["model"] = ScriptedLlm("Done.")
    shell.cell(PAY.format(" * 100"))
    shell.cell("%%agent clerk -m model -t pay\nPay.")

    assert str(shell.cell("%confirm")).endswith(f"pay was redefined since this was requested; {asked_anew}")
    assert shell.fails("%confirm --yes").endswith(f"pay was redefined since this was requested; {asked_anew}")
    assert shell.fails("%confirm --old").endswith(f"the earlier pay is no longer in this kernel; {asked_anew}")
    assert shell.cell("%confirm --reask").text == "Done."


def test_of_several_calls_each_is_offered_what_its_own_tool_takes(shell: Shell) -> None:
    shell.cell(PAY.format(""))
    shell.cell(PAY.replace("pay", "lend").format(""))
    shell.names["model"] = ScriptedLlm([call("pay", amount=1), call("lend", amount=2), call("lend", amount=3)])
    shell.cell("%%agent clerk -m model -t pay,lend\nPay.")
    shell.cell("%chat clerk Pay and lend")
    shell.cell(PAY.replace("pay", "lend").format(" * 2"))

    ways = "as %confirm 1 --yes, %confirm 2 --reask, %confirm 3 --reask or %confirm 1 --no"
    assert ways in str(shell.names["_run"])


def test_a_card_whose_tool_changed_takes_two_answers_more(shell: Shell) -> None:
    view = ViewState()
    view.apply({"op": "card", "card": {"id": "1", "agent": "clerk", "tool": "pay", "args": {"amount": 5}}})
    card = view.cards["1"]
    before = answer_of(card, {"decision": "old"})
    view.apply({"op": "card", "card": {"id": "1", "changed": "it changed", "version": "v2"}})
    card = view.cards["1"]

    assert before is None and card["state"] == "asked"
    assert answer_of(card, {"decision": "old"}) == (
        {"kind": "answer", "id": "1", "value": {"confirmed": True}, "as_asked": True},
        {"state": "approved", "note": "as the tool was, v2"},
    )
    assert answer_of(card, {"decision": "reask"}) == (
        {
            "kind": "answer",
            "id": "1",
            "value": {
                "confirmed": False,
                "reason": "its tool was redefined since; call it again if it is still needed",
            },
        },
        {"state": "reasked", "note": ""},
    )


# ---- the tool is gone


LOOK = '%%tool\ndef look_up(name: str) -> str:\n    "Look up."\n    return name'


@pytest.mark.parametrize("without", ["%%agent clerk -m model -t look_up\nPay.", "%%agent clerk -m model\nPay."])
def test_a_call_whose_tool_the_agent_has_no_more_runs_only_if_that_is_said(shell: Shell, without: str) -> None:
    paying(shell, "Done.")
    shell.cell(LOOK)
    shell.cell(without)

    for line in ("%confirm --yes", "%confirm yes"):
        assert "clerk has no tool pay any more" in shell.fails(line)
    assert "%confirm --old" in shell.fails("%confirm --yes") and "%confirm --no" in shell.printed
    assert shell.names["paid"] == []
    listed = str(shell.cell("%confirm"))
    assert "clerk has no tool pay any more" in listed and "%confirm --old" in listed
    assert shell.cell("%confirm --old").text == "Done."
    assert shell.names["paid"] == [5]


def test_a_call_whose_tool_is_gone_can_be_rejected(shell: Shell) -> None:
    paying(shell, "Not paid.")
    shell.cell("%%agent clerk -m model\nPay.")
    assert shell.cell("%confirm --no").text == "Not paid."
    assert shell.names["paid"] == []


def test_a_call_whose_tool_was_taken_out_of_a_list_is_not_made(shell: Shell) -> None:
    paying(shell, "Done.")
    shell.cell("clerk.tools = []")
    assert "clerk has no tool pay any more" in shell.fails("%confirm --yes")
    assert "--old" not in shell.printed  # nothing has it any more
    assert "clerk has no tool pay any more" in shell.fails("%confirm --old")
    assert shell.names["paid"] == []


def test_a_tool_that_is_taken_back_can_be_approved_again(shell: Shell) -> None:
    paying(shell, "Done.")
    shell.cell("%%agent clerk -m model\nPay.")
    shell.cell("%%agent clerk -m model -t pay\nPay.")
    assert shell.cell("%confirm --yes").text == "Done."


def test_a_card_whose_tool_is_gone_is_rejected_or_runs_as_it_was_asked(shell: Shell) -> None:
    view = ViewState()
    view.apply({"op": "card", "card": {"id": "1", "agent": "clerk", "tool": "pay", "args": {"amount": 5}}})
    changed = "clerk has no tool pay any more; give it back, or reject the call"
    gone = {"id": "1", "changed": changed, "gone": True, "version": "as it was asked"}
    view.apply({"op": "card", "card": gone})
    card = view.cards["1"]
    assert answer_of(card, {"decision": "reask"}) is None
    assert answer_of(card, {"decision": "old"}) == (
        {"kind": "answer", "id": "1", "value": {"confirmed": True}, "as_asked": True},
        {"state": "approved", "note": "as it was asked"},
    )


# ---- what earlier turns make of it


def test_a_parameter_that_earlier_calls_name_and_that_is_gone_is_noted(shell: Shell) -> None:
    paying(shell, "Done.")
    shell.cell("%confirm --no")
    told = str(shell.cell('%%tool\ndef pay(euros: int) -> str:\n    "Pay."\n    return "paid"')).splitlines()

    assert told == [
        "pay v1 → v2; used by clerk",
        "earlier calls in this session use amount, which pay does not take any more",
    ]


def test_a_kind_that_makes_the_session_odd_is_noted(shell: Shell) -> None:
    shell.names["model"] = ScriptedLlm("One.")
    shell.cell("%%agent one -m model\nOne.")
    shell.cell("%%agent both -m model\nBoth.")
    shell.cell("%chat both Go")
    told = str(shell.cell("%%agent both --kind sequential\none"))

    assert "%chat --new" in told and "%rewind" in told


def test_a_module_that_autoreload_has_loaded_again_is_told_to_the_model_as_it_is(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    module = tmp_path / "shop_of_a_test.py"
    module.write_text('def price(of: str) -> int:\n    "What it costs."\n    return 1\n')
    model = shell.names["model"] = ScriptedLlm("One.", call("price", of="tea", country="NO"), "Two.")
    shell.cell("%load_ext autoreload\n%autoreload 2\nfrom shop_of_a_test import price")
    shell.cell("%tool price")
    shell.cell("%%agent clerk -m model -t price\nSell.")
    shell.cell("%chat clerk Hello")
    module.write_text('def price(of: str, country: str) -> int:\n    "Its price there."\n    return 22\n')
    shell.cell("%chat clerk And in Norway?")
    sys.modules.pop("shop_of_a_test")

    declared = model.requests[1].config.tools[0].function_declarations[0]
    assert declared.description == "Its price there."
    assert list(declared.parameters_json_schema["properties"]) == ["of", "country"]
    assert "22" in str(model.requests[2].contents[-1])
