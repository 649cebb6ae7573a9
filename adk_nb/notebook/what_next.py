"""What a person may do about a model's service that has failed, in words."""

from adk_nb.errors import ModelHTTPError, ModelNotFoundError, closest
from adk_nb.models.registry import LLMRegistry

_BUSY = (429, 500, 503, 529)
"""Of HTTP; 529 is Anthropic's."""


def what_next(error: Exception, magic: str) -> str:
    """The end of its sentence; empty where there is nothing to say. `magic`: as for `how_to_answer`."""
    if not isinstance(error, ModelHTTPError):
        return ""
    if error.status == 404 and (near := closest(error.model, _known(), cutoff=0.75)) not in (None, error.model):
        return f"; did you mean {near!r}?"
    if error.status in _BUSY:
        another = "%chat --model NAME" if magic else "chat.ask(..., model=NAME)"
        return f"; run the cell again, or ask another model: {another}"
    return ""


def _known() -> list[str]:
    try:
        LLMRegistry.check("")
    except ModelNotFoundError as error:  # it names those that there are
        return error.known
    return []
