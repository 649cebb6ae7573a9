"""How one run is to be done: streaming, limits, what goes with each request, and the settings of live runs."""

import logging
import os
import sys
from enum import Enum
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError, field_validator

from adk_nb import types
from adk_nb.errors import ConfigurationError
from adk_nb.sessions.base_session_service import GetSessionConfig
from adk_nb.wire import LATE, plain_json, wrong_fields

logger = logging.getLogger(__name__)

_USUAL_LIMIT = 500


class StreamingMode(Enum):
    """How a model's answer comes."""

    NONE = None
    """Whole."""
    SSE = "sse"
    """In pieces, then whole."""
    BIDI = "bidi"
    """As it is spoken, while the user may speak too: what `run_live` does. `run_async` takes it as NONE."""


class ToolThreadPoolConfig(BaseModel):
    """How many worker threads run blocking tools. Runs that ask for the same number share them."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    max_workers: int = Field(default=4, ge=1)


def _limit_of_the_environment() -> int:
    said = os.environ.get("ADK_MAX_LLM_CALLS") or _USUAL_LIMIT
    try:
        return int(said)
    except ValueError:
        logger.warning("ADK_MAX_LLM_CALLS=%r is no number; %d is used", said, _USUAL_LIMIT)
        return _USUAL_LIMIT


class RunConfig(BaseModel):
    """How one run is to be done.

    Fields of google-genai's types say the same as there; those of live runs reach the model as `LiveConnectConfig`.

    Raises:
        ConfigurationError: A field is unknown or wrong.

    Source: google-adk 2.13, `RunConfig`; `max_cost_usd`, `tool_errors` and `timeout` are ours.
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True, defer_build=True)

    streaming_mode: StreamingMode = StreamingMode.NONE
    max_llm_calls: int = Field(default_factory=_limit_of_the_environment)
    """Model calls in one invocation, all agents together. 0 or less: no limit."""
    max_cost_usd: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """US dollars, by the table of genai-prices (`pip install 'adk-nb[cost]'`): a run that has cost so much asks no
    model again, and ends with a MAX_COST event. A model without a known price is not limited, which is logged; nor is
    a live conversation. None: no limit."""
    timeout: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Seconds for the whole run; then it ends with a RUN_TIMEOUT event, which names what is left to end by itself: a
    sync function, or an async one that catches its cancellation. So sync functions run on worker threads. None: no
    limit."""
    tool_errors: Literal["return", "raise"] | None = None
    """What a raising tool does: its error goes to the model, or ends the run. None: as each agent says."""
    tool_thread_pool_config: ToolThreadPoolConfig | None = None
    """How many threads run the sync tools of a run that nobody waits for. None: 32, for all such runs together."""
    custom_metadata: dict[str, Any] | None = None
    """JSON, put on every event of the run, the user's included."""
    get_session_config: GetSessionConfig | None = None
    """How much history to load. None: all."""
    model_input_context: Annotated[list[types.Content] | None, LATE] = None
    """Told to the models before the user's message, in this run only."""
    include_thoughts_from_other_agents: bool = False
    """True: what other agents thought is told with what they said."""
    save_input_blobs_as_artifacts: bool = False
    """True: files in the message are kept as `artifact_<invocation>_<place>`, and named in their place.
    `SaveFilesAsArtifactsPlugin` does it under the files' own names."""

    http_options: Annotated[types.HttpOptions | None, LATE] = None
    """Of every request of the run: headers, timeout (ms), retries."""
    labels: dict[str, str] | None = None
    """Of every request of the run, for billing."""
    service_tier: str | None = None
    """Of every request of the run: a `types.ServiceTier`, or its value (`flex`, `standard`, `priority`)."""

    response_modalities: Annotated[list[types.Modality] | None, LATE] = None
    """None: audio."""
    speech_config: Annotated[types.SpeechConfig | None, LATE] = None
    output_audio_transcription: Annotated[types.AudioTranscriptionConfig | None, LATE] = Field(
        default_factory=types.AudioTranscriptionConfig
    )
    """None: what the model says is not written down."""
    input_audio_transcription: Annotated[types.AudioTranscriptionConfig | None, LATE] = Field(
        default_factory=types.AudioTranscriptionConfig
    )
    """None: what the user says is not written down."""
    realtime_input_config: Annotated[types.RealtimeInputConfig | None, LATE] = None
    explicit_vad_signal: bool | None = None
    translation_config: Annotated[types.TranslationConfig | None, LATE] = None
    enable_affective_dialog: bool | None = None
    proactivity: Annotated[types.ProactivityConfig | None, LATE] = None
    session_resumption: Annotated[types.SessionResumptionConfig | None, LATE] = None
    history_config: Annotated[types.HistoryConfig | None, LATE] = None
    context_window_compression: Annotated[types.ContextWindowCompressionConfig | None, LATE] = None
    avatar_config: Annotated[types.AvatarConfig | None, LATE] = None
    save_live_blob: bool = Field(default=False, validation_alias=AliasChoices("save_live_blob", "save_live_audio"))
    """True: the sound of a live run is kept, as artifacts. `save_live_audio` is its old name."""
    support_cfc: bool = False
    """True: the model is asked through the live API, the only one where it can call functions from its own code.
    Only with StreamingMode.SSE."""

    def __init__(self, **given: Any) -> None:
        try:
            super().__init__(**given)
        except ValidationError as error:
            raise ConfigurationError(f"run_config: {wrong_fields(error, type(self).model_fields)}") from error

    @field_validator("max_llm_calls")
    @classmethod
    def _is_a_limit(cls, value: int) -> int:
        if value >= sys.maxsize:
            raise ValueError(f"max_llm_calls={value} is no limit; write 0 for none")
        if value <= 0:
            logger.warning("max_llm_calls=%d: a run may ask its models without limit", value)
        return value

    @field_validator("service_tier")
    @classmethod
    def _is_a_tier(cls, value: str | None) -> str | None:
        if value == "deferred":
            raise ValueError("service_tier='deferred' is for Gemini's interactions API; write 'flex' for a cheaper one")
        return value

    @field_validator("custom_metadata")
    @classmethod
    def _is_json(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        return None if value is None else plain_json(value, "custom_metadata of a run")

    @property
    def streams(self) -> bool:
        """True if the model is to answer in pieces."""
        return self.streaming_mode is StreamingMode.SSE
