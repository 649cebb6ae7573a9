"""What a model says, as a session can keep it: text of whole characters, and arguments that a reader gives back."""

from typing import Any

from pydantic_core import from_json, to_json

from adk_nb import types
from adk_nb.wire import json_problem, replace_surrogates

UNREADABLE = "__adk_unreadable__"
"""The one argument of a call whose arguments cannot be kept: it says why. Such a call is answered, and not made."""


def storable(part: types.Part) -> types.Part:
    """`part` itself if it can be kept; else one with readable text, or a call that is refused.

    Arguments are never mended: a tool would run with other values than the model gave.
    """
    if part.text:
        text = replace_surrogates(part.text)
        return part if text == part.text else part.model_copy(update={"text": text})
    call = part.function_call
    if not call or not call.args or _comes_back(call.args):
        return part
    return part.model_copy(update={"function_call": call.model_copy(update={"args": _kept(call.args)})})


def _comes_back(args: dict[str, Any]) -> bool:
    try:
        whole = [[[[[[[[[[args]]]]]]]]]]  # as deep as it will stand in a session
        return bool(from_json(to_json(whole), allow_inf_nan=False) == whole)
    except (ValueError, RecursionError):
        return False


def _kept(args: dict[str, Any]) -> dict[str, Any]:
    odd = json_problem(args)
    return {UNREADABLE: odd} if odd else args
