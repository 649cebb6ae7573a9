"""What google-adk 2.13 sent its models on the same scripts: instructions, histories, what is told of other agents.

Written down by hand from what google-adk was seen to send. DEVIATES marks where ours is meant to differ, and how; the
words around quotes and moved instructions are our own, and arguments and results of others are told as JSON.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from adk_nb import types
from adk_nb.agents import BaseAgent, InvocationContext, LlmAgent
from adk_nb.agents.readonly_context import ReadonlyContext
from adk_nb.events import Event, EventActions
from adk_nb.models import ScriptedLlm, call
from tests.support.histories import answer, seen, text, told
from tests.support.histories import call as calls
from tests.support.talk import Talk, requests

IDENTITY = 'You are an agent. Your internal name is "{}".'
MARK = "\n<<<BEGIN_SYSTEM_INSTRUCTION>>>\n{}\n<<<END_SYSTEM_INSTRUCTION>>>"


def agent(name: str, *answers: Any, **fields: Any) -> LlmAgent:
    return LlmAgent(name=name, model=ScriptedLlm(*answers), **fields)


def instruction(it: LlmAgent, at: int = 0) -> Any:
    assert isinstance(it.model, ScriptedLlm)
    return it.model.requests[at].config.system_instruction


def asked(it: LlmAgent) -> list[list[tuple[str, str]]]:
    """What the model was sent, request by request; others' doings in a line, a moved instruction as `[instruction]`."""
    return [[(role, _short(words)) for role, words in told(contents)] for contents in requests(it)]


def _short(words: str) -> str:
    begin, end = MARK.split("{}")
    return f"[{words.partition(begin)[2].removesuffix(end)}]" if begin in words else words


class Row(BaseAgent):
    """Its agents, one after another; those in `apart` each on a branch of its own."""

    row: list[Any]
    apart: tuple[str, ...] = ()

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        for one in self.row:
            inner = replace(ctx, branch=f"par.{one.name}") if one.name in self.apart else ctx
            async with aclosing(one.run_async(inner)) as events:
                async for event in events:
                    yield event


def w() -> dict[str, int]:
    """Works."""
    return {"ok": 1}


def transfer(author: str, to: str, key: str) -> list[Event]:
    return [
        calls(key, author=author, name="transfer_to_agent"),
        answer(
            key, author=author, name="transfer_to_agent", says_="result", actions=EventActions(transfer_to_agent=to)
        ),
    ]


def test_6_a_transfer_there_and_back():
    there = [text("hello"), *transfer("root", "b", "1")]
    second = [*there, text("B says hi", "b"), text("second"), text("B again", "b"), text("third")]
    back = [*second, *transfer("b", "root", "2")]
    told_b = [
        ("user", '[root] called tool `transfer_to_agent` with parameters: <{"of":"1"}>'),
        ("user", '[root] `transfer_to_agent` tool returned result: <{"result":"1"}>'),
    ]

    assert told(seen(*there, agent="b")) == [("user", "hello"), *told_b]
    assert told(seen(*second, agent="b")) == [
        ("user", "hello"),
        *told_b,
        ("model", "B says hi"),
        ("user", "second"),
        ("model", "B again"),
        ("user", "third"),
    ]
    assert told(seen(*back, agent="root")) == [
        ("user", "hello"),
        ("model", "calls transfer_to_agent({'of': '1'})"),
        ("user", "answers {'result': '1'}"),
        ("user", "[b] said: <B says hi>"),
        ("user", "second"),
        ("user", "[b] said: <B again>"),
        ("user", "third"),
        ("user", '[b] called tool `transfer_to_agent` with parameters: <{"of":"2"}>'),
        ("user", '[b] `transfer_to_agent` tool returned result: <{"result":"2"}>'),
    ]


def test_10_what_an_agent_that_is_a_tool_says_is_not_told_to_its_caller():
    events = [
        text("earlier"),
        text("turn0", "root"),
        text("hello"),
        calls("5", author="root", name="tr"),
        text("translated", "tr", branch="tr@5"),
        answer("5", author="root", name="tr", says_="result"),
    ]

    assert seen(*events, agent="root") == [
        ("user", "earlier"),
        ("model", "turn0"),
        ("user", "hello"),
        ("model", "calls tr({'of': '5'})"),
        ("user", "answers {'result': '5'}"),
    ]
    # 10b: the tool itself sees what led to its call
    assert told(seen(*events[:4], agent="tr", branch="tr@5")) == [
        ("user", "earlier"),
        ("user", "[root] said: <turn0>"),
        ("user", "hello"),
        ("user", '[root] called tool `tr` with parameters: <{"of":"5"}>'),
    ]


def test_y10_two_such_agents_side_by_side():
    events = [
        text("go"),
        calls("1", "2", author="root", name="t"),
        text("t1 out", "t1", branch="t1@1"),
        text("t2 out", "t2", branch="t2@2"),
        answer("1", "2", author="root", name="t"),
    ]

    assert [role for role, _ in seen(*events, agent="root")] == ["user", "model", "user"]


def test_17_the_second_of_two_agents_is_told_what_the_first_said():
    x, y = agent("x", "A out"), agent("y", "B out", instruction="use {xo}")
    talk = Talk(Row(name="seq", row=[x, y]), {"xo": "A out"})

    talk.say("go")

    assert asked(x) == [[("user", "go")]]
    assert asked(y) == [[("user", "go"), ("user", "[x] said: <A out>")]]
    assert instruction(y) == f"use A out\n\n{IDENTITY.format('y')}"


def test_18_two_agents_in_turns():
    x, y = agent("x", "w1", "w2"), agent("y", "r1", "r2")

    Talk(Row(name="loop", row=[x, y, x, y])).say("go")

    assert asked(x)[1] == [("user", "go"), ("model", "w1"), ("user", "[y] said: <r1>")]
    assert asked(y) == [
        [("user", "go"), ("user", "[x] said: <w1>")],
        [("user", "go"), ("user", "[x] said: <w1>"), ("model", "r1"), ("user", "[x] said: <w2>")],
    ]


def test_19_agents_side_by_side_do_not_see_each_other_and_who_comes_after_sees_both():
    x, y, z = agent("x", "PA"), agent("y", "PB"), agent("z", "merged")

    Talk(Row(name="par", row=[x, y, z], apart=("x", "y"))).say("go")

    assert asked(x) == asked(y) == [[("user", "go")]]
    assert asked(z) == [[("user", "go"), ("user", "[x] said: <PA>"), ("user", "[y] said: <PB>")]]


def test_20_the_present_turn_alone():
    it = agent("a", "1", call("w"), "2", tools=[w], include_contents="none")
    talk = Talk(it)

    talk.say("first")
    talk.say("second")

    assert asked(it) == [
        [("user", "first")],
        [("user", "second")],
        [("user", "second"), ("model", "calls w({})"), ("user", "answers {'ok': 1}")],
    ]


def test_20b_the_present_turn_alone_after_another_agent():
    x, y = agent("x", "A out"), agent("y", "B out", include_contents="none")

    Talk(Row(name="seq", row=[x, y])).say("go")

    assert asked(y) == [[("user", "[x] said: <A out>")]]


def test_20c_the_present_turn_alone_after_a_transfer():
    assert told(seen(text("go"), *transfer("a", "b", "1"), agent="b", this_turn=True)) == [
        ("user", "go"),
        ("user", '[a] called tool `transfer_to_agent` with parameters: <{"of":"1"}>'),
        ("user", '[a] `transfer_to_agent` tool returned result: <{"result":"1"}>'),
    ]


def test_21_static_and_global():
    it = agent("a", "1", "2", static_instruction="STATIC {x}", global_instruction="glob {x}", instruction="dyn {x}")
    talk = Talk(it, {"x": "X"})

    talk.say("q1")
    talk.say("q2")

    # DEVIATES: google-adk puts the global instruction first, where it makes the static one useless to a cache.
    said = f"STATIC {{x}}\n\nglob X\n\n{IDENTITY.format('a')}"
    assert [instruction(it, at) for at in (0, 1)] == [said, said]
    assert asked(it) == [
        [("user", "[dyn X]"), ("user", "q1")],
        [("user", "q1"), ("model", "1"), ("user", "[dyn X]"), ("user", "q2")],
    ]


def test_21b_data_in_what_is_static():
    png = types.Part(inline_data=types.Blob(data=b"zz", mime_type="image/png"))
    it = agent("a", "1", static_instruction=types.Content(parts=[types.Part(text="ST"), png]), instruction="dyn")

    Talk(it).say("q1")

    st, reference, identity = instruction(it).split("\n\n")
    assert (st, identity) == ("ST", IDENTITY.format("a"))
    assert "inline_data_0" in reference and "image/png" in reference
    assert isinstance(it.model, ScriptedLlm)
    [data, moved, question] = it.model.requests[0].contents
    assert data.role == "user" and data.parts and data.parts[1] == png and "inline_data_0" in (data.parts[0].text or "")
    assert [words for _, words in asked(it)[0][1:]] == ["[dyn]", "q1"] and moved.role == question.role == "user"


def test_21c_an_instruction_from_a_function():
    def provider(ctx: ReadonlyContext) -> str:
        return f"prov {{x}} {ctx.state['x']}"

    it = agent("a", "1", instruction=provider)

    Talk(it, {"x": "X"}).say("q1")

    assert instruction(it) == f"prov {{x}} X\n\n{IDENTITY.format('a')}"


def test_h4_a_schema_in_an_instruction_stays_as_it_is():
    schema = '{\n  "properties": {\n    "capital": {\n      "title": "Capital"\n    }\n  }\n}'
    it = agent("a", "1", instruction=f'Json {{"country": "n"}} {schema}')

    Talk(it).say("France")

    assert instruction(it) == f'Json {{"country": "n"}} {schema}\n\n{IDENTITY.format("a")}'


def test_z3_what_a_tool_says_while_it_works_is_not_told_to_the_model():
    events = [
        text("hi"),
        calls("3", author="a", name="gen"),
        Event(author="gen", branch="gen@3", content=types.Content(role="user", parts=[types.Part(text="progress")])),
        answer("3", author="a", name="gen", says_="final"),
    ]

    assert seen(*events, agent="a") == [
        ("user", "hi"),
        ("model", "calls gen({'of': '3'})"),
        ("user", "answers {'final': '3'}"),
    ]


def test_z11_an_answer_of_thoughts_alone_is_not_told_again():
    it = agent("a", types.Part(text="hm", thought=True), "2")
    talk = Talk(it)

    talk.say("hi")
    talk.say("again")

    assert asked(it)[1] == [("user", "hi"), ("user", "again")]
