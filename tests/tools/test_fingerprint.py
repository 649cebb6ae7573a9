"""What an approval is bound to: the code of a tool, and not the data that the tool changes while it works."""

from collections.abc import Callable
from typing import Any

from adk_nb.models.scripted_llm import call
from adk_nb.tools import FunctionTool
from adk_nb.tools.fingerprint import code_fingerprint, fingerprint
from tests.support.shop import open_approvals, part_of
from tests.support.talk import Talk, guide


def test_the_second_of_two_approvals_holds_though_the_first_call_has_counted():
    done: list[int] = []
    count = 0

    def pay(amount: int, log: list[int] = []) -> str:  # noqa: B006  # such a default is what this is about
        """Pay."""
        nonlocal count
        count += 1
        log.append(amount)
        done.append(amount)
        return f"paid {count}"

    tool = FunctionTool(pay, require_confirmation=True)
    talk = Talk(guide([call("pay", amount=5), call("pay", amount=6)], "One.", "Both.", tools=[tool]))
    talk.say("pay twice")
    for one in open_approvals(talk):
        talk.say([part_of(one.id, {"confirmed": True})])

    assert done == [5, 6] and open_approvals(talk) == []


def counting(step: int) -> Callable[..., Any]:
    state = {"n": 0}

    def helper(*, by: int = 1) -> int:
        state["n"] += by * step
        return state["n"]

    return helper


def test_data_that_a_function_is_closed_over_is_no_part_of_it():
    helper = counting(1)
    before = code_fingerprint(helper)
    helper()

    assert code_fingerprint(helper) == before


def test_code_that_a_function_is_closed_over_is():
    def around(func: Callable[..., Any]) -> Callable[..., Any]:
        def run() -> Any:
            return func()

        return run

    assert code_fingerprint(around(lambda: 1)) != code_fingerprint(around(lambda: 2))


def test_defaults_that_cannot_change_are_a_part_of_it():
    def make(value: Any) -> Callable[..., Any]:
        def positional(limit: Any = value) -> Any:
            return limit

        return positional

    def make_keyword(first: Any, second: Any) -> Callable[..., Any]:
        def keyword(*, one: Any = first, two: Any = second) -> Any:
            return one, two

        return keyword

    assert code_fingerprint(make(1)) != code_fingerprint(make(2))
    assert code_fingerprint(make(1)) != code_fingerprint(make((1,)))
    found = {code_fingerprint(make_keyword(*both)) for both in [(1, 2), (1, 3), (2, 2), (True, 2), (None, None)]}
    assert len(found) == 5


def test_helpers_that_differ_in_keyword_defaults_alone_make_two_tools():
    def tool_with(*limits: int) -> FunctionTool:
        def check(limit: int) -> Callable[..., bool]:
            def is_below(amount: int, *, below: int = limit) -> bool:
                return amount < below

            return is_below

        first, second, third = map(check, limits)

        def pay(amount: int) -> bool:
            """Pay."""
            return first(amount) and second(amount) and third(amount)

        return FunctionTool(pay)

    limits = [(10, 10, 10), (10_000, 10, 10), (10, 10_000, 10), (10, 10, 10_000)]
    assert len({fingerprint(tool_with(*each)) for each in limits}) == 4
    assert fingerprint(tool_with(1, 2, 3)) == fingerprint(tool_with(1, 2, 3))


def test_a_chain_of_any_depth_can_be_described():
    def wrap(func: Callable[..., Any]) -> Callable[..., Any]:
        def run() -> Any:
            return func()

        return run

    func: Callable[..., Any] = len
    for _ in range(20_000):
        func = wrap(func)
    nested: Any = ()
    for _ in range(20_000):
        nested = (nested,)

    def pay(amount: int, of: Any = nested) -> None:
        func()

    assert code_fingerprint(pay) == code_fingerprint(pay)
