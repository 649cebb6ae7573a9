"""How an agent that runs others goes about it: what it notices of each, and where it goes on after an answer."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.events.event import Event
from adk_nb.models.signals import EXIT_FLOW
from adk_nb.runtime import approvals, credentials, inputs
from adk_nb.runtime.branches import is_under
from adk_nb.runtime.called import outermost, speaker
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.runtime.rewind import surviving
from adk_nb.runtime.tasks import unfinished


class Course:
    """One activation of an agent under another: whether it waits for someone, and whether it wants to leave a loop."""

    def __init__(self, ctx: InvocationContext, agent: BaseAgent, asker: BaseAgent | None = None) -> None:
        """`ctx`: of the agent above. `asker`: the one in `agent` whose call the user's message answers."""
        self._agent = agent
        self._asker = asker
        self._ctx = ctx if asker else ctx.after_answers()
        self.escalates = False
        """An event said so."""
        self.exits = False
        """An event said that the task of the agent is complete (`exit_flow`)."""
        self.said = ""
        """The words of its last answer."""
        self.waits = False
        """A call has yet to be answered, from outside the run."""

    async def events(self) -> AsyncGenerator[Event, None]:
        """What it says, as it comes."""
        late = False
        agent = outermost(self._asker, self._agent.parent_agent) if self._asker else self._agent
        async with aclosing(agent.run_async(self._ctx)) as events:
            async for event in events:
                self.escalates = self.escalates or _escalates(event, self._agent)
                self.exits = self.exits or exits(event, self._agent)
                self.said = event.text if event.is_answer() else self.said
                late = late or bool(event.long_running_tool_ids)
                yield event
        events = self._ctx.session.events
        self.waits = (late or bool(self._asker)) and _waits(self._ctx.branch, events)
        if not self.waits:
            self.waits = bool(unfinished(self._agent, events, self._ctx.branch, talking=True))


def asker_in(agent: BaseAgent, ctx: InvocationContext) -> BaseAgent | None:
    """`agent`, or the one under it, whose call or request the user's message answers; on the branch of `ctx`."""
    answered = ctx.calls_answered
    return agent.find_agent(speaker(ctx.session.events, answered, ctx.branch)) if answered else None


def child_with(agent: BaseAgent, one: BaseAgent) -> BaseAgent:
    """The agent directly under `agent` that is `one`, or has it under it."""
    return next(child for child in agent.sub_agents if child is one or child.find_sub_agent(one.name) is one)


def exits(event: Event, agent: BaseAgent) -> bool:
    """True if `agent`, or one that it handed over to, says that its task is complete; not one that it decides of."""
    if not event.custom_metadata or event.custom_metadata.get(EXIT_FLOW) is not True:
        return False
    one = agent.find_agent(event.author)
    while one is not None and not one.runs_others:
        if one is agent:
            return True
        one = one.parent_agent
    return False


def _waits(branch: str | None, events: Sequence[Event]) -> bool:
    """True if something on `branch` or under it waits for an answer, of what was asked since the user's last words."""
    events = surviving(events)
    recent = events[_last_words(events) :]
    asked = [*approvals.pending(recent), *credentials.pending(recent), *inputs.pending(recent)]
    return any(is_under(one.branch, branch) for one in asked)


def _last_words(events: Sequence[Event]) -> int:
    found = (at for at in range(len(events) - 1, -1, -1) if events[at].author == "user" and events[at].text)
    return next(found, 0)


def _escalates(event: Event, agent: BaseAgent) -> bool:
    """True if an event in `agent` asks to leave a loop, and no loop between keeps that to itself."""
    if not event.actions.escalate:
        return False
    above = agent.find_agent(event.author)
    while above is not None:
        if not getattr(above, "propagate_escalate", True):
            return False
        if above is agent:
            return True
        above = above.parent_agent
    return True
