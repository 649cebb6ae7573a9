from adk_nb.tools.langchain_tool import LangchainTool as LangchainTool
