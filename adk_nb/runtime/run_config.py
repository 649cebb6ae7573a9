"""Settings of a run, of resuming it, and of retries."""

import logging
import os
import random
import sys
from enum import Enum
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, field_validator

from adk_nb import types
from adk_nb.sessions.base_session_service import GetSessionConfig
from adk_nb.wire import LAZY, SettingsModel, plain_json

logger = logging.getLogger(__name__)

_DEFAULT_MAX_LLM_CALLS = 500


class StreamingMode(Enum):
    """Streaming of a model's response."""

    NONE = None
    """One complete event."""
    SSE = "sse"
    """Partial events, then the complete event."""
    BIDI = "bidi"
    """Bidirectional, as `run_live` does. `run_async` treats it as NONE."""


class ToolThreadPoolConfig(BaseModel):
    """Number of worker threads for blocking tools. Runs with the same number share one pool."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    max_workers: int = Field(default=4, ge=1)


def _max_llm_calls_from_environment() -> int:
    value = os.environ.get("ADK_MAX_LLM_CALLS") or _DEFAULT_MAX_LLM_CALLS
    try:
        return int(value)
    except ValueError:
        logger.warning("ADK_MAX_LLM_CALLS=%r is not a number; using %d", value, _DEFAULT_MAX_LLM_CALLS)
        return _DEFAULT_MAX_LLM_CALLS


class RunConfig(SettingsModel):
    """Settings of one run.

    Fields with types of google-genai mean the same as there; those of live runs are passed in `LiveConnectConfig`.

    Raises:
        ConfigurationError: A field is unknown or invalid.

    Source: google-adk 2.13, `RunConfig`; `max_cost_usd`, `tool_errors` and `timeout` are ours.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, defer_build=True)

    streaming_mode: StreamingMode = StreamingMode.NONE
    max_llm_calls: int = Field(default_factory=_max_llm_calls_from_environment)
    """Model calls in one invocation, all agents together. 0 or less: no limit. By default 500, and the first call of a
    further agent, or for a further item of a list, does not count: a graph of many agents ends by itself."""
    max_cost_usd: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """US dollars, by the price table of genai-prices (`pip install genai-prices`): at this cost the run calls no
    model again and ends with a MAX_COST event. Models without a known price are not limited, with a log message; nor
    are live conversations. None: no limit."""
    timeout: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Seconds for the whole run; then it ends with a RUN_TIMEOUT event, which names functions that still run: sync
    functions, and async functions that catch their cancellation. With a timeout, sync functions run on worker threads.
    None: no limit."""
    tool_errors: Literal["return", "raise"] | None = None
    """`return`: the error of a tool goes to the model; `raise`: it ends the run. None: as each agent is set."""
    tool_thread_pool_config: ToolThreadPoolConfig | None = None
    """Number of threads for sync tools of background runs. None: 32, shared by all such runs."""
    custom_metadata: dict[str, Any] | None = None
    """JSON, put on every event of the run, including the user's."""
    get_session_config: GetSessionConfig | None = None
    """How much history to load. None: all."""
    model_input_context: Annotated[list[types.Content] | None, LAZY] = None
    """Contents sent to the models before the user's message, in this run only."""
    include_thoughts_from_other_agents: bool = False
    """True: an agent sees the thoughts of other agents, with their messages."""
    save_input_blobs_as_artifacts: bool = False
    """True: files in the message are stored as artifacts `artifact_<invocation>_<index>`, and replaced by their names.
    `SaveFilesAsArtifactsPlugin` stores them under their own names."""

    http_options: Annotated[types.HttpOptions | None, LAZY] = None
    """HTTP options of every request of the run: headers, timeout (ms), retries."""
    labels: dict[str, str] | None = None
    """Labels of every request of the run, for billing."""
    service_tier: str | None = None
    """Service tier of every request of the run: a `types.ServiceTier` or its value (`flex`, `standard`, `priority`)."""

    response_modalities: Annotated[list[types.Modality] | None, LAZY] = None
    """None: audio."""
    speech_config: Annotated[types.SpeechConfig | None, LAZY] = None
    output_audio_transcription: Annotated[types.AudioTranscriptionConfig | None, LAZY] = Field(
        default_factory=types.AudioTranscriptionConfig
    )
    """None: no transcript of the model's speech."""
    input_audio_transcription: Annotated[types.AudioTranscriptionConfig | None, LAZY] = Field(
        default_factory=types.AudioTranscriptionConfig
    )
    """None: no transcript of the user's speech."""
    realtime_input_config: Annotated[types.RealtimeInputConfig | None, LAZY] = None
    explicit_vad_signal: bool | None = None
    translation_config: Annotated[types.TranslationConfig | None, LAZY] = None
    enable_affective_dialog: bool | None = None
    proactivity: Annotated[types.ProactivityConfig | None, LAZY] = None
    session_resumption: Annotated[types.SessionResumptionConfig | None, LAZY] = None
    history_config: Annotated[types.HistoryConfig | None, LAZY] = None
    context_window_compression: Annotated[types.ContextWindowCompressionConfig | None, LAZY] = None
    avatar_config: Annotated[types.AvatarConfig | None, LAZY] = None
    save_live_blob: bool = Field(default=False, validation_alias=AliasChoices("save_live_blob", "save_live_audio"))
    """True: the audio of a live run is stored as artifacts. `save_live_audio` is the old name."""
    support_cfc: bool = False
    """True: compositional function calling: the model is called through the live API, where its own code can call
    functions. Requires StreamingMode.SSE."""

    @field_validator("max_llm_calls")
    @classmethod
    def _check_max_llm_calls(cls, value: int) -> int:
        # google-adk refuses this value too.
        if value >= sys.maxsize:
            raise ValueError(f"max_llm_calls={value} is not a limit; write 0 for no limit")
        if value <= 0:
            logger.warning("max_llm_calls=%d: a run may call its models without limit", value)
        return value

    @field_validator("service_tier")
    @classmethod
    def _check_service_tier(cls, value: str | None) -> str | None:
        if value == "deferred":
            raise ValueError("service_tier='deferred' is for Gemini's interactions API; write 'flex' for a cheaper one")
        return value

    @field_validator("custom_metadata")
    @classmethod
    def _check_custom_metadata(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        return None if value is None else plain_json(value, "custom_metadata of a run")

    @property
    def frees_first_llm_calls(self) -> bool:
        """True: nobody has set `max_llm_calls`."""
        return "max_llm_calls" not in self.model_fields_set and "ADK_MAX_LLM_CALLS" not in os.environ

    @property
    def streams(self) -> bool:
        """True if the model streams its answer."""
        return self.streaming_mode is StreamingMode.SSE


class ResumabilityConfig(SettingsModel):
    """Make runs resumable: App(resumability_config=ResumabilityConfig(is_resumable=True)). Agents store checkpoints.

    `Runner.run_async(invocation_id=...)` resumes a run that an error, a stop or the end of the process interrupted:
    finished agents do not run again, and a call without a result runs again. Answers continue under the same
    invocation id.
    """

    is_resumable: bool = False


class RetryConfig(SettingsModel):
    """The retry policy of a graph node: number of attempts, and exponential backoff with jitter."""

    max_attempts: int = Field(default=5, ge=1)
    """Including the first attempt."""
    initial_delay: float = Field(default=1.0, ge=0)
    """Seconds before the second attempt."""
    max_delay: float = Field(default=60.0, ge=0)
    """Seconds; upper limit of each delay."""
    backoff_factor: float = Field(default=2.0, ge=1)
    """Factor from one delay to the next."""
    jitter: float = Field(default=1.0, ge=0)
    """Seconds; a random value up to this is added to each delay."""
    exceptions: list[Any] | None = None
    """Exception classes, or their names, to retry. None: all."""

    def is_retryable(self, error: BaseException) -> bool:
        """True if `exceptions` includes `error`."""
        if not isinstance(error, Exception):
            return False
        names = {error_class.__name__ for error_class in type(error).__mro__}
        return self.exceptions is None or any(
            isinstance(error, error_class) if isinstance(error_class, type) else error_class in names
            for error_class in self.exceptions
        )

    def delay_after(self, error: BaseException, attempt: int) -> float | None:
        """Seconds to wait after a failed attempt. None: do not retry. `attempt`: number of the failed one, from 1."""
        if attempt >= self.max_attempts or not self.is_retryable(error):
            return None
        try:
            delay = self.initial_delay * self.backoff_factor ** (attempt - 1)
        except OverflowError:  # of the power, after about a thousand attempts
            return self.max_delay
        return min(delay + random.uniform(0, self.jitter), self.max_delay)
