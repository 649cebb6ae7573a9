"""Tools in the shape of LangChain's and CrewAI's: what a model is told of them, and how they are called."""

from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel, Field, v1

from adk_nb.errors import ConfigurationError
from adk_nb.models.scripted_llm import call
from adk_nb.tools import FunctionTool
from adk_nb.tools.crewai_tool import CrewaiTool
from adk_nb.tools.fingerprint import fingerprint
from adk_nb.tools.langchain_tool import LangchainTool
from tests.support.talk import Talk, guide, summaries

MakesTool = type[LangchainTool] | type[CrewaiTool]
BOTH = pytest.mark.parametrize("kind", [LangchainTool, CrewaiTool])


class Query(BaseModel):
    """What is searched."""

    text: str = Field(description="the words")
    limit: int = Field(3, ge=1)


class Search:
    """As a class of one's own is, which CrewAI and LangChain run by keyword."""

    name = "Search Tool"
    description = "Searches."
    args_schema: Any = Query

    def run(self, *args: Any, **kwargs: Any) -> str:
        return self._run(*args, **kwargs)

    def _run(self, text: str, limit: int = 3) -> str:
        return f"{limit} of {text}"


class Wrapper:
    """As LangChain's community utilities are: a method, and nothing that says so."""

    def run(self, query: str, results: int = 2) -> list[str]:
        """Look the web up.

        Args:
            query: what for
        """
        return [query] * results


class Chained(Search):
    """As LangChain's own tools are."""

    async def ainvoke(self, given: dict[str, Any]) -> str:
        return "invoked with " + self._run(**given)


def schema(tool: FunctionTool) -> dict[str, Any]:
    assert tool.declaration
    return tool.declaration.parameters_json_schema or {}


def results(tool: FunctionTool, **sent: Any) -> Any:
    events = Talk(guide(call(tool.name, **sent), "done", tools=[tool])).say()
    return [one.response for event in events for one in event.get_function_responses()]


@BOTH
def test_the_schema_of_a_tool_is_told_and_checks_what_a_model_sends(kind: MakesTool):
    tool = kind(Search())

    assert tool.declaration and tool.description == "Searches."
    assert schema(tool)["properties"] == {
        "text": {"description": "the words", "type": "string"},
        "limit": {"default": 3, "minimum": 1, "type": "integer"},
    }
    assert schema(tool)["required"] == ["text"]
    assert results(tool, text="tea") == [{"result": "3 of tea"}]
    assert results(tool, text="tea", limit=2.0) == [{"result": "2 of tea"}]
    assert "limit: Input should be greater than or equal to 1" in results(tool, text="tea", limit=0)[0]["error"]
    assert "text are missing" in results(tool)[0]["error"]


def test_names_are_such_that_a_model_can_call_them():
    assert LangchainTool(Search()).name == "Search_Tool"
    assert CrewaiTool(Search()).name == "search_tool"
    assert LangchainTool(Search(), name="look", description="Looks.").name == "look"
    given = CrewaiTool(Search(), name="look", description="Looks.")
    assert (given.name, given.description) == ("look", "Looks.")


@BOTH
def test_without_a_schema_the_method_says_what_it_takes(kind: MakesTool):
    tool = kind(Wrapper(), name="web", description="Searches the web.")

    assert schema(tool)["properties"] == {
        "query": {"description": "what for", "type": "string"},
        "results": {"default": 2, "type": "integer"},
    }
    assert results(tool, query="tea") == [{"result": ["tea", "tea"]}]


@BOTH
def test_a_function_in_a_tool_is_enough(kind: MakesTool):
    def double(x: int) -> int:
        """Double."""
        return 2 * x

    tool = kind(SimpleNamespace(func=double))

    assert tool.name == "double" and results(tool, x=2) == [{"result": 4}]


def test_a_langchain_tool_is_invoked_as_langchain_does():
    assert results(LangchainTool(Chained()), text="tea") == [{"result": "invoked with 3 of tea"}]


def test_a_schema_in_json_and_one_of_pydantic_1_are_told_as_they_are():
    class Old(v1.BaseModel):
        text: str

    plain = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    for given in (plain, Old):
        tool = LangchainTool(SimpleNamespace(name="search", description="", args_schema=given, run=Search().run))
        assert schema(tool)["required"] == ["text"] and schema(tool)["properties"]["text"]["type"] == "string"
        assert results(tool, text="tea") == [{"result": "3 of tea"}]
        assert "text are missing" in results(tool)[0]["error"]


def test_an_async_crewai_tool_runs_where_a_loop_runs():
    class Later(Search):
        async def _run(self, text: str, limit: int = 3) -> str:
            return f"later {text}"

        def run(self, *args: Any, **kwargs: Any) -> str:
            raise AssertionError("CrewAI starts a loop here")

    assert results(CrewaiTool(Later()), text="tea") == [{"result": "later tea"}]


def test_a_tool_that_returns_directly_ends_the_turn_unless_it_failed():
    chained = Chained()
    chained.return_direct = True
    tool = LangchainTool(chained)

    direct = Talk(guide(call(tool.name, text="tea"), "never", tools=[tool])).say()
    mended = Talk(guide(call(tool.name), "Sorry.", tools=[tool])).say()

    assert summaries(direct)[-1][1].endswith("invoked with 3 of tea .") and direct[-1].actions.skip_summarization
    assert mended[-1].text == "Sorry."


@BOTH
def test_an_error_of_a_tool_is_reported_to_the_model(kind: MakesTool):
    class Broken(Search):
        def _run(self, text: str, limit: int = 3) -> str:
            raise ValueError("no tea")

    assert results(kind(Broken()), text="tea") == [{"error": "ValueError: no tea"}]


@BOTH
def test_an_approval_holds_for_the_code_of_the_tool(kind: MakesTool):
    class Other(Search):
        def _run(self, text: str, limit: int = 3) -> str:
            return "nothing"

    assert fingerprint(kind(Search())) == fingerprint(kind(Search()))
    assert fingerprint(kind(Search())) != fingerprint(kind(Other()))


@BOTH
def test_a_person_is_asked_on_a_condition_on_the_arguments(kind: MakesTool):
    tool = kind(Search(), require_confirmation="limit > 5")

    assert results(tool, text="tea", limit=5) == [{"result": "5 of tea"}]
    assert "result" not in str(results(tool, text="tea", limit=6))
    with pytest.raises(ConfigurationError, match="'limits'"):
        kind(Search(), require_confirmation="limits > 5")


@BOTH
def test_what_cannot_be_called_is_refused(kind: MakesTool):
    with pytest.raises(ConfigurationError, match=r"has no .*run.*pass a tool"):
        kind(SimpleNamespace(name="x"))
