"""The open tasks of a session: agents that were called as tools, and talk with the user until they hand back."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.runtime.branches import calls_to, is_under


@dataclass(slots=True)
class _Task:
    agent: str
    branch: str
    has_spoken: bool
    invocation_id: str
    asked_by: Event | None
    """The event with which it leaves the rest to the user. None: it is at work."""


class OpenTasks:
    """Work that a call gave to an agent, by the id of the call; who worked last is the last."""

    def __init__(self) -> None:
        self._open: dict[str, _Task] = {}

    @property
    def is_empty(self) -> bool:
        """True: no work is open."""
        return not self._open

    def read(self, event: Event, responses: Sequence[types.FunctionResponse]) -> None:
        """Take in the next event."""
        for response in responses if self._open else ():
            self._open.pop(response.id or "", None)
        key = event.isolation_scope
        if event.author == "user" and key in self._open and not responses:
            self._open[key].asked_by = None
        if not key or event.author == "user" or not event.branch:
            return
        callers = calls_to(event.branch)
        if callers and callers[-1][1] == key:
            before = self._open.pop(key, None)
            asks = speaks(event)
            spoken = asks or (before is not None and before.has_spoken)
            self._open[key] = _Task(callers[-1][0], event.branch, spoken, event.invocation_id, event if asks else None)

    def asking(self) -> tuple[str, str, Event] | None:
        """Id of the call and agent of the task that the user's next words go to, and its event. None: it is at work."""
        key, task = next(reversed(self._open.items()), ("", None))
        return (key, task.agent, task.asked_by) if task and task.asked_by else None

    def of(self, agents: Collection[str], branch: str | None, *, talking: bool, run: str | None) -> dict[str, str]:
        """See `History.tasks`."""
        return {
            key: task.branch
            for key, task in self._open.items()
            if task.agent in agents
            and is_under(task.branch, branch)
            and (task.has_spoken or not talking)
            and run in (None, task.invocation_id)
        }


def speaks(event: Event) -> bool:
    """True if an event is words to the user, with which its agent leaves the rest to them."""
    return bool(event.text) and not event.error_code and event.is_final_response()
