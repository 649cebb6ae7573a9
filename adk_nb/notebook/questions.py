"""What a person says in a chat: words, or the answer to what an agent asked."""

from collections.abc import Sequence
from typing import Any

from adk_nb import types
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.errors import InputError, PendingError
from adk_nb.events.event import Event
from adk_nb.notebook.decisions import waiting_words
from adk_nb.notebook.letting_in import open_words
from adk_nb.notebook.view import input_words
from adk_nb.notebook.view.event_words import Verdict
from adk_nb.runtime import interrupts
from adk_nb.runtime.history import History, open_interrupts
from adk_nb.runtime.interrupts import APPROVALS, CREDENTIALS, INPUTS, Interrupt
from adk_nb.runtime.nested_calls import recipient
from adk_nb.tools import input_answer


def message(
    text: Any, events: Sequence[Event], agent: BaseAgent, magic: str, attached: Sequence[types.Part] = ()
) -> types.Content:
    """`text` as a message to `agent`: the answer to the oldest question that it, or one that it called, has asked.

    Raises:
        InputError: It is no text, or no answer to that question; or something is attached to an answer.
        PendingError: An approval is open, or a tool waits to be let in.
    """
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"a message is text with something in it, and {text!r:.60} is not; write chat.ask('...')")
    if waiting := open_interrupts(events, APPROVALS):
        raise PendingError(waiting_words(waiting, magic))
    if asked := open_interrupts(events, CREDENTIALS):
        raise PendingError(open_words(asked, magic))
    for one in open_interrupts(events, INPUTS):
        if one.is_question and agent.find_agent(recipient(History(events), [one.id])):
            if attached:
                raise InputError("this answers what was asked, and nothing can be attached to that; answer it first")
            return _of(interrupts.answer(one, input_answer.typed(one, text)))
    return _of(types.Part(text=text), *attached)


def who_asks(events: Sequence[Event]) -> tuple[str, str] | None:
    """The oldest open question, by its id, and the agent that hears first of the answer. None: nothing is asked."""
    asked = next(iter(open_questions(events)), None)
    return (asked.id, recipient(History(events), [asked.id])) if asked else None


def node_approval(events: Sequence[Event]) -> Interrupt | None:
    """The oldest open question whether a node of a graph may run. None: there is none, or a call waits for approval."""
    if open_interrupts(events, APPROVALS):
        return None
    return next((one for one in open_interrupts(events, INPUTS) if one.kind == "node_approval"), None)


def answer(value: Any, events: Sequence[Event], which: str | int | None, session: str) -> types.Content:
    """`value` as the answer to what waits: the one with that id or at that place, 1 for the oldest; None: the oldest.

    Raises:
        InputError: Nothing waits, or that does not; or it is no answer to it.
    """
    waiting = open_interrupts(events, INPUTS)
    if not waiting:
        raise InputError(f"nothing waits for an answer or an outcome in session {session!r}")
    for number, one in enumerate(waiting, 1):
        if which in (None, one.id, number):
            asked = one.is_question and isinstance(value, str)
            message = _of(interrupts.answer(one, input_answer.typed(one, value) if asked else value))
            input_answer.check(message, History(events))
            return message
    raise InputError(f"call {which!r} waits for no answer; it has one already, or there never was such a call")


def open_questions(events: Sequence[Event]) -> list[Interrupt]:
    """The questions that wait for an answer, oldest first."""
    return [one for one in open_interrupts(events, INPUTS) if one.is_question]


def open_requests(events: Sequence[Event]) -> list[str]:
    """Ids of the approvals, the credential requests and the questions that wait for the user."""
    waiting = (*open_interrupts(events, APPROVALS), *open_interrupts(events, CREDENTIALS), *open_questions(events))
    return [one.id for one in waiting]


def verdicts(message: types.Content | None, events: Sequence[Event], where: str) -> dict[str, Verdict]:
    """The verdicts of the open questions that `message` answers, by id. `where`: as of `Verdict`."""
    responses = [part.function_response for part in (message and message.parts) or () if part.function_response]
    asked = {one.id: one for one in open_questions(events)} if responses else {}
    return {
        one.id: input_words.verdict_of(one, interrupts.answered_value(response), where)
        for response in responses
        if (one := asked.get(response.id or ""))
    }


def shown(events: Sequence[Event], text: str) -> list[Interrupt]:
    """What a turn that ended with `text` waits for: open questions, and outcomes without which there is no answer."""
    return [one for one in open_interrupts(events, INPUTS) if one.is_question or not text]


def _of(*parts: types.Part) -> types.Content:
    return types.Content(role="user", parts=[*parts])
