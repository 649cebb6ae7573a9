"""The event log of a run as a table: no ids, no times."""

from collections.abc import Container, Iterable, Sequence

from adk_nb.events.event import Event
from adk_nb.notebook.view.document import Table
from adk_nb.notebook.view.plain_text import call_text, one_line
from adk_nb.notebook.view.rows import rows_of
from adk_nb.notebook.view.state_changes import change_text
from adk_nb.notebook.view.view_state import Json
from adk_nb.notebook.view.writers import html


def event_table(
    events: Iterable[Event],
    *,
    history: Sequence[Event] = (),
    only: Container[str] | None = None,
    undone: Container[str] = (),
    width: int | None = None,
) -> Table:
    """Number the rows of `events`.

    Args:
        events: Oldest first; their rows are numbered from 1.
        history: The events before them.
        only: Ids of the events whose rows are shown. None: all.
        undone: Ids of events that were taken back.
        width: As in `Table`.
    """
    rows = [
        (number, row["id"].partition("/")[0], row) for number, row in enumerate(rows_of(events, history=history), 1)
    ]
    rows = [row for row in rows if only is None or row[1] in only]
    table = row_table([row for *_, row in rows])
    lines = [[str(number), *line] for (number, *_), line in zip(rows, table.rows, strict=True)]
    if any(event_id in undone for _, event_id, _ in rows):
        marks = ["undone" if event_id in undone else "" for _, event_id, _ in rows]
        lines = [[*line, mark] for line, mark in zip(lines, marks, strict=True)]
        return Table(["#", *table.head, ""], lines, width)
    return Table(["#", *table.head], lines, width)


def row_table(rows: Iterable[Json]) -> Table:
    """Agent and event of each row and, if any of them changed the state, the changes."""
    lines = [
        [
            "you" if row["author"] == "user" else row["author"],
            row_text(row),
            "; ".join(map(change_text, row["changes"] or [])),
        ]
        for row in rows
    ]
    if any(changes for _, _, changes in lines):
        return Table(["who", "event", "state"], lines)
    return Table(["who", "event"], [line[:2] for line in lines])


def row_text(row: Json) -> str:
    """Return a row as one line of text."""
    if row["kind"] != "call":
        text = one_line(row["text"] if row["html"] is None else html.words_of(row["html"]))
        return text if row["kind"] in ("user", "text", "marker", "question") else f"{row['kind']}: {text}"
    call = call_text(row["tool"], row["args"])
    if row["result"] is None:
        return f"{call}  {row['text']}".rstrip()
    return f"{call} → failed: {row['result']}" if row["ok"] is False else f"{call} → {row['result']}"
