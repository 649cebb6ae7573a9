"""What ADK's page on function tools and adk-rs's overview of tools show, as scripts of their kind."""

import asyncio
import gc
import json
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from adk_nb import types
from adk_nb.agents import Agent, LlmAgent
from adk_nb.errors import SessionNotFoundError
from adk_nb.events import Event
from adk_nb.models import LlmRequest, ScriptedLlm, call
from adk_nb.runners import Runner
from adk_nb.tools import (
    BaseTool,
    FunctionTool,
    LongRunningFunctionTool,
    ToolContext,
)
from adk_nb.tools.agent_tool import AgentTool
from tests.support.gemini_server import APP, NAME, SESSION, USER, Script, ask, running, stand_in
from tests.support.late import late
from tests.support.talk import Talk, content_summaries, guide, summaries


@pytest.fixture(autouse=True)
def gemini() -> Iterator[Script]:
    with stand_in() as script:
        yield script


async def in_a_cell(runner: Runner, query: str) -> list[str | None]:
    """As in a notebook: a loop is running, and the cell's code is not async."""
    return ask(runner, query)


# ---- function tools: the price of a share


def get_stock_price(symbol: str):
    """
    Retrieves the price of a share.

    Args:
        symbol (str): What it goes by at the exchange.

    Returns:
        float: The price, or None if there is none.
    """
    try:
        return late("numpy").float64({"GOOG": 170.5}[symbol])
    except Exception:
        return None


def stock_agent() -> LlmAgent:
    return Agent(
        model=NAME,
        name="stock_agent",
        instruction="You retrieve the prices of shares.",
        description="Retrieves the prices of shares.",
        tools=[get_stock_price],
    )


@pytest.mark.parametrize("in_cell", [False, True])
@pytest.mark.parametrize(("symbol", "result"), [("GOOG", 170.5), ("NONE", None)])
def test_a_bare_result_is_put_under_result_in_a_script_and_in_a_cell(
    gemini: Script, symbol: str, result: Any, in_cell: bool
):
    gemini.answers(call("get_stock_price", symbol=symbol), "That is it.")
    runner = running(stock_agent())

    text = asyncio.run(in_a_cell(runner, "how much?")) if in_cell else ask(runner, "how much?")

    assert text == ["That is it."]
    [part] = gemini.requests[1].contents[-1].parts or []
    assert part.function_response and part.function_response.response == {"result": result}
    assert type((part.function_response.response or {})["result"]) is type(result)


def test_the_docstring_is_the_description_and_the_signature_the_schema(gemini: Script):
    gemini.answers("ok")
    ask(running(stock_agent()), "hi")

    [tool] = gemini.requests[0].config.tools or []
    [declared] = tool.function_declarations or []
    assert declared.name == "get_stock_price" and declared.description.startswith("Retrieves the price of a share.")
    schema = declared.parameters_json_schema
    assert schema["required"] == ["symbol"] and schema["properties"]["symbol"]["type"] == "string"


# ---- long running tools: a reimbursement that a person approves


def ask_for_approval(purpose: str, amount: float) -> dict[str, Any]:
    """Ask for approval of a reimbursement."""
    return {"status": "pending", "approver": "Kari", "purpose": purpose, "amount": amount, "ticket-id": "t-1"}


def reimburse(purpose: str, amount: float) -> str:
    """Reimburse the amount."""
    return {"status": "ok"}  # pyright: ignore[reportReturnType]  # the page's own slip: it is a dict, and not text


def reimbursement_agent() -> LlmAgent:
    long_running_tool = LongRunningFunctionTool(func=ask_for_approval)
    return Agent(model=NAME, name="reimbursement_agent", tools=[reimburse, long_running_tool])


def long_running_call(event: Event) -> types.FunctionCall | None:
    for part in (event.content and event.content.parts) or []:
        if part.function_call and event.long_running_tool_ids and part.function_call.id in event.long_running_tool_ids:
            return part.function_call
    return None


def response_to(event: Event, call_id: str | None) -> types.FunctionResponse | None:
    for part in (event.content and event.content.parts) or []:
        if part.function_response and part.function_response.id == call_id:
            return part.function_response
    return None


async def walk(runner: Runner, query: str, *, inside: bool, user: str = USER) -> list[str]:
    """The page's two loops: the outcome is sent while the first run is still walked through, or after it."""
    content = types.Content(role="user", parts=[types.Part(text=query)])
    unused = runner.run_async(user_id=USER, session_id=SESSION, new_message=content)
    built, answer, text = None, None, list[str]()
    async for event in runner.run_async(session_id=SESSION, user_id=user, new_message=content):
        text += [part.text for part in event.parts if part.text]
        if not built:
            built = long_running_call(event)
            continue
        answer = response_to(event, built.id) or answer
        if inside and response_to(event, built.id):
            text += await approve(runner, answer)
    if answer and not inside:
        text += await approve(runner, answer)
    del unused
    return text


async def approve(runner: Runner, interim: types.FunctionResponse | None) -> list[str]:
    assert interim
    outcome = interim.model_copy(deep=True)
    outcome.response = {"status": "approved"}
    message = types.Content(parts=[types.Part(function_response=outcome)], role="user")
    events = runner.run_async(session_id=SESSION, user_id=USER, new_message=message)
    return [part.text async for event in events for part in event.parts if part.text]


@pytest.mark.parametrize("inside", [False, True], ids=["after the run", "within the run"])
def test_an_approval_is_sent_to_the_call_that_waits_for_it(gemini: Script, inside: bool):
    """Twice `asyncio.run`, each with a run that nobody walks through."""
    waits = "It waits for approval."
    follow_up = [waits, call("reimburse", purpose="meals", amount=200.0), "200 are paid."]
    if inside:  # the outer run asks its model when it goes on, after the inner one
        follow_up = [*follow_up[1:], waits]
    gemini.answers(
        call("reimburse", purpose="meals", amount=50.0), "50 are paid.",
        call("ask_for_approval", purpose="meals", amount=200.0), *follow_up,
    )  # fmt: skip
    runner = running(reimbursement_agent())

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small = asyncio.run(walk(runner, "50 for meals", inside=inside))
        large = asyncio.run(walk(runner, "200 for meals", inside=inside))
        gc.collect()

    assert small == ["50 are paid."]
    assert sorted(large) == ["200 are paid.", waits]
    session = runner.session_service.get_session(app_name=APP, user_id=USER, session_id=SESSION)
    assert [event.text for event in session.events if event.author == "user" and event.text] == [
        "50 for meals",
        "200 for meals",
    ]


def test_the_model_hears_what_the_tool_returned_and_then_the_outcome(gemini: Script):
    gemini.answers(call("ask_for_approval", purpose="meals", amount=200.0), "It waits.", "It is approved.")
    asyncio.run(walk(running(reimbursement_agent()), "200 for meals", inside=False))

    first = [part.function_response for part in gemini.requests[1].contents[-1].parts or []]
    last = [part.function_response for part in gemini.requests[2].contents[-1].parts or []]
    assert first[0] and (first[0].response or {})["ticket-id"] == "t-1"
    assert last[0] and last[0].response == {"status": "approved"}


def test_a_run_for_another_user_is_told_which_user_it_was_for(gemini: Script):
    with pytest.raises(SessionNotFoundError, match="user_id='user'"):
        asyncio.run(walk(running(reimbursement_agent()), "hi", inside=False, user="user"))


@pytest.mark.parametrize("kind", [FunctionTool, LongRunningFunctionTool])
def test_a_tool_that_reports_in_steps_is_heard_while_it_works(gemini: Script, kind: type[FunctionTool]):
    """The page's generator of a file's progress: its steps are told, and the last is the result."""

    def process_file(path: str) -> Iterator[dict[str, Any]]:
        """Works through a file."""
        yield {"status": "pending", "progress": "50 %"}
        yield {"status": "completed", "path": path}

    gemini.answers(call("process_file", path="a.txt"), "Done.")
    runner = running(Agent(model=NAME, name="worker", tools=[kind(process_file)]))
    events = list(runner.run(user_id=USER, session_id=SESSION, new_message="go"))

    steps = [json.loads(event.text) for event in events if event.partial and event.author == "process_file"]
    news = [
        response.response for event in events for response in event.get_function_responses() if response.will_continue
    ]
    assert steps + news == [{"status": "pending", "progress": "50 %"}]
    assert bool(news) is (kind is LongRunningFunctionTool)  # whose news is kept
    [part] = gemini.requests[1].contents[-1].parts or []
    assert part.function_response and part.function_response.response == {
        "status": "completed",
        "path": "a.txt",
    }
    assert events[-1].text == "Done."


# ---- an agent as a tool: a summary


@pytest.mark.parametrize("in_cell", [False, True])
def test_the_summary_of_one_agent_is_handed_on_by_another(gemini: Script, in_cell: bool):
    summary_agent = Agent(
        model=NAME, name="summary_agent", instruction="Sum up what you are told.", description="Sums texts up."
    )
    root_agent = Agent(
        model=NAME, name="root_agent", instruction="Hand texts on.", tools=[AgentTool(agent=summary_agent)]
    )
    gemini.answers(call("summary_agent", request="a long text"), "short", "In short: short")
    runner = running(root_agent)

    text = asyncio.run(in_a_cell(runner, "a long text")) if in_cell else ask(runner, "a long text")

    assert text == ["In short: short"]
    assert [content_summaries(request.contents) for request in gemini.requests][1:] == [
        [("user", "a long text")],
        [
            ("user", "a long text"),
            ("model", "calls summary_agent({'request': 'a long text'})"),
            ("user", "answers {'result': 'short'}"),
        ],
    ]


def test_skip_summarization_hands_the_answer_on_as_it_is(gemini: Script):
    helper = Agent(model=NAME, name="helper")
    gemini.answers(call("helper", request="x"), "as it is")
    runner = running(Agent(model=NAME, name="root", tools=[AgentTool(agent=helper, skip_summarization=True)]))

    events = list(runner.run(user_id=USER, session_id=SESSION, new_message="x"))

    assert events[-1].is_final_response() and events[-1].text == "as it is"
    assert len(gemini.requests) == 2


def test_the_caller_keeps_the_word(gemini: Script):
    gemini.answers(call("helper", request="x"), "helped", "root's", "root's again")
    runner = running(Agent(model=NAME, name="root", tools=[AgentTool(agent=Agent(model=NAME, name="helper"))]))

    ask(runner, "x")
    [event] = runner.run(user_id=USER, session_id=SESSION, new_message="more")

    assert (event.author, event.text) == ("root", "root's again")


# ---- adk-rs: the overview of tools


class Delete(BaseTool):
    """All that a tool can say of itself."""

    def __init__(self) -> None:
        super().__init__(name="delete", description="Deletes a file.", custom_metadata={"kind": "destructive"})

    def _get_declaration(self) -> types.FunctionDeclaration | None:
        schema = {"type": "object", "properties": {"file": {"type": "string"}}, "required": ["file"]}
        return types.FunctionDeclaration(name=self.name, description=self.description, parameters_json_schema=schema)

    async def check_require_confirmation(self, args: dict[str, Any], tool_context: ToolContext) -> bool:
        return args["file"].endswith(".keep")

    def confirmation_hint(self, args: dict[str, Any]) -> str:
        return f"Delete {args['file']} for good?"

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        return {"deleted": args["file"], "approved": bool(tool_context.tool_confirmation)}


def test_a_tool_of_ones_own_has_a_name_a_description_a_declaration_and_what_it_asks_a_person():
    agent = guide(call("delete", file="a.txt"), "done", call("delete", file="b.keep"), "gone", tools=[Delete()])
    talk = Talk(agent)

    assert summaries(talk.say())[1] == ("guide", "answers {'deleted': 'a.txt', 'approved': False}")
    turn_events = talk.say()
    [request] = [
        call for event in turn_events for call in event.get_function_calls() if call.name == "adk_request_confirmation"
    ]
    assert request.args and request.args["toolConfirmation"]["hint"] == "Delete b.keep for good?"
    yes = types.FunctionResponse(id=request.id, name=request.name, response={"confirmed": True})
    events = talk.say(types.Content(role="user", parts=[types.Part(function_response=yes)]))
    assert summaries(events)[0] == ("guide", "answers {'deleted': 'b.keep', 'approved': True}")
    assert isinstance(agent.model, ScriptedLlm)
    [tool] = agent.model.requests[0].config.tools or []
    assert [declaration.description for declaration in tool.function_declarations or []] == ["Deletes a file."]


class Tagging(BaseTool):
    """Passive: it declares nothing, and changes the request."""

    def __init__(self) -> None:
        super().__init__(name="tagging", description="")

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        llm_request.config.labels = {"asked_by": tool_context.agent_name}
        llm_request.append_instructions(["Be brief."])

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        raise AssertionError("nobody calls it")


def test_a_passive_tool_changes_each_request_and_is_not_told_to_the_model():
    def look() -> str:
        """Looks."""
        return "seen"

    agent = guide(call("look"), "done", tools=[look, Tagging()])
    Talk(agent).say()

    assert isinstance(agent.model, ScriptedLlm)
    for request in agent.model.requests:
        assert request.config.labels == {"asked_by": "guide"}
        assert str(request.config.system_instruction).endswith("Be brief.")
        [tool] = request.config.tools or []
        assert [declaration.name for declaration in tool.function_declarations or []] == ["look"]


def test_what_a_tool_can_do_through_its_context():
    log: dict[str, Any] = {}

    async def work(tool_context: ToolContext) -> dict[str, Any]:
        """Does all of it."""
        invocation = tool_context.get_invocation_context()
        log["call"] = tool_context.function_call_id
        log["where"] = (invocation.session.app_name, tool_context.user_id, tool_context.invocation_id)
        log["decided"] = tool_context.tool_confirmation
        log["limit"] = invocation.run_config.max_llm_calls
        tool_context.state["k"] = "v"
        log["versions"] = [await tool_context.save_artifact("a.txt", types.Part(text=text)) for text in ("x", "y")]
        newest, first = [await tool_context.load_artifact("a.txt", version) for version in (None, 0)]
        log["read"] = (newest and newest.text, first and first.text, await tool_context.load_artifact("b.txt"))
        tool_context.actions.skip_summarization = True
        return {"done": True}

    talk = Talk(guide(call("work"), tools=[work]))
    made_event, answered_event = talk.say()

    assert log == {
        "call": made_event.get_function_calls()[0].id,
        "where": ("app", "u", made_event.invocation_id),
        "decided": None,
        "limit": 500,
        "versions": [0, 1],
        "read": ("y", "x", None),
    }
    assert answered_event.is_final_response()
    assert (answered_event.actions.state_delta, answered_event.actions.artifact_delta) == ({"k": "v"}, {"a.txt": 1})


def test_an_unknown_tool_goes_back_to_the_model_with_the_names_there_are():
    [_, answered_event, _] = Talk(guide(call("lok"), "sorry", tools=[FunctionTool(get_stock_price)])).say()

    [response] = answered_event.get_function_responses()
    assert response.response and "get_stock_price" in response.response["error"]
