"""What is written down of a run."""

import json
from pathlib import Path
from typing import Any

import pytest

from adk_nb import types
from adk_nb.errors import PluginError, StorageError
from adk_nb.models import call
from adk_nb.plugins import DebugLoggingPlugin
from tests.support.talk import Talk, boom, guide, look


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_turn_is_written_down_whole(tmp_path: Path):
    path = tmp_path / "runs" / "debug.jsonl"
    agent = guide(call("look"), "done", tools=[look], instruction="Help.", output_key="k")
    talk = Talk(agent, plugins=[DebugLoggingPlugin(path)])

    events = talk.say("hi")

    entries = read(path)
    assert [entry["kind"] for entry in entries] == [
        "user_message", "run_begins", "agent_begins",
        "request", "response", "event", "tool_called", "tool_answered", "event",
        "request", "response", "event",
        "agent_ends", "run_ends",
    ]  # fmt: skip
    assert {entry["invocation_id"] for entry in entries} == {events[0].invocation_id}
    assert {(entry["session_id"], entry["agent"]) for entry in entries} == {("s", "guide")}
    assert entries[0]["content"]["parts"] == [{"text": "hi"}]
    assert entries[3]["config"]["system_instruction"].startswith("Help.")
    assert (entries[6]["tool"], entries[6]["args"], entries[7]["result"]) == ("look", {}, "seen")
    assert entries[11]["event"]["id"] == events[-1].id
    assert entries[-1]["state"] == {"k": "done"}


def test_errors_are_written_down(tmp_path: Path):
    talk = Talk(
        guide(call("boom"), tools=[boom], tool_errors="raise"), plugins=[DebugLoggingPlugin(tmp_path / "debug.jsonl")]
    )

    talk.say("hi")

    entries = read(tmp_path / "debug.jsonl")
    assert [entry["kind"] for entry in entries][-4:] == ["tool_failed", "agent_failed", "event", "run_failed"]
    assert entries[-1]["error"] == "ValueError: bad"


def test_instruction_state_and_keys_are_left_out(tmp_path: Path):
    path = tmp_path / "debug.jsonl"
    agent = guide(
        "hello",
        instruction="Whisper.",
        generate_content_config=types.GenerateContentConfig(
            temperature=0.5, http_options=types.HttpOptions(headers={"authorization": "sesame"})
        ),
    )
    plugin = DebugLoggingPlugin(path, include_session_state=False, include_system_instruction=False)

    Talk(agent, plugins=[plugin]).say("hi")

    text = path.read_text(encoding="utf-8")
    assert "sesame" not in text
    assert "Whisper" not in text
    assert [entry["config"]["temperature"] for entry in read(path) if entry["kind"] == "request"] == [0.5]
    assert "state" not in read(path)[-1]


def test_what_is_no_json_is_written_down_too(tmp_path: Path):
    def odd() -> Any:
        """Answers oddly."""
        loop: list[Any] = [object(), b"\xff"]
        loop.append(loop)
        return loop

    path = tmp_path / "debug.jsonl"
    talk = Talk(guide(call("odd"), "done", tools=[odd]), plugins=[DebugLoggingPlugin(path)])

    assert talk.say("hi")[-1].text == "done"

    [entry] = [entry for entry in read(path) if entry["kind"] == "tool_answered"]
    assert "object object" in entry["result"]


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path):
    talk = Talk(guide("hello"), plugins=[DebugLoggingPlugin(tmp_path)])

    talk.say("hi")

    assert isinstance(talk.error, PluginError)
    assert isinstance(talk.error.__cause__, StorageError)
    assert str(tmp_path) in str(talk.error)


@pytest.mark.parametrize("turns", [1, 3])
def test_runs_are_added_to_the_file(tmp_path: Path, turns: int):
    path = tmp_path / "debug.jsonl"
    talk = Talk(guide(*["hello"] * turns), plugins=[DebugLoggingPlugin(path)])

    for _ in range(turns):
        talk.say("hi")

    assert [entry["kind"] for entry in read(path)].count("run_ends") == turns
