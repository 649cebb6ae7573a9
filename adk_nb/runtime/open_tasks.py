"""The open tasks of a session: agents called as tools that talk with the user until they return a result."""

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
    """The event of its last message to the user. None: it is working."""


class OpenTasks:
    """Open tasks by call id; the most recently active is last."""

    def __init__(self) -> None:
        self._open: dict[str, _Task] = {}

    @property
    def is_empty(self) -> bool:
        """True: no task is open."""
        return not self._open

    def read(self, event: Event, responses: Sequence[types.FunctionResponse]) -> None:
        """Read the next event."""
        for response in responses if self._open else ():
            self._open.pop(response.id or "", None)
        key = event.isolation_scope
        if event.author == "user" and key in self._open and not responses:
            self._open[key].asked_by = None
        if not key or event.author == "user" or not event.branch:
            return
        callers = calls_to(event.branch)
        if callers and callers[-1][1] == key:
            previous = self._open.pop(key, None)
            has_question = is_message_to_user(event)
            has_spoken = has_question or (previous is not None and previous.has_spoken)
            self._open[key] = _Task(
                callers[-1][0], event.branch, has_spoken, event.invocation_id, event if has_question else None
            )

    def newest_question(self) -> tuple[str, str, Event] | None:
        """Call id, agent and message of the task that waits for the user's text. None: no task waits."""
        key, task = next(reversed(self._open.items()), ("", None))
        return (key, task.agent, task.asked_by) if task and task.asked_by else None

    def matching(
        self, agents: Collection[str], branch: str | None, *, has_spoken: bool, run: str | None
    ) -> dict[str, str]:
        """Call id -> branch of the matching tasks; see `History.tasks`."""
        return {
            key: task.branch
            for key, task in self._open.items()
            if task.agent in agents
            and is_under(task.branch, branch)
            and (task.has_spoken or not has_spoken)
            and run in (None, task.invocation_id)
        }


def is_message_to_user(event: Event) -> bool:
    """True if an event is a final text for the user."""
    return bool(event.text) and not event.error_code and event.is_final_response()
