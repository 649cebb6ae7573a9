"""Calls that wait for a person while the cells of their tools are run again: asked anew, or made as they were asked."""

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import Protocol

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.errors import InputError, ToolNotFoundError
from adk_nb.events.event import Event
from adk_nb.notebook.decisions import how_to_answer, how_to_reask, redefined
from adk_nb.runtime.history import open_interrupts
from adk_nb.runtime.interrupts import APPROVALS, Interrupt

CHANGED = "the tool changed since this was asked"


class Versions(Protocol):
    """Keeps tools as they were before they were redefined."""

    def label(self, one: Interrupt, /) -> str:
        """Which version a call was asked of, as `v2`; empty if that is not known any more."""
        ...

    def as_asked(self, waiting: Sequence[Interrupt], /) -> AbstractContextManager[None]:
        """Within this, the tools of these calls, each of which has a label, are as they were, until the calls have
        their results.
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


def told(one: Interrupt, agent: BaseAgent, events: Sequence[Event], versions: Versions | None, magic: str) -> Changed:
    """What the card of a waiting call is to say now; `agent` is who answers, `magic` as for `how_to_answer`."""
    which = one.number if len(open_interrupts(events, APPROVALS)) > 1 else None
    if not redefined(one, agent, events):
        return Changed("", "", how_to_answer(magic, which)[0])
    return Changed(CHANGED, versions.label(one) if versions else "", how_to_reask(magic, which))


def label_of(versions: Versions | None) -> Callable[[Interrupt], str]:
    """`Versions.label`, where something keeps them."""
    return versions.label if versions else lambda _: ""


def as_asked(
    versions: Versions | None, decided: Collection[str], agent: BaseAgent, events: Sequence[Event], magic: str
) -> AbstractContextManager[None]:
    """Where tools are as they were when what is decided was asked.

    Args:
        versions: What keeps them.
        decided: The ids of what is decided.
        agent: Who answers.
        events: The session's.
        magic: As for `how_to_answer`.

    Raises:
        InputError: An earlier version is not known.
    """
    chosen = [one for one in open_interrupts(events, APPROVALS) if one.id in decided]
    if not chosen:
        return nullcontext()
    if versions is None:
        raise InputError("only cells keep tools as they were; refuse the call with chat.reject(), and ask again")
    for one in chosen:
        if not versions.label(one):
            raise InputError(_none_before(one, told(one, agent, events, versions, magic)))
    return versions.as_asked(chosen)


def _none_before(one: Interrupt, now: Changed) -> str:
    if not now.words:
        return f"{one.call.name} is as it was when this was asked; approve it with {now.typed}"
    gone, no = f"{one.call.name} as it was is not in this kernel any more", f"{now.typed.removesuffix('reask')}no"
    return f"{gone}; let it be asked anew with {now.typed}, or refuse it with {no}"


def ways(
    waiting: Sequence[Interrupt], events: Sequence[Event], magic: str, agent_of: Callable[[Interrupt], BaseAgent]
) -> tuple[str, str]:
    """As `Reply.answer_with`, of what waits in a session with `events`; `agent_of`: who answers each."""
    numbers = [one.number for one in waiting] if len(waiting) > 1 else [None]
    yes, no = how_to_answer(magic, numbers[0])
    if not (magic and waiting):
        return yes, no
    first, *more = [_yes(one, events, magic, which, agent_of) for which, one in zip(numbers, waiting, strict=True)]
    return ", ".join([first, *(one for one in more if one.split()[-1] != first.split()[-1])]), no


def _yes(
    one: Interrupt, events: Sequence[Event], magic: str, which: int | None, agent_of: Callable[[Interrupt], BaseAgent]
) -> str:
    with suppress(ToolNotFoundError):  # its cell was not run yet
        if redefined(one, agent_of(one), events):
            return how_to_reask(magic, which)
    return how_to_answer(magic, which)[0]
