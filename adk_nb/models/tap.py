"""The tap between agents and their models: through it answers are recorded, or replayed.

Agents ask through the installed tap, of a notebook or of one turn of it. The variable `ADK_NB_REPLAY` makes a tap for
the cassette that it names; the registry asks that one for models by name.
"""

import os
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Protocol

from adk_nb.errors import InputError
from adk_nb.models.base_llm import BaseLlm
from adk_nb.models.recorded_llm import ReplayTap

VARIABLE = "ADK_NB_REPLAY"
MODES = ("auto", "record", "replay")
"""What the variable says of a notebook's own cassette."""


class ModelTap(Protocol):
    """Stands between agents and their models."""

    def model(self, model: str | BaseLlm, agent: str = "", /) -> BaseLlm:
        """The model asked in place of `model`, or of the one of that name (empty: the default), for an agent."""
        ...


_installed: list[ModelTap] = []
"""Of the process, at most one: agents are also run outside of cells, by widgets and in threads."""
_of_turn: ContextVar[ModelTap | None] = ContextVar("adk_nb_model_tap", default=None)


def install(tap: ModelTap | None) -> None:
    """Ask models through `tap` from now on; None: ask them themselves."""
    _installed[:] = [tap] if tap else []


def installed() -> ModelTap | None:
    """The tap of this turn, else that of the process."""
    return _of_turn.get() or (_installed[0] if _installed else None)


@contextmanager
def tapped(tap: ModelTap) -> Generator[None]:
    """Ask models through `tap` in this block, and in the tasks that it starts."""
    token = _of_turn.set(tap)
    try:
        yield
    finally:
        _of_turn.reset(token)


def tap_of_environment() -> ModelTap | None:
    """The tap that `ADK_NB_REPLAY` makes.

    Raises:
        InputError: It names no cassette.
    """
    cassette = replaying()
    return _replay_tap(cassette) if cassette else None


def replaying() -> Path | None:
    """The cassette that `ADK_NB_REPLAY` names, or None when it is not set, empty or `off`, or a notebook's own is used.

    Raises:
        InputError: It names no file, a notebook, or how a notebook's own is used where there is no notebook.
    """
    word = os.environ.get(VARIABLE, "").strip()
    if word.lower() in ("", "off"):
        return None
    if word.lower() in MODES:
        if installed() is not None:
            return None
        raise InputError(
            f"{VARIABLE}={word} is for notebooks, and no cassette of one is in use; run %load_ext adk_nb, or set it to "
            "the path of a cassette, or to off"
        )
    path = Path(word)
    if not path.is_file():
        raise InputError(
            f"{VARIABLE} names {word!r}, and there is no such file; set it to the path of a cassette, or to off"
        )
    if path.suffix == ".ipynb":
        raise InputError(
            f"{VARIABLE} names the notebook {word!r}; set it to replay, so that each notebook's own recordings are "
            "used, or to the path of a cassette"
        )
    return path


@cache
def _replay_tap(cassette: Path) -> ModelTap:
    """One for all models of this process, so that equal requests of several get their answers in one order."""
    return ReplayTap(cassette)
