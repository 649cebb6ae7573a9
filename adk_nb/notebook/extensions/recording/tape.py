"""The cassette of a notebook, through which all agents ask their models after `%record` or `%replay`."""

import os
import shlex
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from adk_nb.errors import InputError, closest
from adk_nb.models.base_llm import BaseLlm
from adk_nb.models.cassette import Cassette, Redactor
from adk_nb.models.default_model import default_model
from adk_nb.models.recorded_llm import RecordedLlm
from adk_nb.models.registry import LLMRegistry, current_tap, install_tap, use_tap
from adk_nb.notebook.place import folder_of

Mode = Literal["auto", "record", "replay"]
"""`auto`: replay recorded answers and record the others. `record`: record all. `replay`: ask no model."""
_MAX_LISTED = 5
_IN_EACH_LINE = b'"cassette_version"'
_HINT = "type %replay auto to record missing answers, or %record and run the notebook from the top to record all again"


@dataclass(frozen=True, kw_only=True)
class Place:
    """The path of a notebook's cassette, and what is masked in it."""

    path: Path
    label: str
    """The path as it is typed in the notebook's folder."""
    redact: tuple[str, ...] = ()
    """Regular expressions of what is masked."""
    option: str = ""
    """The option of a line that names it; empty for the cassette with the notebook's name."""


@dataclass(eq=False)
class NotebookTape:
    """One cassette, in use."""

    place: Place
    mode: Mode
    anew: bool = False
    """The first recorded call deletes the earlier recordings."""
    _cassette: Cassette | None = None
    _models: dict[tuple[int, str], RecordedLlm] = field(default_factory=dict[tuple[int, str], RecordedLlm])
    _named: dict[str, BaseLlm] = field(default_factory=dict[str, BaseLlm])

    @property
    def cassette(self) -> Cassette:
        """The cassette, opened on first use.

        Raises:
            InputError: It cannot be used.
        """
        if self._cassette is None:
            self._check_file()
            self._cassette = Cassette(
                self.place.path,
                create=self.mode != "replay",
                overwrite=self.anew,
                redactor=Redactor(self.place.redact),
                hint=_HINT,
                label=self.place.label,
            )
        return self._cassette

    @property
    def recorded(self) -> int:
        """The number of recorded calls."""
        return len(self._cassette.recordings) - self._cassette.initial_count if self._cassette else 0

    def model(self, model: str | BaseLlm, agent: str = "", /) -> BaseLlm:
        """The model that records or replays `model` for an agent; `ModelTap` calls this."""
        if isinstance(model, RecordedLlm):
            return model  # it has a cassette of its own
        # The model that gives missing answers, or the name of one of which only recordings are used.
        real: str | BaseLlm = model
        if self.mode == "replay":
            real = model if isinstance(model, str) else model.model
        elif isinstance(model, str):
            name = model or default_model()
            may_differ = not model and self.mode == "auto"
            earlier = self.cassette.recordings[: self.cassette.initial_count] if may_differ else ()
            if earlier and all(recording.request.model != name for recording in earlier):
                real = ""  # the key that chose the recorded default model is not set here: replay any model's answers
            else:
                real = self._named[name] = self._named.get(name) or LLMRegistry.new_llm(name)
        key = (id(real) if isinstance(real, BaseLlm) else hash(real), agent)
        if key not in self._models:
            record = real if isinstance(real, BaseLlm) else None
            name = None if record else LLMRegistry.own_name(str(real)) or None
            replay = self.mode != "record"
            self._models[key] = RecordedLlm(self.cassette, record=record, replay=replay, model=name, agent=agent)
        return self._models[key]

    def _check_file(self) -> None:
        """Refuse a file that is not there, or no cassette: the first recording would overwrite it.

        Raises:
            InputError: It is a folder, holds something else, or cannot be used.
        """
        path, shown = self.place.path, self.place.label
        if self.mode == "replay" and not path.exists():
            named = Path(shown)
            siblings = {file.stem: str(named.with_name(file.name)) for file in sorted(path.parent.glob("*.jsonl"))}
            match = siblings.get(closest(named.stem, siblings) or "")
            listing = f"there is {', '.join([*siblings.values()][:_MAX_LISTED])}; " if siblings else ""
            hint = f"did you mean {match!r}? else " if match else listing
            to_make = f"type %record{self.place.option} and run the notebook from its top to make one"
            raise InputError(f"there is no cassette {shown!r}; {hint}{to_make}")
        if path.is_dir():
            raise InputError(
                f"{shown!r} is a folder; name a file in it: --file {shlex.quote(str(Path(shown, 'my.jsonl')))}"
            )
        if path.exists() and not path.is_file():
            raise InputError(f"{shown!r} is not a file; give another: --file my.jsonl")
        first = b""
        try:
            if path.exists():
                with path.open("rb") as lines:
                    first = next((line.strip() for line in lines if line.strip()), b"")
        except OSError as error:
            raise InputError(f"{shown!r} cannot be opened: {error.strerror}; give another: --file my.jsonl") from error
        if first and not (first.startswith(b"{") and _IN_EACH_LINE in first):
            raise InputError(f"{shown!r} exists and has no recordings; give another file name: --file my.jsonl")


def place_of(shell: Any, file: str | None, folder: str, redact: Sequence[str]) -> Place:
    """The path of the cassette.

    Args:
        shell: The notebook's shell.
        file: The path, relative to the notebook. None: the notebook's name in `folder`.
        folder: The folder of cassettes without a path of their own.
        redact: Regular expressions of what is masked.
    """
    path = Path(file).expanduser() if file else Path(folder).expanduser() / f"{notebook_name(shell)}.jsonl"
    option = f" --file {shlex.quote(file)}" if file else ""
    return Place(path=folder_of(shell) / path, label=str(path), redact=tuple(redact), option=option)


def notebook_name(shell: Any) -> str:
    """The name of the notebook's file without its ending, where the front end gives it; else `notebook`."""
    # VS Code sets the variable; jupyter_server sets JPY_SESSION_NAME to the notebook's path.
    path = shell.user_ns.get("__vsc_ipynb_file__") or os.environ.get("JPY_SESSION_NAME", "")
    name = Path(str(path)).name
    return Path(name).stem if name.endswith(".ipynb") else "notebook"


def begin(tape: NotebookTape) -> None:
    """Ask models through `tape` from now on."""
    install_tap(tape)


def end() -> NotebookTape | None:
    """Ask models themselves from now on; returns the tape that was in use."""
    tape = current()
    install_tap(None)
    return tape


def current() -> NotebookTape | None:
    """The tape in use."""
    tape = current_tap()
    return tape if isinstance(tape, NotebookTape) else None


def for_a_turn(tape: NotebookTape | None) -> AbstractContextManager[None]:
    """Within this, models are asked through `tape`; None changes nothing."""
    return use_tap(tape) if tape else nullcontext()
