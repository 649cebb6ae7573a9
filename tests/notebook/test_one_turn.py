"""What a turn has that its agent has not: things attached, more tools, another model; and how its reply is kept."""

import base64
import os
from pathlib import Path
from typing import Any

import pytest
from support.messages import mentions

from adk_nb import types
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.agents.sequential_agent import SequentialAgent
from adk_nb.errors import InputError, ModelHTTPError
from adk_nb.models.adaptation import adapt_request
from adk_nb.models.base_llm import LlmCapabilities
from adk_nb.models.fallback_model import FallbackModel
from adk_nb.models.scripted_llm import ScriptedLlm, call
from adk_nb.notebook.chat import attachments
from adk_nb.notebook.chat.chat import Chat
from adk_nb.notebook.chat.reply import Reply, view_of_reply
from adk_nb.notebook.view.reply_view import answer_for_view, conversation_document
from adk_nb.notebook.view.writers import bundle
from adk_nb.tools.function_tool import FunctionTool
from tests.notebook.conftest import Shell

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def begin(shell: Shell, *answers: Any) -> ScriptedLlm:
    model = ScriptedLlm(*answers)
    shell.names["model"] = model
    shell.cell("%%agent guide -m model\nBe brief.")
    return model


def told(model: ScriptedLlm, number: int = 0) -> list[tuple[str, bytes | str]]:
    """The parts of the question, the words first."""
    parts = model.requests[number].contents[-1].parts or []
    return [
        (part.inline_data.mime_type or "", part.inline_data.data or b"") if part.inline_data else ("", part.text or "")
        for part in parts
    ]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photo.png").write_bytes(PNG)
    (tmp_path / "notes.txt").write_text("Bring a coat.")
    (tmp_path / "my plan.csv").write_text("city,days\nOslo,3\n")
    (tmp_path / "paper.pdf").write_bytes(b"%PDF-1.7 and so on")
    (tmp_path / "odd.bin").write_bytes(b"\x00\x01\xff")
    (tmp_path / "key.txt").write_text("sk-" + "a1" * 20)
    return tmp_path


def test_files_go_with_the_words_each_behind_its_name(shell: Shell, folder: Path) -> None:
    model = begin(shell, "A dot.")

    shell.cell(
        '%chat guide --attach photo.png --attach notes.txt --attach "my plan.csv" --attach=paper.pdf What is it?'
    )

    assert told(model) == [
        ("", "What is it?"),
        ("", "[attached: photo.png]"),
        ("image/png", PNG),
        ("", "[attached: notes.txt]"),
        ("text/plain", b"Bring a coat."),
        ("", "[attached: my plan.csv]"),
        ("text/csv", b"city,days\nOslo,3\n"),
        ("", "[attached: paper.pdf]"),
        ("application/pdf", b"%PDF-1.7 and so on"),
    ]


VALUES = """import io, pandas as pd, matplotlib
matplotlib.use('agg')
from matplotlib.figure import Figure
from PIL import Image
sales = pd.DataFrame({'city': ['Oslo'] * 3, 'sold': [1, 2, 3]})
drawn = Figure()
drawn.subplots().plot([1, 2])
dot = Image.new('RGB', (2, 2))
words = 'As it is: {{places}}'
plan = {'Oslo': 3}"""


def test_the_files_of_a_question_are_named_wherever_it_is_shown(shell: Shell, folder: Path) -> None:
    begin(shell, "A dot.", "Two.")
    reply = shell.cell("%chat guide --attach photo.png --attach 'my plan.csv' What is this?")
    picture = types.Part.from_bytes(data=PNG, mime_type="image/png")
    unnamed = Chat(shell.names["guide"], show="off").ask("And this?", attach=picture)

    assert answer_for_view(view_of_reply(reply))["question"] == "What is this?\n[attached: photo.png, my plan.csv]"
    for form in bundle(conversation_document([view_of_reply(reply)])).values():
        assert "photo.png, my plan.csv" in form.split("A dot.")[0]
    assert answer_for_view(view_of_reply(unnamed))["question"] == f"And this?\n[attached: image/png, {len(PNG)} bytes]"
    assert "What is this? [attached: photo.png]" in str(shell.cell("%trace"))


def test_variables_go_with_the_words_as_what_they_are(shell: Shell, folder: Path) -> None:
    model = begin(shell, "Fine.")
    shell.names["raw"] = PNG
    shell.cell(VALUES)

    shell.cell(
        "%%chat guide --attach sales --attach drawn --attach dot --attach words --attach plan --attach raw\nLook:\n {x}"
    )

    parts = told(model)
    assert parts[0] == ("", "Look:\n {x}")
    assert parts[2] == ("text/csv", b"city,sold\nOslo,1\nOslo,2\nOslo,3\n")
    assert parts[3:7:2] == [("", "[attached: drawn]"), ("", "[attached: dot]")]
    assert [(kind, data[:4]) for kind, data in parts[4:7:2]] == [("image/png", b"\x89PNG")] * 2
    assert parts[8] == ("text/plain", b"As it is: {{places}}")
    assert parts[10] == ("text/plain", b'{"Oslo":3}')
    assert parts[12] == ("image/png", PNG)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--attach phto.png Hi", "'phto.png'; did you mean 'photo.png'?"),
        ("--attach modl Hi", "'modl'; did you mean 'model'?"),
        ("--attach zzz Hi", "'zzz'; the folder is "),
        ("--attach . Hi", "'.' cannot be attached: . is a folder"),
        ("--attach pipe Hi", "'pipe' … regular file"),
        ("--attach ~nobody-here/x Hi", "'~nobody-here/x'; the folder is "),
        (f"--attach {'a' * 5000} Hi", "file 'aaa"),
        ("--attach odd.bin Hi", "'odd.bin' … text, … PDF; … types.Blob"),
        ("--attach key.txt Hi", "'key.txt' … a secret"),
        ("--attach", "--attach: … --attach FILE|VAR"),
        ("--atach photo.png Hi", "%chat has no option --atach; did you mean --attach? see %chat?"),
        ("-t wnd Hi", "no tool named 'wnd'; did you mean 'wind'?"),
        ("-t func Hi", "func … %tool func"),
        ("-m ofline Hi", "no model named 'ofline'; did you mean 'offline'?"),
        ("--error Hi", "no cell has failed … leave out --error"),
    ],
)
def test_what_is_typed_wrong_is_told_in_a_line_and_nothing_is_sent(
    shell: Shell, folder: Path, line: str, said: str
) -> None:
    model = begin(shell, "Never said.")
    shell.names.update(func=len, wind=FunctionTool(wind))
    os.mkfifo(folder / "pipe")

    failed = shell.fails(f"%chat guide {line}")

    assert mentions(failed, said) and "\n" not in failed
    assert not model.requests and not shell.ip.adk_nb.sessions.events()


def wind(city: str) -> str:
    """How windy a city is."""
    return f"{city}: calm"


def test_more_tools_are_for_one_turn_and_the_agent_is_as_it_was(shell: Shell) -> None:
    model = begin(shell, call("wind", city="Oslo"), "Calm.", "I cannot know.")
    shell.names["wind"] = FunctionTool(wind)

    assert shell.cell("%chat guide --tools wind How windy is Oslo?").text == "Calm."
    shell.cell("%chat guide And now?")

    assert [[one.name for one in tools_of(request)] for request in model.requests] == [["wind"], ["wind"], []]
    assert shell.names["guide"].tools == []


def tools_of(request: Any) -> list[types.FunctionDeclaration]:
    return [one for tool in request.config.tools or () for one in tool.function_declarations or ()]


def test_an_approval_of_a_lent_tool_is_given_after_its_turn(shell: Shell) -> None:
    begin(shell, call("wind", city="Oslo"), "Calm.", "Yes.")
    shell.names["wind"] = FunctionTool(wind, require_confirmation=True)
    assert shell.cell("%chat guide -t wind How windy is Oslo?").status == "pending"

    assert "no tool" not in str(shell.cell("%confirm"))
    reply = shell.cell("%confirm --yes")

    assert (reply.status, reply.text) == ("done", "Calm.")
    assert reply.events[1].get_function_responses()[0].response == {"result": "Oslo: calm"}
    assert shell.cell("%chat guide So?").text == "Yes."


def test_another_model_answers_one_turn_in_the_same_session(shell: Shell) -> None:
    model = begin(shell, "One.", "Three.")
    shell.names["other"] = other = ScriptedLlm("Two.")

    said = [shell.cell(f"%chat guide {line}").text for line in ("a", "--model other b", "c")]

    assert said == ["One.", "Two.", "Three."]
    assert [len(request.contents) for request in (*model.requests[:1], *other.requests, *model.requests[1:])] == [
        1,
        3,
        5,
    ]
    assert shell.names["guide"].model is model
    assert "Offline" in view_of_reply(shell.cell("%chat guide -m offline Hi")).notice


def test_who_leads_others_has_no_model_to_change(shell: Shell) -> None:
    one = LlmAgent(name="one", model=ScriptedLlm("Hi."))
    shell.names["team"] = SequentialAgent(name="team", sub_agents=[one])

    said = shell.fails("%chat team -m offline Hi")

    assert "InputError: 'team'" in said and "model" in said


def test_the_python_twin_takes_the_same(folder: Path) -> None:
    model, other = ScriptedLlm("Never."), ScriptedLlm(call("wind", city="Oslo"), "Calm.")
    chat = Chat(LlmAgent(name="guide", model=model))

    reply = chat.ask("So?", attach=["notes.txt", ValueError("no")], tools=[wind], model=other, show="static")

    assert (reply.text, model.requests) == ("Calm.", [])
    assert told(other)[0] == ("", "So?")
    parts = other.requests[0].contents[0].parts or []
    assert [part.text for part in parts[1::2]] == ["[attached: notes.txt]", "[attached: ValueError]"]
    assert parts[4].inline_data and parts[4].inline_data.data == b"ValueError: no"
    with pytest.raises(InputError, match=r"'gone.png' cannot be attached: No such file"):
        chat.ask("So?", attach="gone.png")


def test_what_is_too_large_for_a_message_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attachments, "MAX_BYTES", 100)

    with pytest.raises(InputError, match=r"message: 101 bytes, .* 100; attach"):
        attachments.parts_of(b"x" * 101)


def test_a_model_that_sees_no_images_is_told_that_there_is_one(folder: Path) -> None:
    model = ScriptedLlm("Fine.")
    Chat(LlmAgent(name="guide", model=model)).ask("What is it?", attach="photo.png")

    [content] = adapt_request(model.requests[0], LlmCapabilities(images=False)).contents

    assert [part.text for part in content.parts or ()] == [
        "What is it?",
        "[attached: photo.png]",
        "[an image (image/png) that you cannot be shown]",
    ]


def test_nothing_is_attached_to_the_answer_of_a_question(shell: Shell, folder: Path) -> None:
    shell.cell("from adk_nb.tools.request_input_tool import request_input")
    model = begin(shell, call("adk_request_input", message="Which city?"), "Oslo it is.")
    shell.names["guide"].tools = [shell.names["request_input"]]
    shell.cell("%chat guide Help")

    said = shell.fails("%chat guide --attach notes.txt Oslo")

    assert "InputError: this message answers" in said
    assert shell.cell("%chat guide Oslo").text == "Oslo it is."
    assert len(model.requests) == 2


def test_a_service_that_fails_is_told_with_what_to_do(shell: Shell) -> None:
    begin(shell, ModelHTTPError(429, "slow down", "gemini-2.5-flash"), ModelHTTPError(404, "no", "gemini-3.8-flsh"))

    busy, unknown = shell.broke_off("%chat guide Hi"), shell.broke_off("%chat guide Hi")

    assert "HTTP 429: slow down" in busy.error and "%chat --model NAME" in busy.error
    assert unknown.error.endswith("HTTP 404: no; did you mean 'gemini-3.8-flash'?")


def test_the_trace_tells_which_model_was_asked_instead(shell: Shell) -> None:
    busy = ScriptedLlm(ModelHTTPError(503, "busy", "first"), model="first")
    shell.names["both"] = FallbackModel(models=[busy, ScriptedLlm("Hello.", model="second")])
    shell.cell("%%agent guide -m both\nBe brief.")

    shell.cell("%chat guide Hi")

    assert "first gave no answer (HTTP 503); asked second instead" in str(shell.cell("%trace"))


# ---- the last error


def test_the_last_error_goes_with_the_question_with_its_cell_and_no_secret(shell: Shell) -> None:
    model = begin(shell, "You divide by zero.")
    shell.names["token"] = "sk-" + "a1" * 20
    shell.fails("def share(n):\n    return 1 / n\nshare(0)  # " + shell.names["token"])
    shell.fails("%chat guide --error --atach x Why?")

    shell.cell("%chat guide --error What does this mean?")

    text = str(told(model)[2][1], "utf-8")
    assert told(model)[1] == ("", "[attached: the last error]")
    assert text.startswith("The cell:\ndef share(n):\n    return 1 / n\nshare(0)  # ")
    assert "In[3] line 3, in <module>: share(0)" in text and "In[3] line 2, in share: return 1 / n" in text
    assert text.endswith("ZeroDivisionError: division by zero")
    assert shell.names["token"] not in text


def test_an_error_of_a_magic_and_a_syntax_error_can_be_asked_about(shell: Shell) -> None:
    model = begin(shell, "One.", "Two.")

    shell.fails("%%agent other\nSee {{nothing}}.")
    shell.cell("%chat guide --error Why?")
    shell.fails("x = = 1")
    shell.cell("%chat guide --error Why?")

    first, second = (str(told(model, number)[2][1], "utf-8") for number in (0, 1))
    assert "%%agent other\nSee {{nothing}}." in first and "InputError: {{nothing}}" in first
    assert "x = = 1" in second and "SyntaxError: invalid syntax" in second


# ---- the reply


def test_the_reply_is_kept_however_it_is_asked_for(shell: Shell) -> None:
    begin(shell, *"abcdefg")

    assert shell.cell("ans = %chat guide Hi;") is None and shell.names["ans"].text == "a"
    assert shell.cell("%%chat ans << guide\nHi") is None and shell.names["ans"].text == "b"
    assert "InputError: %%chat: the variable" in shell.fails("%%chat << guide\nHi")
    assert shell.cell("%chat ans << guide Hi") is None and shell.names["ans"].text == "c"
    assert shell.cell("%chat guide Hi;") is None and shell.printed == "" and shell.names["_run"].text == "d"
    reply = shell.cell("%chat guide Hi")
    assert isinstance(reply, Reply) and shell.ip.user_ns["Out"][shell.ip.execution_count - 1] is reply
    assert shell.cell("%%chat guide ;\nHi") is None and shell.names["_run"].text == "f"
    shell.cell("ans = %chat guide 'Hi;'\nans2 = ans")
    assert shell.names["ans2"].question == "'Hi;'" and shell.names["_run"] is shell.names["ans"]
