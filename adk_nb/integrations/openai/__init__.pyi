from adk_nb.models.openai_llm import OpenAILlm as OpenAILlm
