"""What `%trace` shows: events of a session or a turn, when who was at work, what was sent, how two turns differ."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from IPython.core.getipython import get_ipython

from adk_nb.errors import InputError, StorageError
from adk_nb.events.event import Event
from adk_nb.notebook.magics.reports import as_json, last_reply, page_width
from adk_nb.notebook.magics.shown import Shown, said
from adk_nb.notebook.past_turns import PastTurn, find_turn, turns_of
from adk_nb.notebook.place import is_being_tested
from adk_nb.notebook.registry.notebook import Notebook
from adk_nb.notebook.view import prompt_words, run_difference
from adk_nb.notebook.view.panels import waterfall
from adk_nb.notebook.view.panels.prompt import prompts
from adk_nb.notebook.view.panels.waterfall import bars
from adk_nb.notebook.view.plain_text import one_line
from adk_nb.notebook.view.render import event_table
from adk_nb.notebook.view.rows import rows_of
from adk_nb.redaction import redacted
from adk_nb.runtime.trace import Trace

_WAYS = ("waterfall", "why", "raw", "diff", "export")
_HEAD = {"kind": "trace", "version": 1}
_NO_REQUESTS = "what was sent in {} is not known: no model was asked, or by another kernel, or very many were since"


@dataclass(kw_only=True)
class _Picked:
    """The turn that is looked at."""

    title: str
    question: str
    events: list[Event]
    trace: Trace


def show(notebook: Notebook, asked: Any) -> Shown:
    """What the line asks for.

    Raises:
        InputError: There is no such turn or event, or the line contradicts itself.
        StorageError: The file cannot be written.
    """
    ways = [f"--{name}" for name in _WAYS if getattr(asked, name)]
    if len(ways) > 1:
        raise InputError(f"%trace: {' and '.join(ways)} are shown one at a time; choose one")
    if asked.last and asked.run:
        raise InputError("%trace: RUN and --last both say which turn; choose one")
    if asked.diff:
        return _compared(notebook, asked)
    if asked.export:
        return _exported(notebook, asked)
    if asked.waterfall or asked.why:
        picked = _picked(notebook, asked, asked.run or "-1")
        return _waterfall(picked) if asked.waterfall else _why(picked)
    return _table(notebook, asked)


def _table(notebook: Notebook, asked: Any) -> Shown:
    """A row for each event, oldest first, with its number in the session; or one as JSON."""
    if asked.last:
        reply = last_reply(notebook)
        if asked.raw:
            return _raw(reply.events, asked.raw)
        return Shown(event_table(reply.events, history=reply.history, width=page_width()))
    events = notebook.sessions.events(asked.session)
    if asked.raw:
        return _raw(events, asked.raw)
    if not events:
        return said("nothing was said in this session yet; what a Chat() of your own has said is in its chat.events")
    history = notebook.sessions.history(asked.session)
    turn = find_turn(turns_of(history), asked.run, _session(notebook, asked)) if asked.run else None
    left = {event.id for event in history.events}
    undone = {event.id for event in events} - left - {event.id for event in events if _is_mark(event)}
    only = {event.id for event in turn.events} if turn else None
    return Shown(event_table(events, only=only, undone=undone, width=page_width()))


def _is_mark(event: Event) -> bool:
    return event.actions.rewind_before_invocation_id is not None


def _raw(events: list[Event], number: int) -> Shown:
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
    dumped = [_dumped(event) for event in chosen]
    return as_json(dumped[0] if len(dumped) == 1 else dumped)


def _dumped(event: Event) -> dict[str, Any]:
    return event.model_dump(mode="json", exclude_none=True, exclude_defaults=True)


def _picked(notebook: Notebook, asked: Any, which: str) -> _Picked:
    if asked.last:
        reply = last_reply(notebook)
        asked_for = one_line(reply.question or "", 60)
        return _Picked(title="the last reply", question=asked_for, events=reply.events, trace=reply.trace)
    session = _session(notebook, asked)
    return _of_turn(notebook, find_turn(turns_of(notebook.sessions.history(asked.session)), which, session))


def _of_turn(notebook: Notebook, turn: PastTurn) -> _Picked:
    return _Picked(
        title=f"turn {turn.number}{', undone' if turn.undone else ''}",
        question=turn.question,
        events=turn.events,
        trace=notebook.traces.of(turn.invocation_ids),
    )


def _titled(picked: _Picked) -> str:
    return f"{picked.title}: {picked.question}" if picked.question else picked.title


def _waterfall(picked: _Picked) -> Shown:
    found = bars(picked.events, picked.trace)
    if not found:
        return said(f"nothing was at work in {picked.title}")
    timed = not is_being_tested(get_ipython())
    steps = found if timed else waterfall.in_steps(found)
    return Shown(waterfall.drawn(steps, _titled(picked), with_times=timed))


def _why(picked: _Picked) -> Shown:
    if not picked.trace.requests:
        return said(_NO_REQUESTS.format(picked.title))
    return Shown(prompt_words.drawn(prompts(picked.trace), _titled(picked)))


def _compared(notebook: Notebook, asked: Any) -> Shown:
    if asked.last:
        raise InputError("%trace --diff compares two turns of a session; write them as %trace -1 --diff -2")
    session = _session(notebook, asked)
    turns = turns_of(notebook.sessions.history(asked.session))
    two = [find_turn(turns, which, session) for which in (asked.run or "-1", asked.diff)]
    if two[0].number == two[1].number:
        raise InputError(f"%trace --diff: {asked.run or '-1'} and {asked.diff} are the same turn; give another one")
    earlier, later = (_of_turn(notebook, one) for one in sorted(two, key=lambda one: one.number))
    runs = [
        run_difference.Run(title=one.title, question=one.question, events=one.events, trace=one.trace)
        for one in (earlier, later)
    ]
    return Shown(run_difference.compared(*runs, with_times=not is_being_tested(get_ipython())))


def _exported(notebook: Notebook, asked: Any) -> Shown:
    """A line for the file, then for each turn, its events, model calls and bars; keys are masked."""
    if asked.last:
        reply = last_reply(notebook)
        picked = [
            _Picked(title="the last reply", question=reply.question or "", events=reply.events, trace=reply.trace)
        ]
    else:
        turns = turns_of(notebook.sessions.history(asked.session))
        chosen = [find_turn(turns, asked.run, _session(notebook, asked))] if asked.run else turns
        picked = [_of_turn(notebook, one) for one in chosen]
    if not picked:
        raise InputError(f"nothing was said in session {_session(notebook, asked)!r} yet; there is nothing to export")
    lines: list[dict[str, Any]] = [{**_HEAD, "session": _session(notebook, asked)}]
    for one in picked:
        lines.append({"kind": "turn", "turn": one.title, "question": one.question})
        lines += [{"kind": "event", **redacted(_dumped(event))} for event in one.events]
        lines += [{"kind": "request", **prompt} for prompt in prompts(one.trace)]
        lines += [
            {"kind": "bar", "of": bar.pop("kind"), **bar} for bar in map(dict[str, Any], bars(one.events, one.trace))
        ]
    _write(asked.export, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    count = "1 turn" if len(picked) == 1 else f"{len(picked)} turns"
    return said(
        f"{count} of session {_session(notebook, asked)!r} in {asked.export}, {len(lines)} lines; keys are masked"
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


def _session(notebook: Notebook, asked: Any) -> str:
    return asked.session or notebook.sessions.current
