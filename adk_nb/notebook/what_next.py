"""What a person may do about a turn that has failed, in words."""

from itertools import takewhile

from adk_nb.errors import ModelHTTPError, ModelNotFoundError, closest
from adk_nb.models.registry import LLMRegistry
from adk_nb.runtime.history import History, Turn

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
        return f"; another model is asked with {another}"
    return ""


def take_back(history: History, magic: str) -> str:
    """How what was asked in the turn that failed last is taken back, which agents see until then; empty if nothing was.

    Args:
        history: Of the session, that turn's included.
        magic: As for `how_to_answer`.
    """
    turns = [turn for turn in history.turns if not turn.undone]
    if not turns:
        return ""
    failed = 1 + sum(1 for _ in takewhile(_is_unanswered, reversed(turns[:-1])))
    count = str(failed) if failed > 1 else ""
    undo = (
        " ".join(filter(None, (magic.replace("%confirm", "%rewind", 1), count))) if magic else f"chat.rewind({count})"
    )
    if failed > 1:
        return f"what was asked the last {failed} times stays in the conversation: {undo} takes it back"
    again = f"{undo} --rerun" if magic else "chat.rerun()"
    return f"what was asked stays in the conversation: {undo} takes it back, {again} asks it again"


def _is_unanswered(turn: Turn) -> bool:
    return all(event.author == "user" or event.error_code for event in turn.events)


def _known() -> list[str]:
    try:
        LLMRegistry.check("")
    except ModelNotFoundError as error:  # it names those that there are
        return error.known
    return []
