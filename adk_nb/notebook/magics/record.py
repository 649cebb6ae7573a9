"""What `%record` and `%replay` do, and `--record` and `--replay` of one turn."""

import os
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from adk_nb.errors import InputError, closest
from adk_nb.models.tap import VARIABLE
from adk_nb.notebook.magics.config import AdkNb
from adk_nb.notebook.place import check_folder_above
from adk_nb.notebook.tape import Mode, NotebookTape, Place, begin, current, end, for_a_turn, place_of

_MODES: tuple[Mode, ...] = ("auto", "record", "replay")


def switch(shell: Any, settings: AdkNb, asked: Any, by_itself: Literal["record", "replay"]) -> list[str]:
    """Begin or end to record or replay; what there is to say of it, a line each.

    While `ADK_NB_REPLAY` is a mode, that counts and not the line's: so nothing is asked in a test, whatever a notebook
    says for its reader.

    Args:
        shell: Of the notebook.
        settings: Of the notebook.
        asked: The line.
        by_itself: What the magic does when its line says nothing else.

    Raises:
        InputError: There is no such mode, or the cassette cannot be used; all stays as it was.
    """
    word: str = asked.mode or by_itself
    known = ("off", "record") if by_itself == "record" else ("off", *_MODES)
    if word not in known:
        near = closest(word, known)
        hint = f"did you mean {near}?" if near else f"there is {', '.join(known)}"
        hint = "a path goes with --file" if word.endswith(".jsonl") else hint
        raise InputError(f"{asked.mark} cannot {word!r}; {hint}")
    if word == "off":
        if asked.file:
            raise InputError(f"{asked.mark} off ends it, whichever the file; leave out --file")
        return [_ended(end())]
    mode: Mode = _by_the_environment() or next(one for one in _MODES if one == word)
    tape = NotebookTape(place=_place(shell, settings, asked.file), mode=mode, anew=mode == "record")
    _check_folder(tape, place_of(shell, None, str(settings.cassette_dir), ()).path.parent)
    told = _begun(tape)
    begin(tape)
    return told


def for_this_turn(shell: Any, settings: AdkNb, asked: Any) -> AbstractContextManager[None]:
    """The cassette for one turn; that of the notebook stays where it is.

    Raises:
        InputError: The line says both, or there is no cassette to replay.
    """
    if asked.record and asked.replay:
        raise InputError(f"{asked.mark}: --record and --replay cannot both be; choose one")
    mode: Mode = "record" if asked.record else "replay"
    on = current()
    tape = NotebookTape(place=_place(shell, settings, None), mode=mode)
    if on and on.mode == mode:
        return for_a_turn(None)
    _ = tape.cassette  # what is wrong with it is told before anything is said
    return for_a_turn(tape)


def begin_as_the_environment_says(shell: Any, settings: AdkNb) -> None:
    """The cassette is looked at when it is first needed."""
    if mode := _by_the_environment():
        begin(NotebookTape(place=_place(shell, settings, None), mode=mode, anew=mode == "record"))


def _by_the_environment() -> Mode | None:
    word = os.environ.get(VARIABLE, "").strip().lower()
    return next((one for one in _MODES if one == word), None)


def _place(shell: Any, settings: AdkNb, file: str | None) -> Place:
    on = current()
    redact: list[str] = list(settings.redact)
    if on and file is None:
        return replace(on.place, redact=tuple(redact))
    return place_of(shell, file, str(settings.cassette_dir), redact)


def _check_folder(tape: NotebookTape, usual: Path) -> None:
    """Of all folders, only the one where cassettes usually are is made."""
    path = tape.place.path
    if tape.mode != "replay" and path.parent != usual:
        check_folder_above(path)


def _begun(tape: NotebookTape) -> list[str]:
    shown = tape.place.shown
    if tape.mode == "record":
        old = tape.place.path.exists() and tape.place.path.stat().st_size > 0
        _ = tape.cassette
        replaced = "; what is in it is replaced from the first call on" if old else ""
        return [f"recording to {shown}: all that models answer from here on{replaced}"]
    held = tape.cassette.recordings
    models = ", ".join(sorted({one.request.model for one in held}))
    said = f"{len(held)} recording{'s' if len(held) != 1 else ''}" + (f" of {models}" if held else "")
    return [f"replaying from {shown}: {said}"]


def _ended(tape: NotebookTape | None) -> str:
    if tape is None:
        return "nothing was recorded or replayed; models are asked themselves"
    if tape.mode == "replay":
        return "models are asked themselves again"
    calls = f"{tape.recorded} call{'s' if tape.recorded != 1 else ''}"
    return f"models are asked themselves again; {calls} recorded in {tape.place.shown}"
