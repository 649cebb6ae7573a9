"""`%trace`: the events of a session or a turn, a timeline, the model requests, the difference of two turns."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adk_nb.errors import InputError, StorageError
from adk_nb.events.event import Event
from adk_nb.notebook.cells.notebook import Notebook
from adk_nb.notebook.chat.conversation import short_interrupted_notice
from adk_nb.notebook.chat.past import find_turn, turns_of
from adk_nb.notebook.chat.reply import Reply, view_of_reply
from adk_nb.notebook.magics import values
from adk_nb.notebook.magics.grammar import SESSION_OPTION, Argument, Grammar, Option
from adk_nb.notebook.magics.output import Host, Output, as_json, page_width, text
from adk_nb.notebook.place import display_mode
from adk_nb.notebook.view import comparison
from adk_nb.notebook.view.display import in_a_kernel
from adk_nb.notebook.view.document import Block, Frame, Text
from adk_nb.notebook.view.panels import prompt, waterfall
from adk_nb.notebook.view.panels.prompt import prompts
from adk_nb.notebook.view.plain_text import LONG, one_line
from adk_nb.notebook.view.rows import event_table, rows_of
from adk_nb.notebook.view.widget import PageView, views_stay, with_view
from adk_nb.redaction import redacted
from adk_nb.runtime.trace import Trace

TRACE = Grammar(
    "trace",
    "Show the events of the session or of one turn, including undone turns.",
    examples=[
        "%trace",
        "%trace -1",
        "%trace --waterfall",
        "%trace -2 --why",
        "%trace --diff -1 -2",
        "%trace --raw 3",
        "%trace --export trace.jsonl",
    ],
    arguments=[
        Argument("RUN", "a turn: -1 the last, -2 the one before, 1 the first; or the id of a run", names="turn")
    ],
    options=[
        SESSION_OPTION,
        Option("--last", "the last reply, including that of your own Chat()"),
        Option("--waterfall", "a timeline of agents, models and tools"),
        Option("--why", "the requests to the models and their responses, part by part, with inserted values marked"),
        Option("--raw N", "event N as JSON", convert=values.positive_integer),
        Option("--diff RUN2", "compare RUN with it: instructions, calls, answers, tokens", names="turn"),
        Option("--export FILE", "write everything as JSON lines; never overwrites another kind of file"),
    ],
    twin="chat.events, chat.turns[-1].events; reply.trace has the requests and responses",
)

_FORMS = ("waterfall", "why", "raw", "diff", "export")
_HEAD = {"kind": "trace", "version": 1}
_NO_REQUESTS = "no requests are stored for {}: it called no model, ran in another kernel, or is too long ago"


@dataclass(kw_only=True)
class _Turn:
    """A turn to show."""

    label: str
    question: str
    events: list[Event]
    trace: Trace

    @property
    def title(self) -> str:
        """Its label with the beginning of the question."""
        return f"{self.label}: {one_line(self.question, 60)}" if self.question else self.label


class _Copyable(Output):
    """An output whose folded parts have a button to copy them, on a page that leaves views out of the saved file."""

    def __init__(self, *blocks: Block, live: bool) -> None:
        super().__init__(*blocks)
        self._live = live

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        return with_view(self.forms, PageView(self.forms["text/html"]).model_id if self._live and views_stay() else "")


def trace(host: Host, line: str, cell: str | None) -> Output:
    """Show a session or a turn in the form that an option names.

    Raises:
        InputError: There is no such turn or event, or options exclude each other.
        StorageError: The file cannot be written.
    """
    args, notebook, mode = TRACE.parse(line, cell), host.notebook, host.settings.display
    with_times = display_mode(mode) != "static"
    forms = [f"--{name}" for name in _FORMS if getattr(args, name)]
    if len(forms) > 1:
        raise InputError(f"%trace: {' and '.join(forms)} exclude each other; choose one")
    if args.last and args.run:
        raise InputError("%trace: RUN and --last exclude each other; choose one")
    args.name = args.session or notebook.sessions.current
    if args.diff:
        return _compare(notebook, args, with_times)
    if args.export:
        return _export(notebook, args)
    if not (args.waterfall or args.why):
        return _table(notebook, args)
    turn = _turn(notebook, args)
    if args.why:
        if not turn.trace.requests:
            return text(_NO_REQUESTS.format(turn.label))
        return _Copyable(*prompt.drawn(prompts(turn.trace), turn.title), live=with_times and in_a_kernel())
    bars = waterfall.bars(turn.events, turn.trace)
    if not bars:
        return text(f"{turn.label} ran no agent, model or tool")
    return Output(*waterfall.drawn(bars if with_times else waterfall.in_steps(bars), turn.title, with_times=with_times))


# ---- events


def _table(notebook: Notebook, args: Any) -> Output:
    """Return a row for each event, oldest first, with its number in the session; for `--raw` one as JSON."""
    reply = _last_reply(notebook) if args.last else None
    events = reply.events if reply else notebook.sessions.events(args.session)
    if args.raw:  # an event as JSON, and for a call also the event with the result
        number: int = args.raw
        rows = rows_of(events)
        if number > len(rows):
            raise InputError(f"%trace: no event {number}; the last one is {len(rows)}")
        id = rows[number - 1]["id"].partition("/")[0]
        calls = {call.id for event in events if event.id == id for call in event.get_function_calls()}
        chosen = [
            _dump(event)
            for event in events
            if event.id == id or any(response.id in calls for response in event.get_function_responses())
        ]
        return as_json(chosen[0] if len(chosen) == 1 else chosen)
    if not events:
        return text(f"session {args.name!r} has no messages yet; type %chat, or for your own Chat: chat.events")
    if reply:
        unfinished = _unfinished(events, reply.trace)
        table = event_table(events, history=view_of_reply(reply).history, width=page_width())
        return Output(Frame("the last reply", (table, *unfinished)))
    history = notebook.sessions.history(args.session)
    turn = find_turn(turns_of(history), args.run, args.name) if args.run else None
    remaining = {event.id for event in history.events}
    undone = {
        event.id
        for event in events
        if event.id not in remaining
        and event.actions.rewind_before_invocation_id is None  # the rewind itself is not undone
    }
    only = {event.id for event in turn.events} if turn else None
    shown = turn.events if turn else events
    unfinished = _unfinished(shown, notebook.traces.merged(event.invocation_id for event in shown))
    if (session := notebook.sessions.find(args.session)) and notebook.sessions.interrupted_runs(session):
        unfinished.append(Text(short_interrupted_notice(notebook.confirm_magic(args.name))))
    table = event_table(events, only=only, undone=undone, width=page_width())
    title = f"turn {turn.number} of session {args.name}" if turn else f"session {args.name}"
    return Output(Frame(title, (table, *unfinished)))


def _unfinished(events: list[Event], trace: Trace) -> list[Text]:
    """Answers that were stopped or broke off while they streamed: no event has them, so they have no number."""
    stored = {event.id for event in events if event.content}
    return [
        Text(f"{request.agent} > {text}  [not finished]")
        for request in trace.requests
        if request.event_id not in stored
        and (answer := request.response)
        and answer.partial
        and (text := one_line(answer.text, LONG))
    ]


def _dump(event: Event) -> dict[str, Any]:
    return event.model_dump(mode="json", exclude_none=True, exclude_defaults=True)


# ---- turns


def _turns(notebook: Notebook, args: Any, *references: str) -> list[_Turn]:
    """Return turns of the session, oldest first; all if `references` is empty."""
    all_turns = turns_of(notebook.sessions.history(args.session))
    turns = [find_turn(all_turns, turn, args.name) for turn in references] if references else all_turns
    return [
        _Turn(
            label=f"turn {turn.number}{', undone' if turn.undone else ''}",
            question=turn.question,
            events=turn.events,
            trace=notebook.traces.merged(turn.invocation_ids),
        )
        for turn in sorted(turns, key=lambda turn: turn.number)
    ]


def _turn(notebook: Notebook, args: Any) -> _Turn:
    """Return the turn that the line names, or the last."""
    if not args.last:
        undone = [turn.undone for turn in turns_of(notebook.sessions.history(args.session))]
        newest = len(undone) - undone[::-1].index(False) if False in undone else -1  # the last that agents still see
        return _turns(notebook, args, args.run or str(newest))[0]
    reply = _last_reply(notebook)
    return _Turn(label="the last reply", question=reply.question or "", events=reply.events, trace=reply.trace)


def _last_reply(notebook: Notebook) -> Reply:
    last = notebook.variables.get("_run")
    if not isinstance(last, Reply):
        raise InputError("%trace --last: there is no reply yet; type %chat first")
    return last


def _compare(notebook: Notebook, args: Any, with_times: bool) -> Output:
    if args.last:
        raise InputError("%trace: --diff and --last exclude each other; name both turns, as %trace -1 --diff -2")
    first, second = args.run or "-1", args.diff
    turns = _turns(notebook, args, first, second)
    if turns[0].label == turns[1].label:
        raise InputError(f"%trace --diff: {first} and {second} are the same turn; name two different ones")
    runs = [
        comparison.ComparedRun(title=turn.label, question=turn.question, events=turn.events, trace=turn.trace)
        for turn in turns
    ]
    return Output(*comparison.difference_blocks(*runs, with_times=with_times))


# ---- export


def _export(notebook: Notebook, args: Any) -> Output:
    """Write a line for the file, then lines for each turn, its events, requests and bars, with keys masked."""
    turns = [_turn(notebook, args)] if args.last or args.run else _turns(notebook, args)
    if not turns:
        raise InputError(f"%trace --export: session {args.name!r} has no messages yet")
    lines: list[dict[str, Any]] = [{**_HEAD, "session": args.name}]
    for turn in turns:
        lines.append({"kind": "turn", "turn": turn.label, "question": turn.question})
        lines += [{"kind": "event", **redacted(_dump(event))} for event in turn.events]
        lines += [{"kind": "request", **request} for request in prompts(turn.trace)]
        bars = map(dict[str, Any], waterfall.bars(turn.events, turn.trace))
        lines += [{"kind": "bar", "of": bar.pop("kind"), **bar} for bar in bars]
    _write(args.export, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    count = "1 turn" if len(turns) == 1 else f"{len(turns)} turns"
    return text(f"{count} of session {args.name!r} in {args.export}, {len(lines)} lines; keys are masked")


def _write(path: str, text: str) -> None:
    file = Path(path).expanduser()
    if file.suffix not in ("", ".jsonl", ".ndjson"):
        raise InputError(
            f"%trace --export writes JSON lines, and {file.name!r} says otherwise; name it {file.stem}.jsonl"
        )
    try:
        if file.exists() and not _is_export(file):
            raise InputError(f"{path!r} exists and is not an export of %trace; name another file")
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StorageError(f"cannot write {path!r}: {error.strerror or error}; name another file") from error


def _is_export(file: Path) -> bool:
    with file.open("rb") as lines:
        first = lines.readline(10_000)
    try:
        return json.loads(first).items() >= _HEAD.items()
    except (ValueError, AttributeError):
        return False
