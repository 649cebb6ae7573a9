from adk_nb.tools.openapi_tool.openapi_spec_parser.openapi_toolset import OpenAPIToolset as OpenAPIToolset
from adk_nb.tools.openapi_tool.rest_api_tool import RestApiTool as RestApiTool
