"""`%record` and `%replay`: record the answers of models, and replay them; also for one turn of `%chat`."""

import os
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Literal

from adk_nb.errors import InputError
from adk_nb.models.registry import REPLAY_VARIABLE
from adk_nb.notebook.extensions.recording.tape import (
    Mode,
    NotebookTape,
    Place,
    begin,
    current,
    end,
    for_a_turn,
    place_of,
)
from adk_nb.notebook.magics.grammar import Argument, Grammar, Option, unknown_choice
from adk_nb.notebook.magics.output import Finding, Host, Output, text
from adk_nb.notebook.place import check_folder_above

_FILE = Option(
    "--file PATH", "the cassette; by default one in cassettes/, named like the notebook if its name is known"
)

RECORD = Grammar(
    "record",
    "From here on record the answers of models in a file, the cassette of this notebook, to replay them later.",
    examples=["%record", "%record --file cassettes/demo.jsonl", "%record off"],
    arguments=[Argument("MODE", "off: stop recording", choices=("off",))],
    options=[_FILE],
    twin='RecordedLlm("cassettes/demo.jsonl", record=Gemini(model="gemini-3.5-flash-lite"))',
)

REPLAY = Grammar(
    "replay",
    "From here on replay answers from the cassette of this notebook: no key, no network, the same text each time.",
    examples=["%replay", "%replay auto", "%replay off"],
    arguments=[
        Argument(
            "MODE",
            "replay (the default): a request that is not in the cassette is an error; auto: it is sent and recorded; "
            "record; off",
            choices=("auto", "record", "replay", "off"),
        )
    ],
    options=[_FILE],
    twin='RecordedLlm("cassettes/demo.jsonl"), RecordedLlm("cassettes/demo.jsonl", record=model, replay=True)',
)

_MODES: tuple[Mode, ...] = ("auto", "record", "replay")


def record(host: Host, line: str, cell: str | None) -> Output:
    """Start or stop recording. Raises as `_switch`."""
    return text(*_switch(host, RECORD.parse(line, cell), "record"))


def replay(host: Host, line: str, cell: str | None) -> Output:
    """Start or stop replaying. Raises as `_switch`."""
    return text(*_switch(host, REPLAY.parse(line, cell), "replay"))


def _switch(host: Host, args: Any, default: Literal["record", "replay"]) -> list[str]:
    """Start or stop a cassette, and return lines for the user.

    The mode in `ADK_NB_REPLAY` takes precedence over that of the line, so that tests of a notebook call no model.

    Raises:
        InputError: There is no such mode, or the cassette cannot be used; nothing was changed.
    """
    name: str = args.mode or default
    modes = ("off", "record") if default == "record" else (*_MODES, "off")
    if name not in modes:
        hint = f"; for a path type {args.mark} --file {name}" if name.endswith(".jsonl") else ""
        raise InputError(f"{args.mark}: {unknown_choice('mode', name, modes)}{hint}")
    if name == "off":
        if args.file:
            raise InputError(f"{args.mark} off takes no --file; leave it out")
        return [_end_line(end())]
    mode: Mode = _mode_of_environment() or next(mode for mode in _MODES if mode == name)
    tape = NotebookTape(place=_place(host, args.file), mode=mode, anew=mode == "record")
    usual = place_of(host.shell, None, str(host.settings.cassette_dir), ()).path.parent
    if mode != "replay" and tape.place.path.parent != usual:  # only the usual folder is created
        check_folder_above(tape.place.path)
    begin_line = _begin_line(tape)
    begin(tape)
    return [begin_line]


def for_turn(host: Host, args: Any) -> AbstractContextManager[None]:
    """Return the cassette for one turn; that of the notebook continues after it.

    Raises:
        InputError: There is no cassette to replay, or the line asks for both.
    """
    if args.record and args.replay:
        raise InputError(f"{args.mark}: --record and --replay exclude each other; choose one")
    mode: Mode = "record" if args.record else "replay"
    notebook_tape = current()
    tape = NotebookTape(place=_place(host, None), mode=mode)
    if notebook_tape and notebook_tape.mode == mode:
        return for_a_turn(None)
    _ = tape.cassette  # open it now: errors have to come before anything is sent
    return for_a_turn(tape)


def findings(host: Host) -> Iterator[Finding]:
    """What is recorded or replayed, for `%doctor`."""
    tape = current()
    if tape is None:
        yield Finding("recording", "off", "%record, %replay")
        return
    mode = {"auto": "replays or records", "record": "records", "replay": "replays"}[tape.mode]
    yield Finding("recording", f"{mode} answers: {tape.place.label}", "%replay off")


def check_folder(name: str) -> str:
    """Return the folder of cassettes. Raises an InputError if it cannot be one."""
    name = name.strip()
    if not name or "\0" in name or os.path.isfile(os.path.expanduser(name)):
        raise InputError(f"cassette_dir: {name!r} is not a folder; write a name such as 'cassettes'")
    return name


def check_patterns(patterns: list[str]) -> list[str]:
    """Return what to mask. Raises an InputError for what is not a regular expression."""
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise InputError(f"redact: {pattern!r} is not a regular expression: {error}") from None
    return patterns


def stop(host: Host) -> None:
    """Ask models themselves from now on."""
    end()


def begin_from_environment(host: Host) -> None:
    """Start a cassette in the mode of `ADK_NB_REPLAY`; it is opened when first needed."""
    if mode := _mode_of_environment():
        begin(NotebookTape(place=_place(host, None), mode=mode, anew=mode == "record"))


def _mode_of_environment() -> Mode | None:
    value = os.environ.get(REPLAY_VARIABLE, "").strip().lower()
    return next((mode for mode in _MODES if mode == value), None)


def _place(host: Host, file: str | None) -> Place:
    tape, redact = current(), tuple[str, ...](host.settings.redact)
    if tape and file is None:
        return replace(tape.place, redact=redact)
    return place_of(host.shell, file, str(host.settings.cassette_dir), redact)


def _begin_line(tape: NotebookTape) -> str:
    path = tape.place.label
    if tape.mode == "record":
        is_old = tape.place.path.exists() and tape.place.path.stat().st_size > 0
        _ = tape.cassette
        replaced = "; the first call replaces its old recordings" if is_old else ""
        return f"recording to {path}{replaced}"
    recordings = tape.cassette.recordings
    models = ", ".join(sorted({recording.request.model for recording in recordings}))
    count = f"{len(recordings)} recording{'s' * (len(recordings) != 1)}"
    return f"replaying from {path}: {count} of {models}" if recordings else f"replaying from {path}: {count}"


def _end_line(tape: NotebookTape | None) -> str:
    if tape is None:
        return "off already: nothing is recorded or replayed"
    if tape.mode == "replay":
        return "replay is off"
    calls = f"{tape.recorded} call{'s' * (tape.recorded != 1)} recorded in {tape.place.label}"
    return f"recording is off: {calls}" if tape.mode == "record" else f"replay is off: {calls}"
