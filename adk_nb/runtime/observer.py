"""The observer of runs: called where agents, nodes, model calls, tool calls and evaluations begin and end.

There is none by default. A caller looks at `registered` and calls nothing if it is None.
"""

from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from adk_nb.events.event import Event
from adk_nb.models.base_llm import BaseLlm
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.runtime.context import Context
from adk_nb.runtime.invocation_context import InvocationContext, RunnableAgent


class ObservedTool(Protocol):
    """The members that an observer reads of a tool."""

    @property
    def name(self) -> str:
        """Name that the model calls."""
        ...

    @property
    def description(self) -> str:
        """Description for the model."""
        ...


class ObservedScore(Protocol):
    """The members that an observer reads of a score."""

    @property
    def value(self) -> float | None:
        """The score. None: not evaluated."""
        ...

    @property
    def verdict(self) -> str:
        """`passed`, `failed`, or the reason why there is no verdict."""
        ...

    @property
    def reason(self) -> str:
        """Explanation, or empty."""
        ...


Scores = TypeVar("Scores", bound=Mapping[str, ObservedScore])


class Observer(Protocol):
    """Each method returns its last argument or a wrapper with the same results, and may record it. None may raise."""

    def agent(
        self, agent: RunnableAgent, ctx: InvocationContext, events: AsyncGenerator[Event, None], /
    ) -> AsyncGenerator[Event, None]:
        """One activation of an agent, in the context of its caller."""
        ...

    def node(
        self, name: str, ctx: InvocationContext, path: str, events: AsyncGenerator[Event, None], /
    ) -> AsyncGenerator[Event, None]:
        """One run of a graph's node that is neither an agent nor a tool."""
        ...

    def model_call(
        self,
        ctx: InvocationContext | None,
        model: BaseLlm,
        request: LlmRequest,
        responses: AsyncGenerator[LlmResponse, None],
        /,
        *,
        streams: bool = False,
    ) -> AsyncGenerator[LlmResponse, None]:
        """One call of a model with its retries. `ctx` None: it was made outside of a run."""
        ...

    def tool_call(
        self, tool: ObservedTool, args: Mapping[str, Any], context: Context, result: Awaitable[Any], /
    ) -> Awaitable[Any]:
        """One call of a tool, without the wait for an approval."""
        ...

    def evaluation(self, case: str, events: Sequence[Event], scores: Awaitable[Scores], /) -> Awaitable[Scores]:
        """The scoring of one run of a case; `events` are those of the run."""
        ...


registered: Observer | None = None
"""None: nothing is observed."""
