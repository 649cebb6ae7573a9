"""Tools made with LangChain itself, which `make servers` has installed."""

import importlib
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from adk_nb.models.scripted_llm import call
from adk_nb.tools.langchain_tool import LangchainTool
from tests.support.talk import Talk, guide, summaries

pytestmark = pytest.mark.servers
PACKAGES = Path(__file__).parents[2] / "build" / "servers" / "python"


@pytest.fixture(scope="module")
def langchain() -> Any:
    sys.path.append(str(PACKAGES))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tools = importlib.import_module("langchain_core.tools")
    yield tools
    sys.path.remove(str(PACKAGES))


def results(tool: LangchainTool, **sent: Any) -> Any:
    events = Talk(guide(call(tool.name, **sent), "done", tools=[tool])).say()
    return [one.response for event in events for one in event.get_function_responses()]


def told_of(tool: LangchainTool) -> tuple[dict[str, Any], list[str]]:
    assert tool.declaration
    schema: dict[str, Any] = tool.declaration.parameters_json_schema
    return schema["properties"], schema["required"]


def test_a_decorated_function(langchain: Any):
    @langchain.tool
    def add(a: int, b: int = 2) -> int:
        """Add two numbers."""
        return a + b

    tool = LangchainTool(add)

    assert (tool.name, tool.description) == ("add", "Add two numbers.")
    assert told_of(tool) == ({"a": {"type": "integer"}, "b": {"default": 2, "type": "integer"}}, ["a"])
    assert results(tool, a=1.0) == [{"result": 3}]
    assert "a: Input should be a valid integer" in results(tool, a="one")[0]["error"]


def test_an_async_structured_tool_with_a_schema_of_its_own(langchain: Any):
    class Query(BaseModel):
        text: str = Field(description="the words")
        tags: list[str] = []

    async def search(text: str, tags: list[str]) -> dict[str, Any]:
        return {"text": text, "tags": tags}

    made = langchain.StructuredTool.from_function(
        coroutine=search, name="Search the web", description="Searches.", args_schema=Query
    )
    tool = LangchainTool(made)

    assert tool.name == "Search_the_web"
    assert told_of(tool)[0]["text"] == {"description": "the words", "type": "string"}
    assert results(tool, text="tea", tags=["hot"]) == [{"text": "tea", "tags": ["hot"]}]


def test_a_tool_of_one_text(langchain: Any):
    tool = LangchainTool(langchain.Tool(name="shout", func=lambda text: text.upper(), description="Shouts."))

    assert told_of(tool) == ({"tool_input": {"type": "string"}}, ["tool_input"])
    assert results(tool, tool_input="tea") == [{"result": "TEA"}]


def test_a_class_of_one_s_own_whose_manager_no_model_is_told_of(langchain: Any):
    class Look(langchain.BaseTool):
        name: str = "look"
        description: str = "Looks."

        def _run(self, where: str, run_manager: Any = None) -> str:
            return f"{where}: nothing"

    tool = LangchainTool(Look())

    assert told_of(tool) == ({"where": {"type": "string"}}, ["where"])
    assert results(tool, where="sky") == [{"result": "sky: nothing"}]


def test_arguments_that_langchain_injects_are_not_declared(langchain: Any):
    @langchain.tool
    def pay(amount: int, key: Annotated[str, langchain.InjectedToolArg] = "secret") -> str:
        """Pay."""
        return f"{amount} with {key}"

    tool = LangchainTool(pay)

    assert told_of(tool) == ({"amount": {"type": "integer"}}, ["amount"])
    assert results(tool, amount=1, key="stolen") == [{"result": "1 with secret"}]


def test_a_schema_in_json(langchain: Any):
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
    made = langchain.StructuredTool(name="j", description="J.", args_schema=schema, func=lambda **given: given)

    assert told_of(LangchainTool(made)) == ({"x": {"type": "integer"}}, ["x"])
    assert results(LangchainTool(made), x=1) == [{"x": 1}]


def test_an_answer_that_is_returned_directly_and_a_failure_that_is_told(langchain: Any):
    @langchain.tool(return_direct=True)
    def weather(city: str) -> str:
        """Weather."""
        if city == "?":
            raise langchain.ToolException("no such city")
        return f"{city}: sunny"

    tool = LangchainTool(weather)

    assert summaries(Talk(guide(call("weather", city="Oslo"), tools=[tool])).say())[-1][1].endswith("Oslo: sunny .")
    assert results(tool, city="?") == [{"error": "ToolException: no such city"}]
