"""Models of OpenAI's API and of litellm as google-adk's LiteLlm."""

from adk_nb.errors import UserError
from adk_nb.models.base_llm import BaseLlm
from adk_nb.models.default_model import served_models
from adk_nb.models.lite_llm import LiteLlm
from adk_nb.models.local_llm import LocalLlm
from adk_nb.models.openai_llm import OllamaLlm, OpenAILlm
from adk_nb.models.registry import LLMRegistry
from adk_nb.notebook.extensions.export.scope import Keywords, call_code, is_data, text_code, text_or_none
from adk_nb.redaction import redacted

NEEDS = ("LiteLlm", "os")
"""Names in the written code."""
_OPENAI_KEY, _OLLAMA_KEY = (f'os.environ.get("{name}_API_KEY", "none")' for name in ("OPENAI", "OLLAMA"))
"""OpenAI's client wants a key even for a server that needs none."""


def lite_llm_code(model: str | BaseLlm) -> str | None:
    """A model as an expression for google-adk; None if no LiteLlm is like it. Keys stay in the environment."""
    try:
        llm = LLMRegistry.resolve(model).from_name(LLMRegistry.own_name(model)) if isinstance(model, str) else model
    except UserError:  # its package is not installed, or nobody knows it
        return None
    if isinstance(llm, LocalLlm):  # its server is of this process
        return None
    keywords: Keywords = {}
    if isinstance(llm, LiteLlm):
        keywords = {
            "model": text_code(llm.model),
            "api_base": text_or_none(llm.base_url),
            "api_key": _OPENAI_KEY if llm.api_key and llm.base_url and llm.model.startswith("openai/") else None,
        }
        for name, value in llm.additional_args.items():
            code = repr(value)
            # litellm finds a provider's secrets itself, under that provider's variables.
            is_secret = isinstance(value, str) and redacted(f"{name}={code}") != f"{name}={code}"
            if name.isidentifier() and is_data(value) and not is_secret:
                keywords[name] = code
    elif isinstance(llm, OpenAILlm):
        address, name = llm.address(), llm.model
        is_server = name.startswith(("http://", "https://"))
        if is_server:
            name = name.partition("#")[2] or next(iter(served_models(address or "")), "")
        if not name:
            return None
        of_server = _OLLAMA_KEY if isinstance(llm, OllamaLlm) else _OPENAI_KEY
        key = of_server if llm.api_key or not is_server else '"none"'
        keywords = {
            "model": text_code(f"openai/{name}"),
            "api_base": text_or_none(address),
            "api_key": key if address else None,
            "extra_body": repr(llm.extra_body) if llm.extra_body and is_data(llm.extra_body) else None,
        }
    return call_code("LiteLlm", keywords) if keywords else None
