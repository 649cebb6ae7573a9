"""`%record` and `%replay`, and `--record` and `--replay` of one turn."""

import os
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Literal

from adk_nb.errors import InputError
from adk_nb.models.tap import VARIABLE
from adk_nb.notebook.magics.grammar import Argument, Grammar, Option, unknown_choice
from adk_nb.notebook.magics.host import Host
from adk_nb.notebook.magics.output import Output, text
from adk_nb.notebook.place import check_folder_above
from adk_nb.notebook.tape import Mode, NotebookTape, Place, begin, current, end, for_a_turn, place_of

_FILE = Option(
    "--file PATH", "the cassette; else one in cassettes/, named as the notebook where the page tells its name"
)

RECORD = Grammar(
    "record",
    "From here on keep what models answer in a file, the cassette of this notebook, so that it can be replayed.",
    examples=["%record", "%record --file cassettes/demo.jsonl", "%record off"],
    arguments=[Argument("MODE", "off: nothing more is recorded; the model answers", choices=("off",))],
    options=[_FILE],
    twin='RecordedLlm("cassettes/demo.jsonl", record=Gemini(model="gemini-3.5-flash-lite"))',
)

REPLAY = Grammar(
    "replay",
    "From here on answer from the cassette of this notebook: no key, no network, the same words each time.",
    examples=["%replay", "%replay auto", "%replay off"],
    arguments=[
        Argument(
            "MODE",
            "replay, as without a word: what is not in the cassette is an error that says what has changed; auto: "
            "what is not in it is asked and recorded; record; off",
            choices=("auto", "record", "replay", "off"),
        )
    ],
    options=[_FILE],
    twin='RecordedLlm("cassettes/demo.jsonl"), RecordedLlm("cassettes/demo.jsonl", record=model, replay=True)',
)

_MODES: tuple[Mode, ...] = ("auto", "record", "replay")


def record(host: Host, line: str, cell: str | None) -> Output:
    """Begin or end to record. Raises as `_switch`."""
    return text(*_switch(host, RECORD.parse(line, cell), "record"))


def replay(host: Host, line: str, cell: str | None) -> Output:
    """Begin or end to replay. Raises as `_switch`."""
    return text(*_switch(host, REPLAY.parse(line, cell), "replay"))


def _switch(host: Host, args: Any, default: Literal["record", "replay"]) -> list[str]:
    """Begin or end a cassette, and return lines for the user.

    A mode in `ADK_NB_REPLAY` counts before the line's: so a test asks no model, whatever the notebook says.

    Raises:
        InputError: There is no such mode, or the cassette cannot be used; all stays as it was.
    """
    name: str = args.mode or default
    modes = ("off", "record") if default == "record" else (*_MODES, "off")
    if name not in modes:
        hint = f"; a path goes with --file, as in {args.mark} --file {name}" if name.endswith(".jsonl") else ""
        raise InputError(f"{args.mark}: {unknown_choice('mode', name, modes)}{hint}")
    if name == "off":
        if args.file:
            raise InputError(f"{args.mark} off ends it, whichever the file; leave out --file")
        return [_end_line(end())]
    mode: Mode = _mode_of_environment() or next(mode for mode in _MODES if mode == name)
    tape = NotebookTape(place=_place(host, args.file), mode=mode, anew=mode == "record")
    usual = place_of(host.shell, None, str(host.settings.cassette_dir), ()).path.parent
    if mode != "replay" and tape.place.path.parent != usual:  # no other folder is made for a cassette
        check_folder_above(tape.place.path)
    begin_line = _begin_line(tape)
    begin(tape)
    return [begin_line]


def for_turn(host: Host, args: Any) -> AbstractContextManager[None]:
    """Return the cassette for one turn; that of the notebook stays where it is.

    Raises:
        InputError: There is no cassette to replay.
    """
    mode: Mode = "record" if args.record else "replay"
    notebook_tape = current()
    tape = NotebookTape(place=_place(host, None), mode=mode)
    if notebook_tape and notebook_tape.mode == mode:
        return for_a_turn(None)
    _ = tape.cassette  # opened now: an error in it comes before anything is sent
    return for_a_turn(tape)


def begin_from_environment(host: Host) -> None:
    """Begin the cassette that `ADK_NB_REPLAY` names a mode of; it is opened when it is first needed."""
    if mode := _mode_of_environment():
        begin(NotebookTape(place=_place(host, None), mode=mode, anew=mode == "record"))


def _mode_of_environment() -> Mode | None:
    value = os.environ.get(VARIABLE, "").strip().lower()
    return next((mode for mode in _MODES if mode == value), None)


def _place(host: Host, file: str | None) -> Place:
    tape, redact = current(), tuple[str, ...](host.settings.redact)
    if tape and file is None:
        return replace(tape.place, redact=redact)
    return place_of(host.shell, file, str(host.settings.cassette_dir), redact)


def _begin_line(tape: NotebookTape) -> str:
    path = tape.place.shown
    if tape.mode == "record":
        is_old = tape.place.path.exists() and tape.place.path.stat().st_size > 0
        _ = tape.cassette
        replaced = "; what is in it is replaced from the first call on" if is_old else ""
        return f"recording to {path}: all that models answer from here on{replaced}"
    recordings = tape.cassette.recordings
    models = ", ".join(sorted({recording.request.model for recording in recordings}))
    count = f"{len(recordings)} recording{'s' * (len(recordings) != 1)}"
    return f"replaying from {path}: {count} of {models}" if recordings else f"replaying from {path}: {count}"


def _end_line(tape: NotebookTape | None) -> str:
    if tape is None:
        return "Nothing was recorded or replayed; the model answers."
    if tape.mode == "replay":
        return "Replay is off; the model answers again."
    calls = f"{tape.recorded} call{'s' * (tape.recorded != 1)} recorded in {tape.place.shown}"
    return (
        f"Recording is off; {calls}." if tape.mode == "record" else f"Replay is off; the model answers again; {calls}."
    )
