"""What braces in a cell mean: variables now, the state at each turn, and text for all the rest."""

import base64
import os
import re
from typing import Any

import pytest
from support.messages import mentions

from adk_nb import types
from adk_nb.models.scripted_llm import ScriptedLlm
from adk_nb.notebook.view.document import Note
from tests.notebook.conftest import Shell

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def begin(shell: Shell, *answers: Any) -> ScriptedLlm:
    model = ScriptedLlm(*(answers or ("Fine.",) * 9))
    shell.names["model"] = model
    return model


def said(shell: Shell, text: str) -> str:
    """What a model gets of a message."""
    model = begin(shell)
    shell.cell("%%agent guide -m model\nBe brief.")
    shell.cell(f"%%chat guide --new\n{text}")
    [part] = model.requests[-1].contents[0].parts or ()
    return part.text or ""


VALUES = """import numpy as np, pandas as pd
from dataclasses import dataclass
from pydantic import BaseModel
class Trip(BaseModel):
    city: str = 'Oslo'
@dataclass
class Stop:
    days: int = 3
trip, stop, cities = Trip(), Stop(), {'a': ['Oslo'], 'b.c': {1}}
numbers = np.arange(6.0).reshape(2, 3)
table = pd.DataFrame({'city': [f'c{n}|x' for n in range(12)], 'n': range(12)})
named = pd.DataFrame({'n': [1]}, index=pd.Index(['Oslo'], name='city'))"""


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("{{trip}} {{trip.city}}", '{"city":"Oslo"} Oslo'),
        ("{{stop}}", '{"days":3}'),
        ("{{cities}}", '{"a":["Oslo"],"b.c":[1]}'),
        ("{{cities['a'][0]}} {{cities['b.c']}} {{cities[\"a\"][-1]}}", "Oslo [1] Oslo"),
        ("{{numbers}}", "array of shape (2, 3), float64, min 0, max 5, mean 2.5: [[0. 1. 2.]\n [3. 4. 5.]]"),
        ("{{named}}", "table of 1 row:\n\n| city | n (int64) |\n| --- | --- |\n| Oslo | 1 |"),
        ("{trip} {trip?} {user:trip} {artifact.x}", "{trip} {trip?} {user:trip} {artifact.x}"),
        ("\\{trip} \\{{trip}} ${trip} {} { trip }", "{trip} {{trip}} ${trip} {} { trip }"),
        ("{{{trip}}} {{\ntrip\n}} {{ }} {{}} {{2x}}", "{{{trip}}} {{\ntrip\n}} {{ }} {{}} {{2x}}"),
        ("{'a': {'b': 1}} {{'a': 1}} f'{x!r}' %(y)s", "{'a': {'b': 1}} {{'a': 1}} f'{x!r}' %(y)s"),
    ],
)
def test_a_message_has_values_for_variables_and_text_for_all_else(shell: Shell, written: str, told: str) -> None:
    shell.cell(VALUES)

    assert said(shell, written) == told


def test_a_table_is_told_by_its_columns_and_first_rows(shell: Shell) -> None:
    shell.cell(VALUES)

    lines = said(shell, "{{table}}").splitlines()

    assert "12 rows" in lines[0] and " 10" in lines[0]
    assert lines[2].endswith(" | n (int64) |") and len(lines) == 4 + 10
    assert lines[4] == "| c0\\|x | 0 |"


def test_what_may_be_meant_otherwise_is_noted_above_the_reply(shell: Shell) -> None:
    shell.cell("places, f = ['Oslo'] * 2000, len")

    said(shell, "{{ places }} {{f(1)}} {{ f(2) }} {{ nothing(3) }} {{places}}")

    notes = [line.partition("}}")[0] for line in shell.printed.splitlines()[:5]]
    braces = ["{{ places ", "{{f(1)", "{{ f(2) ", "{{ nothing(3) ", "{{places"]
    assert notes == [f"note: {text}" for text in braces]
    assert "write {{places}}" in shell.printed
    assert "14,001 → 4,000" in shell.printed


def test_what_would_have_to_be_computed_is_noted_and_braces_of_other_languages_are_not(shell: Shell) -> None:
    shell.cell("price = 3.5")

    text = "{{1+1}} {{price:.2f}} {{'a': -1}} {{#if x}} {{ name }} {{> part}} {{'\\d' % 1}}"

    assert said(shell, text) == text
    notes = [line.partition("}}")[0] for line in shell.printed.splitlines()[:-1]]
    assert notes == ["note: {{1+1", "note: {{price:.2f", "note: {{'\\d' % 1"]


def test_a_definition_lists_what_it_took_and_what_it_will_take(shell: Shell) -> None:
    begin(shell)
    shell.cell("places = ['Oslo', 'Rome']\n%state budget=3")

    output = shell.cell(
        "%%agent guide -m model\n{{places}} {{places}} {{places[0]}} {budget} {user:name?} {artifact.map.txt?} {count}"
    )

    _, uses, note = str(output).splitlines()
    variables = [tuple(re.split(r" \(|, |\)", name)[:3]) for name in uses.removeprefix("uses: ").split(" · ")]
    assert variables[:2] == [("places", "notebook", "2 items"), ("places[0]", "notebook", "4 chars")]
    assert [use[:2] for use in variables[2:]] == [
        ("budget", "state"),
        ("user:name?", "state"),
        ("artifact.map.txt?", "artifact"),
    ]
    assert note.endswith(": {count}")


def test_notes_have_a_mark_where_a_page_can_show_one(shell: Shell) -> None:
    begin(shell)

    told = shell.cell("%%agent guide -m model\nCount {count} <b>.")

    page = told._repr_mimebundle_()["text/html"]
    assert "<div>guide v1" in page
    [mark] = re.findall(r'<div style="border-left:[^"]*">(.*?)</div>', page)
    assert "{count}" in mark
    without_note = shell.cell("%%agent other -m model\nHi.")
    assert set(without_note._repr_mimebundle_()) == {"text/plain"}
    assert str(Note("x")) == "x"


def test_where_it_is_strict_a_name_that_is_not_there_is_an_error(shell: Shell) -> None:
    begin(shell)
    shell.cell("%config AdkNb.strict = True")

    failed = shell.fails("%%agent guide -m model\nCount {count}.")

    assert failed.startswith("InputError: guide ") and "{count}" in failed
    assert "AdkNb.strict = False" in failed
    assert "guide" not in shell.names
    shell.cell("%state count=3")
    shell.cell("%%agent guide -m model\nCount {count} and {user:x?} and \\{text}.")


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        (
            "%%agent a -m model\nOne.\n\nSee {{plcaes}}.",
            "{{plcaes}} … did you mean {{places}}? ({} line 4)",
        ),
        (
            "%%agent a -m model\n\n\n{{places[9]}}",
            "{{places[9]}} cannot be read: IndexError: list index out of range ({} line 4)",
        ),
        ("%%agent a -m model\n---\ndescription: D\n---\n{{places.x}}", "{{places.x}} cannot be read: AttributeError"),
        ("%%agent a -m model\n---\ndescription: D\n---\n{{nope}}", "({} line 5)"),
        ("%%agent a -m model\n{{key}}", "{{key}} looks like a … ({} line 2)"),
        ("%%agent a -m model\n{{loaded}}", "{{loaded}} looks like a … ({} line 2)"),
        ("%%agent a -m model\n{{half}}", "{{half}} … half a character"),
        ("%chat guide See {{half}}", "half = half.encode(errors='replace').decode() ({})"),
        ("%%chat guide\nOne.\n{{key}}", "{{key}} looks like a … ({} line 3)"),
        ("%chat guide See {{plcaes}}", "did you mean {{places}}? ({})"),
        ("%%chat guide\n\n**{{value}}**", "write \\{{value}} or use --raw … ({} line 3)"),
    ],
)
def test_what_cannot_be_put_in_is_told_with_its_line_and_nothing_is_sent(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, cell: str, said: str
) -> None:
    monkeypatch.setenv("TAVILY_API_KEY", "quite-random-9f8e7d")
    model = begin(shell)
    shell.cell("%%agent guide -m model\nHi.")
    shell.cell("%key TAVILY_API_KEY")
    shell.cell("places, key = ['Oslo'], 'sk-' + 'a1' * 20")
    shell.names.update({"half": "a\ud800"})
    shell.names["loaded"] = os.environ["TAVILY_API_KEY"]

    failed = shell.fails(cell)

    assert mentions(failed, said.replace("{}", f"In[{shell.ip.execution_count - 1}]")) and "\n" not in failed
    assert not model.requests and "a" not in shell.names


def test_a_key_or_file_that_is_gone_at_its_turn_is_told_with_its_line(shell: Shell) -> None:
    begin(shell)
    shell.cell("%%agent guide -m model\nHi.\nWithin {user:budget}.")
    shell.cell("%%agent reader -m model\nRead {artifact.plan.txt}.")

    no_key = shell.fails("%chat guide Hi")
    assert no_key.startswith("StateKeyError: {user:budget} ")
    assert "%state user:budget=..." in no_key and "{user:budget?}" in no_key and "(In[2] line 3)" in no_key
    no_file = shell.fails("%chat reader Hi")
    assert no_file.startswith("StateKeyError: ") and "`plan.txt`" in no_file
    assert "'reader'" in no_file and "{artifact.plan.txt?}" in no_file and "(In[3] line 2)" in no_file


def test_an_artifact_is_read_at_each_turn(shell: Shell) -> None:
    model = begin(shell, "Saved.", "Read.", "Read.")
    shell.cell("%%agent reader -m model\nThe plan: {artifact.plan.txt?}!")
    shell.cell("%chat reader Hi")

    async def save(callback_context: Any) -> None:
        await callback_context.save_artifact("plan.txt", types.Part(text="Oslo {user:x} {{places}}"))

    shell.names["reader"].after_agent_callback = save
    shell.cell("%chat reader Hi")
    shell.cell("%chat reader Hi")

    told = [str(one.config.system_instruction) for one in model.requests]
    assert "The plan: !" in told[0] and "The plan: !" in told[1]
    assert "Oslo {user:x} {{places}}!" in told[2]


def test_an_artifact_that_is_empty_is_no_key_of_the_state(shell: Shell) -> None:
    model = begin(shell, "Saved.", "Read.")
    shell.cell("%%agent reader -m model\nThe plan: {artifact.plan.txt?}!")

    async def save(callback_context: Any) -> None:
        await callback_context.save_artifact("plan.txt", types.Part(text=""))

    shell.names["reader"].after_agent_callback = save
    shell.cell("%chat reader Hi")
    shell.cell("%%agent reader -m model\nThe plan: {artifact.plan.txt}!")
    shell.cell("%chat reader Hi")

    assert "The plan: !" in str(model.requests[1].config.system_instruction)


def test_a_picture_in_braces_goes_with_the_message(shell: Shell) -> None:
    model = begin(shell)
    shell.cell("%%agent guide -m model\nBe brief.")
    shell.names["photo"] = PNG

    shell.cell("%chat guide What is {{photo}}?")

    words, label, data = model.requests[0].contents[0].parts or ()
    assert "[photo, attached]?" in (words.text or "") and label.text == "[attached: photo]"
    assert data.inline_data and data.inline_data.data == PNG


def test_a_picture_in_an_instruction_is_told_before_all_that_is_said(shell: Shell) -> None:
    model = begin(shell)
    shell.names["logo"] = PNG
    cell = "%%agent guide -m model\nOur logo: {{logo}}."

    told = shell.cell(cell)
    shell.cell("%chat guide Hi")

    assert f"image/png, {len(PNG)} bytes" in str(told)
    request = model.requests[0]
    assert any(part.inline_data and part.inline_data.data == PNG for part in request.contents[0].parts or ())
    assert "logo: [logo, attached]." in str(request.contents)
    assert "[attached: logo]" in str(request.config.system_instruction)
    assert str(shell.cell(cell)).startswith("guide v1, unchanged")
    shell.names["logo"] = PNG + b"\0"
    assert str(shell.cell(cell)).startswith("guide v1 → v2 ({{logo}})")
