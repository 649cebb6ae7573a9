"""Conversations are kept short: when a summary is made, of which events, and what the model is sent then."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from adk_nb import App, Runner, sync, types
from adk_nb.agents import LlmAgent
from adk_nb.apps import BaseEventsSummarizer, EventsCompactionConfig
from adk_nb.events import Event, EventActions
from adk_nb.events.event_actions import EventCompaction
from adk_nb.flow.history.compaction import Compaction
from adk_nb.flow.history.contents import contents_for
from adk_nb.models import LlmResponse, ScriptedLlm, call
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.sessions import BaseSessionService, InMemorySessionService, Session, SqliteSessionService
from adk_nb.tools import FunctionTool, LongRunningFunctionTool
from tests.support.role_rules import check_as_sent
from tests.support.talk import guide, requests

SESSION_KEY: dict[str, Any] = {"user_id": "u", "session_id": "s"}
LONG = "and so on and on " * 20


class Short(BaseEventsSummarizer):
    """Says "[first word of each text, ...]" of what it is given, unless it is told what to say."""

    def __init__(self, *instead: Any) -> None:
        self.given: list[list[Event]] = []
        self._instead = list(instead)

    async def maybe_summarize_events(self, *, events: list[Event]) -> Event | None:
        self.given.append(events)
        words = (
            self._instead.pop(0) if self._instead else " ".join(event.text.split()[0] for event in events if event.text)
        )
        if isinstance(words, Exception):
            raise words
        if not isinstance(words, str):
            return words
        told = EventCompaction(
            start_timestamp=events[0].timestamp,
            end_timestamp=events[-1].timestamp,
            compacted_content=types.Content(role="model", parts=[types.Part(text=f"[{words}]")]),
        )
        return Event(author="user", actions=EventActions(compaction=told))


class Conversation:
    """Says things to an agent of an app whose conversations are kept short."""

    def __init__(
        self, agent: LlmAgent, summarizer: Any = None, service: BaseSessionService | None = None, **config: Any
    ) -> None:
        self.summarizer = summarizer or Short()
        self.agent = agent
        settings = EventsCompactionConfig(summarizer=self.summarizer, **config)
        app = App(name="app", root_agent=agent, events_compaction_config=settings)
        self.runner = Runner(app=app, session_service=service or InMemorySessionService(), auto_create_session=True)

    def say(self, *messages: Any) -> list[Event]:
        """The events that were yielded, of all the messages."""
        return [event for one in messages for event in self.runner.run(**SESSION_KEY, new_message=one)]

    def rewind(self, invocation_id: str) -> None:
        sync.run(self.runner.rewind_async(**SESSION_KEY, rewind_before_invocation_id=invocation_id))

    @property
    def session(self) -> Session:
        async def get() -> Session | None:
            return await self.runner.session_service.get_session(app_name="app", **SESSION_KEY)

        session = sync.run(get())
        assert session is not None
        return session

    @property
    def summaries(self) -> list[Event]:
        return [event for event in self.session.events if event.actions.compaction]

    def given(self) -> list[list[str]]:
        """The first words of what each summary was made of."""
        return [[(event.text or "-").split()[0] for event in events] for events in self.summarizer.given]


def summarized_texts(agent: LlmAgent) -> list[str]:
    """The first words, or the call or answer, that the last request had."""
    return [
        words if "look" in words or words.startswith("answers") else words.split()[0]
        for _, words in requests(agent)[-1]
    ]


def text_event(author: str, text: str, **more: Any) -> Event:
    return Event(author=author, content=types.UserContent(text), **more)


def numbered(count: int, **more: Any) -> LlmAgent:
    return guide(*(f"r{number} {LONG}" for number in range(1, count + 1)), **more)


def messages(count: int, first: int = 1) -> list[str]:
    return [f"m{number} {LONG}" for number in range(first, first + count)]


def counted(text: str, tokens: int) -> LlmResponse:
    usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=tokens)
    return LlmResponse(content=types.ModelContent(text), usage_metadata=usage)


# --- so many invocations at a time


def test_after_so_many_invocations_a_summary_takes_their_place():
    agent = numbered(3)
    talk = Conversation(agent, compaction_interval=2, overlap_size=0)

    yielded = talk.say(*messages(2))

    assert [event.author for event in yielded] == ["guide", "guide"]
    summary = talk.session.events[-1]
    assert (summary.author, summary.content, summary.is_final_response()) == ("user", None, False)
    told = summary.actions.compaction
    assert told
    assert (told.start_timestamp, told.end_timestamp) == (
        talk.session.events[0].timestamp,
        talk.session.events[3].timestamp,
    )
    assert told.compacted_content.role == "model"

    talk.say("m3")

    assert requests(agent)[-1] == [("model", "[m1 r1 m2 r2]"), ("user", "m3")]


def test_invocations_before_the_new_ones_are_summed_up_once_more():
    agent = numbered(5)
    talk = Conversation(agent, compaction_interval=2, overlap_size=1)

    talk.say(*messages(3))
    assert talk.given() == [["m1", "r1", "m2", "r2"]]
    talk.say(*messages(2, first=4))

    assert talk.given()[1:] == [["m2", "r2", "m3", "r3", "m4", "r4"]]
    assert summarized_texts(agent) == ["[m1", "[m2", "m5"]


def test_a_call_that_waits_is_not_summed_up_and_later_comes_with_its_answer():
    def look() -> None:
        """Looks, and will tell."""

    agent = guide(f"r1 {LONG}", call("look"), "waiting", "r3", tools=[LongRunningFunctionTool(look)])
    talk = Conversation(agent, compaction_interval=2, overlap_size=0)

    first = talk.say(*messages(2))
    assert talk.given() == [["m1", "r1", "m2"]]
    (asked,) = next(calls for event in first if (calls := event.get_function_calls()))
    result = types.FunctionResponse(id=asked.id, name="look", response={"result": "seen"})
    talk.say(types.Content(role="user", parts=[types.Part(function_response=result)]))

    assert summarized_texts(agent) == ["[m1", "calls look({})", "answers {'result': 'seen'}"]


def test_a_call_that_waits_for_approval_is_not_summed_up():
    def look() -> str:
        """Looks."""
        return "seen"

    agent = guide(f"r1 {LONG}", call("look"), tools=[FunctionTool(look, require_confirmation=True)])
    talk = Conversation(agent, compaction_interval=2, overlap_size=0)

    talk.say(*messages(2))

    (given,) = talk.summarizer.given
    assert [event.text.split()[0] for event in given if event.text] == ["m1", "r1", "m2"]
    assert "look" not in [call.name for event in given for call in event.get_function_calls()]
    assert not any(event.get_function_responses() for event in given)


@pytest.fixture(params=["memory", "file"])
def service(request: pytest.FixtureRequest, tmp_path: Path) -> BaseSessionService:
    return InMemorySessionService() if request.param == "memory" else SqliteSessionService(tmp_path / "nb.db")


def paying(*answers: Any) -> tuple[LlmAgent, list[int]]:
    """An agent whose tool `pay` needs approval and whose tool `wait` answers later; and what was paid."""
    paid: list[int] = []

    def pay(amount: int) -> str:
        """Pays."""
        paid.append(amount)
        return f"paid {amount}"

    def wait() -> None:
        """Waits."""

    tools = [FunctionTool(pay, require_confirmation=True), LongRunningFunctionTool(wait)]
    return guide(*answers, tools=tools), paid


def response_part(asked: types.FunctionCall, response: dict[str, Any]) -> types.Content:
    answer = types.FunctionResponse(id=asked.id, name=asked.name, response=response)
    return types.Content(role="user", parts=[types.Part(function_response=answer)])


def check_sent(agent: LlmAgent) -> None:
    assert isinstance(agent.model, ScriptedLlm)
    for request in agent.model.requests:
        check_as_sent(request.contents)


def named_calls(events: list[Event], name: str) -> list[types.FunctionCall]:
    return [call for event in events for call in event.get_function_calls() if call.name == name]


WINDOWS = [{"compaction_interval": 2, "overlap_size": 0}, {"compaction_interval": 2, "overlap_size": 1}]
THRESHOLD = {"token_threshold": 300, "event_retention_size": 2}


@pytest.mark.parametrize(("config", "count"), [(WINDOWS[0], 9), (WINDOWS[1], 9), (THRESHOLD, 5)])
def test_summaries_go_around_a_call_that_waits_for_approval(
    config: dict[str, Any], count: int, service: BaseSessionService
):
    agent, paid = paying(call("pay", amount=5), *(f"r{number} {LONG}" for number in range(1, 13)), "thanks")
    talk = Conversation(agent, service=service, **config)

    (asked,) = named_calls(talk.say(f"m0 {LONG}"), "adk_request_confirmation")
    talk.say(*messages(12))

    sent = requests(agent)[-1]
    assert len(sent) == count
    assert sent[1] == ("model", "calls pay({'amount': 5})")
    assert sent[2][1].startswith("answers {'error'")
    assert sent[-1][1].startswith("m12")

    talk.say(response_part(asked, {"confirmed": True}))

    assert paid == [5]
    assert requests(agent)[-1][-2:] == [("model", "calls pay({'amount': 5})"), ("user", "answers {'result': 'paid 5'}")]
    check_sent(agent)


def test_an_answered_call_goes_with_its_answer_into_the_next_summary(service: BaseSessionService):
    agent, _ = paying(call("pay", amount=5), *(f"r{number} {LONG}" for number in range(1, 9)))
    talk = Conversation(agent, service=service, compaction_interval=2, overlap_size=0)
    (asked,) = named_calls(talk.say(f"m0 {LONG}"), "adk_request_confirmation")
    talk.say(*messages(5))
    talk.say(response_part(asked, {"confirmed": True}))

    talk.say(*messages(1, 6))
    assert requests(agent)[-1][1:3] == [("model", "calls pay({'amount': 5})"), ("user", "answers {'result': 'paid 5'}")]
    talk.say(*messages(1, 7))

    assert not any("pay" in words for _, words in requests(agent)[-1])
    results = [response.response for event in talk.summarizer.given[-1] for response in event.get_function_responses()]
    assert {"result": "paid 5"} in results


def test_summaries_go_around_a_call_whose_result_comes_later(service: BaseSessionService):
    agent, _ = paying(call("wait"), *(f"r{number} {LONG}" for number in range(14)), "thanks")
    talk = Conversation(agent, service=service, compaction_interval=2, overlap_size=0)

    (asked,) = named_calls(talk.say(f"m0 {LONG}"), "wait")
    talk.say(*messages(12))

    sent = requests(agent)[-1]
    assert len(sent) == 8
    assert [words for _, words in sent if "calls" in words] == ["calls wait({})"]

    talk.say(response_part(asked, {"result": "ready"}))

    assert requests(agent)[-1][-2:] == [("model", "calls wait({})"), ("user", "answers {'result': 'ready'}")]
    check_sent(agent)


def test_of_two_calls_of_one_step_the_answer_of_one_stays_beside_the_call_that_waits():
    def look() -> str:
        """Looks."""
        return "seen"

    both = types.Content(role="model", parts=[call("look"), call("pay", amount=5)])
    agent, paid = paying(LlmResponse(content=both), *(f"r{number} {LONG}" for number in range(1, 9)), "thanks")
    agent.tools = [*agent.tools, look]
    talk = Conversation(agent, compaction_interval=2, overlap_size=0)

    (asked,) = named_calls(talk.say(f"m0 {LONG}"), "adk_request_confirmation")
    talk.say(*messages(5))
    talk.say(response_part(asked, {"confirmed": True}))

    assert paid == [5]
    assert requests(agent)[-1][-2:] == [
        ("model", "calls look({}); calls pay({'amount': 5})"),
        ("user", "answers {'result': 'seen'}; answers {'result': 'paid 5'}"),
    ]
    check_sent(agent)


def test_a_call_of_an_earlier_run_that_nobody_will_answer_does_not_stand_in_the_way():
    agent = numbered(1)
    talk = Conversation(agent, compaction_interval=1, overlap_size=0)
    lost = types.Content(role="model", parts=[call("look")])
    assert lost.parts
    assert lost.parts[0].function_call
    lost.parts[0].function_call.id = "f1"

    async def begin() -> None:
        service = talk.runner.session_service
        session = await service.create_session(app_name="app", **SESSION_KEY)
        await service.append_event(session, text_event("user", f"m0 {LONG}", invocation_id="e-0"))
        await service.append_event(session, Event(author="guide", content=lost, invocation_id="e-0"))

    sync.run(begin())
    talk.say(*messages(1))

    assert talk.given() == [["m0", "-", "m1", "r1"]]


def test_rewinding_a_summed_up_invocation_brings_back_what_came_before_it():
    agent = numbered(4)
    talk = Conversation(agent, compaction_interval=2, overlap_size=0)
    invocations = [event.invocation_id for event in talk.say(*messages(2))]

    talk.rewind(invocations[1])
    talk.say(*messages(1, first=3))

    assert summarized_texts(agent) == ["m1", "r1", "m3"]
    assert talk.given()[1:] == [["m1", "r1", "m3", "r3"]]

    talk.say("m4")

    assert summarized_texts(agent) == ["[m1", "m4"]


# --- a prompt that is too long


def test_a_prompt_that_was_too_long_is_summed_up_but_for_the_newest_events():
    agent = guide(counted(f"r1 {LONG}", 10), counted(f"r2 {LONG}", 999), counted(f"r3 {LONG}", 1000), "r4")
    talk = Conversation(agent, token_threshold=1000, event_retention_size=2)

    talk.say(*messages(2))
    assert talk.given() == []
    talk.say(*messages(1, first=3))

    assert talk.given() == [["m1", "r1", "m2", "r2"]]

    talk.say("m4")

    assert summarized_texts(agent) == ["[m1", "m3", "r3", "m4"]


def test_the_next_summary_takes_in_the_one_before():
    agent = guide(*(counted(f"r{number} {LONG}", 1000) for number in range(1, 4)))
    talk = Conversation(agent, token_threshold=1000, event_retention_size=1)

    talk.say(*messages(2))

    assert talk.given() == [["m1"], ["[m1]", "r1", "m2"]]
    assert [event.author for event in talk.summarizer.given[1]] == ["model", "guide", "user"]

    talk.say("m3")

    assert summarized_texts(agent) == ["[[m1]", "r2", "m3"]


def test_a_prompt_grows_too_long_in_a_run_and_is_summed_up_before_the_next_call():
    def look() -> str:
        """Looks."""
        return "seen"

    asks = LlmResponse(
        content=types.Content(role="model", parts=[call("look")]),
        usage_metadata=types.GenerateContentResponseUsageMetadata(prompt_token_count=1000),
    )
    agent = guide(f"r1 {LONG}", asks, "r2", tools=[look])
    talk = Conversation(agent, token_threshold=1000, event_retention_size=0)

    talk.say(*messages(2))

    assert talk.given() == [["m1", "r1", "m2"]]
    assert summarized_texts(agent) == ["[m1", "calls look({})", "answers {'result': 'seen'}"]
    assert [bool(event.actions.compaction) for event in talk.session.events][-3:] == [False, True, False]
    assert talk.summaries[0].invocation_id == talk.session.events[-1].invocation_id


def test_where_a_model_counts_no_tokens_four_characters_are_one():
    agent = numbered(2)
    talk = Conversation(agent, token_threshold=200, event_retention_size=0)

    talk.say(f"m1 {LONG}")  # 163 tokens with its answer, and 245 with the next message

    assert talk.given() == []

    talk.say(f"m2 {LONG}")

    assert talk.given() == [["m1", "r1"]]
    assert summarized_texts(agent) == ["[m1", "m2"]


def test_what_another_agent_was_asked_says_nothing_of_ones_own_prompt():
    agent = numbered(2)
    talk = Conversation(agent, token_threshold=1000, event_retention_size=0)

    async def begin() -> None:
        service = talk.runner.session_service
        session = await service.create_session(app_name="app", **SESSION_KEY)
        used = types.GenerateContentResponseUsageMetadata(prompt_token_count=5000)
        await service.append_event(session, text_event("other", f"o {LONG}", usage_metadata=used))

    sync.run(begin())
    talk.say("m1")

    assert len(requests(agent)[-1]) == 2


def test_a_prompt_that_is_too_long_comes_before_the_number_of_invocations():
    agent = guide(counted(f"r1 {LONG}", 1000), f"r2 {LONG}")
    both: dict[str, Any] = {
        "compaction_interval": 1,
        "overlap_size": 0,
        "token_threshold": 1000,
        "event_retention_size": 1,
    }
    talk = Conversation(agent, **both)

    talk.say(*messages(1))
    assert talk.given() == [["m1"]]
    talk.say(*messages(1, first=2))

    assert talk.given()[1:] == [["m1", "r1", "m2", "r2"]]  # whole invocations


def test_an_agent_that_works_apart_sums_up_only_what_it_sees():
    summarizer = Short()
    compaction = Compaction(summarizer=lambda: summarizer, threshold=100)
    service = InMemorySessionService()
    session = service.create_session(app_name="app", user_id="u")
    for author, scope in [("user", None), ("user", "task"), ("guide", "task"), ("guide", None), ("user", "task")]:
        service.append_event(session, text_event(author, f"{scope} {LONG}", isolation_scope=scope))
    ctx = InvocationContext(agent=guide(), session=session, session_service=service, isolation_scope="task")

    sync.run(compaction.before_model(ctx, "guide"))

    assert [[event.isolation_scope for event in events] for events in summarizer.given] == [["task", "task"]]
    assert session.events[-1].isolation_scope == "task"
    assert len(contents_for(session, "guide", None)) == 2
    assert len(contents_for(session, "guide", None, "task")) == 2


# --- what goes wrong, and what is not worth it


def test_a_summariser_that_fails_is_a_warning(caplog: pytest.LogCaptureFixture):
    agent = numbered(3)
    talk = Conversation(agent, Short(RuntimeError("down")), compaction_interval=1, overlap_size=0)

    with caplog.at_level(logging.WARNING):
        talk.say(*messages(1))

    assert "RuntimeError: down" in caplog.text
    assert talk.summaries == []

    talk.say(*messages(1, first=2))

    assert talk.given() == [["m1", "r1"], ["m1", "r1", "m2", "r2"]]
    assert summarized_texts(agent) == ["m1", "r1", "m2"]


@pytest.mark.parametrize("answer", [Event(author="user"), 7])
def test_a_summariser_that_gives_no_summary_is_a_warning(answer: Any, caplog: pytest.LogCaptureFixture):
    talk = Conversation(numbered(1), Short(answer), compaction_interval=1, overlap_size=0)

    talk.say(*messages(1))

    assert "actions.compaction" in caplog.text
    assert talk.summaries == []


def test_a_summary_that_is_longer_is_not_used_nor_asked_for_again_before_there_is_more_to_sum_up():
    talk = Conversation(numbered(5), Short(LONG * 10), compaction_interval=1, overlap_size=0)

    talk.say(*messages(4))
    assert (talk.given(), talk.summaries) == ([["m1", "r1"]], [])
    talk.say(*messages(1, first=5))

    assert len(talk.given()) == 2
    assert len(talk.summaries) == 1


def test_what_is_shorter_than_the_last_summary_is_not_summed_up():
    talk = Conversation(
        guide(f"r1 {LONG}", "yes", f"r3 {LONG}"), Short("s" * 100), compaction_interval=1, overlap_size=0
    )

    talk.say(f"m1 {LONG}", "m2")
    assert len(talk.summaries) == 1
    talk.say(f"m3 {LONG}")

    assert talk.given()[1:] == [["m2", "yes", "m3", "r3"]]


def test_a_run_that_fails_is_not_summed_up():
    talk = Conversation(guide(RuntimeError("no")), compaction_interval=1, overlap_size=0)

    with pytest.raises(RuntimeError, match="no"):
        talk.say(*messages(1))

    assert talk.given() == []


def test_a_run_that_was_stopped_is_not_summed_up():
    async def look() -> str:
        """Looks, until there is no more need."""
        stop.set()
        return LONG

    talk = Conversation(guide(call("look"), "never", tools=[look]), compaction_interval=1, overlap_size=0)

    async def run() -> list[Event]:
        events = talk.runner.run_async(**SESSION_KEY, new_message=f"m1 {LONG}", abort_signal=stop)
        return [event async for event in events]

    stop = asyncio.Event()
    told = sync.run(run())

    assert told[-1].error_code == "INVOCATION_ABORTED"
    assert talk.given() == []


def test_a_summary_is_the_same_after_it_was_stored_as_json():
    talk = Conversation(numbered(1), compaction_interval=1, overlap_size=0)
    talk.say(*messages(1))
    (summary,) = talk.summaries

    text = summary.model_dump_json(by_alias=True)

    assert '"startTimestamp"' in text
    assert Event.model_validate_json(text) == summary
