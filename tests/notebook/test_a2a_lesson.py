"""An agent of this notebook, served, and another that calls it: the lesson of courses about A2A, in one kernel."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from adk_nb.a2a import RemoteA2aAgent, to_a2a
from adk_nb.models import ScriptedLlm, call
from tests.a2a.loopback import served
from tests.notebook.conftest import Shell

CATALOG = '''%%tool
def get_product_info(product_name: str) -> str:
    """Look a product up in the catalog."""
    return f"{product_name}: 999 euros, low stock"
'''


@pytest.fixture
def serve(shell: Shell) -> Iterator[Any]:
    """Serves an agent of the notebook; returns its address."""
    with ExitStack() as stack:
        yield lambda name: stack.enter_context(served(lambda port: to_a2a(shell.names[name], port=port))).url


def define(shell: Shell, cell: str, *answers: Any) -> None:
    shell.names["script"] = ScriptedLlm(*answers)
    shell.cell(cell)


def test_a_support_agent_asks_the_catalog_of_another_server(shell: Shell, serve: Any):
    shell.cell(CATALOG)
    define(
        shell,
        "%%agent catalog -m script -t get_product_info --description 'Knows products.'\nLook products up.",
        call("get_product_info", product_name="MacBook"),
        "The MacBook costs 999 euros; few are left.",
    )
    shell.names["vendor"] = RemoteA2aAgent(serve("catalog"))
    shell.cell("vendor.name")
    define(
        shell,
        "%%agent support -m script --sub vendor\nHelp customers; the catalog knows products.",
        call("transfer_to_agent", agent_name="catalog"),
    )

    shell.cell("%chat support What does the MacBook cost?")

    reply = shell.names["_run"]
    assert reply.text == "The MacBook costs 999 euros; few are left."
    assert [event.author for event in reply.events][-1] == "catalog"


def test_an_approval_of_the_other_agent_is_confirmed_here(shell: Shell, serve: Any):
    shell.cell(
        '%%tool --confirm\ndef pay(amount: float) -> str:\n    """Pay."""\n    paid.append(amount)\n    return "paid"'
    )
    shell.names["paid"] = []
    define(shell, "%%agent clerk -m script -t pay\nPay.", call("pay", amount=250), "It is paid.")
    shell.names["remote"] = RemoteA2aAgent(serve("clerk"))

    shell.cell("%chat remote Pay 250")
    first, before = shell.names["_run"], list(shell.names["paid"])
    shell.cell("%confirm yes")
    second = shell.names["_run"]

    assert (first.status, before) == ("pending", [])
    assert "pay" in str(first) and "250" in str(first)
    assert (second.text, shell.names["paid"]) == ("It is paid.", [250.0])


def test_a_question_of_the_other_agent_is_answered_by_the_next_line(shell: Shell, serve: Any):
    shell.cell("from adk_nb.tools import request_input")
    question = call("adk_request_input", message="Which city?")
    define(shell, "%%agent guide -m script -t request_input\nAsk.", question, "Rome it is.")
    shell.names["remote"] = RemoteA2aAgent(serve("guide"))

    shell.cell("%chat remote Plan a trip")
    asked = str(shell.names["_run"])
    shell.cell("%chat remote Rome")

    assert "Which city?" in asked
    assert shell.names["_run"].text == "Rome it is."


def test_an_address_where_nobody_is_fails_its_cell_with_one_line(shell: Shell):
    shell.names["remote"] = RemoteA2aAgent(name="remote", agent_card="http://127.0.0.1:9")

    reply = shell.broke_off("%chat remote Hello")

    assert reply.status == "error"
    assert "'http://127.0.0.1:9/.well-known/agent-card.json' was not reached" in str(reply.error)


def test_the_address_alone_where_nobody_is_is_one_line(shell: Shell):
    shell.cell("from adk_nb.a2a import RemoteA2aAgent")

    line = shell.fails("RemoteA2aAgent('http://127.0.0.1:9')")

    assert line.count("\n") == 0 and "was not reached" in line


def test_an_agent_redefined_in_its_cell_is_what_is_served_next(shell: Shell):
    define(shell, "%%agent clerk -m script\nAnswer.", "One.")
    with served(lambda port: to_a2a(shell.names["clerk"], port=port)) as server:
        shell.names["remote"] = RemoteA2aAgent(server.url)
        shell.cell("%chat remote Hello")

    assert shell.names["_run"].text == "One."
