"""A history as the strictest services want it: turns that change sides, every result right behind its call."""

import json
import re
from collections.abc import Iterable
from typing import Any

from adk_nb import types

_OPENING = "Go on from here."
"""What the user is taken to have said where a history does not begin, or does not end, with the user."""
_NO_RESULT = {"error": "there is no result of this call yet"}
_LONGEST_ID = 40
"""Characters. Source: the error of OpenAI's API for a longer one."""


def paired(contents: Iterable[types.Content]) -> list[types.Content]:
    """`contents` in turns of the user and the model by turns, the first and the last one the user's.

    A turn of the model's with calls is followed by one that begins with a result of each, in the order of the calls:
    a call that has none is told so. A result that no call stands before is told in words. Ids are letters, digits, `_`
    and `-`, each used once. Nothing is said by a turn without parts. The given contents are not changed.
    """
    ids, turns = _Ids(), list[types.Content]()
    waiting: list[types.FunctionCall] = []
    for content in contents:
        parts = [part for part in content.parts or () if _says_something(part)]
        if not parts:
            continue
        if content.role == "model":
            parts = [ids.called(part) if part.function_call else part for part in parts]
            _add(turns, "model", parts)
            waiting = [part.function_call for part in turns[-1].parts or () if part.function_call]
        else:
            _add(turns, "user", _results(waiting, parts, ids))
            waiting = []
    if waiting:
        turns.append(_of_user(_results(waiting, [], ids)))
    if not turns or turns[0].role == "model":
        turns.insert(0, _of_user([types.Part(text=_OPENING)]))
    if turns[-1].role == "model":
        turns.append(_of_user([types.Part(text=_OPENING)]))
    return turns


def is_paired(contents: Iterable[types.Content]) -> bool:
    """True if each turn with calls follows one of the user's, and is followed by the results of all of them, in order.

    Also: the user begins and ends, and nothing is open. One side may have several turns in a row.

    Source: the errors of Gemini's API: "function call turn comes immediately after a user turn or after a function
    response turn", "the number of function response parts is equal to the number of function call parts".
    """
    waiting, before = list[str | None](), None
    for content in contents:
        parts = content.parts or []
        calls = [part.function_call.name for part in parts if part.function_call]
        results = [part.function_response.name for part in parts if part.function_response]
        is_first_model = content.role == "model" and before is None
        if not parts or is_first_model or results != waiting or (calls and (results or before != "user")):
            return False
        waiting, before = calls, content.role
    return before == "user" and not waiting


def _add(turns: list[types.Content], role: str, parts: list[types.Part]) -> None:
    if turns and turns[-1].role == role:
        parts = [*(turns.pop().parts or ()), *parts]
    turns.append(types.Content(role=role, parts=parts))


def _of_user(parts: list[types.Part]) -> types.Content:
    return types.Content(role="user", parts=parts)


def _says_something(part: types.Part) -> bool:
    return part.text is None or bool(part.text.strip()) or bool(part.thought and part.thought_signature)


def _results(calls: list[types.FunctionCall], parts: list[types.Part], ids: "_Ids") -> list[types.Part]:
    """The results of `calls`, and behind them what else the user says in `parts`."""
    rest, results = list(parts), list[types.Part]()
    for call in calls:
        found = next((part for part in rest if ids.answers(part.function_response, call)), None)
        if found:
            rest.remove(found)
        response = (found and found.function_response) or types.FunctionResponse(name=call.name, response=_NO_RESULT)
        of_the_call = {"id": call.id, "name": call.name}  # Gemini goes by the name, the others by the id
        results.append(types.Part(function_response=response.model_copy(update=of_the_call)))
    return results + [_in_words(part) if part.function_response else part for part in rest]


def _in_words(part: types.Part) -> types.Part:
    response = part.function_response or types.FunctionResponse()
    said: Any = response.response
    return types.Part(text=f"{response.name} answered: {json.dumps(said, ensure_ascii=False, default=str)}")


class _Ids:
    """Gives each call an id of its own that every service takes."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._was: dict[str, str | None] = {}
        """Id as it is sent -> as it was."""

    def called(self, part: types.Part) -> types.Part:
        """`part`, its call under an id that is used once."""
        call = part.function_call
        if not call:
            return part
        wanted = re.sub(r"[^a-zA-Z0-9_-]", "_", call.id or "")[:_LONGEST_ID] or f"call_{len(self._used)}"
        own, number = wanted, 1
        while own in self._used:
            number += 1
            own = f"{wanted[: _LONGEST_ID - 5]}_{number}"
        self._used.add(own)
        self._was[own] = call.id
        return (
            part if own == call.id else part.model_copy(update={"function_call": call.model_copy(update={"id": own})})
        )

    def answers(self, response: types.FunctionResponse | None, call: types.FunctionCall) -> bool:
        """True if `response` is the result of `call`: by its id, or else by its name."""
        if not response:
            return False
        was = self._was.get(call.id or "")
        return response.id == was if response.id and was else response.name == call.name
