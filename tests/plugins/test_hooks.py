"""Where each hook of a plugin stands, what it is handed, and what its answer does."""

import logging
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import pytest

from adk_nb import sync, types
from adk_nb.agents import LlmAgent, RunConfig, StreamingMode
from adk_nb.errors import InputError, PluginError
from adk_nb.events import Event
from adk_nb.models import LlmResponse, ScriptedLlm, call
from adk_nb.plugins import BasePlugin
from tests.support.each import each
from tests.support.talk import SESSION_KEY, Talk, authors, boom, guide, look, requests, summaries

POINTS = (
    "on_user_message", "before_run", "after_run", "on_event", "before_agent", "after_agent", "on_agent_error",
    "before_model", "after_model", "on_model_error", "before_tool", "after_tool", "on_tool_error", "on_run_error",
)  # fmt: skip


def plugin(name: str = "p", **hooks: Callable[..., Any]) -> BasePlugin:
    """A plugin with these hooks, by point; each is handed what the method is, without itself."""

    def method(hook: Callable[..., Any]) -> Callable[..., Any]:
        async def callback(self: BasePlugin, **kwargs: Any) -> Any:
            return hook(**kwargs)

        return callback

    methods = {f"{point}_callback": method(hook) for point, hook in hooks.items()}
    return type("Own", (BasePlugin,), methods)(name)


def noting(texts: list[str], mark: str = "P.") -> BasePlugin:
    """A plugin with all hooks; each notes its name."""

    def make(point: str) -> Callable[..., None]:
        return lambda **kwargs: texts.append(mark + point)

    return plugin(mark, **{point: make(point) for point in POINTS})


def own(texts: list[str]) -> dict[str, Any]:
    """An agent's callbacks; each notes its name."""
    kinds = [point for point in POINTS if point.endswith(("agent", "model", "tool"))]
    kinds += ["on_model_error", "on_tool_error"]

    def make(kind: str) -> Callable[..., None]:
        return lambda **kwargs: texts.append(kind)

    return {f"{kind}_callback": make(kind) for kind in kinds}


def words(text: str) -> types.Content:
    return types.Content(role="model", parts=[types.Part(text=text)])


def test_plugins_are_asked_before_the_agent_at_every_point_of_a_turn():
    log: list[str] = []
    agent = guide(call("look"), "done", tools=[look], **own(log))

    Talk(agent, plugins=[noting(log)]).say()

    assert log == [
        "P.on_user_message", "P.before_run", "P.before_agent", "before_agent",
        "P.before_model", "before_model", "P.after_model", "after_model", "P.on_event",
        "P.before_tool", "before_tool", "P.after_tool", "after_tool", "P.on_event",
        "P.before_model", "before_model", "P.after_model", "after_model", "P.on_event",
        "P.after_agent", "after_agent", "P.after_run",
    ]  # fmt: skip


def test_the_order_when_a_tool_ends_the_run():
    log: list[str] = []
    agent = guide(call("boom"), tools=[boom], tool_errors="raise", **own(log))

    Talk(agent, plugins=[noting(log)]).say()

    assert log[log.index("P.before_tool") :] == [
        "P.before_tool", "before_tool", "P.on_tool_error", "on_tool_error",
        "P.on_agent_error", "P.on_event", "P.on_run_error",
    ]  # fmt: skip


def test_the_order_when_the_model_fails():
    log: list[str] = []

    Talk(guide(ValueError("down"), **own(log)), plugins=[noting(log)]).say()

    assert log[log.index("P.before_model") :] == [
        "P.before_model", "before_model", "P.on_model_error", "on_model_error",
        "P.on_agent_error", "P.on_event", "P.on_run_error",
    ]  # fmt: skip


def test_each_hook_is_handed_what_its_signature_says():
    values: dict[str, set[str]] = {}

    def note(point: str) -> Callable[..., None]:
        return lambda **kwargs: values.update({point: set(kwargs)})

    notes = {point: note(point) for point in POINTS}

    Talk(guide(call("look"), "done", tools=[look]), plugins=[plugin(**notes)]).say()
    Talk(guide(call("boom"), tools=[boom], tool_errors="raise"), plugins=[plugin(**notes)]).say()
    Talk(guide(ValueError("down")), plugins=[plugin(**notes)]).say()

    assert values == {point: names_of(point) for point in POINTS}


def names_of(point: str) -> set[str]:
    code = getattr(BasePlugin, f"{point}_callback").__code__
    return set(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]) - {"self"}


def test_a_hook_is_handed_the_agent_the_arguments_and_the_result():
    agents: list[Any] = []
    agent = guide(call("look"), "done", tools=[look])
    hooks = plugin(
        before_agent=lambda agent, callback_context: agents.append(agent),
        before_tool=lambda tool, tool_args, tool_context: agents.append((tool.name, tool_args)),
        after_tool=lambda tool, tool_args, tool_context, result: agents.append(result),
    )

    Talk(agent, plugins=[hooks]).say()

    assert agents == [agent, ("look", {}), "seen"]


@pytest.mark.parametrize(
    ("point", "answer", "own_callback"),
    [
        ("before_agent", words("no"), "before_agent"),
        ("before_model", LlmResponse(content=words("no")), "before_model"),
        ("after_model", LlmResponse(content=words("no")), "after_model"),
        ("before_tool", {"no": 1}, "before_tool"),
        ("after_tool", {"no": 1}, "after_tool"),
    ],
)
def test_the_first_answer_stops_the_later_plugins_and_the_agents_own(point: str, answer: Any, own_callback: str):
    log: list[str] = []
    first = plugin("first", **{point: lambda **kwargs: answer})
    agent = guide(call("look"), "done", tools=[look], **own(log))

    events = Talk(agent, plugins=[first, noting(log)]).say()

    assert f"P.{point}" not in log
    assert own_callback not in log
    assert any("no" in text for _, text in summaries(events))


def test_a_message_is_replaced_before_it_is_stored():
    agent = guide("hello")
    talk = Talk(
        agent, plugins=[plugin(on_user_message=lambda **kwargs: types.Content(parts=[types.Part(text="other")]))]
    )

    talk.say("mine")

    assert requests(agent) == [[("user", "other")]]
    assert talk.stored().events[0].text == "other"


def test_a_replaced_message_is_checked_like_one_of_the_users():
    calls = types.Content(role="user", parts=[call("look")])
    talk = Talk(guide(), plugins=[plugin(on_user_message=lambda **kwargs: calls)])

    assert talk.say() == []

    assert isinstance(talk.error, InputError)
    assert talk.stored().events == []


def test_before_run_can_answer_in_the_agents_place():
    agent, text = guide(), list[str]()
    talk = Talk(agent, plugins=[plugin(before_run=lambda **kwargs: words("early")), noting(text)])

    assert summaries(talk.say()) == [("model", "early .")]

    assert authors(talk) == ["user", "model"]
    assert requests(agent) == []
    assert text == ["P.on_user_message", "P.on_event", "P.after_run"]


def test_an_event_is_replaced_in_what_is_set_and_stays_itself():
    originals: list[Event] = []

    def other(event: Event, **kwargs: Any) -> Event:
        originals.append(event)
        return Event(id="x", invocation_id="y", timestamp=1.0, content=words("EV"))

    talk = Talk(guide("hello", output_key="k"), plugins=[plugin(on_event=other)])

    [event] = talk.say()

    [earlier_original] = originals
    assert (event.text, earlier_original.text) == ("EV", "hello")
    assert (event.id, event.invocation_id, event.timestamp) == (
        earlier_original.id,
        earlier_original.invocation_id,
        earlier_original.timestamp,
    )
    assert (event.author, event.actions.state_delta) == ("guide", {"k": "hello"})
    assert talk.stored().events[-1].text == "EV"


def test_a_piece_is_shown_to_plugins_and_not_stored():
    partials: list[bool | None] = []
    talk = Talk(guide("a b"), plugins=[plugin(on_event=lambda event, **kwargs: partials.append(event.partial))])

    talk.say(config=RunConfig(streaming_mode=StreamingMode.SSE))

    assert partials == [True, True, None]
    assert len(talk.stored().events) == 2


def test_a_plugin_that_answers_with_no_event_is_told_so():
    talk = Talk(guide("hello"), plugins=[plugin(on_event=lambda **kwargs: "hm")])

    talk.say()

    assert "on_event_callback" in str(talk.error)


def wrong(**kwargs: Any) -> None:
    raise KeyError("bad")


@each("point", [point for point in POINTS if not point.endswith("_error")])
def test_a_hook_that_raises_ends_the_run_and_says_whose_it_is(point: str):
    talk = Talk(guide(call("look"), "done", tools=[look]), plugins=[plugin("odd", **{point: wrong})])

    events = talk.say()

    assert isinstance(talk.error, RuntimeError)
    assert isinstance(talk.error, PluginError)
    assert str(talk.error) == f"plugin 'odd': {point}_callback raised KeyError: 'bad'"
    assert isinstance(talk.error.__cause__, KeyError)
    if point == "on_user_message":  # nothing was stored yet
        assert talk.stored().events == []
        return
    assert events[-1].error_code == "RuntimeError"
    assert talk.stored().events[-1].error_message == str(talk.error)


@pytest.mark.parametrize("point", ["on_agent_error", "on_run_error"])
def test_a_hook_that_hears_of_an_error_does_not_hide_it(point: str, caplog: pytest.LogCaptureFixture):
    log: list[str] = []
    talk = Talk(guide(ValueError("down")), plugins=[plugin("odd", **{point: wrong}), noting(log)])

    with caplog.at_level(logging.ERROR):
        talk.say()

    assert str(talk.error) == "down"
    assert f"P.{point}" in log
    assert f"plugin 'odd': {point}_callback raised" in caplog.text


def test_state_that_a_hook_writes_is_kept_with_the_event_that_follows():
    def write(callback_context: Any, **kwargs: Any) -> None:
        callback_context.state["asked"] = callback_context.state.get("asked", 0) + 1

    talk = Talk(guide("hello"), plugins=[plugin(before_model=write)])

    [event] = talk.say()

    assert event.actions.state_delta == {"asked": 1}
    assert talk.stored().state == {"asked": 1}


def test_a_request_that_a_hook_edits_is_not_the_sessions_own():
    def shout(llm_request: Any, **kwargs: Any) -> None:
        for content in llm_request.contents:
            for part in content.parts:
                part.text = part.text.upper()

    agent = guide("one", "two")
    talk = Talk(agent, plugins=[plugin(before_model=shout)])
    talk.say("a")
    talk.say("b")

    assert requests(agent)[1] == [("user", "A"), ("model", "ONE"), ("user", "B")]
    assert [event.text for event in talk.stored().events] == ["a", "one", "b", "two"]


def test_a_reader_that_leaves_early_ends_the_run_for_the_plugins_too():
    log: list[str] = []
    talk = Talk(guide("hello"), plugins=[noting(log)])

    async def one() -> None:
        async with aclosing(talk.runner.run_async(**SESSION_KEY, new_message="hi")) as events:
            await anext(events)

    sync.run(one())

    assert log[-1] == "P.after_run"


def test_two_concurrent_sessions_are_kept_apart():
    log: dict[str, list[str]] = {}

    def note(invocation_context: Any, event: Event) -> None:
        log.setdefault(invocation_context.session.id, []).append(event.text)

    agent = LlmAgent(name="guide", model=ScriptedLlm("one", "two"))
    talk = Talk(agent, plugins=[plugin(on_event=note)])
    talk.open("other")

    talk.say()
    talk.say(session_id="other")

    assert log == {"s": ["one"], "other": ["two"]}
