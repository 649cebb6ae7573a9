"""What waits inside a team goes on in that team as it was then, and so does a turn that had more than its agent has."""

from collections.abc import Iterable, Sequence
from typing import Any, cast

from adk_nb import types
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.events.event import Event
from adk_nb.runtime import inputs
from adk_nb.runtime.called import waiting
from adk_nb.runtime.tasks import talking_node, unfinished


class WaitingTeams:
    """The teams of one conversation that wait for something."""

    def __init__(self) -> None:
        self._by_id: dict[str, BaseAgent] = {}

    def note(self, agent: BaseAgent, events: Sequence[Event], *, lent: bool = False) -> None:
        """Remember who waits after a turn of `agent`.

        Args:
            agent: Who was at work.
            events: All of the session.
            lent: It was as it is for this turn alone, or is no more.
        """
        if not (agent.members or lent or self._by_id):
            return
        keys = [*waiting(agent, events), *(one.id for one in inputs.pending(events)), talking_node(events)]
        new = agent if agent.members or lent else None
        teams = {key: self._by_id.get(key, new) for key in keys if key}
        self._by_id = {key: team for key, team in teams.items() if team}

    def of(self, answered: Any) -> BaseAgent | None:
        """The team that waits for what is named, by ids. None: none does."""
        keys = cast(Iterable[Any], answered) if isinstance(answered, Iterable) else ()
        return next((self._by_id[key] for key in keys if key in self._by_id), None)

    def of_words(self, events: Sequence[Event]) -> BaseAgent | None:
        """The team that waits for what the user says next. None: none does."""
        asked = [talking_node(events) or "", *(one.id for one in inputs.pending(events) if one.is_question)]
        tasks = (key for key, team in self._by_id.items() if key in unfinished(team, events))
        return self.of([*asked, *tasks])

    def of_message(self, message: types.Content, events: Sequence[Event]) -> BaseAgent | None:
        """The team that a message is for. None: none of them."""
        responses = [part.function_response for part in message.parts or () if part.function_response]
        return self.of(one.id or "" for one in responses) if responses else self.of_words(events)
