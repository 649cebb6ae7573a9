"""The tap between agents and their models, through which answers are recorded or replayed.

Agents call models through the installed tap, of a notebook or of a turn. The variable `ADK_NB_REPLAY` creates a tap for
the cassette that it names; the registry uses it for models by name.
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
"""Values of the variable for the cassette of a notebook."""


class ModelTap(Protocol):
    """Replaces the models of agents."""

    def model(self, model: str | BaseLlm, agent: str = "", /) -> BaseLlm:
        """The model to call instead of `model`, or of the model of that name (empty: the default), for an agent."""
        ...


_installed: list[ModelTap] = []
"""Of the process, at most one: widgets and threads run agents outside of cells."""
_turn_tap: ContextVar[ModelTap | None] = ContextVar("adk_nb_model_tap", default=None)


def install(tap: ModelTap | None) -> None:
    """Install `tap` for this process; None: remove it."""
    _installed[:] = [tap] if tap else []


def installed() -> ModelTap | None:
    """The tap of this turn, else that of the process."""
    return _turn_tap.get() or (_installed[0] if _installed else None)


@contextmanager
def tapped(tap: ModelTap) -> Generator[None]:
    """Use `tap` in this block, and in the tasks that it starts."""
    token = _turn_tap.set(tap)
    try:
        yield
    finally:
        _turn_tap.reset(token)


def tap_of_environment() -> ModelTap | None:
    """The tap of `ADK_NB_REPLAY`, or None.

    Raises:
        InputError: Its value is not a cassette.
    """
    cassette = replaying()
    return _replay_tap(cassette) if cassette else None


def replaying() -> Path | None:
    """The cassette of `ADK_NB_REPLAY`; None if it is not set, empty, `off`, or a mode of the notebook's own cassette.

    Raises:
        InputError: Its value is a missing file, a notebook, or a mode outside of a notebook.
    """
    value = os.environ.get(VARIABLE, "").strip()
    if value.lower() in ("", "off"):
        return None
    if value.lower() in MODES:
        if installed() is not None:
            return None
        raise InputError(
            f"{VARIABLE}={value} is for notebooks, and no cassette of one is in use; run %load_ext adk_nb, or set it "
            "to the path of a cassette, or to off"
        )
    path = Path(value)
    if not path.is_file():
        raise InputError(
            f"{VARIABLE} names {value!r}, and there is no such file; set it to the path of a cassette, or to off"
        )
    if path.suffix == ".ipynb":
        raise InputError(
            f"{VARIABLE} names the notebook {value!r}; set it to replay, so that each notebook's own recordings are "
            "used, or to the path of a cassette"
        )
    return path


@cache
def _replay_tap(cassette: Path) -> ModelTap:
    """One tap for all models of this process, so that equal requests of several get their answers in one order."""
    return ReplayTap(cassette)
