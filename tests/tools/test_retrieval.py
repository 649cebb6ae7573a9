"""Tools that find passages: in files, and with retrievers in the shape of LlamaIndex's."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from adk_nb import sync
from adk_nb.agents import LlmAgent
from adk_nb.errors import CloudServiceError, ConfigurationError
from adk_nb.memory import VertexAiRagMemoryService
from adk_nb.models.scripted_llm import ScriptedLlm, call
from adk_nb.tools import BaseTool
from adk_nb.tools.retrieval import BaseRetrievalTool, FilesRetrieval, LlamaIndexRetrieval, VertexAiRagRetrieval
from tests.support.talk import Talk, guide


def found(tool: BaseTool, **sent: Any) -> Any:
    events = Talk(guide(call(tool.name, **sent), "done", tools=[tool])).say()
    [response] = [one.response for event in events for one in event.get_function_responses()]
    return response


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    (tmp_path / "trips").mkdir()
    (tmp_path / "trips" / "oslo.md").write_text(
        "# Oslo\n\nThe ferry to Oslo leaves at nine.\n\n" + "Filler words. " * 80 + "\n\nTickets cost forty crowns.",
        encoding="utf-8",
    )
    (tmp_path / "tea.txt").write_text("Green tea is brewed at eighty degrees.", encoding="utf-8")
    (tmp_path / "photo.txt").write_bytes(b"\xff\xfe\x00tea")
    (tmp_path / ".secret.txt").write_text("Secret tea.", encoding="utf-8")
    return tmp_path


def retrieval(folder: Path, **more: Any) -> FilesRetrieval:
    return FilesRetrieval(name="notes", description="My notes.", input_dir=folder, **more)


def test_passages_that_have_the_words_are_found_the_best_first(notes: Path):
    tool = retrieval(notes)

    assert found(tool, query="When do ferries leave for Oslo?") == {
        "passages": [{"file": "trips/oslo.md", "text": "# Oslo\n\nThe ferry to Oslo leaves at nine."}]
    }
    assert [one["file"] for one in found(tool, query="Tea, degree; ticket?")["passages"]] == [
        "tea.txt",
        "trips/oslo.md",
    ]
    assert [
        one["file"] for one in found(retrieval(notes, max_results=1), query="Tea, degree; ticket?")["passages"]
    ] == ["tea.txt"]


@pytest.mark.parametrize(
    "query", ["nothing of it", '"', "* OR (", "tea AND NOT text:", "NEAR(", "?!", " ".join(map(str, range(5_000)))]
)
def test_what_finds_nothing_or_looks_like_a_search_language_is_no_error(notes: Path, query: str):
    assert all(one["file"] == "tea.txt" for one in found(retrieval(notes), query=query)["passages"])


def test_a_changed_file_is_read_again(notes: Path):
    tool = retrieval(notes)
    assert found(tool, query="coffee") == {"passages": []}

    (notes / "tea.txt").write_text("Coffee instead.", encoding="utf-8")
    os.utime(notes / "tea.txt", ns=(1, 1))

    assert found(tool, query="coffee") == {"passages": [{"file": "tea.txt", "text": "Coffee instead."}]}
    assert found(tool, query="degrees") == {"passages": []}


def test_a_link_out_of_the_folder_is_not_followed(notes: Path, tmp_path_factory: pytest.TempPathFactory):
    outside = tmp_path_factory.mktemp("outside") / "plans.txt"
    outside.write_text("Secret plans.", encoding="utf-8")
    (notes / "plans.txt").symlink_to(outside)
    (notes / "folder").symlink_to(outside.parent, target_is_directory=True)

    assert found(retrieval(notes), query="plans") == {"passages": []}


def test_a_folder_that_is_none_is_refused(tmp_path: Path):
    with pytest.raises(ConfigurationError, match=r"needs a folder"):
        retrieval(tmp_path / "nowhere")


def test_a_query_is_text(notes: Path):
    tool = retrieval(notes)

    assert tool.declaration and tool.declaration.parameters_json_schema["required"] == ["query"]
    for sent in ({}, {"query": 3}, {"query": " "}):
        assert "query must be text" in found(tool, **sent)["error"]


def test_a_retriever_of_another_library_is_asked():
    asked: list[str] = []

    def retrieve(query: str) -> list[Any]:
        asked.append(query)
        return [SimpleNamespace(text="first"), SimpleNamespace(text="second")]

    tool = LlamaIndexRetrieval(name="docs", description="Docs.", retriever=SimpleNamespace(retrieve=retrieve))

    assert found(tool, query="tea") == {"passages": ["first", "second"]} and asked == ["tea"]
    with pytest.raises(ConfigurationError, match=r"index\.as_retriever"):
        LlamaIndexRetrieval(name="docs", description="Docs.", retriever=object())


def test_a_retrieval_of_one_s_own_says_only_what_it_finds():
    class Capitals(BaseRetrievalTool):
        async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> Any:
            return {"norway": "Oslo"}.get(args["query"].lower(), "nothing found")

    assert found(Capitals(name="capitals", description="Capitals."), query="Norway") == {"result": "Oslo"}


def test_a_client_of_google_cloud_can_be_named_and_says_at_its_use_what_to_use():
    corpora = ["projects/p/locations/l/ragCorpora/1"]
    tool = VertexAiRagRetrieval(name="docs", description="Finds.", rag_corpora=corpora, similarity_top_k=3)
    talk = Talk(LlmAgent(name="a", model=ScriptedLlm("done"), tools=[tool]))
    memory = VertexAiRagMemoryService("projects/p/locations/l/ragCorpora/1", similarity_top_k=3)

    talk.say()

    assert isinstance(talk.error, CloudServiceError) and "FilesRetrieval(name='docs'" in str(talk.error)
    with pytest.raises(CloudServiceError, match="SqliteMemoryService"):
        sync.run(memory.search_memory(app_name="app", user_id="u", query="x"))
    with pytest.raises(CloudServiceError, match="SqliteMemoryService"):
        sync.run(memory.add_session_to_memory(talk.stored()))
