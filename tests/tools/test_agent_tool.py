"""An agent that another one calls as a tool: what it is told, what comes back, and what it leaves behind."""

import asyncio
import threading
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from pydantic import BaseModel

from adk_nb import types
from adk_nb.agents import (
    BaseAgent,
    CallbackContext,
    InvocationContext,
    LiveRequestQueue,
    LlmAgent,
    RunConfig,
    StreamingMode,
)
from adk_nb.auth import APIKey, APIKeyIn, AuthConfig
from adk_nb.errors import ConfigurationError, LlmCallsLimitExceededError
from adk_nb.events import Event, EventActions
from adk_nb.memory import MemoryEntry
from adk_nb.models import LlmResponse, ScriptedLlm, call
from adk_nb.plugins import BasePlugin
from adk_nb.tools import AgentTool, FunctionTool, LongRunningFunctionTool, ToolContext
from tests.support.each import each
from tests.support.polling import SECONDS
from tests.support.talk import SESSION_KEY, Talk, guide, look, requests, summaries


def expert(*answers: Any, **fields: Any) -> LlmAgent:
    return LlmAgent(name="expert", description="Knows.", model=ScriptedLlm(*answers), **fields)


def asking(agent: BaseAgent, *later_args: Any, skip: bool = False, plugins: bool = True, **args: Any) -> LlmAgent:
    """An agent that calls `agent` once, with a request if nothing else is said."""
    tool = AgentTool(agent=agent, skip_summarization=skip, include_plugins=plugins)
    return guide(call(agent.name, **(args or {"request": "do it"})), *(later_args or ("done",)), tools=[tool])


def result(talk: Talk) -> Any:
    """The result of the call that the talk begins with."""
    [response] = talk.say()[1].get_function_responses()
    return response.response


def test_its_answer_is_the_result_and_the_caller_has_the_last_word():
    child = expert("It is so.", instruction="You know {x}.", output_key="found")
    root = asking(child, "I asked, and it is so.")
    talk = Talk(root, state={"x": 1})

    assert summaries(talk.say("hello")) == [
        ("guide", "calls expert({'request': 'do it'})"),
        ("guide", "answers {'result': 'It is so.'} => {'found': 'It is so.'}"),
        ("guide", "I asked, and it is so. ."),
    ]
    assert talk.stored().state == {"x": 1, "found": "It is so."}
    assert len(talk.stored().events) == 4  # what the expert was told and said is not among them
    assert requests(child) == [[("user", "do it")]]
    assert isinstance(child.model, ScriptedLlm)
    assert str(child.model.requests[0].config.system_instruction).startswith("You know 1.")


def test_it_is_declared_as_a_function_that_takes_a_request():
    declared = AgentTool(agent=expert()).declaration

    assert declared and declared.model_dump(exclude_none=True) == {
        "name": "expert",
        "description": "Knows.",
        "parameters_json_schema": {
            "type": "object",
            "properties": {"request": {"type": "string"}},
            "required": ["request"],
        },
    }


def test_it_begins_anew_each_time():
    child = expert("one", "two")
    tool = AgentTool(child)
    talk = Talk(guide(call("expert", request="a"), "x", call("expert", request="b"), "y", tools=[tool]))

    talk.say()
    talk.say()

    assert requests(child) == [[("user", "a")], [("user", "b")]]


def test_what_it_answers_can_be_the_last_word():
    root = asking(expert("It is so."), "You are welcome.", skip=True)
    talk = Talk(root)

    assert summaries(talk.say())[-1] == ("guide", "answers {'result': 'It is so.'}; It is so. .")
    assert summaries(talk.say("thanks")) == [("guide", "You are welcome. .")]
    assert requests(root)[1][2] == ("user", "answers {'result': 'It is so.'}; It is so.")


def test_of_several_last_words_the_results_stand_first():
    first_agent, second_agent = (LlmAgent(name=name, model=ScriptedLlm(name.upper())) for name in ("one", "two"))
    tools = [AgentTool(agent, skip_summarization=True) for agent in (first_agent, second_agent)]
    talk = Talk(guide([call("one", request="x"), call("two", request="y")], tools=tools))

    [_, answered_event] = talk.say()

    assert summaries([answered_event]) == [
        ("guide", "answers {'result': 'ONE'}; answers {'result': 'TWO'}; ONE; TWO .")
    ]


class Wanted(BaseModel):
    q: str
    n: int = 2
    more: str | None = None


class Found(BaseModel):
    answer: str


@pytest.mark.parametrize(
    ("args", "transcript"),
    [
        ({"q": "why"}, '{"q":"why","n":2}'),
        ({"q": "why", "n": 3, "more": None}, '{"more":null,"q":"why","n":3}'),
    ],
)
def test_its_schemas_are_those_of_the_call(args: dict[str, Any], transcript: str):
    child = expert('{"answer": "42"}', input_schema=Wanted, output_schema=Found)
    root = asking(child, **args)

    assert result(Talk(root)) == {"answer": "42"}
    assert requests(child) == [[("user", transcript)]]
    declared = AgentTool(child).declaration
    assert declared and declared.parameters_json_schema["required"] == ["q"]


def test_an_answer_that_is_no_object_is_a_result_all_the_same():
    assert result(Talk(asking(expert("[1, 2]", output_schema=list[int])))) == {"result": [1, 2]}


def test_json_can_be_the_last_word_too():
    child = expert('{"answer": "42"}', output_schema=Found)

    assert summaries(Talk(asking(child, skip=True)).say())[-1][1] == "answers {'answer': '42'}; {\"answer\": \"42\"} ."


@pytest.mark.parametrize(
    ("schema", "args", "wrong"),
    [
        (None, {"question": "why"}, "request: Field required"),
        (None, {"request": 1}, "request: Input should be a valid string"),
        (Wanted, {"n": 1}, "q: Field required"),
    ],
)
def test_a_wrong_call_goes_back_to_the_model(schema: Any, args: dict[str, Any], wrong: str):
    child = expert(input_schema=schema)
    outcome = result(Talk(asking(child, **args)))

    assert outcome["error"].startswith(f"expert() was not called: wrong arguments: {wrong}")
    assert requests(child) == []


def test_it_sees_the_state_but_nothing_that_is_of_this_run_or_the_runtimes():
    state: dict[str, Any] = {}

    def see(callback_context: CallbackContext) -> None:
        state.update(callback_context.state)

    def prepare(callback_context: CallbackContext) -> None:
        callback_context.state["temp:scratch"] = object()
        callback_context.state["_adk_own"] = 1
        callback_context.state["fresh"] = True

    root = asking(expert("ok", before_agent_callback=see))
    root.before_agent_callback = prepare
    Talk(root, state={"x": 1, "user:name": "Ada", "app:motto": "on"}).say()

    assert state == {"x": 1, "user:name": "Ada", "app:motto": "on", "fresh": True}


def test_what_it_writes_is_the_callers():
    def note(tool_context: ToolContext) -> str:
        tool_context.state["list"].append(2)
        tool_context.state["user:seen"] = True
        tool_context.state["temp:scratch"] = 1
        del tool_context.state["old"]
        return "noted"

    talk = Talk(asking(expert(call("note"), "ok", tools=[note])), state={"list": [1], "old": 1})
    event = talk.say()[1]

    assert talk.stored().state == {"list": [1, 2], "user:seen": True}
    assert event.actions.skip_summarization is None
    assert set(event.actions.state_delta) == {"list", "user:seen", "old"}


def test_what_the_callers_state_does_not_allow_is_told_to_its_model():
    class stored_values(BaseModel):
        x: int = 0

    root = asking(expert("ok", output_key="y"))
    root.state_schema = stored_values
    talk = Talk(root)

    [response] = talk.say()[1].get_function_responses()
    assert response.response and "StateSchemaError: state['y']" in response.response["error"]
    assert talk.stored().state == {}


def test_it_answers_in_a_live_conversation_too():
    child = expert("It is so.")
    talk = Talk(asking(child, "I asked."))
    queue = LiveRequestQueue()
    queue.send_content(types.Content(role="user", parts=[types.Part(text="is it so?")]))

    async def converse() -> list[Event]:
        events: list[Event] = []
        async with asyncio.timeout(SECONDS):
            async for event in talk.runner.run_live(**SESSION_KEY, live_request_queue=queue):
                events.append(event)
                if event.turn_complete:
                    queue.close()
        return events

    events = asyncio.run(converse())

    assert summaries(events)[1] == ("guide", "answers {'result': 'It is so.'}")
    assert requests(child) == [[("user", "do it")]]


def test_files_are_the_callers():
    async def copy(tool_context: ToolContext) -> list[str]:
        await tool_context.save_artifact("copy.txt", types.Part(text="the same"))
        await tool_context.save_artifact("user:mine.txt", types.Part(text="mine"))
        return await tool_context.list_artifacts()

    async def keep(callback_context: CallbackContext) -> None:
        await callback_context.save_artifact("first.txt", types.Part(text="x"))

    child = expert(call("copy"), "ok", tools=[copy])
    root = asking(child)
    root.before_agent_callback = keep
    talk = Talk(root)
    events = talk.say()

    assert requests(child)[1][-1] == ("user", "answers {'result': ['copy.txt', 'first.txt', 'user:mine.txt']}")
    [event] = [event for event in events if event.get_function_responses()]
    assert event.actions.artifact_delta == {"copy.txt": 0, "user:mine.txt": 0}

    async def loaded() -> types.Part | None:
        service = talk.runner.artifact_service
        assert service
        return await service.load_artifact(app_name="app", filename="copy.txt", **SESSION_KEY)

    stored_loaded = asyncio.run(loaded())
    assert stored_loaded and stored_loaded.text == "the same"


def test_memory_is_the_callers_and_what_the_caller_keeps_of_itself_stays():
    async def remember(callback_context: CallbackContext) -> None:
        await callback_context.add_session_to_memory()

    async def recall(tool_context: ToolContext) -> list[str]:
        await tool_context.add_memory(memories=[MemoryEntry(content=types.Content(parts=[types.Part(text="tea")]))])
        return sorted(memory.text for memory in (await tool_context.search_memory("tea milk")).memories)

    answers = [call("recall"), "milk it is", call("recall"), "enough"]
    child = expert(*answers, tools=[recall], after_agent_callback=remember)
    root = asking(child, "first", call("expert", request="tea?"), "then")
    root.after_agent_callback = remember
    talk = Talk(root)

    talk.say("I like tea")
    talk.say("and milk")

    assert requests(child)[3][-1] == (
        "user",
        "answers {'result': ['I like tea', 'milk it is', 'tea', 'tea']}",
    )


class Watching(BasePlugin):
    """Notes which agents' models were asked, which events there were, and what users said."""

    def __init__(self) -> None:
        super().__init__(name="watching")
        self.asked: list[str] = []
        self.events: list[Event] = []

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        self.asked.append(callback_context.agent_name)

    async def on_event_callback(self, *, invocation_context: Any, event: Event) -> None:
        self.events.append(event)


@pytest.mark.parametrize(
    ("included", "agents"), [(True, ["guide", "expert", "guide"]), (False, ["guide", "guide"])], ids=["in", "out"]
)
def test_the_callers_plugins_stand_around_it_unless_they_are_kept_out(included: bool, agents: list[str]):
    plugin = Watching()
    Talk(asking(expert("ok"), plugins=included), plugins=[plugin]).say()

    assert plugin.asked == agents


def test_it_does_not_stream_while_the_caller_does():
    plugin = Watching()
    talk = Talk(asking(expert("several words here"), "and so on"), plugins=[plugin])

    events = talk.say(config=RunConfig(streaming_mode=StreamingMode.SSE))

    assert any(event.partial for event in events)
    assert [event.text for event in plugin.events if event.author == "expert"] == ["several words here"]


def test_its_model_calls_count_towards_the_callers_limit():
    inner = LlmAgent(name="inner", model=ScriptedLlm("deep"))
    child = expert(call("inner", request="x"), "ok", tools=[AgentTool(inner)])
    talk = Talk(asking(child))

    assert summaries(talk.say(config=RunConfig(max_llm_calls=5)))[-1] == ("guide", "done .")
    repeated_talk = Talk(asking(expert(call("inner", request="x"), "ok", tools=[AgentTool(inner.clone())])))
    repeated_talk.say(config=RunConfig(max_llm_calls=3))
    assert isinstance(repeated_talk.error, LlmCallsLimitExceededError)


def test_what_it_raises_goes_back_to_the_callers_model():
    outcome = result(Talk(asking(expert(RuntimeError("child boom")))))

    assert outcome == {"error": "RuntimeError: child boom"}


def test_what_it_raises_ends_the_run_where_errors_of_tools_do():
    talk = Talk(asking(expert(RuntimeError("child boom"))))

    events = talk.say(config=RunConfig(tool_errors="raise"))

    assert events[-1].author == "guide" and events[-1].error_code == "RuntimeError"
    assert isinstance(talk.error, RuntimeError)


@pytest.mark.parametrize(
    ("child", "error"),
    [
        (expert(call("look"), max_iterations=1, tools=[look]), "called its model 1 times"),
        (expert("no json", output_schema=Found), "fit its output_schema"),
    ],
    ids=["too many calls", "no answer of that form"],
)
def test_an_end_without_an_answer_is_an_error_and_the_callers_model_hears_of_it(child: LlmAgent, error: str):
    talk = Talk(asking(child, "I could not.", skip=True))
    events = talk.say()

    [response] = events[1].get_function_responses()
    assert response.response and error in response.response["error"]
    assert summaries(events)[-1] == ("guide", "I could not. .")


KEY = AuthConfig(auth_scheme=APIKey(in_=APIKeyIn.header, name="X-Key"))


def slow() -> None:
    """Starts something."""


def started() -> str:
    """Starts something, and says so."""
    return "started"


@pytest.mark.parametrize(
    ("tool", "waits_for"),
    [
        (FunctionTool(look, require_confirmation=True), "an approval"),
        (LongRunningFunctionTool(slow, name="look"), "the outcome of look"),
        (LongRunningFunctionTool(started, name="look", pause=True), "the outcome of look"),
        (FunctionTool(look, auth_config=KEY), "a credential"),
    ],
    ids=["an approval", "an outcome", "an outcome after a first word", "a credential"],
)
def test_it_cannot_wait_and_the_callers_model_is_told(tool: FunctionTool, waits_for: str):
    talk = Talk(asking(expert(call("look"), tools=[tool]), "I could not.", skip=True))
    events = talk.say()

    [response] = events[1].get_function_responses()
    assert response.response
    assert response.response["error"] == (
        f"agent 'expert' stopped to wait for {waits_for}, and nobody can answer an agent that works apart from its "
        "caller; write AgentTool(expert, stream_events=True)"
    )
    assert summaries(events)[-1] == ("guide", "I could not. .")
    assert talk.stored().events[-1].text == "I could not."


def test_a_first_word_of_what_takes_long_is_enough_if_the_model_goes_on_from_it():
    child = expert(call("started"), "It is under way.", tools=[LongRunningFunctionTool(started)])

    assert result(Talk(asking(child))) == {"result": "It is under way."}


def test_who_stops_the_caller_stops_it():
    started, removed = threading.Event(), threading.Event()

    async def forever() -> None:
        """Waits."""
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            removed.set()

    child = expert(call("forever"), "never", tools=[forever])
    talk = Talk(asking(child, "never"))

    async def stop() -> list[Event]:
        signal = asyncio.Event()
        run = asyncio.ensure_future(talk.asay(abort_signal=signal))
        await asyncio.wait_for(asyncio.to_thread(started.wait, SECONDS), SECONDS)
        signal.set()
        return await asyncio.wait_for(run, SECONDS)

    events = asyncio.run(stop())

    assert removed.is_set() and talk.error is None
    assert events[-1].error_code == "INVOCATION_ABORTED" and len(requests(child)) == 1


def test_it_takes_no_further_step_once_the_caller_is_to_stop():
    run: list[str] = []

    async def stop() -> str:
        """Stops the whole run, which is not its own."""
        talk.runner.cancel(run[0])
        return "stopped"

    child = expert(call("stop"), "never", tools=[stop])
    root = asking(child, "never")
    root.before_agent_callback = lambda callback_context: run.append(callback_context.invocation_id)
    talk = Talk(root)
    events = talk.say()

    assert events[-1].error_code == "INVOCATION_ABORTED"
    assert len(requests(child)) == 1


class Coded(BaseAgent):
    """Says what it was made with."""

    says: list[Any]

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        for say in self.says:
            yield say.model_copy(update={"author": self.name, "id": Event.new_id()})


def text(words: str, **kwargs: Any) -> Event:
    return Event(content=types.Content(role="model", parts=[types.Part(text=words)]), **kwargs)


@each(
    "says, result_is",
    [
        ([text("first"), text("last")], {"result": "last"}),
        ([text("words"), Event(actions=EventActions(state_delta={"k": 1}))], {"result": "words"}),
        ([text("a piece", partial=True)], {"result": ""}),
        ([], {"result": ""}),
        ([Event(output={"n": 1})], {"n": 1}),
        (
            [Event(content=types.Content(role="model", parts=[types.Part(text="hm", thought=True), types.Part(text="a"),
                                                              types.Part(text="b")]))],
            {"result": "a\nb"},
        ),
        ([text("so far"), Event(error_code="SAFETY", error_message="refused")], {"error": "refused"}),
        ([Event(error_code="SAFETY")], {"error": "SAFETY"}),
    ],
)  # fmt: skip
def test_the_last_words_count_thoughts_apart(says: list[Event], result_is: dict[str, Any]):
    assert result(Talk(asking(Coded(name="coded", says=says)))) == result_is


def test_a_result_that_stands_as_it_is_is_what_it_answers():
    def show(tool_context: ToolContext) -> dict[str, int]:
        """Shows."""
        tool_context.actions.skip_summarization = True
        return {"shown": 1}

    assert result(Talk(asking(expert(call("show"), tools=[show])))) == {"shown": 1}


def test_what_a_program_gave_is_an_answer():
    ran = types.CodeExecutionResult(outcome=types.Outcome.OUTCOME_OK, output="42\n")
    code = types.Part(executable_code=types.ExecutableCode(code="6*7", language=types.Language.PYTHON))
    event = Event(content=types.Content(role="model", parts=[code, types.Part(code_execution_result=ran)]))

    assert result(Talk(asking(Coded(name="coded", says=[event])))) == {"result": "42"}


def test_what_follows_the_answer_is_the_answer():
    child = expert("ok", after_agent_callback=lambda callback_context: types.Content(parts=[types.Part(text="extra")]))

    assert result(Talk(asking(child))) == {"result": "extra"}


def test_a_team_takes_what_its_first_agent_takes():
    first = expert(input_schema=Wanted)
    declared = AgentTool(Coded(name="team", says=[], sub_agents=[first])).declaration

    assert declared and set(declared.parameters_json_schema["properties"]) == {"q", "n", "more"}


def test_several_work_side_by_side():
    met = asyncio.Barrier(2)

    async def meet() -> str:
        """Waits for the other."""
        await asyncio.wait_for(met.wait(), SECONDS)
        return "met"

    agents = [LlmAgent(name=n, model=ScriptedLlm(call("meet"), n), tools=[meet], output_key=n) for n in ("one", "two")]
    calls = [call(agent.name, request="x") for agent in agents]
    talk = Talk(guide(calls, "both", tools=[AgentTool(agent) for agent in agents]))

    assert summaries(talk.say())[1] == (
        "guide",
        "answers {'result': 'one'}; answers {'result': 'two'} => {'one': 'one', 'two': 'two'}",
    )
    assert [requests(agent)[1][-1] for agent in agents] == [("user", "answers {'result': 'met'}")] * 2


def test_only_an_agent_is_wrapped():
    with pytest.raises(ConfigurationError, match=r"AgentTool takes.*'expert'"):
        AgentTool(agent="expert")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("propagates", [True, False])
def test_what_the_called_agent_looked_up_can_be_shown_with_the_callers_answer(propagates: bool):
    metadata = types.GroundingMetadata(web_search_queries=["weather oslo"])
    content = types.Content(role="model", parts=[types.Part(text="9 degrees")])
    finder = LlmAgent(name="finder", model=ScriptedLlm(LlmResponse(content=content, grounding_metadata=metadata)))
    tool = AgentTool(finder, propagate_grounding_metadata=propagates)
    talk = Talk(guide(call("finder", request="Oslo?"), "It is 9 degrees.", "Hello.", tools=[tool]))

    events, later = talk.say(), talk.say()

    grounding_metadatas = [event.grounding_metadata for event in [*events, *later]]
    assert grounding_metadatas == [None, None, metadata if propagates else None, None]
    assert "adk_grounding" not in talk.stored().model_dump_json()
