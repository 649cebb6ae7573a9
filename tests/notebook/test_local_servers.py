"""Servers of models on this machine: %doctor, Tab and the stand-in name them; nobody else asks them."""

import json
from collections.abc import Iterator

import pytest

from adk_nb.models.default_model import USUAL_PORTS
from tests.models.gemini_server import GeminiServer, Reply
from tests.notebook.conftest import Shell


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[GeminiServer]:
    """A server with two models where llama.cpp's usually is, and nothing where vLLM's is."""
    with GeminiServer() as server:
        monkeypatch.setitem(USUAL_PORTS, "vLLM", 9)
        monkeypatch.setitem(USUAL_PORTS, "llama.cpp", int(server.url.rpartition(":")[2]))
        listing = {"object": "list", "data": [{"id": "qwen3"}, {"id": "smollm2"}, {"id": "with a space"}]}
        server.replies.append(Reply(json.dumps(listing).encode()))
        yield server


def row(shell: Shell, topic: str) -> str:
    return next(line for line in str(shell.cell("%doctor")).splitlines() if line.startswith(topic))


def test_the_doctor_names_what_answers_and_what_to_type(shell: Shell, server: GeminiServer) -> None:
    here = row(shell, "models here")

    assert "llama.cpp" in here and "qwen3, smollm2" in here and "vLLM" not in here
    assert here.rstrip().endswith(f"-m {server.url}/v1")
    assert [request.path for request in server.requests] == ["GET /v1/models"]


def test_tab_proposes_them_where_a_model_is_wanted_and_asks_nothing_elsewhere(
    shell: Shell, server: GeminiServer
) -> None:
    assert shell.complete("%%agent guide --mo")
    assert server.requests == []

    for line in ("%%agent guide -m ", "%chat --model "):
        start = line + "http"
        assert shell.complete(start) == [f"{line}{server.url}/v1", f"{line}{server.url}/v1#smollm2"]
    assert [request.path for request in server.requests] == ["GET /v1/models"]


def test_the_stand_in_names_one_that_was_found_and_asks_for_none(shell: Shell, server: GeminiServer) -> None:
    shell.cell("%%agent guide -m offline\nBe brief.")
    before = shell.cell("%chat guide Hi")
    assert server.requests == [] and server.url not in before.text

    shell.cell("%doctor")
    after = shell.cell("%chat guide Hi")

    assert f"-m {server.url}/v1" in after.text
    assert f"-m {server.url}/v1" in str(shell.names["guide"].canonical_model.notice)


def test_without_a_server_the_doctor_says_where_it_looked(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(USUAL_PORTS, "llama.cpp", 9)

    assert "none" in row(shell, "models here") and "llama.cpp" in row(shell, "models here")
