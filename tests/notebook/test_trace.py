"""%trace: when who was at work, exactly what was sent, two turns side by side; of undone turns too."""

import asyncio
import itertools
import json
import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from adk_nb import Chat, LlmAgent, clock, types
from adk_nb.models import BaseLlm, Claude, HttpLlm, LlmRequest, LlmResponse, OpenAILlm, ScriptedLlm, call
from adk_nb.notebook.chat.chat import turn_runner
from adk_nb.notebook.view.document import Document
from adk_nb.notebook.view.panels import waterfall
from adk_nb.notebook.view.panels.prompt import Prompt, prompts
from adk_nb.notebook.view.panels.waterfall import Bar, bars
from adk_nb.notebook.view.writers import bundle
from adk_nb.runners import InMemoryRunner
from adk_nb.runtime.trace import Trace, TracedRequest, Traces
from adk_nb.tools import AgentTool, FunctionTool
from tests.notebook.conftest import Shell

KEY = "AIza" + "b1C2" * 9


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that stands still; what works turns it on."""
    now = [1000.0]
    monkeypatch.setattr(clock, "now", lambda: now[0])
    return now


def brief(found: list[Bar]) -> list[tuple[str, str, int, float, float | None]]:
    return [(one["kind"], one["name"], one["depth"], one["begin"], one["end"]) for one in found]


def asked(model: BaseLlm, text: str = "Hi", tools: list[Any] | None = None, **fields: Any) -> Any:
    agent = LlmAgent(name="planner", model=model, tools=tools or [], **fields)
    return Chat(agent, show="off").ask(text)


# ---- when who was at work


def test_bars_nest_what_a_called_agent_does_under_the_call(seconds: list[float]):
    def look() -> str:
        """Looks."""
        seconds[0] += 2
        return "seen"

    helper = LlmAgent(name="helper", model=ScriptedLlm(call("look"), "fine"), tools=[look])
    reply = asked(ScriptedLlm(call("helper", request="go"), "done"), tools=[AgentTool(helper)])

    assert brief(bars(reply.events, reply.trace)) == [
        ("agent", "planner", 0, 0.0, 2000.0),
        ("model", "scripted", 1, 0.0, 0.0),
        ("tool", "helper", 1, 0.0, 2000.0),
        ("agent", "helper", 2, 0.0, 2000.0),
        ("model", "scripted", 3, 0.0, 0.0),
        ("tool", "look", 3, 0.0, 2000.0),
        ("model", "scripted", 3, 2000.0, 2000.0),
        ("model", "scripted", 1, 2000.0, 2000.0),
    ]


def test_a_streamed_answer_has_the_time_of_its_first_piece_and_a_failed_one_its_error(seconds: list[float]):
    model = ScriptedLlm("one two")

    class Slow(BaseLlm):
        """A second for each piece."""

        async def generate_content_async(
            self, llm_request: LlmRequest, stream: bool = False
        ) -> AsyncGenerator[LlmResponse, None]:
            async for piece in model.generate_content_async(llm_request, stream=True):
                seconds[0] += 1
                yield piece

    reply = asked(Slow(model="slow"))
    [_, bar] = bars(reply.events, reply.trace)
    assert bar["begin"] == 0 and bar["first"] == 1000 and (bar["end"] or 0) > 1000

    def boom() -> str:
        """Fails."""
        raise ValueError("bad")

    tool = FunctionTool(boom)
    failed = asked(ScriptedLlm(call("boom"), RuntimeError("no more")), tools=[tool])
    assert [one["error"] for one in bars(failed.events, failed.trace)] == [
        "",
        "",
        "ValueError: bad",
        "RuntimeError: no more",
    ]


def test_without_notes_the_times_are_those_of_the_events(seconds: list[float]):
    def look() -> str:
        """Looks."""
        seconds[0] += 2
        return "seen"

    reply = asked(ScriptedLlm(call("look"), "done"), tools=[look])

    assert brief(bars(reply.events)) == [
        ("agent", "planner", 0, 0.0, 2000.0),
        ("model", "model", 1, 0.0, 0.0),
        ("tool", "look", 1, 0.0, 2000.0),
        ("model", "model", 1, 2000.0, 2000.0),
    ]
    assert bars([]) == []


def test_what_a_callback_asks_in_a_run_of_its_own_is_in_the_trace_of_its_turn():
    judge = InMemoryRunner(LlmAgent(name="judge", model=ScriptedLlm("Fine.")))

    async def judged(callback_context: Any) -> None:
        await judge.session_service.create_session(app_name=judge.app_name, user_id="u", session_id="s")
        async for _ in judge.run_async(user_id="u", session_id="s", new_message="Is this fine?"):
            pass

    planner = LlmAgent(name="planner", model=ScriptedLlm("Hello."), before_agent_callback=judged)
    chat = Chat(planner, show="off")
    chat.ask("Hi")

    trace = turn_runner(chat).traces.merged(chat.turns[-1].invocation_ids)
    assert [request.agent for request in trace.requests] == ["judge", "planner"]


def test_a_person_who_was_asked_has_a_bar_that_ends_with_the_answer(seconds: list[float]):
    def pay() -> str:
        """Pays."""
        return "paid"

    tool = FunctionTool(pay, require_confirmation=True)
    chat = Chat(LlmAgent(name="clerk", model=ScriptedLlm(call("pay"), "done"), tools=[tool]), show="off")
    waiting = chat.ask("Pay")
    seconds[0] += 60
    asked = bundle(Document(waterfall.drawn(bars(waiting.events, waiting.trace), "turn 1")))
    assert "|  still waits\n" in asked["text/plain"] and "green: tool" in asked["text/html"]
    chat.approve()

    turn = chat.turns[-1]
    found = bars(turn.events, turn_runner(chat).traces.merged(turn.invocation_ids))

    assert [(one["kind"], one["begin"], one["end"]) for one in found if one["kind"] != "agent"] == [
        ("model", 0.0, 0.0),
        ("person", 0.0, 60_000.0),
        ("tool", 60_000.0, 60_000.0),
        ("model", 60_000.0, 60_000.0),
    ]
    drawn = bundle(Document(waterfall.drawn(found, "turn 1")))
    assert "1 min 0 s" in drawn["text/plain"] and "<svg" in drawn["text/html"]


def test_names_go_into_the_picture_as_text(seconds: list[float]):
    bar = Bar(
        kind="tool",
        name="<script>alert(1)</script>",
        agent="a",
        lane="",
        team="",
        depth=1,
        begin=0,
        first=None,
        end=1,
        event="",
        call="",
        error='"><img src=x>',
    )

    drawn = bundle(Document(waterfall.drawn([bar], "<b>")))["text/html"]

    assert "<script" not in drawn and "<img" not in drawn and "<b>" not in drawn


@pytest.mark.parametrize(("teams", "begins"), [(("both", "both"), [0, 0]), (("one", "other"), [0, 1])])
def test_members_of_a_team_share_their_steps_however_fast_the_first_is(teams: tuple[str, str], begins: list[int]):
    left, right = [
        Bar(
            kind="model",
            name="m",
            agent=f"agent {place}",
            lane=f"agent {place}",
            team=team,
            depth=1,
            begin=2 * place,  # the first has ended when the second begins
            first=None,
            end=2 * place + 1,
            event="",
            call="",
            error="",
        )
        for place, team in enumerate(teams)
    ]

    assert [bar["begin"] for bar in waterfall.in_steps([left, right])] == begins


# ---- what was sent


def spans(prompt: Prompt) -> list[tuple[str, str]]:
    return [(words["text"], words["source"]) for words in prompt["system"] if words["source"]]


def test_what_was_put_into_an_instruction_is_marked_whoever_wrote_it():
    model = ScriptedLlm("ok", "ok")
    chat = Chat(LlmAgent(name="planner", model=model, instruction=r"{a} and {a?} and {none?} and \{a} {not a key}"))
    chat.state["a"] = "x {b}"
    [prompt] = prompts(chat.ask("Hi").trace)

    assert spans(prompt) == [("x {b}", "{a}"), ("x {b}", "{a?}"), ("", "{none?}")]
    text = "".join(words["text"] for words in prompt["system"])
    assert text == model.requests[0].config.system_instruction
    assert text.split("\n")[0].split(" and ") == ["x {b}", "x {b}", "", "{a} {not a key}"]


def test_the_prompt_is_what_callbacks_left_of_it_and_a_call_that_they_answer_is_none():
    def shorten(callback_context: Any, llm_request: LlmRequest) -> None:
        llm_request.config.system_instruction = "Be brief."

    reply = asked(ScriptedLlm("ok"), before_model_callback=shorten, instruction="Be long.")
    [prompt] = prompts(reply.trace)
    assert prompt["system"] == [{"text": "Be brief.", "source": ""}]

    def answer(callback_context: Any, llm_request: LlmRequest) -> LlmResponse:
        return LlmResponse.model_validate({"content": {"parts": [{"text": "no"}]}})

    assert asked(ScriptedLlm(), before_model_callback=answer).trace.requests == []


def test_a_prompt_has_tools_history_settings_and_the_answer_before_callbacks_and_no_keys():
    def look(city: str) -> str:
        """Looks."""
        return f"seen with {KEY}"

    def hide(callback_context: Any, llm_response: LlmResponse) -> LlmResponse | None:
        if not llm_response.text:
            return None
        return LlmResponse.model_validate({"content": {"parts": [{"text": "hidden"}]}})

    reply = asked(
        ScriptedLlm(call("look", city="Oslo"), "It is fine."),
        tools=[look],
        generate_content_config={"temperature": 0.5, "http_options": {"headers": {"x": KEY}}},
        after_model_callback=hide,
    )

    first, second = prompts(reply.trace)
    assert (first["tools"][0]["name"], list(first["tools"][0]["parameters"]["properties"])) == ("look", ["city"])
    assert first["settings"] == {"temperature": 0.5}
    assert [(said["role"], said["kind"]) for said in second["history"]] == [
        ("user", "text"),
        ("model", "call"),
        ("user", "result"),
    ]
    assert second["answer"][0]["text"][0]["text"] == "It is fine." and reply.text == "hidden"
    assert second["raw"]["content"]["parts"] == [{"text": "It is fine."}]
    assert KEY not in json.dumps([first, second])


def test_only_who_listens_keeps_requests_and_only_the_newest():
    model = ScriptedLlm(*"1234")
    chat = Chat(LlmAgent(name="planner", model=model))
    turn_runner(chat).traces = traces = Traces(max_requests=2)
    runs = [chat.ask(text).events[0].invocation_id for text in "abc"]

    assert [len(traces.merged([run]).requests) for run in runs] == [0, 1, 1]
    assert len(traces.merged(runs).requests) == 2
    trace = Trace()
    with trace.active():
        pass
    chat.ask("d")
    assert trace.requests == []


# ---- the magic


def planner(shell: Shell, *answers: Any) -> ScriptedLlm:
    shell.names["model"] = model = ScriptedLlm(*answers)
    shell.cell('%%tool\ndef look(city: str) -> str:\n    """Looks at the sky."""\n    return f"sunny in {city}"')
    shell.names["places"] = "Oslo or Rome"
    shell.cell("%state budget=400")
    shell.cell("%%agent planner -m model -t look\nPlan within {budget} euros.\n\nPlaces: {{places}}")
    return model


def test_the_magic_shows_one_turn_its_waterfall_and_what_was_sent(shell: Shell):
    planner(shell, call("look", city="Oslo"), "Go to Oslo.")
    shell.cell("%chat planner Where to?")

    assert str(shell.cell("%trace -1")).splitlines()[2:] == [
        "2  you      Where to?",
        '3  planner  look(city="Oslo") → "sunny in Oslo"',
        "4  planner  Go to Oslo.",
    ]
    assert str(shell.cell("%trace --waterfall")).splitlines()[:5] == [
        "turn 1: Where to? · in 3 steps, without times",
        "planner     |────────────────────────────────────────|",
        "  scripted  |█████████████                           |",
        "  look      |             ▒▒▒▒▒▒▒▒▒▒▒▒▒▒             |",
        "  scripted  |                           █████████████|",
    ]
    why = str(shell.cell("%trace --why"))
    assert "Plan within «400» euros" in why
    assert "    Places: «Oslo or" in why
    assert "    {budget} → 400\n    {{places}} → Oslo" in why
    assert "tools · 1\n    look(city): Looks" in why
    assert "answer · 1 call\n    model: calls look(" in why


def test_why_is_a_row_for_each_part_with_its_size_and_of_a_further_call_what_has_changed(shell: Shell):
    planner(shell, call("look", city="Oslo"), "Go to Oslo.")
    shell.cell("%chat planner Where to?")

    why = shell.cell("%trace --why")
    first, second = str(why).split("model call 2 of 2: ")
    page = why._repr_mimebundle_()["text/html"]

    parts = re.findall("^(.+) · (.+)$", first.partition("scripted\n")[2], re.MULTILINE)
    assert [name for name, _ in parts] == [
        *("system instruction", "inserted values", "tools", "history", "answer", "raw response")
    ]
    assert [size for _, size in parts[1:5]] == ["2 values", "1", "1 message", "1 call"]
    assert "history · 2 new of 3 messages\n    model: calls look(" in second
    assert "as in model call 1: system instruction, tools, the first 1 message" in second
    assert "Plan within" not in second and "user: Where to?" not in second
    assert page.count("<details") == page.count("<summary>") == 9 and page.count(" open=") == 1
    inserted = re.findall("<mark [^>]*><strong>(.*?)</strong></mark>", page)
    assert inserted == ["400", "Oslo or Rome"]


def test_two_turns_stand_side_by_side_also_one_that_was_undone(shell: Shell):
    planner(shell, call("look", city="Oslo"), "Go to Oslo.\nBy train.", "Go to Rome.\nBy train.")
    shell.cell("%chat planner Where to?")
    shell.cell("%rewind 1")
    shell.cell("%%agent planner -m model\nPlan within {budget} euros, and be quick.\n\nPlaces: {{places}}")
    shell.cell("%chat planner Where to?")

    told = str(shell.cell("%trace --diff -1 -2"))

    head, *parts = told.split("\n\n")
    assert re.split(r"\s{2,}", head.splitlines()[0].strip()) == ["turn 1, undone", "turn 2"]
    assert parts == [
        "instruction of planner:\n    -Plan within 400 euros.\n    +Plan within 400 euros, and be quick.",
        "tools:\n    -planner: look",
        'calls:\n    -look(city="Oslo") → "sunny in Oslo"',
        "answer:\n    -Go to Oslo.\n    +Go to Rome.\n     By train.",
    ]
    assert "turn 1, undone: " in str(shell.cell("%trace -2 --why"))
    page = shell.cell("%trace --diff -2")._repr_mimebundle_()["text/html"]
    assert "<s>Oslo.</s>" in page and "<strong>Rome.</strong>" in page


def test_a_trace_is_exported_as_lines_of_json_without_keys(shell: Shell, tmp_path: Path):
    planner(shell, f"the key is {KEY}", "again")
    shell.cell("%chat planner Where to?")
    shell.cell("%chat planner And then?")
    file = tmp_path / "trace.jsonl"

    assert "2 turns of" in str(shell.cell(f"%trace --export {file}"))
    lines = [json.loads(line) for line in file.read_text().splitlines()]

    assert [line["kind"] for line in lines] == ["trace", *(["turn", "event", "event", "request", "bar", "bar"] * 2)]
    assert KEY not in file.read_text()
    assert "1 turn of" in str(shell.cell(f"%trace -1 --export {file}"))  # over its own earlier export
    other = tmp_path / "notes.jsonl"
    other.write_text("mine")
    assert "%trace" in shell.fails(f"%trace --export {other}")
    assert other.read_text() == "mine"
    assert "cannot write" in shell.fails(f"%trace --export {tmp_path}/none/x.jsonl")
    for name in ("t.html", "t.json", "t.csv"):
        assert "t.jsonl" in shell.fails(f"%trace --export {tmp_path}/{name}")
        assert not (tmp_path / name).exists()


def test_a_number_of_many_digits_is_the_beginning_of_an_id(shell: Shell, monkeypatch: pytest.MonkeyPatch):
    numbers = itertools.count(7_000_000_000)
    monkeypatch.setattr(clock, "new_id", lambda: str(next(numbers)))
    planner(shell, "Go to Oslo.", "Go to Rome.")
    shell.cell("%chat planner Where to?")
    shell.cell("%chat planner And then?")
    answer = shell.ip.adk_nb.sessions.events()[-1].id

    assert answer.isdecimal()
    assert str(shell.cell(f"%trace {answer}")) == str(shell.cell("%trace 2"))


REFUSED = [
    ("%trace -9", "session 'main' has one turn, and no turn -9"),
    ("%trace nothing", "no turn has an event or a run called 'nothing'"),
    ("%trace --diff -1", "-1 and -1 are the same turn"),
    ("%trace --why --waterfall", "--waterfall and --why exclude each other"),
    ("%trace -1 --last", "RUN and --last exclude each other"),
    ("%trace --last --diff -1", "%trace -1 --diff -2"),
    ("%trace 1 2", "unexpected '2'"),
    ("%trace --wyh", "did you mean --why?"),
    ("%trace --raw 0", "--raw: must be a positive integer, got '0'"),
]


def test_lines_that_cannot_be_are_refused_in_one_sentence(shell: Shell):
    planner(shell, "ok")
    assert "session 'main'" in shell.fails("%trace --why")
    assert "'main'" in shell.fails("%trace --export x.jsonl")
    shell.cell("%chat planner Hi")
    for line, why in REFUSED:
        said = shell.fails(line)
        assert why in said and "\n" not in said, line


def test_what_an_earlier_kernel_sent_is_not_known_but_when_it_was_at_work_is(shell: Shell):
    planner(shell, call("look", city="Oslo"), "Go to Oslo.")
    shell.cell("%chat planner Where to?")
    notebook: Any = getattr(shell.ip, "adk_nb")  # noqa: B009
    for chat in notebook.chats_in("main"):
        turn_runner(chat).traces = notebook.traces = Traces()

    assert "for turn 1" in str(shell.cell("%trace --why"))
    assert "  look   |" in str(shell.cell("%trace --waterfall"))


def test_the_text_of_a_stopped_answer_is_in_the_trace_and_among_the_prompts(shell: Shell) -> None:
    def piece(text: str) -> LlmResponse:
        return LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]), partial=True)

    class Stopped(ScriptedLlm):
        async def generate_content_async(
            self, llm_request: LlmRequest, stream: bool = False
        ) -> AsyncGenerator[LlmResponse, None]:
            yield piece("Tea is ")
            yield piece("a drink")
            turn_runner(chat).stop()
            await asyncio.Event().wait()

    chat = Chat(LlmAgent(name="clerk", model=Stopped("unused")), show="off")
    shell.names["_run"] = reply = chat.ask("Tea?")

    assert (reply.status, reply.text) == ("cancelled", "Tea is a drink")
    assert "Tea is a drink" in str(shell.cell("%trace --last"))
    assert "model: Tea is a drink" in str(shell.cell("%trace --last --why"))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: Claude(model="claude-opus-4-7", api_key=SecretStr("none")), "claude-opus-4-7 does not take it"),
        (lambda: OpenAILlm(model="gpt-5", api_key=SecretStr("none")), "only without reasoning"),
        (lambda: HttpLlm("http://127.0.0.1:9/chat"), "messages, tools and state alone"),
    ],
)
def test_a_setting_that_a_model_was_not_sent_is_marked_so_with_the_reason(make: Any, reason: str) -> None:
    request = LlmRequest(
        contents=[types.UserContent("Tea?")],
        config=types.GenerateContentConfig(temperature=0.5, max_output_tokens=99, system_instruction="Help."),
    )
    model = make()
    made = {"event_id": "e", "invocation_id": "i", "agent": "a", "branch": None, "path": "", "began": 1.0}
    trace = Trace()
    trace.requests.append(
        TracedRequest(**made, model=model.model, request=request, unsent_settings=model.unsent_settings)
    )

    [prompt] = prompts(trace)

    assert prompt["settings"]["temperature"]["value"] == 0.5
    assert reason in prompt["settings"]["temperature"]["not sent"]
    if not isinstance(model, HttpLlm):
        assert prompt["settings"]["max_output_tokens"] == 99
