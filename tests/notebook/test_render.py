import re
from collections import Counter

import pytest
from inline_snapshot import snapshot
from nbformat import v4
from turns import Shown, Talk, event_forms, reply_forms, table_forms

from adk_nb.models.scripted_llm import call
from adk_nb.notebook.view.plain_text import cleaned
from adk_nb.runtime.context import ToolContext
from adk_nb.tools.function_tool import FunctionTool
from adk_nb.wire import replace_surrogates
from tests.support.each import each
from tests.support.hostile_texts import DEAD, PAYLOADS, Page, assert_harmless, assert_nothing_unseen, begins_math
from tests.support.late import late

nbconvert = late("nbconvert")

FORMS = ["text/plain", "text/markdown", "text/html"]
ANSWER = "Paris is **warmer**: 21 °C against 9 °C."


def get_weather(city: str, tool_context: ToolContext) -> dict:
    """The weather of a city."""
    tool_context.state["last_city"] = city
    return {"temp_c": {"Paris": 21, "Oslo": 9}[city]}


def refund(order: str, amount: float) -> float:
    """Pay an order back."""
    return amount


def two_cities(**more) -> Shown:
    talk = Talk([call("get_weather", city="Paris"), call("get_weather", city="Oslo")], ANSWER, tools=[get_weather])
    return Shown(events=talk.say("Is it warmer in Paris or in Oslo?"), text=ANSWER, **more)


def waiting(**args) -> Shown:
    tool = FunctionTool(refund, require_confirmation=True)
    talk = Talk(call("refund", **args), "Done.", tools=[tool])
    return Shown(events=talk.say("Refund 17."), interrupts=talk.pending, status="pending")


def test_an_answer_in_plain_text():
    assert reply_forms(two_cities())["text/plain"] == snapshot(
        "weather > Paris is **warmer**: 21 °C against 9 °C.  [2 tool calls]"
    )


def test_an_answer_in_markdown():
    assert reply_forms(two_cities())["text/markdown"] == snapshot("""\
Paris is **warmer**: 21 °C against 9 °C.

2 tool calls:

| who | event | state |
| --- | --- | --- |
| you | Is it warmer in Paris or in Oslo? |  |
| weather | get_weather(city="Paris") → {"temp_c": 21} |  |
| weather | get_weather(city="Oslo") → {"temp_c": 9} | last_city = "Oslo" |
| weather | Paris is warmer: 21 °C against 9 °C. |  |\
""")


def test_an_answer_in_html():
    assert reply_forms(two_cities())["text/html"] == snapshot("""\
<section>
<p>Paris is <strong>warmer</strong>: 21 °C against 9 °C.</p>
<details><summary>2 tool calls</summary><table>
<thead><tr><th style="text-align: left">who</th><th style="text-align: left">event</th><th style="text-align: left">state</th></tr></thead>
<tbody>
<tr><td style="text-align: left">you</td><td style="text-align: left">Is it warmer in Paris or in Oslo?</td><td style="text-align: left"></td></tr>
<tr><td style="text-align: left">weather</td><td style="text-align: left">get_weather(city="Paris") → {"temp_c": 21}</td><td style="text-align: left"></td></tr>
<tr><td style="text-align: left">weather</td><td style="text-align: left">get_weather(city="Oslo") → {"temp_c": 9}</td><td style="text-align: left">last_city = "Oslo"</td></tr>
<tr><td style="text-align: left">weather</td><td style="text-align: left">Paris is warmer: 21 °C against 9 °C.</td><td style="text-align: left"></td></tr>
</tbody>
</table></details>
</section>\
""")


def test_what_waits_for_approval_and_how_to_answer():
    shown = reply_forms(waiting(order="17", amount=250.0))

    assert shown["text/plain"] == snapshot("""\
weather > (waiting for you)  [1 tool call]
Asks for approval: refund(order="17", amount=250.0)
Answer with %confirm --yes or %confirm --no\
""")
    assert shown["text/markdown"] == snapshot("""\
> **Asks for approval:** `refund(order="17", amount=250.0)`

Answer with `%confirm --yes` or `%confirm --no`

1 tool call:

| who | event |
| --- | --- |
| you | Refund 17. |
| weather | refund(order="17", amount=250.0) asks for approval |\
""")
    assert shown["text/html"] == snapshot("""\
<section>
<blockquote style="background: rgba(245, 124, 0, 0.08); border: 1px solid rgba(127, 127, 127, 0.4); border-left: 3px solid #f57c00; border-radius: 6px; font-family: var(--jp-ui-font-family, system-ui, sans-serif); font-size: var(--jp-ui-font-size1, 13px); line-height: 1.45; margin: 2px calc(-2 * var(--jp-notebook-padding, 0px)) 6px 0; padding: 6px 12px 0"><p><strong>Asks for approval:</strong> <code>refund(order="17", amount=250.0)</code></p></blockquote>
<p>Answer with <code>%confirm --yes</code> or <code>%confirm --no</code></p>
<details><summary>1 tool call</summary><table>
<thead><tr><th style="text-align: left">who</th><th style="text-align: left">event</th></tr></thead>
<tbody>
<tr><td style="text-align: left">you</td><td style="text-align: left">Refund 17.</td></tr>
<tr><td style="text-align: left">weather</td><td style="text-align: left">refund(order="17", amount=250.0) asks for approval</td></tr>
</tbody>
</table></details>
</section>\
""")


def test_an_error_is_one_line_beside_the_text():
    failed = Shown(events=[], text="So far.", status="error", error="ModelTimeoutError: no answer\nin 30 s")

    assert reply_forms(failed) == snapshot(
        {
            "text/plain": """\
weather > So far.
error: ModelTimeoutError: no answer in 30 s\
""",
            "text/markdown": """\
So far.

**Error:** ModelTimeoutError: no answer in 30 s\
""",
            "text/html": """\
<section>
<p>So far.</p>
<p><strong>Error:</strong> ModelTimeoutError: no answer in 30 s</p>
</section>\
""",
        }
    )


def test_a_stopped_run_says_so():
    assert reply_forms(Shown(events=[], text="One, two", status="cancelled")) == snapshot(
        {
            "text/plain": "weather > One, two  [stopped]",
            "text/markdown": """\
One, two

*Stopped.*\
""",
            "text/html": """\
<section>
<p>One, two</p>
<p><em>Stopped.</em></p>
</section>\
""",
        }
    )


@pytest.mark.parametrize("status", ["done", "pending", "cancelled", "error"])
def test_a_notice_stands_in_every_form(status: str):
    shown = reply_forms(two_cities(status=status, notice="offline: this is not a language model"))

    assert all("offline" in shown[form] and "this is not a language model" in shown[form] for form in FORMS)


def test_two_runs_of_one_script_give_the_same_bytes():
    assert reply_forms(two_cities()) == reply_forms(two_cities())
    assert reply_forms(waiting(order="17", amount=250.0)) == reply_forms(waiting(order="17", amount=250.0))


def test_an_object_in_the_state_is_shown_without_its_address():
    def keep(tool_context: ToolContext) -> str:
        tool_context.state["temp:it"] = object()
        return "kept"

    shown = event_forms(Talk(call("keep"), "ok", tools=[keep]).say("Keep it."))

    assert "0x" not in "".join(shown.values())


def test_a_turn_that_goes_on_from_an_approval_shows_what_was_approved():
    tool = FunctionTool(refund, require_confirmation=True)
    talk = Talk(call("refund", order="17", amount=250.0), "Refunded.", tools=[tool])
    before = talk.say("Refund 17.")

    shown = reply_forms(Shown(events=talk.decide(), text="Refunded."), history=before)

    assert 'refund(order="17", amount=250.0) → 250.0' in _words(shown["text/html"])


def test_a_table_is_readable_in_a_terminal():
    shown = table_forms(["name", "tools"], [["weather", "get_weather, to_fahrenheit"], ["planner", ""]])

    assert shown["text/plain"] == snapshot("""\
name     tools
-------  --------------------------
weather  get_weather, to_fahrenheit
planner\
""")
    assert shown["text/markdown"] == snapshot("""\
| name | tools |
| --- | --- |
| weather | get_weather, to_fahrenheit |
| planner |  |\
""")
    assert shown["text/html"] == snapshot("""\
<table>
<thead><tr><th style="text-align: left">name</th><th style="text-align: left">tools</th></tr></thead>
<tbody>
<tr><td style="text-align: left">weather</td><td style="text-align: left">get_weather, to_fahrenheit</td></tr>
<tr><td style="text-align: left">planner</td><td style="text-align: left"></td></tr>
</tbody>
</table>\
""")


def test_the_event_log_is_a_table():
    assert event_forms(two_cities().events)["text/plain"] == snapshot("""\
#  who      event                                       state
-  -------  ------------------------------------------  ------------------
1  you      Is it warmer in Paris or in Oslo?
2  weather  get_weather(city="Paris") → {"temp_c": 21}
3  weather  get_weather(city="Oslo") → {"temp_c": 9}    last_city = "Oslo"
4  weather  Paris is warmer: 21 °C against 9 °C.\
""")


def hostile_reply(payload: str) -> Shown:
    """A reply with `payload` in the user's words, the model's, tool names, arguments, results, state and hint."""

    def keep(value: str, tool_context: ToolContext) -> dict:
        tool_context.state[payload] = payload
        return {payload.encode("utf-8", "replace").decode(): payload}

    def fail(value: str) -> str:
        raise RuntimeError(payload)

    def waits(value: str, tool_context: ToolContext) -> str:
        tool_context.request_confirmation(hint=payload)
        return "asked"

    asked = [payload, *(call(name, value=payload) for name in ("keep", "fail", "waits")), call(payload, **{payload: 1})]
    talk = Talk(asked, payload, tools=[keep, fail, waits])
    events = talk.say(replace_surrogates(payload))  # no user can send half a character
    return Shown(events=events, text=payload, interrupts=talk.pending, status="error", error=payload, notice=payload)


@pytest.mark.slow
@each("payload", PAYLOADS)
def test_hostile_text_is_only_text_in_every_form(payload: str):
    shown = reply_forms(hostile_reply(payload))

    assert_harmless(shown["text/html"])
    for form in FORMS:
        assert_nothing_unseen(shown[form])
    page = Page(nbconvert.filters.markdown2html(shown["text/markdown"]))
    assert not {tag for tag, _ in page.elements} & DEAD
    assert not any(name.startswith(("on", "src", "data-")) for _, attributes in page.elements for name in attributes)
    assert not any(begins_math(text) for text in page.texts)


@each("payload", PAYLOADS)
def test_hostile_text_is_shown_and_not_swallowed(payload: str):
    """What was cut out is only what cannot be seen."""
    html = reply_forms(Shown(events=Talk("Hm.").say(replace_surrogates(payload)), text="Hm."))["text/html"]

    assert " ".join(cleaned(replace_surrogates(payload)).split())[:150] in _words(html)


@each("payload", PAYLOADS)
def test_hostile_cells_are_only_text_in_every_form(payload: str):
    shown = table_forms([payload, "b"], [[payload, "c"]])

    assert_harmless(shown["text/html"])
    assert [
        tag
        for tag, _ in Page(nbconvert.filters.markdown2html(shown["text/markdown"])).elements
        if tag in ("tr", "th", "td")
    ] == [
        *("tr", "th", "th"),
        *("tr", "td", "td"),
    ]
    assert len(shown["text/plain"].splitlines()) == 3


@pytest.mark.slow
def test_an_exported_notebook_has_no_live_payload():
    benign, hostile = _exported(["hello"]), _exported(PAYLOADS)

    for tag, attributes, link in Counter(_shape(hostile)) - Counter(_shape(benign)):
        assert tag not in DEAD
        own = set(attributes) - {"data-type", "data-mime-type"}  # nbconvert's, on the box around an output
        assert not any(name.startswith(("on", "src", "data-")) for name in own), (tag, attributes)
        assert link in ("", "#", "http", "https", "mailto"), (tag, link)
    replies = re.findall("<section>.*?</section>", hostile, re.DOTALL)
    assert len(replies) == len(PAYLOADS)
    assert not any(begins_math(text) for text in Page("".join(replies)).texts)


def _exported(payloads: list[str]) -> str:
    """A page with each reply three times, so that each form is the best one once."""
    cells = []
    for payload in payloads:
        shown = reply_forms(hostile_reply(payload))
        outputs = [
            v4.new_output("execute_result", data=shown, execution_count=1),
            v4.new_output("display_data", data={"text/markdown": shown["text/markdown"]}),
            v4.new_output("display_data", data={"text/plain": shown["text/plain"]}),
        ]
        cells.append(v4.new_code_cell("reply", outputs=outputs, id=f"cell-{len(cells)}"))
    return nbconvert.HTMLExporter().from_notebook_node(v4.new_notebook(cells=cells))[0]


def _shape(html: str) -> list[tuple[str, tuple[str, ...], str]]:
    """Each element with the names of its attributes and the scheme of its link."""
    return [(tag, tuple(sorted(given)), _scheme(given.get("href", ""))) for tag, given in Page(html).elements]


def _scheme(link: str) -> str:
    return link[:1] if link[:1] in ("", "#") else link.partition(":")[0].lower()


def _words(html: str) -> str:
    page = re.sub(r"</?span>", "", html)
    return " ".join(" ".join(Page(page).texts).split())
