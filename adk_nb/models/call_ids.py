"""The ids of calls that a service gave none, which are this package's own: it is not shown them."""

from adk_nb import types

OURS = "adk-"
"""What they start with."""


def without_our_ids(content: types.Content) -> types.Content:
    """The content as it is sent: itself, or a copy when one of its calls carries an id of ours."""
    parts = content.parts or []
    sent = [_without_our_id(part) for part in parts]
    if all(one is other for one, other in zip(sent, parts, strict=True)):
        return content
    return content.model_copy(update={"parts": sent})


def _without_our_id(part: types.Part) -> types.Part:
    for name in ("function_call", "function_response"):
        told: types.FunctionCall | types.FunctionResponse | None = getattr(part, name)
        if told and told.id and told.id.startswith(OURS):
            return part.model_copy(update={name: told.model_copy(update={"id": None})})
    return part
