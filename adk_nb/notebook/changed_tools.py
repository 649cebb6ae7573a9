"""Calls that wait for a person while the cells of their tools are run again: asked anew, or made as they were asked."""

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.errors import InputError
from adk_nb.events.event import Event
from adk_nb.notebook.decisions import how_to_answer, how_to_reask, redefined
from adk_nb.runtime.approvals import Pending, pending

CHANGED = "the tool changed since this was asked"


class Versions(Protocol):
    """Keeps tools as they were before they were redefined."""

    def label(self, one: Pending, /) -> str:
        """Which version a call was asked of, as `v2`; empty if that is not known any more."""
        ...

    def as_asked(self, waiting: Sequence[Pending], /) -> AbstractContextManager[None]:
        """Within this, the tools of these calls are as they were, until the calls have their results. Raises InputError
        if one is not known any more.
        """
        ...

    def answered(self, call_id: str, /) -> None:
        """That call has its result."""
        ...


@dataclass(frozen=True)
class Changed:
    """What a card says of the tool that it asks for."""

    words: str
    """Empty: it is as it was."""
    version: str
    """What it was, as `v2`; empty: that is not known any more."""
    typed: str
    """What can be typed instead of a click."""


def told(one: Pending, agent: BaseAgent, events: Sequence[Event], versions: Versions | None, magic: str) -> Changed:
    """What the card of a waiting call is to say now; `agent` is who answers, `magic` as for `how_to_answer`."""
    waiting = [each.id for each in pending(events)]
    which = waiting.index(one.id) + 1 if len(waiting) > 1 else None
    if not redefined(one, agent, events):
        return Changed("", "", how_to_answer(magic, which)[0])
    return Changed(CHANGED, versions.label(one) if versions else "", how_to_reask(magic, which))


def as_asked(
    versions: Versions | None, decided: Collection[str], waiting: Sequence[Pending]
) -> AbstractContextManager[None]:
    """Where tools are as they were when what is decided was asked.

    Args:
        versions: What keeps them.
        decided: The ids of what is decided.
        waiting: Calls that are to be made so; empty: none, tools are as they are now.

    Raises:
        InputError: An earlier version is not known.
    """
    chosen = [one for one in waiting if one.id in decided]
    if not chosen:
        return nullcontext()
    if versions is None:
        raise InputError("only cells keep tools as they were; refuse the call with chat.reject(), and ask again")
    return versions.as_asked(chosen)
