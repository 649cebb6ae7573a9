"""`%trace`: the events of a session or a turn, when each agent was at work, what was sent, how two turns differ."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adk_nb.errors import InputError, StorageError
from adk_nb.events.event import Event
from adk_nb.notebook.magics import values
from adk_nb.notebook.magics.grammar import SESSION_OPTION, Grammar, Option, Word
from adk_nb.notebook.magics.host import Host
from adk_nb.notebook.magics.output import Output, as_json, page_width, text
from adk_nb.notebook.past_turns import PastTurn, find_turn, turns_of
from adk_nb.notebook.place import Mode, display_mode
from adk_nb.notebook.registry.notebook import Notebook
from adk_nb.notebook.reply import Reply
from adk_nb.notebook.view import run_difference
from adk_nb.notebook.view.panels import prompt, waterfall
from adk_nb.notebook.view.panels.prompt import prompts
from adk_nb.notebook.view.plain_text import one_line
from adk_nb.notebook.view.reply_document import event_table
from adk_nb.notebook.view.rows import rows_of
from adk_nb.redaction import redacted
from adk_nb.runtime.trace import Trace

TRACE = Grammar(
    "trace",
    "Show what happened in the session, or in one turn of it; undone turns too.",
    examples=[
        "%trace",
        "%trace -1",
        "%trace --waterfall",
        "%trace -2 --why",
        "%trace --diff -1 -2",
        "%trace --raw 3",
        "%trace --export trace.jsonl",
    ],
    words=[Word("RUN", "a turn: -1 the last, -2 the one before, 1 the first; or an id", names="turn")],
    options=[
        SESSION_OPTION,
        Option("--last", "the last reply, also of a Chat() of your own"),
        Option("--waterfall", "when each agent, model and tool was at work"),
        Option("--why", "exactly what the models were sent, with what was put into it, and what came back"),
        Option("--raw N", "event N as JSON", convert=values.positive_integer),
        Option("--diff RUN2", "beside RUN: instructions, calls, answers, tokens", names="turn"),
        Option("--export FILE", "all of it as JSON lines; a file that is no such export is kept"),
    ],
    twin="chat.events, chat.turns[-1].events; reply.trace has what models and tools were args",
)

_FORMS = ("waterfall", "why", "raw", "diff", "export")
_HEAD = {"kind": "trace", "version": 1}
_NO_REQUESTS = "what was sent in {} is not known: no model was asked, or by another kernel, or very many were since"


@dataclass(kw_only=True)
class _Picked:
    """The turn that is looked at."""

    title: str
    question: str
    events: list[Event]
    trace: Trace


def trace(host: Host, line: str, cell: str | None) -> Output:
    """Show what the line asks for.

    Raises:
        InputError: There is no such turn or event, or the line contradicts itself.
        StorageError: The file cannot be written.
    """
    args, notebook, mode = TRACE.parse(line, cell), host.notebook, host.settings.display
    forms = [f"--{name}" for name in _FORMS if getattr(args, name)]
    if len(forms) > 1:
        raise InputError(f"%trace: {' and '.join(forms)} are shown one at a time; choose one")
    if args.last and args.run:
        raise InputError("%trace: RUN and --last both say which turn; choose one")
    if args.diff:
        return _compare(notebook, args, mode)
    if args.export:
        return _export(notebook, args)
    if args.waterfall or args.why:
        picked = _pick(notebook, args, args.run or "-1")
        return _waterfall(picked, mode) if args.waterfall else _why(picked)
    return _table(notebook, args)


def _table(notebook: Notebook, args: Any) -> Output:
    """A row for each event, oldest first, with its number in the session; or one as JSON."""
    if args.last:
        reply = _last_reply(notebook)
        if args.raw:
            return _raw(reply.events, args.raw)
        return Output(event_table(reply.events, history=reply.view.history, width=page_width()))
    events = notebook.sessions.events(args.session)
    if args.raw:
        return _raw(events, args.raw)
    if not events:
        name = _session(notebook, args)
        return text(
            f"nothing was said in session {name!r} yet; type %chat, or look at chat.events of a Chat of your own"
        )
    history = notebook.sessions.history(args.session)
    turn = find_turn(turns_of(history), args.run, _session(notebook, args)) if args.run else None
    left = {event.id for event in history.events}
    undone = {event.id for event in events} - left - {event.id for event in events if _is_mark(event)}
    only = {event.id for event in turn.events} if turn else None
    return Output(event_table(events, only=only, undone=undone, width=page_width()))


def _is_mark(event: Event) -> bool:
    return event.actions.rewind_before_invocation_id is not None


def _raw(events: list[Event], number: int) -> Output:
    """One row as JSON: its event, and for a call the event with the result too."""
    rows = rows_of(events)
    if number > len(rows):
        raise InputError(f"%trace: there is no event {number}; there are {len(rows)}")
    key = rows[number - 1]["id"].partition("/")[0]
    calls = {call.id for event in events if event.id == key for call in event.get_function_calls()}
    chosen = [
        event
        for event in events
        if event.id == key or any(response.id in calls for response in event.get_function_responses())
    ]
    dumped = [_dump(event) for event in chosen]
    return as_json(dumped[0] if len(dumped) == 1 else dumped)


def _dump(event: Event) -> dict[str, Any]:
    return event.model_dump(mode="json", exclude_none=True, exclude_defaults=True)


def _pick(notebook: Notebook, args: Any, which: str) -> _Picked:
    if args.last:
        reply = _last_reply(notebook)
        question = one_line(reply.question or "", 60)
        return _Picked(title="the last reply", question=question, events=reply.events, trace=reply.trace)
    session = _session(notebook, args)
    return _of_turn(notebook, find_turn(turns_of(notebook.sessions.history(args.session)), which, session))


def _of_turn(notebook: Notebook, turn: PastTurn) -> _Picked:
    return _Picked(
        title=f"turn {turn.number}{', undone' if turn.undone else ''}",
        question=turn.question,
        events=turn.events,
        trace=notebook.traces.of(turn.invocation_ids),
    )


def _titled(picked: _Picked) -> str:
    return f"{picked.title}: {picked.question}" if picked.question else picked.title


def _waterfall(picked: _Picked, mode: Mode) -> Output:
    found = waterfall.bars(picked.events, picked.trace)
    if not found:
        return text(f"nothing was at work in {picked.title}")
    timed = display_mode(mode) != "static"
    steps = found if timed else waterfall.in_steps(found)
    return Output(*waterfall.drawn(steps, _titled(picked), with_times=timed))


def _why(picked: _Picked) -> Output:
    if not picked.trace.requests:
        return text(_NO_REQUESTS.format(picked.title))
    return Output(*prompt.drawn(prompts(picked.trace), _titled(picked)))


def _compare(notebook: Notebook, args: Any, mode: Mode) -> Output:
    if args.last:
        raise InputError("%trace --diff compares two turns of a session; write them as %trace -1 --diff -2")
    session = _session(notebook, args)
    turns = turns_of(notebook.sessions.history(args.session))
    two = [find_turn(turns, which, session) for which in (args.run or "-1", args.diff)]
    if two[0].number == two[1].number:
        raise InputError(f"%trace --diff: {args.run or '-1'} and {args.diff} are the same turn; give another one")
    earlier, later = (_of_turn(notebook, one) for one in sorted(two, key=lambda one: one.number))
    runs = [
        run_difference.Run(title=one.title, question=one.question, events=one.events, trace=one.trace)
        for one in (earlier, later)
    ]
    return Output(*run_difference.blocks_of(*runs, with_times=display_mode(mode) != "static"))


def _export(notebook: Notebook, args: Any) -> Output:
    """A line for the file, then for each turn, its events, model calls and bars; keys are masked."""
    if args.last:
        reply = _last_reply(notebook)
        picked = [
            _Picked(title="the last reply", question=reply.question or "", events=reply.events, trace=reply.trace)
        ]
    else:
        turns = turns_of(notebook.sessions.history(args.session))
        chosen = [find_turn(turns, args.run, _session(notebook, args))] if args.run else turns
        picked = [_of_turn(notebook, one) for one in chosen]
    if not picked:
        raise InputError(f"nothing was said in session {_session(notebook, args)!r} yet; there is nothing to export")
    lines: list[dict[str, Any]] = [{**_HEAD, "session": _session(notebook, args)}]
    for one in picked:
        lines.append({"kind": "turn", "turn": one.title, "question": one.question})
        lines += [{"kind": "event", **redacted(_dump(event))} for event in one.events]
        lines += [{"kind": "request", **sent} for sent in prompts(one.trace)]
        lines += [
            {"kind": "bar", "of": bar.pop("kind"), **bar}
            for bar in map(dict[str, Any], waterfall.bars(one.events, one.trace))
        ]
    _write(args.export, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    count = "1 turn" if len(picked) == 1 else f"{len(picked)} turns"
    return text(
        f"{count} of session {_session(notebook, args)!r} in {args.export}, {len(lines)} lines; keys are masked"
    )


def _write(path: str, text: str) -> None:
    file = Path(path).expanduser()
    try:
        if file.exists() and not _is_export(file):
            raise InputError(f"{path!r} is there, and is no export of %trace; give another file name")
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StorageError(f"{path!r} cannot be written: {error.strerror or error}; give another path") from error


def _is_export(file: Path) -> bool:
    with file.open("rb") as lines:
        first = lines.readline(10_000)
    try:
        return json.loads(first).items() >= _HEAD.items()
    except (ValueError, AttributeError):
        return False


def _last_reply(notebook: Notebook) -> Reply:
    last = notebook.variables.get("_run")
    if not isinstance(last, Reply):
        raise InputError("%trace --last: nothing was asked yet; type %chat first")
    return last


def _session(notebook: Notebook, args: Any) -> str:
    return args.session or notebook.sessions.current
