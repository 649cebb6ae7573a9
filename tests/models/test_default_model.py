"""Which model answers for agents that name none: it follows the keys that are set."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from gemini_server import GeminiServer, Reply

from adk_nb.models import Claude, Gemini, OpenAILlm
from adk_nb.models.default_model import (
    GEMINI_MODEL,
    default_model,
    find_default_model,
    vendor_model,
)
from adk_nb.models.registry import suggested_names
from adk_nb.models.vendor_facts import ANTHROPIC, OPENAI

ROOT = Path(__file__).parents[2]
HOSTED = re.compile(r"\b(?:gemini-\d|gpt-\d|claude-(?:opus|sonnet|haiku)-\d)(?:[\w.-]*\w)?")
FACTS = ("vendor_facts",)
"""Modules about all models, the retired ones too."""


@pytest.fixture
def ollama(monkeypatch: pytest.MonkeyPatch) -> Iterator[GeminiServer]:
    with GeminiServer() as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        yield server


def lists(server: GeminiServer, *names: str) -> None:
    server.replies.append(Reply(json.dumps({"object": "list", "data": [{"id": name} for name in names]}).encode()))


@pytest.mark.parametrize(
    ("environment", "model"),
    [
        ({}, "offline"),
        ({"GOOGLE_API_KEY": " "}, "offline"),
        ({"GOOGLE_GENAI_USE_VERTEXAI": "false"}, "offline"),
        ({"GOOGLE_API_KEY": "k"}, GEMINI_MODEL),
        ({"GEMINI_API_KEY": "k"}, GEMINI_MODEL),
        ({"GOOGLE_GENAI_USE_VERTEXAI": "True"}, GEMINI_MODEL),
        ({"OPENAI_API_KEY": "k"}, OPENAI.default_model),
        ({"ANTHROPIC_API_KEY": "k"}, ANTHROPIC.default_model),
        ({"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"}, OPENAI.default_model),
        ({"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k", "GEMINI_API_KEY": "k"}, GEMINI_MODEL),
        ({"GOOGLE_API_KEY": "k", "ADK_NB_DEFAULT_MODEL": "gemini-3.8-flash"}, "gemini-3.8-flash"),
    ],
)
def test_it_follows_the_keys_that_are_set_in_a_fixed_order(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], model: str
):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    assert default_model() == model


def test_it_is_the_model_that_the_class_of_each_vendor_has_as_its_own():
    assert Gemini().model == vendor_model("GOOGLE_API_KEY") == vendor_model("GEMINI_API_KEY")
    assert OpenAILlm().model == vendor_model(OpenAILlm.KEY_VARIABLES[0])
    assert Claude().model == vendor_model(Claude.KEY_VARIABLES[0])
    assert vendor_model("TAVILY_API_KEY") == ""


def shown_names() -> Iterator[tuple[str, str]]:
    """Where users read a hosted model's name, and the name."""
    pages = [ROOT / "README.md", *(ROOT / "docs/pages").glob("*.md"), *(ROOT / "notebooks").glob("*.ipynb")]
    modules = [path for path in (ROOT / "adk_nb").rglob("*.py") if path.stem not in FACTS]
    for path in (*pages, *modules):
        for name in HOSTED.findall(path.read_text(encoding="utf-8")):
            yield path.name, name


def test_docs_tutorials_and_help_name_current_models_alone():
    shown = set(shown_names())

    assert {(where, name) for where, name in shown if name not in suggested_names()} == set()
    assert {name for where, name in shown if where == "models.md"} >= {
        GEMINI_MODEL,
        OPENAI.default_model,
        ANTHROPIC.default_model,
    }
    assert {name for where, name in shown if where == "01_first_agent.ipynb"} == {OPENAI.default_model}


def test_the_page_on_models_names_the_default_of_each_vendor_beside_its_key():
    page = (ROOT / "docs/pages/models.md").read_text(encoding="utf-8")

    for variable in ("GEMINI_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        assert re.search(rf"^\d\. `{re.escape(vendor_model(variable))}`, if .*`{variable}`", page, re.MULTILINE)


@pytest.mark.parametrize(("variable", "package"), [("OPENAI_API_KEY", "openai"), ("ANTHROPIC_API_KEY", "anthropic")])
def test_a_package_that_is_missing_comes_with_the_line_that_installs_it(
    variable: str, package: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(variable, "k")
    assert find_default_model().install == ""

    monkeypatch.setitem(sys.modules, package, None)

    assert find_default_model().name == vendor_model(variable)
    assert find_default_model().install.startswith(f'%pip install "{package}')


def test_without_a_key_ollama_answers_with_its_newest_model_that_talks(ollama: GeminiServer):
    lists(ollama, "nomic-embed-text:latest", "qwen3:4b", "llama3.2:latest")

    assert [default_model(), default_model()] == ["ollama:qwen3:4b"] * 2
    assert [request.path for request in ollama.requests] == ["GET /v1/models"]  # asked once, not before every call


def test_a_key_stands_above_ollama_which_is_not_asked_then(ollama: GeminiServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")

    assert default_model() == ANTHROPIC.default_model
    assert ollama.requests == []


def test_a_server_of_ones_own_answers_where_no_key_is_set(ollama: GeminiServer, monkeypatch: pytest.MonkeyPatch):
    with GeminiServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/api/")
        lists(server, "my-embed", "qwen3", "smollm2")

        assert default_model() == "openai:qwen3"
        assert [request.path for request in server.requests] == ["GET /api/models"]
        assert ollama.requests == []
        monkeypatch.setenv("GEMINI_API_KEY", "k")
        assert default_model() == GEMINI_MODEL


def test_a_server_of_ones_own_that_does_not_answer_is_no_default(ollama: GeminiServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    lists(ollama, "llama3.2")

    assert default_model() == "ollama:llama3.2"


@pytest.mark.parametrize("body", [b'{"data": null}', b"[]", b"<html>", b'{"data": [{"id": "nomic-embed-text"}]}'])
def test_a_server_that_is_not_ollama_or_has_no_model_is_passed_over(ollama: GeminiServer, body: bytes):
    ollama.replies.append(Reply(body))

    assert default_model() == "offline"


def test_ollama_is_passed_over_where_the_package_that_asks_it_is_missing(
    ollama: GeminiServer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "openai", None)

    assert default_model() == "offline"
    assert ollama.requests == []
