"""A history for the strictest services: alternating turns, and every result directly after its call."""

import json
import re
from collections.abc import Iterable
from typing import Any

from adk_nb import types

_CONTINUE = "Go on from here."
"""Inserted as the user's turn at the start or end of a history that lacks one."""
_NO_RESULT = {"error": "there is no result of this call yet"}
_MAX_ID = 40
"""Characters. Source: the error of OpenAI's API for a longer id."""


def pair_turns(contents: Iterable[types.Content]) -> list[types.Content]:
    """Convert `contents` to alternating turns of user and model, the first and the last the user's.

    The turn after a model turn with calls starts with the results, in the order of the calls: a call without a result
    gets an error result, a result without a call becomes text. Ids are letters, digits, `_` and `-`, and unique.
    Empty parts and turns are dropped. The given contents are not changed.
    """
    ids, turns = _Ids(), list[types.Content]()
    open_calls: list[types.FunctionCall] = []
    for content in contents:
        parts = [part for part in content.parts or () if _has_content(part)]
        if not parts:
            continue
        if content.role == "model":
            parts = [ids.called(part) if part.function_call else part for part in parts]
            _append_parts(turns, "model", parts)
            open_calls = [part.function_call for part in turns[-1].parts or () if part.function_call]
        else:
            _append_parts(turns, "user", _results(open_calls, parts, ids))
            open_calls = []
    if open_calls:
        turns.append(_user_turn(_results(open_calls, [], ids)))
    if not turns or turns[0].role == "model":
        turns.insert(0, _user_turn([types.Part(text=_CONTINUE)]))
    if turns[-1].role == "model":
        turns.append(_user_turn([types.Part(text=_CONTINUE)]))
    return turns


def is_paired(contents: Iterable[types.Content]) -> bool:
    """True if each turn with calls follows a user turn, and is followed by all of their results, in order.

    Also: the user begins and ends, and no call is open. One side may have several turns in a row.

    Source: errors of Gemini's API: "function call turn comes immediately after a user turn or after a function
    response turn", "the number of function response parts is equal to the number of function call parts".
    """
    open_calls, previous_role = list[str | None](), None
    for content in contents:
        parts = content.parts or []
        calls = [part.function_call.name for part in parts if part.function_call]
        results = [part.function_response.name for part in parts if part.function_response]
        starts_with_model = content.role == "model" and previous_role is None
        if not parts or starts_with_model or results != open_calls or (calls and (results or previous_role != "user")):
            return False
        open_calls, previous_role = calls, content.role
    return previous_role == "user" and not open_calls


def _append_parts(turns: list[types.Content], role: str, parts: list[types.Part]) -> None:
    if turns and turns[-1].role == role:
        parts = [*(turns.pop().parts or ()), *parts]
    turns.append(types.Content(role=role, parts=parts))


def _user_turn(parts: list[types.Part]) -> types.Content:
    return types.Content(role="user", parts=parts)


def _has_content(part: types.Part) -> bool:
    return part.text is None or bool(part.text.strip()) or bool(part.thought and part.thought_signature)


def _results(calls: list[types.FunctionCall], parts: list[types.Part], ids: "_Ids") -> list[types.Part]:
    """The results of `calls`, then the other parts of the user's turn."""
    rest, results = list(parts), list[types.Part]()
    for call in calls:
        match = next((part for part in rest if ids.answers(part.function_response, call)), None)
        if match:
            rest.remove(match)
        response = (match and match.function_response) or types.FunctionResponse(name=call.name, response=_NO_RESULT)
        call_fields = {"id": call.id, "name": call.name}  # Gemini matches by name, the others by id
        results.append(types.Part(function_response=response.model_copy(update=call_fields)))
    return results + [_result_as_text(part) if part.function_response else part for part in rest]


def _result_as_text(part: types.Part) -> types.Part:
    response = part.function_response or types.FunctionResponse()
    result: Any = response.response
    return types.Part(text=f"{response.name} answered: {json.dumps(result, ensure_ascii=False, default=str)}")


class _Ids:
    """Assigns unique ids that every service accepts to calls."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._originals: dict[str, str | None] = {}
        """Assigned id -> original id."""

    def called(self, part: types.Part) -> types.Part:
        """`part` with a unique id in its call."""
        call = part.function_call
        if not call:
            return part
        base = re.sub(r"[^a-zA-Z0-9_-]", "_", call.id or "")[:_MAX_ID] or f"call_{len(self._used)}"
        unique, number = base, 1
        while unique in self._used:
            number += 1
            unique = f"{base[: _MAX_ID - 5]}_{number}"
        self._used.add(unique)
        self._originals[unique] = call.id
        return (
            part
            if unique == call.id
            else part.model_copy(update={"function_call": call.model_copy(update={"id": unique})})
        )

    def answers(self, response: types.FunctionResponse | None, call: types.FunctionCall) -> bool:
        """True if `response` is the result of `call`: by id, or else by name."""
        if not response:
            return False
        original = self._originals.get(call.id or "")
        return response.id == original if response.id and original else response.name == call.name
