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
        if not key or event.author == "user" or not event.branch:
            return
        callers = calls_to(event.branch)
        if callers and callers[-1][1] == key:
            before = self._open.pop(key, None)
            spoken = speaks(event) or (before is not None and before.has_spoken)
            self._open[key] = _Task(callers[-1][0], event.branch, spoken, event.invocation_id)

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
