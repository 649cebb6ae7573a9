"""Models in gguf files, as far as they go without a server: what is wrong with a file is said in one line."""

import asyncio
import importlib.util
import struct
import sys
from contextlib import aclosing
from pathlib import Path

import pytest

from adk_nb import types
from adk_nb.errors import ConfigurationError, MissingExtraError, ModelError
from adk_nb.models import LLMRegistry, LlmRequest, LlmResponse, LocalLlm

TOOLS = "{% for tool in tools %}{{ tool }}{% endfor %}"


def gguf(path: Path, *, tokens: int = 3, **facts: str | int) -> Path:
    """A file with a head of these facts and no weights."""

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value.encode())) + value.encode()

    pairs = [(name.replace("__", "."), value) for name, value in facts.items()]
    head = b"GGUF" + struct.pack("<IQQ", 3, 0, len(pairs) + 2)
    head += text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, tokens) + text("é") * tokens
    head += text("tokenizer.ggml.scores") + struct.pack("<IIQ", 9, 6, tokens) + struct.pack("<f", 0.5) * tokens
    for name, value in pairs:
        is_text = isinstance(value, str)
        head += text(name) + (struct.pack("<I", 8) + text(value) if is_text else struct.pack("<II", 4, value))
    path.write_bytes(head)
    return path


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package of the server's name, which has no server."""
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages" / "xllamacpp.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path / "packages")
    importlib.invalidate_caches()


def ask(path: Path | str) -> LlmResponse:
    request = LlmRequest(contents=[types.UserContent("Hello")])

    async def collect() -> list[LlmResponse]:
        async with aclosing(LLMRegistry.new_llm(f"gguf:{path}").generate_content_async(request)) as responses:
            return [response async for response in responses]

    return asyncio.run(collect())[-1]


def test_a_missing_package_is_named_with_what_installs_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if not Path(entry, "xllamacpp").exists()])
    monkeypatch.delitem(sys.modules, "xllamacpp", raising=False)

    with pytest.raises(MissingExtraError, match=r"'xllamacpp' .* %pip install \"openai.*\" \"xllamacpp>="):
        LLMRegistry.new_llm("gguf:model.gguf")


@pytest.mark.usefixtures("installed")
def test_the_prefix_selects_the_class_whatever_the_file_is_called(tmp_path: Path):
    for name in ("model.gguf", "/models/gpt-4.gguf", "~/a b/claude-3"):
        model = LLMRegistry.new_llm(f"gguf:{name}")
        assert (type(model), model.model) == (LocalLlm, name)
        assert model.is_open_server
        assert not model.capabilities.output_schema_and_tools


@pytest.mark.usefixtures("installed")
def test_a_missing_file_is_told_with_those_beside_it(tmp_path: Path):
    gguf(tmp_path / "qwen.gguf")

    with pytest.raises(ConfigurationError, match=r"no file .*/quen\.gguf; .* has qwen\.gguf"):
        ask(tmp_path / "quen.gguf")
    with pytest.raises(ConfigurationError, match=r"is a folder; .* has qwen\.gguf"):
        ask(tmp_path)
    with pytest.raises(ConfigurationError, match=r"no file .*gguf:/path/model\.gguf"):
        ask(tmp_path / "nowhere" / "quen.gguf")


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("content", [b"", b"GG", b"PK\x03\x04 a zip file", b"import os\n" * 100])
def test_another_file_is_told_by_how_it_begins(tmp_path: Path, content: bytes):
    path = tmp_path / "model.gguf"
    path.write_bytes(content)

    with pytest.raises(ConfigurationError, match=r"model\.gguf is no gguf file"):
        ask(path)


@pytest.mark.usefixtures("installed")
def test_a_file_that_is_cut_off_anywhere_in_its_head_is_told_so(tmp_path: Path):
    path = gguf(tmp_path / "model.gguf", general__architecture="llama", tokenizer__chat_template=TOOLS)
    whole = path.read_bytes()

    for size in range(4, len(whole), 7):
        path.write_bytes(whole[:size])
        with pytest.raises(ConfigurationError, match=f"cut off at {size} bytes; download it again"):
            ask(path)


@pytest.mark.usefixtures("installed")
def test_a_head_that_counts_more_than_there_is_is_damaged(tmp_path: Path):
    path = gguf(tmp_path / "model.gguf", tokenizer__chat_template=TOOLS)
    for place, value in ((16, 2**63), (24, 2**62), (24 + 8 + 21 + 8, 2**64 - 1)):
        damaged = bytearray(path.read_bytes())
        damaged[place : place + 8] = struct.pack("<Q", value)
        (tmp_path / "damaged.gguf").write_bytes(damaged)
        with pytest.raises(ConfigurationError, match="is damaged"):
            ask(tmp_path / "damaged.gguf")


@pytest.mark.usefixtures("installed")
def test_a_base_model_is_told_from_one_that_converses(tmp_path: Path):
    path = gguf(tmp_path / "base.gguf", general__architecture="llama", llama__context_length=2048)

    with pytest.raises(ConfigurationError, match=r"base\.gguf has no chat template: it is a base model.*Instruct"):
        ask(path)


@pytest.mark.usefixtures("installed")
def test_a_file_larger_than_the_memory_is_not_loaded(tmp_path: Path):
    path = gguf(tmp_path / "large.gguf", tokenizer__chat_template=TOOLS)
    with path.open("r+b") as file:
        file.truncate(2**42)  # with a hole: it takes no room on the disk

    if not Path("/proc/meminfo").exists():
        pytest.skip("this system does not say in a file how much memory is free")
    with pytest.raises(ConfigurationError, match=r"4,398\.0 GB of memory.* are free; .*smaller file"):
        ask(path)


@pytest.mark.usefixtures("installed")
def test_a_server_that_ends_at_once_is_told_with_its_last_words(tmp_path: Path):
    path = gguf(tmp_path / "model.gguf", tokenizer__chat_template=TOOLS)

    with pytest.raises(ModelError, match=r"llama\.cpp cannot load model\.gguf: .*CommonParams"):
        ask(path)


@pytest.mark.usefixtures("installed")
def test_a_template_without_tools_is_known_before_the_server_runs(tmp_path: Path):
    without = gguf(tmp_path / "without.gguf", tokenizer__chat_template="{{ messages }}")
    having = gguf(tmp_path / "having.gguf", tokenizer__chat_template=TOOLS)

    def tells(path: Path) -> bool | None:
        return asyncio.run(LocalLlm(model=str(path)).tells_of_tools())

    assert (tells(without), tells(having), tells(tmp_path / "missing.gguf")) == (False, None, None)
