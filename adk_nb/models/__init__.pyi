from adk_nb.models.anthropic_llm import Claude
from adk_nb.models.base_llm import BaseLlm, LlmCapabilities
from adk_nb.models.fallback_model import FallbackModel
from adk_nb.models.google_llm import Gemini
from adk_nb.models.http_llm import HttpLlm
from adk_nb.models.lite_llm import LiteLlm
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.models.local_llm import LocalLlm
from adk_nb.models.offline_llm import OfflineLlm
from adk_nb.models.openai_llm import OllamaLlm, OpenAILlm
from adk_nb.models.recorded_llm import RecordedLlm
from adk_nb.models.registry import LLMRegistry
from adk_nb.models.scripted_llm import ScriptedLlm, call

__all__ = [
    "BaseLlm",
    "Claude",
    "FallbackModel",
    "Gemini",
    "HttpLlm",
    "LLMRegistry",
    "LiteLlm",
    "LlmCapabilities",
    "LlmRequest",
    "LlmResponse",
    "LocalLlm",
    "OfflineLlm",
    "OllamaLlm",
    "OpenAILlm",
    "RecordedLlm",
    "ScriptedLlm",
    "call",
]
