"""The events of google-adk 2.13 on the same scripts: structured output, callbacks, and odd ends of a step.

Written down by hand from what google-adk was seen to do. DEVIATES marks where ours is meant to differ, and how.
"""

from typing import Any

import pytest
from pydantic import BaseModel

from adk_nb import types
from adk_nb.agents import CallbackContext, LlmAgent, RunConfig, StreamingMode
from adk_nb.errors import PluginError
from adk_nb.events import Event
from adk_nb.models import LlmRequest, LlmResponse, ScriptedLlm, call
from adk_nb.plugins import BasePlugin
from adk_nb.tools import ToolContext
from tests.support.talk import Talk, boom, summaries


class Out(BaseModel):
    ans: str


def w() -> dict[str, int]:
    """Works."""
    return {"ok": 1}


def agent(*answers: Any, name: str = "a", **fields: Any) -> LlmAgent:
    return LlmAgent(name=name, model=ScriptedLlm(*answers), **fields)


def response(text: str, **kwargs: Any) -> LlmResponse:
    return LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]), **kwargs)


def asked(agent: LlmAgent) -> list[LlmRequest]:
    assert isinstance(agent.model, ScriptedLlm)
    return agent.model.requests


KINDS = (
    "before_agent", "after_agent", "before_model", "after_model", "on_model_error",
    "before_tool", "after_tool", "on_tool_error",
)  # fmt: skip


def noting(texts: list[str], *kinds: str, **answers: Any) -> dict[str, Any]:
    def make(kind: str) -> Any:
        def callback(**kwargs: Any) -> Any:
            texts.append(kind)
            return answers.get(kind)

        return callback

    return {f"{kind}_callback": make(kind) for kind in (*kinds, *answers)}


class Noting(BasePlugin):
    """Notes each hook that is asked."""

    def __init__(self, texts: list[str]) -> None:
        super().__init__("P")
        self.said = texts

    def __getattribute__(self, name: str) -> Any:
        if name.endswith("_callback"):
            return self._make(name.removesuffix("_callback"))
        return super().__getattribute__(name)

    def _make(self, point: str) -> Any:
        async def callback(**kwargs: Any) -> None:
            self.said.append(f"P.{point}")

        return callback


def root(*answers: Any, **fields: Any) -> LlmAgent:
    return agent(*answers, name="root", output_schema=Out, output_key="o", **fields)


def test_12_an_output_schema_beside_tools():
    agent = root(call("w"), call("set_model_response", ans="42"), tools=[w])
    talk = Talk(agent)
    events = talk.say("hello")

    assert summaries(events) == [
        ("root", "calls w({})"),
        ("root", "answers {'ok': 1}"),
        ("root", "calls set_model_response({'ans': '42'})"),
        ("root", "answers {'ans': '42'}"),
        ("root", "{\"ans\": \"42\"} => {'o': {'ans': '42'}} ."),
    ]
    assert events[3].actions.set_model_response == {"ans": "42"}
    assert talk.stored().state == {"o": {"ans": "42"}}
    assert list(asked(agent)[0].tools_dict) == ["set_model_response", "w"]
    assert 'name is "root".\n\nYou' in str(asked(agent)[0].config.system_instruction)


def test_12_an_answer_that_does_not_fit_and_words_instead():
    talk = Talk(root(call("set_model_response", bad="42"), '{"ans":"x"}', tools=[w]))
    events = talk.say("hello")

    assert list(events[1].get_function_responses()[0].response or {}) == ["error"]
    assert summaries(events)[2:] == [("root", "{\"ans\":\"x\"} => {'o': {'ans': 'x'}} .")]


def test_12b_without_tools():
    talk = Talk(root('{"ans":"x"}'))
    assert summaries(talk.say("hello")) == [("root", "{\"ans\":\"x\"} => {'o': {'ans': 'x'}} .")]

    # DEVIATES: the model's event stays, and the other one follows it.
    raising = Talk(root("not json", on_output_error="raise"))
    assert summaries(raising.say("hello")) == [("root", "not json ."), ("root", "failed ValidationError")]
    assert type(raising.error).__name__ == "ValidationError" and raising.stored().state == {}

    # DEVIATES: unless told so, nothing is raised; and it is checked without an output_key as well.
    for key in ("o", None):
        quiet = Talk(agent("not json", output_schema=Out, output_key=key))
        assert summaries(quiet.say("hello")) == [("a", "not json ."), ("a", "failed OUTPUT_SCHEMA_MISMATCH")]
        assert quiet.error is None and quiet.stored().state == {}


def test_y5_an_answer_beside_another_call():
    talk = Talk(root([call("w"), call("set_model_response", ans="1")], tools=[w]))

    assert summaries(talk.say("go")) == [
        ("root", "calls w({}); calls set_model_response({'ans': '1'})"),
        ("root", "answers {'ok': 1}; answers {'ans': '1'}"),
        ("root", "{\"ans\": \"1\"} => {'o': {'ans': '1'}} ."),
    ]


def test_13_the_order():
    log: list[str] = []
    Talk(agent(call("w"), "x", tools=[w], **noting(log, *KINDS)), plugins=[Noting(log)]).say()

    model = ["P.before_model", "before_model", "P.after_model", "after_model", "P.on_event"]
    assert log == [
        "P.on_user_message", "P.before_run", "P.before_agent", "before_agent",
        *model,
        "P.before_tool", "before_tool", "P.after_tool", "after_tool", "P.on_event",
        *model,
        "P.after_agent", "after_agent", "P.after_run",
    ]  # fmt: skip


def test_13b_the_order_of_errors_that_nobody_answers():
    log: list[str] = []
    fields = noting(log, "on_tool_error", "on_model_error")
    tool = Talk(agent(call("boom"), tools=[boom], tool_errors="raise", **fields), plugins=[Noting(log)])

    assert summaries(tool.say()) == [
        ("a", "calls boom({})"),
        ("a", "answers {'error': 'ValueError: bad'} failed ValueError ."),
    ]
    assert log[6:] == [
        "P.before_tool", "P.on_tool_error", "on_tool_error", "P.on_agent_error", "P.on_event", "P.on_run_error",
    ]  # fmt: skip

    log.clear()
    model = Talk(agent(RuntimeError("m"), **fields), plugins=[Noting(log)])
    assert summaries(model.say()) == [("a", "failed RuntimeError")]
    assert log[3:] == [
        "P.before_model", "P.on_model_error", "on_model_error", "P.on_agent_error", "P.on_event", "P.on_run_error",
    ]  # fmt: skip


def test_13c_errors_that_are_answered():
    log: list[str] = []
    answers = {"on_tool_error": {"rec": 1}, "on_model_error": response("recovered")}
    sub_agent = agent(
        call("boom"), RuntimeError("m"), tools=[boom], **noting(log, "after_model", "after_tool", **answers)
    )

    assert summaries(Talk(sub_agent).say()) == [
        ("a", "calls boom({})"),
        ("a", "answers {'rec': 1}"),
        ("a", "recovered ."),
    ]
    assert log == ["after_model", "on_tool_error", "after_tool", "on_model_error", "after_model"]


def test_13d_agents_that_are_answered_for_and_added_to():
    def before(callback_context: CallbackContext) -> None:
        callback_context.state["s"] = 1

    def skipping(callback_context: CallbackContext) -> types.Content:
        callback_context.state["s"] = 1
        return types.Content(role="model", parts=[types.Part(text="skipped")])

    def run_after(callback_context: CallbackContext) -> types.Content:
        callback_context.state["e"] = 1
        return types.Content(role="model", parts=[types.Part(text="extra")])

    log: list[str] = []
    skipped = Talk(agent("x", output_key="ok", before_agent_callback=skipping, **noting(log, "after_agent")))
    assert summaries(skipped.say()) == [("a", "skipped => {'s': 1, 'ok': 'skipped'} .")] and log == []

    # DEVIATES: an event that only writes is not final.
    talk = Talk(agent("x", output_key="ok", before_agent_callback=before, after_agent_callback=run_after))
    assert summaries(talk.say()) == [("a", "=> {'s': 1}"), ("a", "x => {'ok': 'x'} ."), ("a", "extra => {'e': 1} .")]


def test_13e_models_that_are_answered_for():
    def blocking(callback_context: CallbackContext, llm_request: LlmRequest) -> LlmResponse:
        callback_context.state["bm"] = 1
        return response("blocked")

    def shouting(callback_context: CallbackContext, llm_response: LlmResponse) -> LlmResponse:
        callback_context.state["am"] = 1
        return response(llm_response.text.upper())

    log: list[str] = []
    assert summaries(Talk(agent("x", before_model_callback=blocking, **noting(log, "after_model"))).say()) == [
        ("a", "blocked => {'bm': 1} .")
    ]
    assert log == []
    assert summaries(Talk(agent("abc", after_model_callback=shouting)).say()) == [("a", "ABC => {'am': 1} .")]


def test_13f_an_empty_result_in_a_tools_place():
    texts: list[str] = []

    def first(**kwargs: Any) -> None:
        texts.append("at1")

    def second(**kwargs: Any) -> dict[str, int]:
        texts.append("at2")
        return {"new": 1}

    sub_agent = agent(call("w"), "z", tools=[w], after_tool_callback=[first, second], **noting(texts, before_tool={}))

    assert summaries(Talk(sub_agent).say())[1] == ("a", "answers {'new': 1}")
    assert texts == ["before_tool", "at1", "at2"]


def test_13g_arguments_that_a_callback_changes():
    def t(x: int) -> int:
        """Takes x."""
        return x

    def change(tool: Any, args: dict[str, Any], tool_context: ToolContext) -> None:
        args["x"] = 99

    assert summaries(Talk(agent(call("t", x=1), "z", tools=[t], before_tool_callback=change)).say()) == [
        ("a", "calls t({'x': 1})"),
        ("a", "answers {'result': 99}"),
        ("a", "z ."),
    ]


def test_13h_a_result_that_stands_as_it_is():
    def sk(tool_context: ToolContext) -> str:
        """Ends."""
        tool_context.actions.skip_summarization = True
        return "final!"

    assert summaries(Talk(agent(call("sk"), tools=[sk])).say()) == [
        ("a", "calls sk({})"),
        ("a", "answers {'result': 'final!'} ."),
    ]


def test_13i_what_plugins_answer():
    class Early(BasePlugin):
        async def before_run_callback(self, *, invocation_context: Any) -> Any:
            return types.Content(role="model", parts=[types.Part(text="early")])

    class Replaces(BasePlugin):
        async def on_user_message_callback(self, *, invocation_context: Any, user_message: Any) -> Any:
            return types.Content(role="user", parts=[types.Part(text="REPLACED")])

        async def on_event_callback(self, *, invocation_context: Any, event: Event) -> Any:
            return Event(author="a", content=types.Content(role="model", parts=[types.Part(text="EV")]))

    assert summaries(Talk(agent("x"), plugins=[Early("e")]).say()) == [("model", "early .")]

    sub_agent = agent("x")
    talk = Talk(sub_agent, plugins=[Replaces("r")])
    assert summaries(talk.say()) == [("a", "EV .")]
    assert [event.text for event in talk.stored().events] == ["REPLACED", "EV"]
    assert [content.parts[0].text for content in asked(sub_agent)[0].contents if content.parts] == ["REPLACED"]


def test_13j_callbacks_with_names_of_their_own():
    texts: list[str] = []
    sub_agent = agent(
        "orig", before_model_callback=lambda x, y: texts.append("pos"), after_model_callback=lambda p, q: None
    )

    assert summaries(Talk(sub_agent).say()) == [("a", "orig .")] and texts == ["pos"]


def test_y1_and_y13_a_callback_that_calls_and_one_that_answers():
    answers = iter([LlmResponse(content=types.Content(role="model", parts=[call("w")]))])
    sub_agent = agent("end", tools=[w], before_model_callback=lambda callback_context, llm_request: next(answers, None))
    assert summaries(Talk(sub_agent).say()) == [("a", "calls w({})"), ("a", "answers {'ok': 1}"), ("a", "end .")]

    blocked = agent(output_key="o", before_model_callback=lambda callback_context, llm_request: response("blocked"))
    assert summaries(Talk(blocked).say()) == [("a", "blocked => {'o': 'blocked'} .")]


def test_y14_two_calls_share_an_id():
    twice = [types.Part(function_call=types.FunctionCall(id="X", name="w", args={})) for _ in range(2)]
    events = Talk(agent(twice, "e", tools=[w])).say()

    calls, responses = events[0].get_function_calls(), events[1].get_function_responses()
    assert [response.response for response in responses] == [{"ok": 1}] * 2
    # DEVIATES: the second gets an id of its own.
    assert calls[0].id == "X" and calls[1].id != "X"
    assert [call.id for call in responses] == [call.id for call in calls]


def test_y15_after_model_sees_every_piece():
    texts: list[str] = []
    sub_agent = agent(
        ["a", "b"], after_model_callback=lambda callback_context, llm_response: texts.append(llm_response.text)
    )

    Talk(sub_agent).say(config=RunConfig(streaming_mode=StreamingMode.SSE))
    assert texts == ["a", "b", "ab"]


def test_y17_a_tool_that_ends_the_run():
    def stop(tool_context: ToolContext) -> dict[str, int]:
        """Stops."""
        tool_context.get_invocation_context().end_invocation = True
        return {"s": 1}

    # DEVIATES: the model is not asked again.
    assert summaries(Talk(agent(call("stop"), "never", tools=[stop])).say()) == [
        ("a", "calls stop({})"),
        ("a", "answers {'s': 1}"),
    ]


def test_z8_one_of_two_calls_fails():
    def good() -> dict[str, int]:
        """Good."""
        return {"g": 1}

    talk = Talk(agent([call("good"), call("boom")], tools=[good, boom], tool_errors="raise"))

    assert summaries(talk.say()) == [
        ("a", "calls good({}); calls boom({})"),
        ("a", "answers {'g': 1}"),
        ("a", "answers {'error': 'ValueError: bad'} failed ValueError ."),
    ]
    assert isinstance(talk.error, ValueError)


def test_h5_a_callback_puts_a_content_in_the_instructions_place():
    def replace(callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        text = str(llm_request.config.system_instruction)
        llm_request.config.system_instruction = types.Content(role="system", parts=[types.Part(text="[M] " + text)])

    sub_agent = agent("x", instruction="I", before_model_callback=replace)
    Talk(sub_agent).say()

    instruction: Any = asked(sub_agent)[0].config.system_instruction
    assert instruction.role == "system"
    assert instruction.parts[0].text == '[M] I\n\nYou are an agent. Your internal name is "a".'


class Raises(BasePlugin):
    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> Any:
        raise KeyError("px")


def test_h6_a_plugin_that_raises():
    talk = Talk(agent("x"), plugins=[Raises("px")])

    [failed] = talk.say()
    assert failed.error_code == "RuntimeError" and "px" in (failed.error_message or "")
    assert isinstance(talk.error, PluginError) and isinstance(talk.error, RuntimeError)


@pytest.mark.parametrize(("kind", "previous"), [("before_model", []), ("after_agent", [("a", "x .")])])
def test_h6_a_callback_that_raises(kind: str, previous: list[Any]):
    def raises(**kwargs: Any) -> None:
        raise KeyError("cb")

    talk = Talk(agent("x", **{f"{kind}_callback": raises}))

    assert summaries(talk.say()) == [*previous, ("a", "failed KeyError")]
    assert isinstance(talk.error, KeyError)
