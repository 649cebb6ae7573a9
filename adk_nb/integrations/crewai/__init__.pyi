from adk_nb.tools.crewai_tool import CrewaiTool as CrewaiTool
