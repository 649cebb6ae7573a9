"""Checkpoints of an invocation: how far each agent got before the run was interrupted."""

from collections.abc import Container, Iterable, Iterator
from typing import Any

from adk_nb.events.event import Event
from adk_nb.events.event_actions import EventActions
from adk_nb.runtime.branches import is_under
from adk_nb.runtime.invocation_context import InvocationContext, RunnableAgent

_AgentKey = tuple[str, str | None]
"""Name and branch of an agent."""


def checkpoint(ctx: InvocationContext, name: str, **state: Any) -> Event:
    """The checkpoint event of an agent that runs others. `state`: its next sub-agent and other values for resuming."""
    return _progress_event(ctx, name, EventActions(agent_state=state))


def ended(ctx: InvocationContext, name: str) -> Event:
    """The event that marks an agent as finished: resuming does not run it again."""
    return _progress_event(ctx, name, EventActions(end_of_agent=True))


def _progress_event(ctx: InvocationContext, name: str, actions: EventActions) -> Event:
    return Event(author=name, branch=ctx.branch, isolation_scope=ctx.isolation_scope, actions=actions)


class Checkpoints:
    """The progress of agents in a resumable app, read from `agent_state` (a step begins) and `end_of_agent`.

    Source of both fields: google-adk 2.13.
    """

    def __init__(self, root: RunnableAgent, events: Iterable[Event]) -> None:
        """`root`: root of the agent tree. `events`: of the invocation, oldest first."""
        self._root = root
        self._states: dict[_AgentKey, dict[str, Any]] = {}
        self._ended: set[_AgentKey] = set()
        self._events: dict[_AgentKey, list[Event]] = {}
        """Events of each agent in its current or last step."""
        for event in events:
            if event.author != "user":
                self._read(event)

    def is_ended(self, agent: RunnableAgent, branch: str | None) -> bool:
        """True if the agent has marked its end."""
        return (agent.name, branch) in self._ended

    def state_of(self, agent: RunnableAgent, branch: str | None) -> dict[str, Any] | None:
        """The last checkpoint of an agent that runs others. None: it has not started."""
        return self._states.get((agent.name, branch))

    def unfinished_agent(self, agent: Any, branch: str | None) -> Any:
        """The agent to resume: `agent`, or the agent it transferred to. None: it is finished."""
        # `seen`: two finished agents may have transferred to each other.
        current, seen = agent, set[str]()
        while current is not None and current.name not in seen:
            events = self._events.get((current.name, branch))
            last = events[-1] if events else None
            successor = last.actions.transfer_to_agent if last else None
            has_answered = last is not None and current.is_llm and (_is_answer(last) or bool(successor))
            if not (has_answered or self.is_ended(current, branch)):
                break
            seen.add(current.name)
            current = current.root_agent.find_agent(successor) if successor else None
        return current

    def events_of(self, agent: RunnableAgent, branch: str | None) -> Iterator[Event]:
        """The events of `agent` and its sub-agents in their current or last step."""
        for (name, event_branch), events in self._events.items():
            if is_under(event_branch, branch) and agent.find_agent(name):
                yield from events

    def _read(self, event: Event) -> None:
        key = (event.author, event.branch)
        actions = event.actions
        if actions.end_of_agent:
            self._ended.add(key)
            return
        events = self._events.get(key)
        if event.error_code and not event.content and (key in self._ended or (events and _is_answer(events[-1]))):
            return  # an error after the agent had ended, attributed to the last speaker
        self._ended.discard(key)  # the agent runs again, as in a loop
        if actions.agent_state is None:
            self._events.setdefault(key, []).append(event)
            if successor := actions.transfer_to_agent:
                self._forget({successor}, event.branch)  # a transfer starts that agent anew
        elif event.content is None:
            self._states[key] = actions.agent_state
            step = actions.agent_state.get("current_sub_agent")
            if isinstance(step, str) and step:
                # That sub-agent of the author starts, with all agents under it.
                parent = self._root.find_agent(event.author)
                pending = [agent for agent in (parent.sub_agents if parent else ()) if agent.name == step]
                names = {step}
                while pending:
                    agent = pending.pop()
                    names.add(agent.name)
                    pending += agent.sub_agents
                self._forget(names, event.branch)
            elif not actions.agent_state:  # a parallel agent: all sub-agents start, each on its own branch
                self._forget(None, f"{event.branch}.{event.author}" if event.branch else event.author)

    def _forget(self, names: Container[str] | None, branch: str | None) -> None:
        """Drop the progress of the named agents (None: all) on `branch` and below it."""
        for stored in (self._states, self._events):
            for name, agent_branch in list(stored):
                if (names is None or name in names) and is_under(agent_branch, branch):
                    del stored[name, agent_branch]
        restarted = {key for key in self._ended if (names is None or key[0] in names) and is_under(key[1], branch)}
        self._ended -= restarted


def _is_answer(event: Event) -> bool:
    return event.is_final_response() and not (event.error_code or event.long_running_tool_ids)
