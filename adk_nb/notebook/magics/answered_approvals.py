"""The approvals that were answered last in a session, by a click for example, in text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from adk_nb.events.event import Event
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.notebook.past_turns import turns_of
from adk_nb.notebook.view.call_shown import call_line
from adk_nb.notebook.view.plain_text import one_line
from adk_nb.runtime.approvals import REQUEST, read_answer
from adk_nb.runtime.history import open_interrupts
from adk_nb.runtime.interrupts import APPROVALS, Interrupt


@dataclass(frozen=True)
class AnsweredApproval:
    """A call, and the decision on it."""

    asked: Interrupt
    decision: ToolConfirmation

    @property
    def args(self) -> dict[str, Any]:
        """The arguments that were decided on."""
        changed = self.decision.args
        return (self.asked.call.args or {}) if changed is None else changed

    def is_like(self, yes: bool, edits: Mapping[str, Any], payload: Mapping[str, Any]) -> bool:
        """Whether a yes or a no with these changes would have been the same decision."""
        decided: Any = self.decision.payload
        sent = cast(dict[str, Any], decided) if isinstance(decided, dict) else {}
        return (
            self.decision.confirmed is bool(yes)
            and all(self.args.get(name) == value for name, value in edits.items())
            and all(sent.get(name) == value for name, value in payload.items())
        )

    def __str__(self) -> str:
        call = call_line(self.asked.call.name or "", self.args)
        verb = "approved" if self.decision.confirmed else "rejected"
        by = f" by {one_line(self.decision.by, 100)}" if self.decision.by else ""
        return f"{call} was {verb} already{by}"


def last_answered(events: Sequence[Event]) -> list[AnsweredApproval]:
    """What the last message of the session decided, if it answered approvals; else nothing."""
    turns = turns_of(events)
    if not turns or turns[-1].undone:
        return []
    asked: dict[str, Interrupt] = {}
    answered: list[AnsweredApproval] = []
    for event in turns[-1].events:
        asked |= {key: one for one in open_interrupts([event], APPROVALS) for key in one.answer_ids}
        responses = [one for one in event.get_function_responses() if one.name == REQUEST and event.author == "user"]
        if found := [(asked[one.id], one.response) for one in responses if one.id and one.id in asked]:
            answered = [AnsweredApproval(request, read_answer(response or {})) for request, response in found]
    return answered
