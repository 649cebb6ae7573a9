"""A function as a tool: what it is called with, where it runs, and what it leaves on the event with its result."""

import asyncio
import functools
import math
import re
import threading
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal, TypedDict, Unpack

import pytest
from pydantic import BaseModel, Field, field_validator

from adk_nb import sync
from adk_nb.agents import LlmAgent
from adk_nb.errors import ConfigurationError
from adk_nb.events import Event
from adk_nb.models.scripted_llm import ScriptedLlm, call
from adk_nb.runners import InMemoryRunner
from adk_nb.tools import FunctionTool, LongRunningFunctionTool, ToolContext, tool
from tests.support.each import each
from tests.support.talk import Talk


class Color(Enum):
    RED = "red"


class Place(BaseModel):
    name: str
    height: int = 0

    @field_validator("name")
    @classmethod
    def has_a_name(cls, name: str) -> str:
        if not name:
            raise ValueError("a place has a name")
        return name


@dataclass
class Size:
    width: int


def results(events: list[Event]) -> list[dict[str, Any]]:
    return [response.response or {} for event in events for response in event.get_function_responses()]


def called(func: Any, **args: Any) -> dict[str, Any]:
    """What the model hears of one call."""
    wrapped = func if isinstance(func, FunctionTool) else FunctionTool(func)
    model = ScriptedLlm(call(wrapped.name, **args), "done")
    talk = Talk(LlmAgent(name="guide", model=model, tools=[wrapped]))
    events = talk.say()
    assert talk.error is None
    assert events[-1].text == "done"
    return results(events)[0]


def taken(hint: Any, value: Any) -> Any:
    """What a function with a parameter of this type is given for `value`."""
    xes: list[Any] = []

    def take(x):
        xes.append(x)

    take.__annotations__["x"] = hint
    answer = called(take, x=value)
    assert answer == {"result": None}, answer
    return xes[0]


@each(
    "hint, payload, value",
    [
        (int, 3.0, 3),
        (int, "5", 5),
        (float, 3, 3.0),
        (list[int], [1.0, 2], [1, 2]),
        (list[int], "[1, 2]", [1, 2]),
        (dict[str, int], '{"a": 1}', {"a": 1}),
        (set[int], [1, 1], {1}),
        (tuple[int, str], [1, "a"], (1, "a")),
        (int | None, None, None),
        (Color, "red", Color.RED),
        (Literal["x", 1], 1, 1),
        (date, "2024-02-29", date(2024, 2, 29)),
        (Place, {"name": "Oslo"}, Place(name="Oslo")),
        (Place, '{"name": "Oslo"}', Place(name="Oslo")),
        (Place | None, {"name": "Oslo"}, Place(name="Oslo")),
        (list[Place], [{"name": "Oslo", "height": 23.0}], [Place(name="Oslo", height=23)]),
        (Size, {"width": 3}, Size(3)),
        (Any, {"a": [1]}, {"a": [1]}),
        (str, '{"a": 1}', '{"a": 1}'),
        (str, "[not json", "[not json"),
    ],
)
def test_arguments_are_converted(hint: Any, payload: Any, value: Any):
    actual = taken(hint, payload)

    assert actual == value and type(actual) is type(value)


@each(
    "hint, payload, message",
    [
        (int, "abc", "x: Input should be a valid integer"),
        (int, 3.5, "x: Input should be a valid integer"),
        (Color, "pink", "x: Input should be 'red' (got 'pink')"),
        (Literal["a", "b"], "c", "x: Input should be 'a' or 'b'"),
        (list[int], [1, "b"], "x.1: Input should be a valid integer"),
        (list[int], "[1, 2", "x: Input should be a valid list"),
        (Place, {"nme": "Oslo"}, "x.name: Field required"),
        (Place, {"name": ""}, "x.name: Value error, a place has a name"),
        (Annotated[int, Field(ge=1)], 0, "x: Input should be greater than or equal to 1 (got 0)"),
        (str, None, "x: Input should be a valid string (got None)"),
    ],
)
def test_a_wrong_argument_goes_back_to_the_model_and_the_tool_does_not_run(hint: Any, payload: Any, message: str):
    ran: list[Any] = []

    def take(x):
        ran.append(x)

    take.__annotations__["x"] = hint
    answer = called(take, x=payload)

    assert answer["error"].startswith(f"take() was not called: wrong arguments: {message}")
    assert ran == []


def test_of_many_wrong_arguments_the_model_hears_a_few():
    def take(x: list[int]): ...

    answer = called(take, x=["no"] * 10_000)

    assert "and 9995 more" in answer["error"] and len(answer["error"]) < 1_000


def test_missing_arguments_are_named():
    def take(a: int, b: str, c: int = 3): ...

    assert called(take, c=1) == {
        "error": "take() was not called: the mandatory parameters a, b are missing. Call it again with all of them."
    }


def test_a_call_without_arguments_may_say_nothing():
    def take(a: int = 7) -> int:
        return a

    def script():
        part = call("take")
        part.function_call.args = None
        return part

    talk = Talk(LlmAgent(name="guide", model=ScriptedLlm(script(), "done"), tools=[take]))

    assert results(talk.say()) == [{"result": 7}]


def test_arguments_that_are_not_asked_for_are_dropped_unless_the_function_takes_any():
    def plain(a: int) -> int:
        return a

    def any_(a: int, **kwargs: Any) -> dict[str, Any]:
        return {"a": a} | kwargs

    assert called(plain, a=1, zzz=2) == {"result": 1}
    assert called(any_, a=1, zzz=2) == {"a": 1, "zzz": 2}


def test_arguments_of_other_names_are_of_the_type_that_they_have():
    def total(unit: str, **amounts: float) -> str:
        return f"{sum(amounts.values()):g} {unit}"

    assert called(total, unit="kg", a=1, b="2.5") == {"result": "3.5 kg"}
    assert "wrong arguments: b: Input should be a valid number" in called(total, unit="kg", b="many")["error"]
    with pytest.raises(ConfigurationError, match=r"parameter '\*\*locks'"):
        FunctionTool(_locked)


def _locked(**locks: threading.Event) -> None: ...


class _Sizes(TypedDict):
    width: int


def _sized(**sizes: Unpack[_Sizes]) -> dict[str, Any]:
    return dict(sizes)


def test_arguments_that_are_typed_by_name_are_taken_as_they_come():
    assert called(_sized, width="wide", other=1) == {"width": "wide", "other": 1}


def test_json_text_is_read_only_where_text_does_not_fit():
    def take(code: str, items: list[int]) -> dict[str, Any]:
        return {"code": code, "items": items}

    assert called(take, code='{"a": 1}', items="[1]") == {"code": '{"a": 1}', "items": [1]}


def test_what_a_partial_filled_in_is_not_the_models_to_say():
    def pay(account: str, amount: int, **kwargs: Any) -> str:
        return f"{account} {amount} {kwargs}"

    bound = functools.partial(pay, account="mine")

    assert called(bound, amount=3, account="theirs", note="x") == {"result": "mine 3 {'note': 'x'}"}


def test_parameters_that_take_no_keyword_are_filled():
    def minus(a: int, b: int = 1, /, *, c: int = 0) -> int:
        return a - b - c

    assert called(minus, a=5, b=2, c=1) == {"result": 2}
    assert called(minus, a=5) == {"result": 4}
    assert called(tool(name="root", description="Square root.")(_typed(math.sqrt)), x=9) == {"result": 3.0}


def _typed(func: Any) -> Any:
    def root(x: float) -> float:
        return func(x)

    return root


def test_a_function_with_defaults_of_any_kind_is_called_with_them():
    lock = threading.Lock()

    def take(a: Any = lock, b: float = math.nan, c: int = Field(4, ge=1)) -> list[Any]:
        return [a is lock, math.isnan(b), c]

    assert called(take) == {"result": [True, True, 4]}


def test_what_a_tool_does_to_its_arguments_stays_out_of_the_history():
    def take(items: Any) -> int:
        items.append("mine")
        return len(items)

    talk = Talk(LlmAgent(name="guide", model=ScriptedLlm(call("take", items=[1]), "done"), tools=[take]))
    talk.say()

    assert talk.stored().events[1].get_function_calls()[0].args == {"items": [1]}


def test_sync_and_async_functions_methods_and_callables_run():
    class Adder:
        def __init__(self, by: int) -> None:
            self.by = by

        def plain(self, x: int) -> int:
            return x + self.by

        async def slow(self, x: int) -> int:
            await asyncio.sleep(0)
            return x + self.by

    class AsyncCallable(Adder):
        async def __call__(self, x: int) -> int:
            return x + self.by

    class Inherits(AsyncCallable): ...

    async def swallow(x: int, by: int) -> int:
        return x + by

    for item in (Adder(1).plain, Adder(1).slow, AsyncCallable(1), Inherits(1), functools.partial(swallow, by=1)):
        assert called(item, x=1) == {"result": 2}


def test_a_sync_function_may_return_a_coroutine():
    async def later(x: int) -> int:
        return x + 1

    def now(x: int):
        return later(x)

    assert called(now, x=1) == {"result": 2}


@pytest.mark.parametrize("hint", [ToolContext, ToolContext | None, "ToolContext"], ids=str)
def test_the_context_is_injected_by_annotation(hint: Any):
    def who(x: int, ctx=None) -> str:
        return f"{x} {ctx.agent_name} {ctx.user_id} {ctx.function_call_id is not None} {ctx.tool_confirmation}"

    who.__annotations__["ctx"] = hint

    assert called(who, x=1) == {"result": "1 guide u True None"}


def test_the_context_is_injected_by_name_and_not_the_models_to_say():
    def who(tool_context) -> str:
        return type(tool_context).__name__

    assert called(who, tool_context="mine") == {"result": "Context"}


def test_state_and_actions_of_a_tool_are_on_the_event_with_its_result():
    def note(tool_context: ToolContext) -> dict[str, Any]:
        tool_context.state["seen"] = 1
        tool_context.state["list"].append(2)
        tool_context.state["user:name"] = "Ada"
        tool_context.actions.escalate = True
        tool_context.actions.skip_summarization = True
        return {"ok": True}

    talk = Talk(LlmAgent(name="guide", model=ScriptedLlm(call("note")), tools=[note]), state={"list": [1]})
    event = talk.say()[-1]

    assert event.get_function_responses()[0].response == {"ok": True}
    assert event.actions.state_delta == {"seen": 1, "list": [1, 2], "user:name": "Ada"}
    assert event.actions.escalate and event.is_final_response()
    assert talk.stored().state == {"seen": 1, "list": [1, 2], "user:name": "Ada"}


def test_the_next_tool_reads_what_the_last_one_wrote():
    def write(tool_context: ToolContext) -> None:
        tool_context.state["n"] = tool_context.state.get("n", 0) + 1

    model = ScriptedLlm(call("write"), call("write"), "done")
    talk = Talk(LlmAgent(name="guide", model=model, tools=[write]))
    talk.say()

    assert talk.stored().state == {"n": 2}


@pytest.mark.parametrize("mode", ["set", "hidden in a list", "put into the delta", "nested in itself"])
def test_state_that_cannot_be_kept_is_told_to_the_model_and_the_run_goes_on(mode: str):
    half = "\ud800"  # half a character, which no text of JSON can hold

    def write(tool_context: ToolContext) -> str:
        tool_context.state["good"] = 1
        if mode == "set":
            tool_context.state["bad"] = half
        elif mode == "hidden in a list":
            bad: list[Any] = []
            tool_context.state["bad"] = bad
            bad.append(half)
        elif mode == "put into the delta":
            tool_context.actions.state_delta["bad"] = half
        else:
            tool_context.state["list"].append(tool_context.state["list"])
        return "written"

    talk = Talk(LlmAgent(name="guide", model=ScriptedLlm(call("write"), "done"), tools=[write]), state={"list": []})
    events = talk.say()

    assert talk.error is None and events[-1].text == "done"
    assert "error" in results(events)[0]
    assert talk.stored().state["good"] == 1 and "bad" not in talk.stored().state
    Event.model_validate_json(talk.stored().model_copy().events[-2].model_dump_json(by_alias=True))


def plain() -> str:
    return threading.current_thread().name


def agent_of(*tools: Any) -> InMemoryRunner:
    names = [tool.name if isinstance(tool, FunctionTool) else tool.__name__ for tool in tools]
    model = ScriptedLlm(*(call(name) for name in names), "done")
    return InMemoryRunner(LlmAgent(name="guide", model=model, tools=list(tools)), auto_create_session=True)


def test_a_sync_tool_runs_in_a_worker_thread_under_plain_run_async():
    async def run() -> list[Event]:
        events = agent_of(plain).run_async(user_id="u", session_id="s", new_message="hi")
        return [event async for event in events]

    assert results(asyncio.run(run()))[0]["result"].startswith("adk-nb-worker")


def test_a_sync_tool_runs_in_the_callers_thread_under_run_and_elsewhere_if_it_asks_to():
    tool = FunctionTool(plain, thread=True, name="elsewhere")

    events = list(agent_of(plain, tool).run(user_id="u", session_id="s", new_message="hi"))

    outcome, result = (result["result"] for result in results(events))
    assert outcome == threading.current_thread().name
    assert result.startswith("adk-nb-worker")


def test_an_async_tool_runs_on_the_loop_of_the_run():
    async def here() -> str:
        return threading.current_thread().name

    async def run() -> list[Event]:
        events = agent_of(here).run_async(user_id="u", session_id="s", new_message="hi")
        return [event async for event in events]

    assert results(asyncio.run(run())) == [{"result": threading.current_thread().name}]


def test_the_items_of_what_a_tool_returns_are_made_in_the_thread_of_the_tool():
    def items():
        return (threading.current_thread().name for _ in range(3))

    events = list(agent_of(items).run(user_id="u", session_id="s", new_message="hi"))

    assert results(events) == [{"result": [threading.current_thread().name] * 3}]


def test_a_tool_may_itself_talk_to_an_agent():
    inner = InMemoryRunner(LlmAgent(name="inner", model=ScriptedLlm("from inside")), auto_create_session=True)

    def ask() -> str:
        return list(inner.run(user_id="u", session_id="s", new_message="hi"))[-1].text

    assert called(ask) == {"result": "from inside"}


def test_a_decorated_function_is_still_a_function():
    @tool(name="plus", description="Adds.")
    def add(a: int, b: int = 1) -> int:
        """Not told."""
        return a + b

    assert add(2, b=3) == 5
    assert (add.name, add.description) == ("plus", "Adds.")
    assert called(add, a=1) == {"result": 2}


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("require_confirmation", "@tool takes no 'require_confirmation'; write @tool(confirm=...)"),
        ("is_long_running", "write @tool(long_running=...)"),
        ("time_out", "write @tool(timeout=...)"),
        ("colour", "there is: confirm, auth_config, thread"),
    ],
)
def test_an_option_that_there_is_not_is_told_with_the_one_that_is_meant(option: str, text: str):
    function_tool: Any = tool
    with pytest.raises(ConfigurationError, match=re.escape(text)):
        function_tool(**{option: True})


def test_a_tool_is_not_wrapped_as_if_it_were_a_function():
    @tool(confirm=True)
    def pay(amount: int) -> str:
        """Pay."""
        return f"paid {amount}"

    for kind in (FunctionTool, LongRunningFunctionTool):
        with pytest.raises(ConfigurationError, match="'pay'"):
            kind(pay)
    assert FunctionTool(pay.func).name == "pay"


def test_what_is_no_function_makes_no_tool():
    for kind in (FunctionTool, LongRunningFunctionTool):
        with pytest.raises(ConfigurationError, match="function, got 3"):
            kind(3)  # pyright: ignore[reportArgumentType]  # what a newcomer may write
    with pytest.raises(ConfigurationError, match=r"auth_config must.*AuthConfig.*str; write AuthCon"):
        FunctionTool(results, auth_config="the-key")  # pyright: ignore[reportArgumentType]
    misused: Any = tool
    with pytest.raises(ConfigurationError, match=r"got 'pay';.*@tool\(name='...'.*confirm="):
        misused("pay")(print)


def test_a_lambda_with_a_name_of_its_own_is_a_tool():
    double: Any = lambda x=1: 2 * x  # noqa: E731  # it is the lambda that is tried
    double.__annotations__["x"] = int

    assert called(tool(name="double")(double), x=4) == {"result": 8}


def test_check_says_what_is_wrong_without_running_anything():
    def take(x: int): ...

    tool = FunctionTool(take)

    assert tool.check({"x": 1}) is None
    assert "x" in (tool.check({}) or "") and "abc" in (tool.check({"x": "abc"}) or "")


def test_sync_run_works_inside_a_sync_tool():
    async def work() -> int:
        return 7

    def take() -> int:
        return sync.run(work())

    assert called(take) == {"result": 7}
