"""The result of a turn as its cell shows it: the answer, open requests and errors, and, folded, the events."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

from IPython.core.getipython import get_ipython

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.events.event import Event
from adk_nb.notebook.place import cell_id
from adk_nb.notebook.view import answers, panels, results
from adk_nb.notebook.view.answers import Status
from adk_nb.notebook.view.call_arguments import Schema, Schemas
from adk_nb.notebook.view.cards import FAILED
from adk_nb.notebook.view.document import (
    Beside,
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
    parts_of,
    plain,
    rich,
)
from adk_nb.notebook.view.event_text import WAITS, author_of, error_text, question_text, sender_of
from adk_nb.notebook.view.interrupt_text import Decision, Verdict, credential_state, expected_interrupts, reply_blocks
from adk_nb.notebook.view.panels import PanelRun
from adk_nb.notebook.view.plain_text import cleaned, one_line
from adk_nb.notebook.view.rows import row_table, row_text, rows_and_decisions
from adk_nb.notebook.view.spending import usage_of
from adk_nb.notebook.view.view_state import MAX_ROWS, Json
from adk_nb.notebook.view.widget import with_view
from adk_nb.notebook.view.writers import as_text, bundle, html
from adk_nb.runtime.branches import calls_to
from adk_nb.runtime.interrupts import Interrupt
from adk_nb.runtime.trace import Trace

Redefined = Callable[[Sequence[Interrupt]], Collection[str]]
"""Returns the ids of the approvals whose tools were redefined since the call."""
MAX_MEMBERS = 8
_MAX_FAILED = 3
_MAX_MEMBER_CHARS = 300
_MAX_CHARS = 2_000
"""Of an error or a question."""
_MAX_NOTICE = 2_000
_MAX_LABEL = 60
_Run = tuple[str, int]
"""The id of a cell, empty where the front end sends none, and its execution count."""
_explaining_runs: WeakKeyDictionary[Any, dict[str, _Run]] = WeakKeyDictionary()
"""By shell: explanation -> the cell that shows it."""


class Notices:
    """The notices of one run, in the order of arrival: remarks, and a chip for a stand-in or recorded model.

    What a chip means is explained once in a kernel session.

    Args:
        model_notice: `BaseLlm.notice` of the model that answers; the part before the colon becomes a chip.
    """

    def __init__(self, model_notice: str | None = None) -> None:
        self._texts: dict[str, bool] = {}
        """Text -> True if its label becomes a chip."""
        self._folded: dict[str, bool] = {}
        if model_notice:
            self.add(model_notice, is_chip=True)

    def __str__(self) -> str:
        return "; ".join(self._texts)

    def of_next_turn(self, model_notice: str | None) -> "Notices":
        """The notices of the next run in the same output."""
        notices = Notices(model_notice)
        notices._folded = self._folded
        return notices

    def add(self, text: str, *, is_chip: bool = False) -> None:
        """Add a remark unless it is empty or there already."""
        if text:
            self._texts.setdefault(text, is_chip)

    @staticmethod
    def chip(text: str) -> list[Notice]:
        """A chip for the part before the colon, with the rest below; none for an empty text."""
        label, _, explanation = text.partition(": ")
        return [Notice(one_line(explanation, _MAX_NOTICE), one_line(label))] if text else []

    def blocks(self) -> list[Notice]:
        """The notices to show; the first call decides which of them the current cell explains."""
        return [self._block(text, is_chip) for text, is_chip in self._texts.items()]

    def _block(self, text: str, is_chip: bool) -> Notice:
        label, colon, explanation = text.partition(": ")
        if not (is_chip and colon) or len(label) > _MAX_LABEL:
            return Notice(one_line(text, _MAX_NOTICE))
        if text not in self._folded:
            self._folded[text] = not _explain(text)
        return Notice(one_line(explanation, _MAX_NOTICE), one_line(label), self._folded[text])


def _explain(text: str) -> bool:
    """Return True in the first cell of the kernel session that shows `text`, and when that cell is run again."""
    shell: Any = get_ipython()
    if shell is None:
        return True
    runs, run = _explaining_runs.setdefault(shell, {}), (cell_id(), shell.execution_count)
    first_run = runs.get(text)
    if first_run and not (first_run[0] and first_run[0] == run[0] and first_run[1] != run[1]):
        return False
    runs[text] = run
    return True


@dataclass(frozen=True, kw_only=True, repr=False)
class ReplyView:
    """The result of a turn, with the data of all its forms."""

    question: str | None
    """The user's text. None: the turn resumed from an interrupt."""
    shows_question: bool = False
    """The source of its cell has the question."""
    agent: str
    addressed: str = ""
    """Who got the question and why, if it names nobody."""
    events: list[Event]
    """Of this turn, oldest first, the user's included."""
    history: list[Event] = field(default_factory=list[Event])
    """The session before this turn, if the turn resumes a call made there; else empty."""
    text: str
    """The text of the answer; of a stopped turn, the part that was streamed."""
    answered_by: str = ""
    """The agent of a team that gave the answer; empty if there is none yet."""
    status: Status
    interrupts: list[Interrupt] = field(default_factory=list[Interrupt])
    """Open in the session after the turn, by number."""
    elsewhere: Mapping[str, Verdict] = field(default_factory=dict[str, Verdict])
    """Interrupt id -> its answer in another cell."""
    schemas: Schemas = field(default_factory=dict[str, Schema | None])
    """Approval id -> JSON schema of the tool's arguments."""
    magic: str = ""
    """The `%confirm` line of the session; empty for a chat that only Python code reaches."""
    redefined: Collection[str] = ()
    """Ids of the approvals whose tools were redefined since."""
    find_redefined: Redefined | None = None
    """Updates `redefined` whenever the reply is rendered."""
    team: BaseAgent | None = None
    """The agent tree at the time of the turn, for its picture. None: no picture."""
    trace: Trace = field(default_factory=Trace)
    error: str | None = None
    undo_hint: str = ""
    """The lines to type to undo the message of a failed turn; empty if none failed."""
    notices: Notices = field(default_factory=Notices)
    plain: bool = False
    """Show only the plain text."""
    live: Callable[[], str] = str
    """Returns the id of the widget that shows the reply on the page; empty: none."""
    is_displayed: Callable[[], bool] = bool
    """Returns True if the running cell shows the reply already."""

    @property
    def notice(self) -> str | None:
        """All notices, in one line."""
        return str(self.notices) or None

    @property
    def pending(self) -> list[Interrupt]:
        """The approvals among `interrupts`."""
        return [interrupt for interrupt in self.interrupts if interrupt.kind == "approval"]

    @property
    def heading(self) -> str:
        """The agent of the chat, and the member of its team that answered, if it was another agent."""
        return one_line(f"{self.agent} · {self.answered_by}" if self.is_answer_of_member else self.agent)

    @property
    def is_answer_of_member(self) -> bool:
        """True if another agent than that of the chat gave the answer."""
        return bool(self.text.strip()) and self.answered_by not in ("", self.agent)

    @property
    def waiting_label(self) -> str:
        """The most urgent open interrupt as text; empty without one."""
        return waiting_label(expected_interrupts(self.interrupts, self.text))

    def appended_to(self, earlier: "ReplyView") -> "ReplyView":
        """The whole turn of `earlier`, the part up to its last pause, and this part."""
        return replace(
            self,
            events=[*earlier.events, *self.events],
            question=earlier.question,
            addressed=earlier.addressed,
            shows_question=earlier.shows_question,
            history=earlier.history,
            elsewhere=earlier.elsewhere,
        )

    def answered_elsewhere(self, verdicts: Mapping[str, Verdict]) -> "ReplyView":
        """The same turn after interrupts of it were answered in another cell."""
        still_open = [interrupt for interrupt in self.interrupts if interrupt.id not in verdicts]
        return replace(self, interrupts=still_open, elsewhere={**self.elsewhere, **verdicts})

    def saved_forms(self) -> dict[str, str]:
        """The forms for a page without a kernel, by media type."""
        run = PanelRun(agent=self.team, history=self.history, status=self.status, trace=self.trace, events=self.events)
        saved = panels.saved(run)
        return bundle(reply_document(self._refreshed(), history=self.history, panels=saved, typed=False))

    def mimebundle(self) -> Any:
        """The output for IPython: the saved forms, and the live view while it shows the turn."""
        return {"text/plain": str(self)} if self.plain else with_view(self.saved_forms(), self.live())

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        return self.mimebundle()

    def __str__(self) -> str:
        return as_text(reply_document(self._refreshed(), history=self.history))

    def _refreshed(self) -> "ReplyView":
        if not self.pending or self.find_redefined is None:
            return self
        return replace(self, redefined=self.find_redefined(self.pending))


def waiting_label(interrupts: Iterable[Interrupt]) -> str:
    """The most urgent of the interrupts as text: approvals and questions, credentials, outcomes; empty for none."""
    by_kind = {"question" if interrupt.is_question else interrupt.kind: interrupt for interrupt in interrupts}
    if "approval" not in by_kind and (credential := by_kind.get("credential")):
        return credential_state(credential.auth_config)
    if {"approval", "question"} & by_kind.keys():
        return WAITS
    return "waiting for an outcome" if by_kind else ""


def reply_document(
    reply: ReplyView, *, history: Sequence[Event] = (), panels: Sequence[Block] = (), typed: bool = True
) -> Document:
    """A reply: the answer, open requests or the error, and, folded, the events that led to it.

    Args:
        reply: The turn.
        history: The session's earlier events, oldest first; only needed for the arguments and old state values of a
            turn that resumed from an approval.
        panels: The saved forms of the panels, folded together with the events; those that are folds come below.
        typed: As for `interrupt_text.reply_blocks`.
    """
    return Document((Section(_reply_blocks(reply, history, panels, reply.notices.blocks(), typed=typed)),))


def conversation_document(turns: Sequence[ReplyView]) -> Document:
    """Questions, answers, calls and approvals, oldest turn first; empty for no turns."""
    sections: list[Block] = []
    notices: list[Notice] = []
    for turn in turns:
        new = [notice for notice in turn.notices.blocks() if notice not in notices]
        notices += new
        question = one_line(question_text(turn.question, turn.events), _MAX_CHARS)
        sender = (sender_of(turn.events[0]) if turn.events else "") or "you"
        speaker = [
            plain(Text(f"{sender} > {question}")),
            rich(Text((Span(f"{sender}:", "strong"), f" {question}"), is_mine=True)),
        ]
        blocks = _reply_blocks(turn, turn.history, (), new, typed=False)
        forms = [Only(("text/plain", "text/markdown"), blocks), in_html(Section(blocks, is_said=True))]
        sections.append(Section((*(speaker if question else []), rich(Heading(f"{turn.heading}:")), *forms)))
    return Document(tuple(sections))


def _reply_blocks(
    reply: ReplyView, history: Sequence[Event], panels: Sequence[Block], notices: Sequence[Notice], *, typed: bool
) -> tuple[Block, ...]:
    rows, decided = rows_and_decisions(reply.events, history=history, elsewhere=reply.elsewhere)
    # The question and the error are displayed outside of the rows.
    if rows and rows[0]["kind"] == "user" and reply.shows_question:
        rows = rows[1:]
    failed_row = f"{reply.events[-1].id}/error" if reply.status == "error" and reply.events else ""
    rows = [{**row, "text": FAILED} if row["id"] == failed_row else row for row in rows]
    grounding = answers.grounding_of(reply.events)
    error = one_line(error_text(reply.error or "the run failed"), _MAX_CHARS) if reply.status == "error" else ""
    undo_blocks = [Text(reply.undo_hint)] if reply.undo_hint else []
    decisions = decision_blocks(decided)
    failure = [Text((Span("Error:", "strong"), f" {error}")), *undo_blocks] if error else []
    stopped = [Text(Span("Stopped.", "em"))] if reply.status == "cancelled" else []
    open_ = expected_interrupts(reply.interrupts, reply.text)
    others = members(reply) if reply.status == "done" else []
    team = [f"{row['who']}: {row['text']}" if row["who"] else row["text"] for row in others]
    team += [reply.heading] if reply.is_answer_of_member else []
    # A label that an earlier cell explains stands behind the counts, not in a line of its own.
    chips = [notice for notice in notices if notice.folded and rows]
    labels = [notice.label for notice in chips]
    remark = "; ".join([*filter(None, _counts(rows)), *(["stopped"] if reply.status == "cancelled" else []), *labels])
    above = [block for block in panels if not isinstance(block, Fold)]
    below = [block for block in panels if isinstance(block, Fold)]
    answer: tuple[Block, ...] = (
        *Notices.chip(reply.addressed),
        rich(*decisions, *(Text(text, small=True) for text in team)),
        Speech(reply.heading, _plain_answer(reply, grounding, error), _answer(reply, grounding), remark),
        plain(*undo_blocks, *decisions),
        *answers.source_blocks(grounding),
        *_pieces(reply),
        rich(*_failed_calls(rows), *failure, *stopped),
        *reply_blocks(open_, reply.magic, reply.schemas, reply.redefined, typed=typed),
    )
    if reply.team and reply.team.team_kind == "workflow" and above:  # read by the path that its run took
        answer, above = (Beside(above[0], answer),), above[1:]
    log = [*([in_html(*above)] if above else []), row_table(rows), *([in_html(*below)] if below else [])]
    return (
        *answer,
        *(notice for notice in notices if notice not in chips),
        *([Fold(_summary(reply, rows), tuple(log), notices=chips)] if rows else ()),
    )


def _pieces(reply: ReplyView, *, live: bool = False) -> list[results.Piece]:
    """What tools and models gave to look at, without the tables that the answer has, too."""
    pieces = results.event_pieces(reply.events, live=live)
    return [piece for piece in pieces if not (isinstance(piece, Table) and results.has_table(reply.text, piece))]


def _failed_calls(rows: Sequence[Json]) -> list[Text]:
    """A line for each of the last calls that failed."""
    failed = [row for row in rows if row["kind"] == "call" and row["ok"] is False and row["author"] != "user"]
    return [Text(f"✗ {row_text(row)}", small=True) for row in failed[-_MAX_FAILED:]]


def decision_blocks(decisions: Iterable[Decision]) -> list[Block]:
    """A line for each decision, and the calls of one on many."""
    return [block for decision in decisions for block in decision.blocks]


def _plain_answer(reply: ReplyView, grounding: answers.Grounding, error: str) -> str:
    text = answers.cited(reply.text, reply.events, grounding, answers.PLAIN).strip()
    if error:
        return f"{text}\nerror: {error}".strip()
    if text:
        return text
    if reply.status != "pending" or reply.waiting_label:
        return f"({reply.waiting_label or 'no answer'})"
    is_answered = any(verdict.state == "answered" for verdict in reply.elsewhere.values())
    return "(waited for an answer)" if is_answered else "(waited for you)"


def _answer(reply: ReplyView, grounding: answers.Grounding) -> Block | None:
    if not reply.text.strip():
        return None
    text = answers.cited(reply.text, reply.events, grounding, answers.MARKDOWN)
    return results.answer_block(reply.events, reply.text) or Markdown(text)


def _counts(rows: list[Json]) -> tuple[str, str]:
    """Return `2 tool calls` and `1 failed`; empty for none."""
    calls = sum(row["kind"] == "call" and row["author"] != "user" for row in rows)
    failed = sum(row["kind"] == "call" and row["ok"] is False for row in rows)
    return f"{calls} tool call{'s' if calls > 1 else ''}" if calls else "", f"{failed} failed" if failed else ""


def _summary(reply: ReplyView, rows: list[Json]) -> tuple[Inline, ...]:
    """`1 tool call · 1 failed · 300 tokens`; without times, so that all runs give the same."""
    calls, failed = _counts(rows)
    events = f"{len(rows)} event{'s' if len(rows) > 1 else ''}"
    tokens = usage_of(reply.events).total_tokens
    parts: list[Inline] = [calls or (events if len(rows) < MAX_ROWS else f"the last {MAX_ROWS} events")]
    parts += [Span(failed, "strong")] if failed else []
    parts += [f"{tokens:,} tokens"] if tokens else []
    return parts_of(joined(parts, " · "))


# ---- members of a team


def members(reply: ReplyView) -> list[Json]:
    """`{"who", "text"}`: the last text of each agent but the one that answered, in order."""
    texts: dict[str, str] = {}
    for event in reply.events:
        is_of_call = calls_to(event.branch, event.node_info.path)
        if event.author == "user" or event.partial or is_of_call or not event.text.strip():
            continue
        texts.pop(author_of(event), None)
        texts[author_of(event)] = event.text
    if texts.pop(reply.answered_by, None) is None:  # a workflow repeats the text of its last agent as its own answer
        repeating = [agent for agent, text in texts.items() if text.strip() == reply.text.strip()]
        texts = {agent: text for agent, text in texts.items() if agent not in repeating[-1:]}
    last = [
        {"who": one_line(agent, 100), "text": one_line(html.readable(text[: 4 * _MAX_MEMBER_CHARS]), _MAX_MEMBER_CHARS)}
        for agent, text in list(texts.items())[-MAX_MEMBERS:]
    ]
    more = len(texts) - len(last)
    return [*([{"who": "", "text": f"{more} more agents, in the events"}] if more else []), *last]


def answer_for_view(reply: ReplyView) -> dict[str, Any]:
    """Question and answer of a run that is over, for a live view, which has the rest in its panels.

    Returns:
        `{"question", "members", "who", "decisions", "html", "pages", "shown"}`; `question` is empty if the run resumed
        from an approval, `members` is as returned by `members`, `decisions` is for views without a card for them,
        `shown` is as returned by `html.for_view`.
    """
    grounding = answers.grounding_of(reply.events)
    decisions = rows_and_decisions(reply.events, history=reply.history, elsewhere=reply.elsewhere)[1]
    answer = _answer(reply, grounding) or (None if reply.elsewhere else Text(Span("No answer.", "em")))
    blocks = [*([answer] if answer else []), *answers.source_lines(grounding)]
    return {
        "question": cleaned(question_text(reply.question, reply.events)),
        "members": members(reply),
        "who": reply.heading,
        "decisions": html.write(decision_blocks(decisions)),
        "html": html.write(blocks),
        "pages": html.page_sources(grounding.suggestions),
        "shown": html.for_view(_pieces(reply, live=True)),
    }
