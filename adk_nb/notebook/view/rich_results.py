"""What is shown of results and artifacts beside words: images, tables, and pages that somebody else wrote."""

import base64
import csv
import io
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, cast

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.notebook.view.plain_text import LONG, cleaned, name_text, one_line, shortened
from adk_nb.notebook.view.view_state import Json
from adk_nb.notebook.view.writers.elements import Html, element, frame, image
from adk_nb.notebook.view.writers.isolated_page import isolated_page
from adk_nb.notebook.view.writers.markdown import markdown_cell

IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "image/svg+xml"})
"""Kinds that a page draws. Within `<img>` nothing of a drawing runs, and it loads nothing."""
MAX_DOWNLOAD = 1_000_000
"""Bytes of an artifact that are handed to a page."""
_ROWS, _COLUMNS = 20, 12
_LEFT = "text-align: left"


class Room:
    """How much one run may put into a page."""

    def __init__(self, *, live: bool) -> None:
        """`live`: in a view; else in a saved notebook."""
        self._each, self._left = (1_500_000, 6_000_000) if live else (500_000, 2_000_000)

    def holds(self, size: int) -> bool:
        """Whether so many bytes still fit; then they are counted."""
        if size > min(self._each, self._left):
            return False
        self._left -= size
        return True


def of_result(event: Event, response: types.FunctionResponse, tool: str, room: Room) -> list[Json] | None:
    """What a result shows: `{"kind": "image", "src", "alt"}`, `{"kind": "table", "html", "rows", "note"}`, `{"kind":
    "page", "page", "title"}`, or `{"kind": "note", "text"}` of what is too large. None: nothing.
    """
    pieces = [_picture(one.inline_data, f"image that {tool}() gave", room) for one in response.parts or ()]
    kept: Any = (event.custom_metadata or {}).get("shown")
    mine: Any = cast(dict[str, Any], kept).get(response.id or "") if isinstance(kept, dict) else None
    if isinstance(mine, list):
        pieces += [_believed(one, tool, room) for one in cast(list[Any], mine)]
    return [one for one in pieces if one] or None


def of_words(event: Event, room: Room) -> list[Json] | None:
    """The images among an event's own parts. None: there are none."""
    author = "you" if event.author == "user" else one_line(event.author, 100)
    pieces = [_picture(part.inline_data, f"image of {author}", room) for part in event.parts if part.inline_data]
    return [one for one in pieces if one] or None


def of_events(events: Iterable[Event], *, live: bool = False) -> list[Json]:
    """What tools and models gave to look at in a turn."""
    room, found = Room(live=live), list[Json]()
    for event in events:
        if event.author == "user" or event.partial:
            continue
        found += of_words(event, room) or ()
        for response in event.get_function_responses():
            found += of_result(event, response, name_text(response.name), room) or ()
    return found


def html_of(pieces: Iterable[Json]) -> list[Html]:
    """For a saved notebook."""
    return [_html(one) for one in pieces]


def plain_of(pieces: Iterable[Json]) -> list[str]:
    """A line for each."""
    return [f"[{_words(one)}]" for one in pieces]


def markdown_of(pieces: Iterable[Json]) -> list[str]:
    """Tables as tables, a sentence for the rest."""
    return [_markdown(one) for one in pieces]


def html_table(head: Sequence[str], body: Iterable[Sequence[str]]) -> Html:
    """Cells from the left; JupyterLab and nbconvert would align them to the right."""
    lines = [element("tr", *(element("td", cell, style=_LEFT) for cell in line)) for line in body]
    header = element("tr", *(element("th", cell, style=_LEFT) for cell in head))
    rows = Html("\n".join(lines))
    return element("table", "\n", element("thead", header), "\n", element("tbody", "\n", rows, "\n"), "\n")


def artifact(name: str, version: int, part: types.Part | None) -> Json:
    """A version of a file that a run has saved, as a view shows it.

    Returns:
        `{"id", "name", "version", "mime", "size", "alt"}`, `size` in bytes, and what there is of: `image`, a data URI;
        `html`, markup of this package; `page`, the `srcdoc` of a frame like `safe_html.ISOLATED`; `text`, the
        beginning; `data`, base64 of the whole, to be downloaded. None stands for each that there is not.
    """
    blob = part.inline_data if part else None
    mime = (blob.mime_type if blob else "text/plain") or "application/octet-stream"
    data = ((blob.data if blob else None) or b"") if blob else ((part.text if part else "") or "").encode()
    fits = len(data) <= MAX_DOWNLOAD
    shown: Json = {"image": None, "html": None, "page": None, "text": None}
    if mime in IMAGES and fits:
        shown["image"] = data_uri(mime, data)
    elif mime == "text/html" and fits:
        shown["page"] = isolated_page(data.decode("utf-8", "replace"))
    elif mime == "text/csv":
        shown["html"] = _csv_table(data)
    elif mime.startswith("text/") or mime == "application/json":
        shown["text"] = shortened(cleaned(data[: 4 * LONG].decode("utf-8", "replace")), LONG)
    about: Json = {"id": f"{name}@{version}", "name": one_line(name), "version": version, "mime": one_line(mime, 100)}
    download = base64.b64encode(data).decode() if fits and data else None
    return {**about, "size": len(data), "alt": f"the file {one_line(name)}", "data": download, **shown}


def data_uri(mime: str, data: bytes) -> str:
    """An image within a page."""
    return f"data:{mime};base64,{base64.b64encode(data).decode()}"


def _picture(blob: types.Blob | types.FunctionResponseBlob | None, alt: str, room: Room) -> Json | None:
    if blob is None or blob.mime_type not in IMAGES or not blob.data:
        return None
    if not room.holds(len(blob.data)):
        return _note(f"{alt}: {len(blob.data):,} bytes are too many for the page; they are in the event")
    return {"kind": "image", "src": data_uri(blob.mime_type or "", blob.data), "alt": alt}


def _believed(told: Any, tool: str, room: Room) -> Json | None:
    """A piece, if it is one: an event may come from a file that anybody wrote."""
    try:
        return _piece(told, tool, room)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _piece(told: Json, tool: str, room: Room) -> Json | None:
    kind, text = told.get("kind"), str(told.get("text", ""))
    if "chars" in told:
        where = f"is kept as {told['artifact']}" if "artifact" in told else "is not kept"
        return _note(f"what {tool}() gave to look at has {told['chars']:,} characters and {where}")
    if kind == "table":
        return _table(told, tool)
    if not room.holds(len(text)):
        return _note(f"what {tool}() gave to look at is too large for the page; it is in the event")
    if kind == "svg":
        return {"kind": "image", "src": data_uri("image/svg+xml", text.encode()), "alt": f"drawing that {tool}() gave"}
    if kind == "page":
        return {"kind": "page", "page": isolated_page(text), "title": f"page that {tool}() gave"}
    return None


def _note(text: str) -> Json:
    return {"kind": "note", "text": one_line(text)}


def _table(told: Json, tool: str) -> Json:
    head = [one_line(str(one), 80) for one in told["columns"][: 2 * _COLUMNS]]
    body = [[one_line(str(cell), 80) for cell in row[: 2 * _COLUMNS]] for row in told["rows"][:_ROWS]]
    rows, columns = told["row_count"], told["column_count"]
    cut = rows > len(body) or columns > len(head)
    note = f"{len(body)} of {rows:,} rows, {min(columns, _COLUMNS)} of {columns:,} columns" if cut else ""
    words = f"table of {rows:,} row{'' if rows == 1 else 's'} that {tool}() gave"
    return {"kind": "table", "html": html_table(head, body), "rows": [head, *body], "note": note, "alt": words}


def _csv_table(data: bytes) -> str:
    lines = csv.reader(io.StringIO(data[: 4 * LONG].decode("utf-8", "replace")))
    try:
        rows = [[one_line(cell, 80) for cell in line[:_COLUMNS]] for line in islice(lines, _ROWS + 1)]
    except csv.Error:
        rows = []
    return html_table(rows[0], rows[1:]) if rows else ""


def _words(piece: Json) -> str:
    return str(piece.get("text") or piece.get("alt") or piece.get("title"))


def _html(piece: Json) -> Html:
    if piece["kind"] == "image":
        return element("p", image(piece["src"], piece["alt"]))
    if piece["kind"] == "table":
        note = element("p", element("small", piece["note"])) if piece["note"] else ""
        return Html(f"{piece['html']}\n{note}".rstrip())
    if piece["kind"] == "page":
        return frame(piece["page"], piece["title"], height=240)
    return element("p", element("small", piece["text"]))


def _markdown(piece: Json) -> str:
    if piece["kind"] != "table" or not piece["rows"][0]:
        return f"*[{markdown_cell(_words(piece))}]*"
    lines = [[markdown_cell(cell) for cell in line] for line in piece["rows"]]
    lines.insert(1, ["---"] * len(lines[0]))
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{table}\n\n*{markdown_cell(piece['note'])}*" if piece["note"] else table
