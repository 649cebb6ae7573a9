"""Where each callback stands, what it is handed, what its answer does, and where its writes land."""

import asyncio
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import pytest
from support.messages import mentions

from adk_nb import types
from adk_nb.agents import CallbackContext, Context, LlmAgent
from adk_nb.errors import ConfigurationError, InputError
from adk_nb.models import LlmRequest, LlmResponse, ScriptedLlm, call
from adk_nb.plugins import BasePlugin
from adk_nb.tools import BaseTool, FunctionTool, ToolContext
from tests.support.talk import Talk, content_summaries, summaries


def look(at: str = "here") -> dict[str, str]:
    """Looks."""
    return {"seen": at}


def boom() -> str:
    """Fails."""
    raise ValueError("bad")


def words(text: str, role: str = "model") -> types.Content:
    return types.Content(role=role, parts=[types.Part(text=text)])


def response(text: str) -> LlmResponse:
    return LlmResponse(content=words(text))


def agent(*answers: Any, **fields: Any) -> LlmAgent:
    return LlmAgent(name="a", model=ScriptedLlm(*answers), tools=[look, boom], **fields)


KINDS = (
    "before_agent_callback", "after_agent_callback", "before_model_callback", "after_model_callback",
    "before_tool_callback", "after_tool_callback", "on_tool_error_callback", "on_model_error_callback",
)  # fmt: skip


def noted(texts: list[str], **answers: Any) -> dict[str, Callable[..., Any]]:
    """All eight callbacks; each notes its name, and answers what `answers` says."""

    def make(kind: str) -> Callable[..., Any]:
        def callback(**kwargs: Any) -> Any:
            texts.append(kind.removesuffix("_callback"))
            return answers.get(kind)

        return callback

    return {kind: make(kind) for kind in KINDS}


def test_the_order_of_a_turn_with_a_tool():
    log: list[str] = []

    Talk(agent(call("look"), "done", **noted(log))).say()

    assert log == [
        "before_agent",
        "before_model", "after_model", "before_tool", "after_tool",
        "before_model", "after_model",
        "after_agent",
    ]  # fmt: skip


def test_the_order_when_a_tool_fails():
    log: list[str] = []
    Talk(agent(call("boom"), "done", **noted(log))).say()
    assert log[3:6] == ["before_tool", "on_tool_error", "after_tool"]

    log.clear()
    talk = Talk(agent(call("boom"), "done", tool_errors="raise", **noted(log)))
    assert summaries(talk.say())[-1] == ("a", "answers {'error': 'ValueError: bad'} failed ValueError .")
    assert log[3:] == ["before_tool", "on_tool_error"]


def test_the_order_when_the_model_fails():
    log: list[str] = []
    talk = Talk(agent(RuntimeError("m"), **noted(log)))
    assert summaries(talk.say()) == [("a", "failed RuntimeError")]
    assert log == ["before_agent", "before_model", "on_model_error"]

    log.clear()
    talk = Talk(agent(RuntimeError("m"), **noted(log, on_model_error_callback=response("recovered"))))
    assert summaries(talk.say()) == [("a", "recovered .")]
    assert log == ["before_agent", "before_model", "on_model_error", "after_model", "after_agent"]


def test_what_each_is_handed():
    handed: dict[str, dict[str, Any]] = {}

    def make(kind: str) -> Callable[..., Any]:
        def callback(**kwargs: Any) -> None:
            handed[kind] = kwargs

        return callback

    talk = Talk(agent(call("boom"), RuntimeError("m"), **{kind: make(kind) for kind in KINDS}))
    talk.say()

    assert {kind: list(value) for kind, value in handed.items()} == {
        "before_agent_callback": ["callback_context"],
        "before_model_callback": ["callback_context", "llm_request"],
        "after_model_callback": ["callback_context", "llm_response"],
        "on_model_error_callback": ["callback_context", "llm_request", "error"],
        "before_tool_callback": ["tool", "args", "tool_context"],
        "after_tool_callback": ["tool", "args", "tool_context", "tool_response"],
        "on_tool_error_callback": ["tool", "args", "tool_context", "error"],
    }
    assert isinstance(handed["before_model_callback"]["llm_request"], LlmRequest)
    assert isinstance(handed["before_tool_callback"]["tool"], BaseTool)
    assert isinstance(handed["before_agent_callback"]["callback_context"], Context)
    assert CallbackContext is Context is ToolContext
    tool_context = handed["before_tool_callback"]["tool_context"]
    called = talk.stored().events[1].get_function_calls()[0]
    assert tool_context.function_call_id == called.id
    assert tool_context.agent_name == "a"
    assert tool_context.user_content == words("hi", role="user")


def test_before_agent_that_answers_is_the_answer():
    log: list[str] = []
    talk = Talk(agent("never", output_key="last", **noted(log, before_agent_callback=words("skipped"))))

    assert summaries(talk.say()) == [("a", "skipped => {'last': 'skipped'} .")]
    assert log == ["before_agent"]


def test_after_agent_adds_an_event():
    talk = Talk(agent("x", output_key="last", after_agent_callback=lambda callback_context: words("extra")))

    assert summaries(talk.say()) == [("a", "x => {'last': 'x'} ."), ("a", "extra .")]
    assert talk.stored().state == {"last": "x"}


def test_what_agent_callbacks_write_stands_on_events_of_their_own():
    def write(key: str) -> Callable[..., None]:
        return lambda callback_context: callback_context.state.update({key: 1})

    talk = Talk(agent("x", before_agent_callback=write("before"), after_agent_callback=write("after")))

    assert summaries(talk.say()) == [("a", "=> {'before': 1}"), ("a", "x ."), ("a", "=> {'after': 1}")]
    assert talk.stored().state == {"before": 1, "after": 1}


def test_what_an_answering_callback_changes_in_place_is_kept() -> None:
    def answer(callback_context: CallbackContext) -> types.Content:
        callback_context.state["items"].append(2)
        return words("answered")

    talk = Talk(agent("never", before_agent_callback=answer), state={"items": [1]})
    talk.say()
    assert talk.stored().state == {"items": [1, 2]}


def test_an_agent_callback_may_answer_with_plain_words():
    talk = Talk(agent("x", before_agent_callback=lambda callback_context: "closed today"))

    [event] = talk.say()

    assert event.content == words("closed today")


def test_an_agent_callback_that_answers_with_something_else_is_told_so():
    talk = Talk(agent("x", before_agent_callback=lambda callback_context: 5))

    assert summaries(talk.say()) == [("a", "failed InputError")]
    assert isinstance(talk.error, InputError)


def test_before_model_that_answers_spares_the_model_and_after_model():
    log: list[str] = []
    callbacks = noted(log)

    def block(callback_context: CallbackContext, llm_request: LlmRequest) -> LlmResponse:
        callback_context.state["blocked"] = True
        return response("blocked")

    callbacks["before_model_callback"] = block
    chatty = agent(output_key="last", **callbacks)

    assert summaries(Talk(chatty).say()) == [("a", "blocked => {'blocked': True, 'last': 'blocked'} .")]
    assert log == ["before_agent", "after_agent"]
    assert isinstance(chatty.model, ScriptedLlm) and chatty.model.requests == []


def test_a_call_made_by_before_model_is_run():
    answers = iter([LlmResponse(content=types.Content(role="model", parts=[call("look", at="x")])), None])
    talk = Talk(agent("done", before_model_callback=lambda callback_context, llm_request: next(answers)))

    assert [text for _, text in summaries(talk.say())] == ["calls look({'at': 'x'})", "answers {'seen': 'x'}", "done ."]


def test_a_tool_that_before_model_adds_to_the_request_can_be_called():
    def late(number: int) -> int:
        """Late."""
        return number + 1

    def add(callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        llm_request.append_tools([FunctionTool(late)])

    model = ScriptedLlm(call("late", number=1), "two")
    talk = Talk(LlmAgent(name="a", model=model, before_model_callback=add))

    [response] = talk.say()[1].get_function_responses()

    assert response.response == {"result": 2}


def test_before_model_may_change_the_request_and_the_history_stays():
    def shorten(callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        content = llm_request.contents[-1]
        assert content.parts
        content.parts[0].text = "changed"
        llm_request.contents = llm_request.contents[-1:]
        llm_request.config.temperature = 0.0
        llm_request.config.system_instruction = "Only this."

    settings = types.GenerateContentConfig(temperature=1.0)
    shy = agent("one", "two", before_model_callback=shorten, generate_content_config=settings)
    talk = Talk(shy)

    talk.say("first")
    talk.say("second")

    assert isinstance(shy.model, ScriptedLlm)
    assert [content_summaries(request.contents) for request in shy.model.requests] == [[("user", "changed")]] * 2
    assert shy.model.requests[1].config.system_instruction == "Only this."
    assert [event.text for event in talk.stored().events] == ["first", "one", "second", "two"]
    assert settings.temperature == 1.0


def test_after_model_takes_the_place_of_an_answer_and_keeps_its_usage():
    usage = types.GenerateContentResponseUsageMetadata(total_token_count=7)
    talk = Talk(
        agent(
            LlmResponse(content=words("abc"), usage_metadata=usage),
            after_model_callback=lambda callback_context, llm_response: response(llm_response.text.upper()),
        )
    )

    [event] = talk.say()

    assert event.text == "ABC"
    assert event.usage_metadata == usage


def test_what_model_callbacks_write_lands_on_the_models_event():
    def note(callback_context: CallbackContext, llm_response: LlmResponse) -> None:
        callback_context.state["calls"] = callback_context.state.get("calls", 0) + 1

    talk = Talk(agent(call("look"), "done", after_model_callback=note))

    assert [event.actions.state_delta for event in talk.say()] == [{"calls": 1}, {}, {"calls": 2}]


def test_a_list_changed_in_place_by_a_model_callback_lands_there_too():
    def note(callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        callback_context.state["items"].append(len(callback_context.state["items"]))

    talk = Talk(agent("one", "two", before_model_callback=note), state={"items": []})

    assert [event.actions.state_delta for event in [*talk.say(), *talk.say()]] == [{"items": [0]}, {"items": [0, 1]}]


def test_before_tool_may_change_the_arguments():
    def change(tool: BaseTool, args: dict[str, Any], tool_context: ToolContext) -> None:
        args["at"] = "there"

    talk = Talk(agent(call("look", at="here"), "done", before_tool_callback=change))

    assert [text for _, text in summaries(talk.say())][:2] == [
        "calls look({'at': 'here'})",
        "answers {'seen': 'there'}",
    ]


@pytest.mark.parametrize("result", [{"mine": 1}, {}])
def test_before_tool_that_answers_spares_the_tool_and_not_after_tool(result: dict[str, int]):
    log: list[str] = []
    talk = Talk(agent(call("boom"), "done", **noted(log, before_tool_callback=result)))

    assert summaries(talk.say())[1] == ("a", f"answers {result}")
    assert log[3:5] == ["before_tool", "after_tool"]


def test_after_tool_takes_the_place_of_a_result():
    talk = Talk(
        agent(call("look"), "done", after_tool_callback=lambda tool, args, tool_context, tool_response: {"new": 1})
    )

    assert summaries(talk.say())[1] == ("a", "answers {'new': 1}")


def test_on_tool_error_answers_for_a_tool_that_raised():
    talk = Talk(
        agent(
            call("boom"), "done", tool_errors="raise",
            on_tool_error_callback=lambda tool, args, tool_context, error: {"recovered": str(error)},
        )
    )  # fmt: skip

    assert summaries(talk.say())[1:] == [("a", "answers {'recovered': 'bad'}"), ("a", "done .")]


def test_what_tool_callbacks_write_lands_on_the_result():
    def before(tool: BaseTool, args: dict[str, Any], tool_context: ToolContext) -> None:
        tool_context.state["before"] = tool.name

    def after(tool: BaseTool, args: dict[str, Any], tool_context: ToolContext, tool_response: Any) -> None:
        tool_context.state["after"] = tool_response

    talk = Talk(agent(call("look"), "done", before_tool_callback=before, after_tool_callback=after))

    assert [event.actions.state_delta for event in talk.say()] == [
        {},
        {"before": "look", "after": {"seen": "here"}},
        {},
    ]


@pytest.mark.parametrize("kind", ["before_model_callback", "after_model_callback", "on_model_error_callback"])
def test_a_model_callback_that_answers_with_no_response_is_told_so(kind: str):
    answer = RuntimeError("m") if kind.startswith("on_") else "x"
    talk = Talk(agent(answer, **{kind: lambda *args: words("a content")}))

    assert summaries(talk.say()) == [("a", "failed ConfigurationError")]
    assert mentions(talk.error, f"{kind} … Content; … LlmResponse, or None")


def test_an_answer_without_a_role_is_the_models():
    bare = types.Content(parts=[types.Part(text="bare")])
    talk = Talk(agent("x", after_model_callback=lambda callback_context, llm_response: LlmResponse(content=bare)))

    [event] = talk.say()

    assert event.content == words("bare")
    assert bare.role is None


def test_the_first_that_answers_ends_the_list():
    texts: list[str] = []

    async def first(callback_context: Any, llm_response: Any) -> None:
        texts.append("first")

    def second(callback_context: Any, llm_response: Any) -> LlmResponse:
        texts.append("second")
        return response("second's")

    def third(callback_context: Any, llm_response: Any) -> LlmResponse:
        texts.append("third")
        return response("third's")

    assert summaries(Talk(agent("x", after_model_callback=[first, second, third])).say()) == [("a", "second's .")]
    assert texts == ["first", "second"]


def test_callbacks_with_other_names_are_called_in_order():
    talk = Talk(
        agent(
            call("look"), "orig",
            before_agent_callback=lambda c: c.state.update({"agent": c.agent_name}),
            after_model_callback=lambda c, r: response("pos") if r.text else None,
            before_tool_callback=lambda t, a, c: {"tool": t.name, "args": a},
        )
    )  # fmt: skip

    assert [text for _, text in summaries(talk.say())] == [
        "=> {'agent': 'a'}", "calls look({})", "answers {'tool': 'look', 'args': {}}", "pos .",
    ]  # fmt: skip


def test_a_callback_that_cannot_take_what_it_is_given_is_told_what_that_is():
    def first(callback_context: Any, need: str) -> None: ...

    cached = Talk(agent(call("look"), "done", before_tool_callback=lambda tool, args: None))
    needy = Talk(agent("x", before_agent_callback=first))

    assert cached.say() and needy.say()

    assert isinstance(cached.error, ConfigurationError)
    assert "tool_context)" in str(cached.error)
    assert "'need'; give" in str(needy.error) and "parameters (callback_context)" in str(needy.error)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind.startswith("on_")])
def test_what_a_callback_raises_is_an_event_and_then_raised(kind: str):
    def fails(*args: Any) -> None:
        raise LookupError("cb")

    talk = Talk(agent(call("look"), "done", tool_errors="raise", **{kind: fails}))

    events = talk.say()

    author, text = summaries(events)[-1]
    assert author == "a" and text.removesuffix(" .").endswith("failed LookupError")
    assert text.startswith("answers {'error': 'look() ") == ("tool" in kind)
    assert isinstance(talk.error, LookupError)
    assert talk.stored().events[-1] == events[-1]


def test_a_callback_may_end_the_run_after_its_step():
    def stop(callback_context: CallbackContext, llm_response: LlmResponse) -> None:
        callback_context.get_invocation_context().end_invocation = True

    log: list[str] = []
    callbacks = noted(log) | {"after_model_callback": stop}
    talk = Talk(agent(call("look"), "never", **callbacks))

    assert [text for _, text in summaries(talk.say())] == ["calls look({})", "answers {'seen': 'here'}"]
    assert "after_agent" not in log
    assert summaries(talk.say()) != []


def test_before_agent_may_end_the_run_at_once():
    def stop(callback_context: CallbackContext) -> None:
        callback_context.state["stopped"] = True
        callback_context.get_invocation_context().end_invocation = True

    assert summaries(Talk(agent("never", before_agent_callback=stop)).say()) == [("a", "=> {'stopped': True}")]


RUNS = 16
SECONDS = 60


@pytest.mark.parametrize("kind", ["before_agent", "before_model", "after_model", "before_tool", "after_tool", "plugin"])
def test_plain_callbacks_of_many_runs_wait_at_the_same_time(kind: str):
    """Each waits for all others: one that held up another run would wait in vain."""
    meeting = threading.Barrier(RUNS)
    met: list[int] = []

    def new_talk() -> Talk:
        is_first = True

        def meet(**_: Any) -> None:
            nonlocal is_first
            if is_first:  # the model is asked twice
                is_first = False
                met.append(meeting.wait(SECONDS))

        if kind != "plugin":
            return Talk(agent(call("look"), "done", **{f"{kind}_callback": meet}))
        doorman = BasePlugin(name="doorman")
        vars(doorman)["before_model_callback"] = meet
        return Talk(agent(call("look"), "done"), plugins=[doorman])

    talks = [new_talk() for _ in range(RUNS)]

    async def use() -> list[Any]:
        return await asyncio.gather(*(talk.asay() for talk in talks))

    answers = asyncio.run(use())

    assert sorted(met) == list(range(RUNS))
    assert all(summaries(events)[-1] == summaries(answers[0])[-1] for events in answers)
    assert all(talk.error is None for talk in talks)


def test_plain_callbacks_of_one_run_never_run_together():
    running, most = 0, 0

    def count(**_: Any) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        # Another thread may go on here.
        threading.Event().wait(0.001)
        running -= 1

    Talk(agent([call("look")] * 8, "done", before_tool_callback=count)).say()

    assert (most, running) == (1, 0)


def test_a_context_variable_that_a_plain_callback_sets_stays_set():
    customer: ContextVar[str] = ContextVar("customer", default="nobody")
    seen: list[str] = []

    def enter(**_: Any) -> None:
        customer.set("Ada")

    async def note(**_: Any) -> None:
        seen.append(customer.get())

    Talk(agent("done", before_model_callback=[enter, note], after_model_callback=lambda **_: seen.append("next"))).say()

    assert seen == ["Ada", "next"]


def test_a_run_ends_although_its_plain_callback_hangs():
    began, released, ended = (threading.Event() for _ in range(3))

    def hang(callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        began.set()
        released.wait(SECONDS)
        callback_context.state["late"] = True
        written.append(callback_context.state.has_delta())
        ended.set()

    written: list[bool] = []
    talk = Talk(agent("done", before_model_callback=hang))

    async def use() -> None:
        run = asyncio.create_task(talk.asay())
        assert await asyncio.to_thread(began.wait, SECONDS)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run

    asyncio.run(use())
    released.set()
    assert ended.wait(SECONDS)

    assert written == [False]


def test_the_callbacks_of_an_agent_that_a_plain_callback_asks_need_no_other_thread():
    threads: list[str] = []

    def note(**_: Any) -> None:
        threads.append(threading.current_thread().name)

    def judge(**_: Any) -> None:
        note()
        Talk(agent("fine", before_model_callback=note)).say()

    Talk(agent("done", before_model_callback=judge)).say()
    Talk(agent("done", before_model_callback=judge)).say()

    assert len(threads) == 4
    assert threads[0] == threads[1] and threads[2] == threads[3]
