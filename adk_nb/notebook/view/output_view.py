"""A structured answer as a table, or as a tree of lists where values lie in each other."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from adk_nb.events.event import Event
from adk_nb.notebook.view.plain_text import json_text, one_line
from adk_nb.notebook.view.rich_results import html_table
from adk_nb.notebook.view.writers.elements import Html, element
from adk_nb.notebook.view.writers.markdown import markdown_cell

_CELL = 500
"""Characters of a value."""
_MOST_ROWS, _MOST_COLUMNS, _DEEPEST = 100, 12, 6


@dataclass(frozen=True)
class OutputView:
    """An answer in the forms that take structure."""

    html: Html
    markdown: str


def output_view(events: Sequence[Event], text: str) -> OutputView | None:
    """The answer `text` of a turn with `events`, if it is an object or a list of objects. None: it is shown as text."""
    value = next((event.output for event in reversed(events) if _is_answer(event, text)), None)
    if isinstance(value, dict) and value:
        record = cast(dict[str, Any], value)
        return _table(["field", "value"], _pairs(record)) if _is_flat(record) else _tree(record)
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in cast(list[Any], value)):
        return _records(cast(list[dict[str, Any]], value))
    return None


def _is_answer(event: Event, text: str) -> bool:
    return event.output is not None and bool(text) and (event.text or json_text(event.output)) == text


def _records(records: list[dict[str, Any]]) -> OutputView:
    columns = list(dict.fromkeys(key for record in records for key in record))
    if not all(map(_is_flat, records)) or len(columns) > _MOST_COLUMNS:
        return _tree(records)
    rows = [[_leaf(record.get(key, ""), key) for key in columns] for record in records[:_MOST_ROWS]]
    more = [[f"… {len(records) - _MOST_ROWS} more"] + [""] * (len(columns) - 1)] if len(records) > _MOST_ROWS else []
    return _table([one_line(key) for key in columns], [*rows, *more])


def _pairs(record: dict[str, Any]) -> list[list[str]]:
    return [[one_line(key), _leaf(value, key)] for key, value in record.items()]


def _table(head: list[str], body: list[list[str]]) -> OutputView:
    lines = [[markdown_cell(cell) for cell in line] for line in (head, *body)]
    lines.insert(1, ["---"] * len(head))
    return OutputView(html_table(head, body), "\n".join(f"| {' | '.join(line)} |" for line in lines))


def _tree(value: Any) -> OutputView:
    return OutputView(_html_list(value, 1), "\n".join(_markdown_lines(value, 0)))


def _html_list(value: Any, depth: int) -> Html:
    items = [
        element(
            "li",
            *([element("strong", f"{name}:"), " "] if name else []),
            _html_list(below, depth + 1) if _has_items(below, depth) else _leaf(below, name),
        )
        for name, below in _items(value)
    ]
    return element("ul", *items)


def _markdown_lines(value: Any, depth: int) -> Iterator[str]:
    for name, below in _items(value):
        label = f"**{markdown_cell(name)}:**" if name else ""
        nested = _has_items(below, depth + 1)
        words = "" if nested else markdown_cell(_leaf(below, name))
        yield f"{'  ' * depth}- {' '.join(filter(None, [label, words]))}".rstrip()
        if nested:
            yield from _markdown_lines(below, depth + 1)


def _items(value: Any) -> list[tuple[str, Any]]:
    """Names, empty in a list, and values."""
    if isinstance(value, dict):
        items = [(one_line(key), below) for key, below in cast(dict[str, Any], value).items()]
    else:
        items = [("", below) for below in value]
    return [*items[:_MOST_ROWS], ("", f"… {len(items) - _MOST_ROWS} more")] if len(items) > _MOST_ROWS else items


def _has_items(value: Any, depth: int) -> bool:
    return isinstance(value, dict | list) and value not in ({}, []) and depth < _DEEPEST


def _is_flat(record: dict[str, Any]) -> bool:
    return not any(isinstance(value, dict | list) for value in record.values())


def _leaf(value: Any, name: str) -> str:
    text = json_text(value, name=name)
    return one_line(json.loads(text) if isinstance(value, str) and text.startswith('"') else text, _CELL)
