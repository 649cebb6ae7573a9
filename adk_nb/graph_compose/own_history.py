"""The session as one agent of a workflow sees it: what the user said, and what the agent did itself.

What other agents found reaches it through the state alone. Source: Graph Compose's documentation, in which the third
agent of a sequence, and an agent in a loop's third pass, are sent the user's message and nothing else.
"""

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.loop_agent import LoopAgent
from adk_nb.events.event import Event
from adk_nb.runtime.history import history_of
from adk_nb.sessions.session import Session

ITERATION = "current_agent_loop_iteration"
"""State key of the pass that a loop makes, from 0."""
_TRANSFER = "transfer_to_agent"


def own_session(session: Session, agent: BaseAgent) -> Session:
    """A copy with the events that `agent` is to see, and with the same state. In a loop: of what it did itself, only
    this pass. The caller adds the events that come.
    """
    events, calls = history_of(session).events, set[str | None]()
    since = _begin_of_pass(agent, events)
    seen: list[Event] = []
    for at, event in enumerate(events):
        if event.author == agent.name:
            if at < since:
                continue
            calls.update(call.id for call in event.get_function_calls())
        elif not (_is_said(event, calls) if event.author == "user" else _hands_over(event, agent)):
            continue
        seen.append(event)
    return session.model_copy(update={"events": seen, "views": {}})


def loop_around(agent: BaseAgent) -> LoopAgent | None:
    """The innermost loop that `agent` is in."""
    above = agent.parent_agent
    while above is not None and not isinstance(above, LoopAgent):
        above = above.parent_agent
    return above


def _begin_of_pass(agent: BaseAgent, events: list[Event]) -> int:
    loop = loop_around(agent)
    if loop is None:
        return 0
    found = (
        at
        for at in range(len(events) - 1, -1, -1)
        if events[at].author == loop.name and isinstance(events[at].actions.state_delta.get(ITERATION), int)
    )
    return next(found, 0)


def _is_said(event: Event, calls: set[str | None]) -> bool:
    """True for words of the user, and for answers to the agent's own calls."""
    answers = event.get_function_responses()
    return not answers or any(one.id in calls for one in answers)


def _hands_over(event: Event, agent: BaseAgent) -> bool:
    if event.actions.transfer_to_agent == agent.name:
        return True
    names = (agent.name, getattr(agent, "id", agent.name))
    return any(
        call.name == _TRANSFER and (call.args or {}).get("agent_name") in names for call in event.get_function_calls()
    )
