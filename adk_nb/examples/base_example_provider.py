"""Where examples come from that fit what is asked: the interface."""

from abc import ABC, abstractmethod

from adk_nb.examples.example import Example


class BaseExampleProvider(ABC):
    """Finds examples. Subclass it to look them up."""

    @abstractmethod
    def get_examples(self, query: str) -> list[Example]:
        """The examples that fit `query`, what the user said. Asked before each call of the model: be quick."""
