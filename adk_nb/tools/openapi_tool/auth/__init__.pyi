from adk_nb.tools.openapi_tool.auth import auth_helpers as auth_helpers
