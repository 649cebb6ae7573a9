"""Each setting of %config AdkNb does what it says, is refused when it cannot be, and is listed."""

import asyncio
import os
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from adk_nb import types
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.models.base_llm import BaseLlm
from adk_nb.models.default_model import MODEL_VARIABLE
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.models.scripted_llm import ScriptedLlm, call
from adk_nb.notebook import settings
from tests.notebook.conftest import Shell
from tests.support.hostile_texts import assert_nothing_unseen

FIELDS = ["model", "display", "on_error", "strict", "confirm", "max_iterations", "timeout", "show_thoughts"]
FIELDS += ["interp_max_chars", "cassette_dir", "redact"]


def begin(shell: Shell, *answers: Any) -> ScriptedLlm:
    shell.names["model"] = model = ScriptedLlm(*answers)
    shell.cell("%%agent guide -m model\nBe brief.")
    return model


def test_all_are_listed_with_what_they_do_and_completed(shell: Shell) -> None:
    shell.cell("%config AdkNb")

    for name in FIELDS:
        assert f"AdkNb.{name}=" in shell.printed
    assert shell.complete("%config AdkNb.max_it") == ["%config AdkNb.max_iterations"]


@pytest.mark.parametrize(
    ("typed", "facts"),
    [
        ("on_error = 'stop'", ("['raise', 'card']", "'stop'")),
        ("strict = 'yes'", ("a boolean",)),
        ("max_iterations = 0", ("max_iterations ", "positive", "got 0")),
        ("max_iterations = 'x'", ("an int",)),
        ("timeout = -1", ("timeout ", "or None", "got -1")),
        ("timeout = float('inf')", ("timeout ", "or None", "got inf")),
        ("interp_max_chars = 0", ("interp_max_chars ", "positive", "got 0")),
        ("redact = ['(']", ("redact: '(' ", "regular expression")),
        ("cassette_dir = ''", ("cassette_dir: '' ", "'cassettes'")),
    ],
)
def test_an_invalid_value_is_refused_and_the_old_one_stays(
    shell: Shell, caplog: pytest.LogCaptureFixture, typed: str, facts: tuple[str, ...]
) -> None:
    name = typed.split()[0]
    before = shell.cell(f"%config AdkNb.{name}")

    shell.run(f"%config AdkNb.{typed}")

    [record] = caplog.records
    assert all(fact in record.getMessage() for fact in facts)
    assert shell.cell(f"%config AdkNb.{name}") == before
    assert settings.now == settings.Settings()


def test_a_turn_takes_as_many_calls_as_the_setting_says_unless_its_cell_does(shell: Shell) -> None:
    shell.cell("%%tool\ndef look(n: int) -> int:\n    'Look.'\n    return n")
    shell.names["model"] = ScriptedLlm(*[call("look", n=n) for n in range(9)])
    shell.cell("%config AdkNb.max_iterations = 2")
    shell.cell("%%agent guide -m model -t look\nBe brief.")
    shell.cell("%%agent other -m model -t look --max-iterations 3\nBe brief.")

    assert "MAX_ITERATIONS" in shell.broke_off("%chat guide Go").error
    assert (shell.names["guide"].max_iterations, shell.names["other"].max_iterations) == (2, 3)
    shell.cell("%config AdkNb.max_iterations = 16")
    assert "v1 → v2 (max-iterations)" in str(shell.cell("%%agent guide -m model -t look\nBe brief."))


class Slow(BaseLlm):
    """Never answers."""

    model: str = "slow"

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        await asyncio.Event().wait()
        yield LlmResponse()


def test_a_turn_that_takes_too_long_ends_with_an_error(shell: Shell) -> None:
    shell.names["guide"] = LlmAgent(name="guide", model=Slow())
    shell.cell("%config AdkNb.timeout = 0.05")

    reply = shell.broke_off("%chat guide Hi")

    assert reply.status == "error" and "RUN_TIMEOUT" in reply.error
    shell.cell("%config AdkNb.timeout = None")
    assert settings.now.timeout is None


THOUGHT = LlmResponse(
    content=types.Content(role="model", parts=[types.Part(text="Hm hm.", thought=True), types.Part(text="Oslo.")])
)


def test_thoughts_are_shown_unless_the_setting_says_no(shell: Shell) -> None:
    begin(shell, THOUGHT, THOUGHT)

    assert "Hm hm." in shell.cell("%chat guide Hi")._repr_mimebundle_()["text/html"]
    shell.cell("%config AdkNb.show_thoughts = False")

    reply = shell.cell("%chat guide Hi")
    assert "Hm hm." not in reply._repr_mimebundle_()["text/html"] and reply.text == "Oslo."


def test_values_are_truncated_at_the_configured_length(shell: Shell) -> None:
    model = begin(shell, "Fine.")
    shell.cell("%config AdkNb.interp_max_chars = 3\nlong = 'abcdef'")

    shell.cell("%chat guide {{long}}")

    assert model.requests[0].contents[0].parts[0].text == "abc"
    assert shell.printed.startswith("note: {{long}}: 6 → 3 characters\n")


def test_a_turn_that_ends_with_an_error_fails_its_cell_unless_the_notebook_is_to_go_on(shell: Shell) -> None:
    begin(shell, OSError("no network"), OSError("no network"), "Fine.")

    failed = shell.fails("%chat guide Hi")
    shell.cell("%config AdkNb.on_error = 'card'")
    goes_on = shell.cell("%chat guide Hi")

    last = failed.splitlines()[-1]
    assert last.startswith("TurnFailedError: ") and last.endswith("'guide' failed: OSError: no network")
    assert failed.startswith("guide > error: OSError: ")
    assert goes_on.status == "error" and goes_on is shell.names["_run"]
    assert shell.cell("%chat guide Hi").text == "Fine."


def test_a_cell_that_fails_says_so_in_one_line_that_acts_on_no_terminal(shell: Shell) -> None:
    begin(shell, OSError("no \x1b]8;;javascript:alert(1)\x07network\x1b]8;;\x07\nat all\u202e" + "!" * 900))

    told = shell.fails("%chat guide Hi").splitlines()[-1]

    assert told.startswith("TurnFailedError: ") and "network at all!" in told
    assert_nothing_unseen(told)
    assert len(told) < 600


@pytest.mark.parametrize(
    ("typed", "shows"),
    [("%confirm --yes", True), ("%rewind --rerun", True), ("%confirm --yes;", False), ("%chat ans << guide Hi", False)],
)
def test_whatever_goes_on_and_fails_does_so(shell: Shell, typed: str, shows: bool) -> None:
    shell.cell("%%tool --confirm\ndef pay() -> str:\n    'Pay.'\n    return 'paid'")
    answers = [] if "chat" in typed else [call("pay")]
    begin(shell, *answers, OSError("no network"))
    shell.cell("%%agent guide -m model -t pay\nBe brief.")
    if answers:
        shell.cell("%chat guide Pay")

    failed = shell.fails(typed)

    assert failed.splitlines()[-1].startswith("TurnFailedError: ")
    assert ("guide > error: OSError: " in failed) is shows
    assert shell.names["_run"].status == "error"


def test_a_reply_in_plain_text_has_no_other_form(shell: Shell) -> None:
    begin(shell, "A.", "B.", "C.")

    assert set(shell.cell("%chat guide Hi")._repr_mimebundle_()) == {"text/plain", "text/markdown", "text/html"}
    shell.cell("%config AdkNb.display = 'text'")

    reply = shell.cell("%chat guide Hi")
    assert reply._repr_mimebundle_() == {"text/plain": "guide > B."} and str(reply) == "guide > B."
    static = shell.cell("%chat --static guide Hi")
    assert set(static._repr_mimebundle_()) >= {"text/html"}


def test_cassettes_are_in_the_folder_of_the_setting_without_what_is_to_be_hidden(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shell.ip, "starting_dir", str(tmp_path))
    begin(shell, "Hello Ada.")
    shell.cell("%config AdkNb.cassette_dir = 'tapes'\n%config AdkNb.redact = ['Ada']")

    shell.cell("%record\n%chat guide Hi, I am Ada\n%record off")

    [file] = (tmp_path / "tapes").glob("*.jsonl")
    assert "Hello" in file.read_text() and "Ada" not in file.read_text()


def test_reloading_keeps_what_was_set(shell: Shell) -> None:
    shell.cell("%config AdkNb.timeout = 3\n%config AdkNb.model = 'offline'\n%config AdkNb.max_iterations = 2")

    shell.cell("%reload_ext adk_nb")

    assert settings.now == settings.Settings(timeout=3, max_iterations=2)
    assert os.environ[MODEL_VARIABLE] == "offline"


def test_unloading_leaves_all_settings_as_they_were(shell: Shell) -> None:
    shell.cell("%config AdkNb.timeout = 3\n%config AdkNb.show_thoughts = False\n%config AdkNb.interp_max_chars = 3")
    assert settings.now != settings.Settings()

    shell.cell("%unload_ext adk_nb")

    assert settings.now == settings.Settings()
