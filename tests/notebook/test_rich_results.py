"""What tools give to look at: beside the JSON that the model gets, in a live view and in a saved notebook."""

import io
from typing import Any, cast

import pytest
from turns import reply_forms

from adk_nb import types
from adk_nb.agents import LlmAgent
from adk_nb.auth.auth_credential import HIDDEN
from adk_nb.events.event import Event
from adk_nb.flow.call_result import MAX_DISPLAY_CHARS
from adk_nb.models import ScriptedLlm, call
from adk_nb.notebook.chat.chat import Chat, turn_runner
from adk_nb.notebook.chat.reply import Reply
from adk_nb.notebook.view.document import Table
from adk_nb.notebook.view.reply_view import ReplyView
from adk_nb.notebook.view.results import MAX_DOWNLOAD, artifact, event_pieces
from adk_nb.notebook.view.rows import RunRows
from adk_nb.redaction import remember
from adk_nb.sync import run
from tests.support.each import each
from tests.support.hostile_texts import PAYLOADS, Page
from tests.support.late import late

pd, Pillow = late("pandas"), late("PIL.Image")


class Drawn:
    """Shows itself by the methods that it is given."""

    def __new__(cls, **methods: Any):
        return type("Drawn", (), {f"_repr_{name}_": lambda self, made=made: made for name, made in methods.items()})()


def pillow() -> bytes:
    file = io.BytesIO()
    Pillow.new("RGB", (3, 2), "red").save(file, "PNG")
    return file.getvalue()


PNG = pillow()


def asked(result: Any) -> tuple[Reply, dict[str, Any]]:
    """A turn in which a tool gave `result`, and what its model got of it."""

    def look() -> Any:
        """Looks."""
        return result() if isinstance(result, type(asked)) else result

    model = ScriptedLlm(call("look"), "done")
    reply = Chat(LlmAgent(name="guide", model=model, tools=[look]), show="off").ask("look")
    assert reply.status == "done", reply.error
    response = (model.requests[-1].contents[-1].parts or [])[0].function_response
    return reply, (response and response.response) or {}


def pieces(reply: Reply) -> list[dict[str, Any]]:
    """What the call's row shows."""
    rows = RunRows()
    told = [op for event in reply.events for op in rows.feed(event)]
    return next(op["shown"] for op in told if op.get("shown"))


def rows_of_table(reply: Reply) -> list[list[Any]]:
    [table] = [piece for piece in event_pieces(reply.events) if isinstance(piece, Table)]
    return [list(table.head), *map(list, table.rows)]


def test_a_table_is_shown_as_a_table_and_told_as_records():
    reply, told = asked(pd.DataFrame({"city": ["Oslo", "Rome"], "sold": [12, None]}))

    assert told == {"result": [{"city": "Oslo", "sold": 12.0}, {"city": "Rome", "sold": "NaN"}]}
    [piece] = pieces(reply)
    assert rows_of_table(reply) == [["city", "sold"], ["Oslo", "12"], ["Rome", ""]]
    shown = reply_forms(reply)
    assert piece["html"] in shown["text/html"]
    assert "| city | sold |\n| --- | ---: |\n| Oslo | 12 |" in shown["text/markdown"]
    assert "[table of 2 rows" in shown["text/plain"]


def test_of_a_large_table_the_beginning_is_shown_and_how_much_there_is():
    reply, _ = asked(pd.DataFrame({f"c{n}": range(1000) for n in range(30)}))

    assert (len(rows_of_table(reply)), len(rows_of_table(reply)[0])) == (21, 12)
    [piece] = pieces(reply)
    assert piece["note"].split(", ") == ["20 of 1,000 rows", "12 of 30 columns"]


@each(
    "frame, rows",
    lambda: [
        (pd.Series([1, 2], index=["x", "y"], name="n"), [["index", "n"], ["x", "1"], ["y", "2"]]),
        (pd.DataFrame({"a": [1]}, index=pd.Index([7], name="a")), [["a", "a"], ["7", "1"]]),
        (pd.DataFrame(), [[]]),
        (pd.DataFrame({"t": [pd.NaT, pd.NA]}), [["t"], [""], [""]]),
    ],
)
def test_any_table_can_be_shown(frame: Any, rows: list[list[str]]):
    assert rows_of_table(asked(frame)[0]) == rows


def figure() -> Any:
    made = late("matplotlib.figure").Figure()
    made.add_subplot().plot([1, 2])
    return made


@pytest.mark.parametrize(
    "result", [figure, PNG, lambda: Pillow.new("RGB", (3, 2), "red"), types.Image(image_bytes=PNG)]
)
def test_pictures_are_shown_with_words_for_who_does_not_see_them(result: Any):
    reply, told = asked(result)

    assert told["media"] == "image/png"
    [piece] = pieces(reply)
    assert piece["kind"] == "image"
    assert "look()" in piece["alt"]
    assert piece["src"].startswith("data:image/png;")
    shown = reply_forms(reply)
    images = [attributes for tag, attributes in Page(shown["text/html"]).elements if tag == "img"]
    assert images == [{"src": piece["src"], "alt": piece["alt"], "style": "max-width: 100%"}]
    assert "[image from look()" in shown["text/plain"]
    assert "base64" not in shown["text/markdown"]


def test_a_picture_that_is_too_large_for_a_saved_notebook_is_told_in_words():
    reply, _ = asked(PNG + bytes(600_000))

    assert "<img" not in reply_forms(reply)["text/html"]
    assert "too many" in reply_forms(reply)["text/html"]
    assert pieces(reply)[0]["kind"] == "image"


def test_a_page_of_somebody_else_is_shown_in_a_frame_in_which_nothing_runs_and_the_model_is_told_of_it():
    reply, told = asked(Drawn(html="".join(PAYLOADS)))

    assert told["media"] == "text/html"
    assert "cannot see" in told["note"]
    [frame] = [attributes for tag, attributes in Page(reply_forms(reply)["text/html"]).elements if tag == "iframe"]
    assert frame["sandbox"].split() == ["allow-popups", "allow-popups-to-escape-sandbox"]
    assert "look()" in frame["title"]
    assert "default-src 'none'" in frame["srcdoc"]


def test_the_row_of_what_is_only_to_be_looked_at_says_what_it_is():
    reply, _ = asked(Drawn(html="<p>hello</p>"))
    rows = RunRows()
    told = [op for event in reply.events for op in rows.feed(event)]

    [result] = [op["result"] for op in told if op.get("result")]
    assert result.startswith("[text/html] <") and result.endswith("Drawn object>")


def test_a_drawing_is_an_image_for_nothing_runs_in_one():
    svg = "<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
    [piece] = pieces(asked(Drawn(svg=svg, html="<p>other</p>"))[0])

    assert piece["src"].startswith("data:image/svg+xml;")
    assert piece["alt"].startswith("drawing from look()")


def test_what_is_shown_is_there_after_a_reload_too():
    reply, _ = asked(Drawn(html="<p>hello</p>"))
    again = [Event.model_validate_json(event.model_dump_json(by_alias=True)) for event in reply.events]

    assert reply_forms(ReplyView(question="", agent="guide", events=again, text="done", status="done")) == reply_forms(
        ReplyView(question="", agent="guide", events=reply.events, text="done", status="done")
    )


def test_a_page_that_is_too_large_for_a_session_is_kept_as_a_file():
    reply, _ = asked(Drawn(html="x" * (MAX_DISPLAY_CHARS + 1)))

    [piece] = pieces(reply)
    assert "look()" in piece["text"]
    assert "65,537 characters" in piece["text"]
    assert " tool_results/look-" in piece["text"]
    assert [name.rpartition(".")[2] for event in reply.events for name in event.actions.artifact_delta] == ["html"]
    assert all(len(event.model_dump_json()) < 10_000 for event in reply.events)


def test_a_secret_is_not_in_what_is_shown():
    remember("the-secret-of-the-page")
    [piece] = pieces(asked(Drawn(html="<p>the-secret-of-the-page</p>"))[0])

    assert f"<p>{HIDDEN}</p>" in piece["page"]


def test_a_secret_is_not_in_the_file_with_the_whole_of_a_long_result():
    remember("the-secret-of-the-page")
    reply, _ = asked("the-secret-of-the-page " + "x" * 300_000)

    [name] = [name for event in reply.events for name in event.actions.artifact_delta]
    kept = run(turn_runner(cast(Chat, reply.chat)).conversation.artifact(name))
    assert kept.inline_data.data.startswith(b'{"result":"' + HIDDEN.encode() + b" xxx")


@pytest.mark.parametrize(
    "piece",
    [
        None,
        {"kind": "table"},
        {"kind": "table", "columns": 1, "rows": [2], "row_count": 1, "column_count": 1},
        {"kind": "table", "columns": ["a"], "rows": [["1"]], "row_count": "many", "column_count": 1},
        {"kind": "page", "chars": "many"},
    ],
)
def test_what_a_strangers_file_says_was_shown_is_not_believed(piece: Any):
    reply, _ = asked(Drawn(html="<p>hello</p>"))
    for event in reply.events:
        for call_id in (event.custom_metadata or {}).get("shown", {}):
            event.custom_metadata["shown"][call_id] = [piece, {"kind": "svg", "text": "<svg/>"}]

    assert [one["kind"] for one in pieces(reply)] == ["image"]


class Breaks:
    def __str__(self) -> str:
        raise ValueError("boom")

    def _repr_html_(self) -> str:
        raise ValueError("boom")


def test_a_table_with_a_cell_that_cannot_show_itself_is_told_all_the_same():
    reply, told = asked(pd.DataFrame({"city": ["Oslo"], "odd": [Breaks()]}))

    assert told["result"][0]["city"] == "Oslo"
    assert all(not (event.custom_metadata or {}).get("shown") for event in reply.events)


@pytest.mark.parametrize("result", [Breaks(), Drawn(html=None), Drawn(html=3), Drawn(svg=b"")])
def test_what_cannot_show_itself_is_told_as_before(result: Any):
    reply, told = asked(result)

    assert "unserializable" in told
    assert all(not (event.custom_metadata or {}).get("shown") for event in reply.events)


def test_a_result_shows_a_few_pieces_and_not_more():
    assert len(pieces(asked([pd.DataFrame({"city": ["Oslo"]})] * 10)[0])) == 4


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        (types.Part(text="a note"), {"text": "a note", "mime": "text/plain", "size": 6}),
        (types.Part(inline_data=types.Blob(data=PNG, mime_type="image/png")), {"mime": "image/png", "size": len(PNG)}),
        (types.Part(inline_data=types.Blob(data=b"<p>x", mime_type="text/html")), {"mime": "text/html", "text": None}),
        (types.Part(inline_data=types.Blob(data=b"\x00", mime_type="x/y")), {"data": "AA==", "text": None}),
        (types.Part(inline_data=types.Blob(data=bytes(MAX_DOWNLOAD + 1), mime_type="x/y")), {"data": None}),
        (None, {"size": 0, "data": None}),
    ],
)
def test_a_file_is_described_as_in_the_view(part: types.Part | None, shown: dict[str, Any]):
    told = artifact("a.bin", 2, part)

    assert (told["id"], told["name"], told["version"]) == ("a.bin@2", "a.bin", 2)
    assert {name: told[name] for name in shown} == shown
    assert (told["image"] is not None) is (told["mime"] == "image/png")
    assert (told["page"] is not None) is (told["mime"] == "text/html")


def test_a_table_in_a_file_is_described_as_a_table():
    told = artifact("a.csv", 0, types.Part(inline_data=types.Blob(data=b"a,b\n1,<i>\n", mime_type="text/csv")))

    assert "&lt;i&gt;" in told["html"] and told["text"] is None
