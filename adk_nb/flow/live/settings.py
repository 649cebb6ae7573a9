"""What a run and an agent say of a live conversation becomes the settings it is opened with."""

from typing import Any

from adk_nb import types
from adk_nb.models.llm_request import LlmRequest
from adk_nb.runtime.run_config import RunConfig

_OF_THE_RUN = (
    "response_modalities",
    "speech_config",
    "output_audio_transcription",
    "input_audio_transcription",
    "realtime_input_config",
    "explicit_vad_signal",
    "translation_config",
    "enable_affective_dialog",
    "proactivity",
    "history_config",
    "context_window_compression",
    "avatar_config",
)
_OF_THE_AGENT = (
    "system_instruction",
    "tools",
    "temperature",
    "top_p",
    "top_k",
    "max_output_tokens",
    "seed",
    "media_resolution",
    "thinking_config",
)


def live_connect_config(run: RunConfig, request: LlmRequest, handle: str | None) -> types.LiveConnectConfig:
    """The settings of a live conversation.

    Args:
        run: Of which no field is changed.
        request: With the agent's settings, and the history that is told when the conversation is open.
        handle: Of the conversation that goes on, whose history the service knows. None: a new one.
    """
    given: dict[str, Any] = {name: getattr(run, name) for name in _OF_THE_RUN}
    given |= {name: getattr(request.config, name) for name in _OF_THE_AGENT}
    given["response_modalities"] = given["response_modalities"] or [types.Modality.AUDIO]
    if handle or run.session_resumption:
        resumption = run.session_resumption or types.SessionResumptionConfig()
        given["session_resumption"] = resumption.model_copy(update={"handle": handle})
    if request.contents and not handle:
        history = run.history_config or types.HistoryConfig()
        if history.initial_history_in_client_content is None:
            history = history.model_copy(update={"initial_history_in_client_content": True})
        given["history_config"] = history
    return types.LiveConnectConfig(**{name: value for name, value in given.items() if value is not None})
