"""The checkpoints of an invocation: how far each of its agents was when the run was left."""

from collections.abc import Container, Iterable, Iterator
from typing import Any

from adk_nb.events.event import Event
from adk_nb.events.event_actions import EventActions
from adk_nb.runtime.branches import is_under
from adk_nb.runtime.invocation_context import InvocationContext, Runs

_Place = tuple[str, str | None]
"""Name and branch of an agent at work."""


def checkpoint(ctx: InvocationContext, name: str, **state: Any) -> Event:
    """The checkpoint of an agent that runs others: which comes next, and what else it needs to resume there."""
    return _mark(ctx, name, EventActions(agent_state=state))


def ended(ctx: InvocationContext, name: str) -> Event:
    """The event that marks an agent as done: it is not run again."""
    return _mark(ctx, name, EventActions(end_of_agent=True))


def _mark(ctx: InvocationContext, name: str, actions: EventActions) -> Event:
    return Event(author=name, branch=ctx.branch, isolation_scope=ctx.isolation_scope, actions=actions)


class Checkpoints:
    """Read from the events that agents leave in a resumable app: `agent_state` where one begins a step, `end_of_agent`
    where one has done its work. Source of both: google-adk 2.13.
    """

    def __init__(self, root: Runs, events: Iterable[Event]) -> None:
        """`root`: of the tree of agents. `events`: of the invocation, oldest first."""
        self._root = root
        self._states: dict[_Place, dict[str, Any]] = {}
        self._ended: set[_Place] = set()
        self._said: dict[_Place, list[Event]] = {}
        """What each has said in the step that it is in, or was in last."""
        for event in events:
            if event.author != "user":
                self._note(event)

    def is_ended(self, agent: Runs, branch: str | None) -> bool:
        """True if the agent has marked its end."""
        return (agent.name, branch) in self._ended

    def state_of(self, agent: Runs, branch: str | None) -> dict[str, Any] | None:
        """What an agent that runs others noted of how far it is. None: nothing; it has not begun."""
        return self._states.get((agent.name, branch))

    def unfinished_agent(self, agent: Any, branch: str | None) -> Any:
        """Who is to go on with what `agent` was at: itself, or one it had handed over to. None: it is done."""
        one, seen = agent, set[str]()
        while one is not None and one.name not in seen and self._is_done(one, branch):
            seen.add(one.name)
            said = self._said.get((one.name, branch))
            over = said[-1].actions.transfer_to_agent if said else None
            one = one.root_agent.find_agent(over) if over else None
        return one

    def events_of(self, agent: Runs, branch: str | None) -> Iterator[Event]:
        """The events of `agent`, and of those under it, in the step that it is in, or was in last."""
        for (name, where), said in self._said.items():
            if is_under(where, branch) and agent.find_agent(name):
                yield from said

    def _is_done(self, agent: Runs, branch: str | None) -> bool:
        if self.is_ended(agent, branch):
            return True
        last = (self._said.get((agent.name, branch)) or [None])[-1]
        if last is None or not agent.is_llm:
            return False
        return _answers(last) or bool(last.actions.transfer_to_agent)

    def _note(self, event: Event) -> None:
        place = (event.author, event.branch)
        actions = event.actions
        if actions.end_of_agent:
            self._ended.add(place)
            return
        said = self._said.get(place)
        if event.error_code and not event.content and (place in self._ended or (said and _answers(said[-1]))):
            return  # it tells of what came after, by who spoke last
        self._ended.discard(place)
        if actions.agent_state is None:
            self._said.setdefault(place, []).append(event)
            if over := actions.transfer_to_agent:
                self._forget({over}, event.branch)
        elif event.content is None:
            self._states[place] = actions.agent_state
            step = actions.agent_state.get("current_sub_agent")
            if step:
                self._forget(self._under(event.author, step), event.branch)
            elif not actions.agent_state:  # all of its agents begin, each on a branch of its own
                self._forget(None, f"{event.branch}.{event.author}" if event.branch else event.author)

    def _under(self, name: str, step: str) -> set[str]:
        """The names of the agents that begin where one comes to that `step`."""
        above = self._root.find_agent(name)
        left = [one for one in (above.sub_agents if above else ()) if one.name == step]
        names = {step}
        while left:
            one = left.pop()
            names.add(one.name)
            left += one.sub_agents
        return names

    def _forget(self, names: Container[str] | None, branch: str | None) -> None:
        """What is known of the agents of these names, None for all, on `branch` and under it."""
        for kept in (self._states, self._said):
            for name, where in list(kept):
                if (names is None or name in names) and is_under(where, branch):
                    del kept[name, where]
        gone = {one for one in self._ended if (names is None or one[0] in names) and is_under(one[1], branch)}
        self._ended -= gone


def _answers(event: Event) -> bool:
    return event.is_final_response() and not (event.error_code or event.long_running_tool_ids)
