"""A model that fails is told once in a notebook: one reply, one short line of a traceback, and no row for each try."""

import json
from collections.abc import Iterator
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.models.gemini_server import GeminiServer, Reply
from tests.support.warm import WARM

pytestmark = pytest.mark.kernel

BUSY = Reply(
    json.dumps({"error": {"type": "rate_limit_error", "message": "Slow down, please"}}).encode(),
    429,
    headers={"retry-after-ms": "1"},
)


@pytest.fixture
def server() -> Iterator[GeminiServer]:
    with GeminiServer() as server:
        yield server


def outputs(server: GeminiServer, cell: str, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Those of `cell`, which speaks to an agent with a model of OpenAI's at `server`."""
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "k-1")
    cells = ["%load_ext adk_nb", "%%agent waiter -m gpt-5-mini\nServe drinks.", cell]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in cells])
    client = NotebookClient(
        notebook, kernel_name=WARM, allow_errors=True, timeout=60, extra_arguments=["--log-level=ERROR"]
    )
    client.execute()
    return notebook.cells[-1].outputs


def test_a_service_that_stays_busy_is_reported_once(server: GeminiServer, monkeypatch: pytest.MonkeyPatch):
    server.replies.extend([BUSY] * 5)

    made = outputs(server, "%chat waiter Hi", monkeypatch)
    *shown, failed = made

    assert len(server.requests) == 5
    assert [output for output in made if output.output_type == "stream"] == []
    texts = [output.data["text/plain"] for output in shown if output.data["text/plain"]]
    assert len(texts) == 1
    assert "HTTP 429" in texts[0] and "Slow down, please" in texts[0] and "5 attempts" in texts[0]
    assert failed.ename == "TurnFailedError"
    assert "HTTP 429" in failed.evalue and "Slow down" not in failed.evalue and len(failed.traceback) == 1
    head, _, rows = shown[-1].data["text/markdown"].partition("| who | event |")
    assert head.count("Slow down") == 1 and "Slow down" not in rows and "error: failed" in rows
    assert "gave no answer" not in rows


def test_a_service_that_was_busy_and_then_answers_has_one_row_for_its_tries(
    server: GeminiServer, monkeypatch: pytest.MonkeyPatch
):
    choice = {"index": 0, "message": {"role": "assistant", "content": "Tea?"}, "finish_reason": "stop"}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    server.replies.extend([BUSY, BUSY, Reply(json.dumps(body).encode())])

    made = outputs(server, "%chat waiter Hi", monkeypatch)

    assert [output for output in made if output.output_type == "stream"] == []
    rows = [line for line in made[-1].data["text/markdown"].splitlines() if "HTTP 429" in line]
    assert len(rows) == 1 and "2 times" in rows[0]


def test_an_error_that_is_raised_is_told_once_and_fails_the_cell(server: GeminiServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)

    *shown, failed = outputs(server, "%chat -m gemini-9 waiter Hi", monkeypatch)

    [text] = [output.data["text/plain"] for output in shown]
    assert "'gemini-9'" in text and "%key gemini" in text and "%rewind" in text
    head, _, rows = shown[0].data["text/markdown"].partition("| who | event |")
    assert head.count("gemini-9") == 1 and "gemini-9" not in rows
    assert failed.ename == "MissingKeyError"
    [line] = failed.traceback
    assert line.startswith("MissingKeyError: ") and "gemini-9" in line and "%" not in line and len(line) < 160


def test_an_error_that_no_view_shows_is_told_whole_where_it_is_raised(
    server: GeminiServer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)

    [failed] = outputs(server, "%chat --quiet -m gemini-9 waiter Hi", monkeypatch)

    assert "%key gemini" in failed.traceback[0]
