"""Files that come with a message, kept as artifacts."""

from pathlib import Path
from typing import Any

import pytest

from adk_nb import Runner, sync, types
from adk_nb.agents import LlmAgent
from adk_nb.artifacts import ArtifactVersion, FileArtifactService, InMemoryArtifactService
from adk_nb.errors import ConfigurationError
from adk_nb.models import ScriptedLlm
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


class Bucket(InMemoryArtifactService):
    """Keeps files where a model can fetch them."""

    async def get_artifact_version(self, **where: Any) -> ArtifactVersion | None:
        kept = await super().get_artifact_version(**where)
        return kept and kept.model_copy(update={"canonical_uri": f"gs://bucket/{where['filename']}/{kept.version}"})


@pytest.mark.parametrize(
    ("service", "options", "parts"),
    [
        (Bucket, {}, ['[Uploaded Artifact: "a.csv"]', "gs://bucket/a.csv/0"]),
        (Bucket, {"attach_file_reference": False}, ['[Uploaded Artifact: "a.csv"]']),
        (InMemoryArtifactService, {}, ['[Uploaded Artifact: "a.csv"]']),
    ],
)
def test_the_address_of_a_file_stays_in_the_message_if_a_model_can_fetch_it(
    service: type[InMemoryArtifactService], options: dict[str, bool], parts: list[str]
):
    model = ScriptedLlm("thanks")
    talk = Talk(LlmAgent(name="a", model=model), plugins=[SaveFilesAsArtifactsPlugin(**options)])
    talk.runner.artifact_service = service()

    talk.say([file("a.csv")])

    told = model.requests[0].contents[-1].parts or []
    assert [part.text or (part.file_data and part.file_data.file_uri) for part in told] == parts
