"""What a model answers: the whole answer, or one piece of a streamed one."""

from typing import Any

from adk_nb import types
from adk_nb.models.attempts import Attempt
from adk_nb.models.cache_metadata import CacheMetadata
from adk_nb.wire import WireModel


class LlmResponse(WireModel):
    """One answer, or one piece of it."""

    content: types.Content | None = None
    partial: bool | None = None
    """True for a streamed piece. The whole answer follows, in one response that repeats the pieces' text."""
    turn_complete: bool | None = None
    """True in a live conversation: the model has said what it had to say."""
    turn_complete_reason: types.TurnCompleteReason | None = None
    finish_reason: types.FinishReason | None = None
    error_code: str | None = None
    """A refusal by the model (`SAFETY`, `MAX_TOKENS`), or the class of the error that ended the run."""
    error_message: str | None = None
    interrupted: bool | None = None
    """True in a live conversation: the user spoke while the model did."""
    input_transcription: types.Transcription | None = None
    """What the user was heard to say."""
    output_transcription: types.Transcription | None = None
    """What the model's voice said."""
    live_session_resumption_update: types.LiveServerSessionResumptionUpdate | None = None
    """The handle to go on with after the connection is lost."""
    go_away: types.LiveServerGoAway | None = None
    """The service will soon end the live connection."""
    voice_activity: types.VoiceActivity | None = None
    """The user was heard to begin or to end speaking in a live conversation."""
    model_version: str | None = None
    """The model that answered, as its service names it."""
    usage_metadata: types.GenerateContentResponseUsageMetadata | None = None
    """Tokens. Counted by the service for the whole call, so the last piece's is the call's."""
    grounding_metadata: types.GroundingMetadata | None = None
    citation_metadata: types.CitationMetadata | None = None
    avg_logprobs: float | None = None
    logprobs_result: types.LogprobsResult | None = None
    custom_metadata: dict[str, Any] | None = None
    """JSON values, the caller's own; not sent to a model."""
    cache_metadata: CacheMetadata | None = None
    """The cached beginning of the request this answers."""
    attempts: list[Attempt] | None = None
    """What was tried before in vain, oldest first. None: the first question was answered."""
    environment_id: str | None = None
    """The service's name for the sandbox that this answer worked in."""
    interaction_id: str | None = None
    """The service's name for this answer, to go on from without sending the history again."""

    @property
    def text(self) -> str:
        """The words, thoughts left out."""
        return "".join([part.text for part in self.parts if part.text and not part.thought])

    @property
    def parts(self) -> list[types.Part]:
        """The parts of the content; empty when there is none."""
        return (self.content.parts if self.content else None) or []

    def get_function_calls(self) -> list[types.FunctionCall]:
        """The tools the model asks for, in its order."""
        content = self.content
        return [part.function_call for part in content.parts if part.function_call] if content and content.parts else []

    def get_function_responses(self) -> list[types.FunctionResponse]:
        """The tool results this carries, in the order of their calls."""
        content = self.content
        if not (content and content.parts):
            return []
        return [part.function_response for part in content.parts if part.function_response]

    @classmethod
    def create(cls, answer: types.GenerateContentResponse) -> "LlmResponse":
        """From google-genai's answer: the first candidate, or the reason why there is none."""
        about: dict[str, Any] = {"usage_metadata": answer.usage_metadata, "model_version": answer.model_version}
        if answer.candidates:
            return cls._from_candidate(answer.candidates[0], about)
        if answer.prompt_feedback and answer.prompt_feedback.block_reason:
            feedback = answer.prompt_feedback
            reason = feedback.block_reason
            return cls(
                error_code=reason.value if reason else None, error_message=feedback.block_reason_message, **about
            )
        return cls(content=types.Content(role="model", parts=[]), **about)

    @classmethod
    def _from_candidate(cls, candidate: types.Candidate, about: dict[str, Any]) -> "LlmResponse":
        about |= {
            "finish_reason": candidate.finish_reason,
            "grounding_metadata": candidate.grounding_metadata,
            "citation_metadata": candidate.citation_metadata,
            "avg_logprobs": candidate.avg_logprobs,
            "logprobs_result": candidate.logprobs_result,
        }
        reason = candidate.finish_reason
        if (candidate.content and candidate.content.parts) or reason == types.FinishReason.STOP:
            return cls(content=candidate.content, **about)
        return cls(error_code=reason.value if reason else None, error_message=candidate.finish_message, **about)
