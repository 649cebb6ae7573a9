"""The response of a model, the failed attempts before it, and the signals in its metadata."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from weakref import WeakValueDictionary

from adk_nb import types
from adk_nb.errors import ModelError
from adk_nb.models.cache_metadata import CacheMetadata
from adk_nb.wire import WireModel


class Attempt(WireModel):
    """A failed attempt, followed by another, of the same or the next model."""

    model: str
    """Name of the model that was called."""
    error: str
    """`HTTP 503`, `no connection`, or the type of the error."""
    waited: float = 0.0
    """Seconds until the next attempt."""
    next_model: str | None = None
    """The model of the next attempt; None: the same."""


on_wait: ContextVar[Callable[[Attempt], None] | None] = ContextVar("adk_nb_on_wait", default=None)
"""Called in the run, with each failed attempt, when the wait after it begins."""
on_progress: ContextVar[Callable[[str], None] | None] = ContextVar("adk_nb_on_progress", default=None)
"""Called in the run, with what a model does before it can answer."""


@contextmanager
def note_attempts(attempts: Sequence[Attempt]) -> Generator[None, None, None]:
    """Add `attempts` to a ModelError, and their number to its message."""
    try:
        yield
    except ModelError as error:
        # Only once: the models of a chain, one inside the other, all pass the error on through this.
        if attempts and not error.attempts:
            error.attempts = tuple(attempts)
            waited = sum(attempt.waited for attempt in attempts)
            error.args = (f"{error} ({len(attempts) + 1} attempts, with {waited:.1f} s of waiting between them)",)
        raise


ESCALATE = "escalate"
"""Leave the enclosing loop: the event's `actions.escalate`."""
EXIT_FLOW = "exit_flow"
"""The agent's task is complete."""
WAIT_FOR_USER_INPUT = "wait_for_user_input"
"""The agent waits for the user's next message."""
HITL_REQUEST = "hitl_request"
"""The user is asked to decide."""
_END_OF_TURN = (ESCALATE, EXIT_FLOW, WAIT_FOR_USER_INPUT, HITL_REQUEST)


def ends_turn(metadata: Mapping[str, Any]) -> bool:
    """True if the model is not called again in this turn, not even with the results of its calls."""
    return any(metadata.get(name) is True for name in _END_OF_TURN)


UNREADABLE = "__adk_unreadable__"
"""The only argument of a call that cannot be made: the reason. The call gets an error as result."""
WRITTEN_AS_TEXT = "written_as_text"
"""Key of an answer's metadata: its calls were written as text."""
MODEL_NOTE = "model_note"
"""Key of an answer's metadata: a remark about the model, for the user."""
REPLAYED = "replayed"
"""Key of an event's metadata: the tokens were counted and paid for when the answer was recorded."""
# By id, as usage objects have no hash; weak, so that no later object is found under an id used again.
_replayed: WeakValueDictionary[int, Any] = WeakValueDictionary()


def note_replayed(usage: object) -> None:
    """Mark this usage object, by identity, as replayed."""
    _replayed[id(usage)] = usage


def was_replayed(usage: object) -> bool:
    """True if `note_replayed` has marked this object."""
    return id(usage) in _replayed


class LlmResponse(WireModel):
    """A complete answer, or a part of a streamed one."""

    content: types.Content | None = None
    partial: bool | None = None
    """True for a part of a streamed answer. The complete answer follows and repeats the text."""
    turn_complete: bool | None = None
    """True in a live conversation: the model has finished its turn."""
    turn_complete_reason: types.TurnCompleteReason | None = None
    finish_reason: types.FinishReason | None = None
    error_code: str | None = None
    """A refusal by the model (`SAFETY`, `MAX_TOKENS`), or the class of the error that ended the run."""
    error_message: str | None = None
    interrupted: bool | None = None
    """True in a live conversation: the user spoke while the model did."""
    input_transcription: types.Transcription | None = None
    """Transcript of the user's speech."""
    output_transcription: types.Transcription | None = None
    """Transcript of the model's speech."""
    live_session_resumption_update: types.LiveServerSessionResumptionUpdate | None = None
    """Handle to resume the session with after a lost connection."""
    go_away: types.LiveServerGoAway | None = None
    """The service will end the live connection soon."""
    voice_activity: types.VoiceActivity | None = None
    """The user began or stopped speaking in a live conversation."""
    model_version: str | None = None
    """The model that answered, as its service names it."""
    usage_metadata: types.GenerateContentResponseUsageMetadata | None = None
    """Token counts. Services count the whole call, so the last response of a stream has the total."""
    grounding_metadata: types.GroundingMetadata | None = None
    citation_metadata: types.CitationMetadata | None = None
    avg_logprobs: float | None = None
    logprobs_result: types.LogprobsResult | None = None
    custom_metadata: dict[str, Any] | None = None
    """JSON values of the caller; not sent to a model."""
    cache_metadata: CacheMetadata | None = None
    """Cache of the request's prefix."""
    attempts: list[Attempt] | None = None
    """Failed attempts before this answer, oldest first. None: there were none."""
    environment_id: str | None = None
    """The service's id of the sandbox that the answer used."""
    interaction_id: str | None = None
    """The service's id of the answer, to continue from without sending the history."""

    @property
    def text(self) -> str:
        """The text of the content, without thoughts."""
        return "".join([part.text for part in self.parts if part.text and not part.thought])

    @property
    def parts(self) -> list[types.Part]:
        """Parts of the content; empty if there is none."""
        return (self.content.parts if self.content else None) or []

    def get_function_calls(self) -> list[types.FunctionCall]:
        """Function calls of the content, in order."""
        return [part.function_call for part in self.parts if part.function_call]

    def get_function_responses(self) -> list[types.FunctionResponse]:
        """Function responses of the content, in order."""
        return [part.function_response for part in self.parts if part.function_response]

    @classmethod
    def create(cls, response: types.GenerateContentResponse) -> "LlmResponse":
        """Convert google-genai's response: the first candidate, or the reason why there is none."""
        fields: dict[str, Any] = {"usage_metadata": response.usage_metadata, "model_version": response.model_version}
        if response.candidates:
            candidate = response.candidates[0]
            reason, content = candidate.finish_reason, candidate.content
            fields |= {
                "finish_reason": reason,
                "grounding_metadata": candidate.grounding_metadata,
                "citation_metadata": candidate.citation_metadata,
                "avg_logprobs": candidate.avg_logprobs,
                "logprobs_result": candidate.logprobs_result,
            }
            if (content and content.parts) or reason == types.FinishReason.STOP:
                return cls(content=content, **fields)
            return cls(error_code=reason.value if reason else None, error_message=candidate.finish_message, **fields)
        if response.prompt_feedback and response.prompt_feedback.block_reason:
            feedback = response.prompt_feedback
            reason = feedback.block_reason
            return cls(
                error_code=reason.value if reason else None, error_message=feedback.block_reason_message, **fields
            )
        return cls(content=types.Content(role="model", parts=[]), **fields)
