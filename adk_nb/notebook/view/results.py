"""Results, artifacts and structured answers as blocks: images, tables, lists, and pages that somebody else wrote."""

import base64
import csv
import io
import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, cast

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.notebook.view.document import Code, Image, Item, Items, Page, Span, Table, Text, text_of
from adk_nb.notebook.view.plain_text import LONG, cleaned, json_text, name_text, one_line, shortened
from adk_nb.notebook.view.view_state import Json
from adk_nb.notebook.view.writers import html

IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "image/svg+xml"})
"""Media types shown in `<img>`, where an SVG runs no script and loads nothing."""
MAX_DOWNLOAD = 1_000_000
"""Bytes of an artifact that a page gets for a download."""
_ROWS, _COLUMNS = 20, 12
_MOST_RECORDS, _DEEPEST, _LONGEST_LEAF = 100, 6, 500
Piece = Image | Table | Page | Text | Code


class Capacity:
    """The bytes of media that one run may put into a page."""

    def __init__(self, *, live: bool) -> None:
        """`live`: in a view; else in a saved notebook."""
        self._each, self._left = (1_500_000, 6_000_000) if live else (500_000, 2_000_000)

    def reserve(self, size: int) -> bool:
        """Return True if so many bytes still fit, and count them."""
        if size > min(self._each, self._left):
            return False
        self._left -= size
        return True


def result_pieces(event: Event, response: types.FunctionResponse, tool: str, capacity: Capacity) -> list[Piece]:
    """The images, tables and pages in a result; a line of text for each that is too large."""
    pieces = [_image(part.inline_data, f"image from {tool}()", capacity) for part in response.parts or ()]
    stored: Any = (event.custom_metadata or {}).get("shown")
    of_call: Any = cast(dict[str, Any], stored).get(response.id or "") if isinstance(stored, dict) else None
    if isinstance(of_call, list):
        for piece in cast(list[Any], of_call):
            # An event may come from a file that anybody wrote: a malformed piece is left out.
            with suppress(AttributeError, KeyError, TypeError, ValueError):
                pieces.append(_piece(piece, tool, capacity))
    return [piece for piece in pieces if piece]


def message_pieces(event: Event, capacity: Capacity) -> list[Piece]:
    """The images among an event's own parts."""
    author = "you" if event.author == "user" else event.author
    pieces = [_image(part.inline_data, f"image of {author}", capacity) for part in event.parts if part.inline_data]
    return [piece for piece in pieces if piece]


def event_pieces(events: Iterable[Event], *, live: bool = False) -> list[Piece]:
    """The images, tables and pages that tools and models gave in a turn."""
    capacity, pieces = Capacity(live=live), list[Piece]()
    for event in events:
        if event.author == "user" or event.partial:
            continue
        pieces += message_pieces(event, capacity)
        for response in event.get_function_responses():
            pieces += result_pieces(event, response, name_text(response.name), capacity)
    return pieces


def artifact(name: str, version: int, part: types.Part | None) -> Json:
    """A version of a file that a run has saved, as a view shows it.

    Returns:
        `{"id", "name", "version", "mime", "size", "alt"}`, `size` in bytes, and what there is of: `image`, a data URI;
        `html`, markup of this package; `page`, the `srcdoc` of a frame like `writers.elements.ISOLATED`; `text`, the
        beginning; `data`, base64 of the whole, for a download. Absent ones are None.
    """
    blob = part.inline_data if part else None
    mime = (blob.mime_type if blob else "text/plain") or "application/octet-stream"
    data = ((blob.data if blob else None) or b"") if blob else ((part.text if part else "") or "").encode()
    fits = len(data) <= MAX_DOWNLOAD
    previews: Json = {"image": None, "html": None, "page": None, "text": None}
    if mime in IMAGES and fits:
        previews["image"] = data_uri(mime, data)
    elif mime == "text/html" and fits:
        page = Page(data.decode("utf-8", "replace"), "")
        previews["page"] = html.for_view([page])[0]["page"]
    elif mime == "text/csv":
        lines = csv.reader(io.StringIO(data[: 4 * LONG].decode("utf-8", "replace")))
        rows: list[list[str]] = []
        with suppress(csv.Error):
            rows = [[one_line(cell, 80) for cell in line[:_COLUMNS]] for line in islice(lines, _ROWS + 1)]
        previews["html"] = html.write([Table(rows[0], rows[1:])] if rows else [])
    elif mime.startswith("text/") or mime == "application/json":
        previews["text"] = shortened(cleaned(data[: 4 * LONG].decode("utf-8", "replace")), LONG)
    facts: Json = {"id": f"{name}@{version}", "name": one_line(name), "version": version, "mime": one_line(mime, 100)}
    download = base64.b64encode(data).decode() if fits and data else None
    return {**facts, "size": len(data), "alt": f"the file {one_line(name)}", "data": download, **previews}


def data_uri(mime: str, data: bytes) -> str:
    """An image within a page."""
    return f"data:{mime};base64,{base64.b64encode(data).decode()}"


def _image(blob: types.Blob | types.FunctionResponseBlob | None, alt: str, capacity: Capacity) -> Piece | None:
    if blob is None or blob.mime_type not in IMAGES or not blob.data:
        return None
    if not capacity.reserve(len(blob.data)):
        return _note(f"{alt}: {len(blob.data):,} bytes are too many for the page; they are in the event")
    return Image(data_uri(blob.mime_type or "", blob.data), alt)


def _piece(stored: Json, tool: str, capacity: Capacity) -> Piece | None:
    kind, text = stored.get("kind"), str(stored.get("text", ""))
    if "chars" in stored:
        place = f"is kept as {stored['artifact']}" if "artifact" in stored else "is not kept"
        return _note(f"the view from {tool}() has {stored['chars']:,} characters and {place}")
    if kind == "table":
        return _table(stored, tool)
    if kind == "code":
        return Code(shortened(cleaned(text), LONG), language=str(stored.get("language", "")))
    if not capacity.reserve(len(text)):
        return _note(f"the view from {tool}() is too large for the page; it is in the event")
    if kind == "svg":
        return Image(data_uri("image/svg+xml", text.encode()), f"drawing from {tool}()")
    return Page(text, f"page from {tool}()") if kind == "page" else None


def _note(text: str) -> Text:
    return Text(text, small=True)


def _table(stored: Json, tool: str) -> Table:
    head = [one_line(str(name), 80) for name in stored["columns"][: 2 * _COLUMNS]]
    body = [[one_line(str(cell), 80) for cell in row[: 2 * _COLUMNS]] for row in stored["rows"][:_ROWS]]
    rows, columns = stored["row_count"], stored["column_count"]
    cut = rows > len(body) or columns > len(head)
    note = f"{len(body)} of {rows:,} rows, {min(columns, _COLUMNS)} of {columns:,} columns" if cut else ""
    return Table(head, body, note=note, title=f"table of {rows:,} row{'' if rows == 1 else 's'} from {tool}()")


def has_table(markdown: str, table: Table) -> bool:
    """True if the text has a markdown table with the same columns."""
    names = [text_of(name).strip() for name in table.head]
    lines = (line.strip() for line in markdown.splitlines() if line.lstrip().startswith("|"))
    return bool(names) and any([cell.strip() for cell in line.strip("|").split("|")] == names for line in lines)


def shown_text(response: types.FunctionResponse, pieces: Sequence[Piece]) -> str | None:
    """The text of a result beside its pieces: nothing for a picture, the size of a table. None: the whole result."""
    values = response.response or {}
    if "media" in values and all(isinstance(piece, Image) for piece in pieces):
        return ""
    if values.keys() == {"result"} and len(pieces) == 1 and isinstance(table := pieces[0], Table):
        return table.title.rpartition(" from ")[0]
    if len(pieces) == 2 and isinstance(pieces[0], Code) and isinstance(table := pieces[1], Table):
        variable = f" in {one_line(str(values['frame']), 80)}" if "frame" in values else ""
        return f"{table.title.rpartition(' from ')[0]}{variable}"
    return None


# ---- structured answers


def answer_block(events: Sequence[Event], text: str) -> Table | Items | None:
    """A structured answer: an object or a list of objects as a table, or as nested lists. None: `text` is shown."""
    value = next((event.output for event in reversed(events) if _is_answer(event, text)), None)
    if isinstance(value, dict) and value:
        record = cast(Json, value)
        pairs = [[key, _leaf(value, key)] for key, value in record.items()]
        return Table(["field", "value"], pairs) if _is_flat(record) else _list(record, 1)
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in cast(list[Any], value)):
        return _records(cast(list[Json], value))
    return None


def _is_answer(event: Event, text: str) -> bool:
    return event.output is not None and bool(text) and (event.text or json_text(event.output)) == text


def _records(records: list[Json]) -> Table | Items:
    columns = list(dict.fromkeys(key for record in records for key in record))
    if not all(map(_is_flat, records)) or len(columns) > _COLUMNS:
        return _list(records, 1)
    rows = [[_leaf(record.get(key, ""), key) for key in columns] for record in records[:_MOST_RECORDS]]
    more = len(records) - _MOST_RECORDS
    return Table(columns, rows + ([[f"… {more} more"] + [""] * (len(columns) - 1)] if more > 0 else []))


def _list(value: Any, depth: int) -> Items:
    is_record = isinstance(value, dict)
    pairs: list[tuple[str, Any]] = list(cast(Json, value).items()) if is_record else [("", item) for item in value]
    items: list[Item] = []
    for name, below in pairs[:_MOST_RECORDS]:
        label = (Span(f"{name}:", "strong"), " ") if name else ()
        if isinstance(below, dict | list) and below and depth < _DEEPEST:
            items.append(Item(label[:1], _list(cast(Any, below), depth + 1)))
        else:
            items.append(Item((*label, _leaf(below, name))))
    more = len(pairs) - _MOST_RECORDS
    return Items(items + ([Item(f"… {more} more")] if more > 0 else []))


def _is_flat(record: Json) -> bool:
    return not any(isinstance(value, dict | list) for value in record.values())


def _leaf(value: Any, name: str) -> str:
    text = json_text(value, name=name)
    return one_line(json.loads(text) if isinstance(value, str) and text.startswith('"') else text, _LONGEST_LEAF)
