"""A tool that has to be let in, in a live conversation, in a long one, and in an agent that is called as a tool."""

import asyncio

from adk_nb import parts
from adk_nb.agents import LiveRequest, LiveRequestQueue, LlmAgent
from adk_nb.auth import APIKey, APIKeyIn, AuthConfig
from adk_nb.events import Event
from adk_nb.models import ScriptedLlm, call
from adk_nb.runtime import credentials, interrupts
from adk_nb.runtime.history import open_interrupts
from adk_nb.runtime.interrupts import CREDENTIALS
from adk_nb.tools import AgentTool, FunctionTool, ToolContext
from tests.flow.test_compaction import LONG, Conversation, messages
from tests.flow.test_live import LiveTalk, sent_contents
from tests.support.talk import Talk, guide

KEY = "a-persons-key"


def keyed(log: list[str | None]) -> FunctionTool:
    """A tool that needs a key, which a person is asked for."""

    def fetch(tool_context: ToolContext) -> str:
        """Fetch it."""
        log.append(tool_context.auth_credential and tool_context.auth_credential.api_key)
        return "fetched"

    return FunctionTool(fetch, auth_config=AuthConfig(auth_scheme=APIKey(in_=APIKeyIn.header, name="X")))


def test_a_live_conversation_asks_for_it_and_the_model_never_hears_the_answer():
    log: list[str | None] = []
    talk = LiveTalk(guide(call("fetch"), "I asked.", "It is fetched.", tools=[keyed(log)]))
    open_requests: list[str] = []

    def let_in(event: Event, queue: LiveRequestQueue) -> None:
        open_requests.extend(call.id or "" for call in event.get_function_calls() if call.name == credentials.REQUEST)
        if event.turn_complete and open_requests:
            assert log == []
            queue.send_content([parts.result(open_requests.pop(), credentials.REQUEST, {"apiKey": KEY})])

    events = asyncio.run(talk.alive("Fetch", LiveRequest(), after=let_in))

    assert talk.error is None and log == [KEY]
    results = [response.response for event in events for response in event.get_function_responses()]
    assert results == [credentials.placeholder(), {"result": "fetched"}]
    assert [text for _, text in sent_contents(talk)[1:]] == [f"answers {result}" for result in results]
    assert KEY not in talk.stored().model_dump_json()


def test_a_call_that_waits_to_be_let_in_is_not_summed_up():
    talk = Conversation(guide(f"r1 {LONG}", call("fetch"), tools=[keyed([])]), compaction_interval=2, overlap_size=0)

    talk.say(*messages(2))

    (given,) = talk.summarizer.given
    assert [event.text.split()[0] for event in given if event.text] == ["m1", "r1", "m2"]
    assert "fetch" not in [call.name for event in given for call in event.get_function_calls()]


def test_an_agent_that_is_called_as_a_tool_says_that_nobody_can_be_asked_and_uses_what_is_kept():
    log: list[str | None] = []
    inner = LlmAgent(name="inner", model=ScriptedLlm(call("fetch"), call("fetch"), "inner done"), tools=[keyed(log)])
    outer_tools = [AgentTool(inner), keyed(log)]
    ask, fetch = call("inner", request="go"), call("fetch")
    talk = Talk(guide(ask, "cannot", fetch, "fetched", ask, "now", tools=outer_tools))

    first = talk.say()
    talk.say()
    [request] = open_interrupts(talk.stored().events, CREDENTIALS)
    talk.say(interrupts.answer(request, {"apiKey": KEY}))
    last = talk.say()

    responses = [response.response or {} for event in [*first, *last] for response in event.get_function_responses()]
    assert "nobody can answer" in responses[0]["error"]
    assert responses[1] == {"result": "inner done"} and log == [KEY, KEY]
