from typing import Any

from adk_nb import types as types
from adk_nb.agents.llm_agent import Agent as Agent
from adk_nb.agents.llm_agent import LlmAgent as LlmAgent
from adk_nb.apps.app import App as App
from adk_nb.events.event import Event as Event
from adk_nb.google_adk import stand_in_for_google_adk as stand_in_for_google_adk
from adk_nb.notebook.chat.chat import Chat as Chat
from adk_nb.notebook.chat.reply import Reply as Reply
from adk_nb.notebook.extensions.notebook_tools.toolset import NotebookToolset as NotebookToolset
from adk_nb.runners import InMemoryRunner as InMemoryRunner
from adk_nb.runners import Runner as Runner
from adk_nb.runtime.context import Context as Context
from adk_nb.runtime.run_config import RunConfig as RunConfig
from adk_nb.runtime.run_config import StreamingMode as StreamingMode
from adk_nb.sync import run as run
from adk_nb.tools.tool_decorator import tool as tool
from adk_nb.workflow.workflow import Workflow as Workflow

__version__: str

def load_ipython_extension(shell: Any) -> None: ...
def unload_ipython_extension(shell: Any) -> None: ...
