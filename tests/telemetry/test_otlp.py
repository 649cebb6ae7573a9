"""Sending spans: they reach an endpoint, and an endpoint that takes none disturbs no run."""

import asyncio
import logging
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import NoOpTracerProvider, ProxyTracerProvider

from adk_nb import redaction, telemetry
from adk_nb.errors import ConfigurationError, MissingExtraError
from adk_nb.models.scripted_llm import call
from adk_nb.runtime import observer
from adk_nb.telemetry.instrumentation import traces_address, without_credentials
from tests.support.each import each
from tests.telemetry.collector import Collector, collecting
from tests.telemetry.conftest import Spans
from tests.telemetry.test_spans import agent, run


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as collector:
        yield collector
        telemetry.uninstrument()


def closed_port() -> str:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


def one_run() -> None:
    asyncio.run(run(agent("a", "hi")))


def test_spans_reach_the_endpoint_under_a_name(collector: Collector) -> None:
    telemetry.instrument(collector.url)

    one_run()
    telemetry.uninstrument()

    assert collector.names == ["chat scripted", "invoke_agent a"]
    assert (set(collector.paths), collector.services) == ({"/v1/traces"}, {"adk_nb"})


def test_the_environment_names_the_service(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "shop")
    telemetry.instrument(f"{collector.url}/v1/traces/")

    one_run()
    telemetry.uninstrument()

    assert (set(collector.paths), collector.services) == ({"/v1/traces"}, {"shop"})


def test_another_endpoint_gets_the_runs_from_then_on(collector: Collector) -> None:
    with collecting() as second:
        telemetry.instrument(collector.url)
        one_run()
        telemetry.instrument(f"{second.url}/prefix")
        one_run()
        telemetry.uninstrument()
        one_run()

        assert len(collector.names) == len(second.names) == 2
        assert set(second.paths) == {"/prefix/v1/traces"}


def test_credentials_are_sent_and_shown_nowhere(collector: Collector, caplog: pytest.LogCaptureFixture) -> None:
    collector.status = 401
    telemetry.instrument(collector.url.replace("://", "://ada:s3cret-of-ada@"))

    one_run()
    telemetry.uninstrument()

    assert collector.logins == {"ada:s3cret-of-ada"}
    [warning] = [record.getMessage() for record in caplog.records]
    assert "s3cret" not in warning and "***@127.0.0.1" in warning and "HTTP 401" in warning
    assert redaction.hidden("s3cret-of-ada") == "[secret]"


def test_an_endpoint_that_is_busy_is_named_with_its_reason(
    collector: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    collector.status = 503
    telemetry.instrument(collector.url)

    one_run()
    telemetry.uninstrument()

    [warning] = [record.getMessage() for record in caplog.records]
    assert collector.url in warning and "Service Unavailable" in warning


@pytest.mark.parametrize(
    ("address", "safe"),
    [
        ("http://localhost:4318", "http://localhost:4318"),
        ("token@host/otel", "***@host/otel"),
        ("https://token@host/otel", "https://***@host/otel"),
        ("https://host/otel?api_key=abc&team=x", "https://host/otel?api_key=***&team=***"),
    ],
)
def test_an_address_is_shown_without_its_secrets(address: str, safe: str) -> None:
    assert without_credentials(address) == safe


def test_an_endpoint_that_does_not_answer_is_named_once_and_fails_no_run(caplog: pytest.LogCaptureFixture) -> None:
    endpoint = closed_port()
    telemetry.instrument(endpoint)

    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            one_run()
        telemetry.uninstrument()

    [warning] = [record.getMessage() for record in caplog.records]
    assert endpoint in warning and "runs go on" in warning and "no connection" in warning


def test_the_port_of_the_other_protocol_is_pointed_out(caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as taken:
        try:
            taken.bind(("127.0.0.1", 4317))
        except OSError:
            pytest.skip("a collector of this machine has port 4317")
    telemetry.instrument("http://127.0.0.1:4317")

    one_run()
    telemetry.uninstrument()

    [warning] = [record.getMessage() for record in caplog.records]
    assert "4317 takes gRPC" in warning and "4318" in warning


@each(
    "typed, guess",
    [
        ("localhost:4318", "http://localhost:4318"),
        ("localhost", "http://localhost:4318"),
        ("grpc://localhost:4317", "http://localhost:4318"),
        ("ftp://user:pw@host", "http://***@host:4318"),
        ("user:pw@host:4318/otel", "http://***@host:4318/otel"),
        ("http://", "http://localhost:4318"),
        ("http//localhost:4318", "http://localhost:4318"),
        ("http:/localhost:4318", "http://localhost:4318"),
        ("http://host:port", "http://host:4318"),
        ("http://host:431800", "http://host:4318"),
        ("http://local host:4318", "http://local:4318"),
        ("4318", "http://localhost:4318"),
        (":4318", "http://localhost:4318"),
        ("[::1]:4318", "http://[::1]:4318"),
        ("api.example.com/otel", "https://api.example.com/otel"),
    ],
)
def test_an_invalid_address_is_refused_with_a_valid_one(typed: str, guess: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        telemetry.instrument(typed)

    assert f"write {guess!r}" in str(refused.value) and "pw" not in str(refused.value)


@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/", "/v1/traces", "/v1/traces/", "/v1/metrics"])
def test_an_endpoint_may_name_a_signal_or_not(ending: str) -> None:
    assert traces_address(f"http://host/otel{ending}") == "http://host/otel/v1/traces"


@pytest.mark.parametrize(
    ("provider", "facts"),
    [
        (ProxyTracerProvider(), ("ProxyTracerProvider", "leave out tracer_provider")),
        (NoOpTracerProvider(), ("NoOpTracerProvider", "opentelemetry.sdk.trace.TracerProvider()")),
        ("mine", ("'mine'", "opentelemetry.sdk.trace.TracerProvider()")),
        (TracerProvider, ("opentelemetry.sdk.trace.TracerProvider()",)),
    ],
)
def test_a_provider_that_cannot_send_to_the_endpoint_is_refused(provider: Any, facts: tuple[str, ...]) -> None:
    with pytest.raises(ConfigurationError) as refused:
        telemetry.instrument("http://localhost:4318", tracer_provider=provider)

    assert all(fact in str(refused.value) for fact in facts)
    assert observer.registered is None


def test_a_provider_of_ones_own_sends_to_the_endpoint_as_well(collector: Collector) -> None:
    kept = Spans()
    telemetry.instrument(collector.url, tracer_provider=kept.provider)

    one_run()
    telemetry.uninstrument()

    assert sorted(span.name for span in kept.taken()) == sorted(collector.names) == ["chat scripted", "invoke_agent a"]


def test_a_refused_endpoint_leaves_the_present_one(collector: Collector) -> None:
    telemetry.instrument(collector.url)
    with pytest.raises(ConfigurationError):
        telemetry.instrument("nowhere")

    one_run()
    telemetry.uninstrument()

    assert len(collector.names) == 2


def test_runs_do_not_wait_for_an_endpoint_that_is_slow_to_answer(collector: Collector) -> None:
    collector.may_answer.clear()
    telemetry.instrument(collector.url)

    one_run()
    assert collector.has_request.wait(60)
    for _ in range(3):
        one_run()
    assert len(collector.names) == 2
    collector.may_answer.set()
    telemetry.uninstrument()

    assert len(collector.names) == 8


def test_the_warning_belongs_to_the_run_that_could_not_be_sent(caplog: pytest.LogCaptureFixture) -> None:
    cell, places = ContextVar("cell", default="none"), list[str]()

    class Places(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            places.append(cell.get())

    handler = Places()
    logging.getLogger("adk_nb.telemetry").addHandler(handler)
    try:
        cell.set("first cell")
        telemetry.instrument(closed_port())
        cell.set("second cell")
        one_run()
        cell.set("third cell")
        telemetry.uninstrument()
    finally:
        logging.getLogger("adk_nb.telemetry").removeHandler(handler)

    assert places == ["second cell"]


def test_text_that_utf_8_cannot_hold_is_sent(collector: Collector, caplog: pytest.LogCaptureFixture) -> None:
    telemetry.instrument(collector.url, content=True)

    def fail() -> str:
        """Fail."""
        raise ValueError("half of \ud83d")

    asyncio.run(run(agent("a", call("fail"), "done", tools=[fail], instruction="half of \ud83d")))
    telemetry.uninstrument()

    assert collector.names == ["chat scripted", "execute_tool fail", "chat scripted", "invoke_agent a"]
    assert not caplog.records


@pytest.mark.parametrize("module", ["opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http.trace_exporter"])
def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)

    with pytest.raises(MissingExtraError, match=r"type: %pip install \"opentelemetry-exporter-otlp-proto-http>="):
        telemetry.instrument("http://localhost:4318")


def in_a_process(code: str) -> str:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


TURN = """
import asyncio, sys
from adk_nb.agents import LlmAgent
from adk_nb.models import ScriptedLlm
from adk_nb.runners import InMemoryRunner
def turn():
    asyncio.run(InMemoryRunner(agent=LlmAgent(name="a", model=ScriptedLlm("hi"))).run_debug("hello", quiet=True))
"""


def test_nothing_of_it_is_imported_unless_asked_for() -> None:
    printed = in_a_process(
        f"{TURN}\nturn()\nimport adk_nb.telemetry\ndir(adk_nb.telemetry)\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry') or 'telemetry.' in name])"
    )

    assert printed == "[]\n"


def test_a_provider_that_the_program_has_set_makes_the_spans_and_keeps_its_own_processors(collector: Collector) -> None:
    printed = in_a_process(
        f"""{TURN}
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from adk_nb import telemetry
kept = InMemorySpanExporter()
telemetry.instrument()  # before the provider is set
trace.set_tracer_provider(TracerProvider())
trace.get_tracer_provider().add_span_processor(SimpleSpanProcessor(kept))
turn()
print([span.name for span in kept.get_finished_spans()])
telemetry.instrument({collector.url!r})
with trace.get_tracer("mine").start_as_current_span("request"):
    turn()
telemetry.uninstrument()
turn()
print([span.name for span in kept.get_finished_spans()])
"""
    )

    assert printed.splitlines() == [
        "['chat scripted', 'invoke_agent a']",
        "['chat scripted', 'invoke_agent a', 'chat scripted', 'invoke_agent a', 'request']",
    ]
    assert sorted(collector.names) == ["chat scripted", "invoke_agent a", "request"]


def test_the_end_of_a_process_sends_what_is_queued(collector: Collector) -> None:
    in_a_process(f"{TURN}\nfrom adk_nb import telemetry\ntelemetry.instrument({collector.url!r})\nturn()")

    assert collector.names == ["chat scripted", "invoke_agent a"]
