"""%record and %replay: the cassette of a notebook, whichever models its agents have."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adk_nb.models import ScriptedLlm
from adk_nb.models.cassette import Cassette
from adk_nb.models.registry import current_tap
from adk_nb.notebook.chat.reply import view_of_reply
from tests.notebook.conftest import Shell

TOOL = '%%tool\ndef weather(city: str) -> str:\n    "The weather in a city."\n    return f"sunny in {city}"'
AGENT = "%%agent guide -t weather\nBe kind."
CASSETTE = "cassettes/notebook.jsonl"


@pytest.fixture
def work(tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the notebook, with an agent in it."""
    shell.ip.starting_dir = str(tmp_path)
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    shell.cell(TOOL)
    shell.cell(AGENT)
    yield tmp_path
    assert current_tap() is None or shell.cell("%replay off")


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def start_over(shell: Shell) -> None:
    """As a new kernel with the same cells."""
    del shell.ip.adk_nb
    shell.ip.reset()
    shell.cell("%reload_ext adk_nb")
    shell.cell(TOOL)
    shell.cell(AGENT)


def test_what_was_recorded_is_replayed_in_another_kernel(shell: Shell, work: Path):
    assert str(shell.cell("%record")) == f"recording to {CASSETTE}"
    first = shell.cell("%chat guide The weather in Oslo")
    assert str(shell.cell("%record off")).endswith(f": 2 calls recorded in {CASSETTE}")
    start_over(shell)
    assert str(shell.cell("%replay")) == (f"replaying from {CASSETTE}: 2 recordings of offline")
    again = shell.cell("%chat guide The weather in Oslo")

    assert again.text == first.text
    assert "notebook.jsonl" in view_of_reply(again).notice and 'of model "offline"' in view_of_reply(again).notice
    assert [one["model"] for one in lines(work / CASSETTE)] == ["offline", "offline"]
    assert lines(work / CASSETTE)[0]["request"]["contents"][-1]["parts"] == [{"text": "The weather in Oslo"}]


@pytest.mark.parametrize(
    ("edit", "changed"),
    [
        ("%%agent guide -t weather\nBe kind.\nBe brief.", "the instruction changed at line 2: 'Be brief.'"),
        (TOOL.replace("weather in a", "sky over a"), "tool 'weather': its description changed"),
        (TOOL.replace("city: str", "city: str, day: int = 1"), "tool 'weather': parameter 'day' is new"),
    ],
)
def test_a_miss_says_which_part_has_changed_and_what_to_type(edit: str, changed: str, shell: Shell, work: Path):
    shell.cell("%record")
    shell.cell("%chat guide The weather in Oslo")
    start_over(shell)
    shell.cell("%replay")
    shell.cell(edit)

    said = shell.fails("%chat guide The weather in Oslo")
    assert said.startswith("RecordingMismatchError: ") and CASSETTE in said
    assert f"'guide': {changed}" in said and "recording 1)" in said
    assert all(magic in said for magic in ("%replay auto", "%record", "%rewind --rerun"))


def test_auto_asks_for_what_is_missing_and_keeps_it(shell: Shell, work: Path):
    said = str(shell.cell("%replay auto"))
    assert said.endswith(f"{CASSETTE}: 0 recordings")
    shell.cell("%chat guide The weather in Oslo")
    start_over(shell)
    shell.cell("%replay auto")
    oslo = shell.cell("%chat guide The weather in Oslo")
    rome = shell.cell("%chat guide The weather in Rome")

    assert "Oslo" in oslo.text
    assert "Rome" in rome.text
    assert str(shell.cell("%replay off")).endswith(f"2 calls recorded in {CASSETTE}")
    assert len(lines(work / CASSETTE)) == 4


def test_in_auto_the_same_question_twice_is_asked_twice(shell: Shell, work: Path):
    shell.ip.user_ns["script"] = script = ScriptedLlm("one", "two")
    shell.cell("%%agent other -m script\nAnswer.")
    shell.cell("%replay auto")
    first = shell.cell("%chat --new other hi")
    second = shell.cell("%chat --new other hi")

    assert [first.text, second.text] == ["one", "two"]
    assert len(script.requests) == 2
    shell.cell("%replay")
    assert [shell.cell("%chat --new other hi").text for _ in "ab"] == ["one", "two"]
    assert "recorded 2 times" in shell.fails("%chat --new other hi")


def test_recording_anew_replaces_what_was_there_with_the_first_call(shell: Shell, work: Path):
    shell.cell("%record")
    shell.cell("%chat guide The weather in Oslo")
    said = str(shell.cell("%record"))
    assert "replaces" in said
    assert len(lines(work / CASSETTE)) == 2
    shell.cell("%chat --new guide The weather in Rome")

    assert [one["request"]["contents"][0]["parts"][0]["text"] for one in lines(work / CASSETTE)] == [
        "The weather in Rome",
        "The weather in Rome",
    ]


def test_agents_made_in_python_and_those_defined_before_are_recorded_too(shell: Shell, work: Path):
    shell.cell("from adk_nb import Agent, Chat\nguide2 = Agent(name='guide2', model='offline', tools=[weather])")
    shell.cell("chat = Chat(guide2)")
    shell.cell("%record")
    shell.cell("reply = chat.ask('The weather in Oslo')")
    shell.cell("%record off")
    shell.cell("chat.ask('The weather in Rome')")

    assert len(lines(work / CASSETTE)) == 2


def test_one_turn_can_be_recorded_or_replayed(shell: Shell, work: Path):
    shell.cell("%chat --new guide The weather in Rome")
    shell.cell("%chat --new --record guide The weather in Oslo")
    shell.cell("%chat --new --record guide The weather in Bergen")
    assert len(lines(work / CASSETTE)) == 4

    replayed = shell.cell("%chat --new --replay guide The weather in Oslo")
    assert view_of_reply(replayed).notice.startswith("replayed from")
    miss = shell.fails("%chat --new --replay guide The weather in Paris")
    assert "message 1 differs" in miss
    assert current_tap() is None
    both = shell.fails("%chat --record --replay guide hi")
    assert both.startswith("InputError: %chat: --record and --replay ")


def test_keys_and_addresses_are_not_in_the_file_and_do_not_matter_to_a_replay(shell: Shell, work: Path):
    cell = '%%tool\ndef send(to: str) -> str:\n    "Sends the letter."\n    sent.append(to)\n    return "sent to " + to'
    shell.cell('%config AdkNb.redact = [r"order \\d+"]')
    for mode in ("record", "replay"):
        start_over(shell)
        shell.cell("sent = []")
        shell.cell(cell)
        shell.cell("%%agent post -t send\nPost.")
        shell.cell(f"%replay {mode}")
        shell.cell('%chat post Send the letter to "ann.lee@post.no", order 4711, sk-abcdefghijklmnop0123456789')
    held = (work / CASSETTE).read_text(encoding="utf-8")

    assert "ann.lee" not in held
    assert "4711" not in held
    assert "sk-abc" not in held
    assert "[redacted]" in held
    [to] = shell.names["sent"]
    assert to.startswith("person-")
    assert to.endswith("@example.com")
    assert held.count(to) >= 3


def test_a_recording_can_be_read(shell: Shell, work: Path):
    shell.cell("%record")
    shell.cell("%chat guide The weather in Ås")
    text = (work / CASSETTE).read_text(encoding="utf-8")
    [first, _] = lines(work / CASSETTE)

    assert "Ås" in text
    assert [*first] == ["cassette_version", "model", "notice", "capabilities", "request", "digest", "responses"]
    assert first["request"]["tools"][0]["name"] == "weather"
    assert "Be kind." in first["request"]["instruction"]


def test_without_a_cassette_there_is_nothing_to_replay(shell: Shell, work: Path):
    missing = shell.fails("%replay")
    assert missing.startswith("InputError: ") and f"'{CASSETTE}'" in missing and "%record" in missing
    (work / "demo.jsonl").touch()
    near = shell.fails("%replay --file dmo")
    assert "'dmo'; did you mean 'demo.jsonl'?" in near and "%record --file dmo" in near
    far = shell.fails("%replay --file nope")
    assert "'nope'; " in far and "demo.jsonl" in far and "%record --file nope" in far
    assert current_tap() is None
    assert "off already" in str(shell.cell("%replay off"))


MODES = "use auto, record, replay or off"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("%replay atuo", f"InputError: %replay: unknown mode 'atuo'; {MODES}"),
        ("%record auto", "InputError: %record: unknown mode 'auto'; use off or record"),
        (
            "%replay x.jsonl",
            f"InputError: %replay: unknown mode 'x.jsonl'; {MODES}; for a path type %replay --file x.jsonl",
        ),
        ("%replay off --file x", "InputError: %replay off takes no --file; leave it out"),
    ],
)
def test_an_invalid_line_is_reported(line: str, said: str, shell: Shell, work: Path):
    assert shell.fails(line) == said


def test_the_cassette_is_named_as_the_notebook_or_as_it_is_said(
    shell: Shell, work: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("JPY_SESSION_NAME", "lessons/first steps.ipynb")
    assert "cassettes/first steps" in str(shell.cell("%record"))
    shell.cell("%record off")
    shell.cell('%config AdkNb.cassette_dir = "tapes"')
    assert "tapes/first steps" in str(shell.cell("%record"))
    in_file = shell.cell("%record --file my.jsonl")
    assert "my.jsonl" in str(in_file)
    shell.cell("%chat guide The weather in Oslo")

    assert len(lines(work / "my.jsonl")) == 2
    assert not (work / "tapes").exists()


@pytest.mark.parametrize("mode", ["auto", "record", "replay"])
def test_the_environment_can_say_how_the_notebooks_cassette_is_used(
    mode: str, shell: Shell, work: Path, monkeypatch: pytest.MonkeyPatch
):
    shell.cell("%record")
    shell.cell("%chat guide The weather in Oslo")
    shell.cell("%record off")
    monkeypatch.setenv("ADK_NB_REPLAY", mode)
    start_over(shell)
    reply = shell.cell("%chat guide The weather in Oslo")

    assert "Oslo" in reply.text
    assert ('of model "offline"' in view_of_reply(reply).notice) is (mode != "record")
    assert len(lines(work / CASSETTE)) == 2


def test_what_the_environment_says_counts_before_what_the_notebook_says(
    shell: Shell, work: Path, monkeypatch: pytest.MonkeyPatch
):
    shell.cell("%replay auto --file cassettes/mine.jsonl")
    shell.cell("%chat guide The weather in Oslo")
    monkeypatch.setenv("ADK_NB_REPLAY", "replay")
    start_over(shell)
    shell.cell("%replay auto --file cassettes/mine.jsonl")

    assert "Oslo" in shell.cell("%chat guide The weather in Oslo").text
    assert "message 1 differs" in shell.fails("%chat --new guide The weather in Rome")
    assert len(lines(work / "cassettes/mine.jsonl")) == 2


def test_what_was_recorded_with_a_key_is_replayed_without(shell: Shell, work: Path, monkeypatch: pytest.MonkeyPatch):
    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    shell.cell("%record")
    shell.cell("%chat guide The weather in Oslo")
    shell.cell("%record off")
    held = (work / CASSETTE).read_text(encoding="utf-8").replace('"model": "offline"', '"model": "gemini-2.5-flash"')
    (work / CASSETTE).write_text(held, encoding="utf-8")
    for mode in ("replay", "auto"):
        start_over(shell)
        shell.cell(f"%replay {mode}")
        assert "Oslo" in shell.cell("%chat guide The weather in Oslo").text
        assert "message 1 differs" in shell.fails("%chat --new guide The weather in Rome")

    start_over(shell)
    shell.cell("%replay auto")
    shell.cell("%%agent guide -t weather -m gemini-2.5-flash\nBe kind.")
    said = shell.fails("%chat guide The weather in Rome")
    assert "message 1 differs" in said
    assert "'gemini-2.5-flash' needs" in said


def test_a_streamed_answer_comes_in_the_pieces_it_was_recorded_in(shell: Shell, work: Path):
    shell.cell("%record")
    shell.cell("%chat guide hello")
    pieces = Cassette(work / CASSETTE).recordings[-1].responses

    assert len(pieces) > 3
    assert pieces[0].response["partial"]
    assert all(one.after >= 0 for one in pieces)


def test_a_miss_says_how_its_question_is_taken_back_so_that_the_next_one_matches(shell: Shell, work: Path):
    shell.cell("%record")
    shell.cell("%chat guide The weather in Oslo")
    shell.cell("%chat guide The weather in Rome")
    shell.cell("%replay")
    shell.cell("%chat --new guide The weather in Oslo")

    once = shell.fails("%chat guide Rom?")
    assert "%rewind " in once and "%rewind 2" not in once
    assert shell.fails("%chat guide The weather in Rome").endswith("%rewind 2")
    shell.cell("%rewind 2")
    assert shell.cell("%chat guide The weather in Rome").text == "Sunny in Rome."
    again = shell.fails("%chat guide And Bergen?")
    assert "%rewind --rerun" in again


@pytest.mark.parametrize("line", ["%record --file my.ipynb", "%replay auto --file my.ipynb", "%replay --file my.ipynb"])
def test_a_file_that_is_no_cassette_stays_as_it_is(line: str, shell: Shell, work: Path):
    (work / "my.ipynb").write_text('{\n "cells": []\n}\n', encoding="utf-8")

    message = shell.fails(line)
    assert message.startswith("InputError: 'my.ipynb' ") and message.endswith("--file my.jsonl")
    shell.cell("%chat guide The weather in Oslo")
    assert (work / "my.ipynb").read_text(encoding="utf-8") == '{\n "cells": []\n}\n'


def test_the_notebooks_own_place_is_looked_at_before_it_is_written_to(
    shell: Shell, work: Path, monkeypatch: pytest.MonkeyPatch
):
    (work / "cassettes").mkdir()
    (work / CASSETTE).write_text("my notes", encoding="utf-8")
    monkeypatch.setenv("ADK_NB_REPLAY", "record")
    start_over(shell)

    message = shell.fails("%chat guide The weather in Oslo")
    assert f"'{CASSETTE}' " in message and "--file my.jsonl" in message
    assert (work / CASSETTE).read_text(encoding="utf-8") == "my notes"


def test_a_place_that_can_be_no_cassette_is_refused_in_the_line(shell: Shell, work: Path):
    folder = shell.fails("%record --file .")
    assert folder.startswith("InputError: '.' ") and folder.endswith("--file my.jsonl")
    no_folder = shell.fails("%record --file nope/x.jsonl")
    assert no_folder.startswith("InputError: ") and str(work / "nope") in no_folder
    assert not (work / "nope").exists() and current_tap() is None


def test_a_cassette_whose_first_line_was_cut_off_can_be_recorded_anew(shell: Shell, work: Path):
    (work / "my.jsonl").write_text('{"cassette_version": 1, "mod', encoding="utf-8")

    recording = shell.cell("%record --file my.jsonl")
    assert "replaces" in str(recording)
