"""What waits goes on in its agent as that was then: a new definition is for new messages."""

from collections.abc import Iterable, Sequence
from typing import Any, cast

from adk_nb import types
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.events.event import Event
from adk_nb.runtime.history import History
from adk_nb.runtime.interrupts import INPUTS
from adk_nb.runtime.nested_calls import open_tasks, waiting


class WaitingTeams:
    """The agents and teams of one conversation that wait for something."""

    def __init__(self) -> None:
        self._by_id: dict[str, BaseAgent] = {}
        self._about: dict[int, dict[str, Any]] = {}
        """Of those agents, by their `id`."""

    def note(self, agent: BaseAgent, events: Sequence[Event], about: dict[str, Any]) -> None:
        """Remember who waits after a turn of `agent`.

        Args:
            agent: Who was at work.
            events: All of the session.
            about: What was noted on the events of the turn.
        """
        history = History(events)
        asked = (interrupt.id for interrupt in history.interrupts(kinds=INPUTS))
        keys = [*waiting(agent, history), *asked, history.talking_node()]
        self._by_id = {key: self._by_id.get(key, agent) for key in keys if key}
        told = {**self._about, id(agent): about}
        self._about = {id(one): told[id(one)] for one in self._by_id.values()}

    def about(self, agent: BaseAgent) -> dict[str, Any] | None:
        """What is noted on the events of a run of an agent that waits. None: it does not."""
        return self._about.get(id(agent))

    def of(self, answered: Any) -> BaseAgent | None:
        """The team that waits for what is named, by ids. None: none does."""
        keys = cast(Iterable[Any], answered) if isinstance(answered, Iterable) else ()
        return next((self._by_id[key] for key in keys if key in self._by_id), None)

    def of_words(self, events: Sequence[Event]) -> BaseAgent | None:
        """The team that waits for what the user says next. None: none does."""
        history = History(events)
        questions = (interrupt.id for interrupt in history.interrupts(kinds=INPUTS) if interrupt.is_question)
        asked = [history.talking_node() or "", *questions]
        tasks = (key for key, team in self._by_id.items() if key in open_tasks(team, history))
        return self.of([*asked, *tasks])

    def of_message(self, message: types.Content, events: Sequence[Event]) -> BaseAgent | None:
        """The team that a message is for. None: none of them."""
        responses = [part.function_response for part in message.parts or () if part.function_response]
        return self.of(one.id or "" for one in responses) if responses else self.of_words(events)
