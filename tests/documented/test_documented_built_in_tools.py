"""What ADK's page on built-in tools shows, as scripts of its kind."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from adk_nb import types
from adk_nb.agents import Agent, InvocationContext, LlmAgent, SequentialAgent
from adk_nb.errors import ConfigurationError
from adk_nb.models import Gemini, LlmRequest, ScriptedLlm, call
from adk_nb.sessions import InMemorySessionService
from adk_nb.tools import (
    BaseTool,
    ToolContext,
    VertexAiSearchTool,
    agent_tool,
    built_in_code_execution,
    enterprise_web_search,
    google_maps_grounding,
    google_search,
    register_search_backend,
    url_context,
)
from adk_nb.tools.google_search_tool import GoogleSearchTool
from tests.support.gemini_server import NAME, SESSION, USER, Script, ask, running, stand_in
from tests.support.talk import Talk, look


@pytest.fixture(autouse=True)
def gemini() -> Iterator[Script]:
    with stand_in() as script:
        yield script


def request_of(tool: BaseTool, agent: Any, model: str | None = NAME) -> LlmRequest:
    """A request that a tool prepared in the context of an agent, outside of a run."""
    service = InMemorySessionService()
    session = service.create_session(app_name="app", user_id="u", session_id="s")
    context = ToolContext(InvocationContext(agent=agent, session=session, session_service=service))
    request = LlmRequest(model=model)
    asyncio.run(tool.process_llm_request(tool_context=context, llm_request=request))
    return request


@pytest.mark.parametrize("agent", [SequentialAgent(name="steps"), None], ids=["a sequence", "none"])
@pytest.mark.parametrize(
    ("tool", "field"),
    [
        (google_search, "google_search"),
        (VertexAiSearchTool(data_store_id="stores/s"), "retrieval"),
        (built_in_code_execution, "code_execution"),
    ],
)
def test_in_the_context_of_an_agent_without_a_model_the_one_of_the_request_counts(
    tool: BaseTool, field: str, agent: Any
):
    [setting] = request_of(tool, agent).config.tools or []
    assert getattr(setting, field) is not None

    with pytest.raises(ConfigurationError, match="gpt-4o"):
        request_of(tool, agent, model="gpt-4o")
    with pytest.raises(ConfigurationError, match="names none"):
        request_of(tool, agent, model=None)


def test_a_search_with_a_model_of_its_own_needs_no_other():
    request = request_of(GoogleSearchTool(model=NAME), SequentialAgent(name="steps"), model="gpt-4o")

    assert request.model == NAME and request.config.tools


def test_google_search_is_switched_on_in_the_request(gemini: Script):
    gemini.answers("There is news.")
    agent = Agent(name="basic_search_agent", model=NAME, description="Searches.", tools=[google_search])

    assert ask(running(agent), "what is new?") == ["There is news."]
    assert gemini.requests[0].config.tools == [types.Tool(google_search=types.GoogleSearch())]


def code_and_result(code: str, output: str) -> list[types.Part]:
    language, fine = types.Language.PYTHON, types.Outcome.OUTCOME_OK
    return [
        types.Part(executable_code=types.ExecutableCode(code=code, language=language)),
        types.Part(code_execution_result=types.CodeExecutionResult(outcome=fine, output=output)),
    ]


def test_code_that_the_service_ran_is_told_with_what_it_gave(gemini: Script):
    gemini.answers([*code_and_result("(5 + 7) * 3", "36\n"), types.Part(text="36")], "3628800")
    agent = LlmAgent(name="calculator_agent", model=NAME, tools=[built_in_code_execution], instruction="Calculate.")
    runner = running(agent)

    async def call_agent(query: str) -> list[str]:
        content = types.Content(role="user", parts=[types.Part(text=query)])
        texts: list[str] = []
        async for event in runner.run_async(user_id=USER, session_id=SESSION, new_message=content):
            for part in (event.content and event.content.parts) or []:
                if part.executable_code:
                    texts.append(f"code {part.executable_code.code}")
                elif part.code_execution_result:
                    ran = part.code_execution_result
                    texts.append(f"{ran.outcome and ran.outcome.value} {ran.output}")
                elif part.text and not part.text.isspace():
                    texts.append(part.text.strip())
        return texts

    async def main() -> list[list[str]]:
        return [await call_agent("(5 + 7) * 3?"), await call_agent("10 factorial?")]

    assert asyncio.run(main()) == [["code (5 + 7) * 3", "OUTCOME_OK 36\n", "36"], ["3628800"]]
    assert gemini.requests[0].config.tools == [types.Tool(code_execution=types.ToolCodeExecution())]


def test_asyncio_run_in_a_cell_is_pythons_own_and_says_so():
    async def main() -> None: ...

    async def cell() -> str:
        coroutine = main()
        try:
            asyncio.run(coroutine)
        except RuntimeError as error:
            coroutine.close()
            return str(error)
        return ""

    assert "running event loop" in asyncio.run(cell())


STORE = "projects/1/locations/us-central1/collections/default_collection/dataStores/mine"
ENGINE = "projects/1/locations/us-central1/collections/default_collection/engines/mine"


def test_a_store_of_documents_is_named_in_the_request(gemini: Script):
    gemini.answers("It says so.")
    tool = VertexAiSearchTool(data_store_id=STORE, max_results=3)
    agent = LlmAgent(name="doc_qa_agent", model=NAME, tools=[tool], instruction=f"Answer from {STORE}.")

    assert ask(running(agent), "what does it say?") == ["It says so."]
    search = types.VertexAISearch(datastore=STORE, max_results=3)
    assert gemini.requests[0].config.tools == [types.Tool(retrieval=types.Retrieval(vertex_ai_search=search))]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "got neither"),
        ({"data_store_id": STORE, "search_engine_id": ENGINE}, "got both"),
        ({"data_store_id": STORE, "data_store_specs": [types.VertexAISearchDataStoreSpec()]}, "pass search_engine_id"),
    ],
)
def test_a_store_of_documents_is_named_by_one_id(fields: dict[str, Any], text: str):
    with pytest.raises(ValueError, match=text):
        VertexAiSearchTool(**fields)


@pytest.mark.parametrize(
    ("tool", "field"),
    [
        (google_search, "google_search"),
        (url_context, "url_context"),
        (google_maps_grounding, "google_maps"),
        (enterprise_web_search, "enterprise_web_search"),
        (VertexAiSearchTool(search_engine_id=ENGINE), "retrieval"),
    ],
    ids=lambda item: getattr(item, "name", item),
)
def test_a_model_whose_service_does_not_search_is_refused_by_name(tool: BaseTool, field: str):
    talk = Talk(LlmAgent(name="a", model=ScriptedLlm("never"), tools=[tool]))
    talk.say()

    assert isinstance(talk.error, ConfigurationError) and isinstance(talk.error, ValueError)
    assert str(talk.error).startswith(
        f"agent 'a': tool {tool.name!r} needs a model whose service has {field}, and that"
    )
    assert "'scripted'" in str(talk.error)


def test_which_gemini_has_which_search(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("GOOGLE_GENAI_USE_VERTEXAI", raising=False)
    assert Gemini(model=NAME).capabilities.service_tools == ("google_search", "url_context", "google_maps")
    assert Gemini(model="gemini-1.5-pro").capabilities.service_tools == ()
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    assert {"retrieval", "enterprise_web_search"} < set(Gemini(model=NAME).capabilities.service_tools)


@pytest.fixture
def backend() -> Iterator[list[str]]:
    """What a search of one's own was asked."""
    queries: list[str] = []

    async def search(query: str, limit: int = 3) -> list[str]:
        """Searches the intranet."""
        queries.append(query)
        return [f"{query} is sunny", "more"][:limit]

    register_search_backend(search)
    yield queries
    register_search_backend(None)


def test_a_model_whose_service_does_not_search_calls_a_search_of_one_s_own(backend: list[str]):
    model = ScriptedLlm(call("google_search", query="Oslo"), call("google_search"), "Sunny.")
    talk = Talk(LlmAgent(name="a", model=model, tools=[look, google_search]))
    events = talk.say()

    [declared] = [
        declaration for tool in model.requests[0].config.tools or [] for declaration in tool.function_declarations or []
    ][1:]
    assert (declared.name, declared.description) == ("google_search", "Searches the intranet.")
    assert declared.parameters_json_schema["required"] == ["query"]
    results = [response.response for event in events for response in event.get_function_responses()]
    assert results[0] == {"result": ["Oslo is sunny", "more"]} and "query are missing" in results[1]["error"]
    assert backend == ["Oslo"] and events[-1].text == "Sunny."


def test_the_offline_model_searches_with_a_search_of_one_s_own(backend: list[str]):
    events = Talk(LlmAgent(name="a", model="offline", tools=[google_search])).say('search for "Oslo"')

    assert backend == ["Oslo"] and "Oslo is sunny" in events[-1].text


def test_a_service_that_searches_is_left_to_it(gemini: Script, backend: list[str]):
    gemini.answers("There is news.")

    assert ask(running(Agent(name="a", model=NAME, tools=[google_search])), "new?") == ["There is news."]
    assert gemini.requests[0].config.tools == [types.Tool(google_search=types.GoogleSearch())]


def test_a_search_of_one_s_own_takes_a_query():
    def search(text: str) -> str:
        return text

    with pytest.raises(ConfigurationError, match=r"query, .*search.*; write `def search\(query"):
        register_search_backend(search)


def test_a_search_beside_other_tools_becomes_an_agent_if_it_is_told_to(gemini: Script):
    gemini.answers([call("google_search_agent", request="pi"), call("look")], "about 3.14", "It is 3.14.")
    search = GoogleSearchTool(bypass_multi_tools_limit=True)
    root = Agent(name="root", model=NAME, tools=[look, search])

    assert ask(running(root), "pi?")[-1] == "It is 3.14."
    settings = [
        [next(iter(tool.model_fields_set)) for tool in request.config.tools or []] for request in gemini.requests
    ]
    assert settings == [["function_declarations"], ["google_search"], ["function_declarations"]]
    assert "result': 'about 3.14" in str(gemini.requests[2].contents[-1])


@pytest.mark.parametrize("tools", [[], [look]], ids=["alone", "beside a tool"])
def test_a_search_has_a_model_of_its_own(gemini: Script, tools: list[Any]):
    gemini.answers(
        *[call("google_search_agent", request="pi")][: len(tools)], "about 3.14", *["It is 3.14."][: len(tools)]
    )
    search = GoogleSearchTool(bypass_multi_tools_limit=True, model="gemini-2.5-pro")

    ask(running(Agent(name="root", model=NAME, tools=[*tools, search])), "pi?")

    searching = [bool(tool.google_search) for request in gemini.requests for tool in request.config.tools or []]
    models = [request.model for request in gemini.requests]
    assert [model == "gemini-2.5-pro" for model in models] == searching


def test_alone_it_stays_a_search(gemini: Script):
    gemini.answers("There is news.")
    ask(running(Agent(name="a", model=NAME, tools=[GoogleSearchTool(bypass_multi_tools_limit=True)])), "new?")

    assert gemini.requests[0].config.tools == [types.Tool(google_search=types.GoogleSearch())]


def test_a_search_that_a_model_calls_all_the_same_is_answered(gemini: Script):
    gemini.answers(call("google_search", query="x"), "ok")

    assert ask(running(Agent(name="a", model=NAME, tools=[google_search])), "x") == ["ok"]
    [part] = gemini.requests[1].contents[-1].parts or []
    assert part.function_response and "is not called" in str(part.function_response.response)


def test_two_built_in_tools_work_as_two_agents_that_a_third_calls(gemini: Script):
    search_agent = Agent(model=NAME, name="SearchAgent", instruction="You search.", tools=[google_search])
    coding_agent = Agent(model=NAME, name="CodeAgent", instruction="You run code.", tools=[built_in_code_execution])
    tools = [agent_tool.AgentTool(agent=search_agent), agent_tool.AgentTool(agent=coding_agent)]
    root_agent = Agent(name="RootAgent", model=NAME, description="Root Agent", tools=tools)
    gemini.answers(
        [call("SearchAgent", request="pi?")], "about 3.14", call("CodeAgent", request="pi * 2"),
        [*code_and_result("3.14 * 2", "6.28"), types.Part(text="6.28")], "Twice pi is 6.28.",
    )  # fmt: skip

    assert ask(running(root_agent), "twice pi?") == ["Twice pi is 6.28."]
    settings = [
        [next(iter(tool.model_fields_set)) for tool in request.config.tools or []] for request in gemini.requests
    ]
    declared, search, code = "function_declarations", "google_search", "code_execution"
    assert settings == [[declared], [search], [declared], [code], [declared]]


def test_a_built_in_tool_beside_others_and_in_a_sub_agent_can_be_put_together(gemini: Script):
    """The page says that it is not supported; what a service makes of it is for the service to say."""
    gemini.answers("ok")
    under = Agent(model=NAME, name="under", tools=[google_search])
    root = Agent(name="root", model=NAME, tools=[built_in_code_execution, look], sub_agents=[under])

    assert ask(running(root), "hi") == ["ok"]
    assert {next(iter(tool.model_fields_set)) for tool in gemini.requests[0].config.tools or []} >= {
        "function_declarations",
        "code_execution",
    }
