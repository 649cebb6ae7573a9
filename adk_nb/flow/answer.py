"""One call's answer, before it is told together with those of the other calls; and as the journal keeps it."""

from dataclasses import dataclass
from typing import Any

from adk_nb import parts, types
from adk_nb.events.event_actions import EventActions
from adk_nb.runtime.durable import DurableCall
from adk_nb.runtime.invocation_context import Decision
from adk_nb.sessions.state import storable_delta


@dataclass
class Answer:
    """One call's answer, and what its tool did besides."""

    part: types.Part | None
    """None: the result comes later, from outside."""
    actions: EventActions
    waits: bool = False
    """True: a person is asked first; the part is a placeholder."""
    decided: Decision | None = None
    """What a person had approved of the call."""
    pauses: bool = False
    """True: the part is not the outcome, and the model is not to be asked before that comes."""
    words: types.Part | None = None
    """The result in words, where nobody else says it."""
    id: str | None = None
    """Of the call."""
    failed_at: str | None = None
    """Where in a notebook's cells the tool raised."""
    repeated: int = 0
    """As in `Context`."""
    shown: list[dict[str, Any]] | None = None
    """What a person is shown of the result; see `tools.previews`."""
    usage: list[dict[str, Any]] | None = None
    """As `nested_usage` in `Context`."""
    waits_inside: bool = False
    """True: the tool is called again when what waits inside it is answered, and the model is asked after that."""
    hands_back: bool = False
    """It is told in the user's name."""
    finished: tuple[Any] | None = None
    """What came of the work of the agent, which is done with this."""
    event_id: str | None = None
    """Of the event that tells it, where there is a journal."""


async def noted(step: DurableCall | None, answer: Answer) -> Answer:
    """`answer`, once it is in the journal."""
    if step and step.attempt:
        answer.event_id = step.event_id
        await step.finish(_record(answer))
    return answer


def _record(answer: Answer) -> dict[str, Any]:
    """What is to be told of a call that ran, as JSON."""
    acts = answer.actions.model_copy(update={"state_delta": storable_delta(answer.actions.state_delta)})
    return {
        "part": answer.part and answer.part.model_dump(mode="json", exclude_none=True),
        "words": answer.words and answer.words.text,
        "actions": acts.model_dump(mode="json", exclude_defaults=True, exclude_none=True),
        "asks": bool(acts.requested_tool_confirmations or acts.requested_auth_configs),
        "id": answer.id,
        "failed_at": answer.failed_at,
        "repeated": answer.repeated,
        "shown": answer.shown,
        "usage": answer.usage,
        "pauses": answer.pauses,
        "hands_back": answer.hands_back,
        "finished": answer.finished and list(answer.finished),
    }


def told_again(said: dict[str, Any], event_id: str | None) -> Answer:
    """The answer of a call that ran in a run that was cut before it could tell."""
    return Answer(
        said["part"] and types.Part.model_validate(said["part"]),
        EventActions.model_validate(said["actions"]),
        pauses=said["pauses"],
        words=said["words"] and parts.text_part(said["words"]),
        id=said["id"],
        failed_at=said["failed_at"],
        repeated=said.get("repeated", 0),
        shown=said.get("shown"),
        usage=said.get("usage"),
        hands_back=said["hands_back"],
        finished=said["finished"] and (said["finished"][0],),
        event_id=event_id,
    )
