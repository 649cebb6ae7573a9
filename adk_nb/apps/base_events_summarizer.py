"""What every summariser of events can do."""

from abc import ABC, abstractmethod

from adk_nb.events.event import Event


class BaseEventsSummarizer(ABC):
    """Makes one event out of many. Subclass it to bring your own."""

    @abstractmethod
    async def maybe_summarize_events(self, *, events: list[Event]) -> Event | None:
        """Sum up `events`.

        Args:
            events: Oldest first; an older summary among them is an event whose author is `model`.

        Returns:
            An event of author `user` without a content of its own, whose `actions.compaction` has the summary and the
            time of the first and the last event. None: the events stay as they are.
        """
