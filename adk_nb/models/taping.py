"""Whether the answers of all models are recorded or replayed just now, and what does it."""

from typing import Protocol

from adk_nb.models.base_llm import BaseLlm


class Tape(Protocol):
    """Stands between agents and their models."""

    def of(self, model: str | BaseLlm, agent: str, /) -> BaseLlm:
        """What is asked in place of a model, or of the one of that name (empty: the default), for an agent."""
        ...


now: Tape | None = None
"""None: models are asked themselves."""
