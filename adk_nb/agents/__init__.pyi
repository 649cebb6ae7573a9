from adk_nb.agents.base_agent import BaseAgent as BaseAgent
from adk_nb.agents.llm_agent import Agent as Agent
from adk_nb.agents.llm_agent import LlmAgent as LlmAgent
from adk_nb.runtime.context import CallbackContext as CallbackContext
from adk_nb.runtime.context import Context as Context
from adk_nb.runtime.invocation_context import InvocationContext as InvocationContext
from adk_nb.runtime.run_config import RunConfig as RunConfig
from adk_nb.runtime.run_config import StreamingMode as StreamingMode
