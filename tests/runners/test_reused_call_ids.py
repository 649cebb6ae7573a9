"""A service may number its calls anew, and a model may choose any id: no call runs with another one's approval."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from adk_nb import sync, types
from adk_nb.agents import BaseAgent, LlmAgent, ParallelAgent
from adk_nb.events import Event
from adk_nb.models import RecordedLlm
from adk_nb.models.scripted_llm import ScriptedLlm
from adk_nb.runners import Runner
from adk_nb.runtime.history import open_interrupts
from adk_nb.runtime.interrupts import APPROVALS, Interrupt
from adk_nb.runtime.live_request_queue import LiveRequestQueue
from adk_nb.sessions import BaseSessionService, InMemorySessionService, SqliteSessionService
from adk_nb.tools import AgentTool, FunctionTool
from tests.support.shop import part_of


class Till:
    """Tools that note what they did; a session, kept in memory or in a file."""

    def __init__(self, service: BaseSessionService) -> None:
        self.service = service
        self.paid: list[int] = []
        self.booked: list[str] = []
        self.looked = 0

    def pay(self, amount: int) -> str:
        """Pay."""
        self.paid.append(amount)
        return "paid"

    def book(self, place: str) -> str:
        """Book."""
        self.booked.append(place)
        return "booked"

    def look(self) -> str:
        """Look."""
        self.looked += 1
        return "seen"

    def gated(self, name: str) -> FunctionTool:
        return FunctionTool(getattr(self, name), require_confirmation=True)

    async def asay(self, agent: BaseAgent, message: Any) -> list[Event]:
        async with Runner(
            app_name="app", agent=agent, session_service=self.service, auto_create_session=True
        ) as runner:
            turn = runner.run_async(user_id="u", session_id="s", new_message=message)
            async with aclosing(turn) as events:
                return [event async for event in events]

    def say(self, agent: BaseAgent, message: Any = "hi") -> list[Event]:
        return sync.run(self.asay(agent, message))

    def stored(self) -> list[Event]:
        async def get() -> Any:
            return await self.service.get_session(app_name="app", user_id="u", session_id="s")

        return sync.run(get()).events

    def waiting(self) -> list[Interrupt]:
        return open_interrupts(self.stored(), APPROVALS)


@pytest.fixture(params=["memory", "sqlite"])
def till(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Till]:
    if request.param == "memory":
        yield Till(InMemorySessionService())
        return
    service = SqliteSessionService(tmp_path / "s.db")
    yield Till(service)
    sync.run(service.close())


def numbered(name: str, id: str = "c1", **args: Any) -> types.Part:
    return types.Part(function_call=types.FunctionCall(id=id, name=name, args=args))


def answer(one: Interrupt, confirmed: bool = True) -> list[types.Part]:
    return [part_of(one.id, {"confirmed": confirmed})]


def lead_of(till: Till, kind: str, answers: list[Any], inside: list[Any]) -> LlmAgent:
    """An agent that pays, with an approval, and that calls another one which books, with an approval."""
    mode = None if kind == "agent_tool" else kind
    books = LlmAgent(name="books", mode=mode, model=ScriptedLlm(*inside), tools=[till.gated("book")])
    how: dict[str, Any] = {"sub_agents": [books]} if mode else {}
    tools: list[Any] = [till.gated("pay"), *([] if mode else [AgentTool(books, stream_events=True)])]
    return LlmAgent(name="lead", model=ScriptedLlm(*answers), tools=tools, **how)


KINDS = ["single_turn", "task", "agent_tool"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_call_under_the_id_of_a_resumed_sub_agent_call_needs_its_own_yes(till: Till, kind: str):
    end = numbered("finish_task", "c3", result="booked") if kind == "task" else "Booked."
    answers = [numbered("books", request="book"), numbered("pay", amount=9000), "Done."]
    lead = lead_of(till, kind, answers, [numbered("book", "c2", place="Rome"), end])
    till.say(lead)
    [approval] = till.waiting()
    assert approval.call.name == "book"

    till.say(lead, answer(approval))

    assert till.booked == ["Rome"] and till.paid == []
    assert [(approval.call.name, approval.call.args) for approval in till.waiting()] == [("pay", {"amount": 9000})]
    till.say(lead, answer(till.waiting()[0]))
    assert till.paid == [9000]


@pytest.mark.parametrize("kind", KINDS)
def test_an_earlier_call_of_that_id_is_not_taken_up_with_the_sub_agent(till: Till, kind: str):
    answers = [numbered("pay", amount=9000), numbered("books", request="book"), "Done.", "Done."]
    end = numbered("finish_task", "c3", result="booked") if kind == "task" else "Booked."
    lead = lead_of(till, kind, answers, [numbered("book", place="Rome"), end])
    till.say(lead)
    till.say(lead, "book first")
    pay, book = till.waiting()

    till.say(lead, answer(book))

    assert till.booked == ["Rome"] and till.paid == []
    assert till.waiting() == [pay]


def clerk_of(till: Till, *answers: Any) -> LlmAgent:
    return LlmAgent(name="clerk", model=ScriptedLlm(*answers), tools=[till.gated("pay"), till.look])


def test_an_answer_that_names_a_call_is_for_the_call_that_was_shown(till: Till):
    clerk = clerk_of(till, numbered("pay", amount=5), numbered("pay", amount=9000), "Done.")
    till.say(clerk)
    [approval] = till.waiting()
    till.say(clerk, "and that")

    till.say(clerk, [part_of(approval.call.id, {"confirmed": True})])

    assert till.paid == [5]
    assert [approval.call.args for approval in till.waiting()] == [{"amount": 9000}]


def test_the_result_of_another_call_of_that_id_leaves_the_question_open(till: Till):
    clerk = clerk_of(till, numbered("pay", amount=5), numbered("look"), "Seen.", "Paid.")
    till.say(clerk)
    till.say(clerk, "look first")

    assert till.looked == 1
    [approval] = till.waiting()
    till.say(clerk, answer(approval))
    assert till.paid == [5]


def test_agents_at_work_side_by_side_have_no_id_in_common(till: Till):
    members = [
        LlmAgent(name=name, model=ScriptedLlm(numbered("pay", amount=amount), "Paid."), tools=[till.gated("pay")])
        for name, amount in (("one", 5), ("two", 9000))
    ]
    agent = ParallelAgent(name="both", sub_agents=members)
    till.say(agent)
    request = {(approval.call.args or {})["amount"]: approval for approval in till.waiting()}

    assert len({value.call.id for value in request.values()}) == 2
    till.say(agent, answer(request[5]))
    assert till.paid == [5]


def test_two_calls_of_one_answer_and_later_ones_have_ids_of_their_own(till: Till):
    clerk = clerk_of(till, [numbered("look"), numbered("look")], numbered("look"), "Seen.", numbered("look"), "Seen.")
    till.say(clerk)
    till.say(clerk)

    ids = [call.id for event in till.stored() for call in event.get_function_calls()]
    assert len(set(ids)) == len(ids) == 4
    assert [response.id for event in till.stored() for response in event.get_function_responses()] == ids


def test_an_id_that_is_the_only_one_of_its_kind_is_kept(till: Till):
    till.say(clerk_of(till, numbered("look", "toolu_01A"), numbered("look", "toolu_01B"), "Seen."))

    ids = [call.id for event in till.stored() for call in event.get_function_calls()]
    assert ids == ["toolu_01A", "toolu_01B"]


def test_runs_that_are_started_at_once_leave_each_others_questions_open():
    service = InMemorySessionService()
    till = Till(service)
    service.create_session(app_name="app", user_id="u", session_id="s")
    started, goes_on = asyncio.Event(), asyncio.Event()

    class Slow(ScriptedLlm):
        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncGenerator[Any, None]:
            async for response in super().generate_content_async(llm_request, stream):
                started.set()
                await goes_on.wait()
                yield response

    slow = LlmAgent(name="clerk", model=Slow(numbered("look"), "Seen."), tools=[till.gated("pay"), till.look])

    async def both() -> None:
        behind = asyncio.ensure_future(till.asay(slow, "look"))
        await started.wait()
        second = asyncio.ensure_future(till.asay(clerk_of(till, numbered("pay", amount=5)), "pay"))
        goes_on.set()
        await asyncio.gather(behind, second)

    sync.run(both())

    [approval] = till.waiting()
    till.say(clerk_of(till, "Paid."), answer(approval))
    assert till.paid == [5]


def test_in_a_live_conversation_the_service_gets_its_own_id_back():
    till = Till(InMemorySessionService())
    model = ScriptedLlm(numbered("look"), numbered("look"), "Seen.")
    clerk = LlmAgent(name="clerk", model=model, tools=[till.look])

    async def converse() -> None:
        queue = LiveRequestQueue()
        runner = Runner(app_name="app", agent=clerk, session_service=till.service, auto_create_session=True)
        async with runner, aclosing(runner.run_live(user_id="u", session_id="s", live_request_queue=queue)) as events:
            queue.send_content(types.Content(role="user", parts=[types.Part(text="look")]))
            async for event in events:
                if event.turn_complete:
                    queue.close()

    sync.run(converse())

    ids = [call.id for event in till.stored() for call in event.get_function_calls()]
    assert till.looked == len(set(ids)) == 2
    responses = [
        part.function_response
        for response in model.connections[0].sent
        if isinstance(response, types.Content)
        for part in response.parts or ()
    ]
    assert [response.id for response in responses if response] == ["c1", "c1"]


def test_a_cassette_of_a_service_that_numbers_calls_anew_is_replayed(tmp_path: Path):
    till, path = Till(InMemorySessionService()), tmp_path / "cassette.jsonl"
    model = ScriptedLlm(numbered("look"), numbered("look"), "Seen.")
    till.say(LlmAgent(name="clerk", model=RecordedLlm(path, record=model), tools=[till.look]))

    events = Till(InMemorySessionService()).say(LlmAgent(name="clerk", model=RecordedLlm(path), tools=[till.look]))

    assert events[-1].text == "Seen."
