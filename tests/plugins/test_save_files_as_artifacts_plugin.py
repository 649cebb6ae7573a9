"""Files that come with a message, kept as artifacts."""

from pathlib import Path

import pytest

from adk_nb import Runner, sync, types
from adk_nb.artifacts import FileArtifactService
from adk_nb.errors import ConfigurationError
from adk_nb.plugins import SaveFilesAsArtifactsPlugin
from adk_nb.sessions import InMemorySessionService
from tests.support.talk import Talk, guide, requests


def file(name: str | None, data: bytes = b"1,2") -> types.Part:
    return types.Part(inline_data=types.Blob(data=data, mime_type="text/csv", display_name=name))


def load(talk: Talk, filename: str) -> types.Part | None:
    service = talk.runner.artifact_service
    assert service is not None
    return sync.run(service.load_artifact(app_name="app", user_id="u", session_id="s", filename=filename))


def test_a_file_is_saved_under_its_name_and_the_model_is_told():
    agent = guide("thanks")
    talk = Talk(agent, plugins=[SaveFilesAsArtifactsPlugin()])

    events = talk.say([types.Part(text="here"), file("a.csv")])

    assert requests(agent) == [[("user", 'here; [Uploaded Artifact: "a.csv"]')]]
    assert [event.actions.artifact_delta for event in events] == [{"a.csv": 0}, {}]
    kept = load(talk, "a.csv")
    assert kept is not None
    assert kept.inline_data is not None
    assert (kept.inline_data.data, kept.inline_data.mime_type) == (b"1,2", "text/csv")


@pytest.mark.parametrize("name", [None, "../../etc/passwd"])
def test_a_file_without_a_name_that_can_be_gets_one(name: str | None, tmp_path: Path):
    talk = Talk(guide("thanks"), plugins=[SaveFilesAsArtifactsPlugin()])
    talk.runner.artifact_service = FileArtifactService(str(tmp_path))

    events = talk.say([types.Part(text="here"), file(name)])

    filename = f"artifact_{events[0].invocation_id}_1"
    assert events[0].actions.artifact_delta == {filename: 0}
    assert load(talk, filename) is not None


def test_words_alone_are_left_as_they_are():
    agent = guide("hello")

    events = Talk(agent, plugins=[SaveFilesAsArtifactsPlugin()]).say("hi")

    assert requests(agent) == [[("user", "hi")]]
    assert len(events) == 1


def test_a_runner_that_keeps_no_artifacts_is_told_what_to_write():
    runner = Runner(
        app_name="app",
        agent=guide("hello"),
        session_service=InMemorySessionService(),
        plugins=[SaveFilesAsArtifactsPlugin()],
        auto_create_session=True,
    )

    with pytest.raises(RuntimeError, match="artifact service") as told:
        list(runner.run(user_id="u", session_id="s", new_message=[file("a.csv")]))

    assert isinstance(told.value.__cause__, ConfigurationError)
