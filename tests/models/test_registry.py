"""Names of models: which class answers, what an unknown name is told, and which model is used when none is named."""

import re
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator

import pytest

from adk_nb import models
from adk_nb.errors import MissingExtraError, ModelNotFoundError
from adk_nb.models import (
    BaseLlm,
    Claude,
    Gemini,
    HttpLlm,
    LLMRegistry,
    LlmRequest,
    LlmResponse,
    OfflineLlm,
    OllamaLlm,
    OpenAILlm,
    registry,
)
from adk_nb.models.default_model import GEMINI_MODEL
from tests.support.each import each


class Parrot(BaseLlm):
    @classmethod
    def supported_models(cls) -> list[str]:
        return ["parrot", r"parrot-\d+"]

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        yield LlmResponse()


@pytest.fixture
def parrots() -> Iterator[None]:
    before = list(registry._registered)
    LLMRegistry.register(Parrot)
    yield
    registry._registered[:] = before
    registry._find.cache_clear()


@pytest.mark.slow
@each(
    "name, found, asked",
    [
        ("gemini-2.5-flash", Gemini, "gemini-2.5-flash"),
        ("models/gemini-2.5-pro", Gemini, "models/gemini-2.5-pro"),
        ("projects/p/locations/l/endpoints/1", Gemini, "projects/p/locations/l/endpoints/1"),
        ("gemini:my-tuned-model", Gemini, "my-tuned-model"),
        ("Gemini:gemini-2.5-flash", Gemini, "gemini-2.5-flash"),
        ("offline", OfflineLlm, "offline"),
        ("OfflineLlm:offline", OfflineLlm, "offline"),
        ("gpt-5-mini", OpenAILlm, "gpt-5-mini"),
        ("o3", OpenAILlm, "o3"),
        ("openai:my-fine-tune", OpenAILlm, "my-fine-tune"),
        ("ollama:llama3.2:1b", OllamaLlm, "llama3.2:1b"),
        ("claude-sonnet-4-5", Claude, "claude-sonnet-4-5"),
        ("anthropic:claude-haiku-4-5", Claude, "claude-haiku-4-5"),
        ("https://example.test/ask", HttpLlm, "example.test/ask"),
        ("http://127.0.0.1:8000/v1", OpenAILlm, "http://127.0.0.1:8000/v1"),
        ("http://127.0.0.1:8000/v1#qwen3:4b", OpenAILlm, "http://127.0.0.1:8000/v1#qwen3:4b"),
    ],
)
def test_a_name_is_answered_by_its_class(name: str, found: type[BaseLlm], asked: str):
    model = LLMRegistry.new_llm(name)

    assert type(model) is found is LLMRegistry.resolve(name)
    assert model.model == asked


@pytest.mark.usefixtures("parrots")
def test_a_registered_class_answers_to_the_whole_of_its_patterns():
    assert LLMRegistry.resolve("parrot-12") is Parrot
    with pytest.raises(ModelNotFoundError, match="mean 'parrot'"):
        LLMRegistry.resolve("parrot-12x")


def test_a_class_that_comes_later_goes_first(parrots: None):
    assert LLMRegistry.resolve("parrot") is Parrot

    class Parrot2(Parrot):
        pass

    LLMRegistry.register(Parrot2)

    assert LLMRegistry.resolve("parrot") is Parrot2


@each(
    "name, meant",
    [
        (GEMINI_MODEL.replace("gemini", "gemni"), GEMINI_MODEL),
        ("Offline", "offline"),
        ("gemini3.8-flash", "gemini-3.8-flash"),
        ("gtp-4o", "gpt-4o"),
        ("cluade-sonnet-9", "claude-sonnet-9"),
        ("127.0.0.1:18731/v1", "http://127.0.0.1:18731/v1"),
        ("localhost:8080", "http://localhost:8080/v1"),
        ("htp://127.0.0.1:18731/v1", "http://127.0.0.1:18731/v1"),
    ],
)
def test_a_mistyped_name_gets_the_closest_match(name: str, meant: str):
    with pytest.raises(ModelNotFoundError, match=f"no model named '{name}'; did you mean '{meant}'[?]$"):
        LLMRegistry.new_llm(name)


@pytest.mark.parametrize(
    ("name", "package", "needed"),
    [
        ("gpt-5", "openai", "openai[httpx2]"),
        ("ollama:llama3.2", "openai", "openai[httpx2]"),
        ("claude-sonnet-4-5", "anthropic", "anthropic"),
        ("mistral/mistral-small", "litellm", "litellm"),
    ],
)
def test_a_model_whose_package_is_missing_is_told_the_one_command(
    monkeypatch: pytest.MonkeyPatch, name: str, package: str, needed: str
):
    monkeypatch.setitem(sys.modules, package, None)

    with pytest.raises(MissingExtraError, match=rf"'{package}' .*%pip install \"{re.escape(needed)}<\d,>=[\d.]+\"$"):
        LLMRegistry.new_llm(name)


@pytest.mark.parametrize("name", ["", "parrot", "http://", ":", ":x", "gemini:"])
def test_an_unknown_name_is_told_what_there_is_and_what_to_do(name: str):
    with pytest.raises(ValueError, match=rf"{re.escape(GEMINI_MODEL)}, .*offline, .*LLMRegistry\.register"):
        LLMRegistry.resolve(name)


@pytest.mark.parametrize("name", ["llama3", "qwen3:8b"])
def test_a_name_that_may_be_a_local_model_s_is_told_how_those_are_written(name: str):
    with pytest.raises(ModelNotFoundError, match=f" ollama:{name}, or .*http://"):
        LLMRegistry.resolve(name)


@pytest.mark.parametrize(
    ("name", "api"),
    [
        ("http://127.0.0.1:8080/v1/chat/completions", "http://127.0.0.1:8080/v1"),
        ("http://127.0.0.1:8080/v1/chat/completions/", "http://127.0.0.1:8080/v1"),
        ("http://127.0.0.1:8080/v1/chat/completions?a=b#qwen3", "http://127.0.0.1:8080/v1#qwen3"),
        ("https://example.test/openai/v1/responses", "https://example.test/openai/v1"),
        ("http://localhost:1234/v1/models", "http://localhost:1234/v1"),
        ("https://example.test/api/v4/chat/completions", "https://example.test/api/v4"),
    ],
)
def test_the_address_of_a_method_is_told_the_address_of_its_api(name: str, api: str):
    with pytest.raises(ModelNotFoundError, match=rf"['\"]{re.escape(api)}['\"]"):
        LLMRegistry.check(name)


@pytest.mark.parametrize("name", ["https://example.test/models", "https://example.test/v1/models/ask"])
def test_a_service_of_ones_own_may_have_any_other_path(name: str):
    assert LLMRegistry.resolve(name) is HttpLlm


def test_the_address_of_a_method_is_shown_without_its_password():
    with pytest.raises(ModelNotFoundError) as refusal:
        LLMRegistry.check("http://ann:geheim@127.0.0.1:8080/v1/chat/completions?key=geheim")

    assert "geheim" not in str(refusal.value)


def test_every_public_name_loads_and_is_listed():
    assert [name for name in dir(models) if getattr(models, name) is None] == []
    assert set(dir(models)) >= {"BaseLlm", "Gemini", "LLMRegistry", "LlmRequest", "LlmResponse", "ScriptedLlm", "call"}


def test_asking_whether_there_is_a_key_loads_no_google_genai():
    code = (
        "import sys, adk_nb.models; from adk_nb.models.default_model import uses_vertex; uses_vertex();"
        "print([name for name in sys.modules if name.startswith('google.genai')])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
