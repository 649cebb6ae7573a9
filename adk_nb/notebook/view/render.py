"""A reply, or a table, in the three forms that a saved notebook keeps: text, markdown, html; the same on every run."""

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from typing import Protocol

from adk_nb.events.event import Event
from adk_nb.notebook.view import grounding, rich_results
from adk_nb.notebook.view.call_shown import Schemas
from adk_nb.notebook.view.document import Block, Document, Fold, Table
from adk_nb.notebook.view.error_card import FAILED
from adk_nb.notebook.view.event_words import WAITS, in_words
from adk_nb.notebook.view.interrupt_text import (
    Bundle,
    Decision,
    Verdict,
    awaited,
    decision_forms,
    decisions_html,
    in_reply,
)
from adk_nb.notebook.view.members import last_words
from adk_nb.notebook.view.output_view import output_view
from adk_nb.notebook.view.plain_text import call_text, cleaned, one_line
from adk_nb.notebook.view.rows import rows_and_decisions, rows_of
from adk_nb.notebook.view.state_changes import change_text
from adk_nb.notebook.view.view_state import MAX_ROWS, Json
from adk_nb.notebook.view.writers import bundle as document_forms
from adk_nb.notebook.view.writers import html
from adk_nb.notebook.view.writers.elements import Html, element, words_of
from adk_nb.notebook.view.writers.markdown import markdown_cell, markdown_safe
from adk_nb.notebook.view.writers.markdown_html import to_html
from adk_nb.runtime.interrupts import Interrupt

_ASKED = 2_000
"""Characters of an error, or a notice."""
_WAITS_FOR = {
    "approval": WAITS,
    "credential": "waiting for credentials",
    "question": "waiting for an answer",
    "long_running": "waiting for an outcome",
}
"""By kind of interrupt, the most urgent first."""
_WAITED = "waited for approval"
"""Of what nothing asks for any more."""


class ShownReply(Protocol):
    """What is shown of a turn."""

    @property
    def agent(self) -> str: ...
    @property
    def events(self) -> list[Event]:
        """Of this turn, oldest first, the user's included."""
        ...

    @property
    def text(self) -> str: ...
    @property
    def answered_by(self) -> str:
        """Who gave the answer; empty for none."""
        ...

    @property
    def interrupts(self) -> list[Interrupt]: ...
    @property
    def schemas(self) -> Schemas:
        """The parameters of the tools that wait for approval."""
        ...

    @property
    def magic(self) -> str:
        """The `%confirm` that answers them; empty: only Python has the chat."""
        ...

    @property
    def redefined(self) -> Collection[str]:
        """Ids of the approvals whose tools were redefined since."""
        ...

    @property
    def elsewhere(self) -> Mapping[str, Verdict]:
        """How what waited was answered in other cells, by its id."""
        ...

    @property
    def status(self) -> str:
        """`done`, `pending`, `cancelled` or `error`."""
        ...

    @property
    def error(self) -> str | None: ...
    @property
    def take_back_with(self) -> str:
        """What to type so that agents forget what was asked; empty if nothing broke off."""
        ...

    @property
    def notice(self) -> str | None:
        """What every form says of a model that is not what it seems."""
        ...


def bundle(reply: ShownReply, *, history: Sequence[Event] = (), panels: Sequence[Block] = ()) -> Bundle:
    """A reply: the answer, what waits or failed, and the events that led to it.

    Args:
        reply: The turn.
        history: The session's earlier events, oldest first; only needed to show the arguments and old state values
            of a turn that went on from an approval.
        panels: What the panels keep, folded together with the events of `text/html`; folds stand below these.
    """
    rows, decisions = rows_and_decisions(reply.events, history=history, elsewhere=reply.elsewhere)
    shown = rich_results.of_events(reply.events)
    if reply.status == "error" and reply.events:
        told = f"{reply.events[-1].id}/error"
        rows = [{**row, "text": FAILED} if row["id"] == told else row for row in rows]
    if not any(interrupt.kind == "approval" for interrupt in reply.interrupts):
        rows = [{**row, "text": _WAITED} if row["text"] == WAITS else row for row in rows]
    return {
        "text/plain": _plain(reply, rows, shown, decisions),
        "text/markdown": "\n\n".join(
            filter(None, (decision_forms(decisions)["text/markdown"], _markdown(reply, rows, shown)))
        ),
        "text/html": _html(reply, rows, shown, decisions, panels),
    }


def table(headers: Sequence[str], rows: Iterable[Sequence[str]], *, width: int | None = None) -> Bundle:
    """A table of plain text. `width`: as `Table` has it."""
    return document_forms(Document((Table(headers, list(rows), width),)))


def event_table(
    events: Iterable[Event],
    *,
    history: Sequence[Event] = (),
    only: Container[str] | None = None,
    undone: Container[str] = (),
    width: int | None = None,
) -> Bundle:
    """The event log: who, what, and what it changed in the state; no ids, no times.

    Args:
        events: Oldest first; their rows are numbered from 1.
        history: What was before them.
        only: Ids of the events whose rows are shown. None: all.
        undone: Ids of events that count no more.
        width: As in `table`.
    """
    rows = rows_of(events, history=history)
    of = [row["id"].partition("/")[0] for row in rows]
    shown = [at for at, key in enumerate(of) if only is None or key in only]
    head, body = _trace([rows[at] for at in shown])
    lines = [[str(at + 1), *line] for at, line in zip(shown, body, strict=True)]
    if any(of[at] in undone for at in shown):
        head = [*head, ""]
        lines = [[*line, "undone" if of[at] in undone else ""] for at, line in zip(shown, lines, strict=True)]
    return table(["#", *head], lines, width=width)


def waits_for(reply: ShownReply) -> str:
    """What a turn waits for; empty for nothing."""
    return waiting_for(awaited(reply.interrupts, reply.text))


def waiting_for(open_: Iterable[Interrupt]) -> str:
    """What is needed of the user, by the most urgent of the interrupts; empty for none."""
    kinds = {"question" if interrupt.is_question else interrupt.kind for interrupt in open_}
    return next((text for kind, text in _WAITS_FOR.items() if kind in kinds), "")


def _interrupts(reply: ShownReply, form: str) -> str:
    return in_reply(awaited(reply.interrupts, reply.text), reply.magic, reply.schemas, reply.redefined)[form]


def _waited(reply: ShownReply) -> str:
    answered = any(verdict.state == "answered" for verdict in reply.elsewhere.values())
    return "waited for an answer" if answered else _WAITED


def heading(reply: ShownReply) -> str:
    """Whom the chat is with, and behind that who of its team has answered, if it was another one."""
    return one_line(f"{reply.agent} · {reply.answered_by}" if _was_another(reply) else reply.agent)


def _was_another(reply: ShownReply) -> bool:
    return bool(reply.text.strip()) and reply.answered_by not in ("", reply.agent)


def _members(reply: ShownReply) -> list[Json]:
    return last_words(reply.events, reply.answered_by, reply.text) if reply.status == "done" else []


def _named(member: Json) -> str:
    return f"{member['who']}: {member['text']}" if member["who"] else member["text"]


def row_text(row: Json) -> str:
    """A row in words, on one line."""
    if row["kind"] != "call":
        words = one_line(row["text"] if row["html"] is None else words_of(row["html"]))
        return words if row["kind"] in ("user", "text", "marker", "question") else f"{row['kind']}: {words}"
    done = call_text(row["tool"], row["args"])
    if row["result"] is None:
        return f"{done}  {row['text']}".rstrip()
    return f"{done} → failed: {row['result']}" if row["ok"] is False else f"{done} → {row['result']}"


# ---- plain text


def _plain(reply: ShownReply, rows: list[Json], shown: list[Json], decisions: list[Decision]) -> str:
    found = grounding.grounding_of(reply.events)
    words = cleaned(grounding.cited(reply.text, reply.events, found, grounding.PLAIN)).strip()
    if error := _error(reply):
        words = f"{words}\nerror: {error}".strip()
    elif not words:
        words = f"({waits_for(reply) or (_waited(reply) if reply.status == 'pending' else 'no answer')})"
    suffix = f"  [{'; '.join(said)}]" if (said := _suffixes(reply, rows)) else ""
    lines = [f"{heading(reply)} > {words}{suffix}", *filter(None, [reply.take_back_with]), *map(str, decisions)]
    lines += [*grounding.plain(found), *rich_results.plain_of(shown)]
    lines += filter(None, [_interrupts(reply, "text/plain")])
    if reply.notice:
        lines.append(f"({one_line(reply.notice, _ASKED)})")
    return "\n".join(lines)


def _suffixes(reply: ShownReply, rows: list[Json]) -> list[str]:
    calls = sum(row["kind"] == "call" and row["author"] != "user" for row in rows)
    said = [f"{calls} tool call{'s' if calls > 1 else ''}"] if calls > 0 else []
    said += [f"{failed} failed"] if (failed := _failed(rows)) else []
    return [*said, "stopped"] if reply.status == "cancelled" else said


# ---- markdown


def _markdown(reply: ShownReply, rows: list[Json], shown: list[Json]) -> str:
    found = grounding.grounding_of(reply.events)
    words = grounding.cited(reply.text, reply.events, found, grounding.MARKDOWN)
    blocks = [f"*{markdown_cell(_named(one))}*" for one in _members(reply)]
    blocks += [f"*{markdown_cell(heading(reply))}*"] if _was_another(reply) else []
    output = output_view(reply.events, reply.text)
    blocks += [output.markdown if output else markdown_safe(words).strip()]
    blocks += [*grounding.markdown(found), *rich_results.markdown_of(shown)]
    if error := _error(reply):
        blocks += [f"**Error:** {markdown_cell(error)}", markdown_cell(reply.take_back_with)]
    if reply.status == "cancelled":
        blocks.append("*Stopped.*")
    blocks.append(_interrupts(reply, "text/markdown"))
    if reply.notice:
        blocks.append(f"*{markdown_cell(reply.notice)}*")
    blocks += [markdown_cell(", ".join(_counts(rows))) + ":", table(*_trace(rows))["text/markdown"]] if rows else []
    return "\n\n".join(block for block in blocks if block)


# ---- html


def _html(
    reply: ShownReply, rows: list[Json], shown: list[Json], decisions: list[Decision], panels: Sequence[Block]
) -> str:
    found = grounding.grounding_of(reply.events)
    words = grounding.cited(reply.text, reply.events, found, grounding.MARKDOWN)
    parts: list[str] = [element("p", element("small", _named(one))) for one in _members(reply)]
    parts += [element("p", element("small", heading(reply)))] if _was_another(reply) else []
    parts += decisions_html(decisions)
    output = output_view(reply.events, reply.text)
    parts += [output.html if output else to_html(words)] if words.strip() else []
    parts += [*grounding.html(found), *rich_results.html_of(shown)]
    if error := _error(reply):
        parts.append(element("p", element("strong", "Error:"), " " + error))
        parts += [element("p", reply.take_back_with)] if reply.take_back_with else []
    if reply.status == "cancelled":
        parts.append(element("p", element("em", "Stopped.")))
    parts += filter(None, [_interrupts(reply, "text/html")])
    if reply.notice:
        parts.append(element("p", element("small", cleaned(reply.notice))))
    if rows:
        above = html.write([block for block in panels if not isinstance(block, Fold)])
        below = html.write([block for block in panels if isinstance(block, Fold)])
        drawn = [Html(f"\n{above}\n")] if above else []
        count, *failed = _counts(rows)
        summary = element("summary", count, *[part for one in failed for part in (", ", element("strong", one))])
        parts.append(element("details", summary, *drawn, Html(table(*_trace(rows))["text/html"]), below))
    return element("section", "\n", Html("\n".join(parts)), "\n")


# ---- what all forms say


def _trace(rows: list[Json]) -> tuple[list[str], list[list[str]]]:
    """Who, what, and, if anything did, what changed the state."""
    body = [[_who(row), row_text(row), "; ".join(map(change_text, row["changes"] or []))] for row in rows]
    if any(line[2] for line in body):
        return ["who", "event", "state"], body
    return ["who", "event"], [line[:2] for line in body]


def _who(row: Json) -> str:
    return "you" if row["author"] == "user" else row["author"]


def _counts(rows: list[Json]) -> list[str]:
    failed = _failed(rows)
    return [_count(rows), *([f"{failed} tool{'' if failed == 1 else 's'} failed"] if failed else [])]


def _failed(rows: list[Json]) -> int:
    return sum(row["kind"] == "call" and row["ok"] is False for row in rows)


def _count(rows: list[Json]) -> str:
    if len(rows) == 1:
        return "1 event"
    return f"{len(rows)} events" if len(rows) < MAX_ROWS else f"the last {MAX_ROWS} events"


def _error(reply: ShownReply) -> str:
    if reply.status != "error":
        return ""
    return one_line(in_words(reply.error or "the run failed"), _ASKED)
