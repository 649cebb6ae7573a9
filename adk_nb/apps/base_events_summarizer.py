"""The base class of event summarizers."""

from abc import ABC, abstractmethod

from adk_nb.events.event import Event


class BaseEventsSummarizer(ABC):
    """Summarizes events. Subclass it to bring your own."""

    @abstractmethod
    async def maybe_summarize_events(self, *, events: list[Event]) -> Event | None:
        """Summarize `events`.

        Args:
            events: Oldest first; an earlier summary among them is an event with author `model`.

        Returns:
            An event with author `user` and without content, whose `actions.compaction` has the summary and the times of
            the first and the last event. None: do not compact.
        """
