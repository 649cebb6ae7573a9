"""ADK's path to tools written for LangChain."""

from adk_nb.tools.langchain_tool import LangchainTool

__all__ = ["LangchainTool"]
