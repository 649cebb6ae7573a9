"""The spans of runs: which there are, what is under what, and what they say."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind, StatusCode

from adk_nb import evaluation, redaction, telemetry, types
from adk_nb.agents import BaseAgent, LlmAgent, LoopAgent, ParallelAgent, SequentialAgent
from adk_nb.agents.live_request_queue import LiveRequestQueue
from adk_nb.apps import App, ResumabilityConfig
from adk_nb.errors import ConfigurationError, ModelHTTPError, ToolErrorType, ToolExecutionError
from adk_nb.evaluation.judges import judge
from adk_nb.events.event import Event
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.models import LlmResponse, OpenAILlm, ScriptedLlm
from adk_nb.models.scripted_llm import call
from adk_nb.runners import InMemoryRunner, Runner, current_session
from adk_nb.runtime import interrupts
from adk_nb.runtime.history import open_interrupts
from adk_nb.runtime.run_config import RunConfig, StreamingMode
from adk_nb.sessions import GetSessionConfig, SqliteSessionService
from adk_nb.tools import AgentTool, FunctionTool
from adk_nb.workflow import START, Workflow
from tests.telemetry.conftest import Spans, attributes

SAID = "the secret plan is blue"


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def fail(reason: str) -> str:
    """Fail."""
    raise ValueError(f"it failed because {reason}")


def agent(name: str, *answers: Any, **settings: Any) -> LlmAgent:
    return LlmAgent(name=name, model=ScriptedLlm(*answers), **settings)


async def run(root: BaseAgent, message: Any = "hello", **settings: Any) -> list[Event]:
    runner = InMemoryRunner(agent=root)
    return await turn(runner, message, **settings)


async def turn(runner: Runner, message: Any, session: str = "s", **settings: Any) -> list[Event]:
    runner.auto_create_session = True
    return [
        event async for event in runner.run_async(user_id="ada", session_id=session, new_message=message, **settings)
    ]


# ---- which spans, and what is under what


def test_a_turn_with_two_calls_at_once_is_one_tree(spans: Spans) -> None:
    calculator = agent("calculator", [call("add", a=1, b=2), call("add", a=3, b=4)], "done", tools=[add])

    asyncio.run(run(calculator))

    assert spans.tree() == [
        "invoke_agent calculator",
        "  chat scripted",
        "  execute_tool add",
        "  execute_tool add",
        "  chat scripted",
    ]


def test_no_span_shows_a_known_secret(spans: Spans) -> None:
    secret = "q7Zx-5bR1-mm2"
    redaction.remember(secret)
    root = agent("root", call("add", a=1, b=2), "3", tools=[add], description=f"Uses {secret}.")
    runner = InMemoryRunner(root)

    asyncio.run(turn(runner, "hello", session=f"of-{secret}"))

    told = str([(span.name, attributes(span)) for span in spans.taken()])
    assert "Uses [secret]." in told and "of-[secret]" in told and secret not in told


def test_the_agents_of_a_team_are_under_the_agent_that_runs_them(spans: Spans) -> None:
    team = SequentialAgent(
        name="team",
        sub_agents=[
            ParallelAgent(
                name="both", sub_agents=[agent("left", "1"), agent("right", call("add", a=1, b=1), "2", tools=[add])]
            ),
            LoopAgent(name="again", sub_agents=[agent("writer", "3", "4")], max_iterations=2),
        ],
    )

    asyncio.run(run(team))

    tree = spans.tree()
    remaining_index, right = tree.index("    invoke_agent left"), tree.index("    invoke_agent right")
    assert tree[remaining_index + 1] == "      chat scripted"
    assert tree[right + 1 : right + 4] == ["      chat scripted", "      execute_tool add", "      chat scripted"]
    assert tree[:2] == ["invoke_agent team", "  invoke_agent both"]
    assert tree[-5:] == ["  invoke_agent again", *["    invoke_agent writer", "      chat scripted"] * 2]


def test_an_agent_that_took_over_is_under_the_one_that_handed_over(spans: Spans) -> None:
    desk = agent("desk", call("transfer_to_agent", agent_name="expert"), sub_agents=[agent("expert", "yes")])

    asyncio.run(run(desk))

    assert spans.tree() == [
        "invoke_agent desk",
        "  chat scripted",
        "  execute_tool transfer_to_agent",
        "  invoke_agent expert",
        "    chat scripted",
    ]


@pytest.mark.parametrize("streams", [False, True])
def test_an_agent_that_is_a_tool_is_under_its_call(spans: Spans, streams: bool) -> None:
    helper = AgentTool(agent("helper", "42"), stream_events=streams)

    asyncio.run(run(agent("boss", call("helper", request="think"), "done", tools=[helper])))

    assert spans.tree() == [
        "invoke_agent boss",
        "  chat scripted",
        "  execute_tool helper",
        "    invoke_agent helper",
        "      chat scripted",
        "  chat scripted",
    ]


def test_the_nodes_of_a_graph_are_under_it(spans: Spans) -> None:
    def shout(node_input: str) -> str:
        return str(node_input).upper()

    def sum_up(node_input: str) -> dict[str, int]:
        return {"a": 1, "b": 2}

    edges = [(START, shout, agent("writer", "ok"), sum_up, FunctionTool(add))]
    graph = Workflow(name="pipeline", edges=edges)

    asyncio.run(run(graph))

    assert spans.tree() == [
        "invoke_workflow pipeline",
        "  invoke_node shout",
        "  invoke_agent writer",
        "    chat scripted",
        "  invoke_node sum_up",
        "  execute_tool add",
    ]


def test_spans_of_tools_own_code_are_under_their_calls(spans: Spans) -> None:
    tracer = spans.provider.get_tracer("mine")

    def look_up() -> str:
        """Look it up, in a thread."""
        with tracer.start_as_current_span("query"):
            return "found"

    async def fetch() -> str:
        """Fetch it, on the loop."""
        with tracer.start_as_current_span("request"):
            await asyncio.sleep(0)
            return "fetched"

    asyncio.run(run(agent("a", [call("look_up"), call("fetch")], "done", tools=[look_up, fetch])))

    tree = spans.tree()
    assert tree[tree.index("  execute_tool look_up") + 1] == "    query"
    assert tree[tree.index("  execute_tool fetch") + 1] == "    request"


def test_the_current_span_is_the_parent_and_runs_side_by_side_do_not_mix(spans: Spans) -> None:
    tracer = spans.provider.get_tracer("mine")

    async def request(name: str) -> None:
        with tracer.start_as_current_span(name):
            await run(agent(f"agent_of_{name}", call("add", a=1, b=2), "done", tools=[add]))

    async def both() -> None:
        await asyncio.gather(request("one"), request("two"))

    asyncio.run(both())

    result = spans.taken()
    for name in ("one", "two"):
        [outer] = [span for span in result if span.name == name]
        [inner] = [span for span in result if span.name == f"invoke_agent agent_of_{name}"]
        assert inner.parent and outer.context and inner.parent.span_id == outer.context.span_id
        assert inner.context
        parent = inner.context.span_id
        below = [span.name for span in result if span.parent and span.parent.span_id == parent]
        assert below == ["chat scripted", "execute_tool add", "chat scripted"]


def test_the_span_of_the_surrounding_process_is_the_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEPARENT", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    stored_spans = Spans()
    telemetry.instrument(tracer_provider=stored_spans.provider)

    asyncio.run(run(agent("a", "hi")))
    telemetry.uninstrument()

    root = stored_spans.one("invoke_agent a")
    assert root.parent and root.parent.is_remote
    assert f"{root.parent.trace_id:032x}" == "0af7651916cd43dd8448eb211c80319c"


# ---- resumed runs


async def asking_and_answering(make: Callable[[], Runner], between: Callable[[], None] = lambda: None) -> None:
    first = await turn(make(), "pay")
    between()
    [interrupt] = open_interrupts(first)
    answer = types.Content(role="user", parts=[interrupts.answer(interrupt, ToolConfirmation(confirmed=True))])
    await turn(make(), answer)


def payer() -> App:
    model = PAYER
    root = LlmAgent(name="clerk", model=model, tools=[FunctionTool(add, require_confirmation=True)])
    return App(name="shop", root_agent=root, resumability_config=ResumabilityConfig(is_resumable=True))


PAYER: ScriptedLlm


def test_a_run_that_answers_an_approval_links_to_the_run_that_asked_also_in_another_process(
    spans: Spans, tmp_path: Path
) -> None:
    global PAYER
    PAYER = ScriptedLlm(call("add", a=1, b=2), "paid")
    other_spans = Spans()

    def begin_another_process() -> None:
        telemetry.instrument(tracer_provider=other_spans.provider)

    def runner() -> Runner:
        return Runner(app=payer(), session_service=SqliteSessionService(str(tmp_path / "s.db")))

    asyncio.run(asking_and_answering(runner, begin_another_process))

    request, answer = spans.one("invoke_agent clerk"), other_spans.taken()
    assert [span.name for span in answer] == ["invoke_agent clerk", "execute_tool add", "chat scripted"]
    [link] = answer[0].links
    assert request.context and link.context.span_id == request.context.span_id
    assert link.context.trace_id == request.context.trace_id
    assert not request.links
    assert all(not span.links for span in answer[1:])


def test_a_run_that_failed_and_is_resumed_links_to_its_first_part(spans: Spans, tmp_path: Path) -> None:
    model = ScriptedLlm(call("add", a=1, b=2), TimeoutError("late"), "three")
    root = LlmAgent(name="a", model=model, tools=[add])
    app = App(name="shop", root_agent=root, resumability_config=ResumabilityConfig(is_resumable=True))
    runner = InMemoryRunner(app=app)

    with pytest.raises(TimeoutError):
        asyncio.run(turn(runner, "hello"))
    session = asyncio.run(current_session(runner, "ada", "s"))
    assert session
    asyncio.run(turn(runner, None, invocation_id=session.events[0].invocation_id))

    first, second = [span for span in spans.taken() if span.name == "invoke_agent a"]
    assert first.context and [link.context.span_id for link in second.links] == [first.context.span_id]
    invocations = {attributes(span)["adk_nb.invocation_id"] for span in (first, second)}
    assert len(invocations) == 1


# ---- what spans say


def reply(text: str = "done", **fields: Any) -> LlmResponse:
    return LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]), **fields)


USAGE = types.GenerateContentResponseUsageMetadata(
    prompt_token_count=100,
    candidates_token_count=20,
    thoughts_token_count=5,
    cached_content_token_count=80,
    tool_use_prompt_token_count=3,
    total_token_count=128,
)


def test_a_model_call_has_tokens_reasons_settings_and_ids(spans: Spans) -> None:
    answer = reply(usage_metadata=USAGE, finish_reason=types.FinishReason.MAX_TOKENS, model_version="scripted-001")
    settings = types.GenerateContentConfig(temperature=0.5, max_output_tokens=200, stop_sequences=["END"])

    asyncio.run(run(agent("a", answer, generate_content_config=settings, description="Answers.")))

    agent_span, model_span = spans.taken()
    assert model_span.kind is SpanKind.CLIENT
    assert attributes(model_span) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "scripted",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.max_tokens": 200,
        "gen_ai.request.stop_sequences": ("END",),
        "gen_ai.response.model": "scripted-001",
        "gen_ai.response.finish_reasons": ("length",),
        "gen_ai.usage.input_tokens": 103,
        "gen_ai.usage.output_tokens": 25,
        "gen_ai.usage.reasoning.output_tokens": 5,
        "gen_ai.usage.cache_read.input_tokens": 80,
        "gen_ai.agent.name": "a",
        "gen_ai.conversation.id": attributes(agent_span)["gen_ai.conversation.id"],
    }
    text = attributes(agent_span)
    assert text.pop("gen_ai.conversation.id").startswith("s-")
    assert text.pop("adk_nb.invocation_id").startswith("e-")
    assert text == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "a",
        "gen_ai.agent.description": "Answers.",
        "adk_nb.session_id": "s",
    }


def test_a_tool_call_has_its_tool_and_the_id_of_the_call(spans: Spans) -> None:
    [_, built, *_] = events = asyncio.run(run(agent("a", call("add", a=1, b=2), "done", tools=[add])))

    [called] = events[0].get_function_calls()
    assert built
    text = attributes(spans.one("execute_tool add"))
    assert text.pop("gen_ai.conversation.id").startswith("s-")
    assert text == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "add",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": called.id,
        "gen_ai.tool.description": "Add two numbers.",
        "gen_ai.agent.name": "a",
    }


# ---- conversations


def conversations(found: list[ReadableSpan]) -> list[str]:
    """The id of each run's conversation, once, in their order; spans of a run have the same."""
    return list(dict.fromkeys(attributes(span)["gen_ai.conversation.id"] for span in found))


def test_sessions_of_the_same_name_are_different_conversations(spans: Spans) -> None:
    for _ in range(2):  # as in two notebooks
        asyncio.run(run(agent("a", call("add", a=1, b=2), "done", tools=[add])))

    result = spans.taken()
    first, second = conversations(result)
    assert first.startswith("s-") and second.startswith("s-")
    assert {attributes(span)["adk_nb.session_id"] for span in result if span.name == "invoke_agent a"} == {"s"}


def test_a_stored_session_is_one_conversation_in_every_process_and_its_copy_another(
    spans: Spans, tmp_path: Path
) -> None:
    async def turns() -> None:
        for message in ("one", "two"):
            service = SqliteSessionService(str(tmp_path / "s.db"))
            runner = Runner(app_name="shop", agent=agent("a", "hi", "hi"), session_service=service)
            await turn(runner, message)
        await runner.fork_async(user_id="ada", session_id="s", new_session_id="copy")
        await turn(runner, "three", "copy")

    asyncio.run(turns())

    first, second, copied = [attributes(span) for span in spans.taken() if span.name == "invoke_agent a"]
    assert first["gen_ai.conversation.id"] == second["gen_ai.conversation.id"]
    assert copied["gen_ai.conversation.id"].startswith("copy-")


def test_runs_that_read_the_newest_events_only_stay_in_their_conversation(spans: Spans) -> None:
    runner = InMemoryRunner(agent=agent("a", "one", "two", "three"))
    config = RunConfig(get_session_config=GetSessionConfig(num_recent_events=1))

    async def turns() -> None:
        for message in ("one", "two", "three"):
            await turn(runner, message, run_config=config)

    asyncio.run(turns())

    assert len(conversations(spans.taken())) == 1


# ---- names


def test_the_older_names_are_those_of_1_36() -> None:
    stored_spans = Spans()
    telemetry.instrument(tracer_provider=stored_spans.provider, conventions="1.36")

    asyncio.run(run(Workflow(name="g", edges=[(START, agent("a", reply(usage_metadata=USAGE)))])))
    telemetry.uninstrument()

    graph, agent_span, model_span = stored_spans.taken()
    assert graph.name == "invoke_agent g"
    assert attributes(agent_span)["gen_ai.system"] == "scripted"
    assert attributes(agent_span)["gen_ai.agent.id"] == "InMemoryRunner/a"
    text = attributes(model_span)
    assert (text["gen_ai.system"], text["gen_ai.usage.output_tokens"]) == ("scripted", 25)
    assert not {"gen_ai.provider.name", "gen_ai.usage.reasoning.output_tokens"} & text.keys()


def test_a_streamed_answer_has_the_time_to_its_first_chunk(spans: Spans) -> None:
    asyncio.run(run(agent("a", "one two three"), run_config=RunConfig(streaming_mode=StreamingMode.SSE)))

    text = attributes(spans.one("chat scripted"))
    assert text["gen_ai.request.stream"] is True
    assert text["gen_ai.response.time_to_first_chunk"] >= 0


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (ModelHTTPError(429, "too many", "scripted"), "429"),
        (TimeoutError(SAID), "TimeoutError"),
    ],
)
def test_a_failed_model_call_has_its_error_in_every_span_above(spans: Spans, answer: Exception, error: str) -> None:
    with pytest.raises(type(answer)):
        asyncio.run(run(SequentialAgent(name="team", sub_agents=[agent("a", answer)])))

    result = spans.taken()
    assert [span.name for span in result] == ["invoke_agent team", "invoke_agent a", "chat scripted"]
    for span in result:
        assert attributes(span)["error.type"] == error
        assert span.status.status_code is StatusCode.ERROR
        assert span.status.description is None


def test_a_refusal_by_the_model_is_an_error_of_its_span(spans: Spans) -> None:
    refused = LlmResponse(error_code="SAFETY", finish_reason=types.FinishReason.SAFETY)

    asyncio.run(run(agent("a", refused)))

    span = spans.one("chat scripted")
    assert attributes(span)["gen_ai.response.finish_reasons"] == ("content_filter",)
    assert (attributes(span)["error.type"], span.status.status_code) == ("SAFETY", StatusCode.ERROR)


def test_a_failed_tool_call_is_an_error_and_the_run_is_none(spans: Spans) -> None:
    def refuse() -> dict[str, str]:
        """Refuse."""
        return {"error": SAID}

    asyncio.run(run(agent("a", [call("fail", reason=SAID), call("refuse")], "sorry", tools=[fail, refuse])))

    result = {span.name: span for span in spans.taken()}
    for name, error in (("execute_tool fail", "ValueError"), ("execute_tool refuse", "tool_error")):
        assert attributes(result[name])["error.type"] == error
        assert result[name].status.status_code is StatusCode.ERROR
    assert result["invoke_agent a"].status.status_code is StatusCode.UNSET


def test_a_tool_names_the_error_of_its_span(spans: Spans) -> None:
    def wait_for_it() -> str:
        """Wait."""
        raise ToolExecutionError("nothing came", ToolErrorType.GATEWAY_TIMEOUT)

    asyncio.run(run(agent("a", call("wait_for_it"), "sorry", tools=[wait_for_it])))

    assert attributes(spans.one("execute_tool wait_for_it"))["error.type"] == "GATEWAY_TIMEOUT"


def test_a_tool_makes_spans_of_its_own_within_that_of_its_call(spans: Spans) -> None:
    def look_up() -> str:
        """Look it up."""
        with telemetry.tracer.start_as_current_span("the database"):
            return "found"

    asyncio.run(run(agent("a", call("look_up"), "yes", tools=[look_up])))

    assert spans.tree()[2:4] == ["  execute_tool look_up", "    the database"]


def test_a_server_of_ones_own_is_named_and_the_error_has_its_status(spans: Spans) -> None:
    model = OpenAILlm(
        model="qwen",
        base_url="http://127.0.0.1:9/v1",
        retry_options=types.HttpRetryOptions(attempts=1),
    )
    with pytest.raises(Exception, match=r"127\.0\.0\.1"):
        asyncio.run(run(LlmAgent(name="a", model=model)))

    text = attributes(spans.one("chat qwen"))
    assert (text["gen_ai.provider.name"], text["server.address"], text["server.port"]) == ("openai", "127.0.0.1", 9)
    assert text["error.type"]


# ---- content


def everything(found: list[ReadableSpan]) -> str:
    return " ".join(span.to_json() for span in found)


async def talkative() -> None:
    answers = (call("add", a=4711, b=1), call("fail", reason=SAID), reply("Answer 0815."))
    await run(agent("a", *answers, tools=[add, fail], instruction="Rule 1234."), SAID)


def test_no_content_is_in_spans_unless_asked_for(spans: Spans) -> None:
    asyncio.run(talkative())

    text = everything(spans.taken())
    assert all(part not in text for part in (SAID, "4711", "4712", "0815", "1234", "because"))


def with_content(spans: Spans, **settings: Any) -> None:
    telemetry.instrument(tracer_provider=spans.provider, content=True, **settings)


def test_content_has_the_form_of_the_conventions(spans: Spans) -> None:
    with_content(spans)

    asyncio.run(talkative())

    root, first, adding, _, failing, last = spans.taken()
    text = {name: json.loads(value) for name, value in attributes(last).items() if str(value).startswith("[")}
    request, called, answer, *_ = text["gen_ai.input.messages"]
    assert request == {"role": "user", "parts": [{"type": "text", "content": SAID}]}
    assert called["role"] == "assistant"
    assert (called["parts"][0]["type"], called["parts"][0]["arguments"]) == ("tool_call", {"a": 4711, "b": 1})
    assert answer["role"] == "tool"
    assert answer["parts"][0] == {
        "type": "tool_call_response",
        "id": called["parts"][0]["id"],
        "response": {"result": 4712},
    }
    assert text["gen_ai.output.messages"] == [
        {"role": "assistant", "parts": [{"type": "text", "content": "Answer 0815."}], "finish_reason": "stop"}
    ]
    assert text["gen_ai.system_instructions"][0]["content"].startswith("Rule 1234.")
    assert [tool["name"] for tool in text["gen_ai.tool.definitions"]] == ["add", "fail"]
    assert attributes(first)["gen_ai.response.finish_reasons"] == ("tool_call",)
    assert json.loads(attributes(adding)["gen_ai.tool.call.arguments"]) == {"a": 4711, "b": 1}
    assert attributes(adding)["gen_ai.tool.call.result"] == "4712"
    assert failing.status.description == f"it failed because {SAID}"
    # The span of the run has what went in and what came out.
    assert SAID in attributes(root)["gen_ai.input.messages"]
    assert "Answer 0815." in attributes(root)["gen_ai.output.messages"]


def test_content_of_1_36_is_events_of_the_span(spans: Spans) -> None:
    with_content(spans, conventions="1.36")

    asyncio.run(talkative())

    *_, last = spans.taken()
    assert [event.name for event in last.events] == [
        "gen_ai.system.message",
        "gen_ai.user.message",
        *["gen_ai.assistant.message", "gen_ai.tool.message"] * 2,
        "gen_ai.choice",
    ]
    assert "Answer 0815." in str((last.events[-1].attributes or {})["content"])


def test_the_environment_can_ask_for_content(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    stored_spans = Spans()
    telemetry.instrument(tracer_provider=stored_spans.provider)

    asyncio.run(run(agent("a", "hi"), SAID))
    telemetry.uninstrument()

    assert SAID in attributes(stored_spans.one("invoke_agent a"))["gen_ai.input.messages"]


def test_content_has_no_secrets_and_no_media(spans: Spans) -> None:
    with_content(spans)
    redaction.remember("hunter2-hunter2")
    image = types.Part(inline_data=types.Blob(mime_type="image/png", data=b"\x89PNG" * 5))

    def leak(api_key: str) -> str:
        """Leak."""
        raise ValueError("the key hunter2-hunter2 is wrong")

    asyncio.run(
        run(
            agent("a", call("leak", api_key="AIza" + "x" * 35), "it is hunter2-hunter2", tools=[leak]),
            types.Content(role="user", parts=[image, types.Part(text="hunter2-hunter2")]),
        )
    )

    text = everything(spans.taken())
    assert "hunter2" not in text and "AIzaxxx" not in text
    assert "[20 bytes]" in text and "iVBO" not in text


def test_what_json_cannot_hold_is_text_and_a_broken_object_breaks_nothing(spans: Spans) -> None:
    with_content(spans)

    class Broken:
        def __str__(self) -> str:
            raise RuntimeError("no")

        __repr__ = __str__

    def odd() -> Any:
        """Return something odd."""
        return Broken()

    events = asyncio.run(run(agent("a", call("odd"), "done", tools=[odd])))

    assert events[-1].text == "done"
    assert "RuntimeError" in attributes(spans.one("execute_tool odd"))["gen_ai.tool.call.result"]


# ---- streams that end in other ways


def test_a_reader_that_leaves_or_reads_from_other_tasks_breaks_no_context(
    spans: Spans, caplog: pytest.LogCaptureFixture
) -> None:
    runner = InMemoryRunner(agent=agent("a", call("add", a=1, b=2), "done", tools=[add]))
    runner.auto_create_session = True

    async def leave() -> None:
        run = runner.run_async(user_id="ada", session_id="s", new_message="hello")
        first = await asyncio.create_task(_next(run))
        assert first.get_function_calls()
        await asyncio.create_task(_close(run))
        assert not trace.get_current_span().get_span_context().is_valid

    with caplog.at_level(logging.DEBUG, logger="opentelemetry"):
        asyncio.run(leave())

    assert not caplog.records
    [root, model] = spans.taken()
    assert (root.name, root.status.status_code) == ("invoke_agent a", StatusCode.UNSET)
    assert (model.name, model.status.status_code) == ("chat scripted", StatusCode.UNSET)


async def _next(events: AsyncGenerator[Event, None]) -> Event:
    return await anext(events)


async def _close(events: AsyncGenerator[Event, None]) -> None:
    await events.aclose()


def test_a_run_that_is_stopped_ends_its_spans(spans: Spans) -> None:
    stop = asyncio.Event()

    async def wait() -> str:
        """Wait for long."""
        stop.set()
        await asyncio.sleep(60)
        return "never"

    runner = InMemoryRunner(agent=agent("a", call("wait"), "done", tools=[wait]))
    runner.auto_create_session = True

    async def stopped() -> None:
        events = runner.run_async(user_id="ada", session_id="s", new_message="hello", abort_signal=stop)
        async with aclosing(events) as run:
            assert [event async for event in run][-1].error_code

    asyncio.run(stopped())

    result = {span.name: attributes(span).get("error.type") for span in spans.taken()}
    assert result["execute_tool wait"] == "CancelledError"
    assert set(result) == {"invoke_agent a", "chat scripted", "execute_tool wait"}


def test_a_live_conversation_has_spans_of_its_agent_and_tools(spans: Spans) -> None:
    root = agent("a", call("add", a=1, b=2), "three", tools=[add])
    runner = InMemoryRunner(agent=root)
    runner.auto_create_session = True

    async def talk() -> None:
        queue = LiveRequestQueue()
        queue.send_content(types.Content(role="user", parts=[types.Part(text="1 + 2?")]))
        events = runner.run_live(user_id="ada", session_id="s", live_request_queue=queue)
        async with aclosing(events) as run:
            async for event in run:
                if event.turn_complete:
                    queue.close()

    asyncio.run(talk())

    assert spans.tree() == ["invoke_agent a", "  execute_tool add"]


# ---- evaluations


def test_scores_are_events_in_the_trace_of_the_run_they_are_of(spans: Spans) -> None:
    cases = [{"id": "sum", "message": "1 + 2?", "answer": "3"}, {"id": "other", "message": "2 + 2?", "answer": "5"}]

    evaluation.evaluate(agent("a", "3", "4"), cases, max_concurrency=1)

    result = spans.taken()
    runs = [span for span in result if span.name == "invoke_agent a"]
    for case, label, run_span in zip(("sum", "other"), ("passed", "failed"), runs, strict=True):
        [scored] = [span for span in result if span.name == f"evaluate {case}"]
        assert scored.parent and run_span.context and scored.parent.span_id == run_span.context.span_id
        [event] = scored.events
        assert event.name == "gen_ai.evaluation.result"
        attributes = dict(event.attributes or {})
        assert attributes["gen_ai.evaluation.name"] == "answer"
        assert attributes["gen_ai.evaluation.score.label"] == label
        assert attributes["gen_ai.evaluation.score.value"] == float(label == "passed")
        assert "gen_ai.evaluation.explanation" not in attributes


def test_the_questions_to_a_judge_are_under_the_evaluation(spans: Spans) -> None:
    polite = judge("is polite", model=ScriptedLlm("banana", "banana again", model="judge"))

    evaluation.evaluate(agent("a", "Good day."), [{"id": "hi", "message": "Hi"}], metrics=[polite])

    assert spans.tree() == [
        "invoke_agent a",
        "  chat scripted",
        "  evaluate hi",
        "    invoke_agent judge",
        "      chat judge",
        "      chat judge",
    ]


# ---- beginning and end


def test_nothing_is_made_before_and_after() -> None:
    stored_spans = Spans()
    asyncio.run(run(agent("a", "hi")))
    telemetry.instrument(tracer_provider=stored_spans.provider)
    telemetry.uninstrument()
    telemetry.uninstrument()

    asyncio.run(run(agent("a", "hi")))

    assert stored_spans.taken() == []


def test_an_unknown_version_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"'2'.*latest.*1\.36"):
        telemetry.instrument(conventions="2")  # type: ignore[arg-type]
