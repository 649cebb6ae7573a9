"""Live conversations, through the runner: who hears what, what is kept, and how a lost connection is taken up again."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

import pytest

from adk_nb import types
from adk_nb.agents import BaseAgent, CallbackContext, LiveRequest, LiveRequestQueue, LlmAgent, RunConfig
from adk_nb.errors import ConfigurationError, InputError, ModelConnectionLost, UnexpectedModelAnswer
from adk_nb.events import Event
from adk_nb.flow.live import conversation as live
from adk_nb.models import LlmRequest, LlmResponse, ScriptedLlm, call
from adk_nb.plugins import BasePlugin
from adk_nb.runtime import approvals
from adk_nb.tools import FunctionTool, LongRunningFunctionTool, ToolContext
from tests.support.polling import SECONDS
from tests.support.talk import SESSION_KEY, Talk, content_summaries, part_summary
from tests.support.transcripts import call_line, result_line

QUESTION = "How is Oslo?"
REFUSAL = "I do not talk about that."
RECORDINGS = "artifact://app/u/s/_adk_live"
BROKE_OFF = "failed: ValueError: bad"


def transcript(text: str, finished: bool = True) -> types.Transcription:
    return types.Transcription(text=text, finished=finished)


def transcription(text: str, *, finished: bool = True) -> LlmResponse:
    return LlmResponse(input_transcription=transcript(text, finished), partial=not finished or None)


def spoken(text: str, *, finished: bool = True) -> LlmResponse:
    return LlmResponse(output_transcription=transcript(text, finished), partial=not finished or None)


def sound(data: bytes) -> LlmResponse:
    blob = types.Blob(data=data, mime_type="audio/pcm;rate=24000")
    return LlmResponse(content=types.Content(role="model", parts=[types.Part(inline_data=blob)]))


def handle(name: str) -> LlmResponse:
    update = types.LiveServerSessionResumptionUpdate(new_handle=name, resumable=True)
    return LlmResponse(live_session_resumption_update=update)


TURN_COMPLETE = LlmResponse(turn_complete=True)
GO_AWAY = LlmResponse(go_away=types.LiveServerGoAway(time_left="5s"))
MICROPHONE = types.Blob(data=b"\x01\x02", mime_type="audio/pcm;rate=16000")


class LiveTalk(Talk):
    """Says things live: each of `messages` when the turn before it is complete, and closes the queue at the end."""

    def live(
        self, *messages: Any, config: RunConfig | None = None, queue: LiveRequestQueue | None = None
    ) -> list[Event]:
        return asyncio.run(self.alive(*messages, config=config, queue=queue))

    async def alive(
        self,
        *messages: Any,
        config: RunConfig | None = None,
        queue: LiveRequestQueue | None = None,
        after: Callable[[Event, LiveRequestQueue], None] = lambda event, queue: None,
    ) -> list[Event]:
        queue = queue or LiveRequestQueue()
        pending_messages = list(messages)
        say_next(queue, pending_messages)
        events: list[Event] = []
        self.error = None
        run = self.runner.run_live(**SESSION_KEY, live_request_queue=queue, run_config=config)
        try:
            async with asyncio.timeout(SECONDS), aclosing(run):
                async for event in run:
                    events.append(event)
                    after(event, queue)
                    if event.turn_complete:
                        say_next(queue, pending_messages)
        except Exception as error:
            self.error = error
        return events


def say_next(queue: LiveRequestQueue, pending: list[Any]) -> None:
    if not pending:
        queue.close()
    elif isinstance(message := pending.pop(0), LiveRequest):
        queue.send(message)
    elif isinstance(message, str | types.Content):
        queue.send_content(message)
    else:
        queue.send_realtime(message)
        queue.send_audio_stream_end()


def live_summaries(events: list[Event]) -> list[tuple[str, str]]:
    return [(event.author, _live_summary(event)) for event in events]


def _live_summary(event: Event) -> str:
    text = "; ".join(part_summary(part) for part in event.parts)
    for output, item in (("hears", event.input_transcription), ("speaks", event.output_transcription)):
        text += f"{output} {item.text!r}" if item else ""
    text += " interrupted" if event.interrupted else ""
    text += " done" if event.turn_complete else ""
    text += f" handle {event.live_session_resumption_update.new_handle}" if event.live_session_resumption_update else ""
    return text.strip() + ("..." if event.partial else "")


def guide(*answers: Any, **fields: Any) -> LlmAgent:
    return LlmAgent(name="guide", model=ScriptedLlm(*answers), **fields)


def model(talk: Talk) -> ScriptedLlm:
    assert isinstance(talk.runner.agent, LlmAgent) and isinstance(talk.runner.agent.model, ScriptedLlm)
    return talk.runner.agent.model


def sent_contents(talk: Talk, connection: int = 0) -> list[Any]:
    """What was sent over a connection: words as `(role, text)`, the rest as it is."""
    return [
        content_summaries([item])[0] if isinstance(item, types.Content) else item
        for item in model(talk).connections[connection].sent
    ]


# --- words


def test_words_come_in_pieces_then_whole_and_then_the_turn_is_complete():
    talk = LiveTalk(guide("It is mild.", "Good bye."))

    events = talk.live("How is Oslo?", "Thanks.")

    assert live_summaries(events) == [
        ("guide", "It..."),
        ("guide", "is..."),
        ("guide", "mild...."),
        ("guide", "It is mild."),
        ("guide", "done"),
        ("guide", "Good..."),
        ("guide", "bye...."),
        ("guide", "Good bye."),
        ("guide", "done"),
    ]
    assert len({event.id for event in events[:4]}) == 1
    assert len({event.id for event in events}) == 4
    assert len({event.invocation_id for event in events}) == 1


def test_what_the_user_sends_is_kept_in_its_place_and_not_yielded():
    talk = LiveTalk(guide("Mild.", "Bye."))

    talk.live("How is Oslo?", "Thanks.")

    assert live_summaries(talk.stored().events) == [
        ("user", "How is Oslo?"),
        ("guide", "Mild."),
        ("guide", "done"),
        ("user", "Thanks."),
        ("guide", "Bye."),
        ("guide", "done"),
    ]


def test_a_conversation_goes_on_from_the_history():
    talk = LiveTalk(guide("Hello.", "Mild."))
    talk.say("Hi")

    talk.live("How is Oslo?")

    assert sent_contents(talk) == [("user", "Hi"), ("model", "Hello."), ("user", "How is Oslo?")]


def test_what_was_said_live_is_history_for_the_next_turn():
    talk = LiveTalk(guide([transcription("How is Oslo?"), sound(b"mild"), spoken("Mild."), TURN_COMPLETE], "Bye."))

    talk.live(MICROPHONE)
    talk.say("Thanks.")

    assert content_summaries(model(talk).requests[-1].contents) == [
        ("user", "How is Oslo?"),
        ("model", "Mild."),
        ("user", "Thanks."),
    ]


def test_more_of_a_message_can_follow_before_the_model_answers():
    queue = LiveRequestQueue()
    queue.send_content("The sky", partial=True)
    talk = LiveTalk(guide("Yes."))

    talk.live("is blue.", queue=queue)

    assert sent_contents(talk) == [("user", "The sky"), ("user", "is blue.")]
    assert live_summaries(talk.stored().events) == [("user", "is blue."), ("guide", "Yes."), ("guide", "done")]


def test_a_message_may_write_to_the_state():
    talk = LiveTalk(guide("Hello."))

    talk.live(LiveRequest(content=types.UserContent("Hi"), state_delta={"seen": True}))

    assert talk.stored().state["seen"] is True


def test_a_message_that_calls_a_function_is_refused_where_it_is_sent():
    with pytest.raises(InputError, match="cannot call functions"):
        LiveRequestQueue().send_content([call("look")])


def test_the_final_words_are_kept_under_the_output_key():
    talk = LiveTalk(guide("Mild.", output_key="weather"))

    talk.live("How is Oslo?")

    assert talk.stored().state["weather"] == "Mild."


# --- sound


def test_transcripts_come_in_pieces_and_only_the_finished_ones_are_kept():
    pieces = [
        transcription("How is ", finished=False),
        transcription(QUESTION),
        spoken("Mi", finished=False),
        spoken("Mild."),
    ]
    talk = LiveTalk(guide([*pieces, TURN_COMPLETE]))

    events = talk.live(MICROPHONE)

    assert live_summaries(events) == [
        ("user", "hears 'How is '..."),
        ("user", f"hears {QUESTION!r}"),
        ("guide", "speaks 'Mi'..."),
        ("guide", "speaks 'Mild.'"),
        ("guide", "done"),
    ]
    assert live_summaries(talk.stored().events) == [live_summaries(events)[1], *live_summaries(events)[3:]]


def test_sound_is_yielded_and_not_kept():
    talk = LiveTalk(guide([sound(b"\x01"), sound(b"\x02"), TURN_COMPLETE]))

    first, second, _ = talk.live(MICROPHONE)

    assert [event.parts[0].inline_data.data for event in (first, second) if event.parts[0].inline_data] == [
        b"\x01",
        b"\x02",
    ]
    assert not first.partial
    assert live_summaries(talk.stored().events) == [("guide", "done")]
    assert sent_contents(talk) == [MICROPHONE, types.LiveClientRealtimeInput(audio_stream_end=True)]


def test_sound_is_kept_as_files_where_the_run_says_so():
    talk = LiveTalk(guide([sound(b"\x01"), sound(b"\x02"), TURN_COMPLETE], "Bye."))

    events = talk.live(MICROPHONE, config=RunConfig(save_live_blob=True))

    users, guides = [event for event in events if event.actions.artifact_delta]
    assert (users.author, guides.author) == ("user", "guide")
    for event, data, kind in (
        (users, b"\x01\x02", "audio/pcm;rate=16000"),
        (guides, b"\x01\x02", "audio/pcm;rate=24000"),
    ):
        [name] = event.actions.artifact_delta
        reference = event.parts[0].file_data
        assert reference and reference.file_uri == f"{RECORDINGS}/{name}#0"
        assert saved_artifact(talk, name) == types.Part(inline_data=types.Blob(data=data, mime_type=kind))
    assert [event.id for event in talk.stored().events] == [users.id, guides.id, events[-1].id]
    talk.say("Bye")
    assert content_summaries(model(talk).requests[-1].contents) == [("user", "Bye")]


def test_what_was_heard_when_the_conversation_ended_is_kept_too():
    queue = LiveRequestQueue()
    queue.send_realtime(MICROPHONE)
    talk = LiveTalk(guide())

    [event] = talk.live(queue=queue, config=RunConfig(save_live_blob=True))

    [file] = event.actions.artifact_delta.items()
    assert saved_artifact(talk, *file) == types.Part(inline_data=MICROPHONE)
    assert event.author == "user"


def test_an_interrupted_voice_is_kept_as_far_as_it_came():
    script = [sound(b"\x01"), LlmResponse(interrupted=True), sound(b"\x02"), TURN_COMPLETE]
    talk = LiveTalk(guide(script))

    events = talk.live("Hi", config=RunConfig(save_live_blob=True))

    files = [file for event in events for file in event.actions.artifact_delta.items()]
    assert [blob.data for file in files if (blob := saved_artifact(talk, *file).inline_data)] == [b"\x01", b"\x02"]
    assert live_summaries(events)[1:3] == [("guide", "(data)"), ("guide", "interrupted")]


def saved_artifact(talk: Talk, name: str, version: int | None = None) -> types.Part:
    service = talk.runner.artifact_service
    assert service
    part = asyncio.run(service.load_artifact(app_name="app", **SESSION_KEY, filename=name, version=version))
    assert part
    return part


def test_without_a_place_for_files_a_run_that_is_to_keep_sound_is_refused():
    talk = LiveTalk(guide())
    talk.runner.artifact_service = None

    talk.live("Hi", config=RunConfig(save_live_blob=True))

    assert isinstance(talk.error, ConfigurationError)
    assert "InMemoryArtifactService" in str(talk.error)


def test_an_interruption_is_reported():
    talk = LiveTalk(guide([spoken("It is", finished=False), LlmResponse(interrupted=True), TURN_COMPLETE]))

    assert live_summaries(talk.live("Hi"))[-2:] == [("guide", "interrupted"), ("guide", "done")]


def test_who_detects_speech_themselves_say_when_it_begins_and_ends():
    async def speak(talk: LiveTalk) -> None:
        queue = LiveRequestQueue()
        queue.send_activity_start()
        queue.send_realtime(MICROPHONE)
        queue.send_activity_end()
        await talk.alive("Bye", queue=queue)

    talk = LiveTalk(guide("Hello.", "Bye."))
    asyncio.run(speak(talk))

    assert sent_contents(talk)[:3] == [types.ActivityStart(), MICROPHONE, types.ActivityEnd()]


# --- tools


def weather(city: str) -> str:
    """The weather now."""
    return f"mild in {city}"


def test_a_call_is_run_and_its_result_goes_back_to_the_model():
    talk = LiveTalk(guide(call("weather", city="Oslo"), "Mild.", tools=[weather]))

    events = talk.live("How is Oslo?")

    assert live_summaries(events)[:2] == [
        ("guide", call_line("weather", city="Oslo")),
        ("guide", result_line(result="mild in Oslo")),
    ]
    assert live_summaries(events)[-1] == ("guide", "done")
    assert sent_contents(talk)[1:] == [("user", result_line(result="mild in Oslo"))]
    called, answered_event = (event for event in events if event.get_function_calls() or event.get_function_responses())
    assert called.get_function_calls()[0].id == answered_event.get_function_responses()[0].id
    assert live_summaries(talk.stored().events)[1:3] == live_summaries(events)[:2]


def test_what_a_tool_raises_is_told_to_the_model_or_ends_the_run():
    def boom() -> str:
        """Fails."""
        raise ValueError("bad")

    talk = LiveTalk(guide(call("boom"), "Sorry.", tools=[boom]))
    assert ("guide", result_line(error="ValueError: bad")) in live_summaries(talk.live("Go"))

    talk = LiveTalk(guide(call("boom"), tools=[boom], tool_errors="raise"))
    talk.live("Go")
    assert isinstance(talk.error, ValueError)


def test_a_call_that_needs_approval_waits_for_it_and_runs_once_it_is_given():
    ran: list[str] = []

    def pay(amount: int) -> str:
        """Pays."""
        ran.append(f"paid {amount}")
        return "paid"

    agent = guide(
        call("pay", amount=3), "I asked.", "It is paid.", tools=[FunctionTool(pay, require_confirmation=True)]
    )
    talk = LiveTalk(agent)

    requests: list[types.FunctionCall] = []

    def answer(event: Event, queue: LiveRequestQueue) -> None:
        requests.extend(call for call in event.get_function_calls() if call.name == "adk_request_confirmation")
        if event.turn_complete and requests:
            assert ran == []
            request = requests.pop()
            yes = types.FunctionResponse(id=request.id, name=request.name, response={"confirmed": True})
            queue.send_content([types.Part(function_response=yes)])

    events = asyncio.run(talk.alive("Pay 3", LiveRequest(), after=answer))

    assert ran == ["paid 3"]
    results = [response.response for event in events for response in event.get_function_responses()]
    assert results == [
        {"error": approvals.PENDING},
        {"result": "paid"},
    ]
    assert [text for role, text in sent_contents(talk)[1:]] == [f"answers {result}" for result in results]


def test_the_result_of_a_call_may_come_later_from_the_user():
    later = types.FunctionResponse(id="c1", name="order", response={"result": "there"})

    def order() -> None:
        """Orders."""

    from_model = types.Part(function_call=types.FunctionCall(id="c1", name="order", args={}))
    ordered = LlmResponse(content=types.Content(role="model", parts=[from_model]))
    talk = LiveTalk(guide([ordered, TURN_COMPLETE], "It came.", tools=[LongRunningFunctionTool(order)]))

    events = talk.live("Order", types.UserContent([types.Part(function_response=later)]))

    assert events[0].long_running_tool_ids == {"c1"}
    assert not any(event.get_function_responses() for event in events)
    assert sent_contents(talk)[1:] == [("user", "answers {'result': 'there'}")]
    assert ("user", "answers {'result': 'there'}") in live_summaries(talk.stored().events)


def test_a_tool_may_end_the_conversation():
    def leave(tool_context: ToolContext) -> str:
        """Leaves."""
        tool_context.get_invocation_context().end_invocation = True
        return "left"

    talk = LiveTalk(guide(call("leave"), "unheard", tools=[leave]))

    assert live_summaries(talk.live("Go", "Still there?"))[-1] == ("guide", "answers {'result': 'left'}")
    assert talk.error is None


# --- tools that stream


async def count(up_to: int) -> AsyncGenerator[str, None]:
    """Counts."""
    for number in range(up_to):
        yield f"number {number}"


PENDING = "answers {'status': 'The function is running asynchronously and the results are pending.'}"


def test_a_streaming_tool_is_answered_at_once_and_the_model_told_each_thing_it_yields():
    talk = LiveTalk(guide(call("count", up_to=2), "Counting.", tools=[count]))

    events = talk.live("Count")

    assert ("guide", PENDING) in live_summaries(events)
    text = [request[1] for request in sent_contents(talk) if isinstance(request, tuple)]
    assert text == ["Count", PENDING, "answers {'result': 'number 0'}", "answers {'result': 'number 1'}"]
    ids = {
        response.id
        for content in model(talk).connections[0].sent
        if isinstance(content, types.Content)
        for part in content.parts or []
        if (response := part.function_response)
    }
    assert len(ids) == 1


def test_a_sync_generator_tells_its_progress_to_the_reader_and_its_last_value_to_the_model():
    def steps():
        """Steps."""
        yield "half way"
        yield "there"

    talk = LiveTalk(guide(call("steps"), "Done.", tools=[steps]))

    events = talk.live("Go")

    assert ("steps", "half way...") in live_summaries(events)
    text = [request[1] for request in sent_contents(talk) if isinstance(request, tuple)]
    assert text == ["Go", "answers {'result': 'there'}"]


def test_results_of_a_streaming_tool_say_when_the_model_reacts():
    async def count() -> AsyncGenerator[str, None]:
        yield "number 0"

    silent = types.FunctionResponseScheduling.SILENT
    tool = FunctionTool(count)
    tool.response_scheduling = silent
    talk = LiveTalk(guide(call("count"), "Counting.", tools=[tool]))

    talk.live("Count")

    contents = [item for item in model(talk).connections[0].sent if isinstance(item, types.Content)]
    responses = [part.function_response for content in contents for part in content.parts or []]
    assert [response.scheduling for response in responses if response] == [silent, silent]


def test_the_model_hears_that_a_tool_streams_before_it_hears_what():
    async def slow() -> str:
        """Takes its time."""
        await all_given.wait()
        return "done"

    async def counted() -> AsyncGenerator[str, None]:
        """Counts."""
        async for item in count(2):
            yield item
        all_given.set()

    all_given = asyncio.Event()
    talk = LiveTalk(guide([call("counted"), call("slow")], "Counting.", tools=[counted, slow]))

    talk.live("Count")

    assert [request[1] for request in sent_contents(talk)[1:]] == [
        f"{PENDING}; answers {{'result': 'done'}}",
        "answers {'result': 'number 0'}",
        "answers {'result': 'number 1'}",
    ]


def test_a_streaming_tool_hears_what_the_user_sends():
    blobs: list[Any] = []

    async def watch(input_stream: LiveRequestQueue) -> AsyncGenerator[str, None]:
        """Watches."""
        while not (request := await input_stream.get()).close:
            if request.blob:
                blobs.append(request.blob)
                yield "seen"

    talk = LiveTalk(guide(call("watch"), "Watching.", "Still.", tools=[watch]))
    declared = FunctionTool(watch).declaration
    assert declared and declared.parameters_json_schema is None

    talk.live("Watch", MICROPHONE)

    assert blobs == [MICROPHONE]


def test_a_streaming_tool_can_be_stopped_by_the_model():
    stopped: list[str] = []

    async def tick() -> AsyncGenerator[str, None]:
        """Ticks."""
        try:
            await asyncio.Event().wait()
            yield "never"
        finally:
            stopped.append("tick")

    stop = call("stop_streaming", function_name="tick")
    talk = LiveTalk(guide(call("tick"), "Ticking.", stop, "Stopped.", stop, "Again.", tools=[tick]))

    events = talk.live("Tick", "Stop", "Stop again")

    assert stopped == ["tick"]
    statuses = [
        response.response
        for event in events
        for response in event.get_function_responses()
        if response.name == "stop_streaming"
    ]
    assert statuses == [
        {"status": "Successfully stopped streaming function tick"},
        {"status": "No active streaming function named tick found"},
    ]
    offered = model(talk).requests[0].tools_dict
    assert list(offered) == ["tick", "stop_streaming"]


def test_a_streaming_tool_that_fails_says_so_to_the_model(caplog: pytest.LogCaptureFixture):
    async def fail() -> AsyncGenerator[str, None]:
        """Fails."""
        yield "one"
        raise ValueError("bad")

    talk = LiveTalk(guide(call("fail"), "Trying.", "Oh.", tools=[fail]))

    talk.live("Try", "And?")

    assert ("user", result_line(error=f"fail() {BROKE_OFF}")) in sent_contents(talk)


def test_a_streaming_tool_that_needs_approval_does_not_start_without_it():
    started: list[int] = []

    async def stream() -> AsyncGenerator[str, None]:
        """Streams."""
        started.append(1)
        yield "one"

    talk = LiveTalk(guide(call("stream"), "Asked.", tools=[FunctionTool(stream, require_confirmation=True)]))

    events = talk.live("Go")

    assert started == []
    assert any(call.name == "adk_request_confirmation" for event in events for call in event.get_function_calls())


def test_a_streaming_tool_ends_with_its_conversation():
    ended: list[str] = []

    async def tick() -> AsyncGenerator[str, None]:
        """Ticks."""
        try:
            await asyncio.Event().wait()
            yield "never"
        finally:
            ended.append("tick")

    LiveTalk(guide(call("tick"), "Ticking.", tools=[tick])).live("Tick")

    assert ended == ["tick"]


# --- callbacks


def test_agent_callbacks_stand_around_the_whole_conversation():
    texts: list[str] = []
    previous, following = (
        (lambda callback_context: texts.append("before")),
        (lambda callback_context: texts.append("after")),
    )
    talk = LiveTalk(guide("Hello.", "Bye.", before_agent_callback=previous, after_agent_callback=following))

    talk.live("Hi", "Bye")

    assert texts == ["before", "after"]


def test_an_answer_of_before_agent_takes_the_place_of_the_conversation():
    talk = LiveTalk(guide(before_agent_callback=lambda callback_context: types.ModelContent("Closed today.")))

    assert live_summaries(talk.live("Hi")) == [("guide", "Closed today.")]
    assert model(talk).connections == []


def no_secrets(callback_context: CallbackContext, llm_request: LlmRequest) -> LlmResponse | None:
    if "secret" in (llm_request.contents[-1].parts or [])[0].text:  # type: ignore[operator]
        callback_context.state["blocked"] = True
        return LlmResponse(content=types.ModelContent(REFUSAL))
    return None


def test_before_model_is_asked_of_words_before_the_model_hears_them():
    talk = LiveTalk(guide("Hello.", before_model_callback=no_secrets))

    events = talk.live("A secret", "Hi")

    assert live_summaries(events)[0] == ("guide", f"{REFUSAL} done")
    assert sent_contents(talk) == [("user", "Hi")]
    assert talk.stored().state["blocked"] is True
    assert live_summaries(talk.stored().events)[:2] == [("user", "A secret"), ("guide", f"{REFUSAL} done")]


def test_before_model_is_asked_of_speech_once_it_is_heard_and_what_the_model_says_to_it_is_dropped():
    told_it = [transcription("A secret"), spoken("Well,"), TURN_COMPLETE]
    talk = LiveTalk(guide(told_it, "Hello.", before_model_callback=no_secrets))

    events = talk.live(MICROPHONE, "Hi")

    assert live_summaries(events)[:2] == [("user", "hears 'A secret'"), ("guide", f"{REFUSAL} done")]
    assert live_summaries(events)[-1] == ("guide", "done")
    assert not any(event.output_transcription for event in events)
    assert sent_contents(talk, 1) == [("user", "A secret"), ("model", REFUSAL), ("user", "Hi")]


def test_after_model_is_asked_of_a_voice_with_all_that_it_said_so_far():
    texts: list[str] = []

    def no_numbers(callback_context: CallbackContext, llm_response: LlmResponse) -> LlmResponse | None:
        if output_transcription := llm_response.output_transcription:
            texts.append(output_transcription.text or "")
        return LlmResponse(content=types.ModelContent("No numbers.")) if texts[-1:] == ["It is 42"] else None

    talk = LiveTalk(
        guide(
            [spoken("It is", finished=False), spoken(" 42", finished=False), spoken("It is 42."), TURN_COMPLETE],
            "Bye.",
            after_model_callback=no_numbers,
        )
    )

    events = talk.live(MICROPHONE, "Bye")

    assert texts == ["It is", "It is 42"]
    assert live_summaries(events)[:2] == [("guide", "speaks 'It is'..."), ("guide", "No numbers. done")]
    assert len(model(talk).connections) == 2


def test_after_model_may_put_other_words_in_the_place_of_the_models():
    def shout(callback_context: CallbackContext, llm_response: LlmResponse) -> LlmResponse | None:
        return LlmResponse(content=types.ModelContent(llm_response.text.upper()))

    talk = LiveTalk(guide("Mild.", after_model_callback=shout))

    assert live_summaries(talk.live("How is Oslo?")) == [("guide", "MILD...."), ("guide", "MILD."), ("guide", "done")]


def test_what_callbacks_write_to_the_state_is_kept_even_if_they_answer_nothing():
    def count(callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        callback_context.state["asked"] = callback_context.state.get("asked", 0) + 1

    def look_at(callback_context: CallbackContext, llm_response: LlmResponse) -> None:
        callback_context.state["last"] = llm_response.text
        callback_context.state["pieces"] = callback_context.state.get("pieces", 0) + bool(llm_response.partial)

    talk = LiveTalk(guide("It is mild.", "Bye.", before_model_callback=count, after_model_callback=look_at))

    talk.live("How is Oslo?", "Bye")

    assert talk.stored().state == {"asked": 2, "last": "Bye.", "pieces": 4}


def test_plugins_are_asked_before_the_agent_and_see_every_event():
    class Watch(BasePlugin):
        seen: list[str] = []  # noqa: RUF012

        async def before_run_callback(self, *, invocation_context: Any) -> None:
            self.seen.append("before run")

        async def on_event_callback(self, *, invocation_context: Any, event: Event) -> None:
            self.seen.append(_live_summary(event))

        async def after_run_callback(self, *, invocation_context: Any) -> None:
            self.seen.append("after run")

    talk = LiveTalk(guide("Mild."), plugins=[plugin := Watch(name="watch")])

    talk.live("Hi")

    assert plugin.seen == ["before run", "Mild....", "Mild.", "done", "after run"]


# --- connections


def then_say(text: str, when: str) -> Callable[[Event, LiveRequestQueue], None]:
    """Says `words` when an event is told as `when`."""

    def say(event: Event, queue: LiveRequestQueue) -> None:
        if _live_summary(event) == when:
            queue.send_content(text)

    return say


@pytest.mark.parametrize("end", [ModelConnectionLost("broken"), GO_AWAY])
def test_a_lost_connection_is_taken_up_again_with_its_handle_and_without_the_history(end: LlmResponse | Exception):
    talk = LiveTalk(guide("Hello.", [handle("h1"), spoken("It is", finished=False), end], "Bye."))
    talk.say("Hi")

    events = asyncio.run(talk.alive("How is Oslo?", after=then_say("And now?", when="speaks 'It is'...")))

    assert talk.error is None
    assert live_summaries(events)[-1] == ("guide", "done")
    _, first, second = model(talk).requests
    assert first.live_connect_config and first.live_connect_config.session_resumption is None
    assert second.live_connect_config and second.live_connect_config.session_resumption
    assert second.live_connect_config.session_resumption.handle == "h1"
    assert sent_contents(talk, 1) == [("user", "And now?")]
    assert [event.text for event in talk.stored().events if event.author == "user"] == [
        "Hi",
        "How is Oslo?",
        "And now?",
    ]


def test_without_a_handle_a_lost_connection_ends_the_run():
    talk = LiveTalk(guide([spoken("It is", finished=False), ModelConnectionLost("broken")]))

    talk.live("How is Oslo?")

    assert isinstance(talk.error, ModelConnectionLost)
    assert talk.stored().events[-1].error_code == "ModelConnectionLost"


def test_a_farewell_without_a_handle_begins_anew_with_the_history():
    script = [LlmResponse(content=types.ModelContent("Mild.")), GO_AWAY]
    talk = LiveTalk(guide(script, "Bye."))
    asyncio.run(talk.alive("How is Oslo?", after=then_say("Thanks.", when="Mild.")))

    assert talk.error is None
    assert sent_contents(talk, 1) == [("user", "How is Oslo?"), ("model", "Mild."), ("user", "Thanks.")]


def test_what_is_history_when_a_conversation_begins_anew_is_not_sent_again():
    def say_at_once(event: Event, queue: LiveRequestQueue) -> None:
        if event.get_function_responses():
            queue.send_content("Thanks.")

    calls = LlmResponse(content=types.ModelContent([call("weather", city="Oslo")]))
    talk = LiveTalk(guide([calls, GO_AWAY], "Mild.", "Bye.", tools=[weather]))

    asyncio.run(talk.alive("How is Oslo?", after=say_at_once))

    assert talk.error is None
    assert sent_contents(talk, 1) == [
        ("user", "How is Oslo?"),
        ("model", call_line("weather", city="Oslo")),
        ("user", result_line(result="mild in Oslo")),
        ("user", "Thanks."),
    ]


def test_a_run_may_begin_with_the_handle_of_an_earlier_one():
    talk = LiveTalk(guide("Hello.", "Mild."))
    talk.say("Hi")
    resumption = types.SessionResumptionConfig(handle="before")

    talk.live("How is Oslo?", config=RunConfig(session_resumption=resumption))

    settings = model(talk).requests[-1].live_connect_config
    assert settings and settings.session_resumption == resumption
    assert sent_contents(talk) == [("user", "How is Oslo?")]


def test_a_connection_that_breaks_again_and_again_is_given_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(live, "_PAUSE", 0)

    class Broken(ScriptedLlm):
        def connect(self, llm_request: LlmRequest) -> Any:
            if self.connections:
                self.requests.append(llm_request)
                raise ModelConnectionLost(f"broken {len(self.requests)}")
            return super().connect(llm_request)

    talk = LiveTalk(LlmAgent(name="guide", model=Broken([handle("h1"), ModelConnectionLost("broken")])))

    talk.live("Hi")

    assert str(talk.error) == "broken 6"


def test_what_the_model_does_not_expect_ends_the_run():
    talk = LiveTalk(guide())

    talk.live("Hi")

    assert isinstance(talk.error, UnexpectedModelAnswer)


def test_closing_the_queue_ends_the_run_in_order():
    talk = LiveTalk(guide("unheard"))

    assert talk.live() == []
    assert talk.error is None
    assert talk.stored().events == []


def test_who_stops_reading_leaves_nothing_behind():
    async def leave() -> list[str]:
        queue = LiveRequestQueue()
        queue.send_content("Hi")
        async with aclosing(talk.runner.run_live(**SESSION_KEY, live_request_queue=queue)) as events:
            async for _ in events:
                break
        return [task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()]

    talk = LiveTalk(guide("Hello there."))

    assert asyncio.run(leave()) == []
    assert [event.text for event in talk.stored().events] == ["Hi"]
    assert model(talk).connections[0].closed


def test_a_run_can_be_stopped_from_outside():
    async def stop_soon() -> list[Event]:
        signal, queue = asyncio.Event(), LiveRequestQueue()
        queue.send_content("Hi")
        events: list[Event] = []
        async with asyncio.timeout(SECONDS):
            async for event in talk.runner.run_live(**SESSION_KEY, live_request_queue=queue, abort_signal=signal):
                events.append(event)
                if event.turn_complete:
                    asyncio.get_running_loop().call_soon(signal.set)
        return events

    talk = LiveTalk(guide("Hello."))

    assert asyncio.run(stop_soon())[-1].error_code == "INVOCATION_ABORTED"


# --- settings


def test_the_settings_of_the_run_and_the_agent_reach_the_model():
    config = RunConfig(
        response_modalities=[types.Modality.TEXT],
        speech_config=types.SpeechConfig(language_code="nb-NO"),
        enable_affective_dialog=True,
        input_audio_transcription=None,
        session_resumption=types.SessionResumptionConfig(),
    )
    agent = guide("Hello.", tools=[weather], instruction="Be brief.", identity=False)
    agent.generate_content_config = types.GenerateContentConfig(temperature=0.5)
    talk = LiveTalk(agent)

    talk.live("Hi", config=config)

    settings = model(talk).requests[0].live_connect_config
    assert settings
    told_of = settings.model_dump(exclude_none=True, exclude={"tools"})
    assert told_of == {
        "response_modalities": [types.Modality.TEXT],
        "speech_config": {"language_code": "nb-NO"},
        "enable_affective_dialog": True,
        "output_audio_transcription": {},
        "session_resumption": {},
        "system_instruction": "Be brief.",
        "temperature": 0.5,
    }
    assert [declaration.name for tool in settings.tools or [] for declaration in tool.function_declarations or []] == [
        "weather"
    ]


def test_a_run_that_says_nothing_of_it_is_answered_with_a_voice_and_both_sides_are_written_down():
    talk = LiveTalk(guide("Hello."))
    talk.live("Hi")

    settings = model(talk).requests[0].live_connect_config
    assert settings and settings.response_modalities == [types.Modality.AUDIO]
    assert settings.input_audio_transcription == settings.output_audio_transcription == types.AudioTranscriptionConfig()


def test_the_history_of_a_new_conversation_is_marked_as_such():
    talk = LiveTalk(guide("Hello.", "Mild."))
    talk.say("Hi")
    talk.live("How is Oslo?")

    settings = model(talk).requests[-1].live_connect_config
    assert settings and settings.history_config == types.HistoryConfig(initial_history_in_client_content=True)


def test_an_agent_without_a_model_of_its_own_speaks_with_the_default_for_live_conversations():
    assert LlmAgent(name="guide").canonical_live_model.model == LlmAgent.DEFAULT_LIVE_MODEL
    agent = LlmAgent(name="guide", model="gemini-2.5-flash")
    assert agent.canonical_live_model is agent.canonical_model


# --- what cannot speak


def test_a_model_or_an_agent_that_holds_no_live_conversations_says_so():
    class Silent(BaseAgent):
        pass

    talk = LiveTalk(LlmAgent(name="guide", model="offline"))
    talk.live("Hi")
    assert isinstance(talk.error, NotImplementedError)
    assert "'offline'" in str(talk.error)

    talk = LiveTalk(Silent(name="silent"))
    talk.live("Hi")
    assert isinstance(talk.error, NotImplementedError)
    assert "_run_live_impl" in str(talk.error)
