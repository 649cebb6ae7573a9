"""`%config AdkNb.otlp`: the runs of the notebook's cells are sent, as spans."""

import sys
from collections.abc import Iterator

import pytest

from adk_nb.models.scripted_llm import ScriptedLlm, call
from adk_nb.runtime import observer
from tests.notebook.conftest import Shell
from tests.telemetry.collector import Collector, collecting


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with collecting() as collector:
        yield collector


def planner(shell: Shell, *answers: object) -> None:
    shell.names["model"] = ScriptedLlm(*answers)
    shell.cell("%%tool\ndef add(a: int, b: int) -> int:\n    '''Add.'''\n    return a + b")
    shell.cell("%%agent planner -m model -t add\nBe brief.")


def test_the_runs_of_cells_are_sent_from_then_on_and_until_it_is_emptied(shell: Shell, collector: Collector) -> None:
    planner(shell, "one", call("add", a=1, b=2), "two", "three")
    shell.cell("%chat planner One")
    shell.cell(f"%config AdkNb.otlp = '{collector.url}'")
    shell.cell("%chat planner Two")
    shell.cell("%config AdkNb.otlp_content = True")
    shell.cell("%config AdkNb.otlp = ''")
    shell.cell("%chat planner Three")

    assert collector.names == ["chat scripted", "execute_tool add", "chat scripted", "invoke_agent planner"]


def test_another_endpoint_in_the_middle_of_a_session_gets_what_follows(shell: Shell, collector: Collector) -> None:
    planner(shell, "one", "two")
    with collecting() as second:
        shell.cell(f"%config AdkNb.otlp = '{collector.url}'")
        shell.cell("%chat planner One")
        shell.cell(f"%config AdkNb.otlp = '{second.url}'")
        shell.cell("%chat planner Two")
        shell.cell("%config AdkNb.otlp = ''")

        assert collector.names == second.names == ["chat scripted", "invoke_agent planner"]


def test_an_approval_in_a_later_cell_goes_on_in_a_span_that_links_to_the_first(
    shell: Shell, collector: Collector
) -> None:
    shell.names["model"] = ScriptedLlm(call("pay", amount=5), "paid")
    shell.cell("%%tool --confirm\ndef pay(amount: int) -> str:\n    '''Pay.'''\n    return 'paid'")
    shell.cell("%%agent clerk -m model -t pay\nPay.")
    shell.cell(f"%config AdkNb.otlp = '{collector.url}'")
    shell.cell("%chat clerk Pay 5")
    shell.cell("%confirm yes")
    shell.cell("%config AdkNb.otlp = ''")

    first, second = [span for span in collector.spans if span.name == "invoke_agent clerk"]
    assert [link.span_id for link in second.links] == [first.span_id]


def test_an_endpoint_with_a_password_is_listed_without_it(shell: Shell, collector: Collector) -> None:
    planner(shell, "one")
    shell.cell(f"%config AdkNb.otlp = '{collector.url.replace('://', '://ada:s3cret-of-ada@')}'")
    listed = shell.cell("%config AdkNb.otlp")
    shell.cell("%chat planner One")
    shell.cell(f"%config AdkNb.otlp = '{listed}'")  # as it was read
    shell.cell("%config AdkNb.otlp = ''")

    assert listed == collector.url.replace("://", "://***@")
    assert collector.logins == {"ada:s3cret-of-ada"}


@pytest.mark.parametrize("nothing", ["''", "None"])
def test_it_says_that_it_is_off(shell: Shell, collector: Collector, nothing: str) -> None:
    planner(shell, "one")
    shell.cell(f"%config AdkNb.otlp = '{collector.url}'")

    shell.cell(f"%config AdkNb.otlp = {nothing}")
    assert f"spans are no longer sent to {collector.url}" in shell.printed
    shell.cell("%chat planner One")

    assert shell.cell("%config AdkNb.otlp") == ""
    assert collector.names == []


@pytest.mark.parametrize(
    ("typed", "facts"),
    [
        ("otlp = 'localhost:4318'", ("'localhost:4318'", "'http://localhost:4318'")),
        ("otlp = 'grpc://host:4317'", ("'grpc://host:4317'", "'http://host:4318'")),
        ("otlp = 4318", ("'http://localhost:4318', or None", "4318")),
        ("otlp_conventions = '1.30'", ("['latest', '1.36']", "'1.30'")),
    ],
)
def test_what_it_cannot_be_is_refused_and_nothing_changes(
    shell: Shell, caplog: pytest.LogCaptureFixture, typed: str, facts: tuple[str, ...]
) -> None:
    name = typed.split()[0]
    before = shell.cell(f"%config AdkNb.{name}")

    shell.run(f"%config AdkNb.{typed}")

    told = shell.printed + caplog.text
    assert all(fact in told for fact in facts)
    assert shell.cell(f"%config AdkNb.{name}") == before


def test_without_the_extra_it_says_what_to_install(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)

    shell.run("%config AdkNb.otlp = 'http://localhost:4318'")

    assert 'type: %pip install "opentelemetry-exporter-otlp-proto-http>=' in shell.printed + caplog.text
    assert shell.cell("%config AdkNb.otlp") == ""


def test_nothing_is_observed_after_unloading(shell: Shell, collector: Collector) -> None:
    shell.cell(f"%config AdkNb.otlp = '{collector.url}'")
    assert observer.registered

    shell.cell("%unload_ext adk_nb")

    assert observer.registered is None
