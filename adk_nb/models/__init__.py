"""Ask a model. Its names load on first use."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(
    __name__,
    {
        "BaseLlm": "adk_nb.models.base_llm",
        "Claude": "adk_nb.models.anthropic_llm",
        "FallbackModel": "adk_nb.models.fallback_model",
        "Gemini": "adk_nb.models.google_llm",
        "HttpLlm": "adk_nb.models.http_llm",
        "LLMRegistry": "adk_nb.models.registry",
        "LiteLlm": "adk_nb.models.lite_llm",
        "LlmCapabilities": "adk_nb.models.base_llm",
        "LlmRequest": "adk_nb.models.llm_request",
        "LlmResponse": "adk_nb.models.llm_response",
        "LocalLlm": "adk_nb.models.local_llm",
        "OfflineLlm": "adk_nb.models.offline_llm",
        "OllamaLlm": "adk_nb.models.openai_llm",
        "OpenAILlm": "adk_nb.models.openai_llm",
        "RecordedLlm": "adk_nb.models.recorded_llm",
        "ScriptedLlm": "adk_nb.models.scripted_llm",
        "call": "adk_nb.models.scripted_llm",
    },
)
