"""A finished run of a case, as metrics see it."""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from adk_nb import types
from adk_nb.errors import MissingExtraError
from adk_nb.evaluation.cases import Case
from adk_nb.evaluation.eval_case import IntermediateData, Invocation, InvocationEvent, InvocationEvents, content_text
from adk_nb.events.event import Event
from adk_nb.events.requests import REQUESTS
from adk_nb.events.usage import price, total_usage, usages_of


class CaseRun:
    """One run of a case: its events and its session's last state."""

    def __init__(
        self, case: Case, events: Sequence[Event], state: Mapping[str, Any], *, seconds: float, error: str = ""
    ) -> None:
        self.case = case
        self.events = events
        """The session's events, oldest first, the user's included."""
        self.state = state
        """The session's state at the end."""
        self.seconds = seconds
        """Duration of the whole conversation."""
        self.error = error
        """Why the run failed; empty if it did not."""

    def __repr__(self) -> str:
        return f"CaseRun({self.case.id!r}, answer={self.answer!r:.60})"

    @property
    def agent(self) -> str:
        """Name of the agent that began to answer; empty if none did."""
        return next((event.author for event in self.events if event.author != "user"), "")

    @cached_property
    def turns(self) -> list[Invocation]:
        """The conversation in google-adk's form, a turn for each message of the user."""
        return invocations_of(self.events)

    @cached_property
    def answer(self) -> str:
        """Text of the last answer; of a graph that ends with a function, that function's output."""
        text = content_text(self.turns[-1].final_response) if self.turns else ""
        last = next((event for event in reversed(self.events) if event.author != "user"), None)
        if text or last is None or last.output is None:
            return text
        return last.output if isinstance(last.output, str) else json.dumps(last.output, ensure_ascii=False, default=str)

    @cached_property
    def output(self) -> Any:
        """The last answer parsed as JSON. None: it is not JSON."""
        structured = [event.output for event in self.events if event.output is not None]
        # An agent with an output schema; the text of any other may be JSON by itself.
        if structured:
            return structured[-1]
        try:
            return json.loads(self.answer)
        except ValueError:
            return None

    @cached_property
    def calls(self) -> list[types.FunctionCall]:
        """The tool calls of all agents, oldest first, without requests for approvals and credentials."""
        return [
            call
            for event in self.events
            if event.author != "user" and not event.partial
            for call in event.get_function_calls()
            if call.name not in REQUESTS
        ]

    @property
    def approvals(self) -> list[str]:
        """Names of the tools whose calls asked for approval."""
        call_names = {call.id: call.name or "" for call in self.calls}
        asked = [key for event in self.events for key in event.actions.requested_tool_confirmations]
        return [call_names.get(key, "") for key in asked]

    @property
    def model_calls(self) -> int:
        """Number of answers of models; 0 if their services count no tokens."""
        return sum(1 for event in self.events for _ in usages_of(event))

    @property
    def tokens(self) -> int:
        """All tokens, as the services counted them."""
        return sum(usage.tokens.total_token_count or 0 for event in self.events for usage in usages_of(event))

    @property
    def cost_usd(self) -> float | None:
        """US dollars, by the table of prices. None: the table is not installed, or a model's price is unknown."""
        try:
            return cost_of(self.events)
        except MissingExtraError:
            return None


def cost_of(events: Iterable[Event]) -> float | None:
    """US dollars that the events' model calls cost; replayed answers cost nothing. None: a price is unknown.

    Raises:
        MissingExtraError: The table of prices is not installed.
    """
    total = 0.0
    for event in events:
        for usage in usages_of(event):
            # A replay has the recorded token counts, and was not paid again.
            cost = 0.0 if usage.is_replayed else price(usage.model, usage.tokens)
            if cost is None:
                return None
            total += cost
    return total


def unpriced_model(events: Iterable[Event]) -> str | None:
    """Name of the first model whose price is unknown. None: there is none."""
    for event in events:
        for usage in usages_of(event):
            if not usage.is_replayed and price(usage.model, usage.tokens) is None:
                return usage.model or "?"
    return None


def invocations_of(events: Iterable[Event]) -> list[Invocation]:
    """Events as google-adk's turns: the last final answer of each invocation, and what came before it.

    Source: google-adk 2.13, `EvaluationGenerator.convert_events_to_eval_invocations`.
    """
    by_id: dict[str, list[Event]] = {}
    for event in events:
        # A partial event's text comes again in the complete one.
        if event.invocation_id and not event.partial:
            by_id.setdefault(event.invocation_id, []).append(event)
    turns = [_invocation(key, group) for key, group in by_id.items()]
    return [turn for turn in turns if turn is not None]


def _invocation(invocation_id: str, events: Sequence[Event]) -> Invocation | None:
    user_content, final, steps = None, None, list[Event]()
    timestamp = events[0].timestamp
    for event in events:
        if event.author.lower() == "user":
            user_content = event.content or user_content
            continue
        if not event.content or not event.content.parts:
            continue
        # A later event without text, such as usage, does not replace the answer.
        if event.is_final_response() and (event.text or final is None or not final.text):
            final = event
        steps.append(event)
    if user_content is None and not steps:
        return None
    return Invocation(
        invocation_id=invocation_id,
        user_content=user_content or types.Content(role="user", parts=[]),
        final_response=final.content if final else None,
        intermediate_data=InvocationEvents(
            invocation_events=[
                InvocationEvent(
                    author=event.author,
                    content=event.content,
                    usage_metadata=total_usage(event),
                    model_version=event.model_version,
                )
                for event in steps
                if event is not final and (event.get_function_calls() or event.get_function_responses() or event.text)
            ]
        ),
        creation_timestamp=timestamp,
    )


def turn_as_reference(turn: Invocation) -> Invocation:
    """A turn as an expectation: its calls with their arguments, and its answer."""
    data = turn.intermediate_data
    calls = (
        [
            types.FunctionCall(name=part.function_call.name, args=part.function_call.args)
            for event in data.invocation_events
            for part in (event.content.parts if event.content else None) or ()
            if part.function_call and part.function_call.name not in REQUESTS
        ]
        if isinstance(data, InvocationEvents)
        else list(data.tool_uses)
        if data
        else []
    )
    return turn.model_copy(update={"intermediate_data": IntermediateData(tool_uses=calls)})
