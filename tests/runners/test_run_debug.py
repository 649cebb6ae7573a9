"""A quick look at an agent: say something, see what comes."""

import pytest

from adk_nb import InMemoryRunner, LlmAgent, sync, types
from adk_nb.agents import RunConfig, StreamingMode
from adk_nb.errors import InputError
from adk_nb.models import ScriptedLlm, call
from tests.support.talk import guide, look, requests, summaries

LONG = 50 * "long "


def seek(where: str) -> dict[str, str]:
    """Seeks."""
    return {"seen": LONG}


def test_the_answer_is_printed_with_its_author(capsys: pytest.CaptureFixture[str]):
    runner = InMemoryRunner(guide(call("look"), "hello there", tools=[look]))

    events = sync.run(runner.run_debug("hi"))

    assert capsys.readouterr().out == "guide > hello there\n"
    assert summaries(events) == [
        ("guide", "calls look({})"),
        ("guide", "answers {'result': 'seen'}"),
        ("guide", "hello there ."),
    ]


def test_a_conversation_goes_on(capsys: pytest.CaptureFixture[str]):
    agent = guide("1", "2", "3")
    runner = InMemoryRunner(agent)

    assert len(sync.run(runner.run_debug(["a", "b"]))) == 2
    sync.run(runner.run_debug("c"))

    assert capsys.readouterr().out == "guide > 1\nguide > 2\nguide > 3\n"
    assert [words for _, words in requests(agent)[-1]] == ["a", "1", "b", "2", "c"]
    [session] = runner.session_service.list_sessions_sync(app_name="InMemoryRunner").sessions
    assert (session.user_id, session.id) == ("debug_user_id", "debug_session_id")


def test_quiet_prints_nothing(capsys: pytest.CaptureFixture[str]):
    events = sync.run(InMemoryRunner(guide("hello")).run_debug("hi", quiet=True, verbose=True))

    assert capsys.readouterr().out == ""
    assert [event.text for event in events] == ["hello"]


def test_verbose_prints_what_else_an_event_holds(capsys: pytest.CaptureFixture[str]):
    parts = [
        types.Part(text="Let me see. ", thought=True),
        types.Part(text="Here:"),
        types.Part(executable_code=types.ExecutableCode(code="1+1", language=types.Language.PYTHON)),
        types.Part(code_execution_result=types.CodeExecutionResult(output="2", outcome=types.Outcome.OUTCOME_OK)),
        types.Part(inline_data=types.Blob(data=b"1", mime_type="image/png")),
        types.Part(file_data=types.FileData(file_uri="https://a/b.pdf")),
        types.Part(text="done"),
    ]
    runner = InMemoryRunner(guide(call("seek", where=LONG), parts, tools=[seek]))

    sync.run(runner.run_debug("hi", verbose=True))

    args, result = str({"where": LONG})[:50], str({"seen": LONG})[:100]
    assert capsys.readouterr().out.splitlines() == [
        f"guide > [calls seek({args}...)]",
        f"guide > [seek answers {result}...]",
        "guide > Let me see. Here:",
        "guide > [runs python code]",
        "guide > [code answers 2]",
        "guide > [data image/png]",
        "guide > [file https://a/b.pdf]",
        "guide > done",
    ]


def test_without_verbose_thoughts_stay_unsaid(capsys: pytest.CaptureFixture[str]):
    runner = InMemoryRunner(guide([types.Part(text="Hm.", thought=True), types.Part(text="Yes.")]))

    sync.run(runner.run_debug("hi"))

    assert capsys.readouterr().out == "guide > Yes.\n"


def test_a_streamed_answer_is_printed_once(capsys: pytest.CaptureFixture[str]):
    runner = InMemoryRunner(guide("one two"))

    events = sync.run(runner.run_debug("hi", run_config=RunConfig(streaming_mode=StreamingMode.SSE)))

    assert capsys.readouterr().out == "guide > one two\n"
    assert len(events) == 3


def test_an_error_is_printed_before_it_is_raised(capsys: pytest.CaptureFixture[str]):
    error = InputError("no such thing")
    agent = LlmAgent(name="guide", model=ScriptedLlm(error))

    with pytest.raises(InputError, match="no such thing"):
        sync.run(InMemoryRunner(agent).run_debug("hi"))

    assert capsys.readouterr().out == f"guide > [failed InputError: {error}]\n"
