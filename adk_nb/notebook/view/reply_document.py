"""A reply, an event log and a conversation as documents; the same on every run of one notebook."""

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from typing import Any, Protocol

from adk_nb.events.event import Event
from adk_nb.notebook.view import grounding, results
from adk_nb.notebook.view.call_shown import Schemas
from adk_nb.notebook.view.document import (
    Block,
    Document,
    Fold,
    Heading,
    Inline,
    Markdown,
    Notice,
    Only,
    Section,
    Span,
    Speech,
    Table,
    Text,
    in_html,
    joined,
    plain,
    rich,
)
from adk_nb.notebook.view.error_card import FAILED
from adk_nb.notebook.view.event_words import WAITS, in_words, question_text, who_said
from adk_nb.notebook.view.interrupt_text import Decision, Verdict, awaited, in_reply, waits_for_credential
from adk_nb.notebook.view.notices import Notices
from adk_nb.notebook.view.plain_text import call_text, cleaned, one_line
from adk_nb.notebook.view.rows import rows_and_decisions, rows_of
from adk_nb.notebook.view.spending import usage_of
from adk_nb.notebook.view.state_changes import change_text
from adk_nb.notebook.view.view_state import MAX_ROWS, Json
from adk_nb.notebook.view.writers import html
from adk_nb.runtime.branches import calls_to
from adk_nb.runtime.interrupts import Interrupt

MAX_MEMBERS = 8
_LONGEST_MEMBER = 300
_LONGEST = 2_000
"""Characters of an error, a notice, or a question."""
_WAITED = "waited for you"
"""In a call that nothing asks for any more."""


class ReplyLike(Protocol):
    """A turn that is over, or that waits."""

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
        """The agent that gave the answer; empty for none."""
        ...

    @property
    def shows_question(self) -> bool:
        """The question stands above the reply."""
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
        """Answers that were given in other cells, by the id of the interrupt."""
        ...

    @property
    def status(self) -> str:
        """`done`, `pending`, `cancelled` or `error`."""
        ...

    @property
    def error(self) -> str | None: ...
    @property
    def take_back_with(self) -> str:
        """What to type so that agents forget the message; empty if nothing broke off."""
        ...

    @property
    def notices(self) -> Notices: ...


class TurnLike(ReplyLike, Protocol):
    """A reply and its message."""

    @property
    def question(self) -> str | None:
        """None: the turn answers a request made outside this conversation."""
        ...

    @property
    def history(self) -> list[Event]:
        """As `reply_document` takes it."""
        ...


def reply_document(
    reply: ReplyLike, *, history: Sequence[Event] = (), panels: Sequence[Block] = (), typed: bool = True
) -> Document:
    """A reply: the answer, what waits or failed, and, folded, the events that led to it.

    Args:
        reply: The turn.
        history: The session's earlier events, oldest first; only needed to show the arguments and old state values
            of a turn that went on from an approval.
        panels: What the panels keep, folded together with the events; folds stand below these.
        typed: As of `in_reply`.
    """
    return Document((Section(_reply_blocks(reply, history, panels, reply.notices.blocks(), typed=typed)),))


def _reply_blocks(
    reply: ReplyLike, history: Sequence[Event], panels: Sequence[Block], notices: Sequence[Notice], *, typed: bool
) -> tuple[Block, ...]:
    rows, decided = rows_and_decisions(reply.events, history=history, elsewhere=reply.elsewhere)
    rows = _without_question_and_error(reply, rows)
    found, pieces = grounding.grounding_of(reply.events), results.of_events(reply.events)
    error = one_line(in_words(reply.error or "the run failed"), _LONGEST) if reply.status == "error" else ""
    back = [Text(reply.take_back_with)] if reply.take_back_with else []
    decisions = decision_blocks(decided)
    above = [Text(text, small=True) for text in (*map(_member_text, _members(reply)), *_other_name(reply))]
    failure = [Text((Span("Error:", "strong"), f" {error}")), *back] if error else []
    stopped = [Text(Span("Stopped.", "em"))] if reply.status == "cancelled" else []
    open_ = awaited(reply.interrupts, reply.text)
    return (
        rich(*decisions, *above),
        Speech(heading(reply), _spoken(reply, found, error), _answer(reply, found), _remark(reply, rows)),
        plain(*back, *decisions),
        *grounding.blocks(found),
        *pieces,
        rich(*failure, *stopped),
        *in_reply(open_, reply.magic, reply.schemas, reply.redefined, typed=typed),
        *notices,
        *(_folded(reply, rows, panels) if rows else ()),
    )


def decision_blocks(decisions: Iterable[Decision]) -> list[Text]:
    """A line for each decision."""
    return [decision.block for decision in decisions]


def _without_question_and_error(reply: ReplyLike, rows: list[Json]) -> list[Json]:
    """Return the rows that say nothing which stands beside them already."""
    if rows and rows[0]["kind"] == "user" and reply.shows_question:
        rows = rows[1:]
    error = f"{reply.events[-1].id}/error" if reply.status == "error" and reply.events else ""
    return [{**row, "text": FAILED} if row["id"] == error else row for row in rows]


def _spoken(reply: ReplyLike, found: grounding.Grounding, error: str) -> str:
    """The answer in plain text."""
    text = grounding.cited(reply.text, reply.events, found, grounding.PLAIN).strip()
    if error:
        return f"{text}\nerror: {error}".strip()
    return text or f"({waits_for(reply) or (_waited(reply) if reply.status == 'pending' else 'no answer')})"


def _waited(reply: ReplyLike) -> str:
    answered = any(verdict.state == "answered" for verdict in reply.elsewhere.values())
    return "waited for an answer" if answered else _WAITED


def _answer(reply: ReplyLike, found: grounding.Grounding) -> Block | None:
    if not reply.text.strip():
        return None
    text = grounding.cited(reply.text, reply.events, found, grounding.MARKDOWN)
    return results.answer_block(reply.events, reply.text) or Markdown(text)


def _remark(reply: ReplyLike, rows: list[Json]) -> str:
    remarks = [*_call_count(rows), *([f"{failed} failed"] if (failed := _failed(rows)) else [])]
    return "; ".join([*remarks, "stopped"] if reply.status == "cancelled" else remarks)


def _folded(reply: ReplyLike, rows: list[Json], panels: Sequence[Block]) -> list[Fold]:
    above = [block for block in panels if not isinstance(block, Fold)]
    below = [block for block in panels if isinstance(block, Fold)]
    parts = ([in_html(*above)] if above else [], [Table(*_event_rows(rows))], [in_html(*below)] if below else [])
    return [Fold(_summary(reply, rows), tuple(block for part in parts for block in part))]


def _summary(reply: ReplyLike, rows: list[Json]) -> tuple[Inline, ...]:
    """`1 tool call · 1 failed · 300 tokens`: nothing in it is measured, so that every run gives the same."""
    tokens = usage_of(reply.events).total_tokens
    parts: list[Inline] = list(_call_count(rows)) or [_event_count(rows)]
    parts += [Span(f"{failed} failed", "strong")] if (failed := _failed(rows)) else []
    parts += [f"{tokens:,} tokens"] if tokens else []
    line = joined(parts, " · ")
    return line if isinstance(line, tuple) else (line,)


# ---- names and states


def heading(reply: ReplyLike) -> str:
    """Whom the chat is with, and behind that who of its team has answered, if it was another one."""
    return one_line(f"{reply.agent} · {reply.answered_by}" if _was_another(reply) else reply.agent)


def _was_another(reply: ReplyLike) -> bool:
    return bool(reply.text.strip()) and reply.answered_by not in ("", reply.agent)


def _other_name(reply: ReplyLike) -> list[str]:
    return [heading(reply)] if _was_another(reply) else []


def waits_for(reply: ReplyLike) -> str:
    """What a turn waits for; empty for nothing."""
    return waiting_for(awaited(reply.interrupts, reply.text))


def waiting_for(open_: Iterable[Interrupt]) -> str:
    """What is needed of the user, by the most urgent of the interrupts; empty for none."""
    first = min(open_, key=lambda interrupt: _URGENCY.index(_kind(interrupt)), default=None)
    if first is None:
        return ""
    if first.kind == "credential":
        return waits_for_credential(first.auth_config)
    return "waiting for an outcome" if _kind(first) == "long_running" else WAITS


_URGENCY = ("approval", "credential", "question", "long_running")


def _kind(interrupt: Interrupt) -> str:
    return "question" if interrupt.is_question else interrupt.kind if interrupt.kind in _URGENCY else "long_running"


# ---- members of a team


def members(reply: ReplyLike) -> list[Json]:
    """`{"who", "text"}`: the last words of each agent that spoke besides the one that answered, in their order."""
    texts: dict[str, str] = {}
    for event in reply.events:
        who = who_said(event)
        # What was said for a call is a result of that call.
        called = calls_to(event.branch, event.node_info.path)
        if event.author == "user" or event.partial or called or not event.text.strip():
            continue
        texts.pop(who, None)
        texts[who] = event.text
    if texts.pop(reply.answered_by, None) is None:  # a workflow hands on the words of its last agent
        equal = [who for who, text in texts.items() if text.strip() == reply.text.strip()]
        texts = {who: text for who, text in texts.items() if who not in equal[-1:]}
    last = [
        {"who": one_line(who, 100), "text": one_line(html.readable(text[: 4 * _LONGEST_MEMBER]), _LONGEST_MEMBER)}
        for who, text in list(texts.items())[-MAX_MEMBERS:]
    ]
    left = len(texts) - len(last)
    return [*([{"who": "", "text": f"{left} more agents, in the events"}] if left else []), *last]


def _members(reply: ReplyLike) -> list[Json]:
    return members(reply) if reply.status == "done" else []


def _member_text(member: Json) -> str:
    return f"{member['who']}: {member['text']}" if member["who"] else member["text"]


# ---- events


def event_table(
    events: Iterable[Event],
    *,
    history: Sequence[Event] = (),
    only: Container[str] | None = None,
    undone: Container[str] = (),
    width: int | None = None,
) -> Table:
    """The event log: who, what, and what it changed in the state; no ids, no times.

    Args:
        events: Oldest first; their rows are numbered from 1.
        history: The events before them.
        only: Ids of the events whose rows are shown. None: all.
        undone: Ids of events that count no more.
        width: As in `Table`.
    """
    rows = rows_of(events, history=history)
    of = [row["id"].partition("/")[0] for row in rows]
    places = [at for at, key in enumerate(of) if only is None or key in only]
    head, body = _event_rows([rows[at] for at in places])
    lines = [[str(at + 1), *line] for at, line in zip(places, body, strict=True)]
    if any(of[at] in undone for at in places):
        head = [*head, ""]
        lines = [[*line, "undone" if of[at] in undone else ""] for at, line in zip(places, lines, strict=True)]
    return Table(["#", *head], lines, width)


def row_text(row: Json) -> str:
    """A row on one line of text."""
    if row["kind"] != "call":
        text = one_line(row["text"] if row["html"] is None else html.words_of(row["html"]))
        return text if row["kind"] in ("user", "text", "marker", "question") else f"{row['kind']}: {text}"
    call = call_text(row["tool"], row["args"])
    if row["result"] is None:
        return f"{call}  {row['text']}".rstrip()
    return f"{call} → failed: {row['result']}" if row["ok"] is False else f"{call} → {row['result']}"


def _event_rows(rows: list[Json]) -> tuple[list[str], list[list[str]]]:
    """Who, what, and, if anything did, what changed the state."""
    body = [[_author(row), row_text(row), "; ".join(map(change_text, row["changes"] or []))] for row in rows]
    if any(line[2] for line in body):
        return ["who", "event", "state"], body
    return ["who", "event"], [line[:2] for line in body]


def _author(row: Json) -> str:
    return "you" if row["author"] == "user" else row["author"]


def _call_count(rows: list[Json]) -> list[str]:
    calls = sum(row["kind"] == "call" and row["author"] != "user" for row in rows)
    return [f"{calls} tool call{'s' if calls > 1 else ''}"] if calls else []


def _event_count(rows: list[Json]) -> str:
    if len(rows) == 1:
        return "1 event"
    return f"{len(rows)} events" if len(rows) < MAX_ROWS else f"the last {MAX_ROWS} events"


def _failed(rows: list[Json]) -> int:
    return sum(row["kind"] == "call" and row["ok"] is False for row in rows)


# ---- a conversation


def conversation_document(turns: Sequence[TurnLike]) -> Document:
    """Questions, answers, calls and approvals, oldest turn first; empty while nothing was said."""
    sections: list[Block] = []
    notices: list[Notice] = []
    for turn in turns:
        new = [notice for notice in turn.notices.blocks() if notice not in notices]
        notices += new
        sections.append(Section(tuple(_turn(turn, new))))
    return Document(tuple(sections))


def _turn(turn: TurnLike, notices: Sequence[Notice]) -> Iterable[Block]:
    if question := one_line(question_text(turn.question, turn.events), _LONGEST):
        yield plain(Text(f"you > {question}"))
        yield rich(Text((Span("you:", "strong"), f" {question}")))
    yield rich(Heading(f"{heading(turn)}:"))
    blocks = _reply_blocks(turn, turn.history, (), notices, typed=False)
    yield Only(("text/plain", "text/markdown"), blocks)
    yield in_html(Section(blocks))


def answer_for_view(reply: TurnLike) -> dict[str, Any]:
    """Question and answer of a run that is over, for a view that has all the rest in its panels.

    Returns:
        `{"question", "members", "who", "decisions", "html", "pages", "shown"}`; `question` is empty where the run went
        on from an approval, `members` are as `members` returns them, `decisions` are for a view that has no card of
        its own to tell them, `shown` is as `html.for_view`.
    """
    found = grounding.grounding_of(reply.events)
    decisions = rows_and_decisions(reply.events, history=reply.history, elsewhere=reply.elsewhere)[1]
    answer = _answer(reply, found) or (None if reply.elsewhere else Text(Span("No answer.", "em")))
    blocks = [*([answer] if answer else []), *grounding.lines(found)]
    return {
        "question": cleaned(question_text(reply.question, reply.events)),
        "members": members(reply),
        "who": heading(reply),
        "decisions": html.write(decision_blocks(decisions)),
        "html": html.write(blocks),
        "pages": html.page_sources(found.suggestions),
        "shown": html.for_view(results.of_events(reply.events, live=True)),
    }
