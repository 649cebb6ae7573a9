"""All eight callbacks, each sync and async, one or a list, by name or in order: what its answer does is the same."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from adk_nb import types
from adk_nb.agents import LlmAgent
from adk_nb.models import LlmResponse, ScriptedLlm, call
from tests.support.each import each
from tests.support.talk import Talk, boom, look, summaries

KINDS = (
    "before_agent", "after_agent", "before_model", "after_model", "on_model_error", "before_tool", "after_tool",
    "on_tool_error",
)  # fmt: skip


def words(text: str) -> types.Content:
    return types.Content(role="model", parts=[types.Part(text=text)])


def response(text: str) -> LlmResponse:
    return LlmResponse(content=words(text))


ANSWERS: dict[str, Any] = {
    "before_agent": words("other"),
    "after_agent": words("other"),
    "before_model": response("other"),
    "after_model": response("other"),
    "on_model_error": response("other"),
    "before_tool": {"other": 1},
    "after_tool": {"other": 1},
    "on_tool_error": {"other": 1},
}
SCRIPTS: dict[str, list[Any]] = {
    "on_model_error": [RuntimeError("m")],
    "before_tool": [call("look"), "done"],
    "after_tool": [call("look"), "done"],
    "on_tool_error": [call("boom"), "done"],
}
TOLD: dict[str, list[str]] = {
    "before_agent": ["other ."],
    "after_agent": ["done .", "other ."],
    "before_model": ["other ."],
    "after_model": ["other ."],
    "on_model_error": ["other ."],
    "before_tool": ["calls look({})", "answers {'other': 1}", "done ."],
    "after_tool": ["calls look({})", "answers {'other': 1}", "done ."],
    "on_tool_error": ["calls boom({})", "answers {'other': 1}", "done ."],
}
GIVEN = {
    "before_agent": 1, "after_agent": 1, "before_model": 2, "after_model": 2, "on_model_error": 3,
    "before_tool": 3, "after_tool": 4, "on_tool_error": 4,
}  # fmt: skip


def in_order(kind: str, answer: Any) -> Callable[..., Any]:
    """A callback whose parameters have other names."""
    names = [f"given_{number}" for number in range(GIVEN[kind])]

    def callback(*args: Any) -> Any:
        assert len(args) == GIVEN[kind]
        return answer

    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    callback.__signature__ = inspect.Signature(parameters)
    return callback


def by_name(kind: str, answer: Any) -> Callable[..., Any]:
    def callback(**kwargs: Any) -> Any:
        assert len(kwargs) == GIVEN[kind]
        return answer

    return callback


def later(callback: Callable[..., Any]) -> Callable[..., Any]:
    """The same, async."""

    async def waits(*args: Any, **kwargs: Any) -> Any:
        return callback(*args, **kwargs)

    waits.__signature__ = inspect.signature(callback)
    return waits


class Method:
    """A callback that is a method."""

    def __init__(self, callback: Callable[..., Any]) -> None:
        self.callback = callback

    def __call__(self, **kwargs: Any) -> Any:
        return self.callback(**kwargs)


WAYS: dict[str, Callable[[str, Any], Any]] = {
    "by name": by_name,
    "in order": in_order,
    "async by name": lambda kind, answer: later(by_name(kind, answer)),
    "async in order": lambda kind, answer: later(in_order(kind, answer)),
    "an object": lambda kind, answer: Method(by_name(kind, answer)),
    "a list": lambda kind, answer: [by_name(kind, None), later(in_order(kind, answer)), by_name(kind, "never asked")],
}


@pytest.mark.slow
@each("mode", WAYS)
@each("kind", KINDS)
def test_an_answer_does_what_its_kind_says_however_the_callback_is_written(kind: str, mode: str):
    callback = WAYS[mode](kind, ANSWERS[kind])
    model = ScriptedLlm(*SCRIPTS.get(kind, ["done"]))
    agent = LlmAgent(name="a", model=model, tools=[look, boom], **{f"{kind}_callback": callback})

    talk = Talk(agent)
    assert [text for _, text in summaries(talk.say())] == TOLD[kind]
    assert talk.error is None


@each("kind", KINDS)
def test_no_answer_changes_nothing(kind: str):
    script = SCRIPTS.get(kind, ["done"])
    silent = LlmAgent(
        name="a", model=ScriptedLlm(*script), tools=[look, boom], **{f"{kind}_callback": [by_name(kind, None)] * 3}
    )
    bare = LlmAgent(name="a", model=ScriptedLlm(*script), tools=[look, boom])

    assert summaries(Talk(silent).say()) == summaries(Talk(bare).say())


@pytest.mark.parametrize("kind", ["on_model_error", "on_tool_error"])
def test_an_error_in_the_callback_for_errors_is_what_ends_the_run(kind: str):
    def worse(**kwargs: Any) -> None:
        raise LookupError("worse")

    agent = LlmAgent(name="a", model=ScriptedLlm(*SCRIPTS[kind]), tools=[boom], **{f"{kind}_callback": worse})
    talk = Talk(agent)

    author, text = summaries(talk.say())[-1]
    assert author == "a" and text.removesuffix(" .").endswith("failed LookupError")
    assert isinstance(talk.error, LookupError)


def test_an_empty_result_of_before_tool_is_a_result():
    texts: list[str] = []

    def after(tool: Any, args: Any, tool_context: Any, tool_response: Any) -> None:
        texts.append(f"after {tool_response}")

    agent = LlmAgent(
        name="a",
        model=ScriptedLlm(call("boom"), "done"),
        tools=[boom],
        before_tool_callback=lambda tool, args, tool_context: {},
        after_tool_callback=after,
    )

    assert [text for _, text in summaries(Talk(agent).say())] == ["calls boom({})", "answers {}", "done ."]
    assert texts == ["after {}"]


def test_a_response_of_after_model_keeps_what_it_does_not_say():
    usage = types.GenerateContentResponseUsageMetadata(total_token_count=7)
    first = LlmResponse(content=words("x"), usage_metadata=usage, turn_complete=True, partial=False)
    metadata = types.GenerateContentResponseUsageMetadata(total_token_count=1)

    def replies(other: LlmResponse) -> Any:
        agent = LlmAgent(name="a", model=ScriptedLlm(first), after_model_callback=by_name("after_model", other))
        [event] = Talk(agent).say()
        return event.text, event.turn_complete, event.partial, event.usage_metadata

    assert replies(response("y")) == ("y", True, False, usage)
    function_response = response("z").model_copy(update={"usage_metadata": metadata, "turn_complete": False})
    assert replies(function_response) == ("z", False, False, metadata)


def test_after_model_may_turn_words_into_a_call_and_a_call_into_words():
    called = LlmResponse(content=types.Content(role="model", parts=[call("look")]))
    answers = iter([called, None])

    agent = LlmAgent(
        name="a",
        model=ScriptedLlm("words", "done"),
        tools=[look],
        after_model_callback=lambda callback_context, llm_response: next(answers),
    )
    assert [text for _, text in summaries(Talk(agent).say())] == [
        "calls look({})",
        "answers {'result': 'seen'}",
        "done .",
    ]

    agent = LlmAgent(
        name="a",
        model=ScriptedLlm(call("boom")),
        tools=[boom],
        after_model_callback=by_name("after_model", response("no")),
    )
    assert [text for _, text in summaries(Talk(agent).say())] == ["no ."]
