"""Calls whose outcome comes from outside: questions to the user, and work that is done elsewhere."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.events.requests import INPUT_REQUEST, NODE_APPROVAL, REQUESTS
from adk_nb.runtime.rewind import surviving

CHOICE = "get_user_choice"
"""Name of the call with which a model lets the user choose. Source: google-adk 2.13."""
_TOLD = (INPUT_REQUEST, CHOICE)


@dataclass(frozen=True, kw_only=True)
class PendingInput:
    """A call of a long-running tool whose outcome is not there yet."""

    call: types.FunctionCall
    """An answer is a function response with its id and name."""
    author: str
    """The agent whose call it is."""
    branch: str | None = None
    """Where that works."""
    asked_in: Event | None = None
    """The event that made the call."""

    @property
    def id(self) -> str:
        """What an answer names."""
        return self.call.id or ""

    @property
    def is_question(self) -> bool:
        """True: the user is asked. False: a tool has begun what takes time."""
        return self.call.name in _TOLD

    @property
    def is_approval(self) -> bool:
        """True: the user is asked whether a node of a graph may run."""
        return self.id.startswith(NODE_APPROVAL)

    @property
    def message(self) -> str:
        """What the user is asked; empty if the model did not say."""
        return str(self._args.get("message") or self._args.get("prompt") or "")

    @property
    def payload(self) -> Any:
        """JSON that a graph shows with its question; None for nothing."""
        return self._args.get("payload") if self.call.name == INPUT_REQUEST else None

    @property
    def options(self) -> list[str]:
        """What the user can choose from; empty for an answer in the user's own words."""
        options = self._args.get("options") if self.call.name == CHOICE else None
        return [str(one) for one in cast(list[Any], options)] if isinstance(options, list) else []

    @property
    def response_schema(self) -> dict[str, Any]:
        """JSON schema of the answer; empty for anything."""
        schema = self._args.get("response_schema") if self.call.name == INPUT_REQUEST else None
        return cast(dict[str, Any], schema) if isinstance(schema, dict) else {}

    @property
    def _args(self) -> dict[str, Any]:
        return self.call.args or {}


def pending(events: Iterable[Event]) -> list[PendingInput]:
    """The calls that wait for their outcome, oldest first. A response with `will_continue` is news, and no outcome."""
    found: dict[str, PendingInput] = {}
    for event in surviving(events):
        for response in event.get_function_responses() if found else ():
            if not response.will_continue:
                found.pop(response.id or "", None)
        if later := event.long_running_tool_ids:
            for call in event.get_function_calls():
                if call.id in later and call.name not in REQUESTS:
                    found[call.id or ""] = PendingInput(
                        call=call, author=event.author, branch=event.branch, asked_in=event
                    )
    return list(found.values())


def answer(asked: PendingInput, value: Any) -> types.Part:
    """The part of a user's message that answers a question. `value`: JSON; a dict is the response, other it is in."""
    response = cast(dict[str, Any], value) if isinstance(value, dict) else {"result": value}
    return types.Part(function_response=types.FunctionResponse(id=asked.id, name=asked.call.name, response=response))


def answered(response: types.FunctionResponse) -> Any:
    """The value of an answer: a response with the one key `result` is what that holds."""
    said = response.response or {}
    return said["result"] if said.keys() == {"result"} else said
